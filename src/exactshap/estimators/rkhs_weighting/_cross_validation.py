"""RKHS weightings with the regularisation chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from exactshap.estimators.rkhs_weighting._path import path_scores
from exactshap.estimators.rkhs_weighting._problem import WeightingProblem
from exactshap.estimators.rkhs_weighting._regressor import RKHSWeightingRegressor, _is_number
from exactshap.estimators.rkhs_weighting._solvers import least_squares

__all__ = ["RKHSWeightingCV"]

ALPHAS = tuple(10.0**power for power in range(-9, -1))


class RKHSWeightingCV(RKHSWeightingRegressor):
    r"""Fit an RKHS weighting whose ``alpha`` is chosen by cross-validation on R2, as ``RidgeCV`` does for ridge regression.

    All penalties and folds come from one pass over the features (the random parameters are the same in every fold), which is
    exactly what ``GridSearchCV`` over ``alpha`` finds with an integer ``random_state``, without its
    n_folds x n_alphas passes.

    Parameters
    ----------
    base : str or Instantiation, default="relu"
        As all other parameters but the next two, those of :class:`exactshap.RKHSWeightingRegressor` with its least squares solver.
    alphas : sequence of float, default=(1e-9, 1e-8, ..., 1e-2)
        The weights of the squared RKHS norm to choose from.
    cv : int, splitter or iterable, default=5
        Folds that hold out every row once; an int cuts the rows in order, as scikit-learn does.

    Attributes
    ----------
    alpha_ : float
        The chosen weight.
    cv_scores_ : array of shape (n_alphas, n_folds)
        R2 of the rows held out.
    best_score_ : float
        The largest mean over folds.
    terms_, coef_, intercept_, rkhs_norm_, theta_, kappa_, n_features_in_, feature_names_in_
        Of the model fitted on all rows, as in :class:`exactshap.RKHSWeightingRegressor`.

    Notes
    -----
    Cost O(n T^2 + n_alphas n_folds T^3 / 3) for n rows and T = ``n_terms``, and (n_folds + 3) T^2 numbers of memory; with fewer
    rows than terms O(n_alphas (T n^2 + n_folds n^3 / 3)).

    For ``base="relu"`` another ``sigma`` is the same as another penalty, alpha / sigma^2 (and ridge / sigma^2), when the width is
    calibrated: it need not be searched.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = np.maximum(X[:, 0] + X[:, 1], 0) - np.abs(X[:, 2])
    >>> model = RKHSWeightingCV(subsets=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9) and model.alpha_ in model.alphas
    True
    """

    solver = "least_squares"

    def __init__(
        self,
        base: Any = "relu",
        *,
        alphas: Sequence[float] = ALPHAS,
        cv: Any = 5,
        subsets: Any = None,
        sequence: bool = False,
        n_terms: int = 100,
        ridge: float = 1e-10,
        sigma: float = 1.0,
        gamma: float | None = None,
        max_theta: float = 0.5,
        fit_intercept: bool = False,
        penalty_width: str = "subset",
        random_state: Any = None,
    ) -> None:
        self.base = base
        self.alphas = alphas
        self.cv = cv
        self.subsets = subsets
        self.sequence = sequence
        self.n_terms = n_terms
        self.ridge = ridge
        self.sigma = sigma
        self.gamma = gamma
        self.max_theta = max_theta
        self.fit_intercept = fit_intercept
        self.penalty_width = penalty_width
        self.random_state = random_state

    def _first_alpha(self) -> float:
        return float(self.alphas[0])

    def _checks(self) -> list[tuple[str, bool, str]]:
        fine = np.ndim(self.alphas) == 1 and len(self.alphas) > 0 and all(_is_number(alpha) for alpha in self.alphas)
        return [("alphas", fine, "a sequence of floats >= 0"), *self._common_checks()]

    def _coefficients(self, problem: WeightingProblem) -> np.ndarray:
        """Choose alpha by the folds and solve with it on all rows."""
        folds = list(check_cv(self.cv).split(problem.X, problem.y))
        alphas = [float(alpha) for alpha in self.alphas]
        self.cv_scores_ = path_scores(problem, alphas, folds, intercept=self.fit_intercept)
        means = self.cv_scores_.mean(axis=1)
        self.alpha_, self.best_score_ = alphas[int(np.argmax(means))], float(means.max())
        return least_squares(problem.with_alpha(self.alpha_))
