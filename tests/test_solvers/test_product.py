from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactshap import semivalues
from exactshap.errors import BudgetError, InputError, InputTypeError
from exactshap.games import ProductGame
from exactshap.solvers import choose, solve
from exactshap.solvers.core import RELATIVE_TRUNCATION, bound, enough_nodes
from exactshap.testing import check_game
from oracles import product_polynomial
from strategies import product_games
from tolerances import assert_close, exact, roundings

INDICES = [*semivalues.available(), semivalues.beta(4, 1), semivalues.beta(2, 5)]
few = settings(max_examples=15, deadline=None)


def scale_of(game, order=1):
    """What the values are rounding relative to: products of the larger factors, doubled for each difference."""
    a, b = np.abs(game.a)[:, None], np.abs(game.b)[None]
    terms = (np.abs(game.c).max(axis=1) * np.maximum(a, b).prod(axis=3)).sum(axis=2).max()
    return 2.0**order * terms + np.abs(game.constant).max()


def random_game(d, n=5, rows=2, background=3, outputs=2, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is complex else 0)  # noqa: E731
    return ProductGame(
        draw(n, outputs), draw(rows, n, d), draw(background, n, d), weights=rng.random(background), constant=[1.0, -2.0]
    )


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3])
@given(game=product_games())
@few
def test_quadrature_agrees_with_enumeration_value_by_value(index, order, game):
    order = min(order, game.n_players)
    fast, slow = solve(game, index, order), solve(game, index, order, method="enumeration")
    assert fast.sets == slow.sets
    blow_up = 2.0**game.n_players  # enumeration itself subtracts 2^d values
    assert_close(fast.values, slow.values, blow_up * scale_of(game, order), game.n_terms, game.n_players)
    if fast.residual is not None:
        assert np.abs(fast.residual).max() <= exact(blow_up * scale_of(game, order), game.n_terms, game.n_players)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_dummy_players_get_exactly_nothing(index):
    game = random_game(5)
    a, b = np.array(game.a), np.array(game.b)
    b[:, :, 2] = 0.7
    a[:, :, 2] = 0.7
    solution = solve(ProductGame(game.c, a, b), index, 2)
    for place, T in enumerate(solution.sets):
        if 2 in T:
            assert not solution.values[:, place].any(), T


def test_rows_do_not_depend_on_their_company():
    game = random_game(7, n=70, rows=6)
    together = solve(game).values
    for r in range(6):
        alone = solve(ProductGame(game.c, game.a[r], game.b, game.weights, game.constant)).values
        np.testing.assert_array_equal(alone, together[r])


@pytest.mark.parametrize("order", [1, 2])
def test_complex_factors_are_the_real_part_of_the_sum(order):
    game = random_game(5, dtype=complex)
    for index in ("shapley", "banzhaf", "k-sii"):
        fast, slow = solve(game, index, order), solve(game, index, order, method="enumeration")
        assert_close(fast.values, slow.values, 2**5 * scale_of(game, order), 15, 5)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 65])
def test_tiles_of_terms_are_padded_right(n):
    check_game(random_game(4, n=n))


def test_groups_of_zero_factors_and_far_points_stay_finite():
    game = ProductGame([1.0, -2.0], [[0.0, 0.0, 0.0], [1e-300, 1e-300, 1e-300]], [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    check_game(game)
    assert solve(game).values.sum() == pytest.approx(
        float(game.value([[1, 1, 1]])[0] - game.value([[0, 0, 0]])[0]), abs=roundings(5)
    )


def reference(c, a, b, j):
    """phi_j of one row by exact integration of the polynomial: coefficients, not quadrature."""
    total = Fraction(0)
    for cl, al, bl in zip(c, a, b, strict=True):
        coefficients = product_polynomial(np.delete(al, j), np.delete(bl, j))
        integral = sum(x / (r + 1) for r, x in enumerate(coefficients))
        total += Fraction(cl) * (Fraction(al[j]) - Fraction(bl[j])) * integral
    return float(total)


@pytest.mark.parametrize("d", [50, 120, 300])
@pytest.mark.parametrize("width", [1.0, 30.0])
def test_values_of_many_players_against_high_precision(d, width):
    """Wide and narrow kernels: few nodes by the bound, and many."""
    rng = np.random.default_rng(d)
    c, b = rng.normal(size=3), np.ones((3, d))
    a = np.exp(-width * rng.normal(size=(3, d)) ** 2 / d)
    game = ProductGame(c, a, b)
    truncated, full = solve(game), solve(game, all_nodes=True)
    for j in (0, d - 1):
        expected = reference(c, a, b, j)
        limit = exact(np.abs(c).sum(), 3, d)
        assert abs(truncated.values[j] - expected) <= limit
        assert abs(full.values[j] - expected) <= limit


@pytest.mark.parametrize("d", [1000, 5000])
def test_thousands_of_players(d):
    rng = np.random.default_rng(0)
    game = ProductGame(rng.normal(size=20), np.exp(-(rng.normal(size=(20, d)) ** 2) / d))
    solution = solve(game)
    assert abs(solution.residual) <= exact(np.abs(game.c).sum(), 20, d)
    nodes = int(solution.method.split("(")[1].split()[0])
    assert nodes < 20


def test_enough_nodes_never_exceeds_the_exact_count_and_meets_the_target():
    for degree in (0, 1, 5, 100):
        for spread in (0.0, 1.0, 10.0, 1e4):
            n = enough_nodes(spread, degree)
            assert 1 <= n <= degree // 2 + 1
            assert n == degree // 2 + 1 or bound(np.ceil(spread * 16) / 16, n) <= RELATIVE_TRUNCATION


def test_the_error_bound_is_zero_for_exact_rules_and_reported_for_truncated_ones():
    small, large = random_game(4), ProductGame(np.ones(3), np.full((3, 300), 0.99))
    assert not np.any(solve(small).error_bound)
    assert 0 < solve(large).error_bound <= 4 * RELATIVE_TRUNCATION * 3


def test_choose_answers_without_computing():
    plan = choose(random_game(6), "k-sii", 2)
    assert plan.method == "quadrature"
    assert plan.exact
    assert plan.cost.seconds > 0
    assert plan.cost.bytes > 0
    assert "product game" in str(plan)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"order": 0}, InputError, "must be an int >= 1"),
        ({"order": 9}, InputError, "at most the number of players, 4"),
        ({"order": 1.5}, InputError, "must be an int >= 1"),
        ({"method": "magic"}, InputError, "Unknown `method`"),
        ({"method": "per-term enumeration"}, InputError, "does not apply to a ProductGame"),
    ],
)
def test_bad_requests_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        solve(random_game(4), **arguments)


def test_a_request_that_cannot_fit_is_refused_with_the_number():
    game = ProductGame(np.ones(1), np.ones((1, 400)))
    with pytest.raises(BudgetError, match=r"They are 1\.06e\+09 sets"):
        solve(game, order=4)
    with pytest.raises(BudgetError, match=r"2\^42 coalitions are"):
        solve(ProductGame(np.ones(1), np.ones((1, 42))), method="enumeration")


@given(st.integers(1, 6), st.integers(0, 1000))
@few
def test_float32_input_is_read_as_its_float64_value(d, seed):
    game = random_game(d, seed=seed)
    single = [np.asarray(x, np.float32) for x in (game.c, game.a, game.b)]
    double = [x.astype(float) for x in single]
    np.testing.assert_array_equal(solve(ProductGame(*single)).values, solve(ProductGame(*double)).values)


def test_something_that_is_no_game_is_refused():
    with pytest.raises(InputTypeError, match=r"must be a ProductGame.*Got str"):
        solve("x")
