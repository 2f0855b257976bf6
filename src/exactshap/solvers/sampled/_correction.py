r"""Correct the Shapley values of a process by leave-one-out residuals of pairs, with standard errors.

The process has the values :math:`\phi_j(m)` of its mean m and posterior variances :math:`\sigma_j^2`, valid if its prior is. Its
errors show in the leave-one-out residuals :math:`r_i` of the n pairs, for any prior. KernelSHAP is linear in pairs; let
:math:`G_{ij}` be by how much pair i moves the value of player j, and :math:`u_i = 1 - n_s / N_s` the share of the pairs of its size that
are not called. Pairs of a size are drawn, or placed and relabelled by chance, so that those called stand for the others:

.. math:: c_j = \sum_i u_i G_{ij} r_i, \qquad V_j = \sum_i u_i G_{ij}^2 r_i^2\, \frac{n_s}{n_s - 1}

are an unbiased estimate of what the values miss, and its variance over such draws (stratified by size, from finitely many). Residuals
are less their mean of a size: a game of sizes gives all players the same. What is beyond chance is added (James & Stein 1961), along the
values, in direction a, and across: a process that believes in too much or too little of what it saw is wrong along a, where it takes few
pairs to see it.

.. math:: a_j = \frac{\phi_j(m) - \bar\phi(m)}{\sqrt{\sum_k (\phi_k(m) - \bar\phi(m))^2}}, \qquad
          b = \sum_j a_j c_j, \qquad V_b = \sum_i u_i \Bigl(\sum_j G_{ij} a_j\Bigr)^2 r_i^2\, \frac{n_s}{n_s - 1},

.. math:: \beta = \max\Bigl\{1 - \Bigl(\frac{n}{n - d}\Bigr)^2 \frac{V_b}{b^2},\; 0\Bigr\}, \qquad
          \lambda = \max\Bigl\{1 - \frac{\sum_j V_j - V_b}{\sum_j (c_j - b\, a_j)^2},\; 0\Bigr\}.

By n / (n - d), as in a jackknife, a pair moves values more than G, which was fitted to it, says. Where the process is right, c has the
variance :math:`C_j` that the process itself says, which is less than V; the share w of what is beyond it is what the process is wrong about:

.. math:: w = \max\Bigl\{1 - \frac{n}{n - d} \frac{\min\{\sum_j C_j,\, \sum_j V_j\}}{\sum_j c_j^2},\; 0\Bigr\}, \qquad h = \max\{\min\{8 d / n, 1\} - w,\; 0\}.

h is what nobody knows: V consists of residuals of the n pairs (of several outputs: of :attr:`CubeProcess.n_answers`) that the d relevances were
fitted to. There the larger variance counts. The values and the squares of their errors are

.. math:: \phi_j = \phi_j(m) + \beta\, b\, a_j + \lambda\, (c_j - b\, a_j), \qquad s_j^2 = (1 - w - h)\, \sigma_j^2 + w V_j + h \max\{\sigma_j^2, V_j\},

but for one thing. Values that chance scatters, of a process that is wrong, are drawn together, to :math:`\bar\phi + \kappa\, (\phi_j - \bar\phi)`:

.. math:: \kappa = \max\Bigl\{1 - w\, \frac{d - 3}{d - 1} \frac{\sum_j s_j^2}{\sum_j (\phi_j - \bar\phi)^2},\; 0\Bigr\}.

Answers that repeat may be predicted by luck: with probability t where two pairs have the same answer with probability t, and in all n / d pairs
of one relevance, one of which fixes it, with :math:`t^{n / d - 1}`. A pair of a size of which :math:`n_s` were predicted is then as
uncertain as a guess with probability :math:`1 / (n_s + 1)`, with the mean square of the answers as its squared error, :math:`\bar y^2`: that much of
them is added to each :math:`r_i^2` in V. It matters with some two pairs a player, for votes and the like.

A process has room for so many pairs (:attr:`RegressionProblem.n_fitted`). Those beyond are drawn by size whatever it believes, so that they
estimate what it misses without bias, and the weight of that estimate is the one of least variance
(:func:`corrected_by_others`). Polynomials (``_support``) and networks (``_network``) are each corrected by a fold of the pairs, all of it
(:func:`corrected_by_folds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from exactshap.semivalues import Semivalue
from exactshap.solvers.core import sets_by_size
from exactshap.solvers.sampled._polynomial import TINIEST, PolynomialFit, by_luck, surprises
from exactshap.solvers.sampled._sampling import counted_weights, sizes_of, strata
from exactshap.solvers.sampled.process import CubeProcess, Question, evenly_spaced, white_functionals

# Pairs a player up to which relevances are not trusted
FITTED = 8.0
BLOCK = 1000  # pairs that are predicted at once
MOST_JUDGED = 500  # sets of each size, evenly spread, by which variances are judged


def corrected(kernelshap: PolynomialFit, process: CubeProcess, question: Question) -> tuple[np.ndarray, np.ndarray]:
    """Return corrected Shapley values and their errors (n_players, n_outputs); ``kernelshap`` is the fit of the process' pairs."""
    values, own = process.posterior(question)
    values = values / process.unit
    correction = Correction.of(process, kernelshap)
    wrong, unknown = correction.wrong, correction.unknown
    variance = (1.0 - wrong) * own + wrong * correction.variance + unknown * np.maximum(correction.variance - own, 0.0)
    values = drawn_together(values + correction.added(values), wrong * variance.sum(axis=0))
    return process.unit * values, process.unit * np.sqrt(variance)


