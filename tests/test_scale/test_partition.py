"""One function from a table to a table: the same numbers for every engine, kind of table and cut."""

import functools
import math
import operator
import os
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, Ridge

import scale_cases as cases
from exactshap import Explainer, decompose_r2
from exactshap.errors import ExplanationWarning, InputError, InputTypeError, UnknownNameError
from exactshap.frames import as_table
from exactshap.scale import GlobalImportance, GlobalQuantiles, PartialR2, PartialRidge, Partition
from exactshap.scale._statistics import ExactSums
from exactshap.scale._tables import check_types
from tolerances import assert_close

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
MADE = ["phi_age", "phi_bmi", "phi_s1", "phi_s2", "baseline", "prediction", "residual", "exact"]


def test_the_columns_are_those_of_the_explanation():
    explainer, T = cases.svr(), cases.table()
    out = Partition(explainer, keep=["id"])(T.set_index(T["id"] * 2, drop=False))
    explanation = explainer(T[cases.NAMES])
    assert list(out.columns) == ["id", *MADE]
    assert np.array_equal(out[MADE[:4]], explanation.values)
    for name in ("baseline", "prediction", "residual"):
        assert np.array_equal(out[name], getattr(explanation, name))
    assert out["exact"].all()
    assert out["exact"].dtype == bool
    assert list(out.index) == list(T["id"] * 2)


@pytest.mark.parametrize("make", [cases.svr, cases.trees, cases.outputs, cases.black_box])
def test_cuts_and_kinds_give_the_same_bits(make):
    explainer = make()
    names = explainer.reader.traits.feature_names
    T = pd.DataFrame(np.random.default_rng(0).normal(size=(9, len(names))), columns=names).assign(id=range(9))
    part = Partition(explainer, keep=["id"])
    whole = part(T)
    cut = pd.concat(list(part.iterate([T[:1], T[1:4], T[4:4], T[4:]])))
    of_the_model = [name for name in whole if name.startswith(("prediction", "residual"))]  # its BLAS may round by the batch
    ours = whole.drop(columns=of_the_model)
    pd.testing.assert_frame_equal(cut.drop(columns=of_the_model), ours, check_exact=True)
    assert_close(cut[of_the_model], whole[of_the_model], scale=10.0)
    arrow = part(pa.Table.from_pandas(T, preserve_index=False))
    batch = part(pa.RecordBatch.from_pandas(T, preserve_index=False))
    assert isinstance(arrow, pa.Table)
    assert isinstance(batch, pa.RecordBatch)
    assert isinstance(part(pl.from_pandas(T)), pl.DataFrame)
    mapping = part({name: T[name].to_numpy() for name in T})
    for other in (arrow.to_pandas(), batch.to_pandas(), part(pl.from_pandas(T)).to_pandas(), pd.DataFrame(mapping)):
        pd.testing.assert_frame_equal(other, whole, check_exact=True)


def test_outputs_and_standard_errors_have_columns():
    names = list(Partition(cases.outputs()).meta.columns)
    first = cases.outputs().reader.traits.output_names[0]
    assert names[0] == f"phi_{first}_age"
    assert f"baseline_{first}" in names
    assert f"residual_{first}" in names
    sampled = Partition(cases.black_box())
    out = sampled(pd.DataFrame(np.ones((1, 14)), columns=[f"f{j}" for j in range(14)]))
    assert list(out.columns) == list(sampled.meta.columns)
    assert out["se_f0"][0] > 0
    assert not out["exact"][0]


def test_schema_and_meta_are_those_of_the_output():
    T = cases.table(5)
    part = Partition(cases.svr(), keep={"id": "int64"})
    out = part(T)
    assert part.meta.dtypes.equals(out.dtypes)
    assert part.schema.equals(pa.Table.from_pandas(out, preserve_index=False).schema.remove_metadata())
    untyped = Partition(cases.svr(), keep=["id"])
    assert untyped.meta["id"].dtype == object
    with pytest.raises(InputError, match="types of the kept columns"):
        untyped.schema


