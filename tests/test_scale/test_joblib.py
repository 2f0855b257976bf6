"""joblib's own settings around a call: blocks of rows are solved on its workers, with the bits of one process."""

import os

import joblib
import numpy as np
import pytest

import scale_cases as cases
from exactshap import Explainer


def others(folder):
    return {path.name for path in folder.iterdir()} - {str(os.getpid())}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_a_backend_takes_effect_without_n_jobs(tmp_path, backend):
    X = np.random.default_rng(0).normal(size=(12, 3))  # three blocks of a black box
    explainer = Explainer(cases.Recorded(tmp_path), X[:5])
    expected = explainer(X)
    assert not others(tmp_path)
    if backend == "dask":
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):
            found = explainer(X)
    else:
        with joblib.parallel_config(backend="loky", n_jobs=2):
            found = explainer(X)
    assert others(tmp_path)
    assert np.array_equal(found.values, expected.values)


def test_n_jobs_of_the_explainer_comes_first(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    explainer = Explainer(cases.Recorded(tmp_path), X[:5], n_jobs=1)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        explainer(X)
    assert not others(tmp_path)
