"""Solve trees by tables, as the values of a leaf depend only on which of its players a row satisfies."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import binom

from exactshap._native import Handle
from exactshap._runtime.cache import BoundedCache, copied_state, kept
from exactshap._runtime.slices import slices
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, set_sizes
from exactshap.solvers.trees import _kernels as kernels
from exactshap.solvers.trees._layout import cut, forecast, lay_rows, routes_of, runs_of, structure
from exactshap.solvers.trees._sums import ROWS_IN_TURN, pairwise_sum, whole_weights
from exactshap.trees import FlatTrees, Paths, paths
from exactshap.trees import prepared as rounded
from exactshap.trees.ensemble import offsets_of

# Bytes of tables at a time where they are too large to be kept.
CHUNK_BYTES = 2**26
# Rows at a time: their codes and decisions stay in cache.
BLOCK_ROWS = 1024
BLOCK_BYTES = 2**21
# Numbers of players of all codes while they are made, and sums of one block.
WORK_BYTES = 3.5 * 2**20
# Largest fraction of the memory limit for tables and the counted background, besides ``WORK_BYTES``: trees without tables and rows need
# room, too. Forests of 200 to 400 trees on 3,000 rows fill 1 GiB with tables.
TABLES_FRACTION = 7 / 8
# Rows that are answered cell by cell before tables are filled, at least: the first row of 100 to 1,000 boosted trees of depth 6 to 10
# takes a half to a sixth of the time of a filling; one of pairs at depth 10, 40 ms in place of 1.2 to 2.7 s.
CELL_BY_CELL_ROWS = 16
# Share of the steps of a filling that is spent on rows before tables are filled: a service's first ones do not wait.
CELL_BY_CELL_FRACTION = 0.1
# Share of those steps that the rows of a first call may take: a step of a row takes as long as two to four of a filling (100 boosted
# trees of depth 3 to 10, orders 1 and 2, with and without a background), so that either way is taken where it is quicker.
FIRST_CALL_FRACTION = 1.0 / 3.0
# Costs of tables for sets of players, in look-ups of single players of half a nanosecond (benchmarks/growth.py: 0.8 and 1.2 ns).
SET_LOOK_UP, SET_FILLING = 1.7, 2.4
# Cells behind the last table, which the widest registers read and leave out.
ROOM = 7
# Background rows at a time.
BACKGROUND_BLOCK = 2**14


def tabulate_background(
    trees: FlatTrees, leaves: Paths, background: np.ndarray | None, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each leaf and set S the background that passes other splits, counted once, and the leaves' starts.

    Both arrays are empty without a background: cover ratios are multiplied when a table is filled.
    """
    if background is None or weights is None:
        return np.zeros(1, np.int64), np.empty(0)
    start = offsets_of(1 << np.diff(leaves.start))
    table = np.zeros(start[-1])
    whole, unit = whole_weights(weights)
    columns, forest = rounded(trees, background).T, kernels.forest_of(trees)

    def add(rows: slice, cells: np.ndarray) -> np.ndarray:
        kernels.add_failures(np.ascontiguousarray(columns[:, rows]), forest, leaves, whole[rows], start, cells)
        return cells

    # Equal weights of more than one row: ones
    if unit < 1.0:  # counts, which add up without rounding
        for rows in slices(len(background), BACKGROUND_BLOCK):
            add(rows, table)
    else:
        table = pairwise_sum(add(rows, np.zeros_like(table)) for rows in slices(len(background), ROWS_IN_TURN))
    # So far a cell counts the rows that fail exactly S; sums over subsets make that the rows that fail nothing outside S
    kernels.sum_survival(leaves, start, table)
    # Last, so that all sums before are of whole numbers where weights are equal
    table *= unit
    return start, table


def path_weights(semivalue: Semivalue, order: int, largest: int) -> np.ndarray:
    r"""Return p(s) for sets of each size on a leaf with m players, (order + 1, largest + 1, largest + 1).

    .. math:: p_{|T|}(s) = \int t^s (1 - t)^{m - |T| - s}\, \mathrm{d}\mu_{|T|}(t)

    Players off the path are dummies, so that the path's own number of players decides.
    """
    weights = np.zeros((order + 1, largest + 1, largest + 1))
    powers = np.arange(largest + 1)
    for size in set_sizes(order):
        nodes, node_weights = semivalue.rule(size, order, degree=max(largest - size, 0))
        # All p(s) of all path lengths are among these moments, so the rule is evaluated once
        moments = (node_weights * nodes ** powers[:, None]) @ ((1.0 - nodes) ** powers[:, None]).T  # of t^a (1 - t)^b
        for m in range(size, largest + 1):
            s = powers[: m - size + 1]
            weights[size, m, s] = moments[s, m - size - s]
    return weights


