"""R2 of a model, split exactly over the columns."""

from __future__ import annotations

from exactshap.decompose.r2._decompose import PartialR2 as PartialR2
