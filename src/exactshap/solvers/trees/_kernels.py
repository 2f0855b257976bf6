"""Declare the compiled loops of the tree solvers (``src/native/tree_solver``), and the arrays that they take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel
from exactshap.trees import FlatTrees, Paths
from exactshap.trees.ensemble import NodeArrays


class Forest(NamedTuple):
    """Hold an ensemble as the solvers read it."""

    tree_start: np.ndarray
    nodes: NodeArrays
    value: np.ndarray


def forest_of(trees: FlatTrees) -> Forest:
    """Return the arrays of an ensemble that the solvers read."""
    return Forest(trees.tree_start, trees.nodes, trees.value)


class Structure(NamedTuple):
    """Hold per node: parent, player of its split (-1 at leaves), edges and distinct players above, splits and leaves below."""

    player_of_column: np.ndarray
    parent: np.ndarray
    player: np.ndarray
    depth: np.ndarray
    distinct: np.ndarray
    internal: np.ndarray
    leaves: np.ndarray

    @property
    def n_path_players(self) -> int:
        """Return the largest number of distinct players on one path."""
        return int(self.distinct.max(initial=0))


class LeafParts(NamedTuple):
    """Hold linear functions of leaves by player: each leaf's parts, and each part's terms, in compressed rows."""

    part_start: np.ndarray
    player: np.ndarray
    bit: np.ndarray  # of the player among the leaf's own ones; 0: it has none, and no column of the part may be missing
    term_start: np.ndarray
    column: np.ndarray
    coefficient: np.ndarray
    offset: np.ndarray  # (n_leaves,)


class LinearTables(NamedTuple):
    """List the columns that each group's functions read, and where its cells start."""

    start: np.ndarray
    column: np.ndarray
    table_start: np.ndarray


class Chosen(NamedTuple):
    """Say which rows meet which leaves: leaf l those of ``rows[group[l]]``, all where there are none."""

    group: np.ndarray
    rows: np.ndarray  # bool, (n_groups, n_rows)


class Patterns(NamedTuple):
    """List the sets of players that background rows fail at each leaf. Sums over the rows of each set come with them."""

    start: np.ndarray
    moment_start: np.ndarray
    failed: np.ndarray  # bits of the leaf's players
    weight: np.ndarray
    size: np.ndarray  # of the magnitudes that were added up
    moment: np.ndarray  # of each linear part


class Groups(NamedTuple):
    """Hold subtrees that share one table. A row's code has one bit per player above the subtree and one per split inside."""

    root: np.ndarray
    tree: np.ndarray
    n_above: np.ndarray  # edges above the root
    n_bits: np.ndarray
    leaf_start: np.ndarray
    leaf: np.ndarray
    condition_start: np.ndarray  # a row that fails a condition loses the condition's bit
    condition_node: np.ndarray
    condition_left: np.ndarray
    condition_bit: np.ndarray
    # Outputs in which some leaf of the group is not zero: first:last
    first_output: np.ndarray
    last_output: np.ndarray


class Routes(NamedTuple):
    """Hold where rows go before they meet the groups: the splits above any group, and each tree's splits and groups."""

    group_start: np.ndarray
    split_start: np.ndarray
    split: np.ndarray  # nodes, parents first
    bit: np.ndarray  # of each one's player in the codes of the groups below
    walk_start: np.ndarray  # of all splits of each tree: those above groups, then those inside, group by group
    inside_start: np.ndarray  # of the latter, of each group
    walk_feature: np.ndarray
    walk_threshold: np.ndarray
    n_features: int
    is_plain: bool  # numerical splits only, and zero is a number
    single_precision: bool


class Tables(NamedTuple):
    """Hold an ensemble cut into groups; ``background_table`` is empty for cover ratios."""

    forest: Forest
    groups: Groups
    routes: Routes
    leaves: Paths
    background_start: np.ndarray
    background_table: np.ndarray


class TableRows(NamedTuple):
    """Hold each table row's result column, and each group's first cell."""

    column_start: np.ndarray
    columns: np.ndarray  # of the result, ascending in each group
    table_start: np.ndarray
    # (n_groups, n_registers): the columns as bits, eight to a register; no registers where they would be many
    masks: np.ndarray
    binomials: np.ndarray
    offsets: np.ndarray


class Measure(NamedTuple):
    """Hold a semivalue for single players: its rule (for cover ratios), and p(s) on m players as ``weights[m, s]``."""

    nodes: np.ndarray
    node_weights: np.ndarray
    weights: np.ndarray


class Steps(NamedTuple):
    """List all trees' splits in depth-first order, with what children need. Sides: 0 left, 1 right."""

    tree_start: np.ndarray
    nodes: NodeArrays  # what routing reads, split by split; without children
    level: np.ndarray  # splits above
    is_right: np.ndarray  # whether this split is the right child of the one above
    # Level + 1 of the nearest split above on the same player, 0 if there is none
    above: np.ndarray
    end: np.ndarray  # the split after this one's subtree
    is_leaf: np.ndarray  # (n_splits, 2): whether the child on a side is a leaf
    share: np.ndarray  # (n_splits, 2): cover ratios of the children
    value: np.ndarray  # (n_splits, 2, n_outputs): those of leaf children, 0 for others


