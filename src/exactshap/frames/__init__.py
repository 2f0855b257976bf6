"""Hold tables of any library as :class:`exactshap.frames.Table`.

The rest of the package knows neither pandas nor polars.
"""

from __future__ import annotations

from exactshap.frames._columns import check_columns as check_columns
from exactshap.frames._columns import underscored as underscored
from exactshap.frames._columns import warn_of_other_order as warn_of_other_order
from exactshap.frames._columns import with_column_of as with_column_of
from exactshap.frames._columns import with_dtypes_of as with_dtypes_of
from exactshap.frames._hybrids import above as above
from exactshap.frames._hybrids import hybrid_cells as hybrid_cells
from exactshap.frames._hybrids import hybrid_frame as hybrid_frame
from exactshap.frames._shape import Shape as Shape
from exactshap.frames._shape import Shaped as Shaped
from exactshap.frames._table import Table
from exactshap.frames._table import is_missing as is_missing
from exactshap.frames._table import label_text as label_text
from exactshap.frames._table import with_unique_index as with_unique_index
from exactshap.frames._validation import as_table as as_table

__all__ = ["Table"]
