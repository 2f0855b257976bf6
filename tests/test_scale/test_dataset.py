"""Files in, files out: the same numbers as in memory, and the same bytes however often a run is interrupted."""

import errno
import io
import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import scale_cases as cases
from exactshap import Explainer
from exactshap.errors import (
    ExplanationWarning,
    InputError,
    InputTypeError,
    ModelFormatError,
    UnknownNameError,
    UnsupportedStructureError,
)
from exactshap.scale import GlobalImportance, Partition, explain_dataset
from tolerances import roundings

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a folder with a source (three files, 60 rows in row groups of ten, and files that are none of them) and a run of it."""
    place, T = tmp_path_factory.mktemp("finished"), cases.table()
    folder = place / "in"
    (folder / "deep").mkdir(parents=True)
    T[:25].to_parquet(folder / "a.parquet", row_group_size=10)
    T[25:40].to_parquet(folder / "b.parquet", row_group_size=10)
    T[40:].to_parquet(folder / "deep" / "c.parquet", row_group_size=10)
    (folder / "_SUCCESS").write_text("")
    (folder / "notes.txt").write_text("not data")
    return place, run(folder, place / "out")


@pytest.fixture
def source(finished, tmp_path):
    return shutil.copytree(finished[0] / "in", tmp_path / "in")


@pytest.fixture
def whole(finished):
    return contents(finished[0] / "out")


@pytest.fixture
def out(finished, tmp_path):
    """Return a folder of results of our own, finished."""
    return shutil.copytree(finished[0] / "out", tmp_path / "out")


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def run(source, destination, explainer=None, **settings):
    settings = {"keep": ["id"], "batch_rows": 8, "progress": False} | settings
    return explain_dataset(explainer or cases.svr(), source, destination, **settings)


def test_a_folder_gives_what_one_call_gives(finished):
    result, T = finished[1], cases.table()
    found = pd.read_parquet(finished[0] / "out")
    whole = Partition(cases.svr(), keep=["id"])(T)
    pd.testing.assert_frame_equal(found, whole, check_exact=True)
    assert [pq.read_metadata(path).num_rows for path in result.files] == [8, 8, 8, 1, 8, 7, 8, 8, 4]
    assert (result.n_rows, result.n_bad_rows, result.n_resumed) == (60, 0, 0)
    assert result.max_residual == whole["residual"].abs().max()
    assert "60 rows explained" in repr(result)
    values = whole.filter(like="phi_").to_numpy()
    assert np.allclose(result.importance.mean_abs, np.abs(values).mean(axis=0), rtol=roundings(50))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("with_background", [True, False])
def test_steps_that_look_columns_up_by_name_take_rows_of_files(with_background, library, source, tmp_path):
    """scikit-learn takes no Arrow tables: the steps get frames of the library that the background is of, else of pandas."""
    T = cases.table()
    X = T.drop(columns="id")
    X = X if library == "pandas" else pytest.importorskip("polars").from_pandas(X)
    steps = ColumnTransformer([("own", "passthrough", ["age"])], remainder=StandardScaler())
    model = make_pipeline(steps, DecisionTreeRegressor(max_depth=3)).fit(X, T["age"] * T["bmi"])
    explainer = Explainer(model, X[:7] if with_background else None)
    run(source, tmp_path / "out", explainer)
    found = pd.read_parquet(tmp_path / "out").filter(like="phi_").to_numpy()
    assert np.array_equal(found, explainer(X).values)


@pytest.mark.parametrize(("batch_rows", "rows"), [(1, slice(25, 40)), (7, slice(None)), (10, slice(None)), (None, slice(None))])
def test_cuts_do_not_matter(finished, tmp_path, batch_rows, rows):
    source = finished[0] / "in"
    other = run(source if rows == slice(None) else source / "b.parquet", tmp_path / "other", batch_rows=batch_rows)
    one = pd.read_parquet(finished[0] / "out")[rows].reset_index(drop=True)
    pd.testing.assert_frame_equal(one, pd.read_parquet(tmp_path / "other"), check_exact=True)
    assert other.importance == GlobalImportance.of(one)


def test_csv_streams(tmp_path):
    T = cases.table(30).round(3)
    T.loc[:4, "bmi"] = [1, 2, 3, 4, 5]
    T.to_csv(tmp_path / "a.csv", index=False)
    run(tmp_path / "a.csv", tmp_path / "out")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out"), Partition(cases.svr(), keep=["id"])(T), check_exact=True)


@pytest.mark.parametrize(("packed", "codec"), [("GZ", "gzip"), ("bz2", "bz2"), ("zst", "zstd")])
def test_compressed_csv_streams(tmp_path, packed, codec):
    """A list, a folder and a store give what the file itself gives; their content is never there as a whole."""
    T, store = cases.table(30), pa.fs.SubTreeFileSystem(str(tmp_path), pa.fs.LocalFileSystem())
    (tmp_path / "in").mkdir()
    T.to_csv(tmp_path / "plain.csv", index=False)
    with pa.output_stream(str(tmp_path / "in" / f"a.CSV.{packed}"), codec) as file:
        file.write((tmp_path / "plain.csv").read_bytes())
    (tmp_path / "in" / "notes.gz").write_text("not data")
    run(tmp_path / "plain.csv", tmp_path / "out")
    expected = contents(tmp_path / "out")
    sources = {"list": ([tmp_path / "in" / f"a.CSV.{packed}"], None), "folder": (tmp_path / "in", None), "store": ("in", store)}
    for name, (source, filesystem) in sources.items():
        run(source, tmp_path / name, filesystem=filesystem)
        found = contents(tmp_path / name)
        assert [found[file] for file in found if file[0] != "_"] == [expected[file] for file in expected if file[0] != "_"]


def test_damaged_compressed_csv_is_refused(tmp_path):
    (tmp_path / "a.csv.gz").write_text("id,age")
    with pytest.raises(InputError, match=r"a\.csv\.gz cannot be read as CSV"):
        run(tmp_path / "a.csv.gz", tmp_path / "out")
    (tmp_path / "a.txt.gz").write_text("id,age")
    with pytest.raises(InputError, match=r"not from a\.txt\.gz"):
        run(tmp_path / "a.txt.gz", tmp_path / "out")


WORDS = {  # cells of a column of text, and what they look like
    "dates": ["2020-01-01", "2021-05-06"],
    "times": ["12:30", "07:10"],
    "codes": ["01", "02"],
    "booleans": ["True", "False"],
    "missing": ["x", None],
    "missing words": ["x", "NA"],
}


@pytest.mark.parametrize("words", WORDS)
def test_text_of_a_csv_stays_text(tmp_path, words):
    """Dates and numbers would be categories that the model does not know, which it takes for none."""
    T = pd.DataFrame({"word": np.resize(WORDS[words], 12), "size": np.arange(12.0)})
    front = ColumnTransformer([("word", OneHotEncoder(handle_unknown="ignore"), ["word"])], remainder="passthrough")
    explainer = Explainer(make_pipeline(front, cases.Ridge()).fit(T, T["size"] + 5.0 * (T["word"] == T["word"][0])), T)
    T.to_csv(tmp_path / "a.csv", index=False)
    explain_dataset(explainer, tmp_path / "a.csv", tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out")[["phi_word", "phi_size"]]
    np.testing.assert_array_equal(found, explainer(T).values)


def test_missing_texts_of_a_csv_are_missing_without_a_background(tmp_path):
    """An empty text is another category than a gap, which the imputer fills."""
    T = cases.table(60).drop(columns="id").assign(city=[*["u", "v", None] * 20])
    numbers = [name for name in T if name != "city"]
    texts = make_pipeline(SimpleImputer(strategy="constant", fill_value="u"), OneHotEncoder(handle_unknown="ignore"))
    steps = make_column_transformer((texts, ["city"]), ("passthrough", numbers), sparse_threshold=0.0)
    model = make_pipeline(steps, DecisionTreeRegressor(max_depth=3)).fit(T, 10.0 * (T["city"] != "v") + T[numbers[0]])
    T.to_csv(tmp_path / "a.csv", index=False)
    explain_dataset(Explainer(model), tmp_path / "a.csv", tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out").filter(like="phi_").to_numpy()
    np.testing.assert_array_equal(found, Explainer(model)(pd.read_csv(tmp_path / "a.csv")).values)
    T.fillna({"city": "NA"}).to_csv(tmp_path / "words.csv", index=False)
    with pytest.warns(ExplanationWarning, match=r"Words of words.csv are read as missing. Got {'city': \['NA'\]}"):
        explain_dataset(Explainer(model), tmp_path / "words.csv", tmp_path / "words")
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "words").filter(like="phi_").to_numpy(), found)


def test_whole_numbers_of_a_csv_stay_categories(tmp_path):
    catboost = pytest.importorskip("catboost")
    T = pd.DataFrame({"kind": np.arange(60) % 3, "size": np.arange(60.0)})
    settings = {"iterations": 4, "cat_features": ["kind"], "verbose": 0, "allow_writing_files": False}
    explainer = Explainer(catboost.CatBoostRegressor(**settings).fit(T, T["size"] * T["kind"]), T[:9])
    T.to_csv(tmp_path / "a.csv", index=False)
    explain_dataset(explainer, tmp_path / "a.csv", tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out")[["phi_kind", "phi_size"]]
    np.testing.assert_array_equal(found, explainer(T).values)


def test_a_kept_column_that_occurs_twice_is_refused(tmp_path):
    T = pa.Table.from_pandas(cases.table(3), preserve_index=False)
    pq.write_table(T.append_column("id", T["id"]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet does not fit.*'id' occurs 2 times"):
        run(tmp_path / "a.parquet", tmp_path / "out")


@pytest.mark.parametrize("cells", [[], [None, None]], ids=["header only", "missing"])
def test_truth_values_go_next_to_files_without_any(tmp_path, cells):
    """Engines write files of a header only for partitions without rows."""
    T = pd.DataFrame({"member": [True, False] * 10, "size": np.arange(20.0)})
    model = cases.HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2).fit(T, T["size"] * T["member"])
    T.to_csv(tmp_path / "a.csv", index=False)
    other = pd.DataFrame({"member": cells, "size": np.ones(len(cells))})
    other.to_csv(tmp_path / "b.csv", index=False)
    explainer = Explainer(model, T)
    explain_dataset(explainer, [tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out")[["phi_member", "phi_size"]]
    np.testing.assert_array_equal(found[:20], explainer(T).values)
    np.testing.assert_array_equal(found[20:], explainer(other.astype(float)).values if cells else np.empty((0, 2)))


def test_bytes_are_no_text(tmp_path):
    """A file in another code page gives bytes, and so do some columns of engines; no category equals them."""
    explainer, T = cases.encoded()
    T = T.assign(colour=np.where(T["colour"] == "red", "rot", "grün"))
    T.to_csv(tmp_path / "a.csv", index=False, encoding="latin-1")
    with pytest.raises(InputError, match=r"a.csv is not UTF-8. Column 'colour' holds other bytes. Write it in UTF-8: pandas"):
        explain_dataset(explainer, tmp_path / "a.csv", tmp_path / "out")
    T.rename(columns={"colour": "größe"}).to_csv(tmp_path / "b.csv", index=False, encoding="latin-1")
    with pytest.raises(InputError, match=r"b.csv is not UTF-8. 'utf-8' codec can't decode byte .* Write it in UTF-8: pandas"):
        explain_dataset(explainer, tmp_path / "b.csv", tmp_path / "out")
    with pytest.raises(InputError, match="Column 'colour' holds bytes"):
        Partition(explainer)(T.assign(colour=[colour.encode() for colour in T["colour"]]))


def test_whole_numbers_at_the_top_of_a_csv_column_may_turn_into_others(tmp_path):
    T = cases.table(3)[cases.NAMES]
    lines = ["age,bmi,s1,s2", *(["1,2,3,4"] * 150_000), ",".join(map(str, T.loc[0]))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    explainer = cases.Explainer(cases.Ridge().fit(T, T["age"]), T)
    result = explain_dataset(explainer, tmp_path / "a.csv", tmp_path / "out")
    assert result.n_rows == 150_001
    last = pd.read_parquet(result.files[-1]).iloc[-1]
    assert last["phi_age"] == Partition(explainer)(T)["phi_age"][0]
    (tmp_path / "a.csv").write_text("\n".join([*lines, "1,2,x,4"]))
    with pytest.raises(InputError, match=r"a.csv cannot be read as CSV.*'x'"):
        explain_dataset(explainer, tmp_path / "a.csv", tmp_path / "other")


def test_digits_of_a_csv_that_are_lost_are_warned_of(tmp_path):
    T = cases.table(3)[cases.NAMES]
    explainer = cases.Explainer(cases.Ridge().fit(T, T["age"]), T)
    rows = T.astype({"age": str}).assign(
        age=["12345678901234567", "1", "2"], id=["007", "8", "9"], n=[10, 20, 12345678901234567]
    )
    rows.to_csv(tmp_path / "a.csv", index=False)
    words = r"Digits of a.csv are lost, as in numbers. Got {'age': '12345678901234567', 'id': '007'}"
    with pytest.warns(ExplanationWarning, match=words) as caught:
        explain_dataset(explainer, tmp_path / "a.csv", tmp_path / "out", keep=["id", "n"])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        T.assign(id=["007", "8", "9"]).to_csv(tmp_path / "b.csv", index=False)
        explain_dataset(explainer, tmp_path / "b.csv", tmp_path / "other", drop=["id"])


def test_any_ordered_map_gives_the_same_bytes_and_progress_counts_rows(finished, whole, tmp_path, pool):
    calls = []
    found = run(finished[0] / "in", tmp_path / "out", map=pool.map, progress=lambda done, total: calls.append((done, total)))
    assert contents(tmp_path / "out") == whole
    assert found.importance == finished[1].importance
    assert calls[0] == (8, 60)
    assert calls[-1] == (60, 60)


# --- interrupted runs -------------------------------------------------------------------------------------------------


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}


@pytest.mark.parametrize("settings", [{}, {"dtype": "float32"}, {"top_k": 2}, {"order": 2}], ids=str)
def test_a_resumed_run_computes_what_is_missing_only(settings, source, tmp_path):
    first = run(source, tmp_path / "whole", **settings)
    shutil.copytree(tmp_path / "whole", tmp_path / "out")
    for name in ("part-00001.parquet", "part-00008.parquet"):
        (tmp_path / "out" / name).unlink()
    (tmp_path / "out" / "part-00004.parquet").write_bytes(b"PAR1 cut off")
    before = times(tmp_path / "out")
    with pytest.warns(ExplanationWarning, match="1 result of .* differed from what had been written"):
        second = run(source, tmp_path / "out", **settings)
    after = times(tmp_path / "out")
    written = [name for name in after if after[name] != before.get(name)]
    assert sorted(written) == ["part-00001.parquet", "part-00004.parquet", "part-00008.parquet"]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert second.n_resumed == 60 - 8 - 8 - 4
    assert second.importance == first.importance


def edited(path):
    """Change one value of a result as any library would, its rows, columns and metadata left."""
    table = pq.read_table(path)
    values = table["phi_age"].to_numpy().copy()
    values[-1] += 1e-3
    pq.write_table(table.set_column(table.schema.get_field_index("phi_age"), "phi_age", pa.array(values)), path)


def rotten(path):
    """Flip one bit of a value in the pages, which Parquet does not see."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 16
    path.write_bytes(content)


