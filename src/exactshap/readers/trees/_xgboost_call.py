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
_SETTINGS = b'{"type":1,"training":false,"iteration_begin":0,"iteration_end":%d,"missing":%b,"strict_shape":false,"cache_id":0}'


class _Found(ctypes.Structure):
    """Where the library leaves a prediction: its own memory, until the thread's next call."""

    _fields_ = (("shape", ctypes.c_void_p), ("n_dimensions", ctypes.c_uint64), ("values", ctypes.c_void_p))


class _OfThread(threading.local):
    """A proxy of rows to come for each thread: calls at the same time must not share one. It owns none of them."""

    def __init__(self) -> None:
        from xgboost.core import _ProxyDMatrix

        self.proxy = _ProxyDMatrix()


@functools.cache
def _library() -> tuple[Any, _OfThread]:
    from xgboost.core import _LIB

    predict = _LIB["XGBoosterPredictFromDense"]  # an object of our own: its argument types reach nobody else
    predict.argtypes, predict.restype = (
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, *[ctypes.c_void_p] * 4],
        ctypes.c_int,
    )
    return predict, _OfThread()


def dense_margin(booster: Any, array: np.ndarray, n_rounds: int, missing: float) -> np.ndarray | None:
    """Return the margin (n_rows,) or (n_rows, n_outputs) of the first ``n_rounds`` (0: all); None where the library refuses.

    ``array`` is C-contiguous, of doubles or singles; cells equal to ``missing`` are. Errors are left to ``inplace_predict``.
    """
    predict, of_thread = _library()
    found = _Found()
    address = ctypes.addressof(found)
    rows = _ARRAY % (array.ctypes.data, *array.shape, array.itemsize)
    settings = _SETTINGS % (n_rounds, b"NaN" if missing != missing else repr(float(missing)).encode())
    if predict(booster.handle, rows, settings, of_thread.proxy.handle, address, address + 8, address + 16):
        return None
    shape = struct.unpack(f"{found.n_dimensions}Q", ctypes.string_at(found.shape, 8 * found.n_dimensions))
    values = np.frombuffer(ctypes.string_at(found.values, 4 * math.prod(shape)), np.float32)  # a copy
    return values if len(shape) == 1 else values.reshape(shape)
