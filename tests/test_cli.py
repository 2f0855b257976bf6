import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import joblib
import lightgbm
import numpy as np
import pandas
import pytest
import skops.io as skops
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

import exactshap
from command import run
from exactshap import __version__, decompose_hsic, decompose_mmd
from exactshap._runtime import progress
from exactshap.cli import COMMANDS, _io, commands, main
from exactshap.errors import InputError, MissingDependencyError
from exactshap.explainer import Explainer
from exactshap.games import ProductGame
from exactshap.results.data import counted
from exactshap.results.explanation import Explanation
from explanation_factory import linear
from tolerances import conditioned, roundings


@pytest.fixture(scope="module")
def fitted():
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=["age", "[bold]bmi", "s1", "s2"])
    y = X["age"] * X["s1"] + X["s2"]
    return make_pipeline(StandardScaler(), SVR(C=10.0)).fit(X, y), X, y


@pytest.fixture
def files(fitted, tmp_path, monkeypatch):
    model, X, y = fitted
    monkeypatch.chdir(tmp_path)
    joblib.dump(model, "model.joblib")
    X.assign(y=y, id=range(40)).to_csv("data.csv", index=False)
    X.assign(y=y, id=range(40)).to_parquet("data.parquet")
    X.head(8).to_csv("background.csv", index=False)
    return tmp_path


COMMON = ["--target", "y", "--drop", "id", "--allow-pickle"]


# --- commands ---------------------------------------------------------------------------------------------------------


def test_demo_prints_the_certificate_and_writes_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--background-rows", "5") == 0
    output = capsys.readouterr().out
    for word in ("exact Shapley values, 442 rows x 10 features", "interventional", "residual", "passed", "bmi", "report.html"):
        assert word in output
    html = (tmp_path / "report.html").read_text()
    assert "Certificate passed" in html
    assert "5 rows, SHA-256" in html


def test_explain_writes_the_values_that_the_library_gives(files, fitted, capsys):
    model, X, _ = fitted
    expected = Explainer(model, X.head(8))(X)
    arguments = ["explain", "model.joblib", "data.csv", *COMMON, "--background", "background.csv"]
    assert run(*arguments, "--output", "values.parquet", "--report", "report.html") == 0
    rounding = {"rtol": conditioned(1e6), "atol": roundings(5_000)}
    np.testing.assert_allclose(pandas.read_parquet("values.parquet").filter(like="phi_"), expected.values, **rounding)
    assert run(*arguments, "--output", "values.csv") == 0
    table = pandas.read_csv("values.csv")
    assert list(table.columns) == ["row", *(f"phi_{name}" for name in X.columns), "baseline", "prediction", "residual", "exact"]
    np.testing.assert_allclose(table.filter(like="phi_"), expected.values, **rounding)
    np.testing.assert_allclose(table["prediction"], model.predict(X), rtol=roundings(5_000))
    assert list(table["row"]) == list(range(40))
    assert table["exact"].all()
    assert run(*arguments, "--rows", "7,3", "--keep", "id", "--keep", "y", "--output", "some.csv") == 0
    some = pandas.read_csv("some.csv")
    assert list(some.columns[:3]) == ["row", "id", "y"]
    assert list(some["id"]) == list(some["row"]) == [7, 3]
    np.testing.assert_allclose(some.filter(like="phi_"), expected.values[[7, 3]], **rounding)
    pairs = ["--order", "2", "--index", "sii", "--output", "values.npz"]
    assert run("explain", "model.joblib", "data.parquet", *COMMON, *pairs) == 0
    saved = Explanation.load("values.npz")
    np.testing.assert_array_equal(saved.set_values, Explainer(model)(X, "sii", 2).set_values)
    output = capsys.readouterr().out
    assert "[bold]bmi" in output
    assert "report written to report.html" in output
    assert "data.csv, 40 rows x 4 features" in (files / "report.html").read_text()


def test_kept_columns_that_are_no_features_need_not_be_dropped(files, fitted, capsys):
    X = fitted[1]
    arguments = ["explain", "model.joblib", "data.csv", "--target", "y", "--allow-pickle", "--background", "background.csv"]
    assert run(*arguments, "--drop", "id", "--output", "dropped.csv") == 0
    assert run(*arguments, "--keep", "id", "--keep", "[bold]bmi", "--output", "kept.csv") == 0
    kept, other = pandas.read_csv("kept.csv"), pandas.read_csv("dropped.csv")
    pandas.testing.assert_frame_equal(kept[other.columns], other)
    assert list(kept["id"]) == list(range(40))
    np.testing.assert_allclose(kept["[bold]bmi"], X["[bold]bmi"], rtol=roundings(4))
    X.head(8).assign(id=0, y=1.0).to_csv("background.csv", index=False)  # laid out as the data
    assert run(*arguments, "--keep", "id", "--keep", "[bold]bmi", "--output", "again.csv") == 0
    pandas.testing.assert_frame_equal(pandas.read_csv("again.csv"), kept)
    assert run(*arguments, "--keep", "id", "--order", "2", "--index", "sii", "--output", "pairs.csv") == 0
    pairs = pandas.read_csv("pairs.csv")
    assert list(pairs["id"]) == list(range(40))
    assert "phi_age & s1" in pairs
    assert run(*arguments, "--keep", "id", "--output", "kept.npz") == 2  # which has no place for them
    assert "Name a folder" in capsys.readouterr().err
    assert run(*arguments, "--output", "none.csv") == 2  # neither kept nor dropped
    assert "background.csv has columns that the model was not fitted with. Got 'id'. Name the" in capsys.readouterr().err


