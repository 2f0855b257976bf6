"""Select the columns with larger exact Shapley values than permuted copies."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from exactshap._runtime.checks import check_parameters, is_number
from exactshap._runtime.types import Column, Model, RandomState, TableLike
from exactshap.errors import InputError
from exactshap.estimators.hsic_selector import MAX_CLASSES, ColumnSelector, ranks
from exactshap.explainer import Explainer


@dataclass(eq=False, repr=False)
class ShadowSelector(ColumnSelector):
    r"""Keep columns that matter more to a model than permuted copies.

    Each trial permutes the rows of a copy of X, fits the model on columns and copies (the shadows), and takes the mean magnitude of
    the exact Shapley values of each. With the mean over trials of column j and the largest shadow of each trial,

    .. math:: p_j = \frac{1 + \#\{t : \max_s m_{st} \ge \bar m_j\}}{1 + T}

    a column is kept if :math:`p_j \le` ``level``.

    Parameters
    ----------
    estimator : object, default=None
        Classifier or regressor with exact values without a background, such as trees. None: a random forest of 100 trees of at
        most 50 leaves, which tries a third of the columns per split in a regression.
    n_trials : int, default=40
        Fits. A p-value is at least 1 / (1 + n_trials).
    level : float, default=0.05
        Bound on the probability to keep any column that is independent of the target and of all other columns.
    max_rows : int or None, default=1000
        Rows to explain in a trial, drawn at random; the model is fitted on all rows.
    random_state : int, RandomState or None, default=None
        Seed of permutations, fits and choices of rows.
    n_jobs : int, default=None
        Threads of the explanations.

    Attributes
    ----------
    support_ : array of bool of shape (n_features,)
    p_values_ : array of shape (n_features,)
        Adjusted for the number of columns: each is compared with the largest shadow.
    importances_ : array of shape (n_trials, n_features)
        Mean magnitude of each column in each trial.
    shadow_importances_ : array of shape (n_trials,)
        That of the largest shadow.
    ranking_ : array of shape (n_features,)
        1 for the largest mean importance, 2 for the next.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The shadows are Boruta's (Kursa and Rudnicki 2010), the importances those of BorutaShap. Their rule counts how often a column beats
    the largest shadow and requires more than half of the trials. But all trials share one sample: a column that correlates with
    the target by chance does so in each of them, and the rule keeps it. Here the largest shadows estimate the distribution under
    chance alone, as in a permutation test with the largest statistic (Westfall and Young 1993). All shadows of a trial share one
    permutation, so that correlated columns have correlated shadows.

    A column that depends on a column that matters may be kept: the model may use either.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(n_samples=200, n_features=8, random_state=0)
    >>> ShadowSelector(n_trials=20, random_state=0).fit(X, y).get_support(indices=True)
    array([0, 1, 2, 3, 4])
    """

    estimator: Model = None
    _: KW_ONLY
    n_trials: int = 40
    level: float = 0.05
    max_rows: int | None = 1000
    random_state: RandomState = None
    n_jobs: int | None = None

    def fit(self, X: TableLike, y: Column) -> Self:
        """Fit the model once for each trial and compare columns with shadows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_rows, n_features)
            Numbers; missing ones if the model takes them.
        y : array of shape (n_rows,)

        Returns
        -------
        self : ShadowSelector
        """
        self._check_settings()
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2, y_numeric=False)
        generator = check_random_state(self.random_state)
        model = self._model(y)
        trials = [self._trial(model, X, y, generator) for _ in range(self.n_trials)]
        d = X.shape[1]
        self.importances_ = np.stack([trial[:d] for trial in trials])
        self.shadow_importances_ = np.array([trial[d:].max() for trial in trials])
        means = self.importances_.mean(axis=0)
        beaten = (self.shadow_importances_[:, None] >= means).sum(axis=0)
        self.p_values_ = (1 + beaten) / (1 + self.n_trials)
        self.support_ = self.p_values_ <= self.level
        self.ranking_ = ranks(means)
        return self

    def _trial(self, model: Model, X: np.ndarray, y: np.ndarray, generator: np.random.RandomState) -> np.ndarray:
        """Return the mean magnitude of the columns, then of their shadows, in one fit."""
        both = np.hstack([X, X[generator.permutation(len(X))]])
        fitted = clone(model)
        if "random_state" in fitted.get_params():
            fitted.set_params(random_state=generator.randint(2**31 - 1))
        fitted.fit(both, y)
        few = self.max_rows is not None and len(X) > self.max_rows
        rows = both[generator.choice(len(X), self.max_rows, replace=False)] if few else both
        values = np.abs(Explainer(fitted, n_jobs=self.n_jobs, progress=False)(rows).values).mean(axis=0)
        return values if values.ndim == 1 else values.sum(axis=1)  # mean over outputs

    def _model(self, y: np.ndarray) -> Any:
        if self.estimator is not None:
            return self.estimator
        is_classes = type_of_target(y) in ("binary", "multiclass") and (
            y.dtype.kind not in "fiu" or len(np.unique(y)) <= MAX_CLASSES
        )
        if is_classes:
            return RandomForestClassifier(max_leaf_nodes=50)
        return RandomForestRegressor(max_leaf_nodes=50, max_features=1 / 3)

    def _check_settings(self) -> None:
        most = self.max_rows
        checks = [
            ("n_trials", is_number(self.n_trials, 1, whole=True), "an int >= 1"),
            ("level", is_number(self.level, above=True) and self.level < 1, "a float in (0, 1)"),
            ("max_rows", most is None or is_number(most, 2, whole=True), "an int >= 2 or None"),
        ]
        check_parameters(self, checks)
        if self.level * (1 + self.n_trials) < 1:
            got = f"Got level={self.level!r} and n_trials={self.n_trials!r}: no p-value is below {1 / (1 + self.n_trials):.2g}"
            raise InputError("Too few trials for the level", got, f"Pass n_trials={int(np.ceil(1 / self.level)) - 1}, or more")
