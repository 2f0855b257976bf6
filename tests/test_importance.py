"""Importances with intervals: estimates, coverage, and what noise and a sampled background do to them."""

from dataclasses import replace

import numpy as np
import pandas
import pytest
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnknownNameError
from explanation_factory import linear
from tolerances import assert_close


def normal_rows(rng, n, noise=0.0, shift=0.0):
    """Return rows whose values are normal with spread 1: E|value| is known; sampled with standard error ``noise``."""
    values = shift + rng.normal(size=(n, 3))
    noisy = values + noise * rng.normal(size=values.shape)
    prediction = noisy.sum(axis=1)
    error = np.full(values.shape, noise) if noise else None
    return linear(noisy, values=noisy, baseline=np.zeros(n), prediction=prediction, residual=0.0 * prediction, std_error=error)


def coverage(draw, truth, replicates=120):
    inside, estimates = [], []
    for seed in range(replicates):
        importance = draw(np.random.default_rng(seed), seed)
        inside.append((importance.lower <= truth) & (truth <= importance.upper))
        estimates.append(importance.values)
    return float(np.mean(inside)), float(np.mean(estimates))


# 120 replicates of three players: a coverage of 0.95 is off by 0.0115 by chance; three of these and a percent of slack.
COVERED = (0.905, 0.995)
# Student's intervals of two rows cover 0.93 for magnitudes of normal numbers: three times 0.009 for 800 players, and a percent of slack.
FEW_COVERED = 0.89
TRUTH = np.sqrt(2.0 / np.pi)


def test_exact_values_give_plain_means():
    explanation = normal_rows(np.random.default_rng(0), 50)
    importance = explanation.importance()
    assert_close(importance.values, np.abs(explanation.values).mean(axis=0), scale=1.0, n_terms=50)
    assert_close(explanation.importance(None).values, explanation.abs().mean().values, scale=1.0, n_terms=50)
    assert explanation.importance(None).lower is None
    assert (importance.lower < importance.values).all()
    assert (importance.values < importance.upper).all()
    assert importance["x1"] == importance.values[1]
    with pytest.raises(UnknownNameError):
        importance["age"]


def test_intervals_over_rows_cover():
    covered, mean = coverage(lambda rng, seed: normal_rows(rng, 80).importance(n_bootstrap=400, random_state=seed), TRUTH)
    assert COVERED[0] < covered < COVERED[1]
    assert mean == pytest.approx(TRUTH, abs=4 * 0.6 / np.sqrt(120 * 3 * 80))


def many_players(values, **settings):
    """Return an explanation in which each player is a sample of its own."""
    n = len(values)
    ends = {"baseline": np.zeros(n), "prediction": values.sum(axis=1), "residual": np.zeros(n)}
    names = [f"x{j}" for j in range(values.shape[1])]
    return linear(np.zeros(values.shape), values=values, names=names, data=None, tolerance=1.0, **ends, **settings)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("kind", ["normal", "coin"])
def test_intervals_of_few_rows_cover(n, kind):
    """A bootstrap-t alone holds in 0.5 of the cases for two rows, and in 0.6 for five of a column that is 0 or 1."""
    rng = np.random.default_rng(n)
    values = rng.normal(size=(n, 800)) if kind == "normal" else np.where(rng.random((n, 800)) < 0.5, 1.0, 0.0)
    truth = TRUTH if kind == "normal" else 0.5
    found = many_players(values).importance(n_bootstrap=400)
    varies = np.ptp(values, axis=0) > 0  # equal rows say nothing of others
    covered = np.mean((found.lower <= truth) & (truth <= found.upper) | ~varies)
    assert covered > FEW_COVERED


def test_intervals_with_few_background_rows_cover():
    rng = np.random.default_rng(0)
    rows, reference = rng.normal(size=(2, 800)), rng.normal(size=(2, 800))
    by_row = rows[None] - reference[:, None]
    found = many_players(by_row.mean(axis=0)).importance(background_values=by_row)
    assert np.mean((found.lower <= TRUTH) & (found.upper >= TRUTH)) > FEW_COVERED  # 0.80 of normal intervals
    assert "Student intervals over rows and background rows" in found.method


