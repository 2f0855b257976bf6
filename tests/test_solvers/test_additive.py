import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

from exactshap import semivalues
from exactshap._native import Handle
from exactshap.errors import InputError, InputTypeError
from exactshap.games import AdditiveGame
from exactshap.solvers import choose, player_sets, solve
from exactshap.solvers.additive import Linear, Stack, solve_linear, solve_stacks
from exactshap.solvers.additive._stacks import _position
from exactshap.solvers.core import set_values
from strategies import additive_games
from tolerances import assert_close, roundings

INDICES = [*semivalues.available(), semivalues.beta(4, 1)]
few = settings(max_examples=15, deadline=None)


def random_game(d=6, terms=5, rows=3, outputs=2, seed=0, sizes=(0, 1, 2, 3)):
    rng = np.random.default_rng(seed)
    subsets = [tuple(int(j) for j in rng.permutation(d)[: rng.choice(sizes)]) for _ in range(terms)]
    tables = [rng.normal(size=(rows, 2 ** len(subset), outputs)) for subset in subsets]
    return AdditiveGame(d, subsets, tables, constant=[1.0, -2.0][:outputs])


def scale_of(game, order=1):
    return 2.0 ** (order + 2) * (sum(np.abs(table).max() for table in game.tables) + np.abs(game.constant).max())


def per_term(game, index, order):
    """The slow twin: numpy differences of each term's table, added up set by set."""
    semivalue, sets = semivalues.find(index), player_sets(game.n_players, order)
    values = np.zeros((game.n_rows, len(sets), game.n_outputs))
    for subset, table in zip(game.subsets, game.tables, strict=True):
        for size in range(1, min(order, len(subset)) + 1):
            for local in itertools.combinations(range(len(subset)), size):
                place = sets.index(tuple(sorted(subset[p] for p in local)))
                values[:, place] += set_values(table, local, semivalue, order, len(subset))
    return values


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3])
@given(game=additive_games())
@few
def test_terms_agree_with_enumeration_of_all_players_value_by_value(index, order, game):
    order = min(order, game.n_players)
    fast, slow = solve(game, index, order), solve(game, index, order, method="enumeration")
    assert fast.sets == slow.sets
    assert_close(fast.values, slow.values, 2.0**game.n_players * scale_of(game, order), len(game.tables), game.n_players)
    assert_close(fast.empty, slow.empty, scale_of(game), len(game.tables), 1)
    assert_close(fast.full, slow.full, scale_of(game), len(game.tables), 1)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_batches_of_rows_and_outputs_agree_with_the_slow_twin_beyond_enumeration(index, order):
    game = random_game(30, terms=25, rows=4, seed=order, sizes=(0, 1, 2, 3, 5))
    solution = solve(game, index, order)
    assert_close(solution.values, per_term(game, index, order), scale_of(game, order), 25, 5)
    assert solution.method == "per-term enumeration (25 terms)"


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_sum_of_the_star_paper(k):
    """Dube & Marchand, Algorithm 1: (v(I) - v(empty)) / k, then + v(A) / (|A| C(k, |A|)) inside and - v(A) / ((|A|+1) C(k, |A|+1)) outside."""
    table = np.random.default_rng(k).normal(size=2**k)
    expected = np.full(k, (table[-1] - table[0]) / k)
    for code in range(1, 2**k - 1):
        inside = np.array([(code >> p) & 1 == 1 for p in range(k)])
        a = int(inside.sum())
        expected[inside] += table[code] / (a * math.comb(k, a))
        expected[~inside] -= table[code] / ((a + 1) * math.comb(k, a + 1))
    assert_close(solve(AdditiveGame(k, [tuple(range(k))], [table])).values, expected, 4 * np.abs(table).max(), 2**k, 1)


def test_places_of_sets():
    for n, order in ((6, 3), (9, 4), (4, 4)):
        assert [_position(players, n) for players in player_sets(n, order)] == list(range(len(player_sets(n, order))))


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_dummies_get_exactly_nothing(index):
    rng = np.random.default_rng(0)
    pair = rng.normal(size=2)
    table = np.array([pair[0], pair[1], pair[0], pair[1]])  # the second player of the term changes nothing
    solution = solve(AdditiveGame(4, [(2, 0)], [table]), index, 2)
    for place, T in enumerate(solution.sets):
        if T != (2,):
            assert solution.values[place] == 0.0, T
    assert solution.values[2] != 0.0


def test_rows_do_not_depend_on_their_company():
    game = random_game(7, terms=40, rows=6)
    together = solve(game, "k-sii", 2).values
    for i in range(6):
        alone = AdditiveGame(
            7, game.subsets, [table[i] if table.ndim == 2 else table[i : i + 1] for table in game.tables], game.constant
        )
        np.testing.assert_array_equal(solve(alone, "k-sii", 2).values[0], together[i])


