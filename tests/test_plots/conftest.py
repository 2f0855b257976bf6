"""Pictures are drawn without a screen, and closed after each test."""

import pytest


@pytest.fixture(autouse=True)
def _closed():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
