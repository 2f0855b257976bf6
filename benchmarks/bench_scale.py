"""Files in, files out: what streaming adds to pure computing, and the memory it takes.

``ROWS=5000000 python benchmarks/run.py scale`` runs the full size, ``COLUMNS=100`` more columns than 20.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import row

ROWS = int(os.environ.get("ROWS", "400000"))
COLUMNS, BATCH, POINTS = int(os.environ.get("COLUMNS", "20")), 50_000, 1000
MODELS = ("trees", "svr")

RUN = "import sys; sys.path.insert(0, {here!r}); import bench_scale; bench_scale.streamed({model!r}, {source!r}, {out!r})"


def streamed(model, source, out):
    """Print what a run over a file takes, and what calls on rows in memory take that were made between its batches."""
    import resource
    import time
    import warnings

    import numpy as np
    from pyarrow import parquet

    from exactshap.scale import explain_dataset

    warnings.simplefilter("ignore")
    explainer = explainer_of(model)
    with parquet.ParquetFile(source) as file:
        groups = np.linspace(0, file.num_row_groups - 1, 4).astype(int)
        samples = [file.read_row_group(k).to_pandas() for k in groups]
    explainer(samples[0][:1000])  # whatever is made once is made
    pure = np.zeros(2)  # rows, CPU seconds

    def interleaved(work, *arguments):  # an ordered map; other jobs of the machine slow both sides down alike
        for k, one in enumerate(zip(*arguments, strict=True)):
            sample, started = samples[k % len(samples)], time.process_time()
            explainer(sample)
            pure[:] += len(sample), time.process_time() - started
            yield work(*one)

    started = time.process_time()
    result = explain_dataset(explainer, source, out, batch_rows=BATCH, map=interleaved)
    cpu = time.process_time() - started - pure[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    scaled = pure[1] / pure[0] * result.n_rows
    print(json.dumps({"wall": result.seconds, "cpu": cpu, "pure": scaled, "peak": peak, "residual": result.max_residual}))


def explainer_of(name):
    """Return an explainer of 20 columns: 100 trees of 31 leaves, or 200 support vectors at most."""
    import numpy as np
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.svm import SVR

    from exactshap import Explainer

    X = pd.DataFrame(np.random.default_rng(1).normal(size=(POINTS, COLUMNS)), columns=[f"f{j}" for j in range(COLUMNS)])
    y = X["f0"] * X["f1"] + X["f2"]
    if name == "trees":
        return Explainer(HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(X, y))
    return Explainer(SVR(gamma=0.05).fit(X[:200], y[:200]))


def write_rows(path, n_rows):
    """Write random rows in row groups of 50,000."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(0)
    schema = pa.schema([(f"f{j}", pa.float64()) for j in range(COLUMNS)])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n_rows, BATCH):
            size = min(BATCH, n_rows - start)
            writer.write_table(pa.table([rng.normal(size=size) for _ in range(COLUMNS)], schema=schema))


WORKERS, PART_ROWS, REPEATS = 2, 12_500, 3
LEAN = {  # as docs/scale.md has it
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**27,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
}


def with_dask(source, settings):
    """Return seconds and CPU seconds of one process, of a Dask cluster of two and of its driver, and whether the bits are the same.

    The cluster is up and has loaded the explainer, as in a long run; both sides take turns, and the best of each counts.
    """
    import os
    import time

    import dask
    import pandas as pd
    import psutil
    from distributed import Client, LocalCluster

    from exactshap.scale import Partition

    def cpu(process):
        return sum(process.cpu_times()[:2])

    table = pd.read_parquet(source)
    part = Partition(explainer_of("trees"))
    parts = [table[start : start + PART_ROWS] for start in range(0, len(table), PART_ROWS)]
    part(parts[0])
    own, turns = psutil.Process(), []
    cluster_settings = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with dask.config.set(settings), LocalCluster(**cluster_settings) as cluster, Client(cluster) as client:
        processes = [own, *map(psutil.Process, client.run(os.getpid).values())]
        function, held = client.scatter(part, broadcast=True), client.scatter(parts)
        client.gather(client.map(lambda f, piece: len(f(piece[:100])), [function] * len(held), held))
        for _ in range(REPEATS):
            before, started = [cpu(process) for process in processes], time.perf_counter()
            there = client.map(lambda f, piece: f(piece), [function] * len(held), held, pure=False)
            client.gather([client.submit(len, one) for one in there])
            two, busy = time.perf_counter() - started, [cpu(p) - c for p, c in zip(processes, before, strict=True)]
            found = client.gather(there)
            before, started = cpu(own), time.perf_counter()
            expected = [part(piece) for piece in parts]
            turns.append([time.perf_counter() - started, cpu(own) - before, two, sum(busy[1:]), busy[0]])
    best = [min(column) for column in zip(*turns, strict=True)]
    return best, pd.concat(found).equals(pd.concat(expected))


def dask_line(folder, name, settings):
    """Return the line of the table for Dask."""
    source, n_rows = Path(folder, "dask.parquet"), min(ROWS, 1_200_000)
    write_rows(source, n_rows)
    (one, one_cpu, two, workers_cpu, driver_cpu), same = with_dask(source, settings)
    note = (
        f"{'the same bits' if same else 'OTHER BITS'}; {n_rows / two:,.0f} rows/s; CPU s: one process {one_cpu:.2f}, workers "
        f"{workers_cpu:.2f}, driver {driver_cpu:.2f}, so {WORKERS * one_cpu / (workers_cpu + driver_cpu):.2f} x on two cores of their own"
    )
    return row(f"trees, {n_rows:,} rows: Dask, {WORKERS} workers, {name}, next to one process", two, one, ">= 1.7 x", note=note)


def run():
    """Return the lines of the table."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            source = Path(folder, f"{model}.parquet")
            write_rows(source, ROWS)
            here = str(Path(__file__).parent)
            code = RUN.format(model=model, source=str(source), out=str(Path(folder, f"out_{model}")), here=here)
            said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            found = json.loads(said.splitlines()[-1])
            note = (
                f"{ROWS / found['cpu']:,.0f} rows/s of one core; peak memory {found['peak'] / 2**20:,.0f} MiB; "
                f"{found['cpu'] / found['pure'] - 1:+.0%} over pure computing; largest residual {found['residual']:.1g}; "
                f"{found['wall']:.0f} s of wall time"
            )
            what = f"{model}, {ROWS:,} rows x {COLUMNS} columns ({source.stat().st_size / 2**20:,.0f} MiB), CPU s: calls on rows in memory, scaled"
            target = "<= 600 MB, <= 15 % over"
            lines.append(row(what, found["cpu"], found["pure"], target, note=note))
            source.unlink()
        lines.append(dask_line(folder, "its own settings", {}))
        lines.append(dask_line(folder, "settings of the docs", LEAN))
    return lines
