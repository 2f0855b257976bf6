"""Settings that must stand before NumPy and the libraries of models are loaded."""

import functools
import gc
import importlib.metadata
import os

import pytest

# Threads that wait for each other cost many times the work of small models. LightGBM's wait even so, as it counts cores itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of BLAS, too
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave the 600,000 objects of a collected suite out of searches for cycles: each took 0.6 s, more than most tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _packages_are_listed_once():
    """An error that names the installed version lists all packages, for a quarter of a second: none is installed meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(importlib.metadata.packages_distributions)
        patch.setattr(importlib.metadata, "packages_distributions", once)
        yield
