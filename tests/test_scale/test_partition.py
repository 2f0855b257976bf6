"""One function from a table to a table: the same numbers for every engine, kind of table and cut."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import scale_cases as cases
from exactshap.errors import InputError, InputTypeError, UnknownNameError
from exactshap.scale import Partition
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
    if make is cases.black_box:
        T = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 14)), columns=explainer.reader.traits.feature_names).assign(
            id=range(5)
        )
    else:
        T = cases.table(30)
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
    with pytest.raises(UnknownNameError, match=r"Missing: .'bmi'"):
        part(T.drop(columns="bmi"))
    with pytest.raises(UnknownNameError, match=r"unexpected: .'y'"):
        part(T.assign(y=1.0))
    with pytest.raises(UnknownNameError, match="no column 'id'"):
        part(T.drop(columns="id"))
    with pytest.raises(InputError, match="'bmi' holds text instead of numbers"):
        part(T.assign(bmi=["1", "2", "3", "4", "x"]))
    with pytest.raises(InputTypeError, match="table with names"):
        part(T.to_numpy())
    assert list(Partition(cases.svr(), keep=["id"], drop=["y"])(T.assign(y=1.0)).columns) == ["id", *MADE]


def test_text_is_refused_where_no_background_tells_types():
    X = cases.table(40)[cases.NAMES]
    explainer = cases.Explainer(cases.SVR().fit(X, X["age"]))
    for policy in ("raise", "mark"):
        with pytest.raises(InputError, match="bmi"):
            Partition(explainer, on_bad_rows=policy)(X[:3].assign(bmi=["1", "2", "x"]))


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


def test_a_column_without_values_makes_every_row_bad():
    T = cases.table(4)[cases.NAMES].assign(bmi=np.nan)
    with pytest.raises(InputError, match="Row 0 of the partition"):
        Partition(cases.svr())(T)
    assert Partition(cases.svr(), on_bad_rows="mark")(T)["phi_age"].isna().all()
    arrow = pa.table({"age": [1.0], "bmi": pa.nulls(1), "s1": [1.0], "s2": [1.0]})
    assert np.isnan(Partition(cases.svr(), on_bad_rows="mark")(arrow)["phi_age"][0].as_py())


def test_a_category_never_seen_is_a_bad_row():
    explainer, X = cases.encoded()
    X = X[:8].assign(colour=["red", "blue", "green", "red", "red", "blue", "green", "blue"])
    with pytest.raises(InputError, match=r"Row 2 of the partition.*unknown categories .'green'"):
        Partition(explainer)(X)
    out = Partition(explainer, on_bad_rows="mark")(X)
    assert list(np.flatnonzero(out["phi_size"].isna())) == [2, 6]


# --- settings ---------------------------------------------------------------------------------------------------------


def test_settings_are_checked():
    explainer = cases.svr()
    with pytest.raises(UnknownNameError, match="Did you mean 'mark'"):
        Partition(explainer, on_bad_rows="marks")
    with pytest.raises(InputTypeError, match="lists of columns"):
        Partition(explainer, keep="id")
    with pytest.raises(InputError, match="'residual'"):
        Partition(explainer, keep=["residual"])
    assert Partition(explainer, keep=["age"])(cases.table()[cases.NAMES])["age"].notna().all()


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
