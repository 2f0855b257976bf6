"""Damage files in every way and see that the answer is one class of error, or an object that works. Never a crash or a hang.

Run a campaign with: python tests/fuzz.py --format npz --count 100000 --seed 0
With --library, model files that still load must predict what their own library predicts from them.
"""

import argparse
import collections
import contextlib
import dataclasses
import functools
import importlib
import io
import json
import os
import re
import resource
import select
import signal
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

import mutants
from exactshap.errors import InputError, ModelFormatError, UnsupportedStructureError
from exactshap.results.explanation import Explanation
from exactshap.trees import TreeModel, loads
from exactshap.trees.ensemble import largest_sum
from mutants import ODD, mutant, other_bytes, other_number

SECONDS = 2.0
MAX_BYTES = 2**26
FOLDER = Path(__file__).parent / "data" / "trees"


# --- saved explanations -----------------------------------------------------------------------------------------------


def explanations():
    """Yield explanations that use every kind of entry: arrays, frames of three libraries, objects, sets, groups, outputs."""
    X = np.random.default_rng(0).normal(size=(4, 3))
    columns = {"a": X[:, 0], "b": ["u", "v", "u", "w"], "c": [True, False, True, True]}
    plain = {
        "values": X,
        "baseline": np.ones(4),
        "prediction": X.sum(axis=1) + 1,
        "residual": np.zeros(4),
        "tolerance": 1e-12,
        "feature_names": ["a", "b", "c"],
        "value_function": "baseline",
        "n_evaluations": 17,
        "seconds": 0.25,
        "background_size": 3,
        "background_hash": "0123456789abcdef",
        "model_name": "Model",
    }
    yield Explanation(**plain, data=X, std_error=np.abs(X), error_bound=[0.0, 0.1, 0.2, 0.3])
    yield Explanation(**plain, data=np.array([[1, "u", None]] * 4, dtype=object))
    pairs = {"order": 2, "index": "stii", "sets": ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)), "set_values": np.tile(X, 2)}
    yield Explanation(**plain, **pairs, groups={"a": [0, "x"]})
    outputs = {name: np.stack([plain[name]] * 2, axis=-1) for name in ("values", "baseline", "prediction", "residual")}
    yield Explanation(**(plain | outputs), output_names=["no", "yes"], data=X)
    for library in ("pandas", "polars", "pyarrow"):
        try:
            module = __import__(library)
        except ImportError:
            continue
        yield Explanation(**plain, data=(module.table if library == "pyarrow" else module.DataFrame)(columns))


def npz_files():
    with tempfile.TemporaryDirectory() as folder:
        for explanation in explanations():
            explanation.save(Path(folder) / "e.npz")
            yield (Path(folder) / "e.npz").read_bytes()


