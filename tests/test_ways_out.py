"""The way out that a message names works: each test follows the advice to the letter, and ends in values."""

import functools
import re

import catboost
import dask.dataframe as dask
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import feature_extraction
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestRegressor, StackingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from exactshap import Explainer, decompose_r2, explain
from exactshap.errors import InputError, InputTypeError, UnknownNameError, UnsupportedModelError, UnsupportedStructureError
from golden_models import MODELS, Data, unfitted
from tolerances import RESPONSE, SINGLE_RESPONSE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] * X[:, 1]
DATA = Data()


def total(rows):
    return np.asarray(rows, float).reshape(len(rows), -1).sum(axis=1)


def advice(error, call):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_sparse_columns_beside_dense_ones():
    frame = pd.DataFrame({"kind": RNG.choice(list("xyz"), 60), "size": X[:, 0]})
    table = pd.get_dummies(frame, columns=["kind"], sparse=True)
    model = SVR().fit(table, Y)
    text = advice(InputTypeError, lambda: explain(model, table[:2], table[20:30]))
    code = re.search(r"Pass (.*)\.$", text).group(1)
    dense = eval(code, {"background": table, "X": table})
    assert explain(model, dense[:2], dense[20:30]).certificate().passed


class PyFuncModel:
    """Has the methods and the module of a model that MLflow has loaded."""

    __module__ = "mlflow.pyfunc"

    def __init__(self, model):
        self.get_raw_model, self.predict = lambda: model, model.predict


def test_models_that_mlflow_has_loaded():
    model = PyFuncModel(SVR().fit(X, Y))
    text = advice(UnsupportedModelError, lambda: explain(model, X[:2], X[20:30]))
    raw = eval(re.search(r"(model\.\w+\(\)) returns that one", text).group(1), {"model": model})
    assert explain(raw, X[:2], X[20:30]).exact


@pytest.mark.parametrize("shape", [(5, 3), (1, 5, 3), (2, 2, 2, 2)])
def test_rows_of_more_dimensions(shape):
    windows = RNG.normal(size=(30, *shape))

    def predict(rows):
        assert rows.shape[1:] == shape
        return rows.reshape(len(rows), -1)[:, :3].prod(axis=1)

    text = advice(InputError, lambda: explain(predict, windows[:1], windows[5:]))
    flatten, undo = re.search(
        r"Pass (background\.reshape.*?), for a model with a function that undoes it: (lambda.*?);", text
    ).groups()
    function = eval(undo, {"predict": predict})
    flat = eval(flatten, {"background": windows})
    groups = {"first": [0], "second": [1, 2], "rest": list(range(3, flat.shape[1]))}
    found = explain(function, flat[:1], flat[5:], groups=groups)
    assert found.certificate().passed
    assert found.values[0, 2] == 0.0


def test_several_inputs():
    inputs = RNG.normal(size=(30, 5, 3)), RNG.normal(size=(30, 2))
    text = advice(InputError, lambda: explain(total, [one[:2] for one in inputs], [one[5:] for one in inputs]))
    flat = eval(re.search(r"np\.hstack\(.*?for input in inputs\]\)", text).group(), {"np": np, "inputs": inputs})
    groups = {"window": list(range(15)), "facts": [15, 16]}
    found = explain(lambda rows: total(rows[:, :15].reshape(-1, 5, 3)) * rows[:, 15], flat[:2], flat[5:], groups=groups)
    assert found.certificate().passed


def test_classes_of_pairwise_machines():
    labels = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.3, 0.3])]
    model = SVC().fit(X, labels)
    text = advice(UnknownNameError, lambda: explain(model, X[:1], X[::9], output="high"))
    assert "explain(model.decision_function, X, background)" in text
    found = explain(model.decision_function, X[:1], X[::9])
    np.testing.assert_allclose(found.prediction, model.decision_function(X[:1]))
    assert found.output_names == ("high", "low", "middle")


def test_shares_of_pipelines_name_their_last_step_only_where_it_has_trees():
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0)).fit(X, Y)
    assert "model[-1] and model[:-1].transform(X)" in advice(UnsupportedModelError, lambda: decompose_r2(forest, X, Y))
    assert decompose_r2(forest[-1], forest[:-1].transform(X), Y).values.shape == (3,)
    linear = make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y)
    text = advice(InputError, lambda: decompose_r2(linear, X, Y))
    assert "Pass background=" in text
    assert "Pass its last step" not in text
    assert decompose_r2(linear, X, Y, background=X).values.shape == (3,)


def test_text_beside_a_gaussian_copula():
    frame = pd.DataFrame({"kind": RNG.choice(["a", "b"], 60), "size": X[:, 0]})
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough"), SVR()).fit(frame, Y)
    text = advice(InputError, lambda: explain(model, frame[:2], frame, value_function="observational-copula"))
    assert "explain the Pipeline" not in text  # which was done
    for value_function in re.findall(r"'(observational[a-z-]*)'", text):
        assert explain(model, frame[:2], frame, value_function=value_function).values.shape == (2, 2)


