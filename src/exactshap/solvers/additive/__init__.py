"""Solve additive games, each term on the coalitions of its own players, and linear models, by differences to a mean.

The compiled sweeps over small terms are in ``src/native/additive/``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np

from exactshap._native import Handle, kernel
from exactshap._runtime.machine import Sample, seconds_per_unit
from exactshap.errors import InputError
from exactshap.games import AdditiveGame
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.core import Cost, Part, Solution, count_sets, player_sets, set_sizes


class Bins(NamedTuple):
    """Hold the bins of columns, and how terms number them."""

    cuts: np.ndarray  # ascending, of one way of cutting after the other
    cut_start: np.ndarray  # way w has cuts[cut_start[w]:cut_start[w + 1]]
    column: np.ndarray  # that it cuts
    way_start: np.ndarray  # term l uses the ways way[way_start[l]:way_start[l + 1]]
    way: np.ndarray
    stride: np.ndarray  # of each of them in the number of a cell


class Lookups(NamedTuple):
    """Hold terms with the background folded in: one table for each coalition."""

    term: np.ndarray  # which of a row's cells belongs to it
    # (n_terms, n_columns): bins of its columns; 1 where there are fewer columns
    shape: np.ndarray
    # (n_terms, n_codes, 1 + n_columns): where a coalition's table starts, its strides, 0 for columns outside
    strides: np.ndarray
    folded: np.ndarray  # (n_places, n_outputs): all tables


class Factors(NamedTuple):
    """Hold monomials with the background folded in: factor p of a term is the product of ``columns ** powers`` of its p-th player."""

    columns: np.ndarray  # (n_terms, k, n_columns_of_player)
    powers: np.ndarray  # 0 where there are fewer columns
    coefficients: np.ndarray  # (n_terms, n_outputs)
    # (n_terms, 2^k): the background's mean of the factors outside of each coalition
    moments: np.ndarray


class Sets(NamedTuple):
    """Hold the sets within a term of k players that are solved."""

    members: np.ndarray  # (n_sets, order): ascending bits of a code
    sizes: np.ndarray
    # (order + 1, 2^k): by size, of the coalition that is left when a set is cut out of the code
    weights: np.ndarray


class Linear(NamedTuple):
    """Hold a linear model bound to a background."""

    coefficients: np.ndarray  # (n_columns, n_outputs)
    absent: np.ndarray  # (n_columns, n_outputs): the terms' means over the background
    players: np.ndarray  # integer (n_columns,): of each column


fill_sets = kernel("additive.fill_sets(tables, sets, positions, out, empty, full, scale)")
fill_fold = kernel("additive.fill_fold(scores, inside, outside, weights, out)")
fill_cells = kernel("additive.fill_cells(X, bins, out)")
fill_lookups = kernel("additive.fill_lookups(cells, lookups, out)")
# A third of the time of coalition values that NumPy makes and `fill_sets` sums (polynomials of degree 2 and 3, 1,000 rows and more).
add_monomials = kernel("additive.add_monomials(X, factors, sets, positions, out, empty, full, scale)")

# 100,000 rows of 20 columns: 4 ms; by `add_singles`, of products that NumPy makes, 13 ms
fill_linear = kernel("additive.fill_linear(X, linear, weight, out, full, scale)")

# Cached questions: a service repeats them, and their weights do not depend on the rows.
KEPT_QUESTIONS = 64


@dataclass(frozen=True, eq=False)
class Stack:
    """Hold terms of equally many players with their coalition values."""

    subsets: tuple[tuple[int, ...], ...]  # the players of each term, k of them
    # (n_terms, n_rows, 2^k, n_outputs): values of each term's coalitions; bit p of the code is player ``subsets[l][p]``
    tables: np.ndarray


@dataclass(frozen=True, eq=False)
class Monomials:
    """Hold terms that are products of one factor per player; coalition values are computed on demand."""

    MOST_PLAYERS: ClassVar[int] = 8
    # Rows that are added up together, in memory of their own.
    TILE_ROWS: ClassVar[int] = 64

    subsets: tuple[tuple[int, ...], ...]  # the players of each term, k of them, 1 to ``MOST_PLAYERS``
    rows: np.ndarray  # (n_rows, n_columns)
    factors: Handle  # Handle of Factors
    tabulate: Callable[[np.ndarray], np.ndarray]  # ``tabulate(rows)``: the coalition values, as in a :class:`Stack`

    @property
    def tables(self) -> np.ndarray:
        return self.tabulate(self.rows)


def solve_additive(game: AdditiveGame, semivalue: Semivalue, order: int) -> Solution:
    r"""Solve a sum of small terms, each on its own 2^|I| coalitions, as other players are dummies of it.

    .. math:: \phi_T = \sum_{I \supseteq T} \sum_{S \subseteq I \setminus T} p(|S|)\, \Delta_T v_I(S)

    Cost O(sum_I |I|^order 2^|I|) per row, whatever the number of players (STAR-SHAP, Theorem 3.1).
    """
    n_rows, by_size = 1 if game.n_rows is None else game.n_rows, dict[int, list[int]]()
    for l, subset in enumerate(game.subsets):
        by_size.setdefault(len(subset), []).append(l)
    stacks = (
        Stack(tuple(game.subsets[l] for l in chosen), np.stack([game.tables[l] for l in chosen])) for chosen in by_size.values()
    )
    part = solve_stacks(stacks, game.n_players, n_rows, game.n_outputs, semivalue, order)
    return part.finish_game(game, semivalue, order, constant=game.constant)


def solve_stacks(
    stacks: Iterable[Stack | Monomials],
    n_players: int,
    n_rows: int,
    n_outputs: int,
    semivalue: Semivalue,
    order: int,
) -> Part:
    """Add up stacks of terms, one at a time; refuse values that are not finite."""
    n_sets = count_sets(n_players, order)
    # filled, as pages of np.zeros would be fetched twice, at the first read and at the first write
    values, empty, full = (np.full((n_rows, *shape), 0.0) for shape in ((n_sets, n_outputs), (n_outputs,), (n_outputs,)))
    scale, n_terms = np.full(n_rows, 0.0), 0
    for stack in stacks:
        n_terms += len(stack.subsets)
        sets, positions = _local_sets(len(stack.subsets[0]), semivalue, order), _positions(stack.subsets, n_players, order)
        if isinstance(stack, Monomials):
            rows = np.ascontiguousarray(stack.rows, float)
            add_monomials(rows, stack.factors, sets, positions, values, empty, full, scale)
        else:
            fill_sets(np.ascontiguousarray(stack.tables, float), sets, positions, values, empty, full, scale)
        # Values are differences that include the ends
        _refuse_not_finite(stack, values, full)
    return Part(values, empty, full, method_of(n_terms), scale=scale)


def _refuse_not_finite(stack: Stack | Monomials, *sums: np.ndarray) -> None:
    """Refuse values that are not finite; each is tested only if their sum is not finite."""
    with np.errstate(all="ignore"):
        # A finite sum has finite summands, and needs no array of booleans
        if all(math.isfinite(array.sum()) or np.isfinite(array).all() for array in sums):
            return
        places = np.argwhere(~np.isfinite(stack.tables).all(axis=(2, 3)))
    if not len(places):  # only their sum overflows, which the certificate reports
        return
    term, row = places[0].tolist()
    raise InputError(
        f"The term on players {stack.subsets[term]} has a coalition value that is NaN or infinite",
        f"First at row {row}",
        "Terms must be finite on every mix of a row with the background",
        row=row,
    )


def method_of(n_terms: int) -> str:
    """Return the text of ``Solution.method``."""
    return f"per-term enumeration ({n_terms} term{'s' if n_terms != 1 else ''})"


def stacks_cost(widths: Sequence[int], n_rows: int, n_outputs: int, order: int) -> Cost:
    """Return the cost of solving terms with known coalition values."""
    steps = sum(
        sum(math.comb(width, size) for size in range(1, min(order, width) + 1)) * 2.0 ** (width - 1) + 2.0 for width in widths
    )
    rate = seconds_per_unit("additive terms", _sample)
    held = 8.0 * n_rows * n_outputs * sum(2.0**width for width in widths)
    return Cost(rate * steps * n_rows * n_outputs, held, True, method_of(len(widths)))


def _sample() -> Sample:
    """Return a millisecond of work, in the units of ``stacks_cost``."""
    n_terms, n_rows = 32, 256

    def run() -> None:
        terms = tuple((l, l + 1, l + 2) for l in range(n_terms))
        solve_stacks([Stack(terms, np.ones((n_terms, n_rows, 8, 1)))], n_terms + 2, n_rows, 1, find("shapley"), 1)

    return n_terms * n_rows * (3 * 4.0 + 2.0), run


@functools.lru_cache(maxsize=KEPT_QUESTIONS)
def _local_sets(k: int, semivalue: Semivalue, order: int) -> Handle:
    """Return the sets within a term of k players, and their weights."""
    local = player_sets(k, min(order, k)) if k else ()
    members, weights = np.full((len(local), order), -1, np.int64), np.zeros((order + 1, 2**k))
    for s, players in enumerate(local):
        members[s, : len(players)] = players
    for size in set_sizes(min(order, k)) if k else ():
        codes = np.arange(2 ** (k - size))
        counts = sum(((codes >> p) & 1 for p in range(k - size)), np.zeros_like(codes))
        weights[size, : len(codes)] = semivalue.weights(k, size, order)[counts]
    return Handle(Sets(members, np.array([len(players) for players in local], np.int64), weights))


@functools.lru_cache(maxsize=KEPT_QUESTIONS)
def _positions(subsets: tuple[tuple[int, ...], ...], n_players: int, order: int) -> np.ndarray:
    """Return the positions of sets among all, of shape (n_terms, n_local)."""
    k = len(subsets[0])
    local = player_sets(k, min(order, k)) if k else ()
    positions = np.empty((len(subsets), len(local)), np.int64)
    # Sets of one player are first, in order
    positions[:, :k] = np.array(subsets, np.int64).reshape(len(subsets), k)
    for l, subset in enumerate(subsets if len(local) > k else ()):
        positions[l, k:] = [_position(tuple(sorted(subset[p] for p in players)), n_players) for players in local[k:]]
    return positions


def _position(players: tuple[int, ...], n_players: int) -> int:
    """Return the position of a sorted set in ``player_sets``."""
    size = len(players)
    smaller = sum(math.comb(n_players, s) for s in range(1, size))
    # Later sets agree up to some place i and have a larger player there
    after = sum(math.comb(n_players - 1 - player, size - i) for i, player in enumerate(players))
    return smaller + math.comb(n_players, size) - 1 - after


@functools.lru_cache(maxsize=KEPT_QUESTIONS)
def weight_alone(semivalue: Semivalue, order: int) -> float:
    """Return p(0) of a player that is alone in its term."""
    return float(semivalue.weights(1, 1, order)[0])


def solve_linear(linear: Handle, rows: np.ndarray, n_players: int, semivalue: Semivalue, order: int) -> Part:
    r"""Solve a linear model bound to a background.

    .. math:: \phi_j = p(0) \sum_l (\beta_l x_l - \mathrm{E}\, \beta_l z_l)

    over the columns l of player j: whatever the index, a term of one player has nothing to share.
    """
    model = cast(Linear, linear.value)
    n_rows, n_outputs = len(rows), model.absent.shape[1]
    values = np.empty((n_rows, count_sets(n_players, order), n_outputs))
    full, scale, method = np.empty((n_rows, n_outputs)), np.empty(n_rows), method_of(len(model.players))
    fill_linear(np.ascontiguousarray(rows, float), linear, weight_alone(semivalue, order), values, full, scale)
    empty = np.broadcast_to(model.absent.sum(axis=0), full.shape)
    return Part(values, empty, full, method, scale=scale)


def solve_linear_precisely(
    model: Linear, means: np.ndarray, rows: np.ndarray, n_players: int, semivalue: Semivalue, order: int
) -> Part:
    """Solve a linear model in extended precision.

    That leaves three more digits where large coefficients cancel.

    ``means`` (n_columns,) of the background's columns are long doubles.
    """
    terms = rows[:, :, None].astype(np.longdouble) * model.coefficients
    # The mean is subtracted before the coefficient is applied, to cancel cells and not large products
    gains = weight_alone(semivalue, order) * ((rows - means)[:, :, None] * model.coefficients)
    values = np.zeros((len(rows), count_sets(n_players, order), model.absent.shape[1]))
    for player in np.unique(model.players):
        values[:, player] = gains[:, model.players == player].sum(axis=1)
    full = np.asarray(terms.sum(axis=1), float)
    empty = np.broadcast_to(np.asarray((means[:, None] * model.coefficients).sum(axis=0), float), full.shape)
    scale = np.asarray(np.maximum(np.abs(terms), np.abs(model.absent)).max(axis=2).sum(axis=1), float)
    return Part(values, empty, full, method_of(len(model.players)), scale=scale)
