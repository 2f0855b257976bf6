"""Compute covariances of values with the game at coalitions, under a process with one relevance per player."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exactshap.semivalues import Beta, Semivalue
from exactshap.solvers.core import enough_nodes, sets_by_size


class Question(NamedTuple):
    """Name the values that are wanted: of an index and an order, for some sets of players."""

    semivalue: Semivalue
    order: int
    sets: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Prior:
    """Hold the relevances (n_players,) of a process and the variance of its white part."""

    theta: np.ndarray
    white: float

    @functools.cached_property
    def rho(self) -> np.ndarray:
        return np.tanh(self.theta / 2.0)

    def covariances(self, sign: int, points: np.ndarray, question: Question, most: int | None = None) -> np.ndarray:
        """Return covariances (n_points, n_sets) of values with one half at points, of the ``most`` most variable sets."""
        by_size = sets_by_size(question.sets, question.order)
        if most is not None and most < len(question.sets):
            chosen = np.zeros(len(question.sets), bool)
            chosen[np.argsort(-self.variances(sign, question), kind="stable")[:most]] = True
            kept = np.split(chosen, np.cumsum([len(some) for some in by_size])[:-1])
            by_size = [some[those] for some, those in zip(by_size, kept, strict=True)]
        return np.concatenate([self._of_size(sign, points, some, question) for some in by_size], axis=1)

    def variances(self, sign: int, question: Question) -> np.ndarray:
        """Return the variances (n_sets,) of the values of one half before any call."""
        found = []
        for some in sets_by_size(question.sets, question.order):
            exact = question.semivalue.weights(len(self.theta), some.shape[1], question.order)
            smooth = prior_variance(self.rho, some, *self._rule(question, some.shape[1]), sign)
            found.append(smooth + self.white * white_variance(len(self.theta), some.shape[1], exact, sign))
        return np.concatenate(found)

    def _of_size(self, sign: int, points: np.ndarray, sets: np.ndarray, question: Question) -> np.ndarray:
        cross = functionals(points, self.rho, sets, *self._rule(question, sets.shape[1]), sign)
        cross *= 0.5 if sign else 1.0
        exact = question.semivalue.weights(points.shape[1], sets.shape[1], question.order)
        return np.asarray(cross + self.white * white_functionals(points, sets, exact, sign))

    def _rule(self, question: Question, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return as many nodes as the relevances need: factors (1 +- rho) / (1 + rho) spread by rho / (1 + rho) (``_nodes``)."""
        degree, measure = len(self.rho) - size, question.semivalue.of_size(size, question.order)
        n_nodes = enough_nodes(float((self.rho / (1.0 + self.rho)).sum()), degree)
        if isinstance(measure, Beta) and n_nodes < degree // 2 + 1:
            return measure.gauss(n_nodes)
        return measure.rule(degree)


def functionals(
    points: np.ndarray, rho: np.ndarray, sets: np.ndarray, nodes: np.ndarray, weights: np.ndarray, sign: int = 0
) -> np.ndarray:
    r"""Return the index of k(., x) + sign k(., -x) for every row x and every set, of shape (n_rows, n_sets); sets all of one size.

    .. math:: \phi_T\, k(\cdot, x) = \int \prod_{j \in T} 2 \rho_j x_j \prod_{k \notin T} (1 + u \rho_k x_k)\, \mathrm{d}\mu
              \Big/ \prod_k (1 + \rho_k), \qquad u = 2 t - 1
    """
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

    ``weights`` are p of shape (d - |T| + 1,), or a row of them for each size of the overlap.
    """
    if sign:
        return white_functionals(points, sets, weights) + sign * white_functionals(-points, sets, weights)
    inside = points > 0
    overlaps = np.arange(sets.shape[1] + 1)  # all possible |T n S|
    # Overlaps larger than the coalition cannot occur: their positions are clipped, and never read
    outside = np.clip(inside.sum(axis=1)[:, None] - overlaps, 0, weights.shape[-1] - 1)
    by_overlap = (-1.0) ** (sets.shape[1] - overlaps) * (weights[outside] if weights.ndim == 1 else weights[overlaps, outside])
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
        # In logarithms, as a product over all players may underflow, and a factor may be 0 at rho = 1
        factors = np.maximum((1.0 + direction * products[:, None] * rho) / (1.0 + rho), 1e-300)
        whole = factor * pair_weights * np.exp(np.log(factors).sum(axis=1))
        ratio = 4.0 * rho / (1.0 + rho) / factors
        if sets.shape[1] == 1:
            total += whole @ ratio[:, sets[:, 0]]
        else:
            total += sum(weight * row[sets].prod(axis=1) for weight, row in zip(whole, ratio, strict=True))
    return (0.5 if sign else 1.0) * np.maximum(total, 0.0)


def white_variance(n_players: int, size: int, weights: np.ndarray, sign: int) -> float:
    r"""Return the prior variance of the index of a half's unit white part.

    .. math:: 2^{|T|} \sum_s C(d - |T|, s)\, \bigl[p(s)^2 \pm (-1)^{|T|} p(s)\, p(d - |T| - s)\bigr]
    """
    from scipy.special import gammaln

    rest = n_players - size
    s = np.arange(rest + 1)
    logs = gammaln(rest + 1) - gammaln(s + 1) - gammaln(rest - s + 1)
    root = np.exp(0.5 * np.minimum(logs, 1400.0))  # p is 0 long before it is cut off
    p = root * weights
    return float(2.0**size * (p @ p + sign * (-1) ** size * (p @ p[::-1])))


def needs_even(semivalue: Semivalue, n_players: int, order: int) -> bool:
    """Say whether an index depends on the even half: sizes above one and measures not symmetric about 1/2 do."""
    return order > 1 or not _is_symmetric(semivalue, n_players)


@functools.lru_cache(maxsize=64)
def _is_symmetric(semivalue: Semivalue, n_players: int) -> bool:
    weights = semivalue.weights(n_players, 1, 1)
    return not bool(np.any(np.abs(weights - weights[::-1]) > 1e-9 * np.abs(weights) + 1e-14))
