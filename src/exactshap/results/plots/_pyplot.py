"""New figures, and texts that fit into them."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes
from exactshap.errors import InputError, message

# Letters of a line of a player's name.
NAME_WIDTH = 36


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure, in inches."""
    plt = require("matplotlib.pyplot", "plots", purpose="Plotting")
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def fitted(ax: Axes) -> Any:
    """Wrap titles and labels that would leave the figure. Long names of players are wrapped before that."""
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_wrap(True)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    if any(len(label) > NAME_WIDTH for label in labels):
        ax.set_yticks(
            ax.get_yticks(), ["\n".join(textwrap.wrap(label, NAME_WIDTH, break_long_words=False)) for label in labels]
        )
    return ax


def displayed(max_display: Any) -> int:
    """Return how many bars or rows to show at most; refuse what is no number of them.

    >>> displayed(10)
    10
    """
    if isinstance(max_display, bool) or not isinstance(max_display, (int, np.integer)) or max_display < 1:
        raise InputError(message("The 'max_display' parameter must be an int >= 1", f"Got {max_display!r}"))
    return int(max_display)


def escape(text: str) -> str:
    r"""Keep matplotlib from reading dollar signs in names as mathematics.

    >>> escape("price in $")
    'price in \\$'
    """
    return text.replace("$", r"\$")
