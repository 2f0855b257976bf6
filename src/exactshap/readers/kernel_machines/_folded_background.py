"""The joint background of a kernel machine, summed up once for all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from exactshap._runtime.cache import BoundedCache
from exactshap.readers.kernel_machines._cost import BACKGROUND_VALUES
from exactshap.readers.kernel_machines._expansion import Monomials, Part, cut_terms
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost
from exactshap.solvers.product import MAX_FOLDED_PLAYERS, Sums, folded_cost, folding_pays

if TYPE_CHECKING:
    from exactshap.readers.kernel_machines._kernel_machine import KernelReader
    from exactshap.solvers.product import Folded

__all__ = ["FoldedBackground"]

TABLE_VALUES = 2**24  # values of the tables that are kept between calls, and of one table: 128 MiB
FACTOR_VALUES = 2**18  # factors of one sub-block of rows: 2 MiB


class FoldedBackground:
    """Sum up the background of a machine's terms, and keep the tables where all of them fit in 128 MiB.

    Nothing depends on what is kept: tables are the same bits when they are made again for each block of rows, or after a pickle.
    """

    def __init__(self, reader: KernelReader) -> None:
        self._reader, self._cache = reader, BoundedCache()
        self.n_terms = sum(block.coefficients.shape[1] for block in reader.expansion.blocks)
        self.n_background = 0 if reader.weights is None else len(reader.weights)
        self.kept = reader.n_players <= MAX_FOLDED_PLAYERS and 2**reader.n_players * self.n_terms <= TABLE_VALUES

    def pays(self, semivalue: Semivalue, order: int) -> bool:
        """Say whether this way is taken, whatever the rows are."""
        reader = self._reader
        outputs = reader.expansion.n_outputs
        return reader.value_function == "interventional" and folding_pays(
            reader.n_players, self.n_background, self.n_terms, outputs, semivalue, order
        )

    def sums(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Sums:
        """Solve rows (n_rows, n_columns)."""
        from exactshap.solvers.product import Tally

        reader = self._reader
        tally = Tally(len(values), reader.n_players, reader.expansion.n_outputs)
        width = max(1, TABLE_VALUES // 2**reader.n_players)
        parts = [part for block in reader.expansion.blocks for part in cut_terms(block, width)]
        for number, part in enumerate(parts):
            folded = self._folded(number, len(parts), part)
            step = max(1, FACTOR_VALUES // max(1, part.coefficients.shape[1] * reader.expansion.n_columns))
            for start in range(0, len(values), step):
                rows = slice(start, min(start + step, len(values)))
                tally.add(rows, reader._grouped(part.factors(values[rows])), part.coefficients, folded)
        return tally.sums(semivalue, order)

    def _folded(self, number: int, n_parts: int, part: Part | Monomials) -> Folded:
        from exactshap.solvers.product import fold

        def make() -> Folded:
            return fold(self._reader.background_tiles(part), self._reader.n_players, part.coefficients.shape[1])

        return self._cache.get(("folded", number), make, keep=n_parts) if self.kept else make()

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of the tables, of a second copy of a tile of the background, and of all coalitions of the rows."""
        reader = self._reader
        if not self.pays(find("shapley"), order):
            return 0.0
        coalitions, outputs = 2.0**reader.n_players, reader.expansion.n_outputs
        tables = min(coalitions * self.n_terms, max(TABLE_VALUES, coalitions))
        tile = min(float(BACKGROUND_VALUES), self.n_background * self.n_terms * float(reader.n_players))
        return 8.0 * (tables + 0.6 * tile + n_rows * outputs * coalitions)

    def cost(self, n_rows: int, order: int, n_blocks: int) -> Cost:
        """Return the cost of tables once, or once for each block of rows, and of the rows; without the factors."""
        sizes = self.n_background, self.n_terms, self._reader.n_players, self._reader.expansion.n_outputs, order
        none, all_rows = folded_cost(0, *sizes), folded_cost(n_rows, *sizes)
        return all_rows if self.kept else all_rows + (n_blocks - 1) * replace(none, bytes=0.0, method="")
