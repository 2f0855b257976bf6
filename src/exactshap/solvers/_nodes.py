r"""How many quadrature nodes are enough: an a-priori bound.

On the Bernstein ellipse of parameter :math:`\rho` around [0, 1] every factor :math:`F = (a+b)/2 + (2t-1)(a-b)/2` obeys
:math:`|F| \le H (1 + (\gamma - 1)\delta)` with :math:`H = |a+b|/2 + |a-b|/2`, :math:`\delta = |a-b|/(2H)` and
:math:`\gamma = (\rho + 1/\rho)/2`, so a product of factors is at most
:math:`\prod H\, e^{(\gamma-1)\Delta}`, :math:`\Delta = \sum_k \delta_k`. A positive rule of mass 1 that is exact to degree
``2 Q - 1`` is off by at most twice the best polynomial approximation (Trefethen, Approximation Theory, Theorem 8.2):

.. math:: \mathrm{err} \le 4 \prod H\, \min_{\rho > 1} e^{(\gamma - 1) \Delta} \frac{\rho^{1 - 2Q}}{\rho - 1}

Q grows like the square root of :math:`\Delta`, not like the number of players.
"""

from __future__ import annotations

import functools
import math

import numpy as np

__all__ = ["ENOUGH", "bound", "coarse_bound", "enough_nodes"]

ENOUGH = 2.0**-54  # below half a rounding unit of the result's scale: truncation hides behind rounding

_RHO = 1.0 + np.geomspace(1e-3, 1e3, 400)


@functools.lru_cache(maxsize=4096)
def bound(spread: float, n_nodes: int) -> float:
    """Return the bound on the relative quadrature error for ``spread`` (Delta) and ``n_nodes``, capped at 2."""
    exponent = ((_RHO + 1.0 / _RHO) / 2.0 - 1.0) * spread - (2 * n_nodes - 1) * np.log(_RHO) - np.log(_RHO - 1.0)
    return float(min(2.0, 4.0 * np.exp(exponent.min())))


def coarse_bound(spread: float, n_nodes: int) -> float:
    """Return :func:`bound` at ``spread`` rounded up to a 16th, so that many spreads share few evaluations."""
    return bound(math.ceil(spread * 16.0) / 16.0, n_nodes)


@functools.lru_cache(maxsize=4096)
def _enough(quantised: int, n_exact: int) -> int:
    low, high = 1, n_exact
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(quantised / 16.0, middle) <= ENOUGH else (middle + 1, high)
    return low


def enough_nodes(spread: float, degree: int) -> int:
    """Return the smallest number of nodes whose bound is below :data:`ENOUGH`, never more than the exact count."""
    return _enough(math.ceil(spread * 16.0), degree // 2 + 1)