def uncorrected(process: CubeProcess, question: Question) -> tuple[np.ndarray, np.ndarray]:
    r"""Return values of any index and order, which nothing corrects, and their errors: (n_sets, n_outputs).

    A process is as rough at one size of coalitions as at any other, and games that jump are not. So its variances have the scale of what the
    residuals say of the values themselves, if that is larger than the scale of the residuals. For one half of the game and all sets T of a size,

    .. math:: \frac{\sum_T c_T^2}{\sum_T C_T}, \qquad c_T = \sum_i u_i \frac{N_s}{n_s} D_{iT}\, r_i,

    where each row i stands for all :math:`N_s` of its size, with the weight :math:`D_{iT}` in a value, and C is the variance that the process says c has. Of the share w,
    and of h, the relevances that say which sets are known best are not trusted: there no variance counts for less than the mean of the sets of its size.
    """
    n_players, n = process.points.shape[1], process.n_answers
    by_size = sets_by_size(question.sets, question.order)
    squares, expected = np.zeros((2, len(process.halves), len(by_size), len(process.unit)))
    for k, fitted in enumerate(process.halves):
        for size, sets in enumerate(by_size):
            weights = _drawn_weights(process, sets[evenly_spaced(len(sets), MOST_JUDGED)], question, fitted.half.sign)
            squares[k, size] = ((weights.T @ process.checked(k)[1]) ** 2).sum(axis=0)
            expected[k, size] = process.variance_of_left_out(weights, k).sum(axis=0)
    counts = [len(sets) for sets in by_size]
    ratios = squares / np.maximum(expected, TINIEST)
    values, std_error = process.solve(question, [np.repeat(half, counts, axis=0) for half in ratios])
    scales = np.array([fitted.half.scale for fitted in process.halves])[:, None] ** 2
    chance = n / max(n - n_players, 1.0) * (scales * expected).sum(axis=0)
    share = np.maximum(beyond_chance((scales * squares).sum(axis=0), chance), min(FITTED * n_players / n, 1.0))
    parts = np.split(std_error**2, np.cumsum(counts)[:-1])
    raised = [some + part * np.maximum(some.mean(axis=0) - some, 0.0) for some, part in zip(parts, share, strict=True)]
    return values, np.sqrt(np.concatenate(raised))


