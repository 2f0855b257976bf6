"""R2 of refits: every subset fitted by scikit-learn itself, figures of relaimpo, degenerate columns, samples."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from exactshap.decompose import decompose_r2
from exactshap.errors import BudgetError, InputError, UnsupportedModelError
from oracles import shapley_of
from tolerances import PRINTED, REFIT, REFIT_SAMPLED

# R's data set `swiss` (Mosteller and Tukey 1977): Fertility, Agriculture, Examination, Education, Catholic, Infant.Mortality
SWISS = """80.2 17 15 12 9.96 22.2 83.1 45.1 6 9 84.84 22.2 92.5 39.7 5 5 93.4 20.2 85.8 36.5 12 7 33.77 20.3 76.9 43.5 17 15
5.16 20.6 76.1 35.3 9 7 90.57 26.6 83.8 70.2 16 7 92.85 23.6 92.4 67.8 14 8 97.16 24.9 82.4 53.3 12 7 97.67 21 82.9 45.2 16 13
91.38 24.4 87.1 64.5 14 6 98.61 24.5 64.1 62 21 12 8.52 16.5 66.9 67.5 14 7 2.27 19.1 68.9 60.7 19 12 4.43 22.7 61.7 69.3 22
5 2.82 18.7 68.3 72.6 18 2 24.2 21.2 71.7 34 17 8 3.3 20 55.7 19.4 26 28 12.11 20.2 54.3 15.2 31 20 2.15 10.8 65.1 73 19 9
2.84 20 65.5 59.8 22 10 5.23 18 65 55.1 14 3 4.52 22.4 56.6 50.9 22 12 15.14 16.7 57.4 54.1 20 6 4.2 15.3 72.5 71.2 12 1 2.4
21 74.2 58.1 14 8 5.23 23.8 72 63.5 6 3 2.56 18 60.5 60.8 16 10 7.72 16.3 58.3 26.8 25 19 18.46 20.9 65.4 49.5 15 8 6.1 22.5
75.5 85.9 3 2 99.71 15.1 69.3 84.9 7 6 99.68 19.8 77.3 89.7 5 2 100 18.3 70.5 78.2 12 6 98.96 19.4 79.4 64.9 7 3 98.22 20.2
65 75.9 9 9 99.06 17.8 92.2 84.6 3 3 99.46 16.3 79.3 63.1 13 13 96.83 18.1 70.4 38.4 26 12 5.62 20.3 65.7 7.7 29 11 13.79
20.5 72.7 16.7 22 13 11.22 18.9 64.4 17.6 35 32 16.92 23 77.6 37.6 15 7 4.97 20 67.6 18.7 25 7 8.65 19.5 35 1.2 37 53 42.34
18 44.7 46.6 16 29 50.43 18.2 42.8 27.7 22 29 58.33 19.3"""


def own_r2(columns, y, weights, intercept=True):
    """Return R2 by the model's own fit and score; cut-offs of later releases of scikit-learn are switched off."""
    mean = np.average(y, weights=weights)
    if not columns.shape[1]:
        return 0.0 if intercept else 1.0 - np.sum(weights * y**2) / np.sum(weights * (y - mean) ** 2)
    model = LinearRegression(fit_intercept=intercept)
    if "tol" in model.get_params():
        model.set_params(tol=1e-14)
    return model.fit(columns, y, sample_weight=weights).score(columns, y, sample_weight=weights)


def brute_force(X, y, weights=None, intercept=True, players=None):
    weights = np.ones(len(y)) if weights is None else weights
    players = [[j] for j in range(X.shape[1])] if players is None else players

    def value(S):
        return own_r2(X[:, sorted(j for p in S for j in players[p])], y, weights, intercept)

    return shapley_of(value, len(players))


def data(n=40, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 1] += 0.8 * X[:, 0]
    return X, X[:, 0] + X[:, 2] * X[:, 1] + rng.normal(size=n), rng.random(n)


def refit(X, y, intercept=True, **settings):
    return decompose_r2(LinearRegression(fit_intercept=intercept), X, y, game="refit", **settings)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_every_subset_is_fitted(intercept, weighted):
    X, y, weights = data()
    given = weights if weighted else None
    shares = refit(X, y, intercept, sample_weight=given)
    np.testing.assert_allclose(shares.values, brute_force(X, y, given, intercept), rtol=0, atol=REFIT)
    assert shares.game == shares.value_function == "refit"
    assert shares.total == pytest.approx(own_r2(X, y, np.ones(len(y)) if given is None else given, intercept), abs=REFIT)
    assert shares.drift == pytest.approx(shares.values.sum() - shares.total, abs=REFIT)


