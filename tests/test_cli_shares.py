import re
import sys

import numpy as np
import pandas
import pytest

from command import run
from exactshap import decompose_hsic, decompose_mmd
from tolerances import roundings


def frame(n, shift, seed):
    rng = np.random.default_rng(seed)
    columns = {"age": rng.normal(size=n) + shift, "<b>": rng.normal(size=n), "city": rng.choice(["u", "v"], n)}
    return pandas.DataFrame(columns | {"y": columns["age"] ** 2})


@pytest.fixture
def files(tmp_path):
    first, second = tmp_path / "may.csv", tmp_path / "june.csv"
    frame(60, 0.0, 0).to_csv(first, index=False)
    frame(50, 1.0, 1).to_csv(second, index=False)
    return first, second


def test_mmd_prints_and_writes_what_the_function_gives(files, tmp_path, capsys):
    out, picture, report = tmp_path / "t.csv", tmp_path / "p.png", tmp_path / "r.html"
    arguments = ("--drop", "y", "--permutations", 19, "--out", out, "--picture", picture, "--report", report)
    assert run("mmd", *files, *arguments) == 0
    first, second = (pandas.read_csv(path).drop(columns="y") for path in files)
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


def test_the_report_draws_its_own_pictures(files, tmp_path, monkeypatch):
    """Without matplotlib: bars of the shares, and densities or frequencies of the strongest columns in both samples."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = tmp_path / "r.html"
    assert run("mmd", *files, "--drop", "y", "--report", report) == 0
    page = report.read_text(encoding="utf-8")
    assert page.count("<svg") == 1 + 3
    assert page.count('class="whisker"') == 3
    assert page.count('class="bar"') == 3
    assert page.count('class="area first"') == page.count('class="area second"') == 2  # two columns of numbers
    assert page.count('class="first"') == page.count('class="second"') == 2 + 0  # two cities
    assert "may.csv" in page
    assert run("hsic", files[0], "--target", "y", "--report", report) == 0
    assert report.read_text(encoding="utf-8").count("<svg") == 1


def test_hsic_prints_and_writes_what_the_function_gives(files, tmp_path, capsys):
    out, report = tmp_path / "t.csv", tmp_path / "r.html"
    assert run("hsic", files[0], "--target", "y", "--permutations", 0, "--out", out, "--report", report) == 0
    data = pandas.read_csv(files[0])
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
def test_bad_options_are_one_line(files, arguments, text, capsys):
    assert run("mmd", *files, *arguments) == 2
    error = capsys.readouterr().err
    assert text in error
    assert "Traceback" not in error


def test_hsic_needs_a_target_that_is_there(files, capsys):
    assert run("hsic", files[0], "--target", "income") == 2
    assert "has no column 'income'" in capsys.readouterr().err
