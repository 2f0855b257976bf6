r"""Errors of a process' Shapley values under a prior that weighs orders of interaction apart.

The kernel says how much of a game is of order 1, how much of order 3, and so on: one relevance a player decides all of it. A design of
placed coalitions lets orders all but cancel from the values, each to a degree of its own, so that errors hang on that split. The values
of the process are :math:`a_j^\top g`, :math:`a_j = K^{-1} c_j`, linear in the calls; for any other prior :math:`\sum_k s_k K_k` of the
odd half their errors have the variance

.. math:: \sum_k s_k \bigl(\mathrm{var}_k \phi_j - 2\, a_j^\top c_{kj} + a_j^\top K_k a_j\bigr)

with k the characters of order 1, of order 3, all others of the kernel, and the white part. The weights s are the most probable ones
given the calls, the kernel's own split being the guess before: variance components by Newton steps with average information (Gilmour,
Thompson & Cullis 1995). Of a few players' coalitions so many are called that the even half, which the values do not see, has less of
order 2 than there are calls: what it leaves is of order 4 and more or white. The white part is one for both halves, and what is of
order 4 and more in one is believed to be about as much as what is of order 5 and more in the other: calls that are too few to tell
order 3 from the orders beyond it are told so. With :math:`p_r = \sum_j (\rho_j x_j x'_j)^r` and :math:`Z = \prod_j (1 + \rho_j)`

.. math:: K_1 = p_1 / Z, \qquad K_2 = (p_1^2 - p_2) / (2 Z), \qquad K_3 = (p_1^3 - 3 p_1 p_2 + 2 p_3) / (6 Z), \qquad \phi_j(\chi_T) = 2\, [j \in T] / |T|.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._runtime.linear_algebra import solve_factored
from exactshap.solvers.sampled.process._descent import Slopes, search
from exactshap.solvers.sampled.process._evidence import IMPOSSIBLE, JITTER, covariance, factorise
from exactshap.solvers.sampled.process._hypercube import Asked, CubeProcess
from exactshap.solvers.sampled.process._relevance import evenly_spaced

__all__ = ["errors_by_order"]

BLOCK_ROWS = 256  # of a kernel that are worked out at once
ROWS = 100  # that tell of the weights: more tell no more of the errors
ORDERS = 4  # of the odd half: order 1, order 3, others, white; of the even half, order 2 and others follow
SPREAD = np.array([3.0, 3.0, 3.0, 6.0, 3.0])  # of the weights' logarithms before any call; of the white part least is known
EVEN_PLACES = [4, 5, 3]  # of the weights of the even half: order 2, others, white
ALIKE = 1.0  # spread of the logarithm of one half's orders beyond three over the other's beyond two
BOUNDS = np.array([[-25.0] * 6, [12.0] * 6])
MAX_STEPS, ENOUGH = 15, 0.05  # nats that a step must promise
ENOUGH_CALLED = 0.125  # of all pairs from which on the even half is asked
EVEN_ENOUGH, EVEN_MOST = 0.1, 1e6  # mean square of the even half over that of what is not additive, and of all, of the odd one


class Rows(NamedTuple):
    """Calls that tell of weights: which of them, their kernels (n_weights, n_rows, n_rows), what was answered (n_rows, n_outputs)."""

    places: list[int]
    kernels: np.ndarray
    target: np.ndarray


def errors_by_order(process: CubeProcess, asked: Asked) -> tuple[np.ndarray, float]:
    """Return standard errors (n_players, n_outputs) of the Shapley values of paired calls, ``asked`` for, in the process' ``unit``.

    And what share of the values' variances is of orders that both halves tell apart: 0 where the even half is not asked.
    """
    fitted = asked.fitted
    rows = np.argsort(process.order)[evenly_spaced(len(process.order), ROWS)]
    scale = np.sqrt(fitted.variance)
    told = scale > 0
    target = fitted.half.target[rows][:, told] / scale[told]
    odd = Rows([*range(ORDERS)], _kernels(process, rows), target)
    even = _even_rows(process, rows, target, told, scale)
    parts = _weights([odd] if even is None else [odd, even])[:ORDERS, None] * _variances(process, asked)
    share = 0.0 if even is None else float(parts[:2].sum() / max(parts.sum(), 1e-300))
    return np.asarray(np.sqrt(parts.sum(axis=0))[:, None] * scale), share


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


def _even_rows(process: CubeProcess, rows: np.ndarray, odd: np.ndarray, told: np.ndarray, scale: np.ndarray) -> Rows | None:
    """Return what the even half says at some rows, less what it says at the first: a constant is not asked for.

    None where too few coalitions are called, and where the even half is no larger than what is not additive in the ``odd`` one
    (n_rows, n_outputs): a game whose complements add up to a constant has every order in one half and none in the other.
    """
    n_pairs, n_players = process.points.shape
    if process.even is None or not told.any() or n_pairs < ENOUGH_CALLED * 2.0 ** (n_players - 1):
        return None
    points, unit = process.points[rows], process.unit[told] * scale[told]
    target = process.even.target[rows][:, told] * (process.even.scale[told] / unit)
    bent = odd - points @ np.linalg.lstsq(points, odd, rcond=None)[0]
    size = float((target**2).mean())
    if not EVEN_ENOUGH * (bent**2).mean() <= size <= EVEN_MOST * (odd**2).mean():
        return None
    p1, p2 = (points * process.rho) @ points.T, (process.rho**2).sum()
    two = (p1 * p1 - p2) / (2.0 * np.prod(1.0 + process.rho))
    rest = covariance(points, points, process.theta, 1) - two  # and order 0, a constant
    two *= size / max(float(two.diagonal().mean()), 1e-300)
    kernels = np.array([two, rest, process.white * np.eye(len(rows))])
    kernels = kernels[:, 1:, 1:] - kernels[:, 1:, :1] - kernels[:, :1, 1:] + kernels[:, :1, :1]
    return Rows(EVEN_PLACES, kernels, target[1:] - target[:1])


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


def _weights(told: list[Rows]) -> np.ndarray:
    """Return the most probable weights (6,) given what some rows of either half have answered."""
    precision = np.diag(np.append(SPREAD**-2.0, 0.0))
    precision[np.ix_([2, 5], [2, 5])] += np.array([[1.0, -1.0], [-1.0, 1.0]]) / ALIKE**2

    def function(logs: np.ndarray) -> tuple[float, Slopes]:
        weights, value, known = np.exp(logs), 0.5 * float(logs @ precision @ logs), []
        for places, kernels, target in told:
            lower, failed = factorise(np.tensordot(weights[places], kernels, 1) + JITTER * np.eye(len(target)))
            if failed:
                return IMPOSSIBLE, lambda: (np.zeros(len(logs)), np.eye(len(logs)))
            dual = solve_factored(lower, target.copy(order="F"))
            value += float(target.shape[1] * np.log(lower.diagonal()).sum() + 0.5 * (target * dual).sum())
            known.append((lower, dual))

        def slopes() -> tuple[np.ndarray, np.ndarray]:
            gradient, curvature = precision @ logs, precision.copy()
            for (places, kernels, target), (lower, dual) in zip(told, known, strict=True):
                inverse = solve_factored(lower, np.eye(len(target), order="F"))
                moved = weights[places][:, None, None] * (kernels @ dual)  # (n_weights, n_rows, n_outputs)
                traces = weights[places] * (kernels * inverse).sum(axis=(1, 2)) * target.shape[1]
                gradient[places] += 0.5 * (traces - (moved * dual).sum(axis=(1, 2)))
                curvature[np.ix_(places, places)] += 0.5 * np.einsum("kro,lro->kl", moved, inverse @ moved)
            return gradient, curvature

        return value, slopes

    return np.asarray(np.exp(search(function, np.zeros(len(precision)), BOUNDS, MAX_STEPS, ENOUGH)))
