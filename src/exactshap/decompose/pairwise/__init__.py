"""Split MMD and HSIC, statistics of pairs of rows, exactly over the columns."""

from __future__ import annotations

from exactshap.decompose.pairwise._estimate import check_inference as check_inference
from exactshap.decompose.pairwise._estimate import check_reach as check_reach
from exactshap.decompose.pairwise._estimate import check_room as check_room
from exactshap.decompose.pairwise._estimate import tested as tested
from exactshap.decompose.pairwise._factors import Factors as Factors
from exactshap.decompose.pairwise._factors import whole_kernel as whole_kernel
from exactshap.decompose.pairwise._hsic import two_dimensional as two_dimensional
from exactshap.decompose.pairwise._reading import read_side as read_side
