"""Subclasses: read as their parent where they predict as it does, explained as the functions that they are where they do not."""

import copy
import warnings

import catboost
import lightgbm
import numpy as np
import pygam
import pytest
import xgboost
from interpret import glassbox
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, RANSACRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVR, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import DecisionTreeRegressor

from exactshap import Explainer, decompose_r2, explain
from exactshap.errors import ExplanationWarning, UnsupportedModelError, UnsupportedStructureError
from exactshap.readers import _registry, register, registered
from exactshap.readers.black_box import BlackBox
from oracles import interventional_values

RNG = np.random.default_rng(4)
X = RNG.normal(size=(50, 4))
Y = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + 0.3 * X[:, 3]
LABELS = (Y > 0).astype(int)
ROWS, BACKGROUND = X[:2], X[20:26]
ROUNDING, SINGLE = 1e-9, 1e-6  # of float64 answers of size 1, and of XGBoost's


def library_models():
    return {
        "XGBRegressor": (xgboost.XGBRegressor, {"n_estimators": 4}),
        "LGBMRegressor": (lightgbm.LGBMRegressor, {"n_estimators": 4, "verbose": -1, "min_child_samples": 1}),
        "CatBoostRegressor": (catboost.CatBoostRegressor, {"iterations": 4, "verbose": 0, "allow_writing_files": False}),
        "ExplainableBoostingRegressor": (
            glassbox.ExplainableBoostingRegressor,
            {"interactions": 0, "max_rounds": 20, "outer_bags": 1},
        ),
        "LinearGAM": (pygam.LinearGAM, {"n_splines": 6}),
    }


REGRESSORS = {
    cls.__name__: (cls, settings)
    for cls, settings in [
        (Ridge, {}),
        (LinearRegression, {}),
        (PoissonRegressor, {}),
        (LinearSVR, {}),
        (RANSACRegressor, {"random_state": 0}),
        (SVR, {}),
        (NuSVR, {}),
        (KernelRidge, {"kernel": "rbf"}),
        (GaussianProcessRegressor, {"alpha": 0.1}),
        (DecisionTreeRegressor, {}),
        (RandomForestRegressor, {"n_estimators": 4}),
        (ExtraTreesRegressor, {"n_estimators": 4}),
        (GradientBoostingRegressor, {"n_estimators": 4}),
        (HistGradientBoostingRegressor, {"max_iter": 4, "min_samples_leaf": 2}),
    ]
}
OTHERS = ("XGBRegressor", "LGBMRegressor", "CatBoostRegressor", "ExplainableBoostingRegressor", "LinearGAM")
NAMES = [*REGRESSORS, *OTHERS]


def regressor(name):
    return REGRESSORS[name] if name in REGRESSORS else library_models()[name]


def fitted(cls, settings, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**settings).fit(X, y)


def clipped(cls):
    """A subclass that cuts its parent's predictions off."""

    def predict(self, rows, *args, **kwargs):
        return np.clip(cls.predict(self, rows, *args, **kwargs), 0.1, 0.4)

    return type("Clipped", (cls,), {"predict": predict})


def target(name):
    return np.exp(Y) if name == "PoissonRegressor" else Y


@pytest.mark.parametrize("name", NAMES)
def test_plain_subclasses_are_read_as_their_parent(name):
    cls, settings = regressor(name)
    parent = fitted(cls, settings, target(name))
    child = copy.copy(parent)
    child.__class__ = type("Plain", (cls,), {"fit": lambda self, *args: cls.fit(self, *args), "extra": lambda self: 1})
    found, expected = (explain(model, ROWS, BACKGROUND) for model in (child, parent))
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.method == expected.method
    assert found.certificate().passed


@pytest.mark.parametrize("name", NAMES)
def test_subclasses_with_a_prediction_of_their_own_are_functions(name):
    cls, settings = regressor(name)
    model = fitted(clipped(cls), settings, target(name))
    with pytest.warns(ExplanationWarning, match="Clipped` has its own predict"):
        found = explain(model, ROWS, BACKGROUND)
    np.testing.assert_array_equal(found.prediction, model.predict(ROWS))
    np.testing.assert_allclose(found.values, interventional_values(model.predict, ROWS, BACKGROUND), atol=SINGLE)
    with pytest.raises(
        UnsupportedModelError, match=r"has its own predict.* Pass reference rows, explain\(model, X, background\)"
    ):
        explain(model, ROWS)
    model = fitted(cls, settings, target(name))
    model.predict = lambda rows: np.full(len(rows), 2.0)
    with pytest.warns(ExplanationWarning, match="has its own predict"):
        assert isinstance(Explainer(model, BACKGROUND).reader, BlackBox)


