"""Every public name of a room is documented in full: parameters, result, an example that runs."""

import ast
import contextlib
import importlib
import inspect
import itertools
import pkgutil
import re
import textwrap
from pathlib import Path

import pytest

import exactshap

RESULTS = [f"exactshap.results.{room}" for room in ("comparison", "explanation", "plots", "report")]
ROOMS = [
    "exactshap",
    *(
        f"exactshap.{info.name}"
        for info in pkgutil.iter_modules(exactshap.__path__)
        if not info.name.startswith("_") and info.name != "cli"
    ),
    *RESULTS,
]  # the command documents itself with --help


def public_names():
    """Return module.name of all functions and classes that rooms export, each once."""
    seen = {}
    for room in ROOMS:
        with contextlib.suppress(ImportError):  # optional libraries
            module = importlib.import_module(room)
            for name in getattr(module, "__all__", ()):
                thing = getattr(module, name)
                if inspect.isfunction(thing) or inspect.isclass(thing):
                    seen.setdefault(id(thing), f"{room}.{name}")
    return sorted(seen.values())


def thing_of(path):
    room, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(room), name)


def sections(text):
    lines = [line.strip() for line in text.splitlines()]
    return {line for line, below in itertools.pairwise(lines) if below and set(below) == {"-"}}


def parameters(thing):
    try:
        return [name for name in inspect.signature(thing).parameters if name not in ("self", "args", "kwargs")]
    except (TypeError, ValueError):
        return []


def raises(thing):
    """Say whether a function, or the making of an object of a class, raises in its own code."""
    if inspect.isclass(thing):
        return any(raises(thing.__dict__[name]) for name in ("__init__", "__post_init__") if name in thing.__dict__)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError):
        return False
    return any(isinstance(node, ast.Raise) for node in ast.walk(tree))


def missing(path):
    """Return what the documentation of a name lacks."""
    thing = thing_of(path)
    text = inspect.getdoc(thing) or ""
    found, lacks = sections(text), set()
    if not text:
        return {"a docstring"}
    if not text.splitlines()[0].endswith("."):
        lacks.add("one line with a full stop")
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return lacks  # exceptions are caught by name, not made
    is_protocol = getattr(thing, "_is_protocol", False)
    is_result = inspect.isclass(thing) and "Attributes" in found and "Parameters" not in found  # functions make them
    if parameters(thing) and not found & {"Parameters", "Attributes"} and not is_protocol:
        lacks.add("Parameters")
    returned = inspect.signature(thing).return_annotation if inspect.isfunction(thing) else None
    if returned not in (None, "None") and not found & {"Returns", "Yields"}:
        lacks.add("Returns")
    if raises(thing) and "Raises" not in found and not is_protocol:
        lacks.add("Raises")
    if ">>>" not in text and not is_result:
        lacks.add("Examples")
    return lacks


def long_sentences(thing):
    """Return the first sentences of more than twelve words, of a function or of a class and its methods."""
    methods = {name: getattr(thing, name) for name in dir(thing) if inspect.isclass(thing) and not name.startswith("_")}
    own = {name: method for name, method in methods.items() if not inspect.isclass(method) and "exactshap" in _home(method)}
    texts = {name: " ".join((inspect.getdoc(what) or "").split()) for name, what in {"": thing, **own}.items()}
    firsts = {name: re.split(r"(?<=[.?!])\s", text)[0] for name, text in texts.items()}
    return {name: first for name, first in firsts.items() if len(first.split()) > 12}


def _home(method):
    # Cached properties know their module from Python 3.13 on
    return str(getattr(getattr(method, "fget", None) or getattr(method, "func", method), "__module__", ""))


NAMES = public_names()
SUBSTITUTION = re.compile(r"(?<![^\s(\[])\|[A-Za-z]\w*\|(?![^\s).,;:\]])")  # as docutils reads |t|: a name to be replaced


def test_the_walk_finds_the_house():
    assert len(NAMES) > 90
    assert {"exactshap.Explainer", "exactshap.kernels.RBF", "exactshap.semivalues.Beta"} <= set(NAMES)


@pytest.mark.parametrize("path", NAMES)
def test_every_public_name_says_what_it_takes_and_gives_in_short_sentences_and_marked_formulas(path):
    assert not missing(path)
    assert not long_sentences(thing_of(path))
    texts = [inspect.getdoc(thing_of(path)) or "", *(inspect.getdoc(value) or "" for value in vars(thing_of(path)).values())]
    plain = [re.sub(r"(?s)``.*?``|`[^`]*`|\.\. math::.*?(\n\n|\Z)|>>>.*?(\n\n|\Z)", "", text) for text in texts]
    assert not [found for text in plain for found in SUBSTITUTION.findall(text)], "write :math:`|t|`"


def test_the_check_of_sentences_bites():
    class Long:
        """Hold nothing."""

        def method(self):
            """Return one two three four five six seven eight nine ten eleven twelve. More."""

    Long.method.__module__ = "exactshap"
    assert list(long_sentences(Long)) == ["method"]


def test_the_check_bites():
    def bare(number: int) -> int:
        """Do something"""
        raise ValueError(number)

    bare.__module__ = __name__
    exactshap.bare = bare
    try:
        assert missing("exactshap.bare") == {"Parameters", "Returns", "Raises", "Examples", "one line with a full stop"}
    finally:
        del exactshap.bare


def test_every_example_runs(pytestconfig):
    """The suite runs the examples of all modules; here, that it does."""
    assert "--doctest-modules" in pytestconfig.getini("addopts")
    assert "src" in pytestconfig.getini("testpaths")


DIALECT = re.compile(
    r"\b(told|asked|company|crew|pace|lent|beside|foretold|foretells|dear)\b|_(found|told|asked|few|many)\b", re.I
)


def dialect(text):
    """Return the private words of a text that readers of other libraries would stumble over."""
    return [match[0] for match in DIALECT.finditer(text)]


def test_sources_and_pages_are_written_in_plain_words():
    root = Path(__file__).parent.parent
    pages = [*(root / "docs").glob("*.md"), *(root / "docs" / "papers").glob("*.md"), *(root / "docs" / "gallery").glob("*.py")]
    texts = [root / "README.md", *pages, *(root / "src" / "exactshap").rglob("*.py"), *(root / "src").rglob("*.jinja")]
    assert len(texts) > 300
    assert not {str(path.relative_to(root)): words for path in texts if (words := dialect(path.read_text(encoding="utf-8")))}
    assert dialect("a game that it foretells") == ["foretells"]
