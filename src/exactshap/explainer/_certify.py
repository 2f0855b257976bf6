"""Whether values add up to the model's own predictions."""

from __future__ import annotations

import numpy as np

from exactshap.errors import ExactnessError, ExplanationWarning, message, warn
from exactshap.frames import as_table
from exactshap.readers import Reader
from exactshap.results.explanation import Explanation

__all__ = ["refuse_or_warn"]

BUG = "This is a bug in the reader: please report it with exactshap.show_versions()"


def refuse_or_warn(reader: Reader, explanation: Explanation, on_inexact: str) -> None:
    """Say which residual is above its tolerance, and why that may be."""
    certificate = explanation.certificate()
    text = _mask_message(reader, explanation) if certificate.adds_up else _sum_message(reader, explanation)
    if on_inexact == "raise":
        raise ExactnessError(text)
    warn(text, ExplanationWarning)


def _mask_message(reader: Reader, explanation: Explanation) -> str:
    certificate = explanation.certificate()
    difference = certificate.mask_difference or 0.0
    reason = (
        _imprecise(explanation, difference) or _unsteady(reader, explanation, certificate.row, f"row {certificate.row}") or BUG
    )
    return message(
        f"v(S) is not what the model predicts for hybrid rows: off by {certificate.mask_difference:.3g} (tolerance {certificate.mask_tolerance:.3g})",
        f"On {certificate.n_masks} coalitions, for {reader.model_name} with value_function={reader.value_function!r}",
        f"{reason}; on_inexact='warn' returns the explanation with it",
    )


def _sum_message(reader: Reader, explanation: Explanation) -> str:
    certificate = explanation.certificate()
    return message(
        f"Values do not add up: residual {certificate.max_residual:.3g} at row {certificate.row} (tolerance {certificate.tolerance:.3g})",
        f"Of {certificate.checks}, for {reader.model_name} with value_function={reader.value_function!r}",
        f"{_reason(reader, explanation)}; on_inexact='warn' returns the explanation with its residuals",
    )


def _reason(reader: Reader, explanation: Explanation) -> str:
    """Return what may be wrong: the numbers overflow, the model does not repeat itself, or our reading is wrong."""
    certificate = explanation.certificate()
    if not np.isfinite(certificate.max_residual + certificate.tolerance):
        return "Numbers overflow float64 in the model or in its factors: scale the columns"
    return (
        _imprecise(explanation, certificate.max_residual) or _unsteady(reader, explanation, certificate.row, "this row") or BUG
    )


def _unsteady(reader: Reader, explanation: Explanation, row: int | None, called: str) -> str:
    """Return what is to be said of a model that does not repeat its prediction of a row, alone or in other company; "" if it does."""
    if row is None:
        return ""
    again = np.asarray(reader.predict(as_table(explanation.data).take([row])), float)
    if not np.abs(again - explanation.prediction[row]).max() > explanation.tolerance[row]:
        return ""
    return f"The model predicts {called} differently each time: fix its seed, make it deterministic, and let no step look at other rows"


def _imprecise(explanation: Explanation, difference: float) -> str:
    """Return what is to be said of a difference that the rounding of single precision explains; "" of a larger one."""
    if difference > 1e-5 * np.abs(explanation.prediction).max(initial=0.0):
        return ""
    return (
        "The model may compute in lower precision than its float64 answers say: let a function return float32 numbers, whose "
        "rounding is then allowed for. Else this is a bug: please report it with exactshap.show_versions()"
    )
