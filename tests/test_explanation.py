import functools
import importlib
import io
import json
import pickle
import pkgutil
import sys
from dataclasses import fields, replace

import matplotlib
import numpy as np
import pandas
import pandas as pd
import polars
import pyarrow as arrow
import pyarrow.parquet as parquet_files
import pytest
import shap
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold
from sklearn.svm import SVR

import exactshap.readers as readers
from exactshap import Explanation, explain, solve
from exactshap.errors import InputError, InputTypeError, MissingDependencyError, ModelFormatError, UnknownNameError
from exactshap.games import OracleGame, ProductGame
from exactshap.results.data import row_bytes, value_function_sentence
from exactshap.results.explanation import fingerprint
from explanation_factory import bilinear, linear, rewritten
from tolerances import FLOAT32_PEER, roundings

X = np.random.default_rng(1).normal(size=(6, 3))


def frame(kind, **extra):
    library = importlib.import_module(kind)
    columns = {f"x{j}": X[:, j] for j in range(3)} | extra
    return library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)


# --- construction -----------------------------------------------------------------------------------------------------


OF_ARRAYS = [
    ({"values": np.zeros(3)}, r"`values` must have shape \(n_rows, n_players\[, n_outputs\]\). Got \(3,\)"),
    ({"baseline": np.ones((6, 2))}, r"`baseline` has shape \(6, 2\), `values` has shape \(6, 3\)"),
    ({"baseline": 1.0}, r"`baseline` has shape \(\), `values` has shape \(6, 3\)"),
    ({"prediction": np.ones(5)}, r"`prediction` has shape \(5,\), `values` has.*`prediction` must have shape \(6,\)"),
    ({"residual": np.ones((6, 1))}, r"`residual` has shape \(6, 1\)"),
    ({"std_error": np.ones((6, 2))}, r"`std_error` has shape \(6, 2\), `values` has shape \(6, 3\)"),
    ({"covariances": np.ones((6, 3))}, r"`covariances` must have shape \(6, 3, 3\)"),
    ({"tolerance": np.ones(2)}, r"`tolerance` must have shape \(6,\), one per row of `values`. Got \(2,\)"),
    ({"error_bound": np.ones(2)}, r"`error_bound` must have shape \(6,\)"),
    ({"feature_names": ["a", "b"]}, r"There are 2 names, `values` has shape \(6, 3\)"),
    ({"feature_names": ["a", "b", "a"]}, r"`feature_names` must be unique. 'a' occurs 2 times"),
    ({"output_names": ["a"]}, r"`output_names` is for several outputs"),
    ({"n_outputs": 2, "output_names": None}, "`values` has several outputs and `output_names` is None"),
    ({"data": X[:4]}, r"`data` has shape \(4, 3\), `values` has 6 rows and 3 players"),
    ({"data": X[:, :2]}, r"`data` has shape \(6, 2\)"),
    ({"order": 2}, r"`sets` is needed with order > 1. Got order=2 and sets=None"),
    ({"order": 0}, r"`order` must be an int >= 1. Got 0"),
    ({"order": 2, "sets": ((0,), (1,), (2,), (0, 1))}, r"`set_values` is needed with order > 1"),
    ({"sets": ((1,), (0,), (2,))}, r"`sets` must begin with all single players, in order"),
    ({"groups": {"zz": ("x0",)}}, r"`groups` names a player that is not in `feature_names`. Got 'zz'"),
]
OF_TYPES = [
    ({"values": [["a", "b", "c"]] * 6}, "`values` must be an array of numbers"),
    ({"feature_names": [1, 2, 3]}, "`feature_names` must be strings. Got int 1"),
    ({"index": 3}, "`index` must be a str. Got 3"),
    ({"groups": ["x0"]}, "`groups` must map player names to columns. Got list"),
    ({"mask_difference": "x"}, "mask_difference"),
    ({"mask_tolerance": -1.0}, "mask_tolerance"),
    ({"n_masks": 0.5}, "n_masks"),
    ({"mask_rows": (1.5,)}, "mask_rows"),
]
OF_PAIRS = [
    ({"values": np.zeros((4, 5))}, "`values` must be the order-1 part of `set_values`"),
    ({"order": 1}, r"`sets` has sets above the order. Got order=1, a set of 2"),
    ({"d": 2, "sets": ((0,), (1,), (0, 2))}, "a player that is not there"),
]


@pytest.mark.parametrize(
    ("build", "changes", "error", "text"),
    [
        *((functools.partial(linear, X), *case[:1], InputError, *case[1:]) for case in OF_ARRAYS),
        *((functools.partial(linear, X), *case[:1], InputTypeError, *case[1:]) for case in OF_TYPES),
        *((bilinear, *case[:1], InputError, *case[1:]) for case in OF_PAIRS),
    ],
)
def test_what_does_not_fit_is_refused(build, changes, error, text):
    with pytest.raises(error, match=text):
        build(**changes)


