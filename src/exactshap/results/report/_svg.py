"""Write the elements of SVG: scales, ticks, escaped text. Colours and fonts are classes, so that the page's style sets them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.words import MINUS, POWERS_FROM, in_words
from exactshap.results.plots import shortened

_SMALLEST, _LARGEST = sys.float_info.min, sys.float_info.max


def minus_signs(text: str) -> str:
    """Return a text with typographic minus signs. Hyphens of words and dates stay.

    >>> minus_signs("-0.5 to 1e-09, on 2024-03-01")
    '−0.5 to 1e−09, on 2024-03-01'
    """
    return re.sub(r"(?<![\w.)])-(?=[.\d])|(?<=\de)-(?=\d)", MINUS, text)


def date(days: float) -> str:
    """Write days since 1970 as a date, with its time unless that is midnight.

    >>> date(19723.0), date(19723.5)
    ('2024-01-01', '2024-01-01 12:00')
    """
    return str(np.datetime64(round(1440.0 * days), "m")).replace("T", " ").removesuffix(" 00:00")


def decimals(values: Iterable[float]) -> int:
    """Return the decimals with which the largest value has four digits; -1 for powers of ten.

    >>> decimals([20.14159, 0.5]), decimals([31415.9]), decimals([0.00123]), decimals([3e9, 1.0])
    (2, 0, 6, -1)
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest >= POWERS_FROM:
        return -1
    return 3 if largest == 0 else min(max(3 - math.floor(math.log10(largest)), 0), 12)


def fixed(value: float, places: int, *, sign: bool = False) -> str:
    """Write a number with the :func:`decimals` of its column or picture, and a typographic minus.

    Very large and very small columns are in powers of ten.

    >>> fixed(-0.698, 2), fixed(12.3456, 2, sign=True), fixed(-1e-9, 2, sign=True), fixed(262753.4, -1)
    ('−0.70', '+12.35', '0.00', '2.628e+05')
    """
    if not math.isfinite(value):
        return in_words(value)
    written = f"{value:,.{places}f}" if 0 <= places <= 8 else f"{value:.4g}"
    written = written.replace("-", MINUS)
    if not written.strip(f"{MINUS}0."):  # zero after rounding has no sign
        return written.removeprefix(MINUS)
    return f"+{written}" if sign and value >= 0 else written


def text_width(texts: Iterable[str], size: float = 12.0) -> float:
    """Estimate the width of the widest text in pixels, without a font."""
    return max((0.56 * size * sum(1.7 if ord(sign) > 0x2E80 else 1.0 for sign in item) for item in texts), default=0.0)


