"""Functions on rows: against enumeration and exact readers, kept in kind, and every way in which a function misbehaves."""

import functools
import logging
import re

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge, SGDOneClassSVM, TweedieRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from exactshap import Explainer, explain
from exactshap.errors import (
    BudgetError,
    ExactnessError,
    ExplanationWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
    UnsupportedStructureError,
)
from exactshap.readers import joined_outputs
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import FLOAT32_FUNCTION, conditioned, roundings

X = np.random.default_rng(0).normal(size=(40, 5))
BACKGROUND = X[20:29]


def curve(rows):
    rows = np.asarray(rows, float)
    return np.sin(rows[:, 0]) * rows[:, 1] + rows[:, 2] ** 2 + rows[:, 3] * rows[:, 4]


def column(rows):
    return curve(rows)[:, None]


def listed(rows):
    return curve(rows).tolist()


def two_outputs(rows):
    return np.stack([curve(rows), np.asarray(rows)[:, 0]], axis=1)


def single_precision(rows):
    return np.asarray(rows, np.float32)[:, 0] * np.float32(1.7) + np.asarray(rows, np.float32)[:, 1]


def on_frame(frame):
    values = frame["a"].to_numpy() * frame["b"].to_numpy()
    return values + 2.0 * (np.asarray(frame["c"].to_numpy(), str) == "u") * frame["a"].to_numpy()


@pytest.mark.parametrize("function", [curve, column, listed, two_outputs, single_precision])
def test_readers_contract(function):
    check_reader(function, X[:3], BACKGROUND, background_weights=np.arange(1.0, 10.0))
    check_reader(function, X[:3], BACKGROUND, groups={"pair": [0, 3]}, batch_size=7)
    check_reader(function, X[:3], X[:1], value_function="baseline")


def frame_of(kind):
    columns = {"a": X[:, 0], "b": np.arange(40), "c": np.where(X[:, 2] > 0, "u", "v")}
    if kind == "polars":
        polars = pytest.importorskip("polars")
        return polars.DataFrame({**columns, "c": polars.Series(columns["c"], dtype=polars.Categorical)})
    frame = pandas.DataFrame(columns).astype({"c": "category"})
    return frame.set_index(np.arange(40)[::-1] * 3)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_stay_frames(kind):
    frame = frame_of(kind)
    seen = []

    def watched(rows):
        seen.append((type(rows), [str(rows[name].dtype) for name in ("a", "b", "c")]))
        return on_frame(rows)

    part = frame[:3]
    check_reader(on_frame, part, frame[10:17])
    explain(watched, part, frame[10:17])
    assert {kind_ for kind_, _ in seen} == {type(frame)}
    assert {tuple(types) for _, types in seen} == {tuple(str(frame[name].dtype) for name in ("a", "b", "c"))}


def wide(rows):
    return np.tanh(rows[:, 0] * rows[:, 1]) + rows[:, 2] * rows[:, 5] + rows[:, 6:].sum(axis=1)


WIDE = np.random.default_rng(1).normal(size=(12, 14))


def test_sampled_values_carry_honest_errors_and_calls():
    exact = explain(wide, WIDE[:3], WIDE[6:], method="enumeration")
    sampled = explain(wide, WIDE[:3], WIDE[6:], budget=300)
    assert exact.exact
    assert not sampled.exact
    assert sampled.std_error.shape == sampled.values.shape == (3, 14)
    assert sampled.n_evaluations == 3 * 300
    assert sampled.certificate().passed
    assert np.mean(((sampled.values - exact.values) / sampled.std_error) ** 2) < 4
    np.testing.assert_allclose(sampled.values, exact.values, atol=4 * sampled.std_error.max())
    pairs = explain(wide, WIDE[:2], WIDE[6:], budget=400, index="sii", order=2)
    assert pairs.set_std_error.shape == pairs.set_values.shape == (2, 14 + 91)


