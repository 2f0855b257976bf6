"""Read support vector machines of scikit-learn: SVR, NuSVR, SVC, NuSVC, OneClassSVM."""

from __future__ import annotations

import copy
import functools
import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.process_settings import without_warnings
from exactshap._runtime.types import Model, TableLike
from exactshap.errors import UnknownNameError, no_output
from exactshap.frames import Table
from exactshap.kernels import Kernel, from_sklearn
from exactshap.readers import Outputs, OwnCall, Reader, Request, outputs_of, sklearn_name
from exactshap.readers.kernel_machines._expansion import expand
from exactshap.readers.kernel_machines._kernel_machine import KernelReader, read_arrays, with_outer_response
from exactshap.readers.responses import Coupled, Response, Votes, no_response

SCORE_ROUNDINGS = 64.0  # of what adds up to a score, in its library's order and in ours


def read(model: Model, request: Request) -> Reader:
    """Read a support vector machine: f(x) = b + sum over support vectors of dual coefficient times kernel."""
    name = sklearn_name(model)
    if name in ("SVR", "NuSVR"):
        return _single(model, request, "predict", "target", "target")
    if name == "OneClassSVM":
        return _single(model, request, "decision_function", "decision function", "decision function")
    return _classifier(model, request)


@with_outer_response
def _single(model: Model, request: Request, method: str, name: str, unit: str) -> Reader:
    # Before the kernel, which may have no product form
    request.refuse_outputs((name,), owner=type(model).__name__)
    dual = np.ravel(_dense(model.dual_coef_))
    return read_arrays(model, request, *_kernel(model), dual, model.intercept_, names=(name,), unit=unit, method=method)


def _classifier(model: Model, request: Request) -> Reader:
    """Read the decision function: one margin for two classes, all one-vs-one margins for more; or what is made of them."""
    classes = tuple(map(str, model.classes_))
    by_class = isinstance(request.output, str) and request.output == "ovr"
    if request.asks_response:
        request = replace(request, output=_probabilities(model, classes))
    elif by_class:  # of two classes it is the margin itself
        request = replace(request, output=_votes(model, classes) if len(classes) > 2 else "auto")
    if len(classes) == 2:
        return _single(model, request, "decision_function", classes[1], f"decision function of class {classes[1]}")
    outer: Response | None = request.outer_response
    if outer is not None and outer.outputs is None:  # a calibration, of what decision_function returns
        if model.decision_function_shape == "ovo":
            raise UnknownNameError(no_output(type(model).__name__, "probability", classes))
        request = replace(request, output=replace(outer.after(_votes(model, classes)), outputs=classes))
    return _pairs(model, request, classes)


@with_outer_response
def _pairs(model: Model, request: Request, classes: tuple[str, ...]) -> Reader:
    names = tuple(f"{first} vs {second}" for first, second in itertools.combinations(classes, 2))
    outputs = Outputs.of(names, request.output, owner=type(model).__name__)
    call = outputs.call("decision_function")
    return KernelReader(
        model,
        request,
        expand(*_kernel(model), _pairwise_coefficients(model), model.intercept_).outputs(outputs.numbers),
        outputs,
        unit="one-vs-one decision function",
        own_call=call if model.decision_function_shape == "ovo" else None,
        predict=functools.partial(_predict_by_pairs, call, model),
    )


def _votes(model: Model, classes: tuple[str, ...]) -> Response:
    """Return scikit-learn's one-vs-rest view of the scores of pairs."""
    votes = Votes(len(classes), SCORE_ROUNDINGS * float(np.finfo(float).eps * np.abs(_dense(model.dual_coef_)).sum()))
    call = (
        OwnCall("decision_function", finish=votes) if model.decision_function_shape == "ovo" else OwnCall("decision_function")
    )
    return Response("votes", call, "one-vs-rest decision function", function=votes, outputs=classes)


def _probabilities(model: Model, classes: tuple[str, ...]) -> Response:
    """Return the coupling of Platt's sigmoids, if the machine was fitted with probabilities."""
    if not hasattr(model, "predict_proba"):
        raise no_response(model, "Its score is a decision function")
    with without_warnings:  # the attributes leave scikit-learn with `probability=`, in 1.11
        a, b = np.asarray(model.probA_), np.asarray(model.probB_)
    two = len(classes) == 2
    # LIBSVM's score of two classes is that of the first
    coupled = Coupled(-a if two else a, b, len(classes))
    call = OwnCall("predict_proba", finish=functools.partial(outputs_of, [1], True) if two else np.asarray)
    unit = f"probability of class {classes[1]}" if two else "probability"
    return Response("coupling of sigmoids", call, unit, function=coupled, outputs=classes[1:] if two else classes)


def _pairwise_coefficients(model: Model) -> np.ndarray:
    """Return the coefficients (n_support, n_pairs) of all pairs: libsvm stores those of class i against class j in row j - 1."""
    dual = np.asarray(_dense(model.dual_coef_))
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    rows = [slice(ends[i], ends[i + 1]) for i in range(len(model.classes_))]
    pairs = list(itertools.combinations(range(len(model.classes_)), 2))
    coefficients = np.zeros((dual.shape[1], len(pairs)))
    for k, (i, j) in enumerate(pairs):
        coefficients[rows[i], k] = dual[j - 1, rows[i]]
        coefficients[rows[j], k] = dual[i, rows[j]]
    return coefficients


def _kernel(model: Model) -> tuple[Kernel, TableLike]:
    """Return the kernel and the support vectors."""
    if callable(model.kernel):  # scikit-learn keeps the training rows and the support's numbers
        points: TableLike = np.asarray(model._BaseLibSVM__Xfit, float)[model.support_]
    else:
        points = model.support_vectors_
    kernel = from_sklearn(
        model.kernel,
        points.shape[1],
        gamma=None if callable(model.kernel) else model._gamma,  # no public name: gamma="scale" is of rows that are not kept
        coef0=model.coef0,
        degree=model.degree,
    )
    return kernel, points


def _dense(array: TableLike) -> Any:
    return array.toarray() if hasattr(array, "toarray") else array


def _predict_by_pairs(call: OwnCall, model: Model, X: Table) -> np.ndarray:
    """Return the one-vs-one decision function of the current model; a copy kept for later would miss a refit."""
    by_pairs = copy.copy(model)
    by_pairs.decision_function_shape = "ovo"
    return call(by_pairs, X.native)