@pytest.mark.parametrize(
    ("cls", "settings", "method"),
    [
        (SVC, {}, "decision_function"),
        (NuSVC, {"nu": 0.3}, "decision_function"),
        (OneClassSVM, {}, "decision_function"),
        (LogisticRegression, {}, "decision_function"),
        (GradientBoostingClassifier, {"n_estimators": 3}, "decision_function"),
        (RandomForestClassifier, {"n_estimators": 3}, "predict_proba"),
        (GaussianNB, {}, "predict_joint_log_proba"),
    ],
)
def test_scores_of_classifiers_count_and_labels_do_not(cls, settings, method):
    own = getattr(cls, method)
    strict = type("Strict", (cls,), {"predict": lambda self, rows: np.ones(len(rows))})
    squared = type("Squared", (cls,), {method: lambda self, rows: own(self, rows) ** 3})
    parent = explain(fitted(cls, {**settings}, LABELS), ROWS, BACKGROUND)
    if "random_state" not in cls().get_params():
        np.testing.assert_array_equal(explain(fitted(strict, settings, LABELS), ROWS, BACKGROUND).values, parent.values)
    assert not isinstance(Explainer(fitted(strict, settings, LABELS), BACKGROUND).reader, BlackBox)
    model = fitted(squared, settings, LABELS)
    with pytest.warns(ExplanationWarning, match=f"has its own {method}"):
        found = explain(model, ROWS, BACKGROUND)
    shown = getattr(model, method if method != "predict_joint_log_proba" else "predict_proba")
    np.testing.assert_allclose(found.prediction, shown(ROWS), atol=ROUNDING)


class Hidden(Ridge):
    """Changes what ``predict`` uses."""

    def _decision_function(self, rows):
        return np.abs(super()._decision_function(rows))


class Mixed:
    def predict(self, rows):
        return np.abs(super().predict(rows))


class WithMixin(Mixed, Ridge):
    pass


class HiddenKernel(KernelRidge):
    def _get_kernel(self, rows, other=None):
        return super()._get_kernel(rows, other) ** 2


@pytest.mark.parametrize(
    ("cls", "name"), [(Hidden, "_decision_function"), (WithMixin, "predict"), (HiddenKernel, "_get_kernel")]
)
def test_helpers_and_mixins_count(cls, name):
    model = cls().fit(X, Y)
    with pytest.warns(ExplanationWarning, match=f"{cls.__name__}` has its own {name}"):
        found = explain(model, ROWS, BACKGROUND)
    np.testing.assert_allclose(found.values, interventional_values(model.predict, ROWS, BACKGROUND), atol=ROUNDING)


# --- inside other models ----------------------------------------------------------------------------------------------


WRAPPED = {
    "pipeline": lambda model: make_pipeline(StandardScaler(), model),
    "nested pipeline": lambda model: make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), model)),
    "search": lambda model: GridSearchCV(model, {"alpha": [0.1]}, cv=2),
    "scaled target": lambda model: TransformedTargetRegressor(model, transformer=StandardScaler()),
    "frozen": FrozenEstimator,
}


def wrapped(wrapper, cls):
    part = cls(kernel="rbf", alpha=0.1)
    return WRAPPED[wrapper](part.fit(X, Y) if wrapper == "frozen" else part).fit(X, Y)


@pytest.mark.parametrize("wrapper", WRAPPED)
def test_overrides_inside_wrappers_are_seen_and_plain_subclasses_are_read(wrapper):
    model = wrapped(wrapper, clipped(KernelRidge))
    with pytest.warns(ExplanationWarning, match="Clipped` has its own predict"):
        found = explain(model, ROWS, BACKGROUND)
    np.testing.assert_allclose(found.values, interventional_values(model.predict, ROWS, BACKGROUND), atol=ROUNDING)
    with pytest.raises(UnsupportedModelError, match="Clipped` has its own predict"):
        explain(model, ROWS)
    models = [wrapped(wrapper, cls) for cls in (type("Plain", (KernelRidge,), {}), KernelRidge)]
    found, expected = (explain(model, ROWS, BACKGROUND).values for model in models)
    np.testing.assert_array_equal(found, expected)


def test_several_outputs_of_overriding_parts_are_refused():
    model = MultiOutputRegressor(clipped(KernelRidge)(kernel="rbf")).fit(X, np.c_[Y, Y**2])
    with (
        pytest.warns(ExplanationWarning, match="has its own predict"),
        pytest.raises(UnsupportedStructureError, match=r"Got Clipped\.predict as output of the function"),
    ):
        Explainer(model, BACKGROUND)


class ClippedPipeline(Pipeline):
    def predict(self, rows, **parameters):
        return np.clip(super().predict(rows, **parameters), 0.1, 0.4)


class Scaler(StandardScaler):
    """Nothing of its own."""


class Folded(StandardScaler):
    def transform(self, rows, copy=None):
        return np.abs(super().transform(rows, copy))


