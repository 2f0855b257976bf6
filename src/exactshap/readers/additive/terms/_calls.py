"""What evaluations of terms cost, for forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap.readers.additive.terms._blocks import TermBlock

__all__ = ["calls_of_row", "seconds_of_row"]

QUICK, LARGER = 0.002, 16  # seconds of an evaluation that is repeated, on so many times as many rows


def calls_of_row(bound: Any) -> float:
    """Return how many evaluations one row costs."""
    return float(getattr(bound, "row_calls", 0.0))


def seconds_of_row(block: TermBlock, bound: Any, rows: np.ndarray) -> float:
    """Return the seconds of one row, from one evaluation of all terms of a block: on many rows where that is quick."""
    seconds = clocked(lambda: block.evaluate(rows))
    if seconds < QUICK:
        rows = np.tile(rows, (LARGER, 1))
        seconds = clocked(lambda: block.evaluate(rows))
    return seconds / len(rows) / len(block.columns) * max(calls_of_row(bound), len(block.columns))
