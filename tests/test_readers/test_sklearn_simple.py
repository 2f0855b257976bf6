"""Constants, centroids, densities, chains, codes, stacks, naive Bayes and others of scikit-learn, by brute force over their own calls."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn import model_selection, naive_bayes
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.covariance import EllipticEnvelope
from sklearn.cross_decomposition import CCA, PLSCanonical, PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
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
from sklearn.feature_selection import RFE, RFECV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.mixture import GaussianMixture
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
from reader_checks import check_answers, second_class
from tolerances import roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
SCORE = np.asarray(X.a * X.b + X.c)
BINARY, TERNARY = np.where(SCORE > 0, "yes", "no"), np.digitize(SCORE, [-0.5, 0.5])
TARGETS, LABELS = np.c_[SCORE, SCORE**2, X.d], np.c_[SCORE > 0, X.d > 0].astype(int)
PRICES, TO_LOGS = np.exp(0.3 * SCORE) + 0.5, {np.log: np.exp, np.log1p: np.expm1, np.log2: np.exp2}
COUNTS = pd.DataFrame(rng.poisson([3.0, 1.0, 2.0, 0.5], size=(120, 4)).astype(float), columns=list("abcd"))
MOVED = X * [1.0, 5.0, 0.1, 1.0] + [0.0, 100.0, 3.0, -5.0]
FOREST = ("forest", RandomForestClassifier(4, max_depth=3, random_state=0))
LOGIT, LDA, HINGE = ("logit", LogisticRegression()), ("lda", LinearDiscriminantAnalysis()), ("hinge", LinearSVC())
BOOSTING = ("boosting", HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, min_samples_leaf=5))
PARTLY = np.where(rng.random(120) < 0.3, -1, SCORE > 0)
WEIGHTS = rng.random(120)


def code(estimator, y, **settings):
    return OutputCodeClassifier(estimator, random_state=0, **settings).fit(X, y)


def decision(model):
    return model.decision_function


def predict(model):
    return model.predict


def shares(model):
    return model.predict_proba


def density(model):
    return lambda rows: np.exp(model.score_samples(rows))


def joint(model):
    """Joint log-likelihoods; of two classes their difference."""

    def own(rows):
        logs = model.predict_joint_log_proba(rows)
        return logs if logs.shape[1] > 2 else logs[:, 1] - logs[:, 0]

    return own


# what to fit, and the model's own answers that are explained
MODELS = {
    "mean": (lambda: DummyRegressor().fit(X, SCORE), predict),
    "medians": (lambda: DummyRegressor(strategy="median").fit(X, TARGETS), predict),
    "prior": (lambda: DummyClassifier().fit(X, BINARY), second_class),
    "priors": (lambda: DummyClassifier().fit(X, TERNARY), shares),
    "uniform": (lambda: DummyClassifier(strategy="uniform").fit(X, TERNARY), shares),
    "centroids of two": (lambda: NearestCentroid().fit(X, BINARY), decision),
    "centroids of three": (lambda: NearestCentroid(shrink_threshold=0.1).fit(X, TERNARY), decision),
    "priors of centroids": (lambda: NearestCentroid(priors="empirical").fit(X, TERNARY), decision),
    "density": (lambda: KernelDensity(bandwidth=0.6).fit(X), density),
    "weighted density": (lambda: KernelDensity(bandwidth="scott").fit(X, sample_weight=WEIGHTS), density),
    "quadratic of two": (lambda: QuadraticDiscriminantAnalysis().fit(MOVED, BINARY), decision),
    "quadratic in single precision": (
        lambda: QuadraticDiscriminantAnalysis().fit(MOVED.astype(np.float32), BINARY),
        decision,
    ),
    "quadratic of three": (lambda: QuadraticDiscriminantAnalysis(reg_param=0.1).fit(MOVED, TERNARY), decision),
    "quadratic, piped": (lambda: make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis()).fit(MOVED, BINARY), decision),
    "envelope": (lambda: EllipticEnvelope(random_state=0).fit(MOVED), decision),
    "self-training": (lambda: SelfTrainingClassifier(LogisticRegression()).fit(X, PARTLY), decision),
    "eliminated": (lambda: RFE(LogisticRegression(), n_features_to_select=2).fit(X, TERNARY), decision),
    "eliminated by folds": (lambda: RFECV(RandomForestRegressor(3, random_state=0), cv=2).fit(X, SCORE), predict),
    "eliminated, boosted": (lambda: RFE(LGBMRegressor(n_estimators=4, verbose=-1)).fit(X, SCORE), predict),
    "scaled, eliminated, boosted": (
        lambda: make_pipeline(StandardScaler(), RFE(LGBMRegressor(n_estimators=4, verbose=-1))).fit(X, SCORE),
        predict,
    ),
    "chain": (lambda: RegressorChain(Ridge(), order=[2, 0, 1]).fit(X, TARGETS), predict),
    "chain of classifiers": (
        lambda: ClassifierChain(LogisticRegression(), chain_method="decision_function", order=[1, 0]).fit(X, LABELS),
        decision,
    ),
    "stack": (lambda: StackingClassifier([LOGIT, FOREST]).fit(X, BINARY), decision),
    "stack and rows": (lambda: StackingClassifier([FOREST, HINGE], passthrough=True).fit(X, TERNARY), decision),
    "stack of decisions": (
        lambda: StackingClassifier([BOOSTING, LDA], RidgeClassifier(), stack_method="decision_function").fit(X, TERNARY),
        decision,
    ),
}
BAYES = {
    "gaussian": naive_bayes.GaussianNB(),
    "multinomial": naive_bayes.MultinomialNB(),
    "complement": naive_bayes.ComplementNB(norm=True),
    "bernoulli": naive_bayes.BernoulliNB(binarize=1.0),
    "bernoulli without a threshold": naive_bayes.BernoulliNB(binarize=None),
    "categorical": naive_bayes.CategoricalNB(min_categories=5),
}


def of_counts(name, y):
    rows = COUNTS.clip(upper=1.0) if "without" in name else COUNTS.clip(upper=3.0) if name == "categorical" else COUNTS
    return lambda: clone(BAYES[name]).fit(rows, y), joint


MODELS |= {f"{name} of {k}": of_counts(name, y) for name in BAYES for k, y in (("two", SCORE > 0), ("three", TERNARY))}


def rows_of(name):
    """Return rows and a background of the kind to which a model was fitted."""
    table = X
    if name.split(" of ")[0] in BAYES:
        table = COUNTS.clip(upper=1.0) if "without" in name else COUNTS.clip(upper=3.0)
    elif name.startswith(("quadratic", "envelope")):
        table = MOVED
    return table[:4], table[50:60]


ROWS, BACKGROUND = rows_of("")


def test_outputs_of_a_stack_are_classes_of_the_stack():
    model = StackingClassifier([FOREST]).fit(X, np.array(["1", "2", "3"])[TERNARY])
    picked = explain(model, ROWS, BACKGROUND, output="2")
    np.testing.assert_array_equal(picked.prediction, model.decision_function(ROWS)[:, 1])
    assert picked.unit == "score before the softmax of 2"


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_own_answers(name):
    make, method = MODELS[name]
    model, (rows, background) = make(), rows_of(name)
    grouped = name.split(" of ")[0] in BAYES
    check_answers(model, method(model), rows, background, roundings(2_000), contract=not grouped)
    if grouped:
        check_reader(model, rows, background, groups={"g": ["b", "d"]}, background_weights=np.arange(10) + 1.0)
    turned = ["d", "b", "a", "c"]
    with pytest.raises(InputError):
        explain(model, rows[turned], background[turned])


@pytest.mark.parametrize("name", ["prior", "centroids of two", "density", "eliminated", "chain", "stack"])
def test_unfitted_models_and_subclasses(name):
    model = MODELS[name][0]()
    with pytest.raises(NotFittedError):
        explain(clone(model), ROWS, BACKGROUND)
    values = explain(model, ROWS, BACKGROUND).values
    model.__class__ = type("Same", (type(model),), {})
    np.testing.assert_array_equal(explain(model, ROWS, BACKGROUND).values, values)


def test_a_subclass_with_a_density_of_its_own_is_refused():
    class Twice(KernelDensity):
        def score_samples(self, X):
            return 2.0 * super().score_samples(X)

    with pytest.raises(UnsupportedModelError, match="has its own score_samples"):
        explain(Twice(bandwidth=0.6).fit(X), ROWS, BACKGROUND)


def test_a_constant_of_texts_gives_nothing():
    texts = pd.DataFrame({"town": ["A", "B", "C"], "age": [1.0, np.nan, 3.0]})
    explanation = explain(DummyClassifier().fit(texts, [0, 1, 1]), texts, texts)
    assert not explanation.values.any()
    assert explanation.unit == "probability of class 1"


@pytest.mark.parametrize(
    "make",
    [
        lambda: code(LogisticRegression(), TERNARY, code_size=3),
        lambda: code(RandomForestClassifier(3, max_depth=3, random_state=0), TERNARY, code_size=3),
        lambda: code(HistGradientBoostingClassifier(max_iter=2), TERNARY),
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
    check_answers(model, lambda cells: model.predict(cells), rows, background, roundings(32))
    explain(make_pipeline(StandardScaler(), model.fit(X[["a"]], SCORE)).fit(rows, rows[:, 0]), rows, background)
    with pytest.raises(InputError, match="NaN"):
        explain(IsotonicRegression().fit(X.a, SCORE), rows + 100.0, background)


# -- naive Bayes and partial least squares -------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [SCORE > 0, TERNARY], ids=["two", "three"])
@pytest.mark.parametrize("searched", [False, True])
def test_naive_bayes_behind_a_scaler(searched, y):
    """Pipelines and searches have no method for the joint log-likelihood."""
    model = make_pipeline(StandardScaler(), naive_bayes.GaussianNB())
    model = model_selection.GridSearchCV(model, {}, cv=2) if searched else model
    scaler, last = getattr(model.fit(COUNTS, y), "best_estimator_", model)
    explanation = explain(model, COUNTS[:5], COUNTS[20:32])
    np.testing.assert_array_equal(explanation.prediction, joint(last)(scaler.transform(COUNTS[:5])))
    assert explanation.certificate().passed
    assert explanation.certificate().n_masks


@pytest.mark.parametrize("unknown", [7.0, -1.0])
def test_unknown_categories_are_refused_by_their_place(unknown):
    codes = COUNTS.clip(upper=3.0).to_numpy()
    rows = codes[:5].copy()
    rows[3, 1] = unknown
    words = rf"does not know \(first at row 3, column 1\). Got {unknown:g}; it knows 0 to"
    with pytest.raises(InputError, match=words):
        explain(naive_bayes.CategoricalNB().fit(codes, TERNARY), rows, codes[20:32])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["bernoulli", "bernoulli without a threshold", "multinomial", "complement"])
def test_probabilities_of_zero_are_refused(name):
    model = clone(BAYES[name]).set_params(alpha=0.0, force_alpha=True)
    rows = np.c_[SCORE > 0, SCORE > 0, COUNTS.a > 2].astype(float)
    with pytest.raises(UnsupportedStructureError, match=r"A probability of 0 has no logarithm. Fit it with a larger alpha"):
        explain(model.fit(rows, SCORE > 0), rows[:5], rows[20:32])


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("model", [PLSRegression(2), PLSRegression(2, scale=False), PLSCanonical(2), CCA(2)], ids=str)
def test_partial_least_squares(model, as_frame):
    rows = MOVED if as_frame else MOVED.to_numpy()
    check_reader(model.fit(rows, TARGETS[:, 1:]), rows[:5], rows[20:32])
    if isinstance(model, PLSRegression):
        check_reader(model.fit(rows, SCORE), rows[:5], rows[20:32])


# -- searches and frozen models ------------------------------------------------------------------------------------------

SEARCHED = make_pipeline(StandardScaler(), SVR(C=3.0))
SEARCH = model_selection.GridSearchCV(SEARCHED, {"svr__C": [3.0]}, cv=2)
WRAPPED = {  # (wrapper, the model inside)
    "grid": (SEARCH, SEARCHED),
    "random": (model_selection.RandomizedSearchCV(SEARCHED, {"svr__C": [3.0]}, n_iter=1, cv=2), SEARCHED),
    "frozen": (FrozenEstimator(SEARCHED.fit(X, SCORE)), SEARCHED),
    "threshold": (model_selection.TunedThresholdClassifierCV(LogisticRegression(), cv=2), LogisticRegression()),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_model_inside_is_explained(name):
    y = SCORE > 0 if name == "threshold" else SCORE
    wrapper, inside = (model.fit(X, y) for model in WRAPPED[name])
    explanation = explain(wrapper, ROWS, BACKGROUND)
    np.testing.assert_array_equal(explanation.values, explain(inside, ROWS, BACKGROUND).values)
    assert Explainer(wrapper, BACKGROUND).verify(ROWS).passed
    if name != "threshold":
        np.testing.assert_allclose(explanation.prediction, wrapper.predict(ROWS), rtol=roundings(50))


# -- what is refused -----------------------------------------------------------------------------------------------------

REFUSED = {
    "at random": DummyClassifier(strategy="stratified").fit(X, BINARY),
    "metric='manhattan'": KernelDensity(metric="manhattan").fit(X),
    "NearestCentroid.*metric='manhattan'": NearestCentroid(metric="manhattan").fit(X, TERNARY),
    "kernel='tophat'": KernelDensity(kernel="tophat").fit(X),
    "chain_method='predict'": ClassifierChain(LogisticRegression()).fit(X, LABELS),
    "DecisionTreeRegressor": RegressorChain(DecisionTreeRegressor(max_depth=2)).fit(X, TARGETS),
    "HistGradientBoostingClassifier": StackingClassifier([LOGIT], BOOSTING[1]).fit(X, BINARY),
    "the labels of LinearDiscriminant": StackingClassifier([LDA], stack_method="predict").fit(X, TERNARY),
    "Got SVC as": StackingClassifier([("svc", SVC())]).fit(X, TERNARY),  # its reader explains pairs of classes
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_no_sum_is_refused(words):
    with pytest.raises(UnsupportedStructureError, match=words):
        explain(REFUSED[words], ROWS, BACKGROUND)


WITHOUT_A_READER = {
    "ranked by distances": KNeighborsRegressor().fit(X, SCORE),
    "ratios of sums": LabelSpreading().fit(X, BINARY == "yes"),
    "weighted median of trees": AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, SCORE),
    "Known: kernel machines": GaussianMixture(2, random_state=0).fit(X),
    "ranked by (distances)": LocalOutlierFactor(novelty=True).fit(X),
}


@pytest.mark.parametrize("why", WITHOUT_A_READER)
def test_a_library_s_model_without_a_reader_is_refused_with_the_call_that_explains_it(why):
    # with a background and without: which method is meant is for the user to say, and nothing is sampled unasked
    model = WITHOUT_A_READER[why]
    for background in (BACKGROUND, None):
        with pytest.raises(UnsupportedModelError, match=why) as caught:
            explain(model, ROWS, background)
    method = next(name for name in ("predict_proba", "decision_function", "predict") if hasattr(model, name))
    assert f"explain(model.{method}, X, background)" in str(caught.value)
    function = getattr(model, method)
    check_answers(function, function, ROWS, BACKGROUND, roundings(64))


# -- logarithms of the target --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("logarithm", TO_LOGS)
@pytest.mark.parametrize("inner", [Ridge(), SVR(), DecisionTreeRegressor(max_depth=3)])
def test_logarithms_of_the_target_are_what_the_regressor_predicts(logarithm, inner):
    model = TransformedTargetRegressor(inner, func=logarithm, inverse_func=TO_LOGS[logarithm]).fit(X, PRICES)
    found = check_answers(model, lambda rows: logarithm(model.predict(rows)), ROWS, BACKGROUND, roundings(64))
    assert found.unit == f"{logarithm.__name__} of the target"
    assert 'Without the logarithm: output="response"' in found.facts()["unit"]
    np.testing.assert_array_equal(found.values, explain(model.regressor_, ROWS, BACKGROUND).values)


INNER = {
    "a line": Ridge(),
    "a pipeline": make_pipeline(StandardScaler(), Ridge()),
    "a search": model_selection.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    "stumps": HistGradientBoostingRegressor(max_iter=5, max_depth=1),
    "boosting": HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=4, min_samples_leaf=5),
    "a forest": RandomForestRegressor(3, max_depth=3, random_state=0),
    "a network": MLPRegressor(hidden_layer_sizes=(3,), max_iter=50, random_state=0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "logarithm"), [(name, list(TO_LOGS)[k % 3]) for k, name in enumerate(INNER)])
def test_prices_of_which_a_logarithm_was_fitted(name, logarithm):
    """Prices rather than their logarithms: ``output="response"``, by brute force over the model's own predictions."""
    model = TransformedTargetRegressor(INNER[name], func=logarithm, inverse_func=TO_LOGS[logarithm]).fit(X, PRICES)
    found = check_answers(model, model.predict, ROWS, BACKGROUND, roundings(64), output="response")
    assert found.unit == "target"
    assert Explainer(model, BACKGROUND, output="response").verify(ROWS, index="banzhaf").passed


