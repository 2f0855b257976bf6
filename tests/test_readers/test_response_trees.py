"""Probabilities and rates of boosted trees, against brute force with the model's own predict_proba and predict."""

import functools
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from additive_oracle import masked_games, values_of
from exactshap import Explainer, explain, solve
from exactshap.errors import BudgetError, ExplanationWarning, UnknownNameError, UnsupportedStructureError
from exactshap.games import OracleGame
from exactshap.readers.responses import sample_orders
from exactshap.trees import convert, decisions, margin
from exactshap.trees.ensemble import Hybrids
from reader_checks import check_answers, second_class
from tolerances import RESPONSE, SINGLE_RESPONSE, assert_close, roundings
from trees_by_rule import linear_trees

RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(300, 5)), columns=list("abcde"))
SCORE = X.a * X.b + np.sin(2 * X.c) + 0.5 * X.d
CLASSES = np.where(SCORE + 0.3 * RNG.normal(size=300) > 0, "yes", "no")
THREE = np.array(["u", "v", "w"])[np.digitize(SCORE + 0.2 * RNG.normal(size=300), [-0.6, 0.6])]
COUNTS = RNG.poisson(np.exp(0.4 * SCORE)).astype(float)
ROWS, BACKGROUND = X[200:203], X[:20]
DEFAULTS = {
    "xgboost": {"n_estimators": 12, "max_depth": 3, "n_jobs": 1},
    "lightgbm": {"n_estimators": 12, "num_leaves": 7, "n_jobs": 1, "verbose": -1},
    "catboost": {"iterations": 12, "depth": 3, "thread_count": 1, "verbose": False, "allow_writing_files": False},
}


def of(library, name, **settings):
    return getattr(pytest.importorskip(library), name)(**{**DEFAULTS[library], **settings})


XGB, LGB, CAT = (partial(of, library) for library in DEFAULTS)
SKL, HIST = partial(GradientBoostingClassifier, n_estimators=12), partial(HistGradientBoostingClassifier, max_iter=12)


def numbered(labels):
    return np.unique(labels, return_inverse=True)[1]


CLASSIFIERS = {
    "xgboost": lambda: XGB("XGBClassifier"),
    "lightgbm": lambda: LGB("LGBMClassifier"),
    "lightgbm, sigmoid": lambda: LGB("LGBMClassifier", sigmoid=2.0),
    "lightgbm, dart": lambda: LGB("LGBMClassifier", boosting_type="dart"),
    "lightgbm, forest": lambda: LGB("LGBMClassifier", boosting_type="rf", subsample=0.5, subsample_freq=1),
    "lightgbm, linear": lambda: LGB("LGBMClassifier", linear_tree=True),
    "lightgbm, one against all": lambda: LGB("LGBMClassifier", objective="multiclassova"),
    "catboost": lambda: CAT("CatBoostClassifier"),
    "catboost, one against all": lambda: CAT("CatBoostClassifier", loss_function="MultiClassOneVsAll"),
    "scikit-learn": SKL,
    "scikit-learn, exponential": lambda: SKL(loss="exponential"),
    "scikit-learn, saturated": lambda: SKL(n_estimators=30, learning_rate=30.0, max_depth=2),
    "votes": lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8),
    "histograms": HIST,
    "pipeline": lambda: make_pipeline(StandardScaler(), HIST()),
}
OF_TWO, OF_THREE = ("lightgbm, sigmoid", "scikit-learn, exponential", "scikit-learn, saturated"), "one against all"
STUMPS = {
    "xgboost": lambda: XGB("XGBClassifier", max_depth=1),
    "lightgbm": lambda: LGB("LGBMClassifier", num_leaves=2),
    "catboost": lambda: CAT("CatBoostClassifier", depth=1),
    "scikit-learn": lambda: SKL(max_depth=1, loss="exponential"),
    "histograms": lambda: HIST(max_leaf_nodes=2),
}
POISSON = {"objective": "poisson"}
AFT = "SurvivalAft:dist=Normal;scale=1.0"
RATES = {  # (model, target, unit)
    "xgboost, poisson": (lambda: XGB("XGBRegressor", objective="count:poisson"), COUNTS, "target"),
    "xgboost, gamma": (lambda: XGB("XGBRegressor", objective="reg:gamma"), COUNTS + 1, "target"),
    "xgboost, tweedie": (lambda: XGB("XGBRegressor", objective="reg:tweedie"), COUNTS, "target"),
    "xgboost, logistic": (lambda: XGB("XGBRegressor", objective="reg:logistic"), numbered(CLASSES), "probability"),
    "xgboost, hazards": (lambda: XGB("XGBRegressor", objective="survival:cox"), COUNTS + 1, "hazard ratio"),
    "lightgbm, poisson": (lambda: LGB("LGBMRegressor", **POISSON), COUNTS, "target"),
    "lightgbm, linear": (lambda: LGB("LGBMRegressor", linear_tree=True, **POISSON), COUNTS, "target"),
    "lightgbm, tweedie": (lambda: LGB("LGBMRegressor", objective="tweedie"), COUNTS, "target"),
    "histograms, poisson": (lambda: HistGradientBoostingRegressor(max_iter=12, loss="poisson"), COUNTS, "target"),
    "histograms, gamma": (lambda: HistGradientBoostingRegressor(max_iter=12, loss="gamma"), COUNTS + 1, "target"),
    "catboost, poisson": (lambda: CAT("CatBoostRegressor", loss_function="Poisson"), COUNTS, None),
    "catboost, quantile": (lambda: CAT("CatBoostRegressor", loss_function="LogLinQuantile:alpha=0.4"), COUNTS, None),
    "catboost, times": (lambda: CAT("CatBoostRegressor", loss_function=AFT), np.c_[COUNTS, COUNTS] + 1, None),
}


