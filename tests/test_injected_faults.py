"""Injected faults: ``verify`` sees every one that moves a value by 1e-6 of the largest, the certificate 95 % of them."""

import functools

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from interpret import glassbox
from sklearn import ensemble, gaussian_process, kernel_ridge, linear_model, pipeline, preprocessing, svm

from injected_faults import Case, campaign

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
HOLES = np.where(rng.random(X.shape) < 0.15, np.nan, X)
Y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + np.abs(X[:, 3]) + 0.3 * X[:, 4]
CLASSES = np.digitize(Y, [0.0, 1.5])


def trees(name, model, background, y=Y, holes=True):
    data = HOLES if holes else X
    library = name.split()[0]
    module = f"exactshap.readers.trees.{library if library in ('sklearn', 'xgboost') else 'packages'}"
    return Case(name, model.fit(data, y), data[:12], data[150:170] if background else None, "trees", module)


def make(name, background):
    """Fit the model of a case by its name."""
    if name.startswith("xgboost"):
        if name.endswith("classes"):
            return trees(name, xgboost.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1), background, CLASSES)
        return trees(name, xgboost.XGBRegressor(n_estimators=10, max_depth=3, n_jobs=1), background)
    if name.startswith("lightgbm"):
        return trees(name, lightgbm.LGBMRegressor(n_estimators=10, num_leaves=8, verbose=-1, n_jobs=1), background)
    if name.startswith("catboost"):
        model = catboost.CatBoostRegressor(iterations=10, depth=3, verbose=0, thread_count=1, allow_writing_files=False)
        return trees(name, model, background)

    if name == "sklearn forest":
        return trees(name, ensemble.RandomForestRegressor(5, max_depth=4, random_state=0), background, holes=False)
    if name == "sklearn boosting":
        return trees(name, ensemble.GradientBoostingRegressor(n_estimators=8), background, holes=False)
    if name == "sklearn hist":
        return trees(name, ensemble.HistGradientBoostingRegressor(max_iter=8, max_depth=3), background)
    rows = X[150:165] if background else None
    kernels = {
        "svr": lambda: svm.SVR(C=5.0),
        "kernel ridge": lambda: kernel_ridge.KernelRidge(kernel="rbf", gamma=0.2),
        "gaussian process": lambda: gaussian_process.GaussianProcessRegressor(optimizer=None, alpha=0.1),
        "pipeline of svr": lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVR(C=5.0)),
    }
    if name in kernels:
        return Case(name, kernels[name]().fit(X, Y), X[:12], rows, "kernel")
    polynomial = pipeline.make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Ridge())
    model = {"ridge": linear_model.Ridge(), "polynomial": polynomial}.get(name)
    if model is None:
        model = glassbox.ExplainableBoostingRegressor(interactions=2, outer_bags=1, max_rounds=50, n_jobs=1)
    return Case(name, model.fit(X, Y), X[:12], rows, "additive")


TREES = ("xgboost", "xgboost classes", "lightgbm", "catboost", "sklearn forest", "sklearn boosting", "sklearn hist")
KERNELS = ("svr", "kernel ridge", "gaussian process", "pipeline of svr")
ADDITIVE = ("ridge", "polynomial", "ebm")
CASES = [(name, True) for name in TREES + KERNELS + ADDITIVE] + [(name, False) for name in (*TREES, "svr")]
case_of = functools.cache(make)

SEEN = {}  # faults that the certificate saw, of the visible ones, by case


@pytest.mark.parametrize(("name", "background"), CASES)
def test_verify_sees_injected_faults(name, background):
    found = campaign(case_of(name, background), n_each=4, seed=1)
    moved = {kind: [one for one in outcomes if one.moved] for kind, outcomes in found.items()}
    missed = {kind: sum(not one.verify for one in outcomes) for kind, outcomes in moved.items()}
    assert not any(missed.values()), f"verify missed faults of {name}: {missed}"
    if background:
        by_kind = {kind: f"{sum(one.certificate for one in ones)} of {len(ones)}" for kind, ones in moved.items()}
        SEEN[f"{name}: {by_kind}"] = [one.certificate for outcomes in moved.values() for one in outcomes]
        assert np.mean(SEEN[f"{name}: {by_kind}"]) >= 0.8, f"the certificate of {name} saw {by_kind}"


def test_the_certificate_sees_nearly_all_of_them():
    if not SEEN:
        pytest.skip("the tests above tell what was seen")
    every = [one for seen in SEEN.values() for one in seen]
    assert np.mean(every) >= 0.95, f"the certificate saw {sum(every)} of {len(every)}: {list(SEEN)}"
