"""Comparisons of explanations against plain NumPy, their intervals against coverage, their MMD against the function itself."""

import re
from decimal import Decimal

import numpy as np
import pandas
import pytest

import browser as browsers
from exactshap import decompose_mmd
from exactshap.errors import InputError, InputTypeError, UnknownNameError
from exactshap.results.comparison import Comparison, by, compare
from exactshap.results.plots import prepare_marginals
from explanation_factory import bilinear, linear
from tolerances import roundings


def two(n=60, shift=1.0, **changes):
    rng = np.random.default_rng(0)
    return linear(rng.normal(size=(n, 3)), **changes), linear(
        rng.normal(size=(n + 20, 3)) + np.array([0.0, shift, 0.0]), **changes
    )


def test_differences_are_those_of_the_means_and_add_up_to_the_change_of_the_predictions():
    first, second = two()
    found = first.compare(second, drift=False)
    np.testing.assert_array_equal(found.difference, second.values.mean(axis=0) - first.values.mean(axis=0))
    np.testing.assert_array_equal(found.magnitudes[1], np.abs(second.values).mean(axis=0))
    moved = second.prediction.mean() - first.prediction.mean()
    parts = np.diff(found.baselines)[0] + found.difference.sum() + np.diff(found.residuals)[0]
    np.testing.assert_allclose(parts, moved, rtol=roundings(5_000))
    assert found.drift is None


def test_the_largest_differences_come_first_whatever_their_sign():
    found = linear(np.zeros((4, 3))).compare(linear(np.tile([1.0, 5.0, -2.0], (4, 1))), drift=False)
    order = [f"x{j}" for j in np.argsort(-np.abs(found.difference))]
    assert found.difference[int(order[0][1:])] < 0 < found.difference.max()
    assert [row[0] for row in found.rows()[1]] == order
    assert [row[0] for row in found.rows(1)[1]] == order[:1]


def test_several_outputs_are_compared_one_by_one():
    first, second = two(n_outputs=2)
    found = first.compare(second, drift=False)
    for k in range(2):
        single = first.output(k).compare(second.output(k).__class__(**fields(second.output(k))), drift=False, n_bootstrap=0)
        np.testing.assert_array_equal(found.difference[:, k], single.difference)
    assert found.intervals.shape == (3, 2, 2)
    assert list(found.to_frame("pandas")["output"]) == ["class 0", "class 1"] * 3
    assert "x1[class 0]" in repr(found)


def fields(explanation):
    return explanation.__reduce__()[0].keywords


def test_intervals_are_seeded_and_cover_the_difference_as_often_as_they_say():
    first, second = two()
    assert np.isnan(first[:1].compare(second, drift=False).intervals).all()
    rng, hits, n_trials = np.random.default_rng(1), 0, 400
    for trial in range(n_trials):
        first, second = (linear(rng.exponential(size=(n, 1)), seed=3) for n in (25, 40))
        low, high = compare(first, second, drift=False, n_bootstrap=300, random_state=trial).intervals[0]
        hits += low <= 0.0 <= high
    assert 0.91 <= hits / n_trials <= 0.985  # 95 % but for the skewness of few rows; four standard errors are 0.044
    one, other = (compare(*two(), drift=False, random_state=s).intervals for s in (0, 0))
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, compare(*two(), drift=False, random_state=1).intervals)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 60), (5, 60), (5, 5)])
def test_intervals_of_few_rows_cover(sizes):
    """Percentiles of the bootstrap alone hold in 0.6 of the cases for two rows, and in 0.85 for five."""
    rng = np.random.default_rng(sum(sizes))
    groups = [linear(np.zeros((n, 600)), values=rng.normal(size=(n, 600)), data=None) for n in sizes]
    found = compare(*groups, drift=False, n_bootstrap=400)
    assert np.mean((found.intervals[:, 0] <= 0.0) & (found.intervals[:, 1] >= 0.0)) > 0.89
    assert np.mean((found.mean_intervals[..., 0] <= 0.0) & (found.mean_intervals[..., 1] >= 0.0)) > 0.89


