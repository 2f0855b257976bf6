import base64
import contextlib
import dataclasses
import hashlib
import json
import re
import sys
import zlib

import matplotlib.image as image
import numpy as np
import pandas
import pytest

import browser as browsers
from command import run
from exactshap.errors import InputError
from exactshap.frames import as_table
from exactshap.results.data import as_days, filtered_rows
from exactshap.results.report._interactive import own_script, pack, render_interactive, rounded, vega
from explanation_factory import bilinear, linear
from pages import EVIL
from tolerances import FOUR_DIGITS, FOUR_DIGITS_ADDED, PIXELS, roundings

ROUNDED, ROUNDED_ERRORS = 1.01 * 2**-17, 1.01 * 2**-10  # half a unit of 16 and of 9 bits of mantissa


def people(n=300, **changes):
    """Explain a table with numbers, text, dates and gaps."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 5))
    day = np.datetime64("2024-01-01") + random.integers(0, 700, n)
    city = random.choice(["Bonn", "Köln", "Düsseldorf"], n)
    data = pandas.DataFrame({"age": X[:, 0], "city": city, "joined": day, "bmi": X[:, 3], "income": X[:, 4]})
    data.loc[::20, "bmi"] = np.nan
    settings = {"names": list(data.columns), "data": data, "value_function": "interventional", "background_size": 7}
    return linear(X, **(settings | changes))


def unpacked(text):
    """Read a block as the page does."""
    raw = zlib.decompress(base64.b64decode(text))
    head = 4 + int.from_bytes(raw[:4], "little")
    info = json.loads(raw[4:head])
    arrays = {}
    for name, (offset, length, size) in info["arrays"].items():
        planes = np.frombuffer(raw, np.uint8, length * size, head + offset).reshape(size, length)
        arrays[name] = np.ascontiguousarray(planes.T).view(f"<f{size}").ravel()
    return info, arrays


# --- the block of numbers ---------------------------------------------------------------------------------------------


def test_the_block_holds_the_numbers_of_the_explanation():
    source = people()
    info, arrays = unpacked(pack(source).text)
    assert info["names"] == list(source.feature_names)
    assert info["kinds"] == ["number", "text", "date", "number", "number"]
    np.testing.assert_array_equal(arrays["values"].reshape(5, -1), source.values.T.astype(np.float32))
    np.testing.assert_array_equal(arrays["prediction"], source.prediction)
    np.testing.assert_array_equal(arrays["residual"], source.residual)
    cells = arrays["cells"].reshape(5, -1)
    np.testing.assert_allclose(cells[0], source.data["age"], rtol=ROUNDED)
    assert [info["texts"][1][int(code)] for code in cells[1]] == list(source.data["city"])
    np.testing.assert_array_equal(cells[2], source.data["joined"].to_numpy().astype("datetime64[D]").astype(float))
    np.testing.assert_array_equal(np.isnan(cells[3]), source.data["bmi"].isna())


def test_outputs_errors_and_pairs_are_packed_by_output():
    source = people(n_outputs=3, std_error=np.abs(np.random.default_rng(1).normal(size=(300, 5, 3))))
    info, arrays = unpacked(pack(source).text)
    assert info["outputs"] == ["class 0", "class 1", "class 2"]
    np.testing.assert_array_equal(arrays["values"].reshape(3, 5, -1), source.values.T.astype(np.float32))
    np.testing.assert_allclose(arrays["errors"].reshape(3, 5, -1), source.std_error.T, rtol=ROUNDED_ERRORS)
    pairs = bilinear(n=20, d=14)
    info, arrays = unpacked(pack(pairs).text)
    assert len(info["pairs"]) == 12 * 11 / 2
    sets = [s for _, _, s in info["pairs"]]
    np.testing.assert_array_equal(arrays["pairs"].reshape(66, -1), pairs.set_values[:, sets].T.astype(np.float32))
    tile = info["tiles"][0][0]
    assert tile["text"] == f"{np.abs(pairs.set_values[:, sets[tile['pair']]]).mean():.2g}"


def test_the_largest_error_that_is_known_is_shown_first():
    source = people()
    assert pack(source).first == np.argsort(source.prediction, kind="stable")[150]
    target = source.prediction.copy()
    target[17] += 5.0
    packed = pack(source, target=target)
    assert (packed.first, packed.first_words) == (17, "the row with the largest error of the prediction")
    errors = np.full((300, 5), 0.1)
    errors[23, 2] = 0.4
    assert pack(people(std_error=errors)).first == 23
    failed = pack(people(residual=np.where(np.arange(300) == 31, 1.0, 0.0)))
    assert (failed.first, failed.first_words) == (31, "the row with the largest residual")


def test_a_target_of_another_shape_is_refused():
    with pytest.raises(InputError, match=r"`target` needs one number for each prediction.*Got shape \(3,\)"):
        pack(people(), target=[1.0, 2.0, 3.0])


def test_more_rows_than_fit_are_sampled_with_a_sentence():
    source = linear(np.random.default_rng(0).normal(size=(30_000, 3)))
    packed = pack(source)
    assert len(packed.rows) == 20_000
    assert "20,000 of the 30,000 explained rows" in packed.sentence
    ends = [np.argmin(source.prediction), np.argmax(source.prediction), np.argmax(np.abs(source.residual))]
    assert {*map(int, ends)} <= {*packed.rows.tolist()}
    info, arrays = unpacked(packed.text)
    np.testing.assert_array_equal(arrays["prediction"], source.prediction[packed.rows])
    assert info["labels"][5] == f"row {packed.rows[5]}"
    np.testing.assert_allclose(info["strength"][0], np.abs(source.values).mean(axis=0), rtol=roundings(300))  # of all rows
    assert packed.rows[packed.first] == np.argsort(source.prediction, kind="stable")[15_000]


@pytest.mark.slow
def test_twenty_thousand_rows_of_fifty_columns_stay_below_ten_megabytes():
    source = linear(np.random.default_rng(0).normal(size=(20_000, 50)))
    page = render_interactive(source)
    assert "The page holds all 20,000 rows" in page
    assert len(page.encode()) < 10_000_000


def test_columns_are_rounded_only_where_they_must_be():
    counts = np.array([16_777_215.0, 3.0, np.nan])
    np.testing.assert_array_equal(rounded(counts, 9), counts)
    numbers = np.random.default_rng(0).normal(size=1000)
    np.testing.assert_allclose(rounded(numbers, 16), numbers, rtol=ROUNDED)
    assert np.isinf(rounded(np.array([1e300, 0.1]), 9)[0])


def test_only_columns_of_dates_are_dates():
    dates = np.array(["2024-02-29", "", "1969-12-31T12:00:00.000000000"], object)
    np.testing.assert_array_equal(as_days(dates), [19782.0, np.nan, -0.5])
    for texts in (["2024-02-29", "x"], ["2024-13-01"], [""], ["12345-abc-d"]):
        assert as_days(np.array(texts, object)) is None


# --- the page as text -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain_page():
    return render_interactive(people())


def test_the_policy_allows_the_two_scripts_by_their_hashes_and_no_others(plain_page):
    page = plain_page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page).group(1).replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    scripts = re.findall(r"<script(?: type=\"module\")?>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert len(hashes) == 2


def test_no_word_of_the_user_is_part_of_a_script_or_a_chart(plain_page):
    names = [f"{EVIL[0]}{j}" for j in range(5)]
    hostile = render_interactive(
        people(names=names, data=people().data.set_axis(names, axis=1), model_name=EVIL[1]), title=EVIL[2]
    )
    parts = re.compile(r"<script[ >].*?</script>", re.DOTALL)
    numbers, *scripts = parts.findall(hostile)
    assert scripts == parts.findall(plain_page)[1:]
    assert re.fullmatch(r'<script type="text/plain" id="numbers">[A-Za-z0-9+/=]+</script>', numbers)
    assert "<img" not in parts.sub("", hostile)


def test_features_that_are_not_drawn_are_counted(plain_page):
    assert "The 15 largest of" not in plain_page
    assert "The 15 largest of 20 are drawn." in render_interactive(linear(np.ones((2, 20))))


def test_our_own_script_stays_small():
    code = [line for line in own_script().splitlines() if line.strip() and not line.strip().startswith("//")]
    assert len(code) <= 500
    assert max(map(len, code)) <= 140
    assert not {word for word in ("innerHTML", "eval", "://") if word in own_script()}  # an address, for one


def test_no_rows_and_missing_libraries_are_refused(monkeypatch):
    with pytest.raises(InputError, match="A report needs at least one row"):
        render_interactive(linear(np.empty((0, 2))))
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    vega.cache_clear()
    with pytest.raises(ImportError, match=r"An interactive report needs vl_convert.*pip install \"exactshap\[interactive\]\""):
        render_interactive(linear(np.zeros((2, 2))))


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    with browsers.launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return people().report(tmp_path_factory.mktemp("page") / "page.html", interactive=True, data_name="people.csv")


def number(text):
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))


def table(page, name="values"):
    """Return the rows of a table as lists of texts."""
    return page.eval_on_selector_all(f"#{name} tr", "rows => rows.map(row => [...row.children].map(cell => cell.textContent))")


def says(page, name, pattern):
    """Wait until an element's text fits a pattern."""
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect(page.locator(f"#{name}")).to_have_text(re.compile(pattern))