def exchanged(path):
    """Put another result of as many rows in its place."""
    path.write_bytes(path.with_name("part-00002.parquet").read_bytes())


def piped(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes as files here")
@pytest.mark.parametrize("tamper", [edited, rotten, exchanged, piped])
def test_a_finished_result_that_is_not_what_was_written_is_explained_again(tamper, finished, source, whole, out):
    tamper(out / "part-00001.parquet")
    with pytest.warns(ExplanationWarning, match="1 result of .* differed from what had been written: explained again"):
        second = run(source, out)
    assert contents(out) == whole
    assert second.importance == finished[1].importance
    assert second.n_resumed == 52


def test_results_without_a_digest_are_explained_again(source, whole, out):
    manifest = json.loads((out / "_manifest.json").read_text())
    assert sorted(manifest["outputs"]) == [f"part-0000{j}.parquet" for j in range(9)]
    del manifest["outputs"]["part-00003.parquet"]
    (out / "_manifest.json").write_text(json.dumps(manifest))
    edited(out / "part-00003.parquet")
    assert run(source, out).n_resumed == 59
    assert contents(out) == whole


def rewritten(path):
    """Write other values over a file: the same size, and the time of before."""
    facts, table = path.stat(), pq.read_table(path)
    values = table["bmi"].to_numpy().copy()
    values[:] = values[::-1]
    content = io.BytesIO()
    pq.write_table(table.set_column(1, "bmi", pa.array(values)), content, row_group_size=10)
    path.write_bytes(content.getvalue())
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replaced(path):
    """Put another file in its place, as most programs write files."""
    cases.table(seed=7)[25:40].to_parquet(path.with_suffix(".new"), row_group_size=10)
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize(
    ("change", "after_rows"), [(rewritten, 8), (rewritten, 33), (replaced, 33), (replaced, 40), (os.unlink, 40), (os.unlink, 8)]
)
def test_an_input_that_changes_during_a_run_is_refused(change, after_rows, source, whole, tmp_path):

    def interfere(done, total):
        if done == after_rows:
            change(source / "b.parquet")

    with pytest.raises(InputError, match=r"b\.parquet (has changed while it was read|is gone)"):
        run(source, tmp_path / "out", progress=interfere)
    of_b = {"part-00004.parquet", "part-00005.parquet"}
    found = contents(tmp_path / "out")
    assert all(found[name] == whole[name] for name in found if name.startswith("part-"))  # nothing was mixed
    assert after_rows > 8 or not of_b & set(found)


def test_an_input_that_is_only_touched_is_read_on(source, whole, tmp_path):
    def touch(done, total):
        (source / "b.parquet").touch()

    run(source, tmp_path / "out", progress=touch)
    assert contents(tmp_path / "out") == whole


def test_a_destination_inside_the_source_is_refused_before_any_work(source, tmp_path):
    before = sorted(source.rglob("*"))
    dataset = pytest.importorskip("pyarrow.dataset").dataset(str(source))
    (tmp_path / "link").symlink_to(source)
    places = [source, [source], f"{source}/", f"{source}/**/*.parquet", f"file://{source}", dataset, tmp_path / "link"]
    stores = pytest.importorskip("pyarrow.fs").LocalFileSystem(), pytest.importorskip("fsspec").filesystem("file")
    tried = [(place, "out", None) for place in places] + [(str(source), "out", store) for store in stores]
    tried += [(source, inside, None) for inside in ("deep/out", "../in/out", ".")]
    for place, inside, filesystem in tried:
        with pytest.raises(InputError, match="destination is inside the source"):
            run(place, source / inside, filesystem=filesystem)
    assert sorted(source.rglob("*")) == before
    with pytest.raises(InputError, match="source is inside the destination"):
        run(source / "a.parquet", tmp_path)


@pytest.mark.parametrize("address", ["s3://bucket/values", "memory://values", "file:///values"])
def test_a_destination_that_is_an_address_is_refused(address, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"written to folders of this machine. Got"):
        run(source, address)
    assert list(tmp_path.iterdir()) == [source]


def test_a_pattern_is_no_folder_that_results_would_join(source, tmp_path):
    listed = run([source / "a.parquet", source / "b.parquet"], tmp_path / "o")
    assert run(str(source / "*.parquet"), source / "out").n_rows == listed.n_rows
    for pattern, out in ((tmp_path / "i?" / "*.parquet", source), (tmp_path / "i?", source / "other")):
        with pytest.raises(InputError, match="destination is inside the source"):
            run(str(pattern), out)


def test_a_full_disk_is_said_and_whole_files_stay(source, whole, tmp_path, monkeypatch):
    write, written = pq.write_table, []

    def full(table, draft, **settings):
        written.append(draft)
        if len(written) == 4:
            draft.write_bytes(b"what still fitted")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(table, draft, **settings)

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="No space left on device: finished results are kept; make room and run again") as caught:
        run(source, tmp_path / "out")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename.endswith("part-00003.parquet")
    assert sorted(contents(tmp_path / "out")) == ["_manifest.json", *(f"part-0000{j}.parquet" for j in range(3))]
    monkeypatch.undo()
    assert run(source, tmp_path / "out").n_resumed == 24
    assert contents(tmp_path / "out") == whole


