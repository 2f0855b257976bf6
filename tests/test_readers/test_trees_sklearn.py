"""scikit-learn's trees: margins value by value, games by brute force, refusals."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from exactshap import Explainer, explain
from exactshap.errors import BudgetError, InputError, UnknownNameError, UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.testing import check_reader
from exactshap.trees import convert
from tolerances import CHAIN, assert_close, roundings
from tree_models import check_path_dependent, data

X, HOLES, Y = data()
BINARY, TERNARY = (Y > 0.5).astype(int), np.digitize(Y, [0.0, 1.0])
SMALL = {"max_depth": 4, "random_state": 0}

MODELS = {
    "tree": DecisionTreeRegressor(**SMALL).fit(HOLES, Y),
    "tree of one leaf": DecisionTreeRegressor(max_depth=1, min_samples_leaf=100).fit(HOLES, Y),
    "best-first tree": DecisionTreeRegressor(max_leaf_nodes=6, random_state=0).fit(HOLES, Y),
    "random tree": ExtraTreeRegressor(**SMALL).fit(HOLES, Y),
    "weighted tree": DecisionTreeRegressor(**SMALL).fit(HOLES, Y, sample_weight=np.arange(len(Y)) % 4),
    "binary tree": DecisionTreeClassifier(**SMALL).fit(HOLES, BINARY),
    "forest": RandomForestRegressor(4, **SMALL).fit(HOLES, Y),
    "forest of two targets": RandomForestRegressor(3, **SMALL).fit(HOLES, np.c_[Y, Y**2]),
    "extra trees": ExtraTreesRegressor(4, **SMALL).fit(HOLES, Y),
    "binary forest": RandomForestClassifier(4, **SMALL).fit(HOLES, BINARY),
    "weighted forest": RandomForestClassifier(4, class_weight="balanced", **SMALL).fit(HOLES, BINARY),
    "forest of two labels": RandomForestClassifier(3, **SMALL).fit(HOLES, np.c_[BINARY, TERNARY]),
    "ternary extra trees": ExtraTreesClassifier(4, **SMALL).fit(HOLES, np.array(["low", "mid", "top"])[TERNARY]),
}
BOOSTED = {
    "boosting": GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, Y),
    "boosting from zero": GradientBoostingRegressor(n_estimators=3, init="zero", subsample=0.5, random_state=0).fit(X, Y),
    "boosting of medians": GradientBoostingRegressor(n_estimators=3, loss="absolute_error", learning_rate=0.3).fit(X, Y),
    "binary boosting": GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, BINARY),
    "ternary boosting": GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, TERNARY),
    "isolation forest": IsolationForest(n_estimators=5, random_state=0).fit(X),
    "isolation forest of few columns": IsolationForest(n_estimators=5, max_features=0.6, max_samples=20, random_state=0).fit(X),
}
ALL = {**{name: (model, HOLES) for name, model in MODELS.items()}, **{name: (model, X) for name, model in BOOSTED.items()}}


def own(model, rows):
    if hasattr(model, "decision_function") and not isinstance(model, IsolationForest):
        return model.decision_function(rows)
    if not hasattr(model, "predict_proba"):
        return model.predict(rows)
    shares = model.predict_proba(rows)
    return np.concatenate(shares, axis=1) if isinstance(shares, list) else shares


@pytest.mark.parametrize("name", [name for name in ALL if "isolation" not in name])
def test_margins(name):
    model, rows = ALL[name]
    margin = own(model, rows)
    assert_close(convert(model).predict(rows), margin, np.abs(margin).max(), 100)


@pytest.mark.parametrize("name", ["isolation forest", "isolation forest of few columns"])
def test_isolation_forests_give_the_path_length(name):
    """The mean depth is counted from the decision paths; the score follows from it by the published formula."""
    model, rows = ALL[name]
    length = np.zeros(len(rows))
    for tree, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        path = tree.tree_.decision_path(rows[:, columns].astype(np.float32))
        reached = tree.tree_.n_node_samples[tree.tree_.apply(rows[:, columns].astype(np.float32))]
        unseen = [0.0 if n == 1 else 1.0 if n == 2 else 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n for n in reached]
        length += np.asarray(path.sum(axis=1)).ravel() - 1.0 + unseen
    length /= len(model.estimators_)
    ensemble = convert(model)
    assert_close(ensemble.predict(rows), length, 20.0, 10)
    assert ensemble.unit == "average path length"
    n = model.max_samples_
    normal = 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n
    np.testing.assert_allclose(model.score_samples(rows), -(2.0 ** (-length / normal)), rtol=roundings(500))


@pytest.mark.parametrize("name", ALL)
def test_games_and_values(name):
    model, rows = ALL[name]
    check_reader(model, rows[:6], rows[20:32])
    check_reader(model, rows[:6], n_masks=2)


@pytest.mark.parametrize("name", ["tree", "weighted tree", "extra trees", "boosting", "isolation forest"])
def test_path_dependent_values_by_brute_force(name):
    model, rows = ALL[name]
    check_path_dependent(model, rows[:2])


def test_ties_and_single_precision():
    """A row exactly at a threshold goes left; rows are rounded to float32 before, as the trees themselves do."""
    model = MODELS["tree"]
    tree = model.tree_
    q = np.flatnonzero((tree.feature >= 0) & np.isfinite(tree.threshold))  # a split on missingness alone has none
    rows = np.resize(np.nan_to_num(HOLES), (3 * len(q), 5))
    for k, node in enumerate(q):
        theta = tree.threshold[node]
        rows[3 * k : 3 * k + 3, tree.feature[node]] = [
            theta,
            np.nextafter(theta, np.inf),
            np.nextafter(np.float32(theta), np.float32(9)),
        ]
    np.testing.assert_array_equal(convert(model).predict(rows), model.predict(rows))


def test_stages_and_initial_margin():
    ensemble = convert(BOOSTED["ternary boosting"])
    assert ensemble.tree_output.tolist() == [0, 1, 2] * 3
    assert ensemble.tree_stage.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert ensemble.boosted
    np.testing.assert_allclose(convert(BOOSTED["boosting"]).trees.constant, [Y.mean()], rtol=roundings(50))
    assert convert(BOOSTED["boosting from zero"]).trees.constant.tolist() == [0.0]
    assert not convert(MODELS["forest"]).boosted


def test_outputs_of_classifiers():
    model = MODELS["binary forest"]
    auto, both = Explainer(model)(HOLES[:4]), Explainer(model, output="all")(HOLES[:4])
    assert auto.values.shape == (4, 5)
    assert both.values.shape == (4, 5, 2)
    np.testing.assert_array_equal(both.values[..., 1], auto.values)
    np.testing.assert_array_equal(Explainer(model, output=1)(HOLES[:4]).values, auto.values)
    assert_close(Explainer(model, output="0")(HOLES[:4]).values, -auto.values, 1.0, 10, 5)
    assert (auto.unit, both.unit) == ("probability of class 1", "probability")
    ternary = Explainer(MODELS["ternary extra trees"])(HOLES[:4])
    assert ternary.output_names == ("low", "mid", "top")
    top = Explainer(MODELS["ternary extra trees"], output="top")(HOLES[:4])
    np.testing.assert_array_equal(top.values, ternary.values[..., 2])
    with pytest.raises(UnknownNameError, match=r"has no output 'tip'. Did you mean 'top'\?"):
        Explainer(MODELS["ternary extra trees"], output="tip")
    with pytest.raises(InputError, match=r"ExtraTreesClassifier has 3 outputs. Got output=3"):
        Explainer(MODELS["ternary extra trees"], output=3)


def test_deep_chains():
    """A tree of depth 99: sums hold to 1e-12 where recursive algorithms lose every digit."""
    x = np.arange(100.0)
    rows = np.c_[x, -x, x % 7]
    model = DecisionTreeRegressor(max_features=1, splitter="random", random_state=0).fit(rows, x + np.sin(x))
    chained = DecisionTreeRegressor(criterion="squared_error").fit(rows, 4.0 ** np.minimum(x, 500))
    assert chained.get_depth() > 40
    for fitted in (model, chained):
        explanation = explain(fitted, rows)
        scale = np.abs(fitted.tree_.value).max()
        total = explanation.baseline + explanation.values.sum(axis=1)
        assert np.abs(total - fitted.predict(rows)).max() <= CHAIN * scale


@pytest.mark.parametrize(
    ("model", "error", "text"),
    [
        (RandomTreesEmbedding(n_estimators=2).fit(X), UnsupportedStructureError, "RandomTreesEmbedding has no prediction"),
        (
            GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X, Y),
            UnsupportedStructureError,
            "starts from another model, init=LinearRegression",
        ),
        (IsolationForest(n_estimators=2, max_samples=1).fit(X), UnsupportedStructureError, "max_samples_=1"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_refusals(model, error, text):
    with pytest.raises(error, match=text):
        Explainer(model, X[:3])


def test_dummy_initial_models_are_constants():
    model = GradientBoostingRegressor(n_estimators=2, init=DummyRegressor(strategy="median")).fit(X, Y)
    np.testing.assert_allclose(convert(model).trees.constant, [np.median(Y)])
    check_reader(model, X[:3], X[5:9])


def test_what_the_model_refuses_is_refused():
    explainer = Explainer(BOOSTED["boosting"])
    with pytest.raises(ValueError, match="contains NaN"):
        explainer(HOLES[:9])
    with pytest.raises(ValueError, match="infinity"):
        Explainer(MODELS["forest"])(np.full((1, 5), np.inf))
    with pytest.raises(ValueError, match="contains NaN"):
        Explainer(BOOSTED["boosting"], HOLES[:9])
    with pytest.raises(UnknownNameError, match="has no setting 'eta'"):
        Explainer(MODELS["forest"], eta=1.0)
    with pytest.raises(UnknownNameError, match="has no value function 'functional'"):
        Explainer(MODELS["forest"], value_function="functional")
    with pytest.raises(InputError, match="X has 3 features, but DecisionTreeRegressor is expecting 5"):
        Explainer(MODELS["tree"])(HOLES[:2, :3])


def test_a_changed_model_is_noticed(monkeypatch):
    """The certificate compares with the model's own prediction: a class that predicts otherwise does not pass."""
    own = RandomForestRegressor.predict
    monkeypatch.setattr(RandomForestRegressor, "predict", lambda self, X: 2.0 * own(self, X))
    model = RandomForestRegressor(3, **SMALL).fit(X, Y)
    with pytest.raises(ArithmeticError, match=r"were not read as the library reads them.*Background row"):
        Explainer(model, X[:5])
    with pytest.raises(ArithmeticError, match="Values do not add up"):
        Explainer(model)(X[:5])


def test_explicit_games_are_bounded():
    reader = Explainer(MODELS["forest"], HOLES[:20]).reader
    rows = as_table(np.tile(HOLES[:2], (2_000_000, 1)))
    with pytest.raises(BudgetError, match=r"\d+ leaves x 5 players x 4000020 rows would need .* GiB. Use fewer rows"):
        reader.game(rows)
