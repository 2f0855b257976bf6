"""Read treelite's models as margins, and check them against GTIL, its own reference predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputTypeError
from exactshap.readers import OwnCall, Request
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert


def read(model: Model, request: Request) -> TreeReader:
    """Read f(x) = base scores + sum of trees, before treelite's postprocessor."""
    return TreeReader(Served(model), request, convert(model), GtilCall("predict"))


class Served:
    """Hold a treelite model that pickles, unlike its own class."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.model.serialize_bytes(),)


def _restored(serialised: bytes) -> Served:
    import treelite

    return Served(treelite.Model.deserialize_bytes(serialised))


@dataclass(frozen=True, eq=False)
class GtilCall(OwnCall):
    """Call ``treelite.gtil.predict(model, rows, pred_margin=True)``; its targets and classes become one axis."""

    def __call__(self, model: Served, rows: TableLike) -> np.ndarray:
        import treelite

        served = model.model
        if type(rows).__module__.startswith("scipy.sparse"):
            do = "Pass X.toarray(), with NaN where the matrix leaves cells out if that is what they are"
            raise InputTypeError("Models of treelite are read with dense rows", "Got a sparse matrix", do)
        classes = np.asarray(served.get_header_accessor().get_field("num_class"))
        kind = np.float32 if served.input_type == "float32" else np.float64
        margins = treelite.gtil.predict(served, np.ascontiguousarray(rows, kind), nthread=1, pred_margin=True)
        margins = np.concatenate([margins[:, t, :n] for t, n in enumerate(classes)], axis=1).astype(float)
        return np.array(self.finish(margins[:, 0] if margins.shape[1] == 1 else margins), float)
