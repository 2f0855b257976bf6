"""What goes wrong with models of every optional library: unfitted, of another version, subclassed, rows without a column."""

import copy
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from exactshap import explain
from exactshap.errors import ExactshapError, ExplanationWarning, InputError, UnsupportedModelError, UnsupportedStructureError
from tolerances import roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 4)), columns=["age", "dose", "height", "weight"])
Y = np.exp(0.3 * X.age - 0.5 * X.dose * (X.weight > 0) + 0.1 * rng.normal(size=120))
EVENT = rng.random(120) < 0.8
LABEL = (Y.median() < Y).astype(int)
ROWS, BACKGROUND = X[:3], X[50:56]
FEW = {"n_estimators": 4, "random_state": 0}


def survival(room, name, **settings):
    def make():
        kind = getattr(pytest.importorskip(f"sksurv.{room}"), name)
        from sksurv.util import Surv

        return kind(**settings), lambda model: model.fit(X[:60], Surv.from_arrays(EVENT, Y)[:60])

    return make


def times(name):
    def make():
        frame = X.assign(time=Y, event=EVENT)
        return getattr(pytest.importorskip("lifelines"), name)(penalizer=0.1), lambda model: model.fit(frame, "time", "event")

    return make


def of(library, name, y=Y, fit=None, **settings):
    """Return what makes a model and fits it, of an optional library."""

    def make():
        kind = getattr(pytest.importorskip(library, exc_type=ImportError), name)
        return kind(**settings), fit or (lambda model: model.fit(X, y))

    return make


def scorecard():
    optbinning = pytest.importorskip("optbinning")
    from sklearn.linear_model import LogisticRegression

    model = optbinning.Scorecard(optbinning.BinningProcess(list(X.columns)), LogisticRegression())
    return model, lambda model: model.fit(X, LABEL)


def effects():
    dml = pytest.importorskip("econml.dml")
    from sklearn.linear_model import Lasso, LogisticRegression

    model = dml.LinearDML(model_y=Lasso(0.1), model_t=LogisticRegression(), discrete_treatment=True, random_state=0)
    return model, lambda model: model.fit(np.asarray(Y), np.arange(120) % 2, X=X)


MODELS = {
    "scikit-survival tree": survival("tree", "SurvivalTree", max_depth=3, random_state=0),
    "scikit-survival forest": survival("ensemble", "RandomSurvivalForest", **FEW),
    "scikit-survival boosting": survival("ensemble", "GradientBoostingSurvivalAnalysis", **FEW),
    "scikit-survival componentwise": survival("ensemble", "ComponentwiseGradientBoostingSurvivalAnalysis", **FEW),
    "scikit-survival Cox": survival("linear_model", "CoxPHSurvivalAnalysis"),
    "scikit-survival Coxnet": survival("linear_model", "CoxnetSurvivalAnalysis"),
    "scikit-survival SVM": survival("svm", "FastSurvivalSVM", random_state=0),
    "scikit-survival kernel SVM": survival("svm", "FastKernelSurvivalSVM", kernel="rbf", random_state=0),
    "scikit-survival minimal Lipschitz": survival("svm", "MinlipSurvivalAnalysis", kernel="rbf"),
    "lifelines Cox": times("CoxPHFitter"),
    "lifelines AFT": times("WeibullAFTFitter"),
    "glum": of("glum", "GeneralizedLinearRegressor", family="gamma", alpha=0.01),
    "skglm": of("skglm", "Lasso", alpha=0.01),
    "NGBoost": of("ngboost", "NGBRegressor", n_estimators=4, verbose=False, random_state=0),
    "quantile-forest": of("quantile_forest", "RandomForestQuantileRegressor", default_quantiles="mean", **FEW),
    "imodels FIGS": of("imodels", "FIGSRegressor", max_rules=4),
    "imodels RuleFit": of("imodels", "RuleFitRegressor", max_rules=8, random_state=0),
    "imodels shrunken tree": of("imodels", "HSTreeRegressor", max_leaf_nodes=6),
    "optbinning": scorecard,
    "econml": effects,
    "Perpetual": of("perpetual", "PerpetualBooster", objective="SquaredLoss", budget=0.3),
    "XGBoost": of("xgboost", "XGBRegressor", n_estimators=4, n_jobs=1),
    "XGBoost linear": of("xgboost", "XGBRegressor", booster="gblinear", n_estimators=4, n_jobs=1),
    "LightGBM": of("lightgbm", "LGBMRegressor", n_estimators=4, verbose=-1, n_jobs=1),
    "CatBoost": of("catboost", "CatBoostRegressor", iterations=4, verbose=0, allow_writing_files=False, thread_count=1),
    "EBM": of("interpret.glassbox", "ExplainableBoostingRegressor", max_rounds=4, outer_bags=1, n_jobs=1),
    "pyGAM": of("pygam", "LinearGAM"),
    "imbalanced-learn": of("imblearn.ensemble", "BalancedRandomForestClassifier", LABEL, **FEW),
}
OWN = ("predict_proba", "decision_function", "score", "const_marginal_effect", "predict_log_partial_hazard", "predict_median")


