"""What is explained: the model of a subclass or of another package, the method that was passed, and no other."""

import copy
import os
import subprocess
import sys
import types
import warnings
from pathlib import Path
from types import MethodType

import numpy as np
import pytest
import xgboost
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, RANSACRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer, decompose_r2, explain
from exactshap.errors import ExplanationWarning, UnsupportedModelError, UnsupportedStructureError
from exactshap.readers import AdditiveModel, _identity, _registry, read, register, registered
from exactshap.readers.black_box import BlackBox
from golden_models import unfitted
from oracles import interventional_values

RNG = np.random.default_rng(4)
X = RNG.normal(size=(50, 5))
Y = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + 0.3 * X[:, 3]
LABELS = (Y > 0).astype(int)
ROWS, BACKGROUND = X[:2], X[20:26]
ROUNDING, SINGLE = 1e-9, 1e-6  # of float64 answers of size 1, and of XGBoost's
NAMES = (  # of the golden record
    *("LinearRegression", "Lasso", "PoissonRegressor", "SVR", "NuSVR", "KernelRidge", "GP sum of kernels", "tree"),
    *("random forest", "extra trees", "gradient boosting", "histogram boosting", "XGBoost", "LightGBM", "CatBoost"),
    *("EBM", "LinearGAM"),
)
COUNTS = (
    "PoissonRegressor",
    "XGBoost counts",
    "LightGBM counts",
)  # models of a logarithm, and their methods of the count itself


