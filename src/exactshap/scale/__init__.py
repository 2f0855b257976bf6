"""Beyond memory and beyond one machine: partitions of tables, folders of files, statistics that merge.

No engine is imported here: Dask, Spark, Ray and process pools are given one picklable function (:class:`Partition`), and
:func:`explain_dataset` takes whatever ordered ``map`` they offer.
"""

from __future__ import annotations

from exactshap.decompose.r2 import PartialR2
from exactshap.scale._columns import output_columns
from exactshap.scale._dataset import explain_dataset
from exactshap.scale._importance import GlobalImportance
from exactshap.scale._partition import Partition
from exactshap.scale._result import DatasetResult

__all__ = ["DatasetResult", "GlobalImportance", "PartialR2", "Partition", "explain_dataset", "output_columns"]
