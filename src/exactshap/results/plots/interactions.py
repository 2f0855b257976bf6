"""Draw the matrix of pairs: interactions off the diagonal, order-1 values on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.types import Axes
from exactshap._runtime.words import in_words
from exactshap.results.data import ExplanationData, counted, game_title, row_name
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import CATEGORY_WIDTH, escape, in_lines, new_axes, shortened


@dataclass(frozen=True, eq=False)
class InteractionMatrix:
    """Hold what the heatmap shows."""

    names: tuple[str, ...]  # players, by decreasing total strength
    matrix: np.ndarray  # (n_shown, n_shown): symmetric; in the unit of the model output
    n_left_out: int  # players that are not shown
    what: str  # title: which rows and which index
    unit: str  # of the matrix


def prepare_interactions(explanation: ExplanationData, i: int | None = None, *, max_display: int = 12) -> InteractionMatrix:
    """Return row ``i``'s matrix, or mean magnitudes over rows for ``i=None``, of one output.

    The players with the largest row sums of magnitudes are shown.
    """
    pairs = explanation.interactions if i is None else explanation[i].interactions
    matrix = np.abs(pairs).mean(axis=0) if i is None else pairs[0]
    order = np.argsort(-np.abs(matrix).sum(axis=1), kind="stable")[: check_count("max_display", max_display)]
    rows = f"mean magnitude over {counted(explanation.n_rows, 'row')}" if i is None else row_name(explanation, i)
    return InteractionMatrix(
        names=tuple(explanation.feature_names[j] for j in order),
        matrix=matrix[np.ix_(order, order)],
        n_left_out=explanation.n_players - len(order),
        what=f"{explanation.index} of order {explanation.order}, {rows}\n{game_title(explanation)}",
        unit=explanation.unit,
    )


def draw_interactions(prepared: InteractionMatrix, ax: Axes = None) -> Any:
    """Draw a prepared matrix of pairs."""
    n = len(prepared.names)
    names = [in_lines(escape(name)) for name in prepared.names]
    letters = max((len(line) for name in names for line in name.split("\n")), default=0)
    ax = new_axes(2.0 + 0.085 * letters + 0.6 * n, 1.4 + 0.06 * letters + 0.55 * n) if ax is None else ax
    # Values of single players are mostly larger: the colour scale is that of the pairs
    size = np.abs(prepared.matrix)
    limit = float((size - np.diag(np.diag(size))).max(initial=0.0)) or float(size.max(initial=0.0)) or 1.0
    extend = "both" if size.max(initial=0.0) > limit else "neither"
    picture = ax.imshow(prepared.matrix, cmap=current_palette().values(), vmin=-limit, vmax=limit)
    for row, column in np.ndindex(n, n):
        value = prepared.matrix[row, column]
        colour = "white" if abs(value) > 0.7 * limit else "black"
        ax.text(column, row, in_words(float(value), digits=2), ha="center", va="center", fontsize=8, color=colour)
    # Turned names of several lines would cross their neighbours
    below = [escape(shortened(" ".join(name.split()), CATEGORY_WIDTH)) for name in prepared.names]
    ax.set_xticks(range(n), below, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(n), names)
    ax.set_title(escape(prepared.what), fontsize=10)
    if prepared.n_left_out:
        ax.set_xlabel(f"{counted(prepared.n_left_out, 'player')} with smaller values not shown")
    ax.figure.colorbar(picture, ax=ax, extend=extend, label=escape(f"{prepared.unit} (diagonal: order-1 values)"))
    return ax
