import dataclasses
import itertools
import re
import sys

import matplotlib.image as image
import numpy as np
import pandas
import pytest
from catboost import CatBoostClassifier
from interpret import glassbox
from lightgbm import LGBMClassifier
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC
from xgboost import XGBClassifier

import browser as browsers
from exactshap import decompose_hsic, decompose_mmd, explain
from exactshap._runtime.words import in_words
from exactshap.errors import InputError
from exactshap.estimators import ShapleyKernelClassifier
from exactshap.results.data import observe, response
from exactshap.results.explanation import fingerprint
from exactshap.results.plots import current_palette, palette
from exactshap.results.report import _figures as figures
from exactshap.results.report import _svg as svg
from exactshap.results.report import render, write_shares_report
from exactshap.results.report._figures import choose_rows, content
from exactshap.results.report._interactive import pack, render_interactive
from explanation_factory import bilinear, linear
from pages import EVIL as HOSTILE
from pages import Page
from tolerances import FOUR_DIGITS, SINGLE_RESPONSE, roundings

EVIL = HOSTILE[0] + "&'\"{{ 7*7 }}"


def rows(n=60, d=4, **changes):
    X = np.random.default_rng(0).normal(size=(n, d))
    return linear(X, **({"value_function": "interventional", "background_size": 7, "background_hash": "ab" * 32} | changes))


@pytest.mark.parametrize("interactive", [False, True])
def test_sampled_values_do_not_wear_the_certificate_of_exact_ones(interactive):
    sampled = rows(n=4, std_error=np.full((4, 4), 0.25), n_evaluations=400)
    make = render_interactive if interactive else render
    text = Page(make(sampled)).text
    assert "Estimates, not exact values Sampled from 100 coalitions a row: standard errors of 0.25 typically" in text
    assert "Certificate passed" not in text
    assert "Certificate passed" in Page(make(rows(n=4))).text
    assert "value_function='interventional', budget=100)" in text  # the call that gives the report again
    assert "budget=" not in Page(make(rows(n=4))).text


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_holds_the_key_facts():
    page = Page(render(rows(), data_name="people.csv", command="exactshap explain m.skops people.csv"))
    for fact in (
        "Explanation of LinearModel",
        "Exact Shapley values of 60 rows",
        "Certificate passed",
        "people.csv, 60 rows x 4 features",
        "v(S) is the mean prediction over the background rows",
        "7 rows, SHA-256 abababababab",
        "closed form",
        "exactshap explain m.skops people.csv",
        "numpy " + np.__version__,
        "lowest prediction",
        "highest prediction",
        "These numbers describe the model, not the world",
    ):
        assert fact in page.text

    assert fingerprint(rows().data) in page.text


def test_the_page_of_one_row_speaks_of_one_row():
    page = Page(render(linear(np.random.default_rng(0).normal(size=(1, 3))))).text
    assert "Shapley values of 1 row, written" in page
    assert "1 row x 3 features" in page
    assert "One row in detail" in page
    for words in ("How the strongest features act", "Chosen to spread", "lowest prediction", "1 rows", "Means over"):
        assert words not in page


def test_the_table_holds_the_numbers_of_all_rows():
    source = rows(n=3000)
    page = Page(render(source))
    strength = np.abs(source.values).mean(axis=0)
    places = svg.decimals([*source.values.min(axis=0), *source.values.max(axis=0)])
    for j in range(4):
        numbers = [svg.fixed(strength[j], places)]
        numbers += [svg.fixed(column, places, sign=True) for column in (source.values[:, j].mean(), source.values[:, j].min())]
        assert f"x{j} " + " ".join(numbers) in page.text
    assert "1,000 rows drawn at random (seed 0) out of 3,000; numbers use all rows" in page.text


def test_no_scripts_no_requests_and_text_of_the_user_is_escaped_wherever_it_is_shown():
    X = np.random.default_rng(0).normal(size=(20, 3))
    data = pandas.DataFrame({EVIL: X[:, 0], "city": [EVIL, "b"] * 10, "c": X[:, 2]}, index=[f"{EVIL}{i}" for i in range(20)])
    source = linear(X, names=[EVIL, "city", "c"], data=data, model_name=EVIL, unit=EVIL, method=EVIL, value_function=EVIL)
    page = Page(render(source, title=EVIL, data_name=EVIL, command=EVIL))
    page.assert_runs_nothing()
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page.html)
    assert EVIL in page.text
    outputs = Page(render(linear(X, n_outputs=2, output_names=[EVIL, "b"])))
    assert "script" not in outputs.tags
    assert f"Output “{EVIL}”" in outputs.text


