"""Constants, centroids, chains, codes, stacks and densities of scikit-learn, by brute force over their own calls."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, RegressorChain
from sklearn.neighbors import KernelDensity, KNeighborsRegressor, LocalOutlierFactor, NearestCentroid
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeRegressor

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnknownNameError, UnsupportedModelError, UnsupportedStructureError
from exactshap.testing import check_reader
from oracles import interventional_values
from tolerances import roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
SCORE = np.asarray(X.a * X.b + X.c)
BINARY, TERNARY = np.where(SCORE > 0, "yes", "no"), np.digitize(SCORE, [-0.5, 0.5])
TARGETS, LABELS = np.c_[SCORE, SCORE**2, X.d], np.c_[SCORE > 0, X.d > 0].astype(int)
ROWS, BACKGROUND = X[:4], X[50:60]
FOREST = ("forest", RandomForestClassifier(4, max_depth=3, random_state=0))
LOGIT, LDA, HINGE = ("logit", LogisticRegression()), ("lda", LinearDiscriminantAnalysis()), ("hinge", LinearSVC())
BOOSTING = ("boosting", HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, min_samples_leaf=5))
KEPT = np.where(rng.random(120) < 0.3, "?", BINARY)


def code(estimator, y, **settings):
    return OutputCodeClassifier(estimator, random_state=0, **settings).fit(X, y)


# what to fit, and the model's own answers that are explained
MODELS = {
    "mean": (lambda: DummyRegressor().fit(X, SCORE), lambda m: m.predict),
    "medians": (lambda: DummyRegressor(strategy="median").fit(X, TARGETS), lambda m: m.predict),
    "prior": (lambda: DummyClassifier().fit(X, BINARY), lambda m: lambda rows: m.predict_proba(rows)[:, 1]),
    "priors": (lambda: DummyClassifier().fit(X, TERNARY), lambda m: m.predict_proba),
    "uniform": (lambda: DummyClassifier(strategy="uniform").fit(X, TERNARY), lambda m: m.predict_proba),
    "centroids of two": (lambda: NearestCentroid().fit(X, BINARY), lambda m: m.decision_function),
    "centroids of three": (lambda: NearestCentroid(shrink_threshold=0.1).fit(X, TERNARY), lambda m: m.decision_function),
    "priors of centroids": (lambda: NearestCentroid(priors="empirical").fit(X, TERNARY), lambda m: m.decision_function),
    "density": (lambda: KernelDensity(bandwidth=0.6).fit(X), lambda m: lambda rows: np.exp(m.score_samples(rows))),
    "weighted density": (
        lambda: KernelDensity(bandwidth="scott").fit(X, sample_weight=rng.random(120)),
        lambda m: lambda rows: np.exp(m.score_samples(rows)),
    ),
    "self-training": (
        lambda: SelfTrainingClassifier(LogisticRegression()).fit(X, np.where(KEPT == "?", -1, KEPT == "yes")),
        lambda m: m.decision_function,
    ),
    "chain": (lambda: RegressorChain(Ridge(), order=[2, 0, 1]).fit(X, TARGETS), lambda m: m.predict),
    "chain of classifiers": (
        lambda: ClassifierChain(LogisticRegression(), chain_method="decision_function", order=[1, 0]).fit(X, LABELS),
        lambda m: m.decision_function,
    ),
    "stack": (lambda: StackingClassifier([LOGIT, FOREST]).fit(X, BINARY), lambda m: m.decision_function),
    "stack and rows": (
        lambda: StackingClassifier([FOREST, HINGE], passthrough=True).fit(X, TERNARY),
        lambda m: m.decision_function,
    ),
    "stack of decisions": (
        lambda: StackingClassifier([BOOSTING, LDA], RidgeClassifier(), stack_method="decision_function").fit(X, TERNARY),
        lambda m: m.decision_function,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_own_answers(name):
    make, method = MODELS[name]
    model = make()
    check_reader(model, ROWS, BACKGROUND)
    explanation = explain(model, ROWS, BACKGROUND)
    assert explanation.exact
    own = np.asarray(method(model)(ROWS))
    np.testing.assert_allclose(explanation.prediction, own, rtol=roundings(64), atol=roundings(64))
    right = interventional_values(method(model), ROWS, BACKGROUND)
    atol = roundings(512) * max(1.0, np.abs(right).max())
    np.testing.assert_allclose(explanation.values.reshape(right.shape), right, rtol=0, atol=atol)


@pytest.mark.parametrize("name", ["prior", "centroids of two", "density", "chain", "stack"])
def test_pipelines_subclasses_and_columns(name):
    make, _ = MODELS[name]
    model = make()
    with pytest.raises(InputError, match="column"):
        explain(model, ROWS.drop(columns="a"), BACKGROUND)
    with pytest.raises(NotFittedError):
        explain(clone(model), ROWS, BACKGROUND)

    class Same(type(model)):
        """Predicts as its class does."""

    same = Same.__new__(Same)
    same.__dict__.update(vars(model))
    np.testing.assert_array_equal(explain(same, ROWS, BACKGROUND).values, explain(model, ROWS, BACKGROUND).values)


def test_a_subclass_with_a_density_of_its_own_is_refused():
    class Twice(KernelDensity):
        def score_samples(self, X):
            return 2.0 * super().score_samples(X)

    with pytest.raises(UnsupportedModelError, match="has its own score_samples"):
        explain(Twice(bandwidth=0.6).fit(X), ROWS, BACKGROUND)


def test_a_column_that_the_row_shares_gets_nothing_of_a_constant():
    texts = pd.DataFrame({"town": ["A", "B", "C"], "age": [1.0, np.nan, 3.0]})
    model = DummyClassifier().fit(texts, [0, 1, 1])
    explanation = explain(model, texts, texts)
    assert not explanation.values.any()
    assert explanation.unit == "probability of class 1"


@pytest.mark.parametrize(
    "make",
    [
        lambda: code(LogisticRegression(), TERNARY, code_size=3),
        lambda: code(RandomForestClassifier(3, max_depth=3, random_state=0), TERNARY, code_size=3),
        lambda: code(SVC(), TERNARY, code_size=2),
        lambda: code(LogisticRegression(), BINARY, code_size=2),  # a part that answers a constant
    ],
)
def test_the_closest_code_is_predicted(make):
    model = make()
    check_reader(model, ROWS, BACKGROUND)
    explanation = explain(model, X, BACKGROUND)
    np.testing.assert_array_equal(model.classes_[explanation.prediction.argmax(axis=1)], model.predict(X))
    one = explain(model, ROWS, BACKGROUND, output=str(model.classes_[1]))
    np.testing.assert_array_equal(one.values, explanation.values[:4, :, 1])


def test_isotonic_regression_is_a_function_of_its_column():
    model = IsotonicRegression(out_of_bounds="clip").fit(X[["a"]], X.a + 0.1 * SCORE)
    rows, background = X[["a"]].to_numpy()[:4], X[["a"]].to_numpy()[50:60]
    check_reader(model, rows, background)
    expected = model.predict(rows) - model.predict(background).mean()
    np.testing.assert_allclose(explain(model, rows, background).values[:, 0], expected, rtol=0, atol=roundings(32))
    explain(make_pipeline(StandardScaler(), model.fit(X[["a"]], SCORE)).fit(rows, rows[:, 0]), rows, background)
    with pytest.raises(InputError, match="NaN"):
        explain(IsotonicRegression().fit(X.a, SCORE), rows + 100.0, background)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (DummyClassifier(strategy="stratified").fit(X, BINARY), "at random"),
        (NearestCentroid(metric="manhattan").fit(X, TERNARY), "metric='manhattan'"),
        (KernelDensity(kernel="tophat").fit(X), "kernel='tophat'"),
        (KernelDensity(metric="manhattan").fit(X), "metric='manhattan'"),
        (ClassifierChain(LogisticRegression()).fit(X, LABELS), "chain_method='predict'"),
        (RegressorChain(DecisionTreeRegressor(max_depth=2)).fit(X, TARGETS), "DecisionTreeRegressor"),
        (StackingClassifier([LOGIT], BOOSTING[1]).fit(X, BINARY), "HistGradientBoostingClassifier"),
        (StackingClassifier([LDA], stack_method="predict").fit(X, TERNARY), "the labels of LinearDiscriminant"),
        (StackingClassifier([("svc", SVC())]).fit(X, TERNARY), "Got SVC as"),  # its reader explains pairs of classes
        (OutputCodeClassifier(HistGradientBoostingClassifier(max_iter=2)).fit(X, TERNARY), None),
    ],
)
def test_what_is_no_sum_is_refused(model, match):
    if match is None:
        assert explain(model, ROWS, BACKGROUND).exact
        return
    with pytest.raises(UnsupportedStructureError, match=match):
        explain(model, ROWS, BACKGROUND)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (KNeighborsRegressor().fit(X, SCORE), "ranked by distances"),
        (LabelSpreading().fit(X, BINARY == "yes"), "ratios of sums"),
        (AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, SCORE), "weighted median of trees"),
        (GaussianMixture(2, random_state=0).fit(X), "Known: kernel machines"),
        (LocalOutlierFactor(novelty=True).fit(X), "ranked by distances"),
    ],
)
def test_a_library_s_model_without_a_reader_is_refused_with_the_call_that_explains_it(model, why):
    # with a background and without: which method is meant is for the user to say, and nothing is sampled unasked
    for background in (BACKGROUND, None):
        with pytest.raises(UnsupportedModelError, match=why) as caught:
            explain(model, ROWS, background)
    method = next(name for name in ("predict_proba", "decision_function", "predict") if hasattr(model, name))
    assert f"explain(model.{method}, X, background)" in str(caught.value)
    explanation = Explainer(getattr(model, method), BACKGROUND)(ROWS)
    assert explanation.exact
    right = interventional_values(getattr(model, method), ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.values, right, rtol=0, atol=roundings(64) * max(1.0, np.abs(right).max()))


@pytest.mark.parametrize("name", MODELS)
def test_columns_in_another_order_are_refused_or_put_in_order(name):
    model = MODELS[name][0]()
    turned = ["d", "b", "a", "c"]
    with pytest.raises(InputError):
        explain(model, ROWS[turned], BACKGROUND[turned])
    aligned = explain(model, ROWS[turned], BACKGROUND[turned], align=True)
    np.testing.assert_array_equal(aligned.values, explain(model, ROWS, BACKGROUND).values)


@pytest.mark.parametrize(("logarithm", "back"), [(np.log, np.exp), (np.log1p, np.expm1), (np.log2, np.exp2)])
@pytest.mark.parametrize("inner", [Ridge(), SVR(), DecisionTreeRegressor(max_depth=3)])
def test_logarithms_of_the_target_are_what_the_regressor_predicts(logarithm, back, inner):
    model = TransformedTargetRegressor(inner, func=logarithm, inverse_func=back).fit(X, np.exp(0.3 * SCORE) + 0.5)
    check_reader(model, ROWS, BACKGROUND)
    explanation = explain(model, ROWS, BACKGROUND)
    assert explanation.unit == f"{logarithm.__name__} of the target"
    assert 'Without the logarithm: output="response"' in explanation.facts()["unit"]
    np.testing.assert_allclose(explanation.prediction, logarithm(model.predict(ROWS)), rtol=0, atol=roundings(16))
    np.testing.assert_array_equal(explanation.values, explain(model.regressor_, ROWS, BACKGROUND).values)


LOGARITHMS = {np.log: np.exp, np.log1p: np.expm1, np.log2: np.exp2}
INNER = {
    "a line": Ridge(),
    "a pipeline": make_pipeline(StandardScaler(), Ridge()),
    "a search": GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    "stumps": HistGradientBoostingRegressor(max_iter=5, max_depth=1),
    "boosting": HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=4, min_samples_leaf=5),
    "a forest": RandomForestRegressor(3, max_depth=3, random_state=0),
    "a network": MLPRegressor(hidden_layer_sizes=(3,), max_iter=50, random_state=0),
}


@pytest.mark.parametrize("logarithm", LOGARITHMS)
@pytest.mark.parametrize("name", INNER)
def test_targets_of_which_a_logarithm_was_fitted(logarithm, name):
    """Prices rather than their logarithms: ``output="response"``, by brute force over the model's own predictions."""
    model = TransformedTargetRegressor(INNER[name], func=logarithm, inverse_func=LOGARITHMS[logarithm])
    model.fit(X, np.exp(0.3 * SCORE) + 0.5)
    explainer = Explainer(model, BACKGROUND, output="response")
    explanation = explainer(ROWS)
    right = interventional_values(model.predict, ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.values, right, rtol=0, atol=roundings(64) * np.abs(right).max())
    assert (explanation.unit, explanation.exact) == ("target", True)
    np.testing.assert_array_equal(explanation.prediction, model.predict(ROWS))
    assert explainer.verify(ROWS).passed
    assert explainer.verify(ROWS, index="banzhaf").passed


