"""Bars, dots, colours of choice and the palette."""

import itertools
import warnings
from dataclasses import replace

import interpret.glassbox as glassbox
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.linear_model import LogisticRegression

from exactshap.errors import InputError, InputTypeError, UnknownNameError
from exactshap.explainer import Explainer
from exactshap.readers.additive import AdditiveModel
from exactshap.results.plots import draw_marginals, draw_prepared, palette, prepare_marginals
from exactshap.results.plots.rows import prepare_intervals, prepare_waterfall
from exactshap.results.plots.scatter import prepare_scatter, prepare_shape, strongest_colour
from exactshap.results.plots.summary import prepare_bars, prepare_swarm
from explanation_factory import bilinear, linear
from tolerances import NORMAL_TAILS, assert_close, roundings


def rows(n=60, d=4, **changes):
    return linear(np.random.default_rng(0).normal(size=(n, d)), **changes)


def test_bars_are_sorted_means_and_the_rest_is_one():
    explanation = rows(d=6)
    prepared = prepare_bars(explanation, max_display=4)
    strength = np.sort(np.abs(explanation.values).mean(axis=0))[::-1]
    assert_close(prepared.values, [*strength[:3], strength[3:].sum()], scale=10.0, n_terms=60)
    assert prepared.labels[-1] == "3 other features"
    one = prepare_bars(explanation, 2, max_display=6)
    assert sorted(one.values) == sorted(explanation.values[2])
    assert all(" = " in label for label in one.labels)


def test_whiskers_are_the_intervals_of_the_importances():
    explanation = rows(d=6)
    importance = explanation.importance(0.9)
    prepared = prepare_bars(explanation, max_display=4, interval=0.9)
    for place, name in enumerate(prepared.labels[:-1]):
        j = explanation.feature_names.index(name)
        assert prepared.ends[:, place].tolist() == [importance.lower[j], importance.upper[j]]
    assert np.isnan(prepared.ends[:, -1]).all()
    assert "90 % intervals" in explanation.plot.bar(interval=0.9).get_xlabel()
    with pytest.raises(InputError, match="means over rows"):
        explanation.plot.bar(0, interval=0.9)


def test_dots_are_placed_by_their_cells_and_missing_ones_are_rings():
    X = np.random.default_rng(0).normal(size=(50, 3))
    data = pandas.DataFrame(X, columns=["a", "b", "c"])
    data.loc[:9, "a"] = np.nan
    data["c"] = "text"
    explanation = linear(X, names=["a", "b", "c"], data=data)
    prepared = prepare_swarm(explanation)
    places = dict(zip(prepared.labels, prepared.places.T, strict=True))
    assert np.isnan(places["a"]).tolist() == [True] * 10 + [False] * 40
    assert np.isnan(places["c"]).all()
    assert np.array_equal(np.argsort(places["b"][np.argsort(X[:, 1])], kind="stable"), np.arange(50))
    ax = explanation.plot.beeswarm()
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == 150


def test_of_many_rows_a_sample_is_drawn_and_said():
    explanation = rows(n=2500)
    assert prepare_swarm(explanation).values.shape == (2000, 4)
    assert "2,000 of 2,500 rows drawn" in explanation.plot.beeswarm().get_xlabel().replace("\n", " ")


def test_missing_cells_are_drawn_left_of_the_others():
    data = pandas.DataFrame({"a": [1.0, np.nan, 3.0, 2.0], "b": ["x", None, "y", "x"]})
    explanation = linear(np.arange(8.0).reshape(4, 2), names=["a", "b"], data=data)
    for feature in ("a", "b"):
        ax = explanation.plot.scatter(feature)
        (dots,) = ax.collections
        x = dots.get_offsets()[:, 0]
        assert len(x) == 4
        assert x.argmin() == 1
        assert "missing in 1" in ax.get_xlabel()
    assert [label.get_text() for label in explanation.plot.scatter("b").get_xticklabels()] == ["missing", "x", "y"]


