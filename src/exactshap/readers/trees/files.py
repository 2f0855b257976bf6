"""Read trees from files: what :func:`exactshap.trees.load` returns, and ensembles in ONNX files."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from exactshap._graphs import TreeCore
from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.readers import Offset, OwnCall, Reader, Request
from exactshap.readers.trees._response import by_unit, read_trees
from exactshap.trees import TreeModel, convert


def read_tree_model(model: Model, request: Request) -> Reader:
    """Read f(x) = constant + sum of trees."""
    # Our own prediction adds in float64
    ensemble = replace(model, epsilon=float(np.finfo(np.float64).eps))
    # XGBoost leaves base_score out, as it does itself
    replaced = model.trees.constant if model.library == "xgboost" else 0.0
    return read_trees(model, request, ensemble, OwnCall("predict"), _no_response, offset=Offset(replaces=replaced))


def _no_response(ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    """Refuse: there is no library that could say what it predicts in another unit."""
    what = f"{ensemble.name} was read from a file: its response has no prediction to be held against"
    do = f"Load it with {ensemble.library} and explain that model, or leave output= out for its {ensemble.unit}"
    raise UnsupportedStructureError(what, f"Its predict gives the {ensemble.unit}", do)


def read_onnx(model: TreeCore, request: Request) -> Reader:
    """Read f(x) = base values + sum of trees. The file's own transform of the scores is left out."""
    ensemble = convert(model)
    finish = functools.partial(_outputs, len(ensemble.output_names))
    response = functools.partial(by_unit, call=OwnCall("responses", finish=finish))
    return read_trees(model, request, ensemble, OwnCall("scores", finish=finish), response)


def _outputs(n_outputs: int, answers: np.ndarray) -> np.ndarray:
    """Return the answers of the outputs; of two classes with one score the file answers both."""
    return answers[:, -1] if n_outputs == 1 else answers
