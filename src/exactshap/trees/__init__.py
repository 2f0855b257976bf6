"""Ensembles of trees as flat arrays: what every tree reader produces and every tree solver consumes."""

from exactshap.trees._build import RawTree, build
from exactshap.trees._convert import convert, flatten
from exactshap.trees._flat import FlatTrees
from exactshap.trees._load import load, loads
from exactshap.trees._model import TreeModel, take_trees
from exactshap.trees._paths import Paths, cover_shares, inside, parents, paths
from exactshap.trees._routing import apply, decisions, margin, prepared

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
