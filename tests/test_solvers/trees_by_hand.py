"""Random trees and their games by the definition: recursion over the nodes, one row and one coalition at a time."""

import numpy as np

from exactshap.games import OracleGame
from exactshap.trees import RawTree, build
from trees_by_rule import leaf, mean_below, random_raw


def random_trees(seed, *, n_features=5, n_trees=3, depth=4, n_outputs=1, zero_covers=False, less_equal=True):
    """Trees whose paths repeat columns, with missing directions, a categorical split now and then, and a single leaf."""
    generator = np.random.default_rng(seed)
    raw = [random_tree(generator, n_features, depth, n_outputs, zero_covers) for _ in range(n_trees)]
    raw.append(
        RawTree(feature=[-1], threshold=[0.0], left=[-1], right=[-1], value=generator.normal(size=(1, n_outputs)), cover=[9.0])
    )
    constant = generator.normal(size=n_outputs)
    return build(raw, n_features=n_features, constant=constant, less_equal=less_equal, single_precision=False)


def random_tree(generator, n_features, depth, n_outputs=1, zero_covers=False):
    draw = lambda rng: rng.normal()  # noqa: E731
    return random_raw(generator, n_features, depth, n_outputs, draw=draw, zero_covers=0.4 * zero_covers)


def random_rows(seed, n_rows, n_features, missing=0.1):
    generator = np.random.default_rng(seed)
    X = np.where(
        generator.random((n_rows, n_features)) < 0.3,
        generator.integers(0, 3, (n_rows, n_features)),
        generator.normal(size=(n_rows, n_features)),
    )
    X[generator.random(X.shape) < missing] = np.nan
    return X


def assert_same_bits(some, every, rows=slice(None)):
    """Compare a solution of some rows with those rows of another."""
    for name in ("values", "full", "scale"):
        assert np.array_equal(getattr(some, name), getattr(every, name)[rows]), (name, rows)


def game_by_hand(trees, players, x, background=None, weights=None):
    """The game of one row by the definition: no paths, no products, no bits."""

    def value(masks):
        values = np.array([trees.constant + coalition(np.asarray(mask)) for mask in masks])
        return values[:, 0] if trees.n_outputs == 1 else values

    def coalition(mask):
        inside = [column for j in np.flatnonzero(mask) for column in players[j]]
        if background is None:
            return sum(mean_below(trees, root, x, inside) for root in trees.tree_start[:-1])
        w = np.full(len(background), 1 / len(background)) if weights is None else np.asarray(weights) / np.sum(weights)
        hybrids = [np.where(np.isin(np.arange(len(x)), inside), x, z) for z in background]
        return sum(w[m] * trees.value[leaf(trees, k, row)] for m, row in enumerate(hybrids) for k in range(trees.n_trees))

    return OracleGame(value, len(players))