def column(page):
    """Return the last column of the table: what is in it by feature."""
    return {row[0]: row[-1] for row in table(page)[1:]}


def numbers(page):
    return {name: number(text) for name, text in column(page).items()}


def choose(page, row):
    page.fill("#row", str(row))
    page.press("#row", "Enter")
    says(page, "title-A", f"A: row {row}")


@contextlib.contextmanager
def report(browser, folder, source):
    """Yield the page of an explanation of one's own."""
    with browsers.opened(browser, source.report(folder / "page.html", interactive=True)) as page:
        yield page


def bars(page, slot="A"):
    marks = page.eval_on_selector_all(
        f"#row-{slot} .mark-rect path[aria-label]", "paths => paths.map(path => path.getAttribute('aria-label'))"
    )
    return [mark.rpartition(": ") for mark in marks]


@pytest.mark.browser
def test_a_click_on_a_row_changes_the_bars_and_they_add_up(browser, path):
    source = people()
    with browsers.opened(browser, path) as page:
        assert "Certificate passed" in page.inner_text("header")
        assert "interventional" in page.inner_text("header")
        before = bars(page)
        i = int(np.argsort(source.prediction, kind="stable")[150])
        assert page.inner_text("#title-A") == f"A: row {i}"
        page.click("#rows button:text-is('row 7')")
        says(page, "title-A", "^A: row 7$")
        rows = numbers(page)
        _, prediction, baseline = (rows.pop(name) for name in ("residual", "prediction", "baseline"))
        assert prediction == pytest.approx(source.prediction[7], rel=FOUR_DIGITS)
        assert sum(rows.values()) == pytest.approx(prediction - baseline, abs=FOUR_DIGITS_ADDED)  # numbers of four digits
        page.wait_for_timeout(200)
        assert bars(page) != before
        assert sum(number(text) for _, _, text in bars(page)) == pytest.approx(prediction - baseline, abs=FOUR_DIGITS_ADDED)
        largest = np.argsort(-np.abs(source.values[7]))
        assert [words.split(" = ")[0] for words, _, _ in bars(page)] == [source.feature_names[j] for j in largest]