@pytest.mark.parametrize(
    "source",
    [
        rows(n=1),
        rows(n=2, d=1),
        rows(d=40),
        rows(data=None),
        rows(n_outputs=3),
        rows(n_outputs=9),
        rows(std_error=np.full((60, 4), 0.2), n_evaluations=1234),
        rows(covariances=np.tile(np.eye(4), (60, 1, 1))),
        rows(values=rows().values / 2, index="banzhaf"),
        rows(residual=np.full(60, 0.5), prediction=rows().prediction + 0.5),
        linear(np.zeros((5, 3))),
        linear(np.random.default_rng(0).normal(size=(50_000, 12)), names=[f"long name of column {j}" for j in range(12)]),
        linear(np.full((5, 3), 1e-300)),
        linear(np.random.default_rng(0).normal(size=(5, 3)) * 1e12),
        linear(
            np.where(np.eye(6, 3) > 0, np.nan, 1.0), values=np.ones((6, 3)), prediction=np.full(6, 4.0), residual=np.zeros(6)
        ),
        bilinear(n=30, d=6),
        bilinear(n=5, d=30),
    ],
)
def test_awkward_explanations_give_whole_pages(source):
    html = render(source)
    page = Page(html)
    assert not re.search(r'"[^"]*\b(nan|inf)\b[^"]*"', " ".join(re.findall(r"<(?:path|rect|line|text)[^>]*>", html)))
    assert ("Certificate FAILED" in page.text) == (not source.certificate().passed)
    assert ("Sampled" in page.text) == (not source.exact)
    assert ("Which features act together" in page.text) == (source.order == 2)
    named = source.output_names is not None and len(source.output_names) == 9
    assert ("Not drawn: outputs class 4, class 5, class 6, class 7, class 8" in page.text) == named
    assert len(html.encode()) < 2_000_000


def test_the_same_explanation_gives_the_same_page():
    def body(html):
        return re.sub(r"written \d{4}-\d\d-\d\d \d\d:\d\d UTC", "", html)

    assert body(render(rows(n=2500))) == body(render(rows(n=2500)))
    assert body(render(rows(n=2500), seed=1)) != body(render(rows(n=2500)))


def test_bad_requests_are_refused(monkeypatch):
    with pytest.raises(InputError, match="A report needs at least one row"):
        render(linear(np.empty((0, 2))))
    for wrong in (np.nan, np.inf):
        with pytest.raises(InputError, match=r"A report needs finite values\. Row 1 has NaN or infinity"):
            render(dataclasses.replace(linear(np.ones((2, 2))), values=[[1.0, 2.0], [3.0, wrong]]))
    with pytest.raises(InputError, match="'max_display' parameter must be an int >= 1"):
        render(rows(), max_display=0)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"A report needs jinja2.*pip install \"exactshap\[report\]\""):
        render(rows())


# --- what is prepared -------------------------------------------------------------------------------------------------


def prepared(source, **settings):
    defaults = {"drawn": np.arange(source.n_rows), "max_display": 10, "n_rows": 5}
    return content(source, **(defaults | settings))


def test_chosen_rows_are_the_quantiles_of_the_predictions():
    prediction = np.random.default_rng(3).permutation(np.arange(101.0))
    chosen = choose_rows(prediction)
    assert [prediction[i] for i, _ in chosen] == [0, 25, 50, 75, 100]
    assert [place for _, place in chosen] == ["lowest", "lower quartile", "median", "upper quartile", "highest"]
    assert len(choose_rows(np.ones(3))) == 3
    assert choose_rows(np.arange(5.0), 0) == []


def test_a_drawn_row_leads_from_the_baseline_to_the_prediction():
    source = rows(d=15)
    for row, (i, _) in zip(prepared(source).rows, choose_rows(source.prediction), strict=True):
        ends = row.starts + row.values
        assert row.starts[0] == source.baseline[i]
        np.testing.assert_allclose(row.starts[1:], ends[:-1], rtol=roundings(50))
        np.testing.assert_allclose(ends[-1], source.prediction[i], rtol=roundings(5_000))
        assert len(row.labels) == 10
        order = np.argsort(-np.abs(source.values[i]))
        np.testing.assert_array_equal(row.values[:9], source.values[i][order[:9]])
        assert row.labels[0] == f"x{order[0]} = {in_words(source.data[i, order[0]])}"
        assert row.labels[-1] == "6 other features"
        assert row.errors is None
    half = prepared(rows(values=rows().values / 2, index="banzhaf")).rows[0]
    assert not half.additive
    np.testing.assert_array_equal(half.starts, 0.0)  # what does not add up is bars around zero
    np.testing.assert_array_equal(prepared(rows(std_error=np.full((60, 4), 0.2))).rows[0].errors, 0.2)
    np.testing.assert_array_equal(prepared(rows(covariances=np.tile(4 * np.eye(4), (60, 1, 1)))).rows[0].errors, 2.0)


