"""Brute force for additive models: the model's own predictions on rows masked by hand, solved by the textbook definitions."""

import itertools
from fractions import Fraction

import numpy as np

import oracles


def masked_games(predict, X, Z, weights=None, players=None):
    """One game per row of X: {frozenset of players: mean prediction over Z with the columns of the coalition from X}."""
    players = [(j,) for j in range(X.shape[1])] if players is None else players
    weights = np.full(len(Z), 1.0 / len(Z)) if weights is None else np.asarray(weights, float) / np.sum(weights)
    games = [{} for _ in range(len(X))]
    for size in range(len(players) + 1):
        for S in itertools.combinations(range(len(players)), size):
            columns = [j for p in S for j in players[p]]
            for i, game in enumerate(games):
                hybrid = Z.copy()
                for j in columns:
                    if hasattr(hybrid, "iloc"):
                        hybrid[hybrid.columns[j]] = X.iloc[[i] * len(Z), j].set_axis(hybrid.index)
                    else:
                        hybrid[:, j] = X[i, j]
                game[frozenset(S)] = Fraction(float(weights @ np.asarray(predict(hybrid), float)))
    return games


def values_of(games, d, index, order):
    """Values (n_rows, n_sets) of all sets up to the order, by size and then lexicographically."""
    sets = [T for size in range(1, order + 1) for T in itertools.combinations(range(d), size)]
    if index == "fsii":
        fits = [oracles.fsii(game, d, order) for game in games]
        return np.array([[fit[T] for T in sets] for fit in fits])
    return np.array([[float(_value(game, d, T, index, order)) for T in sets] for game in games])


def _value(game, d, T, index, order):
    if index == "k-sii":
        return oracles.k_sii(game, d, T, order)
    if index == "stii":
        return oracles.stii(game, d, T, order)
    rule = {"banzhaf": oracles.banzhaf, "moebius": oracles.moebius, "leave-one-out": oracles.leave_one_out}
    return rule.get(index, oracles.sii)(game, d, T)


def largest(games):
    """The largest magnitude in the games: what the rounding of the values is relative to."""
    return max(abs(float(value)) for game in games for value in game.values())
