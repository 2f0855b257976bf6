"""R2 of linear, additive and kernel models: all coalitions by the model's own predictions."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.svm import SVR

from exactshap import decompose_r2
from exactshap.errors import BudgetError, InputError, UnsupportedStructureError
from oracles import shapley_of
from tolerances import assert_close_r2

N_ROWS, N_FEATURES = 30, 4


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    X[:, 1] += X[:, 0]
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=N_ROWS)
    return X, y, rng.random(N_ROWS), rng.normal(size=(5, N_FEATURES))


def shares_of(Q, d, variation):
    """Return minus the Shapley values of Q, a function of coalitions, over the variation of y."""
    return -shapley_of(Q, d) / variation


def brute_force(model, X, y, weights, background):
    def Q(coalition):
        columns, mean = list(coalition), np.zeros(len(y))
        for z in background:
            hybrid = np.tile(z, (len(X), 1))
            hybrid[:, columns] = X[:, columns]
            mean += model.predict(hybrid) / len(background)
        return np.sum(weights * (y - mean) ** 2)

    return shares_of(Q, X.shape[1], np.sum(weights * (y - np.average(y, weights=weights)) ** 2))


MODELS = [
    Ridge(),
    make_pipeline(StandardScaler(), Lasso(0.01)),
    make_pipeline(PolynomialFeatures(2), Ridge()),
    make_pipeline(SplineTransformer(4), Ridge()),
    SVR(gamma=0.3),
    KernelRidge(kernel="rbf", gamma=0.2, alpha=0.1),
    GaussianProcessRegressor(alpha=0.1, normalize_y=True),
]


@pytest.mark.parametrize("n_background", [1, 5])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_all_coalitions(model, n_background):
    X, y, weights, Z = data()
    fitted = model.fit(X, y)
    shares = decompose_r2(fitted, X, y, background=Z[:n_background], sample_weight=weights)
    assert_close_r2(shares.values, brute_force(fitted, X, y, weights, Z[:n_background]))
    assert_close_r2(shares.total, model.score(X, y, sample_weight=weights))
    assert shares.value_function == "interventional"
    assert abs(shares.residual) <= shares.tolerance


@pytest.mark.parametrize("n_support", [3, 25])
def test_functional_values_by_pairs_and_by_coalitions(n_support):
    """Three terms go by pairs, 25 by coalitions; the definition is that of the explanation."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(n_support, 6)), rng.normal(size=n_support)
    model = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.1).fit(X, y)
    new, target = rng.normal(size=(7, 6)), rng.normal(size=7)
    shares = decompose_r2(model, new, target)
    assert shares.value_function == "functional"
    gammas = np.exp(-0.2 * (new[:, None] - X) ** 2)

    def Q(coalition):
        return np.sum((target - gammas[:, :, list(coalition)].prod(axis=2) @ model.dual_coef_) ** 2)

    assert_close_r2(shares.values, shares_of(Q, 6, np.sum((target - target.mean()) ** 2)))


def test_the_value_function_is_named():
    """Without a background a kernel machine has other shares than with one."""
    X, y, _, Z = data()
    model = SVR().fit(X, y)
    for background, name in ((None, "functional"), (Z, "interventional")):
        shares = decompose_r2(model, X, y, background=background)
        assert f"value function: {name}" in repr(shares)
        assert shares.plot().get_xlabel() == f"contribution to R2\nvalue function: {name}"


def test_groups_and_frames():
    pandas = pytest.importorskip("pandas")
    X, y, _, Z = data()
    names = ["a", "b", "c", "d"]
    frame, background = (pandas.DataFrame(one, columns=names) for one in (X, Z))
    model = Ridge().fit(frame, y)
    shares = decompose_r2(model, frame, y, background=background, groups={"ab": ["a", "b"]})
    single = decompose_r2(model, frame, y, background=background)
    assert shares.feature_names == ("ab", "c", "d")
    assert single.to_frame()["feature"].tolist() == names
    assert_close_r2(shares.values[0], single.values[:2].sum())  # of a linear model they share as they add


def test_ebm_with_pairs():
    interpret = pytest.importorskip("interpret.glassbox")
    X, y, weights, Z = data()
    model = interpret.ExplainableBoostingRegressor(interactions=2, max_rounds=30, n_jobs=1, random_state=0).fit(X, y)
    shares = decompose_r2(model, X, y, background=Z, sample_weight=weights)
    assert_close_r2(shares.values, brute_force(model, X, y, weights, Z), n_terms=10_000)


def test_refusals():
    X, y, _, Z = data()
    with pytest.raises(InputError, match="background"):
        decompose_r2(Ridge().fit(X, y), X, y)
    with pytest.raises(UnsupportedStructureError, match="does not predict y itself"):
        decompose_r2(LogisticRegression().fit(X, y > 0), X, y > 0, background=Z)
    with pytest.raises(InputError, match="per_row"):
        decompose_r2(Ridge().fit(X, y), X, y, background=Z, per_row=True)
    rng = np.random.default_rng(0)
    wide = SVR().fit(rng.normal(size=(200, 40)), rng.normal(size=200))
    with pytest.raises(BudgetError, match="More than a day"):
        decompose_r2(wide, rng.normal(size=(50, 40)), rng.normal(size=50), background=rng.normal(size=(200, 40)))


def test_trees_average_over_their_covers():
    from sklearn.tree import DecisionTreeRegressor

    X, y, _, Z = data()
    tree = DecisionTreeRegressor(max_depth=2).fit(X, y)
    with pytest.raises(InputError, match="means over their covers"):
        decompose_r2(tree, X, y, background=Z)
    assert decompose_r2(tree, X, y).value_function == "path_dependent"
