"""MMD and HSIC: statistics of pairs of rows, split exactly over the columns."""

from __future__ import annotations

from exactshap.decompose.pairwise._direct import whole_kernel as whole_kernel
from exactshap.decompose.pairwise._factors import Factors as Factors
from exactshap.decompose.pairwise._factors import read_side as read_side
from exactshap.decompose.pairwise._hsic import two_dimensional as two_dimensional
from exactshap.decompose.pairwise._inference import check_inference as check_inference
from exactshap.decompose.pairwise._inference import check_reach as check_reach
from exactshap.decompose.pairwise._inference import check_room as check_room
from exactshap.decompose.pairwise._inference import tested as tested
