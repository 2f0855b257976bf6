"""Standard errors of sampled values: their coverage on games of jumps and kinks, and what they say of games that are known."""

import numpy as np
import pytest

from exactshap.errors import ExplanationWarning
from exactshap.games import OracleGame
from exactshap.semivalues import beta
from exactshap.solvers import solve
from exactshap.solvers.sampled import _estimators, _placement
from exactshap.solvers.sampled._correction import uncorrected
from tolerances import PROCESS_Z2, assert_close, roundings

D = 10


def voting(rng):
    """Whether weights reach a quota: a jump in every player, wherever the others are."""
    weights, share = rng.integers(1, 9, size=D), rng.uniform(0.3, 0.8)
    return lambda masks: 1.0 * (masks @ weights >= share * weights.sum())


def network(rng):
    """Whether links join the first of six towns with the last: rare, and every player matters only where others are missing."""
    links = np.array([rng.choice(6, 2, replace=False) for _ in range(D)])

    def joined(masks):
        reached = np.zeros((len(masks), 6), bool)
        reached[:, 0] = True
        for _ in range(6):
            for j, (one, other) in enumerate(links):
                both = masks[:, j] & (reached[:, one] | reached[:, other])
                reached[both, one] = reached[both, other] = True
        return 1.0 * reached[:, 5]

    return joined


def bankruptcy(rng):
    """What is left of an estate when all others have been paid: a kink."""
    claims = rng.exponential(size=D)
    estate = rng.uniform(0.3, 0.7) * claims.sum()
    return lambda masks: np.maximum(0.0, estate - ~masks @ claims)


def quadratic(rng):
    """Pairs only: what the process takes for granted."""
    form = rng.normal(size=(D, D))
    return lambda masks: np.einsum("ni,ij,nj->n", 1.0 * masks, form, 1.0 * masks)


def coverage(family, budget, n_runs=20):
    """Share of values within two standard errors, a new game each run."""
    hits = []
    for run in range(n_runs):
        function = family(np.random.default_rng([run, 7]))
        exact = solve(OracleGame(function, D), method="enumeration").values
        found = solve(OracleGame(function, D), method="regression", budget=budget, random_state=run)
        hits.append(np.abs(found.values - exact) <= 2.0 * found.std_error + 1e-9 * found.scale)
    return np.mean(hits)


def test_two_standard_errors_cover_games_unlike_the_prior(monkeypatch):
    """0.83 of the values of games that jump (0.81 to 0.87 by forty runs): the hardest families known, at an eighth of their calls.

    0.78 by the process' own errors in the same runs. Single runs differ between machines in
    which calls are placed.
    """
    corrected, own = _estimators.corrected, []

    def spied(kernelshap, process, *asked):
        own.append(process.solve(*asked)[1][:, 0])
        return corrected(kernelshap, process, *asked)

    monkeypatch.setattr(_estimators, "corrected", spied)
    hits = []
    for family in (voting, network, bankruptcy):
        for run in range(40):
            function, known = family(np.random.default_rng([run, 7])), len(own)
            exact = solve(OracleGame(function, D), method="enumeration").values
            found = solve(OracleGame(function, D), method="regression", budget=120, random_state=run)
            before = own[-1] if len(own) > known else found.std_error  # no process where all calls are explained
            rounding = 1e-9 * found.scale
            hits.append([np.abs(found.values - exact) <= 2.0 * error + rounding for error in (found.std_error, before)])
    whole, alone = np.mean(hits, axis=(0, 2))
    assert whole >= 0.8
    assert alone < whole - 0.02, "the games no longer tell the errors from the process' own"


def two_halls(rng):
    """Three effects of whether each of two groups has a majority, and small effects of all players."""
    order, small, heights = rng.permutation(D), 0.1 * rng.normal(size=D), rng.normal(size=3)

    def value(masks):
        one, other = masks[:, order[:5]].sum(axis=1) >= 2, masks[:, order[5:]].sum(axis=1) >= 3
        return masks @ small + heights[0] * one + heights[1] * other + heights[2] * one * other

    return value


def second_price(rng):
    """What the second highest bidder offers."""
    bids = rng.exponential(size=D)
    return lambda masks: np.sort(np.where(masks, bids, 0.0), axis=1)[:, -2]