def test_the_colour_of_choice_is_the_partner():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    values = np.zeros_like(X)
    values[:, [0, 3]] = 0.5 * (X[:, 0] * X[:, 3])[:, None]
    values[:, 0] += X[:, 0]
    values[:, 2] = X[:, 2]
    X[:, 1] = X[:, 0] * X[:, 3]  # an idle column that goes with the values even better
    prediction = values.sum(axis=1)
    explanation = linear(X, values=values, baseline=0 * prediction, prediction=prediction, residual=0 * prediction)
    assert "x3" in explanation.plot.scatter("x0", color="auto").figure.axes[-1].get_ylabel()
    hidden = X.copy()
    hidden[X[:, 3] > 0.5, 3] = np.nan
    hidden[:, 4] = np.nan
    gaps = linear(X, values=values, baseline=0 * prediction, prediction=prediction, residual=0 * prediction, data=hidden)
    assert "x3" in gaps.plot.scatter("x0", color="auto").figure.axes[-1].get_ylabel()
    pairs = bilinear(n=50, d=4)
    strength = np.abs(pairs.interactions[:, 1]).mean(axis=0)
    strength[1] = 0.0
    assert pairs.feature_names[strength.argmax()] in pairs.plot.scatter(1, color="auto").figure.axes[-1].get_ylabel()
    assert prepare_scatter(explanation, 0).colour is None


def test_one_palette_colours_every_picture():
    explanation = linear([[1.0, -2.0, 3.0]] * 4, seed=1, names=list("abc"))
    assert explanation.values.min() < 0 < explanation.values.max()
    with palette(positive="#112233", negative="#445566", neutral="#778899"):
        waterfall = explanation.plot.waterfall(0)
        bars = explanation.plot.bar(0)
        means = explanation.plot.bar()
    used = {matplotlib.colors.to_hex(patch.get_facecolor()) for ax in (waterfall, bars) for patch in ax.patches}
    assert used == {"#112233", "#445566"}
    assert {matplotlib.colors.to_hex(patch.get_facecolor()) for patch in means.patches} == {"#778899"}
    assert "#112233" not in {matplotlib.colors.to_hex(p.get_facecolor()) for p in explanation.plot.bar(0).patches}
    with pytest.raises(UnknownNameError, match=r"positiv.*positive"), palette(positiv="red"):
        pass
    with pytest.raises(InputError, match="not a colour"), palette(positive="reddish"):
        pass


def test_frames_take_errors_and_ends():
    explanation = rows(n=3, std_error=np.full((3, 4), 0.5))
    frame = explanation.to_frame("pandas", std=True, baseline=True, prediction=True)
    assert list(frame.columns) == ["x0", "x1", "x2", "x3", "se_x0", "se_x1", "se_x2", "se_x3", "baseline", "prediction"]
    assert (frame["se_x1"] == 0.5).all()
    assert_close(frame["prediction"], explanation.prediction, scale=10.0)
    several = linear(np.ones((2, 2)), n_outputs=2).to_frame("pandas", baseline=True)
    assert list(several.columns)[-2:] == ["baseline[class 0]", "baseline[class 1]"]
    with pytest.raises(InputError, match="no standard errors"):
        rows().to_frame("pandas", std=True)
    with pytest.raises(InputError, match="called 'baseline'"):
        linear(np.ones((2, 2)), names=["baseline", "b"]).to_frame("pandas", baseline=True)


def test_paths_go_from_the_baseline_to_the_prediction():
    explanation = rows(n=250, d=6)
    ax = explanation.plot.decision(max_display=4)
    sums = np.array([line.get_xdata() for line in ax.lines[:200]])
    assert sums.shape == (200, 5)
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["baseline", "3 other features"]
    ends = np.sort(sums[:, -1])
    assert_close(ends[[0, -1]], [explanation.prediction.min(), explanation.prediction.max()], scale=20.0, n_terms=7)
    assert np.isin(sums[:, 0], explanation.baseline).all()
    assert "200 of 250 rows" in ax.get_xlabel().replace("\n", " ")
    with pytest.raises(InputError, match="add up"):
        rows(values=rows().values / 2, index="banzhaf").plot.decision()


def test_many_rows_with_intervals_are_a_band():
    errors = np.full((90, 4), 0.3)
    band = rows(n=90, std_error=errors).plot.intervals()
    whiskers = rows(n=40, std_error=errors[:40]).plot.intervals()
    assert not band.containers
    assert len(whiskers.containers) == 8
    assert len(band.collections) == 8  # a band and dots for each feature
    extent = band.collections[0].get_datalim(band.transData)
    strongest = np.argsort(-np.abs(rows(n=90).values).mean(axis=0))[0]
    assert extent.x1 == pytest.approx(rows(n=90).values[:, strongest].max() + 1.959963984540054 * 0.3)


