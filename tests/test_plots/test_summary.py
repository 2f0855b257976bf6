"""Bars, dots, colours of choice and the palette."""

import numpy as np
import pandas
import pytest

from exactshap.errors import InputError, UnknownNameError
from exactshap.results.plots import palette, prepare_bars, prepare_scatter, prepare_swarm
from explanation_factory import bilinear, linear
from tolerances import assert_close

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(autouse=True)
def _closed():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


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
    with pytest.raises(InputError, match="no colour"), palette(positive="reddish"):
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