def _drawn_weights(process: CubeProcess, sets: np.ndarray, question: Question, sign: int) -> np.ndarray:
    """Return the weights (n_checked, n_sets) of residuals in c, each row for all those of its size that were not called."""
    n_players, n_checked = process.points.shape[1], len(process.checked()[0])
    sizes = sizes_of(process.points > 0, paired=process.paired)
    own, halves = sizes[-n_checked:], 1.0 + (process.paired & (2 * sizes[-n_checked:] == n_players))
    # The full and the empty coalition are one each
    every = np.concatenate([[1.0], strata(n_players, paired=process.paired).counts, [1.0]])
    called, checked = (np.bincount(some, minlength=n_players + 1) for some in (sizes, own))
    counted = counted_weights(question.semivalue, n_players, sets.shape[1], question.order)
    of_size = (1.0 - called[own] / every[own]) / (checked[own] * halves)
    return np.asarray(of_size[:, None] * white_functionals(process.points[-n_checked:], sets, counted, sign))


def beyond_chance(squares: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Return the share of an estimate that is not chance.

    ``squares`` (n_outputs,) is its sum of squares, of which chance has ``chance``.
    """
    return np.asarray(np.maximum(1.0 - chance / np.maximum(squares, TINIEST), 0.0))


def drawn_together(values: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Return values (n_players, n_outputs) nearer to their mean: chance adds ``chance`` (n_outputs,) to their squares."""
    mean, n = values.mean(axis=0), len(values)
    away = values - mean
    return mean + beyond_chance((away**2).sum(axis=0), chance * max(n - 3, 0) / max(n - 1, 1)) * away


def corrected_by_others(
    masks: np.ndarray,
    target: np.ndarray,
    process: CubeProcess,
    question: Question,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return values corrected by pairs that the process does not know, and their errors: (n_players, n_outputs).

    ``target`` (n_masks, n_outputs) is the odd half of the game there. With c and V as in :meth:`Drawn.estimate`,

    .. math:: \lambda = \frac{m}{m + \sum_j V_j}, \qquad m = \max\Bigl\{\sum_j \sigma_j^2,\; \sum_j c_j^2 - \sum_j V_j\Bigr\},

    m what the process misses, by its own variances or by what is beyond chance. The squared error is
    :math:`(1 - \lambda)^2 \sigma_j^2\, m / \sum_j \sigma_j^2 + \lambda^2 V_j`.
    """
    values, own = process.posterior(question)
    blocks = np.array_split(masks, -(-len(masks) // BLOCK))
    predicted = np.concatenate([process.predict(block) for block in blocks])
    drawn = Drawn.of(2.0 * masks - 1.0, (target - predicted) / process.unit, process.points, question.semivalue)
    correction, variance = drawn.estimate()
    chance, expected = variance.sum(axis=0), np.maximum(own.sum(axis=0), TINIEST)
    missed = np.maximum(expected, (correction**2).sum(axis=0) - chance)
    share = missed / (missed + chance)
    error = (1.0 - share) ** 2 * (missed / expected) * own + share**2 * variance
    return values + process.unit * share * correction, process.unit * np.sqrt(error)


class Fitted(Protocol):
    """Predict pairs by a model with exact values."""

    def predict(self, points: np.ndarray) -> np.ndarray: ...
    def values(self, semivalue: Semivalue) -> np.ndarray: ...


def corrected_by_folds(
    models: Sequence[Fitted],
    points: np.ndarray,
    target: np.ndarray,
    folds: np.ndarray,
    semivalue: Semivalue,
    n_parameters: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the mean corrected values of cross-fitted models, their variances, and mean squares.

    The first two have shape (n_players, n_outputs), the last are those of left-out pairs (n_outputs,).

    .. math:: \hat\phi = \frac1K \sum_k \Bigl[\phi(f_{-k}) + \sum_{i \text{ not in } k} D_i r_{ki} + c_k\Bigr], \qquad r_k = g - f_{-k}

    ``target`` (n_points, n_outputs) is the odd half g of the game. What a model of ``n_parameters`` misses of the pairs it was fitted to is known; :math:`c_k`
    estimates the others without bias, by its fold, whatever the model has learned. If all models were the same, this would be the estimate by all pairs at once, but for
    the means of sizes. The variance is that one's V, with each residual of the model that left it out. Answers that repeat may be predicted by luck, as by a process.
    """
    values, left_out = np.zeros(()), np.empty(target.shape)
    for fold, model in enumerate(models):
        own, residuals = folds == fold, target - model.predict(points)
        drawn, left_out[own] = Drawn.of(points[own], residuals[own], points[~own], semivalue), residuals[own]
        values = values + model.values(semivalue) + drawn.known_weights.T @ residuals[~own] + drawn.estimate()[0]
    whole = Drawn.of(points, left_out, points[:0], semivalue)
    guesses = surprises(by_luck(target, len(points) / n_parameters), target, whole.sizes.counts)
    return values / len(models), whole.estimate(guesses)[1], (left_out**2).mean(axis=0)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Hold what a model of the game misses at pairs drawn by size."""

    sizes: Sizes
    n_left: np.ndarray  # (n_pairs, 1), of the pairs of that size that the model does not know: N_s
    weights: np.ndarray  # (n_pairs, n_players), of a pair in the values: D
    centred: np.ndarray  # (n_pairs, n_outputs), residuals minus their mean of a size
    level: np.ndarray  # (n_known, n_outputs), those means at the pairs that the model knows
    known_weights: np.ndarray  # (n_known, n_players)

    @classmethod
    def of(cls, points: np.ndarray, residuals: np.ndarray, known: np.ndarray, semivalue: Semivalue) -> Drawn:
        n_players = points.shape[1]
        groups, sizes, fitted = strata(n_players, paired=True), Sizes.of(points), Sizes.of(known)
        n_fitted = np.bincount(fitted.sizes, minlength=n_players + 1)[groups.sizes]
        weights, known_weights = (
            white_functionals(some, np.arange(n_players)[:, None], semivalue.weights(n_players), -1) for some in (points, known)
        )
        centred, level = sizes.centred(residuals), np.zeros((n_players + 1, residuals.shape[1]))
        level[sizes.sizes] = sizes.side[:, None] * (residuals - centred)
        n_left = (groups.counts - n_fitted)[sizes.sizes - 1][:, None]
        return cls(sizes, n_left, weights, centred, fitted.side[:, None] * level[fitted.sizes], known_weights)

    def estimate(self, guesses: np.ndarray | float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        r"""Return c, what the model's values miss, and V, its variance over draws: (n_players, n_outputs).

        ``guesses`` (n_pairs, n_outputs) are added to squared residuals.

        With :math:`N_s` the pairs of a size that the model does not know, of which :math:`n_s` were drawn, and :math:`D_{ij}` the weight of
        pair i in value j,

        .. math:: c_j = \sum_i \frac{N_s - 1}{n_s - 1} D_{ij} (r_i - \bar r_s) + \sum_s \bar r_s \sum_{i \text{ left}} D_{ij}, \qquad
                  V_j = \sum_i \Bigl(1 - \frac{n_s}{N_s}\Bigr) \Bigl(\frac{N_s}{n_s} D_{ij} (r_i - \bar r_s)\Bigr)^2 \frac{n_s}{n_s - 1}.
        """
        n_left, n_drawn = self.n_left, self.sizes.counts[:, None]
        means = self.sizes.centres.astype(int)  # one of the pairs of a size is spent on its mean
        # The mean of a size gives all players the same over all of its pairs, so that those left have the opposite of those known
        correction = ((n_left - means) / (n_drawn - means) * self.weights).T @ self.centred - self.known_weights.T @ self.level
        variance = ((1.0 - n_drawn / n_left) * (n_left / n_drawn * self.weights) ** 2).T @ (
            self.sizes.spread * self.centred**2 + guesses
        )
        return correction - correction.mean(axis=0), variance  # the sum of the values is known, so it is not corrected


@dataclass(frozen=True, eq=False)
class Correction:
    """Hold the correction of Shapley values by left-out residuals, in the process' ``unit``.

    ``missed`` and ``variance`` (n_players, n_outputs) are c and V, ``wrong`` and ``unknown`` (n_outputs,) are w and h. V is the sum of
    squared ``moves`` (n_pairs, n_players) times ``squares`` (n_pairs, n_outputs); ``few`` is n / (n - d).
    """

    missed: np.ndarray
    variance: np.ndarray
    wrong: np.ndarray
    unknown: np.ndarray
    moves: np.ndarray
    squares: np.ndarray
    few: float

    @classmethod
    def of(cls, process: CubeProcess, kernelshap: PolynomialFit) -> Correction:
        """Estimate what the process' values miss; ``kernelshap`` is the fit of its pairs."""
        rows, residuals = process.checked()
        is_pair = rows[:, None] > 0  # row 0 is the full coalition
        pairs, (n_pairs, n_players) = np.maximum(rows - 1, 0), kernelshap.moves.shape
        every = n_pairs / np.count_nonzero(is_pair)  # pairs for each of those that are left out
        moves, unseen = kernelshap.moves[pairs], kernelshap.unseen[pairs][:, None]
        sizes = Sizes.of(process.points[-len(rows) :])
        left = sizes.centred(np.where(is_pair, residuals, 0.0))
        missed = every * (unseen * moves).T @ left
        missed -= missed.mean(axis=0)  # their sum is known, so it is not corrected
        answers = process.halves[0].half.target[process.order > 0]
        guesses = surprises(by_luck(answers, n_pairs / n_players), answers, sizes.counts)
        squares = every * unseen * is_pair * (sizes.spread * left**2 + guesses)
        variance = (moves**2).T @ squares
        weights = np.where(is_pair, sizes.centred(every * unseen * moves), 0.0)
        few = n_pairs / max(n_pairs - n_players, 1)
        expected = np.minimum(process.variance_of_left_out(weights).sum(axis=0), variance.sum(axis=0))
        wrong = beyond_chance((missed**2).sum(axis=0), few * expected)
        unknown = np.maximum(min(FITTED * n_players / process.n_answers, 1.0) - wrong, 0.0)
        return cls(missed, variance, wrong, unknown, moves, squares, few)

    def added(self, values: np.ndarray) -> np.ndarray:
        """Return what is added to the process' values: what is beyond chance, along them and across, (n_players, n_outputs)."""
        away = values - values.mean(axis=0)
        away /= np.maximum(np.sqrt((away**2).sum(axis=0)), TINIEST)
        along = (away * self.missed).sum(axis=0)
        chance = ((self.moves @ away) ** 2 * self.squares).sum(axis=0)
        across = self.missed - along * away
        share = beyond_chance((across**2).sum(axis=0), self.variance.sum(axis=0) - chance)
        return beyond_chance(along**2, self.few**2 * chance) * along * away + share * across


@dataclass(frozen=True, eq=False)
class Sizes:
    """Group pairs by the size of the smaller complement; ``side`` is 1 if that is the one given, 0 for halves of the players."""

    sizes: np.ndarray  # (n_pairs,)
    counts: np.ndarray  # (n_pairs,), of the pairs of that size
    side: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray) -> Sizes:
        sums = points.sum(axis=1)
        sizes = ((points.shape[1] - np.abs(sums)) / 2).astype(int)
        return cls(sizes, np.bincount(sizes)[sizes], -np.sign(sums))

    @property
    def centres(self) -> np.ndarray:
        """Say which pairs (n_pairs, 1) have a mean to subtract: for halves it is 0, as either complement may represent the pair."""
        return ((self.counts > 1) & (self.side != 0))[:, None]

    @property
    def spread(self) -> np.ndarray:
        """Return the factor (n_pairs, 1) that corrects squares for the subtracted mean of a size."""
        return np.where(self.centres, self.counts[:, None] / np.maximum(self.counts[:, None] - 1.0, 1.0), 1.0)

    def centred(self, rows: np.ndarray) -> np.ndarray:
        """Return ``rows`` (n_pairs, n_columns) minus their mean of a size."""
        sums = np.zeros((self.sizes.max() + 1, rows.shape[1]))
        np.add.at(sums, self.sizes, self.side[:, None] * rows)
        means = self.side[:, None] * sums[self.sizes] / self.counts[:, None]
        return np.where(self.centres, rows - means, rows)
