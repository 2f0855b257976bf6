"""What is said before and besides an explanation: its cost, and the check of the reading."""

from __future__ import annotations

from dataclasses import dataclass

from exactshap._runtime.progress import duration

__all__ = ["Forecast", "Verification"]


@dataclass(frozen=True)
class Forecast:
    """What an explanation will cost; printed, it is a sentence. Made by :meth:`exactshap.Explainer.plan`.

    Attributes
    ----------
    method : str
        As ``explanation.method`` will say.
    exact : bool
    seconds : float
        On one thread, extrapolated from a few rows.
    operations : float
        Multiplications, or calls of a black box.
    memory, result : float
        Bytes of working memory and of the result.
    block_rows : int
        Rows solved at a time.
    """

    method: str
    exact: bool
    seconds: float
    operations: float
    memory: float
    result: float
    block_rows: int

    def __str__(self) -> str:
        other = "exact for an approximated game" if "enumeration" in self.method else "sampled, with standard errors"
        kind = "exact" if self.exact else other
        return (
            f"{self.method} ({kind}): about {duration(self.seconds)} on one thread, {self.memory / 2**20:.0f} MiB of working"
            f" memory, {self.result / 2**20:.1f} MiB of result, blocks of {self.block_rows} rows"
        )


@dataclass(frozen=True)
class Verification:
    """The outcome of :meth:`exactshap.Explainer.verify`; printed, it is a sentence.

    Attributes
    ----------
    max_residual : float
        Largest |prediction - baseline - sum of values|.
    max_mask_difference : float or None
        Largest |v(S) - prediction of rows masked by hand|; None where no such twin exists.
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
        masks = "no hand-masked twin exists for this value function"
        if self.max_mask_difference is not None:
            masks = f"largest difference to the hand-masked model {self.max_mask_difference:.2g} on {self.n_masks} random coalitions"
        verdict = "passed" if self.passed else "FAILED"
        return (
            f"{verdict}: largest residual {self.max_residual:.2g}, {masks}; tolerance {self.tolerance:.2g}; {self.n_rows} rows"
        )
