"""Represent ensembles of trees as flat arrays, which tree readers produce and tree solvers consume."""

# ruff: noqa: F401 - names for the other rooms
from exactshap.trees.ensemble import (
    FlatTrees,
    LeafFunction,
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
from exactshap.trees.formats import convert, load, loads

__all__ = ["LeafFunction", "RawTree", "TreeModel", "build", "convert", "load", "loads"]