def test_options_reach_the_solver():
    loose = explain(wide, WIDE[:1], WIDE[6:], tol=0.2)
    assert loose.std_error.max() <= 0.2
    named = explain(wide, WIDE[:1], WIDE[6:], budget=200, estimator="kernelshap")
    assert "PolySHAP, order 1" in named.method
    first, again, other = (explain(wide, WIDE[:2], WIDE[6:], budget=100, random_state=s).values for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


# -- methods of models that are known exactly --------------------------------------------------------------------------

KNOWN = {"predict": SVR().fit(X, curve(X)), "decision_function": SVC().fit(X, curve(X) > 0)}


@pytest.mark.parametrize("method", KNOWN)
def test_methods_of_known_models_are_exact(method, caplog):
    model, function = KNOWN[method], getattr(KNOWN[method], method)
    with caplog.at_level(logging.INFO, logger="exactshap"):
        found = explain(function, X[:3], BACKGROUND)
    assert "is known exactly: its own reader is used" in caplog.text
    assert found.n_evaluations == 0
    np.testing.assert_array_equal(found.values, explain(model, X[:3], BACKGROUND).values)
    plain = explain(function, X[:3], BACKGROUND, exact_owner=False)
    assert "enumeration" in plain.method
    np.testing.assert_allclose(plain.values, found.values, atol=conditioned(1e5))
    assert "regression" in explain(function, X[:1], BACKGROUND, budget=20).method  # an option of sampling


def with_classes(model, n_classes, rows=WIDE):
    return model.fit(
        rows, np.array(["a", "b", "c"])[np.argsort(np.argsort(rows[:, 0] * rows[:, 1] + rows[:, 2])) * n_classes // len(rows)]
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(4, random_state=0), GaussianNB()], ids=str)
def test_probabilities_of_known_classifiers_are_those_of_every_class(model, n_classes):
    fitted = with_classes(clone(model), n_classes)
    # Of 14 columns a softmax is sampled, by calls
    found = explain(fitted.predict_proba, WIDE[:1], WIDE[6:])
    assert found.exact == (n_classes == 2 or isinstance(model, RandomForestClassifier))
    assert (found.n_evaluations == 0) == found.exact
    assert found.output_names == ("a", "b", "c")[:n_classes]
    assert found.certificate().passed
    assert found.model_name == type(model).__name__ + ("" if found.exact else ".predict_proba")
    np.testing.assert_allclose(found.prediction, fitted.predict_proba(WIDE[:1]), atol=conditioned(100))
    if found.exact:
        one, named = (explain(fitted.predict_proba, WIDE[:1], WIDE[6:], output=output) for output in ("b", "probability"))
        np.testing.assert_allclose(one.values, found.values[..., 1], atol=conditioned(100))
        np.testing.assert_array_equal(named.values, found.values)  # it has no other output
    few = with_classes(clone(model), n_classes, X)
    check_reader(few.predict_proba, X[:3], BACKGROUND)
    plain = explain(few.predict_proba, X[:3], BACKGROUND, exact_owner=False)
    found = explain(few.predict_proba, X[:3], BACKGROUND)
    for kind in ("values", "baseline", "prediction"):
        np.testing.assert_allclose(getattr(found, kind), getattr(plain, kind), atol=conditioned(1e5))


RATES = {
    "Poisson": PoissonRegressor(),
    "gamma": GammaRegressor(),
    "pipeline": make_pipeline(StandardScaler(), TweedieRegressor(power=1.5, max_iter=1000)),
    "search": GridSearchCV(PoissonRegressor(), {"alpha": [0.1, 1.0]}, cv=2),
    "logarithms": TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp),
}


