"""One picklable function from a table to a table, for whatever engine cuts tables into partitions."""

from __future__ import annotations

from exactshap.scale.partition._partition import Partition

__all__ = ["Partition"]
