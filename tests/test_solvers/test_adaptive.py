"""Samples placed in stages: which pairs are chosen, what that is worth, and where it stays away."""

import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest

from exactshap.games import OracleGame
from exactshap.semivalues import Atom, Semivalue, find
from exactshap.solvers import seconds_besides_calls, solve
from exactshap.solvers.core import player_sets
from exactshap.solvers.sampled import _adaptive, _estimators, _placement, _surrogate
from exactshap.solvers.sampled._placement import place
from exactshap.solvers.sampled._sampling import draw, shares_of, strata
from exactshap.solvers.sampled.process import Question, fit_process, needs_even
from exactshap.solvers.sampled.process._halves import JITTER, FittedHalf
from tolerances import HALF_THE_DIGITS, conditioned, roundings


def smooth(d, seed=0):
    """A game of all orders with players of unlike weight."""
    weights, others = np.random.default_rng(seed).normal(size=(2, d)) * np.linspace(0.1, 1.5, d)
    return lambda masks: np.tanh(masks @ weights) * (1.0 + np.cos(masks @ others))


def process_and_candidates(d=9, *, even=False):
    rng = np.random.default_rng(3)
    value, pairs = smooth(d), draw(d, 140, rng, strata(d, paired=True), paired=True)
    points = 2.0 * np.concatenate([np.ones((1, d), bool), pairs[::3]]) - 1.0
    inside, outside = (value(side > 0)[:, None] for side in (points, -points))
    process = fit_process(points, inside, outside, even=even, relevance_rows=99, rng=rng)
    return process, 2.0 * np.delete(pairs, np.s_[::3], axis=0) - 1.0


def placed(process, points, n, question):
    belief = _placement.Belief(process.prior, process.white + _placement.TRUSTED, process.scales(), question)
    return place(process.points, points, n, belief)


def test_batches_change_little_of_what_single_places_choose(monkeypatch):
    """Of what is left of the variance of the values."""
    process, points = process_and_candidates()
    question, left = Question(find("shapley"), 1, player_sets(9, 1)), []
    for batch in (1, 8, 64):
        monkeypatch.setattr(_placement, "BATCH", batch)
        monkeypatch.setattr(_placement, "KNOWN_FOR_EACH", 1)
        chosen = placed(process, points, 30, question)
        assert len(set(chosen.tolist())) == 30
        left.append(variance_left(process, np.vstack([process.points, points[chosen]]), question))
    drawn = variance_left(process, np.vstack([process.points, points[:30]]), question)
    assert max(left[1:]) <= left[0] + 0.1 * (drawn - left[0])


@pytest.mark.parametrize("n_parts", [1, 6])
def test_the_variance_that_is_left_is_that_of_the_posterior(n_parts):
    """Of each half, of the points and of their covariances with the values."""
    process, points = process_and_candidates(even=True)
    question, noise = Question(find("k-sii"), 2, player_sets(9, 2)), process.white + _placement.TRUSTED
    every = np.concatenate([process.points, points])
    called = [*np.array_split(np.arange(len(process.points)), n_parts), np.array([60, 70, 80])]
    seen, rest = np.concatenate(called), np.setdiff1d(np.arange(len(every)), np.concatenate(called))
    for sign, scale in process.scales():
        side = _placement.Side.of(sign, scale, _placement.Belief(process.prior, noise, (), question), every)
        for some in called:
            side.condition(some)
        gram = _placement.covariance(every, every, process.theta, sign)
        cross = scale * process.prior.covariances(sign, every, question)
        solved = np.linalg.solve(gram[np.ix_(seen, seen)] + noise * np.eye(len(seen)), np.hstack([gram[seen], cross[seen]]))
        # Of blocks in single precision, before they are solved for the last three
        close = conditioned(1.0 / noise) + len(seen) * np.finfo(np.float32).eps * gram[0, 0]
        left = gram[0, 0] + noise - (gram[seen] * solved[:, : len(every)]).sum(axis=0)
        np.testing.assert_allclose(side.variance[rest], left[rest], rtol=0.0, atol=close)
        gain = cross - gram[:, seen] @ solved[:, len(every) :]
        np.testing.assert_allclose(side.gain[rest], gain[rest], rtol=0.0, atol=close / noise)
        few = side.kept(rest[:5])
        np.testing.assert_array_equal(few.variance, side.variance[rest[:5]])
        np.testing.assert_allclose(few.left(slice(None), np.arange(5)), side.left(rest[:5], rest[:5]), rtol=0.0, atol=close)


