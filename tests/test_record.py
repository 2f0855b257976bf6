"""The record of printed tables beside ours is what the committed outputs say, and refuses what has no reason."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tolerances import conditioned


@pytest.fixture
def papers(pytestconfig, monkeypatch):
    folder = pytestconfig.rootpath / "benchmarks" / "papers"
    if not (folder / "record.py").exists():
        pytest.skip("the benchmarks are not here")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(pytestconfig.rootpath / "tools"))
    import papers
    import qshap_tables
    import record
    import rkhs_shap

    return SimpleNamespace(record=record, qshap=qshap_tables, rkhs_shap=rkhs_shap, command=papers)


def test_the_record_is_what_the_outputs_say(papers):
    assert papers.record.page() == papers.record.RECORD.read_text(encoding="utf-8"), "run python tools/papers.py record"


def test_the_page_of_models_is_what_its_record_says_and_cuts_no_word(papers):
    import models

    assert models.page(models.recorded()) == models.PAGE.read_text(encoding="utf-8"), "run python tools/models.py"
    assert models.whole_parts("sum of 2 models: one; another", "; ", 25) == "sum of 2 models: one"
    assert models.whole_parts("a first part that is long; rest", "; ", 5) == "a first part that is long"
    assert models.first_words(ValueError("No reader. " + "It is not known. " * 20)).endswith("not known")
    assert models.digits(0.0) == "0"
    assert models.digits(2.6e-16) == "3e-16"


def test_every_printed_cell_is_judged(papers):
    for table in papers.record.TABLES:
        cells = papers.record.judged(table)
        assert cells.keys() == table.printed().keys()
        assert all(reason for status, _, _, reason in cells.values() if status != papers.record.WITHIN), table.title


def test_a_difference_without_a_reason_is_refused(papers):
    table = next(table for table in papers.record.TABLES if table.key == "star table 6")
    cells = papers.record.judged(table)
    assert cells["SVR", "wine"][0] == papers.record.WITHIN
    wrong = replace(table, ours=lambda: {**table.ours(), ("SVR", "wine"): cells["SVR", "wine"][1] + 0.021})
    with pytest.raises(LookupError, match="SVR, wine"):
        papers.record.judged(wrong)
    missing = replace(table, ours=lambda: {key: value for key, value in table.ours().items() if key != ("SVR", "wine")})
    with pytest.raises(LookupError, match="not run: SVR, wine"):
        papers.record.judged(missing)


def test_what_cannot_be_run_is_told_from_what_was_not(papers):
    """A cell without a value is impossible where a line says so, also where another line would call it not run."""
    table = next(table for table in papers.record.TABLES if table.key == "qshap table 4")
    assert {status for status, *_ in papers.record.judged(table).values()} == {papers.record.IMPOSSIBLE}
    lines = [{"row": "*", "column": "*", "status": status, "reason": status, "run": ""} for status in ("not run", "impossible")]
    said = [papers.record.explained(("a", "b"), status, {}, lines) for status in papers.record.STATES]
    assert said == ["", None, None, "impossible", "not run"]


@pytest.mark.parametrize(
    ("key", "printed", "judged"),
    [
        ("polyshap table", 1e-8, {0.4e-8: "DIFFERENT", 1.9e-8: "WITHIN", 2.1e-8: "DIFFERENT"}),  # errors: by ratio
        ("qshap table 2", 10.0, {4.0: "FASTER", 6.0: "WITHIN", 21.0: "DIFFERENT"}),  # a time that is less is faster
        # shares: 0.02 is not met by none, nor by one of the other sign, nor by half of it
        ("qshap table 1", 0.02, {0.0: "DIFFERENT", -0.02: "DIFFERENT", 0.01: "DIFFERENT", 0.016: "WITHIN"}),
        ("qshap table 1", 0.48, {0.5: "WITHIN", 0.501: "DIFFERENT"}),
        ("qshap table 1", 0.001, {0.0: "WITHIN", -0.001: "DIFFERENT"}),
    ],
)
def test_numbers_are_judged_by_the_kind_of_their_table(papers, key, printed, judged):
    table = next(table for table in papers.record.TABLES if table.key == key)
    found = {ours: table.compared(ours, printed) for ours in judged}
    assert found == {ours: getattr(papers.record, name) for ours, name in judged.items()}


def test_no_cell_is_counted_twice(papers):
    """What the row "all" counts are the tables that are no second reading: of Table 3 and of EBM one each."""
    counted = [table for table in papers.record.TABLES if not table.second]
    assert sorted(table.key for table in papers.record.TABLES if table.second) == ["ebm defaults", "qshap table 3"]
    row = next(line for line in papers.record.page().splitlines() if line.startswith("| **all** |"))
    assert int(row.split("|")[2]) == sum(len(table.printed()) for table in counted)


# -- the one command -----------------------------------------------------------------------------------------------------
def test_the_command_lists_every_part_and_finds_its_scripts(papers, capsys):
    assert papers.command.main([]) == 0
    text = capsys.readouterr().out
    for (paper, name), part in papers.command.PARTS.items():
        assert f"{paper:10} --{name}" in text
        for run in part.runs:
            assert (papers.command.SCRIPTS / run.split()[0]).exists(), run
        assert all((papers.command.RESULTS / file).exists() for file in part.stores), name


def test_data_sets_of_parts_are_in_the_catalogue(papers):
    import paper_data

    files = {file for part in papers.command.PARTS.values() for file in part.data.values()}
    assert files <= paper_data.DATA_SETS.keys()
    assert all(one.obtain() for one in paper_data.DATA_SETS.values())


def test_missing_data_are_named_with_a_way_to_get_them(pytestconfig, tmp_path):
    command = [sys.executable, str(pytestconfig.rootpath / "tools" / "papers.py")]
    environment = os.environ | {"EXACTSHAP_DATA": str(tmp_path)}
    refused = subprocess.run(
        [*command, "pkex", "--figure", "7-8"], capture_output=True, text=True, env=environment, check=False
    )
    assert refused.returncode == 1
    assert "diabetes_scaled.csv.gz: scikit-learn" in refused.stderr
    built = subprocess.run([*command, "data", "--build"], capture_output=True, text=True, env=environment, check=False)
    assert built.returncode == 0
    assert (tmp_path / "diabetes_scaled.csv.gz").exists()
    assert "not built: sonar.csv.gz: clone github.com/jbrownlee/Datasets" in built.stdout


def test_a_run_from_nothing_forgets_its_own_cells(papers, tmp_path):
    stored, table = tmp_path / "stored.json", tmp_path / "stored.csv"
    stored.write_text('{"wine/SVR": 1, "wine/RWRelu [1, 2]-STAR": 2, "housing/SVR": 3}')
    papers.command.forget(stored, ["wine/*STAR"])
    assert json.loads(stored.read_text()) == {"wine/SVR": 1, "housing/SVR": 3}
    table.write_text('row,mse\n"Housing, 176 calls",1\n"Bike, 1141 calls",2\n')
    papers.command.forget(table, ["Housing, *"])
    assert table.read_text().splitlines() == ["row,mse", '"Bike, 1141 calls",2']


def test_readings_are_computed_from_the_numbers(papers, tmp_path, monkeypatch):
    """The committed pages follow from the committed numbers, and other numbers read otherwise."""
    results = papers.qshap.RESULTS
    numbers = {
        name: json.loads((results / f"{name}.json").read_text(encoding="utf-8")) for name in ("qshap_table6", "rkhs_shap")
    }
    monkeypatch.setattr(papers.qshap, "RESULTS", tmp_path)
    assert papers.qshap.write_table_6(numbers["qshap_table6"]) == (results / "qshap_table6.md").read_text(encoding="utf-8")
    papers.rkhs_shap.write_tables(numbers["rkhs_shap"], tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == (results / "rkhs_shap.md").read_text(encoding="utf-8")
    for row in numbers["rkhs_shap"]["experiment_1"]:
        row["osv"], row["gaussian_osv"] = row["gaussian_osv"], row["osv"]
    assert "at 0 of 5 values of b" in papers.rkhs_shap.READINGS["1"](numbers["rkhs_shap"]["experiment_1"])
    for one in numbers["qshap_table6"]["settings"]:
        one["residual"]["bias"][1] = 1.0
    assert "18 of 27 (residual game)" in papers.qshap.reading(numbers["qshap_table6"])


def test_the_likelihood_of_table_1_is_that_of_scikit_learn(papers):
    from pkex_table1 import Process
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(30, 3)), ConstantKernel(1.0, (1e-4, 1e1)) * RBF(1.0, (1e-4, 10))
    ours, theirs = (model(kernel).fit(X, X[:, 0] * X[:, 1]) for model in (Process, GaussianProcessRegressor))
    for theta in ([0.0, 0.0], [-1.0, 0.7], [1.0, -2.0]):
        found, expected = (model.log_marginal_likelihood(np.array(theta), eval_gradient=True) for model in (ours, theirs))
        assert found[0] == pytest.approx(expected[0], rel=conditioned(1e4))
        np.testing.assert_allclose(found[1], expected[1], rtol=conditioned(1e6))
    np.testing.assert_allclose(ours.predict(X[:5] + 0.1), theirs.predict(X[:5] + 0.1), rtol=conditioned(1e11))


def test_gemfix_is_the_ridge_regression_on_all_masses(papers):
    """The dual on 20 coalitions of six players gives what the masses of all 63 give, under efficiency."""
    from pkex_recovery import PENALTY, of_least_masses

    d, rng = 6, np.random.default_rng(1)
    coalitions = np.array(list(itertools.product([0.0, 1.0], repeat=d))[1:])
    masks, values = np.vstack([coalitions[rng.choice(62, 19, replace=False)], np.ones(d)]), rng.normal(size=20)
    inside, ones = (coalitions @ masks[:-1].T == coalitions.sum(axis=1)[:, None]).T.astype(float), np.ones((63, 1))
    system = np.block([[inside.T @ inside + PENALTY * np.eye(63), ones], [ones.T, np.zeros((1, 1))]])
    masses = np.linalg.solve(system, np.append(inside.T @ values[:-1], values[-1]))[:-1]
    expected = (masses / coalitions.sum(axis=1)) @ coalitions
    tolerance = conditioned(1 / PENALTY) * np.abs(masses).sum()
    np.testing.assert_allclose(of_least_masses(masks, values), expected, atol=tolerance)
