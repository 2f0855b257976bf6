"""Write a comparison as one static HTML file: changes above a threshold, next to changes of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap.errors import InputError, UnknownNameError, did_you_mean, printable
from exactshap.results.data import counted, without_noise
from exactshap.results.plots import prepare_marginals
from exactshap.results.report import difference_bars, marginal_panel, minus_signs, now, template, write_page

CHANGED, MAYBE, STEADY = "changed", "may have changed", "steady"
_SHARE = 0.1  # of the largest mean magnitude of the first group: the threshold where none is given
_LIMITS = (
    "A difference of mean values says how the model's output changed, not why.",
    "Intervals are for other rows of the same kind; they do not cover changes in how rows were collected.",
    "“Changed” means that the whole interval is beyond the threshold. With many features some are, by chance.",
)


def thresholds_of(comparison: Any, threshold: float | Mapping[str, float] | None) -> np.ndarray:
    """Return the threshold of each player's difference, in the shape of the differences."""
    default = _SHARE * float(comparison.magnitudes[0].max(initial=0.0))
    by_name = threshold if isinstance(threshold, Mapping) else {}
    for name in by_name:
        if name not in comparison.feature_names:
            raise UnknownNameError(f"Unknown feature {name!r}", do=did_you_mean(name, comparison.feature_names))
    common = default if threshold is None or isinstance(threshold, Mapping) else threshold
    limits = [by_name.get(name, common) for name in comparison.feature_names]
    if not all(isinstance(limit, Real) and limit >= 0.0 for limit in limits):
        raise InputError(
            "The 'threshold' parameter must be a number >= 0, or one for each of some features", f"Got {threshold!r}"
        )
    return np.broadcast_to(
        np.array(limits, float).reshape(-1, *[1] * (comparison.difference.ndim - 1)), comparison.difference.shape
    )


def statuses(comparison: Any, limits: np.ndarray) -> np.ndarray:
    """Return whether each difference is beyond its threshold for sure, perhaps or not."""
    low, high = comparison.intervals[..., 0], comparison.intervals[..., 1]
    sure = (low > limits) | (high < -limits)
    return np.where(sure, CHANGED, np.where(np.abs(comparison.difference) > limits, MAYBE, STEADY))


def write_comparison(
    comparison: Any,
    path: str | Path,
    *,
    threshold: float | Mapping[str, float] | None,
    title: str | None,
    command: str | None,
    max_display: int,
) -> Path:
    markup = require("markupsafe", "report", purpose="A report").Markup
    headings, rows = comparison.rows()
    order = np.argsort(-np.abs(without_noise(np.ravel(comparison.difference), comparison.tolerance)), kind="stable")
    thresholds = thresholds_of(comparison, threshold)
    found, limits = np.ravel(statuses(comparison, thresholds)), np.ravel(thresholds)
    shown = order[:max_display]
    names = [row[0] for row in rows]
    page = template("comparison.html.jinja").render(
        title=title or f"{comparison.labels[1]} compared with {comparison.labels[0]}",
        comparison=comparison,
        verdict=_verdict(comparison, found),
        alarm=bool((found == CHANGED).any()),
        facts={name: minus_signs(text) for name, text in comparison.facts().items()},
        rows_compared=[f"{label}: {counted(n, 'row')}" for label, n in zip(comparison.labels, comparison.n_rows, strict=True)],
        headings=[*headings, "threshold", "status"],
        rows=[[row[0], *map(minus_signs, row[1:]), f"{limits[j]:.3g}", found[j]] for row, j in zip(rows, order, strict=True)],
        differences=markup(_differences(comparison, shown, names[: len(shown)], limits[shown])),
        drift=markup(_drift(comparison, shown, names[: len(shown)])),
        panels=[markup(panel) for panel in _panels(comparison, found)],
        n_left_out=len(order) - len(shown),
        limits=_LIMITS,
        command=command,
        date=now(),
        changed=CHANGED,
    )
    return write_page(path, printable(page), "A report")


def _verdict(comparison: Any, found: np.ndarray) -> str:
    n_changed, n_maybe = int((found == CHANGED).sum()), int((found == MAYBE).sum())
    parts = [f"{n_changed} of {counted(len(found), 'mean value')} changed by more than the threshold"]
    if n_maybe:
        parts.append(f"{n_maybe} {'more ' if n_changed else ''}may have")
    if comparison.drift is not None and comparison.drift.p_value is not None:
        moved = "differ" if comparison.drift.p_value <= 1.0 - comparison.level else "do not differ beyond chance"
        parts.append(f"the data {moved} (p = {comparison.drift.p_value:.2g})")
    return "; ".join(parts) + "."


def _differences(comparison: Any, shown: np.ndarray, names: list[str], limits: np.ndarray) -> str:
    difference = without_noise(np.ravel(comparison.difference), comparison.tolerance)[shown]
    intervals = comparison.intervals.reshape(-1, 2)[shown]
    label = f"mean value, {comparison.labels[1]} minus {comparison.labels[0]} ({comparison.unit})"
    return difference_bars(difference, intervals, limits, names, label=label)


def _drift(comparison: Any, shown: np.ndarray, names: list[str]) -> str:
    if comparison.drift is None:
        return ""
    n_outputs = comparison.difference.size // len(comparison.feature_names)
    players = shown // n_outputs
    intervals = comparison.drift.intervals
    ends = np.full((len(players), 2), np.nan) if intervals is None else intervals[players]
    label = f"contributions to MMD2 = {minus_signs(f'{comparison.drift.total:.3g}')}"
    return difference_bars(comparison.drift.values[players], ends, None, names, label=label)


def _panels(comparison: Any, found: np.ndarray) -> list[str]:
    """Return pictures of the columns that changed or moved most in both groups' data."""
    d = len(comparison.feature_names)
    if comparison.data is None or any(isinstance(one, np.ndarray) and one.shape[1:] != (d,) for one in comparison.data):
        return []
    changed = np.any(found.reshape(len(comparison.feature_names), -1) == CHANGED, axis=1)
    moved = np.zeros(len(changed)) if comparison.drift is None else comparison.drift.values
    order = np.lexsort((-moved, ~changed))
    panels = []
    for j in order[:6]:
        name = comparison.feature_names[j]
        # An array has no names; its columns are the players unless some are in groups.
        column = f"x{j}" if isinstance(comparison.data[0], np.ndarray) else name
        try:
            marginal = prepare_marginals(comparison.data[0], comparison.data[1], [column])[0]
        except InputError:  # a group of columns
            continue
        panels.append(marginal_panel(replace(marginal, name=name), comparison.labels))
    return panels