def test_efficiency_and_scale():
    game = random_game(6, terms=30)
    for index, order in (("shapley", 1), ("k-sii", 2), ("stii", 3), ("fsii", 3)):
        solution = solve(game, index, order)
        assert np.abs(solution.residual).max() <= roundings(5_000) * solution.scale.max()
    expected = sum(np.abs(table).max(axis=(1, 2)) for table in game.tables)
    assert_close(solve(game).scale, expected, expected.max(), 30, 1)


def test_thousands_of_players_cost_nothing():
    rng = np.random.default_rng(0)
    game = AdditiveGame(5000, [(4999, 17), (3,)], [rng.normal(size=(2, 4)), rng.normal(size=(2, 2))])
    values = solve(game).values
    assert values.shape == (2, 5000)
    assert set(np.flatnonzero(values[0])) == {3, 17, 4999}
    small = AdditiveGame(3, [(2, 1), (0,)], game.tables[0:1] + game.tables[1:2], 0.0)
    assert_close(values[:, [3, 17, 4999]], solve(small).values[..., 0], scale_of(game), 2, 2)


def test_games_without_players_in_their_terms():
    solution = solve(AdditiveGame(3, [()], [[2.5]], constant=1.0), "k-sii", 2)
    assert not solution.values.any()
    assert (solution.empty, solution.full) == (3.5, 3.5)


def test_choose_counts_the_terms():
    plan = choose(random_game(6), "shapley")
    assert plan.method == "per-term enumeration"
    assert "5 terms" in plan.reason


def test_coalition_values_that_are_not_finite_are_refused_by_term_and_row():
    tables = np.zeros((2, 3, 4, 1))
    tables[1, 2, 1, 0] = np.nan
    with pytest.raises(InputError, match=r"players \(0, 2\) has a coalition value that is NaN or infinite. First at row 2"):
        solve_stacks([Stack(((0, 1), (0, 2)), tables)], 3, 3, 1, semivalues.find("shapley"), 1)


# -- linear models -------------------------------------------------------------------------------------------------------


def linear_model(d, n_outputs, players, seed=0):
    """Return a linear model of so many columns, and some rows."""
    rng = np.random.default_rng(seed)
    coefficients, absent = rng.normal(size=(2, d, n_outputs))
    return Linear(coefficients, absent, np.array(players, np.int64)), rng.normal(size=(150, d))


def as_terms(linear, rows):
    """Return the same as terms of one player each, with both of their coalition values."""
    present = np.moveaxis(rows[:, :, None] * linear.coefficients, 1, 0)
    tables = np.stack([np.broadcast_to(linear.absent[:, None], present.shape), present], axis=2)
    return Stack(tuple((int(player),) for player in linear.players), tables)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("players", [range(9), (0, 0, 1, 3, 0, 1), (3, 2, 1, 0, 0, 0), (1,) * 6, (0,)], ids=str)
def test_linear_models_have_the_values_of_their_terms(order, index, n_outputs, players):
    if order > max(players) + 1:
        return
    semivalue, n_players = semivalues.find(index), max(players) + 1
    linear, rows = linear_model(len(players), n_outputs, players)
    found = solve_linear(Handle(linear), rows, n_players, semivalue, order)
    expected = solve_stacks([as_terms(linear, rows)], n_players, len(rows), n_outputs, semivalue, order)
    scale = expected.scale.max()
    for name in ("values", "empty", "full", "scale"):
        assert_close(getattr(found, name), getattr(expected, name), scale, len(players))
    assert not np.signbit(found.values[found.values == 0.0]).any()
    for some in (slice(4, 5), slice(60, 140)):  # no row depends on the others
        alone = solve_linear(Handle(linear), np.asfortranarray(rows[some]), n_players, semivalue, order)
        for name in ("values", "full", "scale"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(found, name)[some])


def test_a_sum_of_finite_terms_that_overflows_is_left_to_the_certificate():
    linear = Linear(np.ones((9, 1)), np.zeros((9, 1)), np.arange(9))
    part = solve_linear(Handle(linear), np.full((2, 9), 1e308), 9, semivalues.find("shapley"), 1)
    assert np.isfinite(part.values).all()
    assert np.isinf(part.full).all()


UNFIT = [{"players": np.array(one)} for one in ([0, 1, 3], [0, -1, 2], [0, 1])]
UNFIT += [{"coefficients": np.ones(shape)} for shape in ((2, 1), (3, 2))]


@pytest.mark.parametrize("change", UNFIT)
def test_arrays_of_a_linear_model_that_do_not_belong_together_are_refused(change):
    linear = Linear(np.ones((3, 1)), np.ones((3, 1)), np.arange(3))._replace(**change)
    with pytest.raises(InputTypeError, match="do not belong together"):
        solve_linear(Handle(linear), np.ones((5, 3)), 3, semivalues.find("shapley"), 1)
