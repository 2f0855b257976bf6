"""One process over rows and coalitions: against brute force over all coalitions, and on functions of rows."""

import itertools

import numpy as np
import pandas as pd
import pytest

from exactshap import explain
from exactshap.errors import BudgetError, ExplanationWarning, InputError
from exactshap.semivalues import find
from exactshap.solvers.sampled import _pooled
from exactshap.solvers.sampled._pooled import Points, Pool
from tolerances import conditioned, roundings

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(40, 8)) * np.linspace(1.5, 0.3, 8)
BACKGROUND = RNG.normal(size=(4, 8))
SETTINGS = {"estimator": "pooled", "budget": 18, "rows_together": 40}


@pytest.fixture(autouse=True)
def quicker_searches(monkeypatch):
    monkeypatch.setattr(_pooled, "RELEVANCE_POINTS", 250)


def smooth(rows):
    rows = np.asarray(rows, float)
    return np.tanh(rows[:, 0] * rows[:, 1]) + np.sin(rows[:, 2]) * rows[:, 3] + rows[:, 4:].sum(axis=1)


def two(rows):
    return np.stack([smooth(rows), np.cos(np.asarray(rows, float)[:, 0])], axis=1)


def pool_of(d=5, n_columns=6, n=40):
    """Return a process of a row's points and others', and the row; player 0 has two columns, player 3 does not differ."""
    rng = np.random.default_rng(0)
    owners = np.array([0, 0, 1, 2, 3, 4])
    rows = rng.normal(size=(n, n_columns))
    rows[:, 4] *= np.arange(n) > 9  # the first ten points are of row 0
    rows[:10] = rows[0]
    members = rng.random((n, d)) < 0.5
    members[0], members[9] = False, True
    members[:10, 3] = False
    members[1:9] = np.unique(np.concatenate([members[1:9], rng.random((40, d)) < 0.5]) & [1, 1, 1, 0, 1], axis=0)[1:9]
    distances = np.where(members[:, owners], rows, 0.0)
    logs = np.log(np.concatenate([rng.uniform(0.1, 0.5, d + n_columns), [0.05]]))
    answers = rng.normal(size=(n, 2))
    answers[0] = 0.0
    return Pool.at(Points(members, distances), answers, logs), answers, rows[0], owners


@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_values_and_variances_are_those_of_all_coalitions_of_a_row(index):
    """The mean and the covariance of all coalitions of moving players, by definition, with a white part on the row's own."""
    pool, answers, row, owners = pool_of()
    moving, own, semivalue = np.array([0, 1, 2, 4]), np.arange(10), find(index)
    values, variances, _ = pool.values(row, own, moving, owners, semivalue)
    masks = np.array(list(itertools.product([False, True], repeat=4)))
    every = np.zeros((16, 5), bool)
    every[:, moving] = masks
    both = Points(
        np.concatenate([pool.points.members, every]),
        np.concatenate([pool.points.distances, np.where(every[:, owners], row, 0.0)]),
    )
    covariance = both.kernel(pool.theta, pool.alpha)
    same = np.concatenate([(every[:, None] == pool.points.members[own]).all(axis=2), np.zeros((16, 30), bool)], axis=1)
    known = covariance[:40, :40] + pool.white * np.eye(40)
    cross, prior = covariance[40:, :40] + pool.white * same, covariance[40:, 40:] + pool.white * np.eye(16)
    weights = semivalue.weights(4)
    contrast = np.array([[(1 if mask[j] else -1) * weights[mask.sum() - mask[j]] for mask in masks] for j in range(4)])
    left = prior - cross @ np.linalg.solve(known, cross.T)
    np.testing.assert_allclose(
        values, contrast @ cross @ np.linalg.solve(known, answers), rtol=conditioned(1e4), atol=conditioned(1e3)
    )
    np.testing.assert_allclose(variances, np.diag(contrast @ left @ contrast.T), rtol=conditioned(1e5), atol=conditioned(1e3))


@pytest.mark.parametrize(("function", "weights"), [(smooth, None), (two, np.arange(1.0, 5.0))])
def test_many_rows_have_the_values_of_few_calls_each(function, weights):
    """Twelve columns and 16 coalitions a row; each of two outputs has relevances of its own."""
    rng = np.random.default_rng(5)
    rows, background = rng.normal(size=(48, 12)) * np.linspace(1.5, 0.1, 12), rng.normal(size=(4, 12))
    exact = explain(function, rows, background, background_weights=weights)
    settings = {"background_weights": weights, "budget": 16, "rows_together": 48}
    together, found = (explain(function, rows, background, estimator=name, **settings) for name in ("auto", "pooled"))
    errors = [np.sqrt(np.mean((some.values - exact.values) ** 2)) for some in (together, found)]
    assert errors[1] < 0.5 * errors[0]
    within = np.abs(found.values - exact.values) <= 2.0 * found.std_error
    assert np.all(within.mean(axis=(0, 1)) >= 0.8)  # the second output does not see 11 columns, but the calls do
    assert np.mean(within) >= 0.85
    np.testing.assert_allclose(found.residual, 0.0, atol=roundings(200))
    assert found.n_evaluations == 48 * 15 + 1  # the empty coalition is called once
    assert "over coalitions of 48 rows" in found.method


