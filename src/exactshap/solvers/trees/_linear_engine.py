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
from exactshap._runtime.cache import BoundedCache, copied_state
from exactshap.errors import InputError, UnsupportedStructureError, message
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, set_sizes
from exactshap.solvers.trees._kernels import (
    LeafParts,
    Leaves,
    LinearTables,
    Patterns,
    fill_leaf_sets,
    fill_linear_tables,
    fill_patterns,
    forest_of,
    sweep_linear_leaves,
    sweep_linear_sets,
    sweep_linear_tables,
)
from exactshap.solvers.trees._layout import binomials_and_offsets, sorted_leaves
from exactshap.solvers.trees._sums import whole_weights
from exactshap.solvers.trees._table_engine import path_weights
from exactshap.trees import FlatTrees, apply, paths
from exactshap.trees.ensemble import LinearLeaves, add_leaf_functions, offsets_of, taken

# Players of a leaf: bits of a word.
PATTERN_BITS = 64
# Bytes of patterns at a time where they are too large to be kept.
CHUNK_BYTES = 2**26
# Sets of players of a leaf: beyond, a row would take seconds.
MAX_SETS = 2.0**20
# Players of a leaf that is tabulated, and bytes of all tables: 1,000 rows of 100 LightGBM trees of 15 to 63 leaves take a half to a
# fifth of the time of patterns, whatever the background; one row the same.
MAX_TABLE_PLAYERS, TABLE_BYTES = 10, 2.0**28
# Patterns of the background at a leaf, at most, below which a table would not be faster.
MIN_PATTERNS = 4
# Numbers that are added up at a time, as in linear_tables.cpp.
LANES = 4
# A part or a player of a pattern, in numbers of a table's cell (1 ns and 0.3 ns).
PATTERN_STEPS = 3.0


@dataclass(frozen=True, eq=False)
class FunctionLeaves:
    """Hold the leaves with a function in one output, with its parts by player; ``functions`` are those of all nodes."""

    leaves: Leaves
    parts: LeafParts

    def take(self, chosen: np.ndarray) -> FunctionLeaves:
        """Return some of the leaves, in ascending order."""
        if len(chosen) == len(self.leaves.node):
            return self
        return FunctionLeaves(_some_leaves(self.leaves, chosen), _some_parts(self.parts, chosen))

    def sets(self, order: int) -> np.ndarray:
        """Return how many sets of up to ``order`` players each leaf has."""
        players = np.diff(self.leaves.start)
        return np.asarray(np.sum([binom(players, size) for size in set_sizes(order)], axis=0))

    def table_sizes(self, order: int) -> np.ndarray:
        """Return the numbers of each leaf's table for sets of up to ``order`` players."""
        # 2^m cells, one for each set of players that a row can satisfy;
        # exponents are capped, as wide leaves are never tabulated
        width = (1.0 + np.diff(self.parts.part_start)) * LANES * np.ceil(self.sets(order) / LANES) + 2.0
        return width * np.exp2(np.minimum(np.diff(self.leaves.start), 60.0))

    @functools.cached_property
    def has_bits(self) -> np.ndarray:
        """Say whether all parts of each leaf have bits, (n_leaves,)."""
        # Differences of running counts, as ``np.add.reduceat`` answers wrongly for leaves without parts
        without = np.concatenate([[0], np.cumsum(self.parts.bit == 0)])
        return np.diff(without[self.parts.part_start]) == 0

    @functools.cached_property
    def pattern_bytes(self) -> np.ndarray:
        """Return the bytes of a pattern of each leaf."""
        return 8.0 * (3.0 + np.diff(self.parts.part_start))

    def bounds(self, n_background: int) -> np.ndarray:
        """Return the largest number of patterns of each leaf."""
        return np.minimum(np.exp2(np.minimum(np.diff(self.leaves.start), 60.0)), n_background)