@pytest.mark.parametrize("name", RATES)
def test_rates_of_models_of_their_logarithm_are_exact(name):
    """The method's own unit, of more columns than are enumerated, and equal to brute force of few."""
    wide = clone(RATES[name]).fit(WIDE, np.exp(WIDE[:, 0] + 0.2 * WIDE[:, 1]))
    found = explain(wide.predict, WIDE[:2], WIDE[6:])
    assert (found.exact, found.n_evaluations, found.unit) == (True, 0, "target")
    np.testing.assert_allclose(found.prediction, wide.predict(WIDE[:2]), rtol=roundings(8))
    model = clone(RATES[name]).fit(X, np.exp(X[:, 0] + 0.2 * X[:, 1]))
    check_reader(model.predict, X[:3], BACKGROUND)
    check_answers(model.predict, model.predict, X[:3], BACKGROUND, conditioned(100), contract=False)
    for settings in ({"output": "response"}, {"output": 0}, {"exact_owner": False}):
        same = explain(model.predict, X[:3], BACKGROUND, **settings)
        np.testing.assert_allclose(same.values, explain(model.predict, X[:3], BACKGROUND).values, atol=conditioned(100))


SCORES_OF_CLASSES = {
    "votes": SVC(),
    "pairs": SVC(decision_function_shape="ovo"),
    "in a pipeline": make_pipeline(StandardScaler(), SVC()),
}


@pytest.mark.parametrize("name", SCORES_OF_CLASSES)
def test_decision_functions_of_many_classes_are_those_of_the_method(name):
    score = with_classes(clone(SCORES_OF_CLASSES[name]), 3, X).decision_function
    found = check_answers(score, score, X[:3], BACKGROUND, conditioned(1e3), contract=False)
    assert not found.model_name.endswith("decision_function")
    assert found.output_names == (("a vs b", "a vs c", "b vs c") if name == "pairs" else ("a", "b", "c"))
    one = explain(score, X[:3], BACKGROUND, output=1)
    np.testing.assert_allclose(one.values, found.values[..., 1], atol=conditioned(1e3))


@pytest.mark.parametrize(
    "score", [IsolationForest().fit(X).score_samples, SVC().fit(X, np.arange(len(X)) % 3).decision_function]
)
def test_a_method_is_called_once_for_all_readings_of_its_owner(score, monkeypatch):
    """Each of these is compared with two readings."""
    answers = []
    monkeypatch.setattr(
        "exactshap.readers.black_box.function.joined_outputs", lambda found: answers.append(found) or joined_outputs(found)
    )
    explain(score, X[:2], BACKGROUND)
    assert len(answers) == 1


EARLY = {"raw_score": True, "pred_early_stop": True}  # stops on other rows than those that are compared


def test_methods_with_settings_are_read_where_they_are_the_readers_own_call():
    library = pytest.importorskip("lightgbm")
    labels = np.argsort(np.argsort(X[:, 0] * X[:, 1])) * 2 // len(X)
    model = library.LGBMClassifier(n_estimators=6, min_child_samples=2, verbose=-1).fit(X, labels)
    margin = functools.partial(model.predict, raw_score=True)
    found = check_answers(margin, margin, X[:3], BACKGROUND, conditioned(100), contract=False)
    assert (found.model_name, found.unit) == ("LGBMClassifier", "log-odds of class 1")
    for method, settings in (("predict", {"num_iteration": 2}), ("predict_proba", {"raw_score": True}), ("predict", EARLY)):
        function = functools.partial(getattr(model, method), **settings)
        found = check_answers(function, function, X[:3], BACKGROUND, conditioned(100), contract=False)
        assert (found.model_name, found.unit) == (f"LGBMClassifier.{method}", "output of the function")


def test_boosters_name_their_method_that_takes_tables():
    library = pytest.importorskip("xgboost")
    data = library.DMatrix(X, np.arange(len(X)) % 3)
    booster = library.train({"objective": "count:poisson", "max_depth": 2}, data, 4)
    classes = library.train({"objective": "multi:softmax", "num_class": 3, "max_depth": 2}, data, 4)
    way = r"explain\(model.inplace_predict, X, background\)"
    for model in (booster, classes):
        with pytest.raises(InputError, match=f"Booster.predict raised TypeError.*Pass its method that takes tables: {way}"):
            explain(model.predict, X[:3], BACKGROUND)
    with pytest.raises(UnsupportedStructureError, match=f"no known function of its score.*{way}"):
        explain(classes, X[:3], BACKGROUND, output="response")
    np.testing.assert_array_equal(explain(classes.inplace_predict, X[:3], BACKGROUND).prediction, classes.predict(data)[:3])
    for function in (booster.inplace_predict, functools.partial(booster.inplace_predict, predict_type="margin")):
        found = check_answers(function, function, X[:3], BACKGROUND, FLOAT32_FUNCTION, contract=False)
        assert found.model_name == "Booster"


