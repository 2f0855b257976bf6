r"""Estimate conditional means by one regression of the background's predictions for each coalition.

.. math:: v_x(S) = \sum_z W^S_{zx}\, f(z) \approx E[f(X) \mid X_S = x_S], \qquad \sum_z W^S_{zx} = 1

The model predicts the background once for all coalitions: no row is ever mixed. Columns of any kind become points in space
first: numbers in units of their deviation, categories as corners of a simplex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap.errors import ExactshapError, InputError
from exactshap.frames import Table, is_missing
from exactshap.solvers.rkhs import check_eta


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Hold Euclidean coordinates of each player's columns. Two background rows are 2 apart on average, squared, per column.

    A missing number is the mean, with an indicator coordinate; a level that the background lacks is the
    origin, equally far from every level; constant columns have no coordinates.
    """

    columns: tuple[Any, ...]
    players: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, background: Table, weights: np.ndarray, players: Sequence[Sequence[int]]) -> Coordinates:
        return cls(tuple(_column(background, j, weights) for j in range(background.n_columns)), tuple(map(tuple, players)))

    def __call__(self, X: Table) -> list[np.ndarray]:
        """Return one array (n_rows, n_coordinates) for each player."""
        columns = [np.empty((X.n_rows, 0)), *(column(X, j) for j, column in enumerate(self.columns))]
        return [np.concatenate([columns[0], *(columns[1 + j] for j in members)], axis=1) for members in self.players]


def _numbers(X: Table, j: int) -> np.ndarray | None:
    try:
        return X.select([j]).numeric()[:, 0]
    except ExactshapError:  # text, dates
        return None


def _refuse_infinity(values: np.ndarray, X: Table, j: int, what: str) -> None:
    """Refuse cells that are infinitely far from all others."""
    infinite = np.isinf(values)
    if infinite.any():
        i = int(np.argmax(infinite))
        place = f"First in {X.label(j)}, {X.row_label(i)}"
        raise InputError(f"Input {what} contains infinity", place, "Clip or drop it", row=i if what == "X" else None)


def _column(background: Table, j: int, weights: np.ndarray) -> _Number | _Category:
    values = _numbers(background, j)
    if values is None:
        levels, places = np.unique(_words(background.column(j)), return_inverse=True)
        # The chance that two rows have one level
        together = float(np.sum(np.bincount(places, weights) ** 2))
        return _Category(tuple(levels), 1.0 / np.sqrt(1.0 - together) if len(levels) > 1 else 0.0)
    _refuse_infinity(values, background, j, "background")
    missing = np.isnan(values)
    if missing.all():
        return _Number(0.0, 0.0, 0.0)
    share = weights * ~missing
    mean = float(np.nansum(share * values) / share.sum())
    deviation = float(np.sqrt(np.nansum(share * (values - mean) ** 2) / share.sum()))
    return _Number(mean, 1.0 / deviation if deviation > 0.0 else 0.0, 1.0)


@dataclass(frozen=True)
class _Number:
    mean: float
    per_unit: float
    gap: float

    def __call__(self, X: Table, j: int) -> np.ndarray:
        values = X.select([j]).numeric()[:, 0]
        _refuse_infinity(values, X, j, "X")
        missing = np.isnan(values)
        return np.stack([np.where(missing, 0.0, (values - self.mean) * self.per_unit), self.gap * missing], axis=1)


@dataclass(frozen=True)
class _Category:
    levels: tuple[str, ...]
    edge: float

    def __call__(self, X: Table, j: int) -> np.ndarray:
        return self.edge * (_words(X.column(j))[:, None] == np.array(self.levels)[None, :])


def _words(column: np.ndarray) -> np.ndarray:
    """Return each cell as a text that does not depend on how its library holds it; what is missing is one level."""
    if column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.kind}8[us]").astype(object)
    return np.array(["" if is_missing(cell) else f"={cell}" for cell in column])


# Candidate bandwidths, in units of half the mean squared distance of two rows; narrower ones fit noise.
BANDWIDTHS = (1.0, 2.0, 4.0)
# Candidate ridges: smaller ones extrapolate wildly beyond the background.
ETAS = np.logspace(-5.0, 1.0, 13)
# Least rows of a leaf, as in regression forests since Breiman (2001).
LEAF_ROWS = 5
# Binary digits of predictions for forests, so that rounding decides no split.
FOREST_BITS = 40

# predict(points) -> (n_rows, n_outputs), and left-out predictions
Fit = tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]


