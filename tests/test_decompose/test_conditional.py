"""Conditional HSIC: values against the definition on all coalitions, and the level of its permutation test."""

import itertools

import numpy as np
import pytest

from exactshap.decompose import decompose_conditional_hsic
from exactshap.errors import InputError
from exactshap.kernels import Matern
from oracles import shapley_of
from tolerances import INVERTED as CLOSE


def sample(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    Z, e = rng.normal(size=(n, 1)), rng.normal(size=(n, d + 1))
    X = Z + e[:, :d]
    return X, Z[:, 0] + e[:, 0] + 0.5 * e[:, d], Z


def by_definition(X, Y, Z, shares, widths=None, profiles=None):
    """v(S) as the trace of two products of explicit matrices, from the settings that the result names."""
    n, columns, profiles = len(X), {"x": X, "y": Y[:, None], "z": Z}, profiles or {}
    centring = np.eye(n) - 1.0 / n
    median = lambda x: np.median(np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))[np.triu_indices(n, 1)])  # noqa: E731
    widths = {name: median(own) for name, own in columns.items()} if widths is None else widths

    def matrix(name, own, width=1.0):
        squares = ((own[:, None] - own[None]) ** 2).sum(axis=2) / (width * widths[name]) ** 2
        return centring @ profiles.get(name, lambda one: np.exp(-one / 2))(squares) @ centring

    left = {}
    for name in "XY":
        width, ridge = shares.details["ridge"][name]
        left[name] = ridge * np.linalg.inv(matrix("z", Z, width) + ridge * np.eye(n))
    target = left["Y"] @ matrix("y", columns["y"]) @ left["Y"]
    sets = itertools.chain.from_iterable(itertools.combinations(range(X.shape[1]), size) for size in range(X.shape[1] + 1))
    return {S: np.trace(left["X"] @ matrix("x", X[:, list(S)]) @ left["X"] @ target) / n**2 for S in sets}


def test_values_are_those_of_all_coalitions():
    X, Y, Z = sample()
    shares = decompose_conditional_hsic(X, Y, Z)
    v = by_definition(X, Y, Z, shares)
    np.testing.assert_allclose(shares.values, shapley_of(v.get, 3), atol=CLOSE)
    assert np.isclose(shares.total, v[0, 1, 2])
    assert abs(v[()]) < 1e-15
    last = decompose_conditional_hsic(X, Y, Z, index="leave-one-out").values
    np.testing.assert_allclose(last, [v[0, 1, 2] - v[1, 2], v[0, 1, 2] - v[0, 2], v[0, 1, 2] - v[0, 1]], atol=CLOSE)


def left_out_error(kernel, of_z, ridge):
    """The mean squared error, in feature space, of rows that the regression (with a mean) is not fitted to."""
    n, errors = len(kernel), []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        # Weights of the other rows in the prediction of row i: a mean, and a ridge regression of centred features
        system = np.block(
            [[of_z[np.ix_(rest, rest)] + ridge * np.eye(n - 1), np.ones((n - 1, 1))], [np.ones((1, n - 1)), np.zeros((1, 1))]]
        )
        weights = np.zeros(n)
        weights[rest] = np.linalg.solve(system, np.append(of_z[rest, i], 1.0))[:-1]
        weights[i] -= 1.0
        errors.append(weights @ kernel @ weights)
    return np.mean(errors)


@pytest.mark.parametrize("n", [8, 14])
def test_widths_and_ridges_predict_rows_that_are_left_out(n):
    rng = np.random.default_rng(3)
    Z, Y = rng.normal(size=(n, 3)), rng.normal(size=n)
    shares = decompose_conditional_hsic(rng.normal(size=(n, 1)), Y, Z, bandwidth_y=0.7, bandwidth_z=1.3)
    gauss = lambda own, sigma: np.exp(-((own[:, None] - own[None]) ** 2).sum(axis=-1) / (2 * sigma**2))  # noqa: E731
    widths, ridges = (0.5, 1.0, 2.0, 4.0, 8.0), 0.3 * n * np.geomspace(1e-4, 1.0, 9)
    errors = {
        (width, ridge): left_out_error(gauss(Y[:, None], 0.7), gauss(Z, 1.3 * width), ridge)
        for width in widths
        for ridge in ridges
    }
    assert np.allclose(shares.details["ridge"]["Y"], min(errors, key=errors.get))


