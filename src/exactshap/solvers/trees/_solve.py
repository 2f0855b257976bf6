"""Solve ensembles of trees exactly: every semivalue and interaction index, at any depth."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.cache import copied_state
from exactshap._runtime.machine import Sample, seconds_per_unit
from exactshap.errors import InputError, UnsupportedStructureError, message
from exactshap.games import normalised_weights, player_of_columns
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.core import Cost, Part, Solution, count_sets
from exactshap.solvers.trees._kernels import Structure
from exactshap.solvers.trees._layout import (
    NOMINAL_ROWS,
    TableForecast,
    forecast,
    outputs_of_trees,
    products_above,
    smallest_first,
    structure,
)
from exactshap.solvers.trees._leaf_engine import LeafEngine, leaf_costs
from exactshap.solvers.trees._linear_engine import LinearEngine, check_cells
from exactshap.solvers.trees._path_engine import PathEngine, path_costs
from exactshap.solvers.trees._sums import weighted_mean, whole_weights
from exactshap.solvers.trees._table_engine import CHUNK_BYTES, TableEngine, room_of_tables
from exactshap.trees import FlatTrees, apply, cover_shares, margin, take_trees
from exactshap.trees import prepared as rounded
from exactshap.trees.ensemble import LinearLeaves, complete_forest, offsets_of

# How many rows are expected to share a filling of tables for pairs, which else go by quadrature.
PAIR_ROWS = 400.0
# Tables must make an ensemble twice as fast: their memory is not free.
MIN_ADVANTAGE = 2.0
# How many rows of one call are expected to share tables that cannot be kept.
REFILLED_ROWS = 200.0

# The forest on which engines are timed
DEPTH, N_TREES, N_FEATURES, N_BACKGROUND = 8, 8, 12, 100
# The index that is timed, by order
_INDEX = {1: find("shapley"), 2: find("k-sii")}


@dataclass(frozen=True, eq=False)
class EachOutput:
    """Solve an ensemble output by output."""

    engines: tuple[PathEngine | LeafEngine | LinearEngine, ...]

    def solve(self, columns: np.ndarray, semivalue: Semivalue, order: int) -> Part:
        parts = self._parts(columns, semivalue, order)
        # No output is off by more than the one with the largest sums
        scale, bound = (np.max([getattr(part, name) for part in parts], axis=0) for name in ("scale", "error_bound"))
        values = np.concatenate([part.values for part in parts], axis=2)
        full = np.concatenate([part.full for part in parts], axis=1)
        return Part(values, np.zeros_like(full), full, parts[0].method, error_bound=bound, scale=scale)

    def _parts(self, columns: np.ndarray, semivalue: Semivalue, order: int) -> list[Part]:
        return [engine.solve(columns, semivalue, order) for engine in self.engines]

    def memory(self, n_rows: int, order: int) -> float:
        return sum(engine.memory(n_rows, order) for engine in self.engines)

    def work(self, order: int) -> float:
        return sum(engine.work(order) for engine in self.engines)


class LinearOutputs(EachOutput):
    """Solve linear functions of leaves output by output."""

    engines: tuple[LinearEngine, ...]

    def _parts(self, columns: np.ndarray, semivalue: Semivalue, order: int) -> list[Part]:
        # Outputs differ in the functions of leaves only: rows are routed once
        leaf = apply(self.engines[0].trees, np.ascontiguousarray(columns.T))
        return [engine.solve(columns, semivalue, order, leaf) for engine in self.engines]


Rows = tuple[np.ndarray, np.ndarray, float]  # of the background: columns, weights and their unit
Deep = PathEngine | LeafEngine | EachOutput
Engine = TableEngine | PathEngine | LeafEngine | LinearEngine


def deep_engine(trees: FlatTrees, player_of_column: np.ndarray, n_players: int, rows: Rows | None) -> Deep:
    """Return the engine of trees without tables."""
    outputs = outputs_of_trees(trees)
    # One tree per output and round (boosted classifiers): most of a shared walk would multiply zeros
    if trees.n_outputs > 1 and (outputs.sum(axis=1) <= 1).all():
        # Trees without any value go to output 0, where they add nothing
        owner = outputs.argmax(axis=1)
        # Trees without their other outputs, which are zero: walks then pay for one
        each = (take_trees(trees, np.flatnonzero(owner == o)).pick(o) for o in range(trees.n_outputs))
        return EachOutput(tuple(_one_engine(some, player_of_column, n_players, rows) for some in each))
    return _one_engine(trees, player_of_column, n_players, rows)


def _one_engine(trees: FlatTrees, player_of_column: np.ndarray, n_players: int, rows: Rows | None) -> PathEngine | LeafEngine:
    shape = structure(trees, player_of_column)
    return PathEngine(trees, shape, n_players) if rows is None else LeafEngine(trees, shape, n_players, *rows)


@dataclass(frozen=True, eq=False)
class PreparedTrees:
    """Hold an ensemble with its players and background: everything that does not depend on the rows."""

    trees: FlatTrees
    player_of_column: np.ndarray
    n_players: int
    # (n_outputs,): v(empty): the mean prediction over the background or the training rows, in the unit of the margin
    empty: np.ndarray
    rows: Rows | None  # of the background; None: cover ratios
    tables: TableEngine | None  # the trees for which look-ups are the fastest; None if there are none
    rest: Deep | None  # the other trees; None if there are none, or no tables
    linear: LinearOutputs | None = None  # the linear functions of leaves, which the others leave out

    def __getstate__(self) -> dict[str, Any]:
        # Large, and follows from the rest: a copy makes its own
        return {name: part for name, part in copied_state(self).items() if name != "deep"}

    @functools.cached_property
    def deep(self) -> Deep:
        """Return the engine of all trees, without tables."""
        return deep_engine(self.trees, self.player_of_column, self.n_players, self.rows)

    def engines(self, order: int) -> tuple[TableEngine | Deep, ...]:
        """Return the engines of a request. They do not depend on the rows, so that blocks change no bit."""
        # Quadrature is the other way for cover ratios; with a background it would be walks, one for each pair of rows
        if self.tables is None or (order > 1 and self.rows is None and not self._tables_pay(self.tables, order)):
            engines: tuple[TableEngine | Deep | None, ...] = (self.deep, self.linear)
        else:
            engines = (self.tables, self.rest, self.linear)
        return tuple(engine for engine in engines if engine is not None)

    def _tables_pay(self, tables: TableEngine, order: int) -> bool:
        """Say whether tables of cover ratios for sets of players are worth filling."""
        # Rather than be filled again in each call, they give way to quadrature
        if not tables.of_order(order).is_kept:
            return False
        return order > 2 or tables.row_cost(order, PAIR_ROWS) < self._pair_cost

    @functools.cached_property
    def _pair_cost(self) -> float:
        return self.deep.work(2)

    def cost(self, n_rows: int, n_blocks: int, order: int) -> Cost:
        """Return the cost of some rows, beyond what is held already."""
        every: list[Engine] = []
        for engine in self.engines(order):
            every += engine.engines if isinstance(engine, EachOutput) else [engine]
        costs = [engine_cost(engine, n_rows, n_blocks, order) for engine in every]
        # Each way once, however many outputs are solved by it
        return replace(sum(costs, Cost()), method="; ".join(dict.fromkeys(cost.method for cost in costs)))

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes besides the rows: the background's tables, and those of a semivalue while they are in use."""
        return self.held + sum(engine.memory(n_rows, order) for engine in self.engines(order))

    @property
    def held(self) -> float:
        """The bytes that are held before any row comes: the background's tables."""
        linear = 0.0 if self.linear is None else sum(engine.held for engine in self.linear.engines)
        return linear + (0.0 if self.tables is None else self.tables.held)