@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
@pytest.mark.parametrize("sampled", [False, True])
def test_units_do_not_matter(exponent, sampled):
    """Squares of values beyond 1e154 overflow, and those below 1e-162 vanish: intervals were NaN, or of no width."""
    values = np.random.default_rng(3).normal(size=(12, 3))
    unit, error = 2.0**exponent, np.full((12, 3), 0.1) if sampled else None
    one = many_players(values, std_error=error).importance()
    other = many_players(values * unit, std_error=None if error is None else error * unit).importance()
    for name in ("values", "lower", "upper", "std_error"):
        np.testing.assert_array_equal(getattr(other, name), getattr(one, name) * unit)
    by_row = values + np.random.default_rng(4).normal(size=(5, 12, 3))
    one, other = (many_players((by_row * u).mean(axis=0)).importance(background_values=by_row * u) for u in (1.0, unit))
    np.testing.assert_array_equal(other.upper, one.upper * unit)


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_noise_is_taken_off_sampled_values(shift):
    truth = np.abs(shift + np.random.default_rng(0).normal(size=10**6)).mean()
    debiased, mean = coverage(lambda rng, _: normal_rows(rng, 250, 0.4, shift).importance(n_bootstrap=400), truth)
    assert COVERED[0] < debiased < COVERED[1]
    naive = np.mean([np.abs(normal_rows(np.random.default_rng(s), 250, 0.4, shift).values).mean() for s in range(120)])
    assert abs(mean - truth) < 0.25 * abs(naive - truth)


def posterior_means(rng, n, spread, noise):
    """Values of a Gaussian process: means of spread ``spread``, around which the values have the standard error ``noise``."""
    means = spread * rng.normal(size=(n, 3))
    error, prediction = np.full(means.shape, noise), means.sum(axis=1)
    found = linear(means, values=means, baseline=np.zeros(n), prediction=prediction, residual=0.0 * prediction, std_error=error)
    return replace(found, method="regression (Gaussian process over coalitions, 30 calls)")


@pytest.mark.parametrize("rows", [normal_rows, posterior_means])
def test_a_column_of_noise_may_have_no_influence(rows):
    """Magnitudes of noise are above 0, each of them: only their squares say whether they are more than noise."""
    rng = np.random.default_rng(0)
    found = normal_rows(rng, 200, 0.5) if rows is normal_rows else posterior_means(rng, 200, 1.0, 0.5)
    values, error = found.values.copy(), found.std_error.copy()
    values[:, 0] = 0.5 * rng.normal(size=200)
    values[:, 1] = error[:, 1] = 0.0
    values[:50, 0] = error[:50, 0] = 0.0  # known, as of rows that do not differ from the background there
    prediction = values.sum(axis=1)
    importance = replace(found, values=values, std_error=error, prediction=prediction).importance()
    assert importance.values[0] > 0.1
    np.testing.assert_array_equal(importance.lower[:2], 0.0)
    assert importance.upper[0] > importance.values[0]
    assert importance.upper[1] == 0.0
    assert importance.lower[2] > 0.5


@pytest.mark.parametrize("spread", [0.05, 0.5, 3.0])
def test_intervals_of_posterior_means_have_room_for_what_these_lack(spread):
    """Values are normal around their posterior means, so that E|value| is known."""
    covered, _ = coverage(lambda rng, _: posterior_means(rng, 100, spread, 1.0).importance(), TRUTH * np.hypot(spread, 1.0))
    assert covered > COVERED[0]


def test_a_sampled_background_widens_the_intervals():
    """f(x) = product of two columns: values by background row are known, and so is E|value| of a large population."""

    def by_row(X, Z):
        a, b = X[None], Z[:, None]
        return 0.5 * np.stack([(a - b)[..., 0] * (a + b)[..., 1], (a + b)[..., 0] * (a - b)[..., 1]], axis=-1)

    def draw(rng, _):
        X, Z = rng.normal(1.0, 1.0, (150, 2)), rng.normal(1.0, 1.0, (60, 2))
        values = by_row(X, Z)
        mean = values.mean(axis=0)
        prediction = mean.sum(axis=1)
        explanation = linear(X, values=mean, baseline=0 * prediction, prediction=prediction, residual=0 * prediction)
        return explanation.importance(background_values=values)

    # v(S) of the population: E over Z of each value, in closed form, then the mean over many rows
    X = np.random.default_rng(0).normal(1.0, 1.0, (10**6, 2))
    truth = np.array(
        [
            np.abs(0.5 * (X[:, 0] * X[:, 1] + X[:, 0] - X[:, 1] - 1.0)).mean(),
            np.abs(0.5 * (X[:, 0] * X[:, 1] + X[:, 1] - X[:, 0] - 1.0)).mean(),
        ]
    )
    covered, _ = coverage(draw, truth)
    assert COVERED[0] - 0.02 < covered < COVERED[1]