def test_groups_of_close_numbers_stay_apart():
    """Six digits made days such as 20240101 and 20240102 one group, without a word, and four digits quarters of close numbers."""
    days = 20240101.0 + np.arange(12) % 3
    found = linear(np.ones((12, 1))).by(days)
    assert found.labels == ("20240101", "20240102", "20240103")
    assert tuple(found.n_rows) == (4, 4, 4)
    found = linear(np.ones((20, 1))).by(100_000.0 + np.arange(20), bins=2)
    assert found.labels == ("1e+05 to 1.0001e+05", "1.0001e+05 to 1.0002e+05")
    assert tuple(linear(np.ones((20, 1))).by(1.0 + 1e-9 * np.arange(20)).n_rows) == (5, 5, 5, 5)


def test_infinite_cells_belong_to_the_groups_at_the_ends():
    cells = np.r_[np.inf, -np.inf, np.arange(20.0), np.nan]
    found = linear(np.ones((23, 1))).by(cells, bins=2)
    assert found.labels == ("-inf to 9.5", "9.5 to inf", "missing")
    assert tuple(found.n_rows) == (11, 11, 1)


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_many_dates_are_cut_at_their_quantiles(unit):
    days = np.datetime64("2024-01-01", unit) + np.arange(40) * np.timedelta64(1, "D").astype(f"m8[{unit}]")
    found = linear(np.ones((41, 1))).by(np.r_[days, np.datetime64("NaT")], bins=2)
    assert found.labels == ("2024-01-01 to 2024-01-20", "2024-01-20 to 2024-02-09", "missing")
    assert tuple(found.n_rows) == (20, 20, 1)
    assert linear(np.ones((40, 1))).by(days.repeat(20)[:40]).labels == ("2024-01-01", "2024-01-02")
    of_python = np.array([*days.astype("M8[us]").astype(object), None])
    np.testing.assert_array_equal(linear(np.ones((41, 1))).by(of_python, bins=2).labels, found.labels)
    waits = linear(np.ones((20, 1))).by(np.arange(20) * np.timedelta64(1, "h"), bins=2)
    assert waits.labels == ("0 seconds to 34200 seconds", "34200 seconds to 68400 seconds")


def test_ordered_categories_keep_their_order():
    sizes = pandas.Categorical(["s", "m", None, "l"] * 3, categories=["s", "m", "l"], ordered=True)
    rows = pandas.DataFrame({"size": sizes, "x": np.arange(12.0)})
    explained = linear(np.ones((12, 2)), names=["size", "x"], data=rows)
    assert explained.by("size").labels == ("s", "m", "l", "missing")
    assert explained.by(0).labels == ("s", "m", "l", "missing")
    assert explained.by(rows["size"]).labels == ("s", "m", "l", "missing")
    unordered = linear(np.ones((12, 2)), names=["size", "x"], data=rows.assign(size=sizes.as_unordered()))
    assert unordered.by("size").labels == ("l", "m", "s", "missing")


@pytest.mark.parametrize("kind", [float, Decimal])
def test_numbers_of_python_are_cut_at_their_quantiles(kind):
    cells = np.array([kind(k) / 2 for k in range(20)] + [None], object)
    assert linear(np.ones((21, 1))).by(cells, bins=2).labels == ("0 to 4.75", "4.75 to 9.5", "missing")


def test_the_word_missing_is_no_missing_cell():
    found = linear(np.ones((3, 1))).by(np.array(["missing", None, "here"], object))
    assert found.labels == ("here", "missing", "no value")


def test_the_drift_is_the_mmd_of_the_data():
    first, second = two()
    found = first.compare(second, n_permutations=19).drift
    expected = decompose_mmd(first.data, second.data, bandwidth="column-median", n_permutations=19)
    np.testing.assert_allclose(found.values, expected.values, atol=roundings(500))
    np.testing.assert_array_equal(found.p_adjusted, expected.p_adjusted)
    assert found.feature_names == first.feature_names


def test_dates_are_compared_as_days():
    """Dates without repeats, as categories, would make the kernel of any two rows 0, and the data equal."""
    days = pandas.DataFrame({"day": pandas.date_range("2024-01-01", periods=40), "x": np.arange(40.0) % 7})
    explained = linear(np.arange(80.0).reshape(40, 2), names=["day", "x"], data=days)
    found = explained[:20].compare(explained[20:], n_permutations=19)
    numbers = days.assign(day=np.arange(40.0))
    expected = decompose_mmd(numbers[:20], numbers[20:], bandwidth="column-median", n_permutations=19)
    np.testing.assert_allclose(found.drift.values, expected.values, atol=roundings(500))
    assert found.drift.p_value < 0.1


