"""Hold decompositions of one statistic over the columns."""

from __future__ import annotations

from exactshap.results.data import frame_kind as frame_kind
from exactshap.results.decomposition._decomposition import Decomposition as Decomposition
from exactshap.results.decomposition._decomposition import PairwiseDecomposition as PairwiseDecomposition
from exactshap.results.decomposition._decomposition import ShareBars as ShareBars
from exactshap.results.decomposition._decomposition import check_residual as check_residual
from exactshap.results.decomposition._decomposition import pair_tolerance as pair_tolerance
from exactshap.results.decomposition._decomposition import strongest_marginals as strongest_marginals
