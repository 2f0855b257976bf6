"""Means over resampled rows, and intervals from them."""

from __future__ import annotations

import numpy as np

__all__ = ["bootstrap_deviations", "interval_around", "studentised_interval"]

# Entries of a block of row counts: 32 MiB.
_DRAWS_AT_ONCE = 2**22


def bootstrap_deviations(values: np.ndarray, n_bootstrap: int, generator: np.random.Generator) -> np.ndarray:
    r"""Return how far resampled rows' means are from the mean, (n_bootstrap, ...).

    .. math:: \sqrt{\frac{n}{n-1}}\, \Bigl(\frac{1}{n} \sum_i w_{bi} \phi_i - \bar\phi\Bigr), \qquad
              w_b \sim \mathrm{Multinomial}(n; 1/n, \dots, 1/n)

    The factor makes their variance that of the mean of n rows without bias (Hesterberg 2015). NaN for fewer than two rows.
    """
    n = len(values)
    if n < 2:
        return np.full((n_bootstrap, *values.shape[1:]), np.nan)
    flat = (values - values.mean(axis=0)).reshape(n, -1)
    deviations, step = np.empty((n_bootstrap, flat.shape[1])), max(1, _DRAWS_AT_ONCE // n)
    for start in range(0, n_bootstrap, step):
        count = min(step, n_bootstrap - start)
        deviations[start : start + count] = generator.multinomial(n, np.full(n, 1.0 / n), size=count) @ flat / n
    return np.sqrt(n / (n - 1)) * deviations.reshape(n_bootstrap, *values.shape[1:])


def interval_around(centre: np.ndarray, deviations: np.ndarray, level: float) -> np.ndarray:
    """Return percentile intervals (..., 2) around ``centre``; NaN without deviations."""
    if not len(deviations):
        return np.full((*centre.shape, 2), np.nan)
    tail = (1.0 - level) / 2.0
    return np.stack([centre + np.quantile(deviations, q, axis=0) for q in (tail, 1.0 - tail)], axis=-1)


def studentised_interval(
    values: np.ndarray, n_bootstrap: int, generator: np.random.Generator, level: float
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the bootstrap-t interval (..., 2) of the mean of rows, and its standard error.

    .. math:: \left[\bar x - t_{(1 + \mathrm{level}) / 2}\, s,\; \bar x - t_{(1 - \mathrm{level}) / 2}\, s\right], \qquad
              t_b = \frac{\bar x_b - \bar x}{s_b}

    It follows the skewness of magnitudes, for which percentile intervals are a little short (Hesterberg 2015).
    """
    n, tail = len(values), (1.0 - level) / 2.0
    mean = values.mean(axis=0)
    flat = (values - mean).reshape(n, -1)
    error = flat.std(axis=0, ddof=1) / np.sqrt(n)
    scores, step = np.empty((n_bootstrap, flat.shape[1])), max(1, _DRAWS_AT_ONCE // n)
    for start in range(0, n_bootstrap, step):
        count = min(step, n_bootstrap - start)
        shares = generator.multinomial(n, np.full(n, 1.0 / n), size=count) / n
        means = shares @ flat
        # A resample that holds one value alone has no spread: it counts as that of the rows
        spread = np.sqrt(np.maximum(shares @ np.square(flat) - np.square(means), 0.0) / (n - 1))
        scores[start : start + count] = means / np.where(spread > 1e-3 * error, spread, np.where(error > 0, error, 1.0))
    ends = [mean.ravel() - np.quantile(scores, q, axis=0) * error for q in (1.0 - tail, tail)]
    return np.stack(ends, axis=-1).reshape(*mean.shape, 2), error.reshape(mean.shape)
