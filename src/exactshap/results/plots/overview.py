"""Draw all rows at once: a heatmap, the distribution of each feature's values, or each row's path to its prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.errors import InputError
from exactshap.results.data import ExplanationData, near_one
from exactshap.results.plots._columns import Shown
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import escape, in_lines, name_lines, new_axes, without_frame
from exactshap.results.plots.summary import places_of

# Largest number of rows ordered by similarity, which costs the number squared.
_MAX_ORDERED = 2000
# Lines of one picture; more cannot be distinguished.
MAX_LINES = 200


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Hold what the heatmap shows."""

    # features by decreasing mean magnitude; the last one reads "12 others" where features were put together
    labels: tuple[str, ...]
    values: np.ndarray  # (n_labels, n_rows): in the order in which the rows are drawn
    prediction: np.ndarray  # (n_rows,)
    order: np.ndarray  # the row in each column
    unit: str


def prepare_heatmap(explanation: ExplanationData, *, max_display: int = 10) -> Heatmap:
    """Order rows by similarity of their values, and beyond 2,000 rows by the prediction."""
    shown = Shown.of(np.abs(explanation.values).mean(axis=0), max_display)
    values = shown.values(explanation.values)
    order = _similar_rows(values, explanation.prediction)
    return Heatmap(
        shown.labels(explanation.feature_names, "other"),
        values[order].T,
        explanation.prediction[order],
        order,
        explanation.unit,
    )


def _similar_rows(values: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    if not 2 < len(values) <= _MAX_ORDERED:
        return np.argsort(prediction, kind="stable")
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    # Distances, as linkage may take a square table of values for a matrix of them, with a warning
    order = leaves_list(linkage(pdist(near_one(values)[0]), method="ward", optimal_ordering=len(values) <= 500))
    return order if prediction[order[0]] <= prediction[order[-1]] else order[::-1]


def draw_heatmap(prepared: Heatmap, ax: Axes = None) -> Any:
    """Draw a prepared heatmap, with the line of predictions above it."""
    n = len(prepared.labels)
    ax = new_axes(8.0, 0.38 * n + 2.2) if ax is None else ax
    limit = float(np.percentile(np.abs(prepared.values), 99.0)) or float(np.abs(prepared.values).max()) or 1.0
    picture = ax.imshow(
        prepared.values,
        aspect="auto",
        cmap=current_palette().values(),
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
        resample=False,
    )
    width = float(np.ptp(prepared.prediction)) or 1.0
    ax.plot(-0.75 - 1.2 * (prepared.prediction - prepared.prediction.min()) / width, color="black", linewidth=1.0)
    ax.set_ylim(n - 0.5, -2.2)
    ax.set_yticks([-1.35, *range(n)], ["prediction", *(escape(label) for label in prepared.labels)])
    ax.set_xlabel("rows, similar values side by side")
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    letters = int(9.0 * ax.figure.bbox.height / ax.figure.dpi)  # of 10 points, along three quarters of the height
    ax.figure.colorbar(picture, ax=ax, label=in_lines(escape(f"value ({prepared.unit})"), letters), extend="both")
    return ax


@dataclass(frozen=True, eq=False)
class Violin:
    """Hold the values (n_rows, n_labels) behind distributions, features from top to bottom."""

    labels: tuple[str, ...]
    values: np.ndarray


def prepare_violin(explanation: ExplanationData, *, max_display: int = 10) -> Violin:
    """Return the values of the strongest features, and those of the rest as one."""
    shown = Shown.of(np.abs(explanation.values).mean(axis=0), max_display)
    return Violin(shown.labels(explanation.feature_names, "other"), shown.values(explanation.values))


def draw_violin(prepared: Violin, ax: Axes = None) -> Any:
    """Draw prepared distributions with their quartiles; equal values become one mark."""
    n, colours = len(prepared.labels), current_palette()
    ax = new_axes(7.0, 0.5 * n + 1.7) if ax is None else ax
    ax.axvline(0.0, color="gray", linewidth=0.8, zorder=1)
    for place, column in enumerate(prepared.values.T):
        low, middle, high = np.percentile(column, [25, 50, 75])
        if np.ptp(column) > 1e-12 * np.abs(column).max():
            grid, half_width = _outline(column)
            ax.fill_between(
                grid, place - half_width, place + half_width, color=colours.neutral, alpha=0.45, linewidth=0, zorder=2
            )
        ax.plot([low, high], [place, place], color="#222222", linewidth=3, solid_capstyle="butt", zorder=3)
        ax.plot(middle, place, marker="o", markersize=4, color="white", markeredgecolor="#222222", zorder=4)
    name_lines(ax, prepared.labels)
    return ax


def _outline(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the grid and values of a kernel density estimate, scaled to a maximum of 0.4."""
    from scipy.stats import gaussian_kde

    cells, exponent = near_one(column)
    grid = np.linspace(cells.min(), cells.max(), 200)
    density = gaussian_kde(cells)(grid)
    return np.ldexp(grid, exponent), 0.4 * density / density.max()


@dataclass(frozen=True, eq=False)
class Paths:
    """Hold what the lines show, features from bottom to top."""

    labels: tuple[str, ...]  # features, the strongest last; the first one may stand for the rest
    sums: np.ndarray  # (n_lines, n_labels + 1): the baseline, then the sum up to each feature; the last one is the prediction


def prepare_paths(explanation: ExplanationData, *, max_display: int = 10) -> Paths:
    r"""Add up the values of each row to its prediction, the weakest feature first.

    .. math:: s_{ik} = \mathrm{baseline}_i + \sum_{j \le k} \phi_{ij}
    """
    if not explanation.additive:
        got = f"Got index={explanation.index!r} of order {explanation.order}"
        raise InputError("Paths need values that add up to the prediction", got, "Use plot.heatmap()")
    n = explanation.n_rows
    spread = np.linspace(0, n - 1, min(n, MAX_LINES)).astype(int)
    drawn = np.sort(np.argsort(explanation.prediction, kind="stable")[spread])
    shown = Shown.of(np.abs(explanation.values).mean(axis=0), max_display)
    steps = np.column_stack([explanation.baseline[drawn], shown.values(explanation.values[drawn])[:, ::-1]])
    return Paths(shown.labels(explanation.feature_names)[::-1], np.cumsum(steps, axis=1))


def draw_paths(prepared: Paths, ax: Axes = None) -> Any:
    """Draw prepared paths, coloured by their predictions."""
    n = len(prepared.labels)
    ax = new_axes(8.0, 0.4 * n + 2.0) if ax is None else ax
    colours = current_palette().cells()
    shades = places_of(prepared.sums[:, -1])
    alpha = max(0.35, 1.0 - 0.01 * len(prepared.sums))
    for sums, shade in zip(prepared.sums, shades, strict=True):
        ax.plot(sums, np.arange(n + 1), color=colours(shade), alpha=alpha, linewidth=1.0, zorder=2)
    ax.axvline(float(prepared.sums[:, 0].mean()), color="gray", linestyle=":", linewidth=0.9, zorder=1)
    for line in range(n + 1):
        ax.axhline(line, color="#d8dee4", linewidth=0.6, zorder=0)
    ax.set_yticks(range(n + 1), ["baseline", *(escape(label) for label in prepared.labels)])
    ax.set_ylim(-0.2, n + 0.2)
    return without_frame(ax)
