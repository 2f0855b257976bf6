"""Solve the games of a bound machine: by quadrature over tiles of the background, or by tables of its sums."""

from __future__ import annotations

import functools
import operator
from dataclasses import replace

import numpy as np

from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.machine import clocked, seconds_by_size
from exactshap._runtime.slices import slices
from exactshap.kernels import ScaledMixture
from exactshap.readers.kernel_machines._bound import BoundMachine, Strategy
from exactshap.readers.kernel_machines._expansion import ExpansionPart, Monomials, cut_terms
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost, Part, Solution, count_sets
from exactshap.solvers.product import (
    MAX_FOLDED_PLAYERS,
    CoalitionTable,
    ExponentialTerms,
    Folded,
    PreparedMixture,
    fold,
    folded_cost,
    folded_method,
    folding_pays,
    graded_rules,
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
# Explained rows of a sample at most, work of one of them, and seconds from which on no more rows are timed.
SAMPLE_ROWS, SAMPLE_UNITS, PATIENCE = 16, 5e5, 0.005
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
            solve = functools.partial(solve_functional, graded_rules(semivalue, machine.n_players), values)
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
        if machine.replaces_columns or machine.has_groups:
            return ()
        found = []
        for block in machine.blocks:
            rates = block.component.exponential_rates() if isinstance(block, ExpansionPart) else None
            if rates is None or isinstance(block, Monomials):
                return ()
            found.append(ExponentialTerms(block.points, *rates, block.coefficients))
        return tuple(found)

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
        parts = [part.component for part in machine.expansion.parts]
        summed = any(part.absolute is not None or part.chi2 is not None or part.cauchy for part in parts)
        # Arrays of factors at once: products of columns and sums of exponents need a second.
        copies = 1.1 + float(summed) + float(machine.has_groups)
        return 8.0 * (copies * (tiles * tile + rows) + 0.3 * float(columns > MAX_EQUAL_COLUMNS) * rows + sums)

    @property
    def _block_values(self) -> int:
        """Return the number of factors of a sub-block of rows."""
        return BLOCK_VALUES if len(self.machine.mixture) > 1 else ALONE_VALUES

    def cost(self, few: np.ndarray, n_rows: int, semivalue: Semivalue, order: int, n_blocks: int) -> Cost:
        """Time a few rows with some of the background, and multiply. The cost is linear in both."""
        machine, n_background = self.machine, len(self.machine.mixture)
        units = max(1, machine.n_terms) * quadrature_units(machine.n_players, semivalue, order)
        m = int(np.clip(SAMPLE_UNITS / units, 1, n_background))

        def solve(n: int) -> Solution:
            # Bound anew, as factors of the background are made for each block
            sample = machine
            if m < n_background:
                background, _ = machine.rows_and_weights()
                sample = replace(machine, background=background[:m], weights=np.full(m, 1.0 / m))
            return Streamed(sample).solve(few[np.arange(n) % len(few)], semivalue, order)

        method = solve(1).method  # the first loads the kernels and makes the nodes
        one, each = seconds_by_size(solve, SAMPLE_ROWS, patience=PATIENCE)
        return Cost((n_blocks * one + (n_rows - n_blocks) * each) * n_background / m, method=method)


def solve_radial(machine: BoundMachine, values: np.ndarray, semivalue: Semivalue) -> Part:
    """Return the sum of all terms with radial kernels, for single players."""
    if not len(values):
        return Part.zeros(0, machine.n_players, machine.n_outputs)
    total, rules = None, mixture_rules(semivalue, machine.n_players)
    for terms in (piece for whole in machine.expansion.radial for piece in whole.cut(_width(machine))):
        mixture = _prepared(terms.kernel)
        step = max(1, BLOCK_VALUES // max(1, terms.points.shape[1] * max(machine.n_players, machine.n_columns)))
        blocks = [values[i : i + step] for i in range(0, len(values), step)]
        for weights, outside in machine.background_tiles(terms):
            inside = (machine.distances(terms, block) for block in blocks)
            rows = (solve_mixture(rules, mixture, one, outside, weights, terms.coefficients) for one in inside)
            part = Part.join(rows, len(values))
            total = part if total is None else total + part
    assert total is not None
    return total


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


class FoldedBackground(Strategy):
    """Sum up a machine's background in tables where that pays, and keep them if all fit.

    Other requests are streamed. Results do not depend on what is kept: tables have the same bits when they are
    computed again for each block of rows, or after unpickling.
    """

    def __init__(self, machine: BoundMachine) -> None:
        self.machine, self.streamed, self._cache = machine, Streamed(machine), BoundedCache()
        d = machine.n_players
        self.kept = d <= MAX_FOLDED_PLAYERS and 2**d * machine.n_terms <= machine.table_values
        # Large blocks, as tables that are not kept are computed again for each.
        self.block_rows = 1024 if self.pays(find("shapley"), 1) and not self.kept else None

    def pays(self, semivalue: Semivalue, order: int) -> bool:
        """Say whether this method pays, for any rows."""
        machine = self.machine
        # Tables that are made again for each call take as long as ten rows of a sweep of the mixtures (benchmarks/bench_radial.py)
        if order == 1 and machine.n_radial and not self.kept:
            return False
        sizes = machine.n_players, len(machine.mixture), machine.n_terms, machine.n_outputs
        return folding_pays(*sizes, semivalue, order, machine.swept_terms if order == 1 else None)

    def solve(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
        if not self.pays(semivalue, order):
            return self.streamed.solve(values, semivalue, order)
        machine = self.machine
        coalitions = CoalitionTable(len(values), machine.n_players, machine.n_outputs)
        # A table has 2^d cells for each term: blocks hold as many terms as their tables fit.
        width = max(1, machine.table_values // 2**machine.n_players)
        blocks = [block for whole in machine.blocks for block in cut_terms(whole, width)]
        for number, block in enumerate(blocks):
            folded = self._folded(number, len(blocks), block)
            for rows in slices(len(values), BLOCK_VALUES // max(1, block.coefficients.shape[1] * machine.n_columns)):
                coalitions.add(rows, machine.grouped(block.factors(values[rows])), block.coefficients, folded)
        method = folded_method(machine.n_players, len(machine.mixture))
        return machine.finish(coalitions.part(semivalue, order, method), values, semivalue, order)

    def _folded(self, number: int, n_blocks: int, block: ExpansionPart | Monomials) -> Folded:
        machine = self.machine

        def make() -> Folded:
            return fold(machine.background_tiles(block), machine.n_players, block.coefficients.shape[1])

        if not self.kept:
            return make()
        table = "folded", number
        return self._cache.get(table) or self._cache.get_or_make(table, make, keep=n_blocks)

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of tables, a background tile and its copy, and the rows' coalitions."""
        machine = self.machine
        streamed = self.streamed.memory(n_rows, order)
        if not self.pays(find("shapley"), order):
            return streamed
        coalitions = 2.0**machine.n_players
        tables = min(coalitions * machine.n_terms, max(machine.table_values, coalitions))
        tile = min(float(machine.tile_values), len(machine.mixture) * machine.n_terms * float(machine.n_players))
        return streamed + 8.0 * (tables + 0.8 * tile + n_rows * machine.n_outputs * coalitions)

    def cost(self, few: np.ndarray, n_rows: int, semivalue: Semivalue, order: int, n_blocks: int) -> Cost:
        """Return the cost of the rows and of the tables. Tables are made once, or once per block of rows."""
        if not self.pays(semivalue, order):
            return self.streamed.cost(few, n_rows, semivalue, order, n_blocks)
        machine = self.machine
        n_background, tables = len(machine.mixture), 1 if self.kept else n_blocks
        # of all terms at a row
        factors = min(clocked(lambda: [machine.grouped(block.factors(few)) for block in machine.blocks]) for _ in range(2))
        sizes = n_background, machine.n_terms, machine.n_players, machine.n_outputs, order
        # The cost of no rows is that of the tables alone.
        again = (tables - 1) * folded_cost(0, *sizes).seconds
        return folded_cost(n_rows, *sizes) + Cost(factors / len(few) * (n_rows + tables * n_background) + again)