def test_figures_of_relaimpo():
    """Groemping (2006), Journal of Statistical Software 17(1): `calc.relimp(swiss, type = "lmg")` prints seven digits."""
    table = np.array(SWISS.split(), float).reshape(47, 6)
    shares = refit(table[:, 1:], table[:, 0])
    assert np.var(table[:, 0], ddof=1) == pytest.approx(156.0425, abs=PRINTED[4])
    np.testing.assert_allclose(
        shares.values, [0.05709122, 0.17117303, 0.26013468, 0.10557015, 0.11276592], rtol=0, atol=PRINTED[8]
    )


def test_degenerate_columns_get_what_they_explain():
    X, y, _ = data()
    X[:, 3] = X[:, 0] + X[:, 1]  # collinear
    X[:, 4] = 3.0  # constant
    X[:, 5] = X[:, 2]  # the same twice
    shares = refit(X, y)
    np.testing.assert_allclose(shares.values, brute_force(X, y), rtol=0, atol=REFIT)
    assert abs(shares.values[4]) < REFIT
    assert abs(shares.values[2] - shares.values[5]) < REFIT
    assert shares.details["rank"] == 3


def test_more_columns_than_rows():
    X, y, _ = data(n=5, p=8)
    shares = refit(X, y)
    np.testing.assert_allclose(shares.values, brute_force(X, y), rtol=0, atol=REFIT)
    assert shares.total == pytest.approx(1.0, abs=REFIT)


@pytest.mark.parametrize("scale", [1e-120, 1e-8, 1e8, 1e120])
def test_units_do_not_matter(scale):
    X, y, _ = data()
    expected = refit(X, y).values
    scaled = X.copy()
    scaled[:, 2] *= scale
    np.testing.assert_allclose(refit(scaled, y).values, expected, rtol=0, atol=REFIT)
    np.testing.assert_allclose(refit(X + 1e6, y).values, expected, rtol=0, atol=1e6 * REFIT)


def test_nearly_collinear_columns_are_not_lost():
    """The Gram matrix would square a condition number of 1e9."""
    X, y, _ = data(p=3)
    X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
    shares = refit(X, y)
    Q = np.linalg.qr(np.column_stack([X[:, 0], (X[:, 1] - X[:, 0]) / 1e-9, X[:, 2]]) - 0.0)[0]
    assert shares.total == pytest.approx(own_r2(Q, y, np.ones(len(y))), abs=1e9 * REFIT)
    assert shares.details["rank"] == 3


@pytest.mark.parametrize("n_orders", [None, 6])
def test_columns_that_are_equal_up_to_the_rounding_of_one_explain_each_other(n_orders):
    # hours of a day and the same moments as a Julian date, of which doubles keep 40 microseconds: what is left over is rounding
    rng = np.random.default_rng(6)
    hours, other = 24.0 * rng.random(18), rng.normal(size=18)
    date, y = 2_460_000.5 + hours / 24.0, hours / 10.0 + other + rng.normal(size=18)
    alone = decompose_r2(LinearRegression(), np.column_stack([hours, other]), y, game="refit")
    for columns in ([hours, date, other], [date, hours, other]):
        found = decompose_r2(LinearRegression(), np.column_stack(columns), y, game="refit", n_orders=n_orders, random_state=0)
        assert abs(found.total - alone.total) < 10 * REFIT
        assert abs(found.drift) < 1e4 * REFIT  # the date has the digits of the hours, not all of them
        assert found.details["rank"] == 2
        if n_orders is None:
            assert abs(found.values[0] - found.values[1]) < 1e4 * REFIT


def test_groups_enter_together():
    X, y, _ = data()
    shares = refit(X, y, groups={"ab": [0, 4], "c": [2]})
    players = {"ab": [0, 4], "c": [2], "x1": [1], "x3": [3], "x5": [5]}
    expected = brute_force(X, y, players=[players[name] for name in shares.feature_names])
    np.testing.assert_allclose(shares.values, expected, rtol=0, atol=REFIT)


