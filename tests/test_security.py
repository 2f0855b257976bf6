"""What a file, a name or a cell of a stranger must not do: run code, take memory, break what is shown."""

import copy
import csv
import errno
import functools
import importlib
import io
import json
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pandas
import pyarrow as arrow
import pyarrow.parquet as parquet_files
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

import fuzz
from exactshap import Explainer, decompose_mmd, errors, estimators, trees
from exactshap._runtime.files import atomic_write
from exactshap.cli import main
from exactshap.cli._io import load_model, read_table, write_table
from exactshap.cli._options import read_groups
from exactshap.errors import InputError, ModelFormatError, message, printable, warn
from exactshap.results.explanation import Explanation
from exactshap.results.explanation._storage import unpacked_bytes
from exactshap.results.report.shares import render_shares
from exactshap.scale import StoredTable, explain_dataset
from explanation_factory import facts, linear, rewritten
from peaks import traced

X = np.random.default_rng(0).normal(size=(5, 1))

# --- skops files ------------------------------------------------------------------------------------------------------


def node(loader, name, **content):
    module, _, short = name.rpartition(".")
    return {"__class__": short, "__module__": module, "__loader__": loader, **content}


def plain(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def sequence(values):
    return node("TupleNode", "builtins.tuple", content=[plain(value) for value in values])


class Payload:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


def write_both(path, schema, marker, protocol):
    """Write a file that is a pickle from its beginning and a zip from its end."""
    buffer = io.BytesIO()
    buffer.write(pickle.dumps(Payload(os.mkdir, str(marker))))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("schema.json", json.dumps(schema | {"protocol": protocol, "_skops_version": "0.16"}))
        content = io.BytesIO()
        np.save(content, np.zeros(2))
        archive.writestr("array.npy", content.getvalue())
    path.write_bytes(buffer.getvalue())


LOADERS = {
    "constructor": lambda name, values: node("ConstructorFromReduceNode", name, content=sequence(values)),
    "function": lambda name, _: node("FunctionNode", name),
    "old function": lambda name, _: node(
        "FunctionNode", name, content=dict(zip(("module_path", "_", "function"), name.rpartition("."), strict=True))
    ),
    "object": lambda name, _: node("ObjectNode", name),
    "type": lambda name, _: node("TypeNode", name),
    "loss": lambda name, values: node("LossNode", name, __reduce__={"args": sequence(values)}, content=sequence([])),
    "array": lambda name, _: node("NdArrayNode", name, type="numpy", file="array.npy"),
    "list": lambda name, values: node("ListNode", name, content=[plain(value) for value in values]),
    "partial": lambda name, values: node(
        "PartialNode",
        "functools.partial",
        content={"func": node("TypeNode", name), "args": sequence(values), "kwds": plain(None), "namespace": plain(None)},
    ),
}
OURS = [
    *("cli._io._load_pickle", "cli._io.load_model", "cli._io._read", "cli.main", "explain", "readers.register"),
    *("_runtime.optional.require", "_runtime.files.atomic_write", "trees.load", "trees.loads", "kernels.Custom"),
    *("kernels._algebra.Custom", "estimators.rkhs_weighting._instantiations.MonteCarlo", "estimators.ShapleyKernelRidge"),
    *("estimators.shapley_ridge._regressor.np", "estimators.shapley_ridge._regressor.ShapleyKernelRidgeX"),
]
THEIRS = [
    *("exactshapeless.Anything", "numpy.load", "numpy.fromfile", "numpy.memmap", "sklearn.datasets.load_svmlight_file"),
    *("sklearn.utils._joblib.load", "joblib.load", "os.system", "builtins.eval", "builtins.getattr"),
]


@pytest.mark.parametrize("name", [*(f"exactshap.{name}" for name in OURS), *THEIRS])
@pytest.mark.parametrize("loader", LOADERS)
def test_no_name_in_a_skops_file_is_called_without_trust(loader, name, tmp_path, monkeypatch):
    monkeypatch.setattr(joblib, "load", lambda *_: pytest.fail("a pickle was read"))
    path, marker = tmp_path / "model.skops", tmp_path / "marker"
    for protocol in (0, 2):
        write_both(path, LOADERS[loader](name, [str(path), True]), marker, protocol)
        with pytest.raises((InputError, ModelFormatError), match=r"harmless\. Got .*|is not a skops file"):
            load_model(path)  # before any is made
        assert not marker.exists()
    assert "exactshapeless" not in sys.modules


def test_the_same_file_with_trust_does_run(tmp_path):
    """The exploit works where it is allowed to: else its absence above would say nothing."""

    path, marker = tmp_path / "model.skops", tmp_path / "marker"
    write_both(path, LOADERS["constructor"]("exactshap.cli._io._load_pickle", [str(path), True]), marker, 2)
    load_model(path, trust=True)
    assert marker.exists()


def test_methods_of_trusted_estimators_stay_untrusted(tmp_path):
    name = "exactshap.estimators.shapley_ridge._regressor.ShapleyKernelRidge"
    method = node("MethodNode", name, content={"func": "fit", "obj": node("ObjectNode", name)})
    write_both(tmp_path / "model.skops", method, tmp_path / "marker", 2)
    with pytest.raises(InputError, match=r"ShapleyKernelRidge\.fit"):
        load_model(tmp_path / "model.skops")


OURS_TO_FIT = [name for name in estimators.__all__ if isinstance(getattr(estimators, name), type)]


@pytest.mark.parametrize("name", [name for name in OURS_TO_FIT if issubclass(getattr(estimators, name), BaseEstimator)])
def test_fitted_estimators_of_ours_load_without_trust(name, tmp_path):
    rows = np.random.default_rng(0).normal(size=(20, 2))
    y = rows[:, 0] + rows[:, 1] ** 2
    model, few = getattr(estimators, name)(), {"n_terms": 4, "n_trials": 1, "level": 0.5, "cv": 2, "n_permutations": 19}
    model.set_params(**{key: value for key, value in few.items() if key in model.get_params()})
    skops.io.dump(model.fit(rows, (y > 1).astype(int) if name.endswith("Classifier") else y), tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert type(loaded) is type(model)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


# --- files that unpack to more than they say --------------------------------------------------------------------------


def parquet(n_rows, length, **settings):
    buffer = io.BytesIO()
    parquet_files.write_table(arrow.table({"x": ["a" * length] * n_rows}), buffer, compression="zstd", **settings)
    return buffer.getvalue()


def with_parquet(path, kind, content, n_rows):
    rows = np.zeros((n_rows, 1))
    metadata = json.dumps(facts(linear(rows, names=["x"], data=None)) | {"data": kind}).encode()
    return rewritten(path, linear(rows, names=["x"], data=None), data__parquet=content, metadata__json=metadata)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_one_long_text_is_refused_before_it_is_decompressed(kind, tmp_path, monkeypatch):
    path = with_parquet(tmp_path / "e.npz", kind, parquet(5, 2**25), 5)
    assert path.stat().st_size < 20_000
    for library, name in (("pyarrow.parquet", "ParquetFile"), ("polars", "read_parquet")):
        monkeypatch.setattr(importlib.import_module(library), name, lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ModelFormatError, match="is larger than allowed"):
        Explanation.load(path, max_bytes=10_000_000)


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_one_text_in_many_cells_is_counted_for_each(kind, tmp_path):
    path = with_parquet(tmp_path / "e.npz", kind, parquet(100, 2**20), 100)
    with pytest.raises(ModelFormatError, match="is larger than allowed"):
        Explanation.load(path, max_bytes=20_000_000)
    assert len(Explanation.load(path, max_bytes=200_000_000).data) == 100


def test_text_that_repeats_its_beginning_is_refused(tmp_path):
    content = parquet(100, 2**20, use_dictionary=False, column_encoding={"x": "DELTA_BYTE_ARRAY"})
    path = with_parquet(tmp_path / "e.npz", "pandas", content, 100)
    with pytest.raises(ModelFormatError, match="encoded by shared beginnings"):
        Explanation.load(path, max_bytes=20_000_000)


def test_the_count_of_a_parquet_file_is_what_its_pages_hold():
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=50_000), "b": rng.integers(0, 9, 50_000), "c": [f"text {i}" for i in range(50_000)]}
    for settings in ({}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"row_group_size": 7000}):
        buffer = io.BytesIO()
        parquet_files.write_table(arrow.table(columns), buffer, compression="snappy", **settings)
        groups = parquet_files.read_metadata(io.BytesIO(buffer.getvalue()))
        chunks = [groups.row_group(i).column(j) for i in range(groups.num_row_groups) for j in range(3)]
        announced = sum(chunk.total_uncompressed_size for chunk in chunks)  # with the headers of pages
        counted = unpacked_bytes(buffer.getvalue(), shared=["c"])
        assert 0.9 * announced < counted < announced + 3 * 16 * 100_000  # at most 16 bytes for a cell and for a dictionary's


