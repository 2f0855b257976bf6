"""Estimate values and standard errors from sampled coalitions, one function per estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from exactshap.errors import ExplanationWarning, InputError, message
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.core import Part, set_sizes, sets_by_size
from exactshap.solvers.sampled._correction import FITTED, corrected, corrected_by_folds, corrected_by_others, uncorrected
from exactshap.solvers.sampled._frontier import (
    Sets,
    additive_frontier,
    character_columns,
    check_frontier,
    known_sets,
    partial_frontier,
    unanimity_columns,
)
from exactshap.solvers.sampled._network import GOOD_ENOUGH, UNITS, Network, cross_fit
from exactshap.solvers.sampled._polynomial import (
    TINIEST,
    PolynomialFit,
    by_luck,
    fit_polynomial,
    odd_shares,
    surprises,
    unanimity_shares,
)
from exactshap.solvers.sampled._problem import COMPARED_COLUMNS, RegressionProblem
from exactshap.solvers.sampled._sampling import counted_weights, sizes_of
from exactshap.solvers.sampled._support import FOLD_PATIENCE, Polynomial, Support, find_support
from exactshap.solvers.sampled._surrogate import SURROGATES, posterior
from exactshap.solvers.sampled.process import CubeProcess, white_functionals

# Pairs a player from which left-out residuals show errors: KernelSHAP of fewer depends on single pairs
ENOUGH_PAIRS = 1.5
# Rounding in units of eps times the largest call: 0.3 to 10 was observed against exact values
ROUNDING = 16.0
# Relative residual of left-out pairs of KernelSHAP that counts as rounding
ADDITIVE = 1e-10
# Players up to which weights are inspected: beyond, Shapley's own underflow to 0
MAX_UNDERFLOWN = 1020
# Models that are fitted to all pairs but a fold, which says what they miss (``_correction.corrected_by_folds``)
FOLDS = 5
# Pairs for each parameter of a network; the process' mean square of left-out residuals, of the game's, from which networks are tried
PAIRS_A_PARAMETER, WORTH = 1.5, 1e-3


def by_process(problem: RegressionProblem) -> Part:
    """Return the exact values of the posterior mean, with the posterior's standard deviations."""
    return _of_process(problem, posterior(problem), _kernelshap(problem))


def _of_process(problem: RegressionProblem, process: CubeProcess, kernelshap: PolynomialFit | None) -> Part:
    return _above_rounding(problem, *_estimated(problem, process, kernelshap), "Gaussian process over coalitions")


