"""The models of the golden record: deterministic fits on data that scikit-learn ships, by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import discriminant_analysis, ensemble, gaussian_process, linear_model, naive_bayes, svm, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import kernels
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

__all__ = ["BACKGROUND", "GROUPS", "MODELS", "ROWS", "Data", "Model", "unfitted"]

N_FIT, N_COLUMNS = 120, 6
ROWS, BACKGROUND = slice(0, 3), slice(20, 30)
GROUPS = {"first": [0, 1], "second": [2, 4]}


class Data:
    """Diabetes data in units of about 1: arrays, a frame of mixed columns, and targets of every kind."""

    def __init__(self) -> None:
        X, y = load_diabetes(return_X_y=True)
        self.X = 20.0 * X[:N_FIT, [0, 2, 3, 4, 8, 9]]
        self.y = (y[:N_FIT] - 152.0) / 77.0
        self.two = (self.y > 0).astype(int)
        self.three = np.digitize(self.y, [-0.5, 0.5])
        self.counts = np.floor(3.0 * np.exp(0.5 * self.y))
        self.both = np.stack([self.y, self.X[:, 1] * self.X[:, 2]], axis=1)
        self.missing = np.where(np.arange(self.X.size).reshape(self.X.shape) % 17 == 3, np.nan, self.X)
        self.wide = np.tile(self.X, (1, 4))[:, :20] + 0.1 * np.arange(20) * np.sin(np.arange(N_FIT))[:, None]
        bins = np.array(["low", "middle", "high"])
        self.frame = pd.DataFrame(self.X[:, :3], columns=["age", "bmi", "pressure"]).assign(
            sex=np.where(X[:N_FIT, 1] > 0, "a", "b"), level=bins[np.digitize(self.X[:, 3], [-0.5, 0.5])]
        )
        self.categories = self.frame.astype({"sex": "category", "level": "category"})


@dataclass(frozen=True)
class Model:
    """One fit; ``table`` and ``target`` name attributes of Data, ``own`` says how the model itself predicts."""

    make: Callable[[], Any]
    table: str = "X"
    target: str = "y"
    library: str = "sklearn"
    settings: dict[str, Any] = field(default_factory=dict)

    def fitted(self, data: Data) -> Any:
        model = self.make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(getattr(data, self.table), getattr(data, self.target))


class Function:
    """A function of the predictions of another model; fitted as that is."""

    def __init__(self, model: Any, method: str = "predict", bound: bool = False) -> None:
        self.model, self.method, self.bound = model, method, bound

    def fit(self, X: Any, y: Any) -> Callable[[Any], Any]:
        method = getattr(self.model.fit(X, y), self.method)
        return method if self.bound else lambda rows: method(rows)


class Formula:
    """A function that needs no fit."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def fit(self, X: Any, y: Any) -> Callable[[Any], Any]:
        return self.function