def test_a_disk_that_has_no_room_for_the_manifest_is_said(source, whole, tmp_path, monkeypatch):
    write_text = Path.write_text

    def full(path, text, **settings):
        if "part-00002" in text:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_text(path, text, **settings)

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr("exactshap.scale._batches._MANIFEST_TIME", np.inf)  # written after each result
    with pytest.raises(OSError, match="No space left on device: finished results are kept; make room and run again") as caught:
        run(source, tmp_path / "out")
    assert caught.value.filename.endswith("/_manifest.json")
    monkeypatch.undo()
    assert run(source, tmp_path / "out").n_resumed == 16
    assert contents(tmp_path / "out") == whole


def test_a_result_that_is_removed_during_the_run_is_missed(source, whole, tmp_path):
    def remove(done, total):
        (tmp_path / "out" / "part-00000.parquet").unlink(missing_ok=True)

    with pytest.raises(FileNotFoundError, match="as 1 of 9 results: run again to resume") as caught:
        run(source, tmp_path / "out", progress=remove)
    assert caught.value.filename.endswith("part-00000.parquet")
    run(source, tmp_path / "out")
    assert contents(tmp_path / "out") == whole


def test_a_folder_that_is_removed_during_the_run_is_not_a_full_disk(source, tmp_path):
    with pytest.raises(FileNotFoundError, match="No such folder: finished results are kept; put that right and run again"):
        run(source, tmp_path / "out", progress=lambda done, total: shutil.rmtree(tmp_path / "out", ignore_errors=True))


