"""The compiled kernels of R2, value by value against plain Python, and what they refuse."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from exactshap.decompose.r2 import _games as games
from exactshap.decompose.r2 import _layout as kernels
from exactshap.decompose.r2._layout import lay_out
from exactshap.errors import InputTypeError
from exactshap.trees import build
from interruption import interrupted
from r2_models import N_FEATURES, random_model, random_rows
from tolerances import assert_close_r2, roundings
from trees_by_rule import chain


def laid_out(depth=4, n_trees=5, seed=0, n_rows=20):
    model = random_model(depth, n_trees=n_trees, seed=seed)
    X = np.resize(random_rows(seed)[0], (n_rows, N_FEATURES))
    return lay_out(model.trees, X, np.array([0, 1, 0, 2, 3], np.int32), 4)


def known_value(arrays, decisions, q, i, known):
    """Return the value of the subtree at ``q`` for row ``i`` when the players in ``known`` are known, as it is defined."""
    if arrays.left[q] < 0:
        return arrays.value[q]
    below = [known_value(arrays, decisions, child[q], i, known) for child in (arrays.left, arrays.right)]
    if arrays.player_of_node[q] in known:
        return below[0] if decisions[q, i] else below[1]
    return arrays.share[arrays.left[q]] * below[0] + arrays.share[arrays.right[q]] * below[1]


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_units_add_up_to_their_tree(depth):
    """f_S(x) = sum_u prod_{k in S} alpha_uk prod_{k not in S} beta_uk, for every tree, row and coalition."""
    layout = laid_out(depth)
    arrays, units, n_units = layout.arrays, layout.units, len(layout.units.node) - 1
    decisions = games._decisions(layout, 0, layout.trees.n_trees)
    alphas = np.empty((n_units, units.player.shape[1], layout.n_rows))
    kernels.fill_alphas(0, n_units, units, decisions, 0, alphas)
    for mask in range(16):
        known = {p for p in range(4) if mask >> p & 1}
        for k, root in enumerate(arrays.tree_start[:-1]):
            total = np.zeros(layout.n_rows)
            for u in range(units.tree_start[k], units.tree_start[k + 1]):
                product = np.full(layout.n_rows, units.value[u, 2])
                for slot in range(units.size[u, 1]):
                    product *= alphas[u, slot] if units.player[u, slot] in known else units.beta[u, slot]
                total += product
            assert_close_r2(total, [known_value(arrays, decisions, root, i, known) for i in range(layout.n_rows)])


def test_codes_are_the_bits_of_alpha():
    layout = laid_out(5, n_trees=8)
    units, n_units = layout.units, len(layout.units.node) - 1
    decisions = games._decisions(layout, 0, layout.trees.n_trees)
    codes, ones = np.empty((n_units, layout.n_rows), np.uint16), np.ones_like(units.value)
    alphas = np.empty((n_units, units.player.shape[1], layout.n_rows))
    kernels.fill_codes(0, n_units, units, decisions, 0, codes)
    kernels.fill_alphas(0, n_units, units._replace(value=ones), decisions, 0, alphas)
    for u in range(n_units):
        n_prefix = units.size[u, 0]
        expected = sum((alphas[u, slot] != 0).astype(int) << slot for slot in range(n_prefix)) + np.zeros(layout.n_rows, int)
        if units.size[u, 2] >= 0:
            expected += decisions[units.node[u]].astype(int) << n_prefix
        assert np.array_equal(codes[u], expected)


def test_half_weights():
    out = np.zeros(2 << 7)
    kernels.fill_half_weights(7, out)
    for m in range(1, 8):
        for y in range(1 << m):
            s = y.bit_count()
            inside = 0 < s < m
            h = math.factorial(s - 1) * math.factorial(m - 1 - s) / math.factorial(m - 1) if inside else 1.0 / m
            assert out[(1 << m) + y] == pytest.approx(h, rel=roundings(5))


@pytest.mark.parametrize("single_precision", [False, True])
@pytest.mark.parametrize("n_rows", [0, 1, 16, 37])
def test_columns(n_rows, single_precision):
    X, used = np.random.default_rng(0).normal(size=(n_rows, 6)), np.array([4, 0, 5])
    out = np.empty((3, n_rows))
    kernels.fill_columns(X, used, single_precision, out)
    assert np.array_equal(out, X.T[used].astype(np.float32) if single_precision else X.T[used])


def test_tables_and_quadrature_agree_on_wide_deep_trees():
    """Joint tables of all sizes, pairs whose table would be too large, and units without a code."""
    layout = lay_out(deep_trees(), random_wide(), np.arange(40, dtype=np.int32), 40)
    y, weights = random_wide()[:, 0].copy(), np.linspace(0.5, 1.5, 30)
    assert layout.units.size[:, 0].max() > 16  # more prefix players than a code has bits
    shares, _ = games.residual_shares(layout, y.copy(), weights, False, 1)
    assert_close_r2(shares, games.residual_rows(layout, y.copy(), weights, False, 1).sum(axis=0))


def random_wide():
    return np.random.default_rng(3).normal(size=(30, 40))


def deep_trees():
    raw = []
    for first in (0, 20):  # two chains: every split on a feature of its own
        tree = chain(20, 20, np.random.default_rng(first).normal(size=41))
        raw.append(replace(tree, feature=tree.feature + first, threshold=np.full(41, -2.0)))
    return build(raw, n_features=40, constant=np.array([0.0]), less_equal=True, single_precision=False)


def bad_calls():
    layout = laid_out()
    arrays, units, n = layout.arrays, layout.units, layout.trees.n_trees
    decisions, w, out = games._decisions(layout, 0, n), np.ones(20), np.zeros(4)
    rows, half, met = kernels.Rows(decisions, w, False), games._half_weights(games._table_bits(units) + 1), np.zeros(n)
    short = kernels.Rows(decisions[:-1], w, False)
    good = (0, n, arrays, units, rows, half, np.zeros(20), met, out)
    codes, rules = np.zeros((len(units.node) - 1, 20), np.uint16), games._rules(units)
    yield kernels.add_residual_trees, (*good[:1], n + 1, *good[2:])
    yield kernels.add_residual_trees, (*good[:4], short, *good[5:])
    yield kernels.add_residual_trees, (*good[:5], half[:-1], *good[6:])
    yield kernels.add_residual_trees, (*good[:6], np.zeros(19), met, out)
    yield kernels.add_residual_trees, (*good[:8], np.zeros(3))  # a player has no place
    table = kernels.Table(layout.X, layout.used, w, True, False)
    yield kernels.add_shallow_trees, (arrays, layout.nodes, table, half, np.zeros(20), met, out)  # too deep
    yield kernels.add_tree_rows, (0, n, arrays, units, rows, 0, kernels.Rules(*(r[:1] for r in rules)), w, np.zeros((4, 20)))
    yield kernels.add_tree_rows, (0, n, arrays, units, rows, 0, rules, w, np.zeros((3, 20)))
    yield kernels.add_ensemble_tree, (n, codes, w, w, units, arrays.player_of_node, half, out)
    yield kernels.fill_codes, (0, len(codes), units, decisions[: units.node.max()], 0, codes)
    yield kernels.fill_codes, (0, len(codes), units, decisions, 1, codes)
    yield kernels.fill_columns, (np.zeros((3, 2)), np.array([2]), False, np.zeros((1, 3)))


@pytest.mark.parametrize("case", range(12))
def test_what_does_not_belong_together_is_refused(case):
    kernel, arguments = list(bad_calls())[case]
    with pytest.raises(InputTypeError, match="do not belong together"):
        kernel(*arguments)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of another kind")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_control_c_ends_a_long_game(n_jobs):
    layout = laid_out(9, n_trees=60, n_rows=4000)  # a minute
    y, weights = np.ones(4000), np.linspace(0.5, 1.5, 4000)
    with interrupted(0.5):
        games.ensemble_rows(layout, y, weights, n_jobs)
