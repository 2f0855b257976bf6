"""Describe your own kernel machine by arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, InputTypeError
from exactshap.frames import Table, as_table
from exactshap.kernels import Kernel, from_sklearn
from exactshap.readers import Outputs, Reader, Request
from exactshap.readers.kernel_machines._expansion import expand
from exactshap.readers.kernel_machines._kernel_machine import KernelReader


class KernelMachine:
    r"""Describe a kernel machine by its arrays.

    .. math:: f(x) = b + \sum_i \alpha_i\, k(x, X_i)

    Parameters
    ----------
    X_train : array of shape (n_training, n_features)
    dual_coef : array of shape (n_training,) or (n_training, n_outputs)
        alpha.
    kernel : exactshap.kernels.Kernel or a kernel of sklearn.gaussian_process.kernels
    intercept : float or array of shape (n_outputs,), default=0.0
    predict : callable, default=None
        The foreign model's own ``predict(X)``, so that the certificate is checked against it; None checks against the
        kernel matrix of the formula above.
    feature_names : sequence of str, default=None

    Raises
    ------
    InputError
        If the coefficients do not fit the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap import explain
    >>> from exactshap.kernels import RBF
    >>> machine = KernelMachine([[0.0, 0.0], [1.0, 2.0]], [1.0, -0.5], RBF(bandwidth=1.0))
    >>> explain(machine, np.array([[0.0, 0.0]])).values.round(4)
    array([[0.1117, 0.3473]])
    """

    def __init__(
        self,
        X_train: ArrayLike,
        dual_coef: ArrayLike,
        kernel: Any,
        intercept: ArrayLike = 0.0,
        *,
        predict: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.X_train = as_table(X_train, what="X_train").numeric(what="X_train")
        self.dual_coef = _numbers(dual_coef, "dual_coef")
        self.intercept = _numbers(intercept, "intercept")
        if self.dual_coef.ndim not in (1, 2) or len(self.dual_coef) != len(self.X_train):
            raise InputError(
                "`dual_coef` must have one entry for each row of `X_train`",
                f"Got shapes {self.dual_coef.shape} and {self.X_train.shape}",
            )
        if self.intercept.ndim > 0 and self.intercept.shape not in ((1,), self.dual_coef.shape[1:]):
            raise InputError("`intercept` must be one number or one per output", f"Got shape {self.intercept.shape}")
        if not all(np.all(np.isfinite(array)) for array in (self.X_train, self.dual_coef, self.intercept)):
            raise InputError("`X_train`, `dual_coef` and `intercept` must be finite", "Got NaN or infinity")
        if predict is not None and not callable(predict):
            raise InputTypeError("`predict` must be callable or None", f"Got {type(predict).__name__}")
        if not isinstance(kernel, Kernel) and not type(kernel).__module__.startswith("sklearn.gaussian_process"):
            raise InputTypeError(
                "`kernel` must be a kernel of exactshap.kernels or sklearn.gaussian_process", f"Got {type(kernel).__name__}"
            )
        self.kernel = from_sklearn(kernel, self.X_train.shape[1])
        self.own_predict = predict
        if isinstance(feature_names, str) or (feature_names is not None and len(feature_names) != self.X_train.shape[1]):
            raise InputError(f"`feature_names` must hold {self.X_train.shape[1]} names", f"Got {feature_names!r}")
        self.feature_names = None if feature_names is None else tuple(str(name) for name in feature_names)

    def predict(self, X: TableLike) -> np.ndarray:
        """Return f(x), of shape (n_rows,) or (n_rows, n_outputs)."""
        if self.own_predict is not None:
            return np.asarray(self.own_predict(X), float)
        return self.kernel(np.asarray(X, float), self.X_train) @ self.dual_coef + self.intercept


def _numbers(values: ArrayLike, what: str) -> np.ndarray:
    """Return an array of any shape as float64; text and complex numbers are refused."""
    array = np.asarray(values)
    return as_table(array.reshape(-1, 1), what=what, allow_empty=True).numeric(what=what).reshape(array.shape)


def read(model: KernelMachine, request: Request) -> Reader:
    """Read the arrays."""
    multiple = model.dual_coef.ndim == 2
    dual = model.dual_coef if multiple else model.dual_coef[:, None]
    names = tuple(f"output {k}" for k in range(dual.shape[1])) if multiple else ("output",)
    outputs = Outputs.of(names, request.output, owner="KernelMachine", multiple=multiple)
    intercept = np.broadcast_to(model.intercept, (dual.shape[1],))[outputs.numbers]
    return KernelReader(
        model,
        request,
        expand(model.kernel, model.X_train, dual[:, outputs.numbers], intercept),
        outputs,
        unit="output",
        predict=functools.partial(_predict, model, outputs),
        names=model.feature_names,
    )


def _predict(model: KernelMachine, outputs: Outputs, X: Table) -> np.ndarray:
    values = np.asarray(model.predict(X.native if model.own_predict is not None else X.numeric()), float)
    n_outputs = model.dual_coef[0].size
    if values.size != X.n_rows * n_outputs:
        what = f"`predict` must return one number for each row and output, {X.n_rows} x {n_outputs}"
        raise InputError(what, f"Got shape {values.shape}")
    return outputs.pick(values.reshape(X.n_rows, n_outputs))