def test_kept_columns_keep_their_dtypes(files, fitted):
    X = fitted[1]
    kept = {
        "id": pandas.array([2**60 + 1, None] * 20, dtype="Int64"),
        "at": pandas.date_range("2026-01-01", periods=40, tz="Europe/Berlin"),
    }
    X.assign(**kept).to_parquet("kept.parquet")
    arguments = ["--allow-pickle", "--keep", "id", "--keep", "at", "--rows", "3:9"]
    assert run("explain", "model.joblib", "kept.parquet", *arguments, "--output", "out.parquet") == 0
    written = pandas.read_parquet("out.parquet")
    pandas.testing.assert_frame_equal(written[["id", "at"]], pandas.DataFrame(kept)[3:9].reset_index(drop=True))


def test_offsets_are_a_column_of_the_data(files, fitted, capsys):
    model, X, _ = fitted
    X.assign(y=0.0, id=range(40), log_exposure=X["age"] / 2).to_csv("insured.csv", index=False)
    common = ["model.joblib", "insured.csv", *COMMON, "--background", "background.csv", "--offset", "log_exposure"]
    assert run("explain", *common, "--output", "values.csv") == 0
    assert run("explain", *common, "--output", "values", "--keep", "id") == 0
    for table in (pandas.read_csv("values.csv"), pandas.read_parquet("values")):
        np.testing.assert_allclose(table["prediction"], model.predict(X) + X["age"] / 2, rtol=conditioned(1e3))
        assert not any("log_exposure" in name for name in table.columns)
    assert run("check", *common) == 0
    assert run("report", *common, "--out", "report.html") == 0
    assert "the offsets of the rows are in the baseline" in (files / "report.html").read_text()
    assert run("explain", *common[:-1], "exposure") == 2
    assert "no column 'exposure'" in capsys.readouterr().err
    assert run("explain", *common[:-1], "age", "--drop", "log_exposure") == 2
    assert "Column 'age' is a feature of the model" in capsys.readouterr().err


def test_report_of_a_model_and_of_a_saved_explanation(files, capsys):
    assert run("report", "model.joblib", "data.csv", *COMMON, "-o", "a.html") == 0
    assert run("explain", "model.joblib", "data.csv", *COMMON, "--output", "values.npz") == 0
    assert run("report", "values.npz", "--out", "b.html") == 0
    assert "exact; prediction - baseline - sum of values: residual at most" in capsys.readouterr().out
    assert "values.npz, 40 rows" in (files / "b.html").read_text()
    capsys.readouterr()
    assert run("report", "values.npz", "data.csv", "--target", "y", "--out", "c.html") == 2
    words = "A saved explanation has its own rows and settings. Got DATA, --target, --drop with values.npz. Leave them out"
    assert words in capsys.readouterr().err
    others = ["--index", "banzhaf", "--order", "2", "--value-function", "functional", "--budget", "9", "--align"]
    assert run("report", "values.npz", *others) == 2
    assert "Got --value-function, --align, --budget, --index, --order with values.npz" in capsys.readouterr().err
    assert run("report", "values.npz", "--rows", "0:3", "--out", "c.html") == 0
    assert "values.npz, 3 rows" in (files / "c.html").read_text()
    saved = Explanation.load("values.npz")
    older = np.flatnonzero(saved.data["age"] > 0)
    for rows, numbers in (("7", [7]), ("age > 0", older)):
        assert run("reasons", "values.npz", "--adverse", "positive", "--rows", rows, "-o", "reasons.csv") == 0
        reasons = pandas.read_csv("reasons.csv")
        np.testing.assert_array_equal(reasons["prediction"], saved.prediction[numbers])
        np.testing.assert_array_equal(reasons["row"], numbers)
    capsys.readouterr()
    for rows, said in (
        ("40", "There is no row 40. values.npz has 40 rows"),
        ("9:3", "--rows 9:3 chooses no row. values.npz has 40"),
        ("age > 900", "No row of values.npz has age"),
    ):
        assert run("report", "values.npz", "--rows", rows) == 2
        assert said in capsys.readouterr().err
    assert run("report", "model.joblib") == 2
    assert "The values of a model need rows. DATA is missing" in capsys.readouterr().err


