"""Draw the marginal distributions of a few columns in two samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes, TableLike
from exactshap.errors import InputError
from exactshap.frames import as_table
from exactshap.results.data import as_days, cell_text, near_one
from exactshap.results.plots._drawing import (
    CATEGORY_WIDTH,
    current_palette,
    date_axis,
    escape,
    in_lines,
    letters_of,
    new_axes,
    shortened,
    thin_ticks,
    without_frame,
)

# Points of a density, and bars of a column of categories.
_POINTS, _MAX_CATEGORIES = 200, 10


@dataclass(frozen=True, eq=False)
class Marginal:
    """Hold one column in two samples."""

    name: str
    x: np.ndarray  # (n_points,): the grid of the density, in the unit of the column; for categories 0, 1, ...
    density: np.ndarray  # (2, n_points): probability density of each sample at ``x``; frequencies for categories
    categories: tuple[str, ...] | None  # the most frequent categories, the rest as one; None for numbers
    caption: str = ""  # what to write next to the name, such as the share
    dates: bool = False  # whether ``x`` are days since 1970


def prepare_marginals(X: TableLike, Z: TableLike, columns: Sequence[str], captions: Sequence[str] = ()) -> tuple[Marginal, ...]:
    """Estimate the marginal distributions of some columns in two samples, with captions such as shares."""
    tables = as_table(X, what="X"), as_table(Z, what="Z")
    names = tables[0].names or tuple(f"x{j}" for j in range(tables[0].n_columns))
    second = tables[1].names or names
    captions = list(captions) or [""] * len(columns)
    marginals = []
    for name, caption in zip(columns, captions, strict=True):
        if name not in names or name not in second:
            raise InputError(f"The samples have no column {name!r}", f"They have {list(second if name in names else names)}")
        samples = [tables[0].column(names.index(name)), tables[1].column(second.index(name))]
        marginals.append(_marginal(name, samples, caption))
    return tuple(marginals)


def _marginal(name: str, samples: Sequence[np.ndarray], caption: str) -> Marginal:
    is_number = all(sample.dtype.kind in "fiu" for sample in samples)
    days = None if is_number else as_days(np.array([cell_text(value) for sample in samples for value in sample], object))
    if is_number or days is not None:
        numbers = samples if days is None else np.split(days, [len(samples[0])])
        known = [sample[np.isfinite(sample)].astype(float) for sample in numbers]
        shares = [len(cells) / max(len(sample), 1) for cells, sample in zip(known, samples, strict=True)]
        if all(len(np.unique(cells)) > 2 for cells in known):
            x, density = _densities(known)
            gaps = "" if min(shares) == 1.0 else "missing: " + ", ".join(f"{1.0 - share:.0%}" for share in shares)
            words = "; ".join(filter(None, (caption, gaps)))
            return Marginal(name, x, np.array(shares)[:, None] * density, None, caption=words, dates=not is_number)
    return Marginal(name, *_frequencies(samples), caption=caption)


def _densities(samples: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return a common grid, three bandwidths beyond both samples, and their kernel density estimates."""
    from scipy.stats import gaussian_kde

    _, exponent = near_one(np.concatenate(samples))
    samples = [np.ldexp(sample, -exponent) for sample in samples]
    estimates = [gaussian_kde(sample) for sample in samples]
    widths = [float(np.sqrt(estimate.covariance[0, 0])) for estimate in estimates]
    low = min(float(sample.min()) - 3 * width for sample, width in zip(samples, widths, strict=True))
    high = max(float(sample.max()) + 3 * width for sample, width in zip(samples, widths, strict=True))
    x = np.linspace(low, high, _POINTS)
    return np.ldexp(x, exponent), np.ldexp(np.stack([estimate(x) for estimate in estimates]), -exponent)