def test_colours_of_pairs_are_not_drowned_by_single_players():
    source = bilinear(n=5, d=4)
    strong = replace(source, values=100 * source.values, set_values=source.set_values * ([100] * 4 + [1] * 6))
    ax = strong.plot.interactions(0)
    pairs = strong.interactions[0] - np.diag(strong.values[0])
    assert ax.images[0].get_clim()[1] == np.abs(pairs).max()


def test_patches_and_words_stand_where_they_are():
    explanation = rows(n=3, d=6)
    ax = explanation.plot.image(1, (2, 3), image=np.zeros((20, 30, 3)))
    assert np.array_equal(ax.images[-1].get_array(), explanation.values[1].reshape(2, 3))
    with pytest.raises(InputError, match="one player for each patch"):
        explanation.plot.image(1)
    words = ["a$", "long" * 12, "sentence" * 4, "of", "some", "words"]
    ax = explanation.plot.text(1, words)
    assert [text.get_text() for text in ax.texts] == [word.replace("$", r"\$") for word in words]
    lines = [text.get_position()[1] for text in ax.texts]
    assert lines == sorted(lines)
    assert len(set(lines)) == 2
    with pytest.raises(InputError, match="one word for each player"):
        explanation.plot.text(1, words[:2])


@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.parametrize("kind", ["heatmap", "violin", "bar", "beeswarm", "waterfall", "decision"])
def test_pictures_of_huge_and_tiny_values_are_those_of_others_in_another_unit(kind, size):
    # squares of such values overflow or vanish, which densities and distances between rows are made of
    plain = rows(n=30, d=4)
    unit = 2.0 ** np.round(np.log2(size))
    names = ("values", "baseline", "prediction", "residual")
    other = replace(plain, tolerance=plain.tolerance * unit, **{name: getattr(plain, name) * unit for name in names})
    ours, theirs = (getattr(source.plot, kind)() for source in (other, plain))
    for ax in (ours, theirs):
        ax.figure.canvas.draw()
    if kind == "heatmap":
        np.testing.assert_array_equal(ours.images[0].get_array(), theirs.images[0].get_array() * unit)
    if kind == "violin":
        for one, two in zip(ours.collections, theirs.collections, strict=True):
            for path, same in zip(one.get_paths(), two.get_paths(), strict=True):
                np.testing.assert_array_equal(path.vertices, same.vertices * [unit, 1.0])


# --- intervals --------------------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)


def uncertain(n=3, d=4, **changes):
    factors = RNG.normal(size=(n, d, d))
    return linear(RNG.normal(size=(n, d)), covariances=factors @ factors.transpose(0, 2, 1), **changes)


def test_sorted_values_and_normal_intervals():
    explanation = uncertain()
    prepared = prepare_intervals(explanation, level=0.9)
    order = np.argsort(-np.abs(explanation.values).mean(axis=0))
    assert prepared.labels == tuple(explanation.feature_names[j] for j in order)
    np.testing.assert_allclose(prepared.values, explanation.values[:, order])
    np.testing.assert_allclose(prepared.half_width, 1.6448536269514722 * explanation.std[:, order])
    assert prepared.kind == "credible"
    np.testing.assert_array_equal(prepared.decided, np.abs(prepared.values) > prepared.half_width)


def test_the_rest_adds_up_with_its_covariance():
    explanation = uncertain()
    prepared = prepare_intervals(explanation, 1, max_display=2)
    order = np.argsort(-np.abs(explanation.values[1]))
    rest = order[1:]
    assert prepared.labels[1] == "3 others"
    assert prepared.values[0, 1] == pytest.approx(explanation.values[1, rest].sum())
    expected = 1.959963984540054 * np.sqrt(explanation.covariance(1)[np.ix_(rest, rest)].sum())
    assert prepared.half_width[0, 1] == pytest.approx(expected)


def test_sampled_values_have_confidence_intervals_and_an_open_rest():
    X = RNG.normal(size=(3, 4))
    prepared = prepare_intervals(linear(X, std_error=np.full((3, 4), 0.5)), max_display=3)
    assert prepared.kind == "confidence"
    np.testing.assert_allclose(prepared.half_width[:, :2], 1.959963984540054 * 0.5)
    assert np.isnan(prepared.half_width[:, 2]).all()


