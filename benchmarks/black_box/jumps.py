"""Games that jump or bend, which nobody had looked at when the networks of ``estimator="auto"`` were chosen: errors next to the process alone.

    python benchmarks/black_box/jumps.py        write results/black_box_jumps.md

Eight games a cell. Values are known by enumeration, or by recursion for functions of one sum.
"""

from __future__ import annotations

import warnings

import coverage  # sets the number of threads
import numpy as np
from coverage import OfSum, Table

from exactshap.games import OracleGame
from exactshap.solvers import solve

RESULTS = coverage.RESULTS.with_name("black_box_jumps.md")
RUNS = 8
SIZES = ((12, 480), (14, 700), (14, 3200), (20, 2000))


def weights_of(rng, d):
    return rng.integers(1, 25, size=d)


def band(rng, d):
    """Whether a sum lies between two bounds."""
    w = weights_of(rng, d)
    low, high = np.quantile(rng.integers(0, 2, size=(200, d)) @ w, [0.35, 0.8])
    return OfSum(w, lambda s: 1.0 * ((s >= low) & (s <= high)))


def sawtooth(rng, d):
    """What is left of a sum beyond the last whole period."""
    w = weights_of(rng, d)
    period = max(int(w.sum() / 3), 1)
    return OfSum(w, lambda s: (s % period) / period)


def brackets(rng, d):
    """A tax with three rates."""
    w = weights_of(rng, d)
    cuts = np.sort(rng.uniform(0.2, 0.8, size=2)) * w.sum()
    return OfSum(w, lambda s: 0.1 * s + 0.3 * np.maximum(s - cuts[0], 0.0) + 0.4 * np.maximum(s - cuts[1], 0.0))


def states(rng, d):
    """A majority of the weights of states, each decided by a majority of its voters."""
    parts = np.array_split(rng.permutation(d), max(d // 3, 2))
    votes = rng.integers(1, 12, size=len(parts))

    def value(masks):
        won = np.stack([masks[:, part].sum(axis=1) * 2 > len(part) for part in parts], axis=1)
        return 1.0 * (2 * (won @ votes) > votes.sum())

    return Table(value, d)


def medians(rng, d):
    """The median of the scores of a coalition and one outsider."""
    scores = rng.normal(size=d)

    def value(masks):
        return np.array([np.median(np.append(scores[mask], 0.0)) for mask in masks])

    return Table(value, d)


def capacities(rng, d):
    """What two stores of bounded capacity take in."""
    first, second = rng.exponential(size=(2, d))
    return Table(lambda m: np.minimum(m @ first, 0.4 * first.sum()) + np.minimum(m @ second, 0.6 * second.sum()), d)


def signs(rng, d):
    """A sum of eight units that are on or off."""
    w, b, out = rng.normal(size=(d, 8)), rng.normal(size=8), rng.normal(size=8)
    return Table(lambda m: np.sign((2.0 * m - 1.0) @ w + b) @ out, d)


def swing(rng, d):
    """The larger of two sums, if they are far enough apart."""
    first, second = rng.exponential(size=(2, d))

    def value(masks):
        apart = masks @ (first - second)
        return np.where(np.abs(apart) > 0.5, np.maximum(masks @ first, masks @ second), 0.0)

    return Table(value, d)


FAMILIES = (band, sawtooth, brackets, states, medians, capacities, signs, swing)
SUMMED = (band, sawtooth, brackets)


def squares_and_hits(game, exact, calls, seed, **settings):
    found = solve(OracleGame(game.value, game.n_players), budget=calls, random_state=seed, method="regression", **settings)
    missed = np.abs(found.values - exact)
    covered = np.mean(missed <= 2.0 * found.std_error + coverage.ROUNDING * np.abs(exact).max())
    return np.mean(missed**2) / np.max(exact**2), covered, "networks" in found.method


def cell(family, d, calls):
    rows = []
    for run in range(RUNS):
        game = family(np.random.default_rng([run, d, calls, *family.__name__.encode()]), d)
        exact = game.exact()
        rows.append(
            [*squares_and_hits(game, exact, calls, run), *squares_and_hits(game, exact, calls, run, estimator="process")]
        )
    return np.array(rows, float)


def report():
    warnings.simplefilter("ignore")
    lines = [
        "| game | players | calls | networks | squared error / the process' | covered | by the process |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    whole = []
    for family in FAMILIES:
        for d, calls in SIZES:
            if d > 16 and family not in SUMMED:
                continue
            rows = cell(family, d, calls)
            whole.append(rows)
            used = int(rows[:, 2].sum())
            ratio = rows[:, 0].mean() / rows[:, 3].mean()
            lines.append(
                f"| {family.__name__} | {d} | {calls} | {used} of {RUNS} | {ratio:.2g} | {rows[:, 1].mean():.2f} | {rows[:, 4].mean():.2f} |"
            )
            print(lines[-1], flush=True)
    rows = np.concatenate(whole)
    rows = rows[rows[:, 2] > 0]
    lines.append(f"| where networks count | | | {len(rows)} | | {rows[:, 1].mean():.3f} | {rows[:, 4].mean():.3f} |")
    RESULTS.write_text("\n".join(["# Games that jump or bend", "", "<!-- games -->", "", *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    report()
