import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

import oracles
from exactshap import semivalues
from exactshap._native import Handle
from exactshap.errors import InputError, InputTypeError
from exactshap.games import AdditiveGame
from exactshap.results.data._residuals import all_within
from exactshap.solvers import choose, player_sets, solve
from exactshap.solvers.additive import (
    Linear,
    LinearOutputs,
    LinearPlayers,
    Scaled,
    Singles,
    Stack,
    _linear,
    answer_linear,
    solve_scaled,
    solve_stacks,
)
from exactshap.solvers.additive._stacks import _position
from exactshap.solvers.core import set_values
from exactshap.testing import additive_games, check_game
from tolerances import assert_close, roundings

INDICES = [*semivalues.available(), semivalues.beta(4, 1)]
few = settings(max_examples=25, deadline=None)


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


@pytest.mark.parametrize("index", ["shapley", "banzhaf", "moebius", "leave-one-out"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_against_exact_fractions(index, order):
    game = random_game(5, rows=1, outputs=1, seed=order)
    game = AdditiveGame(5, game.subsets, [table[0, :, 0] for table in game.tables])
    v, solution = oracles.table_of(game), solve(game, index, order)
    rule = {"banzhaf": oracles.banzhaf, "moebius": oracles.moebius, "leave-one-out": oracles.leave_one_out}
    expected = [float(rule.get(index, oracles.sii)(v, 5, T)) for T in solution.sets]
    assert_close(solution.values, expected, scale_of(game, order), 5, 5)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_batches_of_rows_and_outputs_agree_with_the_slow_twin_beyond_enumeration(index, order):
    game = random_game(30, terms=25, rows=4, seed=order, sizes=(0, 1, 2, 3, 5))
    solution = solve(game, index, order)
    assert_close(solution.values, per_term(game, index, order), scale_of(game, order), 25, 5)
    assert solution.method == "per-term enumeration (25 terms)"


def test_every_index_on_a_batch():
    check_game(random_game(5), orders=(1, 2, 3))


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


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_permuting_players_permutes_values(index):
    game, order = random_game(5), [3, 0, 4, 1, 2]
    permuted = AdditiveGame(5, [tuple(order.index(j) for j in subset) for subset in game.subsets], game.tables, game.constant)
    assert_close(solve(permuted, index).values, solve(game, index).values[:, order], scale_of(game), 5, 5)


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


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="must hold 4 values"):
        AdditiveGame(3, [(0, 1)], [[0.0, 1.0]])
    with pytest.raises(InputError, match="must be finite"):
        AdditiveGame(3, [(0,)], [[0.0, np.inf]])
    with pytest.raises(InputError, match="distinct and within"):
        AdditiveGame(3, [(0, 0)], [[0.0, 1.0, 2.0, 3.0]])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_terms_of_one_player_have_the_bits_of_their_coalitions(index, order):
    rng = np.random.default_rng(0)
    players, semivalue = ((2,), (0,), (2,), (3,)), semivalues.find(index)
    terms = Singles(players, rng.normal(size=(5, 4, 2)), rng.normal(size=(4, 2)))
    quick, slow = (solve_stacks([part], 4, 5, 2, semivalue, order) for part in (terms, Stack(players, terms.tables)))
    for name in ("values", "empty", "full", "scale"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name))


@pytest.mark.parametrize("d", [1, 8, 21, 50])
@pytest.mark.parametrize("order", [1, 2])
def test_linear_terms_have_the_bits_of_terms_of_one_player(d, order):
    if order > d:
        return
    rng, semivalue = np.random.default_rng(d), semivalues.find("banzhaf")
    rows, coefficients, absent = rng.normal(size=(9, d)), rng.normal(size=d), rng.normal(size=d)
    terms = Singles(player_sets(d, 1), (rows * coefficients)[:, :, None], absent[:, None])
    linear = Scaled(rows, coefficients, absent)
    np.testing.assert_array_equal(linear.singles.tables, terms.tables)
    quick, slow = solve_scaled(linear, semivalue, order), solve_stacks([terms], d, 9, 1, semivalue, order)
    for name in ("values", "empty"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name))
    np.testing.assert_allclose(quick.scale, slow.scale, rtol=roundings(d))
    assert_close(quick.full[:, 0], slow.full[:, 0], slow.scale.max(), d)
    assert_close(quick.total[:, 0], slow.values.sum(axis=(1, 2)), slow.scale.max(), d)
    alone = solve_scaled(Scaled(rows[4:5], coefficients, absent), semivalue, order)
    turned = solve_scaled(Scaled(np.asfortranarray(np.tile(rows, (5, 1))), coefficients, absent), semivalue, order)
    for name in ("values", "total", "empty", "full", "scale"):
        np.testing.assert_array_equal(getattr(alone, name)[0], getattr(quick, name)[4])
        np.testing.assert_array_equal(getattr(turned, name)[36:], getattr(quick, name))


