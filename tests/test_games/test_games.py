import numpy as np
import pytest

from exactshap.errors import BudgetError, InputError, InputTypeError
from exactshap.games import AdditiveGame, OracleGame, ProductGame, all_masks
from tolerances import roundings


def test_product_game_is_its_formula():
    rng = np.random.default_rng(0)
    c, a, b, w = rng.normal(size=(3, 2)), rng.normal(size=(4, 3, 5)), rng.normal(size=(6, 3, 5)), rng.random(6)
    game = ProductGame(c, a, b, w, constant=[1.0, 2.0])
    masks = rng.random((7, 5)) < 0.5
    values = game.value(masks)
    assert values.shape == (4, 7, 2)
    for r, m, o in np.ndindex(4, 7, 2):
        expected = [1.0, 2.0][o]
        for z in range(6):
            for l in range(3):
                factors = [a[r, l, j] if masks[m, j] else b[z, l, j] for j in range(5)]
                expected += w[z] / w.sum() * c[l, o] * np.prod(factors)
        assert values[r, m, o] == pytest.approx(expected, abs=roundings(5_000))


def test_additive_game_is_its_formula():
    game = AdditiveGame(3, [(2, 0), ()], [np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([[5.0]])], constant=10.0)
    assert game.value([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]]).tolist() == [[16.0, 18.0, 17.0, 19.0]]


def test_shapes_follow_the_game():
    masks = all_masks(2)
    assert ProductGame([1.0], [[1.0, 2.0]]).value(masks).shape == (4,)
    assert ProductGame([[1.0, 2.0]], [[1.0, 2.0]]).value(masks).shape == (4, 2)
    assert ProductGame([1.0], [[[1.0, 2.0]]] * 3).value(masks).shape == (3, 4)
    assert OracleGame(lambda m: np.zeros((len(m), 3)), 2).value(masks).shape == (4, 3)


def test_games_are_read_only():
    game = ProductGame([1.0], [[1.0, 2.0]])
    for array in (game.a, game.b, game.c, game.weights, game.constant):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: ProductGame([1.0], [1.0]), r"`a` must have shape \(n_terms, n_players\)"),
        (lambda: ProductGame([1.0], np.ones((1, 0))), "at least one player"),
        (lambda: ProductGame([1.0, 2.0], [[1.0]]), "one row for each of the 1 terms"),
        (lambda: ProductGame([1.0], [[np.nan]]), "`a` must be finite"),
        (lambda: ProductGame([1.0], [["x"]]), "`a` must be numeric"),
        (lambda: ProductGame([np.inf], [[1.0]]), "`c` must be finite"),
        (lambda: ProductGame([1.0], [[1.0]], constant=np.nan), "`constant` must be finite"),
        (lambda: ProductGame([1.0], [[1.0]], weights=[-1.0]), "non-negative"),
        (lambda: ProductGame([1.0], [[1.0]], weights=[0.0]), "not all zero"),
        (lambda: ProductGame([1.0], [[1.0]], weights=[np.nan]), "finite"),
        (lambda: ProductGame([1.0], [[1.0]], weights=[1.0, 1.0]), r"must have shape \(1,\)"),
        (lambda: ProductGame([1.0], [[1.0]], b=np.ones((2, 3, 4))), "must broadcast"),
        (lambda: AdditiveGame(2, [(0, 0)], [[0.0] * 4]), "must be distinct"),
        (lambda: AdditiveGame(2, [(5,)], [[0.0] * 2]), r"within 0\.\.1"),
        (lambda: AdditiveGame(2, [(0,)], [[0.0] * 3]), "must hold 2 values"),
        (lambda: AdditiveGame(2, [(0,)], [[0.0, np.inf]]), "must be finite"),
        (lambda: AdditiveGame(2, [(0,)], [[0.0, 1.0]], np.nan), "`constant` must be finite"),
        (lambda: AdditiveGame(2, [(0,)], []), "One table is needed for each subset"),
        (lambda: OracleGame(lambda m: m, 0), "at least 1"),
        (lambda: ProductGame([1.0], [[1.0, 2.0]]).value([[True]]), r"must have shape \(n_masks, 2\)"),
    ],
)
def test_bad_games_are_refused(build, text):
    with pytest.raises(InputError, match=text):
        build()


def test_an_oracle_must_be_callable():
    with pytest.raises(InputTypeError, match="must be callable"):
        OracleGame(3, 2)


def test_all_masks_refuses_before_allocating():
    with pytest.raises(BudgetError, match="the limit is 24 players"):
        all_masks(42)