# --- runs that differ -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            {"explainer": lambda model, X: Explainer(clone(model).set_params(svr__C=6.0).fit(X, cases.target(X)), X[:10])},
            "the model",
        ),
        ({"explainer": lambda model, X: Explainer(model, X[:9])}, "the background"),
        ({"explainer": lambda model, X: cases.svr(groups={"s": ["s1", "s2"]})}, "the players"),
        ({"index": "banzhaf"}, r"the index \('shapley' before, now 'banzhaf'\)"),
        ({"batch_rows": 9}, r"the batch_rows \(8 before, now 9\)"),
        ({"on_bad_rows": "mark"}, "the on_bad_rows"),
        ({"keep": ["id", "age"]}, "the keep"),
    ],
)
def test_another_run_is_refused_by_name(source, out, whole, change, named):
    if "explainer" in change:
        change = {"explainer": change["explainer"](cases.svr().reader.traits.model, cases.table(40, 9)[cases.NAMES])}
    with pytest.raises(InputError, match=f"is of other data or settings. Different: [^;]*{named}"):
        run(source, out, **change)
    assert contents(out) == whole


def test_another_run_that_begins_while_inputs_are_read_is_not_joined(source, tmp_path):
    def map_after_another(*arguments):
        if not (tmp_path / "out").exists():
            run(source, tmp_path / "out", index="banzhaf")
        return map(*arguments)

    with pytest.raises(InputError, match=r"other data or settings. Different: the index \('banzhaf' before, now 'shapley'\)"):
        run(source, tmp_path / "out", map=map_after_another)


