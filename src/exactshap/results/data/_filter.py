"""Parse the language of filters, and apply it to rows.

``filter.json`` holds its words, signs and messages; ``filter.js`` parses it in the page.

::

    any       = all { "or" all }
    all       = one { "and" one }
    one       = "(" any ")" | search | name comparison
    comparison = sign value | ["not"] "in" "(" value { "," value } ")" | ["not"] "between" value "and" value | "is" ["not"] "missing"

Names and values are words, or stand in quotes. Upper and lower case are the same. A missing cell satisfies ``is missing`` and
nothing else. A search is a word alone: it finds rows with a text or label that holds it.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from exactshap.errors import InputError, UnknownNameError
from exactshap.frames import Table, label_text
from exactshap.results.data._cells import as_days, cell_text

_COMPARE = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_EXAMPLE = 'Write conditions such as: age > 40 and city = Bonn; a name or text with "and" or a sign in it stands in quotes'
_SHOWN = 8  # most columns in a message


def filter_grammar() -> str:
    """Return the table of the language as JSON for the page."""
    return (Path(__file__).parent / "filter.json").read_text(encoding="utf-8")


@functools.cache
def _grammar() -> dict[str, Any]:
    return dict(json.loads(filter_grammar()))


def filtered_rows(table: Table, names: Sequence[str], where: str) -> np.ndarray:
    """Return which rows (n_rows,) a filter keeps, without evaluating code; "" keeps all.

    >>> from exactshap.frames import as_table
    >>> table = as_table(np.array([[30.0, 1.0], [50.0, 2.0], [np.nan, 3.0]]))
    >>> filtered_rows(table, ["age", "size"], "age between 40 and 60 or size in (1, 7)")
    array([ True,  True, False])
    """
    if not where.strip():
        return np.ones(table.n_rows, bool)
    try:
        return _holds(_Parser(where, names).tree(), _Columns(table, names))
    except RecursionError:
        got = f"Got {where.count('('):,} brackets, one in another"
        raise InputError("The filter cannot be read", got, _EXAMPLE) from None


def _fail(kind: str, *words: str) -> NoReturn:
    error = UnknownNameError if kind == "column" else InputError
    raise error("The filter cannot be read", _grammar()["slips"][kind].format(*words), _EXAMPLE)


@dataclass(frozen=True)
class _Token:
    kind: str  # "text" (in quotes), "sign", "word" or "end"
    text: str

    def reads(self, *words: str) -> bool:
        return self.kind in ("word", "sign") and self.text.lower() in words


def _tokens(where: str) -> Iterator[_Token]:
    for quoted, sign, word, other in re.findall(_grammar()["token"], where):
        if other:
            _fail("quote", where[where.index(other) :])
        yield _Token("text", quoted[1:-1]) if quoted else _Token("sign", sign) if sign else _Token("word", word)
    yield _Token("end", "")


class _Parser:
    """Turn a filter into nested lists of "or", "and", "compare", "missing" and "search"."""

    def __init__(self, where: str, names: Sequence[str]) -> None:
        self.tokens, self.at, self.names = list(_tokens(where)), 0, names

    def tree(self) -> list[Any]:
        tree = self._any()
        if self._next.kind != "end":
            _fail("extra", self._next.text)
        return tree

    @property
    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, *words: str) -> bool:
        taken = self._next.reads(*words)
        self.at += taken
        return taken

    def _expect(self, word: str) -> None:
        if not self._take(word):
            _fail("word", self._place(), word)

    def _place(self) -> str:
        words = _grammar()
        if self.at == 0:
            return str(words["start"])
        return str(words["after"].format(self.tokens[self.at - 1].text))

    def _any(self) -> list[Any]:
        return self._joined("or", lambda: self._joined("and", self._one))

    def _joined(self, word: str, part: Callable[[], list[Any]]) -> list[Any]:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return [word, *parts]

    def _one(self) -> list[Any]:
        if self._take("("):
            inner = self._any()
            self._expect(")")
            return inner
        name, _ = self._phrase("ends_name")
        if name is None:
            if self._next.kind == "end" or self._next.reads("and", "or", ")"):
                _fail("condition", self._place())
            _fail("extra", self._next.text)
        sign = _grammar()["signs"].get(self._next.text) if self._next.kind == "sign" else None
        if sign is not None:
            self.at += 1
            value, bare = self._value()
            is_missing = bare and value.lower() == "missing" and sign in ("=", "!=")
            return ["missing", name, sign == "!="] if is_missing else ["compare", name, sign, value]
        if self._next.reads("in", "not", "between", "is"):
            return self._words_of(name)
        # A column's name alone is more likely an unfinished condition than a search for that word.
        if name.lower() in (other.lower() for other in self.names):
            _fail("sign", name)
        return ["search", name]

    def _words_of(self, name: str) -> list[Any]:
        if self._take("is"):
            negative = self._take("not")
            self._expect("missing")
            return ["missing", name, negative]
        negative = self._take("not")
        if self._take("between"):
            low, _ = self._value()
            self._expect("and")
            high, _ = self._value()
            # Not between: below the one or above the other, by De Morgan.
            signs = ("<", ">") if negative else (">=", "<=")
            return ["or" if negative else "and", ["compare", name, signs[0], low], ["compare", name, signs[1], high]]
        self._expect("in")
        bracket, values = self._take("("), [self._value()[0]]
        while self._take(","):
            values.append(self._value()[0])
        if bracket:
            self._expect(")")
        return ["and" if negative else "or", *(["compare", name, "!=" if negative else "=", value] for value in values)]

    def _value(self) -> tuple[str, bool]:
        value, bare = self._phrase("ends_value")
        if value is None:
            _fail("value", self._place())
        return value, bare

    def _phrase(self, ends: str) -> tuple[str | None, bool]:
        """Return words up to the next sign, and whether they are unquoted."""
        if self._next.kind == "text":
            self.at += 1
            return self.tokens[self.at - 1].text, False
        words = []
        while self._next.kind == "word" and not self._next.reads(*_grammar()[ends]):
            words.append(self._next.text)
            self.at += 1
        return (" ".join(words) if words else None), True


class _Columns:
    """Hold a table's columns as numbers, days or lower-case texts. They are read when a filter names them."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self.table, self.names = table, list(names)

    def number(self, name: str) -> int:
        lower = [other.lower() for other in self.names]
        if name not in self.names and name.lower() not in lower:
            shown = ", ".join(self.names[:_SHOWN]) + (" and others" if len(self.names) > _SHOWN else "")
            _fail("column", name, shown)
        return self.names.index(name) if name in self.names else lower.index(name.lower())

    def column(self, j: int) -> tuple[str, np.ndarray]:
        numbers = self.table.numbers([j])
        if numbers is not None:
            return "number", numbers[:, 0]
        texts = np.array([cell_text(cell) for cell in self.table.column(j)], object)
        days = as_days(texts)
        return ("text", np.array([text.lower() for text in texts], object)) if days is None else ("date", days)

    def search(self, word: str) -> np.ndarray:
        index = getattr(self.table.native, "index", None)
        labels = range(self.table.n_rows) if index is None or callable(index) else index
        # A row's number and label, as the page names it
        texts = enumerate(map(label_text, labels))
        rows = (f"row {i} ({text})".lower() if text and text != str(i) else f"row {i}" for i, text in texts)
        found = np.array([word in row for row in rows], bool)
        for j in range(len(self.names)):
            kind, cells = self.column(j)
            if kind == "text":
                found |= np.array([word in text for text in cells], bool)
        return found


