"""Every public name of a room is documented in full: parameters, result, an example that runs."""

import contextlib
import importlib
import inspect
import itertools
import pkgutil

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

WITHOUT_EXAMPLE = {
    "exactshap.results.plots.draw_": "pictures: tests/test_plots draws them all",
    "exactshap.solvers.interaction_variance": "takes the factors of a posterior: explanation.set_std is its front door",
    "exactshap.readers.DelegatingReader": "abstract: the pipelines and scaled targets of readers/wrappers are made of it",
    "exactshap.readers.Reader": "abstract: docs/extend.md writes one, and a test runs that page",
}
FOR_AUTHORS = "for authors of readers: one sentence with the shapes, shown at work in docs/extend.md and the readers themselves"
HELPERS = {
    "frames": ("above", "hybrid_cells", "hybrid_columns"),
    "readers": ("choose_value_function", "names_of", "players_of", "select_outputs"),
    "trees": (
        "RawTree",
        "apply",
        "build",
        "convert",
        "cover_shares",
        "decisions",
        "flatten",
        "inside",
        "loads",
        "margin",
        "parents",
        "paths",
        "prepared",
        "take_trees",
    ),
}
IN_ONE_SENTENCE = {f"exactshap.{room}.{name}": FOR_AUTHORS for room, names in HELPERS.items() for name in names}


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


def missing(path):
    """Return what the documentation of a name lacks."""
    thing = thing_of(path)
    text = inspect.getdoc(thing) or ""
    found, lacks = sections(text), set()
    if not text:
        return {"a docstring"}
    if (inspect.isclass(thing) and issubclass(thing, BaseException)) or path in IN_ONE_SENTENCE:
        return set()  # exceptions are caught by name, not made
    is_result = inspect.isclass(thing) and "Attributes" in found and "Parameters" not in found  # functions make them
    if parameters(thing) and not found & {"Parameters", "Attributes"} and not getattr(thing, "_is_protocol", False):
        lacks.add("Parameters")
    returned = inspect.signature(thing).return_annotation if inspect.isfunction(thing) else None
    if returned not in (None, "None") and not found & {"Returns", "Yields"}:
        lacks.add("Returns")
    if ">>>" not in text and not is_result and not any(path.startswith(start) for start in WITHOUT_EXAMPLE):
        lacks.add("Examples")
    return lacks


NAMES = public_names()


def test_the_walk_finds_the_house():
    assert len(NAMES) > 90
    assert {"exactshap.Explainer", "exactshap.kernels.RBF", "exactshap.semivalues.Beta"} <= set(NAMES)


def test_exceptions_are_real_names():
    assert set(IN_ONE_SENTENCE) <= set(NAMES)
    assert all(any(path.startswith(start) for path in NAMES) for start in WITHOUT_EXAMPLE)


@pytest.mark.parametrize("path", NAMES)
def test_every_public_name_says_what_it_takes_and_gives(path):
    assert not missing(path)


def test_the_check_bites():
    def bare(number: int) -> int:
        """Do something."""

    bare.__module__ = __name__
    exactshap.bare = bare
    try:
        assert missing("exactshap.bare") == {"Parameters", "Returns", "Examples"}
    finally:
        del exactshap.bare


def test_every_example_runs(pytestconfig):
    """The suite runs the examples of all modules; here, that it does."""
    assert "--doctest-modules" in pytestconfig.getini("addopts")
    assert "src" in pytestconfig.getini("testpaths")
