"""Values of players in nested groups and stages, against an average over all orders that keep to them."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from exactshap import Explainer, decompose_mmd, explain, solve
from exactshap.errors import BudgetError, InputError, InputTypeError, UnknownNameError, UnsupportedStructureError
from exactshap.games import AdditiveGame, OracleGame, ProductGame
from exactshap.semivalues import asymmetric, find, owen
from exactshap.solvers import choose
from oracles import table_of
from tolerances import assert_close

STRUCTURES = {
    "owen": (owen({"x": [0, 3], "y": [1, 4, 5]}), ("any", 2, ("any", 0, 3), ("any", 1, 4, 5))),
    "winter": (
        owen({"x": {"p": [4], "q": [0, 1]}, "y": [2, 5]}),
        ("any", ("any", ("any", 4), ("any", 0, 1)), ("any", 2, 5), 3),
    ),
    "asymmetric": (asymmetric([[2, 5], 0, [1, 3, 4]]), ("all", ("any", 2, 5), 0, ("any", 1, 3, 4))),
    "groups in a stage": (
        asymmetric([3, {"x": [0, 1], "y": [2]}, [4, 5]]),
        ("all", 3, ("any", ("any", 0, 1), ("any", 2)), ("any", 4, 5)),
    ),
}


def orders(tree):
    """All orders of arrival that do not break up a branch, written from the words of the definition."""
    if isinstance(tree, int):
        yield (tree,)
        return
    kind, *members = tree
    for arrangement in itertools.permutations(members) if kind == "any" else [members]:
        for parts in itertools.product(*(list(orders(member)) for member in arrangement)):
            yield tuple(itertools.chain.from_iterable(parts))


def mean_over_orders(game, tree):
    v, totals, found = table_of(game), [Fraction(0)] * game.n_players, list(orders(tree))
    for order in found:
        before = frozenset()
        for j in order:
            totals[j] += v[before | {j}] - v[before]
            before = before | {j}
    return np.array([float(total / len(found)) for total in totals])


def games():
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(4, 6)), rng.normal(size=(3, 4, 6)), rng.normal(size=4)
    a[0, 2] = b[:, 0, 2] = 0.0
    product = ProductGame(c, a, b, weights=[1.0, 2.0, 5.0], constant=0.5)
    subsets = [(0,), (3, 0), (1, 2, 5), (4, 0, 3, 2)]
    additive = AdditiveGame(6, subsets, [rng.normal(size=2 ** len(s)) for s in subsets], constant=-1.0)
    return {"product": product, "additive": additive, "oracle": OracleGame(product.value, 6)}


@pytest.mark.parametrize("kind", ["product", "additive", "oracle"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_values_are_the_mean_over_the_orders(kind, name):
    game, (hierarchy, tree) = games()[kind], STRUCTURES[name]
    solution = solve(game, hierarchy)
    assert_close(solution.values, mean_over_orders(game, tree), scale=solution.scale, n_terms=64, n_players=6)
    assert abs(solution.residual) <= 1e-13 * solution.scale
    assert (solution.n_evaluations == 0) == (kind != "oracle")


@pytest.mark.parametrize("kind", ["product", "additive"])
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out"])
def test_fast_forms_agree_with_the_coalitions_admitted(kind, semivalue):
    game, hierarchy = games()[kind], owen({"x": {"p": [4], "q": [0, 1]}, "y": [2, 5]}, semivalue)
    fast, slow = solve(game, hierarchy), solve(game, hierarchy, method="enumeration")
    assert_close(fast.values, slow.values, scale=slow.scale, n_terms=64, n_players=6)
    assert (fast.residual is None) == (semivalue != "shapley")


def test_one_group_and_no_groups_are_the_plain_value():
    game = games()["product"]
    plain = solve(game, "shapley")
    for groups in ({"one": [0]}, {"all": range(6)}, {"all": {"also all": range(6)}}):
        assert_close(solve(game, owen(groups)).values, plain.values, scale=plain.scale, n_terms=12, n_players=6)


def test_many_players_in_many_rows_and_outputs():
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(0.9, 1.1, (3, 7, 60)), rng.uniform(0.9, 1.1, (5, 7, 60)), rng.normal(size=(7, 2))
    game = ProductGame(c, a, b)
    groups = {f"g{k}": {f"h{m}": range(20 * k + 5 * m, 20 * k + 5 * m + 5) for m in range(4)} for k in range(3)}
    solution = solve(game, owen(groups))
    assert solution.values.shape == (3, 60, 2)
    assert np.abs(solution.residual).max() <= 1e-12 * solution.scale.max()
    alone = solve(ProductGame(c, a[1], b), owen(groups))
    assert np.array_equal(alone.values, solution.values[1])


def test_explanations_of_models_by_name():
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler
    from sklearn.svm import SVR

    data = load_diabetes(as_frame=True)
    X, y = data.data.iloc[:80], data.target.iloc[:80]
    nested = owen({"body": ["bmi", "bp"], "blood": {"fats": ["s1", "s2", "s3"], "rest": ["s4", "s5", "s6"]}})
    causes = asymmetric([["age", "sex"], "bmi", {"blood": ["s1", "s2", "s3", "s4", "s5", "s6"], "pressure": ["bp"]}])
    models = [
        SVR(C=10.0),
        GradientBoostingRegressor(max_depth=3, n_estimators=10),
        make_pipeline(StandardScaler(), SVR()),
        make_pipeline(PolynomialFeatures(2), LinearRegression()),
    ]
    for model in models:
        explainer = Explainer(model.fit(X, y), X[:9])
        for index in (nested, causes):
            explanation = explainer(X[:12], index=index)
            assert explanation.index == index.name
            assert explanation.certificate().passed
            game = explainer.reader.game(explainer._checked(X[:2]))
            slow = solve(game, index.among(list(X)), method="enumeration")
            assert_close(explanation.values[:2], slow.values, scale=slow.scale.max(), n_terms=9000, n_players=10)
    assert "exact" in str(explainer.plan(X[:3], index=nested))
    tree = models[1]
    path = explain(tree, X[:3], index=nested)
    assert path.value_function == "path_dependent"
    assert path.certificate().passed


def test_functions_are_called_on_the_coalitions_that_are_admitted():
    calls = []

    def function(rows):
        calls.append(len(rows))
        return np.tanh(np.asarray(rows) @ np.linspace(-1.0, 1.0, 16))

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 16))
    nested = owen({"left": {"a": range(4), "b": range(4, 8)}, "right": {"c": range(8, 12), "d": range(12, 16)}})
    explanation = Explainer(function, X[1:])(X[:1], index=nested)
    assert explanation.exact
    assert explanation.certificate().passed
    assert sum(calls) < 2 * 2**10  # two background rows; all coalitions were 2^17


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: owen([0, 1]), InputTypeError, "must map names to players"),
        (lambda: owen({"x": []}), InputError, "'x' has no players"),
        (lambda: owen({"x": 1.5}), InputTypeError, None),
        (lambda: asymmetric({"x": [0]}), InputTypeError, "must be a sequence"),
        (lambda: find("owen"), UnknownNameError, "needs the groups"),
        (lambda: find("asymmetric"), UnknownNameError, "needs the order"),
        (lambda: solve(games()["product"], owen({"x": [0, 0]})), InputError, "twice"),
        (lambda: solve(games()["product"], owen({"x": [0, 9]})), InputError, "no player 9"),
        (lambda: solve(games()["product"], owen({"x": ["bmi"]})), UnknownNameError, "called 'bmi'"),
        (lambda: solve(games()["product"], asymmetric([0, 1])), InputError, "no place in the order"),
        (lambda: solve(games()["product"], owen({"x": [0]}), order=2), UnsupportedStructureError, "single players"),
        (lambda: choose(games()["product"], owen({"x": [0]})), UnsupportedStructureError, "not a semivalue"),
        (lambda: decompose_mmd(np.eye(4), np.ones((4, 4)), index=owen({"x": [0]})), UnsupportedStructureError, "a semivalue"),
        (lambda: solve(games()["product"], owen({"x": [0]}), method="regression"), InputError, "methods of its own"),
        (lambda: solve(OracleGame(lambda m: m.sum(1), 40), owen({"x": range(20)})), BudgetError, "Nest the groups"),
        (lambda: solve(OracleGame(lambda m: m.sum(1), 14), owen({"x": range(7)}), budget=100), BudgetError, "budget="),
    ],
)
def test_refusals_name_the_route(make, error, text):
    with pytest.raises(error, match=text):
        make()
