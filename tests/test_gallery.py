"""The gallery: every example runs as it stands, draws, and is written the way a reader expects."""

import ast
import re
import runpy
import time
from pathlib import Path

import pytest

GALLERY = Path(__file__).parent.parent / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))
SLOW = ()  # examples above five seconds on two cores
MOST_SECONDS = 30


def imports(source):
    """Return the top-level packages that a script imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


def parameters():
    return [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else []) for path in EXAMPLES]


@pytest.mark.parametrize("path", parameters())
@pytest.mark.filterwarnings("ignore")
def test_example_runs_and_draws(path, monkeypatch):
    for package in sorted({*imports(path.read_text(encoding="utf-8")), "matplotlib", "shap"}):
        pytest.importorskip(package)
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    monkeypatch.chdir(GALLERY)
    plt.close("all")
    start = time.process_time()
    runpy.run_path(str(path))
    assert time.process_time() - start < MOST_SECONDS
    assert plt.get_fignums(), "an example has a picture"
    plt.close("all")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_names_its_game_and_needs_no_network(path):
    source = path.read_text(encoding="utf-8")
    text = re.sub(r"[\s#]+", " ", source)
    assert re.search(r"interventional|functional|path-dependent|v\(S\)|value of a coalition", text), "name the value function"
    assert re.search(r"certificate|residual|exact|covariance", text), "say how the numbers were checked"
    assert not re.search(r"\bfetch_|https?://|urlopen|requests\.get", source)


def test_there_are_enough_examples_and_small_files():
    assert len(EXAMPLES) >= 15
    files = [path for path in (GALLERY.parent / "data").iterdir() if path.suffix != ".txt"]
    sources = (GALLERY.parent / "data" / "SOURCES.txt").read_text(encoding="utf-8")
    assert all(path.stat().st_size < 200_000 and path.name in sources for path in files)


def test_no_example_reads_a_file_that_is_not_there():
    for path in EXAMPLES:
        for name in re.findall(r'"(\.\./data/[^"]+)"', path.read_text(encoding="utf-8")):
            assert (GALLERY / name).exists(), (path.name, name)
