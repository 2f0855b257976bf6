"""Read rule models of imodels: FIGS, RuleFit, rule lists, and trees with hierarchical shrinkage."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.frames import Table
from exactshap.readers import OwnCall, Reader, Request, finite_numbers
from exactshap.readers.trees._response import read_trees
from exactshap.trees import convert


def read(model: Model, request: Request) -> Reader:
    """Read f(x) as a sum of trees: targets, probabilities, or the log-odds that a softmax takes."""
    ensemble = convert(model)
    if not hasattr(model, "classes_"):
        call = OwnCall("predict")
    else:
        call = OwnCall("predict_proba") if ensemble.unit == "probability" else OwnCall("predict_proba", finish=_log_ratios)
    return read_trees(model, request, ensemble, call, refuse=functools.partial(_refuse_cells, ensemble.name))


def _refuse_cells(owner: str, X: Table) -> None:
    finite_numbers(X, "X", owner)


def _log_ratios(shares: np.ndarray) -> np.ndarray:
    """Return the log-odds of each class against the first; of two classes, one column."""
    scores = np.log(shares[:, 1:]) - np.log(shares[:, :1])
    return scores[:, 0] if scores.shape[1] == 1 else scores
