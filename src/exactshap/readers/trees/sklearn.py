"""Read decision trees, forests, gradient boosting and isolation forests of scikit-learn.

Classifier forests are explained as probabilities (binary: of the positive class only, unless ``output=`` says otherwise),
boosted models in the space of their link (log-odds, the log of the target, the target), isolation forests as the average path
length h, which is the part of their score that is a sum of trees: score_samples = -2^(-h / c(max_samples)).
"""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError
from exactshap.frames import Table
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.trees._response import by_unit, read_trees
from exactshap.trees import TreeModel, convert
from exactshap.trees.formats import average_path_length


def read(model: Model, request: Request) -> Reader:
    """Read f(x) as a sum of trees: leaf means or class shares, averaged or added up; or what a link makes of it."""
    ensemble = convert(model)
    # histogram boosting takes any number; the others compare in single precision
    refuse = functools.partial(_refuse_cells, model) if ensemble.trees.single_precision else None
    return read_trees(model, request, ensemble, _own_call(model, ensemble), functools.partial(_response, model), refuse)


def _response(model: Model, ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    """Return the link, the documented call of the response, and its slope."""
    call = OwnCall("predict_proba" if hasattr(model, "predict_proba") else "predict")
    if ensemble.objective == "votes":  # of AdaBoost
        return "logistic" if ensemble.single_output else "softmax", call, 1.0 / (len(model.classes_) - 1)
    return by_unit(ensemble, call)


def _own_call(model: Model, ensemble: TreeModel) -> OwnCall:
    if hasattr(model, "score_samples"):
        return OwnCall("score_samples", finish=functools.partial(_path_length, model))
    if hasattr(model, "decision_function"):
        return OwnCall("decision_function")
    if hasattr(model, "predict_proba"):
        return OwnCall("predict_proba", finish=np.ravel) if ensemble.single_output else OwnCall("predict_proba")
    return OwnCall("predict", finish=np.log) if ensemble.unit == "log of the target" else OwnCall("predict")


def _path_length(model: Model, scores: np.ndarray) -> np.ndarray:
    # The score is rounded to eps; so is its logarithm, times c: our epsilon covers it, c is at most about 2 ln(n).
    return -np.log2(-scores) * average_path_length(np.array(model.max_samples_))


def _refuse_cells(model: Model, X: Table) -> None:
    """Refuse the first infinite or missing cell, in single precision. So the trees compare it."""
    with np.errstate(over="ignore"):
        numbers = X.numeric().astype(np.float32)
    what = "Input X contains infinity or a value too large for dtype('float32')"
    do = "Clip or impute it: float32 ends at 3.4e38"
    wrong = np.argwhere(np.isinf(numbers))
    if not len(wrong):
        what, do, wrong = "Input X contains NaN", "Impute it, or explain the Pipeline that does", np.argwhere(np.isnan(numbers))
    if len(wrong):
        i, j = (int(position) for position in wrong[0])
        text = f"{what} (first at row {i}, {X.label(j)})"
        raise InputError(text, f"{type(model).__name__} does not accept it", do, row=i)