@pytest.mark.browser
def test_a_click_on_a_dot_and_a_label_choose_rows_to_compare(browser, path):
    source = people()
    i = int(np.argmax(source.data["age"]))  # alone at the edge
    with browsers.opened(browser, path) as page:
        page.select_option("#feature", label="age")
        page.wait_for_timeout(400)
        page.locator("#scatter .mark-symbol path").nth(i).click(force=True)
        says(page, "title-A", f"^A: row {i}$")
        page.check("input[value=B]")
        page.fill("#row", "12")
        page.press("#row", "Enter")
        says(page, "title-B", "^B: row 12$")
        assert table(page)[0] == ["feature", "cell, A", "value, A", "cell, B", "value, B", "A \N{MINUS SIGN} B"]
        for name, _, a, _, b, difference in table(page)[1:6]:
            j = source.feature_names.index(name)
            assert [number(a), number(b)] == pytest.approx(source.values[[i, 12], j], rel=FOUR_DIGITS)
            assert number(difference) == pytest.approx(source.values[i, j] - source.values[12, j], rel=FOUR_DIGITS)
        page.click("#clear-B")
        assert page.is_hidden("#B")


@pytest.mark.browser
@pytest.mark.parametrize(
    ("feature", "labels"),
    [("joined", r"\d{4}|[A-Z][a-z]+"), ("city", "Bonn|Köln|Düsseldorf"), ("age", r"\N{MINUS SIGN}?\d")],
)
def test_the_axis_of_a_feature_is_labelled_by_dates_texts_or_numbers(browser, path, feature, labels):
    with browsers.opened(browser, path) as page:
        page.select_option("#feature", label=feature)
        says(page, "scatter-note", f"^Value of {feature}")
        page.wait_for_timeout(400)
        ticks = page.locator("#scatter .role-axis .role-axis-label").first.locator("text").all_text_contents()
        assert len(ticks) >= 3
        assert all(re.fullmatch(labels, tick) for tick in ticks), ticks


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_group_is_compared_with_all_other_rows_on_one_scale(browser, path, width):
    source = people()
    chosen = (source.data["city"] == "Bonn").to_numpy()
    with browsers.opened(browser, path, width=width) as page:
        assert page.locator("#first").is_visible()
        assert page.locator("#difference").is_hidden()
        page.fill("#filter", "city = bonn")
        says(page, "filtered", f"^{chosen.sum()} rows of 300$")
        page.click("#filtered-A")
        assert page.locator("#first").is_hidden()
        page.click("#others-B")
        says(page, "title-B", f"^B: mean of {(~chosen).sum()} rows$")
        difference = source.values[chosen].mean(axis=0) - source.values[~chosen].mean(axis=0)
        drawn = {name: number(text) for name, _, text in bars(page, "difference")}
        assert drawn == pytest.approx(dict(zip(source.feature_names, difference, strict=True)), rel=FOUR_DIGITS)
        sum_of_all = source.prediction[chosen].mean() - source.prediction[~chosen].mean()
        heading = page.inner_text("#title-difference").removeprefix("A \N{MINUS SIGN} B: ").split()[0]
        assert number(heading) == pytest.approx(sum_of_all, rel=FOUR_DIGITS)
        lines = "lines => lines.map(line => line.getBoundingClientRect().x)"
        places = [page.locator(f"#row-{slot} .mark-rule.role-axis-grid line").evaluate_all(lines) for slot in "AB"]
        assert len(places[0]) > 1
        assert places[0] == pytest.approx(places[1], abs=PIXELS)
        page.click("#clear-B")
        assert page.locator("#difference").is_hidden()