def test_processes_give_the_same_bits_and_unpack_once(pool):
    T, part = cases.table(), Partition(cases.svr(), keep=["id"])
    found = pd.concat(pool.map(part, [T[i : i + 20] for i in range(0, 60, 20)]))
    pd.testing.assert_frame_equal(found, part(T), check_exact=True)
    one, two = (pickle.loads(pickle.dumps(part)) for _ in range(2))
    assert one.explainer is two.explainer
    assert pickle.dumps(one) == pickle.dumps(part)
    typed = part.with_types({"id": "int64"})  # pickled anew, not with the types of before
    assert pickle.loads(pickle.dumps(typed)).types == {"id": "int64"}


def test_local_functions_travel():
    part = Partition(cases.Explainer(lambda rows: np.asarray(rows)[:, 0] * 2.0, np.zeros((1, 2))))
    assert pickle.loads(pickle.dumps(part))(pd.DataFrame({"a": [1.0], "b": [1.0]}))["phi_x0"][0] == 2.0


def test_no_engine_is_imported():
    code = (
        "import sys, numpy as np, pandas; from sklearn.svm import SVR; import exactshap, exactshap.scale; "
        "X = pandas.DataFrame(np.random.default_rng(0).normal(size=(9, 3)), columns=list('abc')); "
        "exactshap.scale.Partition(exactshap.Explainer(SVR().fit(X, X['a']), X))(X); "
        "found = {'dask', 'distributed', 'pyspark', 'ray', 'polars'} & set(sys.modules); assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- tables that drift ------------------------------------------------------------------------------------------------


def test_permuted_columns_are_refused_or_aligned():
    T = cases.table(5)
    turned = T[["id", "s2", "bmi", "s1", "age"]]
    with pytest.raises(UnknownNameError, match="same order"):
        Partition(cases.svr(), keep=["id"])(turned)
    aligned = Partition(cases.svr(align=True), keep=["id"])(turned)
    pd.testing.assert_frame_equal(aligned, Partition(cases.svr(), keep=["id"])(T), check_exact=True)


@pytest.mark.parametrize("policy", ["raise", "mark"])
def test_tables_that_do_not_fit_are_refused_under_both_policies(policy):
    T, part = cases.table(5), Partition(cases.svr(), keep=["id"], on_bad_rows=policy)
    for other, error, text in (
        (T.drop(columns="bmi"), UnknownNameError, r"Missing: .'bmi'"),
        (T.assign(y=1.0), UnknownNameError, r"Got 'y'. Name them in drop="),
        (T.drop(columns="id"), UnknownNameError, "no column 'id'"),
        (T.assign(bmi=["1", "2", "3", "4", "x"]), InputError, "'bmi' holds text instead of numbers"),
        (T.to_numpy(), InputTypeError, "table with names"),
    ):
        with pytest.raises(error, match=text):
            part(other)
    with pytest.raises(InputTypeError, match=r"must be an Explainer. Got SVR. Pass Explainer\(model, background\)"):
        Partition(cases.SVR(), keep=["id"], on_bad_rows=policy)
    assert list(Partition(cases.svr(), keep=["id"], drop=["y"])(T.assign(y=1.0)).columns) == ["id", *MADE]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "pyarrow"])
def test_types_are_compared_by_name_in_every_library(kind):
    background = pd.DataFrame({"age": np.array([1.0, 2.0], "f4"), "city": ["a", "b"], "bmi": [3.0, 4.0]})
    rows = background[["bmi", "city", "age"]]
    for reference in (background, kind(background)):
        check_types(as_table(kind(rows)), as_table(reference))
        with pytest.warns(ExplanationWarning, match="column 'bmi' is float32, but float64 in the background"):
            check_types(as_table(kind(rows.astype({"bmi": "float32"}))), as_table(reference))
        with pytest.raises(InputError, match=r"Column 'age' holds text instead of numbers. Got .*, in the background float32"):
            check_types(as_table(kind(rows.assign(age=["1", "2"]))), as_table(reference))
        with pytest.raises(InputError, match=r"Column 'city' holds bytes. Got b'x' in the first row"):
            check_types(as_table(kind(rows.assign(city=[b"x", b"y"]))), as_table(reference))


