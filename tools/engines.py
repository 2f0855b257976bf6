"""Run the blocks of docs/scale.md in every engine that is installed, as they stand, and hold each against one process, bit for bit.

    pip install "dask[distributed]" pyspark ray      (Spark needs a Java runtime)
    python tools/engines.py [dask] [spark] [ray]

Prints one line for each engine: rows per second of CPU time (of driver and workers, once they have started), those of one process,
and whether the values have the same bits.
"""

import contextlib
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
N_ROWS, N_PARTS = 200_000, 8


def blocks_before(text, word):
    """Return the Python blocks of a page above a word."""
    return re.findall(r"```python\n(.*?)```", text[: text.index(word)], re.DOTALL)


def block_of(text, engine):
    """Return the first block below the name of an engine."""
    return re.search(rf"\*\*{engine}\.\*\*.*?```py\w*\n(.*?)```", text, re.DOTALL).group(1)


@contextlib.contextmanager
def dask(table):
    """Give rows and how to collect results, on two worker processes."""
    from distributed import Client, LocalCluster

    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**settings) as cluster, Client(cluster):
        yield None, lambda values: values.compute()  # the block reads the rows itself


@contextlib.contextmanager
def spark(table):
    """Give rows and how to collect results, on two local cores."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        yield session.createDataFrame(table).repartition(N_PARTS), lambda values: values.toPandas()
    finally:
        session.stop()


@contextlib.contextmanager
def ray(table):
    """Give rows and how to collect results, on two local workers."""
    import ray as library

    library.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield library.data.from_pandas(table).repartition(N_PARTS), lambda values: values.to_pandas()
    finally:
        library.shutdown()


ENGINES = {"Dask": dask, "Spark": spark, "Ray": ray}


def compared(found, expected):
    """Say whether two tables hold the same bits, or which columns differ and by how much."""
    if list(found.columns) != list(expected.columns):
        return f"other columns: {list(found.columns)}"
    pairs = {name: (found[name].to_numpy(), expected[name].to_numpy()) for name in expected}
    off = {name: np.abs(one - other).max() for name, (one, other) in pairs.items() if not np.array_equal(one, other)}
    return f"different: {off}" if off else "the same bits"


def cpu_seconds():
    """Return the CPU time of this process and of all that it has started."""
    own = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (own, *own.children(recursive=True)))


def run(name, page, namespace, table):
    """Run one engine twice, since the first time includes its start, and print what was found."""
    code = compile(block_of(page, name), f"{PAGE}, {name}", "exec")
    with ENGINES[name](table) as (rows, collect):
        for _ in range(2):
            namespace["rows"] = rows
            exec(code, namespace)
            before = cpu_seconds()
            found = collect(namespace["values"])
            seconds = cpu_seconds() - before
    started = time.process_time()
    expected = namespace["part"](table)
    one = time.process_time() - started
    said = compared(found.sort_values("id", ignore_index=True)[list(expected.columns)], expected)
    print(
        f"{name}: {len(table) / seconds:,.0f} rows per CPU second, {len(table) / one:,.0f} in one process; {said}", flush=True
    )


def main(names):
    """Make the table and the function of the page, and run the engines named, or all."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        namespace = {"__name__": "page"}
        for block in blocks_before(page, "**Dask.**"):
            with contextlib.redirect_stdout(open(os.devnull, "w")):
                exec(compile(block, str(PAGE), "exec"), namespace)
        numbers = np.random.default_rng(1).normal(size=(N_ROWS, namespace["X"].shape[1]))
        table = pd.DataFrame(numbers, columns=namespace["X"].columns).assign(id=np.arange(N_ROWS))
        table.to_parquet("rows.parquet")
        for name in ENGINES:
            if names and ENGINES[name].__name__ not in names:
                continue
            try:
                run(name, page, dict(namespace), table)
            except ImportError as error:
                print(f"{name}: not installed ({error})", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