@pytest.mark.browser
def test_a_brush_shows_the_mean_of_its_rows(browser, path):
    source = people()
    with browsers.opened(browser, path) as page:
        page.select_option("#feature", label="age")
        page.wait_for_timeout(400)
        page.locator("#scatter").scroll_into_view_if_needed()
        box = page.locator("#scatter .background").first.bounding_box()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] - 2, steps=6)
        page.mouse.up()
        says(page, "title-A", "^A: mean of")
        page.wait_for_timeout(200)
        n = int(page.inner_text("#title-A").split()[3])
        right = np.argsort(-source.data["age"].to_numpy())[:n]  # the brush took the n rows furthest to the right
        rows = numbers(page)
        for j, name in enumerate(source.feature_names):
            assert rows[name] == pytest.approx(source.values[right, j].mean(), rel=FOUR_DIGITS, abs=FOUR_DIGITS)
        assert rows["prediction"] == pytest.approx(source.prediction[right].mean(), rel=FOUR_DIGITS)
        assert 20 < n < 200


@pytest.mark.browser
@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("city = bonn and age > 0.5", lambda data: (data.city == "Bonn") & (data.age > 0.5)),
        ("joined >= 2025-06-01", lambda data: data.joined >= "2025-06-01"),
        ("bmi = missing", lambda data: data.bmi.isna()),
        ("düssel", lambda data: data.city == "Düsseldorf"),
        ("", lambda data: data.age == data.age),
    ],
)
def test_the_filter_keeps_the_rows_that_it_says(browser, path, text, chosen):
    source = people()
    mask = chosen(source.data).to_numpy()
    with browsers.opened(browser, path) as page:
        page.fill("#filter", "age > 100")
        says(page, "filtered", "^No such row")
        page.fill("#filter", text)
        says(page, "filtered", f"^{mask.sum()} rows of 300$")
        page.click("#filtered-A")
        assert numbers(page)["age"] == pytest.approx(source.values[mask, 0].mean(), rel=FOUR_DIGITS, abs=FOUR_DIGITS)
        page.fill("#filter", "agee > 1")
        says(page, "filtered", "There is no column “agee”.*Rows unchanged")


@pytest.mark.browser
def test_truth_values_read_true_and_false(browser, tmp_path):
    data = people().data.rename(columns={"age": "garden"}).assign(garden=np.arange(300) % 3 == 0)
    with report(browser, tmp_path, people(names=list(data.columns), data=data)) as page:
        page.fill("#filter", "garden = true")
        says(page, "filtered", "^100 rows of 300$")
        page.click("#rows button:text-is('row 3')")
        says(page, "title-A", "^A: row 3$")
        assert {row[0]: row[1] for row in table(page)}["garden"] == "True"
        assert any(word.startswith("garden = True") for word, _, _ in bars(page))
        page.fill("#filter", "")
        says(page, "filtered", "^300 rows of 300$")
        page.select_option("#feature", label="garden")
        page.wait_for_function("document.querySelector('#scatter').textContent.includes('FalseTrue')")


@pytest.mark.browser
def test_names_with_the_words_of_the_filter_stand_in_quotes(browser, tmp_path):
    names = ["cut and colour", "b<=3", 'a "fine" stone', "age", "and"]
    data = people().data.set_axis(names, axis=1).assign(**{"b<=3": ["salt and pepper", "oil"] * 150})
    cut, age, salt = data["cut and colour"], data["age"], np.arange(300) % 2 == 0
    filters = {
        '"cut and colour" > 0.5': cut > 0.5,
        'age > 0 and "Cut and Colour" > 0.5 and "b<=3" = "salt and pepper"': (age > 0) & (cut > 0.5) & salt,
        '"salt and pepper"': salt,
        "'a \"fine\" stone' >= 2025-06-01": data['a "fine" stone'] >= "2025-06-01",
        '"and" > 1': data["and"] > 1,
    }
    with report(browser, tmp_path, people(names=names, data=data)) as page:
        for text, mask in filters.items():
            page.fill("#filter", text)
            says(page, "filtered", f"^{mask.sum()} rows of 300$")


