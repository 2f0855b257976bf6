"""Models of XGBoost that are read without a step for each entry: their bytes, and trees with nothing unusual about them.

Both ways are there to be quick. What XGBoost's own method writes, and the way that reads one entry after another, say what is right.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from exactshap._native import kernel
from exactshap.trees.ensemble import MAX_DEPTH, MAX_NODES, FlatTrees, empty_layout, finished, reached
from exactshap.trees.formats._records import Records
from exactshap.trees.formats._ubj import Scanned

__all__ = ["plain_trees", "saved"]

BYTES_OF_NODE = 22  # that a node takes at least in a file whose trees are plain
COMPARED = 2**22  # bytes of a model at most that is saved twice, to compare both ways

read_trees = kernel("trees.read_xgboost_trees(tape, objects, weights, n_features, max_depth, laid)")


def plain_trees(blocks: Records, weights: np.ndarray, constant: np.ndarray, n_features: int) -> FlatTrees | None:
    """Return trees of bytes of UBJSON, read and laid out in one pass; None where something about them is unusual, or wrong."""
    if not isinstance(blocks, Scanned) or len(constant) > 1 or not np.isfinite(constant[0]):
        return None
    n = len(blocks.tape.data) // BYTES_OF_NODE
    if n > MAX_NODES:
        return None
    laid = empty_layout(len(blocks), n, 1)
    n_reached = read_trees(blocks.tape.handle, blocks.rows, weights, n_features, MAX_DEPTH, laid)
    if n_reached < 0:
        return None
    return finished(
        reached(laid, n_reached), None, n_features=n_features, constant=constant, less_equal=False, single_precision=True
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
    """Return what XGBoost's library writes; None where a class or this release has another interface, or the library refuses."""
    try:
        from xgboost.core import _LIB, Booster

        save, handle = _save(_LIB), booster.handle
    except (ImportError, AttributeError):
        return None
    if type(booster).save_raw is not Booster.save_raw:  # one that may write what it likes, whenever
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
