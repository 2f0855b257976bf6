"""What people may import: the API page, the doors of the rooms and the imports in the documentation name the same things."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import exactshap

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(exactshap.__file__).parent
MOST_NAMES = 120  # of the API page: what one person can look through
RENAMED = {
    "SAMPLING_OPTIONS",
    "read_feature_map",
}  # `as` with another name needs __all__
PAGES = [
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "native.md"),  # that one is for contributors
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "gallery").glob("*.py")),
    *sorted((ROOT / "docs" / "examples").glob("*.py")),
]


def api_pages():
    spec = importlib.util.spec_from_file_location("api_pages", ROOT / "docs" / "_ext" / "api_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULES = api_pages().public_modules()
DOCUMENTED = api_pages().public_names(MODULES)


def offered(path):
    """Return the names in the ``__all__`` of a file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return set(ast.literal_eval(node.value))
    return set()


def insiders():
    """Yield the doors of rooms without a page of the API reference."""
    for path in sorted(PACKAGE.rglob("__init__.py")):
        room = ".".join(("exactshap", *path.parent.relative_to(PACKAGE).parts))
        if room not in MODULES and not any(part.startswith("_") for part in room.split(".")) and room != "exactshap.cli":
            yield room, path


def imported(text):
    """Yield module and name of each import from the package in the Python code of a page."""
    blocks = re.findall(r"^```py(?:thon)?\n(.*?)^```", text, flags=re.M | re.S)
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "exactshap":
                yield from ((node.module, alias.name) for alias in node.names)


def unknown_imports(text):
    return [
        (module, name)
        for module, name in imported(text)
        if module not in MODULES or name not in importlib.import_module(module).__all__
    ]


def test_the_api_page_is_short_enough_to_read():
    names = [name for of_module in DOCUMENTED.values() for name in of_module]
    assert 100 < len(names) <= MOST_NAMES


def test_a_name_is_offered_by_one_door():
    things = [getattr(importlib.import_module(module), name) for module, names in DOCUMENTED.items() for name in names]
    assert len(things) == len({id(thing) for thing in things})


@pytest.mark.parametrize(("room", "path"), list(insiders()), ids=[room for room, _ in insiders()])
def test_a_room_without_a_page_offers_nothing_to_people(room, path):
    """It passes names on to other rooms: ``from ... import name as name``."""
    assert offered(path) <= RENAMED


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_documentation_imports_public_names_only(page):
    text = page.read_text(encoding="utf-8")
    assert not unknown_imports(text if page.suffix == ".md" else f"```py\n{text}\n```")


def test_the_checks_bite(tmp_path):
    assert unknown_imports("```python\nfrom exactshap.solvers.core import Rows\n```")
    assert unknown_imports("```python\nfrom exactshap.solvers import Rows\n```")
    assert not unknown_imports("```python\nfrom exactshap.solvers import choose\n```")
    (tmp_path / "door.py").write_text('__all__ = ["Rows"]\n')
    assert offered(tmp_path / "door.py") == {"Rows"}
