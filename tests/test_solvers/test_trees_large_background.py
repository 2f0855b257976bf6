"""Rounding must not grow with the background: sums over its rows are counts, or pairwise."""

import dataclasses
import math

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from exactshap import Explainer
from exactshap.semivalues import find
from exactshap.solvers.trees import prepare_trees, solve_trees
from exactshap.trees import convert, margin

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
Y = 5.0 + X[:, 0] + X[:, 1] * X[:, 2]
LARGE = RNG.normal(size=(40_000, 5))
WEIGHTS = RNG.random(len(LARGE)) + 0.01
MODELS = [
    DecisionTreeRegressor(max_depth=2),
    RandomForestRegressor(5, random_state=0),
    GradientBoostingRegressor(n_estimators=20, random_state=0),
    LGBMRegressor(n_estimators=20, verbose=-1),
]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_residuals_stay_within_tolerance(model, weights):
    explanation = Explainer(model.fit(X, Y), LARGE, background_weights=weights)(X[:20])
    # counts and pairwise sums: sequential sums were 3 to 115 times the tolerance off here
    assert np.all(np.abs(explanation.residual) <= 0.1 * explanation.tolerance)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_engines_without_tables_agree_with_tables(order, weights):
    trees = convert(DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, Y)).trees
    tables = prepare_trees(trees, [(j,) for j in range(5)], LARGE[:20_000], None if weights is None else weights[:20_000])
    deep = dataclasses.replace(tables, tables=None)
    of_tables, of_deep = (
        solve_trees(prepared, X[:8], find("shapley" if order == 1 else "k-sii"), order) for prepared in (tables, deep)
    )
    assert "tables" in of_tables.method
    assert "20000 background rows" in of_deep.method
    np.testing.assert_allclose(of_deep.values, of_tables.values, rtol=0, atol=32 * np.finfo(float).eps * of_tables.scale.max())


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_the_mean_over_the_background_is_exact_to_a_few_roundings(weights):
    trees = convert(MODELS[2].fit(X, Y)).trees
    share = np.full(len(LARGE), 1.0 / len(LARGE)) if weights is None else weights / weights.sum()
    exact = math.fsum(share * margin(trees, LARGE).ravel())
    empty = prepare_trees(trees, [(j,) for j in range(5)], LARGE, weights).empty
    assert abs(empty[0] - exact) <= 4 * np.finfo(float).eps * abs(exact)