def unpaired_process(d):
    rng = np.random.default_rng(4)
    masks = draw(d, 40, rng, strata(d, paired=False), paired=False)
    points, others = 2.0 * masks[::2] - 1.0, 2.0 * masks[1::2] - 1.0
    inside = smooth(d)(points > 0)[:, None]
    return fit_process(points, inside, None, even=True, relevance_rows=99, rng=rng), others


@pytest.mark.parametrize("is_paired", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 19, 20, 99])
@pytest.mark.parametrize("n_points", [1e9, 30.0, 5.0, 0.1])
def test_regions_have_their_share_of_places_and_place_as_all_points_would(monkeypatch, is_paired, n, n_points):
    process, points = process_and_candidates() if is_paired else unpaired_process(6)
    points, question = points[:20], Question(find("shapley"), 1, player_sets(points.shape[1], 1))
    belief = _placement.Belief(process.prior, process.white + _placement.TRUSTED, process.scales(), question)
    monkeypatch.setattr(_adaptive, "REGION_POINTS", n_points)
    chosen = _adaptive._by_region(process, points, n, belief)
    assert len(chosen) == len(set(chosen.tolist())) == min(n, len(points))
    if n_points == 1e9:
        np.testing.assert_array_equal(chosen, placed(process, points, n, question))
    if n_points == 30.0 and n == 19 and not is_paired:  # two regions: with the most relevant player and without
        top = int(process.theta.argmax())
        for side in (-1.0, 1.0):
            known, own = process.points[process.points[:, top] == side], np.flatnonzero(points[:, top] == side)
            ours = chosen[points[chosen, top] == side]
            assert abs(len(ours) - len(own) * n / 20) <= 1.0
            np.testing.assert_array_equal(ours, own[place(known, points[own], len(ours), belief)])


def test_candidates_are_dropped_only_where_few_places_are_left(monkeypatch):
    """Of 93 candidates for 40 places, a list of three is enough for the last: the best of them are chosen all the same."""
    process, points = process_and_candidates()
    question = Question(find("shapley"), 1, player_sets(9, 1))
    monkeypatch.setattr(_placement, "BATCH", 1)
    few = placed(process, points, 40, question)
    monkeypatch.setattr(_placement, "CROWDED", 0.0)
    every = placed(process, points, 40, question)
    np.testing.assert_array_equal(few[:20], every[:20])
    left = [variance_left(process, np.vstack([process.points, points[chosen]]), question) for chosen in (few, every)]
    assert left[0] <= 1.1 * left[1]


def variance_left(process, points, question):
    """Return the summed variance of the values, each half's in units of the larger one, given calls of ``points`` alone."""
    total = 0.0
    for fitted, (_, scale) in zip(process.halves, process.scales(), strict=True):
        half = replace(fitted.half, target=np.zeros((len(points), 1)))
        seen = FittedHalf.at(points, half, process.theta, process.white)
        there = replace(process, points=points, order=np.arange(len(points)), halves=(seen,))
        total += scale**2 * there.half_posteriors(question)[0].left.sum()
    return total


@pytest.mark.parametrize(("index", "order"), [("k-sii", 2), ("fsii", 2), ("banzhaf", 1), (Semivalue("optimist", Atom(0.9)), 1)])
def test_what_a_call_tells_is_what_it_takes_from_the_variance_of_the_values(monkeypatch, index, order):
    """Of any index, of both halves of the game; batches take the best of what those before have left."""
    monkeypatch.setattr(_placement, "TRUSTED", JITTER)
    monkeypatch.setattr(_placement, "BATCH", 2)
    monkeypatch.setattr(_placement, "KNOWN_FOR_EACH", 1)
    monkeypatch.setattr(_placement, "SHORTLIST", 99)
    d = 6
    question = Question(find(index), order, player_sets(d, order))
    process, points = process_and_candidates(d, even=needs_even(question.semivalue, d, order))
    before = variance_left(process, process.points, question)
    chosen = placed(process, points, 5, question)
    for k in range(5):
        rows = [np.vstack([process.points, points[chosen[:k]], point]) for point in points]
        left = np.array([variance_left(process, some, question) for some in rows])
        left[chosen[:k]] = np.inf
        assert left[chosen[k]] <= left.min() + conditioned(1.0 / process.white) * before


