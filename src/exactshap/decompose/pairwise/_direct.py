"""Compute both statistics by their textbook formulas: an independent check of totals."""

from __future__ import annotations

import numpy as np

from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.pairwise._factors import Factors, PanelBlock, add_distances

_ROWS = 128  # of one task


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
    """Return the sum of the kernel over pairs i < i'; with ``begin``, only over pairs i < begin <= i'."""

    def part(start: int) -> float:
        return float(_kernel_block(factors, begin, start)[2].sum())

    return sum(map_in_threads(part, range(0, begin or factors.n_rows, _ROWS), n_jobs))


def direct_sums(x: Factors, y: Factors, begin: int = 0, n_jobs: int | None = None) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the off-diagonal sum of K L, and row sums of both."""
    product, totals = 0.0, np.zeros((2, x.n_rows))

    def part(start: int) -> tuple[slice, slice, float, np.ndarray, np.ndarray]:
        (rows, others, k), (_, _, kernel) = (_kernel_block(one, begin, start) for one in (x, y))
        sides = [np.stack([k.sum(axis=axis), kernel.sum(axis=axis)]) for axis in (1, 0)]
        return rows, others, 2.0 * float(np.einsum("ij,ij->", k, kernel)), *sides  # type: ignore[return-value]

    for rows, others, more, of_rows, of_others in map_in_threads(part, range(0, begin or x.n_rows, _ROWS), n_jobs):
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


def _kernel_block(one: Factors, begin: int, start: int) -> tuple[slice, slice, np.ndarray]:
    """Return the rows from ``start``, those from ``begin`` on, and their kernel, 0 where i' <= i."""
    rows, others = slice(start, min(start + _ROWS, begin or one.n_rows)), slice(begin or start, one.n_rows)
    kernel = whole_kernel(one, rows, others)
    if not begin:
        height = rows.stop - rows.start
        # Each pair once: rows of the block are paired with later rows only.
        kernel[:, :height][np.tril_indices(height)] = 0.0
    return rows, others, kernel


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