@pytest.mark.parametrize("d", [1, 8, 21, 50])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("index", ["shapley", "banzhaf", "k-sii"])
@pytest.mark.parametrize("turned", [np.ascontiguousarray, np.asfortranarray, lambda rows: np.repeat(rows, 2, axis=1)[:, ::2]])
def test_linear_rows_beside_predictions_have_the_bits_of_one_step_after_the_other(d, order, index, turned):
    if order > d:
        return
    rng, semivalue = np.random.default_rng(d), semivalues.find(index)
    rows, coefficients, absent = turned(rng.normal(size=(300, d))), rng.normal(size=d), rng.normal(size=d)
    linear, prediction = Linear(coefficients, absent, 0.3, 1e-15, 0.7), rng.normal(size=300)
    part = solve_scaled(Scaled(rows, coefficients, absent), semivalue, order)
    whole = part.finish(d, semivalue, order, constant=np.array([0.3]), single_output=True, with_residual=False)
    tolerance = 1e-15 * (whole.scale + np.abs(prediction) + 0.7) + 0.0
    slow = whole.beside(prediction, tolerance, efficient=semivalue.is_efficient(order))
    quick = answer_linear(Handle(linear), rows, prediction.__getitem__, semivalue, order)
    fields = ("values", "empty", "residual", "tolerance", "error_bound", "prediction")
    for name in fields:
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name))
    assert (quick.sets, quick.method, quick.comparison) == (slow.sets, slow.method, None)
    for n_compared in (2, 300):
        some = answer_linear(Handle(linear), rows, prediction.__getitem__, semivalue, order, n_compared)
        for name in fields:
            np.testing.assert_array_equal(getattr(some, name), getattr(slow, name)[: 300 - n_compared])
        for name in ("residual", "tolerance", "prediction"):
            np.testing.assert_array_equal(getattr(some.comparison, name), getattr(slow, name)[300 - n_compared :])


