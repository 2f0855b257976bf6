"""Squared errors and coverage of two standard errors of sampled Shapley values on games of many kinds, of one source tree or two.

    python benchmarks/black_box/coverage.py run held-out 6 FILE.npz               a new game and a new seed each of 6 runs; single-threaded
    python benchmarks/black_box/coverage.py run held-out 6 FILE.npz polynomial    an estimator other than "auto", at four sizes
    python benchmarks/black_box/coverage.py compare BEFORE.npz AFTER.npz
    python benchmarks/black_box/coverage.py report FILE.npz [polynomial]          write results/black_box_coverage.md, by family and by size

``tuned`` families were looked at while the formula of the errors was chosen, ``held-out`` ones were not, nor those of ``fresh.py``;
``every`` are all of them. Values are known by enumeration up to 16 players, by recursion for games of a sum of weights, by structure for those of ``error_games``.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import warnings
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import error_games as structured
import error_games_held_out as structured_held_out
import numpy as np

from exactshap.games import OracleGame
from exactshap.solvers import solve

DATA = Path(os.environ.get("EXACTSHAP_DATA", "data"))
RESULTS = Path(__file__).parents[1] / "results" / "black_box_coverage.md"
ROUNDING = 1e-9  # of the largest value: errors below are none
BLOCK = 2048  # coalitions of portfolios that are valued at once


def coalitions(d):
    return (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)


class Table:
    """A game of at most 16 players by the values of all coalitions."""

    def __init__(self, function, d):
        self.n_players = d
        self.values = np.asarray(function(coalitions(d)), float)

    def value(self, masks):
        return self.values[masks @ (1 << np.arange(self.n_players))]

    def exact(self):
        d, codes = self.n_players, np.arange(2**self.n_players)
        sizes = coalitions(d).sum(axis=1)
        weights = np.array([1.0 / (d * math.comb(d - 1, s)) for s in range(d)])
        without = [codes[(codes >> j & 1) == 0] for j in range(d)]
        return np.array(
            [weights[sizes[some]] @ (self.values[some | 1 << j] - self.values[some]) for j, some in enumerate(without)]
        )


class OfSum:
    """A function of the integer weight of a coalition."""

    def __init__(self, weights, function):
        self.weights, self.function, self.n_players = np.asarray(weights), function, len(weights)

    def value(self, masks):
        return self.function(masks @ self.weights).astype(float)

    def exact(self):
        """Count coalitions by size and weight, and those without a player by taking it out again."""
        d, total = self.n_players, int(self.weights.sum())
        every = np.zeros((d + 1, total + 1))
        every[0, 0] = 1.0
        for w in self.weights:
            for s in range(d - 1, -1, -1):
                every[s + 1, w:] += every[s, : total + 1 - w]
        values = self.function(np.arange(total + 1)) * 1.0
        return np.array([self._of_player(every, values, w) for w in self.weights])

    def _of_player(self, every, values, w):
        d, last = self.n_players, every.shape[1] - w
        without = every.copy()
        for s in range(1, d + 1):
            without[s, w:] = every[s, w:] - without[s - 1, :last]
        gains = values[w:] - values[:last]
        return sum(without[s, :last] @ gains / (d * math.comb(d - 1, s)) for s in range(d))


# --- games of a sum of weights


def quota(rng, d):
    weights = rng.integers(1, 10, d)
    least = rng.uniform(0.4, 0.7) * weights.sum()
    return OfSum(weights, lambda s: s >= least)


def two_thresholds(rng, d):
    weights = rng.integers(1, 10, d)
    low, high = np.sort(rng.uniform(0.2, 0.8, 2)) * weights.sum()
    return OfSum(weights, lambda s: 1.0 * (s >= low) + 0.5 * (s >= high))


def kink(rng, d):
    weights = rng.integers(1, 30, d)
    start = rng.uniform(0.3, 0.7) * weights.sum()
    return OfSum(weights, lambda s: np.maximum(s - start, 0) / weights.sum())


def estate(rng, d):
    """Bankruptcy: what is left when all others have been paid."""
    weights = rng.integers(1, 30, d)
    left, total = rng.uniform(0.35, 0.7) * weights.sum(), weights.sum()
    return OfSum(weights, lambda s: np.maximum(left - (total - s), 0) / total)


def ripple(rng, d):
    weights = rng.integers(1, 12, d)
    turns, total = rng.uniform(4, 9), weights.sum()
    return OfSum(weights, lambda s: np.sin(turns * s / total * 3) + s / total)


def logistic(rng, d):
    weights = rng.integers(0, 12, d)
    return OfSum(weights, lambda s: 1 / (1 + np.exp(-30 * (s / weights.sum() - 0.5))))


# --- portfolios


def returns(rng, d, n=400):
    common = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
    return (common + rng.standard_t(4, size=(n, d)) * rng.uniform(0.3, 1.5, d)) * rng.uniform(0.2, 2, d)


def of_sorted(found, reduce):
    def value(masks):
        blocks = np.array_split(masks, max(1, len(masks) // BLOCK))
        return np.concatenate([-reduce(np.sort(found @ block.T.astype(float), axis=0)) for block in blocks])

    return value


def value_at_risk(rng, d):
    return Table(of_sorted(returns(rng, d), lambda s: s[20]), d)


def shortfall(rng, d):
    return Table(of_sorted(returns(rng, d), lambda s: s[:40].mean(axis=0)), d)


def variance_of(masks, covariance):
    return np.maximum(((masks.astype(float) @ covariance) * masks).sum(axis=1), 0.0)


def volatility(rng, d):
    covariance = np.cov(returns(rng, d).T)
    return Table(lambda masks: np.sqrt(variance_of(masks, covariance)), d)


def sharpe(rng, d):
    covariance = np.cov(returns(rng, d).T)
    mean = rng.normal(0.3, 0.3, d)
    return Table(lambda masks: (masks @ mean) / np.sqrt(1.0 + variance_of(masks, covariance)), d)


# --- rare effects, networks of links, networks of units


def rare_and(rng, d):
    linear = rng.normal(size=d)
    chosen, heights = [rng.permutation(d)[:5] for _ in range(3)], 3 * rng.normal(size=3)
    return Table(lambda m: m @ linear + sum(h * m[:, some].all(axis=1) for h, some in zip(heights, chosen, strict=True)), d)


def links(rng, d):
    """Whether two towns of a ring with short cuts are joined."""
    n = max(5, d // 2)
    edges = [(i, (i + 1) % n) for i in range(n)] + [tuple(rng.choice(n, 2, replace=False)) for _ in range(d - n)]

    def joined(masks):
        label = np.tile(np.arange(n), (len(masks), 1))
        for _ in range(n):
            for k, (a, b) in enumerate(edges):
                lower = np.minimum(label[:, a], label[:, b])
                label[masks[:, k], a] = label[masks[:, k], b] = lower[masks[:, k]]
        return 1.0 * (label[:, 0] == label[:, n // 2])

    return Table(joined, d)


def spanning(rng, d):
    """The cost of joining towns to a source."""
    places = rng.normal(size=(d + 1, 2))
    apart = np.sqrt(((places[:, None] - places) ** 2).sum(axis=-1))

    def cost(masks):
        near, left, total = np.tile(apart[0, 1:], (len(masks), 1)), masks.copy(), np.zeros(len(masks))
        for _ in range(d):
            open_ = np.where(left, near, np.inf)
            nearest = open_.argmin(axis=1)
            step = open_[np.arange(len(masks)), nearest]
            more = np.isfinite(step)
            total += np.where(more, step, 0.0)
            left[np.arange(len(masks)), nearest] = False
            near = np.where(more[:, None], np.minimum(near, apart[1:, 1:][nearest]), near)
        return total

    return Table(cost, d)


def network(rng, d):
    first, shift = rng.normal(size=(d, 30)) / np.sqrt(d) * 2, rng.normal(size=30)
    second, last = rng.normal(size=(30, 10)) / 5, rng.normal(size=10)
    x, z = rng.normal(size=(2, d))

    def value(masks):
        units = np.maximum(np.where(masks, x, z) @ first + shift, 0.0) @ second.clip(-1, 1)
        return 1.0 / (1.0 + np.exp(-units @ last))

    return Table(value, d)


@functools.lru_cache
def digits_tables():
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    model = MLPClassifier((32,), max_iter=40, random_state=0).fit(X[300:] / 16, y[300:])
    row, column = np.divmod(np.arange(64), 8)
    players, mean = row // 2 * 4 + column // 2, X.mean(axis=0)
    return [_digit(model, x, players, mean) for x in X[:4]]


def _digit(model, x, players, mean):
    label = model.predict(x[None] / 16)[0]
    parts = [np.where(part[:, players], x, mean) / 16 for part in np.array_split(coalitions(16), 16)]
    return np.concatenate([model.predict_proba(part)[:, label] for part in parts])


def digits(rng, d):
    table = digits_tables()[int(rng.integers(4))]
    return Table(lambda _: table, 16)


def stored(name):
    def game(rng, d):
        tables = np.load(DATA / f"game_{name}.npz")["values"]
        table = tables[int(rng.integers(10))]
        return Table(lambda _: table, int(np.log2(len(table))))

    return game


def known(build):
    return lambda rng, d: build(rng, d)(rng)


TUNED = {
    "quota": quota,
    "kink": kink,
    "ripple": ripple,
    "var": value_at_risk,
    "vol": volatility,
    "rareand": rare_and,
    "digits": digits,
    "resnet": stored("resnet14"),
    "steps5": known(structured.steps),
    "trees": known(structured.random_trees),
    "tanh": known(structured.tanh_units),
    "parity3": known(structured.parity_of_three),
    "max": known(structured.largest),
    "bumps": known(structured.bumps),
    "sparse": known(structured.sparse_products),
}
HELD_OUT = {
    "estate": estate,
    "thresholds": two_thresholds,
    "logistic": logistic,
    "sharpe": sharpe,
    "shortfall": shortfall,
    "links": links,
    "spanning": spanning,
    "network": network,
    "vit9": stored("vit9"),
    "vote": known(structured_held_out.weighted_vote),
    "cosine": known(structured_held_out.cosine_features),
    "rectified": known(structured_held_out.rectified_network),
    "boosted": known(structured_held_out.boosted_trees),
    "gated": known(structured_held_out.gated_linear),
    "xor": known(structured_held_out.exclusive_or),
    "rules": known(structured_held_out.rules),
    "longprod": known(structured_held_out.long_product),
    "rarejoint": known(structured_held_out.rare_joint),
}
ENUMERATED = ("var", "vol", "rareand", "digits", "resnet", "sharpe", "shortfall", "links", "spanning", "network", "vit9")
STORED = {"digits": 16, "resnet": 14, "vit9": 9}  # tables of so many players
# players, calls
SIZES = (
    (8, 32),
    (8, 120),
    (12, 48),
    (12, 480),
    (14, 56),
    (14, 168),
    (14, 700),
    (20, 1000),
    (40, 160),
    (40, 2000),
)
FEW_SIZES = ((8, 120), (14, 168), (14, 1600), (20, 1000))  # of estimators other than "auto"


def families_of(name):
    """Return families by name, and those of them whose values are known by enumeration."""
    import fresh

    chosen = {"tuned": TUNED, "held-out": HELD_OUT, "every": {**TUNED, **HELD_OUT, **fresh.FAMILIES}}[name]
    return chosen, {*ENUMERATED, *set(fresh.FAMILIES) - set(fresh.SUMMED)}


def cells(names, enumerated, sizes=SIZES):
    """Return (name, players, calls), smallest first; games that are enumerated have at most 16 players."""
    some = [(name, STORED.get(name, d), calls) for d, calls in sizes for name in names if name not in STORED or d == 14]
    return [(name, d, calls) for name, d, calls in some if calls < 2**d and not (d > 16 and name in enumerated)]


def new_game(families, name, d, calls, k):
    """Return the game of run ``k`` of a cell, or None for families of more players."""
    try:
        return families[name](np.random.default_rng([k, d, calls, *name.encode()]), d)
    except (ValueError, IndexError) as error:
        print(f"{name} of {d} players: {error}")
        return None


def sizes_of(estimator):
    return SIZES if estimator == "auto" else FEW_SIZES


def run(chosen, n_runs, file, estimator="auto"):
    warnings.simplefilter("ignore")
    families, enumerated = families_of(chosen)
    found = {}
    for name, d, calls in cells(families, enumerated, sizes_of(estimator)):
        for k in range(n_runs):
            if (game := new_game(families, name, d, calls, k)) is None:
                break
            settings = {"budget": calls, "random_state": k, "method": "regression", "estimator": estimator}
            answer, exact = solve(OracleGame(game.value, d), **settings), game.exact()
            found[f"{name}/{d}/{calls}/{k}"] = np.array([answer.values - exact, answer.std_error, exact])
        np.savez_compressed(file, **found)


def summary(stored_runs, cell):
    """Return the mean squared error relative to the largest value, coverage and how wide errors are."""
    errors, told, exact = zip(*[runs for name, runs in stored_runs.items() if name.rsplit("/", 1)[0] == cell], strict=True)
    largest = np.array([np.abs(values).max() for values in exact])[:, None]
    squares = np.mean((np.array(errors) / largest) ** 2)
    wide = np.sqrt(np.mean((np.array(told) / largest) ** 2) / max(squares, 1e-300))
    return squares, np.mean(np.abs(errors) <= 2.0 * np.array(told)), wide


def compare(before, after):
    before, after = dict(np.load(before)), dict(np.load(after))
    print("| game | players | calls | squared error, before / after | coverage | width of errors |")
    print("|---|--:|--:|--:|--:|--:|")
    for cell in dict.fromkeys(name.rsplit("/", 1)[0] for name in after):
        old, new = summary(before, cell), summary(after, cell)
        numbers = f"{old[0] / new[0]:.2f} | {old[1]:.3f} to {new[1]:.3f} | {old[2]:.2f} to {new[2]:.2f}"
        print(f"| {' | '.join(cell.split('/'))} | {numbers} |")


def covered(runs):
    """Return which values (n_runs, n_players) two standard errors cover."""
    return np.array([np.abs(missed) <= 2.0 * error + ROUNDING * np.abs(exact).max() for missed, error, exact in runs])


def width(runs):
    """Return the root mean square of the standard errors over that of the errors."""
    scales = [np.abs(exact).max() for _, _, exact in runs]
    squares = [np.mean([(run[k] / scale) ** 2 for run, scale in zip(runs, scales, strict=True)]) for k in (0, 1)]
    return np.sqrt(squares[1] / squares[0])


def report(file, estimator="auto"):
    by_family, n_unknown = {}, 0  # runs by players and calls
    for name, runs in np.load(file).items():
        family, d, calls, _ = name.split("/")
        if not np.isfinite(runs[1]).all():
            n_unknown += 1
        elif np.mean(runs[0] ** 2) > (ROUNDING * np.abs(runs[2]).max()) ** 2:  # the rest are exact
            by_family.setdefault(family, {}).setdefault((int(d), int(calls)), []).append(runs)
    n_runs = max(len(runs) for own in by_family.values() for runs in own.values())
    means = {name: np.mean([covered(runs).mean() for runs in own.values()]) for name, own in by_family.items()}
    lines = [
        f"# Coverage of two standard errors, {estimator}",
        "",
        f"{len(means)} families of games, {n_runs} runs a cell at most, each with a new game and a new seed (`benchmarks/black_box/coverage.py`); exact",
        "runs do not count. Families in italics were looked at while the formula of the errors was chosen. `width`: root mean square of the standard",
        "errors over that of the errors, the median of cells. `least player`: the least share of a player's place, over all families of that size.",
        "",
        f"Of {len(means)} families {sum(0.92 <= mean <= 0.995 for mean in means.values())} are covered in 0.92 to 0.995 of values on average; "
        f"mean {np.mean(list(means.values())):.3f}, least {min(means.values()):.3f} ({min(means, key=means.get)})."
        + f" {n_unknown} runs with infinite errors are left out."
        * (n_unknown > 0),
        "",
        "| players | calls | families | covered | least player | least family |",
        "|--:|--:|--:|--:|--:|---|",
    ]
    for d, calls in sizes_of(estimator):
        hits = {name: covered(own[d, calls]) for name, own in by_family.items() if (d, calls) in own}
        places = np.mean([some.mean(axis=0) for some in hits.values()], axis=0)
        least = min(hits, key=lambda name, hits=hits: hits[name].mean())
        numbers = f"{len(hits)} | {places.mean():.3f} | {places.min():.3f} | {least} {hits[least].mean():.2f}"
        lines.append(f"| {d} | {calls} | {numbers} |")
    lines += ["", "| family | cells | covered | least cell: players, calls | width |", "|---|--:|--:|---|--:|"]
    for name in sorted(by_family, key=means.get):
        own, text = by_family[name], f"*{name}*" if name in TUNED else name
        d, calls = min(own, key=lambda cell, own=own: covered(own[cell]).mean())
        least, widths = covered(own[d, calls]).mean(), [width(runs) for runs in own.values()]
        lines.append(f"| {text} | {len(own)} | {means[name]:.3f} | {least:.2f}: {d}, {calls} | {np.median(widths):.2f} |")
    file = RESULTS if estimator == "auto" else RESULTS.with_stem(f"{RESULTS.stem}_{estimator}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    else:
        {"compare": compare, "report": report}[sys.argv[1]](*sys.argv[2:])
