"""``memory_limit`` holds for every family: the measured peak of a call that has to stream its rows in blocks."""

import gc
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer
from exactshap.errors import BudgetError, InputError
from exactshap.readers import AdditiveModel
from exactshap.solvers.additive import Monomials
from peaks import traced
from tolerances import assert_close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 8))
Y = X[:, 0] * X[:, 1] + np.sin(X).sum(axis=1)
INTERPRETER = 2.0**20  # what Python's own objects take during a call
WEIGHTS = RNG.normal(size=8)


def product(values):
    return values[:, 0] * values[:, 1]


def function(rows):
    return np.tanh(np.asarray(rows) @ WEIGHTS)


FAMILIES = {
    "SVR": (lambda: SVR().fit(X, Y), None, {}),
    "SVR with a background": (lambda: SVR().fit(X, Y), 60, {"groups": {"pair": [0, 1]}}),
    "SVR with a folded background": (lambda: SVR().fit(X, Y), 300, {}),
    "pipeline": (lambda: make_pipeline(StandardScaler(), SVR()).fit(X, Y), 1, {}),
    "Gaussian process": (lambda: GaussianProcessRegressor(optimizer=None).fit(X[:100], Y[:100]), 10, {"uncertainty": True}),
    "observational": (lambda: SVR().fit(X[:100], Y[:100]), None, {"value_function": "observational"}),
    "random features": (lambda: make_pipeline(RBFSampler(n_components=30), Ridge()).fit(X, Y), 10, {}),
    "forest": (lambda: RandomForestRegressor(30, max_depth=8, random_state=0).fit(X, Y), None, {}),
    "forest with a background": (lambda: RandomForestRegressor(30, max_depth=8, random_state=0).fit(X, Y), 100, {}),
    "boosting": (lambda: HistGradientBoostingRegressor(max_iter=40).fit(X, Y), 50, {}),
    "linear": (lambda: Ridge().fit(X, Y), 50, {}),
    "polynomial": (lambda: make_pipeline(PolynomialFeatures(3), Ridge()).fit(X, Y), 50, {}),
    "functions of pairs": (lambda: AdditiveModel([((j, j + 1), product) for j in range(7)]), 200, {}),
    "black box": (lambda: function, 100, {}),
}


MANY_ROWS = """
import resource, numpy as np
from sklearn.linear_model import Ridge
from sklearn.svm import SVR
from exactshap import Explainer, decompose_hsic, decompose_mmd
from exactshap.errors import BudgetError
resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
X = np.random.default_rng(0).normal(size=(50, 5))
rows = np.broadcast_to(X[0], (450_000_000, 5))  # 17 GiB, of which 40 bytes are there
def asked():
    for model in (Ridge().fit(X, X[:, 0]), SVR().fit(X, X[:, 0])):
        explainer = Explainer(model, X[:10], memory_limit=2**28)
        yield lambda: explainer(rows)
        yield lambda: explainer.plan(rows)
        yield lambda: Explainer(model, rows, memory_limit=2**28)
        yield lambda: explainer(np.broadcast_to(X[0].astype(X.dtype.newbyteorder()), rows.shape))
    yield lambda: decompose_mmd(rows, X)
    yield lambda: decompose_hsic(rows, np.broadcast_to(X[0, 0], len(rows)))
for call in asked():
    try:
        call()
    except BudgetError as error:
        print(error)
"""


def test_rows_without_end_are_refused_with_what_to_do():
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", MANY_ROWS], capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 10
    assert all("does not fit in" in line and "scale.explain_dataset" in line for line in lines[:8]), lines
    assert all("does not fit in" in line and "paths of files" in line for line in lines[8:]), lines


def test_rows_that_repeat_are_read_in_blocks():
    explainer = Explainer(Ridge().fit(X, Y), X[:10], memory_limit=2**24)
    rows = np.broadcast_to(X[0], (500_000, 8))
    with traced() as peak:
        explanation = explainer(rows)
    held = sum(array.nbytes for array in vars(explanation).values() if isinstance(array, np.ndarray) and array is not rows)
    assert peak[0] < held + 2**24 + rows.nbytes / 4
    assert np.all(explanation.values == explanation.values[0])


@pytest.mark.parametrize("background", [None, X[:20]], ids=["covers", "background"])
@pytest.mark.parametrize("make", [lambda: Ridge(), lambda: HistGradientBoostingRegressor(max_iter=3)], ids=["linear", "trees"])
def test_many_rows_take_the_result_and_what_the_forecast_says(make, background):
    # three numbers of each row besides the result: v(D), the magnitude for the tolerance, and what is compared with it
    model = make().fit(X, Y)
    if background is None and isinstance(model, Ridge):
        background = X[:1]
    explainer, rows = Explainer(model, background, memory_limit=2**22), np.tile(X, (400, 1))
    explainer(rows[:5000])
    with traced() as peak:
        found = explainer(rows)
    result = sum(array.nbytes for array in vars(found).values() if isinstance(array, np.ndarray) and array is not found.data)
    assert explainer.plan(rows).result == result
    three = 3.0 * 8.0 * len(rows)
    assert explainer.plan(rows).memory >= three
    assert peak[0] - result <= three + 2**22 + INTERPRETER


def test_many_rows_are_verified_in_blocks():
    model = Ridge().fit(X, Y)
    rows = np.broadcast_to(X[0], (20_000, 8)).copy()
    explainer = Explainer(model, X[:20], memory_limit=2**21)  # masked by hand, the rows would take 25 MiB at a time
    with traced() as peak:
        verification = explainer.verify(rows)
    assert verification.passed, verification
    assert verification.n_rows == 20_000
    assert peak[0] < 3 * 2**21
    rows[15_000, 3] = np.nan
    with pytest.raises(InputError, match="row 15000"):
        explainer.verify(rows)
    with pytest.raises(InputError, match="There is nothing to verify"):
        explainer.verify(rows[:0])


