"""Do the standard errors of sampled interactions hold? Coverage of +-2 standard errors of pairs (k-SII) on games with known values.

    python benchmarks/interaction_errors.py 40    40 runs of each cell; writes results/interaction_errors.md

Each run draws the explained row, the background row and the seed, and compares with all coalitions. The families are those held out of
everything that tuned the errors (``error_games_held_out``). Runs whose pairs are all right to rounding (``exact``, a share of the runs) have
no error to be covered. ``wide`` is the root mean square of the standard errors over that of the errors themselves, the median run.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from error_games_held_out import HELD_OUT

from exactshap.games import OracleGame
from exactshap.solvers import solve

FILE = Path(__file__).parent / "results" / "interaction_errors.md"
CALLS = {8: (64, 128, 200), 14: (200, 700, 2000)}
INDEX = "k_sii"
SEED = 2000  # of the families' parameters
ENOUGH_RUNS = 20  # to judge the worst pair by
ROUNDING = 1e-9  # of the game's largest value: errors below are none
TARGETS = (0.92, 0.995, 0.85)  # coverage from, to; of the worst pair


def one_run(family, d, budget, run):
    """Return which pairs are covered, and how wide their errors are; None if all values are exact."""
    game = family(np.random.default_rng([run, d]))
    exact = solve(OracleGame(game.value, d), INDEX, 2, method="enumeration")
    found = solve(OracleGame(game.value, d), INDEX, 2, method="regression", budget=budget, random_state=run)
    error, told = np.abs(found.values - exact.values)[d:], found.std_error[d:]
    error[error <= ROUNDING * found.scale] = 0.0
    return (error <= 2 * told, float(np.sqrt((told**2).sum() / (error**2).sum()))) if error.any() else None


def cell(name, d, budget, n_runs):
    """Return a line of the table, and what it misses."""
    warnings.simplefilter("ignore")
    family = HELD_OUT[name](np.random.default_rng(SEED + d), d)
    found = [one for one in (one_run(family, d, budget, run) for run in range(n_runs)) if one is not None]
    exact = 1.0 - len(found) / n_runs
    if not found:
        return f"| {name} | {d} | {budget} | {exact:.2f} | - | - | - | exact |", "exact"
    hits, wide = zip(*found, strict=True)
    coverage, worst = np.mean(hits), np.mean(hits, axis=0).min()
    low, high, least = TARGETS
    told = [(coverage < low, "low"), (coverage > high, "high"), (worst < least and len(found) >= ENOUGH_RUNS, "pair")]
    missed = ", ".join(word for is_missed, word in told if is_missed)
    return (
        f"| {name} | {d} | {budget} | {exact:.2f} | {coverage:.3f} | {worst:.3f} | {statistics.median(wide):.3g} | {missed} |",
        missed,
    )


def opening(title, described):
    """Return the first lines of the page: its title, and the commands and words of this module."""
    commands, words = described.split("\n\n")[1:3]
    return [f"# {title}", "", "```", *map(str.strip, commands.splitlines()), "```", "", words.strip(), ""]


def table(n_runs):
    cells = [(name, d, budget) for d, budgets in CALLS.items() for name, budget in itertools.product(HELD_OUT, budgets)]
    with ProcessPoolExecutor(2) as pool:
        lines, missed = zip(*pool.map(cell, *zip(*cells, strict=True), itertools.repeat(n_runs)), strict=True)
    counts = ", ".join(f"{word} {sum(word in each for each in missed)}" for word in ("exact", "low", "high", "pair"))
    low, high, least = TARGETS
    text = [
        *opening("Coverage of two standard errors of pairs", __doc__),
        f"Of {len(cells)} cells of {n_runs} runs: {counts} (coverage below {low} or above {high} on average, a pair below {least}",
        f"where {ENOUGH_RUNS} runs and more are not exact: of fewer the worst of many pairs is low by chance).",
        "Errors are cautious: what few calls have not shown of a pair may still be there, and most games have little of it.",
        "",
        "| family | d | calls | exact | coverage | worst pair | wide | misses |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
        *lines,
    ]
    FILE.write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    table(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
