"""Explain partitions of tables by one picklable function, for any engine."""

from __future__ import annotations

from exactshap.scale.partition._carrier import Carried as Carried
from exactshap.scale.partition._columns import output_columns as output_columns
from exactshap.scale.partition._identity import object_digest as object_digest
from exactshap.scale.partition._partition import Partition as Partition
from exactshap.scale.partition._partition import checked_batch_rows as checked_batch_rows
from exactshap.scale.partition._partition import wanted_files as wanted_files
