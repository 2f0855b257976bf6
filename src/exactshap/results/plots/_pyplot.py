"""The one place that touches pyplot's global state, and puts it back."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes
from exactshap.errors import InputError, message

__all__ = ["current", "displayed", "escape", "fitted", "new_axes", "seeded"]

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


def _make_current(plt: Any, ax: Axes) -> None:
    try:
        plt.sca(ax)
    except ValueError as error:
        text = "matplotlib before 3.11 draws into figures of pyplot only"
        raise InputError(message(text, str(error), "Make the figure with pyplot.figure(), or upgrade matplotlib")) from None


@contextmanager
def current(ax: Axes) -> Iterator[None]:
    """Make ``ax`` current for functions that draw there; then restore everything. They may resize its figure.

    The figure's ``set_size_inches`` does nothing in here, the interactive mode and the current axes are put back, and a
    figure that pyplot did not manage before is not managed by it afterwards.
    """
    matplotlib = require("matplotlib", "plots", purpose="Plotting")
    plt = require("matplotlib.pyplot", "plots", purpose="Plotting")
    figure = ax.get_figure(root=True) if hasattr(ax.figure, "figure") else ax.figure
    managed = set(plt.get_fignums())
    before = plt.gca() if managed and plt.gcf().axes else None
    interactive = matplotlib.is_interactive()
    figure.set_size_inches = lambda *args, **kwargs: None
    try:
        _make_current(plt, ax)
        yield
    finally:
        del figure.set_size_inches
        matplotlib.interactive(interactive)
        for number in set(plt.get_fignums()) - managed:
            plt.close(number)
        if before is not None:
            plt.sca(before)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator for some drawing; then put it back."""
    state = np.random.get_state()  # noqa: NPY002 - shap's plots shuffle with the global generator
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def escape(text: str) -> str:
    r"""Keep matplotlib from reading dollar signs in names as mathematics.

    >>> escape("price in $")
    'price in \\$'
    """
    return text.replace("$", r"\$")
