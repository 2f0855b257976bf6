"""Squared errors of Shapley values next to shapiq's estimators, on all families of games: those that were tuned on, and those held out.

    python benchmarks/black_box/peers.py run FILE.npz RUN ...        numbers of runs, each with a new game and a new seed of every cell
    python benchmarks/black_box/peers.py many FILE.npz RUN ...       the same for cells of 3,200 and 8,000 calls
    python benchmarks/black_box/peers.py report FILE.npz             write results/black_box_peers.md

Families, sizes and seeds are those of ``coverage.py``. A method that refuses a number of calls, or that is not installed, has no value there.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import coverage  # sets the number of threads
import numpy as np

from exactshap.games import OracleGame
from exactshap.solvers import solve

RESULTS = coverage.RESULTS.with_name("black_box_peers.md")
OURS = "exactshap"
MANY_CALLS = ((14, 3200), (20, 8000), (40, 8000))
EXACT = 1e-12  # of the squared largest value: a squared error below is none
WANTED = 0.8  # of the best peer's squared error


class Called:
    """The game as shapiq calls it."""

    def __init__(self, game):
        self.n_players, self._value = game.n_players, game.value

    def __call__(self, coalitions):
        return self._value(np.atleast_2d(np.asarray(coalitions, bool)))


def ours(game, calls, seed):
    return solve(OracleGame(game.value, game.n_players), budget=calls, random_state=seed, method="regression").values


def of_shapiq(name, **settings):
    def estimate(game, calls, seed):
        from shapiq import approximator

        found = getattr(approximator, name)(game.n_players, random_state=seed, **settings).approximate(calls, Called(game))
        return np.array([found.dict_values.get((j,), 0.0) for j in range(game.n_players)])

    return estimate


METHODS = {
    OURS: ours,
    "KernelSHAP, paired": of_shapiq("KernelSHAP", pairing_trick=True),
    "leverage": of_shapiq("LeverageSHAP"),
    "kADD-SHAP": of_shapiq("kADDSHAP", pairing_trick=True),
    "RegressionMSR": of_shapiq("RegressionMSR", index="SV"),
    "ProxySHAP": of_shapiq("ProxySHAP", index="SV", max_order=1, adjustment=True),
    "OddSHAP": of_shapiq("OddSHAP"),
    "permutation": of_shapiq("PermutationSamplingSV"),
}


def attempt(method, game, calls, seed):
    try:
        return method(game, calls, seed)
    except Exception as refusal:  # a peer's refusal is a result
        print(f"{calls} calls of {game.n_players} players: {type(refusal).__name__}: {refusal}")
        return None


def run(sizes, file, runs):
    warnings.simplefilter("ignore")
    families, enumerated = coverage.families_of("every")
    found = dict(np.load(file)) if Path(file).exists() else {}
    for k in runs:
        for name, d, calls in coverage.cells(families, enumerated, sizes):
            if (game := coverage.new_game(families, name, d, calls, k)) is None:
                continue
            exact = game.exact()
            for method, estimate in METHODS.items():
                values = attempt(estimate, game, calls, k)
                if values is not None:
                    found[f"{name}/{d}/{calls}/{method}/{k}"] = np.mean((values - exact) ** 2) / np.max(exact**2)
        np.savez_compressed(file, **found)
        print(k, flush=True)


def compared(stored):
    """Return {(family, players, calls): (error of ours, best peer, ratio, least, largest, n_runs)}, and how many cells are exact."""
    by_cell, found, n_exact = {}, {}, 0
    for key, square in stored.items():
        name, d, calls, method, k = key.split("/")
        if np.isfinite(square):  # values of a game may all be 0
            by_cell.setdefault((name, int(d), int(calls)), {}).setdefault(method, {})[k] = float(square)
    for cell in sorted(by_cell):
        methods = by_cell[cell]
        mine = methods.pop(OURS)
        own = np.mean(list(mine.values()))
        if own < EXACT:
            n_exact += 1
            continue
        means = {peer: np.mean(list(runs.values())) for peer, runs in methods.items() if runs.keys() == mine.keys()}
        best = min(means, key=means.__getitem__)
        floor = max(means[best], EXACT)
        singles = [mine[k] / max(methods[best][k], EXACT) for k in mine]
        found[cell] = np.sqrt(own), best, own / floor, min(singles), max(singles), len(mine)
    return found, n_exact


def counts(cells):
    ratios = np.array([cell[2] for cell in cells.values()])
    if not len(ratios):
        return "- | - | - | -"
    return f"{len(ratios)} | {np.sum(ratios <= WANTED)} | {np.sum(ratios <= 1)} | {np.median(ratios):.2f}"


def report(file):
    found, n_exact = compared(np.load(file))
    tuned = {cell: row for cell, row in found.items() if cell[0] in coverage.TUNED}
    held_out = {cell: row for cell, row in found.items() if cell not in tuned}
    lines = [
        "# Squared errors next to shapiq's",
        "",
        f"{len({name for name, _, _ in found})} families of games (`benchmarks/black_box/peers.py`), the same number of calls for all. A run has a new game and a",
        "new seed, the same for all methods: ours, and of shapiq 1.8 paired KernelSHAP, leverage scores, kADD-SHAP, RegressionMSR, ProxySHAP,",
        "OddSHAP and permutations. A cell is a family, a number of players and a number of calls; the best peer of each is picked after its runs.",
        f"{n_exact} cells with errors below a millionth of the largest value are left out.",
        "",
        "<!-- by size -->",
        "",
        f"| | | held out: cells | at most {WANTED} | at most 1 | median | tuned on: cells | at most {WANTED} | at most 1 | median |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for d, calls in sorted({cell[1:] for cell in found}):
        parts = [{cell: row for cell, row in part.items() if cell[1:] == (d, calls)} for part in (held_out, tuned)]
        lines.append(f"| {d} players | {calls} calls | {counts(parts[0])} | {counts(parts[1])} |")
    lines += [f"| all | | {counts(held_out)} | {counts(tuned)} |", "", "<!-- by cell -->", ""]
    lines += [
        "`error`: root mean square of ours, in units of the largest value. In round brackets the least and the largest ratio of a run."
    ]
    for title, cells in (("Held out", held_out), ("Tuned on", tuned)):
        lines += [
            "",
            f"## {title}",
            "",
            "| game | players | calls | runs | error | our squared error / best peer's | best peer |",
        ]
        lines.append("|---|--:|--:|--:|--:|--:|---|")
        for (name, d, calls), (error, best, ratio, low, high, n) in cells.items():
            lines.append(f"| {name} | {d} | {calls} | {n} | {error:.2g} | {ratio:.2g} ({low:.2g} to {high:.2g}) | {best} |")
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "report":
        report(sys.argv[2])
    else:
        run({"run": coverage.SIZES, "many": MANY_CALLS}[sys.argv[1]], sys.argv[2], map(int, sys.argv[3:]))
