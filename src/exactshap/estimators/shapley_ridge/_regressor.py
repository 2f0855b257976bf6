"""Fit kernel ridge regression with small Shapley values of chosen features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from exactshap._runtime.checks import check_parameters
from exactshap._runtime.types import Column, TableLike
from exactshap.errors import InputError
from exactshap.estimators.shapley_ridge._penalised_basis import Basis, PenalisedKernelModel


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Hold the solutions over a grid of penalties.

    Attributes
    ----------
    shapley_penalties : array of shape (n_penalties,)
    dual_coef : array of shape (n_penalties, n_train[, n_targets])
    mean_squared_values : array of shape (n_penalties[, n_targets])
        Mean over training rows of the sum of the squared Shapley values of the penalised features.
    """

    shapley_penalties: np.ndarray
    dual_coef: np.ndarray
    mean_squared_values: np.ndarray


@dataclass(eq=False, repr=False, kw_only=True)
class ShapleyKernelRidge(MultiOutputMixin, RegressorMixin, PenalisedKernelModel):
    r"""Fit kernel ridge regression with a penalty on some features' Shapley values.

    .. math:: \min_{f \in H_k} \sum_i w_i (y_i - f(x_i))^2 + \alpha \|f\|^2
              + \frac{\lambda_S}{\sum_i w_i} \sum_{A} \sum_i w_i\, \phi_{x_i, A}(f)^2

    over f = sum_i a_i k(X_i, .), in closed form. With ``shapley_penalty=0`` it is scikit-learn's ``KernelRidge``.

    Parameters
    ----------
    kernel : str, exactshap kernel or scikit-learn kernel object, default="rbf"
        A kernel that is a sum of products over columns: "rbf", "laplacian", "linear", "poly", "chi2" or an object.
    gamma : float, default=None
        As in scikit-learn; 1 / n_features by default.
    alpha : float, default=1.0
        Ridge, as in ``KernelRidge``; must be >= 0.
    shapley_penalty : float, default=1.0
        lambda_S >= 0.
    penalty_scale : {"mean", "sum"}, default="mean"
        "mean" divides lambda_S by the sum of the weights, as Proposition 7 does; "sum" does not, as the authors' code.
    features : str, int or sequence of them, default=None
        The features A with penalised Shapley values; None means every one.
    value_function : {"interventional", "observational"}, default="interventional"
        "interventional" protects against a shift of the features themselves; "observational" (conditional mean embeddings)
        also counts what leaks through correlated features, which fairness needs. The training rows are the background.
    eta : float or "auto", default=1e-3
        Ridge of the conditional mean embeddings; "auto" cross-validates. Only for "observational".
    n_coalitions : int, default=64
        Random coalitions per feature for "observational"; with 2^(d-1) of them or more the penalty is exact.
    random_state : int, RandomState or None, default=None
        Seed of those coalitions.

    Attributes
    ----------
    dual_coef_ : array of shape (n_train,) or (n_train, n_targets)
    X_fit_ : array of shape (n_train, n_features)
        The rows of positive weight.
    kernel_ : Kernel
        The kernel as an exactshap kernel.
    mean_squared_values_ : float or array of shape (n_targets,)
        Mean over the training rows of the sum of the squared, penalised Shapley values.
    functional_error_ : float or None
        Relative standard error (Frobenius norm) of the penalised functionals; None where they are exact.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Notes
    -----
    For the interventional game the functionals are exact: by splitting the features into two halves, O(n^2 2^d) matrix
    products, or by quadrature, O(n^3 d^2), whichever is cheaper. The observational game costs O(n^3) for each coalition. Then one
    eigendecomposition, O(n^3).

    References
    ----------
    .. [1] Chau, S. L., Hu, R., Gonzalez, J. & Sejdinovic, D. (2022). RKHS-SHAP: Shapley values for kernel methods. Advances in
       Neural Information Processing Systems 35. Proposition 7 (as numbered in the preprint of 2021).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = X @ [1.0, 2.0, 3.0]
    >>> free = ShapleyKernelRidge(alpha=0.1, shapley_penalty=0.0, features=2).fit(X, y)
    >>> held = ShapleyKernelRidge(alpha=0.1, shapley_penalty=100.0, features=2).fit(X, y)
    >>> bool(held.mean_squared_values_ < 0.5 * free.mean_squared_values_)
    True
    """

    penalty_scale: str = "mean"

    def fit(self, X: TableLike, y: Column, sample_weight: Column = None) -> ShapleyKernelRidge:
        """Fit the regressor.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), default=None
            A row of weight 2 counts as two rows, in the loss, the background and the penalty; one of weight 0 not at all.
        """
        y, problem = self._prepare(X, y, sample_weight)
        dual, squares = problem.solve(np.array([self.shapley_penalty], float))
        single = y.ndim == 1
        self.dual_coef_ = dual[0, :, 0] if single else dual[0]
        self.mean_squared_values_ = float(squares[0, 0]) if single else squares[0]
        self.functional_error_ = problem.basis.relative_error
        return self

    def predict(self, X: TableLike) -> np.ndarray:
        """Return f(x), of shape (n_samples,) or (n_samples, n_targets)."""
        return self._function(X)

    def path(self, X: TableLike, y: Column, shapley_penalties: Sequence[float], sample_weight: Column = None) -> RidgePath:
        """Return the solutions over a grid of penalties, without fitting the estimator.

        The penalty and the ridge are diagonalised together once; each further penalty costs one matrix-vector product.
        """
        penalties = np.asarray(shapley_penalties, float)
        if penalties.ndim != 1 or penalties.size == 0 or not np.all(np.isfinite(penalties)) or np.any(penalties < 0):
            raise InputError("`shapley_penalties` must be a list of finite floats >= 0", f"Got {shapley_penalties!r}")
        from sklearn.base import clone

        y, problem = clone(self)._prepare(X, y, sample_weight)
        dual, squares = problem.solve(penalties)
        if y.ndim == 1:
            dual, squares = dual[:, :, 0], squares[:, 0]
        return RidgePath(penalties, dual, squares)

    def _prepare(self, X: TableLike, y: Column, sample_weight: Column) -> tuple[np.ndarray, _Problem]:
        """Validate, drop rows of weight zero, and set up the problem."""
        check_parameters(self, [*self._checks(), ("penalty_scale", self.penalty_scale in ("mean", "sum"), "'mean' or 'sum'")])
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        y, weights = self._weighted(X, np.asarray(y, float), sample_weight)
        scale = 1.0 if self.penalty_scale == "mean" else float(weights.sum())
        return y, _Problem(self._basis(weights), y.reshape(len(y), -1), weights, float(self.alpha), scale)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Hold the quadratic problem in the coordinates of a :class:`Basis`; ``scale`` multiplies the penalties."""

    basis: Basis
    targets: np.ndarray
    weights: np.ndarray
    alpha: float
    scale: float

    def solve(self, penalties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Return dual coefficients (n_penalties, n, n_targets) and mean squared values (n_penalties, n_targets).

        With R R^T = B^T W B + alpha I and R^-1 G R^-T = V S V^T, :math:`\beta(\lambda) = R^{-T} V (I + \lambda S)^{-1} V^T R^{-1} B^T W y`.
        """
        from scipy.linalg import cholesky, solve_triangular

        rows, gram = self.basis.rows, self.basis.gram
        if rows.shape[1] == 0:  # the kernel matrix is zero: f = 0
            return np.zeros((len(penalties), *self.targets.shape)), np.zeros((len(penalties), self.targets.shape[1]))
        normal = (rows * self.weights[:, None]).T @ rows
        normal[np.diag_indices_from(normal)] += self.alpha
        factor = cholesky(normal, lower=True)
        half = solve_triangular(factor, gram, lower=True)
        shared = solve_triangular(factor, half.T, lower=True)
        strengths, vectors = np.linalg.eigh((shared + shared.T) / 2.0)
        projected = vectors.T @ solve_triangular(factor, rows.T @ (self.weights[:, None] * self.targets), lower=True)
        shrunk = projected / (1.0 + self.scale * penalties[:, None, None] * np.maximum(strengths, 0.0)[:, None])
        beta = np.stack([solve_triangular(factor, vectors @ part, lower=True, trans="T") for part in shrunk])
        dual = np.stack([self.basis.to_dual @ part for part in beta])
        return dual, np.einsum("pak,ab,pbk->pk", beta, gram, beta, optimize=True)
