"""The live page: what it computes, who may see it, and what a real browser shows at each move."""

import contextlib
import datetime
import http.server
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pandas
import pytest
import skops.io as skops
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

import browser as browsers
from exactshap import explain
from exactshap.app import WhatIf
from exactshap.app._answer import answer_html
from exactshap.app._page import _shown, _widget, changes, is_quick, will_change
from exactshap.errors import InputError, UnknownNameError
from explanation_factory import linear
from tolerances import FOUR_DIGITS, roundings

SCRIPT = """
import numpy as np, pandas
from sklearn.svm import SVR
from exactshap.app import WhatIf, run_app
rng = np.random.default_rng(0)
X = pandas.DataFrame({"age": rng.integers(18, 80, 60), "<b>fare</b>": rng.exponential(30.0, 60), "bmi": rng.normal(25.0, 4.0, 60)})
model = SVR(C=100.0).fit(X, X["age"] * 0.1 + X["bmi"])
"""
SERVE = (
    "run_app(WhatIf(model, X, X[:40]), token='secret-of-the-test', open_browser=False, ready=lambda a: print(a, flush=True))"
)


@pytest.fixture(scope="module")
def case():
    namespace = {}
    exec(SCRIPT, namespace)
    return namespace["model"], namespace["X"]


@pytest.mark.filterwarnings("ignore:.*valid feature names")
def test_a_changed_row_has_the_values_that_the_library_gives(case):
    model, X = case
    what_if = WhatIf(model, X, X[:40])
    changed = X.iloc[[3]].assign(age=41, bmi=30.5)
    expected = explain(model, changed, X[:40])
    found = what_if.explain(3, {"age": 41.0, "bmi": 30.5})
    np.testing.assert_array_equal(found.values, expected.values)
    assert list(found.data.dtypes) == list(X.dtypes)
    assert list(found.data.index) == [3]
    older = X[:40][(X["age"][:40] > 40) & (X["bmi"][:40] <= 26)]
    filtered = what_if.explain(0, where="age > 40 and bmi <= 26")
    np.testing.assert_array_equal(filtered.values, explain(model, X.iloc[[0]], older).values)
    one = what_if.explain(0, baseline_row=5)
    np.testing.assert_array_equal(one.values, explain(model, X.iloc[[0]], X.iloc[[5]], value_function="baseline").values)
    of_arrays = WhatIf(model, X.to_numpy(), X[:40].to_numpy())
    np.testing.assert_array_equal(of_arrays.explain(3, {"age": 41.0, "bmi": 30.5}).values, found.values)


def test_text_and_missing_cells_can_be_changed():
    X = pandas.DataFrame({"town": pandas.Categorical(list("uvw") * 20), "age": [np.nan, *range(59)]})
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=5, min_samples_leaf=2).fit(
        X, np.arange(60.0)
    )
    what_if = WhatIf(model, X, X[:10])
    assert [control.get("choices") for control in what_if.controls] == [["u", "v", "w"], None]
    assert what_if.cells(0) == ["u", None]
    found = what_if.explain(0, {"town": "w"})
    expected = explain(model, X.iloc[[0]].assign(town=pandas.Categorical(["w"], categories=list("uvw"))), X[:10])
    np.testing.assert_array_equal(found.values, expected.values)


ODD = pandas.DataFrame(
    {
        "size": pandas.Categorical(list("sml") * 20),
        "day": pandas.date_range("2024-01-01", periods=60),
        "n": pandas.array(range(60), dtype="Int64"),
        "flag": [True, False] * 30,
        "x": np.arange(60.0),
    }
)