def test_a_directory_that_understates_an_entry_is_found_while_unpacking(tmp_path):
    size = 2**28 + 12_345
    path = rewritten(tmp_path / "e.npz", linear(X), data__npy=bytes(size))
    content = path.read_bytes()
    assert content.count(struct.pack("<I", size)) == 2  # in the entry and in the directory
    path.write_bytes(content.replace(struct.pack("<I", size), struct.pack("<I", 1000)))
    with traced() as peak, pytest.raises(ModelFormatError):
        Explanation.load(path, max_bytes=10_000_000)
    assert peak[0] < 20_000_000


def test_honest_directories_are_believed_and_other_methods_are_not(tmp_path):
    path = rewritten(tmp_path / "e.npz", linear(X), data__npy=bytes(2**25))
    with pytest.raises(ModelFormatError, match="is larger than allowed"):
        Explanation.load(path, max_bytes=10_000_000)
    path = rewritten(tmp_path / "e.npz", linear(X), method=zipfile.ZIP_LZMA)
    with pytest.raises(ModelFormatError, match="neither stored nor deflated"):
        Explanation.load(path)
    linear(X).save(path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("values.npy", b"")
    with pytest.raises(ModelFormatError, match="there twice"):
        Explanation.load(path)


@functools.cache
def many_times_smaller(shape, is_dictionary):
    """Return Parquet of which each text, each row and each column takes no more than a few bytes."""
    columns = {
        "columns": lambda: {f"x{j}": arrow.array([0], arrow.int8()) for j in range(18_000)},
        "text": lambda: {"x": ["a" * 2**20] * 400},
        "rows": lambda: {"x": arrow.nulls(20_000_000)},
    }[shape]()
    buffer = io.BytesIO()
    parquet_files.write_table(arrow.table(columns), buffer, compression="zstd", use_dictionary=is_dictionary)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("shape", ["text", "columns", "rows"])
def test_a_small_file_unpacks_to_little_unless_it_is_allowed_more(kind, shape, tmp_path):
    content = many_times_smaller(shape, shape == "text" and kind == "pandas")
    path = with_parquet(tmp_path / "e.npz", kind, content, 400 if shape == "text" else 1)
    assert path.stat().st_size < 2**20
    with pytest.raises(ModelFormatError, match=r"is larger than allowed.*Pass max_bytes="):
        Explanation.load(path)


@pytest.mark.parametrize(
    ("entry", "piece"), [*(("data__json", one) for one in ("[],", "{},", '"",', "1.5,")), ("metadata__json", "[],")]
)
def test_many_small_cells_are_counted_as_objects(entry, piece, tmp_path):
    cells = f"[{piece * (2**25 // len(piece))}1]"  # 32 MiB of text, which would take 20 times as much
    metadata = json.dumps(facts(linear(X)) | ({"data": "objects"} if entry == "data__json" else {"feature_names": 0}))
    metadata = metadata.replace('"feature_names": 0', f'"feature_names": {cells}')
    path = rewritten(tmp_path / "e.npz", linear(X), data__json=cells, metadata__json=metadata)
    with traced() as peak, pytest.raises(ModelFormatError, match="is larger than allowed"):
        Explanation.load(path)
    assert peak[0] < 4 * 2**25


# --- what is no file --------------------------------------------------------------------------------------------------


def readers_of_paths():
    """Yield each door that takes a path, with a suffix that it knows."""

    explainer = Explainer(LinearRegression().fit(X, X[:, 0]), X)
    yield trees.load, ".json"
    yield Explanation.load, ".npz"
    yield from ((lambda path: read_table(Path(path)), suffix) for suffix in (".csv", ".parquet"))
    yield from ((lambda path: load_model(Path(path), allow_pickle=True), suffix) for suffix in (".skops", ".json", ".pkl"))
    yield lambda path: read_groups(Path(path)), ".toml"
    yield StoredTable, ".parquet"
    for suffix in (".csv", ".parquet"):
        yield lambda path: explain_dataset(explainer, path, Path(path).parent / "out"), suffix
        yield lambda path: explain_dataset(explainer, Path(path).parent, Path(path).parent.parent / "out"), suffix


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes and devices as files here")
@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_pipes_and_devices_are_refused_without_being_read(kind, tmp_path):
    for number, (read, suffix) in enumerate(readers_of_paths()):
        folder = tmp_path / str(number) / "in"
        folder.mkdir(parents=True)
        path = folder / f"a{suffix}"
        os.mkfifo(path) if kind == "a pipe" else path.symlink_to("/dev/zero")
        with pytest.raises(ModelFormatError, match=f"is not a regular file. Got {kind}. Copy its content"):
            read(path)


def test_a_file_that_says_to_be_shorter_than_it_is_is_refused():
    if not Path("/proc/self/smaps").exists():
        pytest.skip("no files without a size here")
    with pytest.raises(ModelFormatError, match="is still growing"):
        trees.load("/proc/self/smaps")


# --- damaged files ----------------------------------------------------------------------------------------------------


def test_hundreds_of_damaged_files_are_refused_or_work():
    verdicts = fuzz.campaign("npz", 400, seed=0)
    assert verdicts.keys() == {"refused", "loaded"}, verdicts
    assert verdicts["loaded"] > 20  # what is damaged is also read


def test_damaged_parquet_is_refused_or_read():
    verdicts = fuzz.campaign("parquet", 100, seed=0)
    assert verdicts.keys() == {"refused", "loaded"}, verdicts


def test_damaged_models_that_load_predict_as_their_library_does():
    kinds = ("ubj", "json", "text", "catboost")
    command = [sys.executable, fuzz.__file__, "--library", "--format", *kinds, "--count", "60"]  # apart: it forks
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    for kind in kinds:
        (line,) = re.findall(rf"^{kind}: (.*)$", done.stdout, re.MULTILINE)
        assert re.search(r"'loaded: the same': \d|reads none of these files", line), line  # what is damaged is also compared


WRONG = [
    *({"n_evaluations": value} for value in ("x", 1.5, -1, None, [1], True, 10**400)),
    *({"seconds": value} for value in ("x", [1], True, -1.0, {}, 10**400)),
    *({"background_size": value} for value in ("x", 0.5, [3])),
    *({"background_hash": value} for value in (5, ["a"])),
    *({"error_bound": value} for value in ("x", [[1.0]], {}, None)),
    *({"order": value} for value in ("1", 1.0, True, 0, -1)),
    *({"groups": value} for value in ("x", {"x0": "xyz"}, {"x0": [0.5]}, {"x0": [-1]}, {"x0": 3}, [1])),
    *({"feature_names": value} for value in ("x", {"x": 1}, [1], None)),
    *({name: 1} for name in ("index", "unit", "method", "model_name", "value_function")),
    {"stability_bound": "x"},
    {"sets": [["x"]]},
    {"sets": [[0], [7]], "order": 2},
    {"version": "new"},
    {"data": ["array"]},
    *({name: "half \ud800"} for name in ("unit", "method", "model_name")),  # json writes it, and no file can hold it
    {"feature_names": ["\udfff"]},
]


@pytest.mark.parametrize("changes", WRONG, ids=str)
def test_metadata_of_another_type_are_refused(changes, tmp_path):
    path = tmp_path / "e.npz"
    metadata = json.dumps(facts(linear(X)) | changes).encode()
    with pytest.raises(ModelFormatError):
        Explanation.load(rewritten(path, linear(X), metadata__json=metadata))


@pytest.mark.parametrize("kind", ["c16", "U9", "S9", "M8[s]", "m8[s]", "V8", "O"])
@pytest.mark.parametrize("name", ["values", "baseline", "prediction", "residual", "tolerance", "error_bound"])
def test_arrays_of_no_real_numbers_are_refused(name, kind, tmp_path):
    array = np.ones((len(X), 1) if name == "values" else len(X)).astype(kind)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    path = rewritten(tmp_path / "e.npz", linear(X), **{f"{name}__npy": buffer.getvalue()})
    with pytest.raises(ModelFormatError, match=r"real numbers|Python objects"):
        Explanation.load(path)


def test_cells_that_are_no_table_are_refused(tmp_path):
    explanation = linear(np.ones((2, 2)), data=np.array([["u", 1], ["v", None]], object))
    for cells in ([["u", 1], ["v"]], [["u", {}], ["v", 1]]):
        with pytest.raises(ModelFormatError, match="not a table"):
            Explanation.load(rewritten(tmp_path / "e.npz", explanation, data__json=json.dumps(cells).encode()))


def test_the_name_of_the_format_is_one_in_files_and_not_of_a_module():
    assert facts(linear(X))["format"] == "exactshap.explanation"


def test_what_is_wrong_with_the_path_stays_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        Explanation.load(tmp_path / "nothing.npz")
    with pytest.raises(IsADirectoryError):
        Explanation.load(tmp_path)


# --- what is shown ----------------------------------------------------------------------------------------------------

NASTY = "a\x00b\x1b[31mc\x07\x9b\u202ed\ud800<script>"


def test_messages_are_cut_and_hold_no_controls():
    assert len(str(ModelFormatError("x" * 100_000))) == 300
    text = message("x" * 100_000, "y" * 100_000, "Pass order=1")
    assert len(text) < 700
    assert text.endswith("Pass order=1.")
    assert message(NASTY).isprintable()
    assert printable("a\tb\nc") == "a\tb\nc"


ERRORS = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("sentences", [(), ("It failed",), ("It failed", "Got 1", "Pass 2"), (NASTY * 900, "y" * 99, "z" * 99)])
def test_copies_of_errors_have_the_same_text(kind, sentences):
    """They travel between processes by their text, which is made only once."""
    error = kind(*sentences)
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error), kind(str(error)), kind.__new__(kind, str(error))):
        assert type(copied) is kind
        assert str(copied) == str(error)


