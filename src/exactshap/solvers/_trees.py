"""Ensembles of trees: exact local values of every semivalue and interaction index, at any depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactshap.errors import InputError, message
from exactshap.games._product import normalised_weights
from exactshap.semivalues import Semivalue
from exactshap.solvers._solution import Solution, player_sets
from exactshap.solvers._tree_deep import PathEngine, WalkEngine, visits
from exactshap.solvers._tree_layout import Layout, Structure, lay_out, structure
from exactshap.solvers._tree_tables import TableEngine, survival_bytes, survive
from exactshap.trees import FlatTrees, cover_shares, margin
from exactshap.trees import prepared as rounded

__all__ = ["PreparedTrees", "prepare_trees", "solve_trees"]

COVER_TABLES = 2.0**28  # bytes of tables beyond which quadrature along the paths is preferred for cover ratios
VISIT = 8.0  # what a visit of a node in a walk costs, in table look-ups (measured: 4 ns and 0.5 ns)


@dataclass(frozen=True, eq=False)
class PreparedTrees:
    """An ensemble bound to its players and its background: everything that does not depend on the rows.

    Attributes
    ----------
    trees : FlatTrees
    n_players : int
    value_function : "path_dependent" or "interventional"
    empty : array of shape (n_outputs,)
        v(empty): the mean prediction over the background or the training rows, in the unit of the margin.
    tables : TableEngine or None
        None where some path has too many players.
    deep : PathEngine or WalkEngine
        What answers without tables.
    """

    trees: FlatTrees
    n_players: int
    value_function: str
    empty: np.ndarray
    tables: TableEngine | None
    deep: PathEngine | WalkEngine

    def engine(self, order: int) -> TableEngine | PathEngine | WalkEngine:
        """Return what will answer a request; it does not depend on the rows, so that their blocking changes no bit."""
        if self.tables is None:
            return self.deep
        if self.value_function == "interventional" or self.tables.rows(order).n_bytes <= self.tables.limit:
            return self.tables
        return self.deep

    def fixed_bytes(self, order: int) -> float:
        """Return the memory besides the rows: the background's tables, and those of a semivalue while they are in use."""
        return self.engine(order).fixed_bytes(order)

    def row_operations(self, order: int) -> float:
        """Return about how many look-ups or multiplications one row costs."""
        return self.engine(order).row_operations(order)


def prepare_trees(
    trees: FlatTrees,
    players: Sequence[Sequence[int]],
    background: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    *,
    memory_limit: float = 2.0**30,
) -> PreparedTrees:
    r"""Work out everything about an ensemble that depends only on its trees, its players and the background.

    .. math:: v(S) = v_0 + \sum_l c_l \prod_{j \in S} a_{lj} \cdot g_l(S), \qquad
              g_l(S) = \prod_{j \notin S} b_{lj} \quad\text{or}\quad \sum_m w_m \prod_{j \notin S} z_{mlj}

    with a and z 1 where the row and the background row satisfy all splits on player j on the path to leaf l, b the product of
    their cover ratios.

    Parameters
    ----------
    trees : FlatTrees
        The ensemble.
    players : sequence of sequences of int
        Columns of each player; every column belongs to exactly one.
    background : array of shape (n_background, n_features), default=None
        Reference rows of the interventional value function (one row: baseline); None means path-dependent.
    weights : array of shape (n_background,), default=None
        Their weights; None means equal ones.
    memory_limit : float, default=2**30
        Bytes that the background's tables may take (beyond, each pair of rows is walked), and those of a semivalue (beyond,
        they are filled again in each call).

    Returns
    -------
    prepared : PreparedTrees
        Immutable and picklable.

    Raises
    ------
    InputError
        If the players do not cover each column once, or the background has other columns or bad weights.

    Notes
    -----
    The background costs O(n_background n_leaves depth) once. Then a row costs one table look-up for each player of each group
    of leaves, whatever the size of the background, where no path has more than 12 players; else see ``_tree_deep``.
    """
    player_of_column = _check_players(trees, players)
    shape = structure(trees, player_of_column)
    layout = lay_out(trees, player_of_column, shape)
    if background is None:
        tables = (
            None
            if layout is None
            else TableEngine(trees, layout, survive(trees, layout, None, None), len(players), COVER_TABLES)
        )
        deep = PathEngine(trees, shape, len(players))
        return PreparedTrees(trees, len(players), "path_dependent", _reach(trees, shape), tables, deep)
    background = _check_background(trees, background)
    weights = normalised_weights(weights, len(background))
    tables = None
    if layout is not None and _tables_pay(trees, shape, layout, len(background), memory_limit):
        tables = TableEngine(trees, layout, survive(trees, layout, background, weights), len(players), memory_limit)
    columns = np.ascontiguousarray(rounded(trees, background).T)
    walk = WalkEngine(trees, shape, len(players), columns, weights)
    return PreparedTrees(trees, len(players), "interventional", weights @ margin(trees, background), tables, walk)


