"""Ensembles as flat arrays: building, covers, paths, routing of rows, columns with names."""

from __future__ import annotations

from exactshap.trees.ensemble._build import MAX_DEPTH, MAX_NODES, RawTree, build, complete_forest, largest_sum
from exactshap.trees.ensemble._encode import encode, readable
from exactshap.trees.ensemble._flat import MISSING_NEVER, FlatTrees, NodeArrays
from exactshap.trees.ensemble._forest import RawForest
from exactshap.trees.ensemble._hashed import HashedColumns, TargetStatistic
from exactshap.trees.ensemble._kernels import fill_decisions, sum_leaf_values
from exactshap.trees.ensemble._model import TreeModel, take_trees
from exactshap.trees.ensemble._paths import Paths, cover_shares, inside, parents, paths
from exactshap.trees.ensemble._routing import apply, decisions, margin, prepared

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "MISSING_NEVER",
    "FlatTrees",
    "HashedColumns",
    "NodeArrays",
    "Paths",
    "RawForest",
    "RawTree",
    "TargetStatistic",
    "TreeModel",
    "apply",
    "build",
    "complete_forest",
    "cover_shares",
    "decisions",
    "encode",
    "fill_decisions",
    "inside",
    "largest_sum",
    "margin",
    "parents",
    "paths",
    "prepared",
    "readable",
    "sum_leaf_values",
    "take_trees",
]
