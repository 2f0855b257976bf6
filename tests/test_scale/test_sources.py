"""Where rows may be: lists, patterns, Hive folders, data sets of pyarrow, object stores; and what of the values is written."""

import functools
import io
import operator
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import scale_cases as cases
from exactshap import Explainer, decompose_hsic
from exactshap.errors import InputError, InputTypeError, UnknownNameError
from exactshap.frames.stored import CsvTypes, find_files, inspect, read_rows
from exactshap.scale import GlobalImportance, Partition, StoredTable, explain_dataset, output_columns
from tolerances import roundings

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.fs as fs  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    """Return a folder of Hive keys: two years of two months each, 15 rows in a file."""
    T = cases.table()
    for number, (year, month) in enumerate([(2023, "01"), (2023, "12"), (2024, "01"), (2024, "12")]):
        place = tmp_path / "rows" / f"year={year}" / f"month={month}"
        place.mkdir(parents=True)
        T[15 * number : 15 * number + 15].to_parquet(place / "a.parquet", row_group_size=10)
    return tmp_path / "rows"


@pytest.fixture(scope="module")
def whole():
    return Partition(cases.svr(), keep=["id"])(cases.table())


def run(source, destination, **settings):
    result = explain_dataset(
        settings.pop("explainer", None) or cases.svr(), source, destination, **({"keep": ["id"], "batch_rows": 20} | settings)
    )
    return result, None if destination is None else pd.read_parquet(destination, partitioning=None)


# --- places -----------------------------------------------------------------------------------------------------------


def sources(folder):
    files = sorted(folder.rglob("*.parquet"))
    store = {"filesystem": fs.SubTreeFileSystem(str(folder.parent), fs.LocalFileSystem())}
    yield "folder", folder, {}
    yield "text", str(folder), {}
    yield "list of files", files, {}
    yield "list of texts and folders", [str(folder / "year=2023"), folder / "year=2024"], {}
    yield "pattern", f"{folder}/year=*/month=*/*.parquet", {}
    yield "deep pattern", str(folder / "**" / "*.parquet"), {}
    yield "pattern that matches folders within folders", str(folder / "**"), {}
    yield "data set", ds.dataset(folder), {}
    yield "data set with keys", ds.dataset(folder, partitioning="hive"), {}
    yield "data set of a list", ds.dataset([str(file) for file in files]), {}
    yield "store", "rows", store
    yield "pattern in a store", "rows/year=*/*/a.*", store
    yield "files in a store", [f"rows/{file.relative_to(folder)}" for file in files], store
    yield "local file system", str(folder), {"filesystem": fs.LocalFileSystem()}
    yield "address", folder.as_uri(), {}


@pytest.mark.parametrize("number", range(15))
def test_every_way_of_naming_files_gives_the_same_rows(number, folder, whole, tmp_path, pool):
    name, source, settings = list(sources(folder))[number]
    result, found = run(source, tmp_path / "out", map=pool.map if "store" in name else None, **settings)
    pd.testing.assert_frame_equal(found, whole, check_exact=True, obj=name)
    assert result.n_rows == 60
    again, _ = run(source, tmp_path / "out", **settings)
    assert again.n_resumed == 60
    stored = StoredTable(source, drop=["id"], **settings)
    assert (stored.n_rows, stored.names) == (60, tuple(cases.NAMES))
    pieces = pd.concat([piece.native.to_pandas() for piece in stored.pieces()], ignore_index=True)
    pd.testing.assert_frame_equal(pieces, cases.table()[cases.NAMES])