@pytest.mark.browser
def test_a_bar_of_either_row_leads_to_its_feature_and_colours_say_low_and_high(browser, path):
    source = people()
    with browsers.opened(browser, path) as page:
        page.click("#others-B")
        page.locator("#row-B .mark-rect path[aria-label^='city']").click(force=True)
        says(page, "scatter-note", "^Value of city")
        page.select_option("#feature", label="age")
        page.select_option("#colour", label="bmi")
        says(page, "scatter-note", "^Value of age")
        page.wait_for_timeout(400)
        colours = page.eval_on_selector_all("#scatter .mark-symbol path", "dots => dots.map(dot => dot.getAttribute('fill'))")
        bmi = source.data["bmi"].to_numpy()
        low, high = np.nanpercentile(bmi, [5, 95])
        shades = np.round(8 * np.clip((bmi - low) / (high - low), 0, 1) + 1e-12)
        expected = ["var(--qx)" if np.isnan(shade) else f"var(--q{int(shade)})" for shade in shades]
        agree = [one == other for one, other in zip(colours[:300], expected, strict=True)]
        assert np.mean(agree) > 0.99  # cells of five digits
        assert "age" in page.locator("#scatter .mark-group.role-title").first.text_content()


@pytest.mark.browser
def test_rows_are_sorted_turned_and_copied(browser, path):
    source = people()
    with browsers.opened(browser, path) as page:
        page.click("#rows button:text-is('prediction')")
        assert number(table(page, "rows")[1][1]) == pytest.approx(source.prediction.max(), rel=FOUR_DIGITS)
        page.click("#rows button:has-text('prediction')")
        assert table(page, "rows")[1][0] == f"row {int(np.argmin(source.prediction))}"
        page.click("#after")
        assert page.inner_text("#page") == "page 2 of 15"
        page.click("#copy")
        page.wait_for_timeout(300)
        header, *lines = page.input_value("#csv").splitlines()
        assert header == '"feature","cell, A","value, A"'
        assert len(lines) == 5 + 3


@pytest.mark.browser
def test_keys_alone_choose_a_row_and_a_feature(browser, path):
    with browsers.opened(browser, path) as page:
        page.focus("#rows button:text-is('row 3')")
        page.keyboard.press("Enter")
        says(page, "title-A", "^A: row 3$")
        assert page.inner_text("#said").startswith("A: row 3. Largest values: ")
        page.focus("#feature")
        page.keyboard.press("Home")
        says(page, "scatter-note", "^Value of age")
        unnamed = page.eval_on_selector_all(
            "input, select, button, textarea",
            "all => all.filter(x => !x.labels?.length && !x.textContent && !x.ariaLabel).map(x => x.outerHTML)",
        )
        assert unnamed == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_two_widths_and_two_schemes(browser, path, tmp_path, width, scheme):
    with browsers.opened(browser, path, width=width, scheme=scheme) as page:
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for chart in ("features", "row-A", "scatter"):
            box = page.locator(f"#{chart} svg").bounding_box()
            assert width / 3 < box["width"] <= width
        page.screenshot(path=tmp_path / "page.png", full_page=True)
        picture = (image.imread(tmp_path / "page.png")[:, :, :3] * 255).astype(int)
        paper, plus, minus = {
            "light": ((255, 255, 255), (200, 80, 10), (11, 107, 179)),
            "dark": ((13, 17, 23), (255, 146, 72), (88, 174, 245)),
        }[scheme]
        assert (np.abs(picture - paper).max(axis=2) <= 2).mean() > 0.4
        for colour in (plus, minus):
            assert (np.abs(picture - colour).max(axis=2) <= 8).sum() > 300, f"nothing is drawn in {colour}"


@pytest.mark.browser
def test_a_long_name_below_the_scatter_takes_nothing_of_its_width(browser, tmp_path):
    names = ["a column with a name that somebody wrote as a whole sentence, and then another one", *"abcd"]
    path = people(names=names, data=people().data.set_axis(names, axis=1)).report(tmp_path / "page.html", interactive=True)
    with browsers.opened(browser, path, width=390) as page:
        page.select_option("#feature", label=names[0])
        page.wait_for_timeout(300)
        dots = "dots => dots.map(dot => dot.getBoundingClientRect().x)"
        assert np.ptp(page.eval_on_selector_all("#scatter .mark-symbol path", dots)) > 200


@pytest.mark.browser
def test_a_number_is_that_of_a_row_before_it_is_a_label(browser, tmp_path):
    """After a shuffle the labels of a frame are numbers as well."""
    source = linear(np.ones((4, 1)), data=pandas.DataFrame({"x0": np.ones(4)}, index=[3, 7, 1, 0]))
    with report(browser, tmp_path, source) as page:
        for word, label in (("3", r"row 3 \(0\)"), ("7", r"row 1 \(7\)"), ("row 0 (3)", r"row 0 \(3\)"), ("1", r"row 1 \(7\)")):
            page.fill("#row", word)
            page.press("#row", "Enter")
            says(page, "title-A", f"^A: {label}$")