def test_settings_that_no_digest_shows_are_found_by_a_row_solved_again(tmp_path):
    names = [f"f{j}" for j in range(14)]
    pd.DataFrame(np.random.default_rng(0).normal(size=(4, 14)), columns=names).to_parquet(tmp_path / "a.parquet")
    settings = {"keep": (), "batch_rows": 2}
    run(tmp_path / "a.parquet", tmp_path / "out", cases.black_box(function=cases.rough), **settings)
    assert run(tmp_path / "a.parquet", tmp_path / "out", cases.black_box(function=cases.rough), **settings).n_resumed == 4
    with pytest.raises(InputError, match=r"phi_f.* of its first row was .* Use the settings"):
        run(tmp_path / "a.parquet", tmp_path / "out", cases.black_box(100, cases.rough), **settings)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda source: cases.table()[:3].to_parquet(source / "d.parquet"), "the file d.parquet is new"),
        (lambda source: cases.table(seed=5)[25:40].to_parquet(source / "b.parquet"), "the file b.parquet has changed"),
        (lambda source: (source / "b.parquet").unlink(), "the file b.parquet is gone"),
    ],
)
def test_inputs_that_changed_are_refused_by_name(change, text, source, out):
    change(source)
    with pytest.raises(InputError, match=text):
        run(source, out)


