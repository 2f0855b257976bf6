"""The command on folders of files."""

import numpy as np
import pandas as pd
import pytest

import scale_cases as cases
from command import run
from exactshap.scale import Partition

pytest.importorskip("typer")
pytest.importorskip("pyarrow")


@pytest.fixture
def files(tmp_path, monkeypatch):
    import joblib

    monkeypatch.chdir(tmp_path)
    explainer, T = cases.svr(), cases.table()
    joblib.dump(explainer.reader.traits.model, "model.joblib")
    cases.table(40, 9)[cases.NAMES][:10].to_parquet("background.parquet")
    (tmp_path / "in").mkdir()
    T[:35].assign(y=1.0).to_parquet("in/a.parquet")
    T[35:].assign(y=1.0).to_parquet("in/b.parquet")
    T.to_csv("data.csv", index=False)
    return T


COMMON = ["explain", "model.joblib", "in", "--allow-pickle", "--background", "background.parquet"]
COMMON += ["--keep", "id", "--target", "y"]


def test_a_folder_is_explained_and_resumed(files, tmp_path, capsys):
    assert run(*COMMON, "-o", "out", "--batch-rows", "10") == 0
    said = capsys.readouterr().out
    assert "60 rows explained in" in said
    assert "7 files in out" in said
    found = pd.read_parquet(tmp_path / "out")
    pd.testing.assert_frame_equal(found, Partition(cases.svr(), keep=["id"])(files), check_exact=True)
    (tmp_path / "out" / "part-00002.parquet").unlink()
    assert run(*COMMON, "-o", "out", "--batch-rows", "10", "--jobs", "2") == 0
    assert "50 of them by an earlier run" in capsys.readouterr().out
    assert run(*COMMON, "-o", "out", "--batch-rows", "10", "--no-resume") == 2
    assert "holds an earlier run. Got --no-resume" in capsys.readouterr().err
    assert run(*COMMON, "-o", "out", "--batch-rows", "11") == 2
    assert "Different: the batch_rows (10 before, now 11)" in capsys.readouterr().err


def test_one_csv_file_streams_into_a_folder(files, tmp_path):
    arguments = [*COMMON[:2], "data.csv", *COMMON[3:-2]]
    assert run(*arguments, "-o", "out") == 0
    found = pd.read_parquet(tmp_path / "out")
    whole = Partition(cases.svr(), keep=["id"])(pd.read_csv("data.csv", float_precision="round_trip"))
    assert np.array_equal(found["phi_age"], whole["phi_age"])


def test_less_and_more_is_written_on_request(files, tmp_path):
    assert run(*COMMON, "-o", "pairs", "--order", "2", "--dtype", "float32") == 0
    pairs = pd.read_parquet(tmp_path / "pairs")
    assert pairs["phi_age & bmi"].dtype == np.float32
    assert run(*COMMON[:2], "in/*.parquet", *COMMON[3:], "-o", "top", "--top-k", "1") == 0
    assert {"feature_1", "value_1", "rest"} < set(pd.read_parquet(tmp_path / "top"))


def test_groups_come_from_a_file(files, tmp_path, capsys):
    (tmp_path / "groups.toml").write_text('body = ["age", "bmi"]\n')
    assert run(*COMMON, "-o", "out", "--groups", "groups.toml") == 0
    assert list(pd.read_parquet(tmp_path / "out").filter(like="phi_")) == ["phi_body", "phi_s1", "phi_s2"]
    (tmp_path / "groups.toml").write_text('body = "age"\n')
    assert run(*COMMON, "-o", "other", "--groups", "groups.toml") == 2
    assert "Group 'body' of groups.toml is not a list" in capsys.readouterr().err
    (tmp_path / "groups.toml").write_text("body = [")
    assert run(*COMMON, "-o", "other", "--groups", "groups.toml") == 2
    assert "groups.toml cannot be read as TOML" in capsys.readouterr().err


def test_bad_rows_follow_the_policy(files, tmp_path, capsys):
    files[35:].assign(y=1.0, bmi=np.where(files["id"][35:] == 1040, np.nan, files["bmi"][35:])).to_parquet("in/b.parquet")
    assert run(*COMMON, "-o", "out") == 2
    said = capsys.readouterr().err
    assert "Row 40 cannot be explained (b.parquet, row group 0, row 5 of the file)" in said
    assert "--on-bad-rows mark" in said
    assert run(*COMMON, "-o", "marked", "--on-bad-rows", "mark") == 0
    assert "1 row could not be explained" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (COMMON, "The results of a folder of files need a folder. --out is missing"),
        ([*COMMON, "-o", "values.csv"], "Got --out values.csv"),
        ([*COMMON[:2], "*.parquet", *COMMON[3:], "-o", "values.csv"], "Got --out values.csv"),
        ([*COMMON, "-o", "out", "--dtype", "half"], "Unknown type dtype='half'"),
        ([*COMMON, "-o", "out", "--report", "a.html"], "Got --report a.html"),
        ([*COMMON[:2], "data.csv", *COMMON[3:-2]], "--keep copies columns to a table of values. --out is missing"),
        ([*COMMON, "-o", "out", "--budget", "50"], "has no setting 'budget'"),
    ],
)
def test_what_does_not_go_together_is_said(files, capsys, arguments, said):
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err
