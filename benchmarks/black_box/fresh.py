"""Twelve families of games that nobody had looked at before they were run.

No constant was chosen by these games; two rules were changed after cells of them were lost (8 players and 120 calls, stairs of 20 players).
"""

from __future__ import annotations

import numpy as np
from coverage import OfSum, Table

SUMMED = ("staircase", "cap", "topics", "shares")  # whose values are known with 40 players, too


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
    "forest": forest,
    "classes": network_of_classes,
    "neighbours": neighbours,
    "attention": attention,
    "negations": negations,
    "chambers": two_chambers,
    "drawdown": drawdown,
    "alarms": alarms,
    "staircase": staircase,
    "cap": cap,
    "shares": shares,
    "topics": topics,
}
