"""Define the interface of all ways of solving a bound kernel machine."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.readers.kernel_machines.machine._bound import BoundMachine
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution
from exactshap.solvers.rkhs import Stability, machine_stability


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
    assert machine.background is not None
    parts = [(part.component, part.coefficients, part.points) for part in machine.expansion.parts if part.points is not None]
    reach = np.stack([np.abs(values).max(axis=0, initial=0.0) for values in (rows(), machine.background)])
    return machine_stability(parts, _moving_monomials(machine), reach, delta)


def _moving_monomials(machine: BoundMachine) -> tuple[np.ndarray, np.ndarray]:
    """Return powers (n_columns, n_monomials) and coefficients (n_outputs, n_monomials) of monomials that are no constants."""
    monomials = machine.expansion.monomials
    if monomials is None:
        return np.zeros((machine.n_columns, 0), int), np.zeros((machine.n_outputs, 0))
    moving = monomials.powers.any(axis=0)
    return monomials.powers[:, moving], monomials.coefficients[:, moving]
