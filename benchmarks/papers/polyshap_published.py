"""Run the estimators of PolySHAP's public table at its own budgets and settings, on every game whose values or data are public.

    python benchmarks/papers/polyshap_published.py [--games Housing,ViT9] [--columns "2-PolySHAP|MSR"] [--instances 30]

The table's runs draw coalitions of every size alike, without replacement; the paired ones add the complement of each, also for the
permutations, MSR and SVARM. Forests are fitted here on the public data sets, on the authors' own rows and with their settings: shuffled with
their seed, the first 80 % for training, the first thirty test rows explained. The values of the image and language games are those that the
authors publish (FFmgll/PolySHAP, ``data/precomputed_games``, MIT; as ``game_*.npz``, one table of 2^d values a row). Every run is appended to
``results/polyshap_published.csv``; the script goes on where it stopped.

The published runs take one seed, hence one draw of coalitions, for all thirty instances; these take one for each. ``--draws 20`` runs every cell that
differs by more than a factor of 2 with twenty draws that all instances share, into ``results/polyshap_draws.json``.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import pathlib
import time
from functools import partial

import numpy as np
import polyshap as own
from paper_data import say_missing
from record_sources import printed

RUNS = pathlib.Path(__file__).parent / "results" / "polyshap_published.csv"
DRAWS = RUNS.with_name("polyshap_draws.json")
NAMES = {"ResNet18": "ResNet14"}  # the printed name of a game: ours
PAIRED, UNPAIRED = "polyshap table", "polyshap table, unpaired"


# ------------------------------------------------------------------------------------------------------------ estimators
def sample_single(d, n, rng):
    """Return coalitions and inverse rates: sizes 1 to d - 1 alike, small and large ones enumerated, without replacement."""
    sizes = np.arange(1, d)
    counts = np.array([math.comb(d, int(s)) for s in sizes], float)
    open_, rows, rates, left = np.ones(d - 1, bool), [], [], int(min(n, counts.sum()))
    while open_.any():
        share = open_ / open_.sum()
        full = np.flatnonzero(open_ & (left * share >= counts * (1 - 1e-9)))
        if not len(full):
            break
        rows += [np.isin(np.arange(d), players) for players in itertools.combinations(range(d), int(sizes[full[0]]))]
        left -= int(counts[full[0]])
        open_[full[0]] = False
    rates, drawn = [1.0] * len(rows), {}
    while left > len(drawn) and open_.any():
        k = rng.choice(d - 1, p=share)
        mask = np.isin(np.arange(d), rng.choice(d, int(sizes[k]), replace=False))
        drawn.setdefault(mask.tobytes(), (mask, counts[k] / share[k]))
    rows += [mask for mask, _ in drawn.values()]
    return np.array(rows), np.array(rates + [rate / len(drawn) for _, rate in drawn.values()])


def terms(d, order, part, rng):
    """Return all sets of up to ``order`` players, of the largest only ``part``: the first ones of players in random order."""
    sets = [players for size in range(1, order) for players in itertools.combinations(range(d), size)]
    names = rng.permutation(d) if part < 1.0 else np.arange(d)
    largest = itertools.combinations(range(d), order)
    return sets + [tuple(names[list(players)]) for players in itertools.islice(largest, int(part * math.comb(d, order)))]


def polynomial(game, budget, seed, order, part=1.0, paired=True):
    """Return k-PolySHAP as defined: phi minimises sum_S mu(S) (v(S) - sum_{T in S} phi_T)^2, then phi_i = sum_{T with i} phi_T / |T|."""
    d, rng = game.n_players, np.random.default_rng(seed)
    sets = terms(d, order, part, rng)
    if len(sets) > budget:
        return None
    if paired:
        masks, rates = own.sample_pairs(d, (budget - 2) // 2, rng)
        masks, rates = np.concatenate([masks, ~masks]), np.concatenate([rates, rates])
    else:
        masks, rates = sample_single(d, budget - 2, rng)
    empty, full = (float(game(np.full(d, present))[0]) for present in (False, True))
    root = np.sqrt(own.kernel(d, masks.sum(axis=1)) * rates)[:, None]
    rows = masks.astype(float)
    columns = np.stack([rows[:, list(players)].prod(axis=1) for players in sets], axis=1)
    share = (full - empty) / len(sets)
    target = root[:, 0] * (game(masks) - empty - columns.sum(axis=1) * share)
    z = own.shortest_solution(root * (columns - columns.mean(axis=1, keepdims=True)), target)
    phi = np.zeros(d)
    for players, c in zip(sets, z - z.mean() + share, strict=True):
        phi[list(players)] += c / len(players)
    return phi


def paired_permutations(game, budget, seed):
    """Return mean marginal contributions along random orders and the same orders backwards."""
    d = game.n_players
    orders = np.random.default_rng(seed).permuted(np.tile(np.arange(d), ((budget - 2) // (2 * (d - 1)), 1)), axis=1)
    if not len(orders):
        return None
    orders = np.concatenate([orders, orders[:, ::-1]])
    joined = orders.argsort(axis=1)[:, None, :] < np.arange(d + 1)[None, :, None]  # (order, step, player)
    steps = np.diff(game(joined.reshape(-1, d)).reshape(len(orders), d + 1), axis=1)
    return np.bincount(orders.ravel(), steps.ravel(), minlength=d) / len(orders)


def paired_msr(game, budget, seed):
    """Return MSR (unbiased KernelSHAP) of pairs: the term that RegressionMSR adds for its residuals, of the game itself."""
    d = game.n_players
    masks, rates = own.sample_pairs(d, (budget - 2) // 2, np.random.default_rng(seed))
    ends = game(np.array([[False] * d, [True] * d]))
    return own.by_pairs(masks, rates, game(masks) - game(~masks), ends)


def svarm(game, budget, seed):
    return own.from_shapiq("SVARM", pairing_trick=True, sampling_weights=np.ones(game.n_players + 1))(game, budget, seed)


ESTIMATORS = {
    PAIRED: {
        "1-PolySHAP (Leverage SHAP)": partial(own.polyshap, order=1),
        "2-PolySHAP": partial(polynomial, order=2),
        "3-PolySHAP, 50 %": partial(polynomial, order=3, part=0.5),
        "3-PolySHAP": partial(own.polyshap, order=3),
        "4-PolySHAP": partial(polynomial, order=4),
        "RegressionMSR": own.regression_msr,
        "permutation": paired_permutations,
        "SVARM": svarm,
        "MSR": paired_msr,
    },
    UNPAIRED: {f"{order}-PolySHAP": partial(polynomial, order=order, paired=False) for order in (1, 2, 3)},
}


# ------------------------------------------------------------------------------------------------------------------ runs
def run(names, columns, instances):
    """Run every printed cell that is not stored yet, instance after instance."""
    done = {(one["table"], one["row"], one["column"], int(one["instance"])) for one in own.load_runs(RUNS)}
    new_file = not RUNS.exists()
    say_missing([own.FILES[NAMES.get(name, name)] for name in names or () if NAMES.get(name, name) in own.FILES])
    with RUNS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if new_file:
            writer.writerow(["table", "row", "column", "instance", "mse", "seconds"])
        for table, (row, column) in ((name, cell) for name in ESTIMATORS for cell in printed(name)):
            name, budget = row.removesuffix(" calls").split(", ")
            if (names and name not in names) or (columns and column not in columns) or not own.available(NAMES.get(name, name)):
                continue
            for instance in range(instances):
                if (table, row, column, instance) not in done:
                    game = own.games(NAMES.get(name, name), 30, own.published_split)[instance]
                    started = time.process_time()
                    values = own.attempt(ESTIMATORS[table][column], game, int(budget), instance)
                    error = math.nan if values is None else float(np.mean((values - game.exact) ** 2))
                    writer.writerow([table, row, column, instance, f"{error:.6e}", f"{time.process_time() - started:.3f}"])
                    file.flush()
            print(table, row, column, flush=True)


def run_draws(n):
    """Store the mean errors of n draws of coalitions, each shared by all instances, of the cells that differ."""
    found = json.loads(DRAWS.read_text(encoding="utf-8")) if DRAWS.exists() else {}
    errors = {}
    for one in own.load_runs(RUNS):
        errors.setdefault((one["table"], one["row"], one["column"]), []).append(float(one["mse"]))
    for table in ESTIMATORS:
        for (row, column), theirs in printed(table).items():
            ours, key = np.mean(errors.get((table, row, column), [theirs])), f"{table}/{row}/{column}"
            if key in found or not (ours > 2 * theirs or ours < theirs / 2):
                continue
            name, budget = row.removesuffix(" calls").split(", ")
            instances = own.games(NAMES.get(name, name), 30, own.published_split)
            found[key] = [
                float(
                    np.mean(
                        [np.mean((ESTIMATORS[table][column](game, int(budget), seed) - game.exact) ** 2) for game in instances]
                    )
                )
                for seed in range(n)
            ]
            print(key, np.quantile(found[key], [0, 0.5, 1]), theirs, flush=True)
            DRAWS.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", default="", help="names, separated by commas; all without")
    parser.add_argument("--columns", default="")
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument(
        "--draws", type=int, default=0, help="draws of coalitions that all instances share, of cells that differ"
    )
    chosen = parser.parse_args()
    if chosen.draws:
        raise SystemExit(run_draws(chosen.draws))
    run(
        chosen.games.split(",") if chosen.games else None,
        chosen.columns.split("|") if chosen.columns else None,
        chosen.instances,
    )
