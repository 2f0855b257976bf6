"""Statistics of parts add up to those of the whole: means to the last bit, R2 up to rounding."""

import functools
import math
import operator
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, Ridge

import scale_cases as cases
from exactshap import decompose_r2
from exactshap.errors import InputError
from exactshap.scale import GlobalImportance, GlobalQuantiles, PartialR2, PartialRidge, Partition
from exactshap.scale._importance import ExactSums
from tolerances import assert_close


def awkward(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, 3)) * 10.0 ** rng.integers(-200, 200, size=(n_rows, 3))
    values[:, 1] = rng.normal(size=n_rows)
    values[::3, 2] = -values[1::3, 2][: len(values[::3, 2])] if n_rows % 3 == 0 else values[::3, 2]
    values[0], values[1], values[2] = 5e-324, -0.0, 1.7e308
    return values


def test_sums_are_exact():
    values = awkward(999)
    expected = [sum(map(Fraction, column), Fraction(0)) for column in values.T]
    assert [Fraction(unit, 2**1074) for unit in ExactSums.of(values)[0].units] == expected
    assert list(ExactSums.of(values[:, 1:2])[0].means(1)) == [math.fsum(values[:, 1])]
    assert ExactSums.of(values[:0])[0] == ExactSums((0, 0, 0))
    with pytest.raises(InputError, match="must be finite to be summed"):
        ExactSums.of(np.array([[np.nan]]))


@pytest.mark.parametrize("n_parts", [1, 2, 7, 20])
def test_means_have_the_same_bits_for_any_number_of_parts(n_parts):
    T = pd.DataFrame(awkward(600), columns=["phi_a", "phi_b", "phi_c"]).assign(residual=np.linspace(-1, 1, 600))
    T.loc[5, ["phi_a", "phi_b", "phi_c", "residual"]] = np.nan
    whole = GlobalImportance.of(T)
    order = np.random.default_rng(n_parts).permutation(n_parts)
    parts = [GlobalImportance.of(part) for part in (T.iloc[rows] for rows in np.array_split(np.arange(600), n_parts))]
    found = functools.reduce(operator.add, [parts[number] for number in order])
    assert found == whole
    assert np.array_equal(found.mean, whole.mean)
    assert np.array_equal(found.mean_abs, whole.mean_abs)
    assert (whole.n_rows, whole.n_bad_rows, whole.max_residual) == (599, 1, 1.0)
    assert whole.mean[1] == math.fsum(T["phi_b"].dropna()) / 599


def test_importances_are_those_of_the_explanation():
    T = cases.table()
    values = cases.trees()(T[cases.NAMES]).values
    found = GlobalImportance.of(Partition(cases.trees(), keep=["id"])(T))
    assert found.feature_names == tuple(cases.NAMES)
    assert_close(found.mean_abs, np.abs(values).mean(axis=0), scale=np.abs(values).max(), n_terms=60)
    assert list(found.to_frame()["feature"]) == cases.NAMES
    assert repr(found).startswith("mean |value| of 4 features over 60 rows")


def test_parts_that_do_not_belong_together_are_refused():
    one, other = (GlobalImportance.of(pd.DataFrame({f"phi_{name}": [1.0]})) for name in "ab")
    with pytest.raises(InputError, match="different features"):
        one + other
    with pytest.raises(InputError, match="no columns of values"):
        GlobalImportance.of(pd.DataFrame({"a": [1.0]}))


def regression():
    T = cases.table(120)
    return T[cases.NAMES], cases.target(T).round(1)


def test_parts_of_refits_are_refused_with_the_way_out():
    X, y = regression()
    with pytest.raises(InputError, match=r"not sums over rows.*decompose_r2\(model, X, y, game='refit'\)"):
        PartialR2(LinearRegression(), X, y, game="refit")


@pytest.mark.parametrize("game", ["residual", "ensemble"])
@pytest.mark.parametrize("cls", [GradientBoostingRegressor, RandomForestRegressor])
@pytest.mark.parametrize("n_parts", [1, 3, 11])
def test_parts_of_r2_add_up(cls, game, n_parts):
    X, y = regression()
    model = cls(n_estimators=8, max_depth=3, random_state=0).fit(X, y)
    weights = np.random.default_rng(0).random(120)
    whole = decompose_r2(model, X, y, game=game, sample_weight=weights)
    order = np.argsort(y.to_numpy(), kind="stable")  # some parts have a constant y
    parts = [
        PartialR2(model, X.iloc[rows], y.iloc[rows], game=game, sample_weight=weights[rows])
        for rows in np.array_split(order, n_parts)
    ]
    found = functools.reduce(operator.add, pickle.loads(pickle.dumps(parts))).result()
    assert_close(found.values, whole.values, scale=1.0, n_terms=120)
    assert_close(found.total, whole.total, scale=1.0, n_terms=120)
    assert abs(found.residual) <= found.tolerance
    assert found.details["n_rows"] == 120


