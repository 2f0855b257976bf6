"""Processes forked after the model has predicted: what they explain is what their parent would, and nobody waits for lost threads."""

import importlib
import multiprocessing
import os

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import ThreadpoolController, threadpool_limits

from at_once import PATIENCE, at_once
from exactshap import Explainer, decompose_r2
from exactshap._runtime import process_settings

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # that such a fork may wait for ever
]
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 5))
Y = X[:, 0] * X[:, 1] + X[:, 2]


@pytest.fixture(autouse=True)
def _two_threads():
    import sklearn.ensemble  # noqa: F401 - its OpenMP library must be loaded to be limited

    with threadpool_limits(2, user_api="openmp"):
        yield


def _histograms():
    return HistGradientBoostingRegressor(max_iter=5)


def _boosted(library, name, **settings):
    return getattr(importlib.import_module(library), name)(n_estimators=5, n_jobs=2, **settings)


FAMILIES = {  # whose libraries predict with OpenMP
    "histogram": _histograms,
    "xgboost": lambda: _boosted("xgboost", "XGBRegressor"),
    "lightgbm": lambda: _boosted("lightgbm", "LGBMRegressor", verbose=-1),
}


def _in_child(run):
    """Return what ``run`` returns in a forked process."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=lambda: there.send(run()), daemon=True)
    child.start()
    try:
        assert here.poll(PATIENCE), "the child waits for threads of its parent"
        return here.recv()
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_that_predicted_before_is_explained_in_a_forked_process(family):
    model = FAMILIES[family]().fit(X, Y)
    explainer = Explainer(model, X[:20])
    values = explainer(X[:300]).values
    for run in (lambda: explainer(X[:300]).values, lambda: Explainer(model, X[:20])(X[:300]).values):
        np.testing.assert_array_equal(_in_child(run), values)


def test_shares_of_r2_in_a_forked_process():
    model = _histograms().fit(X, Y)
    np.testing.assert_array_equal(_in_child(lambda: decompose_r2(model, X, Y).values), decompose_r2(model, X, Y).values)


def test_only_the_thread_that_a_forked_process_was_left_with_is_alone():
    def levels():
        process_settings.without_lost_threads()
        return {
            each.dynlib.omp_get_max_active_levels() for each in ThreadpoolController().select(user_api="openmp").lib_controllers
        }

    _histograms().fit(X, Y)
    before = levels()
    assert 0 not in before
    assert _in_child(lambda: (at_once(levels)[0], levels())) == (before, {0})
    assert levels() == before