def test_outputs_do_not_depend_on_each_other():
    settings = {**SETTINGS, "deterministic": "skip"}
    alone, both = explain(smooth, ROWS, BACKGROUND, **settings), explain(two, ROWS, BACKGROUND, **settings)
    np.testing.assert_array_equal(both.values[..., 0], alone.values)
    np.testing.assert_array_equal(both.std_error[..., 0], alone.std_error)


def test_a_slow_function_is_called_few_times():
    """40 rows of 18 coalitions in two calls, besides those that check the function."""
    sizes = []

    def slow(rows):
        sizes.append(len(rows))
        return smooth(rows)

    explain(slow, ROWS, BACKGROUND, deterministic="skip", **SETTINGS)
    assert sum(size > 4 * 100 for size in sizes) == 2
    assert sum(sizes) <= 4 * (1 + 40 * 17) + 100


def test_frames_groups_and_columns_that_do_not_differ():
    background, rows = BACKGROUND.copy(), ROWS.copy()
    background[:, 6] = 0.5
    rows[:20, 6] = 0.5
    settings = {**SETTINGS, "groups": {"pair": [0, 1]}}
    found = explain(smooth, rows, background, **settings)
    names = [f"x{j}" for j in range(8)]
    frames = explain(smooth, pd.DataFrame(rows, columns=names), pd.DataFrame(background, columns=names), **settings)
    exact = explain(smooth, rows, background, groups={"pair": [0, 1]})
    np.testing.assert_array_equal(found.values, frames.values)
    assert not np.any(found.values[:20, found.feature_names.index("x6")])
    assert not np.any(found.std_error[:20, found.feature_names.index("x6")])
    assert np.abs(found.values - exact.values).max() < 0.3 * np.abs(exact.values).max()


@pytest.mark.parametrize("n_rows", [0, 1, 2, 7])
def test_blocks_of_few_rows_and_threads(n_rows):
    settings = {**SETTINGS, "rows_together": 3}
    found = explain(smooth, ROWS[:n_rows], BACKGROUND, **settings)
    again = explain(smooth, ROWS[:n_rows], BACKGROUND, n_jobs=2, **settings)
    assert found.values.shape == (n_rows, 8)
    np.testing.assert_array_equal(found.values, again.values)
    np.testing.assert_allclose(found.residual, 0.0, atol=roundings(200))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_rows_with_all_coalitions_known_are_exact(d):
    def function(rows):
        return np.exp(rows[:, 0]) * np.prod(1.0 + rows[:, 1:], axis=1)

    rows, background = ROWS[:6, :d], BACKGROUND[:, :d]
    found = explain(function, rows, background, **SETTINGS)
    exact = explain(function, rows, background)
    assert np.all(np.abs(found.values - exact.values) <= 2.0 * found.std_error + roundings(200) * np.abs(exact.values).max())
    np.testing.assert_allclose(found.values, exact.values, rtol=0, atol=conditioned(1e8) * np.abs(exact.values).max())


GAPS = np.where(ROWS > 1.4, np.nan, ROWS)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        *(({name: None}, f"estimator='pooled' needs {name}=") for name in ("budget", "rows_together")),
        *(
            ({name: value}, f"estimator='pooled' does not use '{name}'")
            for name, value in {"tol": 0.1, "pairing": True, "frontier": "screened", "surrogate": "none"}.items()
        ),
        ({"method": "enumeration"}, "samples coalitions"),
        ({"index": "k-sii", "order": 2}, "has values of single players only"),
        ({"X": GAPS}, "needs numbers in all cells"),
    ],
)
def test_what_one_process_cannot_do_is_refused(settings, words):
    settings = {name: value for name, value in {"X": ROWS, **SETTINGS, **settings}.items() if value is not None}
    with pytest.raises(InputError, match=words):
        explain(lambda rows: smooth(np.nan_to_num(rows)), settings.pop("X"), BACKGROUND, **settings)


def test_too_many_points_are_refused(monkeypatch):
    monkeypatch.setattr(_pooled, "MAX_POINTS", 500)
    with pytest.raises(BudgetError, match="40 rows together have 681; the limit is 500"):
        explain(smooth, ROWS, BACKGROUND, **SETTINGS)


def test_a_constant_function_is_said_to_be_one():
    with pytest.warns(ExplanationWarning, match="All sampled coalitions of all rows had the same answer"):
        found = explain(lambda rows: np.full(len(rows), 2.0), ROWS, BACKGROUND, **SETTINGS)
    assert not found.values.any()
    alike = explain(smooth, BACKGROUND[[0, 0]], BACKGROUND[:1], **SETTINGS)  # rows that are the background
    assert not alike.values.any()
    assert not alike.std_error.any()