def test_arrays_are_read_only_and_keyword_only_and_frozen():
    explanation = bilinear()
    for name in ("values", "baseline", "prediction", "residual", "tolerance", "set_values"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(explanation, name)[0] = 1.0
    with pytest.raises(AttributeError):
        explanation.values = np.zeros((4, 5))
    with pytest.raises(TypeError):
        Explanation(np.zeros((1, 1)))


def test_pickle_keeps_every_field_and_stays_read_only():
    explanation = bilinear(std_error=np.full((4, 5), 0.1))
    twin = pickle.loads(pickle.dumps(explanation))
    assert_same(twin, explanation)
    assert not twin.values.flags.writeable


# --- selection --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        (2, [2]),
        (-1, [5]),
        (np.int64(3), [3]),
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, -2), [5, 3, 1]),
        ([4, 0, 4], [4, 0, 4]),
        (np.array([True, False, False, True, False, False]), [0, 3]),
        ([], []),
    ],
)
@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "pyarrow"])
def test_rows_are_selected_everywhere_at_once(rows, numbers, kind):
    data = X if kind == "array" else frame(kind)
    explanation = linear(X, data=data, tolerance=np.arange(6.0), error_bound=np.arange(6.0), std_error=X**2)[rows]
    assert len(explanation) == len(numbers)
    np.testing.assert_array_equal(explanation.values, linear(X).values[numbers])
    np.testing.assert_array_equal(explanation.std_error, (X**2)[numbers])
    np.testing.assert_array_equal(explanation.tolerance, np.arange(6.0)[numbers])
    np.testing.assert_array_equal(explanation.error_bound, np.arange(6.0)[numbers])
    assert type(explanation.data) is type(data)
    np.testing.assert_array_equal(np.asarray(explanation.data).reshape(-1, 3), X[numbers])


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        (6, IndexError, "Row 6 is out of range. There are 6 rows"),
        ([0, -7], IndexError, "Row -7 is out of range"),
        (np.array([True, False]), InputError, "A row mask must have one entry per row"),
        (np.array([], bool), InputError, "A row mask must have one entry per row"),
        ("x0", InputTypeError, "Rows are selected by an int, a slice"),
        (1.0, InputTypeError, "Rows are selected by an int, a slice"),
    ],
)
def test_wrong_rows_are_named(rows, error, text):
    with pytest.raises(error, match=text):
        linear(X)[rows]


def test_one_output_by_name_or_number():
    explanation = linear(X, n_outputs=3, std_error=np.ones((6, 3, 3)))
    chosen = explanation.output("class 1")
    np.testing.assert_array_equal(chosen.values, explanation.values[:, :, 1])
    np.testing.assert_array_equal(chosen.baseline, explanation.baseline[:, 1])
    np.testing.assert_array_equal(chosen.std_error, explanation.std_error[:, :, 1])
    assert chosen.output_names is None
    assert "class 1" in chosen.unit
    assert not chosen.exact
    np.testing.assert_array_equal(explanation.output(-1).values, explanation.values[:, :, 2])
    np.testing.assert_array_equal(bilinear().output(0).set_values, bilinear().set_values)
    for source, output, error, text in (
        (explanation, "class 9", UnknownNameError, r"Unknown output 'class 9'. Did you mean"),
        (explanation, 3, InputError, "There is no output 3"),
        (linear(X), 1, InputError, "This explanation has a single output"),
    ):
        with pytest.raises(error, match=text):
            source.output(output)


# --- what follows from the arrays -------------------------------------------------------------------------------------


def test_interactions_are_symmetric_with_values_on_the_diagonal():
    explanation = bilinear(n=3, d=4)
    matrix = explanation.interactions
    for i in range(3):
        for j in range(4):
            for k in range(4):
                expected = explanation.data[i, j] if j == k else explanation.data[i, j] * explanation.data[i, k]
                assert matrix[i, j, k] == expected
    with pytest.raises(InputError, match=r"Interactions need order=2. Got order=1"):
        linear(X).interactions
    zeros, names = np.zeros((3, 2)), ("values", "set_values", "prediction")
    doubled = {name: np.stack([getattr(explanation, name), 2 * getattr(explanation, name)], axis=-1) for name in names}
    several = replace(explanation, **doubled, baseline=zeros, residual=zeros, output_names=["a", "b"])
    np.testing.assert_array_equal(several.interactions[..., 1], 2 * matrix)
    np.testing.assert_array_equal(several.output("b").interactions, 2 * matrix)


def test_certificate_names_the_worst_row_and_fails_above_its_own_tolerance():
    residual = np.array([1e-9, 1e-9, 0.0, 0.0, 0.0, 0.0])
    tolerance = np.array([1e-8, 1e-10, 1.0, 1.0, 1.0, 1.0])
    certificate = linear(X, residual=residual, tolerance=tolerance, prediction=linear(X).prediction + residual).certificate()
    assert (certificate.row, certificate.passed, certificate.tolerance) == (1, False, 1e-10)
    assert certificate.max_residual == 1e-9
    assert "FAILED, first at row 1" in str(certificate)
    assert linear(X).certificate().passed


@pytest.mark.parametrize("n_outputs", [None, 2])
@pytest.mark.parametrize("n_rows", [0, 1, 10, 11])
@pytest.mark.parametrize(
    ("residual", "tolerance", "mask_difference", "passes"),
    [
        (1e-12, 1e-12, None, True),
        (-1e-12, 1e-12, 1e-9, True),
        (-2e-12, 1e-12, None, False),
        (np.nan, 1e-12, None, False),
        (0.0, np.inf, None, False),
        (0.0, 1e-12, 2e-9, False),
    ],
)
def test_few_rows_are_held_against_their_tolerance_as_many_are(n_rows, n_outputs, residual, tolerance, mask_difference, passes):
    explanation = linear(
        np.ones((n_rows, 3)), n_outputs=n_outputs, mask_difference=mask_difference, mask_tolerance=1e-9, n_masks=2
    )
    residuals, tolerances = np.zeros_like(explanation.residual), np.full(n_rows, 1e-12)
    residuals[-1:], tolerances[-1:] = residual, tolerance
    explanation = replace(explanation, residual=residuals, tolerance=tolerances)
    masks_agree = mask_difference is None or mask_difference <= 1e-9
    assert explanation.is_within_tolerance == (masks_agree and explanation.rows_within_tolerance.all())
    assert explanation.is_within_tolerance == (passes if n_rows else masks_agree)
    assert explanation.certificate().passed == explanation.is_within_tolerance