def test_features_are_ordered_by_strength_and_text_has_no_shade():
    X = np.random.default_rng(0).normal(size=(20, 3))
    data = pandas.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 10, "c": X[:, 2]})
    view = prepared(linear(X, names=list("abc"), data=data))
    assert list(view.strength) == sorted(view.strength, reverse=True)
    j = view.names.index("b")
    assert np.isnan(view.numbers[:, j]).all()
    assert [axis.categories for axis, _ in view.dependences if axis.name == "b"] == [("u", "v")]
    truths = prepared(linear(X, names=list("abc"), data=data.assign(a=X[:, 0] > 0)))
    gaps = prepared(linear(X, names=list("abc"), data=data.assign(a=pandas.array([None, True] * 10, dtype="boolean"))))
    for drawn in (truths, gaps):
        assert {axis.name: axis.categories for axis, _ in drawn.dependences} == {
            "a": ("False", "True"),
            "b": ("u", "v"),
            "c": None,
        }


def test_pairs_are_mean_magnitudes():
    source = bilinear(n=20, d=5)
    pairs = prepared(source).pairs
    strength, number = np.abs(source.interactions).mean(axis=0), source.feature_names.index
    order = [number(name) for name in pairs.names]
    np.testing.assert_allclose(pairs.matrix, strength[np.ix_(order, order)], rtol=roundings(50))
    expected = sorted((strength[j, k] for j in range(5) for k in range(j)), reverse=True)
    np.testing.assert_allclose([mean for _, _, mean in pairs.strongest], expected, rtol=roundings(50))
    for first, second, mean in pairs.strongest:
        assert mean == pytest.approx(strength[number(first), number(second)], rel=roundings(50))
    assert f"{pairs.strongest[0][0]} {pairs.strongest[0][1]} " in Page(render(source)).text


# --- what is drawn ----------------------------------------------------------------------------------------------------


def test_scales_have_round_ticks_inside():
    scale = svg.Scale.over(np.array([-0.013, 0.094]), 0, 100)
    assert scale.ticks(5) == [0.0, 0.02, 0.04, 0.06, 0.08]
    ends = [(0, 1), (-3e-9, 2e-9), (1e6, 1e6 + 1), (-5, -4), (0, 1e12), (-1e308, 1e308), (-1.7e308, 1.79e308), (0, 5e-324)]
    for low, high in ends:
        scale = svg.Scale.over(np.array([low, high], float), 0, 100)
        ticks = scale.ticks(5)
        assert 2 <= len(ticks) <= 7
        assert all(scale.low <= tick <= scale.high for tick in ticks)
        assert float(scale(scale.low)) == 0
        assert float(scale(scale.high)) == pytest.approx(100)
    years = svg.Scale.over(np.array([2015.0, 2024.0]), 0, 100, margin=0.0)
    assert (years.low, years.high) == (2015.0, 2024.0)
    for value in (0.0, 5.0, -1e-300):
        scale = svg.Scale.over(np.array([value, value]), 0, 100)
        assert scale.low < scale.high


def test_swarm_dots_of_one_place_do_not_overlap():
    offsets = figures.swarm_offsets(np.zeros(5), 2.0, 100.0)
    assert sorted(offsets) == [-8.0, -4.0, 0.0, 4.0, 8.0]
    assert np.abs(figures.swarm_offsets(np.zeros(1000), 2.0, 15.0)).max() <= 15.0
    assert figures.swarm_offsets(np.arange(50.0), 2.0, 15.0).tolist() == [0.0] * 50


def test_every_dot_is_drawn_once():
    source = rows(n=37)
    html = figures.beeswarm(source.values, source.data, source.feature_names, label="value")
    assert html.count("h0") == 37 * 4
    assert figures.dependence(source.data[:, 0], source.values[:, 0], "a", None, label="value").count("h0") == 37


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    X = np.random.default_rng(0).normal(size=(200, 5))
    names = [EVIL, "age", "bmi", "city", "x4"]
    data = pandas.DataFrame({**dict(zip(names, X.T, strict=True)), "city": np.where(X[:, 3] > 0, "NY", "LA")})
    source = linear(X, names=names, data=data, value_function="interventional", background_size=7)
    return source.report(tmp_path_factory.mktemp("report") / "report.html", data_name="people.csv")