def test_gain_by_size_is_conditional_dominance():
    X, y, _ = data(p=4)
    gains = refit(X, y).details["gain_by_size"]
    ones = np.ones(len(y))
    for j in range(4):
        others = [k for k in range(4) if k != j]
        for s in range(4):
            mean = np.mean(
                [own_r2(X[:, [*S, j]], y, ones) - own_r2(X[:, list(S)], y, ones) for S in itertools.combinations(others, s)]
            )
            assert gains[j, s] == pytest.approx(mean, abs=REFIT)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_players_share_tasks(n_jobs):
    """Independent columns: each has its squared correlation, whatever the order; same bits for all numbers of threads."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(60, 16)) - 0.0)[0]
    Q = np.linalg.qr(np.column_stack([np.ones(60), Q]))[0][:, 1:]
    y = Q @ np.arange(16.0) + rng.normal(size=60)
    shares = refit(Q, y, n_jobs=n_jobs)
    np.testing.assert_allclose(shares.values, (Q.T @ y) ** 2 / np.sum((y - y.mean()) ** 2), rtol=0, atol=REFIT)
    assert shares.values.tobytes() == refit(Q, y).values.tobytes()


def test_sampled_orders_are_within_their_standard_errors():
    X, y, _ = data()
    exact = refit(X, y)
    scores = []
    for seed in range(20):
        sampled = refit(X, y, n_orders=200, random_state=seed)
        assert sampled.values.sum() == pytest.approx(exact.total, abs=REFIT)
        scores.append((sampled.values - exact.values) / sampled.std_error)
    assert np.sqrt(np.mean(np.square(scores))) == pytest.approx(1.0, abs=REFIT_SAMPLED)


def test_beyond_25_players_orders_are_drawn():
    X, y, _ = data(n=60, p=27)
    shares = refit(X, y, random_state=0)
    assert shares.details["method"] == "orders"
    assert (shares.std_error > 0).all()


def test_bootstrap_intervals():
    X, y, _ = data(n=200)
    shares = refit(X, y, n_bootstrap=100, level=0.9, random_state=0)
    assert (shares.intervals[:, 0] < shares.values).all()
    rng, low = np.random.default_rng(0), []
    for _ in range(100):
        counts = rng.multinomial(200, np.full(200, 1.0 / 200))
        rows = np.repeat(np.arange(200), counts)
        low.append(refit(X[rows], y[rows]).values)
    ends = np.quantile(low, [0.05, 0.95], axis=0)
    ends[0] = np.maximum(ends[0] - 2.0 * np.maximum(np.mean(low, axis=0) - shares.values, 0.0), 0.0)
    np.testing.assert_allclose(shares.intervals, ends.T, rtol=0, atol=REFIT)


def test_intervals_include_the_0_of_columns_without_influence():
    """Percentiles of resamples never do, as every fit finds something; those of the others hold as before."""
    rng, below, held = np.random.default_rng(0), [], []
    for seed in range(30):
        X = rng.normal(size=(40, 4))
        y = X[:, 0] + X[:, 1] + rng.normal(size=40) * np.sqrt(2.0)  # shares of a quarter each
        low, high = refit(X, y, n_bootstrap=100, random_state=seed).intervals.T
        below.append(low[2:] == 0.0)
        held.append((low[:2] <= 0.25) & (high[:2] >= 0.25))
    assert np.mean(below) > 0.9
    assert np.mean(held) > 0.85  # of 95 %: a percentile interval of 40 rows is a little short


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"per_row": True}, InputError, "no parts of R2 by rows"),
        ({"background": np.ones((1, 6))}, InputError, "leave them out of the fit"),
        ({"n_orders": 2}, InputError, "int >= 4"),
        ({"n_bootstrap": 10**12}, BudgetError, "More than a day"),
        ({"level": 1.0}, InputError, r"in \(0, 1\)"),
    ],
)
def test_refusals(settings, error, words):
    X, y, _ = data()
    with pytest.raises(error, match=words):
        refit(X, y, **settings)


def test_other_models_and_constant_targets_are_refused():
    from sklearn.linear_model import Ridge

    X, y, _ = data()
    with pytest.raises(UnsupportedModelError, match=r"Pass LinearRegression\(\)"):
        decompose_r2(Ridge(), X, y, game="refit")
    with pytest.raises(InputError, match="does not vary"):
        refit(X, np.full(len(y), 3.3))
    X[3, 2] = np.nan
    with pytest.raises(InputError, match="row 3"):
        refit(X, y)


def test_stored_rows_are_refused_with_a_way(tmp_path):
    with pytest.raises(InputError, match=r"Refits need their rows in memory. Got a stored table. Read it: decompose_r2\(model"):
        decompose_r2(LinearRegression(), tmp_path / "rows.parquet", "y", game="refit")


def test_a_target_that_hardly_varies_without_an_intercept_has_shares():
    rng = np.random.default_rng(0)
    for _ in range(20):  # R2 of no column is -1e12: sums of squares round relative to that
        X, y = rng.normal(size=(4, 2)), 3.0 + 3e-6 * rng.normal(size=4)
        shares = decompose_r2(LinearRegression(fit_intercept=False), X, y, game="refit")
        assert abs(shares.residual) <= shares.tolerance < 1e-12 * abs(shares.total - shares.values.sum())


def test_fractions_of_nothing_are_not_numbers():
    shares = decompose_r2(LinearRegression(), np.ones((4, 2)), [0.0, 1.0, 2.0, 4.0], game="refit")
    assert shares.total == 0.0
    assert np.isnan(shares.fractions).all()
