r"""Solve trees too deep for kept tables with a background leaf by leaf, from patterns of failed players.

What is possible: a row counts at a leaf against those background rows that fail none of the players it fails itself. Values of
all rows tell which rows have such a background row, so that a method in O((n_rows + n_background)^(2 - c)) for any number of
players per leaf would decide the orthogonal vectors problem in that time, which the strong exponential time hypothesis rules
out. O(n_rows + n_background) per leaf is therefore possible only with a factor exponential in the leaf's players: that is what
dense leaves pay (each pattern adds to all sets that hold it), and what sparse leaves avoid (pairs, but only those that a short prefix leaves over).
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.slices import slices
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part
from exactshap.solvers.trees import _kernels as kernels
from exactshap.solvers.trees._layout import NOMINAL_ROWS, sum_by_tree
from exactshap.solvers.trees._path_engine import VISIT_COST, WalkEngine, leaf_sums, single_leaves, steps_bytes, visit_shares
from exactshap.solvers.trees._sums import ROWS_IN_TURN, pairwise_sum
from exactshap.solvers.trees._table_engine import path_weights
from exactshap.trees import FlatTrees

# A background row at one node that a row reaches with it, in table look-ups (benchmarks/growth.py: 8 ns and 0.5 ns).
ROW_VISIT = 16.0
# Rows at a time: they share the subset sums of the dense leaves.
BLOCK_ROWS = 8192
# Players of a dense leaf: four tables of 512 KiB.
MAX_DENSE = 16
# A set that holds a pattern, in table look-ups (0.5 ns).
PATTERN_COST = 4.0
# A player of a dense leaf for one row, in look-ups.
LOOK_UP_COST = 2.0
# A background row of a sparse leaf for one row, in look-ups: most of them are never looked at.
SCAN_COST = 0.25
# The rest of a sparse leaf for one row, in look-ups.
PAIR_COST = 150.0
LOW_BITS = 8
# Bits of a pattern of players.
PATTERN_BITS = 32


@dataclass(frozen=True, eq=False)
class LeafEngine(WalkEngine):
    """Solve by patterns, leaf by leaf, in linear memory; orders above 1 and paths of over 32 players are walked."""

    called = "leaf by leaf"

    def solve(self, columns: np.ndarray, semivalue: Semivalue, order: int) -> Part:
        if order > 1:
            return super().solve(columns, semivalue, order)
        # The kernel adds background rows one after the other, so that longer backgrounds are cut up
        if len(self.weights) > ROWS_IN_TURN:
            return self._in_blocks(columns, semivalue)
        out = np.zeros((self.trees.n_outputs, self.n_players, columns.shape[1]))
        scale = np.full(columns.shape[1], single_leaves(self.trees) * self.weights.sum())
        weights = path_weights(semivalue, 1, min(self.shape.n_path_players, PATTERN_BITS))[1]
        steps = self.steps
        background = kernels.Background(self.background, self.weights, weights, self.shape.player_of_column, *self._sizes)
        if columns.shape[1] <= self.one_by_one_rows:
            kernels.sweep_leaf_rows(np.ascontiguousarray(columns.T), steps, background, out, scale)
        else:
            self._sweep_blocks(columns, steps, background, out, scale)
        values, scale = np.ascontiguousarray(out.transpose(2, 1, 0)) * self.unit, scale * self.unit
        # Patterns have no room for these leaves: pairs of rows are walked for them alone
        if self.shape.n_path_players > PATTERN_BITS:
            walked = _wide_leaves_only(self).solve(columns, semivalue, 1)
            values, scale = values + walked.values, scale + walked.scale
        full = leaf_sums(self.trees, columns)
        return Part(values, np.zeros_like(full), full, self._method, scale=scale)

    @property
    def _method(self) -> str:
        return f"patterns of {len(self.weights)} background rows, leaf by leaf"

    def _in_blocks(self, columns: np.ndarray, semivalue: Semivalue) -> Part:
        """Add the values of blocks of background rows. Rounding does not grow with their number."""
        blocks = slices(len(self.weights), ROWS_IN_TURN)
        engines = [
            dataclasses.replace(self, background=np.ascontiguousarray(self.background[:, rows]), weights=self.weights[rows])
            for rows in blocks
        ]
        parts = [engine.solve(columns, semivalue, 1) for engine in engines]
        values, scale = pairwise_sum(part.values for part in parts), pairwise_sum(np.asarray(part.scale) for part in parts)
        return dataclasses.replace(parts[0], values=values, scale=scale, method=self._method)

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes besides the rows: the background, the splits in depth-first order, kept, the tables of one leaf."""
        levels, n = float(self.shape.depth.max(initial=0)) + 1.0, len(self.weights)
        patterns = (
            n * 12.0 * levels
            if n_rows <= self.one_by_one_rows
            else n * (9.0 * levels + 12.0) + min(n_rows, BLOCK_ROWS) * 5.0 * levels
        )
        patterns += 32.0 * 2.0 ** self._sizes[0]
        return steps_bytes(self.trees) + patterns

    def work(self, order: int) -> float:
        if order > 1:
            return super().work(order)
        return float(leaf_costs(self.trees, self.shape, len(self.weights)).sum())

    def block_work(self, n_rows: int, order: int) -> float:
        """Return about what a block of rows costs, in table look-ups: :meth:`work` has the patterns of ``NOMINAL_ROWS`` rows in it."""
        if order > 1:
            return n_rows * super().work(order)
        if n_rows <= self.one_by_one_rows:
            return n_rows * self._row_work
        # Patterns are made again for each block: the share for a nominal call goes out, one filling per block comes in
        return n_rows * (self.work(1) - self._pattern_work / NOMINAL_ROWS) + self._pattern_work * -(-n_rows // BLOCK_ROWS)

    @functools.cached_property
    def _row_work(self) -> float:
        """Return the look-ups of a single row: the background rows with which it reaches nodes."""
        return float(ROW_VISIT * len(self.weights) * max(visit_shares(self.trees, self.shape).sum(), 1.0))

    @functools.cached_property
    def _pattern_work(self) -> float:
        """Return the look-ups of all patterns of the background."""
        players = self.shape.distinct[self.trees.feature < 0]
        return float(_pattern_cost(players[players <= self._sizes[0]], len(self.weights)).sum())

    @functools.cached_property
    def one_by_one_rows(self) -> float:
        """Return up to how many rows one at a time is cheaper than tables.

        Each then takes the background rows that it reaches nodes with, instead of all patterns.

        On five forests of 25,000 to 63,000 splits with 50 to 1,000 background rows this is 20 to 230; they break even at 19 to 310.
        """
        # Patterns cost the same for any number of rows; where rows one at a time cost as much is break-even
        return self._pattern_work / self._row_work

    @property
    def _sizes(self) -> tuple[int, int]:
        """Return the most players of a dense leaf, and the sorting bits of others.

        They are the lowest bits, which sort patterns.
        """
        n = len(self.weights)
        return min(most_dense(n), self.shape.n_path_players), min(LOW_BITS, n.bit_length())

    def _sweep_blocks(
        self, columns: np.ndarray, steps: Handle, background: kernels.Background, out: np.ndarray, scale: np.ndarray
    ) -> None:
        given = Handle(background)
        for block in slices(columns.shape[1], BLOCK_ROWS):
            part = np.ascontiguousarray(columns[:, block])
            # The kernel writes contiguous rows, which a slice of ``out`` does not have
            values = np.zeros((*out.shape[:2], part.shape[1]))
            kernels.sweep_leaves(part, steps, given, values, scale[block])
            out[:, :, block] = values


def most_dense(n_background: int) -> int:
    """Return the most players of a dense leaf, by the forecast for ``NOMINAL_ROWS`` rows."""
    m = np.arange(MAX_DENSE + 1.0)
    return int(np.flatnonzero(_dense_cost(m, n_background) <= _sparse_cost(n_background)).max(initial=0))


def _dense_cost(m: np.ndarray, n_background: int) -> np.ndarray:
    """Count 1.5^m sets for each background row, at most 3^m: those with its pattern if it fails half of the players."""
    return _pattern_cost(m, n_background) / NOMINAL_ROWS + LOOK_UP_COST * (m + 2.0)


def _pattern_cost(m: np.ndarray, n_background: int) -> np.ndarray:
    # Such leaves are sparse anyway; powers beyond would overflow
    m = np.minimum(m, 60.0)
    return PATTERN_COST * np.minimum(n_background * 1.5**m, 3.0**m)


def _sparse_cost(n_background: int) -> float:
    return PAIR_COST + SCAN_COST * n_background


def leaf_costs(trees: FlatTrees, shape: kernels.Structure, n_background: int) -> np.ndarray:
    """Return each tree's cost of a row leaf by leaf, in look-ups."""
    m = np.arange(shape.n_path_players + 1.0)
    costs = np.where(m <= most_dense(n_background), _dense_cost(m, n_background), _sparse_cost(n_background))[shape.distinct]
    if shape.n_path_players > PATTERN_BITS:
        walked = VISIT_COST * n_background * visit_shares(trees, shape)
        costs = np.where(shape.distinct > PATTERN_BITS, walked, costs)
    return sum_by_tree(trees, np.where(trees.feature < 0, costs, 0.0))


def _wide_leaves_only(engine: LeafEngine) -> WalkEngine:
    """Return walks of the leaves with more than ``PATTERN_BITS`` players only; others get value 0."""
    trees, shape = engine.trees, engine.shape
    needed = (trees.feature < 0) & (shape.distinct > PATTERN_BITS)
    value = np.where(needed[:, None], trees.value, 0.0)
    # From the bottom up: what is above a needed node is needed
    for depth in range(int(shape.depth.max(initial=0)), 0, -1):
        level = np.flatnonzero((shape.depth == depth) & needed)
        needed[shape.parent[level]] = True
    # Player -1 reads as a leaf, so that walks stop there and add its value, 0
    player = np.where(needed, shape.player, -1).astype(shape.player.dtype)
    trees, shape = dataclasses.replace(trees, value=value), shape._replace(player=player)
    return WalkEngine(trees, shape, engine.n_players, engine.background, engine.weights, engine.unit)