def room_of_tables(limit: float) -> float:
    """Return the bytes left for tables and the counted background.

    >>> room_of_tables(2.0**30) / 2**20, room_of_tables(2.0**16) / 2**16
    (892.5, 0.5)
    """
    return max(limit / 2.0, TABLES_FRACTION * limit - WORK_BYTES)


class OrderTables(NamedTuple):
    """Hold the layout of tables for sets of 1..order players."""

    rows: kernels.TableRows
    packed: Handle  # the same for kernels
    runs: list[tuple[int, int]]  # groups first:last that are filled and swept together
    n_sets: int
    n_results: int  # of a row: sets and v(D) of all outputs, and the scale
    block: int  # rows that are swept at a time
    is_kept: bool  # whether the tables of a semivalue stay between calls
    memory: float  # bytes besides the rows: the tables of one semivalue (see ``held`` for the background's)
    # Steps of a filling, look-ups of a row, steps of a row without tables
    work: tuple[float, float, float]
    method: str

    def one_by_one_rows(self, fraction: float) -> float:
        """Return the number of rows to answer without tables, which take ``fraction`` of the time to fill them."""
        filled, _, one_row = self.work
        return max(CELL_BY_CELL_ROWS, fraction * filled / max(one_row, 1.0))


@dataclass(frozen=True, eq=False)
class TableEngine:
    """Look up one table per group of leaves. Tables are filled once for a semivalue and kept if they fit ``limit`` bytes."""

    trees: FlatTrees
    tables: kernels.Tables
    n_players: int
    limit: float
    cache: BoundedCache = field(default_factory=BoundedCache)
    answered: list[int] = field(default_factory=lambda: [0])  # rows, without tables

    __getstate__ = copied_state

    @classmethod
    def of(
        cls,
        trees: FlatTrees,
        player_of_column: np.ndarray,
        n_players: int,
        background: np.ndarray | None,
        weights: np.ndarray | None,
        limit: float,
    ) -> TableEngine:
        """Cut trees of finite cost into groups of leaves with one table, and count the background."""
        leaves, shape = paths(trees, player_of_column), structure(trees, player_of_column)
        groups = cut(trees, shape, np.flatnonzero(forecast(trees, shape).is_root), leaves.node, trees.value)
        counts = tabulate_background(trees, leaves, background, weights)
        tables = kernels.Tables(kernels.forest_of(trees), groups, routes_of(trees, groups), leaves, *counts)
        return cls(trees, tables, n_players, limit)

    @functools.cached_property
    def packed(self) -> Handle:
        """Return the tables as the compiled kernels read them."""
        return Handle(self.tables)

    @property
    def held(self) -> float:
        """The bytes of the counted background."""
        return float(self.tables.background_table.nbytes)

    @kept(1)
    def of_order(self, order: int) -> OrderTables:
        """Return the layout of the tables for sets of 1..order players."""
        rows = lay_rows(self.tables.groups, self.tables.leaves, self.n_players, order, self.trees.n_outputs)
        n_sets, n_bytes = int(rows.offsets[order + 1]), 8.0 * rows.table_start[-1]
        is_kept = bool(n_bytes <= room_of_tables(self.limit) - self.held)
        held = "kept" if is_kept else f"in runs of {CHUNK_BYTES / 2**20:.0f} MiB"
        method = f"tables ({n_bytes / 2**20:.1f} MiB in {len(self.tables.groups.root)} groups, {held})"
        memory = WORK_BYTES + (n_bytes if is_kept else min(n_bytes, 2.0 * CHUNK_BYTES))
        n_results = (n_sets + 1) * self.trees.n_outputs + 1
        block = int(max(16, min(BLOCK_ROWS, BLOCK_BYTES // (8 * n_results))))
        # The cut, and so the bits, do not depend on the rows explained
        runs, work = runs_of(8 * rows.table_start[:-1], CHUNK_BYTES), self._work(order, len(rows.columns))
        return OrderTables(rows, Handle(rows), runs, n_sets, n_results, block, is_kept, memory, work, method)

    @kept(1)
    def measure(self, semivalue: Semivalue) -> Handle:
        """Return a semivalue for single players at all leaves."""
        weights = self._weights(semivalue, 1)[1]
        nodes, node_weights = semivalue.rule(1, 1, degree=max(len(weights) - 2, 0))
        return Handle(kernels.Measure(nodes, node_weights, weights))

    def solve(self, columns: np.ndarray, semivalue: Semivalue, order: int) -> Part:
        """Return the values of rows that may not be rounded yet. Rows are ``columns`` (n_features, n_rows)."""
        tables, n_rows = self.of_order(order), columns.shape[1]
        out = np.zeros((n_rows, tables.n_results))
        if self._go_cell_by_cell(n_rows, tables):
            self._sweep_cells(rounded(self.trees, columns), tables, semivalue, order, out)
        else:
            self._sweep(columns, tables, semivalue, order, out)
        sums = out[:, :-1].reshape(n_rows, tables.n_sets + 1, self.trees.value.shape[1])
        full = sums[:, -1]
        return Part(sums[:, :-1], np.zeros(full.shape), full, tables.method, scale=out[:, -1])

    def memory(self, n_rows: int, order: int) -> float:
        return self.of_order(order).memory

    def work(self, order: int) -> tuple[float, float, float]:
        """Return the steps to fill tables, and those of one row: look-ups with tables, or steps without."""
        return self.of_order(order).work

    def row_cost(self, order: int, n_rows: float) -> float:
        """Return the cost of one of ``n_rows`` rows that share a filling. It is in look-ups of single players."""
        filled, look_ups, _ = self.work(order)
        return SET_LOOK_UP * look_ups + SET_FILLING * filled / n_rows

    def _work(self, order: int, n_columns: int) -> tuple[float, float, float]:
        groups, players = self.tables.groups, np.diff(self.tables.leaves.start)[self.tables.groups.leaf]
        n_sets = np.sum([binom(players, size) for size in set_sizes(order)], axis=0)
        codes = np.exp2(np.repeat(groups.n_bits, np.diff(groups.leaf_start))) + players * np.exp2(players)
        return (
            float(np.sum(n_sets * codes)),
            float(n_columns),
            float(np.sum(n_sets * (1.0 + players))),
        )

    def _sweep(self, columns: np.ndarray, tables: OrderTables, semivalue: Semivalue, order: int, out: np.ndarray) -> None:
        """Add the sums over all groups to ``out`` (n_rows, n_results)."""
        block = tables.block
        for first, last in tables.runs:
            cells = self._cells(tables, semivalue, order, first, last)
            for start in range(0, len(out), block):
                part = columns if len(out) <= block else np.ascontiguousarray(columns[:, start : start + block])
                if first == 0:
                    kernels.sweep(part, self.packed, tables.packed, first, last, cells, out[start : start + block])
                    continue
                # A run is added up by itself and then to the others: cell by cell
                # adds in the same order, so that the bits agree
                total = np.zeros((part.shape[1], tables.n_results))
                kernels.sweep(part, self.packed, tables.packed, first, last, cells, total)
                out[start : start + block] += total

    def _go_cell_by_cell(self, n_rows: int, tables: OrderTables) -> bool:
        """Say whether tables do not pay for so many rows. Earlier rows without tables count as well."""
        if not tables.is_kept:
            return n_rows <= tables.one_by_one_rows(FIRST_CALL_FRACTION)
        self.answered[0] += n_rows
        # Later calls do not wait until both have taken as long: their tables are there for all rows to come
        is_first = self.answered[0] == n_rows
        return self.answered[0] <= tables.one_by_one_rows(FIRST_CALL_FRACTION if is_first else CELL_BY_CELL_FRACTION)

    def one_by_one_rows(self, order: int) -> float:
        """Return the number of rows of a first call that are answered without tables."""
        return self.of_order(order).one_by_one_rows(FIRST_CALL_FRACTION)

    def _sweep_cells(self, columns: np.ndarray, tables: OrderTables, semivalue: Semivalue, order: int, out: np.ndarray) -> None:
        """Add the sums over all groups to ``out``, cell by cell: the same bits without tables."""
        for first, last in tables.runs:
            total = np.zeros_like(out)
            if order == 1:
                measure = self.measure(semivalue)
                kernels.sweep_few_rows(columns, self.packed, tables.packed, measure, first, last, self.n_players, total)
            else:
                kernels.sweep_few_sets(columns, self.packed, tables.packed, self._weights(semivalue, order), first, last, total)
            out += total

    @kept(1)
    def _weights(self, semivalue: Semivalue, order: int) -> np.ndarray:
        return path_weights(semivalue, order, int(np.diff(self.tables.leaves.start).max(initial=0)))

    def _cells(self, tables: OrderTables, semivalue: Semivalue, order: int, first: int, last: int) -> np.ndarray:
        if not tables.is_kept:
            return self.fill(tables, semivalue, order, first, last)
        make = functools.partial(self.fill, tables, semivalue, order, 0, len(self.tables.groups.root))
        every = self.cache.get_or_make(("tables", semivalue, order), make, keep=1)
        start = tables.rows.table_start
        # The last registers read past the end: the room belongs to the view too
        return every[start[first] : start[last] + ROOM]

    def fill(self, tables: OrderTables, semivalue: Semivalue, order: int, first: int, last: int) -> np.ndarray:
        """Return the filled tables of groups ``first:last``, and some room."""
        start, rows = tables.rows.table_start, tables.packed
        room = np.zeros(start[last] - start[first] + ROOM)
        cells = room[:-ROOM]
        if order == 1:
            measure = self.measure(semivalue)
            kernels.fill_single_tables(self.packed, rows, measure, first, last, self.n_players, cells)
            return room
        kernels.fill_tables(self.packed, rows, self._weights(semivalue, order), first, last, cells)
        return room