def quietly(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def fitted(name, kind=None, y=Y):
    """Fit a model of the golden record, with trees that know the rows by heart, or a subclass of it with the same settings."""
    model = unfitted(name)
    if "tree" in name or "random forest" in name:
        model.set_params(max_depth=None)
    if kind is not None:
        model.__class__ = kind
    return quietly(model, np.exp(y) if name in COUNTS else y)


def clipped(cls):
    """A subclass that cuts its parent's predictions off."""

    def predict(self, rows, *args, **kwargs):
        return np.clip(cls.predict(self, rows, *args, **kwargs), 0.1, 0.4)

    return type("Clipped", (cls,), {"predict": predict})


@pytest.mark.parametrize("name", NAMES)
def test_plain_subclasses_are_read_as_their_parent(name):
    parent = fitted(name)
    cls, child = type(parent), copy.copy(parent)
    child.__class__ = type("Plain", (cls,), {"fit": lambda self, *args: cls.fit(self, *args), "extra": lambda self: 1})
    found, expected = (explain(model, ROWS, BACKGROUND) for model in (child, parent))
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.method == expected.method
    assert found.certificate().passed


@pytest.mark.parametrize("name", NAMES)
def test_subclasses_with_a_prediction_of_their_own_are_functions(name):
    model = fitted(name, clipped(type(unfitted(name))))
    with pytest.warns(ExplanationWarning, match="Clipped` has its own predict"):
        found = explain(model, ROWS, BACKGROUND)
    np.testing.assert_array_equal(found.prediction, model.predict(ROWS))
    np.testing.assert_allclose(found.values, interventional_values(model.predict, ROWS, BACKGROUND), atol=SINGLE)
    with pytest.raises(
        UnsupportedModelError, match=r"has its own predict.* Pass reference rows, explain\(model, X, background\)"
    ):
        explain(model, ROWS)
    model = fitted(name)
    model.predict = lambda rows: np.full(len(rows), 2.0)
    with pytest.warns(ExplanationWarning, match="has its own predict"):
        assert isinstance(Explainer(model, BACKGROUND).reader, BlackBox)


SCORES = {
    **dict.fromkeys(("SVC", "NuSVC", "OneClassSVM", "LogisticRegression", "gradient boosting classifier"), "decision_function"),
    "random forest classifier": "predict_proba",
    "GaussianNB": "predict_joint_log_proba",
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_classifiers_count_and_labels_do_not(name):
    cls, method = type(unfitted(name)), SCORES[name]
    own = getattr(cls, method)
    strict = type("Strict", (cls,), {"predict": lambda self, rows: np.ones(len(rows))})
    squared = type("Squared", (cls,), {method: lambda self, rows: own(self, rows) ** 3})
    parent, labelled = (Explainer(fitted(name, kind, LABELS), BACKGROUND) for kind in (None, strict))
    assert not isinstance(labelled.reader, BlackBox)
    np.testing.assert_array_equal(labelled(ROWS).values, parent(ROWS).values)
    model = fitted(name, squared, LABELS)
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

    booster = fitted("XGBoost").get_booster()
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
        model.coef_, model.intercept_ = np.eye(5)[0], 0.0
        np.testing.assert_allclose(explain(model, ROWS, BACKGROUND).values[:, 0], ROWS[:, 0] - BACKGROUND[:, 0].mean())
    with pytest.warns(ExplanationWarning, match="Changed` has its own predict"):
        found = explain(changed, ROWS, BACKGROUND)
    np.testing.assert_allclose(found.values, interventional_values(changed.predict, ROWS, BACKGROUND), atol=ROUNDING)


# --- methods: labels stay labels, scores stay scores, on rows that a model has memorised ------------------------------


CLASSIFIERS = (  # of the golden record
    *("tree classifier", "random forest classifier", "gradient boosting classifier", "histogram boosting, categories"),
    *("SVC", "NuSVC", "LinearSVC", "LogisticRegression", "RidgeClassifier", "SGDClassifier", "LinearDiscriminantAnalysis"),
    *("GaussianNB", "GP classifier", "one-vs-rest", "robust scaler, SVC", "grid search of a pipeline", "isolation forest"),
    *("OneClassSVM", "EBM classifier", "XGBoost two classes", "LightGBM three classes", "CatBoost three classes"),
)
REGRESSORS = (
    *("LinearRegression", "SVR", "KernelRidge", "GP sum of kernels", "random forest", "extra trees", "gradient boosting"),
    *("histogram boosting", "scaler, SVR", "grid search", "EBM", "XGBoost", "LightGBM", "CatBoost"),
)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_and_scores_are_explained_as_themselves(name, method):
    model = fitted(name, y=LABELS)
    if not hasattr(model, method):
        pytest.skip(f"no {method}")
    own, explainer = getattr(model, method), Explainer(getattr(model, method), BACKGROUND)

    def positive(rows):
        scores = own(rows)
        return scores if scores.ndim == 1 else scores[:, 1]

    found = explainer(ROWS)
    values = found.values if found.values.ndim == 2 else found.values[..., 1]
    tolerance = SINGLE if name.startswith("XGBoost") and method != "predict" else ROUNDING
    np.testing.assert_allclose(values, interventional_values(positive, ROWS, BACKGROUND), atol=tolerance)
    if method == "predict":
        assert isinstance(explainer.reader, BlackBox)
        np.testing.assert_array_equal(found.prediction, own(ROWS))


@pytest.mark.parametrize("name", REGRESSORS + COUNTS)
def test_predictions_of_regressors_are_read_exactly_and_are_themselves(name):
    model = fitted(name)
    explainer = Explainer(model.predict, BACKGROUND)
    assert not isinstance(explainer.reader, BlackBox)
    expected = interventional_values(model.predict, ROWS, BACKGROUND)
    np.testing.assert_allclose(explainer(ROWS).values, expected, atol=SINGLE if name.startswith("XGBoost") else ROUNDING)


def test_a_forest_that_has_memorised_its_rows(monkeypatch):
    """Background rows of the training set: probabilities are 0 and 1, as labels are, and new rows tell them apart."""
    A, b = load_breast_cancer(return_X_y=True)
    X = A[:, :6]
    forest = ExtraTreesClassifier(10, random_state=0).fit(X[300:400], b[300:400])
    np.testing.assert_array_equal(forest.predict_proba(X[300:316])[:, 1], forest.predict(X[300:316]))
    rows = X[400:][np.abs(forest.predict_proba(X[400:])[:, 1] - 0.5) < 0.45][:2]
    found = explain(forest.predict, rows, X[300:316])
    np.testing.assert_array_equal(found.prediction, forest.predict(rows))
    np.testing.assert_allclose(found.values, interventional_values(forest.predict, rows, X[300:316]), atol=ROUNDING)
    # Were labels not known by their name, mixed rows would show them: a forest has not memorised those
    monkeypatch.setattr(_identity, "gives_labels", lambda model: False)
    assert isinstance(Explainer(forest.predict, X[300:316]).reader, BlackBox)


def test_functions_bound_to_a_model_are_not_its_methods():
    model = Ridge().fit(X, Y)

    def predict(self, rows):
        return Ridge.predict(self, rows)

    assert _identity.is_own_method(model.predict, Ridge)
    assert not _identity.is_own_method(MethodType(predict, model), Ridge)
    assert not _identity.is_own_method(model.fit, Ridge)
    assert not _identity.is_own_method(LogisticRegression().predict, LogisticRegression)
    assert _identity.is_own_method(LogisticRegression().predict, LogisticRegression, has_settings=True)


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


# --- models of other people's packages: found by the entry points that these declare ----------------------------------


EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "log_linear_reader.py"
SCRIPT = """
import numpy as np
from strangers_model import LogLinear
from exactshap import Explainer
from exactshap.readers import registered

X = np.random.default_rng(0).normal(size=(9, 3))
name = "strangers_model.LogLinear"
assert name not in registered()
explanation = Explainer(LogLinear([0.5, -0.2, 0.1], bias=1.0), X)(X[:2])
assert explanation.certificate().passed and explanation.model_name == "LogLinear"
assert registered()[name] == "strangers_model"
"""


def test_an_installed_package_declares_its_reader(tmp_path):
    text = EXAMPLE.read_text(encoding="utf-8").replace('register(f"{__name__}.LogLinear", __name__)', "")
    (tmp_path / "strangers_model.py").write_text(text, encoding="utf-8")
    info = tmp_path / "strangers_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers-model\nVersion: 1.0\n", encoding="utf-8")
    entry = "[exactshap.readers]\nstrangers_model.LogLinear = strangers_model\n"
    (info / "entry_points.txt").write_text(entry, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


class Doubled:
    """Predict twice the first column."""

    def predict(self, X):
        return 2.0 * np.asarray(X)[:, 0]


def test_a_registered_module_may_name_its_function(monkeypatch):
    def read_doubled(model, request):
        return read(AdditiveModel([(0, lambda v: 2.0 * v[:, 0])], n_features=2), request)

    module = types.ModuleType("strangers_readers")
    module.read_doubled = read_doubled
    monkeypatch.setitem(sys.modules, module.__name__, module)
    register(f"{__name__}.Doubled", f"{module.__name__}:read_doubled")
    explanation = explain(Doubled(), np.array([[1.0, 5.0]]), np.zeros((1, 2)))
    assert explanation.certificate().passed
    np.testing.assert_array_equal(explanation.values, [[2.0, 0.0]])


def test_another_path_of_coefficients_is_no_other_prediction():
    class Celer(Lasso):  # another solver, as that of celer
        def path(self, *args, **kwargs):
            raise AssertionError("fits call it")

    model = Celer(alpha=0.01)
    vars(model).update(vars(Lasso(alpha=0.01).fit(X, Y)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = explain(model, ROWS, BACKGROUND)
    np.testing.assert_allclose(found.values, interventional_values(model.predict, ROWS, BACKGROUND), atol=ROUNDING)
    assert found.method.startswith("per-term")
