"""Read linear models in ONNX files as scores, and check them against onnxruntime."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._graphs import LinearCore, refused
from exactshap._runtime.types import Model
from exactshap.errors import ModelFormatError
from exactshap.readers import Outputs, OwnCall, Request, target_names
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts
from exactshap.readers.responses import Response, no_response

_LINKS = {"LOGISTIC": "logistic", "SOFTMAX": "softmax"}
_UNITS = {"LOGISTIC": "log-odds", "SOFTMAX": "score before the softmax"}


def _response(model: Model) -> Response:
    """Return the file's transform of its scores."""
    parts, post = _parts(model), model.attributes.text("post_transform", "NONE")
    n_outputs, call = len(parts.output_names), _call(model, parts, "responses")
    if model.exponential:
        return Response("exponential", call, "target")
    if post == "SOFTMAX" or (post == "LOGISTIC" and n_outputs == 1):
        name = f"probability of class {parts.output_names[0]}" if n_outputs == 1 else "probability"
        return Response(_LINKS[post], call, name)
    if post == "LOGISTIC" and model.normalised:
        return Response("one-vs-rest", call, "probability")
    raise no_response(model, f"Its score is a {parts.unit}")


@with_response(_response)
def read(model: LinearCore, request: Request) -> AdditiveReader:
    r"""Read the scores of a linear operator.

    .. math:: f_k(x) = b_k + \sum_j x_j \beta_{jk}
    """
    parts = _parts(model)
    return read_parts(model, request, parts, None, _call(model, parts, "scores", request.output))


def _call(model: LinearCore, parts: LinearParts, method: str, output: object = "all") -> OwnCall:
    outputs = Outputs.of(parts.output_names, output, owner=model.name)
    return OwnCall(method, finish=functools.partial(_chosen, len(parts.output_names), outputs))


def _chosen(n_outputs: int, outputs: Outputs, answers: np.ndarray) -> np.ndarray:
    """Return the chosen outputs, of two classes that of the second."""
    return outputs.pick(answers[:, -n_outputs:])


def _parts(model: LinearCore) -> LinearParts:
    attributes = model.attributes
    coefficients, intercept = attributes.numbers("coefficients"), attributes.numbers("intercepts")
    n_columns = model.n_columns
    if not coefficients.size or coefficients.size % n_columns:
        raise ModelFormatError(f"{attributes.kind}: the coefficients do not fit {n_columns} columns")
    rows = coefficients.reshape(-1, n_columns)
    intercept = intercept if intercept.size else np.zeros(len(rows))
    names = _names(model, len(rows))
    if intercept.size != len(rows):
        raise ModelFormatError(f"{attributes.kind}: intercepts and coefficients do not fit")
    if len(names) == 1 and len(rows) == 2:  # the score of the second class, and its negative
        rows, intercept = rows[1:], intercept[1:]
    post = attributes.text("post_transform", "NONE")
    if model.normalised and post not in ("SOFTMAX", "LOGISTIC"):
        raise refused("Scores of classes are divided by their sum")
    unit = "log of the target" if model.exponential else _UNITS.get(post, "score")
    if attributes.kind == "LinearRegressor":
        unit = unit if model.exponential or post != "NONE" else "target"
    elif len(names) == 1:
        unit = f"{unit} of class {names[0]}"
    scaled = (model.scale * rows.T).astype(np.float32 if model.scale == 1.0 else float)
    return LinearParts(scaled, model.scale * intercept + model.shift, names, unit)


def _names(model: LinearCore, n_rows: int) -> tuple[str, ...]:
    """Return names of the scores: those of classes, or targets."""
    attributes = model.attributes
    if attributes.kind == "LinearRegressor":
        if n_rows != attributes.integer("targets", 1) or model.column is not None:
            raise refused("LinearRegressor has coefficients for another number of targets", f"Got {n_rows}")
        return target_names(n_rows)
    labels = attributes.texts("classlabels_strings") or tuple(map(str, attributes.integers("classlabels_ints")))
    if len(labels) < 2 or n_rows != len(labels) or len(set(labels)) < len(labels):
        raise refused("LinearClassifier has no score for each class", f"Got {n_rows} for {len(labels)} classes")
    binary = len(labels) == 2 and _are_opposite(attributes.numbers("coefficients"), attributes.numbers("intercepts"))
    if (model.column is not None and not (binary and model.column == 1)) or (
        len(labels) == 2 and not binary and attributes.text("post_transform", "NONE") != "SOFTMAX"
    ):
        raise refused("LinearClassifier goes on with one score of several, or has two that are not each other's negative")
    return labels[1:] if binary else labels


def _are_opposite(coefficients: np.ndarray, intercept: np.ndarray) -> bool:
    """Say whether the first class's score is the negative of the second's."""
    first, second = np.split(coefficients, 2)
    return bool(np.array_equal(first, -second) and (not intercept.size or intercept[0] == -intercept[-1]))
