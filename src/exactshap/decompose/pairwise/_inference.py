"""Compute permutation p-values with corrections, jackknife errors and intervals of shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count, check_level, checked_generator
from exactshap._runtime.machine import physical_memory
from exactshap.errors import BudgetError, ExplanationWarning, UnknownNameError, did_you_mean, message, warn

CORRECTIONS = ("max", "holm", "fdr_bh", "fdr_by", "none")


def check_inference(n_permutations: int, correction: str, level: float) -> None:
    """Refuse impossible settings of the inference before anything is computed."""
    check_count("n_permutations", n_permutations, 0)
    if correction not in CORRECTIONS:
        raise UnknownNameError(f"Unknown `correction` {correction!r}", do=did_you_mean(str(correction), CORRECTIONS))
    check_level(level)


def check_reach(n_permutations: int, correction: str, n_values: int, level: float) -> None:
    r"""Warn if no adjusted p-value can be as small as 1 - level, whatever the data.

    .. math:: p_j \ge \frac{m}{1 + B}, \qquad m = 1 \text{ ("max", "fdr_bh", "none")}, \quad
              n \text{ ("holm")}, \quad \sum_{k \le n} 1/k \text{ ("fdr_by")}
    """
    times = {"holm": float(n_values), "fdr_by": float(np.sum(1.0 / np.arange(1, n_values + 1)))}.get(correction, 1.0)
    smallest, alpha = times / (1 + n_permutations), 1.0 - level
    # 1 - 0.9 is a little below 0.1 in floating point, which nine permutations reach exactly.
    if smallest <= alpha * (1.0 + 1e-9):
        return
    enough = int(np.ceil(times / alpha * (1.0 - 1e-9))) - 1
    other = " or correction='max'" if times > 1.0 and 1 / (1 + n_permutations) <= alpha else ""
    warn(
        message(
            f"p-values cannot reach 1 - level = {alpha:.3g}",
            f"With {n_permutations} permutations, {n_values} shares and correction={correction!r} they are at least {smallest:.3g}",
            f"Pass n_permutations={enough}{other}",
        ),
        ExplanationWarning,
    )


def check_room(n_permutations: int, numbers: int, size: int) -> None:
    """Refuse permutations that cannot be kept: each has ``numbers`` of ``size`` bytes."""
    needed = 2.0 * n_permutations * numbers * size  # NumPy copies what it permutes
    if needed > 0.8 * physical_memory():
        got = f"They would take {needed / 2.0**30:.3g} GiB"
        raise BudgetError(f"{n_permutations:,} permutations do not fit the memory", got, "Pass a smaller n_permutations")


def permutations(n_rows: int, count: int, random_state: object) -> np.ndarray:
    """Return ``count`` random permutations of the rows, of shape (count, n_rows)."""
    check_room(count, n_rows, 4)
    generator = checked_generator(random_state)
    rows = np.arange(n_rows, dtype=np.int32)
    return generator.permuted(np.tile(rows, (count, 1)), axis=1) if count else np.empty((0, n_rows), np.int32)


def permutation_p_values(observed: np.ndarray, permuted: np.ndarray, tolerance: float) -> np.ndarray:
    r"""Return one-sided p-values (n_values,) of ``observed`` among ``permuted`` (n_values, n_permutations).

    .. math:: p_j = \frac{1 + \#\{b : \phi_j^{(b)} \ge \phi_j\}}{1 + B}

    The observed order counts as one of the permutations, so that p is valid for every B and never 0 (Phipson & Smyth 2010).
    Values within ``tolerance`` (rounding) are ties.
    """
    return (1 + (permuted >= observed[:, None] - tolerance).sum(axis=1)) / (1 + permuted.shape[1])


def adjust(p_values: np.ndarray, correction: str, observed: np.ndarray, permuted: np.ndarray, tolerance: float) -> np.ndarray:
    """Return p-values adjusted for looking at several shares.

    "holm" (family-wise, Holm 1979), "fdr_bh" and "fdr_by" (false discovery rate, by SciPy), "none", and "max": family-wise
    by the permutation distribution of the largest studentised share (Westfall & Young 1993), sharper than Holm where the
    shares move together.
    """
    if correction == "none":
        return p_values.copy()
    if correction == "holm":
        order = np.argsort(p_values, kind="stable")
        # Holm: the k-th smallest p-value times the number of those that are not smaller, made monotone.
        steps = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
        adjusted = np.empty_like(p_values)
        adjusted[order] = np.minimum(steps, 1.0)
        return adjusted
    if correction == "max":
        return _largest_share(observed, permuted, tolerance)
    from scipy.stats import false_discovery_control

    return false_discovery_control(p_values, method=correction.removeprefix("fdr_"))


def tested(values: np.ndarray, permuted: np.ndarray, n_shares: int, correction: str, tolerance: float) -> dict[str, Any]:
    """Return the fields of a result that permutations give: those of the first values, shares, and of their statistic, if it follows."""
    p_values, shares = permutation_p_values(values, permuted, tolerance), slice(n_shares)
    found: dict[str, Any] = {"p_values": p_values[shares], "null_values": permuted[shares].T}
    found["p_adjusted"] = adjust(p_values[shares], correction, values[shares], permuted[shares], tolerance)
    if len(values) > n_shares:
        found |= {"p_value": float(p_values[n_shares]), "null_totals": permuted[n_shares]}
    return found


def _largest_share(observed: np.ndarray, permuted: np.ndarray, tolerance: float) -> np.ndarray:
    """Compare each studentised share with the largest one of every permutation; constant shares have z = 0."""
    # The observed order is one of the permutations, also for mean and spread: all of them are exchangeable.
    everything = np.column_stack([observed, permuted])
    spread = everything.std(axis=1, keepdims=True)
    # A share that only rounds differently has no spread to be measured by.
    moving = spread > tolerance
    z = np.where(moving, everything - everything.mean(axis=1, keepdims=True), 0.0) / np.where(moving, spread, 1.0)
    largest = z.max(axis=0)
    return (largest[None, :] >= z[:, :1] - 1e-12).mean(axis=1)


def jackknife_error(*samples: np.ndarray) -> np.ndarray:
    r"""Return standard errors (n_values,) from leave-one-out values (n_values, n_rows) of each sample.

    .. math:: \hat\sigma^2 = \sum_s \frac{n_s - 1}{n_s} \sum_i \bigl(\theta_{s,-i} - \bar\theta_{s,-\cdot}\bigr)^2
    """
    variance = np.zeros(samples[0].shape[0])
    for left_out in samples:
        n = left_out.shape[1]
        variance += (n - 1) / n * ((left_out - left_out.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return np.sqrt(variance)


def normal_intervals(values: np.ndarray, std_error: np.ndarray, level: float) -> np.ndarray:
    """Return ``values`` plus and minus the normal quantile times ``std_error``, (n_values, 2)."""
    from scipy.special import ndtri

    half = ndtri(0.5 + level / 2.0) * std_error
    return np.stack([values - half, values + half], axis=-1)
