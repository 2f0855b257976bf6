"""Folded enumeration against the definition, value by value, and the choice between it and quadrature."""

import numpy as np
import pytest

from exactshap import solve
from exactshap.errors import BudgetError, InputError
from exactshap.games import ProductGame
from exactshap.semivalues import available, find
from exactshap.solvers import choose
from exactshap.solvers.product import _folding, folding_pays
from exactshap.testing import check_game
from tolerances import assert_close


def random_game(d, n_terms=6, n_background=7, rows=3, outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(rows, n_terms, d)), rng.normal(size=(n_background, n_terms, d))
    weights = rng.random(n_background)
    return ProductGame(rng.normal(size=(n_terms, outputs)), a, b, weights, constant=np.arange(1.0, outputs + 1))


def bound_of(game):
    """Sum of the magnitudes of all values of coalitions, whichever they are."""
    heights = np.maximum(np.abs(game.a), np.abs(game.b).max(axis=0)).prod(axis=2)
    return float((heights @ np.abs(game.c).max(axis=1)).max())


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("index", available())
def test_every_index_is_that_of_the_enumerated_game(d, index):
    game = random_game(d)
    for order in (1, 2, 3)[: min(d, 3)]:
        fast = solve(game, index, order, method="folded enumeration")
        slow = solve(game, index, order, method="enumeration")
        assert fast.sets == slow.sets
        assert_close(fast.values, slow.values, 8**order * bound_of(game), 2**d, d)
        assert_close(fast.empty, slow.empty, bound_of(game), 6, d)
        assert_close(fast.full, slow.full, bound_of(game), 6, d)
        assert np.all(fast.scale >= slow.scale * (1 - 1e-12) - 2 * np.abs(game.constant).max())


@pytest.mark.parametrize(("d", "n_terms", "n_background"), [(13, 5, 3), (6, 71, 300), (7, 32, 128), (4, 33, 129), (8, 1, 1)])
def test_tiles_of_coalitions_terms_and_background_rows_join(d, n_terms, n_background):
    game = random_game(d, n_terms, n_background, rows=2, outputs=1, seed=d)
    fast, slow = solve(game, method="folded enumeration"), solve(game, method="quadrature")
    assert_close(fast.values, slow.values, bound_of(game), n_terms * 2**d, d)
    assert_close(fast.residual, np.zeros((2, 1)), bound_of(game), n_terms * 2**d, d)


def test_one_game_of_one_output_has_no_further_axes():
    game = ProductGame([1.0, 2.0], np.full((2, 3), 0.5), np.random.default_rng(0).random((40, 2, 3)))
    solution = solve(game, method="folded enumeration")
    assert solution.values.shape == (3,)
    assert np.ndim(solution.empty) == np.ndim(solution.full) == np.ndim(solution.residual) == 0
    assert_close(solution.values, solve(game, method="quadrature").values, 3.0, 2, 3)
    assert solution.method == "folded enumeration (2^3 coalitions, 40 background rows)"


def test_a_row_has_the_same_bits_alone_and_in_company():
    game = random_game(6, n_terms=37, n_background=50, rows=5)
    together = solve(ProductGame(game.c, game.a, game.b), method="folded enumeration").values
    for i in range(5):
        alone = ProductGame(game.c, game.a[i : i + 1], game.b)
        np.testing.assert_array_equal(solve(alone, method="folded enumeration").values[0], together[i])


def test_players_that_change_nothing_get_exactly_zero():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 5, 4)), rng.random((9, 5, 4))
    b[:, :, 2] = b[:1, :, 2]
    a[0, :, 2] = b[0, :, 2]
    solution = solve(ProductGame(np.ones(5), a, b), order=2, method="folded enumeration")
    zero = np.array([[2 in players and row == 0 for players in solution.sets] for row in range(2)])
    assert np.all(solution.values[zero] == 0.0)
    assert np.all(solution.values[~zero] != 0.0)


def test_check_game_passes_and_bites(monkeypatch):
    game = ProductGame(np.ones(3), np.full((3, 4), 0.5), np.random.default_rng(0).random((60, 3, 4)))
    assert choose(game).method == "folded enumeration"
    check_game(game, orders=(1, 2, 3))
    original = _folding.fill_folded

    def first_weight_too_large(b, weights, n_low, out):
        original(b, weights * (1.0 + 1e-4 * (np.arange(len(weights)) == 0)), n_low, out)

    monkeypatch.setattr(_folding, "fill_folded", first_weight_too_large)
    with pytest.raises(AssertionError, match="is off by"):
        check_game(game)


# -- the choice --------------------------------------------------------------------------------------------------------


def test_the_choice_is_said_and_independent_of_rows():
    many = ProductGame(np.ones(50), np.ones((4, 50, 8)), np.ones((100, 50, 8)))
    few = ProductGame(np.ones(50), np.ones((50, 8)), np.ones((100, 50, 8)))
    assert choose(many).method == choose(few).method == "folded enumeration"
    assert "100 background rows summed up once" in str(choose(few))
    assert choose(few).exact
    assert choose(many).cost.seconds > 0
    assert solve(few).method.startswith("folded enumeration (2^8")


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
    assert folding_pays(d, n_background, 1000, 1, find(index), order) == pays


def test_what_cannot_be_folded_is_refused_by_name_and_never_chosen():
    wide = ProductGame(np.ones(1), np.ones((1, 21)), np.ones((2, 1, 21)))
    with pytest.raises(BudgetError, match=r"Folding 2\^21 coalitions is out of reach"):
        solve(wide, method="folded enumeration")
    waves = ProductGame(np.ones(2), np.full((2, 4), 0.5 + 0.5j), np.full((90, 2, 4), 1j))
    assert choose(waves).method == "quadrature"
    with pytest.raises(InputError, match="does not apply to a ProductGame"):
        choose(waves, method="folded enumeration")