def of_odd_cells(rows):
    parts = [
        rows["size"].astype(object).map({"s": 0.5, "m": 2.0}),
        rows["day"].dt.day,
        rows["n"] * 100,
        rows["flag"],
        rows["x"],
    ]
    return np.sum([part.astype("Float64").fillna(-7.0).to_numpy(float) for part in parts], axis=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": "m", "day": "2024-01-09", "n": 2, "flag": False, "x": 3}, None),
        ({"size": None, "day": None, "n": None, "x": None}, None),
        ({"size": "xl"}, r"Column 'size' cannot hold 'xl'. Its cells are .*: \['l', 'm', 's'\]"),
        ({"day": "tomorrow"}, "Column 'day' cannot hold 'tomorrow'. Its cells are Datetime: "),
        ({"flag": "no"}, "Column 'flag' cannot hold 'no'. Its cells are Boolean"),
        ({"x": "three"}, "Column 'x' cannot hold 'three'. Its cells are Float64: "),
        ({"n": "three"}, "Column 'n' cannot hold 'three'. Its cells are Int64: "),
    ],
)
def test_cells_that_a_column_does_not_hold_are_refused(changes, words):
    what_if = WhatIf(of_odd_cells, ODD, ODD[:4])
    if words is not None:
        with pytest.raises(InputError, match=words):
            what_if.explain(1, changes)
        return
    row = ODD.iloc[[1]].copy()
    for name, cell in changes.items():
        row[name] = pandas.Series([cell], index=row.index).astype(ODD[name].dtype)
    assert what_if.explain(1, changes).prediction == of_odd_cells(row)


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[us, Europe/Berlin]"])
def test_dates_in_nanoseconds_or_of_a_place_are_dates(dtype):
    days = ODD["day"] if "," not in dtype else ODD["day"].dt.tz_localize("Europe/Berlin")
    rows = ODD.assign(day=days.astype(dtype))
    what_if = WhatIf(of_odd_cells, rows, rows[:4])
    assert what_if.controls[1]["choices"][0] == what_if.cells(0)[1] == datetime.datetime(2024, 1, 1)
    chosen = what_if.explain(0, {"day": what_if.controls[1]["choices"][3]})
    assert chosen.prediction == of_odd_cells(rows[:1].assign(day=rows["day"][3]))


def test_cells_of_whole_numbers_may_become_fractions():
    whole = np.arange(60).reshape(20, 3)
    what_if = WhatIf(lambda rows: rows.sum(axis=1), whole, whole[:4])
    assert what_if.explain(0, {"x0": 2.5}).prediction == 5.5
    with pytest.raises(InputError, match=r"Column 'x0' cannot hold 'a'. Its cells are Float64DType: could not convert"):
        what_if.explain(0, {"x0": "a"})


@pytest.mark.parametrize("ends", [(-1.79e308, 1.5), (0.0, 5e-324)])
def test_sliders_end_within_float64(ends):
    cells = np.array([*ends, ends[1]])[:, None]
    (control,) = WhatIf(lambda rows: rows[:, 0], cells, cells[2:]).controls
    assert np.isfinite([control["low"], control["high"], control["step"]]).all()
    assert control["low"] < control["high"]
    assert control["step"] > 0.0


def test_filters_are_read_and_never_run(case):
    model, X = case
    refused = {"zz > 3": "no column “zz”", "age > 900": "No background row"}
    refused |= {"__import__('os').system('true') == 1": "“(” does not belong there"}
    for where, text in refused.items():
        with pytest.raises((InputError, UnknownNameError), match=re.escape(text)):
            WhatIf(model, X, X[:40]).explain(0, where=where)


def test_sliders_have_round_places_and_stand_at_the_rows_own_cells(case):
    model, X = case
    what_if = WhatIf(model, X, X[:40])
    age, fare, bmi = what_if.controls
    assert (age["low"], age["high"], age["step"]) == (X["age"].min(), X["age"].max(), 1.0)
    for control, name in ((fare, "<b>fare</b>"), (bmi, "bmi")):
        assert control["low"] <= X[name].min()
        assert control["high"] >= X[name].max()
        assert all(len(repr(control[end])) <= 6 for end in ("low", "high", "step"))
        assert 50 <= (control["high"] - control["low"]) / control["step"] <= 205
    rounded = [float(X["age"][3]), *(round(X[c["name"]][3] / c["step"]) * c["step"] for c in (fare, bmi))]
    assert changes(what_if, 3, rounded) == {}
    assert changes(what_if, 3, [rounded[0] + 1.0, *rounded[1:]]) == {"age": rounded[0] + 1.0}
    unheard = will_change(what_if, 3, what_if.cells(0))
    assert changes(what_if, 3, what_if.cells(0), unheard) == {}  # sliders that have not followed a click say nothing
    assert changes(what_if, 3, what_if.cells(0)) != {}
    assert changes(what_if, 3, [float(X["age"][3]), *what_if.cells(0)[1:]], unheard) == {}
    assert set(unheard) == {1, 2}