def tolerance(name):
    return SINGLE_RESPONSE if name.startswith("xgboost") else 100 * RESPONSE  # which computes in single precision


@pytest.mark.parametrize("labels", [CLASSES, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_are_those_of_brute_force(name, labels):
    two = labels is CLASSES
    if (name in OF_TWO and not two) or (OF_THREE in name and two):
        pytest.skip("no loss for so many classes")
    model = CLASSIFIERS[name]().fit(X, numbered(labels) if name == "xgboost" else labels)
    own = second_class(model) if two else model.predict_proba
    found = check_answers(model, own, ROWS[:2], BACKGROUND[:10], tolerance(name), contract=two, output="probability")
    assert found.unit == (f"probability of class {model.classes_[1]}" if two else "probability")
    assert "enumeration" in found.method
    if name == "scikit-learn, saturated":
        assert np.abs(model.decision_function(BACKGROUND)).max() > 700


CALIBRATED = {  # by the decision function, else by the probability, of margins through a link
    **{
        name: CLASSIFIERS[name]
        for name in ("xgboost", "lightgbm, sigmoid", "catboost", "scikit-learn, exponential", "votes", "histograms")
    },
    "forest": lambda: RandomForestClassifier(5, max_depth=4, random_state=0),
    "stumps": lambda: SKL(max_depth=1),
    "pipeline": lambda: make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)),
}


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", CALIBRATED)
def test_calibrations_are_those_of_brute_force(name, method):
    model = CalibratedClassifierCV(CALIBRATED[name](), cv=2, method=method).fit(X, numbered(CLASSES))
    found = check_answers(model, second_class(model), ROWS[:2], BACKGROUND[:10], tolerance(name), contract=name == "forest")
    assert found.unit == "probability of class 1"


def test_a_calibration_of_zero_is_off_by_the_rounding_of_its_argument():
    model = CalibratedClassifierCV(CLASSIFIERS["votes"](), ensemble=False, method="isotonic").fit(X, CLASSES)
    (one,) = model.calibrated_classifiers_
    (isotonic,) = one.calibrators
    for score in one.estimator.decision_function(BACKGROUND):
        isotonic.fit([score - 1.0, score, score + 1.0], [0.0, 0.0, 1.0])
        explanation = explain(model, ROWS[:1], BACKGROUND)
        assert explanation.certificate().passed


def test_calibrated_forests_of_many_columns_are_sampled():
    rows = np.random.default_rng(0).normal(size=(300, 14))
    model = CalibratedClassifierCV(RandomForestClassifier(9, random_state=0), ensemble=False).fit(
        rows, rows[:, :6].sum(axis=1) > 0
    )
    found, exact = (explain(model, rows[:6], rows[200:220], **settings) for settings in ({}, {"budget": 2**14}))
    assert found.certificate().passed
    assert "orders of" in found.method
    moving = found.std_error > roundings(64)
    assert 0.5 < np.sqrt(np.mean(((found.values - exact.values)[moving] / found.std_error[moving]) ** 2)) < 1.6


