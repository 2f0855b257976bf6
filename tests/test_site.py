"""The documentation site: it builds without a warning, its links lead somewhere, and it loads nothing from elsewhere."""

import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import test_docstrings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NEEDED = ("sphinx", "pydata_sphinx_theme", "numpydoc", "myst_parser", "sphinx_design", "sphinx_gallery", "latex2mathml")
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("papers/*.md"), ROOT / "README.md"])


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
