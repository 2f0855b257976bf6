"""Ensembles of trees as flat arrays: what every tree reader produces and every tree solver consumes."""

from exactshap.trees.ensemble._build import RawTree, build
from exactshap.trees.formats._convert import convert, flatten
from exactshap.trees.ensemble._flat import FlatTrees
from exactshap.trees.formats._load import load, loads
from exactshap.trees.ensemble._model import TreeModel, take_trees
from exactshap.trees.ensemble._paths import Paths, cover_shares, inside, parents, paths
from exactshap.trees.ensemble._routing import apply, decisions, margin, prepared

__all__ = [
    "FlatTrees",
    "Paths",
    "RawTree",
    "TreeModel",
    "apply",
    "build",
    "convert",
    "cover_shares",
    "decisions",
    "flatten",
    "inside",
    "load",
    "loads",
    "margin",
    "parents",
    "paths",
    "prepared",
    "take_trees",
]
