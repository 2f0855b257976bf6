r"""Sums over all sets of players, element by element of arrays: values of many product games of one term at once.

.. math:: \sum_{U \ni j} \frac{1}{|U|} \prod_{k \in U} h_k = h_j \int_0^1 \prod_{k \ne j} (1 + t\, h_k)\, \mathrm{d}t
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactshap.semivalues import Semivalue, find

__all__ = ["set_sums"]


def set_sums(h: Sequence[np.ndarray], index: str | Semivalue = "shapley") -> list[np.ndarray]:
    """Return the value of each player of the game prod_{k in S} (1 + h_k), from d arrays of one shape; another index, its measure."""
    total: list[np.ndarray] = [np.zeros_like(one) for one in h]
    for t, weight in zip(*find(index).rule(degree=len(h) - 1), strict=True):
        before, after = [np.full_like(h[0], weight)], [np.ones_like(h[0])]
        for one, other in zip(h[:-1], h[:0:-1], strict=True):
            before.append(before[-1] * (1.0 + t * one))
            after.append(after[-1] * (1.0 + t * other))
        for found, left, right, one in zip(total, before, reversed(after), h, strict=True):
            found += left * right * one
    return total