def test_names_for_the_columns_of_a_method_are_the_users():
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = PoissonRegressor().fit(frame, np.exp(X[:, 0]))
    found = explain(model.predict, frame[:2], frame[20:29], feature_names=list("vwxyz"))
    assert found.feature_names == tuple("vwxyz")
    np.testing.assert_allclose(found.values, explain(model.predict, frame[:2], frame[20:29]).values, atol=conditioned(100))


def test_probabilities_behind_a_step_that_drops_a_column_are_read():
    """Coalitions are those of the players that have columns."""
    scaled = ColumnTransformer([("kept", StandardScaler(), [0, 1, 2, 4])])
    chances = with_classes(make_pipeline(scaled, LogisticRegression()), 3, X).predict_proba
    found = check_answers(chances, chances, X[:3], BACKGROUND, conditioned(1e3), contract=False)
    assert not found.model_name.endswith("predict_proba")
    assert np.all(found.values[:, 3] == 0.0)


def test_rows_far_from_where_a_method_is_read_have_a_way_out():
    model, far = with_classes(LogisticRegression(), 2), 1e5 * WIDE[:1]
    with pytest.raises(BudgetError, match=r"explain\(model.predict_proba, X, background, exact_owner=False\)"):
        explain(model.predict_proba, far, WIDE[6:])
    assert explain(model.predict_proba, far, WIDE[6:], exact_owner=False).certificate().passed


ONE_CLASS = {
    "support vectors": OneClassSVM(),
    "in a pipeline": make_pipeline(StandardScaler(), OneClassSVM(nu=0.2)),
    "features": make_pipeline(Nystroem(n_components=20, random_state=0), SGDOneClassSVM()),
    "ellipse": EllipticEnvelope(random_state=0),
}


@pytest.mark.parametrize("name", ONE_CLASS)
def test_scores_of_one_class_are_its_decision_function_and_a_constant(name):
    score = ONE_CLASS[name].fit(X).score_samples
    check_reader(score, X[:3], BACKGROUND)
    found, plain = explain(score, X[:3], BACKGROUND), explain(score, X[:3], BACKGROUND, exact_owner=False)
    assert (found.n_evaluations, found.unit) == (0, "score of the row")
    for kind in ("values", "baseline", "prediction"):
        np.testing.assert_allclose(getattr(found, kind), getattr(plain, kind), atol=conditioned(1e5))


def test_scores_that_are_no_sum_are_called():
    assert explain(IsolationForest(n_estimators=5, random_state=0).fit(X).score_samples, X[:2], BACKGROUND).n_evaluations > 0


def test_labels_of_a_classifier_are_not_its_margin():
    labels = KNOWN["decision_function"].predict
    found = explain(labels, X[:2], BACKGROUND)
    assert "enumeration" in found.method
    np.testing.assert_allclose(found.prediction, labels(X[:2]).astype(float))


# -- faults ---------------------------------------------------------------------------------------------------------------


def broken(rows):
    raise KeyError("age")


def changing(rows):
    rows[:, 0] = 0.0
    return rows[:, 1]


def nan_inside(rows):
    return np.where((rows[:, 0] == X[0, 0]) & (rows[:, 1] != X[0, 1]), np.nan, 0.0)


def fragile(rows):
    if np.any((rows[:, 0] == X[0, 0]) & (rows[:, 1] != X[0, 1])):
        raise ZeroDivisionError("x0 without x1")
    return rows[:, 0]


