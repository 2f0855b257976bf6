"""Hold a sampling problem: game, index, settings, and the coalitions called so far."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from exactshap.errors import ExplanationWarning, message
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.core import Calls, Part, keys_of, player_sets
from exactshap.solvers.sampled._placement import design
from exactshap.solvers.sampled._sampling import Draws, draw, leverage_scores, sizes_of, strata
from exactshap.solvers.sampled.process import Question, level_start, needs_even

# Players up to which KernelSHAP and the process' other corrections apply
COMPARED_COLUMNS = 600
# Pairs that a process is fitted to where others can correct it, as its time grows with their cube
MAX_FITTED = 6000


@dataclass(frozen=True)
class SamplingSettings:
    """Hold settings of sampling and regression; see :func:`exactshap.solvers.sampled._regression.solve_regression`."""

    estimator: str = "auto"
    polynomial_order: int | None = None
    frontier: Any = None
    pairing: bool = True
    sampling: str = "leverage"
    surrogate: str = "process"
    relevance_rows: int | None = None
    start_relevance: float | None = None


# names of special cases in the literature
NAMED: dict[str, dict[str, Any]] = {
    "kernelshap": {"estimator": "polynomial", "polynomial_order": 1, "frontier": None},
    "kadd-shap": {"estimator": "polynomial", "polynomial_order": 2, "pairing": False, "frontier": None},
    "unbiased-kernelshap": {"estimator": "unbiased", "surrogate": "none"},
}

# probability of each size 1..d-1, up to a constant
SAMPLINGS: dict[str, Callable[[int, int], np.ndarray]] = {
    "leverage": leverage_scores,
    "leverage-1": lambda d, order: np.ones(d - 1),
    "kernel": lambda d, order: 1.0 / (np.arange(1, d) * np.arange(d - 1, 0, -1.0)),
}


@dataclass
class RegressionProblem:
    """Hold game, index and coalitions called so far: ``inside`` are their values, ``outside`` their complements' if paired.

    Values are in units of ``unit`` (n_outputs,), powers of 2 near the largest of the first calls: squares neither over- nor underflow.
    """

    calls: Calls
    rng: np.random.Generator
    semivalue: Semivalue
    order: int
    sets: tuple[tuple[int, ...], ...]
    settings: SamplingSettings
    paired: bool = field(init=False, default=True)
    masks: np.ndarray = field(init=False)
    inside: np.ndarray = field(init=False)  # (n_masks, n_outputs)
    outside: np.ndarray = field(init=False)  # (n_masks, n_outputs), or (0, n_outputs)
    empty: np.ndarray = field(init=False)
    full: np.ndarray = field(init=False)
    total: np.ndarray = field(init=False)
    unit: np.ndarray = field(init=False)
    magnitude: float = field(init=False)  # of the largest call so far, in no unit
    relevances: np.ndarray | None = field(init=False, default=None)  # of the process that placed the last calls, as logarithms
    most_fitted: int = field(init=False, default=MAX_FITTED)  # pairs that a process is fitted to where others correct it
    # pairs that became single coalitions, the first of these, followed by their complements
    n_parted: int = field(init=False, default=0)
    is_shapley: bool = field(init=False)  # whether single players' Shapley values are wanted: those that polynomials estimate

    def __post_init__(self) -> None:
        self.masks, self.magnitude = np.zeros((0, self.n_players), bool), -1.0
        if self.settings.start_relevance is not None:
            self.relevances = level_start(self.n_players, self.settings.start_relevance)
        self.is_shapley = self.order == 1 and _is_shapley(self.semivalue, self.n_players)

    @cached_property
    def n_players(self) -> int:
        return self.calls.game.n_players

    @cached_property
    def draws(self) -> Draws:
        """Return the coalitions of the unbiased estimator."""
        return Draws(self.n_players)

    @property
    def question(self) -> Question:
        return Question(self.semivalue, self.order, self.sets)

    @property
    def odd_half(self) -> np.ndarray:
        """Return half the differences (n_masks, n_outputs) of the pairs."""
        return (self.inside - self.outside) / 2.0

    @property
    def independent(self) -> bool:
        return self.settings.estimator == "unbiased"

    @property
    def sees_even(self) -> bool:
        """Say whether the values depend on the even half of the game."""
        return not self.is_shapley and needs_even(self.semivalue, self.n_players, self.order)

    @property
    def is_corrected(self) -> bool:
        """Say whether pairs that a process is not fitted to correct its values."""
        return self.paired and self.is_shapley and self.n_players <= COMPARED_COLUMNS

    @property
    def n_fitted(self) -> int:
        """Return how many of the pairs a process is fitted to."""
        return min(len(self.masks), self.most_fitted) if self.is_corrected else len(self.masks)

    def of_players(self) -> RegressionProblem:
        """Return the problem of single players, with the pairs among the calls."""
        d, n = self.n_players, len(self.masks) if self.paired else self.n_parted
        found = RegressionProblem(self.calls, np.random.default_rng(0), find("shapley"), 1, player_sets(d, 1), self.settings)
        found.masks, found.inside = self.masks[:n], self.inside[:n]
        found.outside = self.outside if self.paired else self.inside[n : 2 * n]
        found.empty, found.full, found.total = self.empty, self.full, self.total
        found.unit, found.magnitude = self.unit, self.magnitude
        return found

    def solution(self, values: np.ndarray, std_error: np.ndarray, method: str) -> Part:
        """Return values and standard errors (n_sets, n_outputs), given in units."""
        unit = self.unit
        return Part(unit * values, unit * self.empty, unit * self.full, method, std_error=unit * std_error)

    def answers(self, masks: np.ndarray) -> np.ndarray:
        """Return the game's values of coalitions (n_masks, n_outputs), in units."""
        return self.calls(masks) / self.unit

    def grow(self, n_calls: int) -> None:
        """Draw coalitions until ``n_calls`` of them, the full and the empty one included, have been called."""
        if len(self.masks) == 0:
            # Decided at the first calls, as later ones are regressed with them
            self.paired = self._pairs(n_calls)
        n_wanted = (n_calls - 2) // (2 if self.paired else 1)
        if self.independent and self.n_players > 1:
            self._draw(n_wanted)
        elif (wanted := n_wanted - len(self.masks)) > 0 and self.n_players > 1:
            self.add(self._distinct(wanted))
        elif len(self.masks) == 0:
            # Nothing to draw, but the full and the empty coalition must be called
            self.add(self.masks)

    def _draw(self, n_wanted: int) -> None:
        """Call the game on independent draws, ``n_wanted`` in all."""
        self.draws.grow(n_wanted, self.rng)
        self.masks = self.draws.masks
        pairs = np.concatenate([self.draws.listed, self.masks])
        self._call(np.concatenate([pairs, ~pairs]))

    def add(self, masks: np.ndarray) -> None:
        """Call coalitions (n_masks, n_players), or pairs, that were not called before."""
        values = self._call(np.concatenate([masks, ~masks]) if self.paired else masks)
        inside, outside = values[: len(masks)], values[len(masks) :]
        if len(self.masks):
            inside, outside = np.concatenate([self.inside, inside]), np.concatenate([self.outside, outside])
        self.masks, self.inside, self.outside = np.concatenate([self.masks, masks]), inside, outside

    def part(self) -> None:
        """Treat the called pairs as single coalitions, to which others may be added."""
        self.n_parted = len(self.masks)
        self.masks, self.inside = np.concatenate([self.masks, ~self.masks]), np.concatenate([self.inside, self.outside])
        self.outside, self.paired = self.outside[:0], False

    def _call(self, masks: np.ndarray) -> np.ndarray:
        """Return the game's values of coalitions; the full and the empty one are called with the first of them."""
        ends = np.array([[False], [True]]).repeat(self.n_players, axis=1)
        values = self.calls(np.concatenate([ends, masks]))
        peaks = np.abs(values).max(axis=0)
        if self.magnitude < 0.0:
            self.unit = np.ldexp(1.0, np.where(peaks > 0, np.frexp(peaks)[1] - 1, 0))
        self.magnitude = max(self.magnitude, float(peaks.max()))
        values = values / self.unit
        self.empty, self.full = values[:2]
        self.total = self.full - self.empty
        return values[2:]

    def _pairs(self, n_calls: int) -> bool:
        """Say whether complements are called too: below one pair a player a process learns more from single coalitions."""
        if self.settings.estimator == "polynomial":
            return self.settings.pairing
        return self.independent or n_calls - 2 >= 2 * self.n_players

    def _distinct(self, wanted: int) -> np.ndarray:
        d = self.n_players
        if self.settings.estimator != "polynomial" and len(self.masks) == 0:
            return design(d, wanted, self.rng, paired=self.paired, every_size=self.paired and self.is_shapley)
        fresh, again = self._drawn(wanted)
        if len(fresh) <= wanted:
            return fresh
        # sizes were drawn for all calls, so earlier ones count
        called = self._of_sizes(self.masks) - self._of_sizes(again)
        fresh = fresh[self.rng.permutation(len(fresh))]
        sizes = sizes_of(fresh, paired=self.paired)
        order = np.argsort(sizes, kind="stable")
        place = np.arange(len(fresh)) - np.searchsorted(sizes[order], sizes[order])  # of each among those of its size
        kept = order[place >= called[sizes[order]]]
        return fresh[self.rng.permutation(kept)[:wanted]]

    def unseen(self, least: int) -> np.ndarray:
        """Return at least so many uncalled coalitions (or pairs), if there are as many, drawn and ordered by size."""
        return self._drawn(least)[0]

    def _drawn(self, least: int) -> tuple[np.ndarray, np.ndarray]:
        """Return coalitions drawn by size, as many as were called and ``least`` more: those not called yet, and the others."""
        weights = SAMPLINGS[self.settings.sampling](self.n_players, min(self.settings.polynomial_order or 1, self.n_players))
        groups = strata(self.n_players, paired=self.paired, size_weights=weights)
        drawn = draw(self.n_players, least + len(self.masks), self.rng, groups, paired=self.paired)
        # A pair is identified by either of its halves
        seen = {*keys_of(self.masks), *(keys_of(~self.masks) if self.paired else [])}
        is_new = np.array([name not in seen for name in keys_of(drawn)], bool)
        return drawn[is_new], drawn[~is_new]

    def _of_sizes(self, masks: np.ndarray) -> np.ndarray:
        """Return the number of coalitions of each size, (n_players + 1,)."""
        return np.bincount(sizes_of(masks, paired=self.paired), minlength=self.n_players + 1)


def warn_alike(which: str, calls: str) -> None:
    """Warn the caller of a solver that all sampled coalitions had the same answer."""
    what = f"All sampled {which} had the same answer, so that values and standard errors are 0"
    text = message(what, f"Got {calls}", "Pass a larger budget=, if the function differs somewhere")
    warnings.warn(text, ExplanationWarning, stacklevel=5)


@lru_cache(maxsize=64)
def _is_shapley(semivalue: Semivalue, n_players: int) -> bool:
    shapley = find("shapley").weights(n_players)
    return bool(np.allclose(semivalue.weights(n_players), shapley, rtol=1e-9, atol=1e-300))
