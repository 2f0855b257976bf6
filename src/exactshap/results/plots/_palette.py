"""Set the colours of all pictures, distinct for colour-blind readers and in grey."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap.errors import InputError, UnknownNameError, did_you_mean


@dataclass(frozen=True)
class Palette:
    """Name colours by meaning, in matplotlib's notation; :func:`palette` says what each is for."""

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
        """Return the colour map of values, symmetric around zero."""
        return _map("values", (self.negative, self.zero, self.positive))

    def cells(self) -> Any:
        """Return the colour map of cells, with a colour for missing ones."""
        return _map("cells", (self.negative, self.middle, self.positive)).with_extremes(bad=self.missing)

    def hexadecimal(self, field: str) -> str:
        """Return the colour of a field as ``#rrggbb``, for pages."""
        return _hex(_rgb(getattr(self, field)))

    def shades(self, n: int) -> list[str]:
        """Return ``n`` colours of cells from low to high, for pages.

        >>> Palette(negative="#000000", middle="#808080", positive="#ffffff").shades(3)
        ['#000000', '#808080', '#ffffff']
        """
        ends = np.array([_rgb(colour) for colour in (self.negative, self.middle, self.positive)])
        places = np.linspace(0.0, 2.0, n)
        return [_hex([np.interp(place, (0.0, 1.0, 2.0), ends[:, k]) for k in range(3)]) for place in places]


def _rgb(colour: str) -> tuple[int, ...]:
    written = (
        colour if _HEX.fullmatch(colour) else require("matplotlib.colors", "plots", purpose="A named colour").to_hex(colour)
    )
    return tuple(int(written[place : place + 2], 16) for place in (1, 3, 5))


def _hex(rgb: Iterable[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in rgb)


def _map(name: str, colours: tuple[str, ...]) -> Any:
    return require("matplotlib.colors", "plots", purpose="Plotting").LinearSegmentedColormap.from_list(name, colours)


_HEX = re.compile("#[0-9a-fA-F]{6}")
_DEFAULT = Palette()
# For dark screens: the same hues, lighter.
_DARK = Palette(
    positive="#ff9248",
    negative="#58aef5",
    middle="#b4b4b4",
    zero="#0d1117",
    neutral="#58aef5",
    accent="#ff9248",
    missing="#6e7681",
)
_CURRENT = ContextVar("palette", default=_DEFAULT)


def current_palette() -> Palette:
    return _CURRENT.get()


def dark_palette() -> Palette:
    """Return the colours for dark screens, or those of :func:`palette` where it is used."""
    chosen = current_palette()
    return _DARK if chosen == _DEFAULT else chosen


@contextmanager
def palette(**colours: str) -> Iterator[Palette]:
    """Use other colours in pictures, pages and app, within a ``with`` block.

    Parameters
    ----------
    **colours
        In matplotlib's notation; the others stay. ``positive`` and ``negative``: values above and below zero, high and low cells,
        the ends of colour maps; ``middle``, ``zero``: the middle of the colour maps of cells and of values; ``neutral``, ``accent``:
        a first and a second series; ``undecided``, ``missing``: what cannot be distinguished from zero, and cells that are missing
        or text.

    Returns
    -------
    palette : Palette
        All colours within the block, by these names.

    Raises
    ------
    UnknownNameError
        If there is no such colour.
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
            raise UnknownNameError(f"Unknown colour {name!r}", do=did_you_mean(name, known))
        if not require("matplotlib.colors", "plots", purpose="Plotting").is_color_like(colour):
            raise InputError(f"{name}={colour!r} is not a colour", do="Write it as '#c8500a' or 'black'")
    token = _CURRENT.set(replace(_CURRENT.get(), **colours))
    try:
        yield _CURRENT.get()
    finally:
        _CURRENT.reset(token)
