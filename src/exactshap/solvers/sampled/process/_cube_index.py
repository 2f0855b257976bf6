"""Indices of a process over coalitions: what every index does to its kernel, and the prior variance of the index."""

from __future__ import annotations

import functools

import numpy as np

from exactshap.semivalues import Semivalue
from exactshap.solvers.sampled.process._relevance_kernels import fill_singles


def functionals(
    points: np.ndarray, rho: np.ndarray, sets: np.ndarray, nodes: np.ndarray, weights: np.ndarray, sign: int = 0
) -> np.ndarray:
    r"""Return the index of k(., x) + sign k(., -x) for every row x and every set, of shape (n_rows, n_sets); sets all of one size.

    .. math:: \phi_T\, k(\cdot, x) = \int \prod_{j \in T} 2 \rho_j x_j \prod_{k \notin T} (1 + u \rho_k x_k)\, \mathrm{d}\mu
              \Big/ \prod_k (1 + \rho_k), \qquad u = 2 t - 1
    """
    if sets.shape[1] == 1 and np.array_equal(sets[:, 0], np.arange(points.shape[1])):
        out = np.zeros((len(points), len(sets)))
        fill_singles(np.ascontiguousarray(points), rho, np.array(nodes), np.array(weights), float(sign), out)
        return out
    if sign:
        sides = [functionals(side, rho, sets, nodes, weights) for side in (points, -points)]
        return sides[0] + sign * sides[1]
    slopes, by_set = points * rho, np.zeros((len(sets), len(points)))  # rows of one set lie together
    for u, weight in zip(2.0 * nodes - 1.0, weights, strict=True):
        factors = (1.0 + u * slopes) / (1.0 + rho)
        ratio = np.ascontiguousarray((2.0 * slopes / (1.0 + rho) / factors).T)  # factors > 0: rho < 1
        product = ratio[sets[:, 0]]
        for players in sets.T[1:]:
            product *= ratio[players]
        by_set += np.multiply(product, weight * factors.prod(axis=1), out=product)
    return by_set.T


def white_functionals(points: np.ndarray, sets: np.ndarray, weights: np.ndarray, sign: int = 0) -> np.ndarray:
    r"""Return the index of the indicator of every row's coalition S, plus sign times that of its complement.

    .. math:: (-1)^{|T| - |T \cap S|}\, p(|S - T|)
    """
    if sign:
        return white_functionals(points, sets, weights) + sign * white_functionals(-points, sets, weights)
    inside = points > 0
    overlaps = np.arange(sets.shape[1] + 1)  # all that |T n S| can be
    outside = np.clip(inside.sum(axis=1)[:, None] - overlaps, 0, len(weights) - 1)
    by_overlap = (-1.0) ** (sets.shape[1] - overlaps) * weights[outside]
    if sets.shape[1] == 1:
        return np.where(inside[:, sets[:, 0]], by_overlap[:, 1:], by_overlap[:, :1])
    return np.take_along_axis(by_overlap, inside[:, sets].sum(axis=2), axis=1)


def prior_variance(rho: np.ndarray, sets: np.ndarray, nodes: np.ndarray, weights: np.ndarray, sign: int) -> np.ndarray:
    r"""Return the prior variance (n_sets,) of the index of one half, without the white part.

    .. math:: \tfrac12 \prod_{j \in T} 4 \rho_j \iint \Bigl[\prod_{k \notin T} (1 + \rho_k u u') \pm (-1)^{|T|}
              \prod_{k \notin T} (1 - \rho_k u u')\Bigr] \mathrm{d}\mu\, \mathrm{d}\mu' \Big/ \prod_k (1 + \rho_k)
    """
    u = 2.0 * nodes - 1.0
    products, pair_weights = np.outer(u, u).ravel(), np.outer(weights, weights).ravel()
    total = np.zeros(len(sets))
    directions = [(1.0, 1.0)] + ([(-1.0, float(sign * (-1) ** sets.shape[1]))] if sign else [])
    for direction, factor in directions:
        factors = np.maximum((1.0 + direction * products[:, None] * rho) / (1.0 + rho), 1e-300)
        whole = factor * pair_weights * np.exp(np.log(factors).sum(axis=1))
        ratio = 4.0 * rho / (1.0 + rho) / factors
        if sets.shape[1] == 1:
            total += whole @ ratio[:, sets[:, 0]]
        else:
            total += sum(weight * row[sets].prod(axis=1) for weight, row in zip(whole, ratio, strict=True))
    return (0.5 if sign else 1.0) * np.maximum(total, 0.0)


def white_variance(n_players: int, size: int, weights: np.ndarray, sign: int) -> float:
    r"""Return the prior variance of the index of one half's white part of unit variance.

    .. math:: 2^{|T|} \sum_s C(d - |T|, s)\, \bigl[p(s)^2 \pm (-1)^{|T|} p(s)\, p(d - |T| - s)\bigr]
    """
    from scipy.special import gammaln

    rest = n_players - size
    s = np.arange(rest + 1)
    logs = gammaln(rest + 1) - gammaln(s + 1) - gammaln(rest - s + 1)
    root = np.exp(0.5 * np.minimum(logs, 1400.0))  # where it is cut off, p has long been 0
    p = root * weights
    return float(2.0**size * (p @ p + sign * (-1) ** size * (p @ p[::-1])))


def needs_even(semivalue: Semivalue, n_players: int, order: int) -> bool:
    """Say whether an index sees the even half: sizes above one or measures that are not symmetric about 1/2 do."""
    return order > 1 or not _is_symmetric(semivalue, n_players)


@functools.lru_cache(maxsize=64)
def _is_symmetric(semivalue: Semivalue, n_players: int) -> bool:
    weights = semivalue.weights(n_players, 1, 1)
    return not bool(np.any(np.abs(weights - weights[::-1]) > 1e-9 * np.abs(weights) + 1e-14))
