"""Mean squared error of black boxes against calls, on games that nothing was tuned on, beside the best published estimators.

    python benchmarks/black_box/run.py --methods ours --instances 3 --seconds 900     append what is missing to results/black_box_games.csv
    python benchmarks/black_box/run.py --methods peers                                the same for the peers
    python benchmarks/black_box/run.py --report                                       write results/black_box_games.md from the file

Methods that are not installed give no value: OddSHAP, ProxySHAP and today's RegressionMSR need shapiq 1.8. Instance k is the game's
k-th row and the seed k. The data folder is EXACTSHAP_DATA.
"""

from __future__ import annotations

import argparse
import csv
import functools
import math
import time
from pathlib import Path

import numpy as np
from games import DEVELOPMENT, GAMES, HELD_OUT, instances
from polyshap import OURS, attempt, from_shapiq, ours, regression_msr, verdicts

FILE = Path(__file__).resolve().parents[1] / "results" / "black_box_games.csv"
FIELDS = ["game", "budget", "method", "instance", "mse", "seconds"]
CALLS = (1000, 3200, 8000)
TARGET = 1.25  # best peer over ours: ours at most 0.8 of theirs


@functools.cache
def of_shapiq(name, index):
    settings = (
        {"index": index, "max_order": 1, "adjustment": True} if name == "ProxySHAP" else {"index": index} if index else {}
    )
    return from_shapiq(name, **settings)


def peer(name, index=None):
    return lambda game, budget, seed: of_shapiq(name, index)(game, budget, seed)


PEERS = {
    "RegressionMSR, XGBoost": regression_msr,
    "RegressionMSR, shapiq": peer("RegressionMSR", "SV"),
    "OddSHAP": peer("OddSHAP"),
    "ProxySHAP": peer("ProxySHAP", "SV"),
}
METHODS = {OURS: ours, **PEERS}


def budgets(d):
    """Return 4 d calls and those above, fewer than there are coalitions."""
    return [4 * d, *(calls for calls in CALLS if calls < 2**d)]


def load():
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def run_missing(names, methods, n_instances, seconds):
    """Append what is not on file, until the time is spent."""
    done = {(r["game"], int(r["budget"]), r["method"], int(r["instance"])) for r in load()}
    end, fresh = time.perf_counter() + seconds, not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(FIELDS)
        for instance in range(n_instances):
            for name in names:
                for budget in budgets(GAMES[name][0]):
                    for method in methods:
                        if (name, budget, method, instance) in done or time.perf_counter() > end:
                            continue
                        game, start = instances(name)[instance], time.process_time()
                        values = attempt(METHODS[method], game, budget, instance)
                        took = time.process_time() - start
                        error = math.nan if values is None else float(np.mean((values - game.exact) ** 2))
                        writer.writerow([name, budget, method, instance, f"{error:.4e}", f"{took:.3f}"])
                        file.flush()


def counts(compared, names):
    """Return how many pairs of game and budget there are, at or below the best peer, and at most 0.8 of it."""
    some = [ratio for (name, _), (_, ratio) in compared.items() if name in names]
    return len(some), sum(ratio >= 1.0 for ratio in some), sum(ratio >= TARGET for ratio in some)


def report():
    runs = [run for run in load() if run["mse"] != "nan"]
    compared = verdicts(runs)
    cells = {}
    for run in runs:
        cells.setdefault((run["game"], int(run["budget"])), {}).setdefault(run["method"], []).append(
            (float(run["mse"]), float(run["seconds"]))
        )
    lines = [
        "# Black boxes: games that were tuned on, and games that were not",
        "",
        *map(str.strip, __doc__.split("\n\n")[2].split("\n")),
    ]
    for title, names in (("Held out", HELD_OUT), ("Development", DEVELOPMENT)):
        n, won, clearly = counts(compared, names)
        told = f"{len(names)} games, {n} pairs of game and calls: `{OURS}` is at or below the best peer on {won}, at most 0.8 of it on {clearly}."
        lines += [
            "",
            f"## {title}",
            "",
            told,
            "",
            "Mean squared error over n rows; processor seconds of ours a row in brackets.",
            "",
        ]
        lines += [
            "| game | d | calls | n | " + " | ".join(METHODS) + " | best peer / ours |",
            "|---" * (len(METHODS) + 5) + "|",
        ]
        for name in names:
            for budget in budgets(GAMES[name][0]):
                cell = cells.get((name, budget), {})
                if OURS not in cell:
                    continue
                texts = [text_of(cell.get(method, []), method == OURS) for method in METHODS]
                best, ratio = compared.get((name, budget), ("", math.nan))
                lines.append(
                    f"| {name} | {GAMES[name][0]} | {budget} | {len(cell[OURS])} | "
                    + " | ".join(texts)
                    + f" | {ratio:.3g} ({best}) |"
                )
    FILE.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(line for line in lines if line.startswith(("##", str(len(HELD_OUT)), str(len(DEVELOPMENT))))))


def text_of(found, timed):
    if not found:
        return "-"
    error, seconds = np.mean(found, axis=0)
    return f"{error:.2e}" + (f" ({seconds:.2g} s)" if timed else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", default="development,held-out")
    parser.add_argument("--methods", default="ours,peers")
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    if asked.report:
        report()
    else:
        names = [
            n for part, some in (("development", DEVELOPMENT), ("held-out", HELD_OUT)) for n in some if part in asked.games
        ]
        methods = [m for m in METHODS if ("ours" if m == OURS else "peers") in asked.methods]
        run_missing(names, methods, asked.instances, asked.seconds)
