"""Routing by the rules in words, one row and one node at a time; a random ensemble to try it on. Nothing compiled."""

import dataclasses

import numpy as np

from exactshap.trees import LeafFunction, RawTree, build

NASTY = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-35, -1e-35, 1.1e-35, 1e300, -1e300, 0.1, np.float32(0.1)]
NASTY += [1 / 3, 2.0, 31.0, 32.0, 33.9, 64.0, 1e10, -0.5, -1.0]


def goes_left(trees, q, x):
    """The rules of FlatTrees' docstring."""
    if trees.single_precision:
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    missing = trees.missing[q]
    if np.isnan(x):
        if missing != 2:
            return missing == 1
        x = 0.0
    elif trees.zero_is_missing[q] and abs(x) <= float(np.float32(1e-35)):
        return missing == 1
    if trees.category_start[q] >= 0:
        if not np.isfinite(x) or not -1 < x < 32 * trees.category_count[q]:
            return False
        word, bit = divmod(int(x), 32)
        return bool(int(trees.category_words[trees.category_start[q] + word]) >> bit & 1)
    return x <= trees.threshold[q] if trees.less_equal else x < trees.threshold[q]


def leaf(trees, k, row):
    q = trees.tree_start[k]
    while trees.feature[q] >= 0:
        q = trees.left[q] if goes_left(trees, q, row[trees.feature[q]]) else trees.right[q]
    return q


def mean_below(trees, q, x, inside):
    """The mean of the leaves below node q: columns inside follow the row, the others the covers (an empty node is cut in half)."""
    column = trees.feature[q]
    if column < 0:
        return trees.value[q]
    left, right = trees.left[q], trees.right[q]
    if column in inside:
        return mean_below(trees, left if goes_left(trees, q, x[column]) else right, x, inside)
    total = trees.cover[left] + trees.cover[right]
    share = trees.cover[left] / total if total > 0 else 0.5
    return share * mean_below(trees, left, x, inside) + (1 - share) * mean_below(trees, right, x, inside)


def random_raw(rng, n_features, depth, n_outputs=1, every_rule=True, draw=None, zero_covers=0.0):
    """A random tree in random node order: repeated columns, ties with NASTY, categorical splits, all missing rules.

    Or with thresholds that ``draw(rng)`` gives, and a share of empty leaves.
    """
    rows, sets = [], {}

    def grow(level):
        q = len(rows)
        rows.append(None)
        if level == depth or (level and rng.random() < 0.2):
            is_empty = zero_covers > 0.0 and rng.random() < zero_covers
            rows[q] = [0, 0.0, -1, -1, 0 if is_empty else rng.integers(1, 50), 0, False]
            return q
        threshold = float(rng.choice([v for v in NASTY if np.isfinite(v)]) if draw is None else draw(rng))
        left = grow(level + 1)
        right = grow(level + 1)
        missing, zero = (rng.integers(0, 3), rng.random() < 0.2) if every_rule else (0, False)
        rows[q] = [rng.integers(n_features), threshold, left, right, 0, missing, zero and missing != 2]
        if every_rule and rng.random() < 0.3:
            sets[q] = rng.integers(0, 2**32, rng.integers(1, 4), dtype=np.uint32)
        return q

    grow(0)
    feature, threshold, left, right, cover, missing, zero = (np.array(c) for c in zip(*rows, strict=True))
    value = rng.normal(size=(len(rows), n_outputs))
    return RawTree(feature, threshold, left, right, value, cover, missing, zero, sets)


def random_trees(seed, n_trees=3, n_features=4, depth=5, n_outputs=1, less_equal=True, single_precision=False, every_rule=True):
    rng = np.random.default_rng(seed)
    raw = [random_raw(rng, n_features, depth, n_outputs, every_rule) for _ in range(n_trees)]
    return build(
        raw,
        n_features=n_features,
        constant=rng.normal(size=n_outputs),
        less_equal=less_equal,
        single_precision=single_precision,
    )


def linear_raw(rng, n_features, depth, n_outputs=1):
    """A random tree with linear functions in most leaves, of columns on and off their paths."""
    raw = random_raw(rng, n_features, depth, n_outputs)
    functions = {}
    for leaf in np.flatnonzero(raw.left < 0).tolist():
        if rng.random() < 0.8:
            columns = rng.choice(n_features, rng.integers(0, n_features), replace=False)
            functions[leaf] = LeafFunction(columns, rng.normal(size=(len(columns), n_outputs)), rng.normal(size=n_outputs))
    return dataclasses.replace(raw, functions=functions)


def linear_trees(seed, n_trees=3, n_features=5, depth=4, n_outputs=1):
    rng = np.random.default_rng(seed)
    raw = [linear_raw(rng, n_features, depth, n_outputs) for _ in range(n_trees)]
    constant = rng.normal(size=n_outputs)
    return build(raw, n_features=n_features, constant=constant, less_equal=True, single_precision=False)


def leaf_answer(trees, q, row):
    """What a row gets at leaf q, by the rule in words of LeafFunction."""
    value = trees.value[q].copy()
    terms = range(trees.linear.start[q], trees.linear.start[q + 1])
    if any(np.isnan(row[trees.linear.column[e]]) for e in terms):
        return value
    return value + trees.linear.offset[q] + sum(trees.linear.coefficient[e] * row[trees.linear.column[e]] for e in terms)


def nasty_rows(seed, n_rows, n_features):
    rng = np.random.default_rng(seed)
    return np.where(
        rng.random((n_rows, n_features)) < 0.7, rng.choice(NASTY, (n_rows, n_features)), rng.normal(size=(n_rows, n_features))
    )


def chain(depth, n_features=1, value=None):
    """A tree that is one long path: node q splits column q % n_features, x <= q + 0.5 stops there."""
    internal = np.arange(depth)
    n = 2 * depth + 1
    feature = np.concatenate([internal % n_features, np.zeros(depth + 1, int)])
    threshold = np.concatenate([internal + 0.5, np.zeros(depth + 1)])
    left = np.concatenate([depth + internal, np.full(depth + 1, -1)])
    right = np.concatenate([internal + 1, np.full(depth + 1, -1)])
    right[depth - 1] = n - 1
    value = np.arange(n, dtype=float) if value is None else value
    return RawTree(feature, threshold, left, right, value, np.ones(n))