def test_a_missing_number_is_at_the_low_end_until_it_is_moved():
    X = pandas.DataFrame({"age": [np.nan, np.inf, *np.arange(1.0, 59.0)], "bmi": np.linspace(20.0, 30.0, 60)})
    what_if = WhatIf(HistGradientBoostingRegressor(max_iter=3).fit(X, np.arange(60.0)), X, X[:10])
    assert changes(what_if, 0, [1.0, 20.0]) == {}
    assert changes(what_if, 0, [2.0, 20.0]) == {"age": 2.0}
    assert changes(what_if, 1, [58.0, X["bmi"][1]]) == {}  # an infinite one at its end
    assert changes(what_if, 1, [57.0, X["bmi"][1]]) == {"age": 57.0}


@pytest.mark.parametrize(("cell", "expected"), [(0.5, 0.5), (300, 300.0), (-1, -1.0), (7.0, 7.0)])
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_cells_that_the_type_of_a_column_does_not_hold_stay_as_they_are(kind, cell, expected):
    X = np.arange(20).reshape(10, 2)
    data = X if kind == "array" else pandas.DataFrame(X.astype(np.uint8), columns=["x0", "x1"])
    what_if = WhatIf(lambda rows: np.asarray(rows, float)[:, 0], data, data[:3])
    assert what_if.explain(3, {"x0": cell}).prediction == [expected]


def test_columns_with_pandas_na_have_controls():
    X = pandas.DataFrame({"member": pandas.array([True, None, False, True], dtype="boolean"), "age": [1.0, 2.0, 3.0, 4.0]})
    what_if = WhatIf(lambda rows: rows["member"].isna() * rows["age"], X, X[2:])
    assert what_if.controls[0]["choices"] == [False, True, None]
    assert what_if.explain(0, {"member": None}).prediction == [1.0]


def test_a_list_stands_at_the_missing_cell_of_its_row():
    """Browsers select the first of a list's texts where none is selected, and the page explained that one."""
    X = pandas.DataFrame({"town": [None, "u", "v"], "age": [1.0, 2.0, 3.0]})
    what_if = WhatIf(lambda rows: rows["town"].isna() * rows["age"], X, X[1:])
    control = what_if.controls[0]
    assert '<option value="2" selected="">missing</option>' in str(_widget(0, control, what_if.cells(0)[0]))
    assert changes(what_if, 0, ["2", 1.0]) == {}
    assert changes(what_if, 1, ["2", 2.0]) == {"town": None}
    assert what_if.explain(1, {"town": None}).prediction == [2.0]