SLOW = ("skglm",)  # its solvers are compiled for a minute


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in MODELS], scope="module")
def made(request):
    """Return a model before and after its fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unfitted, fit = MODELS[request.param]()
        fitted, _ = MODELS[request.param]()
        fit(fitted)
    return unfitted, fitted


@pytest.mark.filterwarnings("ignore")
def test_unfitted_models_and_missing_columns(made):
    unfitted, fitted = made
    with pytest.raises(NotFittedError, match=r"(?i)fit"):
        explain(unfitted, ROWS, BACKGROUND)
    for rows, background in ((ROWS.iloc[:, 1:], BACKGROUND), (ROWS.iloc[:, 1:], BACKGROUND.iloc[:, 1:])):
        with pytest.raises((InputError, ValueError), match=r"(?i)column|feature|variable|missing|shape"):
            explain(fitted, rows, background)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_subclasses(made):
    _, fitted = made
    child = copy.copy(fitted)
    try:
        child.__class__ = type("Plain", (type(fitted),), {})
    except TypeError:
        pytest.skip("its instances are laid out by compiled code")
    right = explain(fitted, ROWS, BACKGROUND)
    np.testing.assert_array_equal(explain(child, ROWS, BACKGROUND).values, right.values)
    method = next((name for name in OWN if hasattr(fitted, name) and name != "score"), "predict")
    other = {method: lambda self, rows, *a, **k: np.full(len(rows), 0.25)}
    child.__class__ = type("Other", (type(fitted),), other)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            values = explain(child, ROWS, BACKGROUND).values
        except (UnsupportedModelError, UnsupportedStructureError) as error:  # no usual name, so that nobody can ask it
            assert re.search(f"has its own {method}|does not predict the sum", str(error))  # noqa: PT017
            return
    assert any(issubclass(warning.category, ExplanationWarning) and "has its own" in str(warning.message) for warning in caught)
    assert np.all(values == 0.0)


@pytest.mark.filterwarnings("ignore")
def test_models_of_another_version_are_read_alike_or_refused(made):
    """Each attribute taken away: the values stay, or an error names it; never other values, never an error of our own code."""
    (_, fitted), tables, refused = made, (ROWS[:1], BACKGROUND[:2]), 0
    right = explain(fitted, *tables).values
    for name in vars(fitted):
        other = copy.copy(fitted)
        del other.__dict__[name]
        try:
            values = explain(other, *tables).values
        except (ExactshapError, NotFittedError) as error:
            refused += 1
            assert isinstance(error, NotFittedError) or len(str(error)) > 20, name  # noqa: PT017
        except Exception as error:
            with pytest.raises(type(error)):  # the library itself does not predict without it
                own_prediction(other)
        else:
            np.testing.assert_allclose(values, right, rtol=0, atol=roundings(1000), err_msg=name)
    assert refused or len(vars(fitted)) < 3


def own_prediction(model):
    for name in ("predict", *OWN):
        if name != "score":
            getattr(model, name, lambda rows: None)(ROWS)
