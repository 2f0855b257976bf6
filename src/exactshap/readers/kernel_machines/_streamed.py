"""Quadrature over blocks of rows x tiles of the background, added up by linearity."""

from __future__ import annotations

import numpy as np

from exactshap.readers.kernel_machines.machine import BACKGROUND_VALUES, BoundMachine, Strategy
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution, player_sets
from exactshap.solvers.product import solve_terms

__all__ = ["Streamed"]

BLOCK_VALUES = 2**18  # factors of one sub-block of rows: 2 MiB, what stays in the second cache of a core


class Streamed(Strategy):
    """Quadrature, term by term and background row by background row."""

    def __init__(self, machine: BoundMachine) -> None:
        self.machine = machine

    def solve(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
        machine = self.machine
        total = None
        for block, weights, absent in machine.tiles():
            step = max(1, BLOCK_VALUES // max(1, absent.shape[2] * max(machine.n_players, machine.n_columns)))
            rows = [
                solve_terms(
                    machine.grouped(block.factors(values[i : i + step])), absent, block.coefficients, weights, semivalue, order
                )
                for i in range(0, len(values), step)
            ]
            total = Solution.join(rows) if total is None else total + Solution.join(rows)
        if total is None:
            n_sets = len(player_sets(machine.n_players, order))
            total = Solution.zeros(len(values), n_sets, machine.n_outputs, method="quadrature")
        return machine.finish(total, values, semivalue, order)

    def row_bytes(self, order: int) -> float:
        return 16.0 * self.machine.n_outputs * (self.machine.n_players**order + 4)

    def fixed_bytes(self) -> float:
        cells = self.machine.widest * self.machine.n_columns
        return 6.0 * 8 * max(BLOCK_VALUES, cells) + 3.0 * 8 * min(BACKGROUND_VALUES, len(self.machine.mixture) * cells)

    def row_operations(self, order: int) -> float:
        d = self.machine.n_players
        return 5.0 * 8 * self.machine.n_terms * len(self.machine.mixture) * max(d, d**order / max(1, order))
