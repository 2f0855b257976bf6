"""Files of rows: Parquet and CSV, read as streams of batches."""

from __future__ import annotations

from exactshap.frames.stored._places import StoredFile, find_files
from exactshap.frames.stored._source import SourceFile, inspect, parquet_file, read_rows, read_schema
from exactshap.frames.stored._table import StoredTable, as_rows, is_index, pieces_of, scratch_array

__all__ = [
    "SourceFile",
    "StoredFile",
    "StoredTable",
    "as_rows",
    "find_files",
    "inspect",
    "is_index",
    "parquet_file",
    "pieces_of",
    "read_rows",
    "read_schema",
    "scratch_array",
]
