"""Deep trees with known answers, agreement with other libraries where those are right, and large backgrounds."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import trees_by_rule
from exactshap import Explainer
from exactshap.semivalues import find
from exactshap.solvers.trees import _solve as _trees
from exactshap.solvers.trees import prepare_trees, solve_trees
from exactshap.solvers.trees._leaf_engine import LeafEngine
from exactshap.solvers.trees._path_engine import PathEngine
from exactshap.trees import build, convert, margin
from test_solvers.trees_by_hand import random_rows
from tolerances import CHAIN, assert_close, roundings

SHAPLEY = find("shapley")


def chain(depth, values):
    """Split k, on column k, sends x <= 0 to a leaf of ``values[k]`` and the rest down; covers halve."""
    raw = trees_by_rule.chain(depth, depth, np.append(np.zeros(depth), values))
    cover = 2.0 ** (depth - 1.0 - np.append(np.arange(depth), depth - 1) - (500 if depth >= 1000 else 0))
    raw = dataclasses.replace(raw, threshold=np.zeros(2 * depth + 1), cover=np.append(np.zeros(depth), cover))
    return build([raw], n_features=depth, constant=[0.25], less_equal=True, single_precision=False)


def _integral(n, power):
    r"""Return int_0^1 ((1 + t) / 2)^n ((1 - t) / 2)^power dt for power 0 or 1, exactly (u = (1 + t) / 2)."""
    half = Fraction(1, 2)
    first = 2 * (1 - half ** (n + 1)) / (n + 1)
    return first if power == 0 else first - 2 * (1 - half ** (n + 2)) / (n + 2)


def chain_values(depth, values):
    """Shapley values of a row that goes to the end, with cover ratios, in rational numbers."""
    values = [Fraction(float(v)) for v in values]
    half = Fraction(1, 2)
    inner = [values[k] * half * _integral(k - 1, 1) if k else Fraction(0) for k in range(depth)]
    last = values[depth] * half * _integral(depth - 1, 0)
    phi, below = [], Fraction(0)
    for k in range(depth - 1, -1, -1):
        phi.append(last + below - values[k] * half * _integral(k, 0))
        below += inner[k]
    return np.array([float(v) for v in phi[::-1]])


def solved(depth, values, rows=None, background=None, index="shapley", order=1):
    """Return what was prepared for a chain, and its solution without tables; by default of a row that goes to the end."""
    players = [(j,) for j in range(depth)]
    prepared = prepare_trees(chain(depth, values), players, background, memory_limit=2.0**30 if background is None else 0.0)
    prepared = dataclasses.replace(prepared, tables=None)
    return prepared, solve_trees(prepared, np.ones((1, depth)) if rows is None else rows, find(index), order)


@pytest.mark.parametrize("depth", [2, 13, 50, 100, 1000])
@pytest.mark.parametrize("rising", [True, False], ids=["rising", "random"])
def test_chains_with_cover_ratios(depth, rising):
    """A row that goes to the end, and rows that leave on the way."""
    values = np.arange(depth + 1.0) if rising else np.random.default_rng(depth).normal(size=depth + 1)
    X = np.sign(np.random.default_rng(0).random((20, depth)) - 0.02)
    X[0] = 1.0
    prepared, solution = solved(depth, values, X)
    assert type(prepared.engines(1)[0]) is PathEngine
    assert np.max(np.abs(solution.values[0] - chain_values(depth, values))) <= CHAIN * np.abs(values).max()
    assert np.array_equal(solution.full, margin(prepared.trees, X).ravel())
    assert solution.full[0] == values[-1] + 0.25
    assert np.max(np.abs(solution.residual)) <= CHAIN * np.abs(values).max()


@pytest.mark.parametrize(
    ("depth", "n_background"), [*((d, 1) for d in (2, 13, 50, 100, 1000)), *((d, 1000) for d in (15, 16, 31, 32, 33, 64))]
)
def test_chains_with_a_background_row(depth, n_background):
    """The background rows fail every split: leaf k needs 0..k-1 inside and k outside, so W = (k-1)! 1! / (k+1)!.

    With many of them leaves go by patterns, at the widths of their words.
    """
    values, background = np.random.default_rng(depth).normal(size=depth + 1), -np.ones((n_background, depth))
    prepared, solution = solved(depth, values, background=background)
    k = np.arange(depth)
    earlier = np.append(np.cumsum((values[1:depth] / (k[1:] * (k[1:] + 1.0)))[::-1])[::-1], 0.0)
    expected = earlier - values[:depth] / (k + 1) + values[depth] / depth
    assert type(prepared.engines(1)[0]) is LeafEngine
    assert np.max(np.abs(solution.values[0] - expected)) <= CHAIN * np.abs(values).max()
    assert abs(solution.residual[0]) <= CHAIN * np.abs(values).max()


@pytest.mark.parametrize(
    ("index", "order", "background", "expected"),
    [
        ("banzhaf", 1, None, 0.75**39 / 2),
        ("leave-one-out", 1, None, 0.5),
        ("moebius", 1, None, 0.5**40),
        ("sii", 1, None, float(_integral(39, 0) / 2)),
        ("sii", 2, None, float(_integral(38, 0) / 4)),
        ("sii", 2, -np.ones((1, 40)), 1.0 / 39),
    ],
)
def test_the_end_of_a_chain_of_ones_is_the_product_of_its_players(index, order, background, expected):
    """With a = 1 and b = 1/2, or 0 with a background, every value has a closed form."""
    values = np.append(np.zeros(40), 1.0)
    found = solved(40, values, background=background, index=index, order=order)[1].values[0, 40 * (order - 1) :]
    assert np.max(np.abs(found - expected)) <= CHAIN * (expected if order == 1 else 1.0)


def test_fewer_nodes_than_exact_stay_within_the_reported_bound():
    solution = solved(200, np.random.default_rng(0).normal(size=201))[1]
    assert 0 < solution.error_bound[0] < roundings(50) * solution.scale[0]
    assert "(4" in solution.method  # about 45 nodes, not 100


def test_paths_of_sixteen_players_leave_the_tables(monkeypatch):
    monkeypatch.setattr(_trees, "choose_trees", lambda tables, *_, **__: tables.fits)
    X = random_rows(5, 6, 40)
    for depth, is_tables in ((15, True), (16, False)):
        trees = chain(depth, np.ones(depth + 1))
        background = random_rows(6, 3, depth)
        prepared = prepare_trees(trees, [(j,) for j in range(depth)], np.repeat(background, 1000, axis=0))
        assert (prepared.tables is not None) == is_tables
        solution = solve_trees(prepared, X[:, :depth], SHAPLEY, 1)
        assert_close(solution.residual, np.zeros(6), solution.scale, n_terms=3000, n_players=depth)


# --- rounding does not grow with the background: sums over its rows are counts, or pairwise ---------------------------


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