def test_rows_that_are_few_for_their_columns_hold_the_level():
    # A ridge that interpolates leaves nothing, and its test rejects in nine of ten runs
    rejected = 0
    for run in range(40):
        rng = np.random.default_rng(run)
        Z, e = rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
        X = np.c_[Z.sum(axis=1) + 0.5 * e[:, 0], Z[:, 1] * Z[:, 2] + e[:, 1]]
        Y = Z[:, 0] - Z[:, 1] + Z[:, 2] + Z[:, 1] ** 2 + 0.5 * e[:, 2]
        rejected += decompose_conditional_hsic(X, Y, Z, n_permutations=39, random_state=run).p_value <= 0.05
    assert rejected <= 12


def test_groups_and_names_and_frames():
    pandas = pytest.importorskip("pandas")
    X, Y, Z = sample()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    shares = decompose_conditional_hsic(frame, pandas.Series(Y), Z, groups={"both": ["a", "c"]}, n_permutations=19, level=0.9)
    assert shares.feature_names == ("both", "b")
    assert {"p_value", "p_adjusted"} <= set(shares.to_frame().columns) or shares.p_adjusted is not None


def test_permutations_stay_among_neighbours():
    """Four rows at each of eight places in Z, alike in all columns: a permutation of neighbours changes nothing."""
    Z = np.random.default_rng(0).permutation(np.repeat(np.arange(8.0), 4))
    X, columns = np.column_stack([np.sin(Z), Z % 3]), np.column_stack([np.ones(32), Z])
    near, all_rows = (
        decompose_conditional_hsic(X, np.cos(Z), columns, neighbours=neighbours, n_permutations=39, random_state=0)
        for neighbours in (4, 0)
    )
    np.testing.assert_allclose(near.null_totals, near.total, rtol=0, atol=near.tolerance)
    assert np.ptp(all_rows.null_totals) > 1e6 * near.tolerance


def test_the_level_is_held_and_dependence_is_found():
    """60 runs: a binomial count at 5 % stays at or under 8 with probability 0.997."""
    rejected, found = 0, 0
    for run in range(60):
        rng = np.random.default_rng(run)
        Z, e = rng.normal(size=(60, 1)), rng.normal(size=(60, 3))
        X, Y = np.c_[np.sin(2 * Z[:, 0]) + 0.3 * e[:, 0], e[:, 1]], Z[:, 0] + (0.3 + np.abs(Z[:, 0])) * e[:, 2]
        rejected += decompose_conditional_hsic(X, Y, Z, n_permutations=39, random_state=run).p_value <= 0.05
        found += decompose_conditional_hsic(X, Y + 2 * e[:, 0], Z, n_permutations=39, random_state=run).p_value <= 0.05
    assert rejected <= 8
    assert found >= 30


def test_a_column_that_z_explains_is_not_found():
    rng = np.random.default_rng(1)
    Z, e = rng.normal(size=(100, 1)), rng.normal(size=(100, 3))
    X, Y = np.c_[Z[:, 0] + 0.5 * e[:, 0], Z[:, 0] + e[:, 1]], Z[:, 0] + e[:, 1] + 0.5 * e[:, 2]
    shares = decompose_conditional_hsic(X, Y, Z, n_permutations=99)
    assert shares.p_values[0] > 0.05
    assert shares.p_values[1] == 0.01
    assert shares.p_value == 0.01
    np.testing.assert_allclose(shares.null_totals, shares.null_values.sum(axis=1), rtol=CLOSE)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"Y": np.zeros(7)}, "same number of rows"),
        ({"neighbours": 1}, "neighbours"),
        ({"n_permutations": -1}, "n_permutations"),
        ({"kernel_x": "rfb"}, "rfb"),
    ],
)
def test_what_cannot_be_is_refused(change, text):
    X, Y, Z = sample(12)
    with pytest.raises(InputError, match=text):
        decompose_conditional_hsic(**{"X": X, "Y": Y, "Z": Z} | change)
    with pytest.raises(InputError, match="Take a random part"):
        decompose_conditional_hsic(np.zeros((5001, 1)), np.zeros(5001), np.zeros((5001, 1)))


@pytest.mark.parametrize("side", ["x", "y", "z"])
def test_a_radial_kernel_is_a_function_of_one_distance(side):
    X, Y, Z = sample()
    Z = np.column_stack([Z, X[:, :1] ** 2])
    widths, kernel = {"x": 1.2, "y": 0.8, "z": 1.5}, Matern(nu=1.5)
    settings = {f"bandwidth_{name}": width for name, width in widths.items()}
    shares = decompose_conditional_hsic(X, Y, Z, **settings, **{f"kernel_{side}": kernel})
    v = by_definition(X, Y, Z, shares, widths, {side: kernel.profile})
    np.testing.assert_allclose(shares.values, shapley_of(v.get, 3), atol=CLOSE)
    assert np.isclose(shares.total, v[0, 1, 2])
