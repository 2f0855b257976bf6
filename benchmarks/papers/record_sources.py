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


def over(cells, reference, side):
    """Return seconds over those of the row (side 0) or column (side 1) ``reference``, which itself stays as it is."""
    ratios = {}
    for key, value in cells.items():
        base = cells.get((reference, key[1]) if side == 0 else (key[0], reference))
        if key[side] != reference and base is not None:
            ratios[key] = value / base
    return ratios


def star_seconds_printed():
    cells = printed("star table 8, seconds")
    return cells | over(cells, "RWRelu", 0)


UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def qshap_seconds_printed():
    cells = printed("qshap table 2")
    seconds = {key: float(value.split()[0]) * UNITS[value.split()[1]] for key, value in cells.items()}
    return cells | over(seconds, "Q-SHAP", 1) | {("Healthcare", "Q-SHAP"): 1.0}


def qshap_theory_printed():
    from qshap_tables import PRINTED

    names = {f"model {model}, sigma {sigma}": values for (model, sigma), values in PRINTED.items()}
    return grid(names, ("total", "X1", "X2", "X3"))


# -- ours ----------------------------------------------------------------------------------------------------------------
def load(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def star(part, score="test"):
    cells = {tuple(reversed(key.split("/"))): run for key, run in load(f"star_{part}.json").items()}
    return {key: run[score] for key, run in cells.items() if score in run}


def star_seconds():
    """Seconds of a core for one fit, where its run kept them."""
    runs = {tuple(reversed(key.split("/"))): run for key, run in load("star_table8.json").items()}
    return over({key: run["fit_seconds"] for key, run in runs.items() if "fit_seconds" in run}, "RWRelu", 0)


def ebm_defaults():
    return {("EBM", column): run["test"] for column, run in load("star_ebm.json").items()}


def pkex_table1():
    runs = load("pkex_table1.json").items()
    return {tuple(reversed(key.split("/"))): statistics.fmean(run["scores"]) for key, run in runs if "scores" in run}


def pkex_noted():
    """Give the reason of the cells that come back on the columns of the authors' own importances."""
    cells, near = printed("pkex table 1"), {}
    for key, run in load("pkex_table1.json").items():
        cell, theirs = tuple(reversed(key.split("/"))), statistics.fmean(run.get("authors", [math.nan]))
        if abs(theirs - cells[cell]) <= 0.02:
            text = "the selector is random or near a tie: on the columns of the authors' published importances our fit gives"
            near[cell] = f"{text} {theirs:.3f}", "pkex_table1.md"
    return near


def qshap_theory():
    rows = {f"model {one['model']}, sigma {one['sigma']}": one["theory"] for one in load("qshap_table6.json")["settings"]}
    return grid(rows, ("total", "X1", "X2", "X3"))


def qshap_bias():
    """Bias of the residual game, which is the paper's, at sigma 1.5, and of the peers."""
    exact = {one["model"]: one["theory"] for one in load("qshap_table6.json")["settings"] if one["sigma"] == 1.5}
    found, columns, rows = load("qshap_figures.json"), ("sum", "X1", "X2", "X3"), {}
    for model, truth in exact.items():
        means = [statistics.fmean(values) for values in zip(*found[f"{model},1.5,1000,100"]["values"], strict=True)]
        rows[f"model {model}, Q-SHAP"] = [mean - value for mean, value in zip(means, truth, strict=False)]
        for method, found_rows in load("qshap_peers.json").get("table1", {}).get(model, {}).items():
            means = [statistics.fmean(values) for values in zip(*found_rows, strict=True)]
            rows[f"model {model}, {method}"] = [mean - value for mean, value in zip(means, truth, strict=True)]
    return grid(rows, columns)


def qshap_seconds():
    """Seconds over those of Q-SHAP: of the authors' package for the insurance data, else of ours."""
    found, cells = load("qshap_peers.json"), {}
    for data, run in (("Healthcare", found["table3"]["log charges"]), ("S&P 500", found.get("table5", {}))):
        cells |= {(data, method): seconds for method, seconds in run.get("seconds", {}).items()}
    package = found["package"]
    cells["Healthcare", "Q-SHAP"] = package["package"]
    return over(cells, "Q-SHAP", 1) | {("Healthcare", "Q-SHAP"): package["ours"] / package["package"]}


def qshap_seconds_noted():
    run = load("qshap_peers.json")["package"]
    text = (
        f"the authors' package, qshap {run['version']}, takes {run['package']:.2f} s here and ours {run['ours']:.3f} s on the same model and core; "
        f"their shares differ by {run['difference']:.0e} at most"
    )
    return {("Healthcare", "Q-SHAP"): (text, "qshap_peers.py package")}


def qshap_insurance(target):
    shares = load("qshap_peers.json")["table3"][target]["shares"]
    return {(feature, method): value for method, values in shares.items() for feature, value in values.items()}


def qshap_spvim_noted():
    """Give the reason of SPVIM's shares of the insurance data, with how far they move with the folds."""
    found = load("qshap_peers.json")
    ours, draws = found["table3"]["log charges"]["shares"]["SPVIM"], found["seeds"]["table3"]
    furthest = max(abs(draw[feature] - value) for draw in draws for feature, value in ours.items())
    text = (
        "the printed values add up to 0.994, above the R2 of 0.86 that the paper gives the model, though vimpy constrains their sum to the "
        f"cross-validated R2, here {sum(ours.values()):.2f}; it is not chance of the folds: over {len(draws)} other draws ours deviate by {furthest:.3f} at most"
    )
    return {(feature, "SPVIM"): (text, "qshap_peers.py seeds") for feature in ours}


def qshap_stocks():
    """Shares of the printed stocks, and of all others together; a stock that is not among the hundred of a model has none in it."""
    shares = load("qshap_peers.json").get("table5", {}).get("shares", {})
    named = dict.fromkeys(row for row, _ in printed("qshap table 5") if row != "Others")
    cells = {(row, method): values.get(row, 0.0) for method, values in shares.items() for row in named}
    rest = {("Others", method): sum(v for k, v in values.items() if k not in named) for method, values in shares.items()}
    return cells | rest


def polyshap_errors(table):
    """Return {(game and calls, column): squared errors of our instances}; a refusal on any of them is no value."""
    errors = defaultdict(list)
    with (RESULTS / "polyshap_published.csv").open(encoding="utf-8", newline="") as file:
        for run in csv.DictReader(file):
            if run["table"] == table:
                errors[run["row"], run["column"]].append(float(run["mse"]))
    return {key: found for key, found in errors.items() if not math.isnan(sum(found))}


def polyshap(table):
    return {key: statistics.fmean(found) for key, found in polyshap_errors(table).items()}


def polyshap_noted(table):
    """Give the reason of cells that one draw of coalitions explains, or the spread over instances."""
    errors, cells = polyshap_errors(table), printed(table)
    near = {}
    for name, draws in load("polyshap_draws.json").items():
        if (parts := name.split("/"))[0] == table:
            inside = min(draws) <= cells[parts[1], parts[2]] <= max(draws)
            text = (
                f"{'one draw' if inside else 'not explained'}: the published runs take the same coalitions for all thirty instances; over "
                f"{len(draws)} such draws ours gives {min(draws):.2g} to {max(draws):.2g}"
            )
            near[parts[1], parts[2]] = text, f"polyshap_published.py --draws {len(draws)}"
    for key in ({key for key, found in errors.items() if len(found) > 1} & cells.keys()) - near.keys():
        error = statistics.stdev(errors[key]) / math.sqrt(len(errors[key]))
        if abs(statistics.fmean(errors[key]) - cells[key]) <= 2 * error:
            near[key] = "the printed mean is within two standard errors of ours over the instances", "polyshap_published.py"
    return near


# -- reasons -------------------------------------------------------------------------------------------------------------
def noted(name):
    """Return {(row, column): (reason, run)} of the notes next to a STAR-SHAP table."""
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
