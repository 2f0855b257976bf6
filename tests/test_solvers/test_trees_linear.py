"""Linear leaves: values against all coalitions of the ensemble's own margins, by tables and by patterns, at any width."""

import itertools

import numpy as np
import pytest

from exactshap import Explainer
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.games import OracleGame
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.trees import prepare_trees, solve_trees
from exactshap.trees import LeafFunction, RawTree, TreeModel, build, margin
from tolerances import assert_close
from trees_by_rule import linear_trees

ALONE = tuple((j,) for j in range(5))
JOINED = ((0, 3), (1,), (2, 4))
GAP_FREE, GAPS = False, True


def rows(seed, n_rows, n_features=5, gaps=GAP_FREE):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    return np.where(rng.random(X.shape) < 0.15, np.nan, X) if gaps else X


def by_margins(trees, players, x, background, weights, index="shapley", order=1):
    """Values of v(S), the mean margin of the background with the columns of S from a row, of all coalitions."""

    def value(masks):
        inside = [[j for player in np.flatnonzero(mask) for j in players[player]] for mask in masks]
        hybrids = [np.where(np.isin(np.arange(len(x)), columns), x, background) for columns in inside]
        return np.array([weights @ margin(trees, rows) for rows in hybrids])

    return solve(OracleGame(value, len(players)), index, order, method="enumeration").values


def solved(trees, players, X, background, weights, index="shapley", order=1, limit=2.0**30):
    prepared = prepare_trees(trees, players, background, weights, memory_limit=limit)
    return solve_trees(prepared, X, find(index), order)


@pytest.mark.parametrize("limit", [2.0**30, 0.0], ids=["tables", "patterns"])
@pytest.mark.parametrize("players", [ALONE, JOINED], ids=["alone", "joined"])
@pytest.mark.parametrize(("gaps_in_row", "gaps_behind"), list(itertools.product([GAP_FREE, GAPS], repeat=2)))
def test_shapley_values_of_all_coalitions(limit, players, gaps_in_row, gaps_behind):
    trees, background, X = linear_trees(1), rows(2, 12, gaps=gaps_behind), rows(3, 4, gaps=gaps_in_row)
    weights = np.random.default_rng(4).dirichlet(np.ones(12))
    values = solved(trees, players, X, background, weights, limit=limit).values
    for x, row in zip(X, values, strict=True):
        assert_close(row, by_margins(trees, players, x, background, weights), 40.0, 100, len(players))


@pytest.mark.parametrize("limit", [2.0**30, 0.0], ids=["tables", "patterns"])
@pytest.mark.parametrize(
    ("index", "order"), [("banzhaf", 1), ("sii", 2), ("sii", 3), ("stii", 2), ("moebius", 3), ("banzhaf-interaction", 2)]
)
def test_indices_of_any_order(limit, index, order):
    trees, background, x = linear_trees(5), rows(6, 9, gaps=GAPS), rows(7, 1, gaps=GAPS)
    weights = np.full(9, 1.0 / 9.0)
    values = solved(trees, ALONE, x, background, weights, index, order, limit).values[0]
    assert_close(values, by_margins(trees, ALONE, x[0], background, weights, index, order), 300.0, 100, 5)


def test_the_forecast_of_several_outputs_names_each_way_once():
    leaf, functions = np.array([-1]), {0: LeafFunction([0, 1], [1.0, 2.0])}
    raw = RawTree(leaf, np.zeros(1), leaf, leaf, np.ones((1, 3)), functions=functions)
    trees = build([raw], n_features=5, constant=np.zeros(3), less_equal=True, single_precision=False)
    ways = prepare_trees(trees, ALONE, rows(8, 9)).cost(10, 1, 1).method.split("; ")
    assert ways.count("linear leaves") == 1
    assert len(ways) == 2


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("gaps", [GAP_FREE, GAPS])
def test_tables_patterns_and_some_of_both_agree(gaps, order):
    """As many tables as fit: the smallest groups first; the others pattern by pattern."""
    trees, background, X = linear_trees(30, n_trees=12, depth=6), rows(31, 30, gaps=gaps), rows(32, 70, gaps=gaps)
    by_patterns = solved(trees, ALONE, X, background, None, "k-sii", order, 0.0)
    for limit in (2.0**30, 2.0**17, 2.0**14):
        prepared = prepare_trees(trees, ALONE, background, memory_limit=limit)
        tabled, others = prepared.linear.engines[0]._split(order)
        assert (len(tabled.root) > 0, len(others.leaves.node) > 0) == (True, limit < 2.0**30)
        by_tables = solve_trees(prepared, X, find("k-sii"), order)
        assert_close(by_tables.values, by_patterns.values, 300.0, 400, 5)
        np.testing.assert_allclose(by_tables.scale, by_patterns.scale, rtol=400 * np.finfo(float).eps)


