"""The posterior of a Gaussian process, as the covariance of Shapley values needs it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.errors import ExactnessError, InputError, UnknownNameError, did_you_mean, message
from exactshap.frames import Table
from exactshap.kernels import Component, Kernel
from exactshap.readers._base import Request
from exactshap.semivalues import Semivalue
from exactshap.solvers._gp_covariance import BLOCK_VALUES, KernelFactors, MonomialFactors, Uncertainty, shapley_covariance

__all__ = ["GaussianPosterior", "attach"]

LINEAR = ("interventional", "interventional-independent", "baseline")  # value functions that are linear in f given the kernel
AUTOMATIC_OPERATIONS = 3e8  # for each row: about a fifth of a second
TIMED_ROWS = 9


def attach(request: Request, kernel: Kernel, points: Any, cholesky: Any, scale: Any = 1.0) -> tuple[Any, Request]:
    """Read the setting ``uncertainty`` and return the posterior (or None) and the request without that setting.

    Parameters
    ----------
    request : Request
        ``options["uncertainty"]`` is True, False or "auto": computed where a row costs less than a fifth of a second.
    kernel : Kernel
    points : array of shape (n_train, n_columns)
    cholesky : array of shape (n_train, n_train)
        Lower Cholesky factor of the covariance of the noisy targets at the training rows.
    scale : float, default=1.0
        Square of the factor by which the targets were divided before the fit.
    """
    options = dict(request.options)
    wanted = options.pop("uncertainty", "auto")
    if wanted is not True and wanted is not False and wanted != "auto":
        raise InputError(message("The 'uncertainty' parameter must be True, False or 'auto'", f"Got {wanted!r}"))
    rest = replace(request, options=options)
    if wanted is False:
        return None, rest
    components = kernel.expand(np.asarray(points).shape[1])
    posterior = GaussianPosterior(
        components, np.asarray(points, float), np.asarray(cholesky, float), float(scale), wanted is True
    )
    return posterior, rest


@dataclass(frozen=True, eq=False)
class GaussianPosterior:
    """The parts of a Gaussian process that its Shapley values' covariance is made of."""

    components: tuple[Component, ...]
    points: np.ndarray
    cholesky: np.ndarray
    scale: float
    always: bool

    def covariance(self, reader: Any, X: Table, semivalue: Semivalue) -> np.ndarray | None:
        """Return the covariance (n_rows, n_players, n_players) of the values of some rows, or None where it is not offered."""
        found = self.uncertainty(reader, X, semivalue)
        return None if found is None else found.covariance

    def uncertainty(self, reader: Any, X: Table, semivalue: Semivalue) -> Uncertainty | None:
        """Return the covariance with its certificate; raise if the certificate fails."""
        if reader.value_function not in LINEAR or not reader.single_output or not self.components:
            if self.always:
                raise self._refusal(reader)
            return None
        if not self.always and self.operations(reader) > AUTOMATIC_OPERATIONS:
            return None
        found = shapley_covariance(
            self.factors(reader, reader.columns(X)), self.cholesky, self._weights(reader), semivalue=semivalue, scale=self.scale
        )
        self._certify(found)
        return found

    def operations(self, reader: Any) -> float:
        """Return about how many multiplications the covariance of one row costs."""
        d, nodes = reader.n_players, (reader.n_players + 1) // 2
        return float(len(self._weights(reader)) * nodes * d) ** 2 / 2.0 * len(self.components)

    def offered(self, reader: Any) -> bool:
        """Return whether the covariance of the reader's values will be computed."""
        possible = reader.value_function in LINEAR and reader.single_output and bool(self.components)
        return possible and (self.always or self.operations(reader) <= AUTOMATIC_OPERATIONS)

    def fixed_bytes(self, reader: Any) -> float:
        """Return the memory of the factors between the background, the training rows and a block of rows."""
        if not self.offered(reader):
            return 0.0
        m, n = float(len(reader.weights)), float(len(self.points))
        block = min(reader.block_rows * n * reader.n_players, BLOCK_VALUES)
        shared = m * reader.n_players * (m + n) + reader.block_rows * reader.n_players * (m + n)
        return 8.0 * (len(self.components) * shared + 3.0 * block)

    def forecast(
        self, reader: Any, X: Table, semivalue: Semivalue, order: int, block_rows: int
    ) -> tuple[str, bool, float] | None:
        """Return method, exactness and seconds: the rows of a block share the factors of background and training rows."""
        if order > 1 or not self.offered(reader):
            return None
        few = min(TIMED_ROWS, X.n_rows)
        reader.solve(X.take(slice(0, 1)), semivalue, order)  # compiles
        seconds = []
        for n_rows in (1, few):
            started = time.perf_counter()
            solution = reader.solve(X.take(slice(0, n_rows)), semivalue, order)
            seconds.append(time.perf_counter() - started)
        slope = max(0.0, seconds[1] - seconds[0]) / max(1, few - 1)
        blocks = -(-X.n_rows // block_rows)
        total = blocks * max(0.0, seconds[0] - slope) + X.n_rows * slope
        return f"{solution.method}, with the posterior covariance of each row", True, total

    def factors(self, reader: Any, rows: np.ndarray) -> list[KernelFactors | MonomialFactors]:
        """Return the factors of every component, with the players and the background of the reader."""
        weights = reader.weights
        parts = [self._component(part, reader, rows) for part in self.components]
        return [part.independent(weights) for part in parts] if reader.value_function == "interventional-independent" else parts

    def _weights(self, reader: Any) -> np.ndarray:
        return np.ones(1) if reader.value_function == "interventional-independent" else np.array(reader.weights)

    def _component(self, part: Component, reader: Any, rows: np.ndarray) -> KernelFactors | MonomialFactors:
        background = reader.columns(reader.background, "background")
        if part.is_monomial:
            one, two = (reader._grouped(part.monomial(values)[:, :, None])[:, :, 0] for values in (rows, background))
            return MonomialFactors(part.amplitude, one, two, part.monomial(self.points).prod(axis=1))

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
            between(rows, self.points),
            between(background, self.points),
        )

    def _certify(self, found: Uncertainty) -> None:
        """Compare the sum of the covariance with the process's own variance of f(x) - mean f(Z).

        Two triangular solves of the same right-hand side differ by n eps times the condition of the factor, here estimated
        by its diagonal. The prior variance is the floor: where f is constant, everything that is compared is rounding of it.
        """
        if found.residual is None:
            return
        diagonal = np.diag(self.cholesky)
        n = len(diagonal) + found.covariance.shape[1]
        prior = self.scale * sum(abs(component.amplitude) for component in self.components)
        tolerance = (
            16.0 * np.finfo(float).eps * n * diagonal.max() / diagonal.min() * (found.scale + prior) + 64.0 * found.error_bound
        )
        if np.any(np.abs(found.residual) > tolerance):
            i = int(np.argmax(np.abs(found.residual) - tolerance))
            raise ExactnessError(
                message(
                    f"The covariance of row {i} does not add up to the variance of f(x) - mean f(Z)",
                    f"Residual {found.residual[i]:.3g}, tolerance {tolerance[i]:.3g}",
                    "Please report it; uncertainty=False explains the mean only",
                )
            )

    def _refusal(self, reader: Any) -> Exception:
        if not reader.single_output:
            return InputError(message("uncertainty=True needs one output", f"Got {reader.n_outputs}", "Pass output=0"))
        return UnknownNameError(
            message(
                f"uncertainty=True needs a value function that is linear in f, which {reader.value_function!r} is not",
                do=did_you_mean(reader.value_function, LINEAR),
            )
        )
