"""What decompose_r2 refuses, in which words, and ``exactshap r2``."""

import numpy as np
import pytest

from command import run
from exactshap.decompose import decompose_r2
from exactshap.errors import (
    BudgetError,
    ExactnessError,
    ExplanationWarning,
    InputError,
    UnknownNameError,
    UnsupportedModelError,
    UnsupportedStructureError,
)
from tolerances import conditioned

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60)


@pytest.fixture(scope="module")
def model():
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=0).fit(X, Y)


def with_value(values, i, new):
    out = np.array(values, float)
    out[i] = new
    return out


def test_models_around_trees_and_arguments_in_the_wrong_order_are_answered_with_the_route(model):
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    piped = make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=3)).fit(X, Y)
    with pytest.raises(
        UnsupportedModelError, match=r"Pass its last step, and rows that went through the others: model\[-1\] and"
    ):
        decompose_r2(piped, X, Y)
    assert decompose_r2(piped[-1], piped[:-1].transform(X), Y).values.shape == (3,)
    with pytest.raises(UnsupportedModelError, match="Pass the model first, then the rows"):
        decompose_r2(X, Y, model)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"y": Y[:50]}, InputError, r"inconsistent numbers of samples: X has 60, `y` has 50"),
        ({"y": with_value(Y, 7, np.nan)}, InputError, r"`y` contains NaN \(first at row 7\)"),
        ({"y": with_value(Y, 8, np.inf)}, InputError, r"`y` contains infinity \(first at row 8\)"),
        ({"y": np.full(60, 1.1)}, InputError, r"`y` does not vary"),
        ({"y": np.column_stack([Y, Y])}, InputError, r"`y` must have shape \(n_rows,\)"),
        ({"y": np.array(["a"] * 60)}, InputError, r"`y` must be numeric"),
        ({"y": np.arange(60).astype("M8[D]")}, InputError, r"`y` must be numeric\. Got dtype datetime64"),
        ({"y": 1e200 * np.arange(60)}, InputError, r"squares of `y` overflow"),
        ({"y": Y + 1j}, InputError, r"Complex data not supported"),
        ({"X": X[:, :2]}, InputError, r"X has 2 features, but GradientBoostingRegressor is expecting 3"),
        ({"X": X[0]}, InputError, r"Expected 2D array"),
        ({"X": X[:0], "y": Y[:0]}, InputError, r"0 sample"),
        ({"sample_weight": np.ones(59)}, InputError, r"`sample_weight` has 59"),
        ({"sample_weight": np.ones((60, 1))}, InputError, r"`sample_weight` must have shape"),
        ({"sample_weight": with_value(np.ones(60), 3, -1.0)}, InputError, r"must not be negative"),
        ({"sample_weight": np.zeros(60)}, InputError, r"must not all be zero"),
        ({"sample_weight": with_value(np.ones(60), 3, np.nan)}, InputError, r"`sample_weight` contains NaN \(first at row 3\)"),
        ({"game": "residuals"}, UnknownNameError, r"Unknown game 'residuals'. Did you mean 'residual'"),
        ({"background": X}, InputError, r"has one value function.* Got a background. Leave background="),
        ({"value_function": "baseline"}, InputError, r"Got value_function='baseline'"),
        ({"groups": {"g": ["no"]}}, UnknownNameError, r"unknown column 'no'"),
        ({"memory_limit": 1e6}, BudgetError, r"does not fit. It would need 0.0\d+ GiB; the limit is 0.0009\d+ GiB"),
    ],
)
def test_bad_input_is_named(model, arguments, error, text):
    settings = {"X": X, "y": Y} | arguments
    with pytest.raises(error, match=text):
        decompose_r2(model, **settings)


def test_columns_in_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    from sklearn.tree import DecisionTreeRegressor

    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    tree = DecisionTreeRegressor(max_depth=2).fit(frame, Y)
    with pytest.raises(UnknownNameError, match="same order"):
        decompose_r2(tree, frame[["b", "a", "c"]], Y)


