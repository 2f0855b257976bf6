"""Sum up the joint background of a kernel machine once for all rows."""

from __future__ import annotations

import numpy as np

from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.machine import clocked
from exactshap._runtime.slices import slices
from exactshap.readers.kernel_machines._streamed import Streamed
from exactshap.readers.kernel_machines.machine import BoundMachine, ExpansionPart, Monomials, Strategy, cut_terms
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost, Solution
from exactshap.solvers.product import MAX_FOLDED_PLAYERS, CoalitionTable, Folded, fold, folded_cost, folded_method, folding_pays

# Factors of one sub-block of rows: 2 MiB.
FACTOR_VALUES = 2**18


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
            for rows in slices(len(values), FACTOR_VALUES // max(1, block.coefficients.shape[1] * machine.n_columns)):
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
