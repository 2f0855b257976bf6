"""Probabilities and rates of boosted trees, against brute force with the model's own predict_proba and predict."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from exactshap import Explainer, explain, solve
from exactshap.errors import BudgetError, ExplanationWarning, InputError, UnknownNameError, UnsupportedStructureError
from exactshap.games import OracleGame
from exactshap.readers.responses import Orders, sample_orders
from exactshap.readers.responses._orders import _moves
from exactshap.trees import decisions, flatten, margin
from exactshap.trees.ensemble import Hybrids
from oracles import interventional_values
from tolerances import RESPONSE, SINGLE_RESPONSE, assert_close
from trees_by_rule import linear_trees

RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(300, 5)), columns=list("abcde"))
SCORE = X.a * X.b + np.sin(2 * X.c) + 0.5 * X.d
CLASSES = np.where(SCORE + 0.3 * RNG.normal(size=300) > 0, "yes", "no")
THREE = np.array(["u", "v", "w"])[np.digitize(SCORE + 0.2 * RNG.normal(size=300), [-0.6, 0.6])]
COUNTS = RNG.poisson(np.exp(0.4 * SCORE)).astype(float)
ROWS, BACKGROUND = X[200:203], X[:20]


def xgboost(name, **settings):
    return getattr(pytest.importorskip("xgboost"), name)(n_estimators=12, max_depth=3, n_jobs=1, **settings)


def lightgbm(name, **settings):
    return getattr(pytest.importorskip("lightgbm"), name)(n_estimators=12, num_leaves=7, n_jobs=1, verbose=-1, **settings)


def catboost(name, **settings):
    settings = {"iterations": 12, "depth": 3, "thread_count": 1, "verbose": False, "allow_writing_files": False, **settings}
    return getattr(pytest.importorskip("catboost"), name)(**settings)


def numbered(labels):
    return np.unique(labels, return_inverse=True)[1]


TWO_CLASSES = {
    "xgboost": lambda: xgboost("XGBClassifier").fit(X, numbered(CLASSES)),
    "lightgbm": lambda: lightgbm("LGBMClassifier").fit(X, CLASSES),
    "lightgbm, sigmoid": lambda: lightgbm("LGBMClassifier", sigmoid=2.0).fit(X, CLASSES),
    "lightgbm, dart": lambda: lightgbm("LGBMClassifier", boosting_type="dart").fit(X, CLASSES),
    "lightgbm, forest": lambda: lightgbm("LGBMClassifier", boosting_type="rf", subsample=0.5, subsample_freq=1).fit(X, CLASSES),
    "catboost": lambda: catboost("CatBoostClassifier").fit(X, CLASSES),
    "scikit-learn": lambda: GradientBoostingClassifier(n_estimators=12).fit(X, CLASSES),
    "scikit-learn, exponential": lambda: GradientBoostingClassifier(n_estimators=12, loss="exponential").fit(X, CLASSES),
    "votes": lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8).fit(X, CLASSES),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=12).fit(X, CLASSES),
    "pipeline": lambda: make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=12)).fit(X, CLASSES),
}
STUMPS = {
    "xgboost": lambda X, y: xgboost("XGBClassifier").set_params(max_depth=1).fit(X, numbered(y)),
    "lightgbm": lambda X, y: lightgbm("LGBMClassifier").set_params(num_leaves=2).fit(X, y),
    "catboost": lambda X, y: catboost("CatBoostClassifier", depth=1).fit(X, y),
    "scikit-learn": lambda X, y: GradientBoostingClassifier(n_estimators=12, max_depth=1, loss="exponential").fit(X, y),
    "histograms": lambda X, y: HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=2).fit(X, y),
}
MANY_CLASSES = {
    "xgboost": lambda: xgboost("XGBClassifier").fit(X, numbered(THREE)),
    "lightgbm": lambda: lightgbm("LGBMClassifier").fit(X, THREE),
    "lightgbm, one against all": lambda: lightgbm("LGBMClassifier", objective="multiclassova").fit(X, THREE),
    "catboost": lambda: catboost("CatBoostClassifier").fit(X, THREE),
    "catboost, one against all": lambda: catboost("CatBoostClassifier", loss_function="MultiClassOneVsAll").fit(X, THREE),
    "scikit-learn": lambda: GradientBoostingClassifier(n_estimators=12).fit(X, THREE),
    "votes": lambda: AdaBoostClassifier(n_estimators=8).fit(X, THREE),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=12).fit(X, THREE),
}
RATES = {
    "xgboost, poisson": lambda: xgboost("XGBRegressor", objective="count:poisson").fit(X, COUNTS),
    "xgboost, gamma": lambda: xgboost("XGBRegressor", objective="reg:gamma").fit(X, COUNTS + 1),
    "xgboost, tweedie": lambda: xgboost("XGBRegressor", objective="reg:tweedie").fit(X, COUNTS),
    "xgboost, logistic": lambda: xgboost("XGBRegressor", objective="reg:logistic").fit(X, numbered(CLASSES)),
    "xgboost, hazards": lambda: xgboost("XGBRegressor", objective="survival:cox").fit(X, COUNTS + 1),
    "lightgbm, poisson": lambda: lightgbm("LGBMRegressor", objective="poisson").fit(X, COUNTS),
    "lightgbm, tweedie": lambda: lightgbm("LGBMRegressor", objective="tweedie").fit(X, COUNTS),
    "histograms, poisson": lambda: HistGradientBoostingRegressor(max_iter=12, loss="poisson").fit(X, COUNTS),
    "histograms, gamma": lambda: HistGradientBoostingRegressor(max_iter=12, loss="gamma").fit(X, COUNTS + 1),
}
SINGLE = ("xgboost",)  # computed in single precision


def tolerance(name):
    return SINGLE_RESPONSE if name.startswith(SINGLE) else 100 * RESPONSE


def check(explanation, function, name):
    own = interventional_values(function, ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.values, own, atol=tolerance(name))
    np.testing.assert_allclose(explanation.prediction, function(ROWS), atol=tolerance(name))
    assert explanation.exact
    assert explanation.certificate().passed


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_probabilities_of_two_classes_are_those_of_brute_force(name):
    model = TWO_CLASSES[name]()
    explainer = Explainer(model, BACKGROUND, output="probability")
    explanation = explainer(ROWS)
    check(explanation, lambda rows: model.predict_proba(rows)[:, 1], name)
    assert explanation.unit == f"probability of class {model.classes_[1]}"
    assert "enumeration" in explanation.method
    assert explainer.verify(ROWS).passed


@pytest.mark.parametrize("name", STUMPS)
def test_trees_of_one_column_each_are_exact_by_all_coalitions_or_by_expansion(name):
    few = STUMPS[name](X, CLASSES)
    explanation = explain(few, ROWS, BACKGROUND, output="probability")
    check(explanation, lambda rows: few.predict_proba(rows)[:, 1], name)
    assert "enumeration" in explanation.method
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 12)))
    model = STUMPS[name](wide, np.where(wide.mean(axis=1) > 0, "yes", "no"))
    explanation = explain(model, wide[:2], wide[200:205], output="probability")
    own = explain(lambda rows: model.predict_proba(rows)[:, 1], wide[:2], wide[200:205])
    assert explanation.exact
    assert own.exact
    np.testing.assert_allclose(explanation.values, own.values, atol=tolerance(name))
    assert "quadrature" in explanation.method
    assert 0.0 < explanation.error_bound.max() < 1e-12


@pytest.mark.parametrize("name", MANY_CLASSES)
def test_probabilities_of_many_classes_are_those_of_brute_force(name):
    model = MANY_CLASSES[name]()
    explanation = explain(model, ROWS, BACKGROUND, output="probability")
    own = np.stack(
        [interventional_values(lambda rows, k=k: model.predict_proba(rows)[:, k], ROWS, BACKGROUND) for k in range(3)], axis=2
    )
    np.testing.assert_allclose(explanation.values, own, atol=tolerance(name))
    assert explanation.unit == "probability"
    assert len(explanation.output_names) == 3
    assert explanation.certificate().passed


@pytest.mark.parametrize("name", RATES)
def test_rates_are_those_of_brute_force(name):
    model = RATES[name]()
    explanation = explain(model, ROWS, BACKGROUND, output="response")
    check(explanation, model.predict, name)
    unit = {"xgboost, hazards": "hazard ratio", "xgboost, logistic": "probability"}.get(name, "target")
    assert explanation.unit == unit


@pytest.mark.parametrize("loss", ["Poisson", "LogLinQuantile:alpha=0.4", "SurvivalAft:dist=Normal;scale=1.0"])
def test_rates_of_catboost_are_exponents(loss):
    target = np.c_[COUNTS, COUNTS] + 1 if loss.startswith("Survival") else COUNTS
    model = catboost("CatBoostRegressor", loss_function=loss).fit(X, target)
    explanation = explain(model, ROWS, BACKGROUND, output="response")
    check(explanation, lambda rows: model.predict(rows, prediction_type="Exponent"), "catboost")


def test_boosters_answer_as_their_estimators():
    booster = lightgbm("LGBMClassifier").fit(X, CLASSES)
    of_booster = explain(booster.booster_, ROWS, BACKGROUND, output="probability")
    np.testing.assert_allclose(
        of_booster.values, explain(booster, ROWS, BACKGROUND, output="probability").values, atol=RESPONSE
    )
    model = xgboost("XGBClassifier").fit(X, numbered(CLASSES))
    of_booster = explain(model.get_booster(), ROWS, BACKGROUND, output="probability")
    np.testing.assert_allclose(
        of_booster.values, explain(model, ROWS, BACKGROUND, output="probability").values, atol=SINGLE_RESPONSE
    )


def three_classes(missing):
    table = X.to_numpy().copy()
    if missing:
        table[RNG.random(table.shape) < 0.2] = np.nan
    return table, flatten(HistGradientBoostingClassifier(max_iter=5).fit(table, THREE))


@pytest.mark.parametrize("missing", [False, True])
def test_margins_of_hybrids_are_those_of_mixed_rows(missing):
    """The reference implementation: mixed rows, routed one by one."""
    table, trees = three_classes(missing)
    player = np.array([0, 1, 1, 0, 2], np.int32)
    output = np.array([0, 1, 2] * 5, np.int32)
    masks = RNG.random((300, 3)) < 0.5
    for outputs in (output, np.full(15, -1, np.int32)):
        hybrids = Hybrids(trees, player[np.maximum(trees.feature, 0)], 3, table[:9], outputs)
        row = hybrids.row(table[100:101])
        np.testing.assert_array_equal(row.ways, decisions(trees, table[100:101])[:, 0])
        mixed = np.where(masks[:, None, player], table[100], table[None, :9]).reshape(-1, 5)
        own = margin(trees, mixed).reshape(300, 9, 3).transpose(1, 2, 0)
        np.testing.assert_array_equal(hybrids.margins(row, masks), own)
        players = hybrids.by_use([2, 0, 1])
        every = np.concatenate(list(hybrids.all_margins(row, players)))
        np.testing.assert_array_equal(every[:, :, masks @ 2 ** np.argsort(players)], own)


@pytest.mark.parametrize("missing", [False, True])
def test_margins_along_orders_are_those_of_each_coalition(missing):
    table, trees = three_classes(missing)
    player, players = np.array([0, 1, 1, 0, 2], np.int32), [0, 1, 2]
    for outputs in (np.array([0, 1, 2] * 5, np.int32), np.full(15, -1, np.int32)):
        hybrids = Hybrids(trees, player[np.maximum(trees.feature, 0)], 3, table[:9], outputs)
        row = hybrids.row(table[100:101])
        orders = RNG.permuted(np.tile(np.arange(3, dtype=np.int32), (9, 11, 1)), axis=2)
        along = hybrids.along_orders(row, orders, players)
        assert along.shape == (9, 3, 11, 4)
        for z, k, n in np.ndindex(9, 11, 4):
            own = hybrids.margins(row, orders[z, k : k + 1] < n)[z, :, 0]
            # What each player moves in each tree, instead of one sum of 15 leaves
            np.testing.assert_allclose(
                along[z, :, k, n], own, rtol=0, atol=60 * np.finfo(float).eps * np.abs(trees.value).max()
            )


@pytest.mark.parametrize("missing", [False, True])
def test_margins_of_hybrids_with_linear_leaves(missing):
    rng = np.random.default_rng(5)
    trees, table = linear_trees(6, n_outputs=2), rng.normal(size=(20, 5))
    if missing:
        table[rng.random(table.shape) < 0.2] = np.nan
    player, masks = np.array([0, 1, 1, 0, 2], np.int32), rng.random((300, 3)) < 0.5
    output = np.full(trees.n_trees, -1, np.int32)
    hybrids = Hybrids(trees, player[np.maximum(trees.feature, 0)], 3, table[:9], output, player)
    row = hybrids.row(table[10:11])
    mixed = np.where(masks[:, None, player], table[10], table[None, :9]).reshape(-1, 5)
    own = margin(trees, mixed).reshape(300, 9, 2).transpose(1, 2, 0)
    assert_close(hybrids.margins(row, masks), own, 30.0, 30)
    assert hybrids.moving(row) == [0, 1, 2]


def test_the_background_comes_in_chunks():
    trees = flatten(GradientBoostingClassifier(n_estimators=4).fit(X, CLASSES))
    table, masks = X.to_numpy(), RNG.random((7, 5)) < 0.5
    player = np.maximum(trees.feature, 0).astype(np.int32)
    one = Hybrids(trees, player, 5, table, np.full(4, -1, np.int32))
    other = Hybrids(trees, player, 5, np.concatenate([table] * 3), np.full(4, -1, np.int32))
    np.testing.assert_array_equal(
        np.tile(one.margins(one.row(table[:1]), masks), (3, 1, 1)), other.margins(one.row(table[:1]), masks)
    )


def wide(n_columns=16):
    rng = np.random.default_rng(n_columns)
    rows = rng.normal(size=(600, n_columns))
    score = rows[:, 0] * rows[:, 1] + rows[:, 2] * (rows[:, 3] > 0) + 0.4 * rows[:, 4:].sum(axis=1)
    classes = score + rng.logistic(size=600) > 0
    return rows, HistGradientBoostingClassifier(max_iter=40, max_depth=4).fit(rows, classes)


def test_sampled_values_are_close_and_say_so():
    rows, model = wide()
    exact = explain(model, rows[500:502], rows[:15], output="probability", budget=2**16)
    assert exact.exact
    sampled = explain(model, rows[500:502], rows[:15], output="probability")
    assert not sampled.exact
    assert "control variate" in sampled.method
    assert "trees join players" in sampled.method
    assert sampled.certificate().passed
    errors = ((sampled.values - exact.values) ** 2).sum(axis=1) / (exact.values**2).sum(axis=1)
    assert errors.max() < 5e-4
    few = explain(model, rows[500:502], rows[:15], output="probability", budget=64)
    assert few.std_error.max() > sampled.std_error.max()
    assert explain(model, rows[500:501], rows[:15], output="probability", tol=1e-3).std_error.max() <= 1e-3


@pytest.mark.parametrize("name", ["XGBClassifier", "HistGradientBoostingClassifier"])
def test_ten_columns_are_exact_where_a_search_would_cost_as_much(name):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(400, 10))
    classes = (rows[:, 0] * rows[:, 1] + rows[:, 2:].sum(axis=1) > 0).astype(int)
    model = xgboost(name) if name == "XGBClassifier" else HistGradientBoostingClassifier(max_iter=30)
    model.fit(rows, classes)
    weights = rng.random(20)
    explanation = explain(model, rows[:2], rows[380:], background_weights=weights, output="probability", budget=200)
    assert explanation.exact
    assert explanation.std_error is None
    assert not explain(model, rows[:1], rows[380:], output="probability", budget=20).exact
    brute = explain(
        lambda cells: model.predict_proba(cells)[:, 1], rows[:2], rows[380:], background_weights=weights, budget=2**10
    )
    np.testing.assert_allclose(explanation.values, brute.values, rtol=0, atol=1e-6 if name == "XGBClassifier" else 1e-14)


def test_standard_errors_cover():
    """Nine of ten values lie within two standard errors, over seeds and rows."""
    rows, model = wide(13)
    exact = explain(model, rows[500:506], rows[:10], output="probability", budget=2**13).values
    inside = []
    for seed in range(5):
        sampled = explain(model, rows[500:506], rows[:10], output="probability", budget=150, random_state=seed)
        inside.append(np.abs(sampled.values - exact) <= 2.0 * sampled.std_error)
    assert np.mean(inside) > 0.9


def test_orders_are_unbiased_with_honest_errors():
    """Squares of (value - exact) / error average 1 over seeds, rows and players."""
    rows, model = wide(13)
    weights = np.random.default_rng(1).random(40)
    settings = {"output": "probability", "background_weights": weights}
    exact = explain(model, rows[500:504], rows[:40], budget=2**13, **settings)
    assert exact.exact
    ratios = []
    for seed in range(12):
        sampled = explain(model, rows[500:504], rows[:40], budget=168, random_state=seed, **settings)
        assert "14 orders of 13 players for each of 40 background rows: trees join players" in sampled.method
        ratios.append((sampled.values - exact.values) / sampled.std_error)
    assert abs(np.mean(ratios)) < 0.2
    assert 0.8 < np.mean(np.square(ratios)) < 1.25
    assert np.mean(np.abs(ratios) <= 2.0) > 0.92
    assert sampled.certificate().passed


def test_orders_of_many_classes():
    rows = np.random.default_rng(4).normal(size=(600, 13))
    classes = np.digitize(rows[:, 0] * rows[:, 1] + rows[:, 2], [-0.5, 0.5])
    model = HistGradientBoostingClassifier(max_iter=10, max_depth=3).fit(rows, classes)
    exact = explain(model, rows[500:502], rows[:40], output="probability", budget=2**13)
    sampled = explain(model, rows[500:502], rows[:40], output="probability")
    assert exact.exact
    assert "orders of 13 players for each of 40 background rows: trees join players" in sampled.method
    assert ((sampled.values - exact.values) ** 2).sum() < 2e-4 * (exact.values**2).sum()
    assert np.mean(np.abs(sampled.values - exact.values) <= 2.0 * sampled.std_error) > 0.85
    assert sampled.certificate().passed


def test_a_baseline_of_one_row_has_orders():
    rows, model = wide(13)
    exact = explain(model, rows[500:502], rows[:1], output="probability", value_function="baseline", budget=2**13)
    sampled = explain(model, rows[500:502], rows[:1], output="probability", value_function="baseline")
    assert "12,288 orders of 13 players" in sampled.method
    assert ((sampled.values - exact.values) ** 2).sum() < 2e-4 * (exact.values**2).sum()


def along_of(value, n_players, n_background):
    """Return the scores along orders of a game ``value(z, masks)``."""

    def along(places):
        masks = places[:, :, None, :] < np.arange(n_players + 1)[:, None]
        return np.stack([value(z, masks[z]) for z in range(n_background)])[:, None]

    return along


def test_moves_are_the_mean_of_an_order_and_its_reverse():
    n_players, n_pairs = 6, 5
    worth = RNG.normal(size=(3, 2, 2**n_players))
    places = next(Orders(0).chunks(3, n_pairs, n_players, n_pairs))
    np.testing.assert_array_equal(np.sort(places, axis=2), np.tile(np.arange(n_players), (3, n_pairs, 1)))
    both = np.concatenate([places, n_players - 1 - places], axis=1)
    masks = both[:, :, None, :] < np.arange(n_players + 1)[:, None]
    numbers = masks @ 2 ** np.arange(n_players)
    moves = _moves(np.stack([[of_output[numbers[z]] for of_output in worth[z]] for z in range(3)]), places)
    for z, o, k, j in np.ndindex(3, 2, n_pairs, n_players):
        before = (places[z, k] < places[z, k, j]) @ 2 ** np.arange(n_players)
        behind = (places[z, k] > places[z, k, j]) @ 2 ** np.arange(n_players)
        own = worth[z, o]
        mean = 0.5 * (own[before + 2**j] - own[before] + (own[behind + 2**j] - own[behind]))
        assert moves[z, o, k, j] == mean


def test_orders_are_those_of_the_seed_for_every_row_and_every_cut():
    orders = Orders(3)
    first, again = (np.concatenate(list(orders.chunks(4, 6, 5, 6)), axis=1) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, next(Orders(3).chunks(4, 6, 5, 6)))
    assert [len(part[0]) for part in orders.chunks(4, 6, 5, 4)] == [4, 2]
    assert (next(Orders(4).chunks(4, 6, 5, 6)) != first).any()


def test_scores_without_interactions_have_no_slope():
    """They differ between orders by rounding, while their responses do not."""
    moves = RNG.normal(size=(3, 5))
    along = along_of(lambda z, masks: 1e3 + masks @ moves[z], 5, 3)
    exact = moves.mean(axis=0)[:, None]
    sample = sample_orders(along, lambda scores: np.exp(scores - 1e3), np.full(3, 1 / 3), exact, 20, Orders(0))
    assert np.abs(sample.slopes).max() < 1e-3
    rise = np.mean(np.exp(moves.sum(axis=1)) - 1.0)
    np.testing.assert_allclose(sample.values.sum() + (exact @ sample.slopes).sum(), rise, rtol=RESPONSE)


def test_a_player_that_no_order_moves_has_an_error():
    """Its exact score says that the orders missed it."""

    def value(z, masks):
        # The last player counts only after players 0 to 8 and before the others: once in 2,000,000 orders
        joined = masks[..., :9].all(axis=-1) & ~masks[..., 9:-1].any(axis=-1) & masks[..., -1]
        return 3.0 * masks[..., :3].all(axis=-1) - 2.0 * masks[..., 2:6].all(axis=-1) + masks[..., 4] + 100.0 * joined

    exact = solve(OracleGame(lambda masks: value(0, masks), 16), method="enumeration").values[:, None]
    weights = np.full(10, 0.1)
    sample = sample_orders(along_of(value, 16, 10), np.tanh, weights, exact, 20, Orders(0))
    missed = np.abs(exact[-1] @ sample.slopes)
    assert sample.values[-1] == 0.0
    assert 0.1 * missed < np.sqrt(sample.variance[-1]) <= missed


def test_orders_that_happen_to_agree_are_no_certainty():
    """One background row moves the last player, in two pairs of orders by the same amount; its values still vary."""

    def value(z, masks):
        joined = masks[..., :6].all(axis=-1) & ~masks[..., 6:12].any(axis=-1)
        own = masks[..., -1] * (1.0 + joined) if z == 3 else 0.0
        return own + 3.0 * masks[..., :3].all(axis=-1) - 2.0 * masks[..., 2:6].all(axis=-1)

    games = [partial(value, z) for z in range(10)]
    exact = np.mean([solve(OracleGame(game, 14), method="enumeration").values for game in games], axis=0)[:, None]
    sample = sample_orders(along_of(value, 14, 10), np.tanh, np.full(10, 0.1), exact, 2, Orders(0))
    moved = along_of(value, 14, 10)
    places = next(Orders(0).chunks(10, 2, 14, 2))
    moves = _moves(moved(np.concatenate([places, 13 - places], axis=1)), places)
    assert np.ptp(moves[3, 0, :, -1]) == 0.0  # as this test supposes
    assert np.sqrt(sample.variance[-1]) > 1e-3


def test_a_tolerance_out_of_reach_is_named():
    rows, model = wide()
    # All coalitions of few columns are exact, and of the players that matter fewer than the calls that a tolerance may take
    assert explain(model, rows[500:501], rows[:2], output="probability", tol=1e-9).exact
    few = explain(model, rows[500:501], rows[:2], output="probability", tol=0.1, groups={"g": range(6)})
    assert few.exact
    with pytest.warns(ExplanationWarning, match=r"not reached with 200 orders.*Largest standard error .*, tol=1e-09"):
        explain(model, rows[500:501], rows[:2], output="probability", tol=1e-9, budget=300)


def test_the_score_takes_noise_away():
    rows, model = wide()
    exact = explain(model, rows[500:504], rows[:10], output="probability", budget=2**16).values
    ours = explain(model, rows[500:504], rows[:10], output="probability", budget=100).values
    plain = explain(lambda cells: model.predict_proba(cells)[:, 1], rows[500:504], rows[:10], budget=100).values
    assert ((ours - exact) ** 2).sum() < 0.8 * ((plain - exact) ** 2).sum()


@pytest.mark.parametrize("n_background", [10, 70])  # a regression, and orders
def test_rows_do_not_depend_on_others(n_background):
    rows, model = wide()
    explainer = Explainer(model, rows[:n_background], output="probability", budget=100, n_jobs=2)
    together = explainer(rows[:40])
    alone = Explainer(model, rows[:n_background], output="probability", budget=100, n_jobs=1)(rows[:40])
    np.testing.assert_array_equal(alone.values, together.values)
    for i in (0, 17, 39):
        np.testing.assert_array_equal(explainer(rows[i : i + 1]).values[0], together.values[i])


@pytest.mark.parametrize(("index", "order"), [("banzhaf", 1), ("k-sii", 2), ("stii", 2)])
def test_other_questions_groups_and_weights(index, order):
    model, weights = TWO_CLASSES["histograms"](), np.arange(1.0, 21.0)
    explainer = Explainer(model, BACKGROUND, output="probability", groups={"ab": ["a", "b"]}, background_weights=weights)
    explanation = explainer(ROWS[:1], index=index, order=order)
    columns = [list(members) for members in explainer.reader.traits.players]

    def value(masks):
        found = []
        for mask in masks:
            mixed = BACKGROUND.copy()
            for inside, members in zip(mask, columns, strict=True):
                for j in members if inside else ():
                    mixed.iloc[:, j] = ROWS.iloc[0, j]
            found.append(np.average(model.predict_proba(mixed)[:, 1], weights=weights))
        return np.array(found)

    own = solve(OracleGame(value, 4), index, order, method="enumeration")
    got = explanation.values[0] if order == 1 else explanation.set_values[0]
    np.testing.assert_allclose(got, own.values, atol=100 * RESPONSE)
    assert explanation.certificate().passed


def test_saturated_margins():
    model = GradientBoostingClassifier(n_estimators=30, learning_rate=30.0, max_depth=2).fit(X, CLASSES)
    assert np.abs(model.decision_function(BACKGROUND)).max() > 700
    explanation = explain(model, ROWS, BACKGROUND, output="probability")
    check(explanation, lambda rows: model.predict_proba(rows)[:, 1], "scikit-learn")


def test_refusals_name_a_way():
    model = GradientBoostingClassifier(n_estimators=3).fit(X, CLASSES)
    with pytest.raises(InputError, match=r"needs reference rows.*Pass background="):
        explain(model, ROWS, output="probability")
    with pytest.raises(UnknownNameError, match="has no output 'probability'"):
        explain(GradientBoostingRegressor(n_estimators=3).fit(X, COUNTS), ROWS, BACKGROUND, output="probability")
    with pytest.raises(UnsupportedStructureError, match="no known function of its score"):
        explain(
            xgboost("XGBRegressor", objective="binary:hinge").fit(X, numbered(CLASSES)), ROWS, BACKGROUND, output="response"
        )
    with pytest.raises(UnknownNameError, match="no setting 'estimator'"):
        explain(model, ROWS, BACKGROUND, output="probability", estimator="process")
    with pytest.raises(BudgetError, match="at least 2"):
        explain(model, ROWS, BACKGROUND, output="probability", budget=1)
