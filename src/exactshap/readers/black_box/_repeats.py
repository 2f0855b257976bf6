"""Does a function answer a row by that row alone, and how far its answers are rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.errors import ExplanationWarning, InputError, message, warn
from exactshap.frames import Table
from exactshap.readers.black_box._call import call, precision
from exactshap.readers.black_box._hybrid_rows import hybrid_rows

__all__ = ["rounding"]

# Rounding units of the largest answer: sums in another order differ by less.
SUMMATION_EPSILONS = 16.0
# Rows of a call. BLAS has kernels of its own for one row, for up to three, and for many.
SMALL_BATCHES, LARGE_BATCH = (1, 3), 128
# Small batches of each size.
CALLS_OF_EACH = 6


def rounding(function: Callable[..., Any], rows: Table, first: np.ndarray, name: str, *, refuse: bool) -> float:
    """Return a function's relative rounding; report answers that vary by more. ``first`` is its first answer for the rows.

    The function is called again with batches of other sizes. Libraries add up products of matrices of other shapes in another order (BLAS
    has kernels of its own for one row, for up to three, and for many), and equations that were solved before enlarge what that rounds:
    a Gaussian process' probabilities move by 5,000 eps. A function that is random, or that looks at a row's neighbours, is refused
    or warned of.
    """
    n, eps = rows.n_rows, precision(first)
    size = np.abs(np.asarray(first, float)).max(initial=0.0)
    moved = _moved(function, rows, first, name)
    if moved <= SUMMATION_EPSILONS * eps * size:
        return eps
    repeated = _difference(first, call(function, rows, name), np.arange(n))
    if repeated > SUMMATION_EPSILONS * eps * size:
        what = f"The same {n} rows differ by up to {repeated:.3g} between two calls"
        _say(f"{name} is not deterministic", what, "Fix its seed", refuse=refuse)
        return eps
    if moved <= np.sqrt(eps) * size:
        return float(moved / size)
    what = f"The same {n} rows differ by up to {moved:.3g} when they come in batches of other sizes"
    _say(
        f"{name} answers a row by the other rows of a batch",
        what,
        "Let it look at each row alone, and return numbers of the precision it computes in",
        refuse=refuse,
    )
    return eps


def _moved(function: Callable[..., Any], rows: Table, first: np.ndarray, name: str) -> float:
    """Return the largest difference of answers in batches of other sizes.

    They are small batches, and one as large as coalitions make, in another order.
    """
    n = rows.n_rows
    backwards = np.arange(n)[::-1]
    nothing = np.zeros(
        (-(-LARGE_BATCH // n), rows.n_columns), bool
    )  # no column from the row itself: mixed rows are how coalitions call the function
    batch = hybrid_rows(rows.take(slice(0, 1)), rows.take(backwards), nothing)
    differences = [_difference(first, call(function, batch, name), np.tile(backwards, len(nothing)))]
    begins = [(size, start) for size in SMALL_BATCHES for start in range(0, min(n, size * CALLS_OF_EACH), size)]
    for size, start in begins if n > 1 else ():
        chosen = np.arange(start, min(start + size, n))
        differences.append(_difference(first, call(function, rows.take(chosen), name), chosen))
    return max(differences)


def _difference(first: np.ndarray, again: np.ndarray, rows: np.ndarray) -> float:
    if first.shape[1:] != again.shape[1:] or len(rows) != len(again):
        return np.inf
    return float(np.abs(np.asarray(first, float)[rows] - np.asarray(again, float)).max(initial=0.0))


def _say(what: str, seen: str, do: str, *, refuse: bool) -> None:
    text = message(what, seen, f"{do}; its values are values of its noise as well (deterministic='raise' refuses it)")
    if refuse:
        raise InputError(text)
    warn(text, ExplanationWarning)
