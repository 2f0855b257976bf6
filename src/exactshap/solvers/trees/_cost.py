"""What trees cost: the work that each engine counts, times what it takes this machine on a small forest."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.calibration import Sample, seconds_per_unit
from exactshap.semivalues import find
from exactshap.solvers.core import Cost
from exactshap.solvers.trees._layout import lay_out, structure
from exactshap.solvers.trees._leaf_engine import LeafEngine
from exactshap.solvers.trees._linear_engine import LinearEngine
from exactshap.solvers.trees._path_engine import ONE_BY_ONE_ROWS, PathEngine
from exactshap.solvers.trees._sums import whole_weights
from exactshap.solvers.trees._table_engine import TableEngine, tabulate_background
from exactshap.trees.ensemble import LinearLeaves, complete_forest

__all__ = ["Engine", "engine_cost"]

DEPTH, N_TREES, N_FEATURES, N_BACKGROUND = 8, 8, 12, 100
_INDEX = {1: find("shapley"), 2: find("k-sii")}


Engine = TableEngine | PathEngine | LeafEngine | LinearEngine


def engine_cost(engine: Engine, n_rows: int, n_blocks: int, order: int) -> Cost:
    """Return the cost of some rows, solved in blocks: what is kept between calls is counted once."""
    if isinstance(engine, TableEngine):
        return _table_cost(engine, n_rows, n_blocks, order)
    if isinstance(engine, LinearEngine):
        seconds = n_rows * engine.work(order) * _seconds(LinearEngine, "rows", min(order, 2))
        return Cost(seconds, engine.memory(n_rows // n_blocks, order), True, "linear leaves")
    one_by_one = n_rows <= n_blocks * (ONE_BY_ONE_ROWS if isinstance(engine, PathEngine) else engine.one_by_one_rows)
    seconds = n_rows * engine.work(order) * _seconds(type(engine), "row" if one_by_one else "rows", min(order, 2))
    method = "quadrature along the paths" if isinstance(engine, PathEngine) else "leaf by leaf"
    return Cost(seconds, engine.memory(n_rows // n_blocks, order), True, method)


def _table_cost(engine: TableEngine, n_rows: int, n_blocks: int, order: int) -> Cost:
    filled, look_ups, one_row = engine.work(order)
    one_by_one = order == 1 and n_rows <= n_blocks * engine.one_by_one_rows
    if one_by_one:
        seconds = n_rows * one_row * _seconds(TableEngine, "row", 1)
    else:
        fillings = 1 if engine.of_order(order).is_kept else n_blocks
        seconds = fillings * filled * _seconds(TableEngine, "filling", min(order, 2))
        seconds += n_rows * look_ups * _seconds(TableEngine, "rows", min(order, 2))
    return Cost(seconds, 0.0 if one_by_one else engine.memory(n_rows, order), True, "tables")


def _seconds(kind: type, what: str, order: int) -> float:
    """Return the seconds of one unit of work."""
    n_rows = {"row": 1, "filling": 0, "rows": 2000 if kind is TableEngine else 256}[what]

    def sample() -> Sample:
        engine, columns, semivalue = _engine(kind), _columns(n_rows), _INDEX[order]
        if not isinstance(engine, TableEngine):
            return n_rows * engine.work(order), lambda: engine.solve(columns, semivalue, order)
        filled, look_ups, one_row = engine.work(order)
        if what == "filling":
            tables = engine.of_order(order)
            return filled, lambda: engine.fill(tables, semivalue, order, 0, engine.layout.n_groups)
        if what == "rows":
            engine.solve(columns, semivalue, order)  # fills the tables
        return (look_ups * n_rows if what == "rows" else one_row), lambda: engine.solve(columns, semivalue, order)

    return seconds_per_unit(f"trees: {kind.__name__}, {what}, order {order}", sample)


def _columns(n_rows: int) -> np.ndarray:
    return np.ascontiguousarray(np.random.default_rng(1).normal(size=(N_FEATURES, n_rows)))


@functools.cache
def _engine(kind: type) -> Any:
    """Return an engine that answers the small forest."""
    trees = complete_forest(DEPTH, N_TREES, N_FEATURES)
    shape = structure(trees, np.arange(N_FEATURES, dtype=np.int32))
    background, weights = _columns(N_BACKGROUND), np.full(N_BACKGROUND, 1.0 / N_BACKGROUND)
    if kind is PathEngine:
        return PathEngine(trees, shape, N_FEATURES)
    if kind is LinearEngine:
        n = trees.n_nodes
        terms = np.zeros(n + 1, np.int64)
        terms[1:] = np.cumsum(trees.feature < 0)
        columns = (np.arange(terms[-1]) % N_FEATURES).astype(np.int32)
        functions = LinearLeaves(terms, columns, np.ones((terms[-1], 1)), np.zeros((n, 1)))
        players = np.arange(N_FEATURES, dtype=np.int32)
        return LinearEngine.of(replace(trees, linear=functions), players, N_FEATURES, background.T, weights, 2.0**30)
    if kind is LeafEngine:
        return LeafEngine(trees, shape, N_FEATURES, background, *whole_weights(weights))
    layout = lay_out(trees, shape)
    return TableEngine(trees, layout, tabulate_background(trees, layout, background.T, weights), N_FEATURES, 2.0**30)