@pytest.fixture(scope="module")
def browser():
    with browsers.launched() as browser:
        yield browser


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_a_real_browser_finds_the_key_facts_and_draws_a_picture(browser, page, tmp_path, dark):
    with browsers.opened(browser, page, scheme="dark" if dark else "light", javascript=None) as shown:
        parsed = Page(shown.content())
        shown.screenshot(path=tmp_path / "report.png", full_page=True)
    for fact in (
        "Certificate passed",
        "people.csv, 200 rows x 5 features",
        "interventional",
        "How to reproduce",
        "median prediction",
    ):
        assert fact in parsed.text
    assert EVIL in parsed.text
    assert "script" not in parsed.tags
    assert parsed.tags.count("svg") == 2 + 5 + 5
    picture = (image.imread(tmp_path / "report.png")[:, :, :3] * 255).astype(int)
    paper, plus = ((13, 17, 23), (255, 146, 72)) if dark else ((255, 255, 255), (200, 80, 10))
    share = (np.abs(picture - paper).max(axis=2) <= 2).mean()
    assert 0.4 < share < 0.97, f"{share:.0%} of the picture is paper"
    accent = (88, 174, 245) if dark else (11, 107, 179)
    for colour in (plus, accent):
        assert (np.abs(picture - colour).max(axis=2) <= 40).sum() > 300, f"nothing is drawn in {colour}"
    shade = (134, 177, 212) if dark else (90, 138, 174)  # 2 of 9, between the palette's low and middle colour
    dot = 0.75 * np.array(shade) + 0.25 * np.array(paper)  # at three quarters over the paper: only dots have it
    assert (np.abs(picture - dot).max(axis=2) <= 4).sum() > 100, "the beeswarm has no dots"


@pytest.mark.parametrize("interactive", [False, True])
@pytest.mark.parametrize(
    ("index", "words"),
    [("k-sii", "add up to the prediction together"), ("banzhaf-interaction", "do not add up to the prediction")],
)
def test_the_page_says_whether_singles_and_pairs_add_up(tmp_path, index, words, interactive):

    X = np.random.default_rng(0).normal(size=(30, 3))
    model = make_pipeline(PolynomialFeatures(3), LinearRegression()).fit(X, X.prod(axis=1))
    explanation = explain(model, X[:5], X[:10], index=index, order=2)
    page = explanation.report(tmp_path / "page.html", interactive=interactive).read_text()
    assert words in page
    assert ("do not add up" in page) == (index == "banzhaf-interaction")


def test_a_model_that_keeps_its_training_rows_says_which_rows_are_meant():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = glassbox.ExplainableBoostingRegressor(interactions=0, outer_bags=1, max_rounds=20, n_jobs=1).fit(X, X[:, 0])
    for background, words in ((None, "the rows that the model was fitted on"), (X[:10], "over the background rows")):
        explanation = explain(model, X[:3], background)
        assert words in render(explanation)
        assert words in " ".join(repr(explanation).split())


@pytest.mark.parametrize(
    ("unit", "words"),
    [("log-odds of class yes", "probability"), ("log of the target", "predicted target"), ("probability", None), ("EUR", None)],
)
def test_a_row_shows_its_probability_beside_its_log_odds(unit, words):
    explanation = linear(np.eye(3), unit=unit)
    titles = re.findall(r"<h3>(row \d[^<]*)</h3>", render(explanation, n_rows=3))
    shown = [re.search(r"\((.+) (\S+)\)$", title) for title in titles]
    assert len(titles) == 3
    if words is None:
        assert shown == [None] * 3
        return
    expected = expit(explanation.prediction) if words == "probability" else np.exp(explanation.prediction)
    rows = [int(re.match(r"row (\d)", title)[1]) for title in titles]
    assert [match[1] for match in shown] == [words] * 3
    np.testing.assert_allclose([float(match[2]) for match in shown], expected[rows], rtol=FOUR_DIGITS)


def test_probabilities_of_several_classes_are_those_of_all_scores():
    explanation = linear(np.eye(3), n_outputs=3, unit="score before the softmax")
    page = render(explanation, n_rows=1)
    shown = [float(number) for number in re.findall(r"\(probability (\S+)\)</h3>", page)]
    assert len(shown) == 3
    assert [name for name, _ in [response(explanation)]] == ["probability"]
    assert response(explanation.output(1)) is None  # one score alone has none


