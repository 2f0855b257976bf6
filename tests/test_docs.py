"""Every Python block of the README and of docs/ runs, page by page, in one namespace per page."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore")
def test_snippets_run(page, tmp_path, monkeypatch):
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "examples"))
    namespace = {"__name__": "snippet"}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), namespace)
    plt.close("all")


def test_readme_is_one_screen_and_its_files_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_the_page_shows_the_tested_reader():
    """docs/extend.md shows the files as they are; they stay within their promised length."""
    for name, length in (("log_linear_reader.py", 45), ("exponential_machine_reader.py", 50)):
        check_shown(ROOT / "docs" / "examples" / name, length)


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