FAULTS = {
    "fragile": (fragile, r"fragile raised ZeroDivisionError for row 0 on \d+ rows of \d+ coalitions.*x0 without x1"),
    "short": (
        lambda rows: np.zeros(3),
        r"returned shape \(3,\) for 9 rows\. Expected one number, or one row of outputs, for each",
    ),
    "not a number": (lambda rows: np.where(rows[:, 0] > 0, np.nan, 1.0), r"returned NaN or infinity\. First at row \d"),
    "inside": (nan_inside, r"NaN or infinity for row 0\. First at the coalition with \['x0'.*\] from x"),
    "infinite": (lambda rows: np.full(len(rows), np.inf), "returned NaN or infinity"),
    "labels": (lambda rows: np.array(["yes"] * len(rows)), r"real numbers\. Got dtype <U3\. Pass predict_proba or decision_f"),
    "objects": (lambda rows: np.array([{}] * len(rows), object), r"must return real numbers\. Got dict such as \{\}"),
    "digits": (
        lambda rows: np.array(["10"] * len(rows), object),
        r"must return real numbers\. Got str such as '10'\. Pass predict_p",
    ),
    "masked": (lambda rows: np.ma.array(rows[:, 0], mask=rows[:, 0] > 0), r"returned NaN or infinity\. First at row \d"),
    "gaps": (lambda rows: pandas.array([None, *rows[1:, 0]], dtype="Float64"), r"returned NaN or infinity\. First at row 0"),
    "gaps in objects": (lambda rows: np.array([pandas.NA, *rows[1:, 0]]), r"returned NaN or infinity\. First at row 0"),
    "no outputs": (lambda rows: np.empty((len(rows), 0)), r"returned shape \(9, 0\) for 9 rows"),
    "nothing": (lambda rows: None, r"must return one number a row\. Got None\. Let it return what it computes"),
    "cubes": (lambda rows: np.zeros((len(rows), 2, 2)), r"returned shape \(9, 2, 2\) for 9 rows"),
    "ragged": (lambda rows: [[0.0], [1.0, 2.0]] * len(rows), r"must return one number a row\. Got list"),
    "broken": (broken, r"broken raised KeyError on 9 rows\. 'age'\. Its own error is chained"),
    "changing": (changing, r"changing changes its input.*read-only.*f\(X\.copy\(\)\)"),
    "complex": (lambda rows: np.ones(len(rows)) * 1j, r"must return real numbers\. Got dtype complex128"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_functions_are_named(name):
    function, words = FAULTS[name]
    with pytest.raises((InputError, InputTypeError), match=words) as caught:
        explain(function, X[:2], BACKGROUND)
    if name == "fragile":
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def of_arrays(rows):
    """Take arrays alone, as models of Snap ML."""
    if not isinstance(rows, np.ndarray):
        raise TypeError("numpy.ndarray only")
    return rows[:, 0]


def of_single_precision(rows):
    """Take the dtype of its weights alone, as networks of single precision do."""
    if getattr(rows, "dtype", None) != np.float32:
        raise RuntimeError("expected Float")
    return rows[:, 0]


@pytest.mark.parametrize(("function", "dtype"), [(of_arrays, float), (of_single_precision, np.float32)])
def test_what_takes_arrays_alone_says_how_to_call_it(function, dtype):
    rows, background = pandas.DataFrame(X[:2]), pandas.DataFrame(BACKGROUND)
    name = "float" if dtype is float else r"np\.float32"
    words = rf"on 9 rows\. .*It takes arrays: explain\(lambda rows: f\(np.asarray\(rows, {name}\)\), X, background\)\. Its own error"
    with pytest.raises(InputError, match=words):
        explain(function, rows, background)
    found = explain(lambda rows: function(np.asarray(rows, dtype)), rows, background)
    np.testing.assert_allclose(found.values[:, 0], X[:2, 0] - BACKGROUND[:, 0].mean(), atol=FLOAT32_FUNCTION)


def test_one_number_of_one_row_may_be_squeezed():
    squeezed = explain(lambda rows: np.squeeze(rows[:, :1]), X[:2], BACKGROUND)
    np.testing.assert_array_equal(squeezed.values, explain(lambda rows: rows[:, 0], X[:2], BACKGROUND).values)
    with pytest.raises(InputError, match=r"returned shape \(\) for 9 rows"):
        explain(np.mean, X[:2], BACKGROUND)


@pytest.mark.parametrize("size", [1, 4, 20, 1000])
@pytest.mark.parametrize("kind", [np.asarray, pandas.DataFrame])
def test_no_call_has_more_rows_than_its_batches(size, kind):
    sizes = []

    def limited(rows):
        sizes.append(len(rows))
        cells = np.asarray(rows)
        return pandas.DataFrame({"p": cells[:, 0] * cells[:, 1], "q": cells[:, 2]})

    found = explain(limited, kind(X[:3]), kind(BACKGROUND[:4]), batch_size=size)
    assert max(sizes) <= size
    assert found.output_names == ("p", "q")
    np.testing.assert_allclose(found.values, explain(limited, kind(X[:3]), kind(BACKGROUND[:4])).values, atol=roundings(20))
    words = "NaN or infinity for row 0. First at the coalition with ['x0'"
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        explain(nan_inside, X[:2], BACKGROUND[:4], batch_size=size)
    assert "x1" not in str(caught.value)
    with pytest.raises(InputError, match=r"returned NaN or infinity. First at row 2"):
        explain(lambda rows: np.where(rows[:, 0] == BACKGROUND[2, 0], np.nan, 1.0), X[:2], BACKGROUND[:4], batch_size=size)


GENERATOR = np.random.default_rng(0)


def noisy(rows):
    return rows[:, 0] + GENERATOR.normal(size=len(rows))


def centred(rows):
    return rows[:, 0] * (rows[:, 1] - np.max(rows[:, 1] * np.arange(len(rows))))


@pytest.mark.parametrize(
    ("function", "said", "way"),
    [
        (noisy, r"noisy is not deterministic\. The same 9 rows differ by up to", "not deterministic.*Fix its seed"),
        (centred, r"centred returns another number for a row when other rows come with it\. The same 9", "each row alone"),
    ],
)
def test_functions_that_answer_a_row_in_two_ways_are_noticed(function, said, way):
    with pytest.warns(ExplanationWarning, match=said):
        Explainer(function, BACKGROUND)
    with pytest.raises(InputError, match=way):
        Explainer(function, BACKGROUND, deterministic="raise")
    Explainer(function, BACKGROUND, deterministic="skip")


def coarse(rows):
    return np.asarray(rows, np.float32) @ np.float32([1.7, 0.3, -0.6, 0.9, 2.3])


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda rows: coarse(rows).tolist(),
        lambda rows: coarse(rows).astype(float),
        lambda rows: pandas.DataFrame({"p": coarse(rows), "q": 1}),
    ],
    ids=["list", "float64", "frame"],
)
def test_numbers_of_single_precision_are_judged_as_such_whatever_they_are_wrapped_in(wrapped):
    found = Explainer(wrapped, BACKGROUND)(X[:5])
    assert 1e-6 < found.tolerance.max() < 1e-2
    np.testing.assert_allclose(
        found.values.reshape(5, 5, -1)[:, :, 0],
        (X[:5] - BACKGROUND.mean(axis=0)) * [1.7, 0.3, -0.6, 0.9, 2.3],
        atol=FLOAT32_FUNCTION,
    )


