"""Models that are not fitted, or lack what the installed version of their library gives them: a clear error from every reader."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn import calibration, discriminant_analysis, ensemble, linear_model, neural_network, pipeline, preprocessing, svm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import exactshap
from exactshap import explain
from exactshap.errors import ExactshapError, UnsupportedModelError
from golden_models import MODELS, Data, unfitted

DATA = Data()
X, Y = DATA.X[:40], DATA.y[:40]
LOGISTIC = linear_model.LogisticRegression()
OTHERS = {  # models that the golden record has not, and the names of their targets
    "QuadraticDiscriminantAnalysis": (discriminant_analysis.QuadraticDiscriminantAnalysis(), "two"),
    "one-vs-rest, logistic": (unfitted("one-vs-rest").set_params(estimator=LOGISTIC), "three"),
    "calibrated, logistic": (calibration.CalibratedClassifierCV(LOGISTIC, cv=2), "two"),
    "votes": (ensemble.VotingClassifier([("a", LOGISTIC)], voting="soft"), "two"),
    "RANSAC": (linear_model.RANSACRegressor(), "y"),
    "network": (neural_network.MLPRegressor(hidden_layer_sizes=(3,), max_iter=5), "y"),
}
NAMES = (
    *("SVR", "KernelRidge", "GP", "LinearRegression", "tree", "random forest", "gradient boosting", "histogram boosting"),
    *("bagging", "voting", "scaled target", "grid search", "scaler, SVR", "Shapley kernel ridge", "RKHS weighting", "SVC"),
    *("LogisticRegression", "GaussianNB", "LinearDiscriminantAnalysis", "isolation forest", "EBM", "LinearGAM", *OTHERS),
)
NOT_FITTED = (
    "instance is not fitted yet. Call 'fit' with appropriate arguments before|not fitted yet. Call 'fit'|need to call fit"
)


def made(name):
    """Return a model before its fit, and its target."""
    model, target = OTHERS[name] if name in OTHERS else (None, MODELS[name].target)
    return unfitted(name) if model is None else clone(model), getattr(DATA, target)[:40]


@pytest.mark.parametrize("name", [*NAMES, "XGBoost", "LightGBM", "CatBoost"])
def test_models_that_are_not_fitted(name):
    for background in (None, X[5:]):
        with pytest.raises(NotFittedError, match=NOT_FITTED):
            explain(made(name)[0], X[:2], background)


def test_a_booster_that_was_not_trained():
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_models_of_another_version(name):
    model, target = made(name)
    model.fit(X, target)
    expected = explain(model, X[:2], X[5:15]).values
    for attribute, other in without_each_attribute(model):
        answers_or_says_why(attribute, other, expected)


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

    model = pipeline.make_pipeline(preprocessing.FunctionTransformer(), LOGISTIC).fit(X, DATA.two[:40])
    model.steps[0][1].func = first_columns
    with pytest.raises(AttributeError, match=r"'numpy.ndarray' object has no attribute 'iloc'"):
        explain(model, X[:2], X[5:])


# --- what is asked for in the ordinary way answers without a warning --------------------------------------------------


OF_OLDER_LIGHTGBM = ("__sklearn_tags__", "'force_all_finite' was renamed")
FRAME = pd.DataFrame(DATA.X, columns=["age", "sex", "income", "rooms", "floors", "year"])
SILENT = (
    *("SVR", "SVC", "OneClassSVM", "KernelRidge", "GP", "GP classifier", "LinearRegression", "LogisticRegression"),
    *("scaler, SVR", "random forest", "random forest classifier", "gradient boosting classifier", "histogram boosting"),
    *("isolation forest", "bagging", "voting", "XGBoost", "XGBoost two classes", "LightGBM", "LightGBM three classes"),
    *("CatBoost", "CatBoost three classes", "EBM", "LinearGAM"),
)


def messages(caught):
    """Return what was warned of, but for what scikit-learn says of releases of LightGBM that are older than it."""
    return [text for one in caught if not any(word in (text := str(one.message)) for word in OF_OLDER_LIGHTGBM)]


@pytest.mark.parametrize("of_frames", [True, False], ids=["frames", "arrays"])
@pytest.mark.parametrize("name", SILENT)
def test_explaining_and_decomposing_are_silent(name, of_frames):
    rows = FRAME if of_frames else DATA.X
    model = unfitted(name)
    model.fit(rows, getattr(DATA, MODELS[name].target))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer = exactshap.Explainer(model, rows[:20], output="all" if hasattr(model, "classes_") else "auto")
        for n in (1, 3, 12, 120):
            explanation = explainer(rows[:n])
        str(explanation), explainer.verify(rows[:2])
        if name in ("XGBoost", "LightGBM", "CatBoost"):
            exactshap.decompose_r2(model, rows, DATA.y)
            exactshap.explain(model, rows[:3])
    assert messages(caught) == []
