r"""Make Gauss rules for products of many factors that lie around a common one.

With :math:`c_k = 1 - a_k` and a reference c, the product without player j is, in :math:`s = t / (1 - t c)`,

.. math:: \prod_{k \ne j} (1 - t c_k) = (1 - t c)^{d - 1} \prod_{k \ne j} (1 - s\, \delta_k), \qquad \delta_k = c_k - c

The first factor goes into the weight. What is left is near 1 and has a short series in s, so that 5 to 10 nodes do what takes a rule for t
15 to 25: 150 columns of a Matern kernel take half the time, 60 columns 1.2 to 1.4 times less, 30 columns the same. On a circle :math:`|s| = \rho` it is at most :math:`\exp(\rho\, |\sum \delta_k| + \rho^2 \sum \delta_k^2 / 2)`, as
:math:`|1 + w| \le \exp(\mathrm{Re}\, w + |w|^2 / 2)`; by Cauchy's inequality a rule with the error :math:`E_r` for :math:`s^r` is off by at most
that times :math:`\sum_{r \ge 2n} E_r \rho^{-r}`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import Handle
from exactshap.semivalues import Beta, Measure

_RATIO = 1.1  # of neighbouring references
_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20)
_RADII = np.geomspace(0.25, 1000.0, 20)
_SMALL_ENOUGH = 8  # nodes of an exact rule that needs no smaller ones
# Moments and rules are sums of positive numbers; their difference is known to this share of them
_MOMENT_ROUNDING = 1e-13


class _ReferenceRules(NamedTuple):
    references: np.ndarray  # (n_references,): c, growing, the first one 0
    ends: np.ndarray  # (n_references,): nodes of the exact rule behind are left out
    radii: np.ndarray  # (n_radii,): rho
    errors: np.ndarray  # (n_references, n_sizes, n_radii): logarithms of sum_r E_r rho^-r
    offsets: np.ndarray  # (n_references n_sizes + 1,)
    nodes: np.ndarray
    weights: np.ndarray


def reference_rules(measure: Measure, n_players: int, margin: float) -> Handle:
    r"""Return rules for factors between 0 and 1. There are none for measures without a density of one sign.

    The exact rule for polynomials of degree d - 1 is the measure here. Of its nodes those that are left out add at most
    :math:`\exp(-\mathrm{end}\, (\sum c_k - 1))`, by design below exp(-margin).
    """
    t, mass = measure.rule(n_players - 1)
    sizes = [size for size in _SIZES if size < len(t)] if isinstance(measure, Beta) and len(t) > _SMALL_ENOUGH else []
    references = _references(n_players) if sizes else np.zeros(0)
    ends = _ends(references, n_players, margin)
    common, kept = 1.0 - np.outer(references, t), t <= ends[:, None]
    places, masses = t / common * kept, mass * common ** (n_players - 1) * kept
    rules = _gauss_rules(places, masses, sizes)
    errors = _errors(places, masses, rules, sizes, n_players)
    nodes = [found / (1.0 + references[:, None] * found) for found, _ in rules]
    # By the nodes as they are rounded, so that the roundings of d - 1 factors cancel
    weights = [
        found * (1.0 - references[:, None] * node) ** (1 - n_players) for node, (_, found) in zip(nodes, rules, strict=True)
    ]
    none = np.zeros((len(references), 0))
    return Handle(
        _ReferenceRules(
            references,
            ends,
            _RADII,
            errors,
            np.append(0, np.cumsum(np.tile(np.asarray(sizes, np.int64), len(references)))),
            np.nan_to_num(np.concatenate([none, *nodes], axis=1).ravel(), nan=0.5),
            np.nan_to_num(np.concatenate([none, *weights], axis=1).ravel()),
        )
    )


def _references(n_players: int) -> np.ndarray:
    """Return references that grow by a ratio in c up to 1/2, and in 1 - c from there."""
    steps = np.arange(int(np.log(max(n_players, 1.0)) / np.log(_RATIO)) + 1)
    low = 0.5 / n_players * _RATIO**steps
    low = low[low < 0.5]
    return np.concatenate([[0.0], low, 1.0 - low[::-1], [1.0]])


def _ends(references: np.ndarray, n_players: int, margin: float) -> np.ndarray:
    """Return where the integrals end, with room for sums between a reference and its neighbours."""
    gaps = np.diff(references, append=references[-1:])
    least = n_players * (0.99 * references - 0.5 * np.maximum(gaps, np.roll(gaps, 1))) - 1.0
    return np.where(least > margin, margin / np.maximum(least, margin), 1.0)


def _gauss_rules(places: np.ndarray, masses: np.ndarray, sizes: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return places and weights (n_measures, size) of the Gauss rules of discrete measures (n_measures, n_places)."""
    total, largest = masses.sum(axis=1), max(sizes, default=0)
    basis = np.zeros((len(places), largest + 1, places.shape[1]))
    basis[:, 0] = np.sqrt(masses / total[:, None])
    diagonal, off_diagonal = np.zeros((2, len(places), largest))
    with np.errstate(all="ignore"):
        for i in range(largest):  # Lanczos
            product = places * basis[:, i]
            diagonal[:, i] = (product * basis[:, i]).sum(axis=1)
            # Twice, as one pass of Gram-Schmidt leaves more than rounding
            for _ in range(2):
                shares = basis[:, : i + 1] @ product[:, :, None]
                product -= (shares.transpose(0, 2, 1) @ basis[:, : i + 1])[:, 0]
            off_diagonal[:, i] = np.sqrt((product**2).sum(axis=1))
            basis[:, i + 1] = product / off_diagonal[:, i, None]
        return [_gauss_rule(diagonal[:, :size], off_diagonal[:, :size], total) for size in sizes]