def _xgboost(name: str, **settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        import xgboost

        return getattr(xgboost, name)(**{"n_estimators": 8, "max_depth": 3, "n_jobs": 1, "random_state": 0, **settings})

    return make


def _lightgbm(name: str, **settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        import lightgbm

        base = {"n_estimators": 8, "num_leaves": 7, "n_jobs": 1, "verbose": -1, "random_state": 0, "deterministic": True}
        return getattr(lightgbm, name)(**base, **settings)

    return make


def _catboost(name: str, **settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        import catboost

        base = {"iterations": 8, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
        return getattr(catboost, name)(**base, **settings)

    return make


def _interpret(name: str, **settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        from interpret import glassbox

        base = {"interactions": 2, "outer_bags": 1, "max_rounds": 40, "n_jobs": 1, "random_state": 0}
        return getattr(glassbox, name)(**{**base, **settings})

    return make


def _pygam(name: str) -> Callable[[], Any]:
    def make() -> Any:
        import pygam

        terms = pygam.s(0, n_splines=6) + pygam.s(1, n_splines=6) + pygam.te(2, 3, n_splines=5) + pygam.l(4)
        return getattr(pygam, name)(terms)

    return make


def _own(name: str, **settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        import exactshap

        return getattr(exactshap, name)(**settings)

    return make


def _encoded(*last: Any, dense: bool = True) -> Callable[[], Any]:
    """Return a pipeline on the mixed frame: scaled numbers, one-hot text."""

    def make() -> Any:
        encode = OneHotEncoder(sparse_output=not dense, handle_unknown="ignore")
        columns = make_column_transformer((StandardScaler(), ["age", "bmi", "pressure"]), (encode, ["sex", "level"]))
        return make_pipeline(columns, *last)

    return make


def _forest(name: str, **settings: Any) -> Callable[[], Any]:
    return lambda: getattr(ensemble, name)(**{"n_estimators": 6, "max_depth": 4, "random_state": 0, **settings})


RBF = kernels.RBF([1.0, 2.0, 1.5, 2.0, 1.0, 3.0])

MODELS: dict[str, Model] = {
    # kernel machines
    "SVR": Model(lambda: svm.SVR(C=2.0, gamma=0.2)),
    "SVR linear": Model(lambda: svm.SVR(kernel="linear")),
    "SVR poly": Model(lambda: svm.SVR(kernel="poly", degree=2, coef0=1.0, gamma=0.2)),
    "SVR sigmoid": Model(lambda: svm.SVR(kernel="sigmoid", gamma=0.05)),
    "NuSVR": Model(lambda: svm.NuSVR(gamma=0.2)),
    "SVC": Model(lambda: svm.SVC(gamma=0.2), target="two"),
    "SVC three classes": Model(lambda: svm.SVC(gamma=0.2), target="three"),
    "NuSVC": Model(lambda: svm.NuSVC(gamma=0.2), target="two"),
    "OneClassSVM": Model(lambda: svm.OneClassSVM(gamma=0.2, nu=0.3)),
    "KernelRidge": Model(lambda: KernelRidge(kernel="rbf", gamma=0.2, alpha=0.5)),
    "KernelRidge laplacian": Model(lambda: KernelRidge(kernel="laplacian", gamma=0.2, alpha=0.5)),
    "KernelRidge two targets": Model(lambda: KernelRidge(kernel="rbf", gamma=0.2, alpha=0.5), target="both"),
    "KernelRidge polynomial": Model(lambda: KernelRidge(kernel="polynomial", degree=2, gamma=0.2)),
    "GP": Model(lambda: gaussian_process.GaussianProcessRegressor(2.0 * RBF, alpha=0.3, optimizer=None)),
    "GP normalised, Matern": Model(
        lambda: gaussian_process.GaussianProcessRegressor(
            kernels.Matern(2.0, nu=1.5) + kernels.WhiteKernel(0.3), optimizer=None, normalize_y=True
        )
    ),
    "GP sum of kernels": Model(
        lambda: gaussian_process.GaussianProcessRegressor(kernels.RBF(2.0) + kernels.DotProduct(1.0), alpha=0.5, optimizer=None)
    ),
    "GP classifier": Model(
        lambda: gaussian_process.GaussianProcessClassifier(2.0 * kernels.RBF(2.0), optimizer=None), target="two"
    ),
    "Nystroem": Model(lambda: make_pipeline(Nystroem(gamma=0.2, n_components=15, random_state=0), linear_model.Ridge())),
    "RBFSampler": Model(lambda: make_pipeline(RBFSampler(gamma=0.2, n_components=20, random_state=0), linear_model.Ridge())),
    "RKHS weighting": Model(_own("RKHSWeightingRegressor", n_terms=15, random_state=0)),
    "Shapley kernel ridge": Model(_own("ShapleyKernelRidge")),
    # linear and additive models
    "LinearRegression": Model(linear_model.LinearRegression),
    "Ridge two targets": Model(linear_model.Ridge, target="both"),
    "Lasso": Model(lambda: linear_model.Lasso(alpha=0.05)),
    "LogisticRegression": Model(linear_model.LogisticRegression, target="two"),
    "LogisticRegression three classes": Model(linear_model.LogisticRegression, target="three"),
    "PoissonRegressor": Model(linear_model.PoissonRegressor, target="counts"),
    "RidgeClassifier": Model(linear_model.RidgeClassifier, target="three"),
    "SGDClassifier": Model(lambda: linear_model.SGDClassifier(random_state=0), target="two"),
    "LinearSVC": Model(lambda: svm.LinearSVC(random_state=0), target="two"),
    "LinearDiscriminantAnalysis": Model(discriminant_analysis.LinearDiscriminantAnalysis, target="three"),
    "GaussianNB": Model(naive_bayes.GaussianNB, target="three"),
    "splines": Model(lambda: make_pipeline(SplineTransformer(n_knots=4), linear_model.Ridge())),
    "polynomials": Model(lambda: make_pipeline(PolynomialFeatures(2), linear_model.Ridge())),
    "bins": Model(lambda: make_pipeline(KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), linear_model.Ridge())),
    "EBM": Model(_interpret("ExplainableBoostingRegressor"), library="interpret"),
    "EBM classifier": Model(_interpret("ExplainableBoostingClassifier"), target="two", library="interpret"),
    "EBM three classes": Model(
        _interpret("ExplainableBoostingClassifier", interactions=0), target="three", library="interpret"
    ),
    "LinearGAM": Model(_pygam("LinearGAM"), library="pygam"),
    "LogisticGAM": Model(_pygam("LogisticGAM"), target="two", library="pygam"),
    # trees
    "tree": Model(lambda: tree.DecisionTreeRegressor(max_depth=4, random_state=0)),
    "tree classifier": Model(lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=0), target="three"),
    "random forest": Model(_forest("RandomForestRegressor")),
    "random forest two targets": Model(_forest("RandomForestRegressor"), target="both"),
    "random forest classifier": Model(_forest("RandomForestClassifier"), target="two"),
    "extra trees": Model(_forest("ExtraTreesRegressor")),
    "gradient boosting": Model(_forest("GradientBoostingRegressor", max_depth=3)),
    "gradient boosting classifier": Model(_forest("GradientBoostingClassifier", max_depth=3), target="two"),
    "gradient boosting three classes": Model(_forest("GradientBoostingClassifier", max_depth=3), target="three"),
    "histogram boosting": Model(lambda: ensemble.HistGradientBoostingRegressor(max_iter=8, random_state=0)),
    "histogram boosting, missing": Model(
        lambda: ensemble.HistGradientBoostingRegressor(max_iter=8, random_state=0), table="missing"
    ),
    "histogram boosting, categories": Model(
        lambda: ensemble.HistGradientBoostingClassifier(max_iter=8, random_state=0), table="categories", target="three"
    ),
    "isolation forest": Model(lambda: ensemble.IsolationForest(n_estimators=6, random_state=0)),
    "AdaBoost": Model(lambda: Function(ensemble.AdaBoostRegressor(n_estimators=4, random_state=0), bound=True)),
    "XGBoost": Model(_xgboost("XGBRegressor"), library="xgboost"),
    "XGBoost, missing": Model(_xgboost("XGBRegressor"), table="missing", library="xgboost"),
    "XGBoost three classes": Model(_xgboost("XGBClassifier"), target="three", library="xgboost"),
    "XGBoost two classes": Model(_xgboost("XGBClassifier"), target="two", library="xgboost"),
    "XGBoost counts": Model(_xgboost("XGBRegressor", objective="count:poisson"), target="counts", library="xgboost"),
    "XGBoost dart": Model(_xgboost("XGBRegressor", booster="dart", rate_drop=0.3), library="xgboost"),
    "XGBoost forest": Model(_xgboost("XGBRFRegressor"), library="xgboost"),
    "XGBoost linear": Model(_xgboost("XGBRegressor", booster="gblinear", updater="coord_descent"), library="xgboost"),
    "LightGBM": Model(_lightgbm("LGBMRegressor"), library="lightgbm"),
    "LightGBM, missing": Model(_lightgbm("LGBMRegressor"), table="missing", library="lightgbm"),
    "LightGBM three classes": Model(_lightgbm("LGBMClassifier"), target="three", library="lightgbm"),
    "LightGBM, categories": Model(_lightgbm("LGBMClassifier", min_child_samples=5), "categories", "two", "lightgbm"),
    "LightGBM counts": Model(_lightgbm("LGBMRegressor", objective="poisson"), target="counts", library="lightgbm"),
    "CatBoost": Model(_catboost("CatBoostRegressor"), library="catboost"),
    "CatBoost three classes": Model(_catboost("CatBoostClassifier"), target="three", library="catboost"),
    # pipelines, searches, sums
    "scaler, SVR": Model(lambda: make_pipeline(StandardScaler(), svm.SVR(C=2.0))),
    "robust scaler, SVC": Model(lambda: make_pipeline(RobustScaler(), svm.SVC()), target="three"),
    "range, random forest": Model(lambda: make_pipeline(MinMaxScaler(), _forest("RandomForestRegressor")())),
    "power, Ridge": Model(lambda: make_pipeline(PowerTransformer(), linear_model.Ridge())),
    "imputer, GP": Model(
        lambda: make_pipeline(
            SimpleImputer(), gaussian_process.GaussianProcessRegressor(2.0 * kernels.RBF(2.0), alpha=0.3, optimizer=None)
        ),
        table="missing",
    ),
    "columns, Ridge": Model(_encoded(linear_model.Ridge()), table="frame"),
    "sparse columns, LogisticRegression": Model(
        _encoded(linear_model.LogisticRegression(), dense=False), table="frame", target="two"
    ),
    "columns, SVR": Model(_encoded(svm.SVR()), table="frame"),
    "columns, gradient boosting": Model(_encoded(_forest("GradientBoostingRegressor", max_depth=3)()), table="frame"),
    "ordinal columns, random forest": Model(
        lambda: make_pipeline(
            make_column_transformer((OrdinalEncoder(), ["sex", "level"]), remainder="passthrough"),
            _forest("RandomForestClassifier")(),
        ),
        table="frame",
        target="three",
    ),
    "columns, XGBoost": Model(lambda: _encoded(_xgboost("XGBClassifier")())(), table="frame", target="two", library="xgboost"),
    "function step, Ridge": Model(lambda: make_pipeline(FunctionTransformer(np.tanh), linear_model.Ridge())),
    "PCA, Ridge": Model(lambda: make_pipeline(PCA(3), linear_model.Ridge())),
    "PCA, SVR": Model(lambda: make_pipeline(PCA(3), svm.SVR())),
    "grid search": Model(lambda: GridSearchCV(svm.SVR(), {"C": [0.5, 2.0]}, cv=3)),
    "grid search of a pipeline": Model(
        lambda: GridSearchCV(make_pipeline(StandardScaler(), svm.SVC()), {"svc__C": [0.5, 2.0]}, cv=3), target="two"
    ),
    "scaled target": Model(lambda: TransformedTargetRegressor(svm.SVR(), transformer=StandardScaler())),
    "logarithm of the target": Model(
        lambda: TransformedTargetRegressor(linear_model.Ridge(), func=np.log1p, inverse_func=np.expm1), target="counts"
    ),
    "voting": Model(lambda: ensemble.VotingRegressor([("svr", svm.SVR()), ("forest", _forest("RandomForestRegressor")())])),
    "stacking": Model(lambda: ensemble.StackingRegressor([("svr", svm.SVR()), ("ridge", linear_model.Ridge())], cv=3)),
    "bagging": Model(lambda: ensemble.BaggingRegressor(svm.SVR(), 3, random_state=0)),
    "multi-output": Model(lambda: MultiOutputRegressor(svm.SVR()), target="both"),
    "one-vs-rest": Model(lambda: OneVsRestClassifier(svm.SVC(gamma=0.2)), target="three"),
    "one-vs-one": Model(lambda: OneVsOneClassifier(svm.SVC(gamma=0.2)), target="three"),
    "calibrated": Model(lambda: CalibratedClassifierCV(svm.LinearSVC(random_state=0), cv=3), target="two"),
    "machines calibrated": Model(lambda: CalibratedClassifierCV(svm.SVC(gamma=0.2), cv=3), target="three"),
    "frozen": Model(lambda: FrozenEstimator(linear_model.Ridge().fit(np.eye(N_COLUMNS), np.arange(N_COLUMNS)))),
    # functions, and what is unknown
    "nearest neighbours": Model(KNeighborsRegressor),
    "method of nearest neighbours": Model(lambda: Function(KNeighborsRegressor(), bound=True)),
    "method of an SVR": Model(lambda: Function(svm.SVR(), bound=True)),
    "probabilities of a network": Model(
        lambda: Function(MLPClassifier((4,), max_iter=50, random_state=0), "predict_proba", bound=True), target="three"
    ),
    "function of a forest": Model(lambda: Function(_forest("RandomForestRegressor")())),
    "function of a frame": Model(lambda: Function(_encoded(svm.SVR())()), table="frame"),
    "formula": Model(lambda: Formula(lambda rows: rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]) + rows[:, 3:].sum(axis=1))),
    "formula of two outputs": Model(lambda: Formula(lambda rows: np.stack([rows[:, 0] * rows[:, 1], rows[:, 2]], axis=1))),
    "formula of 20 columns": Model(
        lambda: Formula(
            lambda rows: np.tanh(rows[:, :5].sum(axis=1)) * (1.0 + rows[:, 6] * rows[:, 7]) + rows[:, 9:].sum(axis=1)
        ),
        table="wide",
        settings={"budget": 300},
    ),
    "function of a forest, 20 columns": Model(
        lambda: Function(_forest("RandomForestRegressor")()), table="wide", settings={"budget": 200}
    ),
    "SVR of 20 columns": Model(lambda: svm.SVR(), table="wide"),
}
MODELS = {name: model for name, model in MODELS.items() if find_spec(model.library) is not None}


def unfitted(name: str) -> Any:
    """Return a model of the table before its fit; skip the test where its library is absent."""
    if name not in MODELS:
        pytest.skip(f"the library of {name} is absent")
    return MODELS[name].make()
