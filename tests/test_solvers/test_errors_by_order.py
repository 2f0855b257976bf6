"""Standard errors with the orders of interaction weighed apart: every part from characters one by one, and what they are for."""

import numpy as np
import pytest
from scipy.optimize import minimize

from exactshap.games import OracleGame
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.sampled import _calibration
from exactshap.solvers.sampled._sampling import design
from exactshap.solvers.sampled.process import _orders, errors_by_order, fit_process
from tolerances import conditioned

D = 7
SHAPLEY = find("shapley")


def fitted(n_pairs=30, seed=2):
    """A process of random answers with two outputs, the second of them a thousand times the first."""
    rng = np.random.default_rng(seed)
    masks = design(D, n_pairs, rng, paired=True)
    points = 2.0 * np.concatenate([np.ones((1, D), bool), masks]) - 1.0
    answers = rng.normal(size=(2, n_pairs + 1, 1)) * np.array([1.0, 1e3])
    return fit_process(points, *answers, even=False, relevance_rows=200, max_iterations=5, rng=rng)


def asked_of(process):
    """The Shapley values, as its odd half sees them."""
    return process.ask(SHAPLEY, 1, tuple((j,) for j in range(D)))[0]


def characters(process):
    """Odd sets (n_sets, D), their prior variances by kernel (4, n_sets), their values at the rows and in Shapley values."""
    sets = (np.arange(2**D)[:, None] >> np.arange(D) & 1).astype(bool)
    sets = sets[sets.sum(axis=1) % 2 == 1]
    sizes = sets.sum(axis=1)
    smooth = np.where(sets, process.rho, 1.0).prod(axis=1) / (1.0 + process.rho).prod()
    variances = [
        smooth * (sizes == 1),
        smooth * (sizes == 3),
        smooth * (sizes > 3),
        np.full(len(sets), process.white / 2 ** (D - 1)),
    ]
    at_rows = np.where(sets, process.points[:, None], 1.0).prod(axis=2)
    return np.array(variances), at_rows, np.where(sets, 2.0 / sizes[:, None], 0.0)


def test_kernels_and_variances_are_those_of_their_characters(monkeypatch):
    process = fitted()
    monkeypatch.setattr(_orders, "BLOCK_ROWS", len(process.points) // 3)  # three blocks and what is left
    variances, at_rows, in_values = characters(process)
    kernels = np.einsum("rt,kt,st->krs", at_rows, variances, at_rows)
    rows = np.arange(len(process.points))
    np.testing.assert_allclose(_orders._kernels(process, rows), kernels, atol=conditioned(10))
    whole = kernels.sum(axis=0) + 1e-10 * np.eye(len(rows))
    linear = np.linalg.solve(whole, at_rows * variances.sum(axis=0) @ in_values)  # (n_rows, D): values from rows
    missed = in_values - at_rows.T @ linear
    expected = variances @ missed**2
    np.testing.assert_allclose(_orders._variances(process, asked_of(process)), expected, atol=conditioned(1e4) * expected.max())


def test_weights_are_the_most_probable_ones(monkeypatch):
    process = fitted()
    kernels = _orders._kernels(process, np.arange(len(process.points)))
    target = np.random.default_rng(0).normal(size=(len(process.points), 2))

    def surprise(logs):
        matrix = np.tensordot(np.exp(logs), kernels, 1) + 1e-10 * np.eye(len(target))
        fit = np.linalg.slogdet(matrix)[1] + 0.5 * (target * np.linalg.solve(matrix, target)).sum()
        return fit + 0.5 * ((logs / _orders.SPREAD) ** 2).sum()

    best = minimize(surprise, np.zeros(4), method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-9})
    monkeypatch.setattr(_orders, "ENOUGH", 1e-9)
    assert surprise(np.log(_orders._weights(kernels, target))) <= best.fun + conditioned(1e9)