def _holds(tree: Sequence[Any], columns: _Columns) -> np.ndarray:
    kind, *parts = tree
    if kind in ("or", "and"):
        return np.asarray((np.any if kind == "or" else np.all)([_holds(part, columns) for part in parts], axis=0))
    if kind == "search":
        return columns.search(parts[0].lower())
    j = columns.number(parts[0])
    name, (holds, cells) = columns.names[j], columns.column(j)
    # Missing cells fulfil no comparison, not even "!=".
    known = cells != "" if holds == "text" else ~np.isnan(cells)
    if kind == "missing":
        return np.asarray(known == parts[1])
    _, sign, value = parts
    if holds == "text":
        if sign not in ("=", "!="):
            _fail("order", name, sign)
        return np.asarray(known & _COMPARE[sign](cells, value.lower()).astype(bool))
    bound = _number(value, _grammar()["truth"]) if holds == "number" else _day(value)
    if bound is None:
        _fail(holds, name, value)
    return np.asarray(known & _COMPARE[sign](cells, bound))


def _number(text: str, truth: Mapping[str, int]) -> float | None:
    if text.lower() in truth:
        return float(truth[text.lower()])
    return float(text) if re.search(_grammar()["number"], text, re.IGNORECASE | re.ASCII) else None


def _day(text: str) -> float | None:
    if not re.search(_grammar()["date"], text, re.ASCII):
        return None
    try:
        return float(np.datetime64(text.replace(" ", "T"), "ms").astype(np.int64)) / 86_400_000
    except ValueError:
        return None
