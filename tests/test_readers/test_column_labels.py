"""Columns that are named by whole numbers, tuples or anything else: taken, and shown as text."""

import warnings

import numpy as np
import pytest

from exactshap import Explainer, Explanation, decompose_hsic, decompose_mmd, decompose_r2, explain
from exactshap.errors import InputError, UnknownNameError

pd = pytest.importorskip("pandas")
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: E402
from sklearn.svm import SVR  # noqa: E402

from tolerances import exact  # noqa: E402

ROUNDING = exact(10.0, n_terms=1000, n_players=4)
RNG = np.random.default_rng(2)
ARRAY = RNG.normal(size=(120, 4))
Y = ARRAY[:, 0] * ARRAY[:, 1] + ARRAY[:, 2]
LABELS = {
    "numbers": (pd.RangeIndex(4), ("0", "1", "2", "3")),
    "tuples": (
        pd.MultiIndex.from_product([["sepal", "petal"], ["length", "width"]]),
        ("sepal length", "sepal width", "petal length", "petal width"),
    ),
    "floats": (pd.Index([0.5, 1.5, 2.5, 3.5]), ("0.5", "1.5", "2.5", "3.5")),
    "dates": (
        pd.date_range("2024-01-01", periods=4, freq="MS"),
        tuple(f"2024-{month:02d}-01 00:00:00" for month in range(1, 5)),
    ),
}


def booster(library, name, **settings):
    return lambda: getattr(pytest.importorskip(library), name)(n_estimators=5, **settings)


MODELS = {
    "SVR": SVR,
    "forest": lambda: RandomForestRegressor(5, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingRegressor(max_iter=5),
    "linear": Ridge,
    "scaler": lambda: make_pipeline(StandardScaler(), SVR()),
    "XGBoost": booster("xgboost", "XGBRegressor"),
    "LightGBM": booster("lightgbm", "LGBMRegressor", verbose=-1),
    "function": None,
}


def frame(labels, array=ARRAY):
    return pd.DataFrame(array, columns=LABELS[labels][0])


# LightGBM itself refuses tuples and dates
PAIRS = [(name, labels) for k, name in enumerate(MODELS) for labels in (list(LABELS) * 2)[k % 4 : k % 4 + 2]]
PAIRS = [pair for pair in PAIRS if pair[0] != "LightGBM" or pair[1] in ("numbers", "floats")]


@pytest.mark.parametrize(("name", "labels"), PAIRS)
def test_values_are_those_of_the_array(name, labels):
    X, make = frame(labels), MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = (SVR() if make is None else make()).fit(X, Y)
        explained = (lambda rows: model.predict(rows)) if make is None else model
        expected = explain((SVR() if make is None else make()).fit(ARRAY, Y), ARRAY[:3], ARRAY[20:30])
        found = Explainer(explained, X[20:30])(X[:3])
    assert found.certificate().passed
    np.testing.assert_allclose(found.values, expected.values, atol=ROUNDING)
    names = LABELS[labels][1]
    if name != "LightGBM":  # which writes white space as underscores
        assert found.feature_names == names
    assert list(found.to_frame().columns) == list(found.feature_names)
    assert found.data is not None


@pytest.mark.parametrize(
    ("library", "name", "settings"),
    [
        ("catboost", "CatBoostRegressor", {"iterations": 5, "verbose": 0, "allow_writing_files": False}),
        ("interpret.glassbox", "ExplainableBoostingRegressor", {"max_rounds": 20}),
    ],
    ids=["CatBoost", "EBM"],
)
def test_tuples_that_a_library_writes_in_its_own_way(library, name, settings):
    make, X = getattr(pytest.importorskip(library), name), frame("tuples")
    expected = explain(make(**settings).fit(ARRAY, Y), ARRAY[:3], ARRAY[20:30])
    model = make(**settings).fit(X, Y)
    explainer = Explainer(model, X[20:30])
    np.testing.assert_allclose(explainer(X[:3]).values, expected.values, atol=ROUNDING)
    assert explainer(X[:3]).feature_names[0] == "('sepal', 'length')"
    grouped = Explainer(model, X[20:30], groups={"sepal": list(X.columns[:2])})
    assert grouped(X[:3]).feature_names[0] == "sepal"
    with pytest.raises(UnknownNameError, match="Feature names must be in the same order"):
        explainer(X.iloc[:3, [1, 0, 2, 3]])


def test_results_groups_and_files_speak_of_them_as_text(tmp_path):
    pytest.importorskip("shap")
    X, names = frame("tuples"), LABELS["tuples"][1]
    model = SVR().fit(X, Y)
    found = explain(model, X[:5], X[20:30], groups={"pair": list(names[:2])})
    assert found.feature_names == ("pair", *names[2:])
    by_label = explain(model, X[:5], X[20:30], groups={"pair": list(X.columns[:2])})
    np.testing.assert_array_equal(by_label.values, found.values)
    assert found.to_shap().data.shape == (5, 3)
    found.plot.waterfall(0)
    found.plot.scatter(names[3])
    found.report(tmp_path / "page.html")
    found.save(tmp_path / "file.npz")
    np.testing.assert_array_equal(Explanation.load(tmp_path / "file.npz").values, found.values)
    assert found.by(names[2]).to_frame() is not None


def encoded():
    return make_pipeline(make_column_transformer((OneHotEncoder(), [1]), remainder="passthrough"), SVR())


@pytest.mark.parametrize("make", [encoded, booster("lightgbm", "LGBMRegressor", min_child_samples=5, verbose=-1)])
def test_categories_of_numbered_columns(make):
    X = pd.DataFrame({0: ARRAY[:, 0], 1: pd.Categorical(RNG.choice(["a", "b", "c"], 120)), 2: RNG.integers(0, 9, 120)})
    model = make().fit(X, Y)
    found, by_call = (explain(one, X[:3], X[20:30]) for one in (model, lambda rows: model.predict(rows)))
    np.testing.assert_allclose(found.values, by_call.values, atol=ROUNDING)
    assert found.feature_names == by_call.feature_names == ("0", "1", "2")


def test_decompositions_take_them():
    X, model = frame("numbers"), RandomForestRegressor(5, random_state=0).fit(ARRAY, Y)
    assert decompose_mmd(X[:60], X[60:]).feature_names == LABELS["numbers"][1]
    assert decompose_hsic(X, Y).feature_names == LABELS["numbers"][1]
    np.testing.assert_allclose(decompose_r2(model, X, Y).values, decompose_r2(model, ARRAY, Y).values, atol=ROUNDING)


def test_labels_that_are_one_text_are_refused():
    with pytest.raises(InputError, match="must be unique"):
        explain(lambda rows: rows.sum(axis=1), *[pd.DataFrame([[1.0, 2.0]], columns=[1, "1"])] * 2)