OCCUPIED = {
    "an earlier run": (lambda out: {"resume": False}, InputError, "resume=False"),
    "another format": (lambda out: (out / "_manifest.json").write_text('{"format": 7}'), ModelFormatError, "its format is 7"),
    "a thesis": (lambda out: (out / "_manifest.json").rename(out / "thesis.txt"), InputError, "holds something else"),
    "a file": (lambda out: (shutil.rmtree(out), out.write_text("x")), InputError, "is a file"),
}


@pytest.mark.parametrize("kind", OCCUPIED)
def test_folders_that_hold_something_else_are_left_alone(kind, source, out):
    occupy, error, text = OCCUPIED[kind]
    settings = occupy(out)
    with pytest.raises(error, match=text):
        run(source, out, **(settings if isinstance(settings, dict) else {}))


def test_the_manifest_says_what_was_run(whole):
    manifest = json.loads(whole["_manifest.json"])
    assert list(manifest["inputs"]) == ["a.parquet", "b.parquet", "deep/c.parquet"]
    assert manifest["run"]["value function"] == "interventional"
    assert len(manifest["run"]["model"]) == 64
    assert ["id", "int64"] in manifest["schema"]


# --- files that do not fit --------------------------------------------------------------------------------------------


def test_a_bad_row_is_named_by_file_row_group_and_row(source, tmp_path):
    T = cases.table()
    T.loc[54, "bmi"] = np.nan
    T[40:].to_parquet(source / "deep" / "c.parquet", row_group_size=10)
    place = r"Row 54 cannot be explained \(deep/c.parquet, row group 1, row 14 of the file\). Input X contains NaN \(first at row 54,"
    with pytest.raises(InputError, match=place):
        run(source, tmp_path / "out")
    marked = run(source, tmp_path / "marked", on_bad_rows="mark")
    assert (marked.n_rows, marked.n_bad_rows, marked.importance.n_rows) == (60, 1, 59)
    assert list(np.flatnonzero(~pd.read_parquet(tmp_path / "marked")["exact"])) == [54]
    assert run(source, tmp_path / "marked", on_bad_rows="mark").n_resumed == 60


