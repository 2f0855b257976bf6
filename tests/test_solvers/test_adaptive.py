"""Samples placed in stages: which pairs are chosen, what that is worth, and where it stays away."""

import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest

from exactshap.games import OracleGame
from exactshap.semivalues import Atom, Semivalue, find
from exactshap.solvers import solve
from exactshap.solvers.core import player_sets, sets_by_size
from exactshap.solvers.sampled import _adaptive, _estimators, _surrogate
from exactshap.solvers.sampled._sampling import draw, place_pairs, shares_of, strata
from exactshap.solvers.sampled.process import _relevance, fit_process, needs_even
from exactshap.solvers.sampled.process._evidence import JITTER, FittedHalf, Half
from tolerances import HALF_THE_DIGITS, conditioned, roundings


def smooth(d, seed=0):
    """A game of all orders with players of unlike weight."""
    weights, others = np.random.default_rng(seed).normal(size=(2, d)) * np.linspace(0.1, 1.5, d)
    return lambda masks: np.tanh(masks @ weights) * (1.0 + np.cos(masks @ others))


def shapley_of(d):
    return find("shapley"), 1, player_sets(d, 1)


def process_and_candidates(d=9, *, even=False):
    rng = np.random.default_rng(3)
    value, pairs = smooth(d), draw(d, 140, rng, strata(d, paired=True), paired=True)
    points = 2.0 * np.concatenate([np.ones((1, d), bool), pairs[::3]]) - 1.0
    inside, outside = (value(side > 0)[:, None] for side in (points, -points))
    process = fit_process(points, inside, outside, even=even, relevance_rows=99, max_iterations=25, rng=rng)
    return process, np.delete(pairs, np.s_[::3], axis=0)


def test_one_at_a_time_they_are_those_of_the_design(monkeypatch):
    """The reference picks one pair after the other, all sums in double precision and from the start."""
    process, masks = process_and_candidates()
    known = process.points > 0
    expected = place_pairs(known, masks, 30, process.theta, process.white)
    # In batches the best of a short list, here of all, are the best
    for batch, double_rows in itertools.product((1, 8), (9, 128)):
        monkeypatch.setattr(_adaptive, "BATCH", batch)
        monkeypatch.setattr(_adaptive, "DOUBLE_ROWS", double_rows)
        monkeypatch.setattr(_adaptive, "SHORTLIST", len(masks))
        chosen = _adaptive.Candidates.of(process, 2.0 * masks - 1.0, 30, shapley_of(9)).choose(30)
        np.testing.assert_array_equal(chosen, expected)


@pytest.mark.parametrize(("batch", "n_left"), [(64, 53), (5, 10)])
def test_the_variance_that_is_left_is_that_of_the_posterior(monkeypatch, batch, n_left):
    """Of the candidates that are left: what the last short list leaves."""
    monkeypatch.setattr(_adaptive, "BLOCK", 30)  # of 93 candidates
    monkeypatch.setattr(_adaptive, "BATCH", batch)
    process, masks = process_and_candidates()
    candidates = _adaptive.Candidates.of(process, 2.0 * masks - 1.0, 40, shapley_of(9))
    chosen = candidates.choose(40)
    points = np.concatenate([process.points, 2.0 * masks[chosen] - 1.0])
    white = np.where(np.arange(len(points)) < len(process.points), process.white + JITTER, process.white + _adaptive.TRUSTED)
    gram = _adaptive.covariance(points, points, process.theta, -1) + np.diag(white)
    beside = _adaptive.covariance(points, candidates.points, process.theta, -1)
    prior = _adaptive.covariance(points[:1], points[:1], process.theta, -1)[0, 0] + white[-1]
    left = prior - (beside * np.linalg.solve(gram, beside)).sum(axis=0)
    # Later batches see the covariances, at most the prior one, with earlier picks in single precision
    single = 40 * np.finfo(np.float32).eps * prior if batch < 40 else 0.0
    np.testing.assert_allclose(candidates.halves[0].variance, left, rtol=0.0, atol=conditioned(1.0 / process.white) + single)
    assert len({*chosen.tolist(), *candidates.names.tolist()}) == 40 + n_left == 40 + len(candidates.names)
    np.testing.assert_array_equal(candidates.points, 2.0 * masks[candidates.names] - 1.0)


def variance_left(process, points, question):
    """Return the summed variance of the values, each half's in units of the larger one, given calls of ``points`` alone."""
    sizes, total = [fitted.half.scale * np.sqrt(fitted.variance) for fitted in process.halves], 0.0
    for fitted, size in zip(process.halves, sizes, strict=True):
        half = replace(fitted.half, target=np.zeros((len(points), 1)))
        seen = FittedHalf.at(points, half, process.theta, process.white)
        there = replace(process, points=points, order=np.arange(len(points)), halves=(seen,))
        total += float((size / max(sizes))[0]) ** 2 * there.half_posteriors(*question)[0].left.sum()
    return total