@pytest.mark.parametrize("i", [None, 0])
def test_intervals_take_and_return_axes(i):
    matplotlib.use("Agg")

    figure, ax = plt.subplots()
    source = uncertain(names=["a $", "b", "c", "d"])
    prepared = prepare_intervals(source, i)
    assert source.plot.intervals(i, ax=ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == [name.replace("$", r"\$") for name in prepared.labels]
    assert "95 % credible interval" in ax.get_xlabel()
    assert len(ax.patches) == (4 if i == 0 else 0)
    figure.canvas.draw()
    plt.close(figure)
    plt.close(source.plot.intervals(i).figure)


@pytest.mark.parametrize(
    ("explanation", "settings", "text"),
    [
        (linear(RNG.normal(size=(2, 3))), {}, "Intervals need a standard deviation"),
        (uncertain(), {"level": 1.0}, "'level' parameter must be a float in"),
        (uncertain(), {"max_display": 0}, "'max_display' parameter must be an int >= 1"),
    ],
)
def test_intervals_refuse_bad_input(explanation, settings, text):
    with pytest.raises(InputError, match=text):
        prepare_intervals(explanation, **settings)


# --- two samples ------------------------------------------------------------------------------------------------------


def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 2)), rng.normal(loc=1.0, size=(50, 2))


def test_densities_integrate_to_one_on_a_common_grid():
    first, second = prepare_marginals(*samples(), ["x1", "x0"], ["share 0.1", ""])
    assert (first.name, first.caption, second.name) == ("x1", "share 0.1", "x0")
    assert first.categories is None
    np.testing.assert_allclose(np.trapezoid(first.density, first.x, axis=1), 1.0, atol=NORMAL_TAILS)
    peaks = first.x[first.density.argmax(axis=1)]
    assert peaks[0] < peaks[1]


def test_categories_are_frequencies():
    one, other = pandas.DataFrame({"c": ["a", "a", "b", "c"]}), pandas.DataFrame({"c": ["b", "d"]})
    marginal = prepare_marginals(one, other, ["c"])[0]
    assert marginal.categories == ("a", "b", "c", "d")
    assert marginal.density.tolist() == [[0.5, 0.25, 0.25, 0.0], [0.0, 0.5, 0.0, 0.5]]


def test_rare_categories_are_put_together():
    words = np.array([f"w{i:02d}" for i in range(15)])[:, None]
    marginal = prepare_marginals(words, words, ["x0"])[0]
    assert len(marginal.categories) == 10
    assert marginal.categories[-1] == "others"
    np.testing.assert_allclose(marginal.density.sum(axis=1), 1.0, rtol=roundings(5_000))


def test_drawing_uses_the_axes_that_come_in():
    marginals = prepare_marginals(*samples(), ["x0", "x1"])
    axes = pyplot.subplots(1, 2)[1]
    out = draw_marginals(*samples(), ["x0", "x1"], labels=("May", "June"), axes=axes)
    assert out == list(axes)
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["May", "June"]
    assert len(draw_prepared(marginals)) == 2
    with pytest.raises(InputError, match=r"One ax is needed for each column\. Got 1 for 2"):
        draw_prepared(marginals, axes=[axes[0]])


def test_dates_are_densities_over_days():
    days = pandas.DataFrame({"day": pandas.date_range("2024-01-01", periods=40).astype(str)})
    (marginal,) = prepare_marginals(days[:25], days[25:], ["day"])
    assert marginal.dates
    assert marginal.categories is None
    assert marginal.x[0] < 19723 < 19762 < marginal.x[-1]  # 2024-01-01 and 2024-02-09
    (ax,) = draw_prepared([marginal])
    ax.figure.draw_without_rendering()
    assert any(
        "2024" in text for text in [ax.xaxis.get_offset_text().get_text(), *(t.get_text() for t in ax.get_xticklabels())]
    )


def test_long_names_and_large_numbers_of_panels_do_not_overlap():
    cells = np.random.default_rng(0).lognormal(11.0, 0.6, (80, 1))
    table = pandas.DataFrame(cells, columns=["annual household income before taxes (EUR per year)"])
    marginals = prepare_marginals(table[:40], table[40:], list(table) * 4, ["contribution 0.002"] * 4)
    axes = draw_prepared(marginals, axes=pyplot.figure(figsize=(9, 2.5), layout="constrained").subplots(1, 4))
    axes[0].figure.draw_without_rendering()
    for texts in ([ax.title for ax in axes], axes[1].get_xticklabels()):
        boxes = [text.get_window_extent() for text in texts]
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(boxes))


