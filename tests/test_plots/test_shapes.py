import interpret.glassbox as glassbox
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from exactshap.errors import InputError, UnknownNameError
from exactshap.explainer import Explainer
from exactshap.readers.additive import AdditiveModel
from exactshap.results.plots.shapes import draw_shape, prepare_shape
from tolerances import roundings

RNG = np.random.default_rng(0)
X, Z = (pd.DataFrame(RNG.normal(size=(n, 3)), columns=list("abc")) for n in (30, 11))
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
    assert (shape.unit, shape.game, shape.categories, shape.missing) == ("target", "value function: interventional", None, None)


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
    shape = prepare_shape(*both(rows), 1)
    assert shape.missing < rows["b"].min()
    assert (shape.x == shape.missing).sum() == 4
    ax = draw_shape(shape)
    assert [label.get_text() for label in ax.get_xticklabels()][-1] == "missing"


def test_text_gets_one_place_for_each_category():
    frame = pd.DataFrame({"city": RNG.choice(["Oslo", "Rome", "Lima"], 100), "size": RNG.normal(size=100)})
    y = (frame["city"] == "Rome") * (1.0 + frame["size"])
    model = glassbox.ExplainableBoostingRegressor(interactions=1, outer_bags=1, max_rounds=20, n_jobs=1).fit(frame, y)
    explainer = Explainer(model, frame)
    rows = frame.assign(city=np.where(np.arange(100) % 9 == 0, None, frame["city"]))
    shape = prepare_shape(explainer(rows), explainer(frame, index="moebius"), "city")
    assert shape.categories == ("Lima", "Oslo", "Rome")
    assert set(shape.x) == {0.0, 1.0, 2.0, shape.missing}
    assert len(shape.curve) == 3
    assert [label.get_text() for label in draw_shape(shape).get_xticklabels()] == ["Lima", "Oslo", "Rome", "missing"]


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
    with pytest.raises(UnknownNameError, match="Unknown feature 'd'"):
        prepare_shape(explanation, main, "d")
    with pytest.raises(InputError, match="There is no feature 7"):
        prepare_shape(explanation, main, 7)
    with pytest.raises(InputError, match="'g' is a group of several"):
        prepare_shape(*both(groups={"g": ["a", "b"]}), "g")
    with pytest.raises(InputError, match="must be of one model"):
        prepare_shape(explanation, both(groups={"g": ["a", "b"]})[1], 0)
