"""Build frames of any installed library, recognise a table's library, and write Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from exactshap._runtime.optional import FRAME_LIBRARIES, INSTALL_FRAMES, first_installed, require
from exactshap._runtime.types import Foreign, TableLike
from exactshap.errors import MissingDependencyError, UnknownNameError, did_you_mean


def frame_kind(data: TableLike) -> str | None:
    """Return the library of a frame: pandas, polars or pyarrow; None for other tables.

    >>> frame_kind([[1.0]]) is None
    True
    """
    root = type(data).__module__.partition(".")[0]
    return root if root in FRAME_LIBRARIES else None


def frame_of(data: TableLike, columns: Mapping[str, np.ndarray], kind: str | None) -> Any:
    """Return columns as a frame of a kind, or of the data's.

    The index is that of the data.

    >>> import numpy as np
    >>> frame_of(None, {"value": np.zeros(1)}, "pandas").to_dict("records")
    [{'value': 0.0}]
    """
    if kind is not None and kind not in FRAME_LIBRARIES:
        raise UnknownNameError(f"Unknown kind of frame {kind!r}", do=did_you_mean(kind, FRAME_LIBRARIES))
    kind = kind or frame_kind(data) or first_installed(FRAME_LIBRARIES)
    if kind is None:
        raise MissingDependencyError("A frame needs pandas, polars or pyarrow", do=INSTALL_FRAMES)
    library = require(kind, "frames", purpose=f"A {kind} frame")
    if kind == "pandas":
        index = data.index if frame_kind(data) == "pandas" else None
        return library.DataFrame(dict(columns), index=index, columns=list(columns))
    return library.DataFrame(dict(columns)) if kind == "polars" else library.table(dict(columns))


def write_parquet(frame: TableLike, target: Foreign) -> None:
    if frame_kind(frame) == "polars":
        frame.write_parquet(target)
        return
    arrow = require("pyarrow", "frames", purpose="A Parquet file")
    table = arrow.Table.from_pandas(frame) if frame_kind(frame) == "pandas" else frame
    require("pyarrow.parquet", "frames", purpose="A Parquet file").write_table(table, target)
