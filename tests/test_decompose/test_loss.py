"""Skill scores of boosted trees under any loss, against all coalitions of all columns with an own walk through the trees."""

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)

from exactshap.decompose import decompose_loss
from exactshap.decompose.r2._loss import loss_form
from exactshap.errors import ExactnessError, InputError, UnknownNameError, UnsupportedStructureError
from exactshap.trees import convert
from oracles import shapley_of
from tolerances import CUBIC, roundings
from tolerances import INVERTED as CLOSE
from trees_by_rule import mean_below

LOSS = {
    "log_loss": lambda y, m: -np.log(1 / (1 + np.exp(-m))) if y else -np.log(1 / (1 + np.exp(m))),
    "brier": lambda y, m: (y - 1 / (1 + np.exp(-m))) ** 2,
    "poisson": lambda y, m: np.exp(m) - y * m,
    "gamma": lambda y, m: y * np.exp(-m) + m,
    "tweedie": lambda y, m: 2 * y * np.exp(-m / 2) + 2 * np.exp(m / 2),
    "pinball": lambda y, m: 0.3 * (y - m) if y > m else 0.7 * (m - y),
}
SETTINGS = {"pinball": {"level": 0.3}, "tweedie": {"power": 1.5}}


def data(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)


def by_definition(model, X, y, loss, weights):
    trees, d = convert(model).trees, X.shape[1]
    shares = np.zeros(d)
    for i, x in enumerate(X):
        met = trees.constant[0]
        for root in trees.tree_start[:-1]:
            shares += weights[i] * shapley_of(
                lambda S, x=x, y=y[i], met=met, root=root: LOSS[loss](y, met + mean_below(trees, root, x, S)[0]), d
            )
            met += mean_below(trees, root, x, range(d))[0]
    return shares


def fitted(loss):
    X, score = data()
    if loss in ("log_loss", "brier"):
        y = (score > 0).astype(int)
        return GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=0).fit(X, y), X, y
    if loss == "pinball":
        return GradientBoostingRegressor(loss="quantile", alpha=0.3, n_estimators=4, random_state=0).fit(X, score), X, score
    y = np.random.default_rng(1).poisson(np.exp(score)) + (0.5 if loss == "gamma" else 0)
    kind = "poisson" if loss == "tweedie" else loss
    return HistGradientBoostingRegressor(loss=kind, max_iter=4, max_depth=3, min_samples_leaf=3).fit(X, y), X, y


def null_loss(loss, y, weights):
    if loss == "pinball":
        return min(sum(w * LOSS[loss](one, constant) for w, one in zip(weights, y, strict=True)) for constant in y)
    mean = np.average(y, weights=weights)
    margin = np.log(mean / (1 - mean)) if loss in ("log_loss", "brier") else np.log(mean)
    best = sum(w * LOSS[loss](one, margin) for w, one in zip(weights, y, strict=True))
    if loss == "poisson":
        return best - sum(w * (one - (one * np.log(one) if one else 0)) for w, one in zip(weights, y, strict=True))
    if loss == "tweedie":
        return best - np.sum(weights * 4 * np.sqrt(y))
    return best - (np.sum(weights * (1 + np.log(y))) if loss == "gamma" else 0.0)


@pytest.mark.parametrize("loss", LOSS)
def test_tables_are_the_definition_and_parabolas_within_their_bound(loss):
    model, X, y = fitted(loss)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    expected = -by_definition(model, X, y, loss, weights) / null_loss(loss, y, weights)
    settings = {"loss": loss, "sample_weight": weights, **SETTINGS.get(loss, {})}
    shares = decompose_loss(model, X, y, method="tables", **settings)
    np.testing.assert_allclose(shares.values, expected, atol=CLOSE)
    assert shares.error_bound == 0.0
    near = decompose_loss(model, X, y, method="parabolas", **settings)
    assert 0.0 < np.abs(near.values - expected).max() <= near.error_bound
    assert near.error_bound < 0.5


@pytest.mark.parametrize("loss", LOSS)
def test_the_total_is_that_of_scikit_learn(loss):
    from sklearn import metrics

    model, X, y = fitted(loss)
    total = decompose_loss(model, X, y, loss=loss, **SETTINGS.get(loss, {})).total
    if loss == "log_loss":
        rate = np.full((len(y), 2), [1 - y.mean(), y.mean()])
        assert np.isclose(total, 1 - metrics.log_loss(y, model.predict_proba(X)) / metrics.log_loss(y, rate))
    elif loss == "brier":
        p = model.predict_proba(X)[:, 1]
        assert np.isclose(total, 1 - metrics.brier_score_loss(y, p) / (y.mean() * (1 - y.mean())))
    elif loss == "pinball":
        best = min(metrics.mean_pinball_loss(y, np.full(len(y), constant), alpha=0.3) for constant in y)
        assert np.isclose(total, 1 - metrics.mean_pinball_loss(y, model.predict(X), alpha=0.3) / best)
    else:
        power = {"poisson": 1, "tweedie": 1.5, "gamma": 2}[loss]
        assert np.isclose(total, metrics.d2_tweedie_score(y, model.predict(X), power=power))


