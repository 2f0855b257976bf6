"""Every Python block of the README and of docs/ runs, page by page, in one namespace per page."""

import importlib.util
import re
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from tolerances import assert_close

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "papers").glob("*.md"))]
FENCE = re.compile(r"(?:<!-- needs (\w+) -->\n\n)?^```(\S*)(.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NO_CODE = {"sh", "cpp", "text", "toml", "{eval-rst}", "{include}", "{literalinclude}", "{toctree}"}
SHOWN = {  # Python that is shown and not run here: what runs it
    "extend.md": "the files of docs/examples, compared below; the blocks that follow import them",
    "native.md": "a kernel that this library does not have; tests/test_native.py calls those that it has",
    "scale.md": "Spark, Ray and pools of processes: tools/engines.py and tests/test_scale",
}


def blocks(page):
    """Yield (language, what it needs, code) of each block of a page."""
    for needs, language, _, code in FENCE.findall(page.read_text(encoding="utf-8")):
        yield language, needs, code


@pytest.fixture
def servers(tmp_path, monkeypatch):
    """What pages serve is asked for once, and what they log lies in the test's folder; return the answers of the pages served."""
    answers, running = [], []
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    try:
        import uvicorn
    except ImportError:
        return answers
    run = uvicorn.Server.run

    def visit(address):
        with urllib.request.urlopen(address) as answer:
            answers.append(answer.read().decode())
        running[0].should_exit = True

    monkeypatch.setattr(uvicorn.Server, "run", lambda self, **settings: running.append(self) or run(self, **settings))
    monkeypatch.setattr("webbrowser.open", lambda address: threading.Thread(target=visit, args=(address,)).start())
    return answers


def register_evaluator():
    """Do what MLflow does with the metadata of an installed package: this may be a working tree of another version."""
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry as registry

    from exactshap.integrations.mlflow import ExplanationEvaluator

    registry.register("exactshap", ExplanationEvaluator)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore")
def test_snippets_run(page, tmp_path, monkeypatch, servers):
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    plt.close("all")  # of tests before: snippets draw into the current figure
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "examples"))
    namespace, served = {"__name__": "snippet"}, False
    for language, needs, code in blocks(page):
        if language == "python" and (not needs or importlib.util.find_spec(needs)):
            if needs == "mlflow":
                register_evaluator()
            exec(compile(code, str(page), "exec"), namespace)
            served |= "run_app(" in code
    plt.close("all")
    assert [("exactshap" in answer) for answer in servers] == [True] * served


def test_every_block_of_python_runs_or_says_why_not():
    shown = set()
    for page in PAGES:
        for language, _, _ in blocks(page):
            if language == "py":
                shown.add(page.name)
            elif language != "python":
                assert language in NO_CODE, f"{page.name}: ```{language} is neither run nor known to be no Python"
        fences = re.findall(r"^\s*[`~]{3,}\S", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == len(list(blocks(page))), f"{page.name}: a block that is not read"
    assert shown <= set(SHOWN), f"Python that is not run, without a reason: {shown - set(SHOWN)}"


def test_readme_is_one_screen_and_its_files_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 115  # a screen, two tables of reasons, and the way to the rest
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_the_page_shows_the_tested_reader():
    """docs/extend.md shows the file as it is; it stays within its promised length."""
    check_shown(ROOT / "docs" / "examples" / "log_linear_reader.py", 45)
    check_shown(ROOT / "docs" / "examples" / "scorecard_reader.py", 90)


def check_shown(source, length):
    page = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
    assert f"```py\n{source.read_text(encoding='utf-8')}```" in page, "docs/extend.md must show the file as it is"
    lines = [line for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= length


def test_the_example_reader_passes_its_own_check(monkeypatch):
    import numpy as np

    monkeypatch.syspath_prepend(str(ROOT / "docs" / "examples"))
    from log_linear_reader import LogLinear

    from exactshap.testing import check_reader

    X = np.random.default_rng(0).normal(size=(20, 4))
    check_reader(LogLinear([0.5, -0.2, 0.1, 0.3], 1.0), X[:4], X[10:])
    check_reader(LogLinear([0.5, -0.2, 0.1, 0.3], 1.0), X[:4], X[10:11], value_function="baseline", groups={"g": [0, 2]})
    assert "log_linear_reader" in sys.modules


def test_the_fast_example_reader_gives_the_numbers_of_its_game(monkeypatch):
    import numpy as np

    monkeypatch.syspath_prepend(str(ROOT / "docs" / "examples"))
    from scorecard_reader import Scorecard, ScorecardReader

    from exactshap.frames import as_table
    from exactshap.readers import Reader, Request
    from exactshap.semivalues import find
    from exactshap.testing import check_reader

    random = np.random.default_rng(0)
    X = random.normal(size=(20, 4))
    model = Scorecard(500.0, [[-1.0, 0.0, 1.0]] * 4, 10.0 * random.normal(size=(4, 4)))
    check_reader(model, X[:4], X[10:])
    check_reader(model, X[:4], X[10:11], value_function="baseline", groups={"g": [0, 2]})
    weights = np.arange(1.0, 11.0) / 55.0
    reader = ScorecardReader(model, Request(background=as_table(X[10:]), weights=weights, groups={"g": [0, 2]}))
    for index in ("shapley", "banzhaf", "leave-one-out", "k-sii"):
        fast = reader.solve(as_table(X[:6]), find(index), 1)
        slow = Reader.solve(reader, as_table(X[:6]), find(index), 1)
        assert fast.sets == slow.sets
        for name in ("values", "empty", "full"):
            assert_close(getattr(fast, name), getattr(slow, name), fast.scale)
        assert np.all(np.abs(fast.values) > 0)
