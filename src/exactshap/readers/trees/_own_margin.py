"""A booster's own margin, of few rows without what its documented call does first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from exactshap.readers import OwnPrediction
from exactshap.trees import TreeModel
from exactshap.trees.ensemble import readable

__all__ = ["own_margin"]


def own_margin(
    model: Any,
    ensemble: TreeModel,
    name: str,
    documented: Callable[[Any, Any], Any],
    direct: Callable[[Any, np.ndarray], np.ndarray | None],
    *,
    kind: Hashable = None,
) -> OwnPrediction:
    """Return the prediction of a booster whose converter made ``ensemble`` of it; the others are those of ``OwnPrediction``."""
    return OwnPrediction(
        model,
        name,
        documented,
        direct,
        trial=functools.partial(_trial, ensemble.n_features),
        of_frames=not any(ensemble.categories),
        readable=functools.partial(readable, ensemble),
        kind=kind,
    )


def _trial(n: int) -> np.ndarray:
    return np.stack([np.linspace(-1.0, 1.0, n), np.zeros(n), np.full(n, np.nan)])
