r"""Conditional mean embeddings through random Fourier features: O(n b^2) for each coalition, without landmarks.

A shift-invariant factor is the mean of cosines over its spectral density (Bochner), and a product of factors draws its
frequencies column by column, so that one draw of b / 2 frequencies serves every coalition:

.. math:: k_S(x, y) \approx z_S(x)^\top z_S(y), \qquad
          z_S(x) = \sqrt{2 / b}\, \bigl(\cos \omega_{r,S}^\top x_S,\; \sin \omega_{r,S}^\top x_S\bigr)_{r \le b/2}

unbiased, with an error that falls as the root of b. Source of the features: Rahimi & Recht (2007), Algorithm 1.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.errors import UnsupportedStructureError, message
from exactshap.kernels import Component
from exactshap.readers.kernel_machines.machine import BoundMachine, Monomials
from exactshap.solvers.rkhs import FeatureRidge, subset_product

__all__ = ["RandomFeatureEmbedding", "draw_frequencies", "fourier_features"]


def draw_frequencies(component: Component, n_columns: int, n_frequencies: int, rng: np.random.Generator) -> np.ndarray:
    r"""Return frequencies (n_frequencies, n_columns) from the spectral density of a component.

    exp(-gamma u^2) has a normal density of variance 2 gamma, exp(-lambda |u|) a Cauchy density of scale lambda and
    1 / (1 + u^2 / sigma^2) a Laplace density of scale 1 / sigma; a product of factors adds independent frequencies.
    """
    shape = (n_frequencies, n_columns)
    frequencies = np.zeros(shape)
    if component.squared is not None:
        frequencies += np.sqrt(2.0 * component.squared) * rng.standard_normal(shape)
    if component.absolute is not None:
        frequencies += component.absolute * rng.standard_cauchy(shape)
    for scales in component.cauchy:
        frequencies += rng.laplace(size=shape) / scales
    return frequencies


def fourier_features(rows: np.ndarray, frequencies: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return z_S (n, 2 * n_frequencies) of the columns in the boolean mask ``columns``."""
    phases = rows[:, columns] @ frequencies[:, columns].T
    m = len(frequencies)
    out = np.empty((len(rows), 2 * m))
    np.cos(phases, out=out[:, :m])
    np.sin(phases, out=out[:, m:])
    out *= 1.0 / np.sqrt(m)
    return out


