"""Represent ensembles of trees as flat arrays, which tree readers produce and tree solvers consume."""

from exactshap.trees.ensemble import FlatTrees as FlatTrees
from exactshap.trees.ensemble import LeafFunction, RawTree, TreeModel, build
from exactshap.trees.ensemble import Paths as Paths
from exactshap.trees.ensemble import apply as apply
from exactshap.trees.ensemble import cover_shares as cover_shares
from exactshap.trees.ensemble import decisions as decisions
from exactshap.trees.ensemble import inside as inside
from exactshap.trees.ensemble import margin as margin
from exactshap.trees.ensemble import parents as parents
from exactshap.trees.ensemble import paths as paths
from exactshap.trees.ensemble import prepared as prepared
from exactshap.trees.ensemble import take_trees as take_trees
from exactshap.trees.formats import convert, load, loads
from exactshap.trees.formats import flatten as flatten

__all__ = ["LeafFunction", "RawTree", "TreeModel", "build", "convert", "load", "loads"]