def _estimated(
    problem: RegressionProblem, process: CubeProcess, kernelshap: PolynomialFit | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a process and their errors (n_sets, n_outputs), in units."""
    question, n = problem.question, problem.n_fitted
    if n < len(problem.masks):
        return corrected_by_others(problem.masks[n:], problem.odd_half[n:], process, question)
    if kernelshap is not None:
        return corrected(kernelshap, process, question)
    values, std_error = uncorrected(process, question)
    wary = process.wary()
    return _with_players(
        problem, process, values, std_error if wary is process else np.maximum(std_error, wary.solve(question)[1])
    )


def _with_players(
    problem: RegressionProblem, process: CubeProcess, values: np.ndarray, std_error: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the values of sets of several sizes. Errors of single players hold where the posterior's own do not.

    The pairs among the calls know the Shapley values :math:`\phi_j` as if they alone were wanted, with errors :math:`s_j` for any game.
    The process knows all calls: its values stay if they agree,

    .. math:: \frac1d \sum_j (\phi_j(m) - \phi_j)^2 / s_j^2 \le 1.

    Else they are moved by the difference if there are pairs enough, of every size; if not, it is part of the error. Single players of other indices
    qualify where no odd half of a game shows in what their weights add to Shapley's, as in k-SII of order 2.
    """
    d = problem.n_players
    if problem.order == 1 or d > COMPARED_COLUMNS:
        return values, std_error
    others, own = problem.semivalue.weights(d, 1, problem.order) - find("shapley").weights(d), problem.of_players()
    if np.abs(others + others[::-1]).max() > ADDITIVE or len(own.masks) < ENOUGH_PAIRS * d:
        return values, std_error
    alone, error = _estimated(own, posterior(own), _kernelshap(own))
    missing = alone - process.solve(own.question)[0]
    wrong = (missing**2 / np.maximum(error**2, TINIEST)).mean(axis=0) > 1.0
    n_of_sizes = np.bincount(sizes_of(own.masks, paired=True), minlength=d // 2 + 1)[1:]
    moved = wrong & (len(own.masks) >= FITTED * d) & (n_of_sizes.min() > 1)
    added = std_error[:d] if np.abs(others).max() > ADDITIVE else 0.0
    error = np.hypot(added, np.hypot(error, (wrong & ~moved) * missing))
    return np.concatenate([values[:d] + moved * missing, values[d:]]), np.concatenate([error, std_error[d:]])


def _of_polynomial(problem: RegressionProblem, fit: PolynomialFit, name: str) -> Part:
    return _above_rounding(problem, fit.values, fit.std_error, f"PolySHAP, {name}")


def _above_rounding(problem: RegressionProblem, values: np.ndarray, std_error: np.ndarray, method: str) -> Part:
    """Return values with errors of at least the rounding of the calls, which residuals may not show."""
    rounding = ROUNDING * np.finfo(float).eps * (problem.magnitude / problem.unit)
    return problem.solution(values, np.maximum(std_error, rounding), method)


def _kernelshap(problem: RegressionProblem) -> PolynomialFit | None:
    """Return KernelSHAP of the same pairs, if it applies and is determined."""
    if not problem.is_corrected or len(problem.masks) < ENOUGH_PAIRS * problem.n_players:
        return None
    fit = _fit_characters(problem, additive_frontier(problem.n_players, 1, odd=True))
    return fit if fit.determined else None


def _predicts_left_out(problem: RegressionProblem, kernelshap: PolynomialFit) -> bool:
    """Say whether KernelSHAP predicts every left-out pair, so that its values of players and pairs are exact.

    Only with twice as many pairs as players: fewer fit anything.
    """
    return len(problem.masks) >= 2 * problem.n_players - 1 and bool(np.all(kernelshap.left_out <= ADDITIVE))


def is_predicted(problem: RegressionProblem) -> bool:
    """Say whether KernelSHAP has the values already."""
    kernelshap = _kernelshap(problem)
    return kernelshap is not None and _predicts_left_out(problem, kernelshap)


def by_polynomial(problem: RegressionProblem) -> Part:
    """Return PolySHAP values of the requested frontier."""
    if not problem.is_shapley:
        raise InputError(
            "Polynomial regression estimates Shapley values of single players only",
            f"Got index {problem.semivalue.name!r}, order {problem.order}",
            "Use estimator='process' or 'unbiased'",
        )
    if problem.n_players == 1:
        return problem.solution(problem.total[None], np.zeros_like(problem.total[None]), "one player")
    fit, name = _fit_frontier(problem)
    if not np.isfinite(fit.std_error).all() and len(problem.masks):
        _warn_unknown(fit)
    note = "" if fit.determined else f", rank {fit.rank} of {fit.n_columns - 1}"
    return _of_polynomial(problem, fit, name + note)


def _fit_frontier(problem: RegressionProblem) -> tuple[PolynomialFit, str]:
    settings, d = problem.settings, problem.n_players
    if settings.frontier is None:
        order = min(settings.polynomial_order or _affordable_order(problem), d)
        if problem.paired:
            return _fit_characters(problem, additive_frontier(d, order, odd=True)), f"order {order}"
        return _fit_unanimity(problem, additive_frontier(d, order)), f"order {order}"
    if isinstance(settings.frontier, str):
        return _screened(problem)
    if isinstance(settings.frontier, (int, np.integer)):
        sets = partial_frontier(d, int(settings.frontier), problem.rng)
    else:
        # The user may pass any structure, which is read first and then checked as sets
        sets = check_frontier(known_sets(settings.frontier, d, settings.polynomial_order or 3), d)
    return _fit_unanimity(problem, sets), f"{len(sets)} terms"


def _affordable_order(problem: RegressionProblem) -> int:
    d = problem.n_players
    cubic = d + d * (d - 1) * (d - 2) // 6 if problem.paired else d + d * (d - 1) // 2 + d * (d - 1) * (d - 2) // 6
    return 3 if d >= 3 and len(problem.masks) >= 1.5 * cubic and cubic <= COMPARED_COLUMNS else 1


def _fit_characters(problem: RegressionProblem, sets: Sets) -> PolynomialFit:
    columns = character_columns(problem.masks, sets)
    shares = odd_shares(problem.n_players, sets)
    return fit_polynomial(columns, problem.odd_half, problem.total / 2.0, problem.masks, shares, paired=True)


def _fit_unanimity(problem: RegressionProblem, sets: Sets) -> PolynomialFit:
    masks = np.concatenate([problem.masks, ~problem.masks]) if problem.paired else problem.masks
    columns, shares = unanimity_columns(masks, sets), unanimity_shares(problem.n_players, sets)
    targets = np.concatenate([problem.inside, problem.outside]) - problem.empty
    return fit_polynomial(columns, targets, problem.total, masks, shares, paired=False, mirrored=problem.paired)


def _screened(problem: RegressionProblem) -> tuple[PolynomialFit, str]:
    """Return the best of growing frontiers, by leave-one-out error.

    Interactions are ranked by the product of their players' relevances under the process, which all calls help to estimate. Pairs of
    calls need triples only: sets of two players do not change the odd half of a game.
    """
    rho = posterior(problem).prior.rho
    fit, sizes = (_fit_characters, (3,)) if problem.paired else (_fit_unanimity, (2, 3))
    singles = additive_frontier(problem.n_players, 1)
    strongest = np.argsort(-rho)[: min(problem.n_players, 40)]
    interactions = [
        tuple(sorted(int(strongest[p]) for p in players))
        for players in additive_frontier(len(strongest), 3)
        if len(players) in sizes
    ]
    interactions.sort(key=lambda players: -float(rho[list(players)].prod()))
    room = len(problem.masks) - len(singles)
    counts = sorted({0, *(min(len(interactions), int(share * room)) for share in (0.1, 0.2, 0.4, 0.6) if room > 0)})
    fits = [fit(problem, singles + tuple(interactions[:count])) for count in counts]
    best = int(np.argmin([fit.error for fit in fits]))
    return fits[best], f"{counts[best]} screened {'triples' if problem.paired else 'interactions'}"


def _warn_unknown(fit: PolynomialFit) -> None:
    """Warn that the errors of a polynomial are infinite."""
    if fit.determined:
        what = "Some of the sampled coalitions fix a coefficient of the polynomial alone"
        got = "Nothing shows the errors of such a fit: its standard errors are infinite"
    else:
        what = "The sampled coalitions do not determine the polynomial"
        got = f"Rank {fit.rank} of {fit.n_columns - 1}; the shortest solution was taken and its standard errors are infinite"
    do = "Pass a larger budget=, a lower polynomial_order=, or estimator='auto'"
    warnings.warn(message(what, got, do), ExplanationWarning, stacklevel=7)


def by_best(problem: RegressionProblem) -> Part:
    r"""Return the process, or few terms that predict all calls, or models more certain.

    Values of few terms are wrong only by what no call has met. The rule of succession says how much that is if there is anything: the next
    pair of a size with :math:`n_s` called ones differs with probability :math:`1 / (n_s + 1)`, by the mean square of all. If one of two games that look like
    few terms differs from them at all, on a share of its pairs that may be any, the m pairs that took no part in the search leave it a probability of
    :math:`1 / (m + 2)`, and this share of the squared error.
    """
    kernelshap = _kernelshap(problem)
    if kernelshap is not None and _predicts_left_out(problem, kernelshap):
        return _of_polynomial(problem, kernelshap, "order 1, exact on every call left out")
    process = posterior(problem)
    if kernelshap is None:
        return _of_process(problem, process, kernelshap)
    pairs = Pairs.of(problem, process)
    support = find_support(pairs.points, pairs.target, pairs.relevances, ADDITIVE)
    if support is not None and support.largest <= ADDITIVE:
        exact = _fit_characters(problem, support.polynomial.sets)
        if np.all(exact.left_out <= ADDITIVE):
            unseen = kernelshap.unseen_error(sizes_of(problem.masks, paired=True), problem.odd_half)
            name = f"PolySHAP, {exact.n_columns} terms, exact on every call left out"
            return _above_rounding(problem, exact.values, unseen / np.sqrt(support.n_left_out + 2.0), name)
    estimate = _of_process(problem, process, kernelshap)
    for candidate in (polynomials(pairs, support), networks(pairs)):
        if candidate is not None:
            values, variance, missed = candidate.corrected(pairs, problem.semivalue)
            unit = process.unit
            part = _above_rounding(problem, unit * values, unit * np.sqrt(variance), candidate.name)
            estimate = _more_certain(problem, part, estimate, missed < pairs.missed)
    return estimate


def _more_certain(problem: RegressionProblem, part: Part, estimate: Part, may: np.ndarray) -> Part:
    """Return the estimate, with another part's values where its errors are smaller: outputs that ``may`` have them."""
    errors = [((np.asarray(some.std_error) / problem.unit) ** 2).sum(axis=0) for some in (part, estimate)]
    better = (errors[0] < errors[1]) & may
    name = part.method
    if not better.all():
        name = f"{estimate.method}; {name} for {np.count_nonzero(better)} of {len(better)} outputs"
    chosen = {each: np.where(better, getattr(part, each), getattr(estimate, each)) for each in ("values", "std_error")}
    return replace(estimate, method=name, **chosen) if better.any() else estimate


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


def polynomials(pairs: Pairs, support: Support | None) -> Candidate | None:
    """Return polynomials of few terms, if these may miss far less than the process."""
    if support is None or np.all(support.missed > GOOD_ENOUGH * pairs.missed):
        return None
    models = []
    for fold in range(FOLDS):
        points, target = pairs.points[pairs.folds != fold], pairs.target[pairs.folds != fold]
        found = find_support(points, target, pairs.relevances, ADDITIVE, FOLD_PATIENCE)
        model = None if found is None else Polynomial.fitted(found.polynomial.sets, points, target)
        if model is None:
            return None
        models.append(model)
    sizes = [len(model.sets) for model in models]
    return Candidate(f"{FOLDS} polynomials of {min(sizes)} to {max(sizes)} terms", models, float(np.mean(sizes)))


def networks(pairs: Pairs) -> Candidate | None:
    """Return networks, if the process misses something and a network half of that."""
    n_players, n_outputs = pairs.points.shape[1], len(pairs.missed)
    n_parameters = UNITS * (n_players + 1 + n_outputs)  # weights, biases and outputs
    if pairs.missed.max() < WORTH or len(pairs.points) < PAIRS_A_PARAMETER * n_parameters:
        return None
    models = cross_fit(Network.starts(n_players, n_outputs), pairs.points, pairs.target, pairs.folds, pairs.missed)
    return None if models is None else Candidate(f"{FOLDS} networks of {UNITS} units", models, n_parameters)


def by_unbiased(problem: RegressionProblem) -> Part:
    r"""Return the exact values of cross-fitted surrogates plus an unbiased estimate of their error.

    .. math:: \hat\phi_T = \frac1K \sum_k \Bigl[\phi_T(f_{-k}) + \sum_{S \in B} D_T(S) r_k(S) +
              \frac{1}{n_k} \sum_{S \in k} \frac{D_T(S) r_k(S) + D_T(\bar S) r_k(\bar S)}{2 P(S)}\Bigr], \quad r_k = v - f_{-k},

    where :math:`\phi_T(v) = \sum_S D_T(S) v(S)`. B holds the full and the empty coalition and the pairs that are listed, not drawn;
    :class:`Draws` says which they are, and why means over draws that go on until the budget is spent are unbiased. Each surrogate is
    fitted to B and to the draws outside its fold that were certain to be made: independent of those that it is judged by.
    """
    draws = problem.draws
    if problem.n_players > 1 and draws.complete:
        return _of_all(problem)
    if problem.n_players == 1 or draws.n_certain < 2:
        raise InputError(
            "The unbiased estimator needs two pairs of coalitions", f"Got {draws.n_certain}", "Pass a larger budget="
        )
    _check_all_sizes_weigh(problem)
    # At least two draws in each fold: a variance needs them
    n_folds = FOLDS if draws.n_certain >= 2 * FOLDS else draws.n_certain // 2
    # Draws are independent, so any folds are valid
    folds = np.arange(len(problem.masks)) % n_folds
    estimates = [_one_fold(problem, folds == fold) for fold in range(n_folds)]
    values = np.mean([value for value, _ in estimates], axis=0)
    std_error = np.sqrt(np.sum([variance for _, variance in estimates], axis=0)) / n_folds
    return problem.solution(values, std_error, f"unbiased, surrogate {problem.settings.surrogate!r}")


def _of_all(problem: RegressionProblem) -> Part:
    """Return the values of a game with all coalitions known."""
    masks = _known(problem)
    values = _coefficients(problem, masks).T @ problem.answers(masks)
    return problem.solution(values, np.zeros_like(values), "all coalitions")


def _known(problem: RegressionProblem) -> np.ndarray:
    """Return the coalitions that are certain: the ends and the listed pairs."""
    ends = np.array([[False] * problem.n_players, [True] * problem.n_players])
    return np.concatenate([ends, problem.draws.listed, ~problem.draws.listed])


def _check_all_sizes_weigh(problem: RegressionProblem) -> None:
    """Refuse atoms at 0 and 1. Their few coalitions are hardly ever drawn, so that standard errors would be invalid."""
    for size in set_sizes(problem.order):
        weights = problem.semivalue.weights(min(problem.n_players, MAX_UNDERFLOWN), size, problem.order)
        if np.any(weights == 0.0):
            raise InputError(
                f"The unbiased estimator draws every size, but index {problem.semivalue.name!r} has no weight on coalitions of size "
                f"{int(np.argmin(np.abs(weights)))}",
                do="Use estimator='process'",
            )


def _one_fold(problem: RegressionProblem, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    masks = problem.masks
    certain = np.arange(len(masks)) < problem.draws.n_certain
    rest = np.concatenate([np.ones((1, problem.n_players), bool), problem.draws.listed, masks[certain & ~held]])
    fit = SURROGATES[problem.settings.surrogate]
    surrogate = fit(rest, problem.answers(rest), problem.answers(~rest), problem.rng)
    known = _known(problem)
    base = surrogate.values(problem.semivalue, problem.order)
    base = base + _coefficients(problem, known).T @ (problem.answers(known) - surrogate.predict(known))
    terms, squares = np.zeros((1, 1, 1)), np.zeros((1, 1))
    half = np.count_nonzero(problem.draws.is_drawn[1:-1]) / 2.0  # of one over the probability of a size
    for side in (masks[held], ~masks[held]):
        scaled = half * _coefficients(problem, side, counted=True)
        terms = terms + scaled[:, :, None] * (problem.answers(side) - surrogate.predict(side))[:, None, :]
        squares = squares + scaled**2
    n, answers = int(held.sum()), problem.answers(np.concatenate([rest, ~rest]))
    if n == 1:
        return base + terms[0], np.full(base.shape, np.inf)
    # Few draws may agree, or be predicted, by luck
    guesses = surprises(by_luck(answers, len(rest) / problem.n_players), answers - answers.mean(axis=0), np.array([n]))
    return base + terms.mean(axis=0), (terms.var(axis=0, ddof=1) + squares.mean(axis=0)[:, None] * guesses) / n


def _coefficients(problem: RegressionProblem, masks: np.ndarray, *, counted: bool = False) -> np.ndarray:
    """Return D_T(S), times the number of coalitions of the size if ``counted``, of shape (n_masks, n_sets)."""
    points, weights_of = 2.0 * masks - 1.0, counted_weights if counted else Semivalue.weights
    return np.concatenate(
        [
            white_functionals(points, sets, weights_of(problem.semivalue, problem.n_players, size, problem.order))
            for size, sets in enumerate(sets_by_size(problem.sets, problem.order), start=1)
        ],
        axis=1,
    )


ESTIMATORS: dict[str, Callable[[RegressionProblem], Part]] = {
    "auto": by_best,
    "process": by_process,
    "polynomial": by_polynomial,
    "unbiased": by_unbiased,
}