def refused_models():
    from sklearn import ensemble, tree
    from sklearn.model_selection import GridSearchCV

    labels = (Y > 0).astype(int)
    three = np.digitize(Y, [-0.5, 0.5])
    yield object(), UnsupportedModelError, "No tree converter"
    search = GridSearchCV(tree.DecisionTreeRegressor(max_depth=2), {}, cv=2)
    yield search.fit(X, Y), UnsupportedModelError, r"Pass the model that the search has fitted: model.best_estimator_"
    yield ensemble.GradientBoostingClassifier(n_estimators=2).fit(X, labels), UnsupportedStructureError, "log-odds"
    yield ensemble.RandomForestClassifier(2).fit(X, three), UnsupportedStructureError, "3 outputs"
    yield tree.DecisionTreeRegressor(max_depth=2).fit(X, np.column_stack([Y, Y])), UnsupportedStructureError, "2 outputs"
    yield ensemble.IsolationForest(n_estimators=2).fit(X), UnsupportedStructureError, "path length"
    count = ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(X, labels)
    yield count, UnsupportedStructureError, "log of the target"
    named = tree.DecisionTreeClassifier(max_depth=2).fit(X, np.where(Y > 0, "yes", "no"))
    yield named, InputError, r"not fitted with, at row 0. Got [01]; the classes are \['no', 'yes'\]"


@pytest.mark.parametrize(("refused", "error", "text"), list(refused_models()))
def test_models_without_an_r2_are_refused_with_the_reason(refused, error, text):
    with pytest.raises(error, match=text):
        decompose_r2(refused, X, (Y > 0).astype(int))


def test_a_model_that_predicts_something_else_is_caught(model, monkeypatch):
    monkeypatch.setattr(type(model), "predict", lambda self, X: np.zeros(len(X)))
    with pytest.raises(ExactnessError, match=r"do not add up to its own prediction\. Row"):
        decompose_r2(model, X, Y)


def test_a_long_run_is_announced_and_a_hopeless_one_refused(model, monkeypatch):
    monkeypatch.setattr("exactshap.decompose.r2._input.WARN_SECONDS", 0.0)
    with pytest.warns(
        ExplanationWarning, match=r"'ensemble' game of GradientBoostingRegressor is forecast to take .* s on one core"
    ):
        decompose_r2(model, X, Y, game="ensemble")
    monkeypatch.setattr("exactshap.decompose.r2._input.REFUSE_SECONDS", 0.0)
    with pytest.raises(BudgetError, match="More than a day"):
        decompose_r2(model, X, Y)


def test_the_forecast_is_of_the_right_size():
    from sklearn.ensemble import GradientBoostingRegressor

    rng = np.random.default_rng(0)
    wide = rng.normal(size=(2000, 30))
    target = wide @ rng.normal(size=30)
    model = GradientBoostingRegressor(n_estimators=30, max_depth=6, max_features=5, random_state=0).fit(wide, target)
    seconds = decompose_r2(model, wide, target).details["forecast_seconds"]
    assert 0.003 < seconds < 3.0
    assert decompose_r2(model, wide[:200], target[:200]).details["forecast_seconds"] < seconds


@pytest.mark.peer
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_agrees_with_qshap_on_its_own_ground(depth):
    qshap = pytest.importorskip("qshap")
    xgboost = pytest.importorskip("xgboost")
    from sklearn.ensemble import GradientBoostingRegressor

    rng = np.random.default_rng(depth)
    wide = rng.normal(size=(150, 6))
    target = wide[:, 0] * wide[:, 1] + wide[:, 2] + rng.normal(size=150)
    settings = {"n_estimators": 8, "max_depth": depth, "learning_rate": 0.3}
    for regressor in (xgboost.XGBRegressor(**settings, n_jobs=1), GradientBoostingRegressor(**settings, random_state=0)):
        regressor.fit(wide, target)
        theirs = np.asarray(qshap.gazer(regressor).rsq(wide, target))
        ours = decompose_r2(regressor, wide, target).values
        assert np.abs(ours - theirs).max() < conditioned(1e8)  # their accumulated predictions and shap values are float32


