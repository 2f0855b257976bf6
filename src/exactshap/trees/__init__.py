"""Ensembles of trees as flat arrays: what every tree reader produces and every tree solver consumes."""

from exactshap.trees._flat import FlatTrees

__all__ = ["FlatTrees"]
