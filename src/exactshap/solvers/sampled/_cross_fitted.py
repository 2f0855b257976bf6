"""Fit models with exact values to all pairs but a fold, so that the fold says what they miss (``_correction.corrected_by_folds``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exactshap.semivalues import Semivalue
from exactshap.solvers.sampled._correction import corrected_by_folds
from exactshap.solvers.sampled._network import GOOD_ENOUGH, UNITS, Network, count_parameters, cross_fit
from exactshap.solvers.sampled._problem import RegressionProblem
from exactshap.solvers.sampled._support import FOLD_PATIENCE, Polynomial, Support, find_support
from exactshap.solvers.sampled.process import CubeProcess

FOLDS = 5
# Pairs for each parameter of a network; the process' mean square of left-out residuals, of the game's, from which networks are tried
PAIRS_A_PARAMETER, WORTH = 1.5, 1e-3


class Pairs(NamedTuple):
    """Hold the pairs of a problem in the process' unit, and their folds."""

    points: np.ndarray  # (n_pairs, n_players)
    target: np.ndarray  # (n_pairs, n_outputs), the odd half of the game
    folds: np.ndarray  # (n_pairs,)
    missed: np.ndarray  # (n_outputs,), mean squares of left-out pairs
    relevances: np.ndarray  # (n_players,)

    @classmethod
    def of(cls, problem: RegressionProblem, process: CubeProcess) -> Pairs:
        folds = np.random.default_rng(0).permutation(len(problem.masks)) % FOLDS
        missed = (process.checked()[1] ** 2).mean(axis=0)
        return cls(2.0 * problem.masks - 1.0, problem.odd_half / process.unit, folds, missed, process.theta)


class Candidate(NamedTuple):
    """Name models of the odd half, each fitted to all pairs but a fold."""

    name: str
    models: Sequence[Polynomial] | Sequence[Network]
    n_parameters: float

    def corrected(self, pairs: Pairs, semivalue: Semivalue) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return values, variances (n_players, n_outputs) and mean squares of left-out pairs (n_outputs,)."""
        return corrected_by_folds(self.models, pairs.points, pairs.target, pairs.folds, semivalue, self.n_parameters)


def polynomials(pairs: Pairs, support: Support | None, tolerance: float) -> Candidate | None:
    """Return polynomials of few terms, if these may miss far less than the process."""
    if support is None or np.all(support.missed > GOOD_ENOUGH * pairs.missed):
        return None
    models = []
    for fold in range(FOLDS):
        points, target = pairs.points[pairs.folds != fold], pairs.target[pairs.folds != fold]
        found = find_support(points, target, pairs.relevances, tolerance, FOLD_PATIENCE)
        model = None if found is None else Polynomial.fitted(found.polynomial.sets, points, target)
        if model is None:
            return None
        models.append(model)
    sizes = [len(model.sets) for model in models]
    return Candidate(f"{FOLDS} polynomials of {min(sizes)} to {max(sizes)} terms", models, float(np.mean(sizes)))


def networks(pairs: Pairs) -> Candidate | None:
    """Return networks, if the process misses something and a network half of that."""
    n_players, n_outputs = pairs.points.shape[1], len(pairs.missed)
    n_parameters = count_parameters(n_players, n_outputs)
    if pairs.missed.max() < WORTH or len(pairs.points) < PAIRS_A_PARAMETER * n_parameters:
        return None
    models = cross_fit(Network.starts(n_players, n_outputs), pairs.points, pairs.target, pairs.folds, pairs.missed)
    return None if models is None else Candidate(f"{FOLDS} networks of {UNITS} units", models, n_parameters)
