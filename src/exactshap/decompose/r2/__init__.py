"""R2 of a model, split exactly over the columns."""

from __future__ import annotations

from exactshap.decompose.r2._decompose import PartialR2 as PartialR2
from exactshap.decompose.r2._input import R2Decomposition as R2Decomposition