def test_unknown_columns_are_refused():
    with pytest.raises(InputError, match="The samples have no column 'x7'"):
        prepare_marginals(*samples(), ["x7"])


def test_missing_cells_are_a_share_next_to_the_name_or_a_category():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(200, 2)), rng.normal(size=(100, 2))
    one[:50, 0], other[:10, 0] = np.nan, np.nan
    one[:, 1], other[:, 1] = np.repeat([0.0, np.nan], 100), 1.0
    numbers, few = prepare_marginals(one, other, ["x0", "x1"], ["share 0.1", ""])
    assert numbers.caption == "share 0.1; missing: 25%, 10%"
    areas = np.trapezoid(numbers.density, numbers.x, axis=1)
    assert np.abs(areas - [0.75, 0.9]).max() < 0.01  # the grid ends three bandwidths beyond the cells
    assert few.categories == ("0.0", "1.0", "missing")
    assert few.density.tolist() == [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]


# --- waterfalls, scatters, heatmaps and violins, and what is drawn of awkward cells -----------------------------------


def awkward():
    """Explain one row with missing cells, a date, zeros and values of all sizes."""
    values = np.array([[1.0, -0.5, 0.0, 1e-9, -1e-9, 0.3]])
    cells = {"age": 31.0, "cabin": None, "fare": np.nan, "city": "x" * 80, "joined": np.datetime64("1912-04-10"), "cost": 1e6}
    numbers = {"values": values, "prediction": 1.0 + values.sum(axis=1), "residual": [0.0], "tolerance": 1e-9}
    return linear(values, names=list(cells), data=pandas.DataFrame([cells]), **numbers)


def test_a_waterfall_leads_from_the_baseline_to_the_prediction():
    source = linear(np.random.default_rng(0).normal(size=(5, 14)))
    prepared = prepare_waterfall(source, 2)
    assert prepared.labels[-1] == "5 other features"
    assert len(prepared.labels) == 10
    assert prepared.starts[-1] == source.baseline[2]
    np.testing.assert_allclose(prepared.starts[:-1], (prepared.starts + prepared.values)[1:], rtol=roundings(14))
    np.testing.assert_allclose(prepared.starts[0] + prepared.values[0], source.prediction[2], rtol=roundings(100))
    order = np.argsort(-np.abs(source.values[2]))
    np.testing.assert_array_equal(prepared.values[:9], source.values[2][order[:9]])


@pytest.mark.parametrize("n", [1, 3, 14])
def test_the_name_of_the_baseline_stands_clear_of_the_last_bar(n):
    ax = linear(np.random.default_rng(0).normal(size=(5, n)) + 1.0).plot.waterfall(2)
    ax.figure.canvas.draw()
    name = next(text for text in ax.texts if "emptyset" in text.get_text()).get_window_extent()
    assert name.y1 <= min(patch.get_window_extent().y0 for patch in ax.patches)


def test_cells_of_a_waterfall_are_words():
    labels = dict(label.split(" = ") for label in prepare_waterfall(awkward()).labels)
    assert labels["cabin"] == labels["fare"] == "missing"
    assert labels["joined"] == "1912-04-10"
    assert labels["cost"] == "1,000,000"
    assert len(labels["city"]) <= 30
    truths = linear(np.ones((1, 2)), names=["garden", "age"], data=pandas.DataFrame({"garden": [True], "age": [3]}))
    assert set(prepare_waterfall(truths).labels) == {"garden = True", "age = 3"}
    axis = prepare_scatter(truths, 0).x
    assert (axis.kind, axis.categories, axis.numbers.tolist()) == ("text", ("False", "True"), [1.0])
    assert prepare_scatter(truths, 1).x.kind == "number"