def _gauss_rule(diagonal: np.ndarray, off_diagonal: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues of Jacobi matrices, and one over the sums of squares of the orthonormal polynomials there."""
    n_measures, size = diagonal.shape
    matrices, i = np.zeros((n_measures, size, size)), np.arange(size)
    matrices[:, i, i], matrices[:, i[1:], i[:-1]] = diagonal, off_diagonal[:, :-1]
    places = np.linalg.eigvalsh(matrices)
    # Eigenvalues are off by rounding of the largest one; a step of Newton takes each to its own
    for _ in range(2):
        before, slope_before, slope, squares = np.zeros((4, n_measures, size))
        here = np.ones((n_measures, size))
        for k in range(size):
            squares += here**2
            alpha, gamma = diagonal[:, k, None], off_diagonal[:, k, None]
            beta = off_diagonal[:, k - 1, None] if k else 0.0
            slope_before, slope = slope, ((places - alpha) * slope + here - beta * slope_before) / gamma
            before, here = here, ((places - alpha) * here - beta * before) / gamma
        places = places - here / slope
    return places, total[:, None] / squares


def _errors(
    places: np.ndarray, masses: np.ndarray, rules: list[tuple[np.ndarray, np.ndarray]], sizes: list[int], n_players: int
) -> np.ndarray:
    r"""Return logarithms of :math:`\sum_{r=2n}^{d-1} E_r \rho^{-r}` for each measure, size and radius.

    Gauss rules underestimate :math:`s^r`, so that the sum is that over the places less that over the nodes.
    """
    errors = np.full((len(places), len(sizes), len(_RADII)), np.inf)
    largest = max(sizes, default=0)
    with np.errstate(all="ignore"):
        for column, radius in enumerate(_RADII):
            x = places / radius
            # Two powers at a time, from x^(2 n) to the last ones: sums of positive numbers
            pairs = np.multiply.accumulate(np.broadcast_to(x * x, (largest, *x.shape)))[:-1]
            pairs = np.einsum("nmp,mp->nm", pairs, masses * (1.0 + x))
            last = (masses * _powers(x, 2 * largest, n_players)).sum(axis=1)
            exact = np.cumsum(np.concatenate([last[None], pairs[::-1]]), axis=0)[::-1]
            for row, ((found, weights), size) in enumerate(zip(rules, sizes, strict=True)):
                rule = (weights * _powers(found / radius, 2 * size, n_players)).sum(axis=1)
                some = np.log(np.maximum(exact[size - 1] - rule, 0.0) + _MOMENT_ROUNDING * exact[size - 1])
                errors[:, row, column] = np.where(np.isnan(some), np.inf, some)
    # A measure of few places has no larger rules
    errors[(masses > 0.0).sum(axis=1)[:, None] <= np.asarray(sizes, int)] = np.inf
    return errors


def _powers(x: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return x^start + ... + x^(stop - 1) for x >= 0."""
    logarithm = np.log(x)
    some = np.expm1((stop - start) * logarithm) / np.expm1(logarithm)
    return np.asarray(np.where(logarithm == 0.0, stop - start, some) * np.exp(start * logarithm))