@pytest.mark.parametrize("interactive", [False, True])
def test_pages_are_drawn_in_the_colours_of_the_palette(interactive, tmp_path):
    plain = rows().report(tmp_path / "plain.html", interactive=interactive).read_text(encoding="utf-8")
    with palette(positive="black", negative="#112233", neutral="#445566"):
        chosen = rows().report(tmp_path / "chosen.html", interactive=interactive).read_text(encoding="utf-8")
    assert plain.count(f"--plus: {current_palette().positive}") == 1  # on dark screens another one
    assert chosen.count("--plus: #000000") == chosen.count("--minus: #112233") == chosen.count("--accent: #445566") == 2
    assert current_palette().positive not in chosen


def test_the_name_of_the_target_is_in_the_unit(tmp_path):
    explanation = linear(np.eye(4), unit="log-odds of class 1")
    labels = pandas.Series([1, 0, 1, 0], name="survived")
    named = explanation.report(tmp_path / "named.html", target=labels).read_text(encoding="utf-8")
    plain = explanation.report(tmp_path / "plain.html", target=labels.to_numpy()).read_text(encoding="utf-8")
    assert "log-odds of survived = 1" in named
    assert "log-odds of class 1" not in named
    assert "log-odds of class 1" in plain
    tables = [page.split("Largest errors")[1].split("</table>")[0] for page in (named, plain)]
    errors = [re.findall(r"<td>([^<]+)</td></tr>", table) for table in tables]
    assert errors[0] == errors[1] != []
    numbers = linear(np.eye(4), unit="target").report(tmp_path / "number.html", target=labels * 1.0)
    assert "survived" not in numbers.read_text(encoding="utf-8")


def test_a_value_and_an_error_of_zero_are_not_drawn():
    errors = np.array([[0.1, 0.0, 0.2]])
    plain = render(linear([[1.0, 0.0, -2.0]], std_error=errors))
    picture = plain.split("in detail")[1].split("</figure>")[0]
    assert picture.count("<rect") == 2
    assert picture.count(" ± ") == 2 + 2  # in words, and in the titles of bars


def test_dates_are_read_as_dates():
    days = pandas.DataFrame({"day": pandas.date_range("2024-01-01", periods=30), "x": np.arange(30.0)})
    page = render(linear(np.arange(60.0).reshape(30, 2), names=["day", "x"], data=days))
    assert ">day = 2024-01-01<" in page
    assert re.findall(r'class="tick">(2024-\d\d-\d\d)<', page)
    assert "30 categories" not in page


def test_long_categories_stand_upright_with_all_their_letters():
    """Cut to two letters each, the categories of a picture cannot be told apart."""
    jobs = ["Prof-specialty", "Protective-serv", "Priv-house-serv", "Sales", "Tech-support", "Craft-repair"]
    data = pandas.DataFrame({"job": np.repeat(jobs, 5), "sex": ["F", "M", "F"] * 10})
    page = render(linear(np.arange(60.0).reshape(30, 2), names=["job", "sex"], data=data))
    turned = r'rotate\(-90\)"><text x="0.0" y="0.0" text-anchor="end" class="tick">([^<]+)<'
    assert re.findall(turned, page) == sorted(jobs)
    assert re.findall(r'text-anchor="middle" class="tick">([FM])<', page) == ["F", "M"]


def test_large_numbers_stay_apart():
    """Ticks and cells of pairs are wider than their usual room."""
    row, tick = linear([[-123456.0, 65432.0, -20000.0]], seed=1, index="banzhaf", value_function="functional"), 'class="tick"'
    for drawn in render(row).split('<svg xmlns="')[1:]:
        ticks = re.findall(rf'<text x="([-\d.]+)"[^>]*middle" {tick}>([^<]*)', drawn)
        for (left, word), (right, other) in itertools.pairwise(sorted((float(x), word) for x, word in ticks)):
            assert right - left > (svg.text_width([word], 11) + svg.text_width([other], 11)) / 2
    cells = figures.matrix(np.array([[141091.0, -8636.0], [-8636.0, 1.5]]), ["a", "b"], label="pairs")
    words = re.findall(r'<text x="([-\d.]+)"[^>]*middle"[^>]*>([^<]*)', cells)
    assert [word for _, word in words] == ["140,000", "\N{MINUS SIGN}8,600", "\N{MINUS SIGN}8,600", "1.5"]
    assert float(words[1][0]) - float(words[0][0]) > svg.text_width(["140,000"], 11)


