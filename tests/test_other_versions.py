"""Models that are not fitted, or lack what the installed version of their library gives them: a clear error from every reader."""

import copy

import numpy as np
import pytest
from sklearn import (
    calibration,
    compose,
    discriminant_analysis,
    ensemble,
    gaussian_process,
    kernel_ridge,
    linear_model,
    model_selection,
    multiclass,
    naive_bayes,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from exactshap import explain
from exactshap.errors import ExactshapError, UnsupportedModelError
from exactshap.estimators import RKHSWeightingRegressor, ShapleyKernelRidge

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 2.0, size=(40, 3))
Y = X[:, 0] * X[:, 1]
LABELS = (np.median(Y) < Y).astype(int)
RIDGE, LOGISTIC = linear_model.Ridge(), linear_model.LogisticRegression()
OPTIONAL = {
    "xgboost": lambda library: library.XGBRegressor(n_estimators=3),
    "lightgbm": lambda library: library.LGBMRegressor(n_estimators=3, min_child_samples=5, verbose=-1),
    "catboost": lambda library: library.CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False),
    "interpret.glassbox": lambda library: library.ExplainableBoostingRegressor(outer_bags=1, max_rounds=5, n_jobs=1),
    "pygam": lambda library: library.LinearGAM(n_splines=5),
}
REGRESSORS = [
    svm.SVR(),
    kernel_ridge.KernelRidge(),
    gaussian_process.GaussianProcessRegressor(alpha=0.1, optimizer=None),
    RIDGE,
    tree.DecisionTreeRegressor(max_depth=3),
    ensemble.RandomForestRegressor(3, max_depth=3),
    ensemble.GradientBoostingRegressor(n_estimators=3),
    ensemble.HistGradientBoostingRegressor(max_iter=3),
    ensemble.BaggingRegressor(RIDGE, 3),
    ensemble.VotingRegressor([("a", RIDGE)]),
    compose.TransformedTargetRegressor(RIDGE),
    model_selection.GridSearchCV(RIDGE, {"alpha": [1.0, 2.0]}, cv=2),
    pipeline.make_pipeline(preprocessing.StandardScaler(), RIDGE),
    neural_network.MLPRegressor(hidden_layer_sizes=(3,), max_iter=5),
    ShapleyKernelRidge(),
    RKHSWeightingRegressor(n_terms=5, random_state=0),
]
CLASSIFIERS = [
    svm.SVC(),
    LOGISTIC,
    naive_bayes.GaussianNB(),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    discriminant_analysis.QuadraticDiscriminantAnalysis(),
    multiclass.OneVsRestClassifier(LOGISTIC),
    calibration.CalibratedClassifierCV(LOGISTIC, cv=2),
    ensemble.VotingClassifier([("a", LOGISTIC)], voting="soft"),
]
ESTIMATORS = [*REGRESSORS, *CLASSIFIERS]


OTHERS = [linear_model.RANSACRegressor(), ensemble.IsolationForest(), model_selection.GridSearchCV(svm.SVR(), {})]


@pytest.mark.parametrize("model", [*ESTIMATORS, *OTHERS], ids=lambda model: type(model).__name__)
def test_estimators_that_are_not_fitted(model):
    for background in (None, X[5:]):
        with pytest.raises(NotFittedError, match=r"instance is not fitted yet. Call 'fit' with appropriate arguments before"):
            explain(clone(model), X[:2], background)


@pytest.mark.parametrize("library", OPTIONAL)
def test_models_of_other_libraries_that_are_not_fitted(library):
    model = OPTIONAL[library](pytest.importorskip(library))
    with pytest.raises(NotFittedError, match=r"not fitted yet. Call 'fit'|need to call fit"):
        explain(model, X[:2], X[5:])


def test_a_booster_that_was_not_trained():
    xgboost = pytest.importorskip("xgboost")
    with pytest.raises(NotFittedError, match="This Booster instance is not fitted yet"):
        explain(xgboost.Booster(), X[:2])


def without_each_attribute(model):
    """Yield copies of a model as another version of its library would have saved it: each without one of its attributes."""
    for name in vars(model):
        other = copy.copy(model)
        other.__dict__ = {key: value for key, value in vars(model).items() if key != name}
        yield name, other


def answers_or_says_why(name, other, expected):
    """Explain a model that lacks an attribute: nobody needs it, or the error names what is missing and what to do."""
    try:
        found = explain(other, X[:2], X[5:15])
    except (ExactshapError, NotFittedError) as error:
        said = str(error)
    else:
        np.testing.assert_array_equal(found.values, expected, err_msg=name)
        return
    if "has no attribute" in said:
        assert "which its reader needs. Installed is " in said, name
        assert "the version that saved it" in said, name


@pytest.mark.parametrize("number", range(len(ESTIMATORS)), ids=[type(model).__name__ for model in ESTIMATORS])
@pytest.mark.filterwarnings("ignore")
def test_estimators_of_another_version(number):
    model = clone(ESTIMATORS[number]).fit(X, Y if number < len(REGRESSORS) else LABELS)
    expected = explain(model, X[:2], X[5:15]).values
    for name, other in without_each_attribute(model):
        answers_or_says_why(name, other, expected)


@pytest.mark.parametrize("library", ["interpret.glassbox", "pygam"])
@pytest.mark.filterwarnings("ignore")
def test_models_of_other_libraries_of_another_version(library):
    model = OPTIONAL[library](pytest.importorskip(library)).fit(X, Y)
    expected = explain(model, X[:2], X[5:15]).values
    for name, other in without_each_attribute(model):
        answers_or_says_why(name, other, expected)


def test_what_is_missing_is_named():
    model = svm.SVR().fit(X, Y)
    del model.kernel
    with pytest.raises(
        UnsupportedModelError, match=r"has no attribute 'kernel', which its reader needs. Installed is scikit-learn \d"
    ):
        explain(model, X[:2])


def test_errors_of_a_users_own_code_stay_what_they_are():
    def first_columns(rows):
        return rows.iloc[:, :2]

    model = pipeline.make_pipeline(preprocessing.FunctionTransformer(), LOGISTIC).fit(X, LABELS)
    model.steps[0][1].func = first_columns
    with pytest.raises(AttributeError, match=r"'numpy.ndarray' object has no attribute 'iloc'"):
        explain(model, X[:2], X[5:])