def test_an_output_of_a_saved_explanation_is_chosen(files, fitted, capsys):
    _, X, y = fitted
    several = LinearRegression().fit(X, np.column_stack([y, -y]))
    saved = Explainer(several, X[:8])(X[:5])
    saved.save("several.npz")
    name = saved.output_names[1]
    assert run("reasons", "several.npz", "--adverse", "positive", "--model-output", name, "-o", "reasons.csv") == 0
    np.testing.assert_array_equal(pandas.read_csv("reasons.csv")["prediction"], saved.prediction[:, 1])
    assert run("report", "several.npz", "--model-output", "2") == 2
    assert "There is no output 2" in capsys.readouterr().err
    assert run("explain", "model.joblib", "data.csv", *COMMON, "--jobs", "0") == 2
    assert "The number of --jobs must be an int other than 0" in capsys.readouterr().err


def test_a_seed_is_that_of_the_samples(files, fitted):
    model, X, _ = fitted
    sampled = ["--background", "background.csv", "--value-function", "observational", "--budget", "9", "--seed", "3"]
    settings = {"value_function": "observational", "budget": 9, "random_state": 3}
    expected = Explainer(model, X.head(8), **settings)(X)
    assert not expected.exact
    for target in ("sampled.parquet", "sampled"):  # a folder, too
        assert run("explain", "model.joblib", "data.csv", *COMMON, *sampled, "-o", target) == 0
        np.testing.assert_array_equal(pandas.read_parquet(target)["phi_age"], expected.values[:, 0])


def test_the_report_says_the_command(files, monkeypatch):
    arguments = ["explain", "model.joblib", "data.csv", *COMMON, "--report", "my report.html", "--seed", "3"]
    monkeypatch.setattr(sys, "argv", ["exactshap", *arguments])
    assert run(*arguments) == 0
    html = (files / "my report.html").read_text()
    command = "exactshap explain model.joblib data.csv --target y --drop id --allow-pickle --report &#39;my report.html&#39;"
    assert command in html


def test_the_report_compares_with_the_target_where_the_output_has_its_unit(files, fitted, capsys):
    assert run("report", "model.joblib", "data.csv", *COMMON) == 0
    assert "<h2>Largest errors</h2>" in (files / "report.html").read_text()
    _, X, y = fitted
    joblib.dump(SVC().fit(X, y > 0), "classifier.joblib")
    assert run("report", "classifier.joblib", "data.csv", *COMMON) == 0
    assert "<h2>Largest errors</h2>" not in (files / "report.html").read_text()
    assert "no errors of the prediction. `target` is not in the unit" in " ".join(capsys.readouterr().out.split())


def test_check_prints_the_verification_and_fails_for_a_wrong_reading(files, capsys, monkeypatch):
    arguments = ["check", "model.joblib", "data.csv", *COMMON, "--background", "background.csv", "--rows", "12"]
    assert run(*arguments) == 0
    output = capsys.readouterr().out
    assert "passed: largest residual" in output
    assert "12 rows" in output

    monkeypatch.setattr(ProductGame, "value", lambda self, masks: np.zeros((self.n_rows, len(masks))))
    assert run(*arguments) == 1
    assert "FAILED: largest residual" in capsys.readouterr().out


def test_check_takes_a_number_of_rows_or_the_rows_themselves(files, capsys):
    arguments = ["check", "model.joblib", "data.csv", *COMMON, "--background", "background.csv", "--rows"]
    for rows, number in (("12", 12), ("0:3", 3), ("30:", 10), ("3,5", 2), ("age > 900 or id = 7", 1), ("500", 40)):
        assert run(*arguments, rows) == 0
        assert f"; {counted(number, 'row')}" in " ".join(capsys.readouterr().out.split())
    bad = {
        "0": "--rows must be at least one row. Got 0. Write --rows 20 for twenty rows, --rows 0:20 for the first twenty.",
        "-3": "--rows must be at least one row. Got -3.",
        "90:": "--rows 90: chooses no row. data.csv has 40 rows, numbered from 0.",
        "1:2:3": "--rows 1:2:3 does not choose rows. Write --rows 7, --rows 0:100",
    }
    for rows, said in bad.items():
        assert run(*arguments, rows) == 2
        assert said in capsys.readouterr().err


