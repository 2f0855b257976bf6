"""Read Perpetual's boosters: the score, or the probability of log-odds."""

from __future__ import annotations

import numpy as np

from exactshap._runtime.types import Model
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.trees._response import read_trees
from exactshap.trees import convert


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = base score + sum of trees; of two classes, the difference of their log probabilities."""
    ensemble = convert(model)
    call = OwnCall("predict_log_proba", finish=_log_odds) if ensemble.unit == "log-odds" else OwnCall("predict")
    return read_trees(model, request, ensemble, call)


def _log_odds(values: np.ndarray) -> np.ndarray:
    """Return the log-odds, which Perpetual answers itself; of a table of log probabilities, their difference."""
    return values if values.ndim == 1 else values[:, 1] - values[:, 0]
