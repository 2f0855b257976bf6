"""Models of XGBoost that are read without a step for each entry: their bytes, and trees with nothing unusual about them.

Both ways are there to be quick. What XGBoost's own method writes, and the way that reads one entry after another, say what is right.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

from exactshap._native import kernel
from exactshap.trees.ensemble import RawForest
from exactshap.trees.formats._records import Records
from exactshap.trees.formats._ubj import Scanned

__all__ = ["plain_forest", "saved"]

BYTES_OF_NODE = 22  # that a node has at least in a file whose trees are plain
COMPARED = 2**22  # bytes of a model at most that is saved twice, to compare both ways

read_trees = kernel("trees.read_xgboost_trees(tape, objects, weights, out)")


class Columns(NamedTuple):
    """What ``read_trees`` writes: the nodes of each tree, and those of all trees behind one another, as a ``RawForest`` has them."""

    sizes: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    cover: np.ndarray
    missing: np.ndarray


def plain_forest(blocks: Records, owners: np.ndarray, weights: np.ndarray, n_outputs: int) -> RawForest | None:
    """Return trees of bytes of UBJSON, read in one pass; None where something about them is unusual, or wrong."""
    n_trees = len(blocks)
    if not isinstance(blocks, Scanned) or (n_outputs > 1 and not ((owners >= 0) & (owners < n_outputs)).all()):
        return None
    n = len(blocks.tape.data) // BYTES_OF_NODE
    whole, real = (functools.partial(np.empty, n, dtype) for dtype in (np.int64, np.float64))
    sizes, missing = np.empty(n_trees, np.int64), np.empty(n, np.int8)
    columns = Columns(sizes, whole(), whole(), whole(), real(), real(), real(), missing)
    n_nodes = read_trees(blocks.tape.handle, blocks.rows, weights, columns)
    if n_nodes < 0:
        return None
    return RawForest(
        **{name: column if name == "sizes" else column[:n_nodes] for name, column in columns._asdict().items()},
        output=np.full(n_trees, -1) if n_outputs == 1 else owners,
        root=np.zeros(n_trees, np.int64),
    )


def saved(booster: Any) -> bytes:
    """Return ``booster.save_raw("ubj")``: by the C interface where that has given the same bytes before, in a quarter less time."""
    documented = type(booster).save_raw
    if "save_raw" not in vars(booster) and documented in _agreeing and (data := _saved(booster)) is not None:
        return data
    data = bytes(booster.save_raw("ubj"))
    if len(data) <= COMPARED and data == _saved(booster):
        _agreeing.add(documented)
    return data


_agreeing: set[Any] = set()  # methods whose bytes the direct way gave


def _saved(booster: Any) -> bytes | None:
    """Return what XGBoost's library writes; None where this release has another interface, or the library refuses."""
    try:
        from xgboost.core import _LIB

        save, handle = _save(_LIB), booster.handle
    except (ImportError, AttributeError):
        return None
    size, data = ctypes.c_uint64(), ctypes.c_void_p()
    if save(handle, b'{"format": "ubj"}', ctypes.byref(size), ctypes.byref(data)):
        return None
    return ctypes.string_at(data, size.value)  # a copy: the library's own memory is the next call's


@functools.cache
def _save(library: Any) -> Any:
    save = library["XGBoosterSaveModelToBuffer"]  # an object of our own: its argument types reach nobody else
    save.argtypes, save.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p], ctypes.c_int
    return save
