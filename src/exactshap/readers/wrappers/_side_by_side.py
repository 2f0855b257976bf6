"""Read maps of some columns in front of a linear model: those in a ColumnTransformer or FeatureUnion."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.frames import Table, as_table
from exactshap.readers import sklearn_name
from exactshap.readers.additive import MapsSideBySide, Weight, is_affine, is_map, is_projection
from exactshap.readers.wrappers._columns import ColumnOwners, flat_steps, takes_texts, unfrozen


@dataclass(frozen=True, eq=False)
class _Selected:
    """Select columns of a table, as a ColumnTransformer does for each of its steps."""

    columns: list[int]


@dataclass(frozen=True, eq=False)
class _Part:
    """Hold the column-wise steps of one part, selections of columns included, and the maps that follow."""

    before: list[Any]
    maps: list[Any]


@dataclass(frozen=True, eq=False)
class BeforeMaps:
    """Apply a ColumnTransformer or FeatureUnion up to its maps. ``transform`` returns their input."""

    step: Model
    parts: Sequence[_Part]

    def get_params(self) -> dict[str, Any]:
        return dict(self.step.get_params())

    def transform(self, rows: TableLike) -> np.ndarray:
        return np.concatenate([_numbers(self._transformed(part, as_table(rows))) for part in self.parts], axis=1)

    def owners(self, follow: ColumnOwners, owners: np.ndarray, rows: Table | None) -> tuple[np.ndarray, MapsSideBySide]:
        """Return the input column of each transformed column, and their maps."""
        after, blocks = [], []
        for part in self.parts:
            own, table = owners, rows
            for step in part.before:
                own = own[step.columns] if isinstance(step, _Selected) else follow.after(step, own, table)
                table = None if table is None else _after(step, table)
            after.append(own)
            blocks.append((part.maps, len(own)))
        return np.concatenate(after), MapsSideBySide(blocks)

    def _transformed(self, part: _Part, rows: Table) -> Table:
        return functools.reduce(lambda table, step: _after(step, table), part.before, rows)


def maps_side_by_side(steps: Sequence[Any]) -> tuple[int, BeforeMaps] | None:
    """Return the place of the step that holds maps, and what is before them. None without a linear model behind it."""
    for place, step in enumerate(steps[:-1]):
        if sklearn_name(step) in ("ColumnTransformer", "FeatureUnion"):
            parts = [_part(chain) for chain in _chains(step)]
            if any(is_map(part.maps[0]) for part in parts if part.maps) and is_projection(
                [MapsSideBySide(()), *steps[place + 1 :]]
            ):
                return place, BeforeMaps(step, parts)
    return None


def _chains(step: Model) -> list[list[Any]]:
    """Return the chains of steps that a step joins. Its outputs are theirs, one chain after the other."""
    step = unfrozen(step)
    name = sklearn_name(step)
    if step is None or _is(step, "passthrough"):
        return [[]]
    if name == "Pipeline":
        *before, last = flat_steps(step) or [None]
        return [[*before, *chain] for chain in _chains(last)]
    if name == "FeatureUnion":
        parts = [(name, part) for name, part in step.transformer_list if part is not None and not _is(part, "drop")]
        return [[*chain, *_weight(step, name)] for name, part in parts for chain in _chains(part)]
    if name == "ColumnTransformer" and hasattr(step, "transformers_"):
        indices = {name: list(map(int, columns)) for name, columns in step._transformer_to_input_indices.items()}
        parts = [(name, part) for name, part, _ in step.transformers_ if not _is(part, "drop") and indices[name]]
        return [[_Selected(indices[name]), *chain, *_weight(step, name)] for name, part in parts for chain in _chains(part)]
    return [[step]]


def _weight(step: Model, part: str) -> list[Weight]:
    """Return the factor of a part's outputs, if it has one."""
    weights = step.transformer_weights or {}
    return [Weight(float(weights[part]))] if part in weights else []


def _part(chain: list[Any]) -> _Part:
    """Split a chain of steps at the first of its maps, or weights, that only affine steps follow."""
    for place, step in enumerate(chain):
        if (is_map(step) or isinstance(step, Weight)) and all(map(is_affine, chain[place + 1 :])):
            return _Part(chain[:place], chain[place:])
    return _Part(chain, [])


def _is(part: Any, word: str) -> bool:
    return isinstance(part, str) and part == word


def _after(step: Any, table: Table) -> Table:
    if isinstance(step, _Selected):
        return table.select(step.columns)
    return as_table(step.transform(table.column(0) if takes_texts(step) else table.native), what="transformed rows")


def _numbers(table: Table) -> np.ndarray:
    rows = table.native
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, float)