def test_additive_tells_shares_from_other_values():
    assert linear(X).additive
    assert not bilinear().additive
    assert "sum of values over all sets" in bilinear().residual_meaning
    half = linear(X, values=linear(X).values / 2, index="banzhaf")
    assert not half.additive
    assert half.residual_meaning == "prediction - v(all players)"


def test_standard_deviations_come_from_covariances():
    A = np.random.default_rng(2).normal(size=(6, 3, 3))
    covariances = A @ A.transpose(0, 2, 1)
    explanation = linear(X, covariances=covariances)
    np.testing.assert_array_equal(explanation.std, np.sqrt(np.diagonal(covariances, axis1=1, axis2=2)))
    np.testing.assert_array_equal(explanation.covariance(4), covariances[4])
    np.testing.assert_array_equal(explanation[[4]].covariance(0), covariances[4])
    assert linear(X).std is None
    with pytest.raises(InputError, match="This explanation has no covariances"):
        linear(X).covariance(0)
    with pytest.raises(IndexError, match=r"Row 99 is out of range\. There are \d+ rows"):
        explanation.covariance(99)
    np.testing.assert_array_equal(explanation.covariance(-1), covariances[-1])


@pytest.mark.parametrize("name", ["interventional", "baseline", "functional", "path_dependent", "observational"])
def test_repr_says_which_game_was_played_and_what_it_is_not(name):
    text = repr(linear(X, value_function=name, background_size=7))
    assert f"{name}. {value_function_sentence(name)}" in " ".join(text.split())
    assert " not " in value_function_sentence(name)
    for word in (
        "exact Shapley values, 6 rows x 3 features",
        "baseline        1",
        "residual        at most",
        "seconds         0.25",
    ):
        assert word in text
    assert max(map(len, text.splitlines())) <= 116
    assert any(line.startswith(" " * 18) for line in text.splitlines())


