"""Support vector machines of scikit-learn: SVR, NuSVR, SVC, NuSVC, OneClassSVM."""

from __future__ import annotations

import copy
import functools
import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.frames import Table
from exactshap.kernels import from_sklearn
from exactshap.readers import Outputs, OwnCall, Reader, Request, sklearn_name
from exactshap.readers import read as read_any
from exactshap.readers.kernel_machines._kernel_machine import KernelReader
from exactshap.readers.kernel_machines._response import with_outer_response
from exactshap.readers.kernel_machines.machine import Expansion, expand


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
    outputs = Outputs.of((name,), request.output, owner=type(model).__name__)
    expansion = _expansion(model, np.asarray(_dense(model.dual_coef_)).T, model.intercept_)
    call = outputs.call(method)
    return KernelReader(model, request, expansion, outputs, unit=unit, own_call=call)


def _classifier(model: Model, request: Request) -> Reader:
    """Read the decision function: one margin for two classes, all one-vs-one margins for more."""
    classes = [str(c) for c in model.classes_]
    if request.output == "probability":
        from exactshap.readers.responses import no_response

        raise no_response(model, "Its score is a decision function")
    by_class = isinstance(request.output, str) and request.output == "ovr"
    if len(classes) == 2:
        # By class it is this very margin
        margin = replace(request, output="auto") if by_class else request
        return _single(model, margin, "decision_function", classes[1], f"decision function of class {classes[1]}")
    if by_class:
        return _one_versus_rest(model, request)
    names = tuple(f"{first} vs {second}" for first, second in itertools.combinations(classes, 2))
    outputs = Outputs.of(names, request.output, owner=type(model).__name__)
    call = outputs.call("decision_function")
    return KernelReader(
        model,
        request,
        _expansion(model, _pairwise_coefficients(model), model.intercept_).outputs(outputs.numbers),
        outputs,
        unit="one-vs-one decision function",
        own_call=call if model.decision_function_shape == "ovo" else None,
        predict=functools.partial(_predict_shaped, call, model, "ovo"),
    )


def _one_versus_rest(model: Model, request: Request) -> Reader:
    """Explain scikit-learn's one-vs-rest view: votes plus a bounded confidence, not a sum of kernels, so by coalitions."""
    options = {**request.options, "exact_owner": False}
    function = functools.partial(_decision_function, model, "ovr")
    reader = read_any(function, replace(request, output="auto", options=options))
    names = tuple(str(c) for c in model.classes_)
    reader.traits = replace(reader.traits, output_names=names, unit="one-vs-rest decision function")
    return reader


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


def _expansion(model: Model, coefficients: np.ndarray, intercept: np.ndarray) -> Expansion:
    points = _support_vectors(model)
    kernel = from_sklearn(
        model.kernel,
        points.shape[1],
        gamma=None if callable(model.kernel) else model._gamma,  # no public name: gamma="scale" is of rows that are not kept
        coef0=model.coef0,
        degree=model.degree,
    )
    return expand(kernel, points, coefficients, intercept)


def _support_vectors(model: Model) -> TableLike:
    """Return the support vectors; with a callable kernel scikit-learn keeps the training rows and the support's numbers."""
    if callable(model.kernel):
        return np.asarray(model._BaseLibSVM__Xfit, float)[model.support_]
    return model.support_vectors_


def _dense(array: TableLike) -> Any:
    return array.toarray() if hasattr(array, "toarray") else array


def _predict_shaped(call: OwnCall, model: Model, shape: str, X: Table) -> np.ndarray:
    return call(_shaped(model, shape), X.native)


def _decision_function(model: Model, shape: str, rows: TableLike) -> np.ndarray:
    return np.asarray(_shaped(model, shape).decision_function(rows), float)


def _shaped(model: Model, shape: str) -> Any:
    """Return the current model with another decision shape; a copy kept for later would miss a refit."""
    shaped = copy.copy(model)
    shaped.decision_function_shape = shape
    return shaped