@pytest.mark.parametrize(
    "function", [curve, lambda rows: np.rint(curve(rows)), lambda rows: curve(rows) > 0.5], ids=["curve", "whole", "bool"]
)
def test_numbers_of_double_precision_keep_their_tolerance(function):
    assert Explainer(function, BACKGROUND)(X[:5]).tolerance.max() < conditioned(1e5)


def test_lower_precision_that_cannot_be_seen_is_named_as_the_likely_cause():
    def function(rows):
        # products of matrices of other shapes round in other ways: here that of the row and its background, on every machine
        return np.exp(rows.sum(axis=1) * (1.0 + 1e-7 * (len(rows) == 1 + len(BACKGROUND))))

    with pytest.raises(ExactnessError, match=r"let a function return float32 numbers; their rounding is then allowed for"):
        explain(function, X[:1], BACKGROUND, budget=20)


def test_tensors_that_record_gradients_are_numbers():
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(5, 1)
    found = explain(lambda rows: net(torch.tensor(rows.astype(np.float32))), X[:2], BACKGROUND)
    weights = net.weight.detach().numpy()[0]
    np.testing.assert_allclose(found.values, (X[:2] - BACKGROUND.mean(axis=0)) * weights, atol=FLOAT32_FUNCTION)
    with pytest.raises(InputError, match=r"Linear raised TypeError.*Pass a function of tables: lambda rows: net\(torch.tensor"):
        explain(net, X[:2], BACKGROUND)


