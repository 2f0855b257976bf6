import itertools

import numpy as np
import pandas
import pytest
from matplotlib import pyplot

from exactshap.errors import InputError
from exactshap.results.plots import draw_marginals, draw_prepared, prepare_marginals
from tolerances import NORMAL_TAILS, roundings


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