@pytest.mark.parametrize("d", [1, 8, 21])
def test_the_scale_of_a_sum_of_linear_models_is_that_of_its_sizes(d):
    rng, semivalue = np.random.default_rng(d), semivalues.find("shapley")
    rows, prediction, sizes = rng.normal(size=(300, d)), rng.normal(size=300), rng.random(d)
    plain = Linear(*rng.normal(size=(2, d)), 0.3, 1e-15, 0.7)
    one, other = (
        answer_linear(Handle(linear), rows, prediction.__getitem__, semivalue, 1)
        for linear in (plain, plain._replace(sizes=sizes))
    )
    for name in ("values", "empty", "residual"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    scale = np.abs(rows) @ sizes
    np.testing.assert_allclose(other.tolerance, 1e-15 * (scale + np.abs(prediction) + 0.7), rtol=roundings(d))
    misfit = Handle(plain._replace(sizes=np.ones(d + 1)))
    with pytest.raises(InputTypeError, match="do not belong together"):
        answer_linear(misfit, rows, prediction.__getitem__, semivalue, 1)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("index", ["shapley", "banzhaf", "k-sii"])
@pytest.mark.parametrize("turned", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("n_outputs", [2, 3, 10])
def test_outputs_of_a_linear_model_have_the_bits_of_one_step_after_the_other(order, index, turned, n_outputs):
    d, rng, semivalue = 9, np.random.default_rng(order), semivalues.find(index)
    rows, constant, prediction = (
        turned(rng.normal(size=(300, d))),
        rng.normal(size=n_outputs),
        rng.normal(size=(300, n_outputs)),
    )
    coefficients, absent = rng.normal(size=(2, d, n_outputs))
    prediction[7, 0] = prediction[8, -1] = np.nan  # shows in the tolerance, too
    singles = Singles(player_sets(d, 1), rows[:, :, None] * coefficients, absent)
    part = solve_stacks([singles], d, 300, n_outputs, semivalue, order)
    whole = part.finish(d, semivalue, order, constant=constant, with_residual=False)
    tolerance = 1e-15 * (whole.scale + np.abs(prediction).max(axis=1) + 0.7) + 0.0
    slow = whole.beside(prediction, tolerance, efficient=semivalue.is_efficient(order))
    linear = Handle(LinearOutputs(coefficients, absent, constant, 1e-15, 0.7))
    for n_compared in (0, 2, 300):
        quick = answer_linear(linear, rows, prediction.__getitem__, semivalue, order, n_compared)
        for name in ("values", "empty", "residual", "tolerance", "error_bound", "prediction"):
            np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name)[: 300 - n_compared])
        if n_compared:
            for name in ("residual", "tolerance", "prediction"):
                np.testing.assert_array_equal(getattr(quick.comparison, name), getattr(slow, name)[300 - n_compared :])
    assert (quick.sets, quick.method) == (slow.sets, slow.method)
    spoiled = np.where(np.arange(d) == 4, np.inf, rows)
    assert answer_linear(linear, spoiled, prediction.__getitem__, semivalue, order) is None


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("index", ["shapley", "banzhaf", "k-sii"])
@pytest.mark.parametrize("turned", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("owners", [(0, 0, 1, 3, 0, 1), (3, 2, 1, 0, 0, 0), (1,) * 6], ids=str)
def test_players_of_several_columns_have_the_values_of_one_step_after_the_other(order, index, turned, n_outputs, owners):
    """The same bits but for residuals, which add up values in another order."""
    d, n_players, rng, semivalue = len(owners), 4, np.random.default_rng(order), semivalues.find(index)
    rows, constant, prediction = (
        turned(rng.normal(size=(300, d))),
        rng.normal(size=n_outputs),
        rng.normal(size=(300, n_outputs)),
    )
    coefficients, absent = rng.normal(size=(2, d, n_outputs))
    prediction[7, 0] = np.nan  # shows in the tolerance, too
    singles = Singles(tuple((player,) for player in owners), rows[:, :, None] * coefficients, absent)
    part, is_one = solve_stacks([singles], n_players, 300, n_outputs, semivalue, order), n_outputs == 1
    whole = part.finish(n_players, semivalue, order, constant=constant, single_output=is_one, with_residual=False)
    tolerance = 1e-15 * (whole.scale + np.abs(prediction).max(axis=1) + 0.7) + 0.0
    prediction = prediction[:, 0] if is_one else prediction
    slow = whole.beside(prediction, tolerance, efficient=semivalue.is_efficient(order))
    linear = Handle(LinearPlayers(coefficients, absent, constant, np.array(owners), 1e-15, 0.7))
    rounding = 4.0 * d * np.finfo(float).eps * (np.nanmax(whole.scale) + np.abs(constant).max())
    for n_compared in (0, 2, 300):
        quick = answer_linear(linear, rows, prediction.__getitem__, semivalue, order, n_compared, n_players=n_players)
        for name in ("values", "empty", "tolerance", "error_bound", "prediction"):
            np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name)[: 300 - n_compared])
        np.testing.assert_allclose(quick.residual, slow.residual[: 300 - n_compared], rtol=0.0, atol=rounding)
        if n_compared:
            for name in ("tolerance", "prediction"):
                np.testing.assert_array_equal(getattr(quick.comparison, name), getattr(slow, name)[300 - n_compared :])
            np.testing.assert_allclose(quick.comparison.residual, slow.residual[300 - n_compared :], rtol=0.0, atol=rounding)
    assert (quick.sets, quick.method) == (slow.sets, slow.method)
    spoiled = np.where(np.arange(d) == 4, np.inf, rows)
    assert answer_linear(linear, spoiled, prediction.__getitem__, semivalue, order, n_players=n_players) is None


