"""Numbers as people read them: what is within rounding of 0 reads 0. Arrays, frames and files keep every bit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from exactshap.results.data._residuals import without_noise

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

__all__ = ["readable"]

Data = TypeVar("Data", bound="ExplanationData")
_SHOWN = ("values", "set_values", "baseline", "prediction", "std_error", "set_std_error")


def readable(explanation: Data) -> Data:
    """Return an explanation for tables, texts and pictures, with 0 for numbers within its own tolerance.

    Whether its values add up stays as it was; the certificate is that of the original.
    """
    changes: dict[str, Any] = {}
    for name in _SHOWN:
        numbers = getattr(explanation, name)
        if numbers is not None:
            people = without_noise(numbers, explanation.tolerance.reshape(-1, *[1] * (numbers.ndim - 1)))
            if not np.array_equal(people, numbers, equal_nan=True):
                changes[name] = people
    if not changes:
        return explanation
    if explanation.additive:
        shown = replace(explanation, **changes)
        changes["residual"] = shown.prediction - shown.baseline - shown.values.sum(axis=1)
    return replace(explanation, **changes)
