"""Flatten rows with several axes (windows, images) or several inputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean

_EXAMPLE = "Pass the axes of a row: shape={'time': 24, 'variable': ['load', 'wind']}"


@dataclass(frozen=True)
class Axes:
    """Hold the axes of one input, with labels along each."""

    input: str  # its name; "" if it is the only one
    labels: dict[str, tuple[str, ...]]  # by axis name

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(map(len, self.labels.values()))

    @property
    def size(self) -> int:
        return math.prod(self.lengths)

    def named(self, labels: Sequence[str]) -> str:
        name = ", ".join(labels)
        return f"{self.input}: {name}" if self.input and name else name or self.input or "all"

    def cells(self) -> list[str]:
        return [self.named(labels) for labels in itertools.product(*self.labels.values())]

    def blocks(self, spec: Any, start: int) -> dict[str, list[int]]:
        """Return the columns of each block; ``spec`` maps axes to lengths of blocks, other axes are whole."""
        # Numbers of flat columns in the shape of a row: its slices are the blocks
        place = start + np.arange(self.size).reshape(self.lengths)
        cuts = [self._cuts(axis, wanted) for axis, wanted in _lengths(spec, self).items()]
        found = {}
        for block in itertools.product(*cuts):
            labels = [label for label, _ in block if label]
            found[self.named(labels)] = place[np.ix_(*(where for _, where in block))].ravel().tolist()
        return found

    def _cuts(self, axis: str, length: int) -> list[tuple[str, np.ndarray]]:
        labels = self.labels[axis]
        if not length:
            return [("", np.arange(len(labels)))]
        starts = range(0, len(labels), length)
        ends = [min(a + length, len(labels)) for a in starts]
        return [
            (labels[a] if b == a + 1 else f"{labels[a]} to {labels[b - 1]}", np.arange(a, b))
            for a, b in zip(starts, ends, strict=True)
        ]


def _lengths(spec: Any, axes: Axes) -> dict[str, int]:
    """Return the length of the blocks along each axis, 0 for whole axes."""
    if isinstance(spec, str):
        spec = [spec]
    wanted = dict(spec) if isinstance(spec, Mapping) else dict.fromkeys(spec, 1)
    for axis, length in wanted.items():
        if axis not in axes.labels:
            raise UnknownNameError(f"`shape` has no axis {axis!r}", do=did_you_mean(str(axis), tuple(axes.labels)))
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
            raise InputError(f"Blocks along {axis!r} must have a length of at least 1", f"Got {length!r}")
    return {axis: int(wanted.get(axis, 0)) for axis in axes.labels}


@dataclass(frozen=True)
class Shape:
    """Hold the axes of all inputs of a function, in the order of the flat rows.

    >>> shape = Shape.of({"time": 2, "variable": ["load", "wind"]})
    >>> shape.names
    ('time 0, load', 'time 0, wind', 'time 1, load', 'time 1, wind')
    >>> shape.groups("variable")
    {'load': [0, 2], 'wind': [1, 3]}
    >>> shape.flat(np.zeros((3, 2, 2)), "X").shape
    (3, 4)
    """

    inputs: tuple[Axes, ...]
    single: bool

    @classmethod
    def of(cls, shape: Any) -> Shape:
        """Read what the user passed: axes, or a mapping of input names to axes."""
        if not isinstance(shape, Mapping) or not shape:
            raise InputTypeError("`shape` must map names of axes to lengths or labels", f"Got {shape!r:.200}", _EXAMPLE)
        nested = [isinstance(axes, Mapping) for axes in shape.values()]
        # Axes map to lengths or labels, inputs map to axes: a mapping among the values means inputs
        if any(nested) and not all(nested):
            do = "Pass axes for each: shape={'picture': {'row': 8, 'column': 8}, 'table': {'column': ['age', 'sex']}}"
            raise InputTypeError("`shape` mixes axes and inputs", f"Got {shape!r:.200}", do)
        if all(nested):
            return cls(tuple(Axes(str(name), _labelled(axes)) for name, axes in shape.items()), False)
        return cls((Axes("", _labelled(shape)),), True)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for axes in self.inputs for name in axes.cells())

    @property
    def starts(self) -> list[int]:
        return [0, *itertools.accumulate(axes.size for axes in self.inputs)]

    def flat(self, rows: Any, what: str) -> np.ndarray:
        if self.single:
            return _flat(rows, self.inputs[0], what)
        if isinstance(rows, np.ndarray) and rows.shape[1:] == (self.starts[-1],):
            return rows
        names = [axes.input for axes in self.inputs]
        parts = [rows[name] for name in names] if isinstance(rows, Mapping) and {*names} <= {*rows} else rows
        if not isinstance(parts, (list, tuple)) or len(parts) != len(names):
            raise InputError(f"`{what}` must hold {len(names)} inputs", f"`shape` names {names}", "Pass a list of arrays")
        flat = [_flat(part, axes, f"{what}[{axes.input!r}]") for part, axes in zip(parts, self.inputs, strict=True)]
        if len({*map(len, flat)}) > 1:
            raise InputError(f"The inputs of `{what}` differ in rows", f"Got {[len(part) for part in flat]}")
        return np.concatenate(flat, axis=1)

    def restored(self, rows: np.ndarray) -> Any:
        """Return flat rows as the arguments of the function: one array, or a list of inputs."""
        starts = self.starts
        parts = [
            rows[:, a:b].reshape(len(rows), *axes.lengths)
            for a, b, axes in zip(starts[:-1], starts[1:], self.inputs, strict=True)
        ]
        return parts[0] if self.single else parts

    def groups(self, groups: Any) -> Any:
        """Return groups along axes as columns by player. Groups of columns are not changed."""
        if groups is None:
            return None
        if self.single:
            return self.inputs[0].blocks(groups, 0) if self._along_axes(groups, self.inputs[0].labels) else groups
        if not isinstance(groups, Mapping) or not self._along_axes(groups, [axes.input for axes in self.inputs]):
            return groups
        found: dict[str, list[int]] = {}
        for axes, start in zip(self.inputs, self.starts[:-1], strict=True):
            if axes.input in groups:
                found |= axes.blocks(groups[axes.input], start)
        return found

    @staticmethod
    def _along_axes(groups: Any, names: Any) -> bool:
        return not isinstance(groups, Mapping) or any(name in names for name in groups)


@dataclass(frozen=True, eq=False)
class Shaped:
    """Turn a function of shaped rows into one of flat rows."""

    function: Callable[..., Any]
    shape: Shape

    @property
    def __name__(self) -> str:
        owner, name = getattr(self.function, "__self__", None), getattr(self.function, "__name__", type(self.function).__name__)
        return f"{type(owner).__name__}.{name}" if owner is not None else str(name)

    def __call__(self, rows: np.ndarray) -> Any:
        return self.function(self.shape.restored(rows))


def _labelled(axes: Mapping[Any, Any]) -> dict[str, tuple[str, ...]]:
    return {str(axis): _labels(str(axis), given) for axis, given in axes.items()}


def _labels(axis: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given >= 1:
        return tuple(f"{axis} {k}" for k in range(int(given)))
    if isinstance(given, (str, bytes, bool, int)) or not hasattr(given, "__len__") or not len(given):
        raise InputTypeError(f"Axis {axis!r} must have a length or labels", f"Got {given!r}", _EXAMPLE)
    labels = tuple(map(str, given))
    if len({*labels}) < len(labels):
        raise InputError(f"Labels of axis {axis!r} must differ", f"Got {labels!r:.200}")
    return labels


def _flat(rows: Any, axes: Axes, what: str) -> np.ndarray:
    array = np.asarray(rows)
    if array.shape[1:] not in (axes.lengths, (axes.size,)):
        wanted = f"(n_rows, {', '.join(map(str, axes.lengths))})"
        do = f"Pass {what}[None] for one row" if array.shape == axes.lengths else "Pass a batch of rows"
        raise InputError(f"`{what}` must have shape {wanted}, as `shape` says", f"Got {array.shape}", do)
    return array.reshape(len(array), axes.size)