def memory(folder):
    """Return a store of fsspec that keeps no times, with the same files."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.store.clear()
    for path in folder.rglob("*.parquet"):
        store.pipe_file(f"/rows/{path.relative_to(folder)}", path.read_bytes())
    return store


@pytest.mark.parametrize("source", ["/rows", "memory://rows", "/rows/*/*/*.parquet"])
def test_a_store_of_fsspec(source, folder, whole, tmp_path):
    store = memory(folder)
    settings = {} if "://" in source else {"filesystem": store}
    _, found = run(source, tmp_path / "out", keep=["id", "year"], **settings)
    pd.testing.assert_frame_equal(found.drop(columns="year"), whole, check_exact=True)
    assert list(found["year"].unique()) == [2023, 2024]
    part = decompose_hsic(StoredTable(source, ["age", "bmi"], **settings), cases.table()["s1"])
    assert np.array_equal(part.values, decompose_hsic(cases.table()[["age", "bmi"]], cases.table()["s1"]).values)


def test_an_object_that_changes_in_a_store_is_seen_at_the_end(folder, tmp_path):
    store = memory(folder)

    def interfere(done, total):
        content = io.BytesIO()
        cases.table(seed=5)[:15].to_parquet(content, row_group_size=10)
        store.pipe_file("/rows/year=2023/month=01/a.parquet", content.getvalue())

    with pytest.raises(InputError, match=r"a\.parquet has changed while it was read"):
        run("/rows", tmp_path / "out", filesystem=store, batch_rows=15, progress=interfere)


def test_csv_files_in_a_list_and_in_a_store(whole, tmp_path):
    T = cases.table()
    (tmp_path / "in").mkdir()
    T[:30].to_csv(tmp_path / "in" / "a.csv", index=False)
    T[30:].to_csv(tmp_path / "in" / "b.csv", index=False)
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    _, listed = run([tmp_path / "in" / "a.csv", tmp_path / "in" / "b.csv"], tmp_path / "one")
    _, stored = run("in", tmp_path / "two", filesystem=store)
    _, dataset = run(ds.dataset(tmp_path / "in", format="csv"), tmp_path / "three")
    for found in (listed, stored, dataset):
        pd.testing.assert_frame_equal(found, whole, rtol=0.0, atol=roundings(100) * 100)


def test_a_list_keeps_its_order(folder, whole, tmp_path):
    files = sorted(folder.rglob("*.parquet"))[::-1]
    _, found = run(files, tmp_path / "out")
    assert list(found["id"]) == [*range(1045, 1060), *range(1030, 1045), *range(1015, 1030), *range(1000, 1015)]


@pytest.mark.parametrize(
    ("source", "settings", "error", "text"),
    [
        (lambda folder: folder, {"filesystem": "s3"}, InputTypeError, "`filesystem` is a file system"),
        (lambda folder: [], {}, InputError, "has no data"),
        (lambda folder: f"{folder}/*.nothing", {}, InputError, "has no data"),
        (lambda folder: [folder / "nothing.parquet"], {}, FileNotFoundError, "No such file"),
        (lambda folder: 3, {}, InputTypeError, "is a path, a list of paths, or a data set"),
        (lambda folder: [folder, folder], {}, InputError, "twice"),
        (lambda folder: ds.dataset(pa.table({"a": [1]})), {}, InputError, "in memory"),
        (lambda folder: ds.dataset(folder).filter(ds.field("age") > 0), {}, InputError, "without filter"),
        (lambda folder: "nowhere-known://rows", {}, InputError, "cannot be read"),
    ],
)
def test_sources_that_are_none_are_refused(source, settings, error, text, folder, tmp_path):
    with pytest.raises(error, match=text):
        run(source(folder), tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


# --- keys of folders, indices, categories -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "data set"])
def test_keys_of_folders_can_be_kept(kind, folder, whole, tmp_path):
    source = folder if kind == "folder" else ds.dataset(folder, partitioning=ds.partitioning(flavor="hive"))
    _, found = run(source, tmp_path / "out", keep=["year", "id", "month"])
    assert list(found["year"]) == [2023] * 30 + [2024] * 30
    months = ["01", "12"] if kind == "folder" else [1, 12]  # pyarrow takes "01" for a number
    assert list(found["month"]) == (([months[0]] * 15) + ([months[1]] * 15)) * 2
    pd.testing.assert_frame_equal(found.drop(columns=["year", "month"]), whole, check_exact=True)
    with pytest.raises(UnknownNameError, match="no column 'week'"):
        run(source, tmp_path / "other", keep=["week"])


def test_keys_of_folders_can_be_features_and_may_be_missing(folder, tmp_path):
    X = cases.table()[cases.NAMES].assign(year=[2023.0] * 30 + [2024.0] * 30)
    explainer = cases.Explainer(cases.Ridge().fit(X, X["year"]), X[::7])
    _, found = run(folder, tmp_path / "out", explainer=explainer, drop=["id"], keep=[])
    np.testing.assert_allclose(found["phi_year"], explainer(X).values[:, -1], atol=roundings(5_000))
    (folder / "year=2023").rename(folder / "year=__HIVE_DEFAULT_PARTITION__")
    _, found = run(folder, tmp_path / "kept", keep=["id", "year"])
    assert found["year"].isna().sum() == 30


def test_a_pandas_index_is_left_out_by_itself(whole, tmp_path):
    T = cases.table()
    T[:25].set_index(pd.Index([f"r{i}" for i in range(25)])).to_parquet(tmp_path / "a.parquet")
    assert "__index_level_0__" in pa.parquet.read_schema(tmp_path / "a.parquet").names
    T[25:].to_parquet(tmp_path / "b.parquet", index=False)
    _, found = run([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "out")
    pd.testing.assert_frame_equal(found, whole, check_exact=True)
    kept, _ = run(tmp_path / "a.parquet", tmp_path / "kept", keep=["__index_level_0__"], drop=["id"])
    assert pd.read_parquet(kept.files[0])["__index_level_0__"][3] == "r3"
    table = pa.parquet.read_table(tmp_path / "a.parquet")
    assert Partition(cases.svr(), keep=["id"])(table).column_names == list(whole.columns)
    assert StoredTable(tmp_path / "a.parquet", drop=["id"]).names == tuple(cases.NAMES)


@pytest.mark.parametrize("library", ["sklearn", "lightgbm", "xgboost"])
@pytest.mark.parametrize("cells", [[3, 7, 9], ["a", "b", "z"]], ids=str)
def test_categories_of_numbers_and_text_go_through_parquet(library, cells, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": pd.Categorical(rng.choice(cells, 200)), "x": rng.normal(size=200)})
    model = {
        "sklearn": lambda: cases.HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=5),
        "lightgbm": lambda: pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=5, verbose=-1),
        "xgboost": lambda: pytest.importorskip("xgboost").XGBRegressor(n_estimators=5, enable_categorical=True),
    }[library]()
    explainer = cases.Explainer(model.fit(X, X["x"] + 3.0 * (X["c"].cat.codes == 1)), X[:20])
    X[:50].to_parquet(tmp_path / "a.parquet")
    _, found = run(tmp_path / "a.parquet", tmp_path / "out", explainer=explainer, keep=[], batch_rows=13)
    assert np.array_equal(found[["phi_c", "phi_x"]], explainer(X[:50]).values)
    assert np.ptp(found["phi_c"]) > 0.5
    plain = X[:50].assign(c=X["c"][:50].astype(object))
    assert np.array_equal(Partition(explainer)(plain)[["phi_c", "phi_x"]], explainer(X[:50]).values)


# --- what is written --------------------------------------------------------------------------------------------------


def test_pairs_have_columns():
    explainer, T = cases.svr(), cases.table(9)
    part = Partition(explainer, keep={"id": "int64"}, order=2)
    out, expected = part(T), explainer(T[cases.NAMES], order=2)
    values = out.filter(like="phi_")
    assert list(values.columns)[:5] == ["phi_age", "phi_bmi", "phi_s1", "phi_s2", "phi_age & bmi"]
    assert np.array_equal(values, expected.set_values)
    assert list(out.columns) == part.schema.names
    assert out["exact"].all()
    pd.testing.assert_frame_equal(output_columns(expected, kind="pandas"), out.drop(columns="id"))


@pytest.mark.parametrize("make", [cases.svr, cases.outputs, cases.black_box])
def test_the_largest_values_and_the_rest_add_up(make):
    explainer = make()
    names = list(explainer.reader.traits.feature_names)
    T = pd.DataFrame(np.random.default_rng(0).normal(size=(6, len(names))), columns=names)
    full, part = Partition(explainer)(T), Partition(explainer, top_k=2)
    out = part(T)
    assert list(out.columns) == part.schema.names == list(part.meta.columns)
    assert all(str(dtype) in ("float64", "bool") for name, dtype in out.dtypes.items() if not name.startswith("feature"))
    for ending in (
        ("",) if explainer.reader.traits.single_output else (f"_{name}" for name in explainer.reader.traits.output_names)
    ):
        values = full[[f"phi{ending}_{name}" for name in names]].to_numpy()
        for i, row in enumerate(values):
            first, second = np.argsort(-np.abs(row), kind="stable")[:2]
            assert (out[f"feature_1{ending}"][i], out[f"value_1{ending}"][i]) == (names[first], row[first])
            assert (out[f"feature_2{ending}"][i], out[f"value_2{ending}"][i]) == (names[second], row[second])
            if make is cases.black_box:
                assert out["se_1"][i] == full[f"se_{names[first]}"][i]
        total = out[f"value_1{ending}"] + out[f"value_2{ending}"] + out[f"rest{ending}"] + out[f"baseline{ending}"]
        np.testing.assert_allclose(total, out[f"prediction{ending}"], atol=1e-9 if make is not cases.black_box else 1.0)
    assert list(Partition(explainer, top_k=100)(T).columns)[-1] in ("exact", f"se_{len(names)}")


def test_bad_rows_have_no_largest_values(tmp_path):
    T = cases.table(6)
    T.loc[2, "bmi"] = np.nan
    out = Partition(cases.svr(), keep=["id"], on_bad_rows="mark", top_k=1)(T)
    assert out["feature_1"].isna().tolist() == out["value_1"].isna().tolist() == [i == 2 for i in range(6)]
    T.to_parquet(tmp_path / "a.parquet")
    result, found = run(tmp_path / "a.parquet", tmp_path / "out", on_bad_rows="mark", top_k=1)
    assert result.n_bad_rows == result.n_rows - result.importance.n_rows == 1
    pd.testing.assert_frame_equal(found, out, check_exact=True, check_dtype=False)


def test_float32_values_are_rounded_once():
    part = Partition(cases.svr(), dtype="float32")
    out, full = part(cases.table()[cases.NAMES]), Partition(cases.svr())(cases.table()[cases.NAMES])
    for name in full:
        small = name.startswith("phi_")
        assert out[name].dtype == (np.float32 if small else full[name].dtype)
        assert np.array_equal(out[name], full[name].astype(np.float32) if small else full[name])
    assert part.schema.field("phi_age").type == pa.float32()


@pytest.mark.parametrize("settings", [{}, {"dtype": "float32"}, {"top_k": 1}, {"order": 2}, {"order": 2, "top_k": 3}], ids=str)
def test_importances_are_those_of_all_values_whatever_is_written(settings, folder, tmp_path):
    order = settings.get("order", 1)
    expected = GlobalImportance.of(Partition(cases.svr(), keep=["id"], order=order)(cases.table()))
    result, _ = run(folder, tmp_path / "out", **settings)
    nothing, _ = run(folder, None, **settings)
    again, _ = run(folder, tmp_path / "out", **settings)
    assert again.n_resumed == 60
    for found in (result, nothing, again):
        assert np.array_equal(found.importance.mean_abs, expected.mean_abs)
        assert np.array_equal(found.importance.mean, expected.mean)
    assert (nothing.files, nothing.destination) == ((), None)
    assert "60 rows explained in" in repr(nothing)
    assert " in None" not in repr(nothing)


# --- engines ----------------------------------------------------------------------------------------------------------


def test_partitions_of_less_travel_and_cut_alike():
    T = cases.table()
    for settings in ({"top_k": 2}, {"order": 2}, {"dtype": "float32", "order": 2, "top_k": 1}):
        part = Partition(cases.svr(), keep=["id"], **settings)
        again = pickle.loads(pickle.dumps(part))
        parts = [again(T[i : i + 25]) for i in range(0, 60, 25)]
        of_the_model = ["prediction", "residual"]
        pd.testing.assert_frame_equal(pd.concat(parts).drop(columns=of_the_model), part(T).drop(columns=of_the_model))
        assert part.identity() != Partition(cases.svr(), keep=["id"]).identity()
    plain = Partition(cases.svr(), keep=["id"])
    total = functools.reduce(operator.add, (GlobalImportance.of(plain(T[i : i + 7])) for i in range(0, 60, 7)))
    assert total == GlobalImportance.of(plain(T))


def test_a_file_is_closed_with_its_last_row(tmp_path):
    from exactshap.frames.stored import _source as source_module

    rows = pd.DataFrame({f"x{j}": np.arange(500.0) + j for j in range(30)})
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    (found,) = find_files(str(tmp_path / "rows.parquet"))
    file = source_module.inspect(found, CsvTypes())
    for start, stop in ((0, 100), (100, 450), (450, 499), (499, 500), (0, 500)):
        table = source_module.read_rows(file, start, stop, CsvTypes())
        pd.testing.assert_frame_equal(table.to_pandas(), rows[start:stop].reset_index(drop=True))
        assert (source_module._OPEN.stream is None) == (stop == 500)


@pytest.mark.parametrize(
    ("kind", "n_rows", "settings"),
    [
        *((kind, n_rows, {}) for kind in ("parquet", "csv") for n_rows in (0, 1, 60)),
        ("parquet", 60, {"offset": "s1"}),
        ("csv", 60, {"top_k": 2, "dtype": "float32"}),
        ("parquet", 1, {"order": 2}),
    ],
    ids=str,
)
def test_a_plan_of_files_is_that_of_a_batch(kind, n_rows, settings, tmp_path):
    T, path = cases.table()[:n_rows], tmp_path / f"rows.{kind}"
    explainer = cases.trees()
    if "offset" in settings:
        T, settings = T.assign(exposure=0.0), {"offset": "exposure"}
    T.to_parquet(path, row_group_size=20) if kind == "parquet" else T.to_csv(path, index=False)
    part = Partition(explainer, keep=["id"], **settings)
    forecast = part.plan(path, 7)
    assert forecast.block_rows == min(7, n_rows)
    assert (forecast.row_group > 0.0) == (kind == "parquet" and n_rows > 0) == ("for a row group of the files" in str(forecast))
    assert forecast.memory >= forecast.row_group
    assert (forecast.seconds > 0.0) == (n_rows > 0)
    if n_rows:
        assert forecast.method == part.explainer.plan(T[cases.NAMES], order=settings.get("order", 1)).method
        assert (
            abs(forecast.result / part(pa.Table.from_pandas(T, preserve_index=False)).drop_columns(["id"]).nbytes - 1.0) < 0.5
        )


@pytest.mark.parametrize(("group", "n_values"), [(20_000, 10**9), (200_000, 20)])
def test_a_row_group_takes_what_the_plan_says(group, n_values, tmp_path):
    cells = np.random.default_rng(0).integers(0, n_values, (200_000, 12)).astype(float)
    frame = pa.table({f"x{j}": cells[:, j] for j in range(12)})
    pq.write_table(frame, tmp_path / "rows.parquet", row_group_size=group)
    del frame
    explainer = Explainer(Ridge().fit(cells[:50], cells[:50, 0]), cells[:50])
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        forecast = Partition(explainer).plan(tmp_path / "rows.parquet", 1000)
        planned = pool.max_memory()
        file = inspect(find_files(tmp_path / "rows.parquet")[0], CsvTypes())
        for start in range(0, 200_000, 1000):
            read_rows(file, start, start + 1000, CsvTypes())
    finally:
        pa.set_memory_pool(before)
    assert 0.3 < forecast.row_group / pool.max_memory() < 3.0
    assert planned <= 2 * pool.max_memory()


@pytest.mark.parametrize(("settings", "batch_rows"), [({"keep": ["text"]}, 1000), ({"drop": ["text"]}, 100)])
def test_wide_text_counts_in_a_plan(settings, batch_rows, tmp_path):
    letters = np.random.default_rng(0).integers(97, 123, (2000, 5000)).astype("u1")
    T = cases.table()
    T = T.iloc[np.arange(2000) % len(T)].drop(columns="id").assign(text=[row.tobytes().decode() for row in letters])
    T.to_parquet(tmp_path / "rows.parquet", row_group_size=500, index=False)
    explainer = cases.trees()
    forecast = Partition(explainer, **settings).plan(tmp_path / "rows.parquet", batch_rows)
    # A batch and its copy, and three decoded row groups: 4,000 rows of 10,000 characters took 78 to 92 MiB in one batch, 20 to 39 in eight.
    taken = 5000 * (2 * batch_rows + 3 * 500)
    assert 1.0 / 3.0 < forecast.memory / taken < 3.0
    assert Partition(explainer, **settings).plan(tmp_path / "rows.parquet", 1).memory < forecast.memory