def test_input_and_background_are_not_changed():
    frame = pandas.DataFrame(X[:, :2], columns=["a", "b"])

    def changing_frame(rows):
        rows["a"] = rows["a"] * 2
        return rows["a"].to_numpy()

    kept = frame.copy(deep=True)
    found = explain(changing_frame, frame[:3], frame[5:9])
    pandas.testing.assert_frame_equal(frame, kept)
    np.testing.assert_allclose(found.values[:, 0], 2 * (X[:3, 0] - X[5:9, 0].mean()), atol=roundings(5_000))


BAD = [
    ({"background": None}, InputError, r"needs reference rows\. Got background=None"),
    ({"deterministic": "maybe"}, UnknownNameError, r"Unknown deterministic='maybe'"),
    ({"random_state": np.random.default_rng(0)}, InputError, r"'random_state' parameter must be None or an int >= 0 here"),
    *(
        ({name: 0}, InputError, f"'{name}' parameter must be None or an int >= 1. Got 0")
        for name in ("rows_together", "batch_size")
    ),
    ({"output": 3}, InputError, r"has 1 output\. Got output=3"),
    ({"budget": 1}, BudgetError, r"budget of one call is too small"),
    ({"method": "magic"}, InputError, r"Unknown `method`\. Got 'magic'"),
    ({"estimator": "magic", "budget": 20}, UnknownNameError, r"Unknown estimator 'magic'"),
]


@pytest.mark.parametrize(("settings", "error", "match"), BAD, ids=lambda value: str(value)[:40])
def test_bad_settings(settings, error, match):
    settings = {"background": BACKGROUND, **settings}
    with pytest.raises(error, match=match):
        explain(curve, X[:2], settings.pop("background"), **settings)


def waves(rows):
    return np.sin(rows[:, 0] * rows[:, 1]) + np.tanh(rows[:, 2:5].sum(axis=1)) + 0.3 * rows[:, 5:].sum(axis=1)


MANY = np.random.default_rng(1).normal(size=(60, 12)) * np.linspace(1.5, 0.1, 12)


@pytest.mark.parametrize(
    ("function", "gained"),
    [(waves, 0.7), (lambda rows: np.stack([waves(rows), 2.0 * waves(-rows)], axis=1), 0.9)],
    ids=["one output", "two outputs"],
)
def test_rows_that_are_estimated_together_share_what_matters(function, gained):
    """Means of magnitudes with 20 coalitions a row; each row adds up, has errors that hold and is the same for every number of threads."""
    rows, background = MANY[:48], MANY[50:54]
    exact = explain(function, rows, background)
    alone, together = (
        explain(function, rows, background, method="regression", budget=20, rows_together=size) for size in (None, 12)
    )
    error = [np.abs(np.abs(found.values).mean(axis=0) - np.abs(exact.values).mean(axis=0)).max() for found in (alone, together)]
    assert error[1] < gained * error[0]
    assert np.mean(np.abs(together.values - exact.values) <= 2.0 * together.std_error) >= 0.92
    assert "12 rows together" in together.method
    assert together.n_evaluations == alone.n_evaluations
    np.testing.assert_allclose(together.residual, 0.0, atol=roundings(200))
    threads = explain(function, rows, background, method="regression", budget=20, rows_together=12, n_jobs=2)
    np.testing.assert_array_equal(threads.values, together.values)
    first = explain(function, rows[:12], background, method="regression", budget=20, rows_together=12)
    np.testing.assert_array_equal(first.values, together.values[:12])