def test_text_missing_numbers_and_groups_are_one_player_each(tmp_path):
    rng = np.random.default_rng(0)
    n = 80
    table = pandas.DataFrame({"age": rng.normal(size=n), "town": rng.choice(["u", "v", None], n), "a": rng.normal(size=n)})
    table["b"] = table["a"] ** 2
    explanation = linear(rng.normal(size=(n, 3)), names=["age", "town", "both"], data=table, groups={"both": ["a", "b"]})
    late = np.arange(n) >= 40
    changed = table.assign(age=table["age"].where(~(late & (table.index % 2 == 0))))
    holes = linear(rng.normal(size=(n, 3)), names=["age", "town", "both"], data=changed, groups={"both": ["a", "b"]})
    assert explanation[~late].compare(explanation[late]).drift.p_value > 0.05
    found = holes[~late].compare(holes[late])
    assert found.drift.feature_names == ("age", "town", "both")
    assert found.drift.values.argmax() == 0  # only that numbers are missing tells the halves apart
    assert found.drift.p_adjusted[0] == 0.01
    assert found.notes == ("Missing numbers of age count as a category of their own.",)
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "missing: 0%, 50%" in page


def test_many_rows_are_compared_in_blocks_and_small_groups_with_a_choice_of_the_others():
    rng = np.random.default_rng(0)
    many, few = linear(rng.normal(size=(6000, 2))), linear(rng.normal(size=(30, 2)))
    blocks = many[:3000].compare(many[3000:], n_permutations=0)
    assert blocks.drift.details["n_blocks"] == 3
    assert "random blocks" in blocks.notes[0]
    chosen = many.compare(few, n_permutations=0)
    assert chosen.drift.details["n_rows"] == (4970, 30)
    assert "random choice of 4,970 rows" in chosen.notes[0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"value_function": "functional"}, "compared with the same value function"),
        ({"names": ["x0", "x1", "z"]}, "compared with the same features"),
        ({"unit": "log-odds"}, "compared with the same unit"),
    ],
)
def test_different_questions_are_not_compared(change, text):
    first, _ = two()
    with pytest.raises(InputError, match=text):
        first.compare(two(**change)[1])


def test_columns_of_frames_are_compared_by_name():
    rows = pandas.DataFrame({"a": np.arange(30.0), "b": 5.0 + np.arange(30.0) % 2})
    turned, groups = rows[["b", "a"]], {"p": ["a"], "q": ["b"]}
    first, second = (linear(np.ones((30, 2)), names=["p", "q"], data=data, groups=groups) for data in (rows, turned))
    np.testing.assert_array_equal(first.compare(second).drift.values, first.compare(first).drift.values)
    (marginal,) = prepare_marginals(rows, turned, ["b"])
    np.testing.assert_array_equal(*marginal.density)
    with pytest.raises(InputError, match="no column 'a'"):
        prepare_marginals(rows, rows[["b"]], ["a"])


def test_what_else_differs_is_said():
    first, second = two()
    other = type(first)(**(fields(second) | {"background_hash": "a" * 64, "background_size": 3, "model_name": "Other"}))
    notes = " ".join(first.compare(other, drift=False).notes)
    assert "backgrounds differ" in notes
    assert "models differ: LinearModel and Other" in notes
    again = type(first)(**(fields(second) | {"baseline": second.baseline + 1.0, "prediction": second.prediction + 1.0}))
    assert first.compare(again, drift=False).notes == (
        "The models, or weights of the background, differ: without another background they have other baselines.",
    )
    assert not first.compare(second, drift=False).notes
    with pytest.raises(InputTypeError, match="with another one"):
        first.compare(first.values)
    for labels in ("june", ("june",)):
        with pytest.raises(InputError, match="two names"):
            first.compare(second, labels=labels)


def test_data_that_cannot_be_compared_leave_the_rest():
    first, second = two()
    bad = second.data.copy()
    bad[3, 0] = np.inf
    found = first.compare(type(first)(**(fields(second) | {"data": bad})))
    assert found.drift is None
    assert "infinity" in found.notes[0]
    assert "holds none" in first.compare(two(data=None)[1]).notes[0]