def test_a_stream_of_another_encoding_ends_no_command(files, monkeypatch):
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, encoding="cp1252"))  # as in pipes of Windows
    assert run("explain", "model.joblib", "data.csv", *COMMON, "-o", "values.csv") == 0
    printed = pipe.getvalue().decode("cp1252")
    [strongest] = [line.split() for line in printed.splitlines() if line.split()[:1] == ["age"]]
    assert float(strongest[3]) < 0.0 < float(strongest[4])
    assert printed.rstrip().endswith("values written to values.csv")
    assert (files / "values.csv").exists()


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_tables_of_another_encoding_are_refused_with_the_way_to_utf8(files, fitted, encoding, capsys):
    _, X, y = fitted
    frame = X.assign(y=y, id=range(len(X)), größe=1.0)
    frame.to_csv("other.csv", index=False, encoding=encoding)
    assert run("explain", "model.joblib", "other.csv", *COMMON, "--drop", "größe") == 2
    error = capsys.readouterr().err
    assert "other.csv is not UTF-8. 'utf-8' codec can't decode byte" in error
    code = re.search(r"Write it in UTF-8: (pandas\..*\))\.$", error, re.MULTILINE).group(1)
    eval(code)
    pandas.testing.assert_frame_equal(pandas.read_csv("utf8.csv"), frame)
    assert run("explain", "model.joblib", "utf8.csv", *COMMON, "--drop", "größe") == 0


def test_options_without_a_value_are_typed_with_one():
    said = "Pass n_jobs= or fewer rows. Pass n_jobs=, fewer rows. Pass n_jobs=2."
    assert _io.as_options(said) == "Pass --jobs N or fewer rows. Pass --jobs N, fewer rows. Pass --jobs 2."


