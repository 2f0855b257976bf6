import io
import itertools
import warnings

import matplotlib.pyplot as plt
import matplotlib.text
import numpy as np
import pandas
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVR

from exactshap import Explanation, explain
from exactshap.errors import InputError, InputTypeError, UnknownNameError
from explanation_factory import bilinear, linear

NAMES = ["age", "price in $ (a$b)", "city=NY", "<b>bold</b>", "x4", "x5"]
PLOTS = {
    "waterfall": lambda plot, **settings: plot.waterfall(3, **settings),
    "beeswarm": lambda plot, **settings: plot.beeswarm(**settings),
    "bar": lambda plot, **settings: plot.bar(**settings),
    "bar of a row": lambda plot, **settings: plot.bar(2, **settings),
    "scatter": lambda plot, **settings: plot.scatter("city=NY", **settings),
    "coloured scatter": lambda plot, **settings: plot.scatter("age", color="x4", **settings),
    "interactions": lambda plot, **settings: plot.interactions(1, **settings),
    "heatmap": lambda plot, **settings: plot.heatmap(**settings),
    "violin": lambda plot, **settings: plot.violin(**settings),
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def explanation(**changes):
    X = np.random.default_rng(0).normal(size=(30, 6))
    return linear(X, names=NAMES, value_function="functional", unit="log-odds", **changes)


def drawn(name, **settings):
    source = bilinear(n=5, d=6, feature_names=NAMES) if name == "interactions" else explanation()
    return PLOTS[name](source.plot, **settings)


def texts(ax):
    ax.figure.canvas.draw()
    return " | ".join(item.get_text() for item in ax.figure.findobj(matplotlib.text.Text))


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_draws_into_the_axes_it_gets_and_touches_nothing_else(name, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("plt.show was called"))
    figure, (mine, other) = plt.subplots(1, 2, figsize=(13, 5))
    _, current = plt.subplots()
    plt.sca(current)
    generator, interactive = np.random.get_state()[1].copy(), plt.isinteractive()  # noqa: NPY002
    assert drawn(name, ax=mine) is mine
    assert mine.has_data()
    assert not other.has_data()
    assert plt.gca() is current
    assert list(figure.get_size_inches()) == [13, 5]
    figure.set_size_inches(4, 4)
    assert list(figure.get_size_inches()) == [4, 4]
    assert plt.isinteractive() == interactive
    np.testing.assert_array_equal(np.random.get_state()[1], generator)  # noqa: NPY002
    without_pyplot, others = Figure(figsize=(8, 5)), plt.get_fignums()
    FigureCanvasAgg(without_pyplot)
    drawn(name, ax=without_pyplot.subplots())
    assert plt.get_fignums() == others
    without_pyplot.canvas.draw()
    ax = drawn(name)
    assert ax.figure not in (figure, current.figure)
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", [name for name in PLOTS if "scatter" not in name])
def test_names_with_dollars_and_equal_signs_are_whole(name):
    content = texts(drawn(name))
    assert "city=NY" in content
    assert r"price in \$ (a\$b)" in content
    assert "\ue000" not in content


def test_waterfall_shows_the_numbers_of_its_row():
    source = explanation()
    content = texts(source.plot.waterfall(3, max_display=6))
    for j in range(6):
        value = source.values[3, j]
        assert f"{value:+.3g}".replace("-", "\N{MINUS SIGN}") in content
    assert f"{source.prediction[3]:.3f}".rstrip("0") in content
    assert r"v(\emptyset)" in content


@pytest.mark.parametrize("title", [None, "My model", "Two\nlines"])
def test_a_title_makes_room_for_the_prediction(title):
    ax = explanation().plot.waterfall(3, ax=plt.figure(figsize=(5, 4)).subplots())
    if title is not None:
        ax.set_title(title)
    ax.figure.draw_without_rendering()
    (over,) = ax.child_axes
    (prediction,) = over.get_xticklabels()
    assert ax.title.get_window_extent().y0 >= prediction.get_window_extent().y1


@pytest.mark.parametrize(("factor", "written"), [(1.0, "in full"), (100.0, "in powers of ten")])
@pytest.mark.parametrize("picture", ["waterfall", "bar"])
def test_the_numbers_of_a_picture_are_written_alike(picture, factor, written):
    source = linear(np.array([[2561426.0, -1.36e8, 3.0]]) * factor, seed=1)
    ax = getattr(source.plot, picture)(0)
    numbers = [text.get_text().partition("= ")[2] or text.get_text() for text in ax.texts]
    assert len(numbers) == 3 + (picture == "waterfall")
    full, powers = (any(sign in number for number in numbers) for sign in ",e")
    assert (full, powers) == (written == "in full", written != "in full"), numbers


def test_a_waterfall_of_values_that_do_not_add_up_is_refused():
    half = explanation(values=explanation().values / 2, index="banzhaf")
    with pytest.raises(InputError, match=r"A waterfall needs values that add up to the prediction. Got index='banzhaf'"):
        half.plot.waterfall(0)
    half.plot.bar(0)


def test_text_columns_are_drawn_with_their_words():
    data = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 6)), columns=NAMES)
    data["x5"] = ["gold $", "low=1", None] * 10
    source = explanation(data=data)
    assert r"gold \$" in texts(source.plot.waterfall(0))
    assert "low=1" in texts(source.plot.scatter("x5"))
    source.plot.beeswarm()


