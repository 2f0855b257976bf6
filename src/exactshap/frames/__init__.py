"""Input validation: whatever table comes in becomes a :class:`exactshap.frames.Table`; nothing else in the package knows pandas or polars."""

from __future__ import annotations

from exactshap.frames._columns import check_columns, with_dtypes_of
from exactshap.frames._hybrids import above, hybrid_cells, hybrid_columns, mixed_cells
from exactshap.frames._shape import Shape as Shape
from exactshap.frames._shape import Shaped as Shaped
from exactshap.frames._table import Table
from exactshap.frames._table import with_unique_index as with_unique_index
from exactshap.frames._validation import as_table

__all__ = [
    "Table",
    "above",
    "as_table",
    "check_columns",
    "hybrid_cells",
    "hybrid_columns",
    "mixed_cells",
    "with_dtypes_of",
]
