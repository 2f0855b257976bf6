"""Lay out tables: everything about them that depends only on trees and players."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap.solvers.trees import _kernels as kernels
from exactshap.trees import FlatTrees
from exactshap.trees.ensemble import Paths, offsets_of, parents

# Registers of sums: where players are many, few of them are in one group.
MAX_REGISTERS = 4
# Codes are uint16, and a table of more than 32768 codes is not filled often enough to pay.
MAX_BITS = 15
# How many rows a kept table is expected to serve.
NOMINAL_ROWS = 2000.0
# A step of the transform of a leaf's cell, in look-ups.
LEAF_CELL_COST = 0.6


@dataclass(frozen=True, eq=False)
class TableForecast:
    """Forecast each tree's cost by tables, in look-ups and in bytes.

    A look-up takes half a nanosecond.

    ``is_root`` (n_nodes,) marks the groups; ``fits`` (n_trees,) is False where some path has more than ``MAX_BITS`` players.
    """

    is_root: np.ndarray
    fits: np.ndarray
    look_ups: np.ndarray  # of one row
    filling: np.ndarray  # once, for all rows
    table_bytes: np.ndarray
    background_bytes: np.ndarray

    def cost(self, n_rows: float) -> np.ndarray:
        """Return the cost of one row of ``n_rows`` that share a filling; infinite where no table fits."""
        return np.where(self.fits, self.look_ups + self.filling / n_rows, np.inf)


def structure(trees: FlatTrees, player_of_column: np.ndarray) -> kernels.Structure:
    """Count what is above and below each node."""
    parent, _ = parents(trees)
    player = np.where(trees.feature >= 0, player_of_column[trees.feature], -1).astype(np.int32)
    counts = tuple(np.empty(trees.n_nodes, np.int32) for _ in range(4))
    kernels.count_below(parent, player, *counts)
    return kernels.Structure(player_of_column, parent, player, *counts)


def _marked(
    trees: FlatTrees, shape: kernels.Structure, max_bits: int, *, leave_out: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the least cost of each node's subtree by tables, the players of groups, and which nodes are roots of groups."""
    cost, n_players, is_root = np.zeros(trees.n_nodes), np.zeros(trees.n_nodes, np.int32), np.zeros(trees.n_nodes, bool)
    # An empty ensemble (a constant model) has no groups to mark
    if trees.n_nodes:
        kernels.mark_groups(shape, trees.left, trees.right, max_bits, NOMINAL_ROWS, leave_out, cost, n_players, is_root)
    return cost, n_players, is_root


def forecast(trees: FlatTrees, shape: kernels.Structure) -> TableForecast:
    """Forecast what tables would cost in each tree."""
    cost, n_players, is_root = _marked(trees, shape, MAX_BITS, leave_out=False)
    sums = np.zeros((4, trees.n_trees))
    kernels.sum_forecast(trees.tree_start, shape, is_root, n_players, LEAF_CELL_COST, sums)
    return TableForecast(
        is_root=is_root,
        fits=np.isfinite(cost[trees.tree_start[:-1]]),
        look_ups=sums[0],
        filling=sums[1],
        table_bytes=8.0 * outputs_of_trees(trees).sum(axis=1) * sums[2],
        background_bytes=8.0 * sums[3],
    )


def outputs_of_trees(trees: FlatTrees) -> np.ndarray:
    """Return which outputs (n_trees, n_outputs) each tree adds to."""
    if not trees.n_trees or trees.n_outputs == 1:
        return np.ones((trees.n_trees, trees.n_outputs), bool)
    # Each tree has at least a root, so that no segment of reduceat is empty
    return np.logical_or.reduceat(trees.value != 0.0, trees.tree_start[:-1])


def products_above(shape: kernels.Structure, factors: np.ndarray) -> np.ndarray:
    """Return for each node the product of the edge factors (n_nodes,) above it; those at roots do not count."""
    out = np.ones(len(factors))
    kernels.multiply_down(shape.parent, factors, out)
    return out


def sum_by_tree(trees: FlatTrees, of_nodes: np.ndarray) -> np.ndarray:
    """Return the sums of a quantity over the nodes of each tree."""
    # As above: every tree owns nodes, which reduceat needs
    return np.add.reduceat(of_nodes, trees.tree_start[:-1]) if trees.n_trees else np.zeros(0)


def small_groups(trees: FlatTrees, shape: kernels.Structure, max_bits: int) -> np.ndarray:
    """Return the roots of groups of at most ``max_bits`` bits; leaves below splits on more players are in none."""
    return np.flatnonzero(_marked(trees, shape, max_bits, leave_out=True)[2])