def test_an_explanation_without_data_is_drawn_without_cells():
    source = explanation(data=None)
    source.plot.waterfall(0)
    source.plot.beeswarm()
    source.plot.bar()
    with pytest.raises(InputError, match="A scatter plot needs the data"):
        source.plot.scatter("age")
    with pytest.raises(InputTypeError, match=r"holds the pictures.*plot\.beeswarm\(\)"):
        source.plot()


def test_several_outputs_need_a_choice():
    source = linear(np.random.default_rng(0).normal(size=(9, 3)), n_outputs=2)
    with pytest.raises(InputError, match=r"A plot shows one output. This explanation has \['class 0', 'class 1'\]"):
        source.plot.bar()
    source.plot.bar(output="class 1")
    source.plot.waterfall(0, output=0)


@pytest.mark.parametrize("kind", ["bar", "beeswarm", "waterfall", "heatmap", "violin", "intervals"])
@pytest.mark.parametrize("wrong", [0, -1, 1.5, None, "3", True])
def test_a_number_of_bars_that_is_none_is_refused(kind, wrong):
    before = plt.get_fignums()
    with pytest.raises(InputError, match=r"'max_display' parameter must be an int >= 1\. Got"):
        getattr(explanation().plot, kind)(max_display=wrong)
    with pytest.raises(InputError, match=r"'max_display' parameter must be an int >= 1\. Got"):
        bilinear().plot.interactions(max_display=wrong)
    assert plt.get_fignums() == before


def test_what_cannot_be_drawn_leaves_no_empty_figure():
    before = plt.get_fignums()
    with pytest.raises(UnknownNameError, match=r"Unknown feature 'aeg'. Did you mean 'age'"):
        explanation().plot.scatter("aeg")
    with pytest.raises(InputError, match="There is no feature 6"):
        explanation().plot.scatter(6)
    with pytest.raises(IndexError):
        explanation().plot.bar(300)
    assert plt.get_fignums() == before


def test_groups_show_their_cells_and_are_coloured_by_their_mean():

    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 6)).round(2), columns=list("abcdef"))
    frame.loc[0, ["a", "b"]] = [15024.0, 0.0]
    found = explain(SVR().fit(frame, frame["a"]), frame[:9], frame, groups={"pair": ["a", "b"], "rest": ["c", "d", "e", "f"]})
    shown = texts(found.plot.waterfall(0))
    assert "15024, 0" in shown
    assert f"mean {frame.iloc[0, 2:].mean():.4g} of 4" in shown
    assert "pair (mean of 2 columns)" in texts(found.plot.scatter("pair"))
    content = found.to_shap()
    np.testing.assert_allclose(content.data[:, 0], frame[["a", "b"]][:9].mean(axis=1))
    assert content.display_data[0, 0] == "15024, 0"
    labelled = explain(
        SVR().fit(frame, frame["a"]), frame[:2].set_axis(["client 17", "client 4"]), frame, index="k-sii", order=2
    )
    assert "row 1 (client 4) (model output" in texts(labelled.plot.bar(1))
    assert "row 1 (client 4)" in texts(labelled.plot.interactions(1))
    assert "row 0 (model output" in texts(found.plot.waterfall(0))
    assert "row 0 (client 17) (model" in texts(explain(SVR().fit(frame, frame["a"]), labelled.data, frame).plot.waterfall(0))
    levels = frame.set_axis(pandas.MultiIndex.from_product([["north"], range(len(frame))]))
    assert "row 0 (north, 0) (model" in texts(explain(SVR().fit(frame, frame["a"]), levels[:2], frame).plot.waterfall(0))
    assert "over 1 row (" in texts(found[0].plot.bar())
    assert "9 rows x 2 players" in repr(found)


