"""Draw values in the places of their players: patches of images, words of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.errors import InputError, InputTypeError
from exactshap.results.data import ExplanationData
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import escape, new_axes

# Letters per line of text.
LINE_WIDTH = 72


def draw_image(
    explanation: ExplanationData, i: int, shape: tuple[int, int], image: np.ndarray | None = None, ax: Axes = None
) -> Any:
    """Draw row ``i``'s values as a grid of patches, over the explained image in grey if given."""
    if np.ndim(shape) != 1 or len(shape) != 2 or int(np.prod(shape)) != explanation.n_players:
        got = f"Got shape={shape} for {explanation.n_players} players"
        raise InputError("A picture needs one player for each patch", got, "Pass (lines, columns) of the patches")
    grid = explanation[i].values[0].reshape(shape)
    ax = new_axes(5.2, 4.4) if ax is None else ax
    limit = float(np.abs(grid).max()) or 1.0
    extent = (0.0, float(shape[1]), float(shape[0]), 0.0)
    if image is not None:
        pixels = np.asarray(image, float)
        ax.imshow(pixels if pixels.ndim == 2 else pixels.mean(axis=2), cmap="gray", extent=extent)
    alpha = 1.0 if image is None else 0.25 + 0.65 * np.abs(grid) / limit
    shown = ax.imshow(
        grid, cmap=current_palette().values(), vmin=-limit, vmax=limit, extent=extent, alpha=alpha, interpolation="nearest"
    )
    ax.set_xticks([])
    ax.set_yticks([])
    ax.figure.colorbar(shown, ax=ax, label=escape(f"value ({explanation.unit})"))
    return ax


def draw_text(explanation: ExplanationData, i: int, words: Sequence[str] | None = None, ax: Axes = None) -> Any:
    """Draw row ``i``'s values as colours behind ``words``, one per player; None takes the players' names."""
    if words is not None and not isinstance(words, Iterable):
        raise InputTypeError("`words` must be a list of texts", f"Got {type(words).__name__}")
    words = list(explanation.feature_names if words is None else words)
    if len(words) != explanation.n_players:
        got = f"Got {len(words)} words for {explanation.n_players} players"
        raise InputError("A text needs one word for each player", got)
    values = explanation[i].values[0]
    places = _set_in_lines([len(word) for word in words])
    n_lines = places[-1][0] + 1
    ax = new_axes(8.0, 0.34 * n_lines + 1.3) if ax is None else ax
    limit = float(np.abs(values).max()) or 1.0
    colours = current_palette().values()
    for word, value, (line, column) in zip(words, values, places, strict=True):
        back = colours(0.5 + 0.5 * value / limit)
        ink = "white" if np.dot(back[:3], (0.299, 0.587, 0.114)) < 0.5 else "black"
        box = {"facecolor": back, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
        ax.text(column, line, escape(word), family="monospace", fontsize=9, va="center", color=ink, bbox=box)
    ax.set_xlim(-1.0, LINE_WIDTH + 1.0)
    ax.set_ylim(n_lines - 0.4, -0.6)
    ax.set_axis_off()
    scale = ax.figure.colorbar(_scale(colours, limit), ax=ax, orientation="horizontal", aspect=50, shrink=0.6)
    scale.set_label(escape(f"value ({explanation.unit})"), fontsize=9)
    return ax


def _scale(colours: Any, limit: float) -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    return ScalarMappable(Normalize(-limit, limit), colours)


def _set_in_lines(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the line and column of each word of a text.

    >>> _set_in_lines([40, 40, 3])
    [(0, 0), (1, 0), (1, 42)]
    """
    places, line, column = [], 0, 0
    for length in lengths:
        if column and column + length > LINE_WIDTH:
            line, column = line + 1, 0
        places.append((line, column))
        column += length + 2
    return places
