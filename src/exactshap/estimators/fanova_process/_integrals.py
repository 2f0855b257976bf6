r"""Sums over all sets of columns by quadrature.

.. math:: \sum_{U \ni i, j} \frac{1}{|U|^2} \prod_{k \in U} h_k
          = h_i h_j \int_0^1 u \prod_{k \ne i, j} (1 + u\, h_k)\, (-\ln u)\, \mathrm{d}u

as :math:`1/n^2 = \int_0^1 u^{n-1} (-\ln u)\, \mathrm{d}u`; for i = j one factor h and the factor u are left out. Integrands have degree
d - 1: ceil(d / 2) Gauss nodes of either weight are exact.
"""

from __future__ import annotations

import functools

import numpy as np

from exactshap.semivalues import find

__all__ = ["log_rule", "squared_shares"]


def squared_shares(h: np.ndarray) -> np.ndarray:
    """Return the sum over all U with i and j of prod h_U / |U|^2, (n_rows, d, d), from non-negative h (n_rows, d)."""
    u, weights = log_rule(-(-h.shape[1] // 2))
    factors = 1.0 + u[None, :, None] * h[:, None, :]  # (n_rows, n_nodes, d), at least 1: dividing by them loses nothing
    product = weights * factors.prod(axis=2)
    ratios = h[:, None, :] / factors
    found: np.ndarray = (ratios * (u * product)[:, :, None]).transpose(0, 2, 1) @ ratios
    j = np.arange(h.shape[1])
    found[:, j, j] = np.einsum("rq,rqj->rj", product, ratios)
    return found


@functools.lru_cache(maxsize=64)
def log_rule(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the Gauss rule of the weight :math:`-\ln u` on [0, 1], exact to degree ``2 n_nodes - 1``.

    It is the law of a product of two uniform numbers: a product of two Gauss-Legendre rules has its moments, and Lanczos' recursion
    (Gragg and Harrod 1984) reduces that to as few nodes.
    """
    t, w = find("shapley").rule(degree=2 * n_nodes - 1)
    nodes, mass = np.outer(t, t).ravel(), np.outer(w, w).ravel()
    basis = [np.sqrt(mass)]
    diagonal, beside = [], []
    for _ in range(n_nodes):
        following = nodes * basis[-1]
        diagonal.append(float(following @ basis[-1]))
        for one in (*basis, *basis):  # twice: orthogonal up to rounding
            following = following - (following @ one) * one
        beside.append(float(np.linalg.norm(following)))
        basis.append(following / beside[-1] if beside[-1] > 0 else following)
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    found, vectors = np.linalg.eigh(matrix)
    return found, vectors[0] ** 2
