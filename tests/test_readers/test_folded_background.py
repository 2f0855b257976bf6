"""Kernel machines whose background is summed up once: the values of the direct sweep, the same bits in any company."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as k
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR

from exactshap import Explainer
from exactshap.readers.kernel_machines import KernelMachine, _strategies
from exactshap.semivalues import available
from exactshap.testing import check_reader

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 6))
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3] ** 2
CLASSES = np.digitize(Y, [0.2, 1.5])
BACKGROUND = X[:140]

MODELS = {
    "SVR": SVR(C=5.0),
    "SVR, polynomial": SVR(kernel="poly", degree=3, coef0=1.0, C=0.1),
    "SVC, three classes": SVC(C=5.0),
    "ridge, two targets, Laplacian": KernelRidge(kernel="laplacian", alpha=0.1),
    "own machine, sum of kernels": KernelMachine(X[:70], Y[:70] - 0.7, k.RBF(2.0) + 0.5 * k.RBF(1.0) * k.DotProduct(1.0)),
}


def fitted(name):
    target = {"SVC, three classes": CLASSES, "ridge, two targets, Laplacian": np.stack([Y, X[:, 4]], axis=1)}.get(name, Y)
    return MODELS[name].fit(X, target) if hasattr(MODELS[name], "fit") else MODELS[name]


@pytest.mark.parametrize("groups", [None, {"pair": [0, 4], "rest": [2, 3]}], ids=["columns", "groups"])
@pytest.mark.parametrize("name", MODELS)
def test_folded_values_are_those_of_the_game(name, groups):
    settings = {"groups": groups, "background_weights": np.arange(1.0, 141.0)}
    check_reader(fitted(name), X[:3], BACKGROUND, indices=available() if name == "SVR" else ("shapley", "k-sii"), **settings)
    explainer = Explainer(fitted(name), BACKGROUND, **settings)
    n_players = explainer.reader.traits.n_players
    method = f"folded enumeration (2^{n_players} coalitions, 140 background rows)"
    assert (explainer(X[:3]).method, explainer.plan(X).method) == (method, method)


def test_tables_made_again_and_threads_give_the_same_bits(monkeypatch):
    model = fitted("SVR")
    kept = Explainer(model, BACKGROUND)
    values = kept(X[:40]).values
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kept))(X[:40]).values, values)
    parallel = Explainer(model, BACKGROUND, n_jobs=2)
    parallel.reader.traits = replace(parallel.reader.traits, block_rows=7)
    np.testing.assert_array_equal(parallel(X[:40]).values, values)
    monkeypatch.setattr(_strategies, "BLOCK_VALUES", 1)
    np.testing.assert_array_equal(kept(X[:40]).values, values)
    again = Explainer(model, BACKGROUND)
    again.reader.strategy.kept = False
    np.testing.assert_array_equal(again(X[:40]).values, values)
    assert not again.reader.strategy._cache
    assert kept.reader.strategy._cache


def test_parts_add_up():
    few = KernelMachine(X, Y, k.RBF(2.0))  # 160 terms
    values = Explainer(few, BACKGROUND)(X[:4])
    parts = Explainer(few, BACKGROUND, memory_limit=300_000)  # a quarter holds the tables of 146 of them
    assert parts.reader.traits.block_rows == 1024
    np.testing.assert_allclose(parts(X[:4]).values, values.values, rtol=0, atol=values.tolerance.max())
    forecast = parts.plan(X)
    assert forecast.exact
    assert forecast.seconds > 0


def test_a_damaged_table_is_seen(monkeypatch):
    from exactshap.errors import ExactnessError

    explainer = Explainer(fitted("SVR"), BACKGROUND)
    explainer(X[:2])
    (folded,) = explainer.reader.strategy._cache.values()
    folded.table[:, 0, 0] *= 1.0 + 1e-7
    folded.table[:, -1, -1] *= 1.0 + 1e-7
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X[:2])
