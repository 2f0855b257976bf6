"""Bind a kernel machine to players, value function and background; define what ways of solving it have in common."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from exactshap._runtime.cache import BoundedCache, copied_state
from exactshap._runtime.slices import slices
from exactshap.games import ProductGame, with_equal_shares
from exactshap.kernels import Component
from exactshap.readers.kernel_machines._expansion import Expansion, ExpansionPart, Monomials, RadialTerms, cut_terms
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution
from exactshap.solvers.rkhs import Stability, machine_stability

# Of a tile of the background and of the tables of its sums: where memory_limit allows them.
TILE_BYTES, TABLE_BYTES = 2**25, 2**27
# A sweep of a mixture takes as long as that many single Gaussians (benchmarks/bench_radial.py).
SWEPT_GAUSSIANS = 25.0


@dataclass(frozen=True, eq=False)
class BoundMachine:
    """Hold what all ways of solving a kernel machine share; immutable after construction."""

    name: str  # the model's name, for messages
    expansion: Expansion  # the model's formula
    players: tuple[tuple[int, ...], ...]  # the columns of each player
    value_function: str
    single_output: bool  # whether results have no axis of outputs
    background: np.ndarray | None = None  # (n_background, n_columns)
    weights: np.ndarray | None = None  # (n_background,)
    # bytes, a sixteenth of which a tile of the background may take, and a quarter the tables of its sums
    memory_limit: float = 2.0**30
    precision: float = float(np.finfo(float).eps)  # rounding unit of the model's own arithmetic
    # Not shared with a copy that has another background.
    _kept: BoundedCache = field(default_factory=BoundedCache, init=False, repr=False)

    __getstate__ = copied_state

    @cached_property
    def n_players(self) -> int:
        return len(self.players)

    @cached_property
    def n_columns(self) -> int:
        return self.expansion.n_columns

    @cached_property
    def n_outputs(self) -> int:
        return self.expansion.n_outputs

    @cached_property
    def blocks(self) -> tuple[ExpansionPart | Monomials, ...]:
        return self.expansion.blocks

    @cached_property
    def n_terms(self) -> int:
        """Return the number of product terms of the formula; each has as many absent factors as :attr:`mixture`."""
        return sum(block.coefficients.shape[1] for block in self.blocks)

    @cached_property
    def n_radial(self) -> int:
        """Return the number of terms of radial kernels, each a mixture, in one sweep."""
        return sum(terms.points.shape[1] for terms in self.expansion.radial)

    @cached_property
    def swept_terms(self) -> float:
        """Return the effective number of terms of quadrature. The Gaussians of a radial kernel need one sweep."""
        others = sum(block.coefficients.shape[1] for block in self.expansion.without_radial.blocks)
        return others + SWEPT_GAUSSIANS * self.n_radial

    @cached_property
    def tile_values(self) -> int:
        """Return the number of background and training factors in memory at once."""
        return max(1, int(min(TILE_BYTES, self.memory_limit / 16.0) / 8.0))

    @cached_property
    def table_values(self) -> int:
        """Return the largest number of values of the tables of a background."""
        return max(1, int(min(TABLE_BYTES, self.memory_limit / 4.0) / 8.0))

    @cached_property
    def replaces_columns(self) -> bool:
        """Say whether absent columns have values of reference rows; else their factors are 1."""
        return self.value_function not in ("functional", "normalized")

    @cached_property
    def has_groups(self) -> bool:
        """Say whether players differ from the columns in order."""
        return self.players != tuple((j,) for j in range(self.n_columns))

    @cached_property
    def mixture(self) -> np.ndarray:
        """Return the weights of each term's absent factors: one per background row if rows are joint, else a single 1."""
        joint = self.value_function == "interventional" and self.weights is not None
        return np.array(self.weights) if joint else np.ones(1)

    def rows_and_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the background; it must be there."""
        assert self.background is not None
        assert self.weights is not None
        return self.background, self.weights

    # -- factors -----------------------------------------------------------------------------------------------------

    def grouped(self, factors: np.ndarray) -> np.ndarray:
        """Multiply the factors of each player's columns: (n, n_columns, m) -> (n, n_players, m)."""
        if not self.has_groups:
            return factors
        result = np.ones((factors.shape[0], self.n_players, factors.shape[2]))
        for p, columns in enumerate(self.players):
            for j in columns:
                result[:, p] *= factors[:, j]
        return result

    def distances(self, terms: RadialTerms, rows: np.ndarray) -> np.ndarray:
        """Return squared distances of rows from a radial kernel's points, by player. They are (n, n_players, n_terms)."""
        columns = terms.kernel.distances(rows, terms.points)
        if not self.has_groups:
            return columns
        # Squared distances add up over columns, where factors are multiplied.
        return np.stack([columns[:, list(player)].sum(axis=1) for player in self.players], axis=1)

    def present(self, values: np.ndarray) -> np.ndarray:
        """Return the factors (n_rows, n_players, n_terms) of present players, of all terms at once."""
        # Without any block, for a kernel of noise alone, the first stays
        first = np.ones((len(values), self.n_players, 0))
        return np.concatenate([first, *(self.grouped(block.factors(values)) for block in self.blocks)], axis=2)

    def absent_of_all(self, rows: slice) -> np.ndarray:
        """Return the factors (n_mixture, n_players, n_terms) of absent players, of all terms at once."""
        first = np.ones((len(self.mixture[rows]), self.n_players, 0))
        return np.concatenate([first, *(self.absent(block, rows) for block in self.blocks)], axis=2)

    @property
    def coefficients(self) -> np.ndarray:
        """Return the coefficients (n_outputs, n_terms) of all terms."""
        return np.concatenate([np.zeros((self.n_outputs, 0)), *(block.coefficients for block in self.blocks)], axis=1)

    def absent(self, block: ExpansionPart | Monomials | RadialTerms, rows: slice) -> np.ndarray:
        """Return the factors of absent players, (n_mixture, n_players, n_terms), or of radial kernels the squared distances."""
        is_radial = isinstance(block, RadialTerms)
        if not self.replaces_columns:
            return np.full((1, self.n_players, block.coefficients.shape[1]), 0.0 if is_radial else 1.0)
        background, weights = self.rows_and_weights()
        if isinstance(block, RadialTerms):
            return self.distances(block, background[rows])
        if self.value_function == "interventional-independent":
            # Independent players: the mean of a product is the product of the means.
            return np.einsum("m,mjl->jl", weights, self.grouped(block.factors(background)))[None]
        return self.grouped(block.factors(background[rows]))

    def background_tiles(self, block: ExpansionPart | Monomials | RadialTerms) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield background weights and absent factors, or distances, for blocks of terms: (n_background, n_players, n_terms)."""
        mixture = self.mixture
        for rows in slices(len(mixture), self.tile_values // max(1, block.coefficients.shape[1] * self.n_columns)):
            yield mixture[rows], np.ascontiguousarray(self.absent(block, rows))

    def tiles(self) -> Iterable[tuple[ExpansionPart | Monomials, np.ndarray, np.ndarray]]:
        """Return tiles of (block of terms, background weights, absent factors) that fit the memory; a single one is kept."""
        if self.n_terms * len(self.mixture) * self.n_columns > self.tile_values or not self.replaces_columns:
            return self._tiles()
        return self._kept.get(("tiles",)) or self._kept.get_or_make(("tiles",), lambda: list(self._tiles()), keep=1)  # type: ignore[no-any-return]

    def _tiles(self) -> Iterator[tuple[ExpansionPart | Monomials, np.ndarray, np.ndarray]]:
        for whole in self.blocks:
            for block in cut_terms(whole, max(1, self.tile_values // (8 * self.n_columns))):
                for weights, absent in self.background_tiles(block):
                    yield block, weights, absent

    # -- games -------------------------------------------------------------------------------------------------------

    def game(self, values: np.ndarray) -> ProductGame:
        """Return the product games of rows (n_rows, n_columns), all terms at once."""
        coefficients = self.coefficients
        game = ProductGame(
            c=coefficients[0] if self.single_output else coefficients.T,
            a=self.present(values).transpose(0, 2, 1),
            b=self.absent_of_all(slice(None)).transpose(0, 2, 1),
            weights=self.mixture,
            constant=self.expansion.intercept,
        )
        if self.value_function != "normalized":
            return game
        # v(S) - v(empty) + v(empty) |S| / d, so that v'(empty) = 0
        baseline = game.c.sum(axis=0) + game.constant
        return with_equal_shares(game, baseline, constant=game.constant - baseline)

    def finish(self, part: Part, values: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
        """Return the solution of some rows from their terms' sum."""
        constant = self.expansion.intercept
        if self.value_function == "normalized":
            part, constant = part.shifted(constant).with_shared_baseline(self.n_players, semivalue.mass), np.zeros(1)
        if self.expansion.is_mixture:
            part = replace(part, error_bound=part.error_bound + 2.0**order * self.mixture_error(values))
        return part.finish(
            self.n_players,
            semivalue,
            order,
            constant=constant,
            magnitude=np.maximum(self.peak(values), self._absent_peak),
            single_output=self.single_output,
        )

    def mixture_error(self, values: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Bound the error (n_rows,) of any v(S) from mixtures of Gaussians.

        Gaussians, Laplacians and Cauchy factors are at most 1; powers and functions are as large as at the row or in ``rows``, by
        default the background.
        """
        rows = self.background if rows is None else rows
        error, heights = np.zeros(len(values)), {}
        for part in self.expansion.parts:
            other = part.component.unbounded()
            if other is None:
                error += part.component.relative_error * part.magnitude
            elif part.component.relative_error:
                key = (id(part.points), *other.key)
                if key not in heights:
                    heights[key] = self._heights(values, other, part.points, rows)
                error += part.component.relative_error * (heights[key] @ np.abs(part.coefficients).max(axis=0))
        return error

    def _heights(self, values: np.ndarray, component: Component, points: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Return a product's largest magnitude (n_rows, n_terms) at any hybrid."""
        own = np.abs(component.factors(values, points))
        absent: Any = 1.0
        if self.replaces_columns and rows is not None:
            absent = np.abs(component.factors(rows, points)).max(axis=0)
        return np.asarray(np.maximum(own, absent).prod(axis=1))

    def peak(self, values: np.ndarray) -> np.ndarray:
        """Return the magnitude (n_rows,) that the model's own rounding is relative to.

        A factor exp(-s) is off by s eps relative and s exp(-s) <= 1/e: an absolute error of eps for each coefficient. A
        distance computed as |x|^2 + |y|^2 - 2 x.y is off by eps (|x|^2 + |y|^2), which the exponent inherits; no factor by more than 1.
        """
        expansion = self.expansion
        own = sum(part.magnitude * part.component.rounding for part in expansion.parts)
        peak = np.full(len(values), expansion.magnitude + own)
        for part in expansion.parts if expansion.cancels else ():
            rate = part.component.squared
            if rate is not None:
                norms = (rate * values**2).sum(axis=1) + (rate[:, None] * part.points**2).sum(axis=0).max(initial=0.0)
                peak += part.magnitude * np.minimum(norms, 1.0 / self.precision)
        if expansion.monomials is not None:
            monomials = expansion.monomials
            peak += np.abs(values[:, :, None] ** monomials.powers).prod(axis=1) @ monomials.magnitudes
        return peak

    @cached_property
    def _absent_peak(self) -> float:
        """Return the largest magnitude at a background row: the model's mean prediction over them is rounded with it."""
        rows = self.background if self.background is not None and self.replaces_columns else np.zeros((0, self.n_columns))
        # Some rows at a time, as there is a power for each row, column and monomial.
        return max((float(self.peak(rows[start : start + 16]).max()) for start in range(0, len(rows), 16)), default=0.0)

    # -- masked by hand ----------------------------------------------------------------------------------------------

    def functional_value(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return the functional v(S), with columns outside S moved onto each training row.

        A factor is 1 where x_j equals the training row's own value, so v(S) is the sum over training rows of the kernel at
        hybrids of x and that row. This uses one kernel matrix, not the factors of the solver.
        """
        expansion = self.expansion
        inside = np.zeros(self.n_columns, bool)
        for chosen, columns in zip(mask, self.players, strict=True):
            inside[list(columns)] = chosen
        total = np.zeros((len(values), self.n_outputs)) + expansion.intercept
        # Constants: the reader lets no other monomial pass
        if expansion.monomials is not None:
            total += expansion.monomials.coefficients.sum(axis=1)
        for terms in expansion.radial:
            squared = terms.kernel.distances(values, terms.points)[:, inside].sum(axis=1)
            total += terms.kernel.profile(squared) @ terms.coefficients.T
        for part in expansion.without_radial.parts:
            for term, point in enumerate(part.points.T):
                hybrid = np.where(inside, values, point)
                kernel = part.component.matrix(hybrid, point[None, :])[:, 0] / part.component.amplitude
                total += kernel[:, None] * part.coefficients[:, term]
        return total[:, 0] if self.single_output else total


# -- the interface of all ways of solving a bound machine ---------------------------------------------------------------


class Strategy(ABC):
    """Solve the games of a bound machine in one way.

    Rows come as ``values`` (n_rows, n_columns), checked. The methods without a docstring are those of ``Reader``.
    """

    machine: BoundMachine
    block_rows: int | None = None  # rows of one block at most; None: as the reader says
    uses_threads: bool = False

    def game(self, values: np.ndarray) -> Any:
        return self.machine.game(values)

    @abstractmethod
    def solve(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Solution: ...

    @abstractmethod
    def memory(self, n_rows: int, order: int) -> float: ...

    @abstractmethod
    def cost(self, few: np.ndarray, n_rows: int, semivalue: Semivalue, order: int, n_blocks: int) -> Cost:
        """Return the seconds, the method and whether it is exact; pieces of the work are timed on ``few`` of the rows."""

    def advice_on_memory(self) -> str | None:
        """Return specific advice for a row that does not fit in memory, or None."""
        return None

    def stability(self, rows: Callable[[], np.ndarray]) -> Callable[[Any], Any] | None:
        """Return the bound of Theorem 6 of RKHS-SHAP for ``rows()``. None: its conditions do not hold."""
        if self.machine.background is None or not self.machine.replaces_columns:
            return None
        return functools.partial(_stability, self.machine, rows)


def _stability(machine: BoundMachine, rows: Callable[[], np.ndarray], delta: Any) -> Stability:
    """Gather what the bound needs at its first use: most explanations never use it."""
    parts = [(part.component, part.coefficients, part.points) for part in machine.expansion.parts]
    powers, slopes = np.zeros((machine.n_columns, 0), int), np.zeros((machine.n_outputs, 0))
    if (monomials := machine.expansion.monomials) is not None:
        moving = monomials.powers.any(axis=0)  # constants do not
        powers, slopes = monomials.powers[:, moving], monomials.coefficients[:, moving]
    background, _ = machine.rows_and_weights()
    reach = np.stack([np.abs(values).max(axis=0, initial=0.0) for values in (rows(), background)])
    return machine_stability(parts, (powers, slopes), reach, delta)
