"""Fit ridge regression on a feature map, from parts of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.types import Column, TableLike
from exactshap.errors import InputError

# Rows that are transformed at a time.
_ROWS_AT_ONCE = 8192
# Rows that tell one map from another when parts are added.
_PROBED = 8


class PartialRidge:
    r"""Hold normal equations of ridge regression on part of a table.

    .. math:: \Bigl(\sum_i w_i (\varphi_i - \bar\varphi)(\varphi_i - \bar\varphi)^\top + \alpha I\Bigr) \beta
              = \sum_i w_i (\varphi_i - \bar\varphi) (y_i - \bar y)

    With scikit-learn's ``Nystroem``, fitted on a sample of rows, this is kernel ridge regression by the Nystroem method on tables of
    any size.

    Parameters
    ----------
    features : fitted transformer
        ``Nystroem``, ``RBFSampler``, ``SplineTransformer``, a pipeline of such: ``transform(X)`` gives (n_rows, n_components).
    X : array or DataFrame of shape (n_rows, n_features)
        Some of the rows.
    y : array of shape (n_rows,)
    sample_weight : array of shape (n_rows,), default=None

    Raises
    ------
    InputError
        If y or the weights do not fit X, or something is not finite.

    Notes
    -----
    Sums are centred in each part and moved to the common mean when parts are added (Chan et al. 1983): the coefficients are off from
    those of the whole table by rounding only. A part holds n_components^2 numbers whatever its rows; it costs
    O(n_rows n_components^2), the result O(n_components^3).

    References
    ----------
    .. [1] Chan, Golub & LeVeque (1983). Algorithms for computing the sample variance. The American Statistician 37(3).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import Nystroem
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> features = Nystroem(gamma=0.3, n_components=60, random_state=0).fit(X[:200])
    >>> model = (PartialRidge(features, X[:250], y[:250]) + PartialRidge(features, X[250:], y[250:])).result(alpha=1e-3)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(self, features: Any, X: TableLike, y: Column, sample_weight: Column = None) -> None:
        self._features = features
        target = np.asarray(y, float)
        weights = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight, float)
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if target.shape != (rows,) or weights.shape != (rows,):
            raise InputError(
                "`y` and `sample_weight` must have one number for each row",
                f"Got {target.shape} and {weights.shape} for {rows} rows",
            )
        if not (np.isfinite(target).all() and np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise InputError("`y` must be finite, and weights not negative, finite and not all zero")
        self._probe = _some(X, slice(_PROBED))
        parts = [_Moments.of(features, X, target, weights, slice(i, i + _ROWS_AT_ONCE)) for i in range(0, rows, _ROWS_AT_ONCE)]
        self._moments = sum(parts[1:], parts[0])

    def __add__(self, other: PartialRidge) -> PartialRidge:
        if self._moments.mean.shape != other._moments.mean.shape:
            got = f"Got {len(self._moments.mean) - 1} and {len(other._moments.mean) - 1} components"
            raise InputError("Parts must have one feature map", got)
        # One that travelled is another object
        if self._features is not other._features:
            here, there = (_dense(features.transform(self._probe)) for features in (self._features, other._features))
            if not np.allclose(here, there, rtol=1e-6, atol=1e-6 * np.abs(here).max(initial=0.0)):
                got = "Got maps with other components for the same rows, as of two fits"
                raise InputError("Parts must have one feature map", got, "Fit it once, before the parts")
        whole = PartialRidge.__new__(PartialRidge)
        whole._features, whole._probe, whole._moments = self._features, self._probe, self._moments + other._moments
        return whole

    def result(self, alpha: float = 1.0) -> Any:
        """Return the fitted model of the rows of all parts.

        Parameters
        ----------
        alpha : float, default=1.0
            Penalty on the squared norm of the coefficients, as in scikit-learn's ``Ridge``. Other penalties cost no more passes.

        Returns
        -------
        model : sklearn.pipeline.Pipeline
            The feature map and a ``Ridge``, which :class:`exactshap.Explainer` reads.
        """
        from scipy.linalg import solve
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline

        mean, products = self._moments.mean, self._moments.products
        left = products[:-1, :-1] + alpha * np.eye(len(mean) - 1)
        ridge = Ridge(alpha=alpha)
        ridge.coef_ = solve(left, products[:-1, -1], assume_a="pos")
        ridge.intercept_ = float(mean[-1] - mean[:-1] @ ridge.coef_)
        ridge.n_features_in_ = len(ridge.coef_)
        return make_pipeline(self._features, ridge)

    def __repr__(self) -> str:
        return f"PartialRidge of {self._moments.n_rows:,} rows, {len(self._moments.mean) - 1} components"


class _Moments:
    """Hold weight, mean and centred products of the features and, as last column, the target."""

    def __init__(self, n_rows: int, weight: float, mean: np.ndarray, products: np.ndarray) -> None:
        self.n_rows, self.weight, self.mean, self.products = n_rows, weight, mean, products

    @classmethod
    def of(cls, features: Any, X: TableLike, y: np.ndarray, weights: np.ndarray, rows: slice) -> _Moments:
        values = np.column_stack([_dense(features.transform(_some(X, rows))), y[rows]])
        weight = float(weights[rows].sum())
        mean = weights[rows] @ values / weight if weight > 0 else np.zeros(values.shape[1])
        centred = values - mean
        return cls(len(values), weight, mean, (centred * weights[rows, None]).T @ centred)

    def __add__(self, other: _Moments) -> _Moments:
        weight, between = self.weight + other.weight, other.mean - self.mean
        share = other.weight / weight if weight > 0 else 0.0
        products = self.products + other.products + self.weight * share * np.outer(between, between)
        return _Moments(self.n_rows + other.n_rows, weight, self.mean + share * between, products)


def _some(X: Any, rows: slice) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)
