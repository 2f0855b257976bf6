r"""Bound how many quadrature nodes are enough, a priori.

On the Bernstein ellipse of parameter :math:`\rho` around [0, 1] every factor :math:`F = (a+b)/2 + (2t-1)(a-b)/2` obeys
:math:`|F| \le H (1 + (\gamma - 1)\delta)` with :math:`H = |a+b|/2 + |a-b|/2`, :math:`\delta = |a-b|/(2H)` and
:math:`\gamma = (\rho + 1/\rho)/2`, so a product of factors is at most
:math:`\prod H\, e^{(\gamma-1)\Delta}`, :math:`\Delta = \sum_k \delta_k`. A positive rule of mass 1 that is exact to degree
``2 Q - 1`` is off by at most twice the best polynomial approximation (Trefethen, Approximation Theory, Theorem 8.2):

.. math:: \mathrm{err} \le 4 \prod H\, \min_{\rho > 1} e^{(\gamma - 1) \Delta} \frac{\rho^{1 - 2Q}}{\rho - 1}

Q grows like the square root of :math:`\Delta`, not like the number of players.

**Sets of more players.** For a set T the integrand is :math:`\prod_{j \in T} (a_j - b_j) \prod_{k \notin T} F_k`. As
:math:`|a_j - b_j| = 2 \delta_j H_j \le 2 H_j` and the spread of the others is at most :math:`\Delta`, it is at most
:math:`2^{|T|} \prod H\, e^{(\gamma - 1) \Delta}` on the ellipse: the same Q serves sets of any size, relative to
:math:`2^{|T|} \prod H`. Single players are the case of one difference.

**Signed functionals.** A density of any sign (FSII below its highest size) is integrated by weights with magnitudes that add up to at most
:math:`(\int q^2)^{1/2}`, as does its own magnitude: the bound counts that often. k-SII below its highest size is a sum of positive measures,
of atoms, which are exact, and of :math:`f'(1) - f'(0)`. That one is read off the interpolant at the m + 1 Chebyshev points of a rule exact to degree m: a term
:math:`a_k T_k` of the Chebyshev series of f, k > m, is taken for one of degree j <= m and of the same parity, which is off by at most
:math:`4 (k^2 - j^2) |a_k|`; and :math:`|a_k| \le 2 M \rho^{-k}` for :math:`|f| \le M` on the ellipse (ibid., Theorem 8.1):

.. math:: \mathrm{err} \le 8 M \sum_{k > m} k^2 \rho^{-k} = 8 M \rho^{-m}
          \Bigl[\frac{m^2 x}{1 - x} + \frac{2 m x}{(1 - x)^2} + \frac{x (1 + x)}{(1 - x)^3}\Bigr], \qquad x = 1 / \rho
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exactshap.semivalues import Atom, Beta, EndSlopes, Measure, Mixture, SignedDensity

# Below half a rounding unit of the result's scale, so that truncation is smaller than rounding.
RELATIVE_TRUNCATION = 2.0**-54
UNIFORM = Beta()

# Every rho > 1 gives a valid bound, and so does the least over a grid of them
_RHO = 1.0 + np.geomspace(1e-3, 1e3, 400)
_LOG_RHO, _LOG_GAP = np.log(_RHO), np.log(_RHO - 1.0)


@functools.lru_cache(maxsize=4096)
def bound(spread: float, n_nodes: int, mass: float = 1.0, slopes: float = 0.0) -> float:
    """Return the bound on the relative error of a rule. ``spread`` is Delta; the rule is exact to degree ``2 n_nodes - 1``.

    ``mass``: of all measures together, each with its own rule; the error is at most twice that. ``slopes``: the weight of the
    difference of the slopes at the ends.
    """
    m = 2 * n_nodes - 1
    exponent = ((_RHO + 1.0 / _RHO) / 2.0 - 1.0) * spread - m * _LOG_RHO
    # The integral and its rule are each at most 1 in these units, so they differ by at most 2
    found = min(2.0, 4.0 * np.exp((exponent - _LOG_GAP).min())) * mass
    if slopes:
        x, gap = 1.0 / _RHO, 1.0 - 1.0 / _RHO
        series = m * m * x / gap + 2.0 * m * x / gap**2 + x * (1.0 + x) / gap**3
        found += 8.0 * slopes * np.exp((exponent + np.log(series)).min())
    return float(found)


def coarse_bound(spread: float, n_nodes: int, measure: Measure = UNIFORM) -> float:
    """Return :func:`bound` at ``spread`` rounded up to a 16th, so that spreads share evaluations.

    It is infinite where no bound is known for rules of lower degree.
    """
    mass, slopes = _parts(measure)
    return bound(math.ceil(spread * 16.0) / 16.0, n_nodes, mass, slopes) if math.isfinite(mass) else math.inf


def log_errors(n_nodes: int, measure: Measure, log_radii: np.ndarray) -> np.ndarray:
    """Return logarithms of bounds for each ellipse. The integrand is at most 1 on it."""
    mass, slopes = _parts(measure)
    m, x, gap = 2 * n_nodes - 1, np.exp(-log_radii), -np.expm1(-log_radii)
    series = m * m * x / gap + 2.0 * m * x / gap**2 + x * (1.0 + x) / gap**3
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(4.0 * mass * x / gap + 8.0 * slopes * series) - m * log_radii)


def enough_nodes(spread: float, degree: int, measure: Measure = UNIFORM) -> int:
    """Return the smallest Q that truncates less than :data:`RELATIVE_TRUNCATION`.

    The rule is ``measure.rule(2 Q - 1)``; Q is at most ``degree // 2 + 1``, an exact rule, which it is too where no bound is known
    for rules of lower degree.
    """
    mass, slopes = _parts(measure)
    exact = degree // 2 + 1
    return _enough(math.ceil(spread * 16.0), exact, mass, slopes) if math.isfinite(mass) else exact


@functools.lru_cache(maxsize=4096)
def _enough(quantised: int, n_exact: int, mass: float, slopes: float) -> int:
    # The bound falls with the number of nodes: bisection for the first that is enough
    low, high = 1, n_exact
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if bound(quantised / 16.0, middle, mass, slopes) <= RELATIVE_TRUNCATION else (middle + 1, high)
        )
    return low


def _parts(measure: Measure) -> tuple[float, float]:
    """Return the mass of a measure's parts, and its weight of end slopes; infinite where unknown."""
    if isinstance(measure, Beta):
        return 1.0, 0.0
    if isinstance(measure, Atom):
        return 0.0, 0.0  # exact at every degree
    if isinstance(measure, EndSlopes):
        return 0.0, 1.0
    if isinstance(measure, SignedDensity):
        return measure.size, 0.0
    if isinstance(measure, Mixture):
        parts = [(abs(share), *_parts(part)) for share, part in measure.parts]
        return sum(share * mass for share, mass, _ in parts), sum(share * slopes for share, _, slopes in parts)
    return math.inf, 0.0


class RuleArrays(NamedTuple):
    """Concatenate rules: rule r is for spreads up to ``limits[r]`` and has nodes ``offsets[r]`` to ``offsets[r + 1] - 1``."""

    limits: np.ndarray
    offsets: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, rules: Sequence[tuple[np.ndarray, np.ndarray]], limits: Sequence[float]) -> RuleArrays:
        """Concatenate nodes and weights of some rules."""
        nodes, weights = (np.concatenate(parts).astype(float) for parts in zip(*rules, strict=True))
        return cls(np.array(limits, float), np.cumsum([0, *(len(rule[0]) for rule in rules)]), nodes, weights)
