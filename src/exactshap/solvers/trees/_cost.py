"""What trees cost: the work that each engine counts, times what it takes this machine on a small forest."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.calibration import seconds_per_unit
from exactshap.semivalues import find
from exactshap.solvers.core import Cost
from exactshap.solvers.trees._layout import lay_out, structure
from exactshap.solvers.trees._leaf_engine import FEW_ROWS as LEAF_FEW
from exactshap.solvers.trees._leaf_engine import LeafEngine
from exactshap.solvers.trees._parts import whole_weights
from exactshap.solvers.trees._path_engine import FEW_ROWS as PATH_FEW
from exactshap.solvers.trees._path_engine import PathEngine
from exactshap.solvers.trees._table_engine import FEW_ROWS as TABLE_FEW
from exactshap.solvers.trees._table_engine import TableEngine, survive
from exactshap.trees import FlatTrees, RawTree, build

__all__ = ["Engine", "engine_cost", "sample_forest"]

DEPTH, N_TREES, N_FEATURES, N_BACKGROUND = 7, 8, 20, 100
_INDEX = {1: find("shapley"), 2: find("k-sii")}


Engine = TableEngine | PathEngine | LeafEngine


def engine_cost(engine: Engine, n_rows: int, n_blocks: int, order: int) -> Cost:
    """Return the cost of some rows, solved in blocks: what is kept between calls is counted once."""
    if isinstance(engine, TableEngine):
        return _table_cost(engine, n_rows, n_blocks, order)
    few = n_rows <= n_blocks * (PATH_FEW if isinstance(engine, PathEngine) else LEAF_FEW)
    seconds = n_rows * engine.work(order) * _seconds(type(engine), "row" if few else "rows", min(order, 2))
    method = "quadrature along the paths" if isinstance(engine, PathEngine) else "leaf by leaf"
    return Cost(seconds, engine.memory(order), True, method)


def _table_cost(engine: TableEngine, n_rows: int, n_blocks: int, order: int) -> Cost:
    filled, look_ups, one_row = engine.work(order)
    if order == 1 and n_rows <= n_blocks * TABLE_FEW:
        seconds = n_rows * one_row * _seconds(TableEngine, "row", 1)
    else:
        fillings = 1 if engine.is_kept(order) else n_blocks
        seconds = fillings * filled * _seconds(TableEngine, "filling", min(order, 2))
        seconds += n_rows * look_ups * _seconds(TableEngine, "rows", min(order, 2))
    return Cost(seconds, engine.memory(order), True, "tables")


def _seconds(kind: type, what: str, order: int) -> float:
    """Return the seconds of one unit of work."""
    n_rows = {"row": 1, "filling": TABLE_FEW + 1, "rows": 2000 if kind is TableEngine else 256}[what]

    def sample() -> tuple[float, Callable[[], object]]:
        engine, columns = _engine(kind), _columns(n_rows)
        work = engine.work(order)
        if isinstance(engine, TableEngine):
            work = {"filling": work[0], "rows": n_rows * work[1], "row": work[2]}[what]
            if what == "rows":
                engine.solve(columns, _INDEX[order], order)  # fills the tables
        else:
            work *= n_rows

        def run() -> None:
            mine = engine if what == "rows" else dataclasses.replace(engine, cache=BoundedCache())
            mine.solve(columns, _INDEX[order], order)

        return work, run

    return seconds_per_unit(f"trees: {kind.__name__}, {what}, order {order}", sample)


@functools.cache
def sample_forest() -> FlatTrees:
    """Return a small forest of complete trees with random splits."""
    rng = np.random.default_rng(0)
    n_splits = 2**DEPTH - 1
    n_nodes = 2 * n_splits + 1
    place = np.arange(n_nodes)
    is_split = place < n_splits
    raw = [
        RawTree(
            feature=np.where(is_split, rng.integers(0, N_FEATURES, n_nodes), -1),
            threshold=rng.normal(size=n_nodes) / 2.0,
            left=np.where(is_split, 2 * place + 1, -1),
            right=np.where(is_split, 2 * place + 2, -1),
            value=rng.normal(size=n_nodes),
            cover=np.ones(n_nodes),
        )
        for _ in range(N_TREES)
    ]
    return build(raw, n_features=N_FEATURES, constant=np.zeros(1), less_equal=True, single_precision=False)


def _columns(n_rows: int) -> np.ndarray:
    return np.ascontiguousarray(np.random.default_rng(1).normal(size=(N_FEATURES, n_rows)))


@functools.cache
def _engine(kind: type) -> Any:
    """Return an engine that answers the small forest."""
    trees = sample_forest()
    shape = structure(trees, np.arange(N_FEATURES, dtype=np.int32))
    background, weights = _columns(N_BACKGROUND), np.full(N_BACKGROUND, 1.0 / N_BACKGROUND)
    if kind is PathEngine:
        return PathEngine(trees, shape, N_FEATURES)
    if kind is LeafEngine:
        return LeafEngine(trees, shape, N_FEATURES, background, *whole_weights(weights))
    layout = lay_out(trees, shape)
    return TableEngine(trees, layout, survive(trees, layout, background.T, weights), N_FEATURES, 2.0**30)