@pytest.mark.browser
def test_times_of_day_are_exact_groups_say_mean_and_names_without_spaces_break(browser, tmp_path):
    times = pandas.date_range("2024-03-01 07:00", periods=9, freq="7h13min")
    names = ["when", "x" * 200, "both"]
    data = pandas.DataFrame({"when": times, names[1]: np.arange(9.0), "u": 1.0, "v": 4.0})
    source = linear(np.ones((9, 3)), names=names, data=data, groups={"both": ["u", "v"]})
    with browsers.opened(browser, source.report(tmp_path / "page.html", interactive=True), width=390) as page:
        for i, time in enumerate(times):
            choose(page, i)
            cells = {row[0]: row[1] for row in table(page)}
            assert (cells["when"], cells["both"]) == (f"{time:%Y-%m-%d %H:%M}", "mean 2.5")
        page.fill("#filter", f"when < {times[5]:%Y-%m-%d %H:%M}")
        says(page, "filtered", "5 rows of 9")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.browser
def test_a_tile_of_the_matrix_leads_to_the_scatter_of_its_pair(browser, tmp_path):
    with report(browser, tmp_path, bilinear(n=50, d=4)) as page:
        page.locator("#pairs .mark-rect path").nth(2).click(force=True)
        says(page, "scatter-note", "index")
        note = page.inner_text("#scatter-note")
        assert re.match(r"Shapley-Taylor interaction index of order 2 of x\d and x\d \(response\) against x\d\.", note)
        assert page.input_value("#pair") != "-1"
        page.select_option("#pair", label="x1 and x3")
        says(page, "scatter-note", "x1 and x3")


@pytest.mark.browser
def test_outputs_and_standard_errors(browser, tmp_path):
    source = people(n_outputs=3, std_error=np.full((300, 5, 3), 0.25))
    with report(browser, tmp_path, source) as page:
        page.select_option("#output", label="class 2")
        choose(page, 5)
        page.wait_for_timeout(400)
        assert numbers(page)["age"] == pytest.approx(source.values[5, 0, 2], rel=FOUR_DIGITS)
        assert numbers(page)["prediction"] == pytest.approx(source.prediction[5, 2], rel=FOUR_DIGITS)
        assert page.locator("#row-A .mark-rule.role-mark line").count() == 5
        assert "\N{PLUS-MINUS SIGN} 0.25" in bars(page)[0][2]


@pytest.mark.browser
def test_large_numbers_are_written_in_full_and_rounding_as_zero(browser, tmp_path):
    large = linear([[123456.7, -987654321.0], [1.0, 2e7]], seed=1, std_error=np.full((2, 2), 1234.0))
    with report(browser, tmp_path, large) as page:
        choose(page, 0)
        for name, value in zip(large.feature_names, large.values[0], strict=True):
            assert column(page)[name] == f"{float(f'{value:.7g}'):+,.0f}".replace("-", "\N{MINUS SIGN}")
        assert "\N{PLUS-MINUS SIGN} 1200" in bars(page)[0][2]
    tiny = linear([[1.0, 2.2e-17, -3e-9], [2.0, -1e-16, 1.0]], seed=1)
    with report(browser, tmp_path, tiny) as page:
        choose(page, 0)
        assert column(page)["x1"] == "0"
        assert numbers(page)["x2"] == pytest.approx(tiny.values[0, 2], rel=FOUR_DIGITS)
        assert "0" in [text for *_, text in bars(page)]


@pytest.mark.browser
def test_probabilities_stand_beside_log_odds_and_residuals_of_rounding_are_zero(browser, tmp_path):
    source = linear(np.random.default_rng(3).normal(size=(30, 3)), unit="log-odds of class yes")
    source = dataclasses.replace(source, residual=np.full(30, -8.9e-16))
    with report(browser, tmp_path, source) as page:
        choose(page, 4)
        probability = page.inner_text("#title-A").removeprefix("A: row 4, probability ")
        assert number(probability) == pytest.approx(1.0 / (1.0 + np.exp(-source.prediction[4])), rel=FOUR_DIGITS)
        assert column(page)["residual"] == "0"
        page.click("#others-B")
        page.wait_for_selector("#difference:not([hidden])")
        assert column(page)["baseline"] == "0"  # A less B
        assert page.inner_text("#rows").count("e\u221216") == 0


@pytest.mark.browser
def test_nothing_runs_from_hostile_names_labels_and_cells(browser, tmp_path):
    n = 3 * len(EVIL)
    X = np.random.default_rng(0).normal(size=(n, len(EVIL)))
    data = pandas.DataFrame(dict(zip(EVIL, X.T, strict=True)), index=[f"{EVIL[i % len(EVIL)]}{i}" for i in range(n)])
    data[EVIL[0]] = EVIL * 3
    words = {"model_name": EVIL[1], "unit": EVIL[2], "method": EVIL[3], "value_function": EVIL[0]}
    source = linear(X, names=EVIL, data=data, n_outputs=2, output_names=[EVIL[0], EVIL[2]], **words)
    path = source.report(tmp_path / "evil.html", interactive=True, title=EVIL[1], data_name=EVIL[2], command=EVIL[1])
    with browsers.opened(browser, path) as page:
        for index in range(len(EVIL)):
            page.select_option("#feature", index=index)
            page.select_option("#colour", index=index)
            page.wait_for_timeout(150)
        page.select_option("#output", index=1)
        page.locator("#rows button").nth(9).click()
        page.fill("#filter", "script")
        page.wait_for_timeout(500)
        page.click("#others-B")
        page.wait_for_timeout(300)
        assert page.evaluate("window.hacked") is None
        assert page.locator("script").count() == 3
        assert page.locator("img, a, iframe, object, embed, form:not(.vega-bindings), svg image, svg a").count() == 0
        assert EVIL[0] in page.inner_text("#values")


