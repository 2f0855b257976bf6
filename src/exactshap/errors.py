"""Define the errors of exactshap and the three-sentence form of their messages.

Every message says what was wrong, what was got, and what to do, in that order. "Your input" (:class:`InputError` and its
relatives) and "our bug or an inexact result" (:class:`ExactnessError`) are different classes. Each class subclasses the
builtin that fits, so that ``except ValueError`` keeps working.
"""

from __future__ import annotations

import difflib
import functools
import numbers
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

__all__ = [
    "BudgetError",
    "ExactnessError",
    "ExactshapError",
    "ExplanationWarning",
    "InputError",
    "InputTypeError",
    "MissingDependencyError",
    "ModelFormatError",
    "UnknownNameError",
    "UnsupportedModelError",
    "UnsupportedStructureError",
]

# Longest sentence of a message, and longest message about a file, in characters: both may echo untrusted text.
MAX_CHARACTERS = 300
# C0 and C1 controls but tab and newline, overrides of the writing direction, halves of a surrogate pair, non-characters
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

P = ParamSpec("P")
T = TypeVar("T")
# A context variable, as the filters of `warnings` are shared by all threads.
RAISED: ContextVar[tuple[type[Warning], ...]] = ContextVar("what `warn` raises", default=())


class ExactshapError(Exception):
    """Base class of errors that exactshap raises on purpose.

    ``what`` was wrong, what was ``got``, what to ``do``: sentences, of which one alone may be a whole message.
    """

    def __init__(self, what: str = "", got: str = "", do: str = "") -> None:
        super().__init__(message(what, got, do))


class InputError(ExactshapError, ValueError):
    """A value that the caller passed cannot be used.

    ``row`` is the number of the row of X in the text, if any.
    """

    def __init__(self, what: str = "", got: str = "", do: str = "", *, row: int | None = None) -> None:
        super().__init__(what, got, do)
        self.row = row

    def count_from(self, start: int, named: Callable[[int], str] = "row {}".format) -> None:
        """Count the row in the message from the table's beginning.

        ``start`` rows come before; ``named`` returns the name of a row.
        """
        if self.row is not None:
            text = str(self).replace(f"row {self.row}", named(self.row + start), 1)
            self.row, self.args = self.row + start, (text,)


class InputTypeError(ExactshapError, TypeError):
    """An object of the wrong type was passed."""


class UnknownNameError(InputError):
    """A name (index, value function, column, output) is not known."""


class UnsupportedModelError(ExactshapError, TypeError):
    """No reader knows this type of model."""


class UnsupportedStructureError(ExactshapError, NotImplementedError):
    """A part of a known model has no exact form."""


class ModelFormatError(ExactshapError, ValueError):
    """A model's or explanation's file is malformed, truncated or too new."""

    def __init__(self, what: str = "", got: str = "", do: str = "") -> None:
        super().__init__(_shortened(message(what, got, do), MAX_CHARACTERS))


class ExactnessError(ExactshapError, ArithmeticError):
    """A residual is above its tolerance: the result must not be trusted."""


class BudgetError(ExactshapError, MemoryError):
    """A request was refused, as its forecast exceeds time or memory."""

    # MemoryError's own refuses a class with another first base; libraries that send errors to other processes call it
    __new__ = Exception.__new__  # type: ignore[assignment]


class MissingDependencyError(ExactshapError, ImportError):
    """An optional library is needed for this call and is not installed."""


class ExplanationWarning(UserWarning):
    """Something about an explanation deserves attention, though no number is wrong."""


def message(what: str, got: str = "", do: str = "") -> str:
    """Return one message: what was wrong, what was got, what to do.

    Full stops are added where they are missing. Sentences are cut in the middle beyond 300 characters (one alone, which may be a
    whole message, beyond 1,200), and control characters are replaced, since names and values may come from a file of a stranger.

    >>> message("The 'order' parameter must be at least 1", "Got 0", "Pass order=1")
    "The 'order' parameter must be at least 1. Got 0. Pass order=1."
    """
    # Errors are copied and pickled by their text, which must then stay as it is
    most = MAX_CHARACTERS if got or do else 4 * MAX_CHARACTERS
    sentences = (_shortened(printable(part.strip()), most) for part in (what, got, do))
    return " ".join(part if part.endswith((".", "?", "!")) else f"{part}." for part in sentences if part)


