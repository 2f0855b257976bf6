"""Hold the sums that parts of a table add up to, and the shares they become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.errors import BudgetError, ExplanationWarning, InputError, message, warn
from exactshap.results.decomposition import Decomposition, check_residual

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class R2Decomposition(Decomposition):
    """Hold the shares of R2 (or of the Brier skill score).

    Attributes
    ----------
    game : str
        ``"residual"``: tree by tree, each against the residual of the trees before it (Q-SHAP); ``"ensemble"``: the squared
        error of the whole model; ``"refit"``: of a regression fitted to each subset of columns.
    value_function : str
        ``"path_dependent"``: features out of a coalition are averaged over the cover of the trees; ``"refit"``: they are left out of
        the fit; else as in :func:`exactshap.explain`.
    """

    game: str
    value_function: str = "path_dependent"


@dataclass(frozen=True, eq=False, kw_only=True)
class R2Sums:
    """Hold sums over rows, in the squared unit of y."""

    facts: Mapping[str, Any]  # what is known of the model: parts of different models do not add up
    statistic: str
    feature_names: tuple[str, ...]
    game: str
    shares: np.ndarray  # (n_players,): Shapley(Q)
    expected: float  # what the shares must add up to, with the sign of R2
    rounding: float  # bound on the rounding error of that sum
    squared_error: float  # of the model's predictions
    weight: float  # sum of the weights
    mean: float  # weighted mean of y
    variation: float  # weighted sum of (y - mean)^2
    n_rows: int
    seconds: float | None = None  # forecast of the work
    value_function: str = "path_dependent"

    def __add__(self, other: R2Sums) -> R2Sums:
        if (dict(self.facts), self.feature_names, self.game) != (dict(other.facts), other.feature_names, other.game):
            got = f"Got {self.game!r} of {self.facts['model']} and {other.game!r} of {other.facts['model']}"
            raise InputError("Parts of R2 must be of one model, its columns and one game", got)
        weight, between = self.weight + other.weight, other.mean - self.mean
        added = ("shares", "expected", "rounding", "squared_error", "n_rows", "seconds")
        return replace(
            self,
            weight=weight,
            mean=self.mean + between * other.weight / weight,
            # the variation of two parts: within both, and between their means
            variation=self.variation + other.variation + between**2 * self.weight * other.weight / weight,
            **{name: getattr(self, name) + getattr(other, name) for name in added},
        )

    def result(self, rows: np.ndarray | None, backend: str | None) -> R2Decomposition:
        """Return the shares after checking their sum against the game."""
        sst = self.variation
        total, values = 1.0 - self.squared_error / sst, -self.shares / sst
        residual, tolerance = float(values.sum()) - self.expected / sst, self.rounding / sst
        check_residual("R2", residual, tolerance, "what their game says of their sum")
        return R2Decomposition(
            statistic=self.statistic,
            values=values,
            total=total,
            feature_names=self.feature_names,
            drift=float(values.sum()) - total,
            per_row=None if rows is None else -rows / sst,
            details={**self.facts, "n_rows": self.n_rows}
            | ({} if self.seconds is None else {"forecast_seconds": self.seconds}),
            backend=backend,
            game=self.game,
            value_function=self.value_function,
            residual=residual,
            tolerance=tolerance,
        )


def require_variation(variation: float, mean: float, weight: float) -> None:
    """Refuse a constant y: its sum of squares about the mean is rounding."""
    if not np.isfinite(variation):
        raise InputError(
            "The squares of `y` overflow, so that R2 is not defined", f"The mean is {mean:.6g}", "Use a larger unit"
        )
    if not variation > np.square(8.0 * EPS * mean) * weight:
        raise InputError("`y` does not vary, so that R2 is not defined", f"All weighted values are {mean:.6g}")


# Seconds of one core: above a minute a warning, above a day an error.
WARN_SECONDS, REFUSE_SECONDS = 60.0, 86_400.0


def check_seconds(seconds: float, what: str, do: str) -> None:
    """Warn above a minute and refuse above a day; ``what`` names the work."""
    if seconds > REFUSE_SECONDS:
        raise BudgetError(what, "More than a day", do)
    if seconds > WARN_SECONDS:
        warn(message(what, do=do), ExplanationWarning)