def test_pipelines_of_subclasses():
    own = ClippedPipeline([("scale", StandardScaler()), ("model", SVR())]).fit(X, Y)
    with pytest.warns(ExplanationWarning, match="ClippedPipeline` has its own predict"):
        found = explain(own, ROWS, BACKGROUND)
    np.testing.assert_allclose(found.values, interventional_values(own.predict, ROWS, BACKGROUND), atol=ROUNDING)
    plain, expected = (make_pipeline(scaler, SVR()).fit(X, Y) for scaler in (Scaler(), StandardScaler()))
    np.testing.assert_array_equal(explain(plain, ROWS, BACKGROUND).values, explain(expected, ROWS, BACKGROUND).values)
    for tail in (SVR(), make_pipeline(PolynomialFeatures(2), Ridge())):
        folded = make_pipeline(Folded(), clone(tail)).fit(X, Y)
        values = explain(folded, ROWS, BACKGROUND).values
        np.testing.assert_allclose(values, interventional_values(folded.predict, ROWS, BACKGROUND), atol=ROUNDING)


class Cubed(StandardScaler):
    def inverse_transform(self, rows, copy=None):
        return super().inverse_transform(rows, copy) ** 3


Plain = {cls: type("Plain", (cls,), {}) for cls in (Ridge, LinearRegression, RandomForestRegressor)}
READ_OR_REFUSED = {  # a model of a subclass: the same model of its parent, or why it is refused
    "polynomial": (make_pipeline(PolynomialFeatures(2), Plain[Ridge]()), make_pipeline(PolynomialFeatures(2), Ridge())),
    "clipped polynomial": (
        make_pipeline(PolynomialFeatures(2), clipped(Ridge)()),
        "mixes columns and what follows is not linear",
    ),
    "scaling": (
        TransformedTargetRegressor(SVR(), transformer=Cubed(), check_inverse=False),
        r"not a scaling and a shift.* Cubed",
    ),
    "RANSAC": (RANSACRegressor(Plain[LinearRegression](), random_state=0), RANSACRegressor(LinearRegression(), random_state=0)),
    "clipped RANSAC": (
        RANSACRegressor(clipped(LinearRegression)(), random_state=0),
        "Clipped inside RANSACRegressor is not known",
    ),
}


@pytest.mark.parametrize("name", READ_OR_REFUSED)
def test_subclasses_inside_are_read_or_refused(name):
    model, expected = READ_OR_REFUSED[name]
    model = clone(model).set_params(**({"min_samples": 10} if "RANSAC" in name else {})).fit(X, Y)
    if isinstance(expected, str):
        with pytest.raises(UnsupportedStructureError, match=expected):
            Explainer(model, BACKGROUND)
        return
    expected = clone(expected).set_params(**({"min_samples": 10} if "RANSAC" in name else {})).fit(X, Y)
    np.testing.assert_array_equal(explain(model, ROWS, BACKGROUND).values, explain(expected, ROWS, BACKGROUND).values)


# --- other doors ------------------------------------------------------------------------------------------------------


def test_r2_refuses_what_is_not_a_sum_of_trees():
    plain = Plain[RandomForestRegressor](5, random_state=0).fit(X, Y)
    expected = RandomForestRegressor(5, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(decompose_r2(plain, X, Y).values, decompose_r2(expected, X, Y).values)
    with pytest.raises(UnsupportedModelError, match="Clipped` has its own predict"):
        decompose_r2(clipped(RandomForestRegressor)(5).fit(X, Y), X, Y)


def test_boosters_that_cannot_be_called_on_tables_are_refused():
    class Doubled(xgboost.Booster):
        def inplace_predict(self, data, **settings):
            return 2.0 * super().inplace_predict(data, **settings)

    booster = fitted(xgboost.XGBRegressor, {"n_estimators": 2}).get_booster()
    booster.__class__ = Doubled
    with pytest.raises(UnsupportedModelError, match=r"own inplace_predict.* Explain a function of tables around it"):
        Explainer(booster, BACKGROUND)


class Registered:
    def predict(self, rows):
        return np.asarray(rows)[:, 0]


class Changed(Registered):
    def predict(self, rows):
        return np.asarray(rows)[:, 0] ** 2


def test_registered_classes_of_your_own(monkeypatch):
    monkeypatch.setattr(_registry, "_REGISTRY", registered())
    register(f"{Registered.__module__}.Registered", "exactshap.readers.additive.sklearn_linear")
    plain, changed = type("Plain", (Registered,), {})(), Changed()
    for model in (Registered(), plain):
        model.coef_, model.intercept_ = np.array([1.0, 0.0, 0.0, 0.0]), 0.0
        np.testing.assert_allclose(explain(model, ROWS, BACKGROUND).values[:, 0], ROWS[:, 0] - BACKGROUND[:, 0].mean())
    with pytest.warns(ExplanationWarning, match="Changed` has its own predict"):
        found = explain(changed, ROWS, BACKGROUND)
    np.testing.assert_allclose(found.values, interventional_values(changed.predict, ROWS, BACKGROUND), atol=ROUNDING)