def test_no_escape_character_leaves_an_error_a_warning_or_what_is_printed():
    name = NASTY.replace("\ud800", "")
    explanation = linear(np.ones((3, 2)), names=[name, "b"], model_name=name)
    with pytest.warns(UserWarning, match="script") as caught:
        warn(name)
    shown = [InputError(name), ModelFormatError(name), caught[0].message, explanation, explanation.compare(explanation)]
    for text in map(str, shown):
        assert controls_of(text) == []
        assert "<script>" in text  # the rest is there


def hostile_folder(folder):
    """Make files whose names, columns, outputs and earlier results hold escape characters."""

    rows = pandas.DataFrame(np.random.default_rng(0).normal(size=(8, 2)), columns=["\x1b[31ma", "\x9b32mb"])
    skops.io.dump(LinearRegression().fit(rows, rows.iloc[:, 0]), folder / "model.skops")
    skops.io.dump(LinearRegression().fit(rows.set_axis(["a", "b"], axis=1), rows.iloc[:, 0]), folder / "other.skops")
    rows.to_csv(folder / "rows.csv", index=False)
    (folder / "in").mkdir()
    rows.to_csv(folder / "in" / "\x1b[2Jrows.csv", index=False)
    (folder / "damaged.csv").write_bytes(b"\x1b[31m;b\n1;2\n")
    for name, changes in {
        "run": {"run": {"index": "\x1b[31m", "\x9b": 1}},
        "inputs": {"inputs": {"\x1b[2J": 1}},
        "format": {"format": "\x1b[31m"},
        "schema": {"schema": [["\x1b[2J", "\x9b"]]},
        "raw": None,
    }.items():
        (folder / name).mkdir()
        content = {"format": 1, "run": {}, "inputs": {}, "schema": []} | (changes or {})
        raw = '{"\x1b[31m' if changes is None else json.dumps(content, ensure_ascii=False)
        (folder / name / "_manifest.json").write_text(raw, encoding="utf-8")
    return folder