def test_cohorts_are_the_groups_and_each_is_held_against_the_rest():
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"sex": rng.choice(["f", "m", None], 90), "age": rng.normal(size=90)})
    explanation = linear(rng.normal(size=(90, 2)), names=["sex", "age"], data=X)
    cohorts = explanation.by("sex")
    assert cohorts.labels == ("f", "m", "missing")
    for label, mean in zip(cohorts, cohorts.means, strict=True):
        inside = X["sex"].isna() if label == "missing" else (X["sex"] == label)
        np.testing.assert_array_equal(mean, explanation.values[inside].mean(axis=0))
        expected = explanation.values[inside].mean(axis=0) - explanation.values[~inside].mean(axis=0)
        np.testing.assert_array_equal(cohorts[label].difference, expected)
    assert len(cohorts.to_frame()) == 6
    quarters = explanation.by("age")
    assert quarters.n_rows == (23, 22, 22, 23) or sum(quarters.n_rows) == 90
    assert len(quarters) == 4
    np.testing.assert_array_equal(by(explanation, X["sex"].fillna("missing")).means, cohorts.means)


def test_groups_that_make_no_sense_are_refused():
    explanation = two()[0]
    for column, text in (
        ("x9", "no column 'x9'"),
        (np.zeros(60), "makes 1 group"),
        (np.ones(3), "one label for each row"),
        (7, "no column 7"),
        (True, "no column True"),
    ):
        with pytest.raises((InputError, InputTypeError), match=text):
            explanation.by(column)
    with pytest.raises(UnknownNameError, match="no group 'z'"):
        explanation.by(np.arange(60) % 2)["z"]


def test_pictures_and_words(tmp_path):
    first, second = two(names=["$a$", "<b>", "c"], n_outputs=2)
    found = first.compare(second, labels=("may", "<june>"), n_permutations=19)
    assert isinstance(found, Comparison)
    assert "&lt;june&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    with pytest.raises(InputError, match="one output"):
        found.plot()
    axes = found.plot(output="class 1")
    np.testing.assert_allclose(sorted(p.get_width() for p in axes.patches), sorted(found.difference[:, 1]))
    assert len(axes.figure.axes) == 2
    axes.figure.savefig(tmp_path / "a.png")
    cohorts = first.by(np.arange(60) % 3)
    cohorts.plot(output=0).figure.savefig(tmp_path / "b.png")
    with pytest.raises(InputError, match="has a single output"):
        first.output(0).compare(second.output(0), drift=False).plot(output="class 1")
    assert "60" not in cohorts._repr_html_().split("<strong>")[0]


# --- names beside values ----------------------------------------------------------------------------------------------


def test_players_are_selected_and_summarised_by_name():
    explanation, _ = two(names=["age", "sex", "fare"])
    mask = explanation.values[:, 0] > 0
    np.testing.assert_array_equal(explanation[mask, "sex"], explanation.values[mask, 1])
    np.testing.assert_array_equal(explanation[pandas.Series(mask)].values, explanation.values[mask])
    np.testing.assert_array_equal(explanation[:, ["fare", 0]], explanation.values[:, [2, 0]])
    np.testing.assert_array_equal(explanation[:5, [True, False, True]]["fare"], explanation.values[:5, 2])
    frame = explanation.to_frame("pandas")
    expected = frame.abs().mean().sort_values(ascending=False)
    ranking = explanation.ranking()
    assert ranking.names == tuple(expected.index)
    np.testing.assert_allclose(ranking.values, expected, rtol=roundings(500))
    np.testing.assert_allclose(abs(explanation).max(), frame.abs().max(), rtol=roundings(500))
    assert ranking.head(1).names == ranking.names[:1]
    assert list(ranking.to_frame().columns) == ["player", "value"]
    assert "<table" in explanation.mean()._repr_html_()
    assert bilinear()[:2, "x1"].shape == (2,)
    with pytest.raises(UnknownNameError, match="Did you mean 'sex'"):
        explanation[:, "sexx"]
    with pytest.raises(InputError, match="several rows"):
        explanation.abs().sort_values()
    with pytest.raises(InputError, match="several outputs"):
        two(n_outputs=2)[0].ranking()