@pytest.mark.parametrize("index", ["banzhaf", beta(4, 1)])
def test_errors_of_other_indices_know_that_games_jump_at_some_sizes(monkeypatch, index):
    """Two families that nobody had looked at, ten calls a player: 0.86 (Banzhaf) and 0.98 (beta) of the values, by single residuals alone 0.68 and 0.88."""
    before, hits = [], []

    def spied(process, question):
        before.append(np.maximum(process.solve(question)[1], process.wary().solve(question)[1])[:, 0])
        return uncorrected(process, question)

    monkeypatch.setattr(_estimators, "uncorrected", spied)
    for family in (two_halls, second_price):
        for run in range(16):
            function = family(np.random.default_rng([run, 11]))
            exact = solve(OracleGame(function, D), index, method="enumeration").values
            found = solve(OracleGame(function, D), index, method="regression", budget=10 * D, random_state=run)
            missed, rounding = np.abs(found.values - exact), 1e-9 * found.scale
            hits.append([np.mean(missed <= 2.0 * error + rounding) for error in (found.std_error, before[-1])])
    whole, alone = np.mean(hits, axis=0)
    assert whole >= 0.8
    assert alone < whole - 0.05, "the games no longer tell the errors from those of single residuals"


@pytest.mark.parametrize(("family", "least"), [(voting, 0.87), (bankruptcy, 0.78)])
def test_pairs_of_every_size_tell_of_jumps_between_them(monkeypatch, family, least):
    """With a hundred calls for ten players the design alone has pairs of 1, 4 and 5 players.

    By 300 runs with OpenBLAS' kernels for four processors, whose last bits decide which of equal calls are placed: 0.91 to 0.95 and 0.84
    to 0.88 of the values are covered, with the design alone 0.82 to 0.90 and 0.73 to 0.79. The shares of 120 runs spread by 0.016, three
    times which is left for them.
    """
    covered = coverage(family, 100, n_runs=120)
    monkeypatch.setattr(_placement, "FREE_PAIRS", D * D)
    _placement._designed.cache_clear()
    alone = coverage(family, 100, n_runs=120)
    _placement._designed.cache_clear()
    assert covered >= max(least, alone + 0.005)


def test_two_standard_errors_cover_games_like_the_prior_and_are_no_wider_than_their_errors_ask():
    assert coverage(quadratic, 60) >= 0.92
    function = quadratic(np.random.default_rng(3))
    found = solve(OracleGame(function, D), method="regression", budget=300, random_state=0)
    assert np.all(found.std_error <= 1e-3 * found.scale)


@pytest.mark.parametrize("budget", [75, 99])
def test_few_more_pairs_than_players_do_not_blow_errors_up(budget):
    """With 37 pairs for 30 players KernelSHAP's jackknife is several times its error, and was told of the process fivefold."""
    d, ratios = 30, []
    for run in range(6):
        rng = np.random.default_rng([run, 30])
        linear, form, triples = rng.normal(size=d), rng.normal(size=(d, d)) / d, rng.permutation(d).reshape(-1, 3)
        heights, shares = rng.normal(size=len(triples)), np.eye(d)[triples].sum(axis=1)

        def game(masks, linear=linear, form=form, heights=heights, shares=shares):
            return masks @ linear + np.einsum("ni,ij,nj->n", 1.0 * masks, form, 1.0 * masks) + (masks @ shares.T == 3) @ heights

        exact = linear + (form + form.T).sum(axis=1) / 2.0 + heights @ shares / 3.0
        found = solve(OracleGame(game, d), method="regression", budget=budget, random_state=run)
        ratios.append(np.sqrt((found.std_error**2).mean() / ((found.values - exact) ** 2).mean()))
    assert 1.0 < np.median(ratios) < 2.5


def test_players_that_matter_in_no_call_have_an_error():
    """A chain of conditions of which the calls met but some: the posterior's errors of the others are a thousand times smaller."""
    function = network(np.random.default_rng([9, 7]))
    found = solve(OracleGame(function, D), method="regression", budget=40, random_state=9)
    assert found.std_error.min() > 1e-2 * np.abs(found.values).max()


