"""Set colours, figures and texts that fit, and choose a picture's players."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes
from exactshap._runtime.words import MINUS, POWERS_FROM, in_words
from exactshap.errors import InputError, UnknownNameError, did_you_mean
from exactshap.results.data import ExplanationData, as_days, cells, counted, game_title, index_title

_HEX = re.compile("#[0-9a-fA-F]{6}")

# Letters per line of a player's name, and lines.
NAME_WIDTH, NAME_LINES = 36, 3
# Mean width of a letter of 10 points, in points.
_LETTER = 6.2
# Where a name may be broken: after spaces, underscores and the hyphens of words
_BREAK = re.compile(r"(?<=\s)|(?<=_)(?=[^_])|(?<=[^\W\d_]-)(?=[^\W\d_])")
# Letters of a category below an axis.
CATEGORY_WIDTH = 20


@dataclass(frozen=True)
class Palette:
    """Name colours by meaning, in matplotlib's notation. :func:`palette` says what each is for."""

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


def _rgb(colour: str) -> tuple[int, ...]:
    written = (
        colour if _HEX.fullmatch(colour) else require("matplotlib.colors", "plots", purpose="A named colour").to_hex(colour)
    )
    return tuple(int(written[place : place + 2], 16) for place in (1, 3, 5))


def _hex(rgb: Iterable[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in rgb)


def _map(name: str, colours: tuple[str, ...]) -> Any:
    return require("matplotlib.colors", "plots", purpose="Plotting").LinearSegmentedColormap.from_list(name, colours)


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure, in inches."""
    plt = require("matplotlib.pyplot", "plots", purpose="Plotting")
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def fitted(ax: Axes, *, title: str = "", xlabel: str = "", size: int = 11) -> Any:
    """Set a title or label, and wrap those that would leave the figure."""
    if title:
        ax.set_title(escape(title), fontsize=size)
    if xlabel:
        ax.set_xlabel(escape(xlabel), fontsize=size)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_wrap(True)
    return ax


def in_lines(label: str, width: int = NAME_WIDTH) -> str:
    r"""Break a name into lines, after underscores too, and escape it. What three lines cannot hold goes from the middle.

    >>> in_lines("customer_age_at_first_contact", 16)
    'customer_age_at_\nfirst_contact'
    """
    lines = [""]
    for word in _BREAK.split(shortened(label, width * NAME_LINES)):
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
    """Return a text on one line, a long one cut in the middle.

    >>> shortened("Passenger, Mr. number 17", 16)
    'Passenge… ber 17'
    """
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length // 2]}… {text[-(length - length // 2 - 2) :]}"


def shortened_apart(texts: Sequence[str], length: int) -> list[str]:
    """Cut long texts so that what tells them apart stays.

    >>> shortened_apart(["mean_balance_of_month_01_in_euros", "mean_balance_of_month_12_in_euros", "age"], 20)
    ['…01_in_euros', '…12_in_euros', 'age']
    """
    texts = [" ".join(text.split()) for text in texts]
    ordered = sorted(set(texts))
    # Letters that neighbours begin with alike; any two texts begin alike as far as all neighbours in between do
    alike = np.array([_first_difference(*pair) for pair in itertools.pairwise(ordered)], int)
    places = {text: place for place, text in enumerate(ordered)}
    return [_shortened_among(text, alike[places[text] :], alike[: places[text]], length) for text in texts]


def _first_difference(text: str, other: str) -> int:
    return next((k for k, (mine, its) in enumerate(zip(text, other, strict=False)) if mine != its), min(len(text), len(other)))


def _shortened_among(text: str, after: np.ndarray, before: np.ndarray, length: int) -> str:
    tail = len(text) - (length - length // 2 - 2)  # what ``shortened`` shows of the end begins here
    differences = np.concatenate([np.minimum.accumulate(after), np.minimum.accumulate(before[::-1])])
    hidden = differences[(differences >= length // 2) & (differences < tail)]
    if len(text) <= length or not len(hidden):
        return shortened(text, length)
    start = first = int(hidden.min())
    while first - start < length // 3 and text[start - 1].isalnum():  # from the beginning of its word
        start -= 1
    return f"…{text[start:]}" if len(text) - start < length else f"…{shortened(text[start:], length - 1)}"


def escape(text: str) -> str:
    r"""Keep matplotlib from reading dollar signs in names as mathematics.

    >>> escape("price in $")
    'price in \\$'
    """
    return text.replace("$", r"\$")


def name_lines(ax: Axes, labels: Sequence[str], *, room: float = 0.5) -> None:
    """Write names at the lines 0, 1, 2, ... from top to bottom, with ``room`` above the first."""
    ax.set_yticks(range(len(labels)), [in_lines(label) for label in labels])
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


def draw_bars(ax: Axes, values: np.ndarray, ends: np.ndarray | None = None, **style: Any) -> None:
    """Draw bars at lines 0, 1, ..., with whiskers. These reach the lower and upper ``ends`` (2, n_bars) that are known."""
    ax.barh(range(len(values)), values, zorder=2, **style)
    known = np.zeros(len(values), bool) if ends is None else np.isfinite(ends).all(axis=0)
    if ends is not None and known.any():
        reach = np.abs(ends - values)[:, known]
        ax.errorbar(values[known], np.flatnonzero(known), xerr=reach, fmt="none", ecolor="black", capsize=3, zorder=4)


def draw_rings(ax: Axes, x: np.ndarray, y: np.ndarray, size: float, colour: str) -> None:
    ax.scatter(x, y, s=size, zorder=2, facecolors="none", edgecolors=colour, linewidths=0.7)


def without_frame(ax: Axes, *sides: str) -> Any:
    """Hide some sides of the frame; by default three, and the ticks of the vertical axis."""
    for side in sides or ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    if not sides:
        ax.tick_params(axis="y", length=0)
    return ax


@dataclass(frozen=True, eq=False)
class Shown:
    """Choose the players of a picture: the strongest one by one, and all others merged as the last."""

    single: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, strength: np.ndarray, max_display: int) -> Shown:
        """Choose players by decreasing strength (n_players,), at most ``max_display`` with the rest.

        >>> shown = Shown.of(np.array([1.0, 3.0, 2.0]), 2)
        >>> shown.single, shown.rest, shown.labels(["a", "b", "c"])
        (array([1]), array([2, 0]), ('b', '2 other features'))
        """
        order, most = np.argsort(-strength, kind="stable"), check_count("max_display", max_display)
        n_single = len(order) if len(order) <= most else most - 1
        return cls(order[:n_single], order[n_single:])

    def labels(self, names: Sequence[str], noun: str = "other feature") -> tuple[str, ...]:
        return (*(str(names[j]) for j in self.single), *self.name_of_rest(noun))

    def name_of_rest(self, noun: str = "other feature") -> tuple[str, ...]:
        return (counted(len(self.rest), noun),) if len(self.rest) else ()

    def values(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., n_shown), with those of the rest added up."""
        return self._joined(values, values[..., self.rest].sum(axis=-1, keepdims=True))

    def known(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., n_shown) that cannot be added up, with NaN for the rest."""
        return self._joined(values, np.full((*values.shape[:-1], 1), np.nan))

    def _joined(self, values: np.ndarray, of_rest: np.ndarray) -> np.ndarray:
        own = values[..., self.single]
        return np.concatenate([own, of_rest], axis=-1) if len(self.rest) else own


def player_labels(row: ExplanationData, players: np.ndarray) -> list[str]:
    shown = cells(row)
    if shown is None:
        return [row.feature_names[j] for j in players]
    return [f"{row.feature_names[j]} = {cell_words(shown.display[0, j])}" for j in players]


def cell_words(cell: Any, length: int = 30) -> str:
    """Return a cell as text: whole numbers in full, others with four digits, dates without midnight, long texts cut.

    >>> cell_words(12345678901.0), cell_words(0.123456), cell_words(float("nan")), cell_words(""), cell_words("2020-02-01 00:00:00")
    ('12,345,678,901', '0.1235', 'missing', 'missing', '2020-02-01')
    >>> cell_words(2015.0), cell_words(41183.27)
    ('2015', '41,183')
    """
    if isinstance(cell, str):
        is_midnight = as_days(np.array([cell], object)) is not None and cell[10:].strip("T0:. ") == ""
        return shortened(cell[:10] if is_midnight else cell, length) or "missing"
    number = float(cell)
    if POWERS_FROM <= abs(number) < 1e15 and number == round(number):  # such as the number of a customer
        return f"{number:,.0f}".replace("-", MINUS)
    words = in_words(number)
    return words.replace(",", "") if abs(number) < 1e4 else words  # as years are written


@dataclass(frozen=True, repr=False)
class Plotted:
    """Hold the explanation that is drawn."""

    explanation: ExplanationData

    def one(self, output: int | str | None) -> ExplanationData:
        """Return the explanation of one output, which has rows."""
        if self.explanation.n_rows == 0:
            raise InputError("A plot needs at least one row", "Got an explanation of 0 rows")
        if output is not None:
            return self.explanation.output(output)
        if self.explanation.output_names is not None:
            got = f"This explanation has {list(self.explanation.output_names)}"
            raise InputError("A plot shows one output", got, "Pass output= (a number or a name)")
        return self.explanation


def unit_words(rows: ExplanationData) -> str:
    return f"model output: {rows.unit}" if rows.unit else "model output"


def game_words(rows: ExplanationData) -> str:
    """Return what the values are, of which model, and a warning if they miss the prediction; ``rows`` before :func:`readable`."""
    certificate = rows.certificate()
    warning = "" if certificate.passed else f"; residual {certificate.max_residual:.2g} is ABOVE its tolerance"
    model = f" of {rows.model_name}" if rows.model_name and len(rows.model_name) <= 40 else ""
    return f"{rows.kind} {index_title(rows.index)}{model}, {game_title(rows)}{warning}"
