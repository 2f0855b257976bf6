"""Fit kernel logistic regression with small Shapley values of chosen features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from exactshap._runtime.checks import check_parameters, is_number
from exactshap._runtime.types import Column, TableLike
from exactshap.errors import InputError
from exactshap.estimators.shapley_ridge._penalised_basis import Basis, PenalisedKernelModel


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
        self._solve(self._basis(weights), labels, weights)
        return self

    def _solve(self, basis: Basis, labels: np.ndarray, weights: np.ndarray) -> None:
        one_hot = labels[:, None] == (np.array([[1]]) if len(self.classes_) == 2 else np.arange(len(self.classes_)))
        penalty = self.alpha * np.eye(len(basis.gram)) + self.shapley_penalty * basis.gram
        problem = _Logistic(basis.rows, one_hot.astype(float), weights, penalty)
        beta, self.n_iter_ = problem.solve(self.max_iter, self.tol)
        dual = basis.to_dual @ beta
        self.dual_coef_ = dual[:, 0] if dual.shape[1] == 1 else dual
        self.mean_squared_values_ = float(np.einsum("ak,ab,bk->", beta, basis.gram, beta))
        self.functional_error_ = basis.relative_error

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


@dataclass(frozen=True, eq=False)
class _Logistic:
    rows: np.ndarray
    one_hot: np.ndarray
    weights: np.ndarray
    penalty: np.ndarray

    def solve(self, max_iter: int, tol: float) -> tuple[np.ndarray, int]:
        """Minimise by L-BFGS, in variables that bound the Hessian by the identity."""
        from scipy.linalg import cholesky, solve_triangular
        from scipy.optimize import minimize

        curvature = (self.rows * (self.weights[:, None] / 4.0)).T @ self.rows + 2.0 * self.penalty
        factor = cholesky(curvature, lower=True)
        rows = solve_triangular(factor, self.rows.T, lower=True).T
        half = solve_triangular(factor, self.penalty, lower=True)
        penalty = solve_triangular(factor, half.T, lower=True)
        shape = (rows.shape[1], self.one_hot.shape[1])

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            u = flat.reshape(shape)
            loss, slope = self._loss(rows @ u)
            pull = penalty @ u
            return loss + float((u * pull).sum()), (rows.T @ slope + 2.0 * pull).ravel()

        options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 30}
        found = minimize(objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)
        if found.nit >= max_iter and np.abs(found.jac).max(initial=0.0) > tol:
            warnings.warn(
                f"ShapleyKernelClassifier did not converge in {max_iter} iterations (gradient {np.abs(found.jac).max():.2g}); "
                "raise max_iter or alpha",
                ConvergenceWarning,
                stacklevel=4,
            )
        return solve_triangular(factor, found.x.reshape(shape), lower=True, trans="T"), int(found.nit)

    def _loss(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the weighted loss and its derivative in the scores (n, n_functions)."""
        from scipy.special import expit, log_softmax, softmax

        if scores.shape[1] == 1:
            losses = np.logaddexp(0.0, scores) - self.one_hot * scores
            slope = expit(scores) - self.one_hot
        else:
            losses = -self.one_hot * log_softmax(scores, axis=1)
            slope = softmax(scores, axis=1) - self.one_hot
        return float(self.weights @ losses.sum(axis=1)), self.weights[:, None] * slope
