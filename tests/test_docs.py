"""Every Python block of the README and of docs/ runs, page by page, in one namespace per page."""

import ast
import importlib.util
import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.svm import SVR

import test_docstrings
from exactshap import __version__, decompose_hsic, decompose_mmd, decompose_r2, explain
from tolerances import assert_close, conditioned

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
    import log_linear_reader
    from log_linear_reader import LogLinear, LogLinearReader

    from exactshap import explain
    from exactshap.errors import UnknownNameError
    from exactshap.testing import check_reader

    X = np.random.default_rng(0).normal(size=(20, 4))
    check_reader(LogLinear([0.5, -0.2, 0.1, 0.3], 1.0), X[:4], X[10:])
    check_reader(LogLinear([0.5, -0.2, 0.1, 0.3], 1.0), X[:4], X[10:11], value_function="baseline", groups={"g": [0, 2]})
    for setting in ({"budget": 10}, {"output": "probability"}):
        with pytest.raises(UnknownNameError, match=r"LogLinear has no (setting|output)"):
            explain(LogLinear([0.5, -0.2, 0.1, 0.3], 1.0), X[:4], X[10:], **setting)
    monkeypatch.setattr(log_linear_reader, "read", LogLinearReader)  # which asks for no settings
    with pytest.raises(AssertionError, match="'no_such_setting': 1} is ignored"):
        check_reader(LogLinear([0.5, -0.2, 0.1, 0.3], 1.0), X[:4], X[10:])


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


# --- the gallery: every example runs as it stands, draws, and is written the way a reader expects ---------------------


GALLERY = ROOT / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))


def imports(source):
    """Return the top-level packages that a script imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_example_runs_and_draws(path, monkeypatch):
    for package in sorted({*imports(path.read_text(encoding="utf-8")), "matplotlib", "shap"}):
        pytest.importorskip(package)
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    monkeypatch.chdir(GALLERY)
    plt.close("all")
    runpy.run_path(str(path))
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


# --- the figures of STAR-SHAP, small, on the real data where it is at hand --------------------------------------------


STAR_HOUSING = ROOT / "docs" / "examples" / "star_housing.py"
DATA = Path(os.environ.get("EXACTSHAP_DATA", ROOT / "benchmarks" / "papers" / "data"))


def star_housing(*arguments, **settings):
    return runpy.run_path(str(STAR_HOUSING))["main"](*arguments, **settings)


def test_without_data_it_says_what_is_absent(tmp_path, capsys):
    assert star_housing(tmp_path) == {}
    assert "skipped: california_housing.parquet is not in" in capsys.readouterr().out


def test_both_models_are_explained_exactly_and_drawn(tmp_path, capsys):
    if not (DATA / "california_housing.parquet").exists():
        pytest.skip(f"california_housing.parquet is not in {DATA}")
    explanations = star_housing(DATA, n_terms=100, n_rows=40, n_train=800, max_rounds=40, out=tmp_path)
    assert list(explanations) == ["EBM", "3-STAR RWReLU"]
    for explanation in explanations.values():
        assert explanation.certificate().passed
        assert explanation.values.shape == (40, 8)
        np.testing.assert_allclose(
            explanation.baseline + explanation.values.sum(axis=1),
            explanation.prediction,
            atol=conditioned(1e5) * np.ptp(explanation.prediction),
        )
    assert {path.name for path in tmp_path.iterdir()} == {"star_housing_beeswarm.png", "star_housing_waterfall.png"}
    assert all(path.stat().st_size > 20_000 for path in tmp_path.iterdir())
    assert capsys.readouterr().out.count("passed") == 2


# --- the site: it builds without a warning, its links lead somewhere, and it loads nothing from elsewhere -------------


DOCS = ROOT / "docs"
NEEDED = ("sphinx", "pydata_sphinx_theme", "numpydoc", "myst_parser", "sphinx_design", "sphinx_gallery", "latex2mathml")
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if found.get(LOADS.get(tag)) and found.get("rel") not in ("canonical", "next", "prev", "search", "index", "author"):
            self.loads.append(found[LOADS[tag]])


def broken(site):
    """Yield each link or file that leads nowhere, and whatever would be loaded from elsewhere."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if "_static" not in path.parts
    }
    for path, page in pages.items():
        for where in {*page.links, *page.loads}:
            url = urlsplit(where)
            if url.scheme in ("http", "https", "mailto", "data") or url.netloc:
                if where in page.loads and url.scheme != "data":
                    yield f"{path.name} loads {where}"
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not target.exists():
                yield f"{path.name}: {where} does not exist"
            elif url.fragment and target in pages and unquote(url.fragment) not in pages[target].anchors:
                yield f"{path.name}: {where} has no such place"