@pytest.mark.parametrize(("n_outputs", "weights"), [(None, np.arange(1.0, 5.0)), (2, None)])
def test_rows_together_are_called_together_within_the_size_of_a_batch(n_outputs, weights):
    """Seven rows of 20 coalitions: one call a block where batches have room, the same answers where they have none."""
    rows, background, sizes = MANY[:7], MANY[50:54], []

    def function(cells):
        sizes.append(len(cells))
        return waves(cells) if n_outputs is None else np.stack([waves(cells), waves(-cells)], axis=1)

    settings = {
        "method": "regression",
        "budget": 20,
        "rows_together": 3,
        "deterministic": "skip",
        "background_weights": weights,
    }
    found, n_calls = explain(function, rows, background, **settings), len(sizes)
    assert sizes.count(3 * 4 * 20) == 2
    for batch_size in (1, 4, 9, 100):
        sizes.clear()
        again = explain(function, rows, background, batch_size=batch_size, **settings)
        assert max(sizes) <= max(batch_size, 7)  # the rows themselves are predicted at once
        assert len(sizes) > n_calls
        np.testing.assert_allclose(again.values, found.values, rtol=0, atol=roundings(5_000))


@pytest.mark.parametrize("together", [None, 2, 5])
def test_errors_of_rows_that_are_called_together_name_the_row(together):
    rows = MANY[:5].copy()
    rows[3, 2] = 99.0

    def refuses(cells):
        if np.any(cells[:, 2] == 99.0):
            raise ValueError("no such number")
        return waves(cells)

    settings = {"method": "regression", "budget": 20, "rows_together": together}
    with pytest.raises(InputError, match=r"raised ValueError for row 3 on 80 rows of 20 coalitions"):
        explain(refuses, rows, MANY[50:54], **settings)
    with pytest.raises(InputError, match=r"returned NaN or infinity for row 3\. First at the coalition with \['x0'"):
        explain(lambda cells: np.where(cells[:, 2] == 99.0, np.nan, waves(cells)), rows, MANY[50:54], **settings)


@pytest.mark.parametrize("n_rows", [0, 1, 4])
def test_a_last_block_of_one_row_and_no_row_are_answered_together_too(n_rows):
    found = explain(waves, MANY[:n_rows], MANY[50:54], method="regression", budget=60, rows_together=3)
    assert found.values.shape == (n_rows, 12)
    assert (found.std_error is None) == (n_rows == 0)
    np.testing.assert_allclose(found.residual, 0.0, atol=roundings(200))


def test_rows_together_keep_interactions_groups_and_columns_that_do_not_differ():
    rows, background = MANY[:6].copy(), MANY[50:54].copy()
    rows[:, 7] = background[:, 7] = 0.5
    settings = {"groups": {"pair": [0, 1]}, "method": "regression", "budget": 60, "rows_together": 3}
    found = explain(waves, rows, background, index="k-sii", order=2, **settings)
    exact = explain(waves, rows, background, index="k-sii", order=2, groups={"pair": [0, 1]}, method="enumeration")
    assert found.interactions.shape == exact.interactions.shape
    assert np.abs(found.values - exact.values).max() < 0.1 * np.abs(exact.values).max()
    assert not np.any(found.values[:, found.feature_names.index(exact.feature_names[6])])