@pytest.mark.parametrize("name", STUMPS)
def test_trees_of_one_column_each_are_exact_by_all_coalitions_or_by_expansion(name):
    few = STUMPS[name]().fit(X, numbered(CLASSES))
    found = check_answers(few, second_class(few), ROWS, BACKGROUND, tolerance(name), contract=False, output="probability")
    assert "enumeration" in found.method
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 12)))
    model = STUMPS[name]().fit(rows, numbered(rows.mean(axis=1) > 0))
    found = explain(model, rows[:2], rows[200:205], output="probability")
    own = explain(second_class(model), rows[:2], rows[200:205])
    assert found.exact
    assert own.exact
    np.testing.assert_allclose(found.values, own.values, atol=tolerance(name))
    assert "quadrature" in found.method
    assert 0.0 < found.error_bound.max() < RESPONSE


@pytest.mark.parametrize("name", RATES)
def test_rates_are_those_of_brute_force(name):
    make, target, unit = RATES[name]
    model = make().fit(X, target)
    settings = {"prediction_type": "Exponent"} if "catboost" in name else {}
    own = lambda rows: model.predict(rows, **settings)  # noqa: E731
    found = check_answers(model, own, ROWS[:2], BACKGROUND[:10], tolerance(name), output="response")
    assert unit in (None, found.unit)


@pytest.mark.parametrize(("library", "name"), [("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")])
def test_boosters_answer_as_their_estimators(library, name):
    model = of(library, name).fit(X, numbered(CLASSES))
    booster = model.get_booster() if library == "xgboost" else model.booster_
    found, expected = (explain(one, ROWS, BACKGROUND, output="probability").values for one in (booster, model))
    np.testing.assert_allclose(found, expected, atol=tolerance(library))


# -- margins of hybrids, in compiled code --------------------------------------------------------------------------------

PLAYER, EVERY = np.array([0, 1, 1, 0, 2], np.int32), np.full(15, -1, np.int32)


def three_classes(missing):
    table = X.to_numpy().copy()
    if missing:
        table[RNG.random(table.shape) < 0.2] = np.nan
    return table, convert(HistGradientBoostingClassifier(max_iter=5).fit(table, THREE)).trees


@pytest.mark.parametrize("outputs", [np.array([0, 1, 2] * 5, np.int32), EVERY], ids=["one each", "all"])
@pytest.mark.parametrize("missing", [False, True])
def test_margins_of_hybrids_are_those_of_mixed_rows(missing, outputs):
    """The reference implementation: mixed rows, routed one by one; and along orders of players."""
    table, trees = three_classes(missing)
    masks = RNG.random((300, 3)) < 0.5
    hybrids = Hybrids(trees, PLAYER, 3, table[:9], outputs)
    row = hybrids.row(table[100:101])
    np.testing.assert_array_equal(row.ways, decisions(trees, table[100:101])[:, 0])
    mixed = np.where(masks[:, None, PLAYER], table[100], table[None, :9]).reshape(-1, 5)
    own = margin(trees, mixed).reshape(300, 9, 3).transpose(1, 2, 0)
    np.testing.assert_array_equal(hybrids.margins(row, masks), own)
    players = hybrids.by_use([2, 0, 1])
    every = np.concatenate(list(hybrids.all_margins(row, players)))
    np.testing.assert_array_equal(every[:, :, masks @ 2 ** np.argsort(players)], own)
    orders = RNG.permuted(np.tile(np.arange(3, dtype=np.int32), (9, 11, 1)), axis=2)
    along = hybrids.along_orders(row, orders, [0, 1, 2])
    assert along.shape == (9, 3, 11, 4)
    for z, k, n in np.ndindex(9, 11, 4):
        own = hybrids.margins(row, orders[z, k : k + 1] < n)[z, :, 0]
        # What each player moves in each tree, instead of one sum of 15 leaves
        np.testing.assert_allclose(along[z, :, k, n], own, rtol=0, atol=roundings(60) * np.abs(trees.value).max())


@pytest.mark.parametrize("missing", [False, True])
def test_margins_of_hybrids_with_linear_leaves(missing):
    rng = np.random.default_rng(5)
    trees, table = linear_trees(6, n_outputs=2), rng.normal(size=(20, 5))
    if missing:
        table[rng.random(table.shape) < 0.2] = np.nan
    masks, output = rng.random((300, 3)) < 0.5, np.full(trees.n_trees, -1, np.int32)
    hybrids = Hybrids(trees, PLAYER, 3, table[:9], output)
    row = hybrids.row(table[10:11])
    mixed = np.where(masks[:, None, PLAYER], table[10], table[None, :9]).reshape(-1, 5)
    own = margin(trees, mixed).reshape(300, 9, 2).transpose(1, 2, 0)
    assert_close(hybrids.margins(row, masks), own, 30.0, 30)
    assert hybrids.moving(row) == [0, 1, 2]


