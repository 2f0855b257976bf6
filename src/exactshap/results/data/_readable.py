"""Numbers as people read them: what is within rounding of 0 reads 0. Arrays, frames and files keep every bit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

__all__ = ["readable", "without_noise"]

Data = TypeVar("Data", bound="ExplanationData")
_SHOWN = ("values", "set_values", "baseline", "prediction", "std_error", "set_std_error")


def without_noise(numbers: np.ndarray | float, tolerance: float | np.ndarray) -> np.ndarray:
    """Return numbers for people: 0 where rounding could have made them.

    Parameters
    ----------
    numbers : array
    tolerance : float or array
        What rounding explains, of the certificate; an infinite one explains nothing.

    Returns
    -------
    shown : array

    Examples
    --------
    >>> without_noise(np.array([0.25, -8.9e-16]), 1e-12)
    array([0.25, 0.  ])
    """
    noise = (np.abs(numbers) <= tolerance) & np.isfinite(tolerance)
    return np.where(noise, 0.0, numbers)


def readable(explanation: Data) -> Data:
    """Return an explanation for tables, texts and pictures, with 0 for numbers within its own tolerance.

    Whether its values add up stays as it was; the certificate is that of the original.
    """
    changes: dict[str, Any] = {}
    for name in _SHOWN:
        numbers = getattr(explanation, name)
        if numbers is not None:
            shown = without_noise(numbers, explanation.tolerance.reshape(-1, *[1] * (numbers.ndim - 1)))
            if not np.array_equal(shown, numbers, equal_nan=True):
                changes[name] = shown
    if not changes:
        return explanation
    if explanation.additive:
        shown = replace(explanation, **changes)
        changes["residual"] = shown.prediction - shown.baseline - shown.values.sum(axis=1)
    return replace(explanation, **changes)
