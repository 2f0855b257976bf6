"""Two explanations, or the groups of one, held against each other: mean values, intervals, and what moved in the data."""

from __future__ import annotations

from exactshap.results.comparison._cohorts import Cohorts, by
from exactshap.results.comparison._comparison import Comparison, compare

__all__ = ["Cohorts", "Comparison", "by", "compare"]
