r"""Decompose R2 by refits on every subset of columns (LMG, general dominance).

.. math:: v(S) = \max_b R^2(y, X_S b), \qquad \phi_j = \sum_{S \not\ni j} \frac{s! (m - s - 1)!}{m!} (v(S \cup j) - v(S))

All subsets are read from the triangular factor of the data (``src/native/r2/subsets.cpp``) in O(2^m), at the precision of least
squares itself: no normal equations. With more players, values are means over random orders and their reverses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import qr

from exactshap._native import kernel
from exactshap._runtime.checks import check_count, check_level, checked_generator
from exactshap._runtime.progress import duration
from exactshap._runtime.threads import map_in_threads
from exactshap._runtime.types import Column, Model, RandomState, TableLike
from exactshap.decompose.r2._input import EPS, R2Decomposition, Target, check_seconds, require_variation, target_of, weights_of
from exactshap.errors import InputError, UnsupportedModelError
from exactshap.frames import as_table
from exactshap.readers import Columns, Request
from exactshap.results.decomposition import check_residual, frame_kind

EXACT_PLAYERS = 25  # 2^25 subsets are some 20 s
ORDERS = 2000  # drawn beyond, half of them reverses of the others
SUBSET_SECONDS = 6e-7  # of one core for each subset, with its rotations
SPLIT_PLAYERS = 14  # from here on the subsets of the first players are threads' tasks
FIXED_PLAYERS = 4  # first players of a task

add_subsets = kernel("r2.add_subsets(factor, tolerance, start, fixed, prefix, sums)")
fill_orders = kernel("r2.fill_orders(columns, y, tolerance, start, orders, gains)")


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Hold a regression to refit, with columns ordered by player."""

    numbers: np.ndarray  # float64 (n_rows, n_columns)
    y: np.ndarray  # float64 (n_rows,)
    weights: np.ndarray
    intercept: bool
    start: np.ndarray = field(repr=False)  # int64 (n_players + 1,): the columns of each player

    def centre(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return values less their weighted means, where there is an intercept."""
        if not self.intercept:
            return values
        mean = weights @ values / weights.sum()
        centred: np.ndarray = values - mean
        # Twice, as the first pass leaves the rounding of large means.
        return centred - weights @ centred / weights.sum()

    def factor(self, weights: np.ndarray) -> Factor | None:
        """Return the triangular factor of the weighted rows; None where y does not vary."""
        variation = Target(self.y, weights).sst
        if not variation > (8.0 * EPS * float(np.abs(self.y).max())) ** 2 * weights.sum():
            return None
        roots, p = np.sqrt(weights), self.numbers.shape[1]
        columns = self.centre(self.numbers, weights) * roots[:, None]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            norms, sizes = (np.linalg.norm(one, axis=0) for one in (columns, self.numbers * roots[:, None]))
            # rounding of centring and reflections in a column that others explain
            tolerance = 16.0 * EPS * (np.sqrt(len(roots)) + p) * np.where(norms > 0, np.maximum(sizes / norms, 1.0), np.inf)
        # ``not <``, so that NaN counts as constant: such a column explains nothing.
        constant = ~(tolerance < 0.5)
        # Columns of norm 1: what is left of one can then be compared with a tolerance relative to it.
        scales = np.where(constant, 1.0, norms)
        scaled = np.where(constant, 0.0, columns / scales)
        target = self.centre(self.y, weights) * roots / np.sqrt(variation)
        triangle = qr(np.column_stack([scaled, target]), mode="r", overwrite_a=True, check_finite=False)[0]
        factor = np.zeros((p, p + 1))
        factor[: len(triangle)] = np.triu(triangle)[:p]
        empty = 0.0 if self.intercept else 1.0 - float(np.sum(weights * self.y**2)) / variation
        return Factor(factor, np.where(constant, 1.0, tolerance), self.start, scales, empty)


@dataclass(frozen=True, eq=False)
class Factor:
    """Hold R of [X y] = Q R, where columns of X have norm 1 and y has the root of its variation."""

    triangle: np.ndarray  # float64 (n_columns, n_columns + 1)
    tolerance: np.ndarray  # float64 (n_columns,): what is left of columns that others explain
    start: np.ndarray
    scales: np.ndarray  # float64 (n_columns,): norms of the columns
    empty: float  # R2 of no column

    def sums(self, n_jobs: int | None) -> np.ndarray:
        """Return sums of v(S) - v(none) (n_players + 1, n_players + 1) over subsets by size: those with each player, and all."""
        m = len(self.start) - 1
        # 2^4 tasks whatever the number of threads, so that sums have the same order and bits.
        fixed = FIXED_PLAYERS if m >= SPLIT_PLAYERS else 0

        def of_prefix(prefix: int) -> np.ndarray:
            out = np.zeros((m + 1, m + 1))
            add_subsets(self.triangle, self.tolerance, self.start, fixed, prefix, out)
            return out

        return sum(map_in_threads(of_prefix, range(2**fixed), n_jobs), np.zeros((m + 1, m + 1)))

    def by_size(self, n_jobs: int | None) -> np.ndarray:
        """Return conditional dominance (n_players, n_players): each player's mean gain over subsets of size s."""
        from scipy.special import comb

        # Players by what rounding leaves of their columns, the roughest last: columns are compared with those before them.
        order = np.argsort([self.tolerance[a:b].max() for a, b in pairwise(self.start)], kind="stable")
        sums, m = self._of_players(order).sums(n_jobs), len(order)
        with_player, total = sums[:-1], sums[-1]
        gains = np.empty((m, m))
        gains[order] = (with_player[:, 1:] - (total - with_player)[:, :-1]) / comb(m - 1, np.arange(m))
        return gains

    def _of_players(self, order: np.ndarray) -> Factor:
        """Return the factor of the players in another order."""
        columns = [np.arange(self.start[j], self.start[j + 1]) for j in order]
        columns = [one[np.argsort(self.tolerance[one], kind="stable")] for one in columns]
        places = np.concatenate(columns)
        if (places == np.arange(len(places))).all():
            return self
        triangle = qr(self.triangle[:, [*places, -1]], mode="r", check_finite=False)[0]
        start = np.cumsum([0, *map(len, columns)])
        return replace(self, triangle=triangle, tolerance=self.tolerance[places], start=start, scales=self.scales[places])

    def by_order(self, orders: np.ndarray) -> np.ndarray:
        """Return the gain of each player in each order, (n_orders, n_players)."""
        gains = np.empty(orders.shape)
        columns, y = np.ascontiguousarray(self.triangle[:, :-1].T), np.ascontiguousarray(self.triangle[:, -1])
        fill_orders(columns, y, self.tolerance, self.start, orders, gains)
        return gains

    def independent(self) -> np.ndarray:
        """Return columns that explain all others, those that are known best."""
        kept, basis = list[int](), np.zeros((len(self.triangle), 0))
        for j in np.argsort(self.tolerance, kind="stable"):
            left = self.triangle[:, j]
            for _ in range(2):
                left = left - basis @ (basis.T @ left)
            if (length := float(np.linalg.norm(left))) > self.tolerance[j]:
                kept, basis = [*kept, int(j)], np.column_stack([basis, left / length])
        return np.sort(kept)


def refit_shares(
    model: Model,
    X: TableLike,
    y: Column,
    sample_weight: Column,
    groups: Mapping[str, Any] | None,
    n_jobs: int | None,
    n_orders: int | None,
    n_bootstrap: int,
    level: float,
    random_state: RandomState,
) -> R2Decomposition:
    """Split R2 over the players of a regression refitted on every subset."""
    if n_orders is not None:
        # Two pairs of an order and its reverse have a standard error.
        check_count("n_orders", n_orders, 4)
    check_count("n_bootstrap", n_bootstrap, 0)
    check_level(level)
    problem, names, native = _prepare(model, X, y, sample_weight, groups)
    factor = problem.factor(problem.weights)
    if factor is None:
        target = Target(problem.y, problem.weights)
        require_variation(0.0, target.mean, target.weight)
    assert factor is not None
    m = len(problem.start) - 1
    exact = n_orders is None and m <= EXACT_PLAYERS
    if exact:
        seconds = 2.0**m * SUBSET_SECONDS * (1 + n_bootstrap)
        do = "Pass n_jobs=, a smaller n_bootstrap=, n_orders= (sampled), or join columns with groups="
        check_seconds(seconds, f"Refits on all subsets are forecast to take {duration(seconds)} on one core", do)
    rng, orders = checked_generator(random_state), None
    if not exact:
        some = rng.permuted(np.tile(np.arange(m, dtype=np.int64), (-(-(n_orders or ORDERS) // 2), 1)), axis=1)
        # Each order is followed by its reverse.
        orders = np.ascontiguousarray(np.stack([some, some[:, ::-1]], axis=1).reshape(-1, m))
    values, std_error, by_size = _values(factor, orders, n_jobs)
    total, tolerance = _own_r2(model, problem, factor)
    residual = float(values.sum()) + factor.empty - total
    check_residual("R2", residual, tolerance, "that of the model's own fit")
    details = {
        "model": type(model).__name__,
        "method": "subsets" if exact else "orders",
        "n_rows": len(problem.y),
        "n_fits": 2**m if exact else m * len(orders),  # type: ignore[arg-type]
        "rank": len(factor.independent()),
        "gain_by_size": by_size,
        "n_bootstrap": n_bootstrap,
        "level": level,
    }
    return R2Decomposition(
        statistic="R2",
        values=values,
        total=total,
        feature_names=names,
        drift=float(values.sum()) - total,
        std_error=std_error,
        intervals=_intervals(problem, values, orders, n_bootstrap, level, rng, n_jobs),
        details={key: value for key, value in details.items() if value is not None},
        backend=frame_kind(native),
        game="refit",
        value_function="refit",
        residual=residual,
        tolerance=tolerance,
    )


def _prepare(
    model: Model, X: TableLike, y: Column, sample_weight: Column, groups: Mapping[str, Any] | None
) -> tuple[LeastSquares, tuple[str, ...], Any]:
    """Check what the caller passed."""
    from sklearn.linear_model import LinearRegression

    if type(model) is not LinearRegression or model.positive:
        got = f"Got {model!r}"[:200]
        do = "Pass LinearRegression(), or game='residual' for the shares of one fitted model"
        raise UnsupportedModelError("The game of refits is that of ordinary least squares", got, do)
    table = as_table(X)
    numbers = table.finite("X", "LinearRegression")
    _, players, player_names = Columns.of(Request(groups=groups), table.names, table.n_columns, "LinearRegression")
    order = [column for columns in players for column in columns]
    start = np.concatenate([[0], np.cumsum([len(columns) for columns in players])]).astype(np.int64)
    target, weights = target_of(None, y, table), weights_of(sample_weight, table)
    kept = weights > 0.0
    problem = LeastSquares(numbers[kept][:, order], target[kept], weights[kept], bool(model.fit_intercept), start)
    return problem, player_names, table.native


def _values(
    factor: Factor, orders: np.ndarray | None, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return shares, their standard errors, and gains by size of exact ones."""
    if orders is None:
        by_size = factor.by_size(n_jobs)
        return by_size.mean(axis=1), None, by_size
    parts = np.array_split(orders, max(1, min(64, len(orders) // 16)))
    gains = np.concatenate(list(map_in_threads(factor.by_order, parts, n_jobs)))
    pairs = gains.reshape(-1, 2, gains.shape[1]).mean(axis=1)
    return pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs)), None


def _own_r2(model: Model, problem: LeastSquares, factor: Factor) -> tuple[float, float]:
    """Return R2 by the model's own fit, and a bound on rounding.

    It is fitted to columns of norm 1 that explain all others, which have the same R2: its own coefficients of dependent columns may
    be too large for its predictions to be right.
    """
    from sklearn.base import clone

    kept, weights = factor.independent(), problem.weights
    if not len(kept):
        return factor.empty, 64.0 * EPS * (1.0 + abs(factor.empty))
    columns = problem.numbers[:, kept] / factor.scales[kept]
    own = clone(model)
    if "tol" in own.get_params():  # scikit-learn 1.9 cuts off directions below 1e-6 by default; least squares keeps them
        own.set_params(tol=EPS)
    own.fit(columns, problem.y, sample_weight=weights)
    total = float(own.score(columns, problem.y, sample_weight=weights))
    added = np.abs(columns) @ np.abs(own.coef_) + abs(own.intercept_) + np.abs(problem.y)
    size = np.sqrt(float(weights @ added**2) / Target(problem.y, weights).sst)
    unit = 16.0 * EPS * (np.sqrt(len(weights)) + len(kept))
    condition = np.linalg.cond(factor.triangle[:, kept])
    # In some orders a column stands for one that is known better.
    others = np.delete(factor.tolerance, kept)
    unit = max(unit, float(others[others < 1.0].max(initial=0.0)))
    # Without an intercept the sums of squares themselves are as large as R2 of no column, and their rounding relative to that.
    return total, unit * (1.0 + size + abs(factor.empty)) + (unit * condition) ** 2 + (unit * size) ** 2


def _intervals(
    problem: LeastSquares,
    values: np.ndarray,
    orders: np.ndarray | None,
    n_bootstrap: int,
    level: float,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> np.ndarray | None:
    r"""Return intervals (n_players, 2) of shares over resampled rows. The orders are the same in each.

    .. math:: \bigl[\max(q_\mathrm{low} - 2 b, 0),\; q_\mathrm{high}\bigr], \qquad b = \max(\bar\phi^* - \phi, 0)

    Every fit finds something, so that shares are above those of all rows that there are, and those of resamples above the shares by as much
    again: b is taken off twice. Percentiles alone never include the 0 of a column without influence.
    """
    if not n_bootstrap:
        return None
    n, shares = len(problem.y), []
    for _ in range(10 * n_bootstrap):
        factor = problem.factor(problem.weights * rng.multinomial(n, np.full(n, 1.0 / n)))
        if factor is not None:
            shares.append(_values(factor, orders, n_jobs)[0])
        if len(shares) == n_bootstrap:
            tail = (1.0 - level) / 2.0
            low, high = np.quantile(shares, [tail, 1.0 - tail], axis=0)
            raised = np.maximum(np.mean(shares, axis=0) - values, 0.0)
            return np.stack([np.maximum(low - 2.0 * raised, 0.0), high], axis=1)
    raise InputError("Too few resamples of the rows vary in `y`", f"Got {n} rows", "Pass n_bootstrap=0")