def prepare_trees(
    trees: FlatTrees,
    players: Sequence[Sequence[int]],
    background: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    *,
    memory_limit: float = 2.0**30,
) -> PreparedTrees:
    r"""Prepare an ensemble for any rows: everything that depends only on trees, players and background.

    .. math:: v(S) = v_0 + \sum_l c_l \prod_{j \in S} a_{lj} \cdot g_l(S), \qquad
              g_l(S) = \prod_{j \notin S} b_{lj} \quad\text{or}\quad \sum_m w_m \prod_{j \notin S} z_{mlj}

    with a and z 1 where the row and the background row satisfy all splits on player j on the path to leaf l, b the product of
    their cover ratios.

    ``players`` have the columns of each, every column once. ``background`` (n_background, n_features) and its ``weights`` make the
    interventional value function (one row: baseline), None the path-dependent one. ``memory_limit`` are the bytes that the background's
    tables may take (beyond, each call counts the background again, leaf by leaf), and those of a semivalue (beyond, they are filled
    again in each call; of cover ratios, quadrature takes their place).

    The background costs O(n_background n_leaves depth) once. Then a row costs one table look-up for each player of each group
    of leaves, whatever the size of the background. Trees with paths of more than 15 players, and those for which it is forecast
    to be faster, are answered without kept tables (``_path_engine``, ``_leaf_engine``): memory is then linear in the trees
    at any depth. With a background, leaves of up to about 15 players then cost O(n_background + n_rows), larger ones only the
    pairs of rows that a short prefix of their path leaves over.
    """
    members = [int(j) for columns in players for j in columns]
    if sorted(members) != list(range(trees.n_features)):
        raise InputError(
            f"`players` must hold each of the {trees.n_features} columns exactly once",
            f"Got {list(map(list, players))!r:.200}",
            "Give each remaining column a player of its own",
        )
    player_of_column, n_players = player_of_columns(players, trees.n_features), len(players)
    shape = structure(trees, player_of_column)
    # Constant values and linear functions are two games that add up, so each goes to its own engine
    if trees.linear is not None:
        return _with_linear_leaves(trees, shape, players, background, weights, memory_limit)
    rows: Rows | None = None
    if background is None:
        # v(empty): the constant plus all leaves, weighted by the shares along their paths
        empty = trees.constant + products_above(shape, cover_shares(trees)) @ trees.value
        other_costs = path_costs(trees, shape)
    else:
        background = _check_background(trees, background)
        weights = normalised_weights(weights, len(background))
        empty = weighted_mean(margin(trees, background), weights)
        other_costs = leaf_costs(trees, shape, len(background))
        rows = np.ascontiguousarray(rounded(trees, background).T), *whole_weights(weights)
    room = room_of_tables(memory_limit)
    by_tables = choose_trees(forecast(trees, shape), other_costs, room, may_refill=background is not None)
    tables, rest = None, None
    if by_tables.any():
        some = take_trees(trees, np.flatnonzero(by_tables))
        tables = TableEngine.of(some, player_of_column, n_players, background, weights, memory_limit)
        if not by_tables.all():
            rest = deep_engine(take_trees(trees, np.flatnonzero(~by_tables)), player_of_column, n_players, rows)
    return PreparedTrees(trees, player_of_column, n_players, empty, rows, tables, rest)