def test_text_is_refused_where_no_background_tells_types():
    X = cases.table(40)[cases.NAMES]
    explainer = cases.Explainer(cases.SVR().fit(X, X["age"]))
    for policy in ("raise", "mark"):
        with pytest.raises(InputError, match="bmi"):
            Partition(explainer, on_bad_rows=policy)(X[:3].assign(bmi=["1", "2", "x"]))
    # A row with a gap is not to blame where all rows are refused
    with pytest.raises(InputError, match="bmi") as caught:
        Partition(explainer)(X[:3].assign(bmi=["1", "2", "x"], age=[1.0, np.nan, 2.0]))
    assert "Row 1 of the partition" not in str(caught.value)


def test_names_given_to_the_explainer_are_kept_to():
    explainer = cases.black_box()
    T = pd.DataFrame(np.ones((1, 14)), columns=explainer.reader.traits.feature_names)
    with pytest.raises(UnknownNameError, match="not those of the explainer"):
        Partition(explainer)(T[T.columns[::-1]])


def test_no_rows_give_the_empty_table():
    part = Partition(cases.svr(), keep={"id": "int64"})
    pd.testing.assert_frame_equal(part(cases.table()[:0]), part.meta, check_index_type=False)
    with pytest.raises(UnknownNameError):
        part(cases.table()[:0].drop(columns="age"))


def with_gaps():
    T = cases.table(12)
    T.loc[3, "bmi"] = np.nan
    T.loc[7, "bmi"] = np.nan
    T.loc[8, "age"] = np.inf
    return T, [3, 7, 8]


@pytest.mark.parametrize(
    ("keep", "text"), [([], ""), (["id"], r" \(id=1003\)"), (["id", "age"], r" \(id=1003, age=-?\d\.\d+\)")]
)
def test_bad_rows_are_named_by_number_and_kept_columns(keep, text):
    T = with_gaps()[0][[*cases.NAMES, *(["id"] if keep else [])]]
    with pytest.raises(InputError, match=rf"Row 3 of the partition{text} cannot be explained. Input X contains NaN") as caught:
        Partition(cases.svr(), keep=keep)(T)
    assert caught.value.row == 3
    assert pickle.loads(pickle.dumps(caught.value)).row == 3


def test_bad_rows_are_marked_and_the_others_are_untouched():
    T, bad = with_gaps()
    part = Partition(cases.svr(), keep=["id"], on_bad_rows="mark")
    out, clean = part(T), part(cases.table(12))
    good = ~np.isin(np.arange(12), bad)
    pd.testing.assert_frame_equal(out[good], clean[good], check_exact=True)
    assert out.loc[bad, MADE[:-1]].isna().all(axis=None)
    assert not out.loc[bad, "exact"].any()
    assert list(out["id"]) == list(T["id"])


def test_gaps_that_the_model_takes_are_no_bad_rows():
    T, _ = with_gaps()
    T.loc[8, "age"] = 0.0
    for policy in ("raise", "mark"):
        assert Partition(cases.trees(), on_bad_rows=policy)(T[cases.NAMES])["exact"].all()


def test_nullable_truth_values_of_arrow_keep_their_gaps():
    """Arrow's notes for pandas named the type that such a column had before its gaps made it numbers."""
    X = pd.DataFrame({"flag": pd.array([True, None, False] * 4, dtype="boolean"), "age": np.arange(12.0)})
    explainer = Explainer(lambda rows: rows["flag"].astype("Float64").fillna(5.0).to_numpy(float) * rows["age"], X[2:6])
    found = Partition(explainer)(pa.Table.from_pandas(X))
    np.testing.assert_array_equal(found["phi_flag"], explainer(X).values[:, 0])


