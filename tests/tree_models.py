"""Small fitted tree models of every library, awkward ones first; and the path-dependent game by its recursive definition."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd

from exactshap import explain
from exactshap.trees import convert
from oracles import subsets
from tolerances import assert_close
from trees_by_rule import goes_left


def data(seed=0, n=160):
    """Five columns with missing values, ties, repeated values and an interaction; a target; classes."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 5)), 2)
    X[:, 1] += 0.5 * X[:, 0]
    y = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.1 * rng.normal(size=n)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.12] = np.nan
    holes[:, 4] = X[:, 4]
    return X, holes, y


def mixed_frame(seed=0, n=200):
    """Numeric, text, integer and ordered categories, with missing ones, in a pandas frame; and a target that uses them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "city": pd.Categorical(rng.choice(list("uvwxyz"), n)),
            "b": rng.normal(size=n),
            "kind": pd.Categorical(rng.choice([5, 7, 11], n)),
        }
    )
    y = frame.a + frame.city.cat.codes % 3 + frame.kind.cat.codes * frame.b
    frame.loc[::7, "city"] = None
    frame.loc[::5, "a"] = np.nan
    return frame, y.to_numpy()


def own_value(trees, row, S, output=0):
    """v(S) by the definition: follow x at splits on S, average by cover elsewhere, evenly below empty nodes. In fractions."""
    total = Fraction(float(trees.constant[output]))
    stack = [(int(root), Fraction(1)) for root in trees.tree_start[:-1]]
    while stack:
        q, weight = stack.pop()
        j = int(trees.feature[q])
        if j < 0:
            total += weight * Fraction(float(trees.value[q, output]))
            continue
        left, right = int(trees.left[q]), int(trees.right[q])
        if j in S:
            stack.append((left if goes_left(trees, q, row[j]) else right, weight))
        else:
            whole = Fraction(float(trees.cover[q]))
            shares = [Fraction(float(trees.cover[child])) / whole if whole else Fraction(1, 2) for child in (left, right)]
            stack += [(child, weight * share) for child, share in zip((left, right), shares, strict=True)]
    return total


def brute_shapley(trees, row, d, output=0, players=None):
    """Shapley values of the path-dependent game from all coalitions of columns, or of players that hold columns."""
    players = [(j,) for j in range(d)] if players is None else players
    v = {S: own_value(trees, row, {j for p in S for j in players[p]}, output) for S in subsets(range(d))}
    weight = [Fraction(1, d * math.comb(d - 1, s)) for s in range(d)]
    return np.array([float(sum(weight[len(S)] * (v[S | {j}] - v[S]) for S in v if j not in S)) for j in range(d)])


def check_path_dependent(model, rows, coded=None):
    """Compare values of rows with brute force; ``coded`` are the rows as the trees see them, where that is otherwise."""
    trees, values = convert(model).pick().trees, explain(model, rows).values
    for found, row in zip(values, rows if coded is None else coded, strict=True):
        scale = np.abs(trees.value).max() * trees.n_trees
        assert_close(found, brute_shapley(trees, row, len(row)), scale, trees.n_nodes, len(row))
