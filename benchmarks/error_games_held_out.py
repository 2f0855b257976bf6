"""Families of games that no constant of the standard errors was tuned on; see ``error_games`` for what a family is."""

from __future__ import annotations

import numpy as np
from error_games import KnownGame, blocks, boxes, local, row_pair


def uniform_pair(rng, d):
    return rng.uniform(-1.0, 1.0, size=d), rng.uniform(-1.0, 1.0, size=d)


def weighted_vote(rng, d):
    """Whether columns above zero, with weights of 1 to 4, reach half of all weights: discontinuous in every column."""
    weights = rng.integers(1, 5, size=d)
    values = 1.0 * (np.arange(weights.sum() + 1) >= weights.sum() / 2)

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, sums=[(values, weights * (x > 0), weights * (z > 0))])

    return game


def sigmoid(rng, d):
    """A logistic function of a sum over all columns, the columns rounded to halves."""
    weights = rng.integers(-3, 4, size=d)
    low = -6 * np.abs(weights).sum()
    values = 1.0 / (1.0 + np.exp(-np.arange(low, 1 - low) / (1.5 * np.sqrt(d))))

    def game(run):
        x, z = (np.clip(np.rint(2 * row), -6, 6) for row in row_pair(run, d))
        return KnownGame(d, sums=[(values, weights * x + 6 * np.abs(weights), weights * z + 6 * np.abs(weights))])

    return game


def boosted_trees(rng, d):
    """Gradient boosting fitted to noisy data of a nonlinear function."""
    from sklearn.ensemble import GradientBoostingRegressor

    X = rng.uniform(-1.0, 1.0, size=(600, d))
    y = (
        2 * np.sin(3 * X[:, 0] * X[:, 1])
        + 4 * X[:, 2] ** 2
        + X[:, 3] * (X[:, 4] > 0)
        + X @ rng.normal(size=d)
        + rng.normal(size=600)
    )
    model = GradientBoostingRegressor(n_estimators=60, max_depth=4, random_state=0).fit(X, y)
    found = [_leaf_boxes(tree.tree_, d) for tree in model.estimators_[:, 0]]
    low, high, leaf = (np.concatenate(part) for part in zip(*found, strict=True))

    def game(run):
        return KnownGame(d, [boxes(low, high, 0.1 * leaf, *uniform_pair(run, d))])

    return game


def _leaf_boxes(tree, d):
    stack, leaves = [(0, np.full(d, -np.inf), np.full(d, np.inf))], []
    while stack:
        node, low, high = stack.pop()
        if tree.children_left[node] < 0:
            leaves.append((low, high, tree.value[node, 0, 0]))
            continue
        left, right = high.copy(), low.copy()
        left[tree.feature[node]] = right[tree.feature[node]] = tree.threshold[node]
        stack += [(tree.children_left[node], low, left), (tree.children_right[node], right, high)]
    return tuple(np.array(part) for part in zip(*leaves, strict=True))


def rules(rng, d):
    """A linear part and rules of three to six conditions, each met by one corner of its columns."""
    linear = rng.laplace(size=d)
    parts = [(rng.permutation(d)[:k], rng.random(k) < 0.5, 3.0 * rng.normal()) for k in (3, 4, 5, 6) for _ in range(2)]

    def game(run):
        x, z = uniform_pair(run, d)
        met = [local(lambda r, s=s, h=h: h * ((r > 0) == s).all(axis=1), J, x, z) for J, s, h in parts]
        return KnownGame(d, [], met + [local(lambda r, w=linear[j]: w * r[:, 0], (j,), x, z) for j in range(d)])

    return game


def lognormal_claims(rng, d):
    """Products of one to three columns with lognormal factors and heavy coefficients, some a hundred times the others."""
    parts = [(rng.permutation(d)[: rng.integers(1, 4)], np.exp(1.5 * rng.normal()) * rng.choice([-1, 1])) for _ in range(2 * d)]

    def game(run):
        x, z = (np.exp(0.8 * row) for row in row_pair(run, d))
        return KnownGame(d, [], [local(lambda r, w=w: w * r.prod(axis=1), J, x, z) for J, w in parts])

    return game


