"""Name the types of users' objects for signatures, without importing a library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from numpy.random import Generator

# Classes of other libraries are recognised by dotted names, and no protocol covers them all: a type checker sees Any.
Model: TypeAlias = Any  # a fitted model, transformer or function
# An array, a frame of any library, a sparse matrix or a path, before `frames.as_table` checks it
TableLike: TypeAlias = Any
# An array, a list or a series of any library: one cell for each row
Column: TypeAlias = Any
Foreign: TypeAlias = Any  # a part of a model: its kernel, a term, a tree
Axes: TypeAlias = Any  # matplotlib's, which is optional
Json: TypeAlias = Any  # a parsed document before any check

RandomState: TypeAlias = "int | Generator | None"
PerColumn: TypeAlias = Any  # one setting for all columns, a sequence of them, or a mapping by name or number
