"""Tables that libraries refuse or misread: read where their cells have one meaning, else refused by column."""

import datetime
import decimal
import functools
import itertools
import sys
import warnings

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, FastICA
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR, OneClassSVM

import exactshap
from exactshap import Explainer, decompose_hsic, decompose_mmd, decompose_r2, explain
from exactshap.errors import (
    BudgetError,
    ExactnessError,
    ExplanationWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
    memory_needed,
)
from exactshap.frames import as_table
from exactshap.results.explanation import fingerprint
from exactshap.scale import Partition
from tolerances import SINGLE_PRECISION_SUM, exact, roundings

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(60, 4)), columns=["a b", "c", "d", "e"])
PLAIN = FRAME.rename(columns={"a b": "a_b"})
Y = FRAME["c"].to_numpy() * FRAME["d"].to_numpy()
BOOSTERS = {
    "lightgbm": lightgbm.LGBMRegressor(n_estimators=4, min_child_samples=5, verbose=-1).fit(FRAME, Y),
    "xgboost": xgboost.XGBRegressor(n_estimators=4).fit(FRAME, Y),
}
FOREST = RandomForestRegressor(3, random_state=0).fit(FRAME, Y)


def unaligned(array):
    """Return a copy that begins at an odd address, as arrays in the bytes of a file or of a message do."""
    copied = np.frombuffer(bytearray(array.nbytes + 1), np.uint8)[1:].view(array.dtype).reshape(array.shape)
    copied[:] = array
    assert not copied.flags.aligned
    assert copied.flags.c_contiguous
    return copied


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_arrays_at_odd_addresses_are_read(dtype):
    rows = (10.0 * FRAME.to_numpy()).astype(dtype)
    odd, svr, forest = unaligned(rows), SVR().fit(rows, Y), RandomForestRegressor(3, max_depth=3, random_state=0).fit(rows, Y)
    for model, background in ((svr, None), (svr, rows[:9]), (forest, None), (forest, rows[:9])):
        given = None if background is None else unaligned(background)
        np.testing.assert_array_equal(explain(model, odd, given).values, explain(model, rows, background).values)
    np.testing.assert_array_equal(decompose_r2(forest, odd, unaligned(Y)).values, decompose_r2(forest, rows, Y).values)
    np.testing.assert_array_equal(decompose_mmd(odd, odd[:9]).values, decompose_mmd(rows, rows[:9]).values)


@pytest.mark.parametrize("model", [SVR().fit(PLAIN.to_numpy(), Y), BOOSTERS["xgboost"]], ids=["svr", "xgboost"])
def test_dates_beside_numbers_are_refused(model):
    with pytest.raises(InputTypeError, match=r"do not mix. Got dtypes datetime64\[D\] and float64"):
        explain(model, np.full((12, 4), "2024-01-01", "M8[D]"), PLAIN.to_numpy()[:5])


@pytest.mark.parametrize("as_dtype", ["object", "decimal", "pyarrow", "nullable"])
@pytest.mark.parametrize("library", BOOSTERS)
def test_numbers_of_other_dtypes_are_numbers(library, as_dtype):
    kinds = {
        "object": lambda rows: rows.astype(object),
        "decimal": lambda rows: rows.map(decimal.Decimal),
        "pyarrow": lambda rows: rows.convert_dtypes(dtype_backend="pyarrow"),
        "nullable": lambda rows: rows.convert_dtypes(),
    }
    odd = kinds[as_dtype](FRAME)
    expected = explain(BOOSTERS[library], FRAME[:3], FRAME[5:20])
    got = explain(BOOSTERS[library], odd[:3], odd[5:20])
    np.testing.assert_array_equal(got.values, expected.values)
    np.testing.assert_array_equal(explain(BOOSTERS[library], odd[:3], FRAME[5:20]).values, expected.values)