def _with_linear_leaves(
    trees: FlatTrees,
    shape: Structure,
    players: Sequence[Sequence[int]],
    background: np.ndarray | None,
    weights: np.ndarray | None,
    memory_limit: float,
) -> PreparedTrees:
    """Prepare the constant values of the leaves as usual, and their linear functions separately."""
    if background is None:
        raise UnsupportedStructureError(no_path_dependent("These trees"))
    background = _check_background(trees, background)
    check_cells(trees, background, "background")
    weights = normalised_weights(weights, len(background))
    # The background stands for absent columns in both parts, with the same weights
    constant = prepare_trees(replace(trees, linear=None), players, background, weights, memory_limit=memory_limit)
    engines = LinearEngine.of_outputs(trees, shape, len(players), rounded(trees, background), weights, memory_limit)
    return replace(constant, empty=weighted_mean(margin(trees, background), weights), linear=LinearOutputs(engines))


def no_path_dependent(name: str) -> str:
    """Return why linear leaves have no path-dependent game, and what to do."""
    return message(
        f"{name} have linear functions in leaves: cover ratios do not say what an absent column's value is there",
        "Model files keep no means of the training rows of a leaf",
        "Pass background=X_reference for the interventional value function",
    )


def solve_trees(prepared: PreparedTrees, X: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
    r"""Solve the games of all rows for every set of 1..order players.

    .. math:: \phi_T(x) = \sum_l c_l\, (-1)^{|T \setminus A_l|} \sum_{S \subseteq A_l \setminus T} p_{|T|}(|S|)\,
              \Delta_{T \cap A_l}\, g_l(S), \qquad A_l = \{j : x \text{ satisfies all splits on } j \text{ on the path to } l\}

    for rows ``X`` (n_rows, n_features) of float64 with NaN for missing values.

    Exact up to rounding, a small multiple of ``eps * scale``, plus ``error_bound`` where fewer nodes than the exact number are
    used (paths of some 30 players and more). The same bits however the rows are cut into blocks.
    """
    trees = prepared.trees
    if order != 1:
        count_sets(prepared.n_players, order)  # refuses what cannot fit
    X, engines = _check_rows(trees, X, "X"), prepared.engines(order)
    if prepared.linear is not None:
        check_cells(prepared.linear.engines[0].trees, X, "X")
    if engines != (prepared.tables,):  # which round rows themselves
        X = rounded(trees, X)
    columns = np.ascontiguousarray(X.T)
    first, *rest = (engine.solve(columns, semivalue, order) for engine in engines)
    # A game that is a sum of games has the sum of their values: semivalues are linear
    part = sum(rest, start=first)
    return part.finish(
        prepared.n_players,
        semivalue,
        order,
        constant=trees.constant,
        empty=prepared.empty,
        single_output=part.values.shape[2] == 1,
    )


def _check_rows(trees: FlatTrees, X: np.ndarray, what: str) -> np.ndarray:
    X = np.asarray(X, float)
    if X.ndim != 2 or X.shape[1] != trees.n_features:
        raise InputError(f"`{what}` must have shape (n_rows, {trees.n_features})", f"Got {X.shape}")
    return X


def _check_background(trees: FlatTrees, background: np.ndarray) -> np.ndarray:
    background = _check_rows(trees, background, "background")
    if not len(background):
        raise InputError("`background` must have at least one row", "Got 0", "Pass background=None for cover ratios")
    return background


def choose_trees(tables: TableForecast, other_costs: np.ndarray, limit: float, *, may_refill: bool) -> np.ndarray:
    """Return which trees to solve by tables: those for which that is cheaper, the smallest first, up to ``limit`` bytes.

    Where not all of them fit, tables that are filled again for each call may be cheaper in total. There are no tables at all
    unless the ensemble becomes ``MIN_ADVANTAGE`` times as fast.
    """
    background = tables.background_bytes if may_refill else np.zeros(len(other_costs))
    choices = [np.zeros(len(other_costs), bool)]
    # No tables at all, made to look cheaper so that tables must beat them clearly
    totals = [other_costs.sum() / MIN_ADVANTAGE]
    # Refilled tables take no memory between calls, but fewer rows share a filling
    in_use = min(float(tables.table_bytes.sum()), 2.0 * CHUNK_BYTES)
    options = [(NOMINAL_ROWS, tables.table_bytes + background, limit)]
    options += [(REFILLED_ROWS, background, limit - in_use)] * may_refill
    for n_rows, needed, room in options:
        costs = tables.cost(n_rows)
        chosen = smallest_first(needed, costs < other_costs, room)
        choices.append(chosen)
        totals.append(np.where(chosen, costs, other_costs).sum())
    return choices[int(np.argmin(totals))]


def engine_cost(engine: Engine, n_rows: int, n_blocks: int, order: int) -> Cost:
    """Return the cost of some rows, solved in blocks: what is kept between calls is counted once.

    What a kernel reads of the trees is made here and kept, so that it is not part of the cost.
    """
    seconds_of = functools.partial(_seconds, type(engine), order=min(order, 2))
    if isinstance(engine, TableEngine):
        _ = engine.packed
        filled, look_ups, one_row = engine.work(order)
        if n_rows <= n_blocks * engine.one_by_one_rows(order):
            return Cost(n_rows * one_row * seconds_of("row"), method="tables")
        fillings = 1 if engine.of_order(order).is_kept else n_blocks
        seconds = fillings * filled * seconds_of("filling") + n_rows * look_ups * seconds_of("rows")
        return Cost(seconds, engine.memory(n_rows, order), method="tables")
    if not isinstance(engine, LinearEngine):
        _ = engine.steps
    # The block decides between one by one and together, not the number of all rows
    rows = max(1, -(-n_rows // n_blocks))
    seconds = n_rows / rows * engine.block_work(rows, order)
    seconds *= seconds_of("row" if rows <= engine.one_by_one_rows else "rows")
    return Cost(seconds, engine.memory(n_rows // n_blocks, order), method=engine.called)


def _seconds(kind: type, what: str, order: int) -> float:
    """Return the seconds of one unit of work."""
    n_rows = {"row": 1, "filling": 0, "rows": 2000 if kind is TableEngine else 256}[what]

    def sample() -> Sample:
        engine, columns, semivalue = _engine(kind), _columns(n_rows), _INDEX[order]
        if not isinstance(engine, TableEngine):
            return engine.block_work(n_rows, order), lambda: engine.solve(columns, semivalue, order)
        filled, look_ups, one_row = engine.work(order)
        if what == "filling":
            tables = engine.of_order(order)
            return filled, lambda: engine.fill(tables, semivalue, order, 0, len(engine.tables.groups.root))
        if what == "rows":
            # The first call pays for the tables, which the figure of a row must not hold
            engine.solve(columns, semivalue, order)
            return look_ups * n_rows, lambda: engine.solve(columns, semivalue, order)

        def run() -> None:
            # Cell by cell, as for the first row of all
            engine.answered[0] = 0
            engine.solve(columns, semivalue, order)

        return one_row, run

    return seconds_per_unit(f"trees: {kind.__name__}, {what}, order {order}", sample)


def _columns(n_rows: int) -> np.ndarray:
    return np.ascontiguousarray(np.random.default_rng(1).normal(size=(N_FEATURES, n_rows)))


@functools.cache
def _engine(kind: type) -> Any:
    """Return an engine that solves the small forest."""
    trees = complete_forest(DEPTH, N_TREES, N_FEATURES)
    players = np.arange(N_FEATURES, dtype=np.int32)
    shape = structure(trees, players)
    background, weights = _columns(N_BACKGROUND), np.full(N_BACKGROUND, 1.0 / N_BACKGROUND)
    if kind is PathEngine:
        return PathEngine(trees, shape, N_FEATURES)
    if kind is LinearEngine:
        terms = offsets_of(trees.feature < 0)
        columns = (np.arange(terms[-1]) % N_FEATURES).astype(np.int32)
        functions = LinearLeaves(terms, columns, np.ones((terms[-1], 1)), np.zeros((trees.n_nodes, 1)))
        trees = replace(trees, linear=functions)
        return LinearEngine.of_outputs(trees, shape, N_FEATURES, background.T, weights, 2.0**30)[0]
    if kind is LeafEngine:
        return LeafEngine(trees, shape, N_FEATURES, background, *whole_weights(weights))
    return TableEngine.of(trees, players, N_FEATURES, background.T, weights, 2.0**30)