def test_zeros_have_no_bar_and_arrows_point_where_they_go():
    source = replace(awkward(), tolerance=[0.0])  # none of its values is rounding
    prepared = prepare_waterfall(source)
    ax = source.plot.waterfall()
    bars = [patch.get_xy() for patch in ax.patches]
    moved = [k for k, value in enumerate(prepared.values) if value]
    assert len(bars) == len(moved) == 5
    for k, corners in zip(moved, bars, strict=True):
        tip = corners[2, 0]
        assert tip == pytest.approx(prepared.starts[k] + prepared.values[k], rel=roundings(2))
        assert np.sign(tip - prepared.starts[k]) == np.sign(prepared.values[k])
        assert {corners[0, 0], corners[4, 0]} == {prepared.starts[k]}
        low, high = sorted([prepared.starts[k], tip])
        assert (corners[:, 0] >= low).all()
        assert (corners[:, 0] <= high).all()  # no head is longer than its bar
    texts = {text.get_text(): text.get_ha() for text in ax.texts}
    assert "0" in texts
    assert "+0" not in texts
    assert (texts["+1"], texts["\N{MINUS SIGN}0.5"]) == ("left", "right")


def table(n=80):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    names, joined = [f"Passenger, Mr. number {i} of the ship" for i in range(n)], random.integers(0, 900, n)
    data = pandas.DataFrame({"name": names, "joined": np.datetime64("1912-04-10") + joined})
    data["class"] = random.choice(["a", "b", None], n)
    return linear(X, names=list(data.columns), data=data)


def test_dates_are_placed_by_their_days_and_written_short():
    source = table()
    prepared = prepare_scatter(source, 1)
    assert prepared.x.kind == "date"
    np.testing.assert_array_equal(prepared.x.numbers, source.data["joined"].to_numpy().astype("datetime64[D]").astype(float))
    ax = source.plot.scatter(1)
    ax.figure.canvas.draw()
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert 2 <= len(names) <= 9
    assert max(map(len, names)) <= 10


def test_long_names_leave_room_for_the_dots():
    ax = table().plot.scatter(0, color=1)
    ax.figure.canvas.draw()
    assert max(len(label.get_text()) for label in ax.get_xticklabels()) <= 18
    assert ax.get_position().height > 0.4


def test_rows_without_a_cell_are_counted():
    source = table()
    prepared = prepare_scatter(source, 2, 2)
    assert prepared.x.categories == ("a", "b")
    ax = source.plot.scatter(2, color=2)
    missing = int(source.data["class"].isna().sum())
    assert ax.get_xlabel() == f"class (missing in {missing})"
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == 80


def test_a_heatmap_holds_every_row_once():
    source = linear(np.random.default_rng(0).normal(size=(40, 14)))
    ax = source.plot.heatmap()
    labels = [label.get_text() for label in ax.get_yticklabels()][1:]
    values, line = np.asarray(ax.images[0].get_array()), ax.lines[0].get_ydata()
    order = np.array([int(np.flatnonzero(source[:, labels[0]] == value)[0]) for value in values[0]])
    assert sorted(order) == list(range(40))
    np.testing.assert_allclose(values.sum(axis=0), source.values[order].sum(axis=1), rtol=roundings(100))
    np.testing.assert_array_equal(np.argsort(-line), np.argsort(source.prediction[order]))
    assert labels[-1] == "5 others"
    near = np.linalg.norm(np.diff(values, axis=1), axis=0).sum()
    assert near < np.linalg.norm(np.diff(values[:, np.argsort(order)], axis=1), axis=0).sum()


@pytest.mark.parametrize("n_rows", [1, 20])
def test_a_heatmap_numbers_rows_and_keeps_a_long_unit_inside(n_rows):
    unit = "one-vs-one decision function of Barbera vs Barolo, a class with a long name"
    source = linear(np.random.default_rng(0).normal(size=(n_rows, 3)), unit=unit)
    ax = source.plot.heatmap()
    ax.figure.draw_without_rendering()
    assert all(float(tick).is_integer() for tick in ax.get_xticks())
    box = ax.figure.axes[-1].yaxis.label.get_window_extent()
    assert box.y0 >= 0
    assert box.y1 <= ax.figure.bbox.height


