"""Draw comparisons: differences with intervals next to contributions to the MMD, and means of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes
from exactshap.errors import InputError
from exactshap.results.data import place_of
from exactshap.results.plots import current_palette, escape, name_lines, new_axes, without_frame


def draw_comparison(comparison: Any, ax: Axes, *, output: int | str | None, max_display: int) -> Any:
    k = _output(comparison.output_names, output)
    difference, intervals = (array if k is None else array[:, k] for array in (comparison.difference, comparison.intervals))
    order = np.argsort(-np.abs(difference), kind="stable")[: check_count("max_display", max_display)]
    drift_axes = None
    if ax is None:
        panels = 1 if comparison.drift is None else 2
        plt = require("matplotlib.pyplot", "plots", purpose="Plotting")
        size = (4.2 * panels + 2.0, 0.42 * len(order) + 1.8)
        axes = plt.subplots(1, panels, figsize=size, layout="constrained", sharey=True, squeeze=False)[1][0]
        ax, drift_axes = axes[0], axes[-1] if panels == 2 else None
    place, colours = np.arange(len(order)), current_palette()
    ax.barh(place, difference[order], color=[colours.of_sign(v) for v in difference[order]], zorder=2)
    ends = np.abs(intervals[order].T - difference[order])
    if np.isfinite(ends).any():
        ax.errorbar(difference[order], place, xerr=ends, fmt="none", ecolor="black", capsize=3, zorder=4)
    first, second = (escape(label) for label in comparison.labels)
    ax.set_xlabel(
        f"mean value, {second} minus {first}\n({escape(comparison.unit)}; bars: {100 * comparison.level:g} % intervals over rows)"
    )
    ax.set_title("attribution", fontsize="medium")
    _finish(ax, [comparison.feature_names[j] for j in order])
    if drift_axes is not None and comparison.drift is not None:
        _draw_drift(drift_axes, comparison, order)
    return ax


def _draw_drift(ax: Axes, comparison: Any, order: np.ndarray) -> None:
    drift, place = comparison.drift, np.arange(len(order))
    assert drift is not None
    ax.barh(place, drift.values[order], color=current_palette().undecided, zorder=2)
    if drift.intervals is not None:
        ends = np.abs(drift.intervals[order].T - drift.values[order])
        ax.errorbar(drift.values[order], place, xerr=ends, fmt="none", ecolor="black", capsize=3, zorder=4)
    p = "" if drift.p_value is None else f", p = {drift.p_value:.3g}"
    ax.set_title("data", fontsize="medium")
    ax.set_xlabel(f"contributions to MMD2 = {drift.total:.3g}{p}".replace("= -", "= \N{MINUS SIGN}"))
    _finish(ax, None)


def draw_cohorts(cohorts: Any, ax: Axes, *, output: int | str | None, max_display: int) -> Any:
    first = next(iter(cohorts.values()))
    k = _output(first.output_names, output)
    means, intervals = (array if k is None else array[:, :, k] for array in (cohorts.means, cohorts.mean_intervals))
    order = np.argsort(-np.ptp(means, axis=0), kind="stable")[: check_count("max_display", max_display)]
    ax = new_axes(7.0, 0.5 * len(order) + 1.8) if ax is None else ax
    colours = require("matplotlib", "plots", purpose="Plotting").colormaps["cividis"](np.linspace(0.0, 0.9, len(cohorts)))
    # The marks of a player stand closer together than two players
    spread = min(0.3, 0.1 * (len(cohorts) - 1))
    shifts = np.linspace(-spread, spread, len(cohorts))
    for g, label in enumerate(cohorts):
        place = np.arange(len(order)) + shifts[g]
        ends = np.abs(intervals[g, order].T - means[g, order])
        shown = {"xerr": ends} if np.isfinite(ends).all() else {}
        name = escape(f"{label} ({cohorts.n_rows[g]:,})")
        ax.errorbar(means[g, order], place, fmt="o", color=colours[g], markersize=4, capsize=2, label=name, **shown)
    ax.set_xlabel(f"mean value ({escape(first.unit)}; bars: {100 * first.level:g} % intervals over rows)")
    ax.legend(title=escape(cohorts.name), frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    _finish(ax, [first.feature_names[j] for j in order])
    return ax


def _finish(ax: Axes, names: list[str] | None) -> None:
    if names is not None:
        name_lines(ax, names)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.grid(axis="x", color="#e5e5e5", zorder=0)
    without_frame(ax, "top", "right")


def _output(names: tuple[str, ...] | None, output: int | str | None) -> int | None:
    if names is None:
        if output not in (None, 0, -1):
            raise InputError("This comparison has a single output", f"Got output {output!r}", "Use it as it is")
        return None
    if output is None:
        raise InputError("A picture shows one output", f"There are {list(names)}", "Pass output= (a number or a name)")
    return place_of(output, names, "output")