@pytest.mark.parametrize(("low", "high"), [(-0.4, 0.3), (-1.3, 0.9)])
@pytest.mark.parametrize("loss", LOSS)
def test_no_parabola_is_off_by_more_than_its_bound(loss, low, high):
    """Against a fine grid, and the parabola that numpy puts through the same three points."""
    settings = SETTINGS.get(loss, {})
    form = loss_form(loss, settings.get("level"), settings.get("power"))
    y = np.linspace(-2.0, 2.0, 81) if loss == "pinball" else np.array([1.0 if loss == "gamma" else 0.0, 1.0])
    middle, half, grid = (low + high) / 2, (high - low) / 2, np.linspace(low, high, 4001)
    points = middle + half * np.cos(np.pi * np.array([1, 3, 5]) / 6)
    for one, bound in zip(y, form.missed(y, np.full_like(y, low), np.full_like(y, high)), strict=True):
        parabola = np.polynomial.Polynomial.fit(points, form.value(np.full(3, one), points), 2)
        off = np.abs(form.value(np.full(4001, one), grid) - parabola(grid)).max()
        assert off <= bound + roundings(50)
        if loss == "pinball":
            assert bound <= off + (high - low) / 4000  # the grid may miss the kink by half a step


def test_shares_add_up_and_idle_columns_get_nothing():
    X, score = data(200, 6)
    X[:, 5] = 1.0
    model = GradientBoostingClassifier(n_estimators=30, max_depth=4, random_state=0).fit(X, score > 0)
    for method in ("tables", "parabolas"):
        shares = decompose_loss(model, X, score > 0, method=method)
        assert shares.values[5] == 0.0
        assert np.isclose(shares.values.sum(), shares.total + shares.drift)
        assert abs(shares.residual) <= shares.tolerance
    grouped = decompose_loss(model, X, score > 0, groups={"pair": [1, 2]})
    assert grouped.feature_names == ("x0", "pair", "x3", "x4", "x5")
    assert np.isclose(grouped.values.sum(), shares.total + grouped.drift)


def test_a_fourth_of_the_leaves_is_a_64th_of_the_bound():
    """Cubic: leaves scaled by the learning rate."""
    X, score = data(100)
    bounds = []
    for rate in (0.2, 0.05):
        model = GradientBoostingClassifier(n_estimators=1, max_depth=3, learning_rate=rate, random_state=0).fit(X, score > 0)
        bounds.append(decompose_loss(model, X, score > 0, method="parabolas").error_bound)
    assert np.isclose(bounds[0] / bounds[1], 64.0, rtol=CUBIC)


@pytest.mark.parametrize(("library", "name"), [("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")])
def test_boosters_of_other_libraries(library, name):
    module = pytest.importorskip(library)
    X, score = data(200)
    settings = {"verbose": -1} if library == "lightgbm" else {}
    model = getattr(module, name)(n_estimators=10, max_depth=3, n_jobs=1, **settings).fit(X, (score > 0).astype(int))
    shares = decompose_loss(model, X, (score > 0).astype(int))
    assert 0.1 < shares.total < 1.0
    assert abs(shares.residual) <= shares.tolerance


def booster(X, y):
    return GradientBoostingClassifier(n_estimators=2).fit(X, y)


def binary(X, y):
    return booster(X, y > 0)


REFUSED = [  # model of rows and scores, target of scores, settings
    (GradientBoostingRegressor(n_estimators=2).fit, None, {}, UnsupportedStructureError, "decompose_r2"),
    (lambda X, y: RandomForestClassifier(3).fit(X, y > 0), np.sign, {}, UnsupportedStructureError, "decompose_r2"),
    (lambda X, y: booster(X, np.digitize(y, [-1, 1])), None, {}, UnsupportedStructureError, "each class"),
    (binary, np.ones_like, {}, InputError, "vary"),
    (binary, np.signbit, {"loss": "poisson"}, InputError, "log_loss"),
    (binary, np.signbit, {"loss": "logloss"}, UnknownNameError, "log_loss"),
    (binary, np.signbit, {"method": "table"}, UnknownNameError, "tables"),
    (GradientBoostingRegressor().fit, None, {"loss": "pinball", "level": 1.0}, InputError, r"`level` must be .* in \(0, 1\)"),
    (GradientBoostingRegressor().fit, None, {"loss": "pinball", "power": 1.2}, InputError, "`power` belongs to loss='tweedie'"),
    (
        lambda X, y: HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(X, y**2),
        lambda y: -(y**2),
        {},
        InputError,
        "0 or more",
    ),
]


@pytest.mark.parametrize(("make", "target", "settings", "error", "text"), REFUSED)
def test_refusals_name_the_route(make, target, settings, error, text):
    X, y = data()
    with pytest.raises(error, match=text):
        decompose_loss(make(X, y), X, y if target is None else target(y), **settings)


def test_a_classifier_that_predicts_something_else_is_caught(monkeypatch):
    X, y = data()
    model = GradientBoostingClassifier(n_estimators=2).fit(X, y > 0)
    monkeypatch.setattr(type(model), "predict_proba", lambda self, X: np.full((len(X), 2), 0.5))
    with pytest.raises(ExactnessError, match=r"do not add up to its own prediction\. Row"):
        decompose_loss(model, X, y > 0)


@pytest.mark.parametrize(("objective", "loss"), [("Logloss", "log_loss"), ("Poisson", "poisson")])
def test_a_plain_catboost_is_certified_by_its_response(objective, loss):
    catboost = pytest.importorskip("catboost")
    X, y = data(n=60)
    target, settings = (
        (y > 0).astype(int),
        {"iterations": 5, "depth": 3, "loss_function": objective, "allow_writing_files": False},
    )
    estimator = catboost.CatBoostClassifier if loss == "log_loss" else catboost.CatBoostRegressor
    models = catboost.CatBoost(settings), estimator(**settings)
    found = [decompose_loss(model.fit(X, target, verbose=False), X, target, loss=loss).values for model in models]
    np.testing.assert_array_equal(*found)
