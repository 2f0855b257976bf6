"""Product games, by quadrature and by folding the background: against the definition, and the choice between both ways."""

import numpy as np
import pytest
from hypothesis import given, settings

from exactshap import semivalues
from exactshap.errors import BudgetError, InputError, InputTypeError
from exactshap.games import ProductGame
from exactshap.solvers import choose, solve
from exactshap.solvers.product import folding_pays
from exactshap.testing import check_game
from strategies import product_games
from tolerances import assert_close, exact

WAYS = ["quadrature", "folded enumeration"]
INDICES = [*semivalues.available(), semivalues.beta(4, 1), semivalues.beta(2, 5)]


def scale_of(game, order=1):
    """What the values are rounding relative to: products of the larger factors, doubled for each difference."""
    a, b = np.abs(game.a)[:, None], np.abs(game.b)[None]
    terms = (np.abs(game.c).max(axis=1) * np.maximum(a, b).prod(axis=3)).sum(axis=2).max()
    return 2.0**order * terms + np.abs(game.constant).max()


def random_game(d, n=5, rows=2, background=3, outputs=2, dtype=float):
    rng = np.random.default_rng(d)
    draw = lambda *shape: rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is complex else 0)  # noqa: E731
    c, a, b = draw(n, outputs), draw(rows, n, d), draw(background, n, d)
    return ProductGame(c, a, b, weights=rng.random(background), constant=np.arange(1.0, outputs + 1))


def assert_enumerated(game, method, index, order):
    """Compare all that a solution holds with enumeration, which itself subtracts 2^d values."""
    fast, slow = solve(game, index, order, method=method), solve(game, index, order, method="enumeration")
    scale = 2.0**game.n_players * scale_of(game, order)
    assert fast.sets == slow.sets
    for name in ("values", "empty", "full"):
        assert_close(getattr(fast, name), getattr(slow, name), scale, game.n_terms, game.n_players)
    assert (fast.residual is None) == (slow.residual is None)
    if fast.residual is not None:
        assert np.abs(fast.residual).max() <= exact(scale, game.n_terms, game.n_players)
    assert np.all(fast.scale >= slow.scale * (1 - 1e-12) - 2 * np.abs(game.constant).max())


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("method", WAYS)
@given(game=product_games())
@settings(max_examples=15, deadline=None)
def test_values_are_those_of_all_coalitions(method, order, index, game):
    assert_enumerated(game, method, index, min(order, game.n_players))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("index", ["shapley", "banzhaf", "k-sii"])
def test_complex_factors_are_the_real_part_of_the_sum(index, order):
    assert_enumerated(random_game(5, dtype=complex), "quadrature", index, order)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 65])
def test_tiles_of_terms_are_padded_right(n):
    check_game(random_game(4, n=n))


@pytest.mark.parametrize(("d", "n", "background"), [(13, 5, 3), (9, 6, 7), (6, 71, 300), (7, 32, 128), (4, 33, 129), (8, 1, 1)])
def test_tiles_of_coalitions_terms_and_background_rows_join(d, n, background):
    game = random_game(d, n, background=background)
    fast, slow = (solve(game, "k-sii", 2, method=method) for method in reversed(WAYS))
    assert_close(fast.values, slow.values, scale_of(game, 2), n * 2**d, d)
    assert_close(fast.residual, np.zeros((2, 2)), scale_of(game), n * 2**d, d)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("method", WAYS)
def test_players_that_change_nothing_get_exactly_zero(method, index):
    game = random_game(5)
    a, b = np.array(game.a), np.array(game.b)
    b[:, :, 2] = b[:1, :, 2]
    a[0, :, 2] = b[0, :, 2]
    solution = solve(ProductGame(game.c, a, b), index, 2, method=method)
    nothing = [2 in players for players in solution.sets]
    assert not solution.values[0, nothing].any()
    assert solution.values[1, nothing].all()


@pytest.mark.parametrize("method", WAYS)
def test_a_row_has_the_same_bits_alone_and_among_others(method):
    game = random_game(7, n=70, rows=6, background=50)
    together = solve(ProductGame(game.c, game.a, game.b), method=method).values
    for row, values in zip(game.a, together, strict=True):
        alone = ProductGame(game.c, row, game.b)
        np.testing.assert_array_equal(solve(alone, method=method).values, values)


