"""What a kernel takes, as the library tells it (see ``src/native/common/kernel.h``)."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Parameter", "packer", "parse", "the_one"]


class Layout(NamedTuple):
    """How the fields of a structure are packed."""

    names: tuple[str, ...]
    arrays: tuple[int, ...]  # their positions
    structures: tuple[int, ...]
    packer: struct.Struct


@dataclass(frozen=True)
class Parameter:
    """One argument of a kernel.

    ``kind`` is "in" or "out" for arrays of ``dtype`` and ``ndim``, "int", "real", "gives" for a returned number, or "fields" for
    a NamedTuple of further parameters.
    """

    kind: str
    name: str = ""
    dtype: str = ""
    ndim: int = 0
    fields: tuple[Parameter, ...] = ()

    @property
    def is_array(self) -> bool:
        return self.kind in ("in", "out")

    @functools.cached_property
    def layout(self) -> Layout:
        """How the fields are packed: the same at every call."""
        fields = tuple(enumerate(self.fields))
        arrays = tuple(i for i, field in fields if field.is_array)
        structures = tuple(i for i, field in fields if field.kind == "fields")
        return Layout(tuple(field.name for field in self.fields), arrays, structures, packer(self.fields))

    def __str__(self) -> str:
        if self.is_array:
            return f"a C-contiguous{' writable' if self.kind == 'out' else ''} array of {self.dtype} with {self.ndim} dimension{'s' * (self.ndim != 1)}"
        if self.kind == "fields":
            return "a NamedTuple with the fields " + ", ".join(f"`{field.name}`" for field in self.fields)
        return {"int": "a whole number", "real": "a number"}[self.kind]


def packer(parameters: tuple[Parameter, ...]) -> struct.Struct:
    """Return what packs arguments into slots of eight bytes."""
    return struct.Struct("=" + "".join({"int": "q", "real": "d"}.get(parameter.kind, "Q") for parameter in parameters))


@functools.cache
def the_one(parameter: Parameter) -> Parameter:
    """Return the one object for all parameters that are equal: kernels that take the same structure then share its addresses."""
    return parameter


def parse(text: str) -> tuple[Parameter, ...]:
    """Read a signature.

    >>> [parameter.kind for parameter in parse(" in:f8:2 int {left=in:i4:1,depth=int} out:f8:1 gives:int")]
    ['in', 'int', 'fields', 'out', 'gives']
    """
    return tuple(_parameter(token) for token in text.split())


def _parameter(token: str, name: str = "") -> Parameter:
    if token.startswith("{"):
        fields = (field.partition("=") for field in _split(token[1:-1]))
        return Parameter("fields", name, fields=tuple(_parameter(value, key) for key, _, value in fields))
    kind, *rest = token.split(":")
    if kind == "gives":
        return Parameter(kind, name, dtype=rest[0])
    return Parameter(kind, name, rest[0], int(rest[1])) if rest else Parameter(kind, name)


def _split(text: str) -> list[str]:
    """Split at the commas outside of inner braces."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
