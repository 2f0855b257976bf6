"""Read linear maps of some columns, in a ColumnTransformer or FeatureUnion, before a linear model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.frames import Table, as_table
from exactshap.readers import sklearn_name
from exactshap.readers.additive import MapsSideBySide, is_affine, is_map, is_projection
from exactshap.readers.wrappers._columns import ColumnOwners, takes_texts


@dataclass(frozen=True, eq=False)
class _Part:
    """Hold columns of a step, their column-wise steps, and the linear maps that follow."""

    columns: list[int] | None  # all where None
    before: list[Any]
    maps: list[Any]


@dataclass(frozen=True, eq=False)
class BeforeMaps:
    """Apply a ColumnTransformer or FeatureUnion up to the linear maps in it; ``transform`` returns their input."""

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
            if part.columns is not None:
                own, table = owners[part.columns], None if rows is None else rows.select(part.columns)
            for step in part.before:
                own, table = follow.after(step, own, table), None if table is None else _after(step, table)
            after.append(own)
            blocks.append((part.maps, len(own)))
        return np.concatenate(after), MapsSideBySide(blocks)

    def _transformed(self, part: _Part, rows: Table) -> Table:
        table = rows if part.columns is None else rows.select(part.columns)
        for step in part.before:
            table = _after(step, table)
        return table


def maps_side_by_side(steps: Sequence[Any]) -> tuple[int, BeforeMaps] | None:
    """Return the place of the step that holds linear maps in front of a linear model, and what is before them; else None."""
    for place, step in enumerate(steps[:-1]):
        parts = _parts(step)
        if any(part.maps for part in parts) and is_projection([MapsSideBySide(()), *steps[place + 1 :]]):
            return place, BeforeMaps(step, parts)
    return None


def _parts(step: Model) -> list[_Part]:
    name = sklearn_name(step)
    if name not in ("ColumnTransformer", "FeatureUnion") or step.transformer_weights:
        return []
    if name == "FeatureUnion":
        return [_part(part, None) for _, part in step.transformer_list if part is not None and not _is(part, "drop")]
    if not hasattr(step, "transformers_"):  # not fitted
        return []
    indices = {name: list(map(int, columns)) for name, columns in step._transformer_to_input_indices.items()}
    return [_part(part, indices[name]) for name, part, _ in step.transformers_ if not _is(part, "drop") and indices[name]]


def _part(part: Any, columns: list[int] | None) -> _Part:
    """Split a list of steps at the first of its linear maps."""
    steps = [step for _, step in part.steps] if sklearn_name(part) == "Pipeline" else [part]
    steps = [step for step in steps if step is not None and not _is(step, "passthrough")]
    for place, step in enumerate(steps):
        if is_map(step) and all(map(is_affine, steps[place:])):
            return _Part(columns, steps[:place], steps[place:])
    return _Part(columns, steps, [])


def _is(part: Any, word: str) -> bool:
    return isinstance(part, str) and part == word


def _after(step: Any, table: Table) -> Table:
    return as_table(step.transform(table.column(0) if takes_texts(step) else table.native), what="transformed rows")


def _numbers(table: Table) -> np.ndarray:
    rows = table.native
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, float)
