"""Fit RKHS weightings of functions as a scikit-learn classifier of two classes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from exactshap._runtime.checks import check_parameters, sample_weights
from exactshap._runtime.types import Column, TableLike
from exactshap.errors import InputError
from exactshap.estimators.rkhs_weighting._problem import WeightingProblem, kept_terms, pieces_of
from exactshap.estimators.rkhs_weighting._regressor import RKHSWeightingRegressor, WeightingSettings

LOSSES = ("logistic", "hinge")


@dataclass(eq=False, repr=False, kw_only=True)
class RKHSWeightingClassifier(ClassifierMixin, WeightingSettings):
    r"""Classify by the sign of a weighting of base predictors.

    .. math:: f(x) = b + \sum_t a_t\, p(I_t)\, E_{w \sim p_k}\bigl[K(w_t, w)\, \phi(w, x_{I_t})\bigr], \qquad
              \min_{a, b} \frac{1}{m} \sum_i \ell\bigl(s_i f(x_i)\bigr) + \lambda\, a^\top G a + \epsilon\, a^\top a

    with s = -1 or 1, :math:`\ell(u) = \ln(1 + e^{-u})` (logistic) or :math:`\max(0, 1 - u)` (hinge). Both are 1-Lipschitz, as the bounds of the
    method require. With ``subsets`` the score is a sum of functions of few columns each (STAR), which is explained exactly.

    Parameters
    ----------
    base, subsets, sequence, n_terms, ridge, sigma, gamma, max_theta, random_state
        As in :class:`exactshap.RKHSWeightingRegressor`.
    loss : {"logistic", "hinge"}, default="logistic"
    alpha : float, default=1e-5
        lambda.
    fit_intercept : bool, default=True
        Whether to fit b, which is not penalised; the hinge loss always does.
    max_iter : int, default=1000
        Iterations of the solver.

    Attributes
    ----------
    classes_ : array of shape (2,)
    terms_, coef_, intercept_, rkhs_norm_
        As in :class:`exactshap.RKHSWeightingRegressor`, of the score.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    In coordinates where the penalty is the identity (a Cholesky factor for each subset) the problems are scikit-learn's own: logistic
    regression by Newton's method, and a support vector machine for the kernel of the rows. Several classes: wrap the classifier in
    ``sklearn.multiclass.OneVsRestClassifier``.

    References
    ----------
    .. [1] Dubé, G. and Marchand, M. Shapley Values of Structured Additive Regression Models and Application to RKHS Weightings of
       Functions. Transactions on Machine Learning Research, 2025. Section 2.3.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> model = RKHSWeightingClassifier(subsets=2, n_terms=300, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.score(X, X[:, 0] * X[:, 1] > 0) > 0.9
    True
    """

    loss: str = "logistic"
    fit_intercept: bool = True
    max_iter: int = 1000

    def fit(self, X: TableLike, y: Column, sample_weight: Column = None) -> RKHSWeightingClassifier:
        """Draw parameters and subsets, and fit coefficients to X and labels y."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, len(X))
        self.classes_, labels = self._labels(y, weights)
        kept = weights > 0
        X, labels, weights = X[kept], labels[kept], weights[kept]
        shared = {field.name: getattr(self, field.name) for field in fields(WeightingSettings)}
        score = RKHSWeightingRegressor(**shared, fit_intercept=bool(self.fit_intercept))
        score.n_features_in_ = X.shape[1]
        check_parameters(score, score._checks())
        if self.loss not in LOSSES:
            raise InputError(f"The 'loss' parameter must be one of {list(LOSSES)}", f"Got {self.loss!r}")
        if self.loss == "hinge" and not self.fit_intercept:
            raise InputError("The hinge loss is fitted with an intercept", "Got fit_intercept=False", "Use loss='logistic'")
        if not self.alpha + self.ridge > 0:
            raise InputError("A classifier needs a penalty", "Got alpha=0 and ridge=0", "Pass alpha=1e-8")
        drawn = score._draw()
        problem = WeightingProblem(drawn.groups, X, labels, np.ones(len(X)), self.alpha, self.ridge, drawn.rng)
        coefficients, self.intercept_ = self._solve(problem, weights)
        self.terms_, self.coef_, self.rkhs_norm_ = kept_terms(pieces_of(drawn.groups, coefficients))
        return self

    def _labels(self, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        classes, labels = np.unique(y, return_inverse=True)
        if type_of_target(y) == "multiclass":
            do = "Wrap it in sklearn.multiclass.OneVsRestClassifier"
            raise InputError("Only binary classification is supported. The type of the target is multiclass", do=do)
        if len(classes) < 2 or len(np.unique(labels[weights > 0])) < 2:
            got = f"Got {len(np.unique(labels[weights > 0]))} class"
            raise InputError("RKHSWeightingClassifier needs rows of 2 classes", got)
        return classes, labels.astype(float)

    def _solve(self, problem: WeightingProblem, weights: np.ndarray) -> tuple[np.ndarray, float]:
        from scipy.linalg import LinAlgError, solve_triangular
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import SVC

        try:
            parts = list(problem.whitened())
        except LinAlgError:
            text = "The penalty of the coefficients is numerically singular"
            raise InputError(text, f"Got alpha={self.alpha!r}, ridge={self.ridge!r}", "Raise ridge") from None
        # F = rows u + b, and u'u is the penalty
        rows = np.concatenate([whitened for _, _, whitened in parts]).T
        strength = 1.0 / (2.0 * float(weights.sum()))
        if self.loss == "logistic":
            solver = LogisticRegression(
                C=strength, solver="newton-cholesky", fit_intercept=bool(self.fit_intercept), max_iter=self.max_iter, tol=1e-8
            ).fit(rows, problem.y, sample_weight=weights)
            u, intercept = solver.coef_[0], float(np.ravel(solver.intercept_)[0]) if self.fit_intercept else 0.0
        else:
            solver = SVC(C=strength, kernel="precomputed", tol=1e-10).fit(rows @ rows.T, problem.y, sample_weight=weights)
            u, intercept = rows[solver.support_].T @ solver.dual_coef_[0], float(solver.intercept_[0])
        self.n_iter_ = int(np.max(solver.n_iter_))
        coefficients = np.empty(problem.n_terms)
        for place, factor, _ in parts:
            coefficients[place] = solve_triangular(factor, u[place], lower=True, trans="T")
        return coefficients, intercept

    def decision_function(self, X: TableLike) -> np.ndarray:
        """Return f(x) (n_rows,): log-odds (logistic loss) or a margin (hinge)."""
        return self._function(X)

    @available_if(lambda model: model.loss == "logistic")
    def predict_proba(self, X: TableLike) -> np.ndarray:
        """Return probabilities of classes (n_rows, 2), for the logistic loss only."""
        from scipy.special import expit

        score = self.decision_function(X)
        return np.stack([expit(-score), expit(score)], axis=1)

    def predict(self, X: TableLike) -> np.ndarray:
        """Return the class of each row, (n_rows,)."""
        score = self.decision_function(X)
        return self.classes_[(score > 0).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