def test_frames_that_are_not_computed_yet():
    frame = pd.DataFrame(X, columns=list("abc"))
    for lazy in (dask.from_pandas(frame, npartitions=2), pl.LazyFrame(X, schema=list("abc"))):
        text = advice(InputTypeError, lambda: Explainer(total, lazy))  # noqa: B023
        assert text.startswith("`background` is not read yet")
        method = re.search(r"Call \.(\w+)\(\)", text).group(1)
        assert Explainer(lambda rows: rows["a"] * rows["b"], getattr(lazy, method)()).reader.traits.n_players == 3


def test_a_series_as_background():
    frame = pd.DataFrame(X, columns=list("abc"))
    text = advice(InputError, lambda: Explainer(total, frame.iloc[0]))
    rows = eval(re.search(r"using (\S+) if it is one row", text).group(1), {"X": frame})
    assert Explainer(total, rows)(frame[:2]).certificate().passed


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_rows_as_dicts_are_frames(library):
    frame = pd.DataFrame(X, columns=list("abc"))
    model, records = Ridge().fit(frame, Y), frame.to_dict("records")
    expected = explain(model, frame[:2], frame[20:40])
    background = frame[20:40] if library == "pandas" else pl.from_pandas(frame[20:40])
    for rows in (records[:2], tuple(records[:2]), np.array(records[:2]), pd.Series(records[:2])):
        np.testing.assert_array_equal(explain(model, rows, records[20:40]).values, expected.values)
        np.testing.assert_array_equal(explain(model, rows, background).values, expected.values)
    shuffled = [dict(reversed(row.items())) for row in records[:2]]
    np.testing.assert_array_equal(explain(model, [records[0], shuffled[1]], background).values, expected.values)
    text = advice(InputError, lambda: explain(model, [records[0], {"a": 1.0}], background))
    assert "Row 1 differs in 'b'" in text
    rows = eval(re.search(r"pandas\.DataFrame\(rows\)", text).group(), {"pandas": pd, "rows": records[:2]})
    assert explain(model, rows, background).exact


def test_a_row_as_a_dict():
    frame = pd.DataFrame(X, columns=list("abc"))
    text = advice(InputTypeError, lambda: explain(total, frame.iloc[0].to_dict(), frame[20:40]))
    rows = eval(re.search(r"pandas\.DataFrame\(\[row\]\)", text).group(), {"pandas": pd, "row": frame.iloc[0].to_dict()})
    assert explain(total, rows, frame[20:40]).exact


@pytest.mark.parametrize("step", ["DictVectorizer", "FeatureHasher"])
def test_pipelines_that_take_dicts(step):
    frame = pd.DataFrame({"kind": RNG.choice(["a", "b"], 60), "size": X[:, 0]})
    records = frame.to_dict("records")
    pipeline = make_pipeline(getattr(feature_extraction, step)(), Ridge()).fit(records, Y)
    text = advice(UnsupportedStructureError, lambda: explain(pipeline, records[:2], records[20:40]))
    names = {"explain": explain, "pipeline": pipeline, "X": records[:2], "background": records[20:40]}
    found = eval(re.search(r"explain\(.*background\)", text).group(), names)
    np.testing.assert_allclose(found.prediction, pipeline.predict(records[:2]))
    assert found.exact


LOGISTIC, VOTES = LogisticRegression(), [("a", LogisticRegression()), ("b", GaussianNB())]
OF_SCORES = {  # models and the names of their targets: those of the golden record, and others
    **{name: (model.make(), model.target) for name, model in MODELS.items() if model.target in ("two", "three", "counts")},
    "QuadraticDiscriminantAnalysis": (QuadraticDiscriminantAnalysis(), "three"),
    "one-vs-rest, logistic": (OneVsRestClassifier(LOGISTIC), "three"),
    "one-vs-one, logistic": (OneVsOneClassifier(LOGISTIC), "three"),
    "stacking": (StackingClassifier(VOTES, cv=2), "two"),
    "calibrated, logistic": (CalibratedClassifierCV(LOGISTIC, cv=2), "two"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_SCORES)
def test_what_a_unit_says_of_probabilities_and_logarithms(name):
    """The card and the report name a call beside the unit of a score: it answers what the model predicts."""
    model, target = OF_SCORES[name]
    table = getattr(DATA, MODELS[name].table if name in MODELS else "X")
    model = model.fit(table, getattr(DATA, target))
    rows, background = table[:2], table[20:40]
    text = explain(model, rows, background).facts().get("unit", "")
    by_output, by_function = re.search(r'output="(\w+)"', text), re.search(r"explain\((model\.\w+), X, background\)", text)
    if not (by_output or by_function):
        return
    if by_output:
        found = explain(model, rows, background, output=by_output.group(1))
    else:
        found = explain(eval(by_function.group(1), {"model": model}), rows, background)
    own = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)
    own = own[:, -1] if own.ndim > found.prediction.ndim else own
    np.testing.assert_allclose(found.prediction, own, rtol=SINGLE_RESPONSE if "XGBoost" in name else RESPONSE)


