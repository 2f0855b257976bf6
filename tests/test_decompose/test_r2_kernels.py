"""What the compiled kernels of R2 refuse, and how they are interrupted."""

import sys

import numpy as np
import pytest

from exactshap.decompose.r2 import _games as games
from exactshap.decompose.r2 import _layout as kernels
from exactshap.decompose.r2._layout import lay_out
from exactshap.errors import InputTypeError
from interruption import interrupted
from r2_models import N_FEATURES, random_model, random_rows


def laid_out(depth=4, n_trees=5, seed=0, n_rows=20):
    model = random_model(depth, n_trees=n_trees, seed=seed)
    X = np.resize(random_rows(seed)[0], (n_rows, N_FEATURES))
    return lay_out(model.trees, X, np.array([0, 1, 0, 2, 3], np.int32), 4)


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
