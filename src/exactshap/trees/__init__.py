"""Ensembles of trees as flat arrays: what every tree reader produces and every tree solver consumes."""

from exactshap.trees.ensemble import (
    FlatTrees,
    Paths,
    RawTree,
    TreeModel,
    apply,
    build,
    cover_shares,
    decisions,
    inside,
    margin,
    parents,
    paths,
    prepared,
    take_trees,
)
from exactshap.trees.formats import convert, flatten, load, loads

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
