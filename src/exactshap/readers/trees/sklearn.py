"""Decision trees, forests, gradient boosting and isolation forests of scikit-learn.

Classifier forests are explained as probabilities (binary: of the positive class only, unless ``output=`` says otherwise),
boosted classifiers as log-odds, isolation forests as the average path length h, which is the part of their score that is a sum
of trees: score_samples = -2^(-h / c(max_samples)).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.errors import InputError, message
from exactshap.frames import Table
from exactshap.readers import Request
from exactshap.readers.trees._boosting_stages import boosted_margin
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert
from exactshap.trees.formats import average_path_length

__all__ = ["read"]

# rows of a block of several trees: each tree keeps other threads waiting for the interpreter once in a call, however many rows it is asked about
ROWS = 16_384


def read(model: Any, request: Request) -> TreeReader:
    """Read f(x) as a sum of trees: leaf means or class shares, averaged or added up."""
    ensemble = convert(model)
    block_rows = ROWS if hasattr(model, "estimators_") else None
    if not ensemble.boosted:
        margin = functools.partial(_own_margin, model, functools.partial(_averaged, model))
        return TreeReader(model, request, ensemble, margin, block_rows=block_rows)
    own = boosted_margin(model, ensemble)
    margin = functools.partial(_own_margin, model, own)
    return TreeReader(model, request, ensemble, margin, predicts_on_one_thread=own.is_direct, block_rows=block_rows)


def _own_margin(model: Any, added_up: Callable[[Table], Any], X: Table) -> np.ndarray:
    """Return what the model adds up; cells that its own predict refuses are refused by row and column."""
    with np.errstate(over="ignore"):
        try:
            return added_up(X)
        except ValueError:
            numbers = X.numeric().astype(np.float32)  # the trees compare in single precision
    what = "Input X contains infinity or a value too large for dtype('float32')"
    do = "Clip or impute it: float32 ends at 3.4e38"
    wrong = np.argwhere(np.isinf(numbers))
    if not len(wrong):
        what, do, wrong = "Input X contains NaN", "Impute it, or explain the Pipeline that does", np.argwhere(np.isnan(numbers))
    if not len(wrong):
        return added_up(X)
    i, j = (int(position) for position in wrong[0])
    raise InputError(
        message(f"{what} (first at row {i}, {X.label(j)})", f"{type(model).__name__} does not accept it", do), row=i
    )


def _averaged(model: Any, X: Table) -> np.ndarray:
    if hasattr(model, "score_samples"):
        # The score is rounded to eps; so is its logarithm, times c: our epsilon covers it, c is at most about 2 ln(n).
        return -np.log2(-model.score_samples(X.native)) * average_path_length(np.array(model.max_samples_))
    return model.predict_proba(X.native) if hasattr(model, "predict_proba") else model.predict(X.native)