def test_a_constant_target_is_fine_in_a_part_only():
    X, y = regression()
    model = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X, y)
    part = PartialR2(model, X[:5], np.ones(5))
    with pytest.raises(InputError, match="`y` does not vary"):
        (part + PartialR2(model, X[5:9], np.ones(4))).result()
    both = (part + PartialR2(model, X[5:9], np.zeros(4))).result()
    whole = decompose_r2(model, X[:9], np.repeat([1.0, 0.0], [5, 4]))
    assert_close(both.values, whole.values, scale=np.abs(whole.values).max() + 1.0, n_terms=9)
    with pytest.raises(InputError, match="one model"):
        part + PartialR2(model, X[5:9], np.zeros(4), game="ensemble")


@pytest.mark.parametrize("n_parts", [1, 2, 7, 20])
def test_quantiles_of_parts_are_approximate_and_the_same_bits(n_parts):
    pytest.importorskip("ddsketch")
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=2000), rng.exponential(size=2000) ** 6, np.zeros(2000)])
    values[::50, 0] = 0.0
    T = pd.DataFrame(values, columns=["phi_a", "phi_b", "phi_c"])
    T.loc[7] = np.nan
    parts = [GlobalQuantiles.of(T.iloc[rows]) for rows in np.array_split(rng.permutation(2000), n_parts)]
    found = functools.reduce(operator.add, pickle.loads(pickle.dumps(parts)))
    assert found.n_rows == 1999
    assert "approximate quantiles" in repr(found)
    left = np.delete(values, 7, axis=0)
    for q in (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0):
        exact = np.quantile(left, q, axis=0, method="lower")
        assert (np.abs(found.quantile(q) - exact) <= 0.0101 * np.abs(exact)).all()
        assert np.array_equal(found.quantile(q), GlobalQuantiles.of(T).quantile(q))


def test_quantiles_are_asked_for_with_sense():
    pytest.importorskip("ddsketch")
    one = GlobalQuantiles.of(pd.DataFrame({"phi_a": [1.0]}))
    with pytest.raises(InputError, match=r"number in \[0, 1\]"):
        one.quantile(5)
    with pytest.raises(InputError, match="`relative_error`"):
        GlobalQuantiles.of(pd.DataFrame({"phi_a": [1.0]}), 0.0)
    with pytest.raises(InputError, match="cannot be added"):
        one + GlobalQuantiles.of(pd.DataFrame({"phi_a": [1.0]}), 0.02)
    assert np.isnan(GlobalQuantiles.of(pd.DataFrame({"phi_a": [np.nan]})).quantile(0.5)).all()


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_normal_equations_of_parts_give_the_ridge_of_the_whole(n_parts, weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)) + 5.0, rng.normal(size=300) + 100.0
    weights = rng.random(300) if weighted else np.ones(300)
    features = Nystroem(gamma=0.2, n_components=30, random_state=0).fit(X[:100])
    parts = [PartialRidge(features, X[rows], y[rows], weights[rows]) for rows in np.array_split(np.arange(300), n_parts)]
    found = functools.reduce(operator.add, pickle.loads(pickle.dumps(parts))).result(alpha=0.1)
    expected = Ridge(alpha=0.1, solver="cholesky").fit(features.transform(X), y, weights)
    assert_close(found[-1].coef_, expected.coef_, scale=100.0 * np.abs(expected.coef_).max(), n_terms=300)
    assert_close(found.predict(X), expected.predict(features.transform(X)), scale=1e4, n_terms=300)
    assert cases.Explainer(found, X[:5])(X[:4]).certificate().passed


def test_ridge_of_what_does_not_fit_is_refused():
    X, features = np.eye(4), Nystroem(n_components=3).fit(np.eye(4))
    with pytest.raises(InputError, match="one number for each row"):
        PartialRidge(features, X, np.ones(3))
    with pytest.raises(InputError, match="must be finite"):
        PartialRidge(features, X, np.full(4, np.nan))
    with pytest.raises(InputError, match="one feature map"):
        PartialRidge(features, X, np.ones(4)) + PartialRidge(Nystroem(n_components=2).fit(X), X, np.ones(4))
