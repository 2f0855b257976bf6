"""More families that the constants of the standard errors were tuned on: rougher and rarer than those of ``error_games``."""

from __future__ import annotations

import numpy as np
from error_games import KnownGame, blocks, boxes, local, row_pair


def count_bands(rng, d):
    """A step function of how many columns are above a threshold: jumps at three counts."""
    signs, cuts = rng.choice([-1, 1], size=d), np.sort(rng.choice(np.arange(1, d), size=3, replace=False))
    heights = np.append(0.0, rng.normal(size=3).cumsum())
    values = heights[np.searchsorted(cuts, np.arange(d + 1), side="right")]

    def game(run):
        x, z = (signs * row > -0.3 for row in row_pair(run, d))
        return KnownGame(d, sums=[(values, 1 * x, 1 * z)])

    return game


def veto(rng, d):
    """A weighted vote in which two columns weigh so much that hardly anything is decided without them."""
    weights = rng.integers(1, 6, size=d)
    weights[rng.permutation(d)[:2]] += d // 2
    values = 1.0 * (np.arange(weights.sum() + 1) >= 0.6 * weights.sum())

    def game(run):
        x, z = (row > -0.2 for row in row_pair(run, d))
        return KnownGame(d, sums=[(values, weights * x, weights * z)])

    return game