def cut(trees: FlatTrees, shape: kernels.Structure, root: np.ndarray, node: np.ndarray, value: np.ndarray) -> kernels.Groups:
    """Return the groups below ``root``, with leaves by their place in ``node``, -1 where they have none."""
    leaf_start, condition_start = offsets_of(shape.leaves[root]), offsets_of(shape.depth[root] + shape.internal[root])
    groups = kernels.Groups(
        root=root.astype(np.int64),
        tree=(np.searchsorted(trees.tree_start, root, side="right") - 1).astype(np.int64),
        n_above=shape.depth[root].astype(np.int64),
        n_bits=np.zeros(len(root), np.int64),
        leaf_start=leaf_start,
        leaf=np.empty(leaf_start[-1], np.int64),
        condition_start=condition_start,
        condition_node=np.empty(condition_start[-1], np.int64),
        condition_left=np.empty(condition_start[-1], bool),
        condition_bit=np.empty(condition_start[-1], np.int16),
        first_output=np.empty(len(root), np.int64),
        last_output=np.empty(len(root), np.int64),
    )
    leaf_of_node = np.full(trees.n_nodes, -1, np.int64)
    leaf_of_node[node] = np.arange(len(node))
    kernels.fill_groups(groups, shape, trees.left, trees.right, leaf_of_node, value)
    return groups


def lay_rows(groups: kernels.Groups, leaves: Paths, n_players: int, order: int, n_outputs: int) -> kernels.TableRows:
    """Lay the table rows of all groups for sets of 1..order players."""
    binomials, offsets = binomials_and_offsets(n_players, order)
    column_start = np.zeros(len(groups.root) + 1, np.int64)
    common = (groups, leaves, order, binomials, offsets, n_outputs)
    # The first pass counts the columns of each group, the second writes them
    kernels.fill_columns(*common, False, column_start, np.empty(0, np.int64))
    column_start = np.cumsum(column_start)
    columns = np.empty(column_start[-1], np.int64)
    kernels.fill_columns(*common, True, column_start, columns)
    table_start = offsets_of(np.diff(column_start) << groups.n_bits)
    group = np.repeat(np.arange(len(groups.root)), np.diff(column_start))
    # Ascending within a group, as :class:`TableRows` promises
    columns = columns[np.lexsort((columns, group))]
    # All sets and v(D) of each output, and the scale, in registers of eight numbers
    n_registers = -(-((offsets[-1] + 1) * n_outputs + 1) // 8)
    masks = np.zeros((len(groups.root), n_registers if n_registers <= MAX_REGISTERS else 0), np.uint8)
    if masks.size:
        np.bitwise_or.at(masks, (group, columns // 8), (1 << columns % 8).astype(np.uint8))
    return kernels.TableRows(column_start, columns, table_start, masks, binomials, offsets)


def smallest_first(needed: np.ndarray, wanted: np.ndarray, limit: float) -> np.ndarray:
    """Return which of the wanted ones fit into ``limit`` bytes, the smallest first."""
    order = np.argsort(np.where(wanted, needed, np.inf), kind="stable")
    fits = np.zeros(len(needed), bool)
    fits[order] = np.cumsum(np.where(wanted, needed, 0.0)[order]) <= limit
    return fits & wanted


def runs_of(place: np.ndarray, size: float) -> list[tuple[int, int]]:
    """Cut items, each at a place in bytes, into runs of about ``size`` bytes.

    >>> runs_of(np.array([0.0, 3.0, 7.0, 12.0]), 6.0)
    [(0, 2), (2, 3), (3, 4)]
    """
    # An item belongs to one run as a whole
    firsts = [0, *(np.flatnonzero(np.diff(place // size)) + 1).tolist()]
    return list(zip(firsts, [*firsts[1:], len(place)], strict=True)) if len(place) else []


def routes_of(trees: FlatTrees, groups: kernels.Groups) -> kernels.Routes:
    """Return the splits above groups, and each tree's splits and groups."""
    n_conditions = np.diff(groups.condition_start)
    place = np.arange(len(groups.condition_node)) - np.repeat(groups.condition_start[:-1], n_conditions)
    # A group lists the conditions above its root first
    above = place < np.repeat(groups.n_above, n_conditions)
    bit = np.zeros(trees.n_nodes, np.int16)
    bit[groups.condition_node[above]] = groups.condition_bit[above]
    split, inside = np.unique(groups.condition_node[above]), groups.condition_node[~above]
    split_start = np.searchsorted(split, trees.tree_start)
    walk = np.concatenate([split, inside])
    walk = walk[np.argsort(np.searchsorted(trees.tree_start, walk, side="right"), kind="stable")]
    return kernels.Routes(
        group_start=np.searchsorted(groups.tree, np.arange(trees.n_trees + 1)),
        split_start=split_start,
        split=split.astype(np.int32),
        bit=bit[split],
        walk_start=split_start + np.searchsorted(np.sort(inside), trees.tree_start),
        inside_start=offsets_of(n_conditions - groups.n_above),
        walk_feature=trees.feature[walk],
        walk_threshold=trees.threshold[walk],
        n_features=trees.n_features,
        is_plain=bool(np.all(trees.nodes.category_start < 0) and not np.any(trees.nodes.zero_is_missing)),
        single_precision=trees.single_precision,
    )


def binomials_and_offsets(n_players: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return C(i, k), and where the sets of each size start. i <= n_players and k <= order."""
    table = np.zeros((n_players + 1, order + 1), np.int64)
    table[:, 0] = 1
    for i in range(1, n_players + 1):
        # Pascal's triangle, a row at a time: C(i, k) = C(i-1, k) + C(i-1, k-1)
        table[i, 1:] = table[i - 1, 1:] + table[i - 1, :-1]
    return table, np.concatenate([[0, 0], np.cumsum(table[n_players, 1:])]).astype(np.int64)
