"""Deep trees with known answers, and agreement with other libraries where those are right."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import trees_by_rule
from exactshap.semivalues import find
from exactshap.solvers.trees import _solve as _trees
from exactshap.solvers.trees import prepare_trees, solve_trees
from exactshap.solvers.trees._leaf_engine import LeafEngine
from exactshap.solvers.trees._path_engine import PathEngine
from exactshap.trees import build, flatten, margin
from test_solvers.trees_by_hand import random_rows, random_trees
from tolerances import CHAIN, FLOAT32_PEER, assert_close, conditioned, roundings

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


@pytest.mark.parametrize("depth", [2, 13, 50, 100, 1000])
@pytest.mark.parametrize("rising", [True, False], ids=["rising", "random"])
def test_chains_with_cover_ratios(depth, rising):
    values = np.arange(depth + 1.0) if rising else np.random.default_rng(depth).normal(size=depth + 1)
    prepared = dataclasses.replace(prepare_trees(chain(depth, values), [(j,) for j in range(depth)]), tables=None)
    solution = solve_trees(prepared, np.ones((1, depth)), SHAPLEY, 1)
    expected = chain_values(depth, values)
    assert isinstance(prepared.engines(1)[0], PathEngine)
    assert np.max(np.abs(solution.values[0] - expected)) <= CHAIN * np.abs(values).max()
    assert abs(solution.residual[0]) <= CHAIN * np.abs(values).max()
    assert solution.full[0] == values[-1] + 0.25


@pytest.mark.parametrize("depth", [50, 100, 1000])
def test_residual_of_chains_for_rows_that_leave_on_the_way(depth):
    values = np.arange(depth + 1.0) + 1.0
    prepared = prepare_trees(chain(depth, values), [(j,) for j in range(depth)])
    X = np.sign(np.random.default_rng(0).random((20, depth)) - 0.02)
    solution = solve_trees(prepared, X, SHAPLEY, 1)
    assert np.array_equal(solution.full, margin(chain(depth, values), X).ravel())
    assert np.max(np.abs(solution.residual)) <= CHAIN * np.abs(solution.full).max()


@pytest.mark.parametrize(
    ("depth", "n_background"), [*((d, 1) for d in (2, 13, 50, 100, 1000)), *((d, 1000) for d in (15, 16, 31, 32, 33, 64))]
)
def test_chains_with_a_background_row(depth, n_background):
    """The background rows fail every split: leaf k needs 0..k-1 inside and k outside, so W = (k-1)! 1! / (k+1)!.

    With many of them leaves go by patterns, at the widths of their words.
    """
    values, background = np.random.default_rng(depth).normal(size=depth + 1), -np.ones((n_background, depth))
    prepared = prepare_trees(chain(depth, values), [(j,) for j in range(depth)], background, memory_limit=0)
    solution = solve_trees(prepared, np.ones((1, depth)), SHAPLEY, 1)
    k = np.arange(depth)
    earlier = np.append(np.cumsum((values[1:depth] / (k[1:] * (k[1:] + 1.0)))[::-1])[::-1], 0.0)
    expected = earlier - values[:depth] / (k + 1) + values[depth] / depth
    assert isinstance(prepared.engines(1)[0], LeafEngine)
    assert np.max(np.abs(solution.values[0] - expected)) <= CHAIN * np.abs(values).max()
    assert abs(solution.residual[0]) <= CHAIN * np.abs(values).max()


@pytest.mark.parametrize("index", ["banzhaf", "leave-one-out", "moebius", "sii"])
def test_deep_chains_of_other_indices(index):
    """The end of a chain of ones is the product of its players: with a = 1, b = 1/2 every value has a closed form."""
    depth = 60
    values = np.zeros(depth + 1)
    values[depth] = 1.0
    solution = solve_trees(
        prepare_trees(chain(depth, values), [(j,) for j in range(depth)]), np.ones((1, depth)), find(index), 1
    )
    expected = {
        "banzhaf": 0.75 ** (depth - 1) / 2,
        "leave-one-out": 0.5,
        "moebius": 0.5**depth,
        "sii": float(_integral(depth - 1, 0) / 2),
    }[index]
    assert np.max(np.abs(solution.values[0] - expected)) <= CHAIN * expected


def test_pairs_of_deep_chains():
    depth = 40
    values = np.zeros(depth + 1)
    values[depth] = 1.0
    trees = chain(depth, values)
    solution = solve_trees(prepare_trees(trees, [(j,) for j in range(depth)]), np.ones((1, depth)), find("sii"), 2)
    assert np.max(np.abs(solution.values[0, depth:] - float(_integral(depth - 2, 0) / 4))) <= CHAIN
    reference = prepare_trees(trees, [(j,) for j in range(depth)], -np.ones((1, depth)), memory_limit=0)
    solution = solve_trees(reference, np.ones((1, depth)), find("sii"), 2)
    assert np.max(np.abs(solution.values[0, depth:] - 1.0 / (depth - 1))) <= CHAIN


def test_fewer_nodes_than_exact_stay_within_the_reported_bound():
    depth = 200
    values = np.random.default_rng(0).normal(size=depth + 1)
    solution = solve_trees(prepare_trees(chain(depth, values), [(j,) for j in range(depth)]), np.ones((1, depth)), SHAPLEY, 1)
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


@pytest.mark.parametrize("index", ["sii", "k-sii", "stii", "fsii"])
@pytest.mark.parametrize("depth", [6, 11])
def test_pairs_by_walks_are_those_of_single_leaves(index, depth):
    trees = random_trees(depth, n_features=14, depth=depth)
    deep = prepare_trees(trees, [(j,) for j in range(14)]).deep
    columns = np.ascontiguousarray(random_rows(5, 40, 14).T)
    walked = deep.solve(columns, find(index), 2)
    question = deep.question(find(index), 2)
    leaf_by_leaf = np.zeros((question.offsets[3], 1, 40))
    for of_size in question.sizes:
        deep._sweep_sets(columns, of_size, question, leaf_by_leaf)
    assert all(of_size.is_inside for of_size in question.sizes)
    assert_close(walked.values, leaf_by_leaf.transpose(2, 0, 1), walked.scale.max(), n_terms=2**depth, n_players=14)


@pytest.mark.peer
@pytest.mark.parametrize("depth", [2, 5, 8])
def test_shap_agrees(depth):
    """With cover ratios, with a background, and of pairs, which shap halves."""
    from sklearn.ensemble import GradientBoostingRegressor

    shap, X = pytest.importorskip("shap"), np.random.default_rng(0).normal(size=(400, 8))
    y, players = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3], [(j,) for j in range(8)]
    model = GradientBoostingRegressor(max_depth=depth, n_estimators=10, random_state=0).fit(X, y)
    prepared, peer = prepare_trees(flatten(model), players), shap.TreeExplainer(model)
    for engine in (prepared, dataclasses.replace(prepared, tables=None)):
        values = solve_trees(engine, X[:20], SHAPLEY, 1).values
        assert np.max(np.abs(values - peer.shap_values(X[:20]))) < conditioned(1e5)
    if depth < 8:
        values = solve_trees(prepare_trees(flatten(model), players, X[:50]), X[50:70], SHAPLEY, 1).values
        other = shap.TreeExplainer(model, X[:50], feature_perturbation="interventional").shap_values(X[50:70])
        assert np.max(np.abs(values - other)) < FLOAT32_PEER
        solution, pairs = solve_trees(prepared, X[:10], find("sii"), 2), peer.shap_interaction_values(X[:10])
        for s, (i, j) in enumerate(solution.sets[8:], start=8):
            assert np.max(np.abs(solution.values[:, s] - 2 * pairs[:, i, j])) < conditioned(1e5)


@pytest.mark.parametrize("n_rows", [1, 40])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n_path", [8, 9])
def test_single_players_beside_pairs_have_the_bits_of_their_own_walk(n_rows, n_outputs, n_path):
    trees = random_trees(7, n_features=n_path, depth=11, n_outputs=n_outputs)
    deep = prepare_trees(trees, [(j,) for j in range(n_path)]).deep
    assert deep.shape.n_path_players == n_path  # odd and even: pairs need a node less, or as many
    columns = np.ascontiguousarray(random_rows(6, n_rows, n_path).T)
    beside, alone = deep.solve(columns, find("sii"), 2), deep.solve(columns, SHAPLEY, 1)
    assert deep.question(find("sii"), 2).is_one_rule
    assert np.array_equal(beside.values[:, :n_path], alone.values)
    assert np.array_equal(beside.scale, alone.scale)
