"""Hold the results of MMD and HSIC: shares with a certificate and inference, also as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import ExactnessError, InputError
from exactshap.results.decomposition._decomposition import Decomposition
from exactshap.results.plots import Marginal, prepare_marginals


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PairwiseDecomposition(Decomposition):
    """Hold a decomposition of a statistic over pairs of rows (MMD, HSIC).

    Attributes
    ----------
    index : str
        Which semivalue or interaction index the values are.
    order : int
        Sets of 1..order players have a value.
    residual : float or None
        For efficient indices the statistic by its textbook formula minus the sum of all values; for others that statistic
        minus its value by the fast path. None for sampled (block) estimates of several blocks, which are all checked.
    total_std_error : float or None
        Standard error of ``total`` as an estimate of the population's value.
    p_value : float or None
        Permutation p-value of ``total``.
    p_adjusted : array of shape (n_features,), or None
        ``p_values`` adjusted for looking at all shares; ``details["correction"]`` says how.
    null_values : array of shape (n_permutations, n_features), or None
        Shares of the permuted samples.
    null_totals : array of shape (n_permutations,), or None
        Statistic of the permuted samples.
    sets, set_values : tuple of tuples of int, array of shape (n_sets,), or None
        All sets of 1..order players and their values, for order >= 2.
    """

    index: str = "shapley"
    order: int = 1
    total_std_error: float | None = None
    p_value: float | None = None
    p_adjusted: np.ndarray | None = None
    null_values: np.ndarray | None = None
    null_totals: np.ndarray | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    set_values: np.ndarray | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        n = len(self.feature_names)
        for name, shape in (("p_adjusted", (n,)), ("set_values", (len(self.sets or ()),))):
            self._freeze(name, shape)
        for name, trailing in (("null_values", (n,)), ("null_totals", ())):
            if getattr(self, name) is not None:
                self._freeze(name, (len(getattr(self, name)), *trailing))

    @property
    def interactions(self) -> np.ndarray:
        """Return pairs as a symmetric matrix (n_features, n_features): the index itself, not halved; singles on the diagonal."""
        if self.sets is None or self.set_values is None:
            raise InputError("Interactions need order=2", f"Got order={self.order}", "Decompose with order=2")
        matrix = np.diag(self.values)
        for players, value in zip(self.sets, self.set_values, strict=True):
            if len(players) == 2:
                matrix[players], matrix[players[::-1]] = value, value
        return matrix

    def _columns(self) -> dict[str, Any]:
        columns = super()._columns()
        return columns if self.p_adjusted is None else {**columns, "p_adjusted": self.p_adjusted}

    def facts(self) -> list[str]:
        """Return sentences on the statistic, its error, p-value and certificate."""
        head, *certificate = super().facts()
        facts = [head]
        if self.p_value is not None and self.null_totals is not None:
            facts.append(f"p = {self.p_value:.4g} ({len(self.null_totals)} permutations)")
        if self.details.get("n_blocks", 1) > 1:
            facts.append(f"mean over {self.details['n_blocks']} random blocks of rows")
        return [*facts, *certificate]

    def _total(self) -> str:
        return super()._total() + ("" if self.total_std_error is None else f" ± {self.total_std_error:.2g}")

    def _p_values(self) -> dict[str, list[str]]:
        columns = super()._p_values()
        if columns and self.p_adjusted is not None:
            columns[f"p ({self.details['correction']})"] = [f"{p:.4g}" for p in self.p_adjusted]
        return columns


def pair_tolerance(scale: float, n_rows: int, n_columns: int) -> float:
    r"""Return the largest difference of two exact computations that rounding can explain.

    .. math:: 16\, \epsilon\, (n + d)\, \mathrm{scale}

    Kernel values are products of d rounded factors (Higham 2002, Lemma 3.1); n^2 of them are added up, with a rounding
    error that grows like the square root of their number (Higham & Mary 2019). ``scale`` bounds the sum of the magnitudes.
    """
    return 16.0 * float(np.finfo(float).eps) * (n_rows + n_columns) * scale


def check_residual(name: str, residual: float, tolerance: float, other: str = "its direct computation") -> None:
    """Raise if two independent computations of a statistic disagree: then no number may be trusted."""
    if not abs(residual) <= tolerance:
        raise ExactnessError(
            f"The shares of {name} do not add up to {other}",
            f"They differ by {residual:.3g} (tolerance {tolerance:.3g})",
            "This is a bug of exactshap: please report it, with exactshap.show_versions()",
        )


def strongest_marginals(shares: PairwiseDecomposition, samples: tuple[Any, Any]) -> tuple[Marginal, ...]:
    """Return both samples' distributions of the four columns with the largest shares, with these shares."""
    strongest = np.argsort(-shares.values, kind="stable")[:4]
    captions = [f"contribution {shares.values[j]:.3g}" for j in strongest]
    return prepare_marginals(*samples, [shares.feature_names[j] for j in strongest], captions)
