"""Read stacks of classifiers with a linear last step as weighted sums of the scores of the first ones."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.readers import OwnCall, Reader, Request, fitted_names, outputs_of, select_outputs
from exactshap.readers.additive import linear_step
from exactshap.readers.wrappers._sum import Member, SumReader, read_member
from exactshap.readers.wrappers.sklearn_probabilities import member_of_probabilities
from exactshap.readers.wrappers.sklearn_sums import n_columns_of, request_of_sum, rows_themselves


def read(model: Model, request: Request) -> Reader:
    r"""Read the last step's decision function of the first models' answers.

    .. math:: g(x) = b + \sum_m f_m(x)\, W_m
    """
    parts = linear_step(model.final_estimator_)
    if parts is None or parts.method != "decision_function" or isinstance(model.classes_, list):
        raise _refused(model, f"Its last step is {type(model.final_estimator_).__name__}")
    chosen, picked = select_outputs(parts.output_names, request.output, owner=type(model).__name__)
    weights, request = np.asarray(parts.coefficients, float)[:, chosen], request_of_sum(model, request)
    members, constant, place = [], np.asarray(parts.intercept, float)[chosen], 0
    for inner, method in zip(model.estimators_, model.stack_method_, strict=True):
        width = 1 if len(model.classes_) == 2 else len(model.classes_)  # of two classes the first is left out
        member, added = _member(model, inner, method, weights[place : place + width], request)
        members.append(member)
        constant, place = constant + added, place + width
    if model.passthrough:
        columns = tuple(range(n_columns_of(model)))
        members.append(Member(rows_themselves(model, weights[place:], request), np.eye(len(chosen)), columns))
    single, names = picked or len(parts.output_names) == 1, tuple(_class_names(model, parts.output_names)[k] for k in chosen)
    call = OwnCall("decision_function", finish=functools.partial(outputs_of, chosen, single))
    return SumReader(
        model,
        request,
        members,
        functools.partial(call.of_table, model),
        constant=constant,
        output_names=names,
        unit=f"{parts.unit.split(' of class ')[0]}{f' of class {names[0]}' if single else ''}",
        fitted_names=fitted_names(model),
        n_columns=n_columns_of(model),
        single_output=single,
    )


def _member(
    model: Model, inner: Model, method: str, weights: np.ndarray, request: Request
) -> tuple[Member, np.ndarray | float]:
    """Read one classifier by the method that feeds the last step."""
    if method == "predict_proba":
        of_classes = np.concatenate([np.zeros_like(weights), weights]) if len(weights) == 1 else weights
        return member_of_probabilities(inner, of_classes, None, request, model)
    if method != "decision_function":
        raise _refused(model, f"It takes the labels of {type(inner).__name__}")
    reader = read_member(inner, replace(request, output="auto"), type(model).__name__)
    classes = tuple(map(str, inner.classes_))[-len(weights) :]
    if reader.traits.output_names != classes or reader.traits.unit.startswith("probability"):
        raise _refused(model, f"Got {reader.traits.model_name} as {reader.traits.unit}")
    return Member(reader, weights), 0.0


def _class_names(model: Model, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stack's classes: the last step knows them as numbers."""
    classes = tuple(map(str, model.classes_))
    return classes[-1:] if len(names) == 1 else classes


def _refused(model: Model, got: str) -> UnsupportedStructureError:
    what = f"{type(model).__name__} can be read only where a linear step adds up probabilities or decision functions"
    do = "Call it: explain(model.predict_proba, X, background), exact up to 13 players"
    return UnsupportedStructureError(what, got, do)