@pytest.mark.parametrize(("index", "order"), [("k-sii", 2), ("fsii", 2), ("banzhaf", 1), (Semivalue("optimist", Atom(0.9)), 1)])
def test_what_a_call_tells_is_what_it_takes_from_the_variance_of_the_values(monkeypatch, index, order):
    """Of any index, of both halves of the game; batches take the best of what those before have left."""
    monkeypatch.setattr(_adaptive, "TRUSTED", JITTER)
    monkeypatch.setattr(_adaptive, "BATCH", 2)
    monkeypatch.setattr(_adaptive, "SHORTLIST", 99)
    d = 6
    question = find(index), order, player_sets(d, order)
    process, masks = process_and_candidates(d, even=needs_even(question[0], d, order))
    points, known = 2.0 * masks - 1.0, process.points
    candidates = _adaptive.Candidates.of(process, points, 5, question)
    before = variance_left(process, known, question)
    taken = np.array([before - variance_left(process, np.vstack([known, point]), question) for point in points])
    np.testing.assert_allclose(
        _adaptive._reductions(candidates.halves), taken, rtol=HALF_THE_DIGITS, atol=conditioned(1.0 / process.white) * before
    )
    chosen = candidates.choose(5)
    for place in range(5):
        rows = [np.vstack([known, points[chosen[:place]], point]) for point in points]
        left = np.array([variance_left(process, some, question) for some in rows])
        left[chosen[:place]] = np.inf
        assert left[chosen[place]] <= left.min() + conditioned(1.0 / process.white) * before


def test_of_many_sets_those_that_vary_most_decide(monkeypatch):
    process, masks = process_and_candidates(6, even=True)
    question, points = (find("k-sii"), 2, player_sets(6, 2)), 2.0 * masks - 1.0
    halves = process.half_posteriors(*question)
    for half in halves:
        sign = half.fitted.half.sign
        prior = np.concatenate([process._prior(sign, some, *question[:2]) for some in sets_by_size(question[2], 2)])
        found = process.covariances(sign, process.points, *question, most=7)
        kept = np.sort(np.argsort(-prior, kind="stable")[:7])
        np.testing.assert_allclose(found, half.cross[:, kept], rtol=HALF_THE_DIGITS, atol=roundings(20))
    monkeypatch.setattr(_adaptive, "MOST_SETS", 7)
    assert [half.gain.shape for half in _adaptive.Candidates.of(process, points, 3, question).halves] == [(len(points), 7)] * 2


def solved(d, calls, seed=1, **settings):
    asked = []
    value = smooth(d)

    def remembered(masks):
        asked.append(masks.copy())
        return value(masks)

    return solve(OracleGame(remembered, d), budget=calls, random_state=seed, **settings), np.concatenate(asked)


@pytest.mark.parametrize(
    ("question", "calls"), [({}, 1802), ({"index": "k-sii", "order": 2}, 800), ({"index": "banzhaf"}, 400)]
)
def test_stages_keep_the_budget_the_seed_and_the_batches_and_are_worth_their_time(monkeypatch, question, calls):
    d = 13
    exact = solve(OracleGame(smooth(d), d), method="enumeration", **question).values
    found, asked = solved(d, calls, **question)
    again, other = solved(d, calls, batch_size=100, **question)
    assert len(asked) == len(np.unique(asked, axis=0)) == found.n_evaluations == calls
    np.testing.assert_array_equal(asked, other)
    np.testing.assert_array_equal(found.values, again.values)
    seeds = range(1, 6 if calls <= 400 else 2)  # few calls leave more to chance, and to the digits of a BLAS
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

    assert counted(3600) <= 2.2 * counted(1800)


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
        (14, 1602, {}),
        (14, 1700, {"estimator": "kernelshap"}),
        (14, 168, {"index": "banzhaf"}),
        (14, 29, {"index": "sii", "order": 2}),
        (5, 30, {"index": "sii", "order": 2}),
        (10, 1000, {}),
        (10, 1024, {"index": "sii", "order": 2}),
        (80, 1700, {}),
    ],
)
def test_where_nothing_changes(monkeypatch, d, calls, settings):
    monkeypatch.setattr(_adaptive, "_placed", None)
    value = np.arange(d) / d
    game = OracleGame(lambda masks: np.cos(masks @ value), d)
    solve(game, settings.pop("index", "shapley"), budget=calls, random_state=0, relevance_rows=None, **settings)


def test_players_that_few_rows_made_invisible_are_seen_again(monkeypatch):
    """The last of many searches starts where every player can be seen, those before and searches of few rows where they may."""
    d, starts, promised = 5, [], []
    dead = np.full(d + 1, -11.0)

    def search(posterior, start, bounds, max_steps, enough):
        starts.append(start.copy())
        promised.append(enough)
        return dead.copy()

    monkeypatch.setattr(_relevance, "search", search)
    points = 2.0 * (np.random.default_rng(5).random((800, d)) < 0.5) - 1
    halves = {n_rows: [Half.of(points[:n_rows, :1], -points[:n_rows, :1], -1)] for n_rows in (800, 799)}
    for n_rows, half in halves.items():
        _relevance.find_relevances(points[:n_rows], half, 25)
    n_levels = len(starts) // 2
    assert all(np.array_equal(start, dead) for start in [*starts[1 : n_levels - 1], *starts[n_levels + 1 :]])
    np.testing.assert_allclose(starts[n_levels - 1], np.append(np.full(d, np.log(0.1 / d)), dead[-1]), rtol=roundings(4))
    for n_rows, cold in (
        (800, n_levels - 1),
        (799, 2 * n_levels - 1),
    ):  # from what fewer rows gave there is but the last of the searches
        searched = len(starts)
        _relevance.find_relevances(points[:n_rows], halves[n_rows], 25, dead)
        assert len(starts) == searched + 1
        np.testing.assert_array_equal(starts[-1], starts[:searched][cold])
        assert promised[-1] == _relevance.AGAIN


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
