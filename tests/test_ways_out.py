"""The way out that a message names works: each test follows the advice to the letter, and ends in values."""

import functools
import re

import catboost
import dask.dataframe as dask
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from sklearn import feature_extraction
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from exactshap import Explainer, decompose_r2, explain
from exactshap.errors import InputError, InputTypeError, UnknownNameError, UnsupportedModelError, UnsupportedStructureError
from tolerances import RESPONSE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] * X[:, 1]


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


def test_what_other_libraries_set_is_had_by_our_settings():
    assert explain(total, X[:1], X[5:15], index="k-sii", order=2).interactions.shape == (1, 3, 3)
    assert explain(total, X[:1], X[5:15], background_weights=np.ones(10)).exact
    assert explain(total, X[:1], X[5:15], on_inexact="warn").exact
    assert explain(total, X[:1], X[5:15], budget=100).exact


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
    assert explain(
        model, eval(re.search(r"pandas\.DataFrame\(rows\)", text).group(), {"pandas": pd, "rows": records[:2]}), background
    ).exact


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
    found = eval(
        re.search(r"explain\(.*background\)", text).group(),
        {"explain": explain, "pipeline": pipeline, "X": records[:2], "background": records[20:40]},
    )
    np.testing.assert_allclose(found.prediction, pipeline.predict(records[:2]))
    assert found.exact


def scores_with_a_link():
    from sklearn import (
        calibration,
        discriminant_analysis,
        ensemble,
        linear_model,
        multiclass,
        naive_bayes,
        pipeline,
        preprocessing,
    )

    logistic, two, three = linear_model.LogisticRegression(), Y > 0, np.digitize(Y, [-0.3, 0.3])
    boosted = ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0)
    votes = [("a", logistic), ("b", naive_bayes.GaussianNB())]
    for labels in (two, three):
        yield from (
            (model, labels)
            for model in (
                logistic,
                linear_model.SGDClassifier("log_loss", random_state=0),
                naive_bayes.GaussianNB(),
                discriminant_analysis.LinearDiscriminantAnalysis(),
                discriminant_analysis.QuadraticDiscriminantAnalysis(),
                boosted,
                ensemble.HistGradientBoostingClassifier(max_iter=4),
                multiclass.OneVsRestClassifier(logistic),
                multiclass.OneVsRestClassifier(boosted),
                multiclass.OneVsOneClassifier(logistic),
                pipeline.make_pipeline(preprocessing.StandardScaler(), boosted),
            )
        )
    yield ensemble.StackingClassifier(votes, cv=2), two
    yield calibration.CalibratedClassifierCV(logistic, cv=2), two
    positive = np.exp(Y)
    yield from ((model, positive) for model in (linear_model.PoissonRegressor(), linear_model.GammaRegressor()))
    yield ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=4), positive
    yield TransformedTargetRegressor(linear_model.Ridge(), func=np.log, inverse_func=np.exp), positive
    yield (
        pipeline.make_pipeline(
            preprocessing.StandardScaler(),
            TransformedTargetRegressor(ensemble.RandomForestRegressor(3, random_state=0), func=np.log1p, inverse_func=np.expm1),
        ),
        positive,
    )


@pytest.mark.parametrize("number", range(29))
def test_what_a_unit_says_of_probabilities_and_logarithms(number):
    """The card and the report name a call beside the unit of a score: it answers what the model predicts."""
    cases = list(scores_with_a_link())
    assert len(cases) == 29
    model, target = cases[number]
    model.fit(X, target)
    text = explain(model, X[:2], X[20:40]).facts().get("unit", "")
    if not text:
        return
    by_output, by_function = re.search(r'output="(\w+)"', text), re.search(r"explain\((model\.\w+), X, background\)", text)
    if by_output:
        found = explain(model, X[:2], X[20:40], output=by_output.group(1))
    else:
        found = explain(eval(by_function.group(1), {"model": model}), X[:2], X[20:40])
    own = model.predict_proba(X[:2]) if hasattr(model, "predict_proba") else model.predict(X[:2])
    own = own[:, -1] if own.ndim > found.prediction.ndim else own
    np.testing.assert_allclose(found.prediction, own, rtol=RESPONSE)


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