def test_square_tables_of_values_are_no_distances():
    """SciPy warned of values that are symmetric with a diagonal of zeros."""
    values = 1.0 - np.eye(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = linear(values, values=values).plot.heatmap()
    assert sorted(map(tuple, np.asarray(ax.images[0].get_array()).T)) == sorted(map(tuple, values))


@pytest.mark.parametrize("exponent", [-1000, 1000])
def test_units_decide_neither_colours_nor_intervals(exponent):
    """Squares of such values overflow or vanish."""
    unit, cells = 2.0**exponent, np.random.default_rng(0).normal(size=(100, 3))
    values, errors = cells * cells[:, [1, 2, 0]], np.abs(cells)
    one, other = (linear(cells * u, values=values * u, std_error=errors * u, tolerance=np.inf) for u in (1.0, unit))
    assert strongest_colour(one, 0) == strongest_colour(other, 0) == 1
    np.testing.assert_array_equal(prepare_intervals(one).half_width * unit, prepare_intervals(other).half_width)


def test_violins_hold_the_values_of_the_strongest_and_the_rest():
    source = linear(np.random.default_rng(0).normal(size=(40, 14)))
    ax = source.plot.violin(max_display=3)
    assert ax.get_yticklabels()[-1].get_text() == "12 others"
    rest = np.argsort(-np.abs(source.values).mean(axis=0))[2:]
    middles = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(middles[-1], np.median(source.values[:, rest].sum(axis=1)), rtol=roundings(100))
    linear(np.ones((4, 2))).plot.violin()  # values without spread


# --- shapes of single columns -----------------------------------------------------------------------------------------


RANDOM = np.random.default_rng(0)
X, Z = (pd.DataFrame(RANDOM.normal(size=(n, 3)), columns=list("abc")) for n in (30, 11))
MODEL = AdditiveModel(
    [("a", lambda v: v[:, 0] ** 3), ("b", lambda v: np.nan_to_num(v[:, 0], nan=5.0)), (("a", "c"), lambda v: v.prod(axis=1))],
    feature_names=["a", "b", "c"],
)


def both(rows=X, model=MODEL, **settings):
    explainer = Explainer(model, Z, **settings)
    return explainer(rows), explainer(rows, index="moebius")


def test_the_curve_is_the_column_alone_and_the_points_are_the_values():
    explanation, main = both()
    shape, z = prepare_shape(explanation, main, "a"), Z.to_numpy()
    alone = lambda x: (x[:, None] ** 3 - z[:, 0] ** 3 + (x[:, None] - z[:, 0]) * z[:, 2]).mean(axis=1)  # noqa: E731
    np.testing.assert_allclose(shape.curve, alone(shape.curve_x), atol=roundings(500))
    np.testing.assert_array_equal(shape.curve_x, np.sort(X["a"]))
    np.testing.assert_array_equal(shape.x, X["a"])
    np.testing.assert_array_equal(shape.values, explanation.values[:, 0])
    assert (shape.unit, shape.game, shape.axis.categories, shape.missing) == (
        "target",
        "value function: interventional",
        None,
        None,
    )


def test_without_interactions_the_points_lie_on_the_curve():
    shape = prepare_shape(*both(), "b")
    np.testing.assert_allclose(shape.values, np.interp(shape.x, shape.curve_x, shape.curve), atol=roundings(50))


def test_the_curve_may_come_from_a_grid():
    explainer = Explainer(MODEL, Z)
    grid = pd.DataFrame({"a": np.linspace(-3, 3, 50), "b": 0.0, "c": 0.0})
    shape = prepare_shape(explainer(X), explainer(grid, index="moebius"), 0)
    assert len(shape.curve) == 50
    assert len(shape.values) == 30


def test_missing_values_are_drawn_left_of_the_rest():
    rows = X.copy()
    rows.loc[:3, "b"] = np.nan
    explanation, main = both(rows)
    shape = prepare_shape(explanation, main, 1)
    assert shape.missing < rows["b"].min()
    assert (shape.x == shape.missing).sum() == 4
    ax = explanation.plot.shape(1, main)
    assert [text.get_text() for text in ax.texts] == ["missing"]
    assert ax.texts[0].xy[0] == shape.missing


def test_ordered_categories_keep_their_order():
    sizes = pd.DataFrame({"size": pd.Categorical(["m", "s", None, "l"], categories=["s", "m", "l"], ordered=True)})
    explained = linear(np.zeros((4, 1)), names=["size"], data=sizes)
    place = prepare_scatter(explained, 0).x
    np.testing.assert_array_equal(place.numbers, [1.0, 0.0, np.nan, 2.0])
    shape = prepare_shape(explained[:1], linear(np.zeros((4, 1)), names=["size"], data=sizes, index="moebius"), 0)
    assert place.categories == shape.axis.categories == ("s", "m", "l")


def test_text_gets_one_place_for_each_category():
    frame = pd.DataFrame({"city": RANDOM.choice(["Oslo", "Rome", "Lima"], 100), "size": RANDOM.normal(size=100)})
    y = (frame["city"] == "Rome") * (1.0 + frame["size"])
    model = glassbox.ExplainableBoostingRegressor(interactions=1, outer_bags=1, max_rounds=20, n_jobs=1).fit(frame, y)
    explainer = Explainer(model, frame)
    rows = frame.assign(city=np.where(np.arange(100) % 9 == 0, None, frame["city"]))
    explanation, main = explainer(rows), explainer(frame, index="moebius")
    shape = prepare_shape(explanation, main, "city")
    assert shape.axis.categories == ("Lima", "Oslo", "Rome")
    assert set(shape.x) == {0.0, 1.0, 2.0, shape.missing}
    assert len(shape.curve) == 3
    ax = explanation.plot.shape("city", main)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["missing", "Lima", "Oslo", "Rome"]


def test_dates_have_an_axis_of_dates():
    days = pd.DataFrame({"at": pd.date_range("2023-11-20", periods=40, freq="3D")})
    values = np.arange(40.0)[:, None]
    explained, main = (linear(values, names=["at"], data=days, index=index) for index in ("shapley", "moebius"))
    shape = prepare_shape(explained, main[::2], "at")
    np.testing.assert_array_equal(np.diff(shape.x), 3.0)
    assert shape.axis.kind == "date"
    ax = explained.plot.shape("at", main)
    ax.figure.draw_without_rendering()
    assert {"Dec", "Jan"} <= {label.get_text() for label in ax.get_xticklabels()}


def test_drawing_uses_the_axes_that_came_in():
    explanation, main = both()
    ax, shape = plt.subplots()[1], prepare_shape(explanation, main, "a")
    assert explanation.plot.shape("a", main, ax=ax) is ax
    assert ax.get_xlabel() == "a"
    np.testing.assert_array_equal(ax.collections[0].get_offsets()[:, 1], shape.values)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), shape.curve)
    assert "interventional" in ax.get_title()