def test_many_rows_have_normal_intervals():
    rng = np.random.default_rng(0)
    importance = normal_rows(rng, 20_001).importance()
    assert "normal" in importance.method
    few = normal_rows(rng, 20_000).importance(n_bootstrap=200)
    assert "bootstrap-t" in few.method
    assert np.ptp([importance.upper - importance.lower, few.upper - few.lower], axis=0).max() < 0.2 * TRUTH * 0.1


def test_importances_of_several_outputs_have_a_line_each():
    explanation = linear(np.random.default_rng(0).normal(size=(30, 3)), n_outputs=2)
    importance = explanation.importance()
    assert importance.values.shape == (3, 2)
    frame = importance.to_frame("pandas")
    assert list(frame.columns) == ["player", "output", "importance", "std_error", "lower", "upper"]
    assert len(frame) == 6
    one = explanation.output("class 1").importance()
    assert_close(frame["importance"][frame["output"] == "class 1"], one.values, scale=1.0)


def test_it_is_of_models_too_and_prints_the_strongest_first():
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(90, 3)), columns=["age", "bmi", "bp"])
    explainer = Explainer(SVR(C=10.0).fit(X, 3 * X["bmi"] + X["bp"]), X[:20])
    explanation = explainer(X[20:])
    importance = explanation.importance(background_values=explainer.background_values(X[20:]))
    lines = repr(importance).splitlines()
    assert lines[1].split()[0] == "bmi"
    assert "lower 95 %" in lines[0]
    assert "background" in lines[-1]
    assert isinstance(importance.to_frame(), pandas.DataFrame)


def test_what_cannot_be_is_refused():
    explanation = normal_rows(np.random.default_rng(0), 5)
    with pytest.raises(InputError, match="interval"):
        explanation.importance(95)
    with pytest.raises(InputError, match="at least 2 rows"):
        explanation[0].importance()
    assert explanation[0].importance(None).values.shape == (3,)


def test_the_interval_is_the_bootstrap_t_of_the_rows():
    """The same resamples in plain Python: t of each resample, and its quantiles upside down."""
    explanation = normal_rows(np.random.default_rng(5), 40)
    importance = explanation.importance(0.8, n_bootstrap=300, random_state=7)
    x = np.abs(explanation.values)
    counts = np.random.default_rng(7).multinomial(40, np.full(40, 1 / 40), size=300)
    error = x.std(axis=0, ddof=1) / np.sqrt(40)
    for j in range(3):
        scores = []
        for count in counts:
            again = np.repeat(x[:, j], count)
            scores.append((again.mean() - x[:, j].mean()) / (again.std(ddof=1) / np.sqrt(40)))
        low, high = x[:, j].mean() - np.quantile(scores, [0.9, 0.1]) * error[j]
        assert_close([importance.lower[j], importance.upper[j]], [low, high], scale=100.0, n_terms=40)


def test_a_player_without_spread_has_an_interval_without_width():
    explanation = linear(np.column_stack([np.full(20, 0.5), np.arange(20.0)]))
    importance = explanation.importance(n_bootstrap=100)
    assert importance.lower[0] == importance.upper[0] == importance.values[0]
    assert np.isfinite(importance.lower).all()


def test_nothing_is_taken_off_posterior_means():
    def predict(rows):
        return np.tanh(rows[:, 0] * rows[:, 1] + rows[:, 2]) + rows @ np.linspace(0.0, 0.3, 10)

    rng = np.random.default_rng(0)
    rows, background = rng.normal(size=(40, 10)), rng.normal(size=(6, 10))
    exact = np.abs(explain(predict, rows, background).values).mean(axis=0)
    sampled = explain(predict, rows, background, budget=30)
    importance = sampled.importance()
    np.testing.assert_allclose(importance.values, np.abs(sampled.values).mean(axis=0))
    np.testing.assert_allclose(importance.values, exact, atol=0.02 * exact.max())
    certain = replace(sampled, std_error=0.0 * sampled.std_error).importance()
    assert np.all(importance.upper - importance.lower > certain.upper - certain.lower)
