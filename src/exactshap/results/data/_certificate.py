"""The certificate: by how much the numbers miss the model's own prediction, against what rounding can explain."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Certificate"]


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The largest residual of an explanation and the tolerance it was held against.

    Attributes
    ----------
    max_residual : float
        Largest ``|residual|`` over rows and outputs, in the unit of the model output.
    tolerance : float
        The tolerance of the row with the largest ratio of residual to tolerance.
    row : int or None
        That row; None for an explanation without rows.
    passed : bool
        Whether every row is within its own tolerance.
    exact : bool
        Whether the values are exact up to rounding; False if they were sampled (see ``std_error``) or the game was approximated.
    checks : str
        The identity that the residual is the remainder of.
    kind : str
        "exact", "sampled" or "approximate".
    """

    max_residual: float
    tolerance: float
    row: int | None
    passed: bool
    exact: bool
    checks: str
    kind: str = "exact"

    def __str__(self) -> str:
        verdict = "passed" if self.passed else f"FAILED, first at row {self.row}"
        return (
            f"{self.kind}; {self.checks}: residual at most {self.max_residual:.2g} (tolerance {self.tolerance:.2g}): {verdict}"
        )
