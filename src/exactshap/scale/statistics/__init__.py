"""Statistics of parts of a table that add up to those of the whole."""

from __future__ import annotations

from exactshap.scale.statistics._importance import GlobalImportance
from exactshap.scale.statistics._quantiles import GlobalQuantiles
from exactshap.scale.statistics._ridge import PartialRidge

__all__ = ["GlobalImportance", "GlobalQuantiles", "PartialRidge"]