@dataclass(frozen=True)
class Scale:
    """Map [low, high] linearly to [start, stop]."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: np.ndarray | float) -> np.ndarray:
        # Halves, as the difference of two large numbers may overflow
        half = self.high / 2 - self.low / 2
        return self.start + (np.asarray(value, float) / 2 - self.low / 2) / half * (self.stop - self.start)

    @classmethod
    def over(
        cls, values: np.ndarray, start: float, stop: float, *, margin: float = 0.04, include: float | None = None
    ) -> Scale:
        """Return a scale of positive length with a margin around finite ``values`` and ``include``."""
        finite = np.asarray(values, float)[np.isfinite(values)]
        finite = finite if include is None else np.append(finite, include)
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        space = max(2 * margin * (high / 2 - low / 2), _SMALLEST) if high > low else 0.05 * abs(high) or 1.0
        return cls(max(low - space, -_LARGEST), min(high + space, _LARGEST), start, stop)

    def ticks(self, wanted: int) -> list[float]:
        """Return round numbers inside the scale. Steps are 1, 2 or 5 times 10^k, the widest with enough of them.

        >>> Scale(18.0, 91.0, 0.0, 1.0).ticks(4), Scale(-0.52, 0.31, 0.0, 1.0).ticks(4)
        ([20.0, 40.0, 60.0, 80.0], [-0.4, -0.2, 0.0, 0.2])
        """
        power = 10.0 ** math.floor(math.log10(min(self.high - self.low, _LARGEST)))
        for factor in (5, 2, 1, 0.5, 0.2, 0.1):
            step = min(power * factor, 1e308)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first + 1 >= max(wanted - 1, 1):
                break
        return [round(k * step, 12 - math.floor(math.log10(step))) + 0.0 for k in range(first, last + 1)]


def text(x: float, y: float, content: str, *, anchor: str = "start", style: str = "", title: str | None = None) -> str:
    """Write escaped text at a point; ``title`` is its tooltip."""
    hover = "" if title is None else f"<title>{escape(title)}</title>"
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(content)}{hover}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def rectangle(x: float, y: float, width: float, height: float, style: str, *, title: str) -> str:
    """Draw a filled rectangle with a tooltip; a negative width extends to the left."""
    x, width = min(x, x + width), abs(width)
    hover = f"<title>{escape(title)}</title>"
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" class="{style}">{hover}</rect>'


def dots(x: np.ndarray, y: np.ndarray, style: str) -> str:
    """Draw dots as one path of zero-length strokes with round caps, 14 bytes each."""
    path = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x, y, strict=True))
    return f'<path class="dot {style}" d="{path}"/>' if path else ""


def polyline(x: np.ndarray, y: np.ndarray, style: str) -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline class="{style}" points="{points}"/>'


def axis(scale: Scale, y: float, *, label: str, top: float, wanted: int = 5, write: Callable[[float], str] = in_words) -> str:
    """Draw a horizontal axis at ``y`` with grid lines up to ``top`` and a label below."""
    parts = [line(scale.start, y, scale.stop, y, "axis")]
    ticks = scale.ticks(wanted)
    while wanted > 2 and text_width(map(write, ticks), 11.0) + 6.0 > (scale.stop - scale.start) / max(len(ticks), 1):
        wanted -= 1
        ticks = scale.ticks(wanted)
    for tick in ticks:
        x = float(scale(tick))
        parts += [
            line(x, top, x, y, "zero" if tick == 0 else "grid"),
            text(x, y + 15, write(tick), anchor="middle", style="tick"),
        ]
    parts.append(text((scale.start + scale.stop) / 2, y + 33, label, anchor="middle", style="label"))
    return "".join(parts)


def category_axis(scale: Scale, y: float, name: str, categories: Sequence[str]) -> tuple[str, float]:
    """Draw an axis of categories, upright where they are too long to lie; return it with the height below ``y``."""
    parts, depth = [line(scale.start, y, scale.stop, y, "axis")], 40.0
    room = abs(scale.stop - scale.start) / max(len(categories), 1)
    shown = [shortened(category, 16) for category in categories] if room >= 12.0 else []
    upright = text_width(shown, 11.0) + 4.0 > room
    for code, word in enumerate(shown):
        x = float(scale(code))
        if upright:
            turned = text(0, 0, word, anchor="end", style="tick", title=categories[code])
            parts.append(f'<g transform="translate({x + 4:.1f} {y + 6:.1f}) rotate(-90)">{turned}</g>')
        else:
            parts.append(text(x, y + 15, word, anchor="middle", style="tick", title=categories[code]))
    if upright:
        depth += text_width(shown, 11.0) - 8.0
    label = shortened(name, 40) + ("" if shown else f" ({len(categories)} categories, in order)")
    parts.append(text((scale.start + scale.stop) / 2, y + depth - 7, label, anchor="middle", style="label"))
    return "".join(parts), depth


def figure(width: float, height: float, parts: Iterable[str], *, label: str) -> str:
    """Return a whole picture, which templates take as it is: its texts are escaped."""
    body = "".join(parts)
    return require("markupsafe", "report", purpose="A report").Markup(  # type: ignore[no-any-return]
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="{escape(label)}">{body}</svg>'
    )
