"""Product games, by quadrature and by folding the background: against the definition, and the choice between both ways; factors and hinges."""

import numpy as np
import pytest
from hypothesis import given, settings

from exactshap import semivalues
from exactshap.errors import BudgetError, InputError, InputTypeError
from exactshap.expansions import expand
from exactshap.games import OracleGame, ProductGame
from exactshap.semivalues import beta, find
from exactshap.solvers import choose, solve
from exactshap.solvers.product import eliminate, folding_pays, solve_factors, solve_hinges
from exactshap.testing import check_game
from strategies import product_games
from tolerances import RESPONSE, assert_close, exact

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


# --- variable elimination, and rectified sums by meeting in the middle, against all coalitions ------------------------


QUESTIONS = [("shapley", 1), ("banzhaf", 1), ("k-sii", 2), ("stii", 2), ("fsii", 3), ("moebius", 2), (beta(4, 1), 1)]
GRAPHS = {
    "circle": (5, [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]),
    "parts": (6, [(0,), (5,), (0, 1), (2, 3), (3, 4)]),
    "triple": (6, [(0,), (1,), (0, 1, 2), (2, 3), (3, 4, 5)]),
    "clique": (5, [(0, 1, 2, 3, 4), (1, 3)]),
    "idle players": (4, [(0,), (2,)]),
    "one player": (1, [(0,)]),
    "no factor": (3, []),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(("index", "order"), QUESTIONS)
@pytest.mark.parametrize("link", ["logistic", "exponential"])
def test_values_of_factors_are_those_of_all_coalitions(graph, index, order, link):
    n_players, members = GRAPHS[graph]
    rng, weights = np.random.default_rng(len(graph)), np.array([0.5, 0.3, 0.2])
    factors = [(players, rng.normal(size=(3, 2 ** len(players)))) for players in members]
    expansion = expand(link, 16.0)

    def value(masks):
        scores = np.zeros((3, len(masks)))
        for players, table in factors:
            scores += table[:, masks[:, list(players)] @ (1 << np.arange(len(players)))]
        return weights @ expansion.function(scores)

    order = min(order, n_players)
    own = solve(OracleGame(value, n_players), index, order, method="enumeration")
    found = solve_factors(n_players, factors, expansion.rates, expansion.coefficients, weights, find(index), order)
    limit = 10 * RESPONSE * (1.0 + np.abs(own.full))
    np.testing.assert_allclose(found.values[0, :, 0], own.values, atol=limit)
    np.testing.assert_allclose(found.full[0, 0] + expansion.constant, own.full, atol=limit)
    np.testing.assert_allclose(found.empty[0, 0] + expansion.constant, own.empty, atol=limit)


GRID = [(j, j + 1) for j in range(9) if j % 3 < 2] + [(j, j + 3) for j in range(6)]


@pytest.mark.parametrize(
    ("n_players", "edges", "width"),
    [
        (5, [(j, j + 1) for j in range(4)], 1),  # a path
        (5, [(j, (j + 1) % 5) for j in range(5)], 2),  # a circle
        (9, GRID, 3),
        (6, [(a, b) for a in range(6) for b in range(a)], 5),
        (3, [], 0),
    ],
)
def test_widths(n_players, edges, width):
    assert eliminate(n_players, edges).width == width


# -- rectified sums ----------------------------------------------------------------------------------------------------


def hinges(d):
    """Return sums that bend, that do not, that nobody moves and that have no hinge."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(8, d))
    steps[0, 0], steps[1], steps[2] = 0.0, 0.0, np.abs(steps[2])
    starts = np.array([0, 1, 2, 4, 4, 7, 8, 9, 9])
    shifts = rng.normal(size=9)
    shifts[2:4] = 0.1, -1e3
    return steps, starts, shifts, rng.normal(size=(9, 2))


@pytest.mark.parametrize(
    ("d", "index", "order"), [*((d, *question) for d in (1, 2, 3, 7, 10) for question in QUESTIONS), (17, "shapley", 1)]
)
def test_values_of_hinges_are_those_of_all_coalitions(d, index, order):
    steps, starts, shifts, c = hinges(d)
    owner, order = np.repeat(np.arange(len(steps)), np.diff(starts)), min(order, d)

    def value(masks):
        return np.maximum(shifts + masks @ steps[owner].T, 0.0) @ c

    own = solve(OracleGame(value, d), index, order, method="enumeration")
    found = solve_hinges(steps, starts, shifts, c, find(index), order)
    for name in ("values", "full", "empty"):
        # sums of 2^d values, each off by rounding relative to the sizes of its sums
        assert_close(getattr(found, name)[0], getattr(own, name), found.scale, n_terms=2**d, n_players=d)


def test_thirty_players_add_up_and_more_are_refused():
    rng = np.random.default_rng(0)
    steps, shifts, c = rng.normal(size=(2, 30)), np.zeros(2), np.ones((2, 1))
    found = solve_hinges(steps, np.arange(3), shifts, c, find("shapley"), 1)
    assert_close(found.values.sum(axis=1), found.full - found.empty, found.scale, n_terms=2**15, n_players=30)
    wide = np.concatenate([steps, steps[:, :1]], axis=1)
    with pytest.raises(BudgetError, match="31 players"):
        solve_hinges(wide, np.arange(3), shifts, c, find("shapley"), 1)
    straight = solve_hinges(wide, np.arange(3), np.full(2, 1e3), c, find("shapley"), 1)
    assert_close(straight.values[0, :, 0], wide.sum(axis=0), straight.scale, n_terms=31, n_players=31)
