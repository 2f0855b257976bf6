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


def characters(process, parity=1):
    """Odd sets, or even ones, (n_sets, D), their prior variances by kernel (n_kernels, n_sets), their values at the rows and in Shapley values."""
    sets = (np.arange(2**D)[:, None] >> np.arange(D) & 1).astype(bool)
    sets = sets[sets.sum(axis=1) % 2 == parity]
    sizes = sets.sum(axis=1)
    smooth = np.where(sets, process.rho, 1.0).prod(axis=1) / (1.0 + process.rho).prod()
    low = (1, 3) if parity else (0, 2)
    white = np.full(len(sets), process.white / 2 ** (D - 1))
    variances = [*(smooth * (sizes == size) for size in low), smooth * (sizes > low[1]), white]
    at_rows = np.where(sets, process.points[:, None], 1.0).prod(axis=2)
    return np.array(variances), at_rows, np.where(sets, 2.0 / np.maximum(sizes, 1)[:, None], 0.0)


def rows_told(process):
    """What both halves of all rows say of the weights."""
    half, rows = process.halves[0], np.argsort(process.order)
    scale = np.sqrt(half.variance)
    odd = half.half.target[rows] / scale
    told = np.full(2, True)
    return [
        _orders.Rows([0, 1, 2, 3], _orders._kernels(process, rows), odd),
        _orders._even_rows(process, rows, odd, told, scale),
    ]


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


def test_even_kernels_are_those_of_their_characters_less_the_first_row():
    """Order 2 in units of what was answered, as the even half may be of any size."""
    process = fitted()
    told = rows_told(process)[1]
    rows = np.argsort(process.order)
    (_, two, rest, white), at_rows, _ = characters(process, parity=0)
    apart = at_rows[rows][1:] - at_rows[rows][:1]
    target = process.even.target[rows] * (process.even.scale / process.unit / np.sqrt(process.halves[0].variance))
    np.testing.assert_allclose(told.target, target[1:] - target[0], atol=conditioned(10))
    size = (target**2).mean() / two.sum()  # of a character of variance 1 the mean square is 1
    for kernel, variances in zip(told.kernels, (size * two, rest, white), strict=True):
        expected = np.einsum("rt,t,st->rs", apart, variances, apart)
        np.testing.assert_allclose(kernel, expected, atol=conditioned(1e3) * np.abs(expected).max())


@pytest.mark.parametrize("both", [False, True])
def test_weights_are_the_most_probable_ones(monkeypatch, both):
    told = rows_told(fitted())[: 1 + both]

    def surprise(logs):
        prior = ((logs[:5] / _orders.SPREAD) ** 2).sum() + (logs[2] - logs[5]) ** 2
        for places, kernels, target in told:
            matrix = np.tensordot(np.exp(logs[places]), kernels, 1) + 1e-10 * np.eye(len(target))
            prior += target.shape[1] * np.linalg.slogdet(matrix)[1] + (target * np.linalg.solve(matrix, target)).sum()
        return 0.5 * prior

    best = minimize(surprise, np.zeros(6), method="Nelder-Mead", options={"maxiter": 8000, "maxfev": 8000, "fatol": 1e-9})
    monkeypatch.setattr(_orders, "ENOUGH", 1e-9)
    assert surprise(np.log(_orders._weights(told))) <= best.fun + conditioned(1e9)


def test_errors_are_each_outputs_own():
    """The weights are shared, the scale is not; an output that never changes has no error."""
    process = fitted()
    ratio, share = errors_by_order(process, asked_of(process))
    half = process.halves[0]
    np.testing.assert_allclose(ratio[:, 0] / ratio[:, 1], np.sqrt(half.variance[0] / half.variance[1]))
    parts = _orders._weights(rows_told(process))[:4, None] * _orders._variances(process, asked_of(process))
    np.testing.assert_allclose(ratio[:, 0], np.sqrt(parts.sum(axis=0) * half.variance[0]), rtol=conditioned(1e3))
    np.testing.assert_allclose(share, parts[:2].sum() / parts.sum(), rtol=conditioned(1e3))
    half.variance[1] = 0.0
    alone = errors_by_order(process, asked_of(process))[0]
    assert np.all(alone[:, 0] > 0)
    assert np.all(alone[:, 1] == 0)


@pytest.mark.parametrize(("n_pairs", "steps"), [(30, 0.0), (30, 1.0), (30, 0.4), (14, 0.4)])
def test_errors_with_orders_apart_written_out(n_pairs, steps):
    """Below three pairs a player only steps count; games of nothing but steps keep what they have."""
    process, rng = fitted(n_pairs), np.random.default_rng(1)
    squares, held = rng.normal(size=(n_pairs, 2)) ** 6, rng.uniform(1.0, 2.0, size=(D, 2)) * [3.0, 1e-9]
    found = _calibration._by_order(process, asked_of(process), held, squares, np.full(2, steps))
    kurtosis = (squares**2).mean(axis=0) / squares.mean(axis=0) ** 2
    raised = held * np.sqrt(1.0 + steps * kurtosis / n_pairs)
    doubt = (1.0 + (2.0 * D / (n_pairs + 1)) ** 2) * (1.0 + 3.0 * (kurtosis - 1.0) / n_pairs)
    by_order, share = errors_by_order(process, asked_of(process))
    other = process.unit * by_order * np.sqrt(doubt)
    lowered = raised * np.clip(other / raised, 1e-2, 1.0) ** (0.5 * (1.0 + share) * (1.0 - steps))
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
    """2.0 times the errors by left-out rows alone, 1.7 with orders apart; 0.98 of the values within two of them either way."""
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
    assert 1.0 < ratio < 0.95 * ratios_and_hits()[0]
    assert hits >= 0.94


