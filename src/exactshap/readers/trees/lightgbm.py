"""LightGBM's boosters and estimators as raw scores: categorical sets, missing types, DART, random forests, best iteration."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.readers import OwnCall, Request
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert

__all__ = ["read"]


def read(model: Model, request: Request) -> TreeReader:
    """Read f(x) = sum of trees, or their mean in random-forest mode. It is in the space of the objective's link."""
    ensemble = convert(model)
    raw = {"raw_score": True}
    if ensemble.boosted:
        return TreeReader(model, request, ensemble, OwnCall("predict", raw))
    n_rounds = ensemble.trees.n_trees // len(ensemble.output_names)
    return TreeReader(model, request, ensemble, OwnCall("predict", raw, functools.partial(_mean_of_rounds, n_rounds)))


def _mean_of_rounds(n_rounds: int, scores: np.ndarray) -> np.ndarray:
    return scores / n_rounds  # LightGBM's raw score of a forest is the sum
