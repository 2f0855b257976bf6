"""Write one static HTML file about a decomposition of MMD or HSIC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.words import in_words
from exactshap.results.decomposition import PairwiseDecomposition, ShareBars, strongest_marginals
from exactshap.results.plots import Marginal, cell_words, shortened
from exactshap.results.report import _svg as svg
from exactshap.results.report._figures import STEP, bar_from_zero, label_room
from exactshap.results.report._words import now, rendered, write_page

_LIMITS = {
    "MMD2": (
        "Every p-value, that of a column too, tests one hypothesis: both samples come from one distribution. The size of the "
        "shares says where they differ.",
        "Columns outside a coalition have kernel value 1. A column that does not differ makes the kernel smaller and hides part "
        "of the difference: its share is around or below 0.",
    ),
    "HSIC": (
        "Every p-value, that of a column too, tests one hypothesis: the columns and the target are independent.",
        "Dependence is not cause, and columns that repeat each other share their credit.",
    ),
}
_BOTH = (
    "The numbers depend on kernel and bandwidth, which are listed above.",
    "Intervals are normal, from jackknife standard errors (from the spread of blocks where rows were cut into blocks); where "
    "the total is not significant they are not reliable.",
)
_SAMPLES = ("first", "second")


def write_shares_report(shares: PairwiseDecomposition, path: str | Path, **settings: Any) -> Path:
    """Write the whole report or nothing, and return its path; ``settings`` as of :func:`render_shares`."""
    return write_page(path, render_shares(shares, **settings), "A report")


def render_shares(
    shares: PairwiseDecomposition,
    *,
    title: str,
    samples: tuple[Any, Any] | None = None,
    labels: tuple[str, str] = ("X", "Z"),
    command: str | None = None,
) -> str:
    """Return the report as HTML text. Names of columns are escaped, and their control characters replaced.

    With ``samples``, the strongest columns are drawn in both; ``labels`` name them.
    """
    headings, rows = shares.rows("column")
    hidden = ("error_bound", "n_blocks")
    settings = {name.replace("_", " "): _words(value) for name, value in shares.details.items() if name not in hidden}
    return rendered(
        "shares.html.jinja",
        title=title,
        facts=[svg.minus_signs(fact) for fact in shares.facts()],
        details={"index": shares.index, **settings},
        headings=headings,
        rows=[[name, *map(svg.minus_signs, cells)] for name, *cells in rows],
        figure=share_bars(shares.plot.prepare()),
        whiskers=shares.intervals is not None or shares.std_error is not None,
        panels=[marginal_panel(one, labels) for one in strongest_marginals(shares, samples)] if samples else [],
        labels=labels,
        limits=(*_LIMITS[shares.statistic], *_BOTH),
        command=command,
        date=now(),
    )


def _words(value: object) -> str:
    """Return a setting as text, with long lists per column on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_words(inner)}" for name, inner in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def share_bars(bars: ShareBars) -> str:
    """Draw shares as bars with whiskers, and their running sum."""
    left = label_room(bars.labels)
    width, top = 620.0, 4.0
    height = top + STEP * len(bars.labels)
    ends = np.full((len(bars.values), 2), np.nan) if bars.ends is None else bars.ends.T
    scale = svg.Scale.over(
        np.concatenate([bars.values, bars.cumulative, ends.ravel(), [bars.total]]), left, width - 12, include=0.0
    )
    parts = [svg.axis(scale, height, label=f"contribution to {bars.statistic}", top=top)]
    total = float(scale(bars.total))
    parts.append(svg.line(total, top, total, height, "total"))
    for j, name in enumerate(bars.labels):
        parts += bar_from_zero(name, bars.values[j], ends[j], top + STEP * j, scale)
    middles = top + STEP * (np.arange(len(bars.labels)) + 0.5)
    parts.append(svg.polyline(scale(bars.cumulative), middles, "cumulative"))
    return svg.figure(width, height + 40, parts, label=f"Shares of {bars.statistic}")


def marginal_panel(marginal: Marginal, labels: tuple[str, str]) -> str:
    """Draw one column in two samples: two filled densities, or pairs of bars for categories."""
    width, height, left, top = 300.0, 150.0, 12.0, 22.0
    up = svg.Scale(0.0, 1.05 * float(marginal.density.max(initial=0.0)) or 1.0, height, top)
    heading = svg.minus_signs(f"{marginal.name}{marginal.caption and f' ({marginal.caption})'}")
    parts = [svg.text(left, 14, shortened(heading, 44), style="strong", title=marginal.name)]
    depth = 40.0
    if marginal.categories is None:
        across, write = svg.Scale.over(marginal.x, left, width - 8, margin=0.0), svg.date if marginal.dates else cell_words
        parts.append(svg.axis(across, height, label="height: density", top=height - 4, wanted=4, write=write))
        x = np.concatenate([marginal.x[:1], marginal.x, marginal.x[-1:]])
        for style, density in zip(_SAMPLES, marginal.density, strict=True):
            parts.append(svg.polyline(across(x), up(np.concatenate([[0.0], density, [0.0]])), f"area {style}"))
    else:
        across = svg.Scale(-0.5, len(marginal.x) - 0.5, left, width - 8)
        words, depth = svg.category_axis(across, height, "height: frequency", marginal.categories)
        parts.append(words)
        for s, style in enumerate(_SAMPLES):
            for k, frequency in enumerate(marginal.density[s]):
                x0, x1, y = float(across(k + 0.4 * (s - 1.0))), float(across(k + 0.4 * s)), float(up(frequency))
                title = f"{marginal.categories[k]}, {labels[s]}: {in_words(frequency)}"
                parts.append(svg.rectangle(x0, y, x1 - x0, height - y, style, title=title))
    return svg.figure(width, height + depth, parts, label=f"{marginal.name} in {labels[0]} and {labels[1]}")
