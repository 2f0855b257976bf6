"""LightGBM's boosters and estimators as raw scores: categorical sets, missing types, DART, random forests, best iteration."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers import Request
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import TreeModel, convert
from exactshap.trees.ensemble import readable

__all__ = ["read"]


def read(model: Any, request: Request) -> TreeReader:
    """Read f(x) = sum of trees (their mean in random-forest mode), in the space of the objective's link."""
    ensemble = convert(model)
    return TreeReader(model, request, ensemble, functools.partial(_margin, model, ensemble))


def _margin(model: Any, ensemble: TreeModel, X: Table) -> np.ndarray:
    scores = np.asarray(model.predict(readable(ensemble, X).native, raw_score=True))
    if ensemble.boosted:
        return scores
    return scores / (ensemble.trees.n_trees // len(ensemble.output_names))  # LightGBM's raw score of a forest is the sum
