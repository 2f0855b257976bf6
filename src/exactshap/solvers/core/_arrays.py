"""Numbers of a solution that may be one for all rows, or not known."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["all_of", "either"]


def all_of(number: np.ndarray | float, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array filled with one number or one row. A row has one number for each of the last axis."""
    found = np.empty(shape)
    found[...] = number
    return found


def either(combine: np.ufunc, one: object, other: object, name: str) -> Any:
    """Combine what is known of two solutions; None stands for 0 exactly."""
    known = [array for array in (getattr(one, name), getattr(other, name)) if array is not None]
    return combine(*known) if len(known) == 2 else known[0] if known else None