@dataclass(frozen=True, eq=False)
class LinearEngine:
    """Solve linear functions of leaves by patterns of background rows, kept if they fit ``limit`` bytes."""

    trees: FlatTrees
    outputs: tuple[FunctionLeaves, ...]
    n_players: int
    background: np.ndarray  # (n_features, n_background)
    weights: np.ndarray
    limit: float
    cache: BoundedCache = field(default_factory=BoundedCache)

    __getstate__ = copied_state

    @classmethod
    def of(
        cls,
        trees: FlatTrees,
        player_of_column: np.ndarray,
        n_players: int,
        background: np.ndarray,
        weights: np.ndarray,
        limit: float,
    ) -> LinearEngine:
        """Return the engine of an ensemble with linear leaves; ``background`` (n_background, n_features) is rounded already."""
        assert trees.linear is not None
        leaves = sorted_leaves(paths(trees, player_of_column))
        # A leaf may have a function in some outputs only: each output drops the leaves that have none there
        some = (trees.linear if trees.n_outputs == 1 else trees.linear.pick(o) for o in range(trees.n_outputs))
        outputs = tuple(_function_leaves(leaves, functions, player_of_column, n_players) for functions in some)
        return cls(trees, outputs, n_players, np.ascontiguousarray(background.T), weights, limit)

    def solve(self, columns: np.ndarray, semivalue: Semivalue, order: int) -> Part:
        """Return the values of the rows in ``columns`` (n_features, n_rows)."""
        self._refuse_gaps(columns)
        n_rows, n_outputs = columns.shape[1], self.trees.n_outputs
        _, offsets = binomials_and_offsets(self.n_players, order)
        values, scale = np.zeros((n_rows, int(offsets[-1]), n_outputs)), np.zeros((n_rows, n_outputs))
        for o in range(n_outputs):
            values[:, :, o], scale[:, o] = self._solve_output(o, columns, semivalue, order)
        full = self._full(columns)
        largest = scale.max(axis=1, initial=0.0)
        return Part(values, np.zeros_like(full), full, self._method, error_bound=np.zeros(n_rows), scale=largest)

    def _solve_output(self, o: int, columns: np.ndarray, semivalue: Semivalue, order: int) -> tuple[np.ndarray, np.ndarray]:
        binomials, offsets = binomials_and_offsets(self.n_players, order)
        values, scale = np.zeros((columns.shape[1], int(offsets[-1]))), np.zeros(columns.shape[1])
        weights = self._weights(o, semivalue, order)
        tabled, others = self._split(o, order)
        if len(tabled.leaves.node):
            tables, cells = self._tables(o, semivalue, order)
            sweep_linear_tables(columns, self._forest, tabled.leaves, tabled.parts, tables, cells, values, scale)
        for given, patterns in self._patterns_of(others, ("patterns", o, order)):
            common = (columns, self._forest, given.leaves, given.parts, patterns)
            if order == 1:
                sweep_linear_leaves(*common, weights[1], values, scale)
            else:
                _refuse_sets(given, order)
                sweep_linear_sets(*common, weights, binomials, offsets, values, scale)
        _, unit = self._whole_weights
        return values * unit, scale * unit

    def _split(self, o: int, order: int) -> tuple[FunctionLeaves, FunctionLeaves]:
        """Return the leaves to solve by tables, the smallest ones up to the limit, and the others."""

        def make() -> tuple[FunctionLeaves, FunctionLeaves]:
            given = self.outputs[o]
            needed = 8.0 * given.table_sizes(order)
            wanted = (np.diff(given.leaves.start) <= MAX_TABLE_PLAYERS) & given.has_bits
            wanted &= given.bounds(len(self.weights)) >= MIN_PATTERNS
            # The smallest tables first, so that the most leaves fit; unwanted leaves come last and need nothing
            by_size = np.argsort(np.where(wanted, needed, np.inf), kind="stable")
            fits = np.zeros(len(needed), bool)
            fits[by_size] = np.cumsum(np.where(wanted, needed, 0.0)[by_size]) <= min(self.limit, TABLE_BYTES) / len(
                self.outputs
            )
            fits &= wanted
            return given.take(np.flatnonzero(fits)), given.take(np.flatnonzero(~fits))

        return self.cache.get_or_make(("split", o, order), make, keep=3 * len(self.outputs))  # type: ignore[no-any-return]

    def _tables(self, o: int, semivalue: Semivalue, order: int) -> tuple[LinearTables, np.ndarray]:
        """Return the tables of an output, filled once for a semivalue."""
        tabled, weights = self._split(o, order)[0], self._weights(o, semivalue, order)
        binomials, offsets = binomials_and_offsets(self.n_players, order)

        def make() -> tuple[LinearTables, np.ndarray]:
            set_start = np.zeros(len(tabled.leaves.node) + 1, np.int64)
            # Two passes: the first counts the sets, the second writes them into arrays of just that size
            fill_leaf_sets(tabled.leaves, order, binomials, offsets, False, set_start, np.zeros(0, np.int64))
            sets = np.zeros(int(set_start[-1]), np.int64)
            fill_leaf_sets(tabled.leaves, order, binomials, offsets, True, set_start, sets)
            table_start = offsets_of(tabled.table_sizes(order).astype(np.int64))
            tables, cells = LinearTables(set_start, sets, table_start), np.zeros(int(table_start[-1]))
            first = 0
            # No key: once the tables are filled, nobody reads these patterns again
            for given, patterns in self._patterns_of(tabled, None):
                n = len(given.leaves.node)
                some = _some_tables(tables, first, first + n)
                fill_linear_tables(
                    given.leaves, given.parts, patterns, weights, some, cells[table_start[first] : table_start[first + n]]
                )
                first += n
            return tables, cells

        key = "tables", o, semivalue, order
        return self.cache.get_or_make(key, make, keep=len(self.outputs))  # type: ignore[no-any-return]

    @property
    def _method(self) -> str:
        return f"linear leaves against {len(self.weights)} background row{'s' if len(self.weights) > 1 else ''}"

    @functools.cached_property
    def _forest(self) -> Handle:
        return Handle(forest_of(self.trees))

    @property
    def _whole_weights(self) -> tuple[np.ndarray, float]:
        return whole_weights(self.weights)

    def _weights(self, o: int, semivalue: Semivalue, order: int) -> np.ndarray:
        largest = int(np.diff(self.outputs[o].leaves.start).max(initial=0)) + 1
        key = "weights", o, semivalue, order
        return self.cache.get_or_make(key, lambda: path_weights(semivalue, order, largest), keep=4)  # type: ignore[no-any-return]

    def _full(self, columns: np.ndarray) -> np.ndarray:
        """Return v(D) of the functions, (n_rows, n_outputs)."""
        X, out = np.ascontiguousarray(columns.T), np.zeros((columns.shape[1], self.trees.n_outputs))
        assert self.trees.linear is not None
        add_leaf_functions(X, apply(self.trees, X), self.trees.linear.arrays, out, np.zeros(0))
        return out

    # --- patterns of the background ------------------------------------------------------------------------------------

    @functools.cached_property
    def held(self) -> float:
        """The bytes that are kept between calls: tables of single players, and the other leaves' patterns where they fit."""
        return sum(self._held(o, 1) for o in range(len(self.outputs)))

    def _held(self, o: int, order: int) -> float:
        tabled, others = self._split(o, order)
        return 8.0 * float(tabled.table_sizes(order).sum()) + self._kept_bytes(others)

    def _kept_bytes(self, given: FunctionLeaves) -> float:
        needed = float(given.pattern_bytes @ given.bounds(len(self.weights)))
        return needed if needed * len(self.outputs) <= self.limit else 0.0

    def _patterns_of(
        self, given: FunctionLeaves, key: tuple[object, ...] | None
    ) -> Iterator[tuple[FunctionLeaves, Handle | Patterns]]:
        """Yield leaves with the background's patterns at them, kept under ``key`` if there is room."""
        n_leaves = len(given.leaves.node)
        if not n_leaves:
            return
        if key is not None and self._kept_bytes(given):
            yield given, self.cache.get_or_make(key, lambda: Handle(self._patterns(given)), keep=2 * len(self.outputs))
            return
        # Whole leaves go into a chunk; the bound on a leaf's patterns stands in for their number, which only a pass would tell
        chunk = np.cumsum(given.pattern_bytes * given.bounds(len(self.weights))) // CHUNK_BYTES
        firsts = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist()]
        for first, last in zip(firsts, [*firsts[1:], n_leaves], strict=True):
            some = given.take(np.arange(first, last))
            yield some, self._patterns(some)

    def _patterns(self, given: FunctionLeaves) -> Patterns:
        n = len(given.leaves.node)
        start, moment_start, none = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(0)
        common = (self.background, self._whole_weights[0], self._forest, given.leaves, given.parts)
        # The first pass counts, the second fills
        fill_patterns(*common, False, Patterns(start, moment_start, np.zeros(0, np.uint64), none, none, none))
        n_patterns = int(start[-1])
        patterns = Patterns(
            start,
            moment_start,
            failed=np.zeros(n_patterns, np.uint64),
            weight=np.zeros(n_patterns),
            size=np.zeros(n_patterns),
            moment=np.zeros(int(moment_start[-1])),
        )
        fill_patterns(*common, True, patterns)
        return patterns

    # --- cost and refusals ---------------------------------------------------------------------------------------------

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes besides the rows that are not held already."""
        of_order = 0.0 if order == 1 else sum(self._held(o, order) for o in range(len(self.outputs)))
        return of_order + 2.0 * CHUNK_BYTES

    def work(self, order: int) -> float:
        """Return the steps of one row: the numbers of its cells, and the parts and players of patterns."""
        steps = 0.0
        for o in range(len(self.outputs)):
            tabled, others = self._split(o, order)
            steps += float((tabled.table_sizes(order) / np.exp2(np.diff(tabled.leaves.start))).sum())
            n_parts = np.diff(others.parts.part_start)
            # Singles share the sums of a pattern over its parts; each larger set has to form its own
            each = n_parts + (others.sets(order) if order == 1 else (n_parts + 1.0) * others.sets(order))
            steps += PATTERN_STEPS * float(each @ others.bounds(len(self.weights)))
        return steps

    def _refuse_gaps(self, columns: np.ndarray) -> None:
        """Refuse missing cells at wide leaves that have no bits for columns off their paths."""
        for given in self.outputs:
            unknown = np.unique(given.parts.column[np.repeat(given.parts.bit == 0, np.diff(given.parts.term_start))])
            for rows in (columns, self.background) if len(unknown) else ():
                if np.isnan(rows[unknown]).any():
                    raise UnsupportedStructureError(
                        message(
                            f"A leaf joins more than {PATTERN_BITS} players, and columns of its function off its path are missing",
                            f"First column {int(unknown[np.isnan(rows[unknown]).any(axis=1)][0])}",
                            "Impute it, join players by groups=, or sample with Explainer(model.predict, background)",
                        )
                    )


def _refuse_sets(given: FunctionLeaves, order: int) -> None:
    n_sets = given.sets(order).max(initial=0.0)
    if not given.has_bits.all() or n_sets > MAX_SETS:
        raise UnsupportedStructureError(
            message(
                f"Interactions of linear leaves that join more than {PATTERN_BITS} players are not solved",
                f"A leaf has {n_sets:.3g} sets of up to {order} players",
                "Ask for order=1, join players by groups=, or sample with Explainer(model.predict, background)",
            )
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
            message(
                f"`{what}` holds an infinite value that leaves multiply (row {i}, column {columns[k]})",
                f"Got {X[i, columns[k]]}",
                "Clip it, or make it NaN where it stands for a missing value",
            ),
            row=i,
        )


def _function_leaves(leaves: Leaves, functions: LinearLeaves, player_of_column: np.ndarray, n_players: int) -> FunctionLeaves:
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
            message(
                f"Linear leaves below splits on more than {PATTERN_BITS} players are not solved",
                do="Join players by groups=, or sample with Explainer(model.predict, background)",
            )
        )
    leaves = _with_players(leaves, every, n_players)
    # Places beyond the end are cut back so that the comparison below may read them
    slot = np.minimum(np.searchsorted(every, keys), max(len(every) - 1, 0))
    # Players that were dropped for want of room get bit 0 (see ``_refuse_gaps``)
    known = every[slot] == keys if len(every) else np.zeros(len(keys), bool)
    place = (slot - leaves.start[keys // n_players]).astype(np.uint64)
    bit = np.where(known, np.uint64(1) << np.where(known, place, 0).astype(np.uint64), np.uint64(0))
    parts = LeafParts(
        part_start=offsets_of(np.bincount(keys // n_players, minlength=len(leaves.node))),
        player=(keys % n_players).astype(np.int32),
        bit=bit.astype(np.uint64),
        term_start=np.append(first, len(order)).astype(np.int64),
        column=some.column[order],
        coefficient=np.ascontiguousarray(some.coefficient[order, 0]),
        offset=np.ascontiguousarray(some.offset[:, 0]),
    )
    return FunctionLeaves(leaves, parts)


def _with_players(leaves: Leaves, keys: np.ndarray, n_players: int) -> Leaves:
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


def _some_leaves(leaves: Leaves, chosen: np.ndarray) -> Leaves:
    """Return some of the leaves, in ascending order."""
    start, slots = taken(leaves.start, chosen)
    edge_start, edges = taken(leaves.edge_start, chosen)
    return Leaves(
        node=leaves.node[chosen],
        start=start,
        player=leaves.player[slots],
        ratio=leaves.ratio[slots],
        edge_start=edge_start,
        edge_node=leaves.edge_node[edges],
        edge_left=leaves.edge_left[edges],
        edge_slot=leaves.edge_slot[edges],
    )


def _some_parts(parts: LeafParts, chosen: np.ndarray) -> LeafParts:
    """Return the parts of some of the leaves, in ascending order."""
    part_start, of = taken(parts.part_start, chosen)
    term_start, terms = taken(parts.term_start, of)
    return LeafParts(
        part_start=part_start,
        player=parts.player[of],
        bit=parts.bit[of],
        term_start=term_start,
        column=parts.column[terms],
        coefficient=parts.coefficient[terms],
        offset=parts.offset[chosen],
    )


def _some_tables(tables: LinearTables, first: int, last: int) -> LinearTables:
    """Return the tables of leaves first to last - 1."""
    set_start, table_start = tables.set_start[first : last + 1], tables.table_start[first : last + 1]
    # Starts count from the first leaf of the cut, as the kernel gets only the cut's cells
    return LinearTables(set_start - set_start[0], tables.sets[set_start[0] : set_start[-1]], table_start - table_start[0])
