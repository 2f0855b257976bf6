"""Read several models as one: one-vs-rest, one-vs-one and output codes of classifiers, one regressor per target, chains."""

from __future__ import annotations

import functools
import itertools
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import UnknownNameError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, Reader, Request, fitted_names, is_of_target, nameless, sklearn_name, target_names
from exactshap.readers import read as read_any
from exactshap.readers.additive import (
    AdditiveReader,
    LinearParts,
    is_logistic,
    linear_step,
    read_parts,
    read_side_by_side,
    with_response,
)
from exactshap.readers.kernel_machines import KernelReader, merge
from exactshap.readers.responses import Response, probabilities
from exactshap.readers.wrappers._columns import without_names
from exactshap.readers.wrappers._sum import Member, SumReader, name_of_sum, read_member, request_of_sum


def read(model: Model, request: Request) -> Reader:
    """Read the parts, kernel machines as the outputs of one machine, others separately."""
    divides = sklearn_name(model) == "OneVsRestClassifier" and not model.multilabel_
    if request.asks_response and divides and all(map(is_logistic, model.estimators_)):
        return _read_probabilities(model, request)
    return _read_scores(model, request)


def _probabilities(model: Model) -> Response:
    """Return the second class's probability, or those of all classes."""
    return probabilities(model.classes_, "one-vs-rest")


@with_response(_probabilities)
def _read_probabilities(model: Model, request: Request) -> AdditiveReader:
    """Read the scores of logistic parts, which are linear, as one additive model."""
    reader = _read_scores(model, request)
    assert isinstance(reader, AdditiveReader)
    return reader


def _read_scores(model: Model, request: Request) -> Reader:
    names = _names(model)
    outputs = Outputs.of(names, request.output, owner=type(model).__name__)
    inner = replace(request, output="auto")
    if request.background is not None:
        inner = replace(
            inner,
            background=without_names(request.background, model.estimators_[0]),
            feature_names=request.feature_names or request.background.names,
        )
    models = [model.estimators_[k] for k in outputs.numbers]
    of_targets = sklearn_name(model) == "MultiOutputRegressor"
    parts = [_read_part(one, inner, of_targets) for one in models]
    for one, part in zip(models, parts, strict=True):
        if not part.traits.single_output or not _adds_up_to_output(one, part):
            raise UnsupportedStructureError(
                f"{type(model).__name__} can be read only where each of its parts has one output, which is exact in the unit that it predicts",
                f"Got {part.traits.model_name} as {part.traits.unit}",
                "Explain model.estimators_[k] one at a time",
            )
    own, fitted = functools.partial(_predict, model, outputs), fitted_names(model) or parts[0].traits.fitted_names
    unit = parts[0].traits.unit.split(" of class ")[0]
    if unit.startswith("log-odds") and len(names) > 1 and not getattr(model, "multilabel_", True):
        unit = f"one-vs-rest {unit}"  # its probabilities are divided by their sum
    if len(names) == 1:
        unit = f"{unit} of {'' if ' vs ' in names[0] else 'class '}{names[0]}"
    kernel_machines = [part for part in parts if isinstance(part, KernelReader)]
    if len(kernel_machines) == len(parts):
        return KernelReader(
            model,
            request,
            merge([part.expansion for part in kernel_machines]),
            outputs,
            unit=unit,
            predict=own,
            names=fitted,
        )
    name = name_of_sum(model, parts)
    linear = read_side_by_side(model, request, parts, name, predict=own, outputs=outputs, unit=unit, fitted_names=fitted)
    if linear is not None:
        return linear
    members = [Member(part, unit_row[None]) for part, unit_row in zip(parts, np.eye(len(parts)), strict=True)]
    n_columns = parts[0].traits.n_features
    return SumReader(model, request, members, own, outputs=outputs, unit=unit, names=fitted, n_columns=n_columns)


def _read_part(one: Model, request: Request, of_target: bool) -> Reader:
    """Read one part; a regressor by its own prediction, also where it is read as a logarithm."""
    reader = read_any(one, request)
    if of_target and not is_of_target(reader.traits.unit):
        with suppress(UnknownNameError, UnsupportedStructureError):  # then the unit says why it is refused
            return read_any(one, replace(request, output="response"))
    return reader


def _adds_up_to_output(inner: Model, part: Reader) -> bool:
    """Say whether a part's values sum to its decision or prediction."""
    if hasattr(inner, "decision_function"):  # of bagging, which is read by its probabilities, a mean of other scores
        return not part.traits.unit.startswith("probability")
    return part.traits.unit == "target" and not len(getattr(inner, "classes_", ()))  # CatBoostRegressor has an empty list


