"""The posterior of a Gaussian process, as the covariance of Shapley values needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.errors import BudgetError, ExactnessError, InputError, UnknownNameError, did_you_mean, message
from exactshap.frames import Table
from exactshap.kernels import Component, Kernel
from exactshap.readers import Request
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost
from exactshap.solvers.rkhs import (
    BLOCK_VALUES,
    KernelFactors,
    MonomialFactors,
    Uncertainty,
    covariance_seconds,
    interaction_variance,
    shapley_covariance,
)

__all__ = ["GaussianPosterior", "Process", "attach"]

LINEAR = ("interventional", "interventional-independent", "baseline")  # value functions that are linear in f given the kernel
AUTOMATIC_OPERATIONS = 3e8  # for each row: about a fifth of a second
MAX_OPERATIONS = 1e12  # for each row: about ten minutes


@dataclass(frozen=True, eq=False)
class Process:
    """One Gaussian process, and the outputs that share it.

    Attributes
    ----------
    components : tuple of Component
        The kernel as a sum of products.
    points : array of shape (n_train, n_columns)
    cholesky : array of shape (n_train, n_train)
        Lower Cholesky factor of the covariance of the noisy targets at the training rows.
    scales : array of shape (n_outputs,)
        Squares of the factors by which the targets were divided before the fit.
    """

    components: tuple[Component, ...]
    points: np.ndarray
    cholesky: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, points: Any, cholesky: Any, scales: Any = 1.0) -> Process:
        points = np.asarray(points, float)
        components = tuple(kernel.expand(points.shape[1]))
        return cls(components, points, np.asarray(cholesky, float), np.atleast_1d(np.asarray(scales, float)))


def attach(request: Request, processes: Sequence[Process]) -> tuple[GaussianPosterior | None, Request]:
    """Read the setting ``uncertainty`` and return the posterior (or None) and the request without that setting.

    Parameters
    ----------
    request : Request
        ``options["uncertainty"]`` is True, False or "auto": computed where a row costs less than a fifth of a second.
    processes : sequence of Process
        Independent ones, whose outputs together are the outputs of the reader, in order.
    """
    options = dict(request.options)
    wanted = options.pop("uncertainty", "auto")
    if wanted is not True and wanted is not False and not (isinstance(wanted, str) and wanted == "auto"):
        raise InputError(message("The 'uncertainty' parameter must be True, False or 'auto'", f"Got {wanted!r}"))
    rest = replace(request, options=options)
    if wanted is False:
        return None, rest
    return GaussianPosterior(tuple(processes), wanted is True, request.memory_limit), rest


@dataclass(frozen=True, eq=False)
class GaussianPosterior:
    """The parts of Gaussian processes that the covariance of their Shapley values is made of."""

    processes: tuple[Process, ...]
    always: bool
    memory_limit: float = 2.0**30

    def uncertainty(self, reader: Any, X: Table, semivalue: Semivalue, order: int) -> dict[str, np.ndarray | None]:
        """Return the fields of a Solution that tell the uncertainty of some rows; none where it is not offered.

        Raises
        ------
        ExactnessError
            If a covariance does not add up to the process's own variance.
        """
        if not self.offered(reader, order):
            if self.always:
                raise self._refusal(reader, order)
            return {}
        rows, weights = reader.columns(X), self._weights(reader)
        found: list[dict[str, np.ndarray | None]] = []
        for process in self.processes:
            factors = self.factors(reader, rows, process)
            single = shapley_covariance(factors, process.cholesky, weights, semivalue=semivalue, order=order)
            self._certify(single, process)
            pairs = interaction_variance(factors, process.cholesky, weights, semivalue=semivalue) if order == 2 else None
            found += [_scaled(single, pairs, scale) for scale in process.scales]
        if reader.single_output:
            return found[0]
        names = [name for name, array in found[0].items() if array is not None]
        return {name: np.stack([part[name] for part in found], axis=-1) for name in names}  # type: ignore[misc]

    def operations(self, reader: Any, order: int = 1) -> float:
        """Return about how many multiplications the uncertainty of one row costs: priors, functionals, triangular solves."""
        d, nodes = reader.n_players, (reader.n_players + 1) // 2
        m, total = len(self._weights(reader)), 0.0
        for process in self.processes:
            n, parts = float(len(process.points)), len(process.components)
            total += parts * (float(m * nodes * d) ** 2 / 2.0 + n * m * nodes * d) + n**2 * d
            if order == 2:
                total += parts * (float(m * nodes * d) ** 2 / 2.0 + n * m * nodes * d**2) + n**2 * d**2 / 2.0
        return total

    def offered(self, reader: Any, order: int = 1) -> bool:
        """Return whether the uncertainty of the reader's values will be computed."""
        if reader.value_function not in LINEAR or order > 2 or not all(process.components for process in self.processes):
            return False
        if self.always:
            return self.operations(reader, order) <= MAX_OPERATIONS
        return (
            self.operations(reader, order) <= AUTOMATIC_OPERATIONS
            and self._bytes(reader, reader.block_rows) <= self.memory_limit / 2.0
        )

    def _bytes(self, reader: Any, n_rows: int) -> float:
        d, m, rows = float(reader.n_players), float(len(reader.weights)), float(n_rows)
        needed = 0.0
        for process in self.processes:
            n = float(len(process.points))
            shared = m * d * (m + n) + rows * d * (m + n)
            merged = reader.value_function == "interventional-independent" or reader.n_players < reader.n_features
            largest = m * d * max(m, n) * float(merged)  # the factors of groups or of independent columns, merged from a copy
            block = min(rows * n * d, max(BLOCK_VALUES, n * d))
            needed = max(needed, 8.0 * (len(process.components) * shared + 2.0 * largest + 3.0 * block))
        return needed

    def memory(self, reader: Any, n_rows: int, order: int) -> float:
        """Return the bytes of the factors between background, training rows and a block of rows, and of what its pairs need."""
        if not self.offered(reader, order):
            return 0.0
        d, n = float(reader.n_players), float(max(len(process.points) for process in self.processes))
        pairs = max(0.0, n * d * (d - 1.0) / 2.0 - BLOCK_VALUES) if order == 2 else 0.0
        return self._bytes(reader, n_rows) + 8.0 * n_rows * (4.0 * pairs + 6.0 * reader.n_outputs * d**2)

    def memory_advice(self) -> str:
        """Say what to do where ``memory_limit`` is too small."""
        return "Raise memory_limit=, pass fewer rows as background=, or uncertainty=False for the mean only"

    def cost(self, reader: Any, n_rows: int, n_blocks: int, order: int) -> Cost:
        """Return the cost of the covariances: the rows of a block share the factors of background and training rows."""
        if not self.offered(reader, order):
            return Cost()
        rate = covariance_seconds(min(order, 2))
        shared = sum(float(len(self._weights(reader))) * len(process.points) * reader.n_players for process in self.processes)
        seconds = rate * (n_rows * self.operations(reader, order) + n_blocks * 10.0 * shared)
        return Cost(seconds, method="with the posterior covariance of each row")

    def factors(self, reader: Any, rows: np.ndarray, process: Process | None = None) -> list[KernelFactors | MonomialFactors]:
        """Return the factors of every component of a process (the first), with the players and background of the reader."""
        process = self.processes[0] if process is None else process
        parts = [self._component(part, process.points, reader, rows) for part in process.components]
        if reader.value_function == "interventional-independent":
            return [part.independent(reader.weights) for part in parts]
        return parts

    def _weights(self, reader: Any) -> np.ndarray:
        return np.ones(1) if reader.value_function == "interventional-independent" else np.array(reader.weights)

    def _component(self, part: Component, points: np.ndarray, reader: Any, rows: np.ndarray) -> KernelFactors | MonomialFactors:
        background = reader.columns(reader.background, "background")
        if part.is_monomial:
            one, two = (reader._grouped(part.monomial(values)[:, :, None])[:, :, 0] for values in (rows, background))
            return MonomialFactors(part.amplitude, one, two, part.monomial(points).prod(axis=1))

        def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(reader._grouped(part.factors(a, np.ascontiguousarray(b.T))))

        own = (
            np.concatenate([between(row[None], row[None])[:, :, 0] for row in rows])
            if len(rows)
            else np.ones((0, reader.n_players))
        )
        return KernelFactors(
            part.amplitude,
            own,
            between(rows, background),
            between(background, background),
            between(rows, points),
            between(background, points),
        )

    def _certify(self, found: Uncertainty, process: Process) -> None:
        """Compare the sum of the covariance with the process's own variance of f(x) - mean f(Z).

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
                message(
                    f"The covariance of row {i} does not add up to the variance of f(x) - mean f(Z)",
                    f"Residual {found.residual[i]:.3g}, tolerance {tolerance[i]:.3g}, of a target of variance 1",
                    "Please report it; uncertainty=False explains the mean only",
                )
            )

    def refuse_unless_linear(self, reader: Any) -> None:
        """Raise where the uncertainty was asked for and the value function is not linear in f."""
        if self.always and reader.value_function not in LINEAR:
            raise self._refusal(reader, 1)

    def _refusal(self, reader: Any, order: int) -> Exception:
        if order > 2:
            return InputError(message("uncertainty=True is for values of order 1 and 2", f"Got order={order}"))
        if reader.value_function in LINEAR and all(process.components for process in self.processes):
            return BudgetError(
                message(
                    f"The uncertainty of the values of order {order} is out of reach",
                    f"It would take {self.operations(reader, order):.2g} operations a row; the limit is {MAX_OPERATIONS:.0e}",
                    "Pass fewer rows as background=, group columns with groups=, or uncertainty=False for the mean only",
                )
            )
        return UnknownNameError(
            message(
                f"uncertainty=True needs a value function that is linear in f, which {reader.value_function!r} is not",
                do=did_you_mean(reader.value_function, LINEAR),
            )
        )


def _scaled(found: Uncertainty, pairs: np.ndarray | None, scale: float) -> dict[str, np.ndarray | None]:
    """Return the fields of a Solution for an output whose target was divided by the root of ``scale``."""
    covariance, set_std = scale * found.covariance, None
    if pairs is not None:
        singles = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0)
        set_std = np.sqrt(np.concatenate([singles, scale * pairs], axis=1))
    residual = None if found.residual is None else scale * found.residual
    return {"covariance": covariance, "covariance_residual": residual, "set_std": set_std}
