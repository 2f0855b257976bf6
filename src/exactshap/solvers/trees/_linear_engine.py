r"""Solve linear functions of leaves with a background; tables and paths solve the constant values.

.. math:: v(S) = \sum_m w_m \sum_l \prod_{j \in S} a_{lj} \prod_{j \notin S} z_{mlj}
          \Big(c_{l0} + \sum_{k \in S} c_{lk} x_k + \sum_{k \notin S} c_{lk} z_{mk}\Big)

with a and z as for constant leaves (:mod:`exactshap.solvers.trees._solve`), and 0 too where a column of the leaf's function is missing.
The background enters a leaf by the sets of players that its rows fail: their weights, and the moments of their linear parts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.special import binom

from exactshap._native import Handle
from exactshap._runtime.cache import BoundedCache, copied_state, kept
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, set_sizes
from exactshap.solvers.trees import _kernels as kernels
from exactshap.solvers.trees._layout import (
    binomials_and_offsets,
    cut,
    lay_rows,
    routes_of,
    runs_of,
    small_groups,
    smallest_first,
)
from exactshap.solvers.trees._sums import whole_weights
from exactshap.solvers.trees._table_engine import path_weights
from exactshap.trees import FlatTrees, Paths, apply, paths
from exactshap.trees.ensemble import LinearLeaves, add_leaf_functions, offsets_of, taken

# Players of a leaf: bits of a word.
PATTERN_BITS = 64
# Bytes of patterns at a time where they are too large to be kept.
CHUNK_BYTES = 2**26
# Sets of players of a leaf: beyond, a row would take seconds.
MAX_SETS = 2.0**20
# Players of a leaf that is tabulated, bits of a group of leaves, and bytes of all tables (benchmarks/bench_linear_leaves.py).
MAX_TABLE_PLAYERS, MAX_GROUP_BITS, TABLE_BYTES = 12, 12, 2.0**28
# Patterns of the background at a leaf, at most, below which a table would not be faster.
MIN_PATTERNS = 4
# Values of sets are padded to so many, and many of them to more, as in linear_tables.cpp.
LANES, WIDE_LANES = 4, 16
# Of leaves that all rows meet.
EVERY_ROW = kernels.Chosen(np.zeros(0, np.int64), np.zeros((0, 0), bool))
# A part or a player of a pattern, in numbers of a table's cell (1 ns and 0.3 ns).
PATTERN_STEPS = 3.0


@dataclass(frozen=True, eq=False)
class FunctionLeaves:
    """Hold the leaves with a function in one output, with its parts by player."""

    leaves: Paths
    parts: kernels.LeafParts

    def take(self, chosen: np.ndarray) -> FunctionLeaves:
        """Return some of the leaves; those of a tree stay together."""
        if np.array_equal(chosen, np.arange(len(self.leaves.node))):
            return self
        return FunctionLeaves(_some_leaves(self.leaves, chosen), _some_parts(self.parts, chosen))

    def sets(self, order: int) -> np.ndarray:
        """Return how many sets of up to ``order`` players each leaf has."""
        players = np.diff(self.leaves.start)
        return np.asarray(np.sum([binom(players, size) for size in set_sizes(order)], axis=0))

    @functools.cached_property
    def has_bits(self) -> np.ndarray:
        """Say whether all parts of each leaf have bits, (n_leaves,)."""
        # Differences of running counts, as ``np.add.reduceat`` answers wrongly for leaves without parts
        without = offsets_of(self.parts.bit == 0)
        return np.diff(without[self.parts.part_start]) == 0

    @functools.cached_property
    def pattern_bytes(self) -> np.ndarray:
        """Return the bytes of a pattern of each leaf."""
        return 8.0 * (3.0 + np.diff(self.parts.part_start))

    def bounds(self, n_background: int) -> np.ndarray:
        """Return the largest number of patterns of each leaf."""
        return np.minimum(np.exp2(np.minimum(np.diff(self.leaves.start), 60.0)), n_background)


@dataclass(frozen=True, eq=False)
class TabledLeaves:
    """Hold leaves with a function, group after group of their trees, and how the groups' tables are laid."""

    given: FunctionLeaves
    root: np.ndarray  # of each group
    tables: kernels.Tables
    rows: kernels.TableRows
    linear: kernels.LinearTables

    @classmethod
    def of(
        cls, trees: FlatTrees, shape: kernels.Structure, root: np.ndarray, given: FunctionLeaves, n_players: int, order: int
    ) -> TabledLeaves:
        """Return the leaves with a function in the groups below ``root``."""
        groups = cut(trees, shape, root, given.leaves.node, np.ones((trees.n_nodes, 1)))
        has_function, n_groups = groups.leaf >= 0, len(root)
        owner = np.repeat(np.arange(n_groups), np.diff(groups.leaf_start))[has_function]
        given = given.take(groups.leaf[has_function])
        leaf_start = offsets_of(np.bincount(owner, minlength=n_groups))
        groups = groups._replace(leaf_start=leaf_start, leaf=np.arange(len(owner)))
        rows = lay_rows(groups, given.leaves, n_players, order, 1)
        parts = given.parts
        of_part = np.repeat(owner, np.diff(parts.part_start))
        # Each column that a function reads in a group, once
        keys = np.unique(np.repeat(of_part, np.diff(parts.term_start)) * trees.n_features + parts.column)
        start = np.searchsorted(keys, np.arange(n_groups + 1) * trees.n_features)
        n_values = np.diff(rows.column_start) - 1  # of sets and the scale
        step = np.where(n_values > WIDE_LANES, WIDE_LANES, LANES)
        width = (1 + np.diff(start)) * (-(-n_values // step) * step)
        linear = kernels.LinearTables(start, (keys % trees.n_features).astype(np.int32), offsets_of(width << groups.n_bits))
        routes = routes_of(trees, groups)
        tables = kernels.Tables(kernels.forest_of(trees), groups, routes, given.leaves, np.zeros(1, np.int64), np.zeros(0))
        return cls(given, root, tables, rows, linear)

    def missing(self, columns: np.ndarray) -> np.ndarray:
        """Return whether each row misses a column that the group's functions read, (n_groups, n_rows); (0, 0) if none does."""
        start, column = self.linear.start, self.linear.column
        gaps = np.isnan(columns)
        if not gaps[column].any():
            return np.zeros((0, 0), bool)
        missing = np.zeros((len(self.root), columns.shape[1]), bool)
        reads = np.flatnonzero(np.diff(start))  # a group of constant leaves has no segment
        missing[reads] = np.logical_or.reduceat(gaps[column], start[reads], axis=0)
        return missing

    @property
    def bytes_of_groups(self) -> np.ndarray:
        return 8.0 * np.diff(self.linear.table_start)

    @functools.cached_property
    def packed(self) -> tuple[Handle, Handle, Handle]:
        """The structures as the compiled kernels read them."""
        return Handle(self.tables), Handle(self.rows), Handle(self.linear)


@dataclass(frozen=True, eq=False)
class LinearEngine:
    """Solve linear functions of leaves with one output by patterns of background rows, kept if they fit ``limit`` bytes."""

    trees: FlatTrees
    given: FunctionLeaves
    shape: kernels.Structure
    n_players: int
    background: np.ndarray  # (n_features, n_background)
    weights: np.ndarray
    limit: float
    share: float  # of the limits, which all outputs have together
    cache: BoundedCache = field(default_factory=BoundedCache)
    one_by_one_rows, called = 0, "linear leaves"

    __getstate__ = copied_state

    @classmethod
    def of_outputs(
        cls,
        trees: FlatTrees,
        shape: kernels.Structure,
        n_players: int,
        background: np.ndarray,
        weights: np.ndarray,
        limit: float,
    ) -> tuple[LinearEngine, ...]:
        """Return the engine of each output; ``background`` (n_background, n_features) is rounded already."""
        leaves, columns = paths(trees, shape.player_of_column), np.ascontiguousarray(background.T)
        engines = []
        for one in map(trees.pick, range(trees.n_outputs)):
            assert one.linear is not None
            # A leaf may have a function in some outputs only: each output drops the leaves that have none there
            given = _function_leaves(leaves, one.linear, shape.player_of_column, n_players)
            engines.append(cls(one, given, shape, n_players, columns, weights, limit, 1.0 / trees.n_outputs))
        return tuple(engines)

    def solve(self, columns: np.ndarray, semivalue: Semivalue, order: int, leaf: np.ndarray | None = None) -> Part:
        """Solve the output; ``leaf`` are the leaves that rows reach, where they are known already."""
        self._refuse_gaps(columns)
        n_rows, n_sets = columns.shape[1], int(binomials_and_offsets(self.n_players, order)[1][-1])
        values, scale = np.zeros((n_rows, n_sets)), np.zeros(n_rows)
        tabled, others = self._split(order)
        if len(tabled.root):
            missing = tabled.missing(columns)
            kernels.sweep_linear_tables(columns, *tabled.packed, self._cells(semivalue, order), missing, values, scale)
            if len(missing):
                # A missing cell switches some leaves of a group off, which no code tells
                key = ("missing", order) if self._has_gaps else None
                patterns = self._patterns_of(tabled.given, key)
                group = np.repeat(np.arange(len(tabled.root)), np.diff(tabled.tables.groups.leaf_start))
                chosen = kernels.Chosen(group, missing)
                self._sweep_patterns(columns, patterns, chosen, semivalue, order, values, scale)
        patterns = self._patterns_of(others, ("patterns", order))
        self._sweep_patterns(columns, patterns, EVERY_ROW, semivalue, order, values, scale)
        _, unit = whole_weights(self.weights)
        X, full = np.ascontiguousarray(columns.T), np.zeros((n_rows, 1))
        add_leaf_functions(X, apply(self.trees, X) if leaf is None else leaf, self.trees.linear, full, np.zeros(0))
        method = f"linear leaves against {len(self.weights)} background row{'s' if len(self.weights) > 1 else ''}"
        return Part(
            (values * unit)[:, :, None], np.zeros_like(full), full, method, error_bound=np.zeros(n_rows), scale=scale * unit
        )

    def _sweep_patterns(
        self,
        columns: np.ndarray,
        patterns: Iterator[tuple[FunctionLeaves, Handle | kernels.Patterns]],
        chosen: kernels.Chosen,
        semivalue: Semivalue,
        order: int,
        values: np.ndarray,
        scale: np.ndarray,
    ) -> None:
        """Add the values of leaves without tables, pattern by pattern of the background."""
        weights, first = self._weights(semivalue, order), 0
        for some, of_some in patterns:
            group = chosen.group[first : first + len(some.leaves.node)]
            first += len(some.leaves.node)
            common = (columns, self._forest, some.leaves, some.parts, of_some, chosen._replace(group=group))
            if order == 1:
                kernels.sweep_linear_leaves(*common, weights[1], values, scale)
            else:
                _refuse_sets(some, order)
                kernels.sweep_linear_sets(*common, weights, *binomials_and_offsets(self.n_players, order), values, scale)

    @kept(3)
    def _split(self, order: int) -> tuple[TabledLeaves, FunctionLeaves]:
        """Return the leaves to solve by tables, the smallest groups up to the limit, and the others."""
        given = self.given
        wide = given.leaves.node[(np.diff(given.leaves.start) > MAX_TABLE_PLAYERS) | ~given.has_bits]
        root = small_groups(self.trees, self.shape, MAX_GROUP_BITS)
        if len(self.weights) < MIN_PATTERNS:
            root = root[:0]
        if len(wide):
            groups = cut(self.trees, self.shape, root, wide, np.ones((self.trees.n_nodes, 1)))
            owner = np.repeat(np.arange(len(root)), np.diff(groups.leaf_start))
            root = np.delete(root, owner[groups.leaf >= 0])
        tabled = TabledLeaves.of(self.trees, self.shape, root, given, self.n_players, order)
        limit = self.share * min(self.limit, TABLE_BYTES)
        fits = smallest_first(tabled.bytes_of_groups, np.ones(len(root), bool), limit)  # so that the most leaves fit
        if not fits.all():
            tabled = TabledLeaves.of(self.trees, self.shape, root[fits], given, self.n_players, order)
        return tabled, given.take(np.flatnonzero(~np.isin(given.leaves.node, tabled.given.leaves.node)))

    @kept(1)
    def _cells(self, semivalue: Semivalue, order: int) -> np.ndarray:
        """Return the tables, filled once for a semivalue."""
        tabled, weights = self._split(order)[0], self._weights(semivalue, order)
        groups, table_start = tabled.tables.groups, tabled.linear.table_start
        cells = np.zeros(int(table_start[-1]))
        # Whole groups go into a chunk of patterns: nobody reads these again
        needed = np.cumsum(tabled.given.pattern_bytes * tabled.given.bounds(len(self.weights)))
        for first, last in runs_of(np.append(0.0, needed)[groups.leaf_start[:-1]], CHUNK_BYTES):
            some = tabled.given.take(np.arange(groups.leaf_start[first], groups.leaf_start[last]))
            part = cells[table_start[first] : table_start[last]]
            kernels.fill_linear_tables(*tabled.packed, some.parts, self._patterns(some), weights, first, last, part)
        return cells

    @functools.cached_property
    def _forest(self) -> Handle:
        return Handle(kernels.forest_of(self.trees))

    @kept(4)
    def _weights(self, semivalue: Semivalue, order: int) -> np.ndarray:
        return path_weights(semivalue, order, int(np.diff(self.given.leaves.start).max(initial=0)) + 1)

    # --- patterns of the background ------------------------------------------------------------------------------------

    @functools.cached_property
    def held(self) -> float:
        """The bytes that are kept between calls: tables of single players, and the other leaves' patterns where they fit."""
        return self._held(1)

    def _held(self, order: int) -> float:
        tabled, others = self._split(order)
        of_missing = self._kept_bytes(tabled.given) if self._has_gaps else 0.0
        return float(tabled.bytes_of_groups.sum()) + self._kept_bytes(others) + of_missing

    @functools.cached_property
    def _has_gaps(self) -> bool:
        """Say whether rows are likely to miss cells, as background rows do."""
        return bool(np.isnan(self.background).any())

    def _kept_bytes(self, given: FunctionLeaves) -> float:
        needed = float(given.pattern_bytes @ given.bounds(len(self.weights)))
        return needed if needed <= self.share * self.limit else 0.0

    def _patterns_of(
        self, given: FunctionLeaves, key: tuple[object, ...] | None
    ) -> Iterator[tuple[FunctionLeaves, Handle | kernels.Patterns]]:
        """Yield leaves with the background's patterns at them, kept under ``key`` if there is room."""
        if not len(given.leaves.node):
            return
        if key is not None and self._kept_bytes(given):
            yield given, self.cache.get_or_make(key, lambda: Handle(self._patterns(given)), keep=2)
            return
        # Whole leaves go into a chunk; the bound on a leaf's patterns stands in for their number, which only a pass would tell
        for first, last in runs_of(np.cumsum(given.pattern_bytes * given.bounds(len(self.weights))), CHUNK_BYTES):
            some = given.take(np.arange(first, last))
            yield some, self._patterns(some)

    def _patterns(self, given: FunctionLeaves) -> kernels.Patterns:
        n = len(given.leaves.node)
        start, moment_start, none = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(0)
        common = (self.background, whole_weights(self.weights)[0], self._forest, given.leaves, given.parts)
        # The first pass counts, the second fills
        kernels.fill_patterns(*common, False, kernels.Patterns(start, moment_start, np.zeros(0, np.uint64), none, none, none))
        n_patterns = int(start[-1])
        patterns = kernels.Patterns(
            start,
            moment_start,
            failed=np.zeros(n_patterns, np.uint64),
            weight=np.zeros(n_patterns),
            size=np.zeros(n_patterns),
            moment=np.zeros(int(moment_start[-1])),
        )
        kernels.fill_patterns(*common, True, patterns)
        return patterns

    # --- cost and refusals ---------------------------------------------------------------------------------------------

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes besides the rows that are not held already; outputs are solved one after the other."""
        return (0.0 if order == 1 else self._held(order)) + self.share * 2.0 * CHUNK_BYTES

    def work(self, order: int) -> float:
        """Return the steps of one row: the numbers of its cells, and the parts and players of patterns."""
        tabled, others = self._split(order)
        steps = float((np.diff(tabled.linear.table_start) >> tabled.tables.groups.n_bits).sum())
        n_parts = np.diff(others.parts.part_start)
        # Singles share the sums of a pattern over its parts; each larger set has to form its own
        each = n_parts + (others.sets(order) if order == 1 else (n_parts + 1.0) * others.sets(order))
        return steps + PATTERN_STEPS * float(each @ others.bounds(len(self.weights)))

    def block_work(self, n_rows: int, order: int) -> float:
        return n_rows * self.work(order)

    def _refuse_gaps(self, columns: np.ndarray) -> None:
        """Refuse missing cells at wide leaves that have no bits for columns off their paths."""
        parts = self.given.parts
        unknown = np.unique(parts.column[np.repeat(parts.bit == 0, np.diff(parts.term_start))])
        for rows in (columns, self.background) if len(unknown) else ():
            if np.isnan(rows[unknown]).any():
                raise UnsupportedStructureError(
                    f"A leaf joins more than {PATTERN_BITS} players, and columns of its function off its path are missing",
                    f"First column {int(unknown[np.isnan(rows[unknown]).any(axis=1)][0])}",
                    "Impute it, join players by groups=, or sample with Explainer(model.predict, background)",
                )


def _refuse_sets(given: FunctionLeaves, order: int) -> None:
    n_sets = given.sets(order).max(initial=0.0)
    if not given.has_bits.all() or n_sets > MAX_SETS:
        raise UnsupportedStructureError(
            f"Interactions of linear leaves that join more than {PATTERN_BITS} players are not solved",
            f"A leaf has {n_sets:.3g} sets of up to {order} players",
            "Ask for order=1, join players by groups=, or sample with Explainer(model.predict, background)",
        )


def check_cells(trees: FlatTrees, X: np.ndarray, what: str) -> None:
    """Refuse infinite cells of columns that a leaf multiplies: the model's own prediction has no finite value there."""
    if trees.linear is None:
        return
    columns = trees.linear.columns
    wrong = np.argwhere(np.isinf(X[:, columns]))
    if len(wrong):
        i, k = (int(place) for place in wrong[0])
        raise InputError(
            f"`{what}` holds an infinite value that leaves multiply (row {i}, column {columns[k]})",
            f"Got {X[i, columns[k]]}",
            "Clip it, or make it NaN where it stands for a missing value",
            row=i,
        )


def _function_leaves(leaves: Paths, functions: LinearLeaves, player_of_column: np.ndarray, n_players: int) -> FunctionLeaves:
    """Return the leaves with a function, with the players of its columns if bits are left."""
    # Zero coefficients do not make a leaf linear, whatever the file lists
    has_terms = np.bincount(functions.node[functions.coefficient[:, 0] != 0.0], minlength=len(functions.offset)) > 0
    chosen = np.flatnonzero((has_terms | (functions.offset[:, 0] != 0.0))[leaves.node])
    leaves = _some_leaves(leaves, chosen)
    some = functions.take(leaves.node)
    node, player = some.node, player_of_column[some.column].astype(np.int64)
    order = np.argsort(node * n_players + player, kind="stable")  # terms by leaf, then by player
    keys, first = np.unique((node * n_players + player)[order], return_index=True)
    owner = np.repeat(np.arange(len(leaves.node)), np.diff(leaves.start))
    on_path = owner * n_players + leaves.player
    # A player needs a bit even where only the function reads its columns: a missing cell there switches the function off
    every = np.union1d(on_path, keys)
    # Without room for all of them, the path's players come first: without their bits no pattern can be known at all
    if np.bincount(every // n_players, minlength=1).max(initial=0) > PATTERN_BITS:
        every = on_path
    if np.bincount(every // n_players, minlength=1).max(initial=0) > PATTERN_BITS:
        raise UnsupportedStructureError(
            f"Linear leaves below splits on more than {PATTERN_BITS} players are not solved",
            do="Join players by groups=, or sample with Explainer(model.predict, background)",
        )
    leaves = _with_players(leaves, every, n_players)
    # Places beyond the end are cut back so that the comparison below may read them
    slot = np.minimum(np.searchsorted(every, keys), max(len(every) - 1, 0))
    # Players that were dropped for want of room get bit 0 (see ``_refuse_gaps``)
    known = every[slot] == keys if len(every) else np.zeros(len(keys), bool)
    place = (slot - leaves.start[keys // n_players]).astype(np.uint64)
    bit = np.where(known, np.uint64(1) << np.where(known, place, 0).astype(np.uint64), np.uint64(0))
    parts = kernels.LeafParts(
        part_start=offsets_of(np.bincount(keys // n_players, minlength=len(leaves.node))),
        player=(keys % n_players).astype(np.int32),
        bit=bit.astype(np.uint64),
        term_start=np.append(first, len(order)).astype(np.int64),
        column=some.column[order],
        coefficient=np.ascontiguousarray(some.coefficient[order, 0]),
        offset=np.ascontiguousarray(some.offset[:, 0]),
    )
    return FunctionLeaves(leaves, parts)


def _with_players(leaves: Paths, keys: np.ndarray, n_players: int) -> Paths:
    """Return the leaves with the players of ``keys`` (leaf * n_players + player, ascending), those of their paths among them."""
    n_edges = np.diff(leaves.edge_start)
    owner = np.repeat(np.arange(len(leaves.node)), n_edges)
    # Edges name their player by its slot in the leaf: slots move as players come in between
    player = leaves.player[np.repeat(leaves.start[:-1], n_edges) + leaves.edge_slot]
    start = offsets_of(np.bincount(keys // n_players, minlength=len(leaves.node)))
    slot = np.searchsorted(keys, owner * n_players + player) - start[owner]
    # Ratios are of covers, which linear leaves never use
    return leaves._replace(
        start=start, player=(keys % n_players).astype(np.int32), ratio=np.zeros(len(keys)), edge_slot=slot.astype(np.int32)
    )


def _some_leaves(leaves: Paths, chosen: np.ndarray) -> Paths:
    """Return some of the leaves; those of a tree stay together."""
    start, slots = taken(leaves.start, chosen)
    edge_start, edges = taken(leaves.edge_start, chosen)
    return Paths(
        node=leaves.node[chosen],
        start=start,
        player=leaves.player[slots],
        ratio=leaves.ratio[slots],
        edge_start=edge_start,
        edge_node=leaves.edge_node[edges],
        edge_left=leaves.edge_left[edges],
        edge_slot=leaves.edge_slot[edges],
    )


def _some_parts(parts: kernels.LeafParts, chosen: np.ndarray) -> kernels.LeafParts:
    """Return the parts of some of the leaves."""
    part_start, of = taken(parts.part_start, chosen)
    term_start, terms = taken(parts.term_start, of)
    return kernels.LeafParts(
        part_start=part_start,
        player=parts.player[of],
        bit=parts.bit[of],
        term_start=term_start,
        column=parts.column[terms],
        coefficient=parts.coefficient[terms],
        offset=parts.offset[chosen],
    )
