"""Files of rows: Parquet and CSV, read as streams of batches."""

from __future__ import annotations

from exactshap.storage._source import SourceFile, find_files, inspect, read_rows, read_schema

__all__ = ["SourceFile", "find_files", "inspect", "read_rows", "read_schema"]
