"""Bars, dots, colours of choice and the palette."""

from dataclasses import replace

import matplotlib
import numpy as np
import pandas
import pytest

from exactshap.errors import InputError, UnknownNameError
from exactshap.results.plots import palette
from exactshap.results.plots.overview import prepare_paths
from exactshap.results.plots.scatter import prepare_scatter
from exactshap.results.plots.summary import prepare_bars, prepare_swarm
from explanation_factory import bilinear, linear
from tolerances import assert_close


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
    values[:, 0] = X[:, 0] + X[:, 0] * X[:, 3]
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
    prepared = prepare_paths(explanation, max_display=4)
    assert prepared.sums.shape == (200, 5)
    assert prepared.labels[0] == "3 other features"
    ends = np.sort(prepared.sums[:, -1])
    assert_close(ends[[0, -1]], [explanation.prediction.min(), explanation.prediction.max()], scale=20.0, n_terms=7)
    assert np.isin(prepared.sums[:, 0], explanation.baseline).all()
    ax = explanation.plot.decision()
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