@pytest.mark.parametrize(
    ("drift", "error"),
    [
        (lambda T: T[T.columns[::-1]], "b.parquet does not fit.*same order"),
        (lambda T: T.drop(columns="bmi"), "b.parquet does not fit.*Missing: .'bmi'"),
        (lambda T: T.assign(y=1.0), "b.parquet does not fit.*columns that are no features. Got 'y'. Name them in drop="),
        (lambda T: T.assign(bmi=T["bmi"].astype(str)), "b.parquet does not fit.*'bmi' holds text"),
        (lambda T: T.assign(id=T["id"].astype(str)), "'id' of b.parquet has another type"),
    ],
)
def test_a_file_that_drifts_is_refused_before_any_work(source, tmp_path, drift, error):
    drift(cases.table()[25:40]).to_parquet(source / "b.parquet")
    with pytest.raises((InputError, UnknownNameError), match=error):
        run(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_columns_align_by_name_on_request(source, tmp_path):
    T = cases.table()
    T[25:40][T.columns[::-1]].to_parquet(source / "b.parquet")
    run(source, tmp_path / "out", cases.svr(align=True))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out"), Partition(cases.svr(), keep=["id"])(T), check_exact=True)


def test_fewer_digits_in_one_file_are_said(source, tmp_path):
    cases.table()[25:40].astype({"age": np.float32}).to_parquet(source / "b.parquet")
    with pytest.warns(ExplanationWarning, match="'age' is float"):
        run(source, tmp_path / "out")


def test_files_without_rows_and_without_values(source, tmp_path):
    cases.table()[:0].to_parquet(source / "b.parquet")
    T = cases.table()[40:].assign(bmi=None)
    T.to_parquet(source / "deep" / "c.parquet")
    result = run(source, tmp_path / "out", on_bad_rows="mark")
    assert (result.n_rows, result.n_bad_rows) == (45, 20)


NO_SOURCES = {
    "nothing": ({}, FileNotFoundError, "nothing"),
    "empty": ({"readme.txt": b"x"}, InputError, "has no data"),
    "no parquet": ({"a.parquet": b"no parquet"}, InputError, r"a.parquet cannot be read as Parquet"),
    "two formats": ({"a.parquet": b"no parquet", "a.csv": b"a\n1\n"}, InputError, "mixes formats"),
}


@pytest.mark.parametrize("name", NO_SOURCES)
def test_sources_are_checked(name, tmp_path):
    files, error, text = NO_SOURCES[name]
    for file, content in files.items():
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / file).write_bytes(content)
    with pytest.raises(error, match=text):
        run(tmp_path / name, tmp_path / "out")


def test_a_batch_has_at_least_one_row(source, tmp_path):
    with pytest.raises(InputError, match="'batch_rows' parameter"):
        run(source, tmp_path / "out", batch_rows=0)


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "no end": lambda data: data[:-8],
    "other": lambda data: b"a,b\n1,2\n",
    "pages": lambda data: data[:4] + bytes(byte ^ 255 for byte in data[4:400]) + data[400:],
    "footer": lambda data: data[:-60] + bytes(byte ^ 255 for byte in data[-60:-30]) + data[-30:],
}


@pytest.mark.parametrize("how", DAMAGE)
def test_one_damaged_file_of_a_folder_is_named(how, source, tmp_path):
    path = source / "b.parquet"
    cases.table().to_parquet(path)
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    with pytest.raises(InputError, match=r"b\.parquet cannot be read as Parquet"):
        run(source, tmp_path / "out")


def test_memory_is_bounded(tmp_path):
    """A file of 16 MB of cells is read and written in pieces: Arrow holds a few batches at a time."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200_000, 10)), columns=[*"abcdefghij"])
    X.to_parquet(tmp_path / "a.parquet", row_group_size=20_000)
    explainer, start, peak = Explainer(Ridge().fit(X[:50], X["a"][:50]), X[:5]), pa.total_allocated_bytes(), []

    def measure(done, total):
        peak.append(pa.total_allocated_bytes() - start)

    run(tmp_path / "a.parquet", tmp_path / "out", explainer, keep=(), batch_rows=10_000, progress=measure)
    assert len(peak) == 20
    assert max(peak) < 8e6


def test_no_network_is_touched_and_nothing_is_unpickled(source, tmp_path, monkeypatch):
    """Everything is prepared before; then sockets and unpicklers are traps, for a first run and for one that is resumed."""
    explainer = cases.svr()

    def trap(*_, **__):
        raise AssertionError("this must not be called")

    for name in ("socket.socket.connect", "socket.getaddrinfo", "pickle.load", "pickle.loads", "pickle.Unpickler"):
        monkeypatch.setattr(name, trap)
    run(source, tmp_path / "out", explainer)
    (tmp_path / "out" / "part-00002.parquet").unlink()
    assert run(source, tmp_path / "out", explainer).n_resumed == 52


# -- offsets of rows -----------------------------------------------------------------------------------------------------


@pytest.fixture
def insured(tmp_path):
    """Return a Poisson model of rates, its rows with their log exposure, and a folder of two files of them."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["age", "km", "bonus"])
    exposure = rng.uniform(0.1, 3.0, 40)
    model = PoissonRegressor().fit(X, rng.poisson(exposure * np.exp(X["age"])) / exposure, sample_weight=exposure)
    T = X.assign(log_exposure=np.log(exposure), id=range(40))
    (tmp_path / "in").mkdir()
    T[:25].to_parquet(tmp_path / "in" / "a.parquet")
    T[25:].to_parquet(tmp_path / "in" / "b.parquet")
    return Explainer(model, X[:10]), T