def test_names_of_many_categories_do_not_lie_on_each_other():
    frame = pandas.DataFrame({"street": [f"street {i:03d}" for i in range(100)]})
    found = linear(np.ones((100, 1)), names=["street"], data=frame)
    names = [label.get_text() for label in found.plot.scatter("street").get_xticklabels()]
    assert names == [f"street {i:03d}" for i in range(0, 100, 4)]


def test_a_failed_certificate_is_in_the_title():
    source = explanation(residual=np.full(30, 1e-3), prediction=explanation().prediction + 1e-3)
    assert "residual 0.001 is ABOVE its tolerance" in texts(source.plot.bar())


def test_missing_matplotlib_is_named_with_its_fix_and_shap_is_not_needed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shap", None)
    explanation().plot.bar()
    explanation().plot.beeswarm()
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Plotting needs matplotlib.*pip install \"exactshap\[plots\]\""):
        bilinear().plot.interactions(0)


def test_pictures_of_interactions_hold_the_index_itself():
    source = bilinear(n=3, d=4)
    ax = source.plot.interactions(1)
    names = [source.feature_names.index(label.get_text()) for label in ax.get_yticklabels()]
    np.testing.assert_array_equal(ax.images[0].get_array(), source.interactions[1][np.ix_(names, names)])
    strength = np.abs(source.interactions[1]).sum(axis=1)
    assert list(strength[names]) == sorted(strength, reverse=True)
    assert ax.get_xlabel() == ""
    assert "response" in ax.figure.axes[-1].get_ylabel()


def test_interactions_over_all_rows_are_mean_magnitudes_of_the_strongest():
    source = bilinear(n=7, d=6)
    ax = source.plot.interactions(max_display=3)
    names = [source.feature_names.index(label.get_text()) for label in ax.get_yticklabels()]
    np.testing.assert_array_equal(ax.images[0].get_array(), np.abs(source.interactions).mean(axis=0)[np.ix_(names, names)])
    assert "3 players with smaller values not shown" in texts(ax)
    with pytest.raises(InputError, match="Interactions need order=2"):
        explanation().plot.interactions(0)


@pytest.mark.parametrize("kind", ["bar", "beeswarm", "waterfall", "scatter", "intervals", "interactions"])
def test_no_rows_are_refused_in_words(kind):
    for arguments in ((0,),) if kind == "scatter" else ((), (0,)) if kind in ("bar", "waterfall") else ((),):
        with pytest.raises(InputError, match=r"needs at least one row\. Got an explanation of 0 rows"):
            getattr(linear(np.zeros((0, 2))).plot, kind)(*arguments)


@pytest.mark.parametrize("picture", ["waterfall", "beeswarm", "bar", "scatter", "heatmap", "violin"])
def test_long_names_stay_inside_the_figure(picture):
    long = "the score before the softmax of a class whose name goes on and on"
    X = np.random.default_rng(0).normal(size=(12, 3))
    names = ["a column with a name that somebody wrote as a whole sentence", "b", "c"]
    explanation = linear(X, names=names, value_function="interventional", unit=long)
    ax = getattr(explanation.plot, picture)(*([0] if picture in ("waterfall", "scatter") else []))
    ax.figure.savefig(io.BytesIO())
    width, height = ax.figure.bbox.size
    shown = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_yticklabels()]
    boxes = [text.get_window_extent() for text in shown if text.get_text()]
    assert len(boxes) >= 3
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)


@pytest.mark.parametrize("picture", ["waterfall", "bar", "bar of means", "violin", "intervals", "interactions"])
def test_large_numbers_and_long_names_do_not_overlap(picture):
    """Numbers are written in full, with room for them next to the names, below the axis and in the cells of pairs."""
    names = ["annual household income before taxes (EUR per year)", "balance of the account at the end of the month", "x"]
    X = np.array([[-123456.0, 65432.0, -20000.0], [123456.0, -7000.0, 300000.0]])
    source = linear(X, names=names, value_function="interventional", unit="EUR", std_error=np.full((2, 3), 300.0))
    if picture == "interactions":
        large = bilinear(2, 3)
        source = bilinear(2, 3, feature_names=names, values=1e5 * large.values, set_values=1e5 * large.set_values)
    ax = getattr(source.plot, picture.split()[0])(*([] if picture in ("violin", "bar of means") else [0]))
    ax.figure.draw_without_rendering()
    groups = [ax.get_xticklabels()] if picture != "interactions" else [ax.texts[k : k + 3] for k in range(0, 9, 3)]
    numbers = [text for text in ax.texts if "EUR" not in text.get_text()]
    groups += [[label, text] for label in ax.get_yticklabels() for text in numbers]
    for group in groups:
        boxes = [text.get_window_extent() for text in group if text.get_text()]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert "e+0" not in texts(ax)