def test_decimals_of_arrow_are_numbers():
    T = cases.table(4)[cases.NAMES].round(2)
    arrow = pa.Table.from_pandas(T.assign(age=T["age"].map(lambda cell: Decimal(str(cell)))))
    assert pa.types.is_decimal(arrow.schema.field("age").type)
    part = Partition(cases.svr())
    np.testing.assert_array_equal(part(arrow)["phi_age"], part(T)["phi_age"])
    assert part(arrow[:0]).num_rows == 0  # where a file begins


def test_a_column_without_values_makes_every_row_bad():
    T = cases.table(4)[cases.NAMES].assign(bmi=np.nan)
    with pytest.raises(InputError, match="Row 0 of the partition"):
        Partition(cases.svr())(T)
    assert Partition(cases.svr(), on_bad_rows="mark")(T)["phi_age"].isna().all()
    arrow = pa.table({"age": [1.0], "bmi": pa.nulls(1), "s1": [1.0], "s2": [1.0]})
    assert np.isnan(Partition(cases.svr(), on_bad_rows="mark")(arrow)["phi_age"][0].as_py())


def test_whole_numbers_in_another_order_get_the_categories_of_the_background():
    lightgbm = pytest.importorskip("lightgbm")
    X = pd.DataFrame({"c": pd.Categorical(np.arange(60) % 4), "x": np.random.default_rng(0).normal(size=60)})
    model = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=2, verbose=-1).fit(X, X["x"] + (X["c"] == 2))
    part = Partition(Explainer(model, X[:20], align=True))
    pd.testing.assert_frame_equal(part(X.astype({"c": int})[["x", "c"]]), part(X), check_exact=True)


def test_a_category_never_seen_is_a_bad_row():
    explainer, X = cases.encoded()
    X = X[:8].assign(colour=["red", "blue", "green", "red", "red", "blue", "green", "blue"])
    with pytest.raises(InputError, match=r"Row 2 of the partition.*unknown categories .'green'"):
        Partition(explainer)(X)
    part = Partition(explainer, on_bad_rows="mark")
    assert list(np.flatnonzero(part(X)["phi_size"].isna())) == [2, 6]
    assert part(X[2:3])["phi_size"].isna().all()  # however rows are cut


@pytest.mark.parametrize("cells", [["a", "b", "new", "b"], [0, 1, None, 1]], ids=["LightGBM", "CatBoost"])
def test_a_cell_that_changes_the_dtype_of_its_column_makes_one_bad_row(cells):
    """Categories of pandas become text, and whole numbers with a missing one, which CatBoost refuses, floats."""
    X = pd.DataFrame({"c": pd.Categorical(["a", "b"] * 20) if "new" in cells else [0, 1] * 20, "x": np.arange(40.0)})
    if "new" in cells:
        model = pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=3, min_child_samples=2, verbose=-1)
    else:
        library = pytest.importorskip("catboost")
        model = library.CatBoostRegressor(iterations=3, verbose=0, cat_features=["c"], allow_writing_files=False)
    explainer = cases.Explainer(model.fit(X, np.arange(40) % 2 * 9.0 + X["x"]), X[:8])
    T = X[:4].assign(c=cells)
    out = Partition(explainer, on_bad_rows="mark")(T)
    assert list(out["exact"]) == [True, True, False, True]
    assert np.array_equal(out.filter(like="phi_").iloc[[0, 1, 3]], explainer(X.iloc[[0, 1, 3]]).values)
    with pytest.raises(InputError, match="Row 2 of the partition cannot be explained"):
        Partition(explainer)(T)


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"on_bad_rows": "marks"}, UnknownNameError, "Did you mean 'mark'"),
        ({"keep": "id"}, InputTypeError, "lists of columns"),
        ({"keep": ["residual"]}, InputError, "'residual'"),
        ({"top_k": 0}, InputError, "'top_k' parameter"),
        ({"top_k": True}, InputError, "'top_k' parameter"),
        ({"order": 0}, InputError, "'order' parameter"),
        ({"order": "2"}, InputError, "'order' parameter"),
        ({"dtype": "float16"}, UnknownNameError, "dtype='float16'"),
        ({"keep": ["feature_1"], "top_k": 1}, InputError, "'feature_1'"),
    ],
    ids=str,
)
def test_settings_are_checked(settings, error, text):
    with pytest.raises(error, match=text):
        Partition(cases.svr(), **settings)


