"""Join the scores of pairs of classes to votes or probabilities of the classes, as support vector machines do."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from exactshap._native import kernel
from exactshap.errors import UnsupportedStructureError

# What LIBSVM does: chances are kept from 0 and 1, and the last step of a solution is the first that is near enough
FARTHEST, NEAR_ENOUGH, MOST_STEPS = 1e-7, 0.005, 100

# src/native/responses/pairs.cpp
couple = kernel("responses.couple(chances, near, most_steps, out)")


@dataclass(frozen=True, eq=False)
class Votes:
    r"""Describe the one-vs-rest decision function of scikit-learn's machines.

    .. math:: \sum_j 1[f_{ij} \ge 0] + \frac{s_i}{3 (|s_i| + 1)}, \qquad s_i = \sum_j f_{ij}, \quad f_{ji} = -f_{ij}
    """

    n_classes: int
    rounding: float  # of a score: the vote of a smaller one is not certain

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the decision functions of the classes; ``scores`` (n, n_pairs, ...)."""
        if (np.abs(scores) < self.rounding).any():
            do = "Call it: explain(model.decision_function, X, background), or predict_proba of its calibration"
            got = f"Got a score of {np.abs(scores).min():.1g}, which rounds by {self.rounding:.1g}"
            raise UnsupportedStructureError("A row lies between two classes, so that its vote is a matter of rounding", got, do)
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
        of_pairs = np.ascontiguousarray(np.moveaxis(scores, 1, -1))
        chances = np.clip(expit(-(self.a * of_pairs + self.b)), FARTHEST, 1.0 - FARTHEST)
        found = np.empty((*chances.shape[:-1], self.n_classes))
        steps = max(MOST_STEPS, self.n_classes)
        couple(chances.reshape(-1, len(self.a)), NEAR_ENOUGH, steps, found.reshape(-1, self.n_classes))
        return np.moveaxis(found[..., 1:] if self.n_classes == 2 else found, -1, 1)

    @property
    def steepest(self) -> float:
        """Return a bound of the largest slope between two jumps: 0.27 times this for thousands of random scores."""
        return float(np.abs(self.a).max())