def ratio_and_hits(game_of, d, budget, n_runs=12):
    """Root mean square of the errors reported over those made, and the share of values within two of them."""
    reported, made = [], []
    for run in range(n_runs):
        game = OracleGame(game_of(np.random.default_rng([run, d])), d)
        found = solve(game, method="regression", budget=budget, random_state=run)
        reported.append(found.std_error)
        made.append(np.abs(found.values - solve(game, method="enumeration").values))
    reported, made = np.array(reported), np.array(made)
    return np.sqrt((reported**2).mean() / (made**2).mean()), np.mean(made <= 2.0 * reported)


def triples(rng, d=8):
    """Products of three columns at a time, and nothing beyond."""
    parts, heights = [rng.permutation(d)[:3] for _ in range(12)], rng.normal(size=12)
    x, z = rng.normal(size=(2, d))
    return lambda masks: sum(h * np.where(masks, x, z)[:, J].prod(axis=1) for J, h in zip(parts, heights, strict=True))


def test_the_even_half_tells_that_nothing_is_beyond_three_columns(monkeypatch):
    """2 times the errors made; 23 times by the odd half alone, as 47 of 127 pairs do not tell order 3 from what is beyond."""
    ratio, hits = ratio_and_hits(triples, 8, 96)
    assert hits >= 0.94
    monkeypatch.setattr(_orders, "ENOUGH_CALLED", 2.0)
    assert ratio_and_hits(triples, 8, 96)[0] > 5.0 * ratio > 5.0


def test_a_game_whose_complements_add_up_to_a_constant_is_told_by_its_odd_half_alone(monkeypatch):
    """Every order is in the odd half, none in the even one."""

    def odd(rng, d=8):
        slopes = rng.normal(size=d)
        return lambda masks: np.tanh((2.0 * masks - 1.0) @ slopes)

    ratio, hits = ratio_and_hits(odd, 8, 96, n_runs=4)
    assert hits >= 0.92
    monkeypatch.setattr(_orders, "ENOUGH_CALLED", 2.0)
    assert ratio_and_hits(odd, 8, 96, n_runs=4) == (ratio, hits)


def test_players_whom_left_out_rows_concern_most_have_larger_errors_written_out():
    process, rng = fitted(), np.random.default_rng(1)
    asked, residuals = asked_of(process), np.random.default_rng(0).normal(size=(25, 2)) ** 3
    residuals[np.abs(asked.influence[-25:]).max(axis=1).argmax(), 1] = 100.0  # what one row says of one player
    kurtosis, weights = rng.uniform(2.0, 5.0, size=2), asked.influence[-25:] ** 2
    found = _calibration._apart(asked, residuals, kurtosis)
    moved = np.array([[(weights[:, j] * residuals[:, k] ** 2).sum() / asked.left[j] for k in (0, 1)] for j in range(D)])
    shares = np.array([weights[:, j] / weights[:, j].sum() for j in range(D)])
    chance = 0.25 * np.sqrt(kurtosis - 1.0) * np.sqrt(((shares - shares.mean(axis=0)) ** 2).sum(axis=1))[:, None]
    expected = np.clip(np.sqrt(moved / np.median(moved, axis=0) / (1.0 + chance)), 1.0, 1.5)
    np.testing.assert_allclose(found, expected, rtol=conditioned(10))
    assert found.min() == 1.0 < np.sort(found.ravel())[-2] < found.max() == 1.5
    np.testing.assert_array_equal(_calibration._apart(asked_of(fitted(14)), residuals[:15], kurtosis), 1.0)


def test_players_of_a_rare_joint_effect_have_larger_errors(monkeypatch):
    """Seven of forty columns need each other: the prior makes their values wrong in one direction, by 1.7 of their errors, 1.2 with players apart."""

    def ratio():
        reported, made = [], []
        for run in range(8):
            x = np.abs(np.random.default_rng([run, 40]).normal(size=40))
            game = OracleGame(lambda masks, x=x: masks @ x + 5.0 * ~masks[:, :7].any(axis=1), 40)
            found = solve(game, method="regression", budget=700, random_state=run)
            made.append(found.values - x + 5.0 / 7.0 * (np.arange(40) < 7))
            reported.append(found.std_error)
        return np.sqrt((np.array(made) ** 2).mean(axis=0) / (np.array(reported) ** 2).mean(axis=0))

    now = ratio()
    monkeypatch.setattr(_calibration, "_apart", lambda *_: np.ones((40, 1)))
    before = ratio()
    assert now[:7].mean() < 0.8 * before[:7].mean()