def test_a_feature_may_be_kept():
    assert Partition(cases.svr(), keep=["age"])(cases.table()[cases.NAMES])["age"].notna().all()


def test_identity_follows_what_the_values_depend_on():
    same, other = Partition(cases.svr()).identity(), Partition(cases.svr(groups={"s": ["s1", "s2"]})).identity()
    assert same == Partition(cases.svr()).identity()
    assert {name for name in same if same[name] != other[name]} == {"players"}
    travelled = pickle.loads(pickle.dumps(Partition(cases.trees()))).identity()
    assert travelled == Partition(cases.trees()).identity()
    scale = 2.0
    one = Partition(cases.Explainer(lambda rows: rows[:, 0] * scale, np.zeros((1, 2)))).identity()["model"]
    scale = 3.0
    assert one != Partition(cases.Explainer(lambda rows: rows[:, 0] * scale, np.zeros((1, 2)))).identity()["model"]


# --- statistics of parts add up to those of the whole -----------------------------------------------------------------


def awkward(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, 3)) * 10.0 ** rng.integers(-200, 200, size=(n_rows, 3))
    values[:, 1] = rng.normal(size=n_rows)
    values[::3, 2] = -values[1::3, 2][: len(values[::3, 2])] if n_rows % 3 == 0 else values[::3, 2]
    values[0], values[1], values[2] = 5e-324, -0.0, 1.7e308
    return values


def test_sums_are_exact():
    values = awkward(999)
    expected = [sum(map(Fraction, column), Fraction(0)) for column in values.T]
    assert [Fraction(unit, 2**1074) for unit in ExactSums.of(values)[0].units] == expected
    assert list(ExactSums.of(values[:, 1:2])[0].means(1)) == [math.fsum(values[:, 1])]
    assert ExactSums.of(values[:0])[0] == ExactSums((0, 0, 0))
    with pytest.raises(InputError, match="must be finite to be summed"):
        ExactSums.of(np.array([[np.nan]]))


@pytest.mark.parametrize("n_parts", [1, 2, 7, 20])
def test_means_have_the_same_bits_for_any_number_of_parts(n_parts):
    T = pd.DataFrame(awkward(600), columns=["phi_a", "phi_b", "phi_c"]).assign(residual=np.linspace(-1, 1, 600))
    T.loc[5, ["phi_a", "phi_b", "phi_c", "residual"]] = np.nan
    whole = GlobalImportance.of(T)
    order = np.random.default_rng(n_parts).permutation(n_parts)
    parts = [GlobalImportance.of(part) for part in (T.iloc[rows] for rows in np.array_split(np.arange(600), n_parts))]
    found = functools.reduce(operator.add, [parts[number] for number in order])
    assert found == whole
    assert np.array_equal(found.mean, whole.mean)
    assert np.array_equal(found.mean_abs, whole.mean_abs)
    assert (whole.n_rows, whole.n_bad_rows, whole.max_residual) == (599, 1, 1.0)
    assert whole.mean[1] == math.fsum(T["phi_b"].dropna()) / 599


def test_importances_are_those_of_the_explanation():
    T = cases.table()
    values = cases.trees()(T[cases.NAMES]).values
    found = GlobalImportance.of(Partition(cases.trees(), keep=["id"])(T))
    assert found.feature_names == tuple(cases.NAMES)
    assert_close(found.mean_abs, np.abs(values).mean(axis=0), scale=np.abs(values).max(), n_terms=60)
    assert list(found.to_frame()["feature"]) == cases.NAMES
    assert repr(found).startswith("mean |value| of 4 features over 60 rows")
    assert found._repr_html_().count("<tr>") == 1 + len(cases.NAMES)