def test_outputs_each_have_their_functions():
    trees, background, X = linear_trees(8, n_outputs=3), rows(9, 10), rows(10, 3)
    weights = np.full(10, 0.1)
    solution = solved(trees, ALONE, X, background, weights)
    assert solution.values.shape == (3, 5, 3)
    assert_close(solution.values[1], by_margins(trees, ALONE, X[1], background, weights), 40.0, 100, 5)
    assert_close(solution.residual, np.zeros((3, 3)), 40.0, 100, 5)


def test_rows_are_routed_once_for_all_outputs(monkeypatch):
    trees, background, X = linear_trees(8, n_outputs=3), rows(9, 10), rows(10, 3)
    alone = [solved(trees.pick(output), ALONE, X, background, None).values for output in range(3)]
    monkeypatch.delattr("exactshap.solvers.trees._linear_engine.apply")
    np.testing.assert_array_equal(solved(trees, ALONE, X, background, None).values, np.stack(alone, axis=2))


@pytest.mark.parametrize("n_background", [1, 3, 50])
def test_a_row_has_the_same_bits_in_every_batch(n_background):
    trees, background, X = linear_trees(11, n_trees=6), rows(12, n_background), rows(13, 600, gaps=GAPS)
    prepared = prepare_trees(trees, ALONE, background)
    whole = solve_trees(prepared, X, find("shapley"), 1)
    for part in (slice(0, 1), slice(255, 258), slice(300, 600)):
        some = solve_trees(prepared, X[part], find("shapley"), 1)
        assert (some.values == whole.values[part]).all()
        assert (some.scale == whole.scale[part]).all()
    assert_close(whole.residual, np.zeros(600), 60.0, 200, 5)


def test_the_scale_bounds_what_is_added_up():
    trees, background, X = linear_trees(14), rows(15, 20), rows(16, 30)
    solution = solved(trees, ALONE, X, background, None)
    assert (solution.scale + np.abs(trees.constant) >= np.abs(solution.full)).all()
    assert (np.abs(solution.values).max(axis=1) <= 2.0 * solution.scale).all()


def wide_trees(n_columns):
    """A stump whose leaves multiply all columns."""
    rng = np.random.default_rng(17)
    functions = {leaf: LeafFunction(np.arange(n_columns), rng.normal(size=n_columns), 0.3) for leaf in (1, 2)}
    stump = RawTree(
        np.array([0, -1, -1]),
        np.zeros(3),
        np.array([1, -1, -1]),
        np.array([2, -1, -1]),
        np.array([0.0, 1.0, -2.0]),
        functions=functions,
    )
    return build([stump], n_features=n_columns, constant=np.ones(1), less_equal=True, single_precision=False)


@pytest.mark.parametrize("n_columns", [12, 13, 40, 90])
def test_leaves_of_many_columns(n_columns):
    """Beyond 12 players without tables, beyond 64 without bits off the path; the product game is the reference."""
    trees, background, X = wide_trees(n_columns), rows(18, 7, n_columns), rows(19, 3, n_columns)
    model = TreeModel(trees, "mine", "wide", "target", ("output",), True, np.full(1, -1, np.int32), np.zeros(1, np.int32))
    explainer = Explainer(model, background)
    reference = solve(explainer.reader.game(as_table(X)))
    assert_close(explainer(X).values, reference.values, 4.0 * n_columns, n_columns, n_columns)


def test_what_leaves_of_very_many_columns_refuse():
    trees, background, X = wide_trees(90), rows(18, 7, 90), rows(19, 3, 90)
    prepared = prepare_trees(trees, tuple((j,) for j in range(90)), background)
    X[1, 50] = np.nan
    with pytest.raises(UnsupportedStructureError, match=r"joins more than 64 players.* First column 50"):
        solve_trees(prepared, X, find("shapley"), 1)
    with pytest.raises(UnsupportedStructureError, match="Interactions of linear leaves that join more than 64 players"):
        solve_trees(prepared, X[:1], find("sii"), 2)
    by_groups = prepare_trees(trees, (tuple(range(45)), tuple(range(45, 90))), background)  # the way out
    assert solve_trees(by_groups, X, find("sii"), 2).values.shape == (3, 3)


def test_refusals():
    trees, background, X = linear_trees(20), rows(21, 5), rows(22, 2)
    with pytest.raises(UnsupportedStructureError, match="cover ratios do not say what an absent column's value is"):
        prepare_trees(trees, ALONE)
    column = int(trees.linear.columns[0])
    X[1, column] = -np.inf
    with pytest.raises(InputError, match=rf"`X` holds an infinite value that leaves multiply \(row 1, column {column}\)"):
        solve_trees(prepare_trees(trees, ALONE, background), X, find("shapley"), 1)
    with pytest.raises(InputError, match="`background` holds an infinite value"):
        prepare_trees(trees, ALONE, X)