@pytest.mark.parametrize(("factor", "written"), [(1.0, "in full"), (100.0, "in powers of ten")])
def test_the_numbers_of_a_row_are_written_alike(factor, written):
    row = figures.content(
        linear(np.array([[2561426.0, -1.36e8, 3.0]]) * factor, seed=1), drawn=np.array([0]), max_display=3, n_rows=1
    ).rows[0]
    values = re.findall(r'class="value[^>]*>([^<]*)', figures.row_bars(row, label="value"))
    assert len(values) == 5
    full, powers = (any(sign in value for value in values) for sign in ",e")
    assert (full, powers) == (written == "in full", written != "in full"), values


def test_names_in_tables_are_broken_after_their_words():
    names = ["balance_of_the_month", "two  spaces\nand a line"]
    page = render(linear(np.eye(2), names=names))
    assert '<th scope="row">balance_<wbr>of_<wbr>the_<wbr>month</th>' in page
    assert ">two spaces and a line<title>" in page


def test_the_word_missing_stays_clear_of_the_first_tick():
    drawn = figures.dependence(np.array([np.nan, 0.0, 80.0]), np.array([0.1, 0.2, 0.3]), "age", None, label="value")
    places = {word: float(x) for x, word in re.findall(r'<text x="([-\d.]+)"[^>]*>([^<]*)', drawn)}
    assert places["0"] - places["missing"] > (svg.text_width(["missing"], 11) + svg.text_width(["0"], 11)) / 2


# --- reports of decompositions ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["mmd", "hsic"])
def shares_page(request, tmp_path_factory):
    """Write the report of a decomposition over hostile columns with hostile categories."""
    random = np.random.default_rng(0)
    tables = []
    for shift in (0.0, 1.0):
        table = pandas.DataFrame(dict(zip(HOSTILE, random.normal(shift, size=(40, len(HOSTILE))).T, strict=True)))
        table[HOSTILE[2]] = random.choice(HOSTILE, 40)
        tables.append(table)
    if request.param == "mmd":
        found = decompose_mmd(*tables, n_permutations=9)
    else:
        found = decompose_hsic(tables[0], tables[0][HOSTILE[0]].to_numpy())
    path = tmp_path_factory.mktemp("shares") / f"{request.param}.html"
    samples = tuple(tables) if request.param == "mmd" else None
    return write_shares_report(
        found, path, title=HOSTILE[1], samples=samples, labels=(HOSTILE[0], HOSTILE[2]), command=HOSTILE[1]
    )


def test_hostile_names_and_categories_are_text(shares_page):
    html = shares_page.read_text(encoding="utf-8")
    page = Page(html)
    page.assert_runs_nothing()
    assert HOSTILE[0] in page.text
    assert page.tags.count("title") >= 1
    assert not set(html) & set("\x00\x1b\u202e")
    assert "{{ 7*7 }}" in page.text


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_runs_in_a_browser(browser, shares_page, width):
    with browsers.opened(browser, shares_page, width=width, javascript=None) as page:
        assert page.evaluate("window.hacked") is None
        assert page.locator("script, img, a, iframe, object, embed, form").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert HOSTILE[0] in page.inner_text("main")


# --- errors of predictions, in the unit of the target -----------------------------------------------------------------


TWO = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)
WORDS = np.array(["no", "yes", "perhaps"])
CLASSES = np.array(["class 0", "class 1", "class 2"])  # "class" is a word of units, too


@pytest.mark.parametrize(("X", "y"), [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("labels", ["numbers", "words", "truth", "classes"])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=2000),
        RandomForestClassifier(5, random_state=0),
        GradientBoostingClassifier(n_estimators=3),
        GaussianNB(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_error_of_a_classifier_is_its_class_less_its_probability(model, X, y, labels):
    if labels == "truth" and len(set(y)) > 2:
        pytest.skip("two truth values")
    y = {"numbers": y, "words": WORDS[y], "truth": y.astype(bool), "classes": CLASSES[y]}[labels]
    X, rows = X[:, :4], np.arange(len(y))[::30]
    model.fit(X, y)
    observed = observe(explain(model, X[rows], X[:10]), y[rows])
    wanted = (y[rows, None] == model.classes_) - model.predict_proba(X[rows])
    np.testing.assert_allclose(
        observed.error, wanted[:, 1] if observed.error.ndim == 1 else wanted, atol=roundings(10_000), rtol=0
    )


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=3, loss="exponential"),
        LGBMClassifier(n_estimators=3, sigmoid=2.5, verbose=-1),
        LGBMClassifier(n_estimators=3, sigmoid=0.1, objective="multiclassova", num_class=3, verbose=-1),
    ],
    ids=["exponential", "sigmoid", "sigmoid of each class"],
)
def test_log_odds_divided_by_a_slope_are_not_taken_for_log_odds(model):
    X, y = THREE if getattr(model, "objective", None) else TWO
    own = model.fit(X, y).predict_proba(X[::30])
    explanation = explain(model, X[::30], X[:10])
    assert explanation.unit.startswith(("log-odds / 2 of class 1", "log-odds / 2.5 of class 1", "log-odds / 0.1"))
    np.testing.assert_allclose(response(explanation)[1], own[:, 1] if own.shape[1] == 2 else own, atol=roundings(100), rtol=0)