# --- ``exactshap r2`` and the bar plot of shares ----------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("typer")
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(80, 3)), columns=["age", "bmi", "sex"])
    frame["w"], frame["cost"] = rng.integers(1, 4, 80), frame["age"] + 0.5 * frame["bmi"] ** 2
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(frame[["age", "bmi", "sex"]], frame["cost"])
    model.save_model(tmp_path / "m.json")
    frame.to_parquet(tmp_path / "d.parquet")
    return model, frame, tmp_path


@pytest.mark.parametrize("game", ["residual", "ensemble"])
def test_command_prints_and_writes_what_the_function_gives(files, game, capsys):
    pytest.importorskip("matplotlib")
    import pandas

    model, frame, folder = files
    arguments = ("--target", "cost", "--sample-weight", "w", "--game", game)
    arguments = (*arguments, "--out", folder / "t.csv", "--picture", folder / "p.svg")
    assert run("r2", folder / "m.json", folder / "d.parquet", *arguments) == 0
    shares = decompose_r2(model, frame[["age", "bmi", "sex"]], frame["cost"], game=game, sample_weight=frame["w"])
    pandas.testing.assert_frame_equal(pandas.read_csv(folder / "t.csv"), shares.to_frame(), rtol=conditioned(1e5))
    text = capsys.readouterr().out
    assert f"R2 = {shares.total:.6g} ({game} game)" in text
    assert "value function: path_dependent" in text
    assert "drift" in text
    assert f"{shares.values.max():.4g}" in text
    assert (folder / "p.svg").read_text().lstrip().startswith("<?xml")


def test_reference_rows_may_have_the_target_and_the_weights(files):
    """The same file for both, as for the other commands."""
    import pandas
    from joblib import dump
    from sklearn.linear_model import Ridge

    _, frame, folder = files
    X = frame[["age", "bmi", "sex"]]
    model = Ridge().fit(X, frame["cost"])
    dump(model, folder / "m.joblib")
    common = ("r2", folder / "m.joblib", folder / "d.parquet", "--target", "cost", "--sample-weight", "w", "--allow-pickle")
    assert run(*common, "--background", folder / "d.parquet", "--out", folder / "t.csv") == 0
    shares = decompose_r2(model, X, frame["cost"], background=X, sample_weight=frame["w"])
    pandas.testing.assert_frame_equal(pandas.read_csv(folder / "t.csv"), shares.to_frame(), rtol=conditioned(1e5))


def test_command_says_what_is_wrong_in_one_line(files, capsys):
    _, _, folder = files
    assert run("r2", folder / "m.json", folder / "d.parquet", "--target", "price") == 2
    assert "has no column 'price'" in capsys.readouterr().err


def test_bars_are_sorted_and_the_rest_is_one_bar():
    from exactshap.results.decomposition import Decomposition

    values = np.array([0.1, -0.3, 0.05, 0.5, 0.02])
    shares = Decomposition(statistic="R2", values=values, total=0.4, feature_names=tuple("abcde"), std_error=np.full(5, 0.1))
    bars = shares.plot.prepare(max_display=3)
    assert bars.labels == ("d", "b", "3 others")
    assert bars.values == pytest.approx([0.5, -0.3, 0.17])
    assert bars.cumulative == pytest.approx([0.5, 0.2, 0.37])
    assert np.isnan(bars.ends[:, 2]).all()
    assert shares.plot.prepare(max_display=5).labels == ("d", "b", "a", "c", "e")


def test_bar_draws_into_the_axes_that_it_gets(files):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    model, frame, _ = files
    ax = figure.subplots()
    shares = decompose_r2(model, frame[["age", "bmi", "sex"]], frame["cost"])
    assert shares.plot.bar(ax=ax, max_display=2) is ax
    assert [text.get_text() for text in ax.get_yticklabels()][-1] == "2 others"
    widths = [bar.get_width() for bar in ax.patches]
    assert sum(widths) == pytest.approx(shares.values.sum())