class RidgeRegression:
    r"""Regress by kernel ridge around the mean m. It is the conditional mean embedding of the background applied to f.

    .. math:: v_x(S) = m + k_S(x, Z)\, (K_S + \eta \operatorname{diag}(1 / w))^{-1} (f(Z) - m)

    A Gaussian kernel with the bandwidth and ridge of least squared error on left-out rows, for each coalition.
    With :math:`A` the inverse the error of row i is :math:`[A (f - m)]_i / A_{ii}`, as in every linear smoother.
    """

    name = "kernel ridge regressions"

    def __init__(self, eta: float | None) -> None:
        auto = isinstance(eta, str) and eta == "auto"
        self.etas = ETAS if auto else np.array([check_eta(eta, "value_function='observational'")])

    def fit(self, known: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Fit:
        from scipy.spatial.distance import cdist

        mean, root = weights @ targets, np.sqrt(weights)[:, None]
        centred, spread = targets - mean, float(np.sum(weights @ (known - weights @ known) ** 2))
        # If known columns are constant, the conditional mean is the mean.
        if spread == 0.0 or not centred.any():
            return lambda points: np.broadcast_to(mean, (len(points), len(mean))), np.broadcast_to(mean, targets.shape)
        squared, variance = cdist(known, known, "sqeuclidean"), weights @ centred**2
        variance = np.where(variance > 0.0, variance, 1.0)
        best: Any = (np.inf,)
        for width in BANDWIDTHS:
            scale = 0.5 / (width**2 * spread)
            # W^1/2 K W^1/2: one decomposition serves all ridges, as only the eigenvalues move.
            matrix = root * np.exp(-scale * squared) * root.T
            # SciPy's blocks other threads
            eigenvalues, vectors = np.linalg.eigh(matrix)
            vectors = np.asfortranarray(vectors)  # and returns Fortran order, which suits the products below
            inverses = 1.0 / (np.maximum(eigenvalues, 0.0)[:, None] + self.etas)
            dual = np.einsum("za,ak,ae->ezk", vectors, vectors.T @ (root * centred), inverses, optimize=True)
            errors = dual / (vectors**2 @ inverses).T[:, :, None] / root
            # Outputs of different sizes count alike: each error is relative to the variance of its output.
            losses = np.einsum("z,ezk,k->e", weights, errors**2, 1.0 / variance)
            e = int(np.argmin(losses))
            best = min(best, (losses[e], scale, root * dual[e], targets - errors[e]), key=lambda found: found[0])
        _, scale, coefficients, left_out = best

        def predict(points: np.ndarray) -> np.ndarray:
            similar = np.exp(-scale * cdist(points, known, "sqeuclidean"))
            # Not BLAS, in which a row's bits depend on the others
            return mean + np.einsum("xz,zk->xk", similar, coefficients)

        return predict, left_out

    def bytes(self, n: int, n_rows: int) -> float:
        return 8.0 * n * (6.0 * n + 3.0 * n_rows)


class ForestRegression:
    """Fit random forests that split on known columns only; weights come from the leaves of x, left-out errors from rows out of bag."""

    name = "random forests"

    def __init__(self, n_trees: object, random_state: int) -> None:
        self.settings = {
            "n_estimators": check_count("n_trees", n_trees, 20),
            "min_samples_leaf": LEAF_ROWS,
            "random_state": random_state,
        }

    def fit(self, known: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Fit:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(oob_score=True, **self.settings)
        # A power of two: dividing by it and multiplying again rounds nothing but the digits that are cut off.
        unit = 2.0 ** (np.ceil(np.log2(max(np.abs(targets).max(initial=0.0), 1e-300))) - FOREST_BITS)
        targets = np.rint(targets / unit) * unit
        forest.fit(known, targets[:, 0] if targets.shape[1] == 1 else targets, sample_weight=weights / weights.max())
        return lambda points: forest.predict(points).reshape(len(points), -1), forest.oob_prediction_.reshape(targets.shape)

    def bytes(self, n: int, n_rows: int) -> float:
        return 100.0 * self.settings["n_estimators"] * n + 16.0 * n_rows


class RegressedMeans:
    """The conditional means of some rows for any coalition, by a regression; ``scores`` are kept as coalitions come."""

    replicates = 1

    def __init__(
        self, way: Any, coordinates: Coordinates, background: list[np.ndarray], targets: np.ndarray, weights: np.ndarray
    ):
        self.way, self.coordinates = way, coordinates
        self.background, self.targets, self.weights = background, targets, weights

    def bound_to(self, X: Table) -> BoundRegressions:
        return BoundRegressions(self, self.coordinates(X))

    def bytes(self, n_rows: int) -> float:
        """Return the memory of one coalition."""
        return float(self.way.bytes(len(self.weights), n_rows))


class BoundRegressions:
    """``v(mask) -> (n_rows, n_outputs)`` for proper coalitions of some rows."""

    def __init__(self, means: RegressedMeans, rows: Sequence[np.ndarray]) -> None:
        self.means, self.rows = means, rows
        self.scores: list[float] = []

    def __call__(self, mask: np.ndarray) -> np.ndarray:
        means, inside = self.means, np.flatnonzero(mask).tolist()
        known, points = (np.concatenate([of[j] for j in inside], axis=1) for of in (means.background, self.rows))
        predict, left_out = means.way.fit(known, means.targets, means.weights)
        self.scores.append(_r2(means.targets, left_out, means.weights))
        return np.asarray(predict(points))

    def describe(self) -> str:
        text = "exact for the estimated conditional distribution"
        if self.scores:
            explained = f"{min(self.scores):.2g} to {max(self.scores):.2g}"
            text += f"; a coalition explains {explained} of the variance of f over rows that are left out"
        n = len(self.means.weights)
        return f"conditional means by {self.means.way.name} of the predictions of {n} background rows ({text})"


def _r2(targets: np.ndarray, left_out: np.ndarray, weights: np.ndarray) -> float:
    """Return the share of variance explained on left-out rows. It is that over all outputs."""
    total = float(np.sum(weights @ (targets - weights @ targets) ** 2))
    return 1.0 - float(np.sum(weights @ (targets - left_out) ** 2)) / total if total > 0.0 else 0.0
