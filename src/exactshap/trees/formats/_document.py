"""Read model documents as untrusted data: errors name the fault and its place, and sizes are checked before allocation.

Lists of similar objects (the trees of a model) are read by column.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from exactshap._runtime.types import Json
from exactshap.errors import ExactshapError, ExplanationWarning, ModelFormatError, message, warn
from exactshap.trees.ensemble import MAX_NODES, RawTree

MAX_COLUMNS = 2**22
MAX_OUTPUTS = 2**16
_HUGE = re.compile(rb"[\[:,]\s*-?[0-9.]+[eE][+-]?[0-9]{4}")
# Python also accepts 1_0 and digits of other scripts.
CHARACTERS_OF_NUMBERS = set("0123456789+-.eEnaif ")
# Up to this limit every integer is a float64.
EXACT_INTEGERS = 2**53
# Words of one category bit set, for as many categories as float32 distinguishes (2^24), and of all of them: 256 MiB.
MAX_SET_WORDS, MAX_WORDS = 2**19, 2**26
T = TypeVar("T")


def guarded(what: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Turn errors of Python and NumPy at malformed documents into ModelFormatError.

    Overflows do not warn, as what is kept is checked to be finite.
    """

    def decorate(parse: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(parse)
        def wrapped(*args: Any, **settings: Any) -> T:
            try:
                with np.errstate(all="ignore"):
                    return parse(*args, **settings)
            except ExactshapError:
                raise
            except (
                ValueError,
                TypeError,
                KeyError,
                IndexError,
                OverflowError,
                RecursionError,
                AttributeError,
                ArithmeticError,
            ) as error:
                raise ModelFormatError(f"Malformed {what}", f"{type(error).__name__}: {error}") from error

        return wrapped

    return decorate


def read_json(data: bytes, what: str) -> Any:
    """Parse JSON; duplicate keys, bad encodings and nesting that exhausts the parser are refused."""
    if _HUGE.search(data):  # 0 in Python, but no number for CatBoost's parser
        raise ModelFormatError(f"Malformed {what}", "An exponent has more than three digits")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique_keys)
    except ModelFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"Malformed {what}", f"{type(error).__name__}: {error}") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ModelFormatError(f"Key {twice!r} occurs twice in one object")
    return document


def field(document: Json, path: str, kind: type | tuple[type, ...] = dict) -> Any:
    """Return the entry at a dotted ``path``, checked to be of a kind."""
    here = document
    for key in path.split("."):
        if not isinstance(here, dict) or key not in here:
            raise ModelFormatError(f"The model has no entry {path!r}")
        here = here[key]
    if not isinstance(here, kind) or (isinstance(here, bool) and kind is int):
        wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
        raise ModelFormatError(f"Entry {path!r} must be a {wanted}", f"Got {type(here).__name__}")
    return here


def integer(value: Any, what: str, low: int, high: int) -> int:
    """Return a whole number within [low, high], from a number or text."""
    text = value.strip(" ") if isinstance(value, str) else "truth value" if isinstance(value, bool) else None
    # int() accepts 1.7, "1_0" and digits of other scripts, which libraries read differently
    try:
        number = operator.index(value) if text is None else int(text) if re.fullmatch("[+-]?[0-9]+", text) else None
    except TypeError:
        number = None
    if number is None:
        raise ModelFormatError(f"{what} must be a whole number", f"Got {str(value)[:40]!r}")
    if not low <= number <= high:
        raise ModelFormatError(f"{what} must be within [{low}, {high}]", f"Got {number}")
    return number