# --- frames -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_come_back_in_their_kind(kind):
    explanation = linear(X, data=frame(kind))
    result = explanation.to_frame()
    assert type(result).__module__.startswith(kind)
    np.testing.assert_array_equal(np.asarray(result), explanation.values)
    assert list(getattr(result, "column_names", result.columns if kind != "pyarrow" else None)) == ["x0", "x1", "x2"]
    if kind == "pandas":
        labelled = explanation.data.set_axis([f"person {i}" for i in range(6)])
        assert list(linear(X, data=labelled)[[4, 1]].to_frame().index) == ["person 4", "person 1"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_that_a_frame_gets_later_are_not_in_the_explanation(kind):
    """Predictions written next to the rows made a column too many for every picture, and replaced ones moved their points."""
    rows = frame(kind)
    explanation = explain(SVR().fit(X, X[:, 0]), rows)
    if kind == "pandas":
        rows["prediction"], rows["x0"] = explanation.prediction, 0.0
    else:
        rows.insert_column(3, polars.Series("prediction", explanation.prediction))
        rows.replace_column(0, polars.Series("x0", np.zeros(6)))
    np.testing.assert_array_equal(explanation.data.to_numpy(), X)
    assert explanation.plot.scatter("x0")


def test_frames_of_outputs_and_sets_have_one_column_each():
    outputs = linear(X, n_outputs=2)
    result = outputs.to_frame("pandas")
    assert list(result.columns)[:3] == ["x0[class 0]", "x0[class 1]", "x1[class 0]"]
    np.testing.assert_array_equal(result["x1[class 1]"], outputs.values[:, 1, 1])
    assert bilinear(d=3).to_frame("polars").columns == ["x0", "x1", "x2", "x0 & x1", "x0 & x2", "x1 & x2"]
    with pytest.raises(UnknownNameError, match=r"Unknown kind of frame 'pandsa'. Did you mean 'pandas'"):
        outputs.to_frame("pandsa")


# --- other libraries --------------------------------------------------------------------------------------------------


def test_an_explanation_in_the_place_of_an_array_names_its_values():
    """NumPy would take rows of rows without end."""
    for use in (np.asarray, np.abs):
        with pytest.raises(InputTypeError, match=r"Take explanation\.values, or explanation\.to_shap\(\)"):
            use(linear(X))


def test_to_shap_is_the_real_class_with_the_same_numbers():
    data = pandas.DataFrame({"x0": X[:, 0], "x1": ["b", "a", None, "b", "c", "a"], "x2": X[:, 2] > 0}, index=list("uvwxyz"))
    explanation = linear(X, data=data, std_error=np.ones((6, 3)))
    other = explanation.to_shap()
    assert isinstance(other, shap.Explanation)
    np.testing.assert_array_equal(other.values, explanation.values)
    np.testing.assert_array_equal(other.base_values, explanation.baseline)
    np.testing.assert_array_equal(other.data[:, 0], X[:, 0])
    np.testing.assert_array_equal(other.data[:, 1], [1, 0, np.nan, 1, 2, 0])
    np.testing.assert_array_equal(other.data[:, 2], X[:, 2] > 0)
    assert list(other.display_data[:, 1]) == ["b", "a", "", "b", "c", "a"]
    assert list(other.instance_names) == list("uvwxyz")
    assert other.feature_names == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(other.error_std, 1.0)
    assert other.compute_time == 0.25
    several = linear(X, n_outputs=3)
    chosen = several.to_shap()[:, :, "class 2"]
    np.testing.assert_array_equal(chosen.values, several.values[:, :, 2])
    np.testing.assert_array_equal(chosen.base_values, several.baseline[:, 2])


@pytest.mark.parametrize("kind", ["pandas", "array"])
@pytest.mark.parametrize("groups", [{"g": (0, 2)}, {"g": ("x0", "x2")}, {"g": ("x0", "x2"), "x1": ("x1",)}])
def test_to_shap_shows_the_mean_of_a_numeric_group_and_the_text_of_another(groups, kind):
    other = linear(X[:, :2], data=X if kind == "array" else frame(kind), names=["g", "x1"], groups=groups).to_shap()
    np.testing.assert_allclose(other.data[:, 0], (X[:, 0] + X[:, 2]) / 2, rtol=roundings(5))
    np.testing.assert_array_equal(other.data[:, 1], X[:, 1])
    data = frame("pandas", city=["NY", "LA"] * 3)
    words = linear(X[:, :3], data=data, names=["g", "x1", "x2"], groups={"g": ("x0", "city")}).to_shap()
    assert words.display_data[0, 0] == f"{X[0, 0]}, NY"


@pytest.mark.parametrize(
    ("column", "text"),
    [(0, "`data` does not have the columns of the players"), ("zz", "A group names column 'zz', which `data`")],
)
def test_groups_that_do_not_fit_the_data_are_refused(column, text):
    with pytest.raises(InputError, match=text):
        linear(X[:, :2], data=X, names=["g", "x1"], groups={"g": (column,)}).to_shap()


def test_to_shap_keeps_pairs_as_shap_has_them():
    explanation = bilinear(index="k-sii")
    other = explanation.to_shap()
    assert other.values.shape == explanation.interactions.shape
    np.testing.assert_allclose(other.values.sum(axis=(1, 2)), explanation.set_values.sum(axis=1), atol=roundings(5_000))
    np.testing.assert_array_equal(2 * other.values[:, 0, 1], explanation.interactions[:, 0, 1])
    np.testing.assert_array_equal(other.values[:, 2, 2], explanation.values[:, 2])
    assert isinstance(other, shap.Explanation)


def test_shap_pairs_of_trees_are_those_of_shap():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(rows, rows[:, 0] * rows[:, 1])
    ours = explain(model, X[:3], index="k-sii", order=2).to_shap()
    theirs = shap.TreeExplainer(model).shap_interaction_values(X[:3])
    np.testing.assert_allclose(ours.values, theirs, atol=FLOAT32_PEER)


@pytest.mark.peer
@pytest.mark.parametrize(("index", "name"), [("stii", "STII"), ("k-sii", "k-SII"), ("fsii", "FSII"), ("sii", "SII")])
def test_to_shapiq_keeps_every_value(index, name):
    shapiq = pytest.importorskip("shapiq")
    explanation = bilinear(index=index)
    other = explanation.to_shapiq(2)
    assert isinstance(other, shapiq.InteractionValues)
    assert (other.index, other.max_order, other.n_players, other.estimated) == (name, 2, 5, False)
    for number, players in enumerate(explanation.sets):
        assert other[players] == explanation.set_values[2, number]
    assert other.baseline_value == explanation.baseline[2]
    assert other[()] == explanation.baseline[2]  # where shapiq's force and upset plots begin


@pytest.mark.peer
def test_to_shapiq_of_one_output_its_plots_and_an_index_without_a_name():
    plots, explanation = pytest.importorskip("shapiq.plot"), linear(X, n_outputs=2)
    other = explanation.to_shapiq(1, "class 1")
    assert other.index == "SV"
    assert [other[(j,)] for j in range(3)] == list(explanation.values[1, :, 1])
    assert sum(other.interactions.values()) == pytest.approx(explanation.prediction[1, 1])
    assert plots.upset_plot(other, show=False) is not None
    assert plots.force_plot(other, show=False) is not None
    with pytest.raises(UnknownNameError, match=r"shapiq has no name for index 'beta\(16, 1\)' of order 1"):
        linear(X, index="beta(16, 1)").to_shapiq(0)


@pytest.mark.parametrize(("module", "package"), [("shap", r"\"exactshap\[plots\]\""), ("shapiq", "shapiq")])
def test_missing_libraries_are_named_with_their_fix(module, package, monkeypatch):
    with pytest.raises(TypeError, match=r"shapiq holds one row at a time\. .* has 6: to_shapiq\(0\) is the first"):
        linear(X).to_shapiq()
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install {package}\.$"):
        linear(X).to_shap() if module == "shap" else linear(X).to_shapiq(0)


# --- files ------------------------------------------------------------------------------------------------------------


def assert_same(one, other):
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, err_msg=field.name)
        elif field.name != "data":
            assert a == b, field.name


@pytest.mark.parametrize(
    "explanation",
    [
        linear(X),
        linear(X, data=None, seconds=None, groups=None),
        linear(X, n_outputs=2, std_error=np.ones((6, 3, 2)), n_evaluations=7),
        linear(X, covariances=np.ones((6, 3, 3)), error_bound=np.arange(6.0), background_size=9, background_hash="ab"),
        linear(X[:, :2], data=X, names=["g", "ünïcode 名"], groups={"g": (0, 2)}),
        linear(X, data=np.array([["a", None, 1.5]] * 6, dtype=object)),
        linear(X, data=np.array([["a", "b", "c"]] * 6)),
        bilinear(),
        linear(np.empty((0, 3))),
    ],
)
def test_saving_and_loading_gives_everything_back(explanation, tmp_path):
    explanation.save(tmp_path / "e.npz")
    loaded = Explanation.load(tmp_path / "e.npz")
    assert_same(explanation, loaded)
    if explanation.data is None:
        assert loaded.data is None
    else:
        np.testing.assert_array_equal(loaded.data, explanation.data)
    assert [file.name for file in tmp_path.iterdir()] == ["e.npz"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "index and categories"])
