"""Draw the paths of many rows from the baseline to their predictions, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.errors import InputError
from exactshap.results.data import ExplanationData
from exactshap.results.plots._columns import Shown
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import escape, new_axes, without_frame
from exactshap.results.plots.summary import places_of

# Lines of one picture; more cannot be distinguished.
MAX_LINES = 200


@dataclass(frozen=True, eq=False)
class Paths:
    """Hold what the lines show, features from bottom to top."""

    labels: tuple[str, ...]  # features, the strongest last; the first one may stand for the rest
    sums: np.ndarray  # (n_lines, n_labels + 1): the baseline, then the sum up to each feature; the last one is the prediction
    n_rows: int  # rows in all; of more than 200, a selection spread over the predictions is drawn


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
    return Paths(shown.labels(explanation.feature_names)[::-1], np.cumsum(steps, axis=1), n)


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
