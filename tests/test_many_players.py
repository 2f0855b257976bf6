"""More than 1023 players: 2^d is no float, and nothing may trip over that."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge

import exactshap
from exactshap.errors import BudgetError
from exactshap.games import OracleGame, ProductGame, all_masks
from exactshap.readers import AdditiveModel
from exactshap.solvers import choose, solve
from tolerances import assert_close

D = 1500
X = np.random.default_rng(0).normal(size=(20, D))
SUM = OracleGame(lambda masks: masks.sum(axis=1), D)


@pytest.mark.parametrize("value_function", ["functional", "baseline", "interventional"])
def test_kernel_machines_of_many_columns(value_function):
    rows = X[:, :1100]
    model = KernelRidge(kernel="rbf", gamma=1e-3).fit(rows, rows[:, 0])
    background = {"baseline": rows[:1], "interventional": rows[:3]}.get(value_function)
    explainer = exactshap.Explainer(model, background, value_function=value_function)
    explanation = explainer(rows[4:6])
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance)
    assert explainer.verify(rows[4:5], n_masks=2).passed
    assert "quadrature" in explainer.plan(rows[4:6]).method


def test_values_of_a_product_of_many_columns_are_those_of_its_few_players_that_matter():
    four = np.random.default_rng(1).normal(size=(2, 2, 4))
    inside, outside = np.ones((2, 2, D))
    inside[:, :4], outside[:, :4] = four
    found = solve(ProductGame([1.0, 2.0], inside, outside)).values
    few = solve(ProductGame([1.0, 2.0], *four), method="enumeration").values
    assert_close(found[:4], few, 3.0 * np.abs(four).max() ** 4, n_terms=2, n_players=D)
    assert np.all(found[4:] == 0.0)


@pytest.mark.parametrize(("d", "order"), [(300, 2), (50, 3), (12, 5)])
def test_interactions_of_many_columns_add_up(d, order):
    model = KernelRidge(kernel="rbf", gamma=1e-3).fit(X[:, :d], X[:, 0])
    explanation = exactshap.explain(model, X[:1, :d], X[:2, :d], index="k-sii", order=order)
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance)


def test_forests_of_many_columns():
    model = RandomForestRegressor(3, random_state=0).fit(X, X[:, 0])
    explanation = exactshap.explain(model, X[:2], X[:3])
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance)


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            lambda: all_masks(D),
            r"Enumerating all coalitions of 1500 players is out of reach\. 2\^1500 coalitions are 10\^443 TiB",
        ),
        (lambda: solve(SUM, method="enumeration"), "Enumerating all coalitions of 1500 players is out of reach"),
        (
            lambda: exactshap.explain(AdditiveModel([(range(D), lambda a: a.sum(1))]), X[:2], X[:3]),
            r"2\^1500 = 3\.51e\+451 coal",
        ),
    ],
)
def test_what_is_out_of_reach_is_refused_with_its_number(ask, text):
    with pytest.raises(BudgetError, match=text):
        ask()


def test_plans_count_beyond_floats():
    assert choose(SUM, method="enumeration").cost.bytes > 2.0**1000