def test_what_the_exponential_of_predictions_is_not_read_of():
    def model(inner):
        return TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp).fit(X, PRICES)

    scaled = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
    # A mean of exponentials is not the exponential of a mean, nor is a scaled one that of a scaled prediction
    for inner in (VotingRegressor([("a", Ridge()), ("b", SVR())]), BaggingRegressor(SVR(), 2), scaled):
        with pytest.raises(UnsupportedStructureError, match=r"only of sums of terms, kernel mach.*model\.predict"):
            explain(model(inner), ROWS, BACKGROUND, output="response")
    with pytest.raises(UnsupportedStructureError, match="needs reference rows"):
        explain(model(INNER["a forest"]), ROWS, output="response")
    for settings, words in (({"output": "probability"}, "no output 'probability'"), ({"budget": 9}, "no setting 'budget'")):
        with pytest.raises(UnknownNameError, match=words):
            explain(model(Ridge()), ROWS, BACKGROUND, **{"output": "response", **settings})


def test_a_price_of_many_columns_is_sampled_with_an_error():
    rows = np.random.default_rng(0).normal(size=(200, 16))
    boosting = HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=8)
    model = TransformedTargetRegressor(boosting, func=np.log1p, inverse_func=np.expm1)
    model.fit(rows, np.exp(0.5 * rows[:, 0] * rows[:, 1]))
    sampled, exact = (explain(model, rows[:2], rows[:8], output="response", **more) for more in ({}, {"budget": 2**16}))
    assert (sampled.exact, exact.exact) == (False, True)
    # Six standard errors of each of 32 values
    assert (np.abs(sampled.values - exact.values) <= 6.0 * sampled.std_error + roundings(64)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("inner", "value_function"),
    [(MLPRegressor(hidden_layer_sizes=(3,), activation="tanh", max_iter=50), "interventional"), (SVR(), "observational")],
)
def test_scaled_targets_of_models_with_games_of_their_own_are_verified(inner, value_function):
    model = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, SCORE)
    assert Explainer(model, BACKGROUND, value_function=value_function).verify(ROWS).passed