def test_saved_frames_come_back_as_they_were(kind, tmp_path):
    if kind == "index and categories":
        data = pandas.DataFrame(
            {"a": pandas.Categorical(["x", "y"] * 3, ordered=True), "b": [1, None, 3] * 2}, index=list("uvwxyz")
        )
        data = data.astype({"b": "Int64"}).assign(c=1.0, d=True)
    else:
        data = frame(kind, city=["NY", "LA", None] * 2)
    linear(np.ones((6, 4)), data=data, names=["x0", "x1", "x2", "city"]).save(tmp_path / "e.npz")
    loaded = Explanation.load(tmp_path / "e.npz").data
    assert type(loaded) is type(data)
    assert loaded.equals(data)
    if kind == "index and categories":
        pandas.testing.assert_frame_equal(loaded, data)


def of_numbers(n):
    categories = {
        "whole": pandas.Categorical([3, None, 1, 3, 1, 3][:n], categories=[3, 7, 1], ordered=True),
        "real": pandas.Categorical([0.1, 2.0, None, 0.1, 2.0, 2.0][:n]),
        "true": pandas.Categorical([True, False, None, True, True, False][:n]),
    }
    return pandas.DataFrame(categories, index=pandas.CategoricalIndex([7, 5, 5, 7, 7, 5][:n], name="k"))


@pytest.mark.parametrize("n", [6, 2])
@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_categories_of_numbers_come_back_as_categories(kind, n, tmp_path):
    """Parquet gives their numbers back, which pictures draw as measurements and hashes of rows count as others."""
    data = of_numbers(n) if kind == "pandas" else arrow.Table.from_pandas(of_numbers(n), preserve_index=False)
    explanation = linear(X[:n], data=data)
    explanation.save(tmp_path / "e.npz")
    loaded = Explanation.load(tmp_path / "e.npz")
    if kind == "pandas":
        pandas.testing.assert_frame_equal(loaded.data, data)
    else:
        kinds = [[(field.type.value_type, field.type.ordered) for field in table.schema] for table in (loaded.data, data)]
        assert kinds[0] == kinds[1]
    assert list(row_bytes(loaded.data)) == list(row_bytes(data))
    loaded.save(tmp_path / "again.npz")
    assert list(row_bytes(Explanation.load(tmp_path / "again.npz").data)) == list(row_bytes(data))


def test_files_of_other_categories_than_cells_are_refused(tmp_path):
    linear(X, data=of_numbers(6)).save(tmp_path / "e.npz")
    changed = {"data__parquet": lambda content: with_categories(content, b'{"0": [false, [3]]}')}
    with pytest.raises(ModelFormatError, match="Column 'whole' has other cells than its categories"):
        Explanation.load(rewritten(tmp_path / "bad.npz", linear(X, data=of_numbers(6)), **changed))
    for nonsense in (b"[", b"[]", b'{"0": 1}', b'{"99": [true, [1]]}', b'{"0": [true, ["a"]]}', b'{"0": [true, [3, 3, 1]]}'):
        changed = {"data__parquet": lambda content, entry=nonsense: with_categories(content, entry)}
        with pytest.raises(ModelFormatError, match="is not a complete saved Explanation"):
            Explanation.load(rewritten(tmp_path / "bad.npz", linear(X, data=of_numbers(6)), **changed))


def with_categories(content, entry):
    table = parquet_files.read_table(io.BytesIO(content))
    buffer = io.BytesIO()
    parquet_files.write_table(table.replace_schema_metadata({**table.schema.metadata, b"exactshap.categories": entry}), buffer)
    return buffer.getvalue()


def test_no_rows_come_back(tmp_path):
    tables = [frame(kind, city=["NY"] * 6)[:0] for kind in ("pandas", "polars")]
    tables += [frame("pyarrow", city=["NY"] * 6).slice(0, 0), np.empty((0, 4), object), of_numbers(0).assign(size=1.0)]
    for table in tables:
        explanation = linear(np.empty((0, 4)), data=table)
        explanation.save(tmp_path / "e.npz")
        loaded = Explanation.load(tmp_path / "e.npz").data
        assert type(loaded) is type(table)
        assert loaded.shape == table.shape


def without_a_place_in_files():
    """Return six cells of each kind, and the text of the first."""
    return {
        "intervals": (pandas.cut(np.arange(6.0), [-1, 2, 9]), "(-1, 2]"),
        "periods": (pandas.Categorical(pandas.period_range("2026-01", periods=6, freq="M")), "2026-01"),
        "durations": (pandas.Categorical(pandas.to_timedelta(np.arange(6), "h")), "0 days 00:00:00"),
        "tuples": ([(1, "a")] * 6, "(1, 'a')"),
        "mixed": ([1, "a"] * 3, "1"),
        "lists": ([[1]] * 6, "[1]"),
        "complex": (np.full(6, 1j), "1j"),
        "large": ([2**70] * 6, str(2**70)),
        "words": (["", "b"] * 3, ""),
    }


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("kind", without_a_place_in_files())
def test_cells_that_files_cannot_hold_are_saved_as_their_text(kind, array, tmp_path):
    column, text = without_a_place_in_files()[kind]
    data = pandas.DataFrame({"a": column, "b": [None, 1.0] * 3})
    linear(X[:, :2], data=data.to_numpy(object) if array else data).save(tmp_path / "e.npz")
    loaded = Explanation.load(tmp_path / "e.npz")
    cells = loaded.data if array else loaded.data.to_numpy(object)
    assert str(cells[0, 0]) == text
    assert list(cells[1::2, 1]) == [1.0] * 3
    assert all(cell is None or np.isnan(cell) for cell in cells[::2, 1])
    loaded.report(tmp_path / "page.html")
    loaded.save(tmp_path / "again.npz")


