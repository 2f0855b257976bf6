"""Read support vector machines in ONNX files, and compare them with onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._graphs import Attributes, SupportCore, refused
from exactshap.errors import ModelFormatError
from exactshap.kernels import from_sklearn
from exactshap.readers import Reader, Request
from exactshap.readers.kernel_machines._kernel_machine import read_arrays

MAX_DEGREE = 100
_KERNELS = {"LINEAR": "linear", "POLY": "poly", "RBF": "rbf"}


def read(model: SupportCore, request: Request) -> Reader:
    r"""Read a regression, a one-class score, or the second class's score.

    .. math:: f(x) = \rho + \sum_i \alpha_i\, k(x, x_i)
    """
    attributes = model.attributes
    kind = attributes.text("kernel_type", "LINEAR")
    if kind not in _KERNELS:
        raise refused("The kernel of a support vector machine has no product form", f"Got {kind}")
    sign, name = _sign(attributes)
    points, dual, rho = _arrays(attributes, model.n_columns)
    parameters = attributes.numbers("kernel_params")
    if parameters.size != 3:
        raise ModelFormatError(f"{attributes.kind}: kernel_params must be gamma, coef0 and degree")
    gamma, coef0, degree = parameters.tolist()
    if gamma <= 0.0 or degree != round(degree) or not 1 <= degree <= MAX_DEGREE:
        raise refused("The parameters of a kernel are out of range", f"Got gamma {gamma}, degree {degree}")
    kernel = from_sklearn(_KERNELS[kind], model.n_columns, gamma=gamma, coef0=coef0, degree=degree)
    scale = sign * model.scale
    unit = "target" if name == "output" else f"decision function of class {name}"
    # Of two classes, libsvm's first score is above 0 where the label is the second
    facts: dict[str, Any] = {"names": (name,), "unit": unit, "method": "scores", "epsilon": float(np.finfo(np.float32).eps)}
    return read_arrays(model, request, kernel, points, scale * dual, scale * rho + model.shift, **facts)


def _sign(attributes: Attributes) -> tuple[float, str]:
    """Return the sign of the score of the explained class, and its name."""
    if attributes.kind == "SVMRegressor":
        if attributes.integer("one_class", 0) or attributes.text("post_transform", "NONE") != "NONE":
            raise refused("SVMRegressor answers labels or a transform of its score")
        return 1.0, "output"
    labels = attributes.texts("classlabels_strings") or tuple(map(str, attributes.integers("classlabels_ints")))
    if len(labels) != 2 or len(attributes.integers("vectors_per_class")) != 2:
        raise refused("SVMClassifier is read with two classes", f"Got {len(labels)}")
    return -1.0, labels[1]


def _arrays(attributes: Attributes, n_columns: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return support vectors, dual coefficients and the constant."""
    vectors, dual, rho = (attributes.numbers(name) for name in ("support_vectors", "coefficients", "rho"))
    is_classifier = attributes.kind == "SVMClassifier"
    n_support = int(attributes.integers("vectors_per_class").sum()) if is_classifier else attributes.integer("n_supports", 0)
    if n_support < 1 or len(dual) != n_support or len(vectors) != n_support * n_columns or len(rho) != 1:
        raise ModelFormatError(f"{attributes.kind}: support vectors, coefficients and rho do not fit {n_columns} columns")
    return vectors.reshape(n_support, n_columns), dual, float(rho[0])
