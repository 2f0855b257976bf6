"""The HTML report of a decomposition: the hostile-name test that the report of an explanation passes."""

import numpy as np
import pandas
import pytest

import browser as browsers
from exactshap import decompose_hsic, decompose_mmd
from exactshap.results.report import write_shares_report
from pages import EVIL, Page


@pytest.fixture(scope="module", params=["mmd", "hsic"])
def path(request, tmp_path_factory):
    """Write the report of a decomposition over hostile columns with hostile categories."""
    random = np.random.default_rng(0)
    tables = []
    for shift in (0.0, 1.0):
        table = pandas.DataFrame(dict(zip(EVIL, random.normal(shift, size=(40, len(EVIL))).T, strict=True)))
        table[EVIL[2]] = random.choice(EVIL, 40)
        tables.append(table)
    if request.param == "mmd":
        found = decompose_mmd(*tables, n_permutations=9)
    else:
        found = decompose_hsic(tables[0], tables[0][EVIL[0]].to_numpy())
    path = tmp_path_factory.mktemp("shares") / f"{request.param}.html"
    samples = tuple(tables) if request.param == "mmd" else None
    return write_shares_report(found, path, title=EVIL[1], samples=samples, labels=(EVIL[0], EVIL[2]), command=EVIL[1])


def test_hostile_names_and_categories_are_text(path):
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    page.assert_runs_nothing()
    assert EVIL[0] in page.text
    assert page.tags.count("title") >= 1
    assert not set(html) & set("\x00\x1b\u202e")
    assert "{{ 7*7 }}" in page.text


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_runs_in_a_browser(path, width):
    with browsers.launched() as browser, browsers.opened(browser, path, width=width, javascript=None) as page:
        assert page.evaluate("window.hacked") is None
        assert page.locator("script, img, a, iframe, object, embed, form").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert EVIL[0] in page.inner_text("main")