@pytest.mark.parametrize(
    "model",
    [SVR(), Ridge(), RandomForestRegressor(3, random_state=0), BaggingRegressor(SVR(), 2, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_categories_that_are_numbers_are_numbers_to_models_without_categories(model):
    sizes = pd.DataFrame({"a": FRAME["c"], "size": (3.0 * FRAME["d"]).round()})
    odd = sizes.assign(size=sizes["size"].astype("category"))
    model.fit(sizes, Y)
    got = explain(model, odd[:3], odd[5:20])
    np.testing.assert_allclose(got.values, explain(model, sizes[:3], sizes[5:20]).values, rtol=roundings(50))
    assert type(got.data["size"].dtype).__name__ == "CategoricalDtype"
    with pytest.raises(InputError, match="In `background`, column 'size' holds text"):
        explain(model, odd[:3].astype({"size": str}), sizes.assign(size="large")[:9])


def test_decimals_are_the_nearest_numbers():
    exact = [decimal.Decimal(k) / 1000 for k in range(-500, 500)] + [None]
    for table in (pa.table({"a": exact}), pl.DataFrame({"a": exact}), pd.DataFrame({"a": exact})):
        np.testing.assert_array_equal(as_table(table).numeric()[:, 0], np.array(exact, float))


@pytest.mark.parametrize("library", BOOSTERS)
def test_booleans_with_gaps_are_numbers_in_every_library(library):
    flags = [True, None, False] * 20
    numbers = PLAIN.assign(d=pd.array(flags, "boolean"))
    tables = [numbers, pl.from_pandas(numbers), pl.from_pandas(numbers).to_arrow()]
    model = BOOSTERS[library].__class__(n_estimators=4).fit(numbers.astype(float), Y)
    expected = explain(model, numbers[:3].astype(float), numbers[5:20].astype(float)).values
    for table in tables:
        np.testing.assert_array_equal(explain(model, table[:3], table[5:20]).values, expected)


@pytest.mark.parametrize("library", ["xgboost", "scikit-learn", "function"])
def test_missing_cells_of_arrow_dictionaries_are_missing(library):
    """pyarrow's chunked arrays give them the last category: rows were grouped, compared and encoded as that one."""
    categories = [1, 2, 3] if library == "function" else ["u", "v", "w"]  # XGBoost takes no numbers there
    kind = pd.Categorical(np.resize([*categories, None], 60), categories)
    frame = pd.DataFrame({"kind": kind, "size": np.random.default_rng(0).normal(size=60)})
    arrow, background = pa.Table.from_pandas(frame), library == "function"
    half = [frame[:30], frame[30:]], [arrow.slice(0, 30), arrow.slice(30)]
    np.testing.assert_array_equal(*(decompose_mmd(*tables).values for tables in half))
    model = {
        "xgboost": xgboost.XGBRegressor(n_estimators=4, enable_categorical=True),
        "scikit-learn": HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=2, categorical_features="from_dtype"),
    }.get(library)
    model = model.fit(frame, frame["size"] + kind.codes) if model else lambda rows: np.asarray(rows["size"], float)
    both = [explain(model, rows, rows[:5] if background else None) for rows in (frame, arrow)]
    np.testing.assert_array_equal(*(one.values for one in both))
    assert [one.by("kind").labels for one in both] == [(*map(str, categories), "missing")] * 2


def test_numbers_next_to_text_in_lists_stay_numbers():
    """NumPy writes them as text, which an encoder ignored as unknown: values of 0 for predictions that the model never makes."""
    rows = [[1 + k % 3, "ab"[k % 2]] for k in range(30)]
    cells = np.array(rows, object)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge()).fit(cells, cells[:, 0].astype(float) ** 2)
    expected = explain(model, cells[:3], cells[3:9])
    np.testing.assert_array_equal(expected.prediction, model.predict(rows[:3]))
    for explained in (model, lambda rows: model.predict(rows)):
        np.testing.assert_allclose(explain(explained, rows[:3], rows[3:9]).values, expected.values, rtol=roundings(50))
    assert as_table([["a", "b"]]).native.dtype.kind == "U"


def test_arrow_tables_of_finer_types_mix():
    """pyarrow stacks equal types only, and those of polars and pandas differ; it was said that the function had failed."""
    frame = pl.DataFrame(
        {"size": np.arange(12.0), "town": ["north", "south"] * 6, "kind": ["a", "b", "c"] * 4, "at": [[1.0]] * 12}
    )
    wide, narrow = pa.large_string(), pa.string()
    tables = [
        frame.to_arrow().cast(pa.schema({"size": pa.float64(), "town": text, "kind": pa.dictionary(codes, text), "at": cells}))
        for text, codes, cells in [
            (wide, pa.uint32(), pa.large_list(pa.float64())),
            (narrow, pa.int8(), pa.list_(pa.float64())),
        ]
    ]

    def function(rows):
        return np.array([cell["size"] * (cell["town"] == "north") + (cell["kind"] == "b") for cell in rows.to_pylist()])

    values = [explain(function, here[:3], there[4:9]).values for here in tables for there in tables]
    assert np.ptp(values, axis=0).max() == 0.0
    np.testing.assert_allclose(
        values[0].sum(axis=1), function(tables[0][:3]) - function(tables[0][4:9]).mean(), atol=roundings(50)
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("kind", ["array", "pandas", "nullable", "polars"])
def test_integers_of_a_function_are_not_narrowed_to_the_background(kind, dtype):
    """Rows took a background's dtype, such as that of a frame whose numbers were made small: 100 * 100 was 16, and explained as that."""
    rows, background = np.array([[100, 50000], [20, 3]]), np.array([[1, 2], [3, 1]]).astype(dtype)
    rows = rows if dtype == "int32" else rows[:, [0, 0]]
    frames = {"pandas": pd.DataFrame, "nullable": lambda cells: pd.DataFrame(cells).convert_dtypes(), "polars": pl.DataFrame}
    tables = [frames.get(kind, np.asarray)(cells) for cells in (rows, background)]

    def function(table):
        cells = np.asarray(table)
        return (cells * cells).sum(axis=1).astype(float)

    if kind == "polars":  # where columns are one dtype
        with pytest.raises(InputTypeError, match="do not mix"):
            explain(function, *tables)
    else:
        np.testing.assert_array_equal(explain(function, *tables).prediction, (rows * rows).sum(axis=1))


@pytest.mark.parametrize("dtype", ["int8", "int32", "bool", "Int8", "boolean"])
def test_a_row_that_is_turned_back_into_a_frame_has_the_dtypes_of_its_cells(dtype):
    """Its columns are of objects, which libraries of models refuse."""
    background = pd.DataFrame({"a": [0, 1, 1], "b": [0.5, 1.5, 2.5], "c": list("xyx")}).astype({"a": dtype})

    def function(table):
        assert dict(table.dtypes) == dict(background.dtypes)
        return table["a"].astype(float) * table["b"]

    found = explain(function, pd.DataFrame(background.iloc[1]).T, background)
    np.testing.assert_array_equal(found.values, explain(function, background.iloc[[1]], background).values)


@pytest.mark.parametrize("dtypes", [("int64", "bool"), ("float64", "bool"), ("Int64", "boolean")])
def test_numbers_of_a_function_are_no_truth_values(dtypes):
    """The sum of two truth values is one: 1 + 1 was explained as 1. Functions that take both alike are explained."""
    cells = np.array([[1, 1], [0, 1]])
    rows, background = (pd.DataFrame(cells, columns=["a", "b"]).astype(dtype) for dtype in dtypes)
    with pytest.raises(ExactnessError, match="If the model answers otherwise in the dtypes of the background"):
        explain(lambda table: (table["a"].to_numpy() + table["b"].to_numpy()).astype(float), rows, background)
    explanation = explain(lambda table: np.asarray(table, float) @ [1.0, 2.0], rows, background)
    np.testing.assert_array_equal(explanation.prediction, [3.0, 2.0])


@pytest.mark.parametrize("library", ["polars", "pyarrow", "pandas", "arrow in pandas"])
@pytest.mark.parametrize("zones", [("UTC", "Asia/Tokyo"), (None, "Asia/Tokyo"), ("Asia/Tokyo", None)])
def test_time_zones_of_a_function_do_not_mix(library, zones):
    """Rows were converted to the background's zone: hours 8, 18 and 14 were explained where the function says 23, 9 and 5."""
    times = pl.Series([datetime.datetime(2024, 1, 1, hour) for hour in (23, 9, 5)])

    def table(zone):
        frame = pl.DataFrame({"at": times.dt.replace_time_zone(zone), "size": [1.0, 2.0, 3.0]})
        if library in ("pandas", "arrow in pandas"):
            return frame.to_pandas(use_pyarrow_extension_array=library != "pandas")
        return frame.to_arrow() if library == "pyarrow" else frame

    def function(rows):
        return as_table(rows).column(0).astype("M8[h]").astype(float) % 24.0

    rows, background = map(table, zones)
    np.testing.assert_array_equal(explain(function, rows, rows).prediction, [23.0, 9.0, 5.0])
    with pytest.raises(InputTypeError, match="column 'at' of X and of the background have different time zones"):
        explain(function, rows, background)


@pytest.mark.parametrize("kind", ["struct", "array", "list"])
@pytest.mark.parametrize("library", ["polars", "pyarrow", "pandas"])
def test_several_numbers_in_a_cell(library, kind):
    """Cells are one object each: comparisons with an array have no truth value, lists no hash, and structs of polars are tables."""
    pairs = [[float(k % 2), 1.0] for k in range(12)]
    cells = [{"a": a, "b": b} for a, b in pairs] if kind == "struct" else pairs
    frame = pl.DataFrame({"pair": cells, "size": np.arange(12.0)})
    frame = frame.cast({"pair": pl.Array(pl.Float64, 2)}) if kind == "array" else frame
    table = {"polars": frame, "pyarrow": frame.to_arrow(), "pandas": frame.to_pandas()}[library]

    def function(rows):
        cells = rows["pair"].to_pylist() if library == "pyarrow" else list(rows["pair"])
        return np.array([cell["a"] if kind == "struct" else cell[0] for cell in cells]) * np.asarray(rows["size"])

    explainer = Explainer(function, table[4:9])
    explanation = explainer(table[:8])
    assert len(explanation.by("pair").labels) == 2
    assert explain(function, table[:2], table, value_function="observational").is_within_tolerance
    part = Partition(explainer)(table[:3])
    np.testing.assert_array_equal(part["phi_pair"], explanation.values[:3, 0])


def test_text_is_refused_by_column_with_a_sample():
    rows = FRAME[:3].assign(d=["high", "low", "low"])
    for model in (*BOOSTERS.values(), FOREST):
        with pytest.raises(InputError, match=r"column 'd' holds text.*such as 'high'"):
            explain(model, rows)


GAPS = {
    "None": FRAME[:3].assign(d=None),
    "NA": FRAME[:3].assign(d=pd.NA),
    "nan": FRAME[:3].assign(d=np.nan),
    "polars": pl.DataFrame({name: FRAME[name].to_numpy()[:3] for name in FRAME}).with_columns(pl.lit(None).alias("d")),
}


@pytest.mark.parametrize(("library", "gap"), [*itertools.product(BOOSTERS, GAPS), ("catboost", "polars")])
def test_a_column_of_gaps_is_missing_and_no_text(library, gap):
    model = BOOSTERS.get(library) or catboost.CatBoostRegressor(iterations=2, verbose=0).fit(FRAME, Y)
    expected = explain(model, FRAME[:3].assign(d=np.nan), FRAME[5:20])
    np.testing.assert_array_equal(explain(model, GAPS[gap], FRAME[5:20]).values, expected.values)
    with pytest.raises(InputError, match=r"contains NaN .first at row 0, column 'd'"):
        explain(SVR().fit(FRAME, Y), GAPS[gap])


@pytest.mark.parametrize("library", BOOSTERS)
@pytest.mark.parametrize("as_frame", [False, True])
def test_bytes_in_the_other_order_are_converted_and_that_is_said(library, as_frame):
    """XGBoost predicts garbage from them: what is explained is the numbers."""
    rows = FRAME if as_frame else FRAME.to_numpy()
    model = BOOSTERS[library].__class__(**BOOSTERS[library].get_params()).fit(rows, Y)
    with pytest.warns(ExplanationWarning, match="bytes in the other order, and were converted"):
        got = explain(model, rows[:3].astype(">f8"), rows[5:20].astype(">f8"))
    np.testing.assert_array_equal(got.values, explain(model, rows[:3], rows[5:20]).values)


LAYOUTS = {
    "by column": np.asfortranarray,
    "every other cell": lambda rows: np.repeat(np.repeat(rows, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda rows: np.ascontiguousarray(rows[::-1, ::-1])[::-1, ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("library", BOOSTERS)
def test_numbers_in_every_layout_is_read_by_its_numbers(library, layout):
    """XGBoost's own predict reads other cells of long doubles that do not lie row by row: they are copied, and that is said."""
    rows = np.abs(np.round(3 * FRAME.to_numpy()))
    model = BOOSTERS[library].__class__(**BOOSTERS[library].get_params()).fit(rows, Y)
    for dtype in ("g", "f2", "i1", "?"):
        given = LAYOUTS[layout](rows.astype(dtype))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = explain(model, given[:3], given[5:20])
        expected = explain(model, given[:3].astype(float, order="C"), given[5:20].astype(float, order="C"))
        np.testing.assert_array_equal(got.values, expected.values, err_msg=dtype)
        np.testing.assert_array_equal(got.prediction, expected.prediction, err_msg=dtype)
        if dtype == "g" and np.dtype("g").itemsize > 8:
            assert any("np.ascontiguousarray(X)" in str(warning.message) for warning in caught)


def test_labels_of_rows_in_another_order_are_warned_of(tmp_path):
    """Cells go to the rows by position, as in scikit-learn, and a Series that was shuffled alone is another target."""
    target, shuffled = pd.Series(Y), pd.Series(Y)[::-1]
    explanation = explain(FOREST, FRAME)
    calls = {
        "y": lambda y: decompose_r2(FOREST, FRAME, y),
        "sample_weight": lambda weights: decompose_r2(FOREST, FRAME, Y, sample_weight=weights**2),
        "Y": lambda y: decompose_hsic(FRAME, y),
        "column": lambda labels: explanation.by(labels > 0.0),
        "mask": lambda labels: explanation[labels > 0.0],
        "target": lambda labels: explanation.report(tmp_path / "page.html", target=labels),
        "offset": lambda offsets: explain(BOOSTING, FRAME, offset=offsets),
        "background_weights": lambda weights: explain(FOREST, FRAME[:3], FRAME, background_weights=weights**2),
    }
    for what, call in calls.items():
        rows = "background" if what == "background_weights" else "X"
        with warnings.catch_warnings():
            warnings.simplefilter("error", ExplanationWarning)
            call(target), call(shuffled.to_numpy()), call(target.set_axis(range(100, 160)))
        with pytest.warns(
            ExplanationWarning, match=rf"`{what}` has the labels of the rows in another order.*Pass {what}.loc.{rows}.index"
        ):
            call(shuffled)


BOOSTING = GradientBoostingRegressor(n_estimators=2).fit(FRAME, Y)
INFINITE = r"infinity or a value too large for dtype..float32.. .first at row 1, column 'd'"
UNREAD = [
    *((model, value, INFINITE) for model in (FOREST, BOOSTING) for value in (np.inf, -np.inf, 1e39)),
    (BOOSTING, np.nan, r"contains NaN .first at row 1, column 'd'.*GradientBoostingRegressor does not"),
]


@pytest.mark.parametrize(("model", "value", "words"), UNREAD, ids=str)
def test_cells_that_a_model_refuses_are_named_by_row_and_column(model, value, words):
    rows = FRAME[:3].copy()
    rows.iloc[1, 2] = value
    for settings in ({"X": rows}, {"X": rows, "background": FRAME[5:9]}, {"X": FRAME[:3], "background": rows}):
        with pytest.raises(InputError, match=words):
            explain(model, **settings)


ALIGNED = {
    "LightGBM": (BOOSTERS["lightgbm"], FRAME),
    "LightGBM, plain names": (lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(PLAIN[["c", "d"]], Y), PLAIN[["c", "d"]]),
    "LightGBM booster": (BOOSTERS["lightgbm"].booster_, FRAME),
    "XGBoost booster": (BOOSTERS["xgboost"].get_booster(), FRAME),
    "CatBoost": (catboost.CatBoostRegressor(iterations=2, verbose=0).fit(FRAME, Y), FRAME),
    "forest": (FOREST, FRAME),
    "SVR": (SVR().fit(FRAME, Y), FRAME),
}


@pytest.mark.parametrize("name", ALIGNED)
def test_align_reorders_background_and_rows(name):
    model, frame = ALIGNED[name]
    other = frame[frame.columns[::-1]]
    expected = explain(model, frame[:3], frame[5:20])
    for rows, background in ((frame, other), (other, frame), (other, other)):
        got = explain(model, rows[:3], background[5:20], align=True)
        np.testing.assert_array_equal(got.values, expected.values)
    np.testing.assert_array_equal(explain(model, other[:3], align=True).values, explain(model, frame[:3]).values)
    with pytest.raises(UnknownNameError, match="order"):
        explain(model, frame[:3], other[5:20])


def test_rankers_are_explained():
    ranker = catboost.CatBoostRanker(iterations=3, verbose=0).fit(FRAME, Y, group_id=np.arange(60) // 10)
    explanation = explain(ranker, FRAME[:3], FRAME[5:20])
    np.testing.assert_allclose(
        explanation.baseline + explanation.values.sum(axis=1), ranker.predict(FRAME[:3]), atol=roundings(5_000)
    )


def test_refusals_tell_need_and_limit_apart():
    explainer = Explainer(SVR().fit(FRAME, Y), FRAME[:5])
    needed = explainer.reader.memory(1, 1)
    explainer.memory_limit = needed - 1.0
    with pytest.raises(BudgetError) as caught:
        explainer(FRAME[:2])
    need, limit = str(caught.value).split("would need ")[1].split(" GiB; the limit is ")
    assert float(need) > float(limit.split(" GiB")[0])
    assert memory_needed(1.0, 1.0).count("GiB") == 2


@pytest.mark.parametrize("value", [1e300, 1e200, 1e39, 1e-310])
@pytest.mark.parametrize("model", [SVR(), SVR(kernel="poly"), FOREST, *BOOSTERS.values()], ids=lambda m: type(m).__name__)
def test_numpy_warnings_do_not_leak(model, value):
    model = model if hasattr(model, "n_features_in_") else model.fit(FRAME, Y)
    rows = FRAME[:3].copy()
    rows.iloc[1, 2] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for settings in ({"X": rows, "background": FRAME[5:9]}, {"X": FRAME[:3], "background": rows}):
            try:
                explain(model, **settings)
            except (InputError, ArithmeticError):
                continue


@pytest.mark.parametrize(
    "dtypes", [["float64"] * 4, ["float32", "int8", "bool", "float64"], ["int64", "uint64", "float64", "int32"]]
)
def test_a_frame_is_read_in_one_step_as_column_by_column(dtypes):
    frame = pd.DataFrame({name: (5 * FRAME[name]).abs().astype(dtype) for name, dtype in zip(FRAME, dtypes, strict=True)})
    table = as_table(frame)
    assert table.is_plain
    assert not as_table(frame.astype(object)).is_plain
    columns = np.stack([frame[name].to_numpy().astype(float) for name in frame], axis=1)
    np.testing.assert_array_equal(table.numeric(), columns)
    assert table.numeric().flags.c_contiguous
    assert not np.shares_memory(table.numeric(), frame.to_numpy())


def test_integers_that_no_float64_is_are_refused_by_column_of_a_plain_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": np.array([3, 2**53 + 1])})
    with pytest.raises(InputError, match=r"column 'b'.*beyond 2\^53"):
        as_table(frame).numeric()
    assert as_table(pd.DataFrame({"a": [1.0], "b": np.array([2**60])})).numeric()[0, 1] == 2.0**60


@pytest.mark.parametrize("n_rows", [5, 1000])
def test_what_is_remembered_of_a_frame_is_of_this_frame(n_rows):
    """Labels of rows of one frame after another are checked once, dtypes and numbers of each."""
    many = pd.DataFrame(np.arange(20.0 * n_rows).reshape(-1, 20), columns=[f"c{j}" for j in range(20)])
    frames = [
        many,
        many[1:3],
        many.head(1),
        many.rename(columns={"c3": "other"}),
        many.astype({"c4": np.int8}, errors="ignore"),
    ]
    frames += [many.assign(c5=True), many[sorted(many)], many.rename_axis(columns="x"), many.astype({"c6": "category"})]
    frames += [pd.DataFrame(many.to_numpy(), columns=many.columns), frames[3][:1], many.astype("Float64")]
    for frame in [*frames, *frames[::-1]]:
        table = as_table(frame)
        assert table.names == tuple(frame.columns)
        assert table.dtypes == tuple(frame.dtypes)
        assert table.is_plain == all(isinstance(dtype, np.dtype) for dtype in frame.dtypes)
        if table.is_plain:
            np.testing.assert_array_equal(table.numeric(), frame.to_numpy(float))
            np.testing.assert_array_equal(table.numeric(), frame.to_numpy(float))
    with pytest.raises(InputError, match="must be unique"):
        as_table(many.rename(columns={"c3": "c4"}))
    for _ in range(2):
        assert as_table(many.rename(columns={"c3": 3})).names[3] == "3"


def with_cells(value):
    rows = np.resize(FRAME.to_numpy(), (600, 4))
    rows[[417, 503], 2] = value
    return rows


REFUSED = [np.full((2, 4), "a"), np.ones((2, 4), complex), np.full((2, 4), [1, 2, 3, None], object)]
REFUSED += [with_cells(value) for value in (np.nan, np.inf, 1e300)]


@pytest.mark.parametrize("model", [*BOOSTERS.values(), FOREST, SVR().fit(FRAME, Y)], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("background", [None, FRAME[:9].to_numpy()], ids=["alone", "background"])
def test_a_plan_refuses_the_tables_that_a_call_refuses(model, background):
    for rows in REFUSED:
        outcomes = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            explainer = Explainer(model, background)
            for ask in (explainer, explainer.plan):
                try:
                    ask(rows)
                    outcomes.append(None)
                except ValueError as error:
                    outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


# --- single precision of the fit, the background or the request -------------------------------------------------------


RANDOM = np.random.default_rng(0)
DOUBLES = 50.0 + 10.0 * RANDOM.normal(size=(60, 4))
SINGLES = DOUBLES.astype(np.float32)
TARGET = DOUBLES[:, 0] - DOUBLES[:, 1] * DOUBLES[:, 2] / 50.0
OF_SINGLES = (
    (GaussianProcessRegressor(DotProduct(1.0) + RBF(20.0), alpha=1.0, optimizer=None), TARGET),
    (KernelRidge(kernel="laplacian", gamma=0.01), TARGET),
    (SVR(), TARGET),
    (GaussianNB(), np.median(TARGET) < TARGET),
    (PLSRegression(2), TARGET),
    *(
        (make_pipeline(step, Ridge()), TARGET)
        for step in (
            Nystroem(gamma=1e-3, n_components=8, random_state=0),
            RBFSampler(gamma=1e-3, n_components=8, random_state=0),
            PCA(3),
            FastICA(3, random_state=0, whiten="unit-variance"),
            PolynomialFeatures(2),
            StandardScaler(),
        )
    ),
)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, "polars"])
@pytest.mark.parametrize("case", OF_SINGLES, ids=lambda case: str(case[0])[:40])
def test_single_precision_of_fit_background_and_rows_makes_no_bug(case, kind):
    model, target = case
    if kind == "polars":
        kind = polars.DataFrame
    for of_fit, of_background, of_rows in itertools.product((SINGLES, DOUBLES), repeat=3):
        model.fit(kind(of_fit), target)
        explanation = exactshap.explain(model, kind(of_rows[20:26]), kind(of_background[:6]))
        assert explanation.certificate().passed
        again = exactshap.explain(model, kind(of_rows[20:26].astype(float)), kind(of_background[:6].astype(float)))
        scale = np.abs(again.values).max() + np.abs(again.prediction).max()
        assert np.abs(explanation.values - again.values).max() <= SINGLE_PRECISION_SUM * scale


def test_frames_in_double_keep_index_labels_and_other_columns():
    frame = pd.DataFrame({0: np.float32([1.5, 2.5]), 1: [1, 2], 2: ["a", "b"]}, index=[7, 7])
    doubled = as_table(frame).in_double().native
    assert list(doubled.columns) == [0, 1, 2]
    assert list(doubled.index) == [7, 7]
    assert list(map(str, doubled.dtypes)) == ["float64", "int64", str(frame[2].dtype)]
    assert doubled[0].tolist() == [1.5, 2.5]


# --- rows and parameters of long doubles ------------------------------------------------------------------------------


LONG = np.longdouble
N_FIT, N_BACKGROUND = 40, 8
# a spread and a mean of the columns that is much larger, so that terms cancel
SIZES = {"one column": (1, 0), "centred": (6, 0), "far from zero": (6, 1000), "many columns": (30, 10)}


def rows_of(size):
    """Return rows of thirds and sevenths, which are no doubles."""
    d, mean = SIZES[size]
    rng = np.random.default_rng(d + mean)
    return rng.normal(size=(N_FIT + 20, d)).astype(LONG) / LONG(3) + LONG(mean) / LONG(7)


def fitted_on_long_doubles(kind, rows):
    """Return a model that was fitted_on_long_doubles on long doubles, and its points and their coefficients (n_points, n_outputs)."""
    if kind == "one-class SVM":
        model = OneClassSVM(kernel="linear", nu=LONG(1) / LONG(3), max_iter=2000).fit(rows)
        return model, model.support_vectors_, model.dual_coef_.T
    target = np.sin(rows[:, :1] * LONG(3)) + rows[:, -1:] * np.arange(1, 3)
    model = KernelRidge(kernel="linear", alpha=LONG(1) / LONG(3))
    model.fit(rows, target if kind == "ridge of two targets" else target[:, 0])
    if kind == "ridge of long doubles":
        model.dual_coef_ = model.dual_coef_.astype(LONG) / LONG(3)
    return model, model.X_fit_, model.dual_coef_.reshape(len(rows), -1)


KINDS = ("one-class SVM", "ridge", "ridge of two targets", "ridge of long doubles")


def settings_of(model):
    return {"output": "all"} if isinstance(model, KernelRidge) and model.dual_coef_.ndim == 2 else {}


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_long_doubles_are_certified_with_a_tolerance_from_the_sizes_of_terms(kind, size):
    rows = rows_of(size)
    model, points, coefficients = fitted_on_long_doubles(kind, rows[:N_FIT])
    background = rows[:N_BACKGROUND]
    # all terms of a prediction, and of one of the background
    magnitude = np.abs(coefficients).sum(axis=1) @ (np.abs(points) @ np.abs(rows).T) + np.abs(
        np.ravel(getattr(model, "offset_", 0.0))
    )
    for row_dtype, background_dtype in itertools.product((LONG, np.float64), repeat=2):
        explainer = Explainer(model, background.astype(background_dtype), **settings_of(model))
        explained = rows[N_FIT:].astype(row_dtype)
        explanation = explainer(explained)
        certificate = explanation.certificate()
        assert certificate.passed
        assert certificate.mask_rows
        assert explainer.verify(explained[:2], n_masks=2).passed
        limit = exact(2.0 * float(magnitude.max()), len(points), rows.shape[1])
        assert np.max(explanation.tolerance) <= limit
        # phi_j = sum of coefficients times (x_j - mean of z_j) p_j, in extended precision
        moved = explained.astype(LONG) - background.mean(axis=0)
        values = np.einsum("ij,lj,lk->ijk", moved, points.astype(LONG), coefficients.astype(LONG))
        assert np.abs(explanation.values.reshape(values.shape) - values).max() <= np.max(explanation.tolerance)


# -- labels that are numbers: those of columns next to places, those of classes next to numbers of outputs -----------------

MOVED = pd.DataFrame(FRAME.to_numpy(), columns=[3, 1, 0, 2])
LINEAR = Ridge().fit(MOVED, Y)  # keeps no names, as labels that are numbers are none for scikit-learn


def test_a_group_of_numbers_that_are_places_and_labels_is_refused():
    def grouped(*members, frame=MOVED):
        return explain(LINEAR, frame[:3], frame[5:20], groups={"pair": members}).values

    with pytest.raises(
        InputError, match=r"names column 0\. One column has that label, another one, '3', that place.*'0' or '3'"
    ):
        grouped(0, 1)
    np.testing.assert_array_equal(grouped("3", 1), grouped("3", "1"))
    tens = MOVED.set_axis([10, 20, 30, 40], axis=1)
    np.testing.assert_array_equal(grouped(10, 40, frame=tens), grouped(0, 3, frame=tens))


def test_rows_aligned_for_a_model_without_names_are_warned_of():
    back = MOVED[[2, 0, 3, 1]]
    with pytest.warns(ExplanationWarning, match="fitted without feature names.*order of the background"):
        explain(LINEAR, MOVED[:3], back[5:20], align=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExplanationWarning)
        explain(LINEAR, MOVED[:3], MOVED[5:20], align=True)
        explain(FOREST, FRAME[FRAME.columns[::-1]][:3], FRAME[5:20], align=True)


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(3, random_state=0)], ids=str)
def test_the_number_of_an_output_that_is_the_label_of_another_class(model):
    model.fit(FRAME, np.digitize(Y, [-0.3, 0.3]) + 1)
    with pytest.warns(
        ExplanationWarning, match="output=1 is the number of an output. It is that of the class 2. Pass output='1'"
    ):
        numbered = explain(model, FRAME[:3], FRAME[5:20], output=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExplanationWarning)
        np.testing.assert_array_equal(explain(model, FRAME[:3], FRAME[5:20], output="2").values, numbered.values)
        explain(model, FRAME[:3], FRAME[5:20], output=0)
        model.fit(FRAME, np.digitize(Y, [-0.3, 0.3]))
        explain(model, FRAME[:3], FRAME[5:20], output=1)


def calls_of(run):
    """Return how many functions of Python are entered, generators each time that they go on: time without a clock."""
    count = itertools.count()
    sys.setprofile(lambda frame, event, argument: next(count) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    return next(count)


@pytest.mark.parametrize(("question", "columns"), [("hash", 300), ("categories", 100), ("distances", 100)])
def test_wide_frames_take_time_by_the_column(question, columns):
    """Every column compared the names of all: a frame of 2,000 columns took 8 s before its first value."""
    counts = []
    for d in (columns, 2 * columns):
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, d)), columns=[f"c{j}" for j in range(d)])
        texts = dict.fromkeys(frame.columns[: d // 2], "category" if question == "categories" else "str")
        frame = frame if question == "distances" else frame.assign(**dict.fromkeys(texts, "a")).astype(texts)
        if question == "categories":
            model = xgboost.XGBRegressor(n_estimators=1, enable_categorical=True).fit(frame, np.arange(20.0))
            run = functools.partial(explain, model, frame[:2])
        elif question == "hash":
            run = functools.partial(fingerprint, frame)
        else:
            run = functools.partial(decompose_mmd, frame[:10], frame[10:])
        run()  # imports and constants
        counts.append(calls_of(run))
    assert counts[1] < 2.5 * counts[0]