class RandomFeatureEmbedding:
    """Embeddings on ``n_random_features`` cosines and sines."""

    name = "random Fourier conditional mean embeddings"
    in_kernel_space = False  # cosines of drawn frequencies are no functions of the kernel's space

    def __init__(
        self,
        machine: BoundMachine,
        rows: np.ndarray,
        weights: np.ndarray,
        eta: float,
        n_random_features: int,
        random_state: int,
        conditioning: list[Component],
    ) -> None:
        self.machine, self.rows, self.eta = machine, rows, eta
        self.n_random_features, self.ridge = n_random_features, FeatureRidge(weights, eta)
        self.parts = machine.expansion.parts
        for component in conditioning:
            _refuse_unless_stationary(component, machine.name)
        rng = np.random.default_rng(random_state)
        draws = [draw_frequencies(part, rows.shape[1], n_random_features // 2, rng) for part in conditioning]
        self.frequencies = draws[: len(self.parts)]
        self.known = draws[0] if len(draws) == 1 else self._mixture(conditioning, rng)

    def halved(self) -> RandomFeatureEmbedding:
        """Return the embedding on the first half of the frequencies."""
        half = copy.copy(self)
        half.n_random_features = 2 * max(1, len(self.known) // 2)
        half.frequencies = [frequencies[: half.n_random_features // 2] for frequencies in self.frequencies]
        half.known = self.known[: half.n_random_features // 2]
        return half

    def _mixture(self, conditioning: list[Component], rng: np.random.Generator) -> np.ndarray:
        """Draw from the spectral density of the mean factor of each player: of one component, chosen by amplitude."""
        shares = np.array([abs(part.amplitude) for part in conditioning])
        m = self.n_random_features // 2
        fresh = np.stack([draw_frequencies(part, self.rows.shape[1], m, rng) for part in conditioning])
        mixed = np.zeros(fresh.shape[1:])
        for columns in self.machine.players:
            chosen = rng.choice(len(shares), m, p=shares / shares.sum())
            mixed[:, list(columns)] = fresh[chosen, np.arange(m)][:, list(columns)]
        return mixed

    def _columns(self, mask: np.ndarray) -> np.ndarray:
        """Return the boolean mask (n_columns,) of the columns of the players in ``mask``."""
        columns = np.zeros(self.rows.shape[1], bool)
        for inside, members in zip(mask, self.machine.players, strict=True):
            columns[list(members)] = inside
        return columns

    def bound_to(self, values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return ``v(mask) -> (n_rows, n_outputs)`` without the intercept, for proper coalitions of some rows."""
        monomials = self.machine.expansion.monomials
        inside, outside = (
            (None, None) if monomials is None else (self._powers(monomials, values), self._powers(monomials, self.rows))
        )

        def value(mask: np.ndarray) -> np.ndarray:
            columns, others = self._columns(mask), self._columns(~mask)
            features = fourier_features(self.rows, self.known, columns)
            solved = self.ridge.solve(features, fourier_features(values, self.known, columns))
            total: Any = 0.0
            for part, frequencies in zip(self.parts, self.frequencies, strict=True):
                right = self.ridge.mean(fourier_features(self.rows, frequencies, others), features) @ solved
                left = fourier_features(values, frequencies, columns)
                total = total + _expected(part, frequencies, columns, others, left, right)
            if monomials is not None and inside is not None and outside is not None:
                expected = solved.T @ self.ridge.mean(features, subset_product(outside, ~mask))
                total = total + (expected * subset_product(inside, mask)) @ monomials.coefficients.T
            return np.asarray(total)

        return value

    def _powers(self, monomials: Monomials, values: np.ndarray) -> np.ndarray:
        factors = self.machine.grouped(monomials.factors(values))
        return np.ascontiguousarray(np.moveaxis(factors, 1, 0))

    def operations(self) -> float:
        """Return about how many multiplications one coalition of one row costs (with 256 rows in a block)."""
        n, b = float(len(self.rows)), float(self.n_random_features)
        return (4.0 * n * b**2 + 40.0 * n * b) / 256.0 + 3.0 * b**2

    def coalition_bytes(self) -> float:
        """Return the memory of one coalition's features."""
        return 8.0 * 6.0 * len(self.rows) * self.n_random_features

    def describe(self) -> str:
        return f"{self.name} ({self.n_random_features} features), eta = {self.eta:.3g}"

    def error(self, values: np.ndarray) -> np.ndarray:
        """Return the error of the approximate f(x) of each row: the coalition of all columns is the hardest one."""
        everything = np.ones(self.rows.shape[1], bool)
        error: Any = 0.0
        for part, frequencies in zip(self.parts, self.frequencies, strict=True):
            assert part.points is not None
            train = fourier_features(np.ascontiguousarray(part.points.T), frequencies, everything)
            approximate = fourier_features(values, frequencies, everything) @ (train.T @ part.coefficients.T)
            error = error + approximate - part.factors(values).prod(axis=1) @ part.coefficients.T
        return np.abs(np.broadcast_to(error, (len(values), self.machine.n_outputs))).max(axis=1, initial=0.0)


def _expected(
    part: Any, frequencies: np.ndarray, columns: np.ndarray, others: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Return sum_i c_i k_S(x, X_i) E[k(X_i, .) | x] (n_rows, n_outputs) through the features of the training rows."""
    train = np.ascontiguousarray(part.points.T)
    inside, outside = fourier_features(train, frequencies, columns), fourier_features(train, frequencies, others)
    middles = ((inside * c[:, None]).T @ outside for c in part.coefficients)
    return np.stack([np.einsum("xr,rx->x", left @ middle, right) for middle in middles], axis=1)


def _refuse_unless_stationary(component: Component, owner: str) -> None:
    if component.chi2 is not None or component.functions or component.powers is not None:
        raise UnsupportedStructureError(
            message(
                "The 'n_random_features' parameter needs factors of x - x': Gaussian, Laplacian or Cauchy",
                f"The kernel of {owner} multiplies them with chi-squared, linear, polynomial or user-given factors",
                "Pass n_landmarks=100 for the Nystroem form",
            )
        )