def test_texts_of_polars_and_pyarrow_that_files_cannot_hold(tmp_path):
    words = polars.Series("a", [(1, 2)] * 6, dtype=polars.Object)
    spans = arrow.array([(1, 2, 3)] * 6, arrow.month_day_nano_interval())
    for data in (polars.DataFrame([words]), arrow.table({"a": spans})):
        linear(X[:, :1], data=data).save(tmp_path / "e.npz")
        loaded = Explanation.load(tmp_path / "e.npz").data
        assert type(loaded) is type(data)
        assert "1" in str(loaded["a"][0])


@pytest.mark.parametrize("index", ["intervals", "levels", "objects"])
def test_row_labels_come_back_as_they_are_shown(index, tmp_path):
    labels = {
        "intervals": pandas.CategoricalIndex(pandas.cut(np.arange(6.0), 3)),
        "levels": pandas.MultiIndex.from_product([[1, 2], ["a", "b", "c"]]),
        "objects": pandas.Index([(1, 2), "a", 3] * 2, tupleize_cols=False),
    }[index]
    linear(X[:, :1], data=pandas.DataFrame({"a": X[:, 0]}, index=labels)).save(tmp_path / "e.npz")
    loaded = Explanation.load(tmp_path / "e.npz").data.index
    assert [str(label) for label in loaded] == [str(label) for label in labels]
    assert loaded.nlevels == labels.nlevels


def changed_json(**changes):
    return lambda text: json.dumps(json.loads(text) | changes).encode()


def npy_of_objects():
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"metadata__json": None}, "is not a saved Explanation. It has no metadata.json"),
        ({"metadata__json": b"{"}, "is not a complete saved Explanation. metadata.json:"),
        ({"metadata__json": b"[]"}, "Its metadata names another format"),
        ({"metadata__json": changed_json(format="other")}, "Its metadata names another format"),
        ({"metadata__json": changed_json(version=99)}, "format 99 is newer than 1"),
        ({"metadata__json": changed_json(surprise=1)}, "Unknown entry 'surprise'"),
        ({"metadata__json": changed_json(feature_names=["a"])}, "There are 1 names"),
        ({"metadata__json": changed_json(feature_names=5)}, "is not a complete saved Explanation"),
        ({"metadata__json": changed_json(data="pandas")}, "Its data are announced as 'pandas' and not there"),
        ({"values__npy": None}, "is not a complete saved Explanation"),
        ({"values__npy": lambda b: b[:-8]}, r"values.npy announces shape \(6, 3\) but holds 136 bytes"),
        ({"values__npy": lambda b: b.replace(b"(6, 3)", b"(9**9)")}, "values.npy:"),
        ({"values__npy": lambda b: b.replace(b"(6, 3), ", b"(6, 999999999), "[:8] + b" ")}, "values.npy"),
        ({"values__npy": b"nonsense"}, "values.npy:"),
        ({"values__npy": npy_of_objects()}, "holds Python objects"),
        ({"surprise__npy": lambda _: b"nonsense"}, "surprise.npy:"),
    ],
)
def test_damaged_files_are_refused_with_the_place(entries, text, tmp_path):
    with pytest.raises(ModelFormatError, match=text):
        Explanation.load(rewritten(tmp_path / "bad.npz", linear(X), **entries))


def test_pickles_and_large_files_are_refused(tmp_path):
    (tmp_path / "p.npz").write_bytes(pickle.dumps(linear(X)))
    with pytest.raises(ModelFormatError, match="Pickles are never loaded"):
        Explanation.load(tmp_path / "p.npz")
    linear(X).save(tmp_path / "e.npz")
    with pytest.raises(ModelFormatError, match=r"is larger than allowed. It holds .* bytes. Pass max_bytes="):
        Explanation.load(tmp_path / "e.npz", max_bytes=100)


def test_bytes_turned_over_are_refused_or_harmless(tmp_path):
    linear(X).save(tmp_path / "e.npz")
    whole = bytearray((tmp_path / "e.npz").read_bytes())
    for place in range(0, len(whole), 53):
        damaged = whole.copy()
        damaged[place] ^= 0xFF
        (tmp_path / "t.npz").write_bytes(damaged)
        try:
            loaded = Explanation.load(tmp_path / "t.npz")
        except ModelFormatError:
            continue
        np.testing.assert_array_equal(loaded.values, linear(X).values)


# --- fingerprints -----------------------------------------------------------------------------------------------------


