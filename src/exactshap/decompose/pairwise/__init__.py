"""MMD and HSIC: statistics of pairs of rows, split exactly over the columns."""

from __future__ import annotations

from exactshap.decompose.pairwise._columns import pooled_names as pooled_names
from exactshap.decompose.pairwise._factors import Factors as Factors
from exactshap.decompose.pairwise._factors import read_factors as read_factors
from exactshap.decompose.pairwise._inference import adjust as adjust
from exactshap.decompose.pairwise._inference import check_inference as check_inference
from exactshap.decompose.pairwise._inference import check_reach as check_reach
from exactshap.decompose.pairwise._inference import check_room as check_room
from exactshap.decompose.pairwise._inference import permutation_p_values as permutation_p_values
