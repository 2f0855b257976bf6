"""What a damaged tree model predicts, beside its own library: in a child process, since libraries may crash on such files.

Run a campaign with: python tests/fuzz.py --format ubj --library --count 100000 --seed 0
"""

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import tempfile
import warnings

import numpy as np

from exactshap.errors import InputError, ModelFormatError, UnsupportedStructureError
from exactshap.trees import TreeModel, loads
from exactshap.trees.ensemble import largest_sum

SECONDS = 20  # for one mutant, its library included
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


def verdicts(mutants):
    """Yield (number, verdict) for ``mutants``: number -> (data, rows). A child that dies inside a library is followed by another."""
    number = 0
    while number < len(mutants):
        child, stream = start(mutants, number)
        claimed = False
        for line in lines(stream):
            claimed = line == CLAIMED
            if not claimed:
                yield number, line if isinstance(line, str) else line.decode()
                number += 1
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(stream)
        if number < len(mutants):
            yield number, "loaded: the library crashes" if claimed else "A CRASH"
            number += 1


def start(mutants, first):
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
        for number in range(first, len(mutants)):
            signal.alarm(SECONDS)
            for line in told(mutants[number]):
                os.write(write, (line if isinstance(line, bytes) else line.encode()) + b"\n")
    finally:
        os._exit(0)


def told(mutant):
    try:
        yield from verdict(*mutant)
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