def test_fingerprints_do_not_depend_on_the_library():
    cells = {"city": ["NY", "LA", None] * 2, "n": [1, 2, 3, 4, 5, 6]}
    hashes = {fingerprint(frame(kind, **cells)) for kind in ("pandas", "polars", "pyarrow")}
    assert len(hashes) == 1
    assert fingerprint(X) == fingerprint(np.asfortranarray(X)) == fingerprint(X.tolist())
    assert fingerprint(X) != fingerprint(X[::-1])
    assert fingerprint(X) != fingerprint(frame("pandas"))
    assert fingerprint(np.array([[0.0]])) == fingerprint(np.array([[-0.0]]))
    days = pandas.DataFrame({"day": np.array(["2024-02-28", "NaT", "2024-02-29T12:00"], "M8[us]")})
    assert fingerprint(days) == fingerprint(days.astype("M8[ns]")) == fingerprint(polars.from_pandas(days))
    later = days.astype("M8[ns]") + pandas.Timedelta(1, "ns")
    assert fingerprint(later) != fingerprint(days)


def test_every_value_function_of_every_reader_has_its_sentence():
    modules = [importlib.import_module(module.name) for module in pkgutil.walk_packages(readers.__path__, "exactshap.readers.")]
    names = {name for module in modules for name in getattr(module, "VALUE_FUNCTIONS", ())}
    assert {"functional", "interventional", "path_dependent"} <= names
    assert [name for name in sorted(names) if "see the documentation" in value_function_sentence(name)] == []


def test_a_baseline_of_millions_is_written_in_full():
    for baseline, text in ((26245021.4, "26245021"), (140.2109, "140.211"), (3e9, "3e+09"), (-1234567.0, "-1234567")):
        explanation = Explanation(
            values=[[1.0]],
            baseline=[baseline],
            prediction=[baseline + 1.0],
            residual=[0.0],
            tolerance=1e-6,
            feature_names=["age"],
            value_function="baseline",
        )
        assert explanation.facts()["baseline"] == text


def test_a_passed_certificate_shows_the_tolerance_of_its_largest_residual():
    """Rows of which nothing is asked (tolerance 0, residual 0) would give 'at most 1e-15 (tolerance 0): passed'."""
    size = np.where(np.arange(6) == 1, 1e-15, 0.0)
    shown = linear(X, residual=size, tolerance=np.where(size > 0, 1e-12, 0.0)).certificate()
    assert (shown.row, shown.max_residual, shown.tolerance, shown.passed) == (1, 1e-15, 1e-12, True)
    failed = linear(X, residual=size, tolerance=np.where(size > 0, 0.0, 1e-12)).certificate()
    assert (failed.row, failed.passed) == (1, False)


# --- folds of a cross-validation as one explanation -------------------------------------------------------------------


RNG = np.random.default_rng(4)
ARRAY = RNG.normal(size=(60, 4))
TARGET = ARRAY[:, 0] * ARRAY[:, 1] + ARRAY[:, 2]
TABLES = {
    "array": lambda: ARRAY,
    "pandas": lambda: pd.DataFrame(ARRAY, columns=list("abcd"), index=np.arange(60) + 100),
    "numbered": lambda: pd.DataFrame(ARRAY),
    "polars": lambda: polars.DataFrame(ARRAY, schema=list("abcd")),
}


def folds(table=ARRAY, targets=TARGET, **question):
    def rows(chosen):
        return table.iloc[chosen] if hasattr(table, "iloc") else table[chosen]

    return [explain(SVR().fit(ARRAY[a], targets[a]), rows(b), rows(a[:10]), **question) for a, b in KFold(3).split(ARRAY)]


@pytest.mark.parametrize("sizes", [(10, 10, 10), (10, 11, 12), (10, 11, None)])
def test_parts_with_backgrounds_of_their_own_say_so(sizes):
    """They said that no background was passed."""
    models = [SVR().fit(ARRAY[:40], TARGET[:40])] * 3
    parts = [
        explain(model, ARRAY[40:45], None if size is None else ARRAY[:size]) for model, size in zip(models, sizes, strict=True)
    ]
    if None in sizes:
        with pytest.raises(InputError, match="one question"):
            Explanation.concat(parts)
        return
    whole = Explanation.concat(parts)
    words = "10 rows" if len(set(sizes)) == 1 else "each part's own"
    assert whole.facts()["background"].startswith(words)
    for text in (repr(whole), repr(whole[2:7])):
        assert "mean prediction over the background rows" in " ".join(text.split())


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("array", {}),
        ("pandas", {"index": "k-sii", "order": 2}),
        ("numbered", {"groups": {"pair": [0, 1]}}),
        ("pandas", {}),
        ("polars", {}),
    ],
)
def test_rows_keep_what_they_had(name, question, tmp_path):
    parts = folds(TABLES[name](), **question)
    whole = Explanation.concat(parts, names=["one", "two", "three"])
    for field in ("values", "baseline", "prediction", "residual", "tolerance", "set_values"):
        if getattr(whole, field) is not None:
            np.testing.assert_array_equal(getattr(whole, field), np.concatenate([getattr(part, field) for part in parts]))
    assert whole.certificate().passed
    assert whole.certificate().max_residual == max(part.certificate().max_residual for part in parts)
    assert whole.data.shape == (60, 4)
    if name == "pandas":
        assert whole.to_shap().shape[:2] == (60, len(whole.feature_names))
        assert len(whole.to_frame()) == 60
        whole.plot.bar()
        whole.report(tmp_path / "whole.html")
        pd.testing.assert_frame_equal(whole.data, TABLES[name]())
    assert "two: SVR, rows 20 to 39, baseline" in whole.model_name
    whole.save(tmp_path / "whole.npz")
    assert Explanation.load(tmp_path / "whole.npz").model_name == whole.model_name
    np.testing.assert_array_equal(whole[25].values, parts[1][5].values)