def numbers(values: Any, what: str, dtype: type, length: int | None = None) -> np.ndarray:
    """Return a list or one-dimensional array as an array of a dtype and length; integers stay integers."""
    if not isinstance(values, (list, np.ndarray)):
        raise ModelFormatError(f"{what} must be a list of numbers", f"Got {type(values).__name__}")
    try:
        array = np.asarray(values) if len(values) else np.empty(0, dtype)
    except (ValueError, TypeError, OverflowError):
        raise ModelFormatError(f"{what} must be a flat list of numbers") from None
    wanted = np.dtype(dtype)
    whole = wanted.kind in "iu"
    kinds = set(map(type, values)) if not whole and isinstance(values, list) else set()
    if bool in kinds:
        raise ModelFormatError(f"{what} must hold numbers", "Got a truth value")
    if int in kinds and any(
        type(value) is int and abs(value) > EXACT_INTEGERS for value in values
    ):  # CatBoost reads them as zeros
        raise ModelFormatError(f"{what} holds whole numbers beyond 2^53")
    if array.ndim != 1 or array.dtype.kind not in ("iub" if whole else "iubf"):
        raise ModelFormatError(
            f"{what} must be a flat list of {'whole ' if whole else ''}numbers", f"Got {array.dtype} {array.shape}"
        )
    if length is not None and len(array) != length:
        raise ModelFormatError(f"{what} must hold {length} numbers", f"Got {len(array)}")
    if always_fits(array.dtype, wanted):
        return array.astype(wanted)
    if whole and array.size and not np.iinfo(dtype).min <= int(array.min()) <= int(array.max()) <= np.iinfo(dtype).max:
        raise ModelFormatError(f"{what} holds numbers beyond {wanted.name}")
    with np.errstate(over="ignore"):
        return array.astype(wanted)


def number(document: Json, path: str) -> float:
    """Return the number at a dotted ``path``."""
    return float(numbers([field(document, path, (int, float))], path, np.float64)[0])


@functools.cache
def always_fits(given: np.dtype, wanted: np.dtype) -> bool:
    """Say whether every value of one dtype fits the other."""
    return bool(np.can_cast(given, wanted, "safe"))