def test_parts_that_do_not_belong_together_are_refused():
    one, other = (GlobalImportance.of(pd.DataFrame({f"phi_{name}": [1.0]})) for name in "ab")
    with pytest.raises(InputError, match="different features"):
        one + other
    with pytest.raises(InputError, match="no columns of values"):
        GlobalImportance.of(pd.DataFrame({"a": [1.0]}))


def regression():
    T = cases.table(120)
    return T[cases.NAMES], cases.target(T).round(1)


def test_parts_of_refits_are_refused_with_the_way_out():
    X, y = regression()
    with pytest.raises(InputError, match=r"not sums over rows.*decompose_r2\(model, X, y, game='refit'\)"):
        PartialR2(LinearRegression(), X, y, game="refit")


@pytest.mark.parametrize("game", ["residual", "ensemble"])
@pytest.mark.parametrize("cls", [GradientBoostingRegressor, RandomForestRegressor])
@pytest.mark.parametrize("n_parts", [1, 3, 11])
def test_parts_of_r2_add_up(cls, game, n_parts):
    X, y = regression()
    model = cls(n_estimators=8, max_depth=3, random_state=0).fit(X, y)
    weights = np.random.default_rng(0).random(120)
    whole = decompose_r2(model, X, y, game=game, sample_weight=weights)
    order = np.argsort(y.to_numpy(), kind="stable")  # some parts have a constant y
    parts = [
        PartialR2(model, X.iloc[rows], y.iloc[rows], game=game, sample_weight=weights[rows])
        for rows in np.array_split(order, n_parts)
    ]
    found = functools.reduce(operator.add, pickle.loads(pickle.dumps(parts))).result()
    assert_close(found.values, whole.values, scale=1.0, n_terms=120)
    assert_close(found.total, whole.total, scale=1.0, n_terms=120)
    assert abs(found.residual) <= found.tolerance
    assert found.details["n_rows"] == 120


def test_a_constant_target_is_fine_in_a_part_only():
    X, y = regression()
    model = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X, y)
    part = PartialR2(model, X[:5], np.ones(5))
    with pytest.raises(InputError, match="`y` does not vary"):
        (part + PartialR2(model, X[5:9], np.ones(4))).result()
    both = (part + PartialR2(model, X[5:9], np.zeros(4))).result()
    whole = decompose_r2(model, X[:9], np.repeat([1.0, 0.0], [5, 4]))
    assert_close(both.values, whole.values, scale=np.abs(whole.values).max() + 1.0, n_terms=9)
    with pytest.raises(InputError, match="one model"):
        part + PartialR2(model, X[5:9], np.zeros(4), game="ensemble")


@pytest.mark.parametrize("n_parts", [1, 2, 7, 20])
def test_quantiles_of_parts_are_approximate_and_the_same_bits(n_parts):
    pytest.importorskip("ddsketch")
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=2000), rng.exponential(size=2000) ** 6, np.zeros(2000)])
    values[::50, 0] = 0.0
    T = pd.DataFrame(values, columns=["phi_a", "phi_b", "phi_c"])
    T.loc[7] = np.nan
    parts = [GlobalQuantiles.of(T.iloc[rows]) for rows in np.array_split(rng.permutation(2000), n_parts)]
    found = functools.reduce(operator.add, pickle.loads(pickle.dumps(parts)))
    assert found.n_rows == 1999
    assert "approximate quantiles" in repr(found)
    left = np.delete(values, 7, axis=0)
    for q in (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0):
        exact = np.quantile(left, q, axis=0, method="lower")
        assert (np.abs(found.quantile(q) - exact) <= 0.0101 * np.abs(exact)).all()
        assert np.array_equal(found.quantile(q), GlobalQuantiles.of(T).quantile(q))


