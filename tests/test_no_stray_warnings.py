"""What a user asked for in the ordinary way answers without a warning: of names, shapes or settings that nobody passed wrongly."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import exactshap

OF_OLDER_LIGHTGBM = ("__sklearn_tags__", "'force_all_finite' was renamed")
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 4)), columns=["age", "sex", "income", "rooms"])
Y = (X["age"] * X["sex"] + X["income"]).to_numpy()
CLASSES = np.digitize(Y, [-0.5, 0.5])


def optional(module, name, **settings):
    """Give a model of a library that may be absent."""
    return pytest.param(lambda: getattr(pytest.importorskip(module), name)(**settings), id=name)


def ready(make, name=None):
    return pytest.param(lambda: clone(make), id=name or type(make).__name__)


MODELS = [
    ready(SVR()),
    ready(SVC()),
    ready(OneClassSVM()),
    ready(KernelRidge(kernel="rbf")),
    ready(GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None)),
    ready(GaussianProcessClassifier(optimizer=None)),
    ready(Ridge()),
    ready(LogisticRegression()),
    ready(make_pipeline(StandardScaler(), SVR()), "pipeline"),
    ready(RandomForestRegressor(n_estimators=5)),
    ready(ExtraTreesClassifier(n_estimators=5)),
    ready(GradientBoostingClassifier(n_estimators=5)),
    ready(HistGradientBoostingRegressor(max_iter=5)),
    ready(IsolationForest(n_estimators=5)),
    ready(BaggingRegressor(Ridge(), n_estimators=3)),
    ready(VotingRegressor([("a", Ridge()), ("b", RandomForestRegressor(n_estimators=5))])),
    optional("xgboost", "XGBRegressor", n_estimators=5),
    optional("xgboost", "XGBClassifier", n_estimators=5),
    optional("lightgbm", "LGBMRegressor", n_estimators=5, verbose=-1),
    optional("lightgbm", "LGBMClassifier", n_estimators=5, verbose=-1),
    optional("catboost", "CatBoostRegressor", iterations=5, verbose=0, allow_writing_files=False),
    optional("catboost", "CatBoostClassifier", iterations=5, verbose=0, allow_writing_files=False),
    optional("interpret.glassbox", "ExplainableBoostingRegressor", interactions=1, outer_bags=1, max_rounds=20, n_jobs=1),
    optional("pygam", "LinearGAM"),
]


def messages(caught):
    """Return what was warned of, but for what scikit-learn says of releases of LightGBM that are older than it."""
    return [text for one in caught if not any(word in (text := str(one.message)) for word in OF_OLDER_LIGHTGBM)]


def target_of(model):
    named = type(model).__name__
    return CLASSES if "Class" in named or named in ("SVC", "LogisticRegression") else Y


@pytest.mark.parametrize("of_frames", [True, False], ids=["frames", "arrays"])
@pytest.mark.parametrize("make", MODELS)
def test_explaining_is_silent(make, of_frames):
    rows = X if of_frames else X.to_numpy()
    model = make().fit(rows, target_of(make()))
    output = "all" if hasattr(model, "classes_") else "auto"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer = exactshap.Explainer(model, rows[:20], output=output)
        for n in (1, 3, 12, 120):
            explanation = explainer(rows[:n])
        str(explanation), explainer.verify(rows[:2])
    assert messages(caught) == []


@pytest.mark.parametrize("of_frames", [True, False], ids=["frames", "arrays"])
@pytest.mark.parametrize("make", [make for make in MODELS if make.id in ("XGBRegressor", "LGBMRegressor", "CatBoostRegressor")])
def test_decomposing_is_silent(make, of_frames):
    rows = X if of_frames else X.to_numpy()
    model = make().fit(rows, Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exactshap.decompose_r2(model, rows, Y)
        exactshap.explain(model, rows[:3])
    assert messages(caught) == []
