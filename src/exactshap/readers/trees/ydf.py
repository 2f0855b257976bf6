"""Read YDF's forests and gradient boosted trees, and check them by the model's own call on columns."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.frames import as_table
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.trees._response import LINKS, by_unit, read_trees
from exactshap.trees import TreeModel, convert


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = initial prediction + sum of trees, or the mean of the trees of a forest."""
    ensemble = convert(model)
    served = Served(model.serialize(), ensemble.feature_names or ())
    call = "scores" if ensemble.unit in LINKS else "predict"
    response = functools.partial(by_unit, call=OwnCall("predict"))
    return read_trees(served, request, ensemble, OwnCall(call, finish=_all_classes(ensemble)), response)


def _all_classes(ensemble: TreeModel) -> Any:
    """Return a function from YDF's one share to those of both classes."""
    return _with_first if ensemble.unit == "probability" and len(ensemble.output_names) == 2 else np.asarray


def _with_first(second: np.ndarray) -> np.ndarray:
    return np.stack([1.0 - second, second], axis=1)


class Served:
    """Hold a YDF model that takes tables, and pickles as its bytes."""

    def __init__(self, content: bytes, names: tuple[str, ...]) -> None:
        import ydf

        self._content, self._names = content, names
        self._model = self._scores = ydf.deserialize_model(content)
        if hasattr(self._model, "set_output_logits") and self._model.task().name == "CLASSIFICATION":
            self._scores = ydf.deserialize_model(content)
            self._scores.set_output_logits(True)

    def __reduce__(self) -> tuple[Any, ...]:
        return Served, (self._content, self._names)

    def _columns(self, rows: TableLike) -> dict[str, np.ndarray]:
        table = as_table(rows, allow_empty=True)
        return {name: table.column(j) for j, name in enumerate(self._names)}

    def predict(self, rows: TableLike) -> np.ndarray:
        """Return what the model predicts."""
        return np.asarray(self._model.predict(self._columns(rows)), float)

    def scores(self, rows: TableLike) -> np.ndarray:
        """Return the scores before the activation. Of regressions only rates have one, which YDF does not leave out."""
        scores = np.asarray(self._scores.predict(self._columns(rows)), float)
        return np.log(scores) if self._model.task().name == "REGRESSION" else scores
