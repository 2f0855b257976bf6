"""Nystroem and random Fourier features: in front of whatever is linear they are exact, of anything else refused by its name."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import StackingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    RANSACRegressor,
    Ridge,
    SGDClassifier,
    SGDOneClassSVM,
    TweedieRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeRegressor

from exactshap import Explainer, explain
from exactshap.errors import UnsupportedStructureError
from oracles import interventional_values
from reader_checks import check_answers
from tolerances import INVERTED

SCALE = 100  # of the coefficients that cancel in a kernel expansion
RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 4))
Y = np.abs(X[:, 0] * X[:, 1] + np.sin(X[:, 2]))
LABELS, CLASSES = (Y > 0.7).astype(int), np.digitize(Y, [0.4, 1.0])
ROWS, BACKGROUND = X[:3], X[10:16]
MAPS = {"Nystroem": Nystroem(n_components=6, random_state=0), "RBFSampler": RBFSampler(n_components=6, random_state=0)}


class Mine(Ridge):
    """Predicts as its parent does."""


class Squared(Ridge):
    def predict(self, rows):
        return super().predict(rows) ** 2


LINEAR = {  # (model, target, method)
    "a subclass": (Mine(), Y, "predict"),
    "RANSAC": (RANSACRegressor(random_state=0), Y, "predict"),
    "no link": (TweedieRegressor(power=0), Y, "predict"),
    "one class": (SGDOneClassSVM(random_state=0), Y, "decision_function"),
    "discriminant": (LinearDiscriminantAnalysis(), LABELS, "decision_function"),
    "least squares": (PLSRegression(2), Y, "predict"),
    "logistic": (LogisticRegression(), LABELS, "decision_function"),
    "linear machine": (SVR(kernel="linear"), Y, "predict"),
    "linear classifier": (SVC(kernel="linear"), LABELS, "decision_function"),
}
OTHERS = {
    "a link": (PoissonRegressor(), Y),
    "own prediction": (Squared(), Y),
    "kernels": (KernelRidge(kernel="rbf"), Y),
    "a tree": (DecisionTreeRegressor(), Y),
    "a scaled target": (TransformedTargetRegressor(Ridge()), Y),
    "densities": (GaussianNB(), LABELS),
    "votes": (SVC(kernel="linear"), CLASSES),
    "labels": (OneClassSVM(kernel="linear"), Y),
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("feature_map", MAPS)
def test_linear_models_are_exact(feature_map, name):
    last, target, method = LINEAR[name]
    model = make_pipeline(MAPS[feature_map], last).fit(X, target)
    check_answers(model, getattr(model, method), ROWS, BACKGROUND, SCALE * INVERTED, contract=feature_map == "Nystroem")


PROBABLE = {  # (last step, target)
    "logistic of two": (LogisticRegression(), LABELS),
    "softmax": (LogisticRegression(), CLASSES),
    "one against the rest": (SGDClassifier(loss="log_loss", random_state=0), CLASSES),
    "calibrated": (LinearSVC(), CLASSES),
}


@pytest.mark.parametrize("name", PROBABLE)
@pytest.mark.parametrize("feature_map", MAPS)
def test_probabilities_are_those_of_brute_force(feature_map, name):
    last, target = PROBABLE[name]
    model = make_pipeline(MAPS[feature_map], last)
    model = (CalibratedClassifierCV(model, cv=2) if name == "calibrated" else model).fit(X, target)
    own = (lambda rows: model.predict_proba(rows)[:, 1]) if target is LABELS else (lambda rows: model.predict_proba(rows))
    found = check_answers(model, own, ROWS, BACKGROUND, SCALE * INVERTED, contract=False, output="probability")
    assert found.unit == ("probability of class 1" if target is LABELS else "probability")


def test_prices_of_feature_maps():
    inner = make_pipeline(MAPS["RBFSampler"], Ridge())
    model = TransformedTargetRegressor(inner, func=np.log1p, inverse_func=np.expm1).fit(X, Y)
    check_answers(model, lambda rows: model.predict(rows), ROWS, BACKGROUND, INVERTED, contract=False, output="response")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("feature_map", MAPS)
def test_what_is_not_linear_is_refused_by_name(feature_map, name):
    last, target = OTHERS[name]
    model = make_pipeline(MAPS[feature_map], last).fit(X, target)
    way = r"Explainer\(pipeline.predict, background\), of a classifier pipeline.predict_proba"
    with pytest.raises(UnsupportedStructureError, match=rf"not linear.*{type(last).__name__}.*{way}"):
        Explainer(model, BACKGROUND)


def test_an_instance_of_its_own_is_not_linear_and_unfitted_models_are_said_to_be_that():
    model = make_pipeline(MAPS["Nystroem"], Ridge()).fit(X, Y)
    model[-1].predict = lambda rows: np.zeros(len(rows))
    with pytest.raises(UnsupportedStructureError, match="not linear"):
        Explainer(model, BACKGROUND)
    with pytest.raises(NotFittedError, match="Ridge"):
        Explainer(make_pipeline(MAPS["Nystroem"].fit(X), Ridge()), BACKGROUND)


def test_last_steps_of_stacks():
    members = [("a", Ridge()), ("b", KernelRidge(kernel="rbf"))]
    model = StackingRegressor(members, Mine()).fit(X, Y)
    check_answers(model, model.predict, ROWS, BACKGROUND, SCALE * INVERTED)
    model.final_estimator_.predict = lambda columns: columns[:, 0] ** 2
    for refused in (model, StackingRegressor(members, Squared()).fit(X, Y)):
        with pytest.raises(UnsupportedStructureError, match="where its last step is linear"):
            Explainer(refused, BACKGROUND)


@pytest.mark.parametrize(
    ("kernel", "settings"), [("rbf", {"gamma": 1e-3}), ("linear", {}), ("poly", {"degree": 2, "coef0": 1.0})]
)
def test_landmarks_that_nearly_span_each_other_are_explained(kernel, settings):
    """Whiteners of a rank-deficient landmark matrix are huge, and cancel in the model's own arithmetic: the tolerance counts them."""
    rows = np.random.default_rng(0).random((100, 4))
    nystroem = Nystroem(kernel=kernel, n_components=30, random_state=0, **settings)
    model = make_pipeline(nystroem, Ridge(1e-3)).fit(rows, rows @ [1.0, 2.0, 3.0, 4.0])
    explanation = explain(model, rows[:5], rows[:20])
    assert explanation.tolerance.max() < 1e-5 * np.abs(explanation.prediction).max()
    expected = interventional_values(model.predict, rows[:5], rows[:20])
    assert np.abs(explanation.values - expected).max() <= 10 * explanation.tolerance.max()
