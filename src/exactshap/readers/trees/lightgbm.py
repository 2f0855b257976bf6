"""LightGBM's boosters and estimators as raw scores: categorical sets, missing types, DART, random forests, best iteration."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.readers import Request
from exactshap.readers.trees._own_margin import own_margin
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert

__all__ = ["read"]

_OF_A_PREDICTION = ("pred", "iter", "round", "tree", "stop", "raw", "contrib", "leaf_index", "thread", "job")


def read(model: Any, request: Request) -> TreeReader:
    """Read f(x) = sum of trees (their mean in random-forest mode), in the space of the objective's link."""
    ensemble = convert(model)
    n_rounds = 1 if ensemble.boosted else ensemble.trees.n_trees // len(ensemble.output_names)
    documented, direct = functools.partial(_raw_score, n_rounds), functools.partial(_of_booster, n_rounds)
    own = own_margin(model, ensemble, "predict", documented, direct)
    # its estimators take as many threads for a prediction as they have n_jobs
    return TreeReader(model, request, ensemble, own, predicts_on_one_thread=getattr(model, "n_jobs", None) == 1)


def _raw_score(n_rounds: int, model: Any, rows: Any) -> np.ndarray:
    """Return the raw score; in random-forest mode LightGBM's raw score is the sum, and the prediction the mean."""
    return np.asarray(model.predict(rows, raw_score=True)) / n_rounds


def _of_booster(n_rounds: int, model: Any, rows: np.ndarray) -> np.ndarray | None:
    """Ask the booster on one thread; its estimator asks it, too, after looking through every parameter.

    Of these only what a user added can change a prediction: such as early stops of predictions, which are left to ``predict``.
    """
    named = _named(type(model).__init__)
    added = {name: value for name, value in getattr(model, "_other_params", {}).items() if name not in named}
    if any(word in name for name in added for word in _OF_A_PREDICTION):
        return None
    return np.asarray(getattr(model, "booster_", model).predict(rows, raw_score=True, num_threads=1, **added)) / n_rounds


@functools.lru_cache(maxsize=8)
def _named(make: Callable[..., None]) -> frozenset[str]:
    """Return the parameters that an estimator names: ``set_params`` adds these once more."""
    return frozenset(inspect.signature(make).parameters)
