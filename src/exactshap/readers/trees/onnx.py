"""Read ensembles of trees in ONNX files as scores, and check them against onnxruntime."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._graphs import TreeCore
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.trees._response import read_trees
from exactshap.trees import TreeModel, convert

_LINKS = {"exponential": "exponential", "LOGISTIC": "logistic", "SOFTMAX": "softmax"}


def read(model: TreeCore, request: Request) -> Reader:
    """Read f(x) = base values + sum of trees. The file's own transform of the scores is left out."""
    ensemble = convert(model)
    return read_trees(model, request, ensemble, _call("scores", ensemble), _response)


def _response(ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    link = _LINKS.get(ensemble.objective)
    return None if link is None else (link, _call("responses", ensemble), 1.0)


def _call(method: str, ensemble: TreeModel) -> OwnCall:
    return OwnCall(method, finish=functools.partial(_outputs, len(ensemble.output_names)))


def _outputs(n_outputs: int, answers: np.ndarray) -> np.ndarray:
    """Return the answers of the outputs; of two classes with one score the file answers both."""
    return answers[:, -1] if n_outputs == 1 else answers
