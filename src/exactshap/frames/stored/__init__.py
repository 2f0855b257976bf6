"""Files of rows: Parquet and CSV, read as streams of batches."""

from __future__ import annotations

from exactshap.frames.stored._source import SourceFile, find_files, inspect, parquet_file, read_rows, read_schema
from exactshap.frames.stored._table import StoredTable, as_rows, pieces_of, scratch_array

__all__ = [
    "SourceFile",
    "StoredTable",
    "as_rows",
    "find_files",
    "inspect",
    "parquet_file",
    "pieces_of",
    "read_rows",
    "read_schema",
    "scratch_array",
]
