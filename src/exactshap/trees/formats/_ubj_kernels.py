"""Compiled scan of Universal Binary JSON (``src/native/trees/ubj.cpp``): where each value lies, without making any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel

__all__ = ["MAX_KEYS", "Tape", "copy_numbers", "fill_members", "scan"]

MAX_KEYS = 64  # as in ubj.cpp: of an object among many alike ones


class Tape(NamedTuple):
    """The rows of a scan, one for each value, and the bytes that they point into."""

    data: np.ndarray  # uint8
    marker: np.ndarray  # uint8 (n_values,), the others int64
    key_start: np.ndarray
    key_length: np.ndarray
    start: np.ndarray
    size: np.ndarray
    after: np.ndarray


scan = kernel("trees.scan_ubj(data, marker, key_start, key_length, start, count, after)")
fill_members = kernel("trees.fill_ubj_members(tape, objects, out, markers, totals, same)")
copy_numbers = kernel("trees.copy_ubj_numbers(tape, rows, out)")
