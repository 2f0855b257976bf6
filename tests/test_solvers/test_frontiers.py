"""Frontiers that structures name: graphs, additive models' terms, trees' paths; runs that are cut off."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest

from exactshap.errors import BudgetError, ExplanationWarning, InputError
from exactshap.games import AdditiveGame, OracleGame
from exactshap.solvers import solve
from exactshap.solvers.sampled import _regression
from exactshap.solvers.sampled._frontier import MAX_COLUMNS, check_frontier, known_sets
from tolerances import assert_regression_close

EDGES = [(0, 1), (1, 4), (2, 3)]


def linked_game(n_players=8):
    """A game of single players and of the pairs that the graph links."""
    rng = np.random.default_rng(0)
    subsets = [*((j,) for j in range(n_players)), *EDGES]
    return AdditiveGame(n_players, subsets, [rng.normal(size=2 ** len(players)) for players in subsets])


def graphs():
    adjacency = np.zeros((8, 8))
    for i, j in EDGES:
        adjacency[j, i] = 0.5  # one triangle of a weighted graph
    both = adjacency + adjacency.T
    named = SimpleNamespace(edges=[(1, 0), (4, 1), (3, 2), (2, 3)])  # an undirected edge may be listed twice
    keyed = SimpleNamespace(edges=[(*edge, {"weight": 1.0}) for edge in EDGES])
    additive = SimpleNamespace(term_features_=[*((j,) for j in range(8)), *EDGES])
    return {"lower": adjacency, "both": both, "edges": named, "keyed": keyed, "terms": additive, "sets": EDGES}


@pytest.mark.parametrize("name", graphs())
def test_structures_name_their_pairs_and_the_regression_on_them_is_exact(name):
    frontier = graphs()[name]
    assert sorted(check_frontier(known_sets(frontier, 8, 3), 8)[8:]) == EDGES
    game = linked_game()
    found = solve(
        OracleGame(game.value, 8), budget=60, random_state=0, estimator="polynomial", frontier=frontier, pairing=False
    )
    assert_regression_close(found.values, solve(game).values, found.scale)


def test_networks_of_networkx():
    networkx = pytest.importorskip("networkx")
    for graph in (networkx.Graph(EDGES), networkx.MultiDiGraph([*EDGES, (1, 0)])):
        assert sorted(check_frontier(known_sets(graph, 8, 3), 8)[8:]) == EDGES


def sets_of_paths(tree, order):
    """Every root-to-leaf path's columns, by recursion over scikit-learn's own arrays."""
    found = set()

    def descend(node, columns):
        if tree.children_left[node] < 0:
            for size in range(2, order + 1):
                found.update(itertools.combinations(sorted(columns), size))
            return
        for child in (tree.children_left[node], tree.children_right[node]):
            descend(child, columns | {int(tree.feature[node])})

    descend(0, frozenset())
    return found


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_trees_name_the_sets_on_their_paths(order, depth):
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(depth)
    X = rng.normal(size=(120, 7))
    forest = RandomForestRegressor(n_estimators=3, max_depth=depth, random_state=0).fit(X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]))
    expected = set().union(*(sets_of_paths(tree.tree_, order) for tree in forest.estimators_))
    assert set(known_sets(forest, 7, order)) == expected


def test_the_frontier_of_a_tree_determines_its_game():
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 9))
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X[:, 0] * X[:, 3] + X[:, 5])
    x, background = X[0], X[1:2]
    game = OracleGame(lambda masks: tree.predict(np.where(masks, x, background)), 9)
    found = solve(game, budget=200, random_state=0, estimator="polynomial", frontier=tree, polynomial_order=3, pairing=False)
    assert_regression_close(found.values, solve(game, method="enumeration").values, found.scale)


def test_sets_that_are_none_and_too_many_are_refused():
    for sets in ([(0, 0)], [(0, 8)], [()]):
        for frontier in (sets, SimpleNamespace(edges=sets))[: 1 + (sets != [()])]:
            with pytest.raises(InputError, match=rf"distinct players within 0\.\.7\. Got {re.escape(str(sets[0]))}"):
                check_frontier(known_sets(frontier, 8, 3), 8)
    with pytest.raises(BudgetError, match=rf"frontier of {MAX_COLUMNS + 1} terms is out of reach"):
        check_frontier(list(itertools.combinations(range(300), 2))[: MAX_COLUMNS + 1 - 300], 300)


@pytest.mark.parametrize("settings", [{}, {"estimator": "unbiased"}, {"estimator": "kernelshap"}, {"tol": 0.02}], ids=str)
@pytest.mark.parametrize("batch_size", [None, 16])
def test_runs_that_are_cut_off_resume_by_seed(settings, batch_size):
    """A function that remembers its answers, an interruption, the same seed: no coalition is computed twice, nothing differs."""
    rng = np.random.default_rng(1)
    weights, remembered, computed = rng.normal(size=14), {}, []

    def value(mask):
        return float(np.tanh(mask @ weights) + mask[0] * mask[1])

    def remembering(limit):
        def function(masks):
            for mask in masks:
                if mask.tobytes() not in remembered:
                    if len(computed) >= limit:
                        raise KeyboardInterrupt
                    computed.append(mask.tobytes())
                    remembered[mask.tobytes()] = value(mask)
            return np.array([remembered[mask.tobytes()] for mask in masks])

        return OracleGame(function, 14)

    asked = {"budget": 150, "random_state": 3, "batch_size": batch_size, **settings}
    with pytest.raises(KeyboardInterrupt):
        solve(remembering(40), **asked)
    resumed = solve(remembering(10**6), **asked)
    whole = solve(OracleGame(lambda masks: np.array([value(mask) for mask in masks]), 14), **asked)
    np.testing.assert_array_equal(resumed.values, whole.values)
    assert len(computed) == len(set(computed)) == whole.n_evaluations <= 150


def test_an_estimator_that_is_asked_for_runs_even_where_all_coalitions_fit():
    game = linked_game()
    sampled = solve(OracleGame(game.value, 8), budget=1000, estimator="kernelshap", random_state=0)
    assert "PolySHAP, order 1" in sampled.method
    assert sampled.n_evaluations == 2**8
    assert_regression_close(sampled.values, solve(game).values, sampled.scale)


def test_enumeration_calls_in_batches_and_tells():
    sizes, seen, game = [], [], linked_game()

    def function(masks):
        sizes.append(len(masks))
        return game.value(masks)

    found = solve(OracleGame(function, 8), batch_size=100, progress=seen.append)
    assert "enumeration" in found.method
    assert sizes == [100, 100, 56]
    assert seen == [100, 200, 256]
    np.testing.assert_array_equal(found.values, solve(OracleGame(game.value, 8)).values)


@pytest.mark.parametrize("estimator", ["auto", "process"])
def test_the_process_calls_no_more_than_it_can_use(estimator, monkeypatch):
    monkeypatch.setattr(_regression, "MAX_ROWS", 50)
    game = OracleGame(lambda masks: np.tanh(masks.sum(axis=1) / 7.0) + masks[:, 0] * masks[:, 1] * masks[:, 2], 14)
    with pytest.warns(
        ExplanationWarning, match=rf"'{estimator}' calls at most 100 coalitions\. Got budget=400\. Pass estimator='pol"
    ):
        found = solve(game, budget=400, estimator=estimator, random_state=0)
    assert found.n_evaluations == 100
    with pytest.warns(ExplanationWarning, match=r"tolerance was not reached within 100 calls"):
        solve(game, tol=1e-12, estimator=estimator, random_state=0)
    assert solve(game, budget=400, estimator="kernelshap", random_state=0).n_evaluations == 400