def solve_trees(prepared: PreparedTrees, X: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
    r"""Solve the games of all rows for every set of 1..order players.

    .. math:: \phi_T(x) = \sum_l c_l\, (-1)^{|T \setminus A_l|} \sum_{S \subseteq A_l \setminus T} p_{|T|}(|S|)\,
              \Delta_{T \cap A_l}\, g_l(S), \qquad A_l = \{j : x \text{ satisfies all splits on } j \text{ on the path to } l\}

    Parameters
    ----------
    prepared : PreparedTrees
        From :func:`prepare_trees`.
    X : array of shape (n_rows, n_features)
        Rows to explain, float64 with NaN for missing values.
    semivalue : Semivalue
        Which value.
    order : int
        Sets of 1..order players get a value.

    Returns
    -------
    solution : Solution
        ``values`` (n_rows, n_sets[, n_outputs]) in the unit of the margin; ``method`` says what ran and its memory.

    Raises
    ------
    InputError
        If ``X`` has other columns than the trees.

    Notes
    -----
    Exact up to rounding, a small multiple of ``eps * scale``, plus ``error_bound`` where fewer nodes than the exact number are
    used (paths of some 30 players and more). The same bits however the rows are cut into blocks.
    """
    trees = prepared.trees
    sets = player_sets(prepared.n_players, order)
    columns = np.ascontiguousarray(rounded(trees, _check_rows(trees, X, "X")).T)
    part = prepared.engine(order).solve(columns, semivalue, order)
    empty = np.tile(prepared.empty, (columns.shape[1], 1))
    residual = part.full - empty - part.values.sum(axis=1) if semivalue.is_efficient(order) else None
    single = trees.n_outputs == 1
    return Solution(
        values=part.values[..., 0] if single else part.values,
        sets=sets,
        empty=empty[:, 0] if single else empty,
        full=part.full[:, 0] if single else part.full,
        residual=residual[:, 0] if single and residual is not None else residual,
        method=part.method,
        error_bound=2.0 * part.relative_bound * part.scale,
        scale=part.scale,
    )


def _check_players(trees: FlatTrees, players: Sequence[Sequence[int]]) -> np.ndarray:
    player_of_column = np.full(trees.n_features, -1, np.int32)
    members = [int(j) for columns in players for j in columns]
    if sorted(members) != list(range(trees.n_features)):
        raise InputError(
            message(
                f"`players` must hold each of the {trees.n_features} columns exactly once",
                f"Got {list(map(list, players))!r:.200}",
                "Give each remaining column a player of its own",
            )
        )
    for player, columns in enumerate(players):
        player_of_column[list(columns)] = player
    return player_of_column


def _check_rows(trees: FlatTrees, X: np.ndarray, what: str) -> np.ndarray:
    X = np.asarray(X, float)
    if X.ndim != 2 or X.shape[1] != trees.n_features:
        raise InputError(message(f"`{what}` must have shape (n_rows, {trees.n_features})", f"Got {X.shape}"))
    return X


def _check_background(trees: FlatTrees, background: np.ndarray) -> np.ndarray:
    background = _check_rows(trees, background, "background")
    if not len(background):
        raise InputError(message("`background` must have at least one row", "Got 0", "Pass background=None for cover ratios"))
    return background


def _reach(trees: FlatTrees, shape: Structure) -> np.ndarray:
    """Return v(empty) of cover ratios: the constant plus all leaves, weighted by the shares along their paths."""
    share = cover_shares(trees)
    reach = np.ones(trees.n_nodes)
    for depth in range(1, int(shape.depth.max(initial=0)) + 1):
        level = shape.depth == depth
        reach[level] = reach[shape.parent[level]] * share[level]
    return trees.constant + reach @ trees.value


def _tables_pay(trees: FlatTrees, shape: Structure, layout: Layout, n_background: int, memory_limit: float) -> bool:
    """Say whether look-ups are forecast to be faster than walks, and fit."""
    if survival_bytes(layout) > memory_limit:
        return False
    return layout.look_ups < VISIT * n_background * visits(trees, shape) * trees.n_outputs