def test_versions(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"exactshap {__version__}\n"
    assert run("show-versions") == 0
    output = capsys.readouterr().out
    assert f"exactshap: {__version__}" in output
    assert f"numpy: {np.__version__}" in output
    assert "python: 3." in output
    required = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    assert all(f" {name.split('>')[0]}: " in output for name in required)


def test_help_names_every_command_and_each_has_its_own(capsys):
    assert run("--help") == 0
    output = capsys.readouterr().out
    assert all(name in output for name in COMMANDS)
    assert {"demo", "explain", "report", "check", "show-versions"} <= set(COMMANDS)
    for name in COMMANDS:
        assert run(name, "--help") == 0
        assert name == "show-versions" or f"exactshap {name}" in capsys.readouterr().out.partition("Examples")[2], name
    assert run() == 2 or "Usage" in capsys.readouterr().out
    assert run("report", "-h") == 0
    assert "Write one HTML file" in capsys.readouterr().out


LIGHT = """
import sys
from exactshap.cli import main
try:
    main()
finally:
    heavy = {"numpy", "sklearn", "pandas", "matplotlib", "shap", "scipy"} & set(sys.modules)
    assert not heavy, heavy
"""


def test_the_module_is_the_command_and_its_help_is_light():
    light = [
        ["-c", LIGHT, *arguments] for arguments in (["--help"], ["explain", "--help"], ["r2", "--help"], ["show-versions"])
    ]
    for command in (*light, ["-m", "exactshap", "--version"]):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    assert done.stdout == f"exactshap {__version__}\n"


def test_what_is_printed_names_the_options_of_the_command(files, fitted, capsys):
    """``--output`` is a file here: whoever typed it for a probability found a folder of that name."""
    _, X, y = fitted
    joblib.dump(LogisticRegression().fit(X, y > 0), "classifier.joblib")
    assert run("explain", "classifier.joblib", "data.csv", *COMMON, "--background", "background.csv") == 0
    assert "For probabilities pass --model-output probability and" in " ".join(capsys.readouterr().out.split())
    assert run("explain", "classifier.joblib", "data.csv", *COMMON, "--model-output", "proba") == 2
    assert "pass --model-output probability and background rows" in capsys.readouterr().err


# --- bad input --------------------------------------------------------------------------------------------------------


PICKLE = "model.joblib is a pickle, which runs whatever code is in it while it is read. The option --allow-pick"
NOT_FITTED_WITH = "columns that the model was not fitted with. Got 'y', 'id'. Name the target with --t"
SEMICOLONS = "not separated by commas. Its one column is named 'age;[bold]bmi;s1;s2;y;id'."
BAD = [
    ("model.joblib data.csv", PICKLE),
    ("model.joblib data.csv --allow-pickle", NOT_FITTED_WITH),
    ("model.joblib data.csv COMMON --drop zz", "`data.csv` has no column 'zz'"),
    ("model.joblib nothing.csv COMMON", "No such file: nothing.csv"),
    ("nothing.skops data.csv", "No such file: nothing.skops"),
    ("model.joblib data.csv COMMON --rows 1:2:3", "--rows 1:2:3 does not choose rows"),
    ("model.joblib data.csv COMMON --rows 'agee > 1'", "The filter cannot be read. There is no column “agee”"),
    ("model.joblib data.csv COMMON --rows 'age > 900'", "No row of data.csv has age > 900"),
    ("model.joblib data.csv COMMON --rows 40", "There is no row 40"),
    ("model.joblib data.csv COMMON --top-k 2 -o v.csv", "are for a folder of results. Got --out v.csv"),
    ("model.joblib data.csv COMMON --keep id -o v.npz", "--keep copies columns to a table of values. Got --out v.npz"),
    ("model.joblib data.csv COMMON --keep zz -o v.csv", "`data.csv` has no column 'zz'"),
    ("data.csv data.csv", "data.csv is not a model file that can be read. Got the suffix '.csv'"),
    ("model.joblib model.joblib COMMON", "Data are read from CSV and Parquet files, not from model.joblib"),
    ("model.joblib broken.parquet COMMON", "broken.parquet cannot be read as PARQUET"),
    ("broken.joblib data.csv COMMON", "broken.joblib cannot be unpickled"),
    ("broken.skops data.csv", "broken.skops is not a skops file"),
    ("model.joblib data.csv COMMON --index shaply", "Unknown index 'shaply'. Did you mean 'shapley'?"),
    # messages speak of Python's arguments; here one types options
    ("model.joblib data.csv COMMON --value-function interventional", "--value-function 'interventional' needs reference rows."),
    ("model.joblib data.csv COMMON --value-function interventional", "--background is missing. Pass --background FILE."),
    ("model.joblib reversed.csv COMMON", "or --align."),
    ("model.joblib semicolons.csv --allow-pickle", SEMICOLONS),
    ("model.joblib semicolons.csv --allow-pickle", "Write it with commas: pandas.read_csv('semicolons.csv', sep=';')"),
    ("model.joblib decimals.csv --allow-pickle", "with decimal=',' where numbers have decimal commas"),
    ("raw.joblib data.csv COMMON", "not fitted yet"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD)
def test_errors_are_one_message_and_exit_code_two(files, arguments, text, capsys):
    for name in ("broken.parquet", "broken.joblib", "broken.skops"):
        (files / name).write_bytes(b"not a file of this kind")
    joblib.dump(SVR(), "raw.joblib")
    frame = pandas.read_csv("data.csv")
    frame[frame.columns[::-1]].to_csv("reversed.csv", index=False)
    frame.to_csv("semicolons.csv", index=False, sep=";")
    (files / "decimals.csv").write_text("age;bmi\n1,5;2\n2,5;3,5\n")
    assert run("explain", *shlex.split(arguments.replace("COMMON", " ".join(COMMON)))) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.startswith("Error: ")
    assert "Traceback" not in error
    assert "report it" not in error
    assert not [path.name for path in files.iterdir() if path.name.endswith(".part")]


def test_debug_shows_the_exception(files):
    with pytest.raises(InputError, match="is a pickle"):
        main(["explain", "model.joblib", "data.csv", "--debug"])


def test_an_unexpected_error_asks_for_a_report(files, capsys, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr(Explainer, "__call__", broken)
    assert run("explain", "model.joblib", "data.csv", *COMMON) == 1
    error = capsys.readouterr().err
    assert "ZeroDivisionError: surprise. Run again with --debug" in error


def test_wrong_usage_is_explained(capsys):
    for command, words in (("explain", "Missing argument"), ("expalin", "expalin")):
        assert run(command) == 2
        assert words in capsys.readouterr().err


def test_missing_typer_is_named_with_its_fix(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert run("--help") == 2
    assert 'pip install "exactshap[cli]"' in capsys.readouterr().err


def test_warnings_are_one_line(files, capsys, fitted):
    _, X, y = fitted
    joblib.dump(SVR().fit(X.to_numpy(), y), "plain.joblib")
    assert run("explain", "plain.joblib", "data.csv", *COMMON) == 0
    assert all(line.startswith("Warning: ") for line in capsys.readouterr().err.splitlines())


def test_files_are_written_if_nobody_reads_what_is_printed(files):
    call = [sys.executable, "-c", "import sys; from exactshap.cli import main; main(sys.argv[1:])"]
    command = ["explain", "model.joblib", "data.csv", *COMMON, "-o", "values.csv", "--report", "report.html"]
    process = subprocess.Popen([*call, *command], cwd=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()  # as head does
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert len(pandas.read_csv("values.csv")) == 40
    assert (files / "report.html").exists()


def test_words_that_are_read_as_missing_are_warned_of(files, capsys):
    (files / "rows.csv").write_text("x,region,code\n1,EU,7\n2,NA,NA\n3,US,8\n4,,9\n5,null,1\n")
    (files / "gaps.csv").write_text("x,region,code\n1,EU,NA\n2,,\n3,US,8\n4,,9\n5,EU,1\n")
    assert run("mmd", "gaps.csv", "rows.csv", "-o", "shares.csv") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "read as missing" in line]
    assert len(lines) == 1
    assert "Words of rows.csv are read as missing. Got {'region': ['NA', 'null']}. If they are categories" in lines[0]
    frame = pandas.read_csv("rows.csv", keep_default_na=False, na_values="")  # as the message says
    assert frame["region"].tolist()[1::3] == ["NA", "null"]


def test_leading_zeros_that_are_lost_are_warned_of(files, capsys):
    (files / "rows.csv").write_text("x,zip,n,share\n1,01234,0,0.5\n2,99999,10,00.5\n3,10000,20,1\n")
    assert run("mmd", "rows.csv", "rows.csv", "-o", "shares.csv") == 0
    error = capsys.readouterr().err
    assert "Leading zeros of rows.csv are lost, as in numbers. Got {'zip': '01234'}. Read them as text: pandas.read" in error
    assert pandas.read_csv("rows.csv", dtype={"zip": "str"})["zip"][0] == "01234"
    assert run("mmd", "rows.csv", "rows.csv", "--drop", "zip", "-o", "shares.csv") == 0
    assert not capsys.readouterr().err


# --- models -----------------------------------------------------------------------------------------------------------


def test_skops_files_load_and_unknown_types_need_trust(files, fitted, capsys):
    model, _, _ = fitted
    skops.dump(model, "model.skops")
    assert run("explain", "model.skops", "data.csv", "--target", "y", "--drop", "id") == 0
    skops.dump(make_pipeline(FunctionTransformer(json.dumps), SVR()), "odd.skops")
    assert run("explain", "odd.skops", "data.csv", "--target", "y", "--drop", "id") == 2
    error = capsys.readouterr().err
    assert "odd.skops holds types that skops does not know to be harmless. Got json.dumps. Pass --trust" in error


def test_booster_files_are_read_without_their_library(files, fitted, monkeypatch):
    _, X, y = fitted
    plain = X.rename(columns={"[bold]bmi": "bmi"})
    booster = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1).fit(plain, y).booster_
    booster.save_model("model.txt")
    plain.to_csv("plain.csv", index=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "lightgbm"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert run("explain", "model.txt", "plain.csv", "--output", "values.npz") == 0
    saved = Explanation.load("values.npz")
    np.testing.assert_allclose(saved.baseline + saved.values.sum(axis=1), booster.predict(plain), rtol=roundings(5_000))


def test_columns_that_are_too_many_are_named_for_lightgbm_too(files, fitted, capsys):
    """Its files hold 'body_mass' for 'body mass': that is no other column."""
    _, X, y = fitted
    frame = X.rename(columns={"[bold]bmi": "body mass"})
    lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1).fit(frame, y).booster_.save_model("model.txt")
    frame.assign(y=y).to_csv("rows.csv", index=False)
    assert run("explain", "model.txt", "rows.csv") == 2
    assert "not fitted with. Got 'y'. Name the target" in capsys.readouterr().err
    assert run("explain", "model.txt", "rows.csv", "--target", "y") == 0


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_data_are_read_with_whatever_is_installed(files, library, monkeypatch):
    monkeypatch.setattr(_io, "first_installed", lambda names: library)
    arguments = ["explain", "model.joblib", "data.parquet", *COMMON, "--output"]
    for name in ("values.csv", "values.parquet"):
        assert run(*arguments, name) == 0
    np.testing.assert_array_equal(pandas.read_parquet("values.parquet").shape, (40, 9))
    np.testing.assert_allclose(
        *(table.astype(float) for table in (pandas.read_csv("values.csv"), pandas.read_parquet("values.parquet"))),
        rtol=roundings(5_000),
    )
    monkeypatch.setattr(_io, "first_installed", lambda names: None)
    with pytest.raises(MissingDependencyError, match=r"Reading data needs pandas, polars or pyarrow.*exactshap\[frames\]"):
        _io.read_table(files / "data.csv")


# --- long work --------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("terminal", "patience", "shown"), [(False, 0.0, False), (True, 60.0, False), (True, 0.0, True)])
@pytest.mark.parametrize("command", ["explain", "check"])
def test_long_work_is_shown_on_terminals_only_and_after_its_patience(
    files, command, terminal, patience, shown, monkeypatch, capsys
):

    stream, predict = Terminal() if terminal else io.StringIO(), SVR.predict
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setattr(SVR, "predict", lambda model, X: time.sleep(0.2) or predict(model, X))
    assert run(command, "model.joblib", "data.csv", *COMMON) == 0
    line = "explained 40 of 40 rows" if command == "explain" else "checking model.joblib for"
    assert (line in stream.getvalue()) == shown
    if command == "check":
        assert "explained" not in stream.getvalue()  # one line at a time


SLOW = """
import time, pathlib
from exactshap.cli import main
write = pathlib.Path.write_text
def slow(path, text, **settings):
    write(path, text[:100], **settings)
    print("writing", flush=True)
    time.sleep(60)
pathlib.Path.write_text = slow
main(["demo", "--background-rows", "1"])
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_control_c_leaves_no_file(tmp_path):
    """Interrupt a demo whose report is being written: the old file stays whole and no draft is left."""
    (tmp_path / "report.html").write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if line.startswith("writing"):
            break
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode not in (0, None)
    assert "Traceback" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "old"


UNWRITABLE = [
    ("explain model.joblib data.csv COMMON --output v.xlsx", "Values are written to .csv, .parquet or .npz, not to v.xlsx"),
    ("explain model.joblib data.csv COMMON --output v.csv.gz", "Values are written to .csv, .parquet or .npz, not to v.csv.gz"),
    ("r2 model.joblib data.csv COMMON --out v.xlsx", "Values are written to .csv or .parquet, not to v.xlsx"),
    ("hsic data.csv --target y --report r.doc", "Reports are written to .html, .htm or .pdf, not to r.doc"),
    ("mmd data.csv data.csv --picture p.bmp", "Pictures are written to .png, .svg or .pdf, not to p.bmp"),
    ("compare a.npz b.npz --picture no/p.png", "No such folder"),
    ("explain model.joblib data.csv COMMON --output no/v.csv", "No such folder"),
    ("explain model.joblib data.csv COMMON --report no/r.html", "No such folder"),
    ("explain model.joblib data.csv COMMON --report r.pdf", "A report is a .html file"),
    ("demo --out no/r.html", "No such folder"),
    ("demo --out r.pdf", "A report is a .html file. Got 'r.pdf'"),
    ("report model.joblib data.csv COMMON --out no/r.html", "No such folder"),
    ("report model.joblib data.csv COMMON --out r.pdf", "A report is a .html file. Got 'r.pdf'"),
    ("report model.joblib data.csv COMMON --out .", "Is a folder: ."),
    ("explain model.joblib data.csv COMMON --output folder.csv", "Is a folder: folder.csv"),
    ("explain model.joblib data.csv COMMON --report folder.html", "Is a folder: folder.html"),
    ("mmd data.csv data.csv --picture folder.png", "Is a folder: folder.png"),
]


@pytest.mark.parametrize(("arguments", "text"), UNWRITABLE)
def test_files_that_cannot_be_written_are_refused_before_the_work(files, arguments, text, capsys, monkeypatch):
    monkeypatch.setattr(Explainer, "__call__", None)
    for name in ("decompose_r2", "decompose_hsic", "decompose_mmd"):
        monkeypatch.setattr(exactshap, name, None)
    for name in ("folder.csv", "folder.html", "folder.png"):
        (files / name).mkdir()
    assert run(*shlex.split(arguments.replace("COMMON", " ".join(COMMON)))) == 2
    assert text in " ".join(capsys.readouterr().err.split())


def test_rows_are_chosen_by_a_filter(files, fitted):
    _, X, y = fitted
    chosen = ["--rows", "age > 0 and y < 1", "--keep", "id", "-o", "some.csv"]
    assert run("explain", "model.joblib", "data.csv", *COMMON, *chosen) == 0
    table = pandas.read_csv("some.csv")
    wanted = np.flatnonzero((X["age"] > 0) & (y < 1))
    assert list(table["row"]) == list(table["id"]) == list(wanted)


def test_two_explanations_or_the_groups_of_one_are_compared(files, capsys, monkeypatch):
    for name, rows in (("may", "0:20"), ("june", "20:")):
        assert run("explain", "model.joblib", "data.csv", *COMMON, "--rows", rows, "-o", f"{name}.npz") == 0
    capsys.readouterr()
    assert run("compare", "may.npz", "june.npz", "-o", "change.csv", "--picture", "change.png") == 0
    assert "june minus may" in capsys.readouterr().out
    may, june = Explanation.load("may.npz"), Explanation.load("june.npz")
    table = pandas.read_csv("change.csv").set_index("feature")
    np.testing.assert_allclose(table["difference"], june.values.mean(axis=0) - may.values.mean(axis=0), rtol=conditioned(1e6))
    assert {"lower", "upper", "mmd_contribution", "mmd_p"} <= set(table)
    assert (files / "change.png").read_bytes()[:4] == b"\x89PNG"
    typed = ["compare", "may.npz", "june.npz", "--no-drift", "--level", "0.9", "--report", "june.html"]
    typed += ["--threshold", "0.00012345678"]
    monkeypatch.setattr(sys, "argv", ["exactshap", *typed])
    assert run(*typed) == 0
    assert "changed beyond the threshold: " in " ".join(capsys.readouterr().out.split())
    # All settings, as a page of other ones has other intervals
    assert f"exactshap {' '.join(typed)}" in (files / "june.html").read_text(encoding="utf-8")
    assert run("compare", "may.npz", "--by", "age", "--no-drift") == 0
    assert "by age, 4 groups" in capsys.readouterr().out
    assert run("compare", "may.npz", "--by", "age", "--report", "by.html") != 0
    capsys.readouterr()
    for wrong, text in ((["may.npz"], "Got neither"), (["may.npz", "june.npz", "--by", "age"], "Got both")):
        assert run("compare", *wrong) == 2
        assert text in capsys.readouterr().err


# --- decompositions ---------------------------------------------------------------------------------------------------


def sample(n, shift, seed):
    rng = np.random.default_rng(seed)
    columns = {"age": rng.normal(size=n) + shift, "<b>": rng.normal(size=n), "city": rng.choice(["u", "v"], n)}
    return pandas.DataFrame(columns | {"y": columns["age"] ** 2})


@pytest.fixture
def samples(tmp_path):
    first, second = tmp_path / "may.csv", tmp_path / "june.csv"
    sample(60, 0.0, 0).to_csv(first, index=False)
    sample(50, 1.0, 1).to_csv(second, index=False)
    return first, second


def test_mmd_prints_and_writes_what_the_function_gives(samples, tmp_path, capsys):
    out, picture, report = tmp_path / "t.csv", tmp_path / "p.png", tmp_path / "r.html"
    arguments = ("--drop", "y", "--permutations", 19, "--out", out, "--picture", picture, "--report", report)
    assert run("mmd", *samples, *arguments) == 0
    first, second = (pandas.read_csv(path).drop(columns="y") for path in samples)
    shares = decompose_mmd(first, second, bandwidth="column-median", n_permutations=19)
    pandas.testing.assert_frame_equal(pandas.read_csv(out), shares.to_frame(), rtol=roundings(5_000))
    assert picture.read_bytes()[:4] == b"\x89PNG"
    text = capsys.readouterr().out
    assert f"MMD2 = {shares.total:.6g}" in text
    assert "p = 0.05 (19 permutations)" in text
    page = report.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert not re.search(r'(src|href)="http', page)
    assert f"{shares.values[0]:.4g}" in page


def test_the_report_draws_its_own_pictures(samples, tmp_path, monkeypatch):
    """Without matplotlib: bars of the shares, and densities or frequencies of the strongest columns in both samples."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = tmp_path / "r.html"
    assert run("mmd", *samples, "--drop", "y", "--report", report) == 0
    page = report.read_text(encoding="utf-8")
    assert page.count("<svg") == 1 + 3
    assert page.count('class="whisker"') == 3
    assert page.count('class="bar"') == 3
    assert page.count('class="area first"') == page.count('class="area second"') == 2  # two columns of numbers
    assert page.count('class="first"') == page.count('class="second"') == 2 + 0  # two cities
    assert "may.csv" in page
    assert run("hsic", samples[0], "--target", "y", "--report", report) == 0
    assert report.read_text(encoding="utf-8").count("<svg") == 1


def test_hsic_prints_and_writes_what_the_function_gives(samples, tmp_path, capsys):
    out, report = tmp_path / "t.csv", tmp_path / "r.html"
    assert run("hsic", samples[0], "--target", "y", "--permutations", 0, "--out", out, "--report", report) == 0
    data = pandas.read_csv(samples[0])
    shares = decompose_hsic(data.drop(columns="y"), data["y"], bandwidth_x="column-median", estimator="unbiased")
    pandas.testing.assert_frame_equal(pandas.read_csv(out), shares.to_frame(), rtol=roundings(5_000))
    assert "What y depends on in may.csv" in report.read_text(encoding="utf-8")
    assert "HSIC = " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--bandwidth", "0"), "'bandwidth' parameter must be a finite float > 0"),
        (("--bandwidth", "big"), "Unknown `bandwidth` 'big'"),
        (("--kernel", "sigmoid"), "Unknown kernel 'sigmoid'"),
        (("--drop", "nope"), "has no column 'nope'"),
        (("--permutations", "0", "--picture", "p.txt"), "Pictures are written to .png, .svg or .pdf"),
    ],
)
def test_bad_options_are_one_line(samples, arguments, text, capsys):
    assert run("mmd", *samples, *arguments) == 2
    error = capsys.readouterr().err
    assert text in error
    assert "Traceback" not in error


def test_hsic_needs_a_target_that_is_there(samples, capsys):
    assert run("hsic", samples[0], "--target", "income") == 2
    assert "has no column 'income'" in capsys.readouterr().err


def test_large_values_are_printed_in_full():
    table = commands._table(linear(np.array([[27640.0, 1.0], [1.0, 2.0]]), names=["amount", "age"]))
    cells = [line.split()[1] for line in table.splitlines()[1:]]
    assert re.fullmatch(r"\d,\d{3}|\d\d,\d{3}", cells[0]), cells
    assert "e" not in "".join(cells)


def test_a_table_of_values_is_no_explanation_to_compare(files, capsys):
    with pytest.raises(SystemExit):
        main(["compare", "data.parquet", "data.parquet"])
    assert "exactshap explain MODEL DATA --out values.npz" in " ".join(capsys.readouterr().err.split())
