"""Beyond memory and beyond one machine: partitions of tables, folders of files, statistics that merge.

No engine is imported here: Dask, Spark, Ray and process pools are given one picklable function (:class:`Partition`), and
:func:`explain_dataset` takes whatever ordered ``map`` they offer.
"""

from __future__ import annotations

from exactshap.decompose.r2 import PartialR2
from exactshap.frames.stored import StoredTable
from exactshap.scale.files import DatasetResult, explain_dataset
from exactshap.scale.partition import Partition
from exactshap.scale.statistics import GlobalImportance

__all__ = ["DatasetResult", "GlobalImportance", "PartialR2", "Partition", "StoredTable", "explain_dataset"]
