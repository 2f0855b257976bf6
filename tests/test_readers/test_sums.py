"""Weighted sums of models: votes, bags, stacks, one model for each output or class, by their own predictions as they are now."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostRegressor as SymmetricTrees
from lightgbm import LGBMRegressor
from sklearn import ensemble, linear_model, multioutput
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBRegressor

from exactshap import Explainer, explain
from exactshap.errors import ExactnessError, InputError, UnsupportedModelError, UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.solvers import solve
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import FLOAT32_MARGIN, assert_close, roundings

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(3500, 5)) * [1.0, 10.0, 0.1, 3.0, 1.0]
Y = X[:, 0] * X[:, 4] + X[:, 1] + np.sin(X[:, 3])
BOTH, TERNARY, FEW = np.c_[Y, -(Y**2)], np.digitize(Y, [-3.0, 3.0]), slice(0, 300)
BINARY = np.where(Y > 0, "yes", "no")
TWO_LABELS = np.c_[TERNARY, BINARY == "yes"].astype(int)
FRAME = pd.DataFrame(X, columns=list("abcde"))
BACKGROUND, ROWS = X[:9], X[50:53]
Vote, Bag, Stack = ensemble.VotingRegressor, ensemble.BaggingRegressor, ensemble.StackingRegressor
Targets, BagOfClasses = multioutput.MultiOutputRegressor, ensemble.BaggingClassifier
Forest = functools.partial(ensemble.RandomForestRegressor, 3, max_depth=3, random_state=0)
Soft = functools.partial(ensemble.VotingClassifier, voting="soft")
CHANGED = "has changed since it was read"


def boosting(**settings):
    return ensemble.GradientBoostingRegressor(n_estimators=6, random_state=0, **settings)


TREE, LINES = DecisionTreeRegressor(max_depth=3), [("r", Ridge()), ("l", LinearRegression())]
MEMBERS = [("l", Ridge()), ("b", boosting())]
MIXED = [("l", Ridge()), ("k", make_pipeline(StandardScaler(), SVR())), ("t", Forest())]
FORESTS = [
    ("forest", ensemble.RandomForestClassifier(4, max_depth=3, random_state=0)),
    ("extra", ensemble.ExtraTreesClassifier(3, max_depth=3, random_state=0)),
]
LOGIT = ("logit", make_pipeline(StandardScaler(), LogisticRegression()))
NETWORK = ("network", make_pipeline(StandardScaler(), MLPClassifier((3,), max_iter=5, random_state=0)))
MODELS = {  # (model, target, method)
    "vote": (Vote([*MEMBERS, ("d", "drop")], weights=[1.0, 2.0, 3.0]), Y, "predict"),
    "vote of linear models": (Vote(LINES, weights=[3.0, 1.0]), Y, "predict"),
    "vote of several families": (Vote([*MIXED, ("b", LGBMRegressor(n_estimators=4, verbose=-1))]), Y, "predict"),
    "vote of a vote": (Vote([("v", Vote(MEMBERS)), ("s", make_pipeline(StandardScaler(), boosting()))]), Y, "predict"),
    "vote of a bag": (Vote([("b", Bag(Ridge(), 2, random_state=0)), ("v", Vote(MIXED[:2]))]), Y, "predict"),
    "vote of quantiles": (
        Vote([("t", boosting(loss="quantile")), ("l", linear_model.QuantileRegressor(quantile=0.9, alpha=0.0))]),
        Y,
        "predict",
    ),
    "vote in single precision": (Vote([("x", XGBRegressor(n_estimators=4)), ("l", Ridge())]), Y, "predict"),
    "stack": (Stack(MEMBERS, Ridge(), cv=2), Y, "predict"),
    "stack of kernels": (Stack([("l", Ridge()), ("k", KernelRidge(kernel="rbf", gamma=0.1))], cv=2), Y, "predict"),
    "stack of linear models": (Stack(LINES, Ridge(), cv=2), Y, "predict"),
    "stack with the rows": (Stack(MIXED, LinearRegression(), passthrough=True, cv=2), Y, "predict"),
    "stack of linear models with the rows": (Stack(LINES, LinearRegression(), passthrough=True, cv=2), Y, "predict"),
    "bag": (Bag(Ridge(), 4, random_state=0), Y, "predict"),
    "bag of some columns": (Bag(Ridge(), 4, max_features=0.6, bootstrap_features=True, random_state=0), Y, "predict"),
    "bag of kernels": (Bag(SVR(), 4, max_features=0.6, random_state=0), Y, "predict"),
    "bag of boosting": (Bag(boosting(), 3, random_state=0), Y, "predict"),
    "bag of scaled targets": (
        Bag(TransformedTargetRegressor(linear_model.QuantileRegressor(alpha=0.0), transformer=StandardScaler()), 2),
        Y,
        "predict",
    ),
    "bag of two targets": (Bag(Ridge(), 3, random_state=0), BOTH, "predict"),
    "bag of trees of two targets": (Bag(TREE, 3, random_state=0), BOTH, "predict"),
    "targets": (Targets(Ridge()), BOTH, "predict"),
    "targets of lassos": (Targets(linear_model.LassoCV(cv=2)), BOTH, "predict"),
    "targets of forests": (Targets(Forest()), BOTH, "predict"),
    "targets of boosting": (Targets(boosting()), BOTH, "predict"),
    "targets of CatBoost": (Targets(SymmetricTrees(iterations=4, verbose=0, allow_writing_files=False)), BOTH, "predict"),
    "targets of counts": (Targets(PoissonRegressor()), BOTH**2, "predict"),
    "targets of boosted counts": (
        Targets(LGBMRegressor(n_estimators=4, verbose=-1, objective="poisson")),
        BOTH**2,
        "predict",
    ),
    "machines against the rest": (OneVsRestClassifier(LinearSVC()), TERNARY, "decision_function"),
    "logits against the rest": (OneVsRestClassifier(LogisticRegression()), TERNARY > 0, "decision_function"),
    "logits against each other": (OneVsOneClassifier(LogisticRegression()), TERNARY, None),  # whose own scores are votes
    "boosting against the rest": (
        OneVsRestClassifier(ensemble.GradientBoostingClassifier(n_estimators=4)),
        TERNARY,
        "decision_function",
    ),
    "votes of boosted trees": (
        ensemble.AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, random_state=0),
        TERNARY,
        "decision_function",
    ),
    "votes of two classes": (
        ensemble.AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, random_state=0),
        BINARY,
        "decision_function",
    ),
    "forests": (Soft(FORESTS), BINARY, "predict_proba"),
    "weighted forests": (Soft([*FORESTS, LOGIT], weights=[1, 2, 5]), BINARY, "predict_proba"),
    "forests of three": (Soft(FORESTS), TERNARY, "predict_proba"),
    "forests behind a scaler": (make_pipeline(StandardScaler(), Soft(FORESTS)), TERNARY, "predict_proba"),
    "probabilities of three": (
        Soft([LOGIT, ("b", ensemble.HistGradientBoostingClassifier(max_iter=4)), NETWORK, FORESTS[0]]),
        TERNARY,
        "predict_proba",
    ),
    "bag of three logits": (BagOfClasses(LogisticRegression(), 3, max_features=0.5, random_state=0), TERNARY, "predict_proba"),
    "rates": (Vote([("p", PoissonRegressor()), ("t", Forest()), ("l", Ridge())]), Y**2, "predict"),
    "bag of trees of classes": (BagOfClasses(DecisionTreeClassifier(max_depth=3), 4, random_state=0), TERNARY, "predict_proba"),
    "bag of logits": (BagOfClasses(LogisticRegression(), 4, max_features=0.5, random_state=0), BINARY, "predict_proba"),
    "scaled targets": (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), BOTH, "predict"),
    "scaled targets of a forest": (TransformedTargetRegressor(Forest(), transformer=StandardScaler()), BOTH, "predict"),
    "targets as they are": (TransformedTargetRegressor(Targets(SVR())), BOTH, "predict"),
    "labels": (multioutput.MultiOutputClassifier(FORESTS[0][1]), TWO_LABELS, "predict_proba"),
    "labels of logits": (multioutput.MultiOutputClassifier(LogisticRegression()), TWO_LABELS > 0, "predict_proba"),
}
LINEAR = ["targets", "targets of lassos", "machines against the rest", "logits against the rest", "logits against each other"]
LINEAR += ["vote of linear models", "stack of linear models", "stack of linear models with the rows", "bag"]
LINEAR += ["bag of some columns", "bag of two targets"]
FITTED_AGAIN = ["vote", "vote of a vote", "stack", "stack with the rows", "bag", "bag of boosting", "bag of some columns"]
FITTED_AGAIN += ["targets", "targets of boosting"]


@functools.cache
def fitted(name):
    model, target, _ = MODELS[name]
    return pickle.loads(pickle.dumps(model)).fit(X[FEW], target[FEW])


def own_of(model, method):
    def own(rows):
        answers = getattr(model, method)(rows)
        return np.concatenate(answers, axis=1) if isinstance(answers, list) else answers

    return own


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_own_answers(name):
    model, method = fitted(name), MODELS[name][2]
    if name in LINEAR:  # side by side, or added up
        groups = {"g": [0, 2, 4], "h": [1, 3]}
        check_reader(model, ROWS, BACKGROUND, groups=groups, background_weights=np.arange(1.0, 10.0))
    if method is None:
        check_reader(model, ROWS, BACKGROUND)
        return
    settings = {"output": "all"} if method == "predict_proba" else {}
    atol = FLOAT32_MARGIN if "single" in name else roundings(2_000)
    covers = name.startswith("votes of")
    found = check_answers(model, own_of(model, method), ROWS, BACKGROUND, atol, covers=covers, **settings)
    if method == "predict_proba":
        assert found.unit == "probability"
        sampled = explain(model.predict_proba, ROWS, BACKGROUND, exact_owner=False)
        assert found.output_names == sampled.output_names
    elif found.values.ndim == 3:
        one = explain(model, ROWS, BACKGROUND, output=1)
        np.testing.assert_array_equal(one.values, found.values[:, :, 1])


def test_logarithms_of_several_targets():
    model = TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1).fit(X[FEW], np.abs(BOTH[FEW]))
    found = check_answers(model, lambda rows: np.log1p(model.predict(rows)), ROWS, BACKGROUND, roundings(2_000))
    assert found.unit == "log1p of the target"
    last = explain(model, ROWS, BACKGROUND, output=-1)
    np.testing.assert_allclose(last.values, found.values[:, :, 1], atol=roundings(2_000))
    with pytest.raises(UnsupportedStructureError, match="exponential of several predictions"):
        explain(model, ROWS, BACKGROUND, output="response")


@pytest.mark.parametrize("name", ["forests", "weighted forests"])
def test_two_classes_are_explained_by_the_second(name):
    explanation = explain(fitted(name), ROWS, BACKGROUND)
    assert explanation.unit == "probability of class yes"
    np.testing.assert_array_equal(explanation.values, explain(fitted(name), ROWS, BACKGROUND, output="probability").values)
    no = explain(fitted(name), ROWS, BACKGROUND, output="no")
    np.testing.assert_allclose(explanation.values, -no.values, rtol=0, atol=roundings(100))


@pytest.mark.parametrize(
    "name", ["vote of several families", "bag of kernels", "targets of lassos", "machines against the rest"]
)
def test_frames_groups_and_weights(name):
    model, target, _ = MODELS[name]
    model = pickle.loads(pickle.dumps(model)).fit(FRAME[FEW], target[FEW])
    explainer = Explainer(model, FRAME[:9], groups={"g": ["a", "d"]}, background_weights=np.arange(1.0, 10.0))
    assert explainer.verify(FRAME[50:53]).passed
    explanation = explainer(FRAME[50:53], "k-sii", 2)
    assert explanation.feature_names == ("g", "b", "c", "e")
    assert explanation.certificate().passed
    check_reader(model, FRAME[50:53], FRAME[:9])


@pytest.mark.parametrize(
    "model",
    [
        TransformedTargetRegressor(KernelRidge(kernel="rbf"), transformer=StandardScaler()),
        ensemble.StackingRegressor([("machine", SVR())], Ridge()),
    ],
)
def test_normalized_values_share_the_constant_of_a_sum(model):
    """v(empty) is 0 by definition, as of one machine."""
    model = model.fit(X, np.stack([Y + 3.0, Y**2], axis=1) if isinstance(model, TransformedTargetRegressor) else Y + 3.0)
    explainer = Explainer(model, value_function="normalized")
    plain, found = explain(model, X[:3]), explainer(X[:3])
    assert not found.baseline.any()
    np.testing.assert_allclose(found.values, plain.values + plain.baseline[:, None] / X.shape[1], atol=roundings(1e3))
    table = as_table(X[:3])
    same = solve(explainer.reader.game(table), method="enumeration").values
    np.testing.assert_allclose(found.values, same, atol=roundings(1e3))


def test_games_without_a_background():
    forests = Vote([("a", ensemble.RandomForestRegressor(2, random_state=0)), ("b", DecisionTreeRegressor(max_depth=2))])
    explanation = explain(forests.fit(X[FEW], Y[FEW]), ROWS)
    assert explanation.value_function == "path_dependent"
    np.testing.assert_allclose(
        explanation.values, np.mean([explain(part, ROWS).values for part in forests.estimators_], axis=0)
    )
    assert explain(fitted("bag of kernels"), ROWS).value_function == "functional"
    with pytest.raises(UnsupportedStructureError, match=r"no value function in common.*Pass background="):
        explain(Vote(MIXED[1:]).fit(X[FEW], Y[FEW]), ROWS)


# -- the own prediction of the ensemble ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FITTED_AGAIN)
def test_a_model_is_called_as_it_is_now(name):
    model, target = pickle.loads(pickle.dumps(fitted(name))), MODELS[name][1][FEW]
    explainer, rows = Explainer(model, BACKGROUND, n_jobs=2), X[:100]
    explainer(rows)
    model.fit(X[FEW], target)  # the same once more
    np.testing.assert_array_equal(explainer(rows).prediction, model.predict(rows))
    model.fit(X[FEW], -target)
    with pytest.raises(ExactnessError, match=CHANGED):
        explainer(rows)


@pytest.mark.parametrize("name", [*FITTED_AGAIN[::2], "targets of boosting", "machines against the rest"])
def test_what_the_models_refuse_is_named_by_its_row(name):
    rows = X.copy()
    rows[3333, 2] = np.nan
    with pytest.raises(InputError, match="row 3333, column"):
        explain(fitted(name), rows, BACKGROUND, n_jobs=2)


@pytest.mark.parametrize(
    ("model", "unit"),
    [
        (OneVsRestClassifier(LogisticRegression()), "log-odds of class yes"),
        (OneVsRestClassifier(SVC()), "decision function of class yes"),
        (OneVsOneClassifier(LinearSVC()), "decision function of yes vs no"),
        (
            GaussianProcessClassifier(optimizer=None),
            "latent mean of class yes (before the link and the averaging over the posterior)",
        ),
    ],
)
def test_units_name_the_class_of_two(model, unit):
    assert explain(model.fit(X[:60], BINARY[:60]), ROWS[:1], BACKGROUND).unit == unit


# -- frames, precisions and columns ---------------------------------------------------------------------------------------


def test_names_that_the_models_do_not_know():
    for name in ("targets", "machines against the rest"):
        by_name = Explainer(fitted(name), FRAME[:9])
        assert by_name.reader.traits.feature_names == tuple("abcde")
        np.testing.assert_array_equal(by_name(FRAME[:50]).values, Explainer(fitted(name), BACKGROUND)(X[:50]).values)
        words = r"row 0, column 'c'.*\n?.*(MultiOutputRegressor|OneVsRestClassifier) does not accept"
        with pytest.raises(InputError, match=words):
            by_name(FRAME[:50].assign(c=np.nan))


def test_models_in_single_precision_are_judged_at_the_precision_of_the_worst():
    rows = FRAME.astype(np.float32)
    model = Targets(Ridge()).fit(rows[FEW], BOTH[FEW])
    assert Explainer(model, rows[:9])(rows).certificate().passed
    model.estimators_[0] = Ridge().fit(FRAME[FEW], BOTH[FEW, 0])
    assert Explainer(model, rows[:9])(rows).certificate().passed


@pytest.mark.parametrize("inner", [make_pipeline(StandardScaler(), Ridge()), Forest()], ids=str)
def test_models_of_several_families_side_by_side(inner):
    model = Targets(inner).fit(X[FEW], BOTH[FEW])
    model.estimators_[1] = Ridge().fit(X[FEW], BOTH[FEW, 1])
    check_answers(model, model.predict, ROWS, BACKGROUND, roundings(2_000))


@pytest.mark.parametrize("kept", [[0], [0, 1], [1, 2]])
def test_linear_models_of_some_columns(kept):
    model = make_pipeline(make_column_transformer((StandardScaler(), kept)), Ridge()).fit(X[FEW, :3], Y[FEW])
    values = check_answers(model, model.predict, ROWS[:, :3], BACKGROUND[:, :3], roundings(2_000)).values
    assert not values[:, [j for j in range(3) if j not in kept]].any()


# -- what cancels between models -----------------------------------------------------------------------------------------


def opposites(size, seed):
    """Return a vote of two linear models that all but cancel, and what is left of them."""
    rng = np.random.default_rng(seed)
    vote = Vote([("one", LinearRegression()), ("other", LinearRegression())]).fit(X[FEW], Y[FEW])
    left, (one, other) = rng.normal(size=5), vote.estimators_
    one.coef_ = size * rng.normal(size=5)
    other.coef_, one.intercept_, other.intercept_ = left - one.coef_, size, -size
    return vote, left


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12])
def test_what_cancels_between_models_is_not_taken_for_an_error(size):
    for seed in range(10):
        found = Explainer(opposites(size, seed)[0], BACKGROUND, n_jobs=1 + seed % 2)(X)
        assert found.certificate().passed
        assert (np.abs(found.residual) <= found.tolerance).all()


def test_a_row_of_the_background_far_from_the_others_counts_for_what_cancels():
    for seed in range(20):
        far = 1e9 * np.random.default_rng(seed).normal(size=(1, 5))
        assert Explainer(opposites(1e3, seed)[0], np.concatenate([far, -far]))(X[:50]).certificate().passed


def test_what_does_not_cancel_is():
    vote, left = opposites(1.0, 0)
    explainer = Explainer(vote, BACKGROUND)
    expected = 0.5 * (X[:5] - BACKGROUND.mean(axis=0)) * left
    assert_close(explainer(X[:5]).values, expected, np.abs(expected).max(), n_terms=25, n_players=9)
    vote.estimators_[0].coef_ = vote.estimators_[0].coef_ + 1e-9
    with pytest.raises(ExactnessError, match=CHANGED):
        explainer(X)


def test_errors_of_members_that_share_their_coalitions_go_together():
    rows = np.random.default_rng(0).normal(size=(20, 14))
    machine, settings = KernelRidge(kernel="rbf", gamma=0.1), {"value_function": "observational", "budget": 60}
    machine.fit(rows, rows[:, 0] * rows[:, 1])
    alike = Vote([(name, machine) for name in "abcd"]).fit(rows, rows[:, 0] * rows[:, 1])
    one, four = (explain(model, rows[:2], rows, **settings) for model in (machine, alike))
    np.testing.assert_allclose(four.std_error, one.std_error, rtol=roundings(64))


@pytest.mark.parametrize(
    "model",
    [
        Vote([("a", GaussianProcessRegressor())]),
        TransformedTargetRegressor(GaussianProcessRegressor(), transformer=StandardScaler()),
    ],
)
def test_no_covariance_is_known_of_a_sum(model):
    with pytest.raises(UnsupportedStructureError, match="one Gaussian process"):
        explain(model.fit(X[FEW], Y[FEW] if isinstance(model, Vote) else BOTH[FEW]), ROWS, BACKGROUND, uncertainty=True)


# -- what is no sum ------------------------------------------------------------------------------------------------------

FEW_FORESTS = ensemble.RandomForestRegressor(2)
REFUSED = {  # (model, target, words)
    "neighbours": (Vote([("n", KNeighborsRegressor())]), Y, "VotingRegressor is read as the sum.*KNeighbors"),
    "logarithms": (
        Bag(TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1), 2),
        np.abs(BOTH),
        "exponential of several predictions",
    ),
    "last step of trees": (Stack(MIXED[:1], FEW_FORESTS, cv=2), Y, "last step is linear.*RandomForest"),
    "last step with a link": (Stack(MIXED[:1], PoissonRegressor(), cv=2), Y**2, "last step is linear.*Poisson"),
    "roots of targets": (
        Targets(LGBMRegressor(n_estimators=2, verbose=-1, reg_sqrt=True)),
        BOTH**2,
        "exact in the unit that it predicts",
    ),
    "labels": (ensemble.VotingClassifier(FORESTS, voting="hard"), BINARY, "vote of labels.*voting='soft'"),
    "neighbours of classes": (Soft([("a", KNeighborsClassifier())]), TERNARY, "model.predict_proba"),
    "neighbours of labels": (multioutput.MultiOutputClassifier(KNeighborsClassifier()), TWO_LABELS, "model.predict_proba"),
    "labels of machines": (BagOfClasses(SVC(), 2), BINARY, "vote of labels"),
    "margins of bags": (OneVsRestClassifier(BagOfClasses(LogisticRegression(), 2)), TERNARY, "in the unit that it predicts"),
    "weights of logits": (ensemble.AdaBoostClassifier(LogisticRegression(), n_estimators=3), BINARY, "model.decision_function"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sum_is_refused(name):
    model, target, words = REFUSED[name]
    with pytest.raises((UnsupportedModelError, UnsupportedStructureError), match=words):
        explain(model.fit(X[FEW], target[FEW]), ROWS, BACKGROUND)
    if words.startswith("model."):
        assert explain(getattr(model, words.removeprefix("model.")), ROWS, BACKGROUND).certificate().passed