def _frequencies(samples: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    words = [np.array([cell_text(value) or "missing" for value in sample]) for sample in samples]
    values, counts = np.unique(np.concatenate(words), return_counts=True)
    shown = [str(value) for value in values]
    if len(values) > _MAX_CATEGORIES:
        kept = np.sort(np.argsort(-counts, kind="stable")[: _MAX_CATEGORIES - 1])
        shown = [*(str(value) for value in values[kept]), "others"]
    share = np.array([[np.mean(sample == value) for value in shown] for sample in words])
    if len(values) > _MAX_CATEGORIES:
        share[:, -1] = 1.0 - share[:, :-1].sum(axis=1)
    return np.arange(len(shown), dtype=float), share, tuple(shown)


def draw_marginals(
    X: TableLike,
    Z: TableLike,
    columns: Sequence[str],
    captions: Sequence[str] = (),
    *,
    labels: tuple[str, str] = ("X", "Z"),
    axes: Axes = None,
) -> Any:
    """Draw the distributions of some columns in two samples.

    Numbers and dates: Gaussian kernel density estimates with Scott's bandwidth, on a common grid. Text, categories and constant
    columns: frequencies. Missing cells are a category, or a share next to the name; densities are of the known cells.

    Parameters
    ----------
    X, Z : DataFrames or arrays of shapes (n_rows, n_columns), (m_rows, n_columns)
    columns : sequence of str
        Names ("x0", "x1", ... for arrays).
    captions : sequence of str, default=()
        What to write next to the names, such as shares.
    labels : pair of str, default=("X", "Z")
        Names of the samples, for the legend.
    axes : sequence of matplotlib Axes, default=None
        One per column; a new figure with one row of panels without.

    Returns
    -------
    axes : list of matplotlib Axes

    Raises
    ------
    InputError
        If a column is in neither sample, or the number of axes is not that of the columns.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> len(draw_marginals(np.zeros((3, 1)), np.ones((2, 1)), ["x0"], labels=("May", "June")))
    1
    """
    return draw_prepared(prepare_marginals(X, Z, columns, captions), labels, axes)


def draw_prepared(marginals: Sequence[Marginal], labels: tuple[str, str] = ("X", "Z"), axes: Axes = None) -> Any:
    """Draw two densities per column, or pairs of bars for categories."""
    if axes is None:
        figure = new_axes(3.2 * max(len(marginals), 1), 2.6).figure
        figure.clear()
        axes = figure.subplots(1, len(marginals), squeeze=False)[0]
    panels = list(np.atleast_1d(axes))
    if len(panels) != len(marginals):
        raise InputError("One ax is needed for each column", f"Got {len(panels)} for {len(marginals)}")
    for ax, marginal in zip(panels, marginals, strict=True):
        _draw(ax, marginal, labels)
    if panels:
        panels[0].legend(frameon=False, fontsize="small")
    return panels


def _draw(ax: Axes, marginal: Marginal, labels: tuple[str, str]) -> None:
    colours = current_palette()
    for s, (label, colour) in enumerate(zip(labels, (colours.neutral, colours.accent), strict=True)):
        if marginal.categories is None:
            ax.plot(marginal.x, marginal.density[s], color=colour, label=escape(label))
            ax.fill_between(marginal.x, marginal.density[s], color=colour, alpha=0.2, linewidth=0)
        else:
            ax.bar(marginal.x + 0.4 * (s - 0.5), marginal.density[s], width=0.38, color=colour, label=escape(label))
    if marginal.dates:
        date_axis(ax.xaxis, most=4)
    elif marginal.categories is None:
        thin_ticks(ax)
    else:
        ax.set_xticks(
            marginal.x,
            [escape(shortened(text, CATEGORY_WIDTH)) for text in marginal.categories],
            rotation=45,
            ha="right",
            fontsize="small",
        )
    title = f"{marginal.name}{marginal.caption and f' ({marginal.caption})'}"
    ax.set_title(in_lines(title, letters_of(ax)), fontsize="medium")
    ax.set_ylabel("density" if marginal.categories is None else "frequency", fontsize="small")
    ax.set_ylim(bottom=0)
    without_frame(ax, "top", "right")