def test_a_fault_of_any_block_fails_the_verification():
    explainer = Explainer(Ridge().fit(X, Y), X[:20], memory_limit=2**22)
    rows = X.repeat(40, axis=0)
    predict = explainer.reader.predict
    explainer.reader.predict = lambda table: predict(table) + 1e-3 * (table.numeric()[:, 0] == X[-1, 0])
    verification = explainer.verify(rows)
    assert not verification.passed
    assert verification.max_residual == pytest.approx(1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_limit_holds(family):
    make, n_background, settings = FAMILIES[family]
    background = None if n_background is None else X[:n_background]
    model = make()
    reader = Explainer(model, background, **settings).reader
    limit = reader.memory(min(40, reader.traits.block_rows), 1)
    explainer = Explainer(model, background, memory_limit=limit, **settings)
    explainer(X[:1])  # loads what is imported on first use
    gc.collect()
    tracemalloc.start()
    explainer = Explainer(model, background, memory_limit=limit, **settings)
    tracemalloc.reset_peak()  # what was filled when the explainer checked its reading still counts
    explanation = explainer(X[:120])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = explanation.values.nbytes + (0 if explanation.covariances is None else explanation.covariances.nbytes)
    assert peak <= limit + 3.0 * result + INTERPRETER  # blocks are joined once, and predictions kept beside them
    assert peak + INTERPRETER >= limit / 8.0 or limit < 4.0 * INTERPRETER  # the limit says something
    with pytest.raises(BudgetError, match=r"does not fit|not fit in memory_limit"):
        Explainer(model, background, memory_limit=10.0, **settings)(X[:3])


def test_a_forest_counts_its_tables():
    model = RandomForestRegressor(30, max_depth=9, random_state=0).fit(X, Y)
    explainer = Explainer(model)
    tables = 8 * explainer.reader._prepared.tables.of_order(1).rows.table_start[-1]
    assert tables > 2.0**22
    assert tables <= explainer.plan(X).memory < 1.5 * tables
    small = Explainer(model, memory_limit=tables / 2.0)  # without tables that do not fit
    assert small.plan(X).memory <= tables / 2.0
    assert_close(small(X).values, explainer(X).values, np.abs(Y).max(), n_terms=30 * 2**9, n_players=9)


def test_a_forest_whose_tables_fill_the_limit_is_explained():
    rows = np.random.default_rng(0).normal(size=(1000, 10))
    model = RandomForestRegressor(600, max_depth=8, random_state=0).fit(rows, rows[:, 0] * rows[:, 1])
    tables = 8.0 * Explainer(model, rows[:20]).reader._prepared.tables.of_order(1).rows.table_start[-1]
    assert tables > 2.0**25
    for fraction in (0.5, 0.7, 0.8, 0.9, 1.0):
        small = Explainer(model, rows[:20], memory_limit=fraction * tables)
        assert small.reader._prepared.tables is not None or fraction < 0.8
        assert small.plan(rows).memory <= fraction * tables
        assert small(rows[:3]).certificate().passed


def test_a_sampled_black_box_counts_the_covariances_of_its_calls():
    rows, weights = RNG.normal(size=(3, 16)), RNG.normal(size=16)
    settings = {"budget": 700, "random_state": 0, "progress": False}
    explainer = Explainer(lambda z: np.tanh(np.asarray(z) @ weights), rows[:1], **settings)
    explainer(rows[1:2])
    foretold = explainer.plan(rows[2:]).memory
    with traced() as peak:
        explainer(rows[2:])
    assert peak[0] / 1.5 <= foretold <= 1.5 * peak[0]
    with pytest.raises(BudgetError, match="not fit in memory_limit"):
        Explainer(lambda z: np.tanh(np.asarray(z) @ weights), rows[:1], memory_limit=foretold / 4, **settings)(rows[2:])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_bag_of_some_columns_holds_its_rows_once(n_jobs):
    rows = RNG.normal(size=(4096, 30))
    model = BaggingRegressor(Ridge(), 40, max_features=0.5, random_state=0).fit(rows[:200], rows[:200, 0])
    explainer = Explainer(model, rows[:5], n_jobs=n_jobs)
    explainer(rows[:50])
    with traced() as peak:
        values = explainer(rows).values
    assert peak[0] <= explainer.reader.memory(4096, 1) + 2.0 * values.nbytes + INTERPRETER


def test_few_rows_of_many_pairs_need_what_the_solver_adds_up_in():
    model = make_pipeline(PolynomialFeatures(2), Ridge()).fit(X, np.stack([Y, -Y, Y**2], axis=1))
    reader, n_pairs = Explainer(model, X[:5]).reader, 8 * 9 // 2
    assert reader.memory(1, 2) >= 8.0 * Monomials.TILE_ROWS * n_pairs * 3


def test_a_tile_of_the_background_shrinks_with_the_limit():
    """One row beside 1,000 background rows runs in 64 MiB, as it does in 1 GiB: tiles are cut, and the values are the same."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 20))
    model = SVR(C=10.0).fit(rows, rows[:, 0] * rows[:, 1] + rng.normal(size=1500))
    limit = 64 * 2**20
    explainer = Explainer(model, rows[:1000], memory_limit=limit)
    explainer(rows[:1])
    with traced() as peak:
        small = explainer(rows[:1])
    assert peak[0] <= limit
    whole = Explainer(model, rows[:1000])(rows[:1])
    assert np.abs(small.values - whole.values).max() <= whole.tolerance.max()
