"""Pictures are drawn without a screen, and closed after each test."""

import matplotlib.pyplot as pyplot
import pytest


@pytest.fixture(autouse=True)
def _closed():
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
