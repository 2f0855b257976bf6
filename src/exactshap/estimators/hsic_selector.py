"""Select the columns that hold most of the dependence on the target."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from exactshap._runtime.types import Column, PerColumn, RandomState, TableLike
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
    if y.dtype.kind in "bOUS":
        return True
    values = np.unique(y)
    return len(values) <= MAX_CLASSES and bool(np.all(values == np.round(values)))
