"""Select columns by dependence on the target, or importance beyond permuted copies."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Number, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from exactshap._runtime.checks import check_parameters, is_number
from exactshap._runtime.types import Column, Model, PerColumn, RandomState, TableLike
from exactshap.errors import InputError

# Largest number of distinct integers in a target that is taken for class labels.
MAX_CLASSES = 20


class ColumnSelector(SelectorMixin, BaseEstimator):
    """Share the tags of column selectors: they accept missing numbers and need a target."""

    support_: np.ndarray

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        return tags


def ranks(strength: np.ndarray) -> np.ndarray:
    """Return 1 for the largest number, 2 for the next; ties by position.

    >>> ranks(np.array([0.5, 2.0, 0.5]))
    array([2, 1, 3])
    """
    ranking = np.empty(len(strength), dtype=int)
    ranking[np.argsort(-strength, kind="stable")] = np.arange(1, len(strength) + 1)
    return ranking


@dataclass(eq=False, repr=False)
class HSICSelector(ColumnSelector):
    r"""Keep the columns with the largest exact Shapley shares of HSIC(X, y).

    .. math:: \mathrm{HSIC}(X, y) = \sum_j \phi_j

    A column has a large share if the target depends on it, alone or together with others, in any form that the kernels
    detect; uninformative columns have shares around or below 0. Unlike a ranking by one-column scores, the statistic is
    joint, but it does not remove redundant columns: two copies of a column share its credit.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of columns to keep, or their fraction (0, 1]; None keeps half.
    kernel, kernel_y : str or list, default="rbf", "auto"
        As in :func:`exactshap.decompose_hsic`. "auto" is categorical for text, booleans and integers of at most 20 distinct
        values, and "rbf" otherwise.
    bandwidth, bandwidth_y : float, "median", "column-median" or list, default="column-median", "median"
        sigma. "column-median" makes every column count whatever its unit; "median" is the paper's.
    estimator : {"biased", "unbiased"}, default="biased"
        Beyond 50,000 rows "unbiased" is required, and averaged over blocks of rows.
    n_permutations : int, default=0
        Permutations of the target for p-values, in ``decomposition_``.
    random_state : int, Generator or None, default=0
        Seed of permutations, blocks and bandwidth subsamples.
    n_jobs : int, optional
        Threads, -1 for one a core; the result has the same bits for every number.

    Attributes
    ----------
    shares_ : array of shape (n_features,)
        Share of each column, in the unit of HSIC.
    ranking_ : array of shape (n_features,)
        1 for the largest share, 2 for the next; ties by column order.
    support_ : array of shape (n_features,)
        Which columns are kept.
    decomposition_ : PairwiseDecomposition
        Total, intervals, p-values, certificate.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Time O(n_rows^2 n_features nodes), with 4 to 8 nodes mostly; memory O(n_rows n_features).

    References
    ----------
    .. [1] Mohammadi, Chau & Muandet (2025). Computing exact Shapley values in polynomial time for product-kernel methods.
       Section 5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> HSICSelector(3).fit(X, y).get_support(indices=True)
    array([ 0,  6, 12])
    """

    n_features_to_select: int | float | None = None
    _: KW_ONLY
    kernel: PerColumn = "rbf"
    kernel_y: PerColumn = "auto"
    bandwidth: PerColumn = "column-median"
    bandwidth_y: PerColumn = "median"
    estimator: str = "biased"
    n_permutations: int = 0
    random_state: RandomState = 0
    n_jobs: int | None = None

    def fit(self, X: TableLike, y: Column) -> Self:
        """Decompose HSIC(X, y) and rank the columns.

        Parameters
        ----------
        X : array or DataFrame of shape (n_rows, n_features)
            Numbers; of a frame also text, categories and booleans. What is missing is a level of its own.
        y : array of shape (n_rows,) or (n_rows, n_targets)

        Returns
        -------
        self : HSICSelector
        """
        from exactshap.decompose import decompose_hsic

        if hasattr(X, "columns"):  # a frame keeps its types; the decomposition checks its columns by name
            X, y = validate_data(self, X, y, skip_check_array=True)
            y = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
        else:
            X, y = validate_data(
                self, X, y, multi_output=True, ensure_min_samples=2, dtype=np.float64, ensure_all_finite="allow-nan"
            )
        keep = self._n_kept(X.shape[1])
        kernel_y = self.kernel_y
        if isinstance(kernel_y, str) and kernel_y == "auto":
            kernel_y = "categorical" if are_classes(y) else "rbf"
        self.decomposition_ = decompose_hsic(
            X,
            y,
            kernel_x=self.kernel,
            kernel_y=kernel_y,
            bandwidth_x=self.bandwidth,
            bandwidth_y=self.bandwidth_y,
            estimator=self.estimator,
            n_permutations=self.n_permutations,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        self.shares_ = np.array(self.decomposition_.values)
        self.ranking_ = ranks(self.shares_)
        self.support_ = self.ranking_ <= keep
        return self

    def _n_kept(self, n_features: int) -> int:
        wanted = self.n_features_to_select
        if wanted is None:
            return max(1, n_features // 2)
        if isinstance(wanted, Integral) and not isinstance(wanted, bool) and 1 <= wanted <= n_features:
            return int(wanted)
        if isinstance(wanted, Real) and not isinstance(wanted, (Integral, bool)) and 0 < wanted <= 1:
            return max(1, int(wanted * n_features))
        raise InputError(
            f"The 'n_features_to_select' parameter of HSICSelector must be an int in 1..{n_features}, "
            "a float in (0, 1] or None",
            f"Got {wanted!r}",
        )


def are_classes(y: np.ndarray) -> bool:
    """Say whether a target looks like class labels.

    >>> are_classes(np.array(["a", "b"])), are_classes(np.array([0, 1, 1])), are_classes(np.array([0.5, 1.0]))
    (True, True, False)
    """
    if y.dtype.kind == "O" and all(isinstance(value, Number) for value in y.ravel()):
        y = y.astype(float)
    if y.dtype.kind in "bOUS":
        return True
    values = np.unique(y)
    return len(values) <= MAX_CLASSES and bool(np.all(values == np.round(values)))


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
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = make_friedman1(n_samples=200, n_features=8, random_state=0)
    >>> ShadowSelector(RandomForestRegressor(20), n_trials=20, random_state=0).fit(X, y).get_support(indices=True)
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
        from exactshap.explainer import Explainer

        both = np.hstack([X, X[generator.permutation(len(X))]])
        fitted = clone(model)
        seeds = [name for name in sorted(fitted.get_params()) if name.split("__")[-1] == "random_state"]
        fitted.set_params(**{name: generator.randint(2**31 - 1) for name in seeds})
        fitted.fit(both, y)
        few = self.max_rows is not None and len(X) > self.max_rows
        rows = both[generator.choice(len(X), self.max_rows, replace=False)] if few else both
        values = np.abs(Explainer(fitted, n_jobs=self.n_jobs, progress=False)(rows).values).mean(axis=0)
        return values if values.ndim == 1 else values.mean(axis=1)  # over outputs

    def _model(self, y: np.ndarray) -> Any:
        if self.estimator is not None:
            return self.estimator
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

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
