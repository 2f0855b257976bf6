"""Draw comparisons, and write them as one static HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes
from exactshap._runtime.words import in_words
from exactshap.errors import InputError, UnknownNameError, did_you_mean
from exactshap.results.data import counted, picture, place_of, without_noise
from exactshap.results.plots import current_palette, draw_bars, escape, name_lines, prepare_marginals, without_frame
from exactshap.results.report import difference_bars, marginal_panel, minus_signs, now, rendered, write_page

CHANGED, MAYBE, STEADY = "changed", "may have changed", "steady"
# The threshold where none is given, as a fraction of the largest mean magnitude of the first group.
_DEFAULT_THRESHOLD = 0.1
_LIMITS = (
    "A difference of mean values says how the model's output changed, not why.",
    "Intervals are for other rows of the same kind; they do not cover changes in how rows were collected.",
    "“Changed” means that the whole interval is beyond the threshold. With many features some are, by chance.",
)


@picture
def plot(comparison: Any, ax: Axes = None, *, output: int | str | None = None, max_display: int = 10) -> Any:
    """Draw differences with intervals, next to contributions to the MMD.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw the differences alone; without it a figure with both pictures is made.
    output : int or str, optional
        Which output, where there are several.
    max_display : int, default=10
        Number of players shown.

    Returns
    -------
    ax : matplotlib Axes
        Of the differences.
    """
    k = chosen_output(comparison.output_names, output)
    difference, intervals = (array if k is None else array[:, k] for array in (comparison.difference, comparison.intervals))
    order = np.argsort(-np.abs(difference), kind="stable")[: check_count("max_display", max_display)]
    drift_axes = None
    if ax is None:
        panels = 1 if comparison.drift is None else 2
        plt = require("matplotlib.pyplot", "plots", purpose="Plotting")
        size = (4.2 * panels + 2.0, 0.42 * len(order) + 1.8)
        axes = plt.subplots(1, panels, figsize=size, layout="constrained", sharey=True, squeeze=False)[1][0]
        ax, drift_axes = axes[0], axes[1] if panels == 2 else None
    colours = [current_palette().of_sign(value) for value in difference[order]]
    draw_bars(ax, difference[order], intervals[order].T, color=colours)
    first, second = (escape(label) for label in comparison.labels)
    ax.set_xlabel(
        f"mean value, {second} minus {first}\n({escape(comparison.unit)}; bars: {100 * comparison.level:g} % intervals over rows)"
    )
    ax.set_title("attribution", fontsize="medium")
    finish(ax, [comparison.feature_names[j] for j in order])
    if drift_axes is not None:
        _draw_drift(drift_axes, comparison, order)
    return ax


def _draw_drift(ax: Axes, comparison: Any, order: np.ndarray) -> None:
    drift = comparison.drift
    ends = None if drift.intervals is None else drift.intervals[order].T
    draw_bars(ax, drift.values[order], ends, color=current_palette().undecided)
    p = "" if drift.p_value is None else f", p = {drift.p_value:.3g}"
    ax.set_title("data", fontsize="medium")
    ax.set_xlabel(f"contributions to MMD2 = {in_words(drift.total, digits=3)}{p}")
    finish(ax, None)


def finish(ax: Axes, names: list[str] | None) -> None:
    if names is not None:
        name_lines(ax, names)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.grid(axis="x", color="#e5e5e5", zorder=0)
    without_frame(ax, "top", "right")


def chosen_output(names: tuple[str, ...] | None, output: int | str | None) -> int | None:
    if names is None:
        if output not in (None, 0, -1):
            raise InputError("This comparison has a single output", f"Got output {output!r}", "Use it as it is")
        return None
    if output is None:
        raise InputError("A picture shows one output", f"There are {list(names)}", "Pass output= (a number or a name)")
    return place_of(output, names, "output")


def thresholds_of(comparison: Any, threshold: float | Mapping[str, float] | None) -> np.ndarray:
    """Return the threshold of each player's difference, in the shape of the differences."""
    default = _DEFAULT_THRESHOLD * float(comparison.magnitudes[0].max(initial=0.0))
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


