"""Estimate importances with intervals: debiased means, and the bootstrap over rows."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.checks import check_count, checked_generator
from exactshap._runtime.slices import slices
from exactshap._runtime.words import PrintedTable
from exactshap.errors import InputError
from exactshap.results.data._certificate import near_one, without_noise
from exactshap.results.data._frames import frame_kind, frame_of
from exactshap.results.data._validation import place_of

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

_SHOWN = 10  # players of a printed table
# Rows beyond which a mean is normal for all purposes, and resampling takes seconds.
MAX_ROWS_RESAMPLED = 20_000
# Rows up to which resamples repeat too few of them: a bootstrap-t of two rows of normal numbers covers 0.50 in place of 0.95, of three
# 0.84, of eight that are 0 or 1 0.83. Student's interval covers 0.93, 0.92 and 0.93; the wider of both is taken.
_FEW_ROWS = 10
# A posterior mean lacks what is uncertain of a value, where a mean of draws has it in addition: there is no noise to take off.
_SHRUNKEN = "Gaussian process over coalitions"
# Of its standard errors, what rows have in common, which does not average out: 0.07 to 0.23 with 30 to 120 calls a row. It is how values
# shrink, so that neither other coalitions for each row nor the variance between blocks of rows show it.
_SHARED = 0.15
# The frequency, in units of one over the noise, at which the taper ends, and the share of it that is kept whole: higher ones have less
# bias and wider intervals (benchmarks/bench_importance.py). Values above so many standard errors have no bias.
_CUT, _WHOLE, _FAR = 3.0, 0.5, 12.0
# Entries of a block of row counts: 32 MiB.
_DRAWS_AT_ONCE = 2**22


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Importance(PrintedTable):
    """Hold mean magnitudes of values with their intervals. :meth:`exactshap.Explanation.importance` returns it.

    Attributes
    ----------
    names : tuple of str
        Of the players.
    values : array of shape (n_players[, n_outputs])
        Estimates of E|value|, in the unit of the model output.
    std_error, lower, upper : arrays like ``values``, or None
        Standard errors and ends of the intervals; None where there are none.
    level : float or None
        Of the intervals.
    method : str
        How the values and intervals were estimated, and over what.
    output_names : tuple of str or None
    unit : str
    n_rows : int
    tolerance : float
        Numbers up to this one are printed as 0: rounding.

    Examples
    --------
    >>> from exactshap import Explanation
    >>> explanation = Explanation(
    ...     values=[[1.0, -2.0], [3.0, 2.0]], baseline=[0.0, 0.0], prediction=[-1.0, 5.0], residual=[0.0, 0.0], tolerance=1e-12,
    ...     feature_names=["age", "bmi"], value_function="baseline",
    ... )
    >>> explanation.importance(interval=None)
      player  mean |value|
      age                2
      bmi                2
      means of |value|
    """

    names: tuple[str, ...]
    values: np.ndarray
    std_error: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    level: float | None = None
    method: str = ""
    output_names: tuple[str, ...] | None = None
    unit: str = "response"
    n_rows: int = 0
    tolerance: float = 0.0
    data: Any = None

    def __getitem__(self, name: str) -> Any:
        return self.values[place_of(name, self.names, "player")]

    def to_frame(self, kind: str | None = None) -> Any:
        """Return one row per player (and output), in column order.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"} or None, default=None
            None: as the data; for arrays the first of these three that is installed.
        """
        return frame_of(None, self.columns(), kind or frame_kind(self.data))

    def columns(self) -> dict[str, Any]:
        """Return the columns of :meth:`to_frame`."""
        n_outputs = 1 if self.output_names is None else len(self.output_names)
        columns: dict[str, Any] = {"player": np.repeat(np.array(self.names, object), n_outputs)}
        if self.output_names is not None:
            columns["output"] = np.tile(np.array(self.output_names, object), len(self.names))
        numbers = {"importance": self.values, "std_error": self.std_error, "lower": self.lower, "upper": self.upper}
        return columns | {name: np.ravel(array) for name, array in numbers.items() if array is not None}

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        columns = self.columns()
        order = np.argsort(-columns["importance"], kind="stable")[:_SHOWN]
        headings = [name for name in columns if name not in ("importance", "std_error", "lower", "upper")]
        rows = [[str(columns[name][line]) for name in headings] for line in order]
        for row, line in zip(rows, order, strict=True):
            row += [f"{without_noise(columns['importance'][line], self.tolerance):.4g}"]
            if self.level is not None:
                row += [f"{without_noise(columns[end][line], self.tolerance):.4g}" for end in ("lower", "upper")]
        ends = [] if self.level is None else [f"lower {100 * self.level:g} %", f"upper {100 * self.level:g} %"]
        return [*headings, "mean |value|", *ends], rows, self.values.size

    def _note(self) -> str:
        return self.method


def importance(
    explanation: ExplanationData,
    interval: float | None = 0.95,
    *,
    background_values: np.ndarray | None = None,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> Importance:
    """Return mean magnitudes with intervals for other rows of the same kind.

    Intervals are of the bootstrap-t over rows (of up to ten rows joined with Student's); with ``background_values`` they are
    Student's, and beyond 20,000 rows normal. Estimates of sampled values, and those with ``background_values``, are without the bias
    that noise gives to magnitudes. Players of which all values may be 0 within their standard errors have intervals from 0.

    Parameters
    ----------
    interval : float or None, default=0.95
        Probability of the intervals; None for no intervals.
    background_values : array of shape (n_background, n_rows, n_players[, n_outputs]), default=None
        Of :meth:`exactshap.Explainer.background_values`: the background is a sample, too, of rows that are not explained here.
    n_bootstrap, random_state : int, default=1000 and 0
        Of the bootstrap.

    Returns
    -------
    importance : Importance
        ``values``, ``lower``, ``upper``, ``method``, ``to_frame()``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> from exactshap import explain
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> importance = explain(SVR(C=10.0).fit(X, y), X[100:], X[:100]).importance()
    >>> importance.lower[2] < importance["bmi"] < importance.upper[2]
    np.True_
    """
    if interval is not None and not (isinstance(interval, float) and 0 < interval < 1):
        raise InputError("The 'interval' parameter must be a float in (0, 1) or None", f"Got {interval!r}")
    least = 1 if interval is None else 2
    if explanation.n_rows < least:
        got = f"Got {explanation.n_rows}"
        raise InputError(f"Importances{' with intervals' * (least > 1)} need at least {least} rows", got)
    values, noise, by_row = np.asarray(explanation.values), explanation.std_error, None
    if background_values is not None:
        by_row = checked_background_values(explanation, background_values)
        scaled, exponent = near_one(by_row)
        noise = np.ldexp(scaled.std(axis=0, ddof=1), exponent) / np.sqrt(len(by_row))
    magnitudes, slopes, words = np.abs(values), np.sign(values), "means of |value|"
    shared = _SHARED * noise.mean(axis=0) if by_row is None and noise is not None and _SHRUNKEN in explanation.method else None
    if noise is not None and shared is None:
        magnitudes, slopes = corrected_magnitudes(values, noise)
        words = "debiased means of |value|: noise alone would raise them"
    estimate = magnitudes.mean(axis=0)
    facts = {
        "names": explanation.feature_names,
        "output_names": explanation.output_names,
        "unit": explanation.unit,
        "n_rows": explanation.n_rows,
        "tolerance": float(explanation.tolerance.max(initial=0.0)),
        "data": explanation.data,
    }
    if interval is None:
        return Importance(values=np.maximum(estimate, 0.0), method=words, **facts)
    varies = "rows" if noise is None else "rows and sampling" if by_row is None else "rows and background rows"
    fixed = "for this model" if by_row is not None else "for this model and background"
    if by_row is not None or explanation.n_rows > MAX_ROWS_RESAMPLED:
        error, freedom = _error_of_mean(magnitudes, slopes, by_row)
        reach = error * _student_reach(interval, freedom)
        ends = np.stack([estimate - reach, estimate + reach], axis=-1)
        over = f"{'normal' if by_row is None else 'Student'} intervals over {varies}, {fixed}"
    else:
        check_count("n_bootstrap", n_bootstrap, 2)
        ends, error = studentised_interval(magnitudes, n_bootstrap, checked_generator(random_state), interval)
        over = f"bootstrap-t over {varies} ({n_bootstrap:,} resamples), {fixed}"
    if noise is not None:
        ends, error = _of_sampled(ends, error, estimate, values, noise, shared, interval)
    return Importance(
        # Debiased magnitudes may be negative for values that are all noise: a mean magnitude is not.
        values=np.maximum(estimate, 0.0),
        std_error=error,
        lower=np.maximum(ends[..., 0], 0.0),
        upper=np.maximum(ends[..., 1], 0.0),
        level=interval,
        method=f"{words}; {over}",
        **facts,
    )


@functools.cache
def _corrected() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points u >= 0, with tau and its slope there for a standard error of 1."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    # Beyond the cut the taper K is 0, where the integral of 1 / w^2 is 1 / _CUT.
    w, weights = _CUT * (nodes + 1.0) / 2.0, _CUT * weights / 2.0
    x = np.clip((w / _CUT - _WHOLE) / (1.0 - _WHOLE), 0.0, 1.0)
    kept = (1.0 - x**3 * (10.0 - 15.0 * x + 6.0 * x**2)) * np.exp(w**2 / 2.0)
    u = np.arange(0.0, _FAR, 0.01)
    phase = np.outer(u, w)
    tau = (1.0 - kept * np.cos(phase)) @ (weights / w**2) + 1.0 / _CUT
    return u, tau * 2.0 / np.pi, (kept * np.sin(phase)) @ (weights / w) * 2.0 / np.pi


def corrected_magnitudes(values: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return magnitudes without the bias of noise, and their slopes.

    .. math:: |u| = \frac2\pi \int_0^\infty \frac{1 - \cos wu}{w^2}\, dw, \qquad
              \tau(u) = \frac2\pi \int_0^\infty \frac{1 - K(w) e^{w^2 \sigma^2 / 2} \cos wu}{w^2}\, dw

    A value with normal noise has :math:`E\, e^{w^2 \sigma^2 / 2} \cos w\hat\phi = \cos w\phi`, so that :math:`E\,\tau(\hat\phi)` is
    :math:`|\phi|` up to the frequencies that the taper K leaves out, beyond :data:`_CUT` over the noise. Values with a density that varies
    little over the noise have none there; values that are all 0 keep 0.3 of the noise.

    Parameters
    ----------
    values : array of shape (n_rows, n_players[, n_outputs])
    noise : array like ``values``
        Standard errors.
    """
    scaled = np.abs(values) / np.where(noise > 0, noise, 1.0)
    is_near = (noise > 0) & (scaled < _FAR)
    places, tau, slope = _corrected()
    magnitudes = np.where(is_near, noise * np.interp(scaled, places, tau), np.abs(values))
    return magnitudes, np.sign(values) * np.where(is_near, np.interp(scaled, places, slope), 1.0)


def _of_sampled(
    ends: np.ndarray,
    error: np.ndarray,
    estimate: np.ndarray,
    values: np.ndarray,
    noise: np.ndarray,
    shared: np.ndarray | None,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals and standard errors of values with noise. ``shared`` is that of all rows."""
    if shared is not None:
        # It does not average out: it is added to the error of the mean, as for independent terms.
        wider = np.hypot(error, shared)
        ends = estimate[..., None] + (ends - estimate[..., None]) * (wider / np.where(error > 0, error, 1.0))[..., None]
        error = wider
        ends[..., 1] += _hidden(values, noise)
    ends[..., 0] = np.where(_may_be_noise(values, noise, level), 0.0, ends[..., 0])
    return ends, error


def _hidden(values: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Return what magnitudes of posterior means may lack, (n_players[, n_outputs]). They leave out what is uncertain.

    .. math:: \frac1n \sum_i \bigl(E\,|\hat\phi_i + \sigma_i \varepsilon| - |\hat\phi_i|\bigr), \qquad
              E\,|u + \varepsilon| = \sqrt{2 / \pi}\, e^{-u^2 / 2} + u \operatorname{erf}(u / \sqrt 2)
    """
    from scipy.special import erfc

    u = np.divide(np.abs(values), noise, out=np.zeros_like(values), where=noise > 0)
    return np.asarray((noise * (np.sqrt(2.0 / np.pi) * np.exp(-(u**2) / 2.0) - u * erfc(u / np.sqrt(2.0)))).mean(axis=0))


def _may_be_noise(values: np.ndarray, noise: np.ndarray, level: float) -> np.ndarray:
    r"""Return which players' values may all be 0, (n_players[, n_outputs]).

    .. math:: \sum_i \hat\phi_i^2 / \sigma_i^2 \le \chi^2_{n,\, \mathrm{level}}

    Magnitudes of noise have a mean above 0, with an interval that is short of it.
    """
    from scipy.special import chdtri

    scaled = np.divide(values, noise, out=np.where(values == 0, 0.0, np.inf), where=noise > 0)
    return np.asarray((scaled**2).sum(axis=0) <= chdtri(len(values), 1.0 - level))


def _error_of_mean(magnitudes: np.ndarray, slopes: np.ndarray, by_row: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    r"""Return standard errors (n_players[, n_outputs]) of means of magnitudes, and their degrees of freedom.

    .. math:: \frac{\mathrm{Var}_x(\tau)}{n} + \frac1m \mathrm{Var}_z\left( \frac1n \sum_x \tau'(\hat\phi(x))\, \phi(x; z) \right) = a + b,
              \qquad \nu = \frac{(a + b)^2}{a^2 / (n - 1) + b^2 / (m - 1)}

    Noise of sampled values is independent from row to row and part of the first term; a background is shared by all rows. The degrees of
    freedom are Welch's and Satterthwaite's.
    """
    n = len(magnitudes)
    magnitudes, exponent = near_one(magnitudes)
    variance = magnitudes.var(axis=0, ddof=1) / n
    parts = variance**2 / (n - 1)
    if by_row is not None:
        # By how much each background row moves the mean over the explained rows.
        moved = np.ldexp(np.einsum("n...,zn...->z...", slopes, by_row) / n, -exponent)
        shared = moved.var(axis=0, ddof=1) / len(by_row)
        variance, parts = variance + shared, parts + shared**2 / (len(by_row) - 1)
    freedom = np.divide(variance**2, parts, out=np.full(variance.shape, n - 1.0), where=parts > 0)
    return np.ldexp(np.sqrt(variance), exponent), freedom


def normal_reach(level: float) -> float:
    """Return the half-width of a normal interval of this level, in standard errors."""
    from scipy.special import ndtri

    return float(ndtri((1.0 + level) / 2.0))


def _student_reach(level: float, freedom: np.ndarray | float) -> np.ndarray:
    """Return the half-width of Student's interval of a mean, in estimated standard errors."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (1.0 + level) / 2.0))


def percentile_expansion(level: float, n: int) -> float:
    r"""Return the factor of percentiles of resamples of n numbers.

    It is :math:`\sqrt{n / (n - 1)}\, t_{n-1} / z` (Hesterberg 2015).

    >>> round(percentile_expansion(0.95, 2), 2), round(percentile_expansion(0.95, 30), 2)
    (9.17, 1.06)
    """
    return float(_student_reach(level, n - 1.0)) / normal_reach(level) * float(np.sqrt(n / (n - 1)))


def bootstrap_deviations(values: np.ndarray, n_bootstrap: int, generator: np.random.Generator, level: float) -> np.ndarray:
    r"""Return deviations (n_bootstrap, ...) of resampled means, for intervals of a level.

    .. math:: \frac{t_{n-1}}{z}\, \sqrt{\frac{n}{n-1}}\, \Bigl(\frac{1}{n} \sum_i w_{bi} \phi_i - \bar\phi\Bigr), \qquad
              w_b \sim \mathrm{Multinomial}(n; 1/n, \dots, 1/n)

    The root makes their variance that of the mean of n rows without bias; that it is estimated from these rows is in Student's quantile
    (expanded percentiles: Hesterberg 2015). NaN for fewer than two rows.
    """
    n = len(values)
    if n < 2:
        return np.full((n_bootstrap, *values.shape[1:]), np.nan)
    # Centred first: deviations of large means would lose their digits in the difference.
    flat = (values - values.mean(axis=0)).reshape(n, -1)
    parts = [counts @ flat / n for counts in _resamples(n, n_bootstrap, generator)]
    deviations = np.concatenate(parts) if parts else np.empty((0, flat.shape[1]))
    return percentile_expansion(level, n) * deviations.reshape(n_bootstrap, *values.shape[1:])


def _resamples(n: int, n_bootstrap: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield how often each row is drawn with replacement: (n_resamples, n), some resamples at a time."""
    for some in slices(n_bootstrap, _DRAWS_AT_ONCE // n):
        yield generator.multinomial(n, np.full(n, 1.0 / n), size=some.stop - some.start)


def interval_around(centre: np.ndarray, deviations: np.ndarray, level: float) -> np.ndarray:
    """Return percentile intervals (..., 2) around ``centre``; NaN without deviations."""
    if not len(deviations):
        return np.full((*centre.shape, 2), np.nan)
    tail = (1.0 - level) / 2.0
    return np.stack([centre + np.quantile(deviations, q, axis=0) for q in (tail, 1.0 - tail)], axis=-1)


def studentised_interval(
    values: np.ndarray, n_bootstrap: int, generator: np.random.Generator, level: float
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the bootstrap-t interval (..., 2) of the mean of rows; its standard error.

    .. math:: \left[\bar x - t_{(1 + \mathrm{level}) / 2}\, s,\; \bar x - t_{(1 - \mathrm{level}) / 2}\, s\right], \qquad
              t_b = \frac{\bar x_b - \bar x}{s_b}

    It follows the skewness of magnitudes, for which percentile intervals are a little short (Hesterberg 2015). Of few rows it is joined
    with Student's.
    """
    n, tail = len(values), (1.0 - level) / 2.0
    values, exponent = near_one(values)
    mean = values.mean(axis=0)
    flat = (values - mean).reshape(n, -1)
    error = flat.std(axis=0, ddof=1) / np.sqrt(n)
    scores = []
    for counts in _resamples(n, n_bootstrap, generator):
        shares = counts / n
        means = shares @ flat
        # A resample of one distinct value has no spread: that of the rows is used
        spread = np.sqrt(np.maximum(shares @ np.square(flat) - np.square(means), 0.0) / (n - 1))
        scores.append(means / np.where(spread > 1e-3 * error, spread, np.where(error > 0, error, 1.0)))
    high, low = np.quantile(np.concatenate(scores), [1.0 - tail, tail], axis=0)
    if n <= _FEW_ROWS:
        reach = _student_reach(level, n - 1.0)
        high, low = np.maximum(high, reach), np.minimum(low, -reach)
    ends = np.stack([mean.ravel() - high * error, mean.ravel() - low * error], axis=-1).reshape(*mean.shape, 2)
    return np.ldexp(ends, exponent), np.ldexp(error.reshape(mean.shape), exponent)


def checked_background_values(rows: ExplanationData, by_background: np.ndarray) -> np.ndarray:
    """Return values by background row as an array. Refuse those with another mean than the explanation's values."""
    by_background = np.asarray(by_background, float)
    do = "Pass explainer.background_values(X) of the same explainer and rows"
    if by_background.ndim != rows.values.ndim + 1 or by_background.shape[1:] != rows.values.shape or len(by_background) < 2:
        got = f"Got shape {by_background.shape}; expected (n_background >= 2, {', '.join(map(str, rows.values.shape))})"
        raise InputError("The 'background_values' parameter does not fit the explanation", got, do)
    missed = np.abs(by_background.mean(axis=0) - rows.values)
    allowed = rows.tolerance.reshape(-1, *[1] * (rows.values.ndim - 1)) + np.max(rows.error_bound, initial=0.0)
    if np.any(missed > allowed):
        got = f"Their mean is off by {missed.max():.2g}"
        raise InputError("The 'background_values' parameter is of other values", got, do)
    return by_background