def build(folder):
    """Build the site, without running the gallery, from a copy: what Sphinx writes beside its sources stays out of the tree."""
    for name in NEEDED:
        pytest.importorskip(name)
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("api", "auto_examples"))
    for page in DOCS.glob("*.md"):
        for included in re.findall(r"\{(?:literal)?include\} \.\./(\S+)", page.read_text(encoding="utf-8")):
            (folder / included).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / included, folder / included)
    for page in DOCS.glob("papers/*.md"):
        for picture in re.findall(r"!\[.*\]\(\.\./\.\./(\S+)\)", page.read_text(encoding="utf-8")):
            (folder / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / picture, folder / picture)
    flags = ["-W", "--keep-going", "-q", "-D", "plot_gallery=0"]
    run = subprocess.run(
        [sys.executable, "-m", "sphinx", *flags, "docs", "site"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr[-5000:]
    return folder / "site"


@pytest.mark.slow
def test_the_site_builds_and_its_links_lead_somewhere(tmp_path):
    """One test for all of it: a build takes 15 seconds."""
    site = build(tmp_path)
    assert not list(broken(site))
    places = {
        place.rsplit(".", 1)[-1]
        for path in (site / "api" / "generated").glob("*.html")
        for place in Page(path.read_text(encoding="utf-8")).anchors
    }
    assert {path.rsplit(".", 1)[1] for path in test_docstrings.NAMES} <= places


def test_the_check_of_links_bites(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="a.html#here">x</a><a href="a.html#there">x</a><a href="b.html">x</a>'
    )
    (tmp_path / "c.html").write_text('<script src="https://example.org/x.js"></script><a href="https://example.org">x</a>')
    assert len(list(broken(tmp_path))) == 3


def test_pages_and_docstrings_point_to_nothing_private():
    private = re.compile(r"exactshap(?:\.\w+)*\._[a-z]\w*|from exactshap[\w.]* import _[a-z]\w*")
    pages = [page for page in PAGES if page.name != "native.md"]  # for those who write kernels: the private room is its subject
    assert not [page for page in pages if private.search(page.read_text(encoding="utf-8"))]
    pointing = re.compile(r":\w+:`~?exactshap(?:\.\w+)*\._\w+|``exactshap(?:\.\w+)*\._\w+")
    assert not [p for p in test_docstrings.NAMES if pointing.search(inspect.getdoc(test_docstrings.thing_of(p)) or "")]


def test_every_page_is_reached():
    """Each page stands in a toctree; an orphan would only be found by search."""
    listed = set()
    for page in DOCS.glob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            lines = [line.strip() for line in block.splitlines() if line.strip() and not line.startswith(":")]
            listed |= {re.sub(r".*<(.*)>", r"\1", line) for line in lines}
    assert {page.stem for page in DOCS.glob("*.md")} - listed == {"index"}
    assert {f"papers/{page.stem}" for page in DOCS.glob("papers/*.md")} <= listed


def test_no_formula_has_a_sign_that_few_fonts_hold():
    pytest.importorskip("latex2mathml")
    nodes = pytest.importorskip("docutils.nodes")
    spec = importlib.util.spec_from_file_location("mathml", ROOT / "docs" / "_ext" / "mathml.py")
    mathml = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mathml)
    written = mathml.mathml(nodes.math(text=r"S \subseteq D \setminus \{j\}"), "inline")
    assert "&#x029F5;" not in written
    assert "<mo>&#x02216;</mo>" in written


# --- citations: the library, and the papers of a value function, a method or a statistic ------------------------------


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X[:, 0] + X[:, 1] * X[:, 2]


def keys(text):
    return re.findall(r"@\w+{([^,]+),", text)


@pytest.mark.parametrize(
    ("model", "background", "settings", "wanted"),
    [
        (SVR(), None, {}, ["pkexshapley", "owen"]),
        (SVR(), X[:9], {"value_function": "observational"}, ["rkhsshap"]),
        (SVR(), X[:1], {}, ["owen"]),
        (Ridge(), X[:9], {}, ["starshap"]),
        (RandomForestRegressor(3, max_depth=3, random_state=0), None, {}, ["treeshap"]),
        (RandomForestRegressor(3, max_depth=3, random_state=0), X, {"value_function": "observational"}, ["rkhsshap", "olsen"]),
        (
            RandomForestRegressor(3, max_depth=3, random_state=0),
            X,
            {"value_function": "observational-forest", "n_trees": 20},
            ["olsen"],
        ),
        (Ridge(), X, {"value_function": "observational-copula", "n_samples": 16}, ["aas"]),
    ],
)
def test_values_cite_their_game_and_their_method(model, background, settings, wanted):
    text = explain(model.fit(X, Y), X[:2], background, **settings).cite()
    assert keys(text) == ["exactshap", *wanted]
    assert __version__ in text


def test_sampled_values_cite_their_estimator():
    wide = RNG.normal(size=(20, 15))
    sampled = explain(lambda rows: np.sin(rows).sum(axis=1) * rows[:, 0], wide[:1], wide, budget=300, random_state=0)
    assert keys(sampled.cite()) == ["exactshap", "polyshap"]


def test_decompositions_cite_their_statistic():
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, Y)
    assert keys(decompose_r2(forest, X, Y).cite()) == ["exactshap", "qshap"]
    assert keys(decompose_r2(LinearRegression(), X, Y, game="refit").cite()) == ["exactshap", "lindeman"]
    assert keys(decompose_mmd(X[:30], X[30:]).cite()) == ["exactshap", "pkexshapley"]
    assert keys(decompose_hsic(X, Y).cite()) == ["exactshap", "pkexshapley"]


def test_all_entries_are_on_the_page_and_in_the_citation_file():
    entries = (ROOT / "src/exactshap/results/data/citations.bib").read_text(encoding="utf-8")
    plain = (ROOT / "CITATION.cff").read_text(encoding="utf-8") + (ROOT / "docs/cite.md").read_text(encoding="utf-8")
    for title in re.findall(r"^  title = {(.*)},?$", entries, re.MULTILINE):
        assert re.sub("[{}]", "", title) in plain, title