@pytest.mark.browser
def test_without_scripts_the_page_says_what_to_do(browser, path):
    with browsers.opened(browser, path, javascript=False) as page:
        assert "This page needs JavaScript" in page.inner_text("noscript")


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_the_interactive_page(tmp_path):
    saved, out = tmp_path / "saved.npz", tmp_path / "page.html"
    people().save(saved)
    assert run("report", saved, "--out", out, "--interactive") == 0
    assert "'sha256-" in out.read_text(encoding="utf-8").replace("&#39;", "'")


# --- one language of filters for page, app and command: read by Python and by the page's script -----------------------


# a table of ten rows; filters with the rows that they keep, and filters with the slip that they are refused for
COLUMNS = {
    "age": [20.0, 30.0, 40.0, 50.0, 60.0, None, 80.0, 90.0, 100.0, 0.1],
    "city": ["Bonn", "Köln", "Bonn", None, "New York", "Stadt in Rot", "missing", "Bonn", "d'Or", "Düsseldorf"],
    "joined": [f"2024-0{month}-15" for month in range(1, 10)] + ["2024-02-29"],
    "cut and colour": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, -3.5],
    "Body Mass": [1e6, 2e6, 3e6, 4e6, 5e6, 6e6, 7e6, 8e6, 9e6, -2.5e-3],
    "b<=3": ["salt and pepper", "oil"] * 5,
    "member": [True, False] * 5,
}

KEPT = [
    ("", range(10)),
    ("age > 40", [3, 4, 6, 7, 8]),
    ("age>=40 and age<80", [2, 3, 4]),
    ("age = 40", [2]),
    ("age == 40", [2]),
    ("age = 0.1", [9]),
    ("age != 40", [0, 1, 3, 4, 6, 7, 8, 9]),
    ("AGE < 30 OR age > 90", [0, 8, 9]),
    ("age < 30 or age > 40 and city = Bonn", [0, 7, 9]),
    ("(age < 30 or age > 40) and city = bonn", [0, 7]),
    ("((age < 30))", [0, 9]),
    ("city = BONN", [0, 2, 7]),
    ("city == 'Bonn'", [0, 2, 7]),
    ("city != Bonn", [1, 4, 5, 6, 8, 9]),
    ("city = New York", [4]),
    ('city = "stadt in rot"', [5]),
    ("city = Stadt in Rot", [5]),
    ("city = d'Or", [8]),
    ("city in (Bonn, Köln)", [0, 1, 2, 7]),
    ("city in Bonn, New York", [0, 2, 4, 7]),
    ("city not in (Bonn, Köln)", [4, 5, 6, 8, 9]),
    ("age in (20, 1e2)", [0, 8]),
    ("age between 30 and 50", [1, 2, 3]),
    ("age not between 30 and 90", [0, 8, 9]),
    ("age between 30 and 50 and city = Bonn", [2]),
    ("age is missing", [5]),
    ("age is not missing", [0, 1, 2, 3, 4, 6, 7, 8, 9]),
    ("city is missing or age is missing", [3, 5]),
    ("age = missing", [5]),
    ("city != missing", [0, 1, 2, 4, 5, 6, 7, 8, 9]),
    ('city = "missing"', [6]),
    ("joined < 2024-03-01", [0, 1, 9]),
    ("joined = 2024-02-29", [9]),
    ("joined between 2024-02 and 2024-04-15", [1, 2, 3, 9]),
    ("joined >= 2024-08-15 00:00", [7, 8]),
    ('"cut and colour" > 5', [6, 7, 8]),
    ("'Cut and Colour' = -3.5", [9]),
    ("body mass >= 8000000", [7, 8]),
    ("body mass = -2.5e-3", [9]),
    ("body mass < .5", [9]),
    ('"b<=3" = oil', [1, 3, 5, 7, 9]),
    ('"b<=3" = "salt and pepper" and age < 50', [0, 2]),
    ("member = true", [0, 2, 4, 6, 8]),
    ("member = 0", [1, 3, 5, 7, 9]),
    ("düssel", [9]),
    ('"salt and"', [0, 2, 4, 6, 8]),
    ("row 7", [7]),
    ("bonn and member = true", [0, 2]),
]

