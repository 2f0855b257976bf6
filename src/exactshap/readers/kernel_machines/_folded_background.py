"""The joint background of a kernel machine, summed up once for all rows."""

from __future__ import annotations

import time

import numpy as np

from exactshap._runtime.cache import BoundedCache
from exactshap.readers.kernel_machines._streamed import Streamed
from exactshap.readers.kernel_machines.machine import BoundMachine, Monomials, Part, Strategy, cut_terms
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Solution
from exactshap.solvers.core import MAX_FOLDED_PLAYERS, folded_method, folding_pays
from exactshap.solvers.product import CoalitionTable, Folded, fold

__all__ = ["FoldedBackground"]

TABLE_VALUES = 2**24  # values of the tables that are kept between calls, and of one table: 128 MiB
FACTOR_VALUES = 2**18  # factors of one sub-block of rows: 2 MiB


class FoldedBackground(Strategy):
    """Sum up the background of a machine's terms where that pays, and keep the tables where all of them fit in 128 MiB.

    Questions for which it does not pay are streamed. Nothing depends on what is kept: tables are the same bits when they are
    made again for each block of rows, or after a pickle.
    """

    def __init__(self, machine: BoundMachine) -> None:
        self.machine, self.streamed, self._cache = machine, Streamed(machine), BoundedCache()
        d = machine.n_players
        self.kept = d <= MAX_FOLDED_PLAYERS and 2**d * machine.n_terms <= TABLE_VALUES
        self._shapley = find("shapley")
        self._usual = self._forecast_pays(self._shapley, 1)
        self.block_rows = 1024 if self._usual and not self.kept else None  # tables are made again for each block of rows

    def pays(self, semivalue: Semivalue, order: int) -> bool:
        """Say whether this way is taken, whatever the rows are."""
        usual = order == 1 and semivalue is self._shapley
        return self._usual if usual else self._forecast_pays(semivalue, order)

    def _forecast_pays(self, semivalue: Semivalue, order: int) -> bool:
        machine = self.machine
        n_background = len(machine.mixture)
        return folding_pays(machine.n_players, n_background, machine.n_terms, machine.n_outputs, semivalue, order)

    def solve(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
        if not self.pays(semivalue, order):
            return self.streamed.solve(values, semivalue, order)
        machine = self.machine
        coalitions = CoalitionTable(len(values), machine.n_players, machine.n_outputs)
        width = max(1, TABLE_VALUES // 2**machine.n_players)
        blocks = [block for whole in machine.blocks for block in cut_terms(whole, width)]
        for number, block in enumerate(blocks):
            folded = self._folded(number, len(blocks), block)
            step = max(1, FACTOR_VALUES // max(1, block.coefficients.shape[1] * machine.n_columns))
            for start in range(0, len(values), step):
                rows = slice(start, min(start + step, len(values)))
                coalitions.add(rows, machine.grouped(block.factors(values[rows])), block.coefficients, folded)
        method = folded_method(machine.n_players, len(machine.mixture))
        return machine.finish(coalitions.solution(semivalue, order, method), values, semivalue, order)

    def _folded(self, number: int, n_blocks: int, block: Part | Monomials) -> Folded:
        machine = self.machine

        def make() -> Folded:
            return fold(machine.background_tiles(block), machine.n_players, block.coefficients.shape[1])

        return self._cache.get(("folded", number), make, keep=n_blocks) if self.kept else make()

    # -- forecasts ---------------------------------------------------------------------------------------------------

    def fixed_bytes(self) -> float:
        """Return the bytes of the tables and of what makes them, for single players."""
        tables = 8.0 * min(2.0**self.machine.n_players * self.machine.n_terms, TABLE_VALUES)
        return self.streamed.fixed_bytes() + (tables if self._usual else 0.0)

    def row_bytes(self, order: int) -> float:
        """Return the bytes of a row's result and, where the tables are used, of all its coalitions."""
        coalitions = 8.0 * 2.0**self.machine.n_players * self.machine.n_outputs
        return self.streamed.row_bytes(order) + (coalitions if self._usual else 0.0)

    def row_operations(self, order: int) -> float:
        if not self.pays(self._shapley, order):
            return self.streamed.row_operations(order)
        return 3.0 * 2**self.machine.n_players * self.machine.n_terms * self.machine.n_outputs

    def forecast(self, values: np.ndarray, semivalue: Semivalue, order: int, block_rows: int) -> tuple[str, bool, float] | None:
        """Return method, exactness and seconds: tables once, or once for each block of rows, and every row by one row."""
        if not self.pays(semivalue, order):
            return None
        n_rows, row, few = len(values), values[:1], values[:9]
        _, first = self._timed(row, semivalue, order)  # which may compile, and makes the tables that are kept
        solution, alone = self._timed(row, semivalue, order)
        if self.kept or len(few) == 1:
            return solution.method, True, first + alone * (n_rows - 1)
        _, several = self._timed(few, semivalue, order)
        each = max(0.0, several - alone) / (len(few) - 1)
        return solution.method, True, alone * np.ceil(n_rows / block_rows) + each * n_rows

    def _timed(self, values: np.ndarray, semivalue: Semivalue, order: int) -> tuple[Solution, float]:
        started = time.perf_counter()
        return self.solve(values, semivalue, order), time.perf_counter() - started
