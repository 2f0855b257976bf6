"""Join the scores of pairs of classes to votes or probabilities of the classes, as support vector machines do."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

# What LIBSVM does: chances are kept from 0 and 1, and the last step of a solution is the first that is near enough
FARTHEST, NEAR_ENOUGH, MOST_STEPS = 1e-7, 0.005, 100


@dataclass(frozen=True, eq=False)
class Votes:
    r"""Describe the one-vs-rest decision function of scikit-learn's machines.

    .. math:: \sum_j 1[f_{ij} \ge 0] + \frac{s_i}{3 (|s_i| + 1)}, \qquad s_i = \sum_j f_{ij}, \quad f_{ji} = -f_{ij}
    """

    n_classes: int

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the decision functions of the classes; ``scores`` (n, n_pairs, ...)."""
        votes = np.zeros((len(scores), self.n_classes, *scores.shape[2:]))
        sums = np.zeros_like(votes)
        for k, (i, j) in enumerate(itertools.combinations(range(self.n_classes), 2)):
            votes[:, i] += scores[:, k] >= 0.0
            votes[:, j] += scores[:, k] < 0.0
            sums[:, i] += scores[:, k]
            sums[:, j] -= scores[:, k]
        return votes + sums / (3.0 * (np.abs(sums) + 1.0))

    @property
    def steepest(self) -> float:
        """Return the largest slope between two jumps."""
        return (self.n_classes - 1) / 3.0


@dataclass(frozen=True, eq=False)
class Coupled:
    r"""Describe probabilities of classes by sigmoids of the scores of their pairs, coupled; of two classes that of the second.

    .. math:: \min_p \sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2 \quad \text{s.t.} \quad \sum_i p_i = 1, \qquad
              r_{ij} = \sigma(-(a_{ij} f_{ij} + b_{ij})), \quad r_{ji} = 1 - r_{ij}

    Wu, Lin & Weng 2004, J. Mach. Learn. Res. 5, 975-1005, their second method and its algorithm 2, in the steps of LIBSVM: it ends where the
    optimality conditions hold to 0.005 / n_classes, so that probabilities jump by about that where one more step is needed.
    """

    a: np.ndarray  # (n_pairs,)
    b: np.ndarray
    n_classes: int

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities; ``scores`` (n, n_pairs, ...)."""
        of_pairs = np.moveaxis(scores, 1, 0).reshape(len(self.a), -1)
        chances = np.clip(expit(-(self.a[:, None] * of_pairs + self.b[:, None])), FARTHEST, 1.0 - FARTHEST)
        found = couple(chances, self.n_classes)[1 if self.n_classes == 2 else 0 :]
        return np.moveaxis(found.reshape(-1, len(scores), *scores.shape[2:]), 0, 1)

    @property
    def steepest(self) -> float:
        """Return a bound of the largest slope between two jumps: 0.27 times this for thousands of random scores."""
        return float(np.abs(self.a).max())


def couple(chances: np.ndarray, n_classes: int) -> np.ndarray:
    """Return probabilities (n_classes, n) of classes by those of the first of each pair, ``chances`` (n_pairs, n)."""
    r = np.zeros((n_classes, n_classes, chances.shape[1]))
    one, other = np.triu_indices(n_classes, 1)
    r[one, other], r[other, one] = chances, 1.0 - chances
    q = -r * r.transpose(1, 0, 2)
    q[np.arange(n_classes), np.arange(n_classes)] = (r**2).sum(axis=0)
    p, left = np.full((n_classes, chances.shape[1]), 1.0 / n_classes), np.arange(chances.shape[1])
    found = p.copy()
    for _ in range(max(MOST_STEPS, n_classes)):
        slopes = np.einsum("tjs,js->ts", q, p)
        value = (p * slopes).sum(axis=0)
        far = np.abs(slopes - value).max(axis=0) >= NEAR_ENOUGH / n_classes
        left, p, q, slopes, value = left[far], p[:, far], q[:, :, far], slopes[:, far], value[far]
        if not len(left):
            break
        for t in range(n_classes):
            step = (value - slopes[t]) / q[t, t]
            p[t] += step
            value = (value + step * (step * q[t, t] + 2.0 * slopes[t])) / (1.0 + step) / (1.0 + step)
            slopes = (slopes + step * q[t]) / (1.0 + step)
            p /= 1.0 + step
        found[:, left] = p
    return found
