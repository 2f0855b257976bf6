"""Twelve families of games that nobody had looked at before their one run: squared error, coverage and width, next to shapiq's estimators.

    python benchmarks/black_box/fresh.py run 6 FILE.npz [METHOD ...]    a new game and a new seed each of 6 runs; all methods, or those named
    python benchmarks/black_box/fresh.py report FILE.npz                write results/black_box_fresh.md

No constant was chosen by these games; two rules were changed after cells of them were lost (8 players and 120 calls, stairs of 20 players). A method that refuses a number of calls, or that is not installed, has no value there.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import warnings
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from coverage import OfSum, Table

from exactshap.games import OracleGame
from exactshap.solvers import solve

RESULTS = Path(__file__).parents[1] / "results" / "black_box_fresh.md"
OURS = "exactshap"
CALLS = {8: (32, 120), 12: (48, 480), 14: (56, 700, 3200), 20: (80, 1000, 8000), 40: (160, 2000, 8000)}
SUMMED = ("staircase", "cap", "topics", "shares")  # whose values are known with 40 players, too
RESAMPLED = 1000


# --- functions of columns: a row against the mean of a background


def of_function(predict, row, background):
    def value(masks):
        return np.mean([predict(np.where(masks, row, other)) for other in background], axis=0)

    return value


def forest(rng, d):
    from sklearn.ensemble import RandomForestRegressor

    X = rng.normal(size=(400, d))
    y = np.sin(2 * X[:, 0] * X[:, 1]) + np.abs(X[:, 2]) * X[:, 3] + X[:, 4:] @ rng.exponential(0.3, d - 4)
    model = RandomForestRegressor(30, min_samples_leaf=4, random_state=int(rng.integers(1000))).fit(X, y)
    return Table(of_function(model.predict, rng.normal(size=d), X[:3]), d)


def network_of_classes(rng, d):
    from sklearn.neural_network import MLPClassifier

    X = rng.normal(size=(500, d))
    labels = (X[:, 0] * X[:, 1] + np.maximum(X[:, 2], X[:, 3]) + 0.3 * X[:, 4:].sum(axis=1) > 0.5).astype(int)
    model = MLPClassifier((24, 12), max_iter=80, random_state=int(rng.integers(1000))).fit(X, labels)
    return Table(of_function(lambda rows: model.predict_proba(rows)[:, 1], rng.normal(size=d), X[:3]), d)


def neighbours(rng, d):
    X = rng.normal(size=(150, d))
    y = np.sign(X[:, 0] + X[:, 1] * X[:, 2])

    def predict(rows):
        apart = (rows**2).sum(axis=1)[:, None] - 2 * rows @ X.T + (X**2).sum(axis=1)
        return y[np.argpartition(apart, 7, axis=1)[:, :7]].mean(axis=1)

    return Table(of_function(predict, rng.normal(size=d), X[:1]), d)


# --- texts: players are words


def attention(rng, d):
    """Words that are kept are weighed by a softmax of their fit to a question, twice."""
    keys, values = rng.normal(size=(2, d, 6))
    first, second = 2.0 * rng.normal(size=6), rng.normal(size=6)

    def value(masks):
        weights = np.where(masks, np.exp(keys @ first), 0.0) + 1e-9
        inner = np.tanh(weights @ values / weights.sum(axis=1)[:, None])
        return 1 / (1 + np.exp(-2 * inner @ second))

    return Table(value, d)


def negations(rng, d):
    """Log-odds of words, some of which turn the next one around, as a probability."""
    weights, turns = rng.normal(size=d), rng.random(d - 1) < 0.35

    def value(masks):
        turned = np.ones(masks.shape)
        turned[:, 1:] -= 1.7 * (masks[:, :-1] & turns)
        return 1 / (1 + np.exp(-1.5 * (masks * turned) @ weights))

    return Table(value, d)


# --- votes, portfolios, rules


def two_chambers(rng, d):
    seats = rng.integers(1, 9, size=(2, d))
    least = rng.uniform(0.4, 0.65, size=2) * seats.sum(axis=1)
    return Table(lambda masks: 1.0 * np.all(masks @ seats.T >= least, axis=1), d)


def drawdown(rng, d):
    """The largest fall of the summed gains of the assets that are held."""
    gains = rng.normal(0.02, 1.0, size=(60, 1)) * rng.uniform(0, 1, d) + rng.standard_t(3, size=(60, d))

    def value(masks):
        path = np.cumsum(masks.astype(float) @ gains.T, axis=1)
        return (np.maximum.accumulate(np.maximum(path, 0), axis=1) - path).max(axis=1)

    return Table(value, d)


def alarms(rng, d):
    """A linear score, and alarms that four to six players raise together."""
    weights = rng.normal(size=d)
    teams = [rng.permutation(d)[: rng.integers(4, 7)] for _ in range(4)]
    heights = rng.normal(scale=4.0, size=4)
    return Table(
        lambda masks: masks @ weights + sum(h * masks[:, t].all(axis=1) for h, t in zip(heights, teams, strict=True)), d
    )


# --- known with any number of players


def staircase(rng, d):
    weights, step = rng.integers(1, 12, d), int(rng.integers(9, 20))
    return OfSum(weights, lambda s: np.floor_divide(s, step))


def cap(rng, d):
    weights = rng.integers(1, 20, d)
    least = rng.uniform(0.3, 0.8) * weights.sum()
    return OfSum(weights, lambda s: np.minimum(s, least) ** 1.5)


def shares(rng, d):
    """What a sum has of itself and a rival."""
    weights, rival = rng.integers(1, 15, d), rng.uniform(5, 60)
    return OfSum(weights, lambda s: s / (s + rival))


class topics:
    """The weight of topics that some player covers, of which each one that covers it has an equal share."""

    def __init__(self, rng, d):
        self.n_players = d
        self.covers = rng.random((60, d)) < rng.uniform(0.03, 0.25, size=(60, 1))
        self.weights = rng.exponential(size=60)

    def value(self, masks):
        return ((masks.astype(float) @ self.covers.T) > 0) @ self.weights

    def exact(self):
        return (self.covers / np.maximum(self.covers.sum(axis=1), 1)[:, None]).T @ self.weights


FAMILIES = {
    "forest": (forest, (8, 12)),
    "classes": (network_of_classes, (8, 12, 14)),
    "neighbours": (neighbours, (8, 12, 14)),
    "attention": (attention, (8, 14, 20)),
    "negations": (negations, (12, 14, 20)),
    "chambers": (two_chambers, (8, 14, 20)),
    "drawdown": (drawdown, (8, 12, 14)),
    "alarms": (alarms, (12, 14, 20)),
    "staircase": (staircase, (12, 20, 40)),
    "cap": (cap, (8, 20, 40)),
    "shares": (shares, (12, 20, 40)),
    "topics": (topics, (14, 20, 40)),
}


def cells():
    for name, (_, players) in FAMILIES.items():
        for d in players:
            yield from ((name, d, calls) for calls in CALLS[d])


class Called:
    """The game as shapiq calls it."""

    def __init__(self, game):
        self.n_players, self._value = game.n_players, game.value

    def __call__(self, coalitions):
        return self._value(np.atleast_2d(np.asarray(coalitions, bool)))


def of_shapiq(name, **settings):
    def estimate(game, calls, seed):
        from shapiq import approximator

        found = getattr(approximator, name)(game.n_players, random_state=seed, **settings).approximate(calls, Called(game))
        return np.array([found.dict_values.get((j,), 0.0) for j in range(game.n_players)])

    return estimate


PEERS = {
    "KernelSHAP, paired": of_shapiq("KernelSHAP", pairing_trick=True),
    "leverage": of_shapiq("LeverageSHAP"),
    "kADD-SHAP": of_shapiq("kADDSHAP", pairing_trick=True),
    "RegressionMSR": of_shapiq("RegressionMSR", index="SV"),
    "ProxySHAP": of_shapiq("ProxySHAP", index="SV", max_order=1, adjustment=True),
    "OddSHAP": of_shapiq("OddSHAP"),
    "permutation": of_shapiq("PermutationSamplingSV"),
}


def attempt(method, *asked):
    try:
        return method(*asked)
    except Exception as refusal:  # a peer's refusal is a result
        print(f"{asked[1]} calls of {asked[0].n_players} players: {type(refusal).__name__}: {refusal}")
        return None


def run(n_runs, file, methods):
    warnings.simplefilter("ignore")
    found = dict(np.load(file)) if Path(file).exists() else {}
    for name, d, calls in cells():
        for k in range(n_runs):
            game = FAMILIES[name][0](np.random.default_rng([k, d, *name.encode()]), d)
            exact, cell = game.exact(), f"{name}/{d}/{calls}/{k}"
            if not methods or OURS in methods:
                answer = solve(OracleGame(game.value, d), budget=calls, random_state=k, method="regression")
                found[f"{cell}/{OURS}"] = np.array([answer.values - exact, answer.std_error, exact])
            for peer, method in PEERS.items():
                if not methods or peer in methods:
                    values = attempt(method, game, calls, k)
                    if values is not None:
                        found[f"{cell}/{peer}"] = np.array([values - exact, np.zeros(d), exact])
        np.savez_compressed(file, **found)
        print(name, d, calls, flush=True)


def squares(runs):
    """Return the mean squared error of each run, in units of the largest value."""
    return np.array([np.mean(errors**2) / np.max(exact**2) for errors, _, exact in runs])


def range_of_ratio(ours, theirs):
    """Return the middle 90 % of the ratio of mean squared errors over draws of the runs."""
    chosen = np.random.default_rng(0).integers(len(ours), size=(RESAMPLED, len(ours)))
    return np.quantile(theirs[chosen].mean(axis=1) / np.maximum(ours[chosen].mean(axis=1), 1e-300), (0.05, 0.95))


def report(file):
    stored = dict(np.load(file))
    lines, ratios, covered_by, widths = [], [], {}, []
    for name, d, calls in cells():
        of = {
            method: runs
            for method in (OURS, *PEERS)
            if (
                runs := [
                    v for key, v in stored.items() if key.startswith(f"{name}/{d}/{calls}/") and key.endswith(f"/{method}")
                ]
            )
        }
        if OURS not in of:
            continue
        ours = squares(of[OURS])
        hits = np.array([np.abs(errors) <= 2.0 * error + 1e-12 * np.abs(exact).max() for errors, error, exact in of[OURS]])
        spread = np.mean([np.mean(error**2) / np.max(exact**2) for _, error, exact in of[OURS]])
        wide = math.sqrt(spread / max(ours.mean(), 1e-300))
        is_exact = ours.mean() < 1e-20
        means = {peer: squares(runs).mean() for peer, runs in of.items() if peer != OURS and len(runs) == len(of[OURS])}
        best = min(means, key=means.__getitem__, default=None)
        text = "no peer has a value"
        if best is not None and not is_exact:
            low, high = range_of_ratio(ours, squares(of[best]))
            ratios.append(means[best] / ours.mean())
            text = f"{ratios[-1]:.2g} ({low:.2g} to {high:.2g}) | {best}"
        elif best is not None:
            text = f"exact | {best}"
        if not is_exact:
            covered_by.setdefault(name, []).append(hits.mean())
            widths.append(wide)
        lines.append(
            f"| {name} | {d} | {calls} | {math.sqrt(ours.mean()):.2g} | {text} | {hits.mean():.3f} | {hits.mean(axis=0).min():.2f} | "
            f"{'' if is_exact else f'{wide:.2f}'} |"
        )
    n_runs = 1 + max(int(key.split("/")[3]) for key in stored)
    ratios = np.array(ratios)
    family = {name: np.mean(cells_of) for name, cells_of in covered_by.items()}
    every = list(itertools.chain.from_iterable(covered_by.values()))
    head = [
        "# Twelve families held out",
        "",
        f"Games that nothing was tuned on, run once, {n_runs} runs a cell with a new game and a new seed each "
        "(`benchmarks/black_box/fresh.py`; shapiq 1.8 is the peers').",
        "`error`: root mean square error in units of the largest value. `best peer`: its mean squared error over ours, with the middle",
        "90 % over draws of the runs. `covered`: share of values within two standard errors, and the least of a player's place. `width`: root mean",
        "square of the standard errors over that of the errors.",
        "",
        f"At or below the best peer's squared error in {np.sum(ratios >= 1)} of {len(ratios)} cells, at most 0.8 of it in {np.sum(ratios >= 1.25)}.",
        f"Coverage by family {min(family.values()):.3f} ({min(family, key=family.get)}) to {max(family.values()):.3f}; "
        f"cells at .92 and more: {np.sum(np.array(every) >= 0.92)} of {len(every)}; median width {np.median(widths):.2f}.",
        "",
        "| game | players | calls | error | best peer's squared error over ours | best peer | covered | least player | width |",
        "|---|--:|--:|--:|--:|---|--:|--:|--:|",
    ]
    RESULTS.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    print("\n".join(head[2:11]))


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(int(sys.argv[2]), sys.argv[3], sys.argv[4:])
    else:
        report(sys.argv[2])