SLIPS = [
    ("agee > 1", "There is no column “agee”. The columns are age, city, joined, cut and colour, Body Mass, b<=3, member"),
    ("age", "A comparison is missing after “age”: =, !=, <, <=, >, >=, in, between or is missing"),
    ("age > 1 and city", "A comparison is missing after “city”: =, !=, <, <=, >, >=, in, between or is missing"),
    ("age >", "A value is missing after “>”"),
    ("age => 3", "A value is missing after “=”"),
    ("> 3", "“>” does not belong there"),
    ("and", "A condition is missing at the beginning"),
    ("age > 3 and", "A condition is missing after “and”"),
    ("age > 3 or or city = Bonn", "A condition is missing after “or”"),
    ("age > 3 )", "“)” does not belong there"),
    ("(age > 3", "“)” is missing after “3”"),
    ("age 3 > 4 < 5", "“<” does not belong there"),
    ("age between 3", "“and” is missing after “3”"),
    ("age between 3 and", "A value is missing after “and”"),
    ("age in ()", "A value is missing after “(”"),
    ("age in (1, 2", "“)” is missing after “2”"),
    ("age in", "A value is missing after “in”"),
    ("age is", "“missing” is missing after “is”"),
    ("age is not 3", "“missing” is missing after “not”"),
    ("age not 3", "“in” is missing after “not”"),
    ("age > old", "Column “age” holds numbers, and “old” is none"),
    ("age > 1,000", "“,” does not belong there"),
    ("AGE = 0x10", "Column “age” holds numbers, and “0x10” is none"),
    ("age = ", "A value is missing after “=”"),
    ("joined > 3", "Column “joined” holds dates, and “3” is none: write 2024-03-01 or 2024-03-01 14:30"),
    ("joined > 2024-02-30", "Column “joined” holds dates, and “2024-02-30” is none: write 2024-03-01 or 2024-03-01 14:30"),
    ("city > Bonn", "Column “city” holds text, which has no order: compare it with =, != or in, not with >"),
    ('city = "Bonn', 'The quotation mark of "Bonn is not closed'),
]


def frame():
    return pandas.DataFrame(COLUMNS)


@pytest.mark.parametrize(("where", "rows"), KEPT)
def test_python_keeps_the_rows(where, rows):
    np.testing.assert_array_equal(np.flatnonzero(filtered_rows(as_table(frame()), list(COLUMNS), where)), list(rows))


@pytest.mark.parametrize(("where", "slip"), SLIPS)
def test_python_names_the_slip(where, slip):
    with pytest.raises(InputError, match=re.escape(f"The filter cannot be read. {slip}. Write conditions such as")):
        filtered_rows(as_table(frame()), list(COLUMNS), where)


def test_a_filter_of_too_many_brackets_is_refused():
    with pytest.raises(
        InputError, match=re.escape("The filter cannot be read. Got 2,000 brackets, one in another. Write conditions")
    ):
        filtered_rows(as_table(frame()), list(COLUMNS), "(" * 2000 + "age > 1" + ")" * 2000)


def test_dates_as_a_library_holds_them_are_dates():
    table = as_table(frame().assign(joined=pandas.to_datetime(frame()["joined"])))
    assert filtered_rows(table, list(COLUMNS), "joined < 2024-03-01").sum() == 3


def test_labels_of_several_levels_are_searched_as_the_page_writes_them():
    labels = pandas.MultiIndex.from_product([["North", "south"], range(5)])
    rows = filtered_rows(as_table(frame().set_axis(labels)), list(COLUMNS), '"row 3 (north, 3)" or "south, 2"')
    assert np.flatnonzero(rows).tolist() == [3, 7]


@pytest.mark.browser
def test_the_page_keeps_the_same_rows_and_names_the_same_slips(browser, tmp_path):
    source = linear(np.ones((10, len(COLUMNS))), names=list(COLUMNS), data=frame())
    path = source.report(tmp_path / "page.html", interactive=True)
    with browsers.opened(browser, path) as page:
        # The filter waits for a pause in typing: 95 pauses are most of this test.
        page.evaluate("() => { const later = setTimeout; window.setTimeout = (call) => later(call); }")

        def said(where):
            page.evaluate("document.getElementById('filtered').textContent = ''")
            page.fill("#filter", f"{where} ")  # a space more, so that an empty filter is a change too
            says(page, "filtered", ".")
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


def test_names_that_differ_in_what_is_cut_stay_different(browser, tmp_path):
    names = [f"measurement_number_{month}_of_the_long_survey" for month in (7, 11, 12, 123)]
    source = linear(np.eye(4) * [1.0, 2.0, 3.0, 4.0], names=names)
    with report(browser, tmp_path, source) as page:
        for picture in ("#features", "#row-A"):
            text = " ".join(page.locator(f"{picture} text").all_text_contents())
            assert all(f"\u2026{month}_of" in text for month in (7, 11, 12, 123)), text
