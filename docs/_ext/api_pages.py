"""The pages of the API reference: one for each public module, one for each name in its `__all__`."""

import importlib
import inspect
import pkgutil
import shutil
from pathlib import Path

import exactshap

INSIDE = ("results.explanation", "results.comparison", "results.plots", "results.reasons", "integrations.mlflow")
NOT_LISTED = {
    "ExplanationEvaluator",  # a subclass of MLflow's own, which need not be installed here: docs/live.md shows it
    "__version__",
}
INTRODUCTION = """.. Written by docs/_ext/api_pages.py.

API reference
=============

What is listed here is public: its names, arguments and meanings change only as the :doc:`release policy <../policy>` allows.
Names that begin with an underscore, and modules that are not listed, may change at any time.

.. toctree::
   :hidden:

{toctree}

.. list-table::
   :header-rows: 1
   :widths: 30 70

   * - module
     - what it holds
{rows}
"""


def public_modules():
    """Return the names of the modules that people import from: those with an ``__all__`` of some names."""
    rooms = [info.name for info in pkgutil.iter_modules(exactshap.__path__) if not info.name.startswith("_")]
    modules = [f"exactshap.{room}" for room in (*rooms, *INSIDE) if room != "cli"]
    return ["exactshap", *(module for module in modules if getattr(importlib.import_module(module), "__all__", ()))]


def public_names(modules):
    """Return {module: the names in its ``__all__``}, without the package's version."""
    rooms = {module: importlib.import_module(module) for module in modules}
    return {module: sorted(set(room.__all__) - NOT_LISTED) for module, room in rooms.items()}


def page_of(module, names):
    """Return the page of one module."""
    title = f"``{module}``"
    listed = "\n".join(f"   {name}" for name in names)
    summary = f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{listed}\n" if names else ""
    return (
        f"{title}\n{'=' * len(title)}\n\n.. automodule:: {module}\n   :no-members:\n\n.. currentmodule:: {module}\n\n{summary}"
    )


def write_pages(folder):
    """Write the pages of all modules and their index."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = public_names(public_modules())
    for module in names:
        (folder / f"{module}.rst").write_text(page_of(module, names[module]), encoding="utf-8")
    rows = "\n".join(
        f"   * - :doc:`{module} <{module}>`\n     - {inspect.getdoc(importlib.import_module(module)).splitlines()[0]}"
        for module in names
    )
    index = INTRODUCTION.format(toctree="\n".join(f"   {module}" for module in names), rows=rows)
    (folder / "index.rst").write_text(index, encoding="utf-8")


def setup(app):
    """Write the pages at once: autosummary looks for them before anything else."""
    write_pages(Path(app.srcdir) / "api")
    return {"parallel_read_safe": True}
