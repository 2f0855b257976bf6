"""Pairs of players: mean squared error of order 2 against calls, next to ProxySHAP and SVARM-IQ of shapiq 1.8, on the held-out tables.

python benchmarks/black_box/interactions.py 6      six rows of each game; writes results/black_box_interactions.md (half an hour)

The pairs of k-SII of order 2 are those of SII. Four calls a player are fewer than there are pairs; up to 200 calls each row is run with ten
seeds. The table was looked at three times while calls for pairs came to be placed in stages, which were tuned on the games of
development.
"""

from __future__ import annotations

import functools
import itertools
import sys
from pathlib import Path

import numpy as np
from games import HELD_OUT, instances
from polyshap import attempt

from exactshap.games import OracleGame
from exactshap.solvers import solve

RESULTS = Path(__file__).resolve().parents[1] / "results" / "black_box_interactions.md"
INDICES = {"k-sii": "k-SII", "fsii": "FSII"}
CALLS = (200, 1000, 3200, 8000)  # and four a player, as far as there are coalitions
MOST_PLAYERS = 16
FEW_CALLS, SEEDS = 200, 10


def pairs(game, index, **settings):
    found = solve(OracleGame(game, game.n_players), index, order=2, **settings)
    return found.values[-(game.n_players * (game.n_players - 1) // 2) :]


def ours(game, index, calls, seed):
    return pairs(game, index, budget=calls, random_state=seed)


def of_shapiq(name, settings):
    def estimate(game, index, calls, seed):
        from shapiq import approximator

        method = getattr(approximator, name)(game.n_players, max_order=2, index=INDICES[index], random_state=seed, **settings)
        found = method.approximate(calls, game).dict_values
        return np.array([found.get(pair, 0.0) for pair in itertools.combinations(range(game.n_players), 2)])

    return estimate


METHODS = {
    "exactshap auto": ours,
    "ProxySHAP": of_shapiq("ProxySHAP", {"adjustment": True}),
    "ProxySHAP, no adjustment": of_shapiq("ProxySHAP", {}),
    "SVARM-IQ": of_shapiq("SVARMIQ", {}),
}


def asked(estimate, index, game, calls, seed):
    return estimate(game, index, calls, seed)


def main(n_rows):
    lines = ["# Interactions of two players, next to the published estimators", "", *__doc__.strip().splitlines(), ""]
    lines += ["| game | index | calls | " + " | ".join(METHODS) + " | best peer / ours |", "|---" * (len(METHODS) + 4) + "|"]
    ratios = []
    for name, (d, _) in HELD_OUT.items():
        if d > MOST_PLAYERS:
            continue
        rows = instances(name)[:n_rows]
        for index in INDICES:
            exact = [pairs(game, index, method="enumeration") for game in rows]
            for calls in [4 * d, *(some for some in CALLS if some < 2**d)]:
                cell, seeds = {}, [100 * s for s in range(SEEDS if calls <= FEW_CALLS else 1)]
                for method, estimate in METHODS.items():
                    found = [
                        [attempt(functools.partial(asked, estimate, index), game, calls, k + seed) for seed in seeds]
                        for k, game in enumerate(rows)
                    ]
                    if all(values is not None for runs in found for values in runs):
                        cell[method] = np.mean([np.mean((np.array(a) - b) ** 2) for a, b in zip(found, exact, strict=True)])
                best = min((error, method) for method, error in cell.items() if method != "exactshap auto")
                ratios.append(best[0] / cell["exactshap auto"])
                texts = [f"{cell[method]:.2e}" if method in cell else "-" for method in METHODS]
                print(name, index, calls, *texts, f"{ratios[-1]:.3g}", flush=True)
                lines.append(f"| {name} | {index} | {calls} | " + " | ".join(texts) + f" | {ratios[-1]:.3g} ({best[1]}) |")
    told = f"{len(ratios)} cells: ours at or below the best peer on {sum(r >= 1 for r in ratios)}, at most 0.8 of it on {sum(r >= 1.25 for r in ratios)}."
    RESULTS.write_text("\n".join([*lines[:2], told, "", *lines[2:]]) + "\n", encoding="utf-8")
    print(told)


if __name__ == "__main__":
    main(int(sys.argv[1]))
