"""Evaluate the product components of a covariance function: functionals, priors, ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap._native import kernel
from exactshap.semivalues import Beta, Measure
from exactshap.solvers.core import coarse_bound, enough_nodes

fill_prior = kernel("rkhs.fill_prior(corner, left, right, between, weights, nodes, node_weights, interactions, out)")
fill_functionals = kernel("rkhs.fill_functionals(a, b, weights, nodes, node_weights, out)")
fill_pair_functionals = kernel("rkhs.fill_pair_functionals(a, b, weights, nodes, node_weights, out)")
fill_spread = kernel("rkhs.fill_spread(corner, cross, between, spread)")


@dataclass(frozen=True, eq=False)
class KernelFactors:
    r"""Hold one product component :math:`s \prod_j k_j` of the covariance function between all rows."""

    amplitude: float  # s
    own: np.ndarray  # (n_rows, n_players): k_j(x_j, x_j)
    rows: np.ndarray  # (n_rows, n_players, n_background): k_j(x_j, z_j)
    background: np.ndarray  # (n_background, n_players, n_background): k_j(z_j, z'_j)
    rows_train: np.ndarray  # (n_rows, n_players, n_train): k_j(x_j, X_ij)
    background_train: np.ndarray  # (n_background, n_players, n_train): k_j(z_j, X_ij)

    def take(self, block: slice) -> KernelFactors:
        """Return the factors of some explained rows."""
        own, rows, rows_train = (np.ascontiguousarray(array[block]) for array in (self.own, self.rows, self.rows_train))
        return KernelFactors(self.amplitude, own, rows, self.background, rows_train, self.background_train)

    def independent(self, weights: np.ndarray) -> KernelFactors:
        """Return the factors of one reference row: means over the background, with independent columns."""
        return KernelFactors(
            self.amplitude,
            self.own,
            (self.rows @ weights)[:, :, None],
            np.einsum("z,zjy,y->j", weights, self.background, weights)[None, :, None],
            self.rows_train,
            np.einsum("z,zji->ji", weights, self.background_train)[None],
        )

    def functionals(self, weights: np.ndarray, measure: Measure, size: int) -> np.ndarray:
        """Return Phi (n_rows, n_sets, n_train)."""
        return self.amplitude * _functionals(self.rows_train, self.background_train, weights, measure, size)

    def prior(self, weights: np.ndarray, measure: Measure, size: int) -> tuple[np.ndarray, float]:
        """Return P (n_rows, n_pairs) and the bound on its quadrature error."""
        n_rows, n_players = self.own.shape
        spread = np.empty(n_rows)
        fill_spread(self.own, self.rows, self.background, spread)
        pairs, relative = np.zeros((n_rows, n_players * (n_players + 1) // 2)), 0.0
        # Bits of a row depend on that row alone: each takes the rule of its own spread, whatever rows lie around it
        counts = np.array([_n_nodes(measure, n_players - size, float(one)) for one in spread])
        for n_nodes in np.unique(counts):
            chosen = np.flatnonzero(counts == n_nodes)
            rule = measure.rule(2 * int(n_nodes) - 1 if n_nodes else max(0, n_players - size))
            nodes, node_weights = (np.array(part, float) for part in rule)
            error = 2.0 * coarse_bound(float(spread[chosen].max()), int(n_nodes)) if n_nodes else 0.0
            own, rows = (np.ascontiguousarray(array[chosen]) for array in (self.own, self.rows))
            found = np.zeros((len(chosen), pairs.shape[1]))
            fill_prior(own, rows, rows, self.background, weights, nodes, node_weights, size == 2, found)
            pairs[chosen], relative = found, max(relative, error)
        # Two derivatives, each at most twice the bound of its factor: hence 4
        return self.amplitude * pairs, 4.0 * relative * abs(self.amplitude) * self._height() if relative else 0.0

    def _height(self) -> float:
        """Bound the product of all |F|; each derivative is at most twice its factor's bound."""
        tops = [np.abs(array).max(axis=(0, 2), initial=0.0) for array in (self.own[:, :, None], self.rows, self.background)]
        return float(np.max(tops, axis=0).prod())

    def ends(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the prior variance of f(x) - mean f(Z), and its training covariances. They are (n_rows,) and (n_rows, n_train)."""
        between = weights @ self.background.prod(axis=1) @ weights
        # With BLAS the bits of a row would depend on its place among the others
        crossed = (self.rows.prod(axis=1) * weights).sum(axis=1)
        variance = self.own.prod(axis=1) - 2.0 * crossed + between
        sections = self.rows_train.prod(axis=1) - weights @ self.background_train.prod(axis=1)
        return self.amplitude * variance, self.amplitude * sections


@dataclass(frozen=True, eq=False)
class MonomialFactors:
    r"""Hold a component :math:`s\, \psi(x)\, \psi(x')` of a linear or polynomial kernel, :math:`\psi = \prod_j \psi_j`."""

    amplitude: float
    rows: np.ndarray  # (n_rows, n_players): psi_j(x_j)
    background: np.ndarray  # (n_background, n_players)
    train: np.ndarray  # (n_train,): psi of the training rows

    def take(self, block: slice) -> MonomialFactors:
        return MonomialFactors(self.amplitude, self.rows[block], self.background, self.train)

    def independent(self, weights: np.ndarray) -> MonomialFactors:
        return MonomialFactors(self.amplitude, self.rows, (weights @ self.background)[None], self.train)

    def _values(self, weights: np.ndarray, measure: Measure, size: int) -> np.ndarray:
        rows, background = (np.ascontiguousarray(array)[:, :, None] for array in (self.rows, self.background))
        return _functionals(rows, background, weights, measure, size)

    def functionals(self, weights: np.ndarray, measure: Measure, size: int) -> np.ndarray:
        return self.amplitude * self._values(weights, measure, size) * self.train

    def prior(self, weights: np.ndarray, measure: Measure, size: int) -> tuple[np.ndarray, float]:
        values = self._values(weights, measure, size)[:, :, 0]
        first, second = np.triu_indices(self.rows.shape[1])
        if size == 1:
            return self.amplitude * values[:, first] * values[:, second], 0.0
        pairs = np.zeros((len(values), len(first)))
        pairs[:, first != second] = values**2
        return self.amplitude * pairs, 0.0

    def ends(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        change = self.rows.prod(axis=1) - weights @ self.background.prod(axis=1)
        return self.amplitude * change**2, self.amplitude * np.outer(change, self.train)


Factors = KernelFactors | MonomialFactors


def _functionals(a: np.ndarray, b: np.ndarray, weights: np.ndarray, measure: Measure, size: int) -> np.ndarray:
    n_rows, n_players, n_terms = a.shape
    nodes, node_weights = (np.array(part, float) for part in measure.rule(max(0, n_players - size)))
    out = np.zeros((n_rows, n_players if size == 1 else n_players * (n_players - 1) // 2, n_terms))
    fill = fill_functionals if size == 1 else fill_pair_functionals
    fill(np.ascontiguousarray(a), np.ascontiguousarray(b), weights, nodes, node_weights, out)
    return out


def _n_nodes(measure: Measure, degree: int, spread: float) -> int:
    """Return the number of nodes that is enough for a spread, or 0 if an exact rule is needed."""
    n_nodes = enough_nodes(spread, max(0, degree)) if isinstance(measure, Beta) and np.isfinite(spread) else 0
    return n_nodes if n_nodes < max(0, degree) // 2 + 1 else 0
