"""Define the certificate: differences to the model's predictions, and their tolerances."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactshap._runtime.words import fields_html


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate:
    """Hold an explanation's largest residual and its tolerance.

    Attributes
    ----------
    max_residual : float
        Largest ``|residual|`` over rows and outputs, in the unit of the model output.
    tolerance : float
        The tolerance of the row with the largest ratio of residual to tolerance.
    row : int or None
        That row; None for an explanation without rows.
    passed : bool
        Whether every row is within its own tolerance, and the coalitions within theirs.
    exact : bool
        Whether the values are exact up to rounding; False if they were sampled (see ``std_error``) or the game was approximated.
    checks : str
        The sum that leaves the residual.
    kind : str
        "exact", "sampled" or "approximate".
    mask_difference, mask_tolerance : float or None
        Largest difference of v(S) of a few random coalitions to the model's own predictions of hybrid rows, and its tolerance; None
        where the value function has no hybrid rows (or none were compared).
    n_masks : int
        How many coalitions were compared.
    mask_rows : tuple of int
        The explained rows that some of them belong to; the others are of the background's rows, checked when the explainer was made,
        or of an earlier call.
    mask_reason : str
        Why none were compared.
    """

    max_residual: float
    tolerance: float
    row: int | None
    passed: bool
    exact: bool
    checks: str
    kind: str = "exact"
    mask_difference: float | None = None
    mask_tolerance: float | None = None
    n_masks: int = 0
    mask_rows: tuple[int, ...] = ()
    mask_reason: str = ""

    @property
    def adds_up(self) -> bool:
        """Say whether the residual is within its finite tolerance."""
        return self.max_residual <= self.tolerance < math.inf

    @property
    def masks_passed(self) -> bool:
        """Say whether the compared coalitions are within their tolerance."""
        return self.mask_difference is None or self.mask_tolerance is None or self.mask_difference <= self.mask_tolerance

    def masks(self) -> str:
        """Say how far coalitions are from the model's own predictions. Or why none were compared; "" if that is unknown.

        >>> facts = dict(max_residual=0.0, tolerance=1e-9, row=0, passed=True, exact=True, checks="a sum")
        >>> Certificate(**facts, mask_difference=2e-12, mask_tolerance=1e-9, n_masks=2, mask_rows=(0, 7)).masks()
        'off by at most 2e-12 (tolerance 1e-09) on 2 random coalitions for 2 of these rows and for rows checked earlier'
        """
        if self.mask_difference is None or self.mask_tolerance is None:
            return self.mask_reason and f"not compared: {self.mask_reason}"
        n_rows = len(self.mask_rows)
        rows = f"{n_rows} of these rows and for rows checked earlier" if n_rows else "rows checked earlier"
        return (
            f"off by at most {self.mask_difference:.2g} (tolerance {self.mask_tolerance:.2g}) "
            f"on {self.n_masks} random coalition{'s' * (self.n_masks != 1)} for {rows}"
        )

    def __str__(self) -> str:
        verdict = "passed" if self.passed else f"FAILED, first at row {self.row}" if self.masks_passed else "FAILED"
        masks = self.masks() and f"; v(S) {self.masks()}"
        return f"{self.kind}; {self.checks}: residual at most {self.max_residual:.2g} (tolerance {self.tolerance:.2g}){masks}: {verdict}"

    def __repr__(self) -> str:
        return f"Certificate: {self}"

    def _repr_html_(self) -> str:
        facts = {
            "kind": self.kind,
            "residual": f"at most {self.max_residual:.2g} (tolerance {self.tolerance:.2g}), of {self.checks}",
            "coalitions": self.masks(),
            "worst row": "" if self.passed or self.row is None else str(self.row),
        }
        title = f"Certificate: {'passed' if self.passed else 'FAILED'}"
        return fields_html(title, {name: text for name, text in facts.items() if text})


def without_noise(numbers: np.ndarray | float, tolerance: float | np.ndarray) -> np.ndarray:
    """Return numbers for people, with 0 for those within a finite tolerance.

    >>> without_noise(np.array([0.25, -8.9e-16]), 1e-12)
    array([0.25, 0.  ])
    """
    noise = (np.abs(numbers) <= tolerance) & np.isfinite(tolerance)
    return np.where(noise, 0.0, numbers)


def near_one(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Return values times a power of two, and the power. They are below one, so that squares neither overflow nor vanish.

    >>> near_one(np.array([-3e300, 1e300]))[0].round(2), near_one(np.zeros(2))
    (array([-0.56,  0.19]), (array([0., 0.]), 0))
    """
    exponent = int(np.frexp(np.abs(values).max(initial=0.0, where=np.isfinite(values)))[1])
    return np.ldexp(values, -exponent), exponent
