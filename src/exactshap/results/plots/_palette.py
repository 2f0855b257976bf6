"""The colours of all pictures: one setting, distinct for colour-blind readers and in grey."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any

from exactshap._runtime.optional import require
from exactshap.errors import InputError, UnknownNameError, did_you_mean, message

__all__ = ["Palette", "current_palette", "palette"]


@dataclass(frozen=True)
class Palette:
    """Colours by meaning, as matplotlib writes them.

    Attributes
    ----------
    positive, negative : str
        Values above and below zero; high and low cells; the ends of maps of colours.
    middle : str
        Between them, for cells.
    zero : str
        Between them, for values.
    neutral, accent : str
        One series, and a second one with it.
    undecided, missing : str
        What cannot be told from zero, and cells that are missing or text.
    """

    positive: str = "#c8500a"
    negative: str = "#0b6bb3"
    middle: str = "#a9a9a9"
    zero: str = "#f7f7f7"
    neutral: str = "#0b6bb3"
    accent: str = "#c8500a"
    undecided: str = "#8c8c8c"
    missing: str = "#8b949e"

    def of_sign(self, value: float) -> str:
        """Return the colour of a value."""
        return self.positive if value > 0 else self.negative

    def values(self) -> Any:
        """Return the map of colours of values, symmetric around zero."""
        return _map("values", (self.negative, self.zero, self.positive))

    def cells(self) -> Any:
        """Return the map of colours of cells, from low to high; those that are missing have their own."""
        return _map("cells", (self.negative, self.middle, self.positive)).with_extremes(bad=self.missing)


def _map(name: str, colours: tuple[str, ...]) -> Any:
    return require("matplotlib.colors", "plots", purpose="Plotting").LinearSegmentedColormap.from_list(name, colours)


_DEFAULT = Palette()
_CURRENT = ContextVar("palette", default=_DEFAULT)


def current_palette() -> Palette:
    """Return the colours that pictures are drawn in now."""
    return _CURRENT.get()


@contextmanager
def palette(**colours: str) -> Iterator[Palette]:
    """Draw pictures in other colours within a ``with`` block.

    Parameters
    ----------
    **colours
        Fields of :class:`Palette`; the others stay.

    Returns
    -------
    palette : Palette
        As it is within the block.

    Raises
    ------
    UnknownNameError
        If there is no such field.
    InputError
        If matplotlib knows no such colour.

    Examples
    --------
    >>> with palette(positive="black", negative="white") as chosen:
    ...     chosen.of_sign(1.0)
    'black'
    """
    known = [field.name for field in fields(Palette)]
    for name, colour in colours.items():
        if name not in known:
            raise UnknownNameError(message(f"Unknown colour {name!r}", do=did_you_mean(name, known)))
        if not require("matplotlib.colors", "plots", purpose="Plotting").is_color_like(colour):
            raise InputError(message(f"{name}={colour!r} is no colour", do="Write it as '#c8500a' or 'black'"))
    token = _CURRENT.set(replace(_CURRENT.get(), **colours))
    try:
        yield _CURRENT.get()
    finally:
        _CURRENT.reset(token)
