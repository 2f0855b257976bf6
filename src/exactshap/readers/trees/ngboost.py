"""Read each parameter of NGBoost's predicted distribution, before exponentials, as a sum of trees."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.trees._response import of_log_odds, read_trees
from exactshap.trees import convert


def read(model: Model, request: Request) -> Reader:
    """Read the parameters; those of a Normal are its mean and the logarithm of its standard deviation."""
    ensemble = convert(model)
    response = functools.partial(of_log_odds, call=ArrayCall("predict_proba"))
    return read_trees(model, request, ensemble, ArrayCall("pred_param", finish=_squeezed), response)


class ArrayCall(OwnCall):
    """Call a method that takes arrays only."""

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        return super().__call__(model, np.asarray(rows, float))


def _squeezed(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.shape[1] == 1 else values