def test_of_many_sets_those_that_vary_most_decide(monkeypatch):
    process, points = process_and_candidates(6, even=True)
    question = Question(find("k-sii"), 2, player_sets(6, 2))
    for half in process.half_posteriors(question):
        sign = half.fitted.half.sign
        found = process.prior.covariances(sign, process.points, question, most=7)
        kept = np.sort(np.argsort(-process.prior.variances(sign, question), kind="stable")[:7])
        np.testing.assert_allclose(found, half.cross[:, kept], rtol=HALF_THE_DIGITS, atol=roundings(20))
    monkeypatch.setattr(_placement, "MOST_SETS", 7)
    belief = _placement.Belief(process.prior, 0.1, (), question)
    assert _placement.Side.of(-1, 1.0, belief, points).gain.shape == (len(points), 7)


def solved(d, calls, seed=1, **settings):
    asked = []
    value = smooth(d)

    def remembered(masks):
        asked.append(masks.copy())
        return value(masks)

    return solve(OracleGame(remembered, d), budget=calls, random_state=seed, **settings), np.concatenate(asked)


@pytest.mark.parametrize(
    ("d", "question", "calls"),
    [(13, {}, 1802), (16, {}, 500), (13, {"index": "k-sii", "order": 2}, 800), (13, {"index": "banzhaf"}, 400)],
)
def test_stages_keep_the_budget_the_seed_and_the_batches_and_are_worth_their_time(monkeypatch, d, question, calls):
    exact = solve(OracleGame(smooth(d), d), method="enumeration", **question).values
    found, asked = solved(d, calls, **question)
    again, other = solved(d, calls, batch_size=100, **question)
    assert len(asked) == len(np.unique(asked, axis=0)) == found.n_evaluations == calls
    np.testing.assert_array_equal(asked, other)
    np.testing.assert_array_equal(found.values, again.values)
    seeds = range(1, 6 if calls <= 500 else 2)  # few calls leave more to chance, and to the digits of a BLAS
    placed = [solved(d, calls, seed, **question)[0].values for seed in seeds]
    monkeypatch.setattr(_adaptive, "_stages", lambda problem, n_calls: [])
    drawn = [solved(d, calls, seed, **question)[0].values for seed in seeds]
    assert np.mean((np.array(placed) - exact) ** 2) < 0.9 * np.mean((np.array(drawn) - exact) ** 2)