def printable(text: str) -> str:
    r"""Replace characters that are unsafe in files, pages and terminals: controls, surrogates and overrides of direction.

    Tabs and newlines stay; a carriage return before a newline goes.

    >>> printable("a\x00b\x1b[31m") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[31m"
    True
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def _shortened(text: str, most: int) -> str:
    """Cut a long text in the middle: its beginning says what is wrong, its end what to do.

    >>> len(_shortened("x" * 1000, 300)), _shortened("short", 300)
    (300, 'short')
    """
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end - 3]}...{text[-end:]}"


@contextmanager
def rows_from(start: int, named: Callable[[int], str] = "row {}".format) -> Iterator[None]:
    """Count rows in errors of the block from ``start`` on; ``named(row)`` names a row of the whole table.

    >>> with rows_from(100):
    ...     raise InputError("NaN at row 7", row=7)
    Traceback (most recent call last):
    exactshap.errors.InputError: NaN at row 107.
    """
    try:
        yield
    except InputError as error:
        error.count_from(start, named)
        raise


def refused_beyond_memory(what: str, do: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Turn a MemoryError of a function into a BudgetError with advice.

    >>> @refused_beyond_memory("The request", "Pass fewer rows")
    ... def answer():
    ...     raise MemoryError("Unable to allocate 16.8 GiB")
    >>> answer()
    Traceback (most recent call last):
    exactshap.errors.BudgetError: The request does not fit in memory. Unable to allocate 16.8 GiB. Pass fewer rows.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def checked(*arguments: P.args, **settings: P.kwargs) -> T:
            try:
                return function(*arguments, **settings)
            except BudgetError:
                # It is a MemoryError, too, with its own advice.
                raise
            except MemoryError as error:
                raise BudgetError(message(f"{what} does not fit in memory", f"{error}" or "Got a MemoryError", do)) from error

        return checked

    return decorate


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the closest known name and all names.

    >>> did_you_mean("shaply", ["shapley", "banzhaf"])
    "Did you mean 'shapley'? Available: 'shapley', 'banzhaf'."
    """
    names = list(known)
    close = difflib.get_close_matches(str(name).lower(), names, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}Available: {', '.join(repr(item) for item in names)}."


def memory_needed(needed: float, limit: float) -> str:
    """Return needed and allowed bytes as text, with enough digits to distinguish them.

    >>> memory_needed(2.0**30, 2.0**29), memory_needed(2.0**30 + 2.0**16, 2.0**30)
    ('1 GiB; the limit is 0.5 GiB', '1.0001 GiB; the limit is 1 GiB')
    """
    texts = ([f"{size / 2**30:.{digits}g}" for size in (needed, limit)] for digits in range(3, 18))
    found = next((pair for pair in texts if pair[0] != pair[1]), [repr(needed / 2**30), repr(limit / 2**30)])
    return f"{found[0]} GiB; the limit is {found[1]} GiB"


def no_output(owner: str, output: object, names: Iterable[str]) -> str:
    """Return the message for an output that the model ``owner`` does not have.

    >>> no_output("SVC", 1, ["yes"])
    "SVC has 1 output. Got output=1. Available: 'yes' (numbers start at 0)."
    """
    known = list(names)
    if isinstance(output, numbers.Integral) and not isinstance(output, bool):
        available = f"Available: {', '.join(repr(name) for name in known)} (numbers start at 0)"
        outputs = f"{len(known)} output{'' if len(known) == 1 else 's'}"
        return message(f"{owner} has {outputs}", f"Got output={output}", available)
    hint = did_you_mean(str(output), known)
    if any(name.startswith(f"{output} vs ") or name.endswith(f" vs {output}") for name in known):
        hint += " One output for each class: explain(model.decision_function, X, background)."
    elif "prob" in str(output) and output != "probability":
        hint += ' For probabilities, where the model has them, pass output="probability" and background rows.'
    elif output == "probability":
        hint += ' A model with predict_proba has it, given reference rows: explain(model, X, background, output="probability").'
    elif output == "response":
        hint += " Explain the function for its response: explain(model.predict, X, background)."
    elif output in ("raw", "margin", "log-odds", "decision_function"):
        hint += " Leave output= out for what the model adds up; explanation.unit says what that is."
    return message(f"{owner} has no output {output!r}", do=hint)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest caller outside this package.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("the background has one row")
    >>> str(caught[0].message)
    'the background has one row'
    """
    text = printable(text)
    if issubclass(category, RAISED.get()):
        raise category(text)
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("exactshap", "contextlib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
