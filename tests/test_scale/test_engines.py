"""Dask and joblib for real: worker processes give the bits of one."""

import functools
import os
import signal

import joblib
import numpy as np
import pandas as pd
import pytest

import scale_cases as cases
from exactshap import Explainer
from exactshap.scale import GlobalImportance, Partition, explain_dataset


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [cases.svr, cases.trees])
def test_dask_gives_the_bits_of_one_process(client, make):
    T, part = cases.table(), Partition(make(), keep={"id": "int64"})
    distributed_table = pytest.importorskip("dask.dataframe").from_pandas(T, npartitions=4)
    explained = distributed_table.map_partitions(part, meta=part.meta)
    pd.testing.assert_frame_equal(explained.compute(), part(T), check_exact=True)
    importances = client.gather(client.map(GlobalImportance.of, [block.compute() for block in explained.partitions]))
    assert sum(importances[1:], importances[0]) == GlobalImportance.of(part(T))


def others(folder):
    return {path.name for path in folder.iterdir()} - {str(os.getpid())}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_a_backend_takes_effect_without_n_jobs(tmp_path, backend, request):
    X = np.random.default_rng(0).normal(size=(12, 3))  # three blocks of a black box
    explainer = Explainer(cases.Recorded(tmp_path), X[:5])
    expected = explainer(X)
    assert not others(tmp_path)
    settings = {"n_jobs": 2} if backend == "loky" else {"client": request.getfixturevalue("client")}
    with joblib.parallel_config(backend=backend, **settings):
        found = explainer(X)
    assert others(tmp_path)
    assert np.array_equal(found.values, expected.values)


def test_n_jobs_of_the_explainer_comes_first(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    explainer = Explainer(cases.Recorded(tmp_path), X[:5], n_jobs=1)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        explainer(X)
    assert not others(tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_client_is_an_ordered_map(client, tmp_path, is_killed):
    """Dask runs the tasks of a killed worker again: nothing is to be done, and the bytes are those of a quiet run."""
    pytest.importorskip("pyarrow")
    if is_killed and not hasattr(signal, "SIGKILL"):
        pytest.skip("POSIX")
    cases.table().to_parquet(tmp_path / "in.parquet")

    def ordered(function, *lists):
        if is_killed and hasattr(lists[0][0], "first"):  # the batches, which come after the files
            function = functools.partial(cases.kill_once, function, tmp_path / "flag")
        yield from client.gather(client.map(function, *lists))

    settings = {"keep": ["id"], "batch_rows": 8}
    result = explain_dataset(cases.svr(), tmp_path / "in.parquet", tmp_path / "there", map=ordered, **settings)
    explain_dataset(cases.svr(), tmp_path / "in.parquet", tmp_path / "here", **settings)
    assert (tmp_path / "flag").exists() == is_killed
    assert result.n_rows == 60
    here, there = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("here", "there"))
    assert here == there
    assert np.isfinite(pd.read_parquet(tmp_path / "there")["phi_age"]).all()
