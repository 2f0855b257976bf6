"""Whether values add up to the model's own predictions, and whether the model was read as it predicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap.errors import ExactnessError, ExplanationWarning, message, warn
from exactshap.frames import Table, as_table
from exactshap.readers import Reader
from exactshap.results.explanation import Explanation
from exactshap.semivalues import find

__all__ = ["Verification", "certify", "verify"]


def certify(reader: Reader, explanation: Explanation, on_inexact: str) -> None:
    """Raise, or warn, where a residual is above its tolerance."""
    if explanation.is_within_tolerance:
        return
    certificate = explanation.certificate()
    text = message(
        f"Values do not add up: residual {certificate.max_residual:.3g} at row {certificate.row} (tolerance {certificate.tolerance:.3g})",
        f"Of {certificate.checks}, for {reader.model_name} with value_function={reader.value_function!r}",
        f"{_reason(reader, explanation)}; on_inexact='warn' returns the explanation with its residuals",
    )
    if on_inexact == "raise":
        raise ExactnessError(text)
    warn(text, ExplanationWarning)


def _reason(reader: Reader, explanation: Explanation) -> str:
    """Return what may be wrong: the numbers overflow, the model does not repeat itself, or our reading is wrong."""
    certificate = explanation.certificate()
    if not np.isfinite(certificate.max_residual):
        return "Numbers overflow float64 in the model or in its factors: scale the columns"
    if certificate.max_residual <= 1e-5 * np.abs(explanation.prediction).max(initial=0.0):
        return (
            "The model may compute in lower precision than its float64 answers say: let a function return float32 numbers, whose "
            "rounding is then allowed for. Else this is a bug: please report it with exactshap.show_versions()"
        )
    again = np.asarray(reader.predict(as_table(explanation.data).take([certificate.row])), float)
    if np.abs(again - explanation.prediction[certificate.row]).max() > certificate.tolerance:
        return "The model predicts this row differently each time: fix its seed, or make it deterministic"
    return "This is a bug in the reader: please report it with exactshap.show_versions()"


@dataclass(frozen=True)
class Verification:
    """The outcome of :meth:`exactshap.Explainer.verify`; printed, it is a sentence.

    Attributes
    ----------
    max_residual : float
        Largest |prediction - baseline - sum of values|.
    max_mask_difference : float or None
        Largest |v(S) - prediction of rows masked by hand|; None where no such reference exists.
    tolerance : float
        What rounding explains of either.
    passed : bool
    n_rows, n_masks : int
        What was checked.
    """

    max_residual: float
    max_mask_difference: float | None
    tolerance: float
    passed: bool
    n_rows: int
    n_masks: int

    def __str__(self) -> str:
        masks = "the model cannot be masked by hand for this value function"
        if self.max_mask_difference is not None:
            masks = f"largest difference to the hand-masked model {self.max_mask_difference:.2g} on {self.n_masks} random coalitions"
        verdict = "passed" if self.passed else "FAILED"
        return (
            f"{verdict}: largest residual {self.max_residual:.2g}, {masks}; tolerance {self.tolerance:.2g}; {self.n_rows} rows"
        )


def verify(reader: Reader, table: Table, n_masks: int, random_state: int) -> Verification:
    """Compare v(S) on random coalitions with the model on rows masked by hand, and the values with its predictions."""
    rng = np.random.default_rng(random_state)
    masks = rng.random((n_masks, reader.n_players)) < rng.random((n_masks, 1))
    answer = reader.answer(table, find("shapley"), 1)
    by_hand = reader.masked_predictions(table, masks)
    difference = None if by_hand is None else _largest(reader.game(table).value(masks) - by_hand)
    assert answer.tolerance is not None
    worst = _largest(answer.residual)
    return Verification(
        max_residual=float(worst.max(initial=0.0)),
        max_mask_difference=None if difference is None else float(difference.max(initial=0.0)),
        tolerance=float(np.max(answer.tolerance, initial=0.0)),
        passed=bool(np.all(worst <= answer.tolerance) and (difference is None or np.all(difference <= answer.tolerance))),
        n_rows=table.n_rows,
        n_masks=n_masks if by_hand is not None else 0,
    )


def _largest(difference: np.ndarray | None) -> np.ndarray:
    """Return the largest magnitude of each row."""
    assert difference is not None
    return np.abs(difference).reshape(len(difference), -1).max(axis=1, initial=0.0)