def test_the_background_comes_in_chunks():
    trees = convert(GradientBoostingClassifier(n_estimators=4).fit(X, CLASSES)).trees
    table, masks = X.to_numpy(), RNG.random((7, 5)) < 0.5
    one, other = (Hybrids(trees, np.arange(5), 5, rows, EVERY[:4]) for rows in (table, np.concatenate([table] * 3)))
    row = one.row(table[:1])
    np.testing.assert_array_equal(np.tile(one.margins(row, masks), (3, 1, 1)), other.margins(row, masks))


# -- sampled where trees join players ------------------------------------------------------------------------------------


@functools.cache
def wide(n_columns=16):
    rng = np.random.default_rng(n_columns)
    rows = rng.normal(size=(600, n_columns))
    score = rows[:, 0] * rows[:, 1] + rows[:, 2] * (rows[:, 3] > 0) + 0.4 * rows[:, 4:].sum(axis=1)
    classes = score + rng.logistic(size=600) > 0
    return rows, HistGradientBoostingClassifier(max_iter=40, max_depth=4).fit(rows, classes)


def squared(found, exact):
    """Return the squared error of all values, relative to the exact ones."""
    return ((found.values - exact.values) ** 2).sum() / (exact.values**2).sum()


def test_sampled_values_are_close_and_say_so():
    rows, model = wide()
    exact = explain(model, rows[500:502], rows[:10], output="probability", budget=2**16)
    assert exact.exact
    sampled = explain(model, rows[500:502], rows[:10], output="probability")
    assert not sampled.exact
    assert "control variate" in sampled.method
    assert "trees join players" in sampled.method
    assert sampled.certificate().passed
    assert squared(sampled, exact) < 5e-4
    ours = explain(model, rows[500:502], rows[:10], output="probability", budget=100)
    assert ours.std_error.max() > sampled.std_error.max()
    plain = explain(second_class(model), rows[500:502], rows[:10], budget=100)
    assert squared(ours, exact) < 0.8 * squared(plain, exact)  # the score takes noise away
    assert explain(model, rows[500:501], rows[:10], output="probability", tol=1e-3).std_error.max() <= 1e-3


@pytest.mark.parametrize("name", ["XGBClassifier", "HistGradientBoostingClassifier"])
def test_ten_columns_are_exact_where_a_search_would_cost_as_much(name):
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(400, 10)), rng.random(20)
    model = XGB(name) if name == "XGBClassifier" else HistGradientBoostingClassifier(max_iter=30)
    model.fit(rows, (rows[:, 0] * rows[:, 1] + rows[:, 2:].sum(axis=1) > 0).astype(int))
    explanation = explain(model, rows[:2], rows[380:], background_weights=weights, output="probability", budget=200)
    assert explanation.exact
    assert explanation.std_error is None
    assert not explain(model, rows[:1], rows[380:], output="probability", budget=20).exact
    brute = explain(second_class(model), rows[:2], rows[380:], background_weights=weights, budget=2**10)
    atol = SINGLE_RESPONSE if name == "XGBClassifier" else RESPONSE
    np.testing.assert_allclose(explanation.values, brute.values, rtol=0, atol=atol)


@pytest.mark.parametrize(("n_background", "budget", "n_seeds"), [(10, 150, 5), (40, 168, 12)], ids=["regression", "orders"])
def test_sampled_values_are_unbiased_with_honest_errors(n_background, budget, n_seeds):
    """Squares of (value - exact) / error average 1 over seeds, rows and players; nine of ten lie within two errors."""
    rows, model = wide(13)
    settings = {"output": "probability", "background_weights": np.random.default_rng(1).random(n_background)}
    exact = explain(model, rows[500:504], rows[:n_background], budget=2**13, **settings)
    assert exact.exact
    ratios = []
    for seed in range(n_seeds):
        sampled = explain(model, rows[500:504], rows[:n_background], budget=budget, random_state=seed, **settings)
        assert sampled.certificate().passed
        ratios.append((sampled.values - exact.values) / sampled.std_error)
    assert np.ptp(ratios, axis=0).min() > 0.0  # each seed has draws of its own
    assert np.mean(np.abs(ratios) <= 2.0) > 0.9
    if n_background == 40:
        assert "14 orders of 13 players for each of 40 background rows: trees join players" in sampled.method
        assert abs(np.mean(ratios)) < 0.2
        assert 0.8 < np.mean(np.square(ratios)) < 1.25


