"""What the papers print and what our scripts committed, each as {(row, column): number}: read by ``record.py``, nothing is run."""

from __future__ import annotations

import csv
import json
import math
import pathlib
import statistics
from collections import defaultdict

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"


# -- printed -------------------------------------------------------------------------------------------------------------
def printed(table):
    """Return the cells of a table of ``printed/tables.csv``, which holds what no script needs itself; times keep their unit."""
    with (HERE / "printed" / "tables.csv").open(encoding="utf-8", newline="") as file:
        cells = {(line["row"], line["column"]): line["printed"] for line in csv.DictReader(file) if line["table"] == table}
    return {key: number(text) for key, text in cells.items()}


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def grid(rows, columns):
    """Return {row: numbers} as cells."""
    return {(row, column): value for row, values in rows.items() for column, value in zip(columns, values, strict=True)}


def star_printed(part):
    from star import DATASETS, PRINTED_6, PRINTED_8, SERIES

    return grid(PRINTED_6, DATASETS) if part == "table6" else grid(PRINTED_8, SERIES)


def ebm_printed():
    return {key: value for part in ("table6", "table8") for key, value in star_printed(part).items() if key[0] == "EBM"}


def qshap_theory_printed():
    from qshap import PRINTED

    names = {f"model {model}, sigma {sigma}": values for (model, sigma), values in PRINTED.items()}
    return grid(names, ("total", "X1", "X2", "X3"))


# -- ours ----------------------------------------------------------------------------------------------------------------
def load(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def star(part, score="test"):
    cells = {tuple(reversed(key.split("/"))): run for key, run in load(f"star_{part}.json").items()}
    return {key: run[score] for key, run in cells.items() if score in run}


def ebm_defaults():
    return {("EBM", column): run["test"] for column, run in load("star_ebm.json").items()}


def markdown_rows(name):
    """Return the rows of the first table of a page, as {heading: text}."""
    lines = [
        line for line in (RESULTS / name).read_text(encoding="utf-8").split("\n\n## ")[0].splitlines() if line.startswith("|")
    ]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


def pkex_table1():
    return {("PKeX-Shapley", row["data"]): float(row["ours"].split("±")[0]) for row in markdown_rows("pkex_table1.md")}


def qshap_theory():
    rows = {f"model {one['model']}, sigma {one['sigma']}": one["theory"] for one in load("qshap_table6.json")["settings"]}
    return grid(rows, ("total", "X1", "X2", "X3"))


def qshap_bias():
    """Bias of the residual game, which is the paper's, at sigma 1.5."""
    noisy = [one for one in load("qshap_table6.json")["settings"] if one["sigma"] == 1.5]
    return grid({f"model {one['model']}, Q-SHAP": one["residual"]["bias"] for one in noisy}, ("sum", "X1", "X2", "X3"))


def qshap_insurance(target):
    rows = [row for row in markdown_rows("qshap_table3.md") if row["feature"] != "total R2"]
    return {(row["feature"], "Q-SHAP"): float(row[f"{target}, residual"].split()[0]) for row in rows}


POLYSHAP = {  # our names of the printed columns
    "Leverage SHAP": "1-PolySHAP (Leverage SHAP)",
    "PolySHAP-3": "3-PolySHAP",
    "RegressionMSR": "RegressionMSR",
    "permutation": "permutation",
    "SVARM": "SVARM",
    "MSR": "MSR",
}


def polyshap_errors():
    """Return {(game and calls, method): squared errors of our instances}; a refusal on any of them is no value."""
    errors = defaultdict(list)
    with (RESULTS / "polyshap_runs.csv").open(encoding="utf-8", newline="") as file:
        for run in csv.DictReader(file):
            if run["method"] in POLYSHAP:
                game = "ResNet18" if run["game"] == "ResNet14" else run["game"]
                errors[f"{game}, {run['budget']} calls", POLYSHAP[run["method"]]].append(float(run["mse"]))
    return {key: found for key, found in errors.items() if not math.isnan(sum(found))}


def polyshap():
    return {key: statistics.fmean(found) for key, found in polyshap_errors().items()}


def polyshap_spread():
    """Give the reason of the cells whose printed mean is within two standard errors of ours."""
    errors, cells = polyshap_errors(), printed("polyshap table")
    near = {}
    for key in errors.keys() & cells.keys():
        error = statistics.stdev(errors[key]) / math.sqrt(len(errors[key]))
        if abs(statistics.fmean(errors[key]) - cells[key]) <= 2 * error:
            near[key] = "the printed mean is within two standard errors of ours over the instances", "polyshap.md"
    return near


# -- reasons -------------------------------------------------------------------------------------------------------------
def noted(name):
    """Return {(row, column): (reason, run)} of the notes beside a STAR-SHAP table."""
    reasons = {}
    for line in (RESULTS / f"{name}_notes.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 5 and ", " in cells[0] and cells[0] != "cell":
            column, row = cells[0].split(", ", 1)
            checked = f"; with the authors' regulariser and choices {cells[2]}" if cells[2] else ""
            reasons[row, column] = cells[4].replace(" (below)", "") + checked, f"{name}_notes.md"
    return reasons


def listed(table):
    """Return the lines of ``printed/reasons.csv`` for a table: patterns of row and column, reason, run."""
    with (HERE / "printed" / "reasons.csv").open(encoding="utf-8", newline="") as file:
        return [line for line in csv.DictReader(file) if line["table"] == table]