def read_codes(model: Model, request: Request) -> Reader:
    r"""Read the closeness of the parts' scores to each class's code.

    .. math:: -\tfrac12 \lVert f(x) - c_k \rVert^2 + \tfrac12 \lVert f(x) \rVert^2 = f(x) \cdot c_k - \tfrac12 \lVert c_k \rVert^2
    """
    names, codes = tuple(map(str, model.classes_)), np.asarray(model.code_book_, float)
    outputs = Outputs.of(names, request.output, owner=type(model).__name__, multiple=True)
    if request.background is not None:
        request = replace(request, background=without_names(request.background, model.estimators_[0]))
    request, chosen = request_of_sum(model, request), outputs.numbers
    members, constant = [], -0.5 * np.square(codes[chosen]).sum(axis=1)
    for part, code in zip(model.estimators_, codes.T, strict=True):
        if np.ptp(code) == 0.0:  # the same for all classes, so that the part answers a constant
            # Any row will do, as the part answers the same for all.
            constant += float(_answer(nameless(part), np.zeros((1, int(model.n_features_in_))))[0]) * code[chosen]
        else:
            members.append(Member(_part_of_code(part, request, model), code[None, chosen]))
    return SumReader(
        model,
        request,
        members,
        functools.partial(_closeness, model, outputs),
        constant=constant,
        outputs=outputs,
        unit="closeness to the code of the class",
    )


def _part_of_code(part: Model, request: Request, model: Model) -> Reader:
    """Read one part by its decision function, else by its probability."""
    wanted = "auto" if hasattr(part, "decision_function") else "probability"
    reader = read_member(part, replace(request, output=wanted), type(model).__name__)
    if reader.traits.single_output and (wanted == "probability" or _adds_up_to_output(part, reader)):
        return reader
    do = "Explain model.estimators_[k] one at a time"
    what = f"{type(model).__name__} adds up the outputs of its parts"
    raise UnsupportedStructureError(what, f"Got {reader.traits.model_name} as {reader.traits.unit}", do)


def _closeness(model: Model, outputs: Outputs, X: Table) -> np.ndarray:
    """Return the closeness of the parts' answers to the model's codes. The model has no call that returns it."""
    rows, codes = without_names(X, model.estimators_[0]).native, np.asarray(model.code_book_, float)
    answers = np.stack([_answer(part, rows) for part in model.estimators_], axis=1)
    return outputs.pick(answers @ codes.T - 0.5 * np.square(codes).sum(axis=1))


def _answer(part: Model, rows: TableLike) -> np.ndarray:
    return np.ravel(part.decision_function(rows)) if hasattr(part, "decision_function") else part.predict_proba(rows)[:, 1]


def _names(model: Model) -> tuple[str, ...]:
    if not hasattr(model, "classes_"):
        return target_names(len(model.estimators_))
    prefix = "label " if getattr(model, "multilabel_", False) else ""  # classes_ are the numbers of the labels
    classes = [f"{prefix}{c}" for c in model.classes_]
    if sklearn_name(model) == "OneVsOneClassifier":
        return tuple(f"{second} vs {first}" for first, second in itertools.combinations(classes, 2))
    return (classes[1],) if len(model.estimators_) == 1 else tuple(classes)


def _predict(model: Model, outputs: Outputs, X: Table) -> np.ndarray:
    """Return the model's own outputs: its decision function, or predictions; of pairs of classes, those of its parts."""
    rows = without_names(X, model.estimators_[0]).native
    if sklearn_name(model) == "OneVsOneClassifier":  # its own decision function counts votes
        values = np.stack([np.ravel(_of_part(model.estimators_[k], rows)) for k in outputs.numbers], axis=1)
        return values[:, 0] if outputs.single else values
    return outputs.pick(np.asarray(_of_part(model, rows), float))


def _of_part(part: Model, rows: TableLike) -> Any:
    return (part.decision_function if hasattr(part, "decision_function") else part.predict)(rows)


def read_chain(model: Model, request: Request) -> Reader:
    r"""Read a chain of linear models, which are linear in the rows and in the predictions of earlier models.

    .. math:: y_k = b_k + x \cdot \beta_k + \sum_{m < k} \gamma_{km}\, y_m
    """
    method = "predict" if sklearn_name(model) == "RegressorChain" else "decision_function"
    if method == "decision_function" and model.chain_method_ != method:
        do = "Fit it with chain_method='decision_function', or call it: explain(model.predict_proba, X, background)"
        raise _refused_chain(model, f"Got chain_method={model.chain_method!r}, which passes on no sum of terms", do)
    n_columns, n_targets = int(model.n_features_in_), len(model.estimators_)
    coefficients, intercept = np.zeros((n_columns, n_targets)), np.zeros(n_targets)
    for place, step in enumerate(model.estimators_):
        parts = linear_step(step)
        if parts is None or parts.method != method or parts.coefficients.shape[1] != 1:
            do = "Call it: explain(model.predict, X, background), exact up to 13 players"
            raise _refused_chain(model, f"Got {type(step).__name__}", do)
        of_rows, of_chain = np.split(np.asarray(parts.coefficients[:, 0], float), [n_columns])
        before = list(model.order_[:place])
        coefficients[:, model.order_[place]] = of_rows + coefficients[:, before] @ of_chain
        intercept[model.order_[place]] = float(parts.intercept[0]) + intercept[before] @ of_chain
    unit = "target" if method == "predict" else "decision function"
    names = target_names(n_targets)
    return read_parts(model, request, LinearParts(coefficients, intercept, names, unit, method), fitted_names(model))


def _refused_chain(model: Model, got: str, do: str) -> UnsupportedStructureError:
    return UnsupportedStructureError(f"{type(model).__name__} can be read only where all of its models are linear", got, do)
