"""Read Parquet and CSV files of rows as streams of batches."""

from __future__ import annotations

from exactshap.frames.stored._places import StoredFile as StoredFile
from exactshap.frames.stored._places import find_files as find_files
from exactshap.frames.stored._places import place_of as place_of
from exactshap.frames.stored._source import CsvTypes as CsvTypes
from exactshap.frames.stored._source import SourceFile as SourceFile
from exactshap.frames.stored._source import first_rows as first_rows
from exactshap.frames.stored._source import inspect as inspect
from exactshap.frames.stored._source import not_utf8 as not_utf8
from exactshap.frames.stored._source import read_rows as read_rows
from exactshap.frames.stored._source import read_schema as read_schema
from exactshap.frames.stored._source import warn_of_losses as warn_of_losses
from exactshap.frames.stored._table import StoredTable as StoredTable
from exactshap.frames.stored._table import as_rows as as_rows
from exactshap.frames.stored._table import is_index as is_index
from exactshap.frames.stored._table import pieces_of as pieces_of
from exactshap.frames.stored._table import scratch_array as scratch_array
