"""Tables that libraries refuse or misread: read where their cells have one meaning, else refused by column."""

import itertools
import warnings

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.svm import SVR

from exactshap import Explainer, decompose_mmd, decompose_r2, explain
from exactshap.errors import BudgetError, ExplanationWarning, InputError, InputTypeError, UnknownNameError, memory_needed
from exactshap.frames import as_table
from tolerances import roundings

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


@pytest.mark.parametrize("as_dtype", ["object", "pyarrow", "nullable"])
@pytest.mark.parametrize("library", BOOSTERS)
def test_numbers_of_other_dtypes_are_numbers(library, as_dtype):
    kinds = {
        "object": lambda rows: rows.astype(object),
        "pyarrow": lambda rows: rows.convert_dtypes(dtype_backend="pyarrow"),
        "nullable": lambda rows: rows.convert_dtypes(),
    }
    odd = kinds[as_dtype](FRAME)
    expected = explain(BOOSTERS[library], FRAME[:3], FRAME[5:20])
    got = explain(BOOSTERS[library], odd[:3], odd[5:20])
    np.testing.assert_array_equal(got.values, expected.values)
    np.testing.assert_array_equal(explain(BOOSTERS[library], odd[:3], FRAME[5:20]).values, expected.values)


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


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_hybrids_of_frames_take_each_column_from_rows_of_its_own(library):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    here, other = (as_table(make({"a": a, "b": b, "c": a})) for a, b in (([1, 2], ["u", "v"]), ([3.5, 4.5], ["w", "x"])))
    mixed = here.hybrid(other, np.array([True, False, False]), np.array([[0, 1, 0], [0, 0, 0]]))
    assert [mixed.column(j).tolist() for j in range(3)] == [[1, 2], ["x", "w"], [3.5, 3.5]]
    assert here.hybrid(other, np.array([False, True, True])).column(0).tolist() == [3.5, 4.5]


def test_labels_of_rows_in_another_order_are_warned_of():
    """Cells go to the rows by position, as in scikit-learn, and a Series that was shuffled alone is another target."""
    target, shuffled = pd.Series(Y), pd.Series(Y)[::-1]
    explanation = explain(FOREST, FRAME)
    calls = {
        "y": lambda y: decompose_r2(FOREST, FRAME, y),
        "sample_weight": lambda weights: decompose_r2(FOREST, FRAME, Y, sample_weight=weights**2),
        "column": lambda labels: explanation.by(labels > 0.0),
    }
    for what, call in calls.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error", ExplanationWarning)
            call(target), call(shuffled.to_numpy()), call(target.set_axis(range(100, 160)))
        with pytest.warns(ExplanationWarning, match=rf"`{what}` has the labels of the rows in another order.*Pass {what}.loc"):
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


@pytest.mark.parametrize("name", ["backgroud_weights", "feature_name", "n_job", "memory_limits"])
def test_misspelt_settings_are_recognised(name):
    for model in (SVR().fit(FRAME, Y), lambda rows: rows["c"]):
        with pytest.raises(UnknownNameError, match=f"no setting '{name}'. Did you mean '"):
            Explainer(model, FRAME[:5], **{name: 1})


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
@pytest.mark.parametrize(
    "model", [SVR(), SVR(kernel="poly"), FOREST, *BOOSTERS.values()], ids=lambda model: type(model).__name__
)
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
