r"""Errors of a process' Shapley values under a prior that weighs orders of interaction apart.

The kernel says how much of a game is of order 1, how much of order 3, and so on: one relevance a player decides all of it. A design of
placed coalitions lets orders all but cancel from the values, each to a degree of its own, so that errors hang on that split. The values
of the process are :math:`a_j^\top g`, :math:`a_j = K^{-1} c_j`, linear in the calls; for any other prior :math:`\sum_k s_k K_k` of the
odd half their errors have the variance

.. math:: \sum_k s_k \bigl(\mathrm{var}_k \phi_j - 2\, a_j^\top c_{kj} + a_j^\top K_k a_j\bigr)

with k the characters of order 1, of order 3, all others of the kernel, and the white part. The weights s are the most probable ones
given the calls, the kernel's own split being the guess before: variance components by Newton steps with average information (Gilmour,
Thompson & Cullis 1995). With :math:`p_r = \sum_j (\rho_j x_j x'_j)^r` and :math:`Z = \prod_j (1 + \rho_j)`

.. math:: K_1 = p_1 / Z, \qquad K_3 = (p_1^3 - 3 p_1 p_2 + 2 p_3) / (6 Z), \qquad \phi_j(\chi_T) = 2\, [j \in T] / |T|.
"""

from __future__ import annotations

import numpy as np

from exactshap.solvers.sampled.process._descent import Slopes, search
from exactshap.solvers.sampled.process._evidence import IMPOSSIBLE, JITTER, covariance
from exactshap.solvers.sampled.process._hypercube import Asked, CubeProcess
from exactshap.solvers.sampled.process._relevance import evenly_spaced

__all__ = ["errors_by_order"]

BLOCK_ROWS = 256  # of a kernel that are worked out at once
ROWS = 100  # that tell of the weights: more tell no more of the errors
SPREAD = np.array([3.0, 3.0, 3.0, 6.0])  # of the weights' logarithms before any call; of the white part least is known
BOUNDS = np.array([[-25.0] * 4, [12.0] * 4])
MAX_STEPS, ENOUGH = 15, 0.05  # nats that a step must promise


def errors_by_order(process: CubeProcess, asked: Asked) -> np.ndarray:
    """Return standard errors (n_players, n_outputs) of the Shapley values of paired calls, ``asked`` for, in the process' ``unit``."""
    fitted = asked.fitted
    rows = np.argsort(process.order)[evenly_spaced(len(process.order), ROWS)]
    scale = np.sqrt(fitted.variance)
    told = scale > 0
    weights = _weights(_kernels(process, rows), fitted.half.target[rows][:, told] / scale[told])
    return np.asarray(np.sqrt(weights @ _variances(process, asked))[:, None] * scale)


def _low_orders(points: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return K_1 and K_3 (n_rows, n_rows)."""
    total, p2 = np.prod(1.0 + rho), (rho**2).sum()
    p1, p3 = (points * rho) @ points.T, (points * rho**3) @ points.T
    return p1 / total, (p1 * (p1 * p1 - 3.0 * p2) + 2.0 * p3) / (6.0 * total)


def _kernels(process: CubeProcess, rows: np.ndarray) -> np.ndarray:
    """Return the kernels of order 1, order 3, the rest and the white part at some rows, (4, n_rows, n_rows)."""
    points = process.points[rows]
    one, three = _low_orders(points, process.rho)
    rest = covariance(points, points, process.theta, -1) - one - three
    return np.array([one, three, rest, process.white * np.eye(len(rows))])


def _variances(process: CubeProcess, asked: Asked) -> np.ndarray:
    """Return what each of the kernels, as it is, adds to the variances of the values' errors, (4, n_players)."""
    points, rho, joint, a = process.points, process.rho, asked.joint, asked.influence
    total, p2, signed = np.prod(1.0 + rho), (rho**2).sum(), points * rho
    others = ((signed.sum(axis=1, keepdims=True) - signed) ** 2 - (p2 - rho**2)) / 2.0  # pairs of other players
    sums = (points.T @ a) ** 2  # (n_players, n_players), of one column's weights each
    one, third = rho @ sums, rho**3 @ sums  # a^T p_r a
    three = (_cubes(points, rho, a) - 3.0 * p2 * one + 2.0 * third) / 6.0
    found = [
        (4.0 * rho - 4.0 * (a * signed).sum(axis=0) + one) / total,
        (2.0 / 9.0) * rho * ((rho.sum() - rho) ** 2 - (p2 - rho**2)) / total
        - (4.0 / 3.0) * (a * signed * others).sum(axis=0) / total
        + three / total,
        process.white * (joint.own - 2.0 * (a * joint.indicators).sum(axis=0) + (a**2).sum(axis=0)),
    ]
    rest = (
        joint.prior - (a * joint.cross).sum(axis=0) - JITTER * (a**2).sum(axis=0) - np.sum(found, axis=0)
    )  # K a + jitter a = c
    return np.maximum([*found[:2], rest, found[2]], 0.0)


def _cubes(points: np.ndarray, rho: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return a^T p_1^3 a (n_columns,) of each column of ``a`` (n_rows, n_columns), in blocks of rows and what stands right of them."""
    total = np.zeros(a.shape[1])
    for start in range(0, len(points), BLOCK_ROWS):
        end = start + BLOCK_ROWS
        p1 = (points[start:end] * rho) @ points[start:].T
        cubes = np.multiply(p1, p1)
        cubes *= p1
        n = len(p1)
        total += (a[start:end] * (cubes[:, :n] @ a[start:end] + 2.0 * (cubes[:, n:] @ a[end:]))).sum(axis=0)
    return total


def _weights(kernels: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the most probable weights (4,) of ``kernels`` (4, n_rows, n_rows) given ``target`` (n_rows, n_outputs)."""
    from scipy.linalg import lapack

    jitter = JITTER * np.eye(len(target))

    def function(logs: np.ndarray) -> tuple[float, Slopes]:
        weights = np.exp(logs)
        lower, failed = lapack.dpotrf(np.tensordot(weights, kernels, 1) + jitter, lower=1)
        if failed:
            return IMPOSSIBLE, lambda: (np.zeros(4), np.eye(4))
        dual = lapack.dpotrs(lower, target, lower=1)[0]

        def slopes() -> tuple[np.ndarray, np.ndarray]:
            inverse = lapack.dpotrs(lower, np.eye(len(target)), lower=1)[0]
            moved = weights[:, None, None] * (kernels @ dual)  # (4, n_rows, n_outputs)
            traces = weights * (kernels * inverse).sum(axis=(1, 2)) * target.shape[1]
            gradient = 0.5 * (traces - (moved * dual).sum(axis=(1, 2))) + logs / SPREAD**2
            curvature = 0.5 * np.einsum("kro,lro->kl", moved, inverse @ moved)
            return gradient, curvature + np.diag(SPREAD**-2.0)

        fit = target.shape[1] * np.log(lower.diagonal()).sum() + 0.5 * (target * dual).sum()
        return float(fit + 0.5 * ((logs / SPREAD) ** 2).sum()), slopes

    return np.asarray(np.exp(search(function, np.zeros(4), BOUNDS, MAX_STEPS, ENOUGH)))
