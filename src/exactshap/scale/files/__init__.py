"""Files in, files out: batches of rows, each explained and written by itself, and runs that are resumed."""

from __future__ import annotations

from exactshap.scale.files._dataset import explain_dataset
from exactshap.scale.files._result import DatasetResult

__all__ = ["DatasetResult", "explain_dataset"]
