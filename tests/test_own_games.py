"""Solutions of people's own games get names, pictures, frames and files."""

from dataclasses import replace

import matplotlib
import numpy as np
import pytest

from exactshap import Explanation, solve
from exactshap.errors import InputError, InputTypeError
from exactshap.games import OracleGame, ProductGame

GLOVES = OracleGame(lambda S: np.minimum(S[:, 0], S[:, 1] + S[:, 2] > 0).astype(float), 3)
NAMES = ["Ann", "Bob", "Cid"]


def test_a_game_becomes_one_row_with_names(tmp_path):
    matplotlib.use("Agg")
    explanation = Explanation.from_solution(solve(GLOVES), NAMES, unit="pairs", name="gloves")
    assert explanation.to_frame("pandas").columns.tolist() == NAMES
    np.testing.assert_allclose(explanation.values, [[2 / 3, 1 / 6, 1 / 6]])
    assert explanation.certificate().passed
    assert "exact Shapley values, 1 row x 3 features (pairs)" in repr(explanation)
    explanation.save(tmp_path / "gloves")
    loaded = Explanation.load(tmp_path / "gloves")
    assert loaded.feature_names == tuple(NAMES)
    for picture in ("waterfall", "bar", "beeswarm"):
        getattr(loaded.plot, picture)()
    assert "Ann" in explanation.report(tmp_path / "gloves.html").read_text()


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("n_rows", [None, 3, 5])
def test_shapes_of_games_and_batches(n_rows, outputs):
    """Three players, three outputs and three games, so that no axis is known by its length."""
    rng = np.random.default_rng(0)
    factors = (4, 3) if n_rows is None else (n_rows, 4, 3)
    constants = (4,) if outputs is None else (4, outputs)
    game = ProductGame(rng.normal(size=constants), rng.normal(size=factors), np.ones((4, 3)))
    solution = solve(game)
    explanation = Explanation.from_solution(solution)
    np.testing.assert_array_equal(explanation.values.ravel(), solution.values.ravel())
    assert explanation.n_rows == (n_rows or 1)
    assert explanation.n_outputs == (outputs or 1)
    assert explanation.certificate().passed


def test_sampled_pairs_keep_index_order_and_errors():
    game = OracleGame(lambda S: S @ np.arange(20.0) + 3.0 * S[:, 0] * S[:, 1] * S[:, 2], 20)
    solution = solve(game, "k-sii", order=2, budget=300, random_state=0)
    explanation = Explanation.from_solution(solution)
    assert (explanation.kind, explanation.index, explanation.order) == ("sampled", "k-sii", 2)
    np.testing.assert_array_equal(explanation.set_std_error[0], solution.std_error)
    assert explanation.interactions.shape == (1, 20, 20)
    assert Explanation.from_solution(solve(GLOVES, "banzhaf")).index == "banzhaf"


def test_what_a_solution_lacks_is_said():
    with pytest.raises(AttributeError, match=r"Explanation.from_solution\(solution, player_names"):
        solve(GLOVES).plot
    with pytest.raises(InputError, match="`player_names` must hold 3 different names"):
        Explanation.from_solution(solve(GLOVES), ["Ann", "Ann", "Bob"])
    with pytest.raises(InputTypeError, match=r"must be a Solution. Got ndarray"):
        Explanation.from_solution(solve(GLOVES).values)


def test_values_that_do_not_add_up_fail_the_certificate():
    solution = solve(GLOVES)
    wrong = replace(solution, residual=solution.residual + 1e-3)
    assert not Explanation.from_solution(wrong, NAMES).certificate().passed