@pytest.mark.parametrize("n_groups", [2, 3, 6])
def test_marks_of_one_player_stand_closer_than_players(n_groups):
    source = linear(np.random.default_rng(0).normal(size=(30, 3)))
    ax = source.by(np.arange(30) % n_groups).plot()
    marks = np.sort([y for line in ax.lines for y in line.get_ydata() if line.get_marker() == "o"]).reshape(3, n_groups)
    assert np.diff(marks, axis=1).max() < (marks[1:, 0] - marks[:-1, -1]).min()


def test_a_change_is_an_interval_beyond_the_threshold():
    first, second = two(n=200, shift=2.0)
    found = first.compare(second, drift=False)
    low, high = found.intervals[:, 0], found.intervals[:, 1]
    surely = np.maximum(np.maximum(low, -high), 0.0)  # up to here a change is sure
    for j, name in enumerate(found.feature_names):
        assert (name in found.changed(0.99 * surely[j])) == (surely[j] > 0)
        assert name not in found.changed(1.01 * surely[j] + 1e-9)
        assert (name in found.changed({name: 0.0})) == (surely[j] > 0)
    default = 0.1 * found.magnitudes[0].max()
    assert found.changed() == found.changed(default) == found.changed({}) == ("x1",)
    with pytest.raises(UnknownNameError, match="x0"):
        found.changed({"x00": 1.0})
    for bad in (-1.0, "much", {"x1": "much"}):
        with pytest.raises(InputError, match="threshold"):
            found.changed(bad)


@pytest.mark.parametrize("n_outputs", [None, 2])
def test_the_page_of_a_comparison_says_what_changed(tmp_path, n_outputs):
    first, second = two(n=80, shift=3.0, n_outputs=n_outputs, names=["age", "<b>bmi</b>", "fare"])
    found = first.compare(second, labels=("may", "june"), n_permutations=19)
    path = found.report(tmp_path / "june.html", threshold=0.3)
    page = path.read_text(encoding="utf-8")
    assert "june compared with may" in page
    assert "<b>bmi" not in page
    assert "&lt;b&gt;bmi" in page
    low, high = found.intervals[..., 0], found.intervals[..., 1]
    assert page.count('class="changed">changed') == ((low > 0.3) | (high < -0.3)).sum() > 0
    assert page.count("<svg") == 2 + 3  # differences and data, and each column in both months
    assert "contributions to MMD" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace('http-equiv="Content', "")
    steady = first.compare(first, drift=False).report(tmp_path / "may.html", threshold=0.5).read_text(encoding="utf-8")
    assert "No change beyond the threshold" in steady
    back = second.compare(first, drift=False).report(tmp_path / "back.html").read_text(encoding="utf-8")
    assert "\N{MINUS SIGN}" in back
    assert not re.findall(r"<td>[^<]*(?<![\w.])-\d", back)
    assert steady.count("<svg") == 1 + 3
    with pytest.raises(InputError, match="html"):
        found.report(tmp_path / "june.txt")


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280, "paper"])
def test_a_browser_shows_and_prints_the_page_of_a_comparison_within_its_width(tmp_path, width):
    first, second = two(n=80, shift=3.0, names=["age", "a rather long name of a column, as people have them", "fare"])
    labels = ("the month of May", "the month of June")
    path = first.compare(second, labels=labels, n_permutations=19).report(tmp_path / "june.html", threshold=0.3)
    a4 = round((210 - 2 * 14) / 25.4 * 96)  # between the margins
    pixels = a4 if width == "paper" else width
    with browsers.launched() as browser, browsers.opened(browser, path, width=pixels, javascript=None) as page:
        assert width == "paper" or page.evaluate("document.documentElement.scrollWidth") == width
        assert "Changes beyond the threshold" in page.inner_text("header")
        assert page.locator("svg").first.bounding_box()["width"] > 0.25 * pixels
        if width == "paper":
            page.emulate_media(media="print")
            room = page.evaluate("document.querySelector('main').getBoundingClientRect().right")
            ends = "[...document.querySelectorAll('td')].map(c => c.getBoundingClientRect().right)"
            assert page.evaluate(f"Math.max(...{ends})") <= room + 1
