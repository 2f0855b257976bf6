"""The record of printed tables beside ours is what the committed outputs say, and refuses what has no reason."""

import itertools
import json
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
    import qshap
    import record
    import rkhs_shap

    return SimpleNamespace(record=record, qshap=qshap, rkhs_shap=rkhs_shap)


def test_the_record_is_what_the_outputs_say(papers):
    assert papers.record.page() == papers.record.RECORD.read_text(encoding="utf-8"), "run python benchmarks/papers/record.py"


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
    assert [papers.record.explained(("a", "b"), status, {}, lines) for status in papers.record.STATES] == [
        "",
        None,
        "impossible",
        "not run",
    ]


def test_seconds_are_ratios_within_a_table(papers):
    import record_sources

    cells = {("fast", "data"): 2.0, ("slow", "data"): 6.0, ("slow", "other"): 5.0}
    assert record_sources.over(cells, "fast", 0) == {("slow", "data"): 3.0}
    assert record_sources.over({("data", "fast"): 2.0, ("data", "slow"): 6.0}, "fast", 1) == {("data", "slow"): 3.0}


def test_errors_are_compared_by_ratio(papers):
    table = next(table for table in papers.record.TABLES if table.key == "polyshap table")
    assert [table.agrees(ours, 1e-8) for ours in (0.4e-8, 1.9e-8, 2.1e-8)] == [False, True, False]


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


def test_gemfix_is_the_ridge_regression_on_all_masses(papers):
    """The dual on 20 coalitions of six players gives what the masses of all 63 give, under efficiency."""
    pytest.importorskip("shap")
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