def npz_mutant(data, rng):
    """Damage the file, or one entry of it with a check sum that fits: else the sum is all that is tested."""
    how = rng.integers(4)
    if how == 0:
        return mutant(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    name = "metadata.json" if how == 1 else list(entries)[rng.integers(len(entries))]
    entries[name] = (other_fact, mutant, other_bytes)[how - 1](entries[name], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if rng.integers(2) else zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def other_fact(content, rng):
    """Replace one entry of the metadata, or add one, by a value of any kind."""
    metadata = json.loads(content)
    names = [*(field.name for field in dataclasses.fields(Explanation)), "format", "version", "data"]
    return json.dumps(metadata | {names[rng.integers(len(names))]: ODD[rng.integers(len(ODD))]}).encode()


def load_npz(data):
    """Load and, if it is an explanation, say everything that is said of one."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "e.npz").write_bytes(data)
        try:
            explanation = Explanation.load(Path(folder) / "e.npz", max_bytes=MAX_BYTES)
        except ModelFormatError as error:
            return "refused" if len(str(error)) <= 300 else "refused in too many words"
    repr(explanation), explanation._repr_html_(), explanation.certificate(), explanation[:1]
    return "loaded"


# --- tree models ------------------------------------------------------------------------------------------------------


def tree_paths(pattern="*"):
    """Return the golden files of a kind; those of all kinds by default."""
    return sorted(path for path in FOLDER.glob(pattern) if path.with_name(path.name + ".expected.json").exists())


def tree_files(pattern="*"):
    return [path.read_bytes() for path in tree_paths(pattern)]


def tree_mutant(data, rng):
    """Damage a file in every way, or a little: files of the first kind are hardly ever read, those of the second are in half the cases.

    Half of LightGBM's get sizes of trees that fit: else the sizes are all that is tested.
    """
    text = data[1:2] not in (b"L", b"i")
    data = (mutant if rng.integers(2) else other_number if text else other_bytes)(data, rng)
    if data.startswith(b"tree") and rng.integers(2):
        trees = data.partition(b"\nend of trees")[0].split(b"\nTree=")[1:]
        sizes = " ".join(str(len(tree) + 6) for tree in trees)
        data = re.sub(rb"(?m)^tree_sizes=.*$", f"tree_sizes={sizes}".encode(), data)
    return data


def load_trees(data):
    """Load and, if it is a model that is not absurdly wide, predict."""
    try:
        model = loads(data)
    except (ModelFormatError, UnsupportedStructureError) as error:
        return "refused" if isinstance(error, ModelFormatError) else "unsupported"
    if model.n_features <= 1000:
        assert np.isfinite(model.predict(np.zeros((2, model.n_features), int))).all()  # 0 is a category too
    return "loaded"


# --- tables of the command ----------------------------------------------------------------------------------------------


def parquet_files():
    import pandas

    numbers = np.random.default_rng(0).normal(size=50)
    frame = pandas.DataFrame({"a": numbers, "b": ["u", "v"] * 25, "c": pandas.Categorical(["x", "y"] * 25)})
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return [buffer.getvalue()]


def load_parquet(data):
    from exactshap.cli._io import read_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        path.write_bytes(data)
        try:
            read_table(path)
        except InputError:
            return "refused"
    return "loaded"


TREES = {"trees": "*", "ubj": "*.ubj", "json": "xgboost*.json", "text": "*.txt", "catboost": "catboost*.json"}
FORMATS = {name: (functools.partial(tree_files, pattern), tree_mutant, load_trees) for name, pattern in TREES.items()}
FORMATS["npz"] = (npz_files, npz_mutant, load_npz)
FORMATS["parquet"] = (parquet_files, lambda data, rng: (mutant, other_bytes)[rng.integers(2)](data, rng), load_parquet)


def campaign(kind, count, seed, report=None):
    """Return how often each verdict came up."""
    files, damaged, load = FORMATS[kind]
    whole = list(files())
    assert all(load(data) == "loaded" for data in whole)
    return mutants.campaign(whole, damaged, load, count, seed, SECONDS, report)


# --- what a damaged model predicts, beside its own library: in a child process, since libraries may crash on such files

CHILD_SECONDS = 20  # for one mutant, its library included
MEMORY = 6 * 2**30  # of the child: libraries allocate what a file says
LARGEST = 1e30  # leaves beyond overflow in single precision
SINGLE, DOUBLE = 2e-6, 1e-11  # of the largest possible sum: rounding of float32 and float64 sums of some dozen trees
CLAIMED = b"?"  # the child is inside the library now


def verdict(data, rows):
    """Load ``data`` here and say whether its library predicts the same for ``rows``; yields CLAIMED before the library is asked."""
    try:
        model = loads(data, n_stages=10**6)  # as the library's booster predicts, not as an estimator that stopped early
    except (ModelFormatError, UnsupportedStructureError) as error:
        yield "refused" if isinstance(error, ModelFormatError) else "unsupported"
        return
    if model.n_features > 64 or not np.isfinite(largest_sum(model.trees)) or largest_sum(model.trees) > LARGEST:
        yield "loaded: too wide or too large to compare"
        return
    rows = resized(rows, model.n_features)
    try:
        ours = model.predict(rows).reshape(len(rows), -1)
    except InputError:  # text in a column that the file now calls a number, say
        yield "loaded: other rows needed"
        return
    yield CLAIMED
    try:
        theirs = LIBRARIES[model.library](model, data, rows)
    except Exception:  # each has its own classes
        yield "loaded: the library refuses"
        return
    yield "loaded: the same" if same(model, ours, theirs.reshape(len(rows), -1)) else "LOADED AS ANOTHER MODEL"


def resized(rows, n_columns):
    return rows[:, np.arange(n_columns) % rows.shape[1]]


def same(model: TreeModel, ours, theirs):
    if ours.shape != theirs.shape:
        return False
    allowed = (SINGLE if model.trees.single_precision else DOUBLE) * max(largest_sum(model.trees), 1e-300)
    return bool(np.all(np.abs(ours - theirs) <= allowed))


def by_xgboost(model, data, rows):
    import xgboost

    xgboost.set_config(verbosity=0)
    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(data))
    types = booster.feature_types
    matrix = xgboost.DMatrix(rows.astype(float), feature_types=types, enable_categorical=types is not None, nthread=1)
    return booster.predict(matrix, output_margin=True, validate_features=False)


def by_lightgbm(model, data, rows):
    import lightgbm

    return lightgbm.Booster(model_str=data.decode()).predict(rows, raw_score=True, num_threads=1)


def by_catboost(model, data, rows):
    import catboost

    booster = catboost.CatBoost()
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        booster.load_model(file.name, format="json")
    return np.asarray(booster.predict(rows, prediction_type="RawFormulaVal", thread_count=1))


LIBRARIES = {"xgboost": by_xgboost, "lightgbm": by_lightgbm, "catboost": by_catboost}


def rows_of(path):
    """Return the rows of a golden file, text where it has text."""
    content = json.loads(path.with_name(path.name + ".expected.json").read_text())["X"]
    rows = [[np.nan if value is None else value for value in row] for row in content]
    return np.array(rows, object if any(isinstance(value, str) for value in rows[0]) else float)


def verdicts_of(damaged):
    """Yield (number, verdict) for ``damaged``: number -> (data, rows). A child that dies inside a library is followed by another."""
    number = 0
    while number < len(damaged):
        child, stream = start(damaged, number)
        claimed = False
        for line in lines(stream):
            claimed = line == CLAIMED
            if not claimed:
                yield number, line if isinstance(line, str) else line.decode()
                number += 1
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(stream)
        if number < len(damaged):
            yield number, "loaded: the library crashes" if claimed else "A CRASH"
            number += 1


def start(damaged, first):
    """Fork a child that judges the mutants from ``first`` on; return its process number and a stream of its lines."""
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)  # here once, not in every child
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    try:
        quiet()
        for number in range(first, len(damaged)):
            signal.alarm(CHILD_SECONDS)
            for line in judged(damaged[number]):
                os.write(write, (line if isinstance(line, bytes) else line.encode()) + b"\n")
    finally:
        os._exit(0)


def judged(one):
    try:
        yield from verdict(*one)
    except BaseException as error:
        yield f"A FOREIGN EXCEPTION: {type(error).__name__}: {error}".replace("\n", " ")


def quiet():
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def lines(stream):
    """Yield the lines of a child until it ends."""
    left = b""
    while True:
        select.select([stream], [], [])
        more = os.read(stream, 65536)
        if not more:
            return
        *whole, left = (left + more).split(b"\n")
        yield from whole


def against_library(kind, count, seed, report=None):
    """Return how often each verdict of a model beside its own library came up."""
    paths = tree_paths(TREES[kind])
    whole = [(path.read_bytes(), rows_of(path)) for path in paths]
    read = [said == "loaded: the same" for _, said in verdicts_of(whole)]  # an older library may not know the format
    whole, paths = ([one for one, good in zip(each, read, strict=True) if good] for each in (whole, paths))
    if not whole:
        return collections.Counter()
    found = collections.Counter()
    for first in range(0, count, 1000):
        numbers = range(first, min(first + 1000, count))
        damaged = []
        for number in numbers:
            data, rows = whole[number % len(whole)]
            damaged.append((FORMATS[kind][1](data, np.random.default_rng([seed, number])), rows))
        for number, verdict in verdicts_of(damaged):
            found[verdict] += 1
            if verdict[:1].isupper() and report is not None:
                report(f"mutant {first + number} of {paths[(first + number) % len(paths)].name}: {verdict}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=sorted(FORMATS), nargs="+", required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", action="store_true", help="compare with the library's own predictions")
    options = parser.parse_args()
    run, verdicts = against_library if options.library else campaign, collections.Counter()
    for kind in options.format:
        found = run(kind, options.count, options.seed, report=lambda text: print(text, flush=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{kind}: {dict(found.most_common(20)) or 'the library reads none of these files'}, peak {peak:.0f} MiB")
        verdicts.update(found)
    good = {"loaded", "refused", "unsupported"}
    raise SystemExit(any(verdict not in good and not verdict.startswith("loaded:") for verdict in verdicts))


if __name__ == "__main__":
    main()