def exclusive_or(rng, d):
    """Exclusive ors of two, four and five binary columns, with magnitudes of their own."""
    parts = [(block, rng.uniform(0.5, 1.5)) for k in (2, 4, 5) for block in blocks(rng, d, k, max(1, d // (2 * k)))]

    def game(run):
        x, z = (row > 0.2 for row in row_pair(run, d))
        return KnownGame(d, [], [local(lambda r, w=w: w * (r.sum(axis=1) % 2), J, x, z) for J, w in parts])

    return game


def additive_jumps(rng, d):
    """A sum of step functions of one column each, between four and eight steps."""
    parts = [(np.sort(rng.uniform(-1, 1, size=k)), np.append(0.0, rng.laplace(size=k))) for k in rng.integers(4, 9, size=d)]

    def game(run):
        x, z = uniform_pair(run, d)
        return KnownGame(
            d, [], [local(lambda r, t=t, v=v: v[np.searchsorted(t, r[:, 0])], (j,), x, z) for j, (t, v) in enumerate(parts)]
        )

    return game


def cosine_features(rng, d):
    """Forty cosines of sums over all columns."""
    w, phase, c = rng.normal(size=(40, d)) * 1.5 / np.sqrt(d), rng.uniform(0, 2 * np.pi, size=40), rng.laplace(size=40)

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, [(c * np.exp(1j * phase), np.exp(1j * w * x), np.exp(1j * w * z))])

    return game


def rectified_network(rng, d):
    """Two layers of rectified units, each network of nine columns."""
    parts = [
        (J, rng.normal(size=(len(J), 6)), rng.normal(size=6), rng.normal(size=(6, 4)), rng.normal(size=4))
        for J in blocks(rng, d, min(9, d), max(2, d // 3))
    ]

    def game(run):
        x, z = uniform_pair(run, d)
        return KnownGame(
            d,
            [],
            [
                local(lambda r, u=u, t=t, v=v, h=h: np.maximum(np.maximum(r @ u + t, 0) @ v, 0) @ h, J, x, z)
                for J, u, t, v, h in parts
            ],
        )

    return game


def block_medians(rng, d):
    """Medians of blocks of seven columns and ranges of blocks of five."""
    middle, wide = (
        [(J, rng.normal()) for J in blocks(rng, d, 7, max(2, d // 4))],
        [(J, rng.normal()) for J in blocks(rng, d, 5, max(2, d // 4))],
    )

    def game(run):
        x, z = row_pair(run, d)
        tables = [local(lambda r, h=h: h * np.median(r, axis=1), J, x, z) for J, h in middle]
        return KnownGame(d, [], tables + [local(lambda r, h=h: h * np.ptp(r, axis=1), J, x, z) for J, h in wide])

    return game


def rare_joint(rng, d):
    """A smooth additive part, and two bonuses that need seven columns together."""
    chosen, curve = [rng.permutation(d)[:7] for _ in range(2)], rng.normal(size=d)

    def game(run):
        x, z = row_pair(run, d)
        inside = np.array([np.isin(np.arange(d), J) for J in chosen]).astype(float)
        alone = [local(lambda r, w=curve[j]: w * np.tanh(r[:, 0]), (j,), x, z) for j in range(d)]
        return KnownGame(d, [(np.array([2.0, -3.0]), np.ones((2, d)), 1.0 - inside)], alone)

    return game


def gated_linear(rng, d):
    """Linear functions of four columns, each switched on by the sign of a fifth."""
    parts = [(rng.permutation(d)[:5], rng.laplace(size=4)) for _ in range(d)]

    def game(run):
        x, z = uniform_pair(run, d)
        return KnownGame(d, [], [local(lambda r, w=w: (r[:, 4] > 0.2) * (r[:, :4] @ w), J, x, z) for J, w in parts])

    return game


def long_product(rng, d):
    """A product over all columns: interactions of every order."""
    slope, sign = rng.uniform(0.1, 1.0, size=d) / np.sqrt(d), rng.choice([-1.0, 1.0], size=(2, d))

    def game(run):
        x, z = uniform_pair(run, d)
        return KnownGame(d, [(np.array([1.0, 0.7]), 1.0 + 3 * sign * slope * x, 1.0 + 3 * sign * slope * z)])

    return game


HELD_OUT = {
    "weighted vote": weighted_vote,
    "sigmoid of all": sigmoid,
    "boosted trees": boosted_trees,
    "rules": rules,
    "lognormal claims": lognormal_claims,
    "exclusive or": exclusive_or,
    "additive jumps": additive_jumps,
    "cosine features": cosine_features,
    "rectified network": rectified_network,
    "medians, ranges": block_medians,
    "rare joint": rare_joint,
    "gated linear": gated_linear,
    "long product": long_product,
}
