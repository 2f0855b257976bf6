"""Hold product kernels over columns of mixed kinds, and call the compiled kernels of pairs (``src/native/pairwise``).

A block holds the pairs of some rows i with some rows i' > i; its last axis is padded to whole tiles of :data:`LANES` pairs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.errors import UnsupportedStructureError
from exactshap.kernels import Radial
from exactshap.solvers.product import shorten_mixture

LANES = 64  # as in the kernels


class FactorArrays(NamedTuple):
    """Hold what the kernels read of :class:`~exactshap.decompose.pairwise._factors.Factors`."""

    columns: np.ndarray
    kinds: np.ndarray
    scales: np.ndarray
    starts: np.ndarray


class PanelBlock(NamedTuple):
    """Hold pairs of rows ``start <= i < stop`` and ``first <= i' < last``, i' > i. ``padded`` is a multiple of LANES."""

    start: int
    stop: int
    first: int
    last: int

    @property
    def height(self) -> int:
        return self.stop - self.start

    @property
    def padded(self) -> int:
        return -(-(self.last - self.first) // LANES) * LANES


fill_contributions = kernel("pairwise.fill_contributions(factors, rules, block, out)")
add_contributions = kernel("pairwise.add_contributions(factors, rules, block, rows, others)")
add_distances = kernel("pairwise.add_distances(columns, weights, squared, block, out)")
add_all_distances = kernel("pairwise.add_all_distances(columns, weights, squared, out)")
fill_gaps = kernel("pairwise.fill_gaps(factors, block, out)")
fill_products = kernel("pairwise.fill_products(factors, offset, block, out)")
fill_permuted_weights = kernel("pairwise.fill_permuted_weights(factors, offset, permutations, block, out)")
add_sides = kernel("pairwise.add_sides(values, weights, to_rows, first_row, to_columns, first_column)")
fill_node_products = kernel("pairwise.fill_node_products(factors, block, nodes, out)")
fill_joint_contributions = kernel(
    "pairwise.fill_joint_contributions(x_factors, x_offsets, y_factors, y_offsets, block, nodes, weights, out)"
)


# The numbers that the compiled kernels know
KERNELS = {"rbf": 0, "laplacian": 1, "cauchy": 2, "categorical": 3}


@dataclass(frozen=True, eq=False)
class Factors:
    """Hold the one-column factors of a product kernel, in the order of the players.

    ``columns (n_columns, n_rows)`` are numbers or category codes, ``kernels`` and ``bandwidths`` one per column, ``starts``
    (n_players + 1,) the columns of each player, ``names`` one per player. With ``radial`` all "rbf" columns together have one factor,
    that function of their distance.
    """

    columns: np.ndarray
    column_names: tuple[str, ...]
    kernels: tuple[str, ...]
    bandwidths: np.ndarray
    starts: np.ndarray
    names: tuple[str, ...]
    radial: Radial | None = None

    @functools.cached_property
    def gaussians(self) -> tuple[tuple[float, Factors], ...]:
        """Return weights and product kernels that add up to this kernel; a product kernel gives itself."""
        if self.radial is None:
            return ((1.0, self),)
        is_radial = np.array([kind == "rbf" for kind in self.kernels])
        # No distance is larger than the one between the ends of all columns: Gaussians are kept that matter up to there.
        ranges = np.ptp(self.columns[is_radial], axis=1) / self.bandwidths[is_radial]
        mixture = self.radial.mixture()
        rates, weights, _ = shorten_mixture(mixture.rates, mixture.weights, float((ranges**2).sum()))
        widths = [
            # exp(-rate u^2 / s^2) is a Gaussian of bandwidth s / sqrt(2 rate).
            np.where(is_radial, self.bandwidths / np.sqrt(2.0 * max(rate, 1e-300)), self.bandwidths)
            for rate in rates.tolist()
        ]
        parts = (replace(self, bandwidths=width, radial=None) for width in widths)
        return tuple(zip(weights.tolist(), parts, strict=True))

    @property
    def error(self) -> float:
        """Bound the error of the sum of all :attr:`gaussians`."""
        return 0.0 if self.radial is None else self.radial.mixture().error + 1e-16

    @property
    def n_rows(self) -> int:
        return self.columns.shape[1]

    @property
    def n_players(self) -> int:
        return len(self.names)

    @functools.cached_property
    def arrays(self) -> Handle:
        """Return the arrays that the compiled kernels read."""
        self._refuse_radial()
        kinds = np.array([KERNELS[name] for name in self.kernels], np.int64)
        # A difference is multiplied by 1 / sigma, of the Gaussian by 1 / (sqrt(2) sigma).
        scales = np.where(kinds == KERNELS["rbf"], np.sqrt(0.5), 1.0) / self.bandwidths
        return Handle(FactorArrays(np.ascontiguousarray(self.columns), kinds, scales, self.starts))

    def _refuse_radial(self) -> None:
        """Refuse to take a function of one distance for a product over the columns."""
        if self.radial is not None:
            raise UnsupportedStructureError(
                "This statistic needs a kernel that is a product over the columns",
                f"Got {self.radial}",
                f"Pass a name: {', '.join(KERNELS)}",
            )

    def take(self, rows: np.ndarray | slice) -> Factors:
        """Return some rows, with the same kernels and bandwidths; a slice of all rows is no copy."""
        return replace(self, columns=np.ascontiguousarray(self.columns[:, rows]))

    def kernel_matrices(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the kernel matrix of each player, of shape (n_players, n_rows, n_others): the reference implementation."""
        self._refuse_radial()
        out = np.ones((self.n_players, len(rows), len(others)))
        for j, (start, stop) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            for k in range(start, stop):
                u = np.abs(self.columns[k, rows][:, None] - self.columns[k, others][None, :])
                out[j] *= _kernel(self.kernels[k], u, self.bandwidths[k])
        return out

    def describe(self) -> dict[str, Any]:
        """Return the kernel and the bandwidth of each column, by name."""
        names = [str(self.radial) if self.radial and name == "rbf" else name for name in self.kernels]
        kernels = dict(zip(self.column_names, names, strict=True))
        sigmas = {
            n: float(s) for n, s, k in zip(self.column_names, self.bandwidths, self.kernels, strict=True) if k != "categorical"
        }
        return {"kernel": kernels, "bandwidth": sigmas}


def _kernel(name: str, u: np.ndarray, sigma: float) -> np.ndarray:
    if name == "rbf":
        return np.exp(-(u**2) / (2.0 * sigma**2))
    if name == "laplacian":
        return np.exp(-u / sigma)
    return 1.0 / (1.0 + (u / sigma) ** 2) if name == "cauchy" else (u == 0).astype(float)