def test_one_output_of_several_is_drawn():
    model = LogisticRegression().fit(X, np.digitize(X["a"], [-0.5, 0.5]))
    explanation, main = both(model=model)
    ax = explanation.plot.shape("a", main, output=1)
    np.testing.assert_array_equal(ax.collections[0].get_offsets()[:, 1], explanation.values[:, 0, 1])
    assert sorted(ax.lines[0].get_ydata()) == sorted(main.values[:, 0, 1])


def test_bad_pairs_are_refused():
    explanation, main = both()
    with pytest.raises(InputError, match=r"must hold v\(\{j\}\) - v\(empty\)\. Got index='shapley'"):
        prepare_shape(explanation, explanation, 0)
    for nothing in (None, explanation.values):
        with pytest.raises(
            InputTypeError, match=r"must hold v\(\{j\}\) - v\(empty\)\. Got (NoneType|ndarray).*index=\"moebius\""
        ):
            explanation.plot.shape("a", nothing, output=0)
    with pytest.raises(UnknownNameError, match="Unknown feature 'd'"):
        prepare_shape(explanation, main, "d")
    with pytest.raises(InputError, match="There is no feature 7"):
        prepare_shape(explanation, main, 7)
    with pytest.raises(InputError, match="'g' is a group of several"):
        prepare_shape(*both(groups={"g": ["a", "b"]}), "g")
    with pytest.raises(InputError, match="must be of one model"):
        prepare_shape(explanation, both(groups={"g": ["a", "b"]})[1], 0)


def test_zeros_of_a_row_without_contributions_have_no_sign():
    ax = linear(np.zeros((1, 3))).plot.waterfall(0)
    assert [text.get_text() for text in ax.texts][:3] == ["0", "0", "0"]


def test_names_of_pairs_that_differ_in_what_is_cut_stay_different():
    names = [f"mean_balance_of_month_{month:02}_in_euros" for month in range(5)]
    ax = bilinear(feature_names=names).plot.interactions(0)
    below = [label.get_text() for label in ax.get_xticklabels()]
    assert len(set(below)) == 5
    assert all(f"{month:02}" in " ".join(below) for month in range(5))
