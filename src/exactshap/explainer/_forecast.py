"""What is said before and besides an explanation: its cost, and the check of the reading."""

from __future__ import annotations

from dataclasses import dataclass

from exactshap._progress import duration

__all__ = ["Forecast", "Verification"]


@dataclass(frozen=True)
class Forecast:
    """What an explanation will cost: seconds extrapolated from one row, bytes of working memory and of the result."""

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
    """The outcome of :meth:`Explainer.verify`."""

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