# --- the page ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(*arguments, **settings):
    """Yield a function that reads the next line which a process of its own prints."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, **settings)
    try:
        yield lambda: process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=20)


@contextlib.contextmanager
def serving(script=SCRIPT):
    """Yield the address that a page in a process of its own prints."""
    with running("-c", script + SERVE) as line:
        yield line()


@pytest.fixture(scope="module")
def address():
    with serving() as address:
        yield address


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def answer(url, *, follow=True, **headers):
    """Return status and headers of an answer; a server that is still starting is waited for."""
    opener = urllib.request.build_opener(*(() if follow else (NoRedirect,)))
    deadline = time.monotonic() + 30
    while True:
        try:
            with opener.open(urllib.request.Request(url, headers=headers), timeout=10) as response:
                return response.status, response.headers
        except urllib.error.HTTPError as error:
            return error.code, error.headers
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def status(url, **headers):
    return answer(url, **headers)[0]


def test_only_who_has_the_token_is_answered(address):
    assert address.startswith("http://127.0.0.1:")
    bare = address.partition("?")[0]
    assert status(address) == 200
    for place in ("", "?token=guess", "websocket/?token=secret-of-the-test"):
        assert status(bare + place) == 403
    assert status(bare, Cookie="exactshap_token=secret-of-the-test") == 403
    assert status(address, Host="attacker.example:80") == 403


def test_the_address_that_a_browser_is_started_with_admits_once():
    """Other users of the machine read it in the list of processes."""
    serve = SCRIPT + SERVE.replace("open_browser=False", "open_browser=True")
    with running("-c", serve, env={**os.environ, "BROWSER": "echo %s"}) as line:
        printed, opened = line(), line()
        assert opened.partition("?")[0] == printed.partition("?")[0]
        assert "secret-of-the-test" not in opened
        assert [status(opened), status(opened), status(printed), status(printed)] == [200, 403, 200, 200]


def test_the_cookie_names_its_port_is_not_the_token_and_travels_to_its_own_folder_only(address):
    code, headers = answer(address, follow=False)
    port = address.split(":")[2].partition("/")[0]
    found = re.fullmatch(
        rf"exactshap_{port}=([\w-]{{32}}); HttpOnly; SameSite=Strict; Path=(/[\w-]{{32}}/)", headers["set-cookie"]
    )
    assert code == 303
    assert found, headers["set-cookie"]
    value, folder = found.groups()
    assert headers["location"] == folder
    assert "secret-of-the-test" not in headers["set-cookie"]
    page = f"http://127.0.0.1:{port}{folder}"
    script = page + re.search(r'src="(lib/[^"]+)"', urllib.request.urlopen(page, timeout=10).read().decode()).group(1)
    cookie = f"other=1; exactshap_{port}={value}"
    assert status(script, Cookie=cookie) == 200
    for refused in ("", f"exactshap_1={value}", f"exactshap_{port}=guess", f"exactshap_{port}=secret-of-the-test"):
        assert status(script, Cookie=refused) == 403
    assert status(script, Cookie=cookie, Origin="http://127.0.0.1:1") == 403
    assert status(page, Cookie=cookie, Origin="http://127.0.0.1:1") == 403
    assert status(script, Cookie=cookie, Origin=f"http://127.0.0.1:{port}") == 200
    assert status(f"http://127.0.0.1:{port}/websocket/", Cookie=cookie) == 403


def test_the_command_serves_a_page_to_who_has_its_address(tmp_path):
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["age", "bmi", "fare"])
    skops.dump(LinearRegression().fit(X, X["age"]), tmp_path / "model.skops")
    X.to_csv(tmp_path / "data.csv", index=False)
    command = ["-m", "exactshap", "app", "model.skops", "data.csv", "--background", "data.csv", "--no-browser"]
    narrow = {**os.environ, "COLUMNS": "20"}  # an address is one line, whatever the width
    with running(*command, cwd=tmp_path, stderr=subprocess.STDOUT, env=narrow) as line:
        first = line()
        found = re.fullmatch(r"open (http://127\.0\.0\.1:\d+/)\?token=([\w-]{32})", first)
        assert found, first
        page, token = found.groups()
        with urllib.request.urlopen(f"{page}?token={token}", timeout=30) as answer:
            text = answer.read().decode()
        assert all(name in text for name in ("age", "bmi", "fare", "exactshap: what if"))
        assert status(page) == 403
        assert status(f"{page}?token={token[:-1]}") == 403


@pytest.fixture(scope="module")
def browser():
    with browsers.launched() as browser:
        yield browser


def shown(page):
    """Return what the page shows: values by player, baseline and prediction."""
    cells = page.locator(".waterfall tr[data-name]").all()
    values = {cell.get_attribute("data-name"): float(cell.locator(".v").get_attribute("data-value")) for cell in cells}
    ends = [float(page.locator(name).get_attribute("data-value")) for name in ("#baseline", "#prediction")]
    return values, *ends


def wait_until(page, holds, seconds=20.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(Exception):  # the answer is replaced while it is read
            if holds(*shown(page)):
                return shown(page)
        page.wait_for_timeout(100)
    raise AssertionError(f"the page still shows {shown(page)}")


@pytest.mark.browser
def test_tiny_cells_stay_until_they_are_typed(browser):
    """A slider would round them to its own decimals, and explain another row than the one that was chosen."""
    tiny = "X['bmi'] *= 1e-8\nX['age'] *= 10_000_000\nmodel.fit(X, X['bmi'] * 1e8)\n"
    with serving(SCRIPT + tiny) as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("#prediction", timeout=30_000)
        page.wait_for_timeout(2_000)
        assert page.locator("#was").count() == 0
        assert re.fullmatch(r"age = [\d,]+", page.locator("tr[data-name=age] .n").inner_text())
        page.fill("#c2", "3.1e-7")
        page.wait_for_selector("#was", timeout=20_000)
        assert page.locator("tr[data-name=bmi] .n").inner_text().startswith("bmi = 3.1e\N{MINUS SIGN}07")
        page.close()


@pytest.mark.browser
def test_each_move_in_a_browser_gives_exact_values(address, browser, case, tmp_path):
    model, X = case
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    errors, requests = [], []
    page.on("console", lambda text: errors.append(text.text) if text.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.wait_for_selector("#prediction", timeout=30_000)

    def is_row(row, background):
        expected, limit = explain(model, row, background), roundings(5_000) * 100.0
        same = dict(zip(expected.feature_names, expected.values[0], strict=True))

        def holds(values, baseline, prediction):
            adds_up = abs(baseline + sum(values.values()) - prediction) < limit
            return adds_up and values.keys() == same.keys() and all(abs(same[name] - values[name]) < limit for name in same)

        return holds

    wait_until(page, is_row(X.iloc[[0]], X[:40]))
    page.locator(".shiny-input-container:has(#c0) .irs-line").click(position={"x": 100, "y": 5}, force=True)
    page.wait_for_timeout(300)
    age = int(float(page.locator("#c0").input_value()))
    assert age != X["age"][0]
    wait_until(page, is_row(X.iloc[[0]].assign(age=age), X[:40]))
    assert float(page.locator("#ms").text_content()) < 1000.0
    assert page.locator("tr[data-name=age] .n").inner_text().split("\n") == [f"age = {age}", f"was {X['age'][0]}"]
    first = explain(model, X.iloc[[0]], X[:40])
    assert page.locator("#was").inner_text().replace("\N{MINUS SIGN}", "-") == f"was {first.prediction[0]:.6g}"
    page.get_by_role("button", name="Reset").click()
    wait_until(page, is_row(X.iloc[[0]], X[:40]))
    assert page.locator("#was").count() == 0
    page.locator("#search").fill("age > 60 and bmi < 25")
    kept = X[(X["age"] > 60) & (X["bmi"] < 25)]
    page.get_by_text(f"{len(kept)} of 60 rows").wait_for()
    page.locator("#search").fill("age > > 60")
    page.get_by_text("The rows stay as they were").wait_for()
    assert page.locator("#found").inner_text().startswith(f"{len(kept)} of 60 rows")
    page.locator("#rows tbody tr").nth(1).locator("td").first.click()
    wait_until(page, is_row(kept.iloc[[1]], X[:40]))
    assert int(page.locator("#row").input_value()) == kept.index[1]
    page.locator("#search").fill("")
    page.get_by_text("60 of 60 rows").wait_for()
    page.locator("#row").fill("59")
    wait_until(page, is_row(X.iloc[[59]], X[:40]))
    page.locator("#row").fill("900")
    page.get_by_text("There is no row 900. They are numbered from 0 to").wait_for()
    page.locator("#row").fill("0")
    wait_until(page, is_row(X.iloc[[0]], X[:40]))
    page.wait_for_timeout(500)
    page.evaluate(
        """() => { window.seen = []; new MutationObserver(() => {
        const found = document.querySelector("#prediction");
        if (found) window.seen.push(Number(found.dataset.value)); }).observe(document.body, {childList: true, subtree: true}) }"""
    )
    before = shown(page)[2]
    page.locator("#rows tbody tr").nth(4).locator("td").first.click()
    after = wait_until(page, is_row(X.iloc[[4]], X[:40]))[2]
    page.wait_for_timeout(800)  # the sliders answer a quarter of a second later
    assert set(page.evaluate("window.seen")) <= {before, after}  # no mixture of two rows was shown
    page.locator("#where").fill("age > 40")
    page.get_by_role("button", name="Apply").click()
    wait_until(page, is_row(X.iloc[[4]], X[:40][X["age"][:40] > 40]))
    page.locator("#where").fill("age > > 40")
    page.get_by_role("button", name="Apply").click()
    page.get_by_text("A value is missing after “>”").wait_for()
    assert is_row(X.iloc[[4]], X[:40][X["age"][:40] > 40])(*shown(page))  # a bad filter erases no result
    page.get_by_text("compares with it").click()
    page.locator("#rows tbody tr").nth(7).locator("td").first.click()
    wait_until(page, is_row(X.iloc[[4]], X.iloc[[7]]))
    assert page.locator("b").filter(has_text="fare").count() == 0  # the hostile name is text
    assert not errors
    assert all(url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")) for url in requests), requests
    page.screenshot(path=os.environ.get("EXACTSHAP_SCREENSHOT", str(tmp_path / "app.png")))
    page.close()


@pytest.mark.browser
def test_the_tab_key_moves_no_slider_and_an_arrow_one_step(address, browser, case):
    model, X = case
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("#prediction", timeout=30_000)
    page.wait_for_timeout(500)
    first = shown(page)
    for _ in range(8):
        page.keyboard.press("Tab")
        page.wait_for_timeout(150)
    assert page.locator("#was").count() == 0
    assert shown(page) == first
    age = X["age"][0]
    for key, moved in (("ArrowRight", age + 1), ("ArrowRight", age + 2), ("ArrowLeft", age + 1)):
        page.locator(".shiny-input-container:has(#c0) .irs-line").focus()
        page.keyboard.press(key)
        expected = explain(model, X.iloc[[0]].assign(age=moved), X[:40])
        wait_until(page, lambda _, __, found, expected=expected: abs(found - expected.prediction[0]) < roundings(5_000) * 100.0)
        assert page.input_value("#c0") == str(moved)
    page.close()


@pytest.mark.browser
def test_a_cell_that_the_model_lacks_can_be_set(browser):
    gap = "rows = X.astype(float)\nrows.loc[0, 'bmi'] = np.nan\n"
    with running("-c", SCRIPT + gap + SERVE.replace("(model, X,", "(model, rows,")) as line:
        page = browser.new_page()
        page.goto(line())
        page.get_by_text("contains NaN").wait_for(timeout=30_000)
        page.locator(".shiny-input-container:has(#c2) .irs-line").click(position={"x": 100, "y": 5}, force=True)
        page.wait_for_selector("#prediction", timeout=20_000)
        page.close()


@pytest.mark.browser
def test_at_390_pixels_the_answer_stays_in_view_above_the_sliders(address, browser):
    page = browser.new_page(viewport={"width": 390, "height": 440})
    page.goto(address)
    page.wait_for_selector("#prediction", timeout=30_000)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator(".shiny-input-container:has(#c2)").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('.shiny-input-container:has(#c2)').scrollIntoView({block: 'end'})")
    page.wait_for_timeout(300)
    answer, slider = page.locator("#prediction").bounding_box(), page.locator(".shiny-input-container:has(#c2)").bounding_box()
    assert 0 <= answer["y"] < slider["y"] < 440
    assert page.locator(".axis span").count() >= 2
    page.close()


SOCKET = """url => new Promise(done => {
    const socket = new WebSocket(url);
    socket.onmessage = message => done("message: " + message.data);
    socket.onerror = () => done("refused");
    socket.onopen = () => socket.send(JSON.stringify({method: "init", data: {}}));
})"""


@contextlib.contextmanager
def other_server():
    """Yield the address of another server of this machine, and the cookies that reach it."""
    cookies = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            cookies.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>other</title>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", cookies
        server.shutdown()


@pytest.mark.browser
def test_a_page_of_another_port_neither_opens_the_socket_nor_is_given_the_cookie(address, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#prediction", timeout=30_000)
    socket = f"{page.url.replace('http:', 'ws:')}websocket/"  # the attacker is even given the secret folder
    assert page.evaluate(SOCKET, socket).startswith("message: ")  # the page's own origin may
    assert [cookie["name"] for cookie in context.cookies(page.url)] == [f"exactshap_{address.split(':')[2].partition('/')[0]}"]
    with other_server() as (other, cookies):
        attack = context.new_page()
        attack.goto(other)
        first = f"{address.replace('http:', 'ws:').partition('?')[0]}websocket/"
        for url in (socket, socket.replace("127.0.0.1", "localhost"), first):
            assert attack.evaluate(SOCKET, url) == "refused"
        read = "url => fetch(url, {credentials: 'include'}).then(answer => answer.text(), () => 'refused')"
        assert attack.evaluate(read, page.url) == "refused"
        assert cookies
        assert not any(cookies)
    context.close()


def test_a_value_of_zero_has_no_bar():
    page = answer_html(linear(np.array([[1.0, 0.0, -2.0]]), value_function="functional"), 1.0, 0, None)
    cells = re.findall(r"data-value='(\S+)'>([^<]+)</td><td class='t'>", page)
    assert page.count("class='axis'") == 1
    assert len(cells) == 3
    assert page.count("class='bar ") == sum(float(value) != 0.0 for value, _ in cells) < 3
    assert [text for value, text in cells if float(value) == 0.0] == ["0"]


def test_an_answer_says_what_the_prediction_was_and_its_probability():
    now, before = (linear(np.array([[x, -2.0]]), names=["age", "bmi"], unit="log-odds of class yes") for x in (3.0, 1.0))
    page = answer_html(now, 1.0, 0, None, before)
    odds = [float(view.prediction[0]) for view in (now, before)]
    shown = [float(text) for text in re.findall(r"probability ([\d.]+)", page)]
    assert shown == pytest.approx([1.0 / (1.0 + np.exp(-score)) for score in odds], rel=FOUR_DIGITS)
    assert "age = 3<small>was 1</small>" in page
    assert page.count("<small>was ") == 2  # the cell of age, and its value; those of bmi are as they were


def test_many_features_share_a_bar_and_outputs_that_are_left_out_are_named():
    wide = linear(np.ones((1, 45)), value_function="functional")
    page = answer_html(wide, 1.0, 0, None)
    assert page.count("data-name=") == 29
    rest = sum(sorted(wide.values[0], key=abs)[:16])
    assert re.search(rf"16 other features</td><td class='v'>.{abs(rest):.4g}</td>", page)
    assert "Not shown: 2 outputs (class 4, class 5)" in answer_html(linear(np.ones((1, 2)), n_outputs=6), 1.0, 0, None)


def test_sampled_values_have_their_standard_errors():
    X = np.random.default_rng(0).normal(size=(20, 15))
    sampled = explain(lambda rows: np.tanh(rows.sum(axis=1)), X[:1], X[:3], budget=100)
    page = answer_html(sampled, 1.0, 0, None)
    assert "; ± are standard errors" in page
    assert page.count("<small>± ") == np.count_nonzero(sampled.std_error) == 15


def test_a_first_row_that_the_model_refuses_keeps_no_page_closed():
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["age", "bmi"])
    model = LinearRegression().fit(X, X["age"])
    rows = X.assign(age=X["age"].where(X.index > 2))
    assert is_quick(WhatIf(model, rows, X[:5]))
    with pytest.raises(InputError, match="contains NaN"):
        is_quick(WhatIf(model, X.assign(age=np.nan), X[:5]))


def test_truth_values_of_the_table_are_words():
    X = pandas.DataFrame({"age": [1.0, 2.0, 3.0], "smokes": [True, False, True]})
    table = _shown(WhatIf(lambda rows: np.asarray(rows, float).sum(axis=1), X, X[:2]), np.arange(3))
    assert table["smokes"].tolist() == ["True", "False", "True"]
    assert table.columns.tolist() == ["row", "age", "smokes"]


def test_sliders_send_while_they_move_only_if_the_model_is_quick():
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["age", "bmi"])
    for seconds in (0.0, 0.2):
        model = lambda rows, seconds=seconds: (time.sleep(seconds), np.asarray(rows)[:, 0])[1]  # noqa: E731
        assert is_quick(WhatIf(model, X, X[:5])) == (seconds == 0.0)
