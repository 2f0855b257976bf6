"""Explain tables beyond memory or one machine, in parts that merge.

No engine is imported here: Dask, Spark, Ray and process pools map one picklable function (:class:`Partition`), and
:func:`explain_dataset` takes any ordered ``map``.
"""

from __future__ import annotations

from exactshap.decompose.r2 import PartialR2
from exactshap.frames.stored import StoredTable
from exactshap.scale._columns import output_columns
from exactshap.scale._dataset import explain_dataset
from exactshap.scale._mapped import MappedFunction
from exactshap.scale._partition import Partition
from exactshap.scale._ridge import PartialRidge
from exactshap.scale._statistics import GlobalImportance, GlobalQuantiles

__all__ = [
    "GlobalImportance",
    "GlobalQuantiles",
    "MappedFunction",
    "PartialR2",
    "PartialRidge",
    "Partition",
    "StoredTable",
    "explain_dataset",
    "output_columns",
]
