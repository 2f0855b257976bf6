"""Compare two explanations, or the groups of one, and their data."""

from __future__ import annotations

from exactshap.results.comparison._cohorts import Cohorts
from exactshap.results.comparison._cohorts import by as by
from exactshap.results.comparison._comparison import Comparison
from exactshap.results.comparison._comparison import compare as compare

__all__ = ["Cohorts", "Comparison"]