def test_a_column_of_offsets_is_in_the_baseline(insured, tmp_path):
    explainer, T = insured
    run(tmp_path / "in", tmp_path / "out", explainer, offset="log_exposure")
    found = pd.read_parquet(tmp_path / "out")
    whole = explainer(T[["age", "km", "bonus"]], offset=T["log_exposure"])
    assert list(found) == ["id", "phi_age", "phi_km", "phi_bonus", "baseline", "prediction", "residual", "exact"]
    np.testing.assert_array_equal(found[["phi_age", "phi_km", "phi_bonus"]], whole.values)
    np.testing.assert_allclose(found["baseline"], whole.baseline, rtol=roundings(4))
    np.testing.assert_allclose(
        np.exp(found["prediction"]),
        explainer.reader.traits.model.predict(T[["age", "km", "bonus"]]) * np.exp(T["log_exposure"]),
    )
    assert found["exact"].all()


def test_a_run_with_other_offsets_is_not_resumed(insured, tmp_path):
    explainer, _ = insured
    run(tmp_path / "in", tmp_path / "out", explainer, offset="log_exposure")
    assert run(tmp_path / "in", tmp_path / "out", explainer, offset="log_exposure").n_resumed == 40
    with pytest.raises(InputError, match=r"the offset \('log_exposure' before, now None\)"):
        run(tmp_path / "in", tmp_path / "out", explainer, drop=["log_exposure"])


def test_rows_without_exposure_are_named_or_marked(insured, tmp_path):
    explainer, T = insured
    T.loc[[3, 30], "log_exposure"] = [-np.inf, np.nan]
    T.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"Row 3 cannot be explained .*`offset` must hold a finite number.*-inf"):
        run(tmp_path / "rows.parquet", tmp_path / "out", explainer, offset="log_exposure")
    result = run(tmp_path / "rows.parquet", tmp_path / "marked", explainer, offset="log_exposure", on_bad_rows="mark")
    assert result.n_bad_rows == 2
    assert np.flatnonzero(~pd.read_parquet(tmp_path / "marked")["exact"]).tolist() == [3, 30]


def test_a_model_with_gaps_in_rows_loses_no_row_to_the_offset_of_another(tmp_path):
    xgb = pytest.importorskip("xgboost")
    X = pd.DataFrame({"age": [np.nan, np.nan, 1.0, 2.0] * 5, "km": np.arange(20.0)})
    explainer = Explainer(xgb.XGBRegressor(n_estimators=3).fit(X, X["km"]))
    T = X.assign(offset=[np.nan] + [0.5] * 19)
    found = Partition(explainer, on_bad_rows="mark", offset="offset")(T)
    assert np.flatnonzero(~found["exact"]).tolist() == [0]
    expected = explainer(X[1:], offset=T["offset"][1:])
    np.testing.assert_array_equal(found[["phi_age", "phi_km"]][1:], expected.values)


@pytest.mark.parametrize("library", [lambda T: T, pytest.importorskip("polars").from_pandas, pa.Table.from_pandas])
def test_tables_of_any_library_hold_offsets(insured, library):
    explainer, T = insured
    found = Partition(explainer, drop=["id"], offset="log_exposure")(library(T))
    plain = explainer(T[["age", "km", "bonus"]])
    np.testing.assert_allclose(np.asarray(found["baseline"]), plain.baseline + T["log_exposure"], rtol=roundings(4))


@pytest.mark.parametrize(
    ("offset", "error", "text"),
    [
        (np.zeros(3), InputTypeError, r"`offset` must name a column. Got ndarray. Make them a column"),
        ("age", InputError, "Column 'age' is a feature of the model"),
        ("exposure", UnknownNameError, "no column 'exposure'"),
    ],
    ids=str,
)
def test_offsets_that_are_none_are_refused(offset, error, text, insured):
    explainer, T = insured
    with pytest.raises(error, match=text):
        Partition(explainer, offset=offset)(T)
    rates = Explainer(explainer.reader.traits.model, T[["age", "km", "bonus"]][:10], output="response")
    with pytest.raises(UnsupportedStructureError, match="An offset is added to a score"):
        Partition(rates, offset="log_exposure")