@pytest.mark.parametrize("kind", ["scaled", "logarithm"])
def test_targets_of_a_model_with_a_link(kind):
    settings = {
        "scaled": {"transformer": StandardScaler(with_mean=False)},
        "logarithm": {"func": np.log1p, "inverse_func": np.expm1},
    }[kind]
    model = TransformedTargetRegressor(PoissonRegressor(), **settings).fit(X, np.exp(Y))
    text = advice(UnsupportedStructureError, lambda: explain(model, X[:2], X[20:40]))
    assert "Explainer(model.predict, background)" in text
    np.testing.assert_allclose(explain(model.predict, X[:2], X[20:40]).prediction, model.predict(X[:2]))


def probabilities(model):
    """Return the probabilities of a model's classes, of its first output where it has several."""
    if isinstance(model, catboost.CatBoost) and not hasattr(model, "predict_proba"):
        return model.predict(DATA.X, "Probability")
    calls = (getattr(model, name, None) for name in ("predict_proba", "inplace_predict", "predict"))
    shares = next(filter(None, calls), model)(DATA.X)
    return shares[0] if isinstance(shares, list) else shares


@functools.cache
def models_with_losses():
    words, two, three = np.where(DATA.y > 0, "yes", "no"), DATA.two, DATA.three
    scaled, several = make_pipeline(StandardScaler(), LogisticRegression()), np.column_stack([two, 1 - two])
    xgb, lgbm = (unfitted(f"{library} three classes") for library in ("XGBoost", "LightGBM"))
    logloss = catboost.CatBoost({"loss_function": "Logloss", "verbose": 0, "allow_writing_files": False, "iterations": 3})

    def fitted(model, target):
        return clone(model).fit(DATA.X, target), target

    found = [
        *(fitted(scaled, words), fitted(unfitted("random forest classifier"), three), fitted(xgb, two), fitted(lgbm, words)),
        *(fitted(unfitted("CatBoost three classes"), three), fitted(MultiOutputClassifier(scaled), several)),
        (fitted(scaled, words)[0].predict_proba, words),
        *((fitted(xgb, target)[0].get_booster(), target) for target in (two, three)),
        *((fitted(lgbm, target)[0].booster_, target) for target in (two, three)),
        (logloss.fit(DATA.X, two), two),
    ]
    return [*map(with_losses, *zip(*found, strict=True)), *other_losses(words, three)]


def with_losses(model, target):
    shares, first = np.asarray(probabilities(model)), target if target.ndim == 1 else target[:, 0]
    shares = np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares
    own = shares[np.arange(len(first)), np.unique(first, return_inverse=True)[1]]
    return model, target, {"log_loss": -np.log(own.clip(1e-15)), "brier": (1.0 - own) ** 2, "error": 1.0 - own}


def other_losses(words, three):
    for model, target in ((SVC(), words), (RidgeClassifier(), three)):
        wrong = model.fit(DATA.X, target).predict(DATA.X) != target
        yield model, target, dict.fromkeys(("log_loss", "brier", "error"), wrong)
    svr, xgb, lgbm = (unfitted(name).fit(DATA.X, DATA.y) for name in ("SVR", "XGBoost", "LightGBM"))
    own = {svr: svr, total: total, xgb.get_booster(): xgb, lgbm.booster_: lgbm}
    for model, predicted in own.items():
        residual = DATA.y - getattr(predicted, "predict", predicted)(DATA.X)
        yield model, DATA.y, {"log_loss": residual**2, "squared_error": residual**2, "mae": np.abs(residual)}


@pytest.mark.parametrize("number", range(18))
def test_the_loss_of_a_row(number):
    """The loss that a message names is that of the row's own class, or its error."""
    assert len(models_with_losses()) == 18
    (model, target, losses), X = models_with_losses()[number], DATA.X
    for output, expected in losses.items():
        text = advice(UnknownNameError, lambda: explain(model, X[:2], X[20:30], output=output))  # noqa: B023
        assert "of boosted trees, split the score of all rows" in text  # decompose_loss reads no others
        code = re.search(r"explain\(lambda rows: .*?, background\)", text).group()
        names = {"explain": explain, "np": np, "model": model, "y": target, "X": X, "background": X[20:30], "i": 1}
        found = eval(code, names).prediction  # XGBoost is in single precision
        np.testing.assert_allclose(found, expected[1:2], rtol=64 * np.finfo(np.float32).eps)
