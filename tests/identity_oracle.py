"""Shapley values of any function on rows by the definition: every coalition by hand, every order of arrival."""

import numpy as np

from oracles import shapley, subsets


def by_hand(function, rows, background):
    """Return the interventional Shapley values (n_rows, n_columns) of a function with one output."""
    d = background.shape[1]
    values = np.empty((len(rows), d))
    for i, row in enumerate(rows):
        v = {}
        for S in subsets(range(d)):
            mixed = np.where([j in S for j in range(d)], row, background)
            v[S] = float(np.mean(np.asarray(function(mixed), float)))
        values[i] = [float(value) for value in shapley(v, d)]
    return values