@pytest.mark.parametrize(("d", "budget"), [(8, 32), (14, 56), (30, 400)])
def test_games_of_pairs_are_exact_and_their_errors_are_rounding(d, budget):
    """KernelSHAP foretells every pair that is left out; a third player in a term, however small, is no rounding."""
    rng = np.random.default_rng(d)
    form = rng.normal(size=(d, d))
    parity = np.where(rng.random(3) < 0.5, 1.0, -1.0)

    def game(masks, share=0.0):
        return np.einsum("ni,ij,nj->n", 1.0 * masks, form, 1.0 * masks) + share * ((2.0 * masks[:, :3] - 1.0) * parity).prod(
            axis=1
        )

    exact = 0.5 * (form + form.T).sum(axis=1)
    found = solve(OracleGame(game, d), method="regression", budget=budget, random_state=0)
    assert "PolySHAP, order 1" in found.method
    assert np.all(np.abs(found.values - exact) <= 64 * np.finfo(float).eps * found.scale)
    assert np.all((found.std_error > 0) & (found.std_error <= 64 * np.finfo(float).eps * found.scale))
    asked = solve(OracleGame(game, d), method="regression", budget=budget, random_state=0, estimator="process")
    assert "process" in asked.method
    huge = solve(OracleGame(lambda masks: 1e200 * game(masks), d), method="regression", budget=budget, random_state=0)
    np.testing.assert_allclose(huge.values, 1e200 * exact, atol=1e200 * 64 * np.finfo(float).eps * found.scale)
    more = solve(OracleGame(lambda masks: game(masks, 1e-6), d), method="regression", budget=budget, random_state=0)
    assert "order 1" not in more.method
    assert more.std_error.max() > 1e-9


