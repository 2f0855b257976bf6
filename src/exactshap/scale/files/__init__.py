"""Files in, files out: batches of rows, each explained and written by itself, and runs that are resumed."""

from __future__ import annotations

from exactshap.scale.files._dataset import DatasetResult as DatasetResult
from exactshap.scale.files._dataset import explain_dataset as explain_dataset