def test_errors_are_each_outputs_own():
    """The weights are shared, the scale is not; an output that never changes has no error."""
    process = fitted()
    ratio = errors_by_order(process, asked_of(process))
    np.testing.assert_allclose(
        ratio[:, 0] / ratio[:, 1], np.sqrt(process.halves[0].variance[0] / process.halves[0].variance[1])
    )
    half = process.halves[0]
    half.variance[1] = 0.0
    scale = np.sqrt(half.variance[0])
    weights = _orders._weights(
        _orders._kernels(process, np.argsort(process.order)), half.half.target[:, :1][np.argsort(process.order)] / scale
    )
    alone = scale * np.sqrt(weights @ _orders._variances(process, asked_of(process)))
    np.testing.assert_allclose(
        errors_by_order(process, asked_of(process)), np.stack([alone, 0.0 * alone], axis=1), rtol=conditioned(1e3)
    )


@pytest.mark.parametrize(("n_pairs", "steps"), [(30, 0.0), (30, 1.0), (30, 0.4), (14, 0.4)])
def test_errors_with_orders_apart_written_out(n_pairs, steps):
    """Below three pairs a player only steps count; games of nothing but steps keep what they have."""
    process, rng = fitted(n_pairs), np.random.default_rng(1)
    squares, held = rng.normal(size=(n_pairs, 2)) ** 6, rng.uniform(1.0, 2.0, size=(D, 2)) * [3.0, 1e-9]
    found = _calibration._by_order(process, asked_of(process), held, squares, np.full(2, steps))
    kurtosis = (squares**2).mean(axis=0) / squares.mean(axis=0) ** 2
    raised = held * np.sqrt(1.0 + steps * kurtosis / n_pairs)
    doubt = (1.0 + (2.0 * D / (n_pairs + 1)) ** 2) * (1.0 + 3.0 * (kurtosis - 1.0) / n_pairs)
    other = process.unit * errors_by_order(process, asked_of(process)) * np.sqrt(doubt)
    lowered = raised * np.clip(other / raised, 1e-2, 1.0) ** (0.5 * (1.0 - steps))
    np.testing.assert_allclose(found, raised if n_pairs < 3 * D else lowered, rtol=conditioned(10))
    assert np.any(lowered < raised) == (steps < 1.0)


def test_answers_alike():
    """Counted one by one; numbers that differ in the last digits of the largest are alike."""
    process = fitted()
    target = process.halves[0].half.target
    target[:, 0] = np.arange(len(target)) % 2
    target[:, 1] = np.arange(len(target)) * 1e-13
    target[3, 1] = 1.0
    inner = target[process.order > 0]
    pairs = [(a, b) for a in range(len(inner)) for b in range(a)]
    expected = [np.mean([abs(inner[a, k] - inner[b, k]) < 1e-9 * np.abs(inner[:, k]).max() for a, b in pairs]) for k in (0, 1)]
    np.testing.assert_allclose(_calibration._alike(process), expected)


def test_errors_of_products_over_all_players_come_down_and_hold(monkeypatch):
    """2.1 times the errors by left-out rows alone, 1.6 with orders apart; 0.98 of the values within two of them either way."""
    slopes = [np.random.default_rng([run, 4]).normal(size=12) / np.sqrt(12.0) for run in range(8)]
    games = [OracleGame(lambda masks, w=w: np.exp(masks @ w) + np.exp(-1.5 * (masks @ w)), 12) for w in slopes]
    exact = [solve(game, method="enumeration").values for game in games]

    def ratios_and_hits():
        found = [solve(game, method="regression", budget=600, random_state=0) for game in games]
        errors = [np.abs(one.values - values) for one, values in zip(found, exact, strict=True)]
        ratios = [np.sqrt((one.std_error**2).mean() / (error**2).mean()) for one, error in zip(found, errors, strict=True)]
        return np.median(ratios), np.mean([error <= 2.0 * one.std_error for one, error in zip(found, errors, strict=True)])

    ratio, hits = ratios_and_hits()
    monkeypatch.setattr(_calibration, "MOST_PAIRS", 0)
    assert 1.0 < ratio < 0.85 * ratios_and_hits()[0]
    assert hits >= 0.94
