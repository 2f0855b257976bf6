r"""How many coalitions of each size there are, and what each of them weighs, as floats for any number of players.

:math:`C(d, s)` leaves the range of floats beyond 1020 players, and :math:`1 / C(d, s)` with it. What is estimated depends on
products of the two alone, so that a size whose number has more than 1015 bits counts in units of :math:`2^{e_s}`: its number is
divided by that, the weight of one of its coalitions multiplied. Up to 1020 players all :math:`e_s` are 0; scaled numbers stay above
:math:`2^{999}`, so that a size that can be drawn to the end is known to be one.
"""

from __future__ import annotations

import functools

import numpy as np

from exactshap.semivalues import Semivalue

MOST_BITS = 1015  # of the largest C(d, s) of 1020 players; (d - 1) C(d - 2, s - 1) needs the rest of a float's 1024
KEPT_BITS = 1000  # of larger ones
BLOCK = 2**20  # numbers of sizes times nodes in memory at a time


def _exact_counts(n_players: int) -> list[int]:
    """Return C(d, s) for s = 0..d."""
    counts = [1]
    for s in range(n_players):
        counts.append(counts[-1] * (n_players - s) // (s + 1))
    return counts


@functools.lru_cache(maxsize=16)
def _sizes(n_players: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scaled numbers of coalitions (d + 1,), their exponents (d + 1,) and the scaled Shapley kernel (d - 1,)."""
    exact = _exact_counts(n_players)
    exponents = [count.bit_length() - KEPT_BITS if count.bit_length() > MOST_BITS else 0 for count in exact]
    counts = [float(count >> e) for count, e in zip(exact, exponents, strict=True)]
    among = _exact_counts(n_players - 2) if n_players > 1 else []
    kernel = [1.0 / ((n_players - 1) * float(count >> e)) for count, e in zip(among, exponents[1:-1], strict=True)]
    result = np.array(counts), np.array(exponents), np.array(kernel)
    for array in result:
        array.setflags(write=False)
    return result


def size_counts(n_players: int) -> np.ndarray:
    """Return C(d, s) 2^(-e_s) for s = 0..d, of shape (d + 1,)."""
    return _sizes(n_players)[0]


def size_exponents(n_players: int) -> np.ndarray:
    """Return e_s for s = 0..d, of shape (d + 1,): all zero up to 1020 players."""
    return _sizes(n_players)[1]


def kernel_weights(n_players: int) -> np.ndarray:
    r"""Return the Shapley kernel of one coalition of each size 1..d-1, of shape (d - 1,), up to a constant and scaled.

    .. math:: \mu(s) = \frac{2^{e_s}}{(d - 1)\, C(d - 2, s - 1)}
    """
    return _sizes(n_players)[2]


def scaled_weights(semivalue: Semivalue, n_players: int, size: int, order: int) -> np.ndarray:
    r"""Return :math:`p(s)\, 2^{e_s}` for s = 0..d-|T|, p as in :meth:`Semivalue.weights`; in logarithms where p underflows.

    .. math:: p(s)\, 2^{e_s} = \sum_q w_q \exp\bigl(s \log t_q + (d - |T| - s) \log (1 - t_q) + e_s \log 2\bigr)
    """
    from scipy.special import xlog1py, xlogy

    degree = n_players - size
    exponents = size_exponents(n_players)[: degree + 1]
    if not exponents.any():
        return semivalue.weights(n_players, size, order)
    nodes, weights = semivalue.rule(size, order, degree=degree)
    result = np.empty(degree + 1)
    step = max(1, BLOCK // len(nodes))
    for start in range(0, degree + 1, step):
        s = np.arange(start, min(start + step, degree + 1))[:, None]
        logs = xlogy(s, nodes) + xlog1py(degree - s, -nodes) + np.log(2.0) * exponents[s]
        result[start : start + step] = (weights * np.exp(logs)).sum(axis=1)
    return result
