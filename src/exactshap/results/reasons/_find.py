"""Find the strongest adverse values of each row, and whether their order is certain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count, check_level, checked_generator
from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from exactshap.results.data import ExplanationData, checked_background_values, normal_reach
from exactshap.results.reasons._reasons import Reasons

_SIGNS = {"positive": 1.0, "negative": -1.0}


def find_reasons(
    explanation: ExplanationData,
    k: int,
    adverse: str,
    *,
    codes: Mapping[str, str] | None,
    output: int | str | None,
    level: float,
    model_digest: str | None,
    background_values: np.ndarray | None,
    **resampling: Any,
) -> Reasons:
    """Find the reasons of each row; see :meth:`exactshap.Explanation.reasons`."""
    rows = explanation if output is None else explanation.output(output)
    sign = _checked(rows, k, adverse, level)
    texts = _texts(rows.feature_names, codes)
    players, decided = _strongest(sign * rows.values, _errors(rows, level), k)
    intervals = kept = None
    if background_values is not None:
        by_row = checked_background_values(rows, _of_output(explanation, background_values, output))
        intervals, kept = _resampled(by_row, players, sign, level, **resampling)
    return Reasons(
        explanation=rows,
        adverse=adverse,
        texts_by_player=texts,
        players=players,
        values=np.where(players < 0, np.nan, np.take_along_axis(rows.values, np.maximum(players, 0), axis=1)),
        decided=decided,
        intervals=intervals,
        kept=kept,
        level=level,
        model_digest=model_digest,
    )


def _checked(rows: ExplanationData, k: int, adverse: str, level: float) -> float:
    if rows.output_names is not None:
        do = "Pass output= (a number or a name)"
        raise InputError("Reasons explain one output", f"This explanation has {list(rows.output_names)}", do)
    if not rows.additive:
        got = f"Got index={rows.index!r} of order {rows.order}"
        raise InputError("Reasons are shares of the prediction", got, "Explain with index='shapley' and order=1")
    if not rows.is_within_tolerance:
        raise InputError("The values do not add up to the prediction", f"{rows.certificate()}", "Explain the rows again")
    if not isinstance(adverse, str) or adverse not in _SIGNS:
        do = '"positive": what raises the output speaks against the row (a risk); "negative": what lowers it does (a score)'
        raise InputError("The 'adverse' parameter must be 'positive' or 'negative'", f"Got {adverse!r}", do)
    check_count("k", k)
    check_level(level)
    return _SIGNS[adverse]


def _texts(names: tuple[str, ...], codes: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return each player's code, or its name without one."""
    if codes is not None and not isinstance(codes, Mapping):
        raise InputTypeError("`codes` must map names of features to texts", f"Got {type(codes).__name__}")
    codes = codes or {}
    unknown = next((name for name in codes if name not in names), None)
    if unknown is not None:
        raise UnknownNameError(f"Unknown feature {unknown!r} in codes", do=did_you_mean(str(unknown), names))
    texts = tuple(str(codes.get(name, name)) for name in names)
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        same = [name for name, text in zip(names, texts, strict=True) if text == twice]
        do = "Make them one player, Explainer(..., groups=), so that their joint value is exact"
        raise InputError(f"Features {same} have one code", f"Got {twice!r}", do)
    return texts


def _errors(rows: ExplanationData, level: float) -> np.ndarray:
    r"""Return error bounds (n_rows, n_players) of the values.

    .. math:: \mathrm{tolerance} + \mathrm{error\_bound} + 2\,\mathrm{approximation\_error} + z\,\mathrm{std\_error}
    """
    known = rows.tolerance + np.asarray(rows.error_bound)
    if rows.approximation_error is not None:  # of v(S): a value is a mean of differences of two
        known = known + 2.0 * rows.approximation_error
    errors = np.broadcast_to(known[:, None], rows.values.shape)
    if rows.std_error is None:
        return errors
    return errors + normal_reach(level) * rows.std_error


def _strongest(adverse: np.ndarray, errors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's k strongest players, and whether their order is certain.

    The errors of two values may go together in any way: their difference is known to within the sum of both, which is at least the
    joint standard error.
    """
    n, d = adverse.shape
    kept = min(k + 1, d)
    players = np.argpartition(-adverse, kept - 1, axis=1)[:, :kept] if kept < d else np.tile(np.arange(d), (n, 1))
    players = np.sort(players, axis=1)  # ties go by the order of the columns
    order = np.argsort(-np.take_along_axis(adverse, players, axis=1), axis=1, kind="stable")
    players = np.take_along_axis(players, order, axis=1)
    values, error = (np.take_along_axis(table, players, axis=1) for table in (adverse, errors))
    ahead = np.ones(players.shape, bool)  # the last of all players has none behind it
    ahead[:, :-1] = values[:, :-1] - values[:, 1:] > error[:, :-1] + error[:, 1:]
    is_reason = values > error
    return _of_width(np.where(is_reason, players, -1), k, -1), _of_width(ahead & is_reason, k, False)


def _of_width(table: np.ndarray, k: int, empty: Any) -> np.ndarray:
    table = table[:, :k]
    return np.pad(table, ((0, 0), (0, k - table.shape[1])), constant_values=empty)


def _of_output(whole: ExplanationData, by_row: np.ndarray, output: int | str | None) -> np.ndarray:
    """Return the values by background row of the output that the reasons are of."""
    by_row = np.asarray(by_row)
    if output is None or whole.output_names is None or by_row.ndim < 4:
        return by_row
    return by_row[..., output if isinstance(output, (int, np.integer)) else whole.output_names.index(output)]


def _resampled(
    by_background: np.ndarray, players: np.ndarray, sign: float, level: float, *, n_bootstrap: int, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return intervals (n_rows, k, 2) of reasons, and how many resamples keep them.

    The background is drawn again, with replacement; the values are means over it.

    .. math:: \phi^{(b)}_j = \frac1m \sum_z n^{(b)}_z\, \phi_j(x; z)
    """
    m, (n, k) = len(by_background), players.shape
    counts = checked_generator(random_state).multinomial(m, np.full(m, 1.0 / m), size=n_bootstrap) / m
    intervals, kept = np.full((n, k, 2), np.nan), np.full((n, k), np.nan)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    for i in range(n):
        found = players[i][players[i] >= 0]
        values = counts @ by_background[:, i]
        adverse = sign * values
        kth = np.partition(adverse, -min(k, adverse.shape[1]), axis=1)[:, -min(k, adverse.shape[1])]
        intervals[i, : len(found)] = np.quantile(values[:, found], tails, axis=0).T
        kept[i, : len(found)] = np.mean(adverse[:, found] >= np.maximum(kth, 0.0)[:, None], axis=0)
    return intervals, kept