def test_one_game_of_one_output_has_no_further_axes():
    game = ProductGame([1.0, 2.0], np.full((2, 3), 0.5), np.random.default_rng(0).random((40, 2, 3)))
    for method in WAYS:
        solution = solve(game, method=method)
        assert solution.values.shape == (3,)
        assert np.ndim(solution.empty) == np.ndim(solution.full) == np.ndim(solution.residual) == 0
    assert solution.method == "folded enumeration (2^3 coalitions, 40 background rows)"


def test_float32_input_is_read_as_its_float64_value():
    game = random_game(5)
    single = [np.asarray(x, np.float32) for x in (game.c, game.a, game.b)]
    double = [x.astype(float) for x in single]
    np.testing.assert_array_equal(solve(ProductGame(*single)).values, solve(ProductGame(*double)).values)


# -- the choice --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 4])
def test_the_choice_is_said_and_independent_of_rows(rows):
    folded = ProductGame(np.ones(50), np.ones((rows, 50, 8)), np.ones((100, 50, 8)))
    for game, words in ((folded, "100 background rows summed up once"), (random_game(6, rows=rows), "product game")):
        plan = choose(game, "k-sii", 2)
        assert plan.method == ("folded enumeration" if game is folded else "quadrature")
        assert plan.exact
        assert plan.cost.seconds > 0
        assert plan.cost.bytes > 0
        assert words in str(plan)
    assert solve(folded).method.startswith("folded enumeration (2^8")


@pytest.mark.parametrize(
    ("d", "n_background", "index", "order", "pays"),
    [
        (8, 100, "shapley", 1, True),
        (12, 1000, "shapley", 1, True),
        (12, 100, "k-sii", 2, True),
        (12, 64, "shapley", 1, True),
        (12, 32, "shapley", 1, False),  # a sweep takes two thirds of a row of 4,096 coalitions
        (8, 1, "shapley", 1, False),  # nothing to sum up
        (20, 100, "shapley", 1, False),
        (18, 1000, "shapley", 1, False),
        (12, 60, "banzhaf", 1, False),  # one node is enough for the sweep
        (40, 10**6, "shapley", 1, False),
    ],
)
def test_the_cheaper_way_is_taken(d, n_background, index, order, pays):
    assert folding_pays(d, n_background, 1000, 1, semivalues.find(index), order) == pays


def test_complex_factors_are_never_folded():
    waves = ProductGame(np.ones(2), np.full((2, 4), 0.5 + 0.5j), np.full((90, 2, 4), 1j))
    assert choose(waves).method == "quadrature"
    with pytest.raises(InputError, match="does not apply to a ProductGame"):
        choose(waves, method="folded enumeration")


def wide(d):
    return ProductGame(np.ones(1), np.ones((1, d)), np.ones((2, 1, d)))


@pytest.mark.parametrize(
    ("game", "arguments", "error", "text"),
    [
        (random_game(4), {"order": 0}, InputError, "must be an int >= 1"),
        (random_game(4), {"order": 9}, InputError, "at most the number of players, 4"),
        (random_game(4), {"order": 1.5}, InputError, "must be an int >= 1"),
        (random_game(4), {"method": "magic"}, InputError, "Unknown `method`"),
        (random_game(4), {"method": "per-term enumeration"}, InputError, "does not apply to a ProductGame"),
        (wide(400), {"order": 4}, BudgetError, r"They are 1\.06e\+09 sets"),
        (wide(42), {"method": "enumeration"}, BudgetError, r"2\^42 coalitions are"),
        (wide(21), {"method": "folded enumeration"}, BudgetError, r"Folding 2\^21 coalitions is out of reach"),
        ("x", {}, InputTypeError, r"must be a ProductGame.*Got str"),
    ],
)
def test_bad_requests_are_refused(game, arguments, error, text):
    with pytest.raises(error, match=text):
        solve(game, **arguments)
