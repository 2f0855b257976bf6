"""XGBoost's prediction from dense rows by its C interface, with what a call needs made once.

It is what ``inplace_predict`` calls in the end. Of its time for one row, nine tenths go to Python and to a new description of data
in each call (a proxy); here each thread has one.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
import threading
from typing import Any

import numpy as np

__all__ = ["dense_margin"]

_ARRAY = b'{"data":[%d,true],"shape":[%d,%d],"strides":null,"typestr":"<f%d","version":3}'
ROOM = 4096  # cells that are moved sooner than described
_SETTINGS = b'{"type":1,"training":false,"iteration_begin":0,"iteration_end":%d,"missing":%b,"strict_shape":false,"cache_id":0}'


class _Found(ctypes.Structure):
    """Where the library leaves a prediction: its own memory, until the thread's next call."""

    _fields_ = (("shape", ctypes.c_void_p), ("n_dimensions", ctypes.c_uint64), ("values", ctypes.c_void_p))


class _OfThread(threading.local):
    """A proxy of rows to come for each thread, and room for them that is described once: calls at the same time must not share one."""

    def __init__(self) -> None:
        from xgboost.core import _ProxyDMatrix

        self.proxy, self.found = _ProxyDMatrix(), _Found()
        self.address = ctypes.addressof(self.found)
        self._rows, self._described = np.empty((0, 0)), b""

    def described(self, array: np.ndarray) -> bytes:
        """Return the description of rows, a few of them moved to where those before them of their shape were."""
        if array.size > ROOM:
            return _ARRAY % (array.ctypes.data, *array.shape, array.itemsize)
        if self._rows.shape != array.shape or self._rows.dtype != array.dtype:
            self._rows = np.empty_like(array, order="C")
            self._described = _ARRAY % (self._rows.ctypes.data, *array.shape, array.itemsize)
        self._rows[...] = array
        return self._described


@functools.cache
def _library() -> tuple[Any, _OfThread]:
    from xgboost.core import _LIB

    predict = _LIB["XGBoosterPredictFromDense"]  # an object of our own: its argument types reach nobody else
    predict.argtypes, predict.restype = (
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, *[ctypes.c_void_p] * 4],
        ctypes.c_int,
    )
    return predict, _OfThread()


@functools.lru_cache(maxsize=16)
def _settings(n_rounds: int, missing: float) -> bytes:
    return _SETTINGS % (n_rounds, b"NaN" if missing != missing else repr(float(missing)).encode())


@functools.cache
def _sizes(n_dimensions: int) -> struct.Struct:
    return struct.Struct(f"{n_dimensions}Q")


def dense_margin(booster: Any, array: np.ndarray, n_rounds: int, missing: float) -> np.ndarray | None:
    """Return the margin (n_rows,) or (n_rows, n_outputs) of the first ``n_rounds`` (0: all); None where the library refuses.

    ``array`` is C-contiguous, of doubles or singles; cells equal to ``missing`` are. Errors are left to ``inplace_predict``.
    """
    predict, of_thread = _library()
    found, address, rows = of_thread.found, of_thread.address, of_thread.described(array)
    if predict(booster.handle, rows, _settings(n_rounds, missing), of_thread.proxy.handle, address, address + 8, address + 16):
        return None
    shape = _sizes(found.n_dimensions).unpack(ctypes.string_at(found.shape, 8 * found.n_dimensions))
    values = np.frombuffer(ctypes.string_at(found.values, 4 * math.prod(shape)), np.float32)  # a copy
    return values if len(shape) == 1 else values.reshape(shape)
