"""Decompositions of one statistic over the columns."""

from __future__ import annotations

from exactshap.results.decomposition._decomposition import Decomposition, frame_backend
from exactshap.results.decomposition._pairwise import (
    PairwiseDecomposition,
    check_residual,
    facts_of,
    pair_tolerance,
    rows_of,
    strongest_marginals,
)

__all__ = [
    "Decomposition",
    "PairwiseDecomposition",
    "check_residual",
    "facts_of",
    "frame_backend",
    "pair_tolerance",
    "rows_of",
    "strongest_marginals",
]