def test_the_certificate_of_the_whole_is_that_of_its_worst_part():
    parts = folds()
    wrong = Explanation(**{**vars(parts[1]), "residual": parts[1].residual + 1.0})
    certificate = Explanation.concat([parts[0], wrong, parts[2]]).certificate()
    assert not certificate.passed
    assert 20 <= certificate.row < 40
    off = Explanation(**{**vars(parts[2]), "mask_difference": 1.0, "mask_tolerance": 1e-9, "n_masks": 1})
    whole = Explanation.concat([*parts[:2], off])
    assert not whole.certificate().masks_passed
    assert not whole.certificate().passed


def test_sampled_parts_keep_their_errors():
    wide = np.tile(ARRAY, (1, 4))
    parts = [explain(lambda rows: np.tanh(rows.sum(axis=1)), wide[i : i + 2], wide[5:9], budget=100) for i in (0, 2)]
    whole = Explanation.concat(parts)
    assert not whole.exact
    np.testing.assert_array_equal(whole.std_error, np.concatenate([part.std_error for part in parts]))
    exact = explain(SVR().fit(wide, TARGET).predict, wide[:2], wide[5:9], feature_names=parts[0].feature_names)
    exact = Explanation(**{**vars(exact), "unit": parts[0].unit})
    with pytest.raises(InputError, match="Some of the parts are exact and others are not"):
        Explanation.concat([exact, parts[0]])


def test_other_questions_are_refused():
    parts = folds()
    with pytest.raises(InputError, match=r"answer one question.*index of part 0 is 'shapley', of part 1 'banzhaf'"):
        Explanation.concat([parts[0], folds(index="banzhaf")[1]])
    with pytest.raises(InputError, match="feature_names of part 0"):
        Explanation.concat([parts[0], folds(feature_names=list("abcd"))[1]])
    with pytest.raises(InputError, match="one name for each part"):
        Explanation.concat(parts, names=["a"])
    with pytest.raises(InputTypeError, match="must be explanations"):
        Explanation.concat([])
    with pytest.raises(InputTypeError, match="must be explanations"):
        Explanation.concat([parts[0], parts[1].values])


# --- solutions of games of one's own ----------------------------------------------------------------------------------


GLOVES = OracleGame(lambda S: np.minimum(S[:, 0], S[:, 1] + S[:, 2] > 0).astype(float), 3)
NAMES = ["Ann", "Bob", "Cid"]


def test_a_game_becomes_one_row_with_names(tmp_path):
    matplotlib.use("Agg")
    explanation = Explanation.from_solution(solve(GLOVES), NAMES, unit="pairs", name="gloves")
    assert explanation.to_frame("pandas").columns.tolist() == NAMES
    np.testing.assert_allclose(explanation.values, [[2 / 3, 1 / 6, 1 / 6]])
    assert explanation.certificate().passed
    assert "exact Shapley values, 1 row x 3 features (pairs)" in repr(explanation)
    explanation.save(tmp_path / "gloves")
    loaded = Explanation.load(tmp_path / "gloves")
    assert loaded.feature_names == tuple(NAMES)
    for picture in ("waterfall", "bar", "beeswarm"):
        getattr(loaded.plot, picture)()
    assert "Ann" in explanation.report(tmp_path / "gloves.html").read_text()


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("n_rows", [None, 3, 5])
def test_shapes_of_games_and_batches(n_rows, outputs):
    """Three players, three outputs and three games, so that no axis is known by its length."""
    rng = np.random.default_rng(0)
    factors = (4, 3) if n_rows is None else (n_rows, 4, 3)
    constants = (4,) if outputs is None else (4, outputs)
    game = ProductGame(rng.normal(size=constants), rng.normal(size=factors), np.ones((4, 3)))
    solution = solve(game)
    explanation = Explanation.from_solution(solution)
    np.testing.assert_array_equal(explanation.values.ravel(), solution.values.ravel())
    assert explanation.n_rows == (n_rows or 1)
    assert explanation.n_outputs == (outputs or 1)
    assert explanation.certificate().passed


def test_sampled_pairs_keep_index_order_and_errors():
    game = OracleGame(lambda S: S @ np.arange(20.0) + 3.0 * S[:, 0] * S[:, 1] * S[:, 2], 20)
    solution = solve(game, "k-sii", order=2, budget=300, random_state=0)
    explanation = Explanation.from_solution(solution)
    assert (explanation.kind, explanation.index, explanation.order) == ("sampled", "k-sii", 2)
    np.testing.assert_array_equal(explanation.set_std_error[0], solution.std_error)
    assert explanation.interactions.shape == (1, 20, 20)
    assert Explanation.from_solution(solve(GLOVES, "banzhaf")).index == "banzhaf"


def test_what_a_solution_lacks_is_said():
    with pytest.raises(AttributeError, match=r"Explanation.from_solution\(solution, player_names"):
        solve(GLOVES).plot
    with pytest.raises(InputError, match="`player_names` must hold 3 different names"):
        Explanation.from_solution(solve(GLOVES), ["Ann", "Ann", "Bob"])
    with pytest.raises(InputTypeError, match=r"must be a Solution. Got ndarray"):
        Explanation.from_solution(solve(GLOVES).values)


def test_values_that_do_not_add_up_fail_the_certificate():
    solution = solve(GLOVES)
    wrong = replace(solution, residual=solution.residual + 1e-3)
    assert not Explanation.from_solution(wrong, NAMES).certificate().passed


def test_a_missing_shapiq_is_installed_by_its_own_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapiq", None)
    with pytest.raises(MissingDependencyError, match=r"needs shapiq.*pip install shapiq\."):
        linear(X).to_shapiq(0)
