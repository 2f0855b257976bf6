r"""Cross-validate the penalty of an RKHS weighting, in one pass over features.

The random parameters are the same in every fold, so that a fold's normal equations are those of all rows less its own:

.. math:: (A - A_f + m_f (\lambda G + \epsilon I))\, a = b - b_f, \qquad A = \sum_f A_f = \Phi^\top W \Phi

and the squared error of the rows held out is :math:`y_f^\top W y_f - 2 a^\top b_f + a^\top A_f a`: no features are evaluated
again. Where there are fewer rows than terms the same solution follows from kernel values of the rows,

.. math:: (K_{tt} + m_t I)\, c = y_t, \qquad K = \Phi\, (\lambda G + \epsilon I)^{-1} \Phi^\top .

Submatrices of K serve all folds; G is block-diagonal over the subsets.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from exactshap._runtime.checks import is_number
from exactshap.errors import InputError
from exactshap.estimators.rkhs_weighting._problem import (
    NormalEquations,
    WeightingProblem,
    least_squares,
    r2,
    row_kernel,
    solve_rows,
)
from exactshap.estimators.rkhs_weighting._regressor import RKHSWeightingRegressor

Fold = tuple[np.ndarray, np.ndarray]
# Penalties that are tried by default.
ALPHAS = tuple(10.0**power for power in range(-9, -1))


@dataclass(eq=False, repr=False, kw_only=True)
class RKHSWeightingCV(RKHSWeightingRegressor):
    r"""Fit an RKHS weighting with ``alpha`` chosen by cross-validation. The score is R2, as in ``RidgeCV``.

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

    alphas: Sequence[float] = ALPHAS
    cv: Any = 5
    solver: str = field(default="least_squares", init=False)
    alpha: float = field(default=0.0, init=False)  # until one is chosen

    def _checks(self) -> list[tuple[str, bool, str]]:
        fine = np.ndim(self.alphas) == 1 and len(self.alphas) > 0 and all(is_number(alpha) for alpha in self.alphas)
        return [("alphas", fine, "a sequence of floats >= 0"), *super()._checks()]

    def _coefficients(self, problem: WeightingProblem) -> np.ndarray:
        """Choose alpha by the folds and solve with it on all rows."""
        folds = list(check_cv(self.cv).split(problem.X, problem.y))
        alphas = [float(alpha) for alpha in self.alphas]
        # R2 has no unit; a power of two keeps the bits, and the squares in float64.
        scaled = np.ldexp(problem.y, -int(np.frexp(np.abs(problem.y).max())[1]))
        self.cv_scores_ = path_scores(replace(problem, y=scaled), alphas, folds, intercept=self.fit_intercept)
        means = self.cv_scores_.mean(axis=1)
        self.alpha_, self.best_score_ = alphas[int(np.argmax(means))], float(means.max())
        return least_squares(replace(problem, alpha=self.alpha_))


def path_scores(problem: WeightingProblem, alphas: Sequence[float], folds: Sequence[Fold], *, intercept: bool) -> np.ndarray:
    """Return the R2 of the rows held out, of shape (n_alphas, n_folds).

    ``folds`` are pairs (training rows, rows held out) that hold out every row once. Costs O(n T^2 + n_alphas n_folds T^3 / 3)
    for n rows and T terms and keeps (n_folds + 3) T^2 numbers; with fewer rows than terms O(n_alphas (T n^2 + n_folds n^3 / 3))
    and a few n T numbers, and T^3 / 3 for every penalty if all terms see the same columns.
    """
    from scipy.linalg import LinAlgError

    held = np.sort(np.concatenate([out for _, out in folds]))
    for f, rows in enumerate(rows for fold in folds for rows in fold):
        if not problem.weights[rows].any():
            where = f"the rows that fold {f // 2} {'holds out' if f % 2 else 'fits to'}"
            raise InputError(
                "Every fold needs weights above 0", f"All are 0 in {where}", "Shuffle the folds, or drop rows without weight"
            )
    if not np.array_equal(held, np.arange(len(problem.X))):
        raise InputError(
            "The folds must hold out every row once", f"Got {len(held)} rows held out of {len(problem.X)}", "Use KFold"
        )
    if len(problem.X) < problem.n_terms:
        try:
            return np.array([list(_by_rows(replace(problem, alpha=alpha), folds, intercept)) for alpha in alphas])
        except LinAlgError:  # a penalty is numerically semi-definite
            pass
    return _by_terms(problem, alphas, folds, intercept)


def _by_terms(problem: WeightingProblem, alphas: Sequence[float], folds: Sequence[Fold], intercept: bool) -> np.ndarray:
    """Return the scores from sums over the rows of each fold: fewer terms than rows."""
    parts = [NormalEquations.of(problem.take(out)) for _, out in folds]
    everything = functools.reduce(operator.add, parts)
    scores = np.empty((len(alphas), len(folds)))
    for f, part in enumerate(parts):
        used = everything - part
        for i, alpha in enumerate(alphas):
            scores[i, f] = part.score(*used.solve(replace(problem, alpha=alpha), centred=intercept))
    return scores


def _by_rows(problem: WeightingProblem, folds: Sequence[Fold], intercept: bool) -> Iterator[float]:
    """Yield the score of each fold from kernel values of the rows: fewer rows than terms."""
    root = np.sqrt(problem.weights)
    K = row_kernel((Z for _, _, Z in problem.whitened()), len(problem.X))
    for train, out in folds:
        total = float(problem.weights[train].sum())
        center = float(problem.weights[train] @ problem.y[train]) / total if intercept else 0.0
        c = solve_rows(K[np.ix_(train, train)], root[train] * (problem.y[train] - center), total)
        # Residuals are m c; the intercept is their mean, as in fit
        offset = center + float(root[train] @ c) if intercept else 0.0
        predicted = K[np.ix_(out, train)] @ c  # times the root of the weight
        y, w = problem.y[out], problem.weights[out]
        errors = ((root[out] * (y - offset) - predicted) ** 2).sum()
        yield r2(float(errors), float(w @ (y - np.average(y, weights=w)) ** 2))
