"""Chains of matrices: quadrature against the definition over all coalitions."""

import numpy as np
import pytest

from exactshap import solve
from exactshap.errors import InputError
from exactshap.games import ProductGame, TensorTrainGame
from exactshap.semivalues import owen
from exactshap.solvers import choose
from exactshap.testing import check_game
from oracles import shapley, table_of
from tolerances import assert_close


def chain(n_outputs=1, seed=1):
    rng = np.random.default_rng(seed)
    ranks = [1, 2, 3, 2, 4, n_outputs]
    inside = [rng.normal(size=(3, ranks[j], ranks[j + 1])) for j in range(5)]
    outside = [rng.normal(size=((4,) if j % 2 else ()) + (ranks[j], ranks[j + 1])) for j in range(5)]
    return TensorTrainGame(inside, outside, weights=[1, 2, 3, 4], constant=0.7)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(
    ("index", "order"), [("shapley", 1), ("banzhaf", 1), ("k-sii", 2), ("stii", 3), ("fsii", 3), ("moebius", 5)]
)
def test_quadrature_agrees_with_enumeration(index, order, n_outputs):
    game = chain(n_outputs)
    fast, slow = solve(game, index, order), solve(game, index, order, method="enumeration")
    assert fast.method.startswith("transfer matrices")
    assert fast.sets == slow.sets
    assert_close(fast.values, slow.values, scale=2.0**order * fast.scale.max(), n_terms=100, n_players=5)
    for name in ("empty", "full"):
        assert_close(getattr(fast, name), getattr(slow, name), scale=fast.scale.max(), n_terms=100, n_players=5)


def test_values_are_the_textbook_ones():
    whole = chain()
    game = TensorTrainGame([core[1] for core in whole.inside], whole.outside, whole.weights)
    solution, v = solve(game), table_of(game)
    assert_close(solution.values, np.array([float(x) for x in shapley(v, 5)]), scale=solution.scale, n_terms=100, n_players=5)
    check_game(game)


def test_a_sum_of_products_is_a_chain_of_diagonal_matrices():
    rng = np.random.default_rng(0)
    c, a, b = rng.normal(size=4), rng.normal(size=(4, 30)), rng.normal(size=(4, 30))
    cores = [[np.diag(one[:, j]) for j in range(30)] for one in (a, b)]
    ends = [[c[None] @ one[0], *one[1:-1], one[-1] @ np.ones((4, 1))] for one in cores]
    product, train = ProductGame(c, a, b), TensorTrainGame(*ends)
    expected = solve(product, all_nodes=True)
    assert_close(solve(train).values, expected.values, scale=expected.scale, n_terms=200, n_players=30)


def test_blocks_and_company_change_no_bit(monkeypatch):
    from exactshap.solvers.chains import _tensor_train

    whole = solve(chain(), "k-sii", 2)
    monkeypatch.setattr(_tensor_train, "BLOCK_VALUES", 1)
    pieces = solve(chain(), "k-sii", 2)
    assert_close(pieces.values, whole.values, scale=whole.scale.max(), n_terms=100, n_players=5)
    game = chain()
    alone = solve(TensorTrainGame([core[2] for core in game.inside], game.outside, game.weights, game.constant), "k-sii", 2)
    assert_close(alone.values, whole.values[2], scale=whole.scale.max(), n_terms=100, n_players=5)


def test_idle_players_get_nothing_and_long_chains_stay_exact():
    rng = np.random.default_rng(0)
    d, rank = 300, 6
    shapes = [(1 if j == 0 else rank, 1 if j == d - 1 else rank) for j in range(d)]
    inside = [rng.dirichlet(np.ones(s[1]), s[0]) for s in shapes]  # rows sum to one: products neither vanish nor grow
    outside = [rng.dirichlet(np.ones(s[1]), s[0]) for s in shapes]
    inside[-1], outside[-1] = rng.normal(size=(rank, 1)), rng.normal(size=(rank, 1))
    outside[7] = inside[7]
    solution = solve(TensorTrainGame(inside, outside))
    assert solution.values[7] == 0.0
    assert abs(solution.residual) <= 1e-13
    assert "rank 6" in str(choose(TensorTrainGame(inside, outside)))


def test_groups_of_a_short_chain():
    game = chain()
    grouped = solve(game, owen({"x": [0, 1], "y": [3, 4]}))
    assert np.abs(grouped.residual).max() <= 1e-12 * grouped.scale.max()
    assert not np.allclose(grouped.values, solve(game).values)


@pytest.mark.parametrize(
    ("inside", "outside", "text"),
    [
        ([], [], "one matrix inside"),
        ([[[1.0]]], [], "one matrix inside"),
        ([[[1.0, 2.0]], [[1.0]]], [[[1.0, 2.0]], [[1.0]]], "player 1 must have shape"),
        ([[[1.0]]], [[[1.0, 2.0]]], "outside of player 0"),
        ([[[np.nan]]], [[[1.0]]], "finite"),
        ([[[1.0]], [[[1.0]]]], [[[1.0]], [[1.0]]], "leading axis"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(inside, outside, text):
    with pytest.raises(InputError, match=text):
        TensorTrainGame(inside, outside)
