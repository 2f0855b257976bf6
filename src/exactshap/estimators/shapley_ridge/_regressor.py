"""Fit kernel ridge and logistic regression with small values of chosen features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from exactshap._runtime.checks import check_parameters, is_number
from exactshap._runtime.types import Column, TableLike
from exactshap.errors import InputError
from exactshap.estimators.shapley_ridge._penalised_basis import PenalisedKernelModel


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
        found = self._solutions(X, y, sample_weight, np.array([self.shapley_penalty], float))
        (self.dual_coef_,), (squares,) = found.dual_coef, found.mean_squared_values
        self.mean_squared_values_ = squares if self.dual_coef_.ndim == 2 else float(squares)
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
        return clone(self)._solutions(X, y, sample_weight, penalties)

    def _solutions(self, X: TableLike, y: Column, sample_weight: Column, penalties: np.ndarray) -> RidgePath:
        r"""Validate, drop rows of weight zero, and solve the quadratic problem in the coordinates of a :class:`Basis`.

        With R R^T = B^T W B + alpha I and R^-1 G R^-T = V S V^T, :math:`\beta(\lambda) = R^{-T} V (I + \lambda S)^{-1} V^T R^{-1} B^T W y`.
        """
        from scipy.linalg import cholesky, solve_triangular

        check_parameters(self, [*self._checks(), ("penalty_scale", self.penalty_scale in ("mean", "sum"), "'mean' or 'sum'")])
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        y, weights = self._weighted(X, np.asarray(y, float), sample_weight)
        scale = 1.0 if self.penalty_scale == "mean" else float(weights.sum())
        basis, targets = self._basis(weights), y.reshape(len(y), -1)
        rows, gram, self.functional_error_ = basis.rows, basis.gram, basis.relative_error
        if rows.shape[1] == 0:  # the kernel matrix is zero: f = 0
            return RidgePath(penalties, np.zeros((len(penalties), *y.shape)), np.zeros((len(penalties), *y.shape[1:])))
        normal = (rows * weights[:, None]).T @ rows
        normal[np.diag_indices_from(normal)] += float(self.alpha)
        factor = cholesky(normal, lower=True)
        half = solve_triangular(factor, gram, lower=True)
        shared = solve_triangular(factor, half.T, lower=True)
        strengths, vectors = np.linalg.eigh((shared + shared.T) / 2.0)
        projected = vectors.T @ solve_triangular(factor, rows.T @ (weights[:, None] * targets), lower=True)
        shrunk = projected / (1.0 + scale * penalties[:, None, None] * np.maximum(strengths, 0.0)[:, None])
        beta = np.stack([solve_triangular(factor, vectors @ part, lower=True, trans="T") for part in shrunk])
        dual = np.stack([basis.to_dual @ part for part in beta])
        squares = np.einsum("pak,ab,pbk->pk", beta, gram, beta, optimize=True)
        return RidgePath(penalties, dual.reshape(-1, *y.shape), squares.reshape(-1, *y.shape[1:]))


@dataclass(eq=False, repr=False, kw_only=True)
class ShapleyKernelClassifier(ClassifierMixin, PenalisedKernelModel):
    r"""Fit kernel logistic regression with a penalty on some features' Shapley values.

    .. math:: \min_{f \in H_k} \sum_i w_i\, \ell(y_i, f(x_i)) + \alpha \|f\|^2
              + \frac{\lambda_S}{\sum_i w_i} \sum_{A} \sum_i w_i\, \phi_{x_i, A}(f)^2

    with the logistic loss (two classes: one f, the log-odds) or the softmax loss (one f for each class), by L-BFGS in a basis
    where the problem is well conditioned. There is no intercept.

    Parameters
    ----------
    kernel, gamma, features, value_function, eta, n_coalitions, random_state
        As in :class:`exactshap.ShapleyKernelRidge`.
    alpha : float, default=1.0
        Ridge > 0.
    shapley_penalty : float, default=1.0
        lambda_S >= 0; it acts on the Shapley values of the decision function.
    max_iter : int, default=1000
        Iterations of L-BFGS.
    tol : float, default=1e-8
        Largest entry of the gradient at which the solver stops.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_train,) for two classes, (n_train, n_classes) for more
    X_fit_, kernel_, functional_error_, n_features_in_, feature_names_in_ :
        As in :class:`exactshap.ShapleyKernelRidge`.
    mean_squared_values_ : float
        Mean over training rows of the sum of the squared, penalised Shapley values of all decision functions.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = ShapleyKernelClassifier(features=1, shapley_penalty=10.0).fit(X, X.sum(axis=1) > 0)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    max_iter: int = 1000
    tol: float = 1e-8

    def fit(self, X: TableLike, y: Column, sample_weight: Column = None) -> ShapleyKernelClassifier:
        """Fit the classifier to rows X (n_samples, n_features) and labels y (n_samples,)."""
        check_parameters(
            self,
            [
                *self._checks(),
                ("alpha", is_number(self.alpha, above=True), "a float > 0"),
                ("max_iter", is_number(self.max_iter, 1, whole=True), "an int >= 1"),
                ("tol", is_number(self.tol, above=True), "a float > 0"),
            ],
        )
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        y, weights = self._weighted(X, y, sample_weight)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("ShapleyKernelClassifier needs rows of at least 2 classes", f"Got {len(self.classes_)} class")
        basis = self._basis(weights)
        one_hot = labels[:, None] == (np.array([[1]]) if len(self.classes_) == 2 else np.arange(len(self.classes_)))
        penalty = self.alpha * np.eye(len(basis.gram)) + self.shapley_penalty * basis.gram
        beta, self.n_iter_ = _logistic(basis.rows, one_hot.astype(float), weights, penalty, self.max_iter, self.tol)
        dual = basis.to_dual @ beta
        self.dual_coef_ = dual[:, 0] if dual.shape[1] == 1 else dual
        self.mean_squared_values_ = float(np.einsum("ak,ab,bk->", beta, basis.gram, beta))
        self.functional_error_ = basis.relative_error
        return self

    def decision_function(self, X: TableLike) -> np.ndarray:
        """Return log-odds of the second class (n_samples,), or scores (n_samples, n_classes)."""
        return self._function(X)

    def predict_proba(self, X: TableLike) -> np.ndarray:
        """Return the probability of each class, (n_samples, n_classes)."""
        from scipy.special import expit, softmax

        scores = self.decision_function(X)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        return np.stack([expit(-scores), expit(scores)], axis=1)

    def predict(self, X: TableLike) -> np.ndarray:
        """Return the most probable class of each row, (n_samples,)."""
        scores = self.decision_function(X)
        return self.classes_[scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)]