@pytest.mark.parametrize("turned", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("n_outputs", [0, 2])
def test_pieces_of_a_linear_models_rows_are_predicted_once_on_whatever_thread(turned, n_outputs, monkeypatch):
    n, d, tail, rng = 9 * 2048 + 7, 5, (n_outputs,) * (n_outputs > 0), np.random.default_rng(0)
    rows, prediction, asked = turned(rng.normal(size=(n, d))), rng.normal(size=(n, *tail)), []
    coefficients, absent = rng.normal(size=(2, d, *tail))
    make = LinearOutputs if n_outputs else Linear
    linear = Handle(make(coefficients, absent, np.zeros(tail) if n_outputs else 0.0, 1e-15, 0.7))

    def predict(piece):
        asked.append(piece)
        return prediction[piece]

    semivalue = semivalues.find("shapley")
    monkeypatch.setattr(_linear, "OF_OUTPUTS" if n_outputs else "PIECE", 2048 * d * max(1, n_outputs))
    found = [answer_linear(linear, rows, predict, semivalue, 1, n_jobs=n_jobs) for n_jobs in (1, 2, 3)]
    assert sorted(np.concatenate([np.arange(piece.start, piece.stop) for piece in asked])) == sorted([*range(n)] * 3)
    assert len(asked) == 3 * 9
    monkeypatch.undo()
    whole = answer_linear(linear, rows, prediction.__getitem__, semivalue, 1)
    for each in found:
        for name in ("values", "empty", "residual", "tolerance", "error_bound", "prediction"):
            np.testing.assert_array_equal(getattr(each, name), getattr(whole, name))


@pytest.mark.parametrize("n_outputs", [0, 2])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_row_beyond_its_tolerance_is_seen_in_whatever_piece_it_is(n_outputs, n_jobs, monkeypatch):
    n, tail, semivalue = 5 * 1024, (n_outputs,) * (n_outputs > 0), semivalues.find("shapley")
    rows, zeros = np.ones((n, 3)), np.zeros((3, *tail))
    linear = (LinearOutputs if n_outputs else Linear)(zeros, zeros, np.zeros(tail) if n_outputs else 0.0, 1e-9, 1.0)
    monkeypatch.setattr(_linear, "OF_OUTPUTS" if n_outputs else "PIECE", 1024 * 3 * max(1, n_outputs))

    def seen(prediction, n_compared=0, floor=1.0):
        found = answer_linear(
            Handle(linear._replace(floor=floor)), rows, prediction.__getitem__, semivalue, 1, n_compared, n_jobs
        )
        assert found.is_within == all_within(found.residual, found.tolerance)
        return found.is_within

    assert seen(np.zeros((n, *tail)))
    assert not seen(np.zeros((n, *tail)), floor=np.inf)  # numbers that overflow allow nothing
    for place in (0, 1023, 1024, n - 1):
        for off in (1.0, np.inf, np.nan):
            prediction = np.zeros((n, *tail))
            prediction[(place, *(-1,) * len(tail))] = off
            assert not seen(prediction)
            assert seen(prediction, n_compared=n - place)  # a row that is only compared is held against its own limit


def test_an_error_of_a_later_piece_names_its_row(monkeypatch):
    monkeypatch.setattr(_linear, "PIECE", 1024)

    def predict(piece):
        if piece.start >= 9 * 1024:
            raise InputError("wrong at row 3", row=3)
        return np.zeros(piece.stop - piece.start)

    linear = Handle(Linear(np.ones(1), np.ones(1), 0.0, 1.0, 1.0))
    for n_jobs in (1, 2):
        with pytest.raises(InputError, match=f"wrong at row {9 * 1024 + 3}"):
            answer_linear(linear, np.zeros((10 * 1024, 1)), predict, semivalues.find("shapley"), 1, n_jobs=n_jobs)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("n_compared", [0, 1])
def test_linear_rows_that_are_not_finite_are_left_to_the_way_that_names_them(bad, n_compared):
    rows = np.ones((3, 9))
    rows[2, 8] = bad
    linear = Linear(np.zeros(9), np.ones(9), 0.0, 1.0, 1.0)
    assert answer_linear(Handle(linear), rows, np.ones(3).__getitem__, semivalues.find("shapley"), 1, n_compared) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_linear_terms_that_are_not_finite_are_refused(bad):
    rows = np.ones((3, 9))
    rows[1, 8] = bad
    with pytest.raises(InputError, match=r"players \(8,\) .* First at row 1"):
        solve_scaled(Scaled(rows, np.zeros(9), np.ones(9)), semivalues.find("shapley"), 1)


def test_a_sum_of_finite_terms_that_overflows_is_left_to_the_certificate():
    rows = np.full((2, 9), 1e308)
    part = solve_scaled(Scaled(rows, np.ones(9), np.zeros(9)), semivalues.find("shapley"), 1)
    np.testing.assert_array_equal(part.values[:, :, 0], rows)
    assert np.isinf(part.full).all()