def report(
    comparison: Any,
    path: str | Path,
    *,
    threshold: float | Mapping[str, float] | None = None,
    title: str | None = None,
    command: str | None = None,
    max_display: int = 10,
) -> Path:
    """Write one page on changes above a threshold and of the data.

    Parameters
    ----------
    path : str or Path
        ``.html`` or, with WeasyPrint (``pip install "exactshap[pdf]"``), ``.pdf``.
    threshold : float, mapping of feature to float, or None, default=None
        As of :meth:`changed`.
    title, command : str or None, default=None
        Heading, and the command that wrote this report.
    max_display : int, default=10
        Features in the pictures; the table has all.

    Returns
    -------
    path : Path

    Raises
    ------
    InputError
        If a threshold is negative, or the path has another ending.
    MissingDependencyError
        If jinja2 is not installed.

    Examples
    --------
    >>> may.compare(june, labels=("may", "june")).report("june.html", threshold=0.1)  # doctest: +SKIP
    """
    headings, rows = comparison.rows()
    difference = without_noise(np.ravel(comparison.difference), comparison.tolerance)
    order = np.argsort(-np.abs(difference), kind="stable")
    thresholds = thresholds_of(comparison, threshold)
    found, limits = np.ravel(statuses(comparison, thresholds)), np.ravel(thresholds)
    shown = order[:max_display]
    names, intervals = [row[0] for row in rows], comparison.intervals.reshape(-1, 2)[shown]
    label = f"mean value, {comparison.labels[1]} minus {comparison.labels[0]} ({comparison.unit})"
    page = rendered(
        "comparison.html.jinja",
        title=title or f"{comparison.labels[1]} compared with {comparison.labels[0]}",
        comparison=comparison,
        verdict=_verdict(comparison, found),
        alarm=bool((found == CHANGED).any()),
        facts={name: minus_signs(text) for name, text in comparison.facts().items()},
        rows_compared=[f"{label}: {counted(n, 'row')}" for label, n in zip(comparison.labels, comparison.n_rows, strict=True)],
        headings=[*headings, "threshold", "status"],
        rows=[[row[0], *map(minus_signs, row[1:]), f"{limits[j]:.3g}", found[j]] for row, j in zip(rows, order, strict=True)],
        differences=difference_bars(difference[shown], intervals, limits[shown], names[: len(shown)], label=label),
        drift=_drift(comparison, shown, names[: len(shown)]),
        panels=_panels(comparison, found),
        n_left_out=len(order) - len(shown),
        limits=_LIMITS,
        command=command,
        date=now(),
        changed=CHANGED,
    )
    return write_page(path, page, "A report")


def _verdict(comparison: Any, found: np.ndarray) -> str:
    n_changed, n_maybe = int((found == CHANGED).sum()), int((found == MAYBE).sum())
    parts = [f"{n_changed} of {counted(len(found), 'mean value')} changed by more than the threshold"]
    if n_maybe:
        parts.append(f"{n_maybe} {'more ' if n_changed else ''}may have")
    if comparison.drift is not None and comparison.drift.p_value is not None:
        moved = "differ" if comparison.drift.p_value <= 1.0 - comparison.level else "do not differ beyond chance"
        parts.append(f"the data {moved} (p = {comparison.drift.p_value:.2g})")
    return "; ".join(parts) + "."


def _drift(comparison: Any, shown: np.ndarray, names: list[str]) -> str:
    if comparison.drift is None:
        return ""
    n_outputs = comparison.difference.size // len(comparison.feature_names)
    players = shown // n_outputs
    intervals = comparison.drift.intervals
    ends = np.full((len(players), 2), np.nan) if intervals is None else intervals[players]
    label = f"contributions to MMD2 = {in_words(comparison.drift.total, digits=3)}"
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
