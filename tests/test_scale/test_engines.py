"""Dask for real: two worker processes give the bits of one."""

import numpy as np
import pandas as pd
import pytest

import scale_cases as cases
from exactshap.scale import GlobalImportance, Partition, explain_dataset

dask_frame = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [cases.svr, cases.trees])
def test_dask_gives_the_bits_of_one_process(client, make):
    T, part = cases.table(), Partition(make(), keep={"id": "int64"})
    distributed_table = dask_frame.from_pandas(T, npartitions=4)
    explained = distributed_table.map_partitions(part, meta=part.meta)
    pd.testing.assert_frame_equal(explained.compute(), part(T), check_exact=True)
    importances = client.gather(client.map(GlobalImportance.of, [block.compute() for block in explained.partitions]))
    assert sum(importances[1:], importances[0]) == GlobalImportance.of(part(T))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_client_is_an_ordered_map(client, tmp_path):
    pytest.importorskip("pyarrow")
    cases.table().to_parquet(tmp_path / "in.parquet")

    def ordered(function, *lists):
        yield from client.gather(client.map(function, *lists))

    settings = {"keep": ["id"], "batch_rows": 8}
    explain_dataset(cases.svr(), tmp_path / "in.parquet", tmp_path / "there", map=ordered, **settings)
    explain_dataset(cases.svr(), tmp_path / "in.parquet", tmp_path / "here", **settings)
    files = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert all((tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes() for name in files)
    assert np.isfinite(pd.read_parquet(tmp_path / "there")["phi_age"]).all()
