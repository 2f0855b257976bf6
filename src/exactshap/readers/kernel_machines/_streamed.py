"""Add up quadrature over blocks of rows and tiles of the background, by linearity.

Radial kernels of a machine: one sweep over the distances serves all Gaussians of their mixtures.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from exactshap._runtime.machine import clocked
from exactshap.kernels import ScaledMixture
from exactshap.readers.kernel_machines.machine import (
    BoundMachine,
    ExpansionPart,
    Monomials,
    RadialTerms,
    Strategy,
    cut_terms,
)
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution, count_sets
from exactshap.solvers.product import (
    ExponentialTerms,
    PreparedMixture,
    functional_rules,
    mixture_rules,
    prepare_mixture,
    quadrature_units,
    solve_functional,
    solve_mixture,
    solve_terms,
)

# Factors, or distances, of one sub-block of rows, all of which sweep a background: 2 MiB.
BLOCK_VALUES = 2**18
# The same without a background: they stay in the second cache of a core, and their memory is used again.
ALONE_VALUES = 2**16
# Explained rows of a sample, and its work: some milliseconds.
SAMPLE_ROWS, SAMPLE_UNITS = 4, 2e6
SAMPLE_TERMS, SAMPLE_BACKGROUND = (32, 512), 16
# Factors and rows of a block of a functional game that is swept.
BLOCK_WORK, BLOCK_ROWS = 2**26, (256, 4096)
# Columns: beyond, rows differ in their numbers of nodes and are copied by it.
MAX_EQUAL_COLUMNS = 24


class Streamed(Strategy):
    """Solve by quadrature, term by term and background row by background row."""

    def __init__(self, machine: BoundMachine) -> None:
        self.machine = machine
        # Rows hold nothing meanwhile: blocks of a tenth of a second, that threads may share
        if self._exponentials:
            self.block_rows = int(np.clip(BLOCK_WORK // max(1, machine.n_terms * machine.n_columns), *BLOCK_ROWS))

    @functools.cached_property
    def _others(self) -> Streamed:
        """Return the expansion without radial kernels."""
        return Streamed(replace(self.machine, expansion=self.machine.expansion.without_radial))

    def _sweeps_mixtures(self, order: int) -> bool:
        """Say whether one sweep is enough for all Gaussians of radial kernels: single players, hybrid rows."""
        return order == 1 and self.machine.n_radial > 0 and self.machine.value_function != "interventional-independent"

    def solve(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
        return self.machine.finish(self._sum(values, semivalue, order), values, semivalue, order)

    def _sum(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Part:
        """Return the sum of all terms."""
        if self._sweeps_mixtures(order):
            radial = solve_radial(self.machine, values, semivalue)
            return radial + self._others._sum(values, semivalue, order) if self._others.machine.blocks else radial
        machine = self.machine
        if order == 1 and self._exponentials:
            solve = functools.partial(solve_functional, functional_rules(semivalue, machine.n_players), values)
            return functools.reduce(operator.add, map(solve, self._exponentials))
        # Factors have the layout of the rows
        total, values = None, np.ascontiguousarray(values)
        for block, weights, absent in machine.tiles():
            step = max(1, self._block_values // max(1, absent.shape[2] * max(machine.n_players, machine.n_columns)))
            rows = (
                solve_terms(
                    machine.grouped(block.factors(values[i : i + step])), absent, block.coefficients, weights, semivalue, order
                )
                for i in range(0, len(values), step)
            )
            part = Part.join(rows, len(values))
            total = part if total is None else total + part
        if total is None:
            # A machine without terms: zeros of the right shape, as every part adds up.
            n_sets = count_sets(machine.n_players, order)
            total = Part.zeros(len(values), n_sets, machine.n_outputs, method="quadrature")
        return total

    @functools.cached_property
    def _exponentials(self) -> tuple[ExponentialTerms, ...]:
        """Return the functional game's terms of exponentials of single columns. They need no arrays of factors."""
        machine = self.machine
        # Hybrid rows need factors of the background as well, and groups products of several: only the others are exponentials.
        found = [] if machine.replaces_columns or machine.has_groups else [_exponential(block) for block in machine.blocks]
        return tuple(terms for terms in found if terms is not None) if None not in found else ()

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of background tiles, a block's factors and all rows' sums."""
        if self._sweeps_mixtures(order):
            others = self._others.memory(n_rows, order) if self._others.machine.blocks else 0.0
            return others + radial_memory(self.machine, n_rows)
        machine, columns = self.machine, self.machine.n_columns
        widest = max((block.coefficients.shape[1] for block in machine.blocks), default=0)
        width = min(widest, max(1, machine.tile_values // (8 * columns)))
        tile = min(max(machine.tile_values, width * columns), len(machine.mixture) * width * columns)
        # The next one is made while the last is held
        tiles = 1.0 if tile < machine.tile_values // 2 else 2.0
        rows = min(max(self._block_values, width * columns), n_rows * width * columns)
        if order == 1 and self._exponentials:
            tiles, rows = 0.0, 0  # none is made
        n_sets = count_sets(machine.n_players, order)
        sums = n_rows * (3.0 * machine.n_outputs * n_sets + 2.0 * columns) + 32.0 * (6 * machine.n_players + n_sets)
        return 8.0 * (self._copies() * (tiles * tile + rows) + 0.3 * float(columns > MAX_EQUAL_COLUMNS) * rows + sums)

    @property
    def _block_values(self) -> int:
        """Return the number of factors of a sub-block of rows."""
        return BLOCK_VALUES if len(self.machine.mixture) > 1 else ALONE_VALUES

    def _copies(self) -> float:
        """Return the number of arrays of factors at once: products of columns and sums of exponents need a second."""
        parts = [part.component for part in self.machine.expansion.parts]
        summed = any(part.absolute is not None or part.chi2 is not None or part.cauchy for part in parts)
        return 1.1 + float(summed) + float(self.machine.has_groups)

    def cost(self, few: np.ndarray, n_rows: int, semivalue: Semivalue, order: int, n_blocks: int) -> Cost:
        """Return the cost from a few rows, terms and background rows, multiplied, as it is linear in all three."""
        if self._sweeps_mixtures(order):
            radial = radial_cost(self.machine, few[:SAMPLE_ROWS], n_rows, semivalue)
            return (
                radial + self._others.cost(few, n_rows, semivalue, order, n_blocks) if self._others.machine.blocks else radial
            )
        machine, rows, total = self.machine, few[:SAMPLE_ROWS], Cost()
        n_background = len(machine.mixture)
        pairs = SAMPLE_UNITS / SAMPLE_ROWS / quadrature_units(machine.n_players, semivalue, order)
        for whole in machine.blocks:
            block = next(cut_terms(whole, int(np.clip(pairs, *SAMPLE_TERMS))))
            width = block.coefficients.shape[1]
            if not width:  # a machine without support vectors
                continue
            # A sample of some milliseconds: few terms first, then as many background rows as are left of its work.
            m = int(np.clip(pairs / width, 1, min(SAMPLE_BACKGROUND, n_background)))
            solve = self._sample(block, rows, m, semivalue, order)
            method = machine.finish(solve(), rows, semivalue, order).method  # the first loads the kernels
            sweep = min(clocked(solve) for _ in range(2)) / len(rows) / m * n_background
            # Background rows with factors of their own
            moving = n_background if machine.replaces_columns else 0
            made = n_blocks * moving + n_rows
            factors = 0.0 if order == 1 and self._exponentials else factor_seconds(machine, block, rows) * made
            share = whole.coefficients.shape[1] / width
            total += Cost(share * (n_rows * sweep + factors), method="" if total.method else method)
        return total if total.method else Cost(method="quadrature")

    def _sample(
        self, block: ExpansionPart | Monomials, rows: np.ndarray, m: int, semivalue: Semivalue, order: int
    ) -> Callable[[], Part]:
        """Return a call that solves a few rows with a few terms and ``m`` background rows, without the time of factors."""
        machine = self.machine
        terms = _exponential(block) if order == 1 and self._exponentials else None
        if terms is not None:
            return functools.partial(solve_functional, functional_rules(semivalue, machine.n_players), rows, terms)
        # Powers of rows that lie column by column do so as well.
        inside = np.ascontiguousarray(machine.grouped(block.factors(rows)))
        absent = np.ascontiguousarray(machine.absent(block, slice(0, m)))
        return functools.partial(
            solve_terms, inside, absent, block.coefficients, np.array(machine.mixture[:m]), semivalue, order
        )


def _exponential(block: ExpansionPart | Monomials) -> ExponentialTerms | None:
    rates = block.component.exponential_rates() if isinstance(block, ExpansionPart) else None
    if rates is None or not isinstance(block, ExpansionPart) or block.points is None:
        return None
    return ExponentialTerms(block.points, *rates, block.coefficients)


def factor_seconds(machine: BoundMachine, block: ExpansionPart | Monomials, rows: np.ndarray) -> float:
    """Return the seconds of one row's factors with a block of terms."""
    return min(clocked(lambda: machine.grouped(block.factors(rows))) for _ in range(2)) / len(rows)


