"""The table of rooms in docs/idea.md, held against the code."""

import ast
import functools
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import exactshap

PACKAGE = Path(exactshap.__file__).parent
PAGE = Path(__file__).resolve().parents[1] / "docs" / "idea.md"
MAX_BODY, MAX_POSITIONAL = 60, 10


def rooms_of_the_page():
    """Return {room: rooms that it may import} as the page says; None: any room."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| room | holds"))
    table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        room, _, allowed = (cell.strip() for cell in line.strip("|").split("|"))
        name = re.fullmatch(r"`([\w/]+?)(?:/|\.py)`", room).group(1).replace("/", ".")
        table[name] = None if allowed == "everything above" else set(re.findall(r"`([\w.]+)`", allowed))
    return table


TABLE = rooms_of_the_page()
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in PACKAGE.rglob("*.py")
}
ROOMS = {name for name, path in MODULES.items() if path.name == "__init__.py"} - {""}


def room_of(module):
    """Return the room that a module belongs to; files beside the rooms are rooms of their own."""
    return module if module in ROOMS or "." not in module else module.rpartition(".")[0]


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(module):
    """Yield the modules of the package that a module imports anywhere in its file."""
    for node in ast.walk(parsed(MODULES[module])):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            if (node.module or "").split(".")[0] == "exactshap":
                for alias in node.names:
                    name = f"{node.module}.{alias.name}".removeprefix("exactshap.")
                    yield name if name in MODULES else node.module.removeprefix("exactshap").lstrip(".")
        elif isinstance(node, ast.Import) and TABLE.get(room_of(module), set()) is not None:
            assert not any(alias.name.split(".")[0] == "exactshap" for alias in node.names), f"{module}: import exactshap"


@functools.cache
def edges():
    """Return {module: modules that it uses}; what an ``__init__`` exports of its own room does not count."""

    def counts(module, name):
        return name not in ("", module) and not (module in ROOMS and name.startswith(f"{module}."))

    return {module: {name for name in imports(module) if counts(module, name)} for module in MODULES if module}


def circles(graph):
    """Return the nodes that can reach themselves."""

    def reached(start):
        seen, waiting = set(), list(graph.get(start, ()))
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += graph.get(node, ())
        return seen

    return sorted(node for node in graph if node in reached(node))


def test_every_room_is_in_the_table():
    files = {name for name in MODULES if "." not in name} - ROOMS - {"", "__main__"}
    assert set(TABLE) == ROOMS | files


def test_arrows_are_those_of_the_table():
    arrows = {(room_of(module), room_of(name)) for module, names in edges().items() for name in names}
    limited = {room: {room, *allowed} for room, allowed in TABLE.items() if allowed is not None}
    assert not [(room, other) for room, other in arrows if room in limited and other not in limited[room]]


def test_rooms_are_entered_by_their_door():
    wrong = [
        (module, name)
        for module, names in edges().items()
        for name in names
        if name not in ROOMS and room_of(name) not in (room_of(module), name, "_runtime")
    ]
    assert not wrong


def test_there_are_no_circles_between_rooms():
    graph = {room: TABLE[room] or set() for room in TABLE}
    assert not circles(graph)


def test_there_are_no_circles_between_files():
    assert not circles(edges())


def test_functions_stay_small():
    large = []
    for node in (node for path in PACKAGE.rglob("*.py") for node in ast.walk(parsed(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[ast.get_docstring(node) is not None :]
            n_lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            n_positional = sum(one.arg not in ("self", "cls") for one in node.args.posonlyargs + node.args.args)
            if n_lines > MAX_BODY or n_positional > MAX_POSITIONAL:
                large.append(f"{node.name} has a body of {n_lines} lines and {n_positional} positional arguments")
    assert not large, "give parts names, and arguments a structure"


def test_the_check_for_circles_bites():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]


IMPORTING = """
import sys, exactshap
heavy = {"numpy", "numba", "scipy", "sklearn", "pandas", "polars", "matplotlib", "shap", "narwhals", "joblib"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
import numpy as np
from sklearn.svm import SVR
X = np.random.default_rng(0).normal(size=(9, 3))
exactshap.explain(SVR().fit(X, X[:, 0]), X, X)
optional = {"polars", "matplotlib", "shap", "xgboost", "lightgbm", "catboost", "interpret", "torch", "typer"}
assert not optional & set(sys.modules), optional & set(sys.modules)
"""


def test_importing_and_explaining_load_no_more_than_they_need():
    subprocess.run([sys.executable, "-c", IMPORTING], check=True)


def test_tolerances_live_in_one_place():
    """A tolerance outside of ``tolerances.py`` has no reason beside it; zero and the smallest scale are exact comparisons."""
    literal = re.compile(r"\b(?:rtol|atol|rel|abs)=(\d[\d.]*(?:e-?\d+)?)(?=[,)\n])")
    found = {
        f"{path.name}: {match.group()}"
        for path in Path(__file__).parent.rglob("test_*.py")
        for match in literal.finditer(path.read_text(encoding="utf-8"))
        if float(match.group(1)) > 1e-300
    }
    assert not found, found


# --- the suite itself -------------------------------------------------------------------------------------------------


def test_every_file_of_tests_imports():
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        if ".".join(path.relative_to(Path(__file__).parent.parent).with_suffix("").parts) in sys.modules:
            continue  # pytest has imported it
        spec = importlib.util.spec_from_file_location(f"imported_{path.stem}", path)
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except pytest.skip.Exception:  # importorskip at the top
            continue
