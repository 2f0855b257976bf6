"""Paths and cover ratios, held against a walk in plain Python."""

import numpy as np
import pytest

from exactshap.trees import build, cover_shares, inside, parents, paths
from tolerances import roundings
from trees_by_rule import chain, goes_left, nasty_rows, random_trees


def walk(trees, owner):
    """Yield (leaf, [(node, went left)], {player: ratio}) of every leaf, by descending from the roots."""
    stack = [(int(q), []) for q in trees.tree_start[:-1]]
    while stack:
        q, edges = stack.pop()
        if trees.feature[q] < 0:
            ratio = {}
            for node, left in edges:
                child = trees.left[node] if left else trees.right[node]
                share = trees.cover[child] / trees.cover[node] if trees.cover[node] > 0 else 0.5
                j = int(owner[trees.feature[node]])
                ratio[j] = ratio.get(j, 1.0) * share
            yield q, edges, ratio
        else:
            stack += [(int(trees.left[q]), [*edges, (q, True)]), (int(trees.right[q]), [*edges, (q, False)])]


@pytest.mark.parametrize("owner", [None, [0, 1, 0, 1], [2, 2, 2, 2]])
@pytest.mark.parametrize("seed", range(3))
def test_paths_are_the_walks(seed, owner):
    trees = random_trees(seed, n_trees=4, depth=6)
    where = paths(trees, None if owner is None else np.array(owner))
    expected = {q: (edges, ratio) for q, edges, ratio in walk(trees, range(4) if owner is None else owner)}
    assert where.node.tolist() == sorted(expected)
    for l, q in enumerate(where.node.tolist()):
        edges, ratio = expected[q]
        own, e = slice(where.start[l], where.start[l + 1]), slice(where.edge_start[l], where.edge_start[l + 1])
        assert list(zip(where.edge_node[e].tolist(), where.edge_left[e].tolist(), strict=True)) == edges
        assert where.player[own].tolist() == sorted(ratio)
        np.testing.assert_allclose(where.ratio[own], [ratio[j] for j in sorted(ratio)], rtol=roundings(50))
        players = [where.player[where.start[l] + s] for s in where.edge_slot[e]]
        assert players == [trees.feature[node] if owner is None else owner[trees.feature[node]] for node, _ in edges]


@pytest.mark.parametrize("seed", range(3))
def test_inside_tells_who_satisfies_the_path(seed):
    trees = random_trees(seed, less_equal=False, single_precision=True)
    X = nasty_rows(seed, 20, 4)
    where = paths(trees)
    got = inside(trees, where, X, 5)
    for l, (_, edges, _) in enumerate(sorted(walk(trees, range(4)), key=lambda item: item[0])):
        for i, row in enumerate(X):
            expected = np.ones(5)
            for node, left in edges:
                if goes_left(trees, node, row[trees.feature[node]]) != left:
                    expected[trees.feature[node]] = 0.0
            np.testing.assert_array_equal(got[i, l], expected)


def test_cover_shares_add_to_one():
    trees = random_trees(5)
    shares = cover_shares(trees)
    internal = np.flatnonzero(trees.feature >= 0)
    np.testing.assert_allclose(shares[trees.left[internal]] + shares[trees.right[internal]], 1.0, rtol=roundings(5))
    np.testing.assert_array_equal(shares[trees.tree_start[:-1]], 1.0)


def test_empty_parents_share_equally():
    raw = chain(2)
    raw.cover[[3, 4]] = 0.0
    trees = build([raw], n_features=1, constant=[0.0], less_equal=True, single_precision=False)
    np.testing.assert_array_equal(sorted(cover_shares(trees)), [0.0, 0.5, 0.5, 1.0, 1.0])


def test_invariants_of_the_layout():
    trees = random_trees(6, n_trees=6)
    internal = np.flatnonzero(trees.feature >= 0)
    np.testing.assert_array_equal(trees.right[internal], trees.left[internal] + 1)
    assert (trees.left[internal] > internal).all()
    parent, is_left = parents(trees)
    assert (parent[trees.tree_start[:-1]] == -1).all()
    np.testing.assert_array_equal(trees.cover[internal], trees.cover[trees.left[internal]] + trees.cover[trees.right[internal]])
    assert is_left.sum() == len(internal)


def test_a_deep_chain_costs_linear_memory_for_each_leaf():
    depth = 1000
    trees = build([chain(depth, n_features=7)], n_features=7, constant=[0.0], less_equal=True, single_precision=False)
    where = paths(trees)
    assert len(where.edge_node) == depth * (depth + 1) // 2 + depth
    assert len(where.player) <= 7 * (depth + 1)
