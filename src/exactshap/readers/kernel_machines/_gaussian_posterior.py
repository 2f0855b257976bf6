"""Compute the posterior covariance of Shapley values of Gaussian processes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.machine import clocked
from exactshap.errors import BudgetError, ExactnessError, InputError, UnknownNameError, did_you_mean
from exactshap.kernels import Component, Kernel
from exactshap.readers import Request, Traits
from exactshap.readers.kernel_machines._bound import Strategy
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Posterior, Solution
from exactshap.solvers.rkhs import (
    BLOCK_VALUES,
    KernelFactors,
    MonomialFactors,
    Uncertainty,
    component_seconds,
    covariance_seconds,
    interaction_variance,
    shapley_covariance,
)

# Value functions that are linear in f given the kernel.
LINEAR_IN_F = ("interventional", "interventional-independent", "baseline")
# Multiplications for each row. An uncertainty comes by itself below a fiftieth of a second, and below a tenth of a second where it
# costs at most ten times what the values do (benchmarks/bench_gp.py).
CHEAP_OPERATIONS, AUTOMATIC_OPERATIONS, TIMES_THE_VALUES = 2e7, 1e8, 10.0
# Multiplications for each row: about ten minutes.
MAX_OPERATIONS = 1e12
# An exponential, in multiplications.
FACTOR_OPERATIONS = 10.0


@dataclass(frozen=True, eq=False)
class Process:
    """Hold one Gaussian process, and the outputs that share it."""

    components: tuple[Component, ...]  # the kernel as a sum of products
    points: np.ndarray  # (n_train, n_columns)
    # (n_train, n_train): lower Cholesky factor of the covariance of the noisy targets at the training rows
    cholesky: np.ndarray
    # (n_outputs,): squares of the factors by which the targets were divided before the fit.
    scales: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, points: np.ndarray, cholesky: np.ndarray, scales: Any = 1.0) -> Process:
        points = np.asarray(points, float)
        components = tuple(kernel.expand(points.shape[1]))
        return cls(components, points, np.asarray(cholesky, float), np.atleast_1d(np.asarray(scales, float)))


def attach(request: Request, processes: Sequence[Process]) -> tuple[GaussianPosterior | None, Request]:
    """Read the setting ``uncertainty``; return the posterior, or None, and the other settings.

    True, False, or "auto": computed where it is cheap. The outputs of independent processes together are
    those of the reader, in order.
    """
    options = dict(request.options)
    # Taken out here: the reader behind refuses settings that it does not know.
    wanted = options.pop("uncertainty", "auto")
    if wanted is not True and wanted is not False and not (isinstance(wanted, str) and wanted == "auto"):
        raise InputError("The 'uncertainty' parameter must be True, False or 'auto'", f"Got {wanted!r}")
    rest = replace(request, options=options)
    if wanted is False:
        return None, rest
    return GaussianPosterior(tuple(processes), wanted is True, request.memory_limit), rest


@dataclass(frozen=True, eq=False)
class GaussianPosterior:
    """Hold the processes that give an uncertainty: always, or where it is cheap enough."""

    processes: tuple[Process, ...]
    always: bool
    memory_limit: float = 2.0**30

    def refuse_unless_linear(self, value_function: str) -> None:
        """Refuse a requested uncertainty if the value function is not linear in f."""
        if self.always and value_function not in LINEAR_IN_F:
            raise UnknownNameError(
                f"uncertainty=True needs a value function that is linear in f, which {value_function!r} is not",
                do=did_you_mean(value_function, LINEAR_IN_F),
            )


class WithPosterior(Strategy):
    """Add a Gaussian process' covariance to another strategy's values."""

    def __init__(self, mean: Strategy, posterior: GaussianPosterior) -> None:
        self.machine, self.mean, self.posterior = mean.machine, mean, posterior
        self.block_rows, self.processes = mean.block_rows, posterior.processes

    def solve(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
        """Solve some rows."""
        if not self.offered(order):
            if self.posterior.always:
                raise self._refusal(order)
            return self.mean.solve(values, semivalue, order)
        return replace(self.mean.solve(values, semivalue, order), posterior=self._uncertainty(values, semivalue, order))

    def _uncertainty(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Posterior:
        weights = self._mixture()
        found: list[Posterior] = []
        for process in self.processes:
            factors = self.factors(values, process)
            single = shapley_covariance(factors, process.cholesky, weights, semivalue=semivalue, order=order)
            _certify(single, process)
            pairs = interaction_variance(factors, process.cholesky, weights, semivalue=semivalue) if order == 2 else None
            found += [_scaled(single, pairs, scale) for scale in process.scales]
        if self.machine.single_output:
            return found[0]
        return Posterior.of_outputs(found)

    def _mixture(self) -> np.ndarray:
        # Independent columns have no joint rows: their mean is taken factor by factor, in ``factors``.
        independent = self.machine.value_function == "interventional-independent"
        return np.ones(1) if independent else np.array(self.machine.weights)

    def factors(self, values: np.ndarray, process: Process) -> list[KernelFactors | MonomialFactors]:
        """Return the factors of every component, with the machine's players and background."""
        parts = [self._component(part, process.points, values) for part in process.components]
        if self.machine.value_function == "interventional-independent":
            _, weights = self.machine.rows_and_weights()
            return [part.independent(weights) for part in parts]
        return parts

    def _component(self, part: Component, points: np.ndarray, values: np.ndarray) -> KernelFactors | MonomialFactors:
        machine = self.machine
        background, _ = machine.rows_and_weights()
        if part.is_monomial:
            one, two = (machine.grouped(part.monomial(rows)[:, :, None])[:, :, 0] for rows in (values, background))
            return MonomialFactors(part.amplitude, one, two, part.monomial(points).prod(axis=1))

        def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(machine.grouped(part.factors(a, np.ascontiguousarray(b.T))))

        # k(x, x) by row, which is 1 for stationary kernels only.
        own = [factors[:, :, 0] for factors in self._own(part, values)] or [np.ones((0, machine.n_players))]
        return KernelFactors(
            part.amplitude,
            np.concatenate(own),
            between(values, background),
            between(background, background),
            between(values, points),
            between(background, points),
        )

    # -- what it costs, and whether it is offered --------------------------------------------------------------------

    def operations(self, order: int = 1) -> float:
        """Return an estimate of the multiplications for one row's uncertainty: factors, priors, functionals, triangular solves."""
        d = self.machine.n_players
        nodes, m, total = (d + 1) // 2, len(self._mixture()), 0.0
        for process in self.processes:
            n, parts = float(len(process.points)), len(process.components)
            factors = FACTOR_OPERATIONS * (m + n) * self.machine.n_columns
            total += parts * (factors + float(m * nodes * d) ** 2 / 2.0 + n * m * nodes * d) + n**2 * d
            if order == 2:
                total += parts * (float(m * nodes * d) ** 2 / 2.0 + n * m * nodes * d**2) + n**2 * d**2 / 2.0
        return total

    def offered(self, order: int = 1) -> bool:
        """Say whether the uncertainty of values of this order will be computed."""
        # A linear function of a Gaussian process is Gaussian, with a covariance in closed form; of others it is neither.
        is_linear = self.machine.value_function in LINEAR_IN_F
        if not is_linear or order > 2 or not all(process.components for process in self.processes):
            return False
        if self.posterior.always:
            return self.operations(order) <= MAX_OPERATIONS
        machine, d = self.machine, self.machine.n_players
        # The most multiplications by default: a count, so that all machines decide alike
        terms = machine.swept_terms if order == 1 else float(machine.n_terms)
        values = terms * len(machine.mixture) * ((d + 1) // 2) * float(d) ** order
        most = min(AUTOMATIC_OPERATIONS, max(CHEAP_OPERATIONS, TIMES_THE_VALUES * values))
        needed = self._bytes(self.block_rows or Traits.block_rows)
        return self.operations(order) <= most and needed <= self.posterior.memory_limit / 2.0

    def _bytes(self, n_rows: int) -> float:
        """Return the bytes of factors between background, training rows and a block."""
        machine = self.machine
        weights = machine.rows_and_weights()[1]
        d, m, rows = float(machine.n_players), float(len(weights)), float(n_rows)
        # Only then are factors multiplied or averaged into new arrays.
        merged = machine.has_groups or machine.value_function == "interventional-independent"
        needed = 0.0
        for process in self.processes:
            n = float(len(process.points))
            shared = m * d * (m + n) + rows * d * (m + n)
            # Factors that are merged from a copy
            largest = m * d * max(m, n) * float(merged)
            block = min(rows * n * d, max(BLOCK_VALUES, n * d))
            needed = max(needed, 8.0 * (len(process.components) * shared + 2.0 * largest + 4.0 * block))
        return needed

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of factors, row covariances and their pairs."""
        mean = self.mean.memory(n_rows, order)
        if not self.offered(order):
            return mean
        d, n = float(self.machine.n_players), float(max(len(process.points) for process in self.processes))
        pairs = n * d * (d - 1.0) / 2.0 * float(order == 2)
        block = min(n_rows * pairs, max(BLOCK_VALUES, pairs))
        return mean + self._bytes(n_rows) + 8.0 * (4.0 * block + 6.0 * n_rows * self.machine.n_outputs * d**2)

    def cost(self, few: np.ndarray, n_rows: int, semivalue: Semivalue, order: int, n_blocks: int) -> Cost:
        """Return the cost of the means and of the covariances: rows of a block share the factors of background and training rows."""
        mean = self.mean.cost(few, n_rows, semivalue, order, n_blocks)
        if not self.offered(order):
            return mean
        machine = self.machine
        shared = sum(float(len(self._mixture())) * len(process.points) * machine.n_players for process in self.processes)
        work = n_rows * self.operations(order) + n_blocks * FACTOR_OPERATIONS * shared
        seconds = covariance_seconds(order) * work + self._seconds_of_calls(few, n_rows, n_blocks)
        return mean + Cost(seconds, method="with the posterior covariance of each row")

    def _seconds_of_calls(self, few: np.ndarray, n_rows: int, n_blocks: int) -> float:
        """Return the seconds that components take besides their multiplications: a mixture of Gaussians has some hundred."""
        seconds = 0.0
        for process in self.processes:
            # Of few numbers, as those of all rows are counted by multiplications
            part, k = process.components[0], len(few)
            if part.is_monomial or not k:
                continue
            one, all_rows = (clocked(functools.partial(self._own, part, rows)) for rows in (few[:1], few))
            row = max(all_rows - one, 0.0) / max(k - 1, 1)
            # Five tables of factors: by background and training row, and of rows with themselves
            block = 5.0 * one + component_seconds()
            seconds += len(process.components) * (n_blocks * block + n_rows * row)
        return seconds

    def _own(self, part: Component, values: np.ndarray) -> list[np.ndarray]:
        """Return each row's factors with itself."""
        rows = ((row[None], np.ascontiguousarray(row[None].T)) for row in values)
        return [np.ascontiguousarray(self.machine.grouped(part.factors(*pair))) for pair in rows]

    def advice_on_memory(self) -> str:
        return "Raise memory_limit=, pass fewer rows as background=, or uncertainty=False for the mean only"

    def _refusal(self, order: int) -> Exception:
        if order > 2:
            return InputError("uncertainty=True is for values of order 1 and 2", f"Got order={order}")
        self.posterior.refuse_unless_linear(self.machine.value_function)
        return BudgetError(
            f"The uncertainty of the values of order {order} is out of reach",
            f"It would take {self.operations(order):.2g} operations a row; the limit is {MAX_OPERATIONS:.0e}",
            "Pass fewer rows as background=, group columns with groups=, or uncertainty=False for the mean only",
        )


def _certify(found: Uncertainty, process: Process) -> None:
    """Compare the covariance's sum with the process's variance of f(x) - mean f(Z).

    Two triangular solves of the same right-hand side differ by n eps times the condition of the factor, here estimated
    by its diagonal. The prior variance is the floor: where f is constant, everything that is compared is rounding of it.
    """
    if found.residual is None:
        return
    diagonal = np.diag(process.cholesky)
    n = len(diagonal) + found.covariance.shape[1]
    prior = sum(abs(component.amplitude) for component in process.components)
    tolerance = (
        16.0 * np.finfo(float).eps * n * diagonal.max() / diagonal.min() * (found.scale + prior) + 64.0 * found.error_bound
    )
    if np.any(np.abs(found.residual) > tolerance):
        i = int(np.argmax(np.abs(found.residual) - tolerance))
        raise ExactnessError(
            f"The covariance of row {i} does not add up to the variance of f(x) - mean f(Z)",
            f"Residual {found.residual[i]:.3g}, tolerance {tolerance[i]:.3g}, of a target of variance 1",
            "Please report it; uncertainty=False explains the mean only",
        )


def _scaled(found: Uncertainty, pairs: np.ndarray | None, scale: float) -> Posterior:
    """Return the posterior for a target divided by the root of ``scale``."""
    covariance, set_std = scale * found.covariance, None
    if pairs is not None:
        # A variance that is 0 may round to a negative number.
        singles = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0)
        set_std = np.sqrt(np.concatenate([singles, scale * pairs], axis=1))
    residual = None if found.residual is None else scale * found.residual
    return Posterior(covariance, residual, set_std)