@pytest.mark.filterwarnings("ignore")
def test_no_escape_character_of_a_file_reaches_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(hostile_folder(tmp_path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    good = ["explain model.skops rows.csv", "explain model.skops in --out out"]
    bad = [f"explain model.skops in --out {name}" for name in ("run", "inputs", "format", "schema", "raw")]
    bad += ["explain other.skops rows.csv", "explain other.skops in --out new", "explain model.skops damaged.csv"]
    for command in (*good, *bad, *(f"{command} --debug" for command in bad)):
        with pytest.raises(BaseException, match="") as caught:  # SystemExit, or with --debug what was raised
            main([*command.split(), "--background", "rows.csv"])
        assert (getattr(caught.value, "code", 1) == 0) == (command in good), (command, caught.value)
        if command.endswith("--debug"):
            sys.excepthook(caught.type, caught.value, caught.tb)  # as the interpreter does
        streams = capsys.readouterr()
        text = streams.out + streams.err
        assert text
        assert controls_of(text) == [], (command, text)


def controls_of(page):
    return [sign for sign in page if sign not in "\t\n" and printable(sign) != sign]


def test_no_control_character_reaches_a_page(tmp_path):
    explanation = linear(np.ones((3, 2)), names=[NASTY, "plain"], data=np.array([[NASTY, "u"]] * 3, object), model_name=NASTY)
    assert controls_of(explanation._repr_html_()) == []
    explanation.report(tmp_path / "report.html", title=NASTY, data_name=NASTY)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert controls_of(page) == []
    assert "<script>" not in page
    rows = pandas.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=[NASTY.replace("\ud800", ""), "plain"])
    assert controls_of(render_shares(decompose_mmd(rows, rows + 1.0), title=NASTY)) == []


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_csv_files_hold_no_formulas(kind, tmp_path):

    library = importlib.import_module(kind)
    columns = {"=A1": [-1.5, 2.0], "text": ["=1+1", "fine"], "more": ["+1", "-1"], "last": ["@x", None], "odd": ["\t=1", "a=b"]}
    frame = library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)
    if kind == "pandas":
        frame.index = [7, 3]
    write_table(frame, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        header, first, second = csv.reader(file)
    assert header == ["'=A1", "text", "more", "last", "odd"]
    assert first == ["-1.5", "'=1+1", "'+1", "'@x", "'\t=1"]
    assert [float(second[0]), *second[1:]] == [2.0, "fine", "'-1", "", "a=b"]
    if kind != "pyarrow":
        assert list(frame.columns) == list(columns)  # the caller's frame is untouched


# --- drafts of saves that were killed ---------------------------------------------------------------------------------

WRITER = """
import sys, time
from exactshap._runtime.files import atomic_write
with atomic_write(sys.argv[1]) as draft:
    draft.write_text("half")
    print(draft, flush=True)
    time.sleep(60)
"""


def test_the_draft_of_a_killed_save_is_removed_and_that_of_a_living_one_is_not(tmp_path):
    path, others = tmp_path / "e.npz", [tmp_path / ".e.npz.0123abcd.part", tmp_path / ".x.part", tmp_path / "e.part"]
    for other in others:
        other.write_text("of somebody else")
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        try:
            draft = Path(writer.stdout.readline().strip())
            linear(X).save(path)
            assert draft.read_text() == "half"  # it is being written
        finally:
            writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert draft.exists()
        with atomic_write(tmp_path / "another.txt") as other_draft:
            assert not draft.exists()
            other_draft.write_text("whole")
    assert sorted(tmp_path.iterdir()) == sorted([*others, path, tmp_path / "another.txt"])


def test_errors_of_a_save_name_the_file_of_the_user(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        linear(X).save(tmp_path / "folder.npz")
    assert caught.value.filename == str(tmp_path / "folder.npz")
    with pytest.raises(OSError, match="No space left") as caught, atomic_write(tmp_path / "a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")  # as a write to an open file says it, without a name
    assert caught.value.filename == str(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "a.txt"):
        (tmp_path / "another.txt").read_text()
    assert caught.value.filename == str(tmp_path / "another.txt")
    with pytest.raises(OSError, match=r"^no number$"), atomic_write(tmp_path / "a.txt"):
        raise OSError("no number")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.npz"]


def test_two_saves_of_one_process_leave_each_other_alone(tmp_path):
    with atomic_write(tmp_path / "a.txt") as first, atomic_write(tmp_path / "a.txt") as second:
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "a.txt").read_text() == "first"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