def random_tables(rng, d):
    """Random tables of six binary columns: no smoothness at all."""
    parts = [(J, rng.normal(size=64)) for J in blocks(rng, d, 6, max(2, d // 4))]

    def game(run):
        x, z = (row > 0 for row in row_pair(run, d))
        return KnownGame(d, [], [local(lambda r, v=v: v[(r * 1) @ (1 << np.arange(r.shape[1]))], J, x, z) for J, v in parts])

    return game


def quadratic(rng, d):
    """A quadratic form of all columns: pairs and nothing else."""
    form = rng.normal(size=(d, d)) / d

    def game(run):
        x, z = row_pair(run, d)
        pairs = [(i, j) for i in range(d) for j in range(i)]
        return KnownGame(d, [], [local(lambda r, w=form[J]: w * r.prod(axis=1), J, x, z) for J in pairs])

    return game


def weak_triples(rng, d):
    """Small products of three columns upon large main effects."""
    linear, parts = 3 * rng.normal(size=d), [(rng.permutation(d)[:3], 0.1 * rng.normal()) for _ in range(2 * d)]

    def game(run):
        x, z = row_pair(run, d)
        triples = [local(lambda r, c=c: c * r.prod(axis=1), J, x, z) for J, c in parts]
        return KnownGame(d, [], triples + [local(lambda r, c=linear[j]: c * r[:, 0], (j,), x, z) for j in range(d)])

    return game


def few_deep_trees(rng, d):
    """Eight random trees of depth six that split on a third of the columns most of the time."""
    strong = rng.permutation(d)[: max(4, d // 3)]
    parts = [_deep_boxes(rng, d, strong) for _ in range(8)]
    low, high = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    leaf = rng.normal(size=len(low))

    def game(run):
        return KnownGame(d, [boxes(low, high, leaf, *row_pair(run, d))])

    return game


def _deep_boxes(rng, d, strong):
    leaves = [(np.full(d, -np.inf), np.full(d, np.inf))]
    for _ in range(6):
        split = []
        for low, high in leaves:
            j, t = rng.choice(strong) if rng.random() < 0.7 else rng.integers(d), rng.uniform(-1.2, 1.2)
            left, right = high.copy(), low.copy()
            left[j], right[j] = min(t, high[j]), max(t, low[j])
            split += [(low, left), (right, high)]
        leaves = split
    return np.array([low for low, _ in leaves]), np.array([high for _, high in leaves])


def prototypes(rng, d):
    """Exponentials of the distances to eight prototypes in all columns."""
    c, points = rng.normal(size=8), rng.normal(size=(8, d))

    def game(run):
        return KnownGame(d, [(c, *(np.exp(-np.abs(row - points) / np.sqrt(d)) for row in row_pair(run, d)))])

    return game


def heavy_steps(rng, d):
    """Thresholds of sums of four columns, of heights with heavy tails."""
    parts = [(J, rng.normal(size=len(J)), rng.standard_t(2)) for J in blocks(rng, d, 4, d)]

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, [], [local(lambda r, w=w, h=h: h * (r @ w > 0.5), J, x, z) for J, w, h in parts])

    return game


def two_houses(rng, d):
    """A vote that must pass in two houses: by weights of 1 to 3 of all columns, and by the heads of a third of them."""
    weights, heads = rng.integers(1, 4, size=d), np.isin(np.arange(d), rng.permutation(d)[: max(3, d // 3)]).astype(int)
    m = weights.sum() + 1
    passed = np.arange((heads.sum() + 1) * m)
    values = 1.0 * ((passed % m >= 0.45 * m) & (passed // m >= 0.5 * heads.sum()))

    def game(run):
        x, z = (row > -0.1 for row in row_pair(run, d))
        return KnownGame(d, sums=[(values, (weights + m * heads) * x, (weights + m * heads) * z)])

    return game


def hyperbolic_cosine(rng, d):
    """The hyperbolic cosine of a sum over all columns, and the exponential of another: interactions of every order."""
    w = rng.normal(size=(2, d)) * np.array([[1.0], [0.6]]) / np.sqrt(d)
    slopes, c = np.stack([w[0], -w[0], w[1]]), np.array([0.5, 0.5, 1.0])

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, [(c, np.exp(slopes * x), np.exp(slopes * z))])

    return game


def any_alarm(rng, d):
    """The chance that any of d independent alarms goes off: a product over all columns."""
    shift = rng.normal(size=d) - 1.5

    def game(run):
        x, z = row_pair(run, d)
        quiet = [1.0 / (1.0 + np.exp(row + shift)) for row in (x, z)]
        return KnownGame(d, [(np.array([-1.0]), quiet[0][None], quiet[1][None])])

    return game


def ratios(rng, d):
    """Ratios of three columns with coefficients of heavy tails: few columns at a time, smooth."""
    parts = [(rng.permutation(d)[:3], rng.standard_t(2)) for _ in range(2 * d)]

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(
            d, [], [local(lambda r, h=h: h * r[:, 0] * np.exp(0.5 * r[:, 1]) / (1 + r[:, 2] ** 2), J, x, z) for J, h in parts]
        )

    return game


def bonus_of_six(rng, d):
    """Trends of single columns, and bonuses that need six columns each."""
    chosen, height, trend = [rng.permutation(d)[:6] for _ in range(3)], rng.normal(size=3), rng.normal(size=d)

    def game(run):
        x, z = row_pair(run, d)
        inside = np.array([np.isin(np.arange(d), J) for J in chosen]).astype(float)
        alone = [local(lambda r, w=trend[j]: w * r[:, 0], (j,), x, z) for j in range(d)]
        return KnownGame(d, [(height, np.ones((3, d)), 1.0 - inside)], alone)

    return game


def quota_vote(rng, d):
    """A vote with weights of 1 to 3 and a quota of its own, of columns above cuts of their own: 0 or 1."""
    weights, cuts = rng.integers(1, 4, size=d), 0.6 * rng.normal(size=d)
    values = 1.0 * (np.arange(weights.sum() + 1) >= rng.uniform(0.35, 0.65) * weights.sum())

    def game(run):
        x, z = (weights * (row > cuts) for row in row_pair(run, d))
        return KnownGame(d, sums=[(values, x, z)])

    return game


def tiers(rng, d):
    """Four tiers of a score with weights from 1 to 9: three answers rarely seen next to each other."""
    weights = rng.integers(1, 10, size=d)
    score = np.arange(weights.sum() + 1) / weights.sum()
    values = 1.0 * np.searchsorted(np.sort(rng.uniform(0.25, 0.75, size=3)), score)

    def game(run):
        x, z = (weights * (row > 0) for row in row_pair(run, d))
        return KnownGame(d, sums=[(values, x, z)])

    return game


def majority_of_committees(rng, d):
    """The majority of three committees, each the majority of its own columns: a jump of jumps."""
    committees = np.array_split(rng.permutation(d), 3)
    places = np.array([(max(len(part) for part in committees) + 1) ** k for k in range(3)])
    weights = sum(place * np.isin(np.arange(d), part) for place, part in zip(places, committees, strict=True))
    counts = np.arange(places[1] ** 3)[:, None] // places % places[1]
    values = 1.0 * ((2 * counts > [len(part) for part in committees]).sum(axis=1) >= 2)

    def game(run):
        x, z = (weights * (row > 0) for row in row_pair(run, d))
        return KnownGame(d, sums=[(values, x, z)])

    return game


def rare_alarm(rng, d):
    """Whether at least two of all columns are beyond a far cut, and a vote of the others does not overrule them: rarely 1."""
    loud = np.isin(np.arange(d), rng.permutation(d)[: d // 2])
    weights = np.where(loud, 1, d)
    heads = np.arange(d * d + 1)
    values = 1.0 * ((heads % d >= 2) & (heads // d <= (d - d // 2) / 2))

    def game(run):
        x, z = (weights * (row > np.where(loud, 0.8, 0.0)) for row in row_pair(run, d))
        return KnownGame(d, sums=[(values, x, z)])

    return game


def hinges(rng, d):
    """Kinks of sums over eight columns at most: continuous, with interactions of every order."""
    parts = [(J, rng.normal(size=len(J)), rng.normal(), rng.normal()) for J in blocks(rng, d, min(8, d), max(2, d // 4))]

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(
            d, [], [local(lambda r, w=w, t=t, h=h: h * np.maximum(r @ w - t, 0.0), J, x, z) for J, w, t, h in parts]
        )

    return game


def veto_of_most(rng, d):
    """Trends of single columns, and two penalties unless all but one, or all but two, of eight columns are those explained."""
    chosen, height, trend = [rng.permutation(d)[: min(d, 8) - k] for k in (1, 2)], rng.normal(size=2), rng.normal(size=d)

    def game(run):
        x, z = row_pair(run, d)
        inside = np.array([np.isin(np.arange(d), J) for J in chosen]).astype(float)
        alone = [local(lambda r, w=trend[j]: w * np.abs(r[:, 0]), (j,), x, z) for j in range(d)]
        return KnownGame(d, [(2 * height, 1.0 - inside, np.ones((2, d)))], alone)

    return game


DEVELOPMENT = {
    "count bands": count_bands,
    "veto": veto,
    "random tables": random_tables,
    "quadratic": quadratic,
    "weak triples": weak_triples,
    "few deep trees": few_deep_trees,
    "prototypes": prototypes,
    "heavy steps": heavy_steps,
    "two houses": two_houses,
    "hyperbolic cosine": hyperbolic_cosine,
    "any alarm": any_alarm,
    "ratios": ratios,
    "bonus of six": bonus_of_six,
    "quota vote": quota_vote,
    "tiers": tiers,
    "majority of committees": majority_of_committees,
    "rare alarm": rare_alarm,
    "hinges": hinges,
    "veto of most": veto_of_most,
}
