"""Read lists of similar objects (the trees of a model) by column, from parsed JSON or the bytes of UBJSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap.errors import ModelFormatError
from exactshap.trees.formats._document import numbers


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

    def distinct(self, name: str) -> set[Any]:
        """Return the distinct values (text or numbers) of an entry."""
        return set(self.entries(name))

    def inner(self, name: str) -> Records | None:
        """Return the inner objects of an entry, or None if an object lacks it."""
        found = self.entries(name)
        return None if any(entry is None for entry in found) else Records(found)

    def column(self, name: str, dtype: type, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return an entry's concatenated numbers, and their count per object, checked by ``counts``."""
        return chained(self.entries(name), name, dtype, counts)

    def columns(self, names: Sequence[str], dtype: type, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return several columns (n_names, n_numbers) of equal length, and counts per object."""
        found = []
        for name in names:
            column, counts = self.column(name, dtype, counts)
            found.append(column)
        assert counts is not None
        return np.stack(found), counts


def every_or_none(found: Sequence[bool] | np.ndarray, name: str) -> bool:
    """Say whether all objects have the entry or none; a file with only some is damaged."""
    having = np.asarray(found, bool)
    if having.any() and not having.all():
        raise ModelFormatError(f"tree {int(np.argmin(having))}: has no entry {name!r}, unlike others")
    return bool(having.all())


def records(objects: Any) -> Records:
    """Return a list of objects as records."""
    return objects if isinstance(objects, Records) else Records(objects)


def chained(entries: list[Any], name: str, dtype: type, counts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    arrays = []
    for k, entry in enumerate(entries):
        if entry is None:
            raise ModelFormatError(f"tree {k}: has no entry {name!r}")
        arrays.append(numbers(entry, f"tree {k}: {name}", dtype, None if counts is None else int(counts[k])))
    sizes = np.array([len(array) for array in arrays], np.int64)
    return np.concatenate(arrays) if arrays else np.empty(0, dtype), sizes
