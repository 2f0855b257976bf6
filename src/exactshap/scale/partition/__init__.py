"""One picklable function from a table to a table, for whatever engine cuts tables into partitions."""

from __future__ import annotations

from exactshap.scale.partition._carrier import Carried
from exactshap.scale.partition._columns import output_columns
from exactshap.scale.partition._identity import object_digest
from exactshap.scale.partition._partition import Partition

__all__ = ["Carried", "Partition", "object_digest", "output_columns"]
