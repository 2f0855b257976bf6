"""Format numbers, facts and tables as text and HTML, for terminals, pictures and notebooks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from html import escape

from exactshap.errors import printable

_LEFT = "text-align:left;vertical-align:top"


def fields_text(title: str, facts: Mapping[str, str], width: int = 116) -> str:
    """Return a title and, below it, names with wrapped text to their right.

    >>> print(fields_text("Forecast", {"method": "a few words and more"}, width=30))
    Forecast
      method          a few words
                      and more
    """
    wrapper = textwrap.TextWrapper(width, subsequent_indent=" " * 18, break_long_words=False, break_on_hyphens=False)
    lines = [title]
    for name, text in facts.items():
        wrapper.initial_indent = f"  {name:<15} "
        lines.append(wrapper.fill(text))
    return printable("\n".join(lines))


def fields_html(title: str, facts: Mapping[str, str], below: str = "") -> str:
    """Return a title, facts and markup below them as one element, with escaped text.

    >>> fields_html("A < B", {})
    '<div><strong>A &lt; B</strong><table></table></div>'
    """
    rows = "".join(
        f"<tr><th style='{_LEFT}'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in facts.items()
    )
    return printable(f"<div><strong>{escape(title)}</strong><table>{rows}</table>{below}</div>")


def table_text(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a text table: first column left-aligned, the others right-aligned.

    >>> print(table_text(["feature", "mean"], [["age", "1.5"]]))
      feature  mean
      age       1.5
    """
    table = [[" ".join(printable(str(cell)).split()) for cell in row] for row in (headings, *rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(headings))]
    return "\n".join(
        "  "
        + "  ".join(f"{cell:<{w}}" if k == 0 else f"{cell:>{w}}" for k, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in table
    )


def table_html(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML; text is escaped.

    >>> table_html(["x"], [["<b>"]])
    "<table><thead><tr><th style='text-align:left'>x</th></tr></thead><tbody><tr><th style='text-align:left'>&lt;b&gt;</th></tr></tbody></table>"
    """

    def line(cells: Sequence[str], tag: str) -> str:
        sides = (("th", "left") if k == 0 else (tag, "right") for k in range(len(cells)))
        marked = (f"<{t} style='text-align:{side}'>{escape(c)}</{t}>" for (t, side), c in zip(sides, cells, strict=True))
        return f"<tr>{''.join(marked)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return printable(f"<table><thead>{line(headings, 'th')}</thead><tbody>{body}</tbody></table>")


class PrintedTable:
    """Print ``_head``, ``_table`` and ``_note`` of an object as text and in notebooks."""

    def _head(self) -> tuple[str, Mapping[str, str]] | None:
        """Return a title and facts, if there are any."""
        return None

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        """Return headings, the first rows, and the number of all rows."""
        raise NotImplementedError

    def _note(self) -> str:
        """Return a line below the table."""
        return ""

    def _parts(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return headings, rows, and the lines below them."""
        headings, rows, n = self._table()
        return headings, rows, [*([f"({n - len(rows)} more)"] if n > len(rows) else ()), *filter(None, [self._note()])]

    def __repr__(self) -> str:
        head, (headings, rows, below) = self._head(), self._parts()
        above = "" if head is None else f"{fields_text(*head)}\n"
        return above + table_text(headings, rows) + "".join(f"\n  {line}" for line in below)

    def _repr_html_(self) -> str:
        head, (headings, rows, below) = self._head(), self._parts()
        table = table_html(headings, rows) + "<br>".join(map(escape, below))
        return table if head is None else fields_html(*head, table)


MINUS = "\N{MINUS SIGN}"
# From here on numbers are written in powers of ten.
POWERS_FROM = 1e9


def in_words(value: float, *, sign: str = "", digits: int = 4, largest: float = 0.0) -> str:
    """Return a number with so many digits, below 1e9 in full. The minus is typographic; zero has no sign.

    Of numbers that are shown together the ``largest`` decides for all of them, so that they are written alike.

    >>> in_words(262753.4), in_words(0.123456), in_words(-12.0, sign="+", digits=3), in_words(3e9)
    ('262,753', '0.1235', '−12', '3e+09')
    >>> in_words(262753.4, largest=3e9), in_words(-0.0, sign="+"), in_words(math.nan), in_words(-math.inf)
    ('2.628e+05', '0', 'missing', '−∞')
    """
    size = abs(value)
    if not math.isfinite(value):
        return "missing" if math.isnan(value) else f"{sign if value > 0 else MINUS}∞"
    is_full = 10 ** (digits - 1) <= size and max(size, largest) < POWERS_FROM
    form = ",.0f" if is_full else f".{digits}g"
    return f"{value + 0.0:{sign if value else ''}{form}}".replace("-", MINUS)


MEAN_AND_DEVIATION = "mean of the target and log of its standard deviation"


def unit_of_statistic(unit: str, name: str) -> str:
    """Return the unit of one quantile, expectile, moment or parameter of several; "" of other outputs.

    >>> unit_of_statistic("target", "quantile 0.1"), unit_of_statistic("parameter of Normal", "loc"), unit_of_statistic("log-odds", "yes")
    ('quantile 0.1 of the target', 'loc of Normal', '')
    """
    if unit.startswith("parameter of "):  # of a distribution
        return f"{name} of {unit.removeprefix('parameter of ')}"
    is_statistic = unit == MEAN_AND_DEVIATION or (unit == "target" and name.startswith(("quantile ", "expectile ")))
    return f"{name} of the target" if is_statistic else ""