SWEPT_TERMS, SWEPT_BACKGROUND = 64, 4


def solve_radial(machine: BoundMachine, values: np.ndarray, semivalue: Semivalue) -> Part:
    """Return the sum of all terms with radial kernels, for single players."""
    pieces = (piece for terms in machine.expansion.radial for piece in terms.cut(_width(machine)))
    parts = (
        _rows(machine, piece, values, weights, outside, semivalue)
        for piece in pieces
        for weights, outside in machine.background_tiles(piece)
    )
    return functools.reduce(operator.add, parts)


def _rows(
    machine: BoundMachine,
    terms: RadialTerms,
    values: np.ndarray,
    weights: np.ndarray,
    outside: np.ndarray,
    semivalue: Semivalue,
) -> Part:
    """Solve all rows with a piece of the terms and a tile of the background."""
    rules, mixture = mixture_rules(semivalue, machine.n_players), _prepared(terms.kernel)
    step = max(1, BLOCK_VALUES // max(1, terms.points.shape[1] * max(machine.n_players, machine.n_columns)))
    parts = (
        solve_mixture(rules, mixture, machine.distances(terms, values[i : i + step]), outside, weights, terms.coefficients)
        for i in range(0, len(values), step)
    )
    return Part.join(parts, len(values)) if len(values) else Part.zeros(0, machine.n_players, machine.n_outputs)


@functools.lru_cache(maxsize=64)
def _prepared(kernel: ScaledMixture) -> PreparedMixture:
    return prepare_mixture(kernel.mixture.rates, kernel.mixture.weights)


def _width(machine: BoundMachine) -> int:
    """Return the number of terms of a tile, so that their background fits."""
    return max(8, machine.tile_values // max(1, len(machine.mixture) * machine.n_columns))


def radial_memory(machine: BoundMachine, n_rows: int) -> float:
    """Return the bytes of the distances of a tile of the background and of a block of rows, and of the sums."""
    columns, width = machine.n_columns, min(_width(machine), machine.n_radial)
    tile = min(max(machine.tile_values, width * columns), len(machine.mixture) * width * columns)
    rows = min(max(BLOCK_VALUES, width * columns), n_rows * width * columns)
    sums = n_rows * machine.n_outputs * (3.0 * machine.n_players + 8.0)
    return 8.0 * ((1.0 + float(machine.has_groups)) * (2.0 * tile + rows) + sums)


def radial_cost(machine: BoundMachine, few: np.ndarray, n_rows: int, semivalue: Semivalue) -> Cost:
    """Return the cost from a few rows, terms and background rows, multiplied, as it is linear in all three."""
    total = Cost()
    for terms in machine.expansion.radial:
        piece = next(terms.cut(SWEPT_TERMS))
        weights, outside = next(machine.background_tiles(piece))
        some = slice(0, SWEPT_BACKGROUND)

        def sample(
            piece: RadialTerms = piece, weights: np.ndarray = weights[some], outside: np.ndarray = outside[some]
        ) -> None:
            _rows(machine, piece, few, weights, outside, semivalue)

        sample()  # the first loads the kernel
        n_pairs = len(weights[some]) * piece.points.shape[1]
        share = len(machine.mixture) * terms.points.shape[1] / n_pairs
        total += Cost(
            min(clocked(sample) for _ in range(2)) / len(few) * share * n_rows, method="quadrature of a mixture of Gaussians"
        )
    return total
