"""One language of filters for page, app and command: the cases of ``filter_cases`` run against both readers."""

import re

import numpy as np
import pandas
import pytest

import browser as browsers
from exactshap.errors import InputError
from exactshap.frames import as_table
from exactshap.results.data import filtered_rows
from explanation_factory import linear
from filter_cases import COLUMNS, KEPT, SLIPS


def frame():
    return pandas.DataFrame(COLUMNS)


@pytest.mark.parametrize(("where", "rows"), KEPT)
def test_python_keeps_the_rows(where, rows):
    np.testing.assert_array_equal(np.flatnonzero(filtered_rows(as_table(frame()), list(COLUMNS), where)), list(rows))


@pytest.mark.parametrize(("where", "slip"), SLIPS)
def test_python_names_the_slip(where, slip):
    with pytest.raises(InputError, match=re.escape(f"The filter cannot be read. {slip}. Write conditions such as")):
        filtered_rows(as_table(frame()), list(COLUMNS), where)


def test_dates_as_a_library_holds_them_are_dates():
    table = as_table(frame().assign(joined=pandas.to_datetime(frame()["joined"])))
    assert filtered_rows(table, list(COLUMNS), "joined < 2024-03-01").sum() == 3


@pytest.mark.browser
def test_the_page_keeps_the_same_rows_and_names_the_same_slips(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    source = linear(np.ones((10, len(COLUMNS))), names=list(COLUMNS), data=frame())
    path = source.report(tmp_path / "page.html", interactive=True)
    with browsers.launched() as browser, browsers.opened(browser, path) as page:

        def said(where):
            page.evaluate("document.getElementById('filtered').textContent = ''")
            page.fill("#filter", f"{where} ")  # a space more, so that an empty filter is a change too
            sync_api.expect(page.locator("#filtered")).to_have_text(re.compile("."))
            return page.inner_text("#filtered")

        for where, rows in KEPT:
            assert said(where) == f"{len(rows)} row{'s' * (len(rows) != 1)} of 10", where
            labels = page.locator("#rows tr th[scope=row]").all_inner_texts()
            assert labels == [f"row {i}" for i in rows], where
        said("age = 40")
        for where, slip in SLIPS:
            wanted = slip.replace("b<=3, member", "b<=3, member, baseline and others") if "no column" in slip else slip
            assert said(where) == f"{wanted}. Rows unchanged.", where
            assert page.locator("#rows tr th[scope=row]").all_inner_texts() == ["row 2"], where
        assert said("prediction > 1e9") == "No such row: filter unchanged."
