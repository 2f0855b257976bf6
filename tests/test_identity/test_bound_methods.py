"""``explain(model.method, ...)`` explains that method: labels stay labels, scores stay scores, on rows that a model has memorised."""

import warnings
from types import MethodType

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from exactshap import Explainer, explain
from exactshap.readers import _identity
from exactshap.readers.black_box import BlackBox
from oracles import interventional_values

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 4))
Y = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + 0.3 * X[:, 3]
LABELS = (Y > 0).astype(int)
ROWS, BACKGROUND = X[:3], X[20:29]  # all of them training rows: forests know them by heart


def boosters(kind):
    """Return the three libraries' estimators of a kind."""
    prefixes = ((xgboost, "XGB", {}), (lightgbm, "LGBM", {"verbose": -1, "min_child_samples": 1}))
    models = [getattr(library, f"{name}{kind}")(n_estimators=5, **settings) for library, name, settings in prefixes]
    return [*models, getattr(catboost, f"CatBoost{kind}")(iterations=5, verbose=0, allow_writing_files=False)]


CLASSIFIERS = {
    "tree": DecisionTreeClassifier(),
    "random forest": RandomForestClassifier(5, bootstrap=False, random_state=0),
    "extra trees": ExtraTreesClassifier(5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5),
    "histogram": HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2),
    "SVC": SVC(C=100.0),
    "NuSVC": NuSVC(nu=0.2),
    "LinearSVC": LinearSVC(),
    "logistic": LogisticRegression(),
    "ridge": RidgeClassifier(),
    "SGD": SGDClassifier(random_state=0),
    "discriminant": LinearDiscriminantAnalysis(),
    "naive Bayes": GaussianNB(),
    "Gaussian process": GaussianProcessClassifier(),
    "one-vs-rest": OneVsRestClassifier(SVC()),
    "pipeline": make_pipeline(StandardScaler(), ExtraTreesClassifier(5, random_state=0)),
    "search": GridSearchCV(ExtraTreesClassifier(5, random_state=0), {"max_depth": [None]}, cv=2),
    "isolation forest": IsolationForest(n_estimators=5, random_state=0),
    "one class": OneClassSVM(),
    "XGBoost": 0,
    "LightGBM": 1,
    "CatBoost": 2,
}
REGRESSORS = {
    "ridge": Ridge(),
    "Poisson": PoissonRegressor(),
    "SVR": SVR(C=10.0),
    "kernel ridge": KernelRidge(kernel="rbf"),
    "Gaussian process": GaussianProcessRegressor(alpha=0.1),
    "random forest": RandomForestRegressor(5, random_state=0),
    "extra trees": ExtraTreesRegressor(5, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=5),
    "histogram": HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2),
    "gamma": HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2, loss="gamma"),
    "pipeline": make_pipeline(StandardScaler(), SVR()),
    "search": GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2),
    "XGBoost": 0,
    "LightGBM": 1,
    "CatBoost": 2,
}
INEXACT = ("Poisson", "gamma")  # their readers reproduce the logarithm
TOLERANCE = {"XGBoost": 1e-6}  # float32 margins of size 1
ROUNDING = 1e-9


def fitted(models, name, kind, y):
    model = models[name]
    model = boosters(kind)[model] if isinstance(model, int) else model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_and_scores_are_explained_as_themselves(name, method):
    model = fitted(CLASSIFIERS, name, "Classifier", LABELS)
    if not hasattr(model, method):
        pytest.skip(f"no {method}")
    own, explainer = getattr(model, method), Explainer(getattr(model, method), BACKGROUND)

    def positive(rows):
        scores = own(rows)
        return scores if scores.ndim == 1 else scores[:, 1]

    found = explainer(ROWS)
    values = found.values if found.values.ndim == 2 else found.values[..., 1]
    tolerance = ROUNDING if method == "predict" else TOLERANCE.get(name, ROUNDING)
    np.testing.assert_allclose(values, interventional_values(positive, ROWS, BACKGROUND), atol=tolerance)
    if method == "predict":
        assert isinstance(explainer.reader, BlackBox)
        np.testing.assert_array_equal(found.prediction, own(ROWS))


@pytest.mark.parametrize("name", REGRESSORS)
def test_predictions_of_regressors_are_read_exactly_and_are_themselves(name):
    model = fitted(REGRESSORS, name, "Regressor", np.exp(Y) if name in INEXACT else Y)
    explainer = Explainer(model.predict, BACKGROUND)
    assert isinstance(explainer.reader, BlackBox) == (name in INEXACT)
    expected = interventional_values(model.predict, ROWS, BACKGROUND)
    np.testing.assert_allclose(explainer(ROWS).values, expected, atol=TOLERANCE.get(name, ROUNDING))


def test_a_forest_that_has_memorised_its_rows(monkeypatch):
    """Background rows of the training set: probabilities are 0 and 1, as labels are, and new rows tell them apart."""
    A, b = load_breast_cancer(return_X_y=True)
    A = A[:, :6]
    forest = ExtraTreesClassifier(10, random_state=0).fit(A[300:400], b[300:400])
    np.testing.assert_array_equal(forest.predict_proba(A[300:316])[:, 1], forest.predict(A[300:316]))
    rows = A[400:][np.abs(forest.predict_proba(A[400:])[:, 1] - 0.5) < 0.45][:2]
    found = explain(forest.predict, rows, A[300:316])
    np.testing.assert_array_equal(found.prediction, forest.predict(rows))
    np.testing.assert_allclose(found.values, interventional_values(forest.predict, rows, A[300:316]), atol=ROUNDING)
    # Were labels not known by their name, mixed rows would show them: a forest has not memorised those
    monkeypatch.setattr(_identity, "gives_labels", lambda model: False)
    assert isinstance(Explainer(forest.predict, A[300:316]).reader, BlackBox)


def test_functions_bound_to_a_model_are_not_its_methods():
    model = Ridge().fit(X, Y)

    def predict(self, rows):
        return Ridge.predict(self, rows)

    assert _identity.is_own_method(model.predict, Ridge)
    assert not _identity.is_own_method(MethodType(predict, model), Ridge)
    assert not _identity.is_own_method(model.fit, Ridge)
    assert not _identity.is_own_method(LogisticRegression().predict, LogisticRegression)


def test_methods_of_subclasses_and_instances_are_their_own():
    class Doubled(Ridge):
        def predict(self, rows):
            return 2.0 * super().predict(rows)

    class Same(Ridge):
        pass

    doubled, same, patched = Doubled().fit(X, Y), Same().fit(X, Y), Ridge().fit(X, Y)
    pipeline = make_pipeline(StandardScaler(), Doubled()).fit(X, Y)
    patched.predict = doubled.predict
    for model in (doubled, patched, pipeline):
        explainer = Explainer(model.predict, BACKGROUND)
        assert isinstance(explainer.reader, BlackBox)
        expected = interventional_values(model.predict, ROWS, BACKGROUND)
        np.testing.assert_allclose(explainer(ROWS).values, expected, atol=ROUNDING)
    assert not isinstance(Explainer(same.predict, BACKGROUND).reader, BlackBox)