def test_quantiles_are_asked_for_with_sense():
    pytest.importorskip("ddsketch")
    one = GlobalQuantiles.of(pd.DataFrame({"phi_a": [1.0]}))
    with pytest.raises(InputError, match=r"number in \[0, 1\]"):
        one.quantile(5)
    with pytest.raises(InputError, match="`relative_error`"):
        GlobalQuantiles.of(pd.DataFrame({"phi_a": [1.0]}), 0.0)
    with pytest.raises(InputError, match="cannot be added"):
        one + GlobalQuantiles.of(pd.DataFrame({"phi_a": [1.0]}), 0.02)
    assert np.isnan(GlobalQuantiles.of(pd.DataFrame({"phi_a": [np.nan]})).quantile(0.5)).all()


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_normal_equations_of_parts_give_the_ridge_of_the_whole(n_parts, weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)) + 5.0, rng.normal(size=300) + 100.0
    weights = rng.random(300) if weighted else np.ones(300)
    features = Nystroem(gamma=0.2, n_components=30, random_state=0).fit(X[:100])
    parts = [PartialRidge(features, X[rows], y[rows], weights[rows]) for rows in np.array_split(np.arange(300), n_parts)]
    found = functools.reduce(operator.add, [pickle.loads(pickle.dumps(part)) for part in parts]).result(alpha=0.1)
    expected = Ridge(alpha=0.1, solver="cholesky").fit(features.transform(X), y, weights)
    assert_close(found[-1].coef_, expected.coef_, scale=100.0 * np.abs(expected.coef_).max(), n_terms=300)
    assert_close(found.predict(X), expected.predict(features.transform(X)), scale=1e4, n_terms=300)
    assert cases.Explainer(found, X[:5])(X[:4]).certificate().passed


def test_ridge_of_what_does_not_fit_is_refused():
    X, features = np.eye(4), Nystroem(n_components=3).fit(np.eye(4))
    with pytest.raises(InputError, match="one number for each row"):
        PartialRidge(features, X, np.ones(3))
    with pytest.raises(InputError, match="must be finite"):
        PartialRidge(features, X, np.full(4, np.nan))
    for other in (Nystroem(n_components=2).fit(X), Nystroem(n_components=3).fit(X[::-1] + 1.0)):  # as of a worker's own fit
        with pytest.raises(InputError, match="one feature map"):
            PartialRidge(features, X, np.ones(4)) + PartialRidge(other, X, np.ones(4))


# --- Dask and joblib for real: worker processes give the bits of one --------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [cases.svr, cases.trees])
def test_dask_gives_the_bits_of_one_process(client, make):
    T, part = cases.table(), Partition(make(), keep={"id": "int64"})
    distributed_table = pytest.importorskip("dask.dataframe").from_pandas(T, npartitions=4)
    explained = distributed_table.map_partitions(part, meta=part.meta)
    pd.testing.assert_frame_equal(explained.compute(), part(T), check_exact=True)
    importances = client.gather(client.map(GlobalImportance.of, [block.compute() for block in explained.partitions]))
    assert sum(importances[1:], importances[0]) == GlobalImportance.of(part(T))


def others(folder):
    return {path.name for path in folder.iterdir()} - {str(os.getpid())}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_a_backend_takes_effect_without_n_jobs(tmp_path, backend, request):
    X = np.random.default_rng(0).normal(size=(12, 3))  # three blocks of a black box
    explainer = Explainer(cases.Recorded(tmp_path), X[:5])
    expected = explainer(X)
    assert not others(tmp_path)
    settings = {"n_jobs": 2} if backend == "loky" else {"client": request.getfixturevalue("client")}
    with joblib.parallel_config(backend=backend, **settings):
        found = explainer(X)
    assert others(tmp_path)
    assert np.array_equal(found.values, expected.values)


def test_n_jobs_of_the_explainer_comes_first(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    explainer = Explainer(cases.Recorded(tmp_path), X[:5], n_jobs=1)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        explainer(X)
    assert not others(tmp_path)
