"""Waterfalls, scatters, heatmaps and violins: what is prepared, and what is drawn of awkward cells."""

import numpy as np
import pandas
import pytest

from exactshap.results.plots.overview import prepare_heatmap, prepare_violin
from exactshap.results.plots.scatter import draw_scatter, prepare_scatter
from exactshap.results.plots.waterfall import draw_waterfall, prepare_waterfall
from explanation_factory import linear
from tolerances import roundings


def awkward():
    """Explain one row with missing cells, a date, zeros and values of all sizes."""
    values = np.array([[1.0, -0.5, 0.0, 1e-9, -1e-9, 0.3]])
    cells = {"age": 31.0, "cabin": None, "fare": np.nan, "city": "x" * 80, "joined": np.datetime64("1912-04-10"), "cost": 1e6}
    prediction = 1.0 + values.sum(axis=1)
    return linear(
        values,
        values=values,
        prediction=prediction,
        residual=[0.0],
        tolerance=1e-9,
        names=list(cells),
        data=pandas.DataFrame([cells]),
    )


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
    ax = draw_waterfall(prepare_waterfall(linear(np.random.default_rng(0).normal(size=(5, n)) + 1.0), 2))
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
    prepared = prepare_waterfall(awkward())
    ax = draw_waterfall(prepared)
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
    data = pandas.DataFrame(
        {
            "name": [f"Passenger, Mr. number {i} of the ship" for i in range(n)],
            "joined": np.datetime64("1912-04-10") + random.integers(0, 900, n),
            "class": random.choice(["a", "b", None], n),
        }
    )
    return linear(X, names=list(data.columns), data=data)


def test_dates_are_placed_by_their_days_and_written_short():
    source = table()
    prepared = prepare_scatter(source, 1)
    assert prepared.x.kind == "date"
    np.testing.assert_array_equal(prepared.x.numbers, source.data["joined"].to_numpy().astype("datetime64[D]").astype(float))
    ax = draw_scatter(prepared)
    ax.figure.canvas.draw()
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert 2 <= len(names) <= 9
    assert max(map(len, names)) <= 10


def test_long_names_leave_room_for_the_dots():
    ax = draw_scatter(prepare_scatter(table(), 0, 1))
    ax.figure.canvas.draw()
    assert max(len(label.get_text()) for label in ax.get_xticklabels()) <= 18
    assert ax.get_position().height > 0.4


def test_rows_without_a_cell_are_counted():
    source = table()
    prepared = prepare_scatter(source, 2, 2)
    assert prepared.x.categories == ("a", "b")
    ax = draw_scatter(prepared)
    missing = int(source.data["class"].isna().sum())
    assert ax.get_xlabel() == f"class (missing in {missing})"
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == 80


def test_a_heatmap_holds_every_row_once():
    source = linear(np.random.default_rng(0).normal(size=(40, 14)))
    prepared = prepare_heatmap(source)
    assert sorted(prepared.order) == list(range(40))
    np.testing.assert_allclose(prepared.values.sum(axis=0), source.values[prepared.order].sum(axis=1), rtol=roundings(100))
    np.testing.assert_array_equal(prepared.prediction, source.prediction[prepared.order])
    assert prepared.labels[-1] == "5 others"
    near = np.linalg.norm(np.diff(prepared.values, axis=1), axis=0).sum()
    assert near < np.linalg.norm(np.diff(prepared.values[:, np.argsort(prepared.order)], axis=1), axis=0).sum()


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


def test_violins_hold_the_values_of_the_strongest_and_the_rest():
    source = linear(np.random.default_rng(0).normal(size=(40, 14)))
    prepared = prepare_violin(source, max_display=3)
    np.testing.assert_allclose(prepared.values.sum(axis=1), source.values.sum(axis=1), rtol=roundings(100))
    assert prepared.labels[-1] == "12 others"
    linear(np.ones((4, 2))).plot.violin()  # values without spread