@pytest.mark.parametrize("n_columns", [2, 6, 12])
def test_the_colour_bar_of_a_swarm_is_readable(n_columns):
    (ax, bar) = (
        linear(np.random.default_rng(0).normal(size=(9, n_columns)), value_function="interventional")
        .plot.beeswarm()
        .figure.axes
    )
    ax.figure.draw_without_rendering()
    what, ends = bar.yaxis.label.get_window_extent(), [label.get_window_extent() for label in bar.get_yticklabels()]
    assert not any(what.overlaps(end) for end in ends)


def test_turned_names_of_pairs_have_one_line():
    """Three turned lines lie across the name of the next column."""
    names = ["a column with a name that somebody wrote as a whole sentence", "line\nbreak", "c"]
    ax = bilinear(2, 3, feature_names=names).plot.interactions(0)
    below = [label.get_text() for label in ax.get_xticklabels()]
    assert not any("\n" in name for name in below)
    assert {"line break", "c"} < set(below)


def test_pictures_draw_into_parts_of_figures():
    (part, _) = plt.figure(layout="constrained").subfigures(1, 2)
    assert explanation().plot.beeswarm(ax=part.subplots()).figure is part


PICTURES = ("bar", "beeswarm", "violin", "heatmap", "decision", "waterfall", "scatter", "text", "intervals", "interactions")


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_names_value_function_unit_and_bound(name):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 12))
    if name == "intervals":
        process = GaussianProcessRegressor(Matern(4.0), alpha=0.1, optimizer=None).fit(rows, rows[:, 0])
        explanation, unit = explain(process, rows[:3], rows[:2], uncertainty=True), "target"
    else:
        model, unit = LogisticRegression().fit(rows, rows[:, 0] > 0), "probability of class True"
        question = {"index": "k-sii", "order": 2} if name == "interactions" else {}
        explanation = explain(model, rows[:3], rows[:5], output="probability", **question)
    assert np.max(explanation.error_bound) > 0.0
    shown = texts(getattr(explanation.plot, name)(*((0,) if name == "scatter" else ()))).replace("\n", " ")
    for words in (
        f"value function: {explanation.value_function}",
        f"error bound {np.max(explanation.error_bound):.0e}",
        unit,
    ):
        assert words in shown


@pytest.mark.parametrize("kind", ["bar", "beeswarm", "waterfall", "decision", "heatmap", "violin", "intervals"])
def test_long_names_without_spaces_leave_room_for_the_picture(kind):
    names = ("x", "categorical__" + "occupation_of_the_applicant_" * 5, "\\$" * 90, "a" * 300)
    X = np.random.default_rng(0).normal(size=(9, 4))
    ax = getattr(linear(X, names=names, std_error=0.1 * np.abs(X)).plot, kind)()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib gives up a layout without room
        ax.figure.canvas.draw()
    lines = [label.get_text() for label in ax.get_yticklabels()]
    assert any("categorical__occupation" in line and "\n" in line for line in lines)
    assert max(len(part) for line in lines for part in line.replace(r"\$", "$").split("\n")) <= 36
    assert "a" * 30 in "".join(lines)
    assert "…" in "".join(lines)


@pytest.mark.parametrize("name", ["waterfall", "beeswarm", "bar", "heatmap", "violin", "decision", "image", "text"])
def test_values_within_tolerance_that_are_drawn_as_zero_are_no_missed_prediction(name):
    values = np.full((3, 4), 0.9e-9)
    values[:, 0] = 1.0
    found = Explanation(
        values=values,
        baseline=np.zeros(3),
        prediction=values.sum(axis=1),
        residual=np.zeros(3),
        tolerance=np.full(3, 1e-9),
        feature_names=list("abcd"),
        value_function="interventional",
        data=np.zeros((3, 4)),
    )
    assert found.certificate().passed
    assert "ABOVE" not in texts(getattr(found.plot, name)())
