"""More families that the constants of the standard errors were tuned on: rougher and rarer than those of ``error_games``."""

from __future__ import annotations

import numpy as np
from error_games import KnownGame, blocks, boxes, fourier, local, row_pair


def count_bands(rng, d):
    """A step function of how many columns are above a threshold: jumps at three counts."""
    signs, cuts = rng.choice([-1, 1], size=d), np.sort(rng.choice(np.arange(1, d), size=3, replace=False))
    heights = np.append(0.0, rng.normal(size=3).cumsum())
    values = heights[np.searchsorted(cuts, np.arange(d + 1), side="right")]

    def game(run):
        x, z = (signs * row > -0.3 for row in row_pair(run, d))
        return KnownGame(d, [fourier(values, 1 * x, 1 * z)])

    return game


def veto(rng, d):
    """A weighted vote in which two columns weigh so much that hardly anything is decided without them."""
    weights = rng.integers(1, 6, size=d)
    weights[rng.permutation(d)[:2]] += d // 2
    values = 1.0 * (np.arange(weights.sum() + 1) >= 0.6 * weights.sum())

    def game(run):
        x, z = (row > -0.2 for row in row_pair(run, d))
        return KnownGame(d, [fourier(values, weights * x, weights * z)])

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


DEVELOPMENT = {
    "count bands": count_bands,
    "veto": veto,
    "random tables": random_tables,
    "quadratic": quadratic,
    "weak triples": weak_triples,
    "few deep trees": few_deep_trees,
    "prototypes": prototypes,
    "heavy steps": heavy_steps,
}