def bit_set(categories: np.ndarray, what: str) -> np.ndarray:
    """Return 32-bit words with the bits of the categories set."""
    if not len(categories):
        return np.zeros(1, np.uint32)
    low, high = int(categories.min()), int(categories.max())
    if low < 0 or high // 32 >= MAX_SET_WORDS:
        raise ModelFormatError(f"{what}: category out of range", f"Got {low}..{high}")
    words = np.zeros(high // 32 + 1, np.uint32)
    np.bitwise_or.at(words, categories // 32, np.uint32(1) << (categories % 32).astype(np.uint32))
    return words


def rounds_read(kept: int | None, total: int, reason: str) -> str:
    """Describe which rounds are read; "" for all. Warn where there are fewer.

    >>> rounds_read(7, 20, "best_iteration"), rounds_read(20, 20, "n_stages")
    ('the first 7 of 20 boosting rounds (best_iteration)', '')
    """
    if kept is not None and kept > total:
        got, do = f"Got n_stages={kept}, the file holds {total}", f"All {total} are read"
        warn(message("`n_stages` is above the number of boosting rounds", got, do), ExplanationWarning)
    return "" if kept is None or kept >= total else f"the first {kept} of {total} boosting rounds ({reason})"


def names_of_outputs(n_outputs: int, word: str, classes: Any = None, levels: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the levels, classes or numbered targets that margins belong to.

    >>> names_of_outputs(1, "class", ["no", "yes"]), names_of_outputs(2, "target")
    (('yes',), ('target 0', 'target 1'))
    """
    if len(levels) == n_outputs:
        return tuple(levels)
    if n_outputs == 1:
        return (str(classes[-1]),) if classes is not None and len(classes) == 2 else ("output",)
    if classes is not None and len(classes) == n_outputs:
        return tuple(map(str, classes))
    return tuple(f"{word} {o}" for o in range(n_outputs))


def log_odds(slope: float) -> str:
    """Return the unit of a score that the link multiplies by a slope before the logistic function.

    >>> log_odds(1.0), log_odds(2.0)
    ('log-odds', 'log-odds / 2')
    """
    return "log-odds" if slope == 1.0 else f"log-odds / {slope!r}".removesuffix(".0")


def parents_first(root: T, children: Callable[[T], list[T]], limit: int = MAX_NODES) -> tuple[list[T], np.ndarray, np.ndarray]:
    """Return the nodes of a binary tree, and the numbers of their left and right children, -1 at leaves.

    >>> nodes, left, right = parents_first((1, (2, 3)), lambda node: list(node) if isinstance(node, tuple) else [])
    >>> nodes, left.tolist(), right.tolist()
    ([(1, (2, 3)), 1, (2, 3), 2, 3], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1])
    """
    nodes, first = [root], []
    for node in nodes:  # grows in the loop
        if len(nodes) > limit:
            raise ModelFormatError("The nodes of a tree form a cycle or share a child")
        below = children(node)
        first.append(len(nodes) if below else -1)
        nodes += below
    left = np.array(first)
    return nodes, left, np.where(left < 0, -1, left + 1)


class Node(NamedTuple):
    """Describe one node of a tree: where a split sends rows, or what a leaf adds."""

    column: int = -1
    threshold: float = 0.0
    missing_left: bool = False
    value: np.ndarray | float | None = None  # None of splits
    cover: float = 0.0
    # Categories that a split sends above, whatever the threshold; None: numbers are compared
    members: Sequence[int] | None = None


def tree_of(
    root: T,
    children: Callable[[T], list[T]],
    node: Callable[[int, T], Node],
    *,
    where: str = "tree",
    most_words: int = MAX_WORDS,
    output: int = -1,
) -> RawTree:
    """Return the tree below ``root``; ``node(q, entry)`` describes its q-th entry, category sets take at most ``most_words``.

    >>> tree_of(1, lambda q: [2 * q, 2 * q + 1] if q < 2 else [], lambda _, q: Node(0, 0.5) if q < 2 else Node(value=q)).value
    array([0., 2., 3.])
    """
    entries, left, right = parents_first(root, children)
    nodes = [node(q, entry) for q, entry in enumerate(entries)]
    feature, threshold, missing, values, cover, members = zip(*nodes, strict=True)
    coded = {q: some for q, some in enumerate(members) if some is not None}
    swapped, words = list(coded), np.cumsum([max(some, default=0) // 32 + 1 for some in coded.values()])
    if (words > most_words).any():
        q = swapped[int(np.argmax(words > most_words))]
        raise ModelFormatError(f"{where} node {q}: the category sets are too large", f"The limit is {MAX_WORDS} words")
    # Members of a set go left
    left[swapped], right[swapped] = right[swapped], left[swapped]
    nothing = np.zeros(np.shape(values[-1]))  # the last entry is a leaf
    return RawTree(
        feature=np.array(feature),
        threshold=np.array(threshold, float),
        left=left,
        right=right,
        value=np.array([nothing if value is None else value for value in values], float),
        cover=np.array(cover, float),
        missing=np.array(missing, np.int8),
        categories={q: bit_set(np.array(some, np.int64), f"{where} node {q}") for q, some in coded.items()},
        output=output,
    )


class Records:
    """Give the entries of parsed objects as columns; ``_ubj.Scanned`` does so without making the objects."""

    def __init__(self, objects: list[Any]) -> None:
        for k, block in enumerate(objects):
            if not isinstance(block, dict):
                raise ModelFormatError(f"tree {k}: must be an object", f"Got {type(block).__name__}")
        self.objects = objects

    def __len__(self) -> int:
        return len(self.objects)

    def take(self, kept: np.ndarray) -> Records:
        return Records([self.objects[k] for k in kept])

    def entries(self, name: str) -> list[Any]:
        """Return one entry of each object, None where it is missing."""
        return [block.get(name) for block in self.objects]

    def names(self) -> set[str]:
        """Return the names of all entries."""
        return {name for block in self.objects for name in block}

    def has(self, name: str) -> bool:
        """Say whether every object has an entry; refuse a file in which only some have it."""
        return every_or_none([entry is not None for entry in self.entries(name)], name)

    def inner(self, name: str) -> Records | None:
        """Return the inner objects of an entry, or None if an object lacks it."""
        found = self.entries(name)
        return None if any(entry is None for entry in found) else Records(found)

    def column(self, name: str, dtype: type, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return an entry's concatenated numbers, and their count per object, checked by ``counts``."""
        arrays = []
        for k, entry in enumerate(self.entries(name)):
            if entry is None:
                raise ModelFormatError(f"tree {k}: has no entry {name!r}")
            arrays.append(numbers(entry, f"tree {k}: {name}", dtype, None if counts is None else int(counts[k])))
        sizes = np.array([len(array) for array in arrays], np.int64)
        return np.concatenate(arrays) if arrays else np.empty(0, dtype), sizes


def every_or_none(found: Sequence[bool] | np.ndarray, name: str) -> bool:
    """Say whether all objects have the entry or none; a file with only some is damaged."""
    having = np.asarray(found, bool)
    if having.any() and not having.all():
        raise ModelFormatError(f"tree {int(np.argmin(having))}: has no entry {name!r}, unlike others")
    return bool(having.all())


def records(objects: Any) -> Records:
    """Return a list of objects as records."""
    return objects if isinstance(objects, Records) else Records(objects)
