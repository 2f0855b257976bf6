"""What a person waits for when a process starts: imports, and the collector of garbage going through what they made."""

import gc
import json
import subprocess
import sys

import pytest

from exactshap._runtime.process_settings import without_collection

HEAVY = {"dask", "matplotlib", "numba", "pandas", "polars", "pyarrow", "scipy", "shap", "skops", "sklearn", "torch"}
NOT_NEEDED = ("exactshap.decompose", "exactshap.results.report._interactive")

DEMO = """
import gc, json, sys
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

load_diabetes()
there = set(sys.modules)
sys.argv = ["exactshap", "demo"]
try:
    from exactshap.cli import main
    main()
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(set(sys.modules) - there), gc.isenabled()]), file=sys.stderr)
"""


def test_the_demo_imports_what_it_needs_and_nothing_heavy_beside_its_model(tmp_path):
    done = subprocess.run([sys.executable, "-c", DEMO], cwd=tmp_path, capture_output=True, text=True, check=True)
    code, imported, collects = json.loads(done.stderr)
    assert not code
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert not [name for name in imported if name.partition(".")[0] in HEAVY]
    assert not [name for name in imported if name.startswith(NOT_NEEDED)]
    assert collects


EXPLAIN = """
import sys
import numpy as np
from sklearn.linear_model import LinearRegression
import exactshap

X = np.arange(12.0).reshape(4, 3)
print(exactshap.explain(LinearRegression().fit(X, X[:, 0]), X, X[:2]))
there = [name for name in sys.modules if name.startswith("exactshap")]
assert hasattr(exactshap.Explanation, "report") and exactshap.Explanation.__dict__["report"].__name__ == "write_report"
print(*there, file=sys.stderr)
"""


def test_explaining_imports_no_pictures_pages_comparisons_or_reasons():
    done = subprocess.run([sys.executable, "-c", EXPLAIN], capture_output=True, text=True, check=True)
    there = done.stderr.split()
    assert len(there) <= 80
    unused = ("plots", "report", "comparison", "reasons", "decomposition", "explanation._storage", "data._importance")
    assert "exactshap.results.explanation" in there
    assert not [name for name in there if name.startswith(tuple(f"exactshap.results.{each}" for each in unused))]


@pytest.fixture
def thawed():
    """Leave nothing set apart, and the collector as it was."""
    yield
    gc.enable()
    gc.unfreeze()


def test_nothing_is_collected_within_and_the_collector_comes_back(thawed):
    seen = []
    with without_collection:
        gc.callbacks.append(lambda *facts: seen.append(facts))
        kept = [[] for _ in range(10_000)]
        with without_collection:
            pass
        assert not gc.isenabled()
        gc.callbacks.pop()
    assert not seen
    assert len(kept) == 10_000
    assert gc.isenabled()
    assert gc.get_freeze_count() >= 10_000


def test_the_collector_comes_back_after_an_error_and_stays_off_where_it_was_off(thawed):
    @without_collection
    def fail():
        assert not gc.isenabled()
        raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked"):
        fail()
    assert gc.isenabled()
    gc.disable()
    with without_collection:
        pass
    assert not gc.isenabled()
