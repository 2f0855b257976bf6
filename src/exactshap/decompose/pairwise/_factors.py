"""Hold product kernels over columns of mixed kinds; sum them over pairs.

A block holds the pairs of some rows i with some rows i' > i; its last axis is padded to whole tiles of :data:`LANES` pairs. Both
statistics are computed by their textbook formulas as well, from one function of summed distances.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap._runtime.slices import slices
from exactshap._runtime.threads import map_in_threads
from exactshap.errors import UnsupportedStructureError
from exactshap.kernels import Radial
from exactshap.solvers.product import shorten_mixture

LANES = 64  # as in the kernels
# The numbers that the compiled kernels know
KERNELS = {"rbf": 0, "laplacian": 1, "cauchy": 2, "categorical": 3}
_ROWS = 128  # of one task of a total

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


class FactorArrays(NamedTuple):
    """Hold what the kernels read of :class:`Factors`."""

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
        """Return weights and product kernels that add up to this kernel. A product kernel gives itself."""
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
        """Return some rows, with the same kernels and bandwidths. A slice of all rows is no copy."""
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


def mmd_of_sums(pairs: np.ndarray, n: int, m: int, estimator: str) -> float:
    r"""Return the squared MMD from kernel sums (2, 2) over pairs i < i', within and between the samples.

    .. math:: \frac{\sum_{i \ne i'} k(x_i, x_{i'})}{n (n-1)} + \frac{\sum_{i \ne i'} k(z_i, z_{i'})}{m (m-1)}
              - \frac{2 \sum_{i, i'} k(x_i, z_{i'})}{n m}

    unbiased; the biased estimator keeps the pairs i = i' and divides by n^2 and m^2.
    """
    sums = pairs + pairs.T
    within = np.diag(sums) / (np.array([n - 1.0, m - 1.0]) * [n, m])
    if estimator == "biased":
        # k(x, x) = 1: the biased estimator counts the pairs i = i', which were left out of the sums.
        within = (np.diag(sums) + np.array([n, m])) / np.array([float(n) ** 2, float(m) ** 2])
    return float(within.sum() - 2.0 * sums[0, 1] / (n * m))


def kernel_sum(factors: Factors, begin: int, n_jobs: int | None) -> float:
    """Return the sum of the kernel over pairs i < i'. With ``begin``, only over pairs i < begin <= i'."""

    def part(rows: slice) -> float:
        return float(_kernel_block(factors, begin, rows)[1].sum())

    return sum(map_in_threads(part, slices(begin or factors.n_rows, _ROWS), n_jobs))


def direct_sums(x: Factors, y: Factors, begin: int = 0, n_jobs: int | None = None) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the off-diagonal sum of K L, and row sums of both."""
    product, totals = 0.0, np.zeros((2, x.n_rows))

    def part(rows: slice) -> tuple[slice, slice, float, np.ndarray, np.ndarray]:
        (others, k), (_, kernel) = (_kernel_block(one, begin, rows) for one in (x, y))
        sides = [np.stack([k.sum(axis=axis), kernel.sum(axis=axis)]) for axis in (1, 0)]
        return rows, others, 2.0 * float(np.einsum("ij,ij->", k, kernel)), *sides  # type: ignore[return-value]

    for rows, others, more, of_rows, of_others in map_in_threads(part, slices(begin or x.n_rows, _ROWS), n_jobs):
        product += more
        totals[:, rows] += of_rows
        totals[:, others] += of_others
    return product, *totals  # type: ignore[return-value]


def hsic_of_sums(sums: tuple[float, np.ndarray, np.ndarray], estimator: str) -> float:
    r"""Return the HSIC of two samples of the same rows. :func:`direct_sums` gives the sums.

    .. math:: \frac{1}{(n-1)^2}\, \mathrm{tr}(K H L H) = \frac{1}{(n-1)^2} \Bigl(\sum_{i,i'} K L
              - \frac{2}{n} \sum_i (K1)_i (L1)_i + \frac{1}{n^2} \sum K \sum L \Bigr)

    biased; unbiased as in Song et al. (2012, equation 5), with the diagonals of K and L set to zero.
    """
    product, k_rows, l_rows = sums
    n = len(k_rows)
    if estimator == "biased":
        # The diagonals of K and L are 1, and were left out of the sums.
        k_rows, l_rows, product = k_rows + 1.0, l_rows + 1.0, product + n
        mixed = 2.0 / n * (k_rows @ l_rows)
        return float((product - mixed + k_rows.sum() * l_rows.sum() / n**2) / (n - 1) ** 2)
    mixed = 2.0 / (n - 2) * (k_rows @ l_rows)
    return float((product - mixed + k_rows.sum() * l_rows.sum() / ((n - 1) * (n - 2))) / (n * (n - 3)))


def _kernel_block(one: Factors, begin: int, rows: slice) -> tuple[slice, np.ndarray]:
    """Return the rows that some are paired with, those from ``begin`` on, and their kernel, 0 where i' <= i."""
    others = slice(begin or rows.start, one.n_rows)
    kernel = whole_kernel(one, rows, others)
    if not begin:
        height = rows.stop - rows.start
        # Each pair once: rows of the block are paired with later rows only.
        kernel[:, :height][np.tril_indices(height)] = 0.0
    return others, kernel


def whole_kernel(one: Factors, rows: slice, others: slice) -> np.ndarray:
    """Return the whole kernel: one function of summed distances, not a product of factors."""
    kinds = np.array(one.kernels)
    exponent = np.zeros((rows.stop - rows.start, others.stop - others.start))
    block = PanelBlock(rows.start, rows.stop, others.start, others.stop)
    for kind, power in (("rbf", 2), ("laplacian", 1)):
        chosen = kinds == kind
        if chosen.any():
            columns = one.columns if chosen.all() else one.columns[chosen]  # usually no copy
            # One exponential of a sum of distances: independent of the fast path, which multiplies factors.
            add_distances(columns, -1.0 / one.bandwidths[chosen] ** power / power, power == 2, block, exponent)
    if one.radial is None:
        kernel = np.exp(exponent, out=exponent)
    else:
        # Squared distances: the only other kinds are "rbf" and "categorical".
        exponent *= -2.0
        kernel = one.radial.profile(np.maximum(exponent, 0.0, out=exponent))
    for k in np.flatnonzero(kinds == "cauchy"):
        kernel /= 1.0 + (np.subtract.outer(one.columns[k, rows], one.columns[k, others]) / one.bandwidths[k]) ** 2
    for k in np.flatnonzero(kinds == "categorical"):
        kernel *= np.equal.outer(one.columns[k, rows], one.columns[k, others])
    return kernel