def pairs_of_sizes(asked, d):
    """Return how many pairs were called of each size 1..d/2, and how many draws by size would call."""
    groups, sizes = strata(d, paired=True), asked.sum(axis=1)
    called = np.bincount(np.minimum(sizes, d - sizes), minlength=d // 2 + 1)[1:] / 2
    return called, shares_of(groups, len(asked) // 2 - 1)[0]


@pytest.mark.parametrize("d", [9, 14, 20, 30])
@pytest.mark.parametrize("calls_a_player", [5, 8, 20, 50])
def test_every_size_is_in_view_of_calls_that_are_placed_at_once(d, calls_a_player):
    if (calls := calls_a_player * d) < 2**d - 2:
        _, asked = solved(d, calls)
        assert pairs_of_sizes(asked, d)[0].min() >= 1


@pytest.mark.parametrize(("roughness", "calls", "n_drawn"), [(1.0, 6602, 2500), (1.0, 6302, 0), (0.0, 6602, 0)])
def test_where_no_call_knows_of_another_the_rest_is_drawn_and_corrects(monkeypatch, roughness, calls, n_drawn):
    """A linear game with a number of its own for each coalition, or none; at most a quarter of the pairs is fitted: 800 of 3300, not of 3150."""
    d, drawn = 14, []
    noise, slopes = roughness * np.random.default_rng(0).normal(size=2**d), np.arange(d)
    game = OracleGame(lambda masks: np.sin(masks @ slopes / 30.0) + noise[masks @ (1 << np.arange(d))], d)

    def remembered(masks, *rest):
        drawn.append(len(masks))
        return corrected(masks, *rest)

    corrected = _estimators.corrected_by_others
    monkeypatch.setattr(_estimators, "corrected_by_others", remembered)
    found = solve(game, budget=calls, random_state=0)
    assert drawn == ([n_drawn] if n_drawn else [])
    if n_drawn:
        exact = solve(game, method="enumeration").values
        assert np.mean(np.abs(found.values - exact) <= 2.0 * found.std_error) >= 12 / 14


def test_calls_of_functions_grow_no_faster_than_calls_of_the_game():
    """Their number, which no other process on the machine changes: passes over arrays are few, whatever the arrays' length."""

    def counted(calls):
        total = 0

        def count(frame, event, argument):
            nonlocal total
            total += event == "call"

        solved(13, calls, seed=0)  # the design is placed once in a process
        previous = sys.getprofile()
        sys.setprofile(count)
        try:
            solved(13, calls)
        finally:
            sys.setprofile(previous)
        return total

    assert counted(2400) <= 2.2 * counted(1200)


@pytest.mark.parametrize("question", [{"index": "k-sii", "order": 2}, {"index": Semivalue("optimist", Atom(0.9))}])
def test_few_calls_are_pairs_and_then_single_coalitions(question):
    d, calls = 13, 70
    exact = solve(OracleGame(smooth(d), d), method="enumeration", **question).values
    found, asked = solved(d, calls, **question)
    again, other = solved(d, calls, batch_size=7, **question)
    assert len(asked) == len(np.unique(asked, axis=0)) == found.n_evaluations == calls
    np.testing.assert_array_equal(asked, other)
    np.testing.assert_allclose(found.values, again.values, atol=HALF_THE_DIGITS)  # its own sums are of other batches
    names = {mask.tobytes() for mask in asked[: 2 + 44]}  # 22 pairs of 34
    assert names == {mask.tobytes() for mask in ~asked[: 2 + 44]}
    rest = {mask.tobytes() for mask in asked[2 + 44 :]}
    assert len(rest & {mask.tobytes() for mask in ~asked[2 + 44 :]}) < len(rest) / 2
    assert np.mean((found.values - exact) ** 2) < 0.5 * np.mean(exact**2)


def test_few_calls_grow_until_an_error_is_small_enough():
    """Rounds of a tolerance go on with single coalitions; with a large limit they are pairs from the start."""
    d, question = 13, {"index": "k-sii", "order": 2}
    value, asked = smooth(d), []

    def remembered(masks):
        asked.append(masks.copy())
        return value(masks)

    with pytest.warns(UserWarning, match="tolerance was not reached"):
        found = solve(OracleGame(remembered, d), budget=120, tol=1e-12, random_state=0, **question)
    masks = np.concatenate(asked)
    assert len(masks) == len(np.unique(masks, axis=0)) == found.n_evaluations == 120
    asked.clear()
    solve(OracleGame(remembered, d), budget=4000, tol=10.0, random_state=0, **question)
    masks = np.concatenate(asked)
    assert {mask.tobytes() for mask in masks} == {mask.tobytes() for mask in ~masks}


@pytest.mark.parametrize(
    ("d", "calls", "settings"),
    [
        (14, 168, {}),
        (14, 1700, {"estimator": "kernelshap"}),
        (14, 168, {"index": "banzhaf"}),
        (14, 29, {"index": "sii", "order": 2}),
        (5, 30, {"index": "sii", "order": 2}),
        (10, 1024, {}),
        (10, 1024, {"index": "sii", "order": 2}),
        (80, 900, {}),
        (20, 240, {}),
    ],
)
def test_where_nothing_changes(monkeypatch, d, calls, settings):
    monkeypatch.setattr(_adaptive, "_placed", None)
    value = np.arange(d) / d
    game = OracleGame(lambda masks: np.cos(masks @ value), d)
    solve(game, settings.pop("index", "shapley"), budget=calls, random_state=0, relevance_rows=None, **settings)


def test_each_fit_goes_on_from_the_relevances_that_placed_the_last_calls(monkeypatch):
    fits = []

    def fit(*args, start, **settings):
        process = fit_process(*args, start=start, **settings)
        fits.append((start, process.logs))
        return process

    monkeypatch.setattr(_surrogate, "fit_process", fit)
    solved(13, 3800)
    assert fits[0][0] is None
    assert len(fits) == 3
    for (_, found), (start, _) in itertools.pairwise(fits):
        np.testing.assert_array_equal(start, found)


def test_forecasts_grow_no_faster_than_the_time():
    """16 players, in times of 2,080 calls: 5.7 at 8,000 calls, 8.6 at 12,000 and 14 at 20,000."""
    seconds = {calls: seconds_besides_calls(calls, "regression", 16, 1) for calls in (2080.0, 8000.0, 12_000.0, 20_000.0)}
    assert 5.0 < seconds[8000.0] / seconds[2080.0] < 8.0
    assert 8.0 < seconds[12_000.0] / seconds[2080.0] < 13.0
    assert seconds[20_000.0] == seconds[12_000.0]
