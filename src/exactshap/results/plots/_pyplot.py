"""Make new figures, and fit texts into them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes

# Letters per line of a player's name, and lines.
NAME_WIDTH, NAME_LINES = 36, 3
# Mean width of a letter of 10 points, in points.
_LETTER = 6.2
# Where a name may be broken: after spaces, underscores and the hyphens of words
_BREAK = re.compile(r"(?<=\s)|(?<=_)(?=[^_])|(?<=[^\W\d_]-)(?=[^\W\d_])")
# Letters of a category below an axis.
CATEGORY_WIDTH = 20


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure, in inches."""
    plt = require("matplotlib.pyplot", "plots", purpose="Plotting")
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def fitted(ax: Axes, *, title: str = "", xlabel: str = "", size: int = 11) -> Any:
    """Set a title or label, and wrap those and long names of players that would leave the figure."""
    if title:
        ax.set_title(escape(title), fontsize=size)
    if xlabel:
        ax.set_xlabel(escape(xlabel), fontsize=size)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_wrap(True)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    if any(len(label) > NAME_WIDTH for label in labels):
        ax.set_yticks(ax.get_yticks(), [in_lines(label) for label in labels])
    return ax


def in_lines(label: str, width: int = NAME_WIDTH) -> str:
    r"""Break an escaped name into lines, after underscores too. What three lines cannot hold goes from the middle.

    >>> in_lines("customer_age_at_first_contact", 16)
    'customer_age_at_\nfirst_contact'
    """
    text = shortened(label.replace(r"\$", "$"), width * NAME_LINES)
    lines = [""]
    for word in _BREAK.split(" ".join(text.split())):
        # A word that no line can hold is broken anywhere
        for part in textwrap.wrap(word, width, drop_whitespace=False):
            if len(lines[-1]) + len(part.rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return escape("\n".join(line.rstrip() for line in lines))


def letters_of(ax: Axes) -> int:
    """Return how many letters of 10 points the axes and their margins are wide."""
    # The layout takes the margins of the default position for the names
    return int(72.0 * ax.figure.bbox.width / ax.figure.dpi * min(1.25 * ax.get_position().width, 1.0) / _LETTER)


def date_axis(axis: Axes, most: int = 8) -> None:
    """Label an axis of days since 1970 concisely."""
    dates = require("matplotlib.dates", "plots", purpose="Plotting")
    locator = dates.AutoDateLocator(maxticks=most)
    axis.set_major_locator(locator)
    axis.set_major_formatter(dates.ConciseDateFormatter(locator))


def shortened(text: str, length: int) -> str:
    """Cut a long text in the middle.

    >>> shortened("Passenger, Mr. number 17", 16)
    'Passenge… ber 17'
    """
    return text if len(text) <= length else f"{text[: length // 2]}… {text[-(length - length // 2 - 2) :]}"


def escape(text: str) -> str:
    r"""Keep matplotlib from reading dollar signs in names as mathematics.

    >>> escape("price in $")
    'price in \\$'
    """
    return text.replace("$", r"\$")


def name_lines(ax: Axes, labels: Sequence[str], *, room: float = 0.5) -> None:
    """Write names at the lines 0, 1, 2, ... from top to bottom, with ``room`` above the first."""
    ax.set_yticks(range(len(labels)), [in_lines(escape(label)) for label in labels])
    ax.set_ylim(len(labels) - 1.0 + room, -room)
    thin_ticks(ax)


def thin_ticks(ax: Axes) -> None:
    """Set as many numbers below the axis as have room next to the names."""
    names = max((len(line) for label in ax.get_yticklabels() for line in label.get_text().split("\n")), default=0)
    numbers = max(len(f"{end:.0f}") for end in ax.get_xlim())
    if hasattr(locator := ax.xaxis.get_major_locator(), "default_params"):  # not of a logarithmic axis
        locator.set_params(nbins=min(max((letters_of(ax) - names) // (numbers + 1), 2), 9))


def write_at_tip(ax: Axes, text: str, tip: float, place: int, *, is_left: bool, color: str = "black") -> None:
    """Write a bar's number next to its tip, on the outer side."""
    side, ha = (-4, "right") if is_left else (4, "left")
    ax.annotate(text, (tip, place), xytext=(side, 0), textcoords="offset points", ha=ha, va="center", fontsize=9, color=color)


def room_at_tips(texts: Sequence[str]) -> float:
    """Return the room for numbers beyond bars, over the longest bar's reach."""
    return max(0.14, 0.026 * max(map(len, texts), default=0))


def draw_rings(ax: Axes, x: np.ndarray, y: np.ndarray, size: float, colour: str) -> None:
    ax.scatter(x, y, s=size, zorder=2, facecolors="none", edgecolors=colour, linewidths=0.7)


def without_frame(ax: Axes, *sides: str) -> Any:
    """Hide some sides of the frame; by default three, and the ticks of the vertical axis."""
    for side in sides or ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    if not sides:
        ax.tick_params(axis="y", length=0)
    return ax