def test_as_many_pairs_as_players_foretell_nothing():
    """A polynomial that fits because it has as many coefficients as there are pairs is not taken for the game."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=2**D)
    game = OracleGame(lambda masks: table[masks @ (1 << np.arange(D))], D)
    for budget in (2 * D + 2, 2 * D + 4, 3 * D):
        found = solve(game, method="regression", budget=budget, random_state=0)
        assert "process" in found.method
        assert found.std_error.min() > 1e-3


def test_calls_that_differ_by_rounding_have_errors_of_rounding():
    """No process is fitted to rounding so well that less than it would be told."""
    table = 1.0 + np.finfo(float).eps * np.random.default_rng(0).integers(0, 2, size=2**D)
    found = solve(
        OracleGame(lambda masks: table[masks @ (1 << np.arange(D))], D), method="regression", budget=200, random_state=0
    )
    assert "process" in found.method
    assert np.all(found.std_error >= _estimators.ROUNDING * np.finfo(float).eps)


def majority(masks):
    """Two of three players decide: with the complement of any coalition it makes 1, so that half of the game is known at once."""
    return 1.0 * (masks[:, [1, 2, 5]].sum(axis=1) >= 2)


def sums(masks):
    return masks @ np.arange(1.0, masks.shape[1] + 1.0)


@pytest.mark.parametrize("index", ["k_sii", "fsii"])
@pytest.mark.parametrize("value", [majority, sums])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_that_are_known_are_not_moved_by_what_single_players_miss(index, value, seed):
    game = OracleGame(value, 8)
    exact = solve(game, index, 2, method="enumeration")
    found = solve(game, index, 2, method="regression", budget=200, random_state=seed)
    assert_close(found.values.sum(), found.full - found.empty, found.scale, n_terms=36)
    assert np.abs(exact.values[8:]).max() <= roundings(2**8) * exact.scale
    beyond = np.abs(found.values - exact.values) - 3.0 * found.std_error
    assert beyond[8:].max() <= roundings(200) * found.scale
    assert (found.std_error[8:] > 0).all()


@pytest.mark.parametrize("index", ["banzhaf", "leave-one-out"])
def test_other_indices_keep_the_process_errors(index):
    function = quadratic(np.random.default_rng(3))
    found = solve(OracleGame(function, D), index, method="regression", budget=60, random_state=0)
    assert np.all(np.isfinite(found.std_error))


def test_known_games_have_the_values_of_enumeration(pytestconfig, monkeypatch):
    """What the benchmark of standard errors takes for exact."""
    folder = pytestconfig.rootpath / "benchmarks"
    if not (folder / "error_games.py").exists():
        pytest.skip("the benchmarks are not here")
    monkeypatch.syspath_prepend(str(folder))
    from error_games import TUNING
    from error_games_development import DEVELOPMENT
    from error_games_held_out import HELD_OUT

    assert not set(TUNING | DEVELOPMENT) & set(HELD_OUT)
    for name, family in {**TUNING, **DEVELOPMENT, **HELD_OUT}.items():
        game = family(np.random.default_rng(1), 8)(np.random.default_rng(2))
        exact = solve(OracleGame(game.value, 8), method="enumeration")
        np.testing.assert_allclose(game.exact(), exact.values, atol=roundings(5_000) * max(1.0, exact.scale), err_msg=name)


@pytest.mark.filterwarnings("ignore:.*standard errors are infinite")
@pytest.mark.parametrize("order", [1, 3])
def test_polynomials_that_fit_by_chance_say_so(order):
    """Steps and votes have few answers, which a polynomial of few calls fits exactly: errors of 0.3 came with 5e-15."""
    small = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, weights, quota = int(rng.integers(4, 8)), rng.integers(1, 4, size=7), rng.uniform(1.0, 6.0)
        game = OracleGame(lambda masks, w=weights[:n], q=quota: 1.0 * (masks @ w > q), n)
        exact = solve(game, method="enumeration").values
        settings = {"estimator": "polynomial", "polynomial_order": order, "budget": int(rng.integers(2 * n, 2**n - 1))}
        found = solve(game, method="regression", random_state=seed, **settings)
        missed = np.abs(found.values - exact)
        assert np.all((missed < 1e-9) | (missed <= 20.0 * found.std_error))
        small += np.isfinite(found.std_error).all()
    assert small > (20 if order == 1 else 5)  # not all of them are unknown


def test_coalitions_that_fix_a_coefficient_alone_show_no_error():
    game = OracleGame(lambda masks: 1.0 * (masks.sum(axis=1) > 2), 4)
    with pytest.warns(ExplanationWarning, match="fix a coefficient of the polynomial alone"):
        found = solve(game, method="regression", estimator="polynomial", polynomial_order=1, budget=8, random_state=0)
    assert np.isinf(found.std_error).all()


@pytest.mark.parametrize("estimator", ["auto", "process", "polynomial", "unbiased"])
def test_calls_with_one_answer_say_so(estimator):
    game = OracleGame(lambda masks: 1.0 * (masks.sum(axis=1) == 3) * masks[:, 0] * masks[:, 1] * masks[:, 2], 12)
    with pytest.warns(ExplanationWarning, match="had the same answer, so that values and standard errors are 0"):
        found = solve(game, method="regression", estimator=estimator, budget=60, random_state=0)
    assert ", all with the same answer)" in found.method


def step(rng):
    weights, start = rng.normal(size=5).round(1), rng.normal()
    return lambda masks: 1.0 * (masks @ weights > start)


@pytest.mark.filterwarnings("ignore::exactshap.errors.ExplanationWarning")
@pytest.mark.parametrize("surrogate", ["process", "none"])
def test_two_or_three_draws_that_agree_by_luck_have_errors(surrogate):
    """Steps of five players and 6 to 16 calls: errors of next to nothing beside wrong values, in 3 % of the games, until luck counted."""
    scores, agree = [], 0
    for run in range(80):
        rng = np.random.default_rng(run)
        game = OracleGame(step(rng), 5)
        exact = solve(game, method="enumeration").values
        budget = int(rng.integers(6, 17))
        found = solve(game, method="regression", estimator="unbiased", surrogate=surrogate, budget=budget, random_state=run)
        if "all with the same answer" in found.method:  # said by a warning
            agree += 1
        else:
            scores.append(np.abs(found.values - exact) / np.maximum(found.std_error, 1e-9))
    assert agree < 40
    assert np.max(scores) < 100.0  # two draws alone have errors whose scores have no variance


def two_quotas(rng, d):
    """Whether weights reach both of two quotas, to which many players matter."""
    first, second = rng.integers(0, 4, d), rng.integers(0, 3, d)
    shares = rng.uniform(0.4, 0.7, 2)
    return lambda masks: 1.0 * ((masks @ first > shares[0] * first.sum()) & (masks @ second > shares[1] * second.sum()))


@pytest.mark.parametrize(("index", "budget"), [("sii", 400), ("k-sii", 400), ("sii", 250)])
def test_players_of_interactions_have_errors_as_if_they_alone_were_wanted(index, budget):
    squares = []
    for run in range(6):
        game = OracleGame(two_quotas(np.random.default_rng(run), 16), 16)
        exact = solve(game, index, 2, method="enumeration").values[:16]
        found = solve(game, index, 2, budget=budget, random_state=run)
        squares.append(((found.values[:16] - exact) / found.std_error[:16]) ** 2)
    assert PROCESS_Z2[0] < np.mean(squares) < PROCESS_Z2[1]