@pytest.mark.parametrize(
    "model",
    [
        XGBClassifier(n_estimators=3),
        CatBoostClassifier(loss_function="MultiLogloss", iterations=3, verbose=False, allow_writing_files=False),
        OneVsRestClassifier(LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("k", [0, 1])
def test_one_label_of_two_is_not_taken_for_one_class_of_two(model, k):
    X, y = THREE
    labels = np.c_[y > 0, y > 1].astype(int)
    wanted = labels[::10, k] - model.fit(X, labels).predict_proba(X[::10])[:, k]
    picked = explain(model, X[::10], X[:10], output=k), explain(model, X[::10], X[:10]).output(k)
    for explanation in picked:
        np.testing.assert_allclose(observe(explanation, labels[::10, k]).error, wanted, atol=SINGLE_RESPONSE, rtol=0)


def test_the_way_to_probabilities_is_one_that_works():
    X, y = THREE
    explanation = explain(ShapleyKernelClassifier().fit(X, y), X[:2], X[:10])
    assert 'score before the softmax. For probabilities pass output="probability" and background rows' in repr(explanation)
    assert explain(ShapleyKernelClassifier().fit(X, y), X[:2], X[:10], output="probability").unit == "probability"


def test_one_vs_rest_scores_have_no_probability_of_their_own():
    X, y = THREE
    explanation = explain(OneVsRestClassifier(LogisticRegression()).fit(X, y), X[:4], X[:10])
    assert response(explanation) is None
    with pytest.raises(InputError, match="The output is the one-vs-rest log-odds"):
        observe(explanation, y[:4])


@pytest.mark.parametrize(("names", "name"), [(WORDS, "yes"), (CLASSES, "class 1")], ids=["words", "classes"])
def test_one_class_of_several_is_compared_with_the_others(names, name):
    X, y = THREE
    model = RandomForestClassifier(5, random_state=0).fit(X, names[y])
    explanation = explain(model, X[::10], X[:10]).output(name)
    wanted = (names[y[::10]] == name) - model.predict_proba(X[::10])[:, list(model.classes_).index(name)]
    np.testing.assert_allclose(observe(explanation, names[y[::10]]).error, wanted, atol=roundings(100), rtol=0)


def test_a_missing_label_has_no_error_and_numbers_are_taken_as_they_are():
    scores = linear(np.zeros((3, 2)), unit="log-odds of class 1")
    np.testing.assert_array_equal(np.isnan(observe(scores, [1, None, 0]).error), [False, True, False])
    for unit in ("log of the target", "log of the target of target 1"):
        counts = linear(np.zeros((2, 2)), unit=unit)
        np.testing.assert_allclose(observe(counts, [3.0, 1.0]).error, np.array([3.0, 1.0]) - np.e, rtol=roundings(10))
    for unit in ("response", "target", "quantile 0.9 of the target", "mean of the target", "survival time", "degrees"):
        np.testing.assert_array_equal(observe(linear(np.zeros((2, 2)), unit=unit), [3.0, np.nan]).error, [2.0, np.nan])
    quantiles = linear(np.zeros((2, 2)), n_outputs=2, output_names=("quantile 0.1", "quantile 0.9"), unit="target")
    np.testing.assert_array_equal(observe(quantiles, [3.0, 1.0]).error, [[2.0, 2.0], [0.0, 0.0]])
    with pytest.raises(InputError, match="one number for each prediction"):
        observe(linear(np.zeros((2, 2)), n_outputs=2), [3.0, 1.0])


@pytest.mark.parametrize("model", [SVC(), RidgeClassifier()], ids=lambda model: type(model).__name__)
def test_labels_are_not_compared_with_a_decision_function(model):
    X, y = TWO
    explanation = explain(model.fit(X[:, :3], y), X[:4, :3], X[:10, :3])
    with pytest.raises(InputError, match=r"not in the unit of this output.*decision function.*probabilities"):
        observe(explanation, y[:4])


def test_labels_are_not_compared_with_a_function_that_returns_scores():
    with pytest.raises(InputError, match="It holds 0 and 1; the function returns -3 to 5"):
        observe(linear(np.zeros((2, 1)), unit="output of the function", prediction=[-3.0, 5.0], residual=[0, 0]), [0, 1])
    probabilities = linear(np.zeros((2, 1)), unit="output of the function", prediction=[0.2, 0.9], residual=[0, 0])
    np.testing.assert_allclose(observe(probabilities, [0, 1]).error, [-0.2, 0.1], atol=roundings(10))


@pytest.mark.parametrize(
    ("unit", "target", "match"),
    [
        ("log-odds of class yes", [0, 1, 1], "classes of this output: 'yes'.*Got 0, 1"),
        ("log-odds of class 1", [0.1, 0.7, 1.0], "Got 0.1, 0.7, 1.0"),
        ("log-odds", ["a", "b", "a"], "1 .the class of the output. and 0"),
        ("log-odds of class 1", [1, 0], "one class for each row.*shape .2,. for 3 rows"),
        ("target", ["a", "b", "c"], "Got text"),
        ("target", [1.0], "one number for each prediction"),
        ("latent mean (before the link and the averaging over the posterior)", [0, 1, 0], "not in the unit"),
        ("signed square root of the target", [0, 1, 0], "not in the unit"),
        ("raw log-odds", [0, 1, 0], "not in the unit"),
        ("probit of the target", [0, 1, 0], "not in the unit"),
        ("hazard ratio", [0, 1, 0], "not in the unit"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(unit, target, match):
    with pytest.raises(InputError, match=match):
        observe(linear(np.zeros((3, 2)), unit=unit), target)


def classified():
    X, y = TWO
    model = LogisticRegression(max_iter=2000).fit(X[:, :3], WORDS[y])
    rows = np.arange(0, 500, 25)
    error = (WORDS[y[rows]] == "yes") - model.predict_proba(X[rows, :3])[:, 1]
    return explain(model, X[rows, :3], X[:20, :3]), WORDS[y[rows]], error


def test_both_reports_name_the_row_with_the_largest_error_of_the_probability(tmp_path):
    explanation, labels, error = classified()
    worst = int(np.argmax(np.abs(error)))
    assert pack(explanation, target=labels).first == worst
    page = explanation.report(tmp_path / "static.html", target=labels).read_text()
    assert f"row {worst}: largest error" in page
    assert "The error is the observed class (1, else 0) minus the probability." in page
    largest = f"{error[worst]:.4g}".replace("-", "\N{MINUS SIGN}")
    assert f'<tr><th scope="row">row {worst}</th>' in page
    assert f"<td>{largest}</td></tr>" in page
    shown = explanation.report(tmp_path / "page.html", interactive=True, target=labels).read_text()
    assert "minus the probability" in shown


def test_the_report_of_several_outputs_has_errors_of_each(tmp_path):
    X, y = THREE
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    page = explain(model, X[::10], X[:10]).report(tmp_path / "static.html", target=y[::10]).read_text()
    assert page.count("<h2>Largest errors</h2>") == 3


def test_settings_of_a_static_report_are_refused_by_the_page(tmp_path):
    with pytest.raises(InputError, match="`max_display` and `n_rows` are settings of a static report"):
        linear(np.zeros((2, 2))).report(tmp_path / "page.html", interactive=True, max_display=3, n_rows=2)
    with pytest.raises(TypeError, match="n_row"):
        linear(np.zeros((2, 2))).report(tmp_path / "page.html", n_row=3)


def test_the_mean_error_is_over_the_known_ones():
    assert "Its mean magnitude is 1.5." in render(linear(np.zeros((3, 2))), target=[2.0, np.nan, 3.0])


MONTHS = [f"measurement_number_{month}_of_the_long_survey_of_clients" for month in (7, 11, 12, 123)]


def test_names_that_differ_in_what_is_cut_stay_different_in_every_picture(tmp_path):
    linear(np.eye(4) * [1.0, 2.0, 3.0, 4.0], names=MONTHS).report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    pictures = [
        re.findall(r">([^<>]+(?:of_the|lients)[^<>]*)<(?!/title)", picture)
        for picture in re.findall(r"<svg.*?</svg>", page, re.S)
    ]
    assert len(pictures) >= 2 + 4 + 4  # bars and dots, features, rows
    for labels in pictures:
        assert labels
        assert all(re.match(r"(\u2026|measurement_number_)(7|11|12|123)(?!\d)", label) for label in labels), labels