def _logistic(
    rows: np.ndarray, one_hot: np.ndarray, weights: np.ndarray, penalty: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, int]:
    """Minimise by L-BFGS, in variables that bound the Hessian by the identity. Also return the iterations."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import minimize
    from scipy.special import expit, log_softmax, softmax

    curvature = (rows * (weights[:, None] / 4.0)).T @ rows + 2.0 * penalty
    factor = cholesky(curvature, lower=True)
    rows = solve_triangular(factor, rows.T, lower=True).T
    half = solve_triangular(factor, penalty, lower=True)
    penalty = solve_triangular(factor, half.T, lower=True)
    shape = (rows.shape[1], one_hot.shape[1])

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        u = flat.reshape(shape)
        scores, pull = rows @ u, penalty @ u
        if shape[1] == 1:
            losses, slope = np.logaddexp(0.0, scores) - one_hot * scores, expit(scores) - one_hot
        else:
            losses, slope = -one_hot * log_softmax(scores, axis=1), softmax(scores, axis=1) - one_hot
        loss = float(weights @ losses.sum(axis=1))
        return loss + float((u * pull).sum()), (rows.T @ (weights[:, None] * slope) + 2.0 * pull).ravel()

    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 30}
    found = minimize(objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)
    if found.nit >= max_iter and np.abs(found.jac).max(initial=0.0) > tol:
        warnings.warn(
            f"ShapleyKernelClassifier did not converge in {max_iter} iterations (gradient {np.abs(found.jac).max():.2g}); "
            "raise max_iter or alpha",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solve_triangular(factor, found.x.reshape(shape), lower=True, trans="T"), int(found.nit)
