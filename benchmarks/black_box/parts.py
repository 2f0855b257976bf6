"""What each part of the estimator of black boxes buys: squared errors without it over those with it.

    python benchmarks/black_box/parts.py run FILE.npz RUN ...    a new game and a new seed of every cell, with all parts and without each
    python benchmarks/black_box/parts.py report FILE.npz         write results/black_box_parts.md

Families, sizes and seeds are those of ``coverage.py``.
"""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import coverage  # sets the number of threads
import numpy as np

from exactshap.games import OracleGame
from exactshap.solvers import solve
from exactshap.solvers.sampled import _adaptive, _estimators, _placement

RESULTS = coverage.RESULTS.with_name("black_box_parts.md")
LEAST = 1e-14  # of the squared largest value: smaller squared errors are none
CLEARLY = 1.1
WITHOUT = {
    "": nullcontext(),
    "networks": mock.patch.object(_estimators, "networks", return_value=None),
    "polynomials of few terms": mock.patch.object(_estimators, "find_support", return_value=None),
    "calls placed by what is learned": mock.patch.object(_adaptive, "_stages", return_value=[]),
    "calls placed before any call": mock.patch.object(_placement, "MAX_DESIGNED", -1),
    "correction by left-out pairs": mock.patch.object(
        _estimators, "corrected", lambda fit, process, asked: process.solve(asked)
    ),
}


def run(file, runs):
    warnings.simplefilter("ignore")
    families, enumerated = coverage.families_of("every")
    found = dict(np.load(file)) if Path(file).exists() else {}
    for k in runs:
        for name, d, calls in coverage.cells(families, enumerated):
            if (game := coverage.new_game(families, name, d, calls, k)) is None:
                continue
            exact = game.exact()
            if not exact.any():
                continue
            for part, patch in WITHOUT.items():
                start = time.process_time()
                with patch:
                    solution = solve(OracleGame(game.value, d), budget=calls, random_state=k, method="regression")
                seconds, missed = time.process_time() - start, solution.values - exact
                covered = np.mean(coverage.covered([(missed, solution.std_error, exact)]))
                found[f"{part}/{name}/{d}/{calls}/{k}"] = np.mean(missed**2) / np.max(exact**2), covered, seconds
        np.savez_compressed(file, **found)
        print(k, flush=True)


def report(file):
    stored, cells = np.load(file), {}
    for key, row in stored.items():
        part, name, d, calls, _ = key.split("/")
        cells.setdefault(part, {}).setdefault((name, d, calls), []).append(row)
    means = {part: {cell: np.mean(rows, axis=0) for cell, rows in of_part.items()} for part, of_part in cells.items()}
    whole, n_runs = means.pop(""), max(len(rows) for rows in cells[""].values())
    lines = [
        "# What each part of the estimator buys",
        "",
        f"Squared errors without a part over those with all, {len(whole)} cells of {len({name for name, _, _ in whole})} families of games and {n_runs} runs",
        "(`benchmarks/black_box/parts.py`): in how many cells they are more than a tenth larger, and smaller, without it; the geometric mean",
        "of all cells, each ratio counted as 100 at most and 0.01 at least; values within two standard errors; processor time.",
        "",
        "<!-- parts -->",
        "",
        "| without | larger | smaller | geometric mean | covered | time |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for part, some in means.items():
        ratios = np.array([max(some[cell][0], LEAST) / max(whole[cell][0], LEAST) for cell in whole])
        mean = np.exp(np.log(np.clip(ratios, 0.01, 100.0)).mean())
        covered, seconds = (np.mean([row[k] for row in some.values()]) for k in (1, 2))
        seconds /= np.mean([row[2] for row in whole.values()])
        counts = f"{np.sum(ratios > CLEARLY)} | {np.sum(ratios < 1.0 / CLEARLY)}"
        lines.append(f"| {part} | {counts} | {mean:.2f} | {covered:.3f} | {seconds:.2f} |")
    lines.append(f"| nothing | 0 | 0 | 1 | {np.mean([row[1] for row in whole.values()]):.3f} | 1 |")
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "report":
        report(sys.argv[2])
    else:
        run(sys.argv[2], map(int, sys.argv[3:]))