def test_orders_of_many_classes():
    rows = np.random.default_rng(4).normal(size=(600, 13))
    classes = np.digitize(rows[:, 0] * rows[:, 1] + rows[:, 2], [-0.5, 0.5])
    model = HistGradientBoostingClassifier(max_iter=10, max_depth=3).fit(rows, classes)
    exact = explain(model, rows[500:502], rows[:40], output="probability", budget=2**13)
    sampled = explain(model, rows[500:502], rows[:40], output="probability")
    assert exact.exact
    assert "orders of 13 players for each of 40 background rows: trees join players" in sampled.method
    assert squared(sampled, exact) < 2e-4
    assert np.mean(np.abs(sampled.values - exact.values) <= 2.0 * sampled.std_error) > 0.85
    assert sampled.certificate().passed


def test_a_baseline_of_one_row_has_orders():
    (rows, model), settings = wide(13), {"output": "probability", "value_function": "baseline"}
    sampled = explain(model, rows[500:502], rows[:1], **settings)
    assert "12,288 orders of 13 players" in sampled.method
    assert squared(sampled, explain(model, rows[500:502], rows[:1], **settings, budget=2**13)) < 2e-4
    with pytest.raises(BudgetError, match="at least 2"):
        explain(model, rows[500:502], rows[:1], **settings, budget=1)


def along_of(value, n_players, n_background):
    """Return the scores along orders of a game ``value(z, masks)``."""

    def along(places):
        masks = places[:, :, None, :] < np.arange(n_players + 1)[:, None]
        return np.stack([value(z, masks[z]) for z in range(n_background)])[:, None]

    return along


def test_scores_without_interactions_have_no_slope():
    """They differ between orders by rounding, while their responses do not."""
    moves = RNG.normal(size=(3, 5))
    along = along_of(lambda z, masks: 1e3 + masks @ moves[z], 5, 3)
    exact = moves.mean(axis=0)[:, None]
    sample = sample_orders(along, lambda scores: np.exp(scores - 1e3), np.full(3, 1 / 3), exact, 20, 0)
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
    sample = sample_orders(along_of(value, 16, 10), np.tanh, np.full(10, 0.1), exact, 20, 0)
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
    sample = sample_orders(along_of(value, 14, 10), np.tanh, np.full(10, 0.1), exact, 2, 0)
    assert np.sqrt(sample.variance[-1]) > 1e-3


def test_a_tolerance_out_of_reach_is_named():
    rows, model = wide()
    # All coalitions of few columns are exact, and of the players that matter fewer than the calls that a tolerance may take
    assert explain(model, rows[500:501], rows[:2], output="probability", tol=1e-9).exact
    assert explain(model, rows[500:501], rows[:2], output="probability", tol=0.1, groups={"g": range(6)}).exact
    with pytest.warns(ExplanationWarning, match=r"not reached with 200 orders.*Largest standard error .*, tol=1e-09"):
        explain(model, rows[500:501], rows[:2], output="probability", tol=1e-9, budget=300)


@pytest.mark.parametrize("n_background", [10, 70])  # a regression, and orders
def test_rows_do_not_depend_on_others(n_background):
    rows, model = wide()
    explainers = [Explainer(model, rows[:n_background], output="probability", budget=100, n_jobs=n) for n in (2, 1)]
    together, alone = (explainer(rows[:40]) for explainer in explainers)
    np.testing.assert_array_equal(alone.values, together.values)
    for i in (0, 17, 39):
        np.testing.assert_array_equal(explainers[0](rows[i : i + 1]).values[0], together.values[i])


@pytest.mark.parametrize(("index", "order"), [("banzhaf", 1), ("k-sii", 2), ("stii", 2)])
def test_other_questions_groups_and_weights(index, order):
    model, weights = HIST().fit(X, CLASSES), np.arange(1.0, 21.0)
    explainer = Explainer(model, BACKGROUND, output="probability", groups={"ab": ["a", "b"]}, background_weights=weights)
    explanation = explainer(ROWS[:1], index=index, order=order)
    players = explainer.reader.traits.players
    own = values_of(masked_games(second_class(model), ROWS[:1], BACKGROUND, weights, players), 4, index, order)
    np.testing.assert_allclose(explanation.values if order == 1 else explanation.set_values, own, atol=100 * RESPONSE)
    assert explanation.certificate().passed


def test_models_without_probabilities():
    with pytest.raises(UnknownNameError, match="has no output 'probability'"):
        explain(GradientBoostingRegressor(n_estimators=3).fit(X, COUNTS), ROWS, BACKGROUND, output="probability")
    hinge = XGB("XGBRegressor", objective="binary:hinge").fit(X, numbered(CLASSES))
    with pytest.raises(UnsupportedStructureError, match="no known function of its score"):
        explain(hinge, ROWS, BACKGROUND, output="response")
