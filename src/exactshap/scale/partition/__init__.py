"""Explain partitions of tables by one picklable function, for any engine."""

from __future__ import annotations

from exactshap.scale.partition._carrier import Carried as Carried
from exactshap.scale.partition._columns import output_columns as output_columns
from exactshap.scale.partition._identity import object_digest as object_digest
from exactshap.scale.partition._partition import Partition as Partition