def test_what_the_exponential_of_predictions_is_not_read_of():
    def model(inner):
        return TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp).fit(X, np.exp(0.3 * SCORE))

    scaled = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
    # A mean of exponentials is not the exponential of a mean, nor is a scaled one that of a scaled prediction
    for inner in (SVR(), VotingRegressor([("a", Ridge()), ("b", SVR())]), BaggingRegressor(SVR(), 2), scaled):
        with pytest.raises(UnsupportedStructureError, match=r"only of sums of terms, of trees and.*model\.predict"):
            explain(model(inner), ROWS, BACKGROUND, output="response")
    with pytest.raises(UnsupportedStructureError, match="needs reference rows"):
        explain(model(INNER["a forest"]), ROWS, output="response")
    with pytest.raises(UnknownNameError, match="has no output 'probability'"):
        explain(model(Ridge()), ROWS, BACKGROUND, output="probability")
    with pytest.raises(UnknownNameError, match="has no setting 'budget'"):
        explain(model(Ridge()), ROWS, BACKGROUND, output="response", budget=100)


def test_a_price_of_many_columns_is_sampled_with_an_error():
    rows = np.random.default_rng(0).normal(size=(200, 16))
    boosting = HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=8)
    model = TransformedTargetRegressor(boosting, func=np.log1p, inverse_func=np.expm1).fit(
        rows, np.exp(0.5 * rows[:, 0] * rows[:, 1])
    )
    sampled = explain(model, rows[:2], rows[:20], output="response")
    exact = explain(model, rows[:2], rows[:20], output="response", budget=2**16)
    assert (sampled.exact, exact.exact) == (False, True)
    missed = np.abs(sampled.values - exact.values)
    # Six standard errors of each of 32 values
    assert (missed <= 6.0 * sampled.std_error + roundings(64)).all()


@pytest.mark.parametrize(
    ("inner", "value_function"),
    [(MLPRegressor(hidden_layer_sizes=(3,), activation="tanh", max_iter=50), "interventional"), (SVR(), "observational")],
)
def test_scaled_targets_of_models_with_games_of_their_own_are_verified(inner, value_function):
    model = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, SCORE)
    assert Explainer(model, BACKGROUND, value_function=value_function).verify(ROWS).passed
