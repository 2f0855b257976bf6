"""The suite itself: pytest takes a test file that does not import for one that is skipped, where docstrings are tests too."""

import importlib.util
import sys
from pathlib import Path

import pytest


def test_every_file_of_tests_imports():
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        if ".".join(path.relative_to(Path(__file__).parent.parent).with_suffix("").parts) in sys.modules:
            continue  # pytest has imported it
        spec = importlib.util.spec_from_file_location(f"imported_{path.stem}", path)
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except pytest.skip.Exception:  # importorskip at the top
            continue
