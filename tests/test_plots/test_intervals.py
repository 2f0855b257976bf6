"""What the interval plot shows, as numbers; one drawing of each kind."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from exactshap.errors import InputError
from exactshap.results.plots.intervals import draw_intervals, prepare_intervals
from explanation_factory import linear

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
def test_drawing_takes_and_returns_axes(i):
    matplotlib.use("Agg")

    figure, ax = plt.subplots()
    prepared = prepare_intervals(uncertain(names=["a $", "b", "c", "d"]), i)
    assert draw_intervals(prepared, ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == [name.replace("$", r"\$") for name in prepared.labels]
    assert "95 % credible interval" in ax.get_xlabel()
    assert len(ax.patches) == (4 if i == 0 else 0)
    figure.canvas.draw()
    plt.close(figure)
    other = draw_intervals(prepared)
    plt.close(other.figure)


@pytest.mark.parametrize(
    ("explanation", "settings", "text"),
    [
        (linear(RNG.normal(size=(2, 3))), {}, "Intervals need a standard deviation"),
        (uncertain(), {"level": 1.0}, "'level' parameter must be a float in"),
        (uncertain(), {"max_display": 0}, "'max_display' parameter must be an int >= 1"),
    ],
)
def test_bad_input(explanation, settings, text):
    with pytest.raises(InputError, match=text):
        prepare_intervals(explanation, **settings)