class EmptySteps(NamedTuple):
    """Hold what ``fill_steps`` writes: the node of each split, and the arrays of :class:`Steps`."""

    node: np.ndarray
    level: np.ndarray
    is_right: np.ndarray
    above: np.ndarray
    end: np.ndarray
    is_leaf: np.ndarray
    share: np.ndarray
    value: np.ndarray


class SetRule(NamedTuple):
    """Hold the rule for sets of one size, and where the sets of each size start among all."""

    size: int
    nodes: np.ndarray
    weights: np.ndarray
    binomials: np.ndarray
    offsets: np.ndarray


class SetWeights(NamedTuple):
    """Hold p(s) for sets of ``size`` among m players, ``weights[size, m, s]``.

    ``offsets`` are the places among all sets where those of each size start.
    """

    weights: np.ndarray
    binomials: np.ndarray
    offsets: np.ndarray


class Background(NamedTuple):
    """Hold background rows, their weights, p(s), and the columns' players.

    Rows are (n_features, n_background), p(s) on m players is ``weights[m, s]``.

    Leaves of at most ``n_dense`` players are dense, ``n_low`` bits sort the patterns of the others.
    """

    columns: np.ndarray
    weights_of: np.ndarray
    weights: np.ndarray
    player_of: np.ndarray
    n_dense: int
    n_low: int


count_below = kernel("tree_solver.count_below(parent, player, depth, distinct, internal, leaves)")
multiply_down = kernel("tree_solver.multiply_down(parent, factors, out)")
mark_groups = kernel("tree_solver.mark_groups(structure, left, right, max_bits, n_rows, leave_out, cost, n_players, is_root)")
sum_forecast = kernel("tree_solver.sum_forecast(tree_start, structure, is_root, n_players, leaf_cell, out)")
fill_groups = kernel("tree_solver.fill_groups(groups, structure, left, right, leaf_of_node, value)")
fill_columns = kernel(
    "tree_solver.fill_columns(groups, leaves, order, binomials, offsets, n_outputs, write, column_start, columns)"
)
fill_steps = kernel("tree_solver.fill_steps(forest, structure, share_of, out)")
add_failures = kernel("tree_solver.add_failures(columns, forest, leaves, weights, start, out)")
sum_survival = kernel("tree_solver.sum_survival(leaves, start, out)")
fill_tables = kernel("tree_solver.fill_tables(tables, rows, weights, first_group, last_group, out)")
fill_single_tables = kernel("tree_solver.fill_single_tables(tables, rows, measure, first_group, last_group, n_players, out)")
sweep = kernel("tree_solver.sweep(columns, tables, rows, first_group, last_group, cells, out)")
sweep_few_rows = kernel("tree_solver.sweep_few_rows(columns, tables, rows, measure, first_group, last_group, n_players, out)")
sweep_few_sets = kernel("tree_solver.sweep_few_sets(columns, tables, rows, weights, first_group, last_group, out)")
sweep_paths = kernel("tree_solver.sweep_paths(columns, steps, player_of, rule, n_lanes, out, scale)")
sweep_outputs = kernel("tree_solver.sweep_outputs(columns, steps, player_of, rule, n_lanes, out, scale)")
sweep_rows = kernel("tree_solver.sweep_rows(X, steps, player_of, rule, out, scale)")
sweep_path_pairs = kernel(
    "tree_solver.sweep_path_pairs(columns, steps, player_of, rule, n_lanes, out, n_players, singles, scale)"
)
sweep_pairs = kernel("tree_solver.sweep_pairs(X, steps, player_of, rule, out, n_players, singles, scale)")
sweep_leaf_sets = kernel("tree_solver.sweep_leaf_sets(columns, forest, leaves, rule, n_lanes, out)")
walk_singles = kernel("tree_solver.walk_singles(columns, background, background_weights, forest, player, weights, out, scale)")
walk_sets = kernel("tree_solver.walk_sets(columns, background, background_weights, forest, player, weights, out, scale)")
sweep_leaves = kernel("tree_solver.sweep_leaves(columns, steps, background, out, scale)")
fill_patterns = kernel("tree_solver.fill_patterns(columns, weights, forest, leaves, parts, write, out)")
fill_linear_tables = kernel(
    "tree_solver.fill_linear_tables(tables, rows, linear, parts, patterns, weights, first_group, last_group, out)"
)
sweep_linear_tables = kernel("tree_solver.sweep_linear_tables(columns, tables, rows, linear, cells, missing, out, scale)")
sweep_linear_leaves = kernel(
    "tree_solver.sweep_linear_leaves(columns, forest, leaves, parts, patterns, chosen, weights, out, scale)"
)
sweep_linear_sets = kernel(
    "tree_solver.sweep_linear_sets(columns, forest, leaves, parts, patterns, chosen, weights, binomials, offsets, out, scale)"
)
sweep_leaf_rows = kernel("tree_solver.sweep_leaf_rows(X, steps, background, out, scale)")
