"""Explain files into files, in batches of rows, with runs that can be resumed."""

from __future__ import annotations

from exactshap.scale.files._dataset import DatasetResult as DatasetResult
from exactshap.scale.files._dataset import explain_dataset as explain_dataset
