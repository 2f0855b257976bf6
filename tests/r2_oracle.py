"""The R2 games by their definition: every coalition, every row, trees walked recursively."""

import itertools

import numpy as np

from exactshap.trees import convert, cover_shares, decisions
from oracles import shapley_of


def tree_values(trees, k, numbers, coalition, player_of_column):
    """f_{k,S}(x_i) of shape (n_rows,): known features follow the row, unknown ones average both sides by cover."""
    shares, left = cover_shares(trees), decisions(trees, numbers)

    def below(q):
        if trees.feature[q] < 0:
            return np.full(len(numbers), trees.value[q, 0])
        a, b = trees.left[q], trees.right[q]
        if player_of_column[trees.feature[q]] in coalition:
            return np.where(left[q] == 1, below(a), below(b))
        return shares[a] * below(a) + shares[b] * below(b)

    return below(trees.tree_start[k])


def coalitions(n_players):
    return [frozenset(S) for size in range(n_players + 1) for S in itertools.combinations(range(n_players), size)]


def r2_rows(model, numbers, y, game="residual", weights=None, player_of_column=None):
    """Per-row shares (n_rows, n_players) of R2 by enumeration, and the R2."""
    ensemble = convert(model).pick("auto")
    trees = ensemble.trees
    weights = np.ones(len(y)) if weights is None else weights
    player_of_column = np.arange(trees.n_features) if player_of_column is None else player_of_column
    n_players = int(max(player_of_column)) + 1
    values = {
        S: [tree_values(trees, k, numbers, S, player_of_column) for k in range(trees.n_trees)] for S in coalitions(n_players)
    }
    full = frozenset(range(n_players))
    constant = trees.constant[0]
    loss = {S: np.zeros(len(y)) for S in values}
    if game == "ensemble":
        loss = {S: weights * (y - constant - sum(values[S])) ** 2 for S in values}
    elif ensemble.boosted and len(np.unique(ensemble.tree_stage)) > 1:
        residual = y - constant
        for k in range(trees.n_trees):
            loss = {S: loss[S] + weights * (residual - values[S][k]) ** 2 for S in values}
            residual = residual - values[full][k]
    else:  # the mean over all orders of the trees, each centred at its value without any feature
        empty = [values[frozenset()][k] for k in range(trees.n_trees)]
        orders = list(itertools.permutations(range(trees.n_trees)))
        for order in orders:
            residual = y - constant - sum(empty)
            for k in order:
                loss = {S: loss[S] + weights * (residual - values[S][k] + empty[k]) ** 2 / len(orders) for S in values}
                residual = residual - values[full][k] + empty[k]
    sst = np.sum(weights * (y - np.average(y, weights=weights)) ** 2)
    prediction = constant + sum(values[full])
    return -shapley_of(lambda S: loss[frozenset(S)], n_players).T / sst, 1.0 - np.sum(weights * (y - prediction) ** 2) / sst