@functools.cache
def models_with_losses():
    return list(fitted_with_losses())


def fitted_with_losses():
    from sklearn import ensemble, linear_model, multioutput, pipeline, preprocessing, svm

    words, numbers, two = np.where(Y > 0, "yes", "no"), np.digitize(Y, [-0.3, 0.3]), (Y > 0).astype(int)
    several = np.column_stack([two, 1 - two])
    quiet = {"verbose": 0, "allow_writing_files": False, "iterations": 3}

    def trained(library, target, **settings):
        if library is xgboost:
            return xgboost.train(settings, xgboost.DMatrix(X, target), 3)
        return lightgbm.train({**settings, "verbose": -1}, lightgbm.Dataset(X, target), 3)

    scaled = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    of_classes = [
        (scaled.fit(X, words), words, lambda model: model.predict_proba(X)),
        *(
            (model.fit(X, target), target, lambda model: model.predict_proba(X))
            for model, target in (
                (ensemble.RandomForestClassifier(3, random_state=0), numbers),
                (xgboost.XGBClassifier(n_estimators=3), two),
                (lightgbm.LGBMClassifier(n_estimators=3, verbose=-1), words),
                (catboost.CatBoostClassifier(**quiet), numbers),
            )
        ),
        (multioutput.MultiOutputClassifier(scaled).fit(X, several), several, lambda model: model.predict_proba(X)[0]),
        (scaled.predict_proba, words, lambda model: model(X)),
        (trained(xgboost, two, objective="binary:logistic"), two, lambda model: model.inplace_predict(X)),
        (trained(xgboost, numbers, objective="multi:softprob", num_class=3), numbers, lambda model: model.inplace_predict(X)),
        (trained(lightgbm, two, objective="binary"), two, lambda model: model.predict(X)),
        (trained(lightgbm, numbers, objective="multiclass", num_class=3), numbers, lambda model: model.predict(X)),
        (
            catboost.CatBoost({"loss_function": "Logloss", **quiet}).fit(X, two),
            two,
            lambda model: model.predict(X, "Probability"),
        ),
    ]
    for model, target, probabilities in of_classes:
        shares, first = np.asarray(probabilities(model)), target if target.ndim == 1 else target[:, 0]
        shares = np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares
        own = shares[np.arange(len(X)), np.unique(first, return_inverse=True)[1]]
        yield model, target, {"log_loss": -np.log(own.clip(1e-15)), "brier": (1.0 - own) ** 2, "error": 1.0 - own}
    for model, target in ((svm.SVC(), words), (linear_model.RidgeClassifier(), numbers)):
        wrong = model.fit(X, target).predict(X) != target
        yield model, target, dict.fromkeys(("log_loss", "brier", "error"), wrong)
    boosted = (
        (trained(xgboost, Y), lambda model: model.inplace_predict(X)),
        (trained(lightgbm, Y), lambda model: model.predict(X)),
    )
    for model, predicted in ((svm.SVR().fit(X, Y), lambda model: model.predict(X)), (total, total), *boosted):
        residual = Y - predicted(model if model is not total else X)
        yield model, Y, {"log_loss": residual**2, "mse": residual**2, "mae": np.abs(residual)}


@pytest.mark.parametrize("number", range(18))
def test_the_loss_of_a_row(number):
    """The loss that a message names is that of the row's own class, or its error."""
    assert len(models_with_losses()) == 18
    model, target, losses = models_with_losses()[number]
    for output, expected in losses.items():
        text = advice(UnknownNameError, lambda: explain(model, X[:2], X[20:30], output=output))  # noqa: B023
        code = re.search(r"explain\(lambda rows: .*?, background\)", text).group()
        found = eval(code, {"explain": explain, "np": np, "model": model, "y": target, "X": X, "background": X[20:30], "i": 1})
        np.testing.assert_allclose(
            found.prediction, expected[1:2], rtol=64 * np.finfo(np.float32).eps
        )  # XGBoost is in single precision
