"""Run one partition function in every engine that is installed, and hold each against one process, bit for bit.

    pip install "dask[distributed]" pyspark ray      (Spark needs a Java runtime)
    python tools/engines.py [dask] [spark] [ray]

Prints one line for each engine: rows per second and whether the values have the bits of one process.
"""

import sys
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from exactshap import Explainer
from exactshap.scale import Partition

NAMES = [f"f{j}" for j in range(8)]
N_ROWS, N_PARTS = 40_000, 8


def problem():
    """Return a table with identifiers and the partition function of a boosted model."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(N_ROWS, len(NAMES))), columns=NAMES)
    model = HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(X[:2000], X["f0"][:2000] * X["f1"][:2000])
    return X.assign(id=np.arange(N_ROWS)), Partition(Explainer(model, X[NAMES][:20]), keep={"id": "int64"})


def with_dask(table, part):
    """Map partitions on two worker processes."""
    from dask import dataframe
    from distributed import Client, LocalCluster

    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**settings) as cluster, Client(cluster):
        return dataframe.from_pandas(table, npartitions=N_PARTS).map_partitions(part, meta=part.meta).compute()


def with_spark(table, part):
    """Map batches of pandas frames on two local cores."""
    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        rows = spark.createDataFrame(table).repartition(N_PARTS)
        return rows.mapInPandas(part.iterate, schema=from_arrow_schema(part.schema)).toPandas()
    finally:
        spark.stop()


def with_ray(table, part):
    """Map batches on two local workers; the batches are mappings of arrays, Ray's default."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        return ray.data.from_pandas(table).repartition(N_PARTS).map_batches(part, batch_size=None).to_pandas()
    finally:
        ray.shutdown()


ENGINES = {"dask": with_dask, "spark": with_spark, "ray": with_ray}


def compared(found, expected):
    """Say whether two tables hold the same bits, or which columns differ and by how much."""
    if list(found.columns) != list(expected.columns):
        return f"other columns: {list(found.columns)}"
    pairs = {name: (found[name].to_numpy(), expected[name].to_numpy()) for name in expected}
    off = {name: np.abs(one - other).max() for name, (one, other) in pairs.items() if not np.array_equal(one, other)}
    return f"different: {off}" if off else "the same bits"


def main(names):
    """Run the engines named, or all, and print what was found."""
    table, part = problem()
    started = time.perf_counter()
    expected = part(table)
    print(f"one process: {N_ROWS / (time.perf_counter() - started):,.0f} rows/s", flush=True)
    for name in names or ENGINES:
        try:
            started = time.perf_counter()
            found = ENGINES[name](table, part)
            seconds = time.perf_counter() - started
        except ImportError as error:
            print(f"{name}: not installed ({error})", flush=True)
            continue
        found = found.sort_values("id", ignore_index=True)
        print(f"{name}: {N_ROWS / seconds:,.0f} rows/s with its start; {compared(found, expected)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
