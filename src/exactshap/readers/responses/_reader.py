"""What all readers of a response share: the facts of its score, its link, and the model's own call."""

from __future__ import annotations

import numpy as np

from exactshap.frames import Table
from exactshap.readers import Reader, rounding_of
from exactshap.readers.responses._links import Response, needs_rows

# Players up to which visiting all coalitions costs less than 100 waves (benchmarks/bench_probabilities.py): a third at 10 players
ALL_COALITIONS = 10
CHUNK_VALUES = 2**22  # scores of hybrids at a time: 32 MiB

# How a reader works is its own: these are not those of the score.
_OWN = frozenset({"block_rows", "threads_inside", "value_functions"})


class LinkedReader(Reader):
    """An inverse link of a score, bound to the score's background; readers say how it is solved."""

    value_functions = ("interventional", "baseline")

    def __init__(self, inner: Reader, response: Response) -> None:
        if inner.background is None:
            raise needs_rows(response.unit)
        for name in Reader.__annotations__.keys() - _OWN:
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))
        self.inner, self.unit, self.own_call = inner, response.unit, response.call
        self._link, self._slope, self._shift, self._rows = str(response.link), response.slope, response.shift, response.rows
        self.offset = None  # it would change the slope of the link
        self.rounding, self.floor = rounding_of(inner), 0.0

    def predict(self, X: Table) -> np.ndarray:
        """Return the model's own response."""
        assert self.own_call is not None
        return self.own_call.of_table(self.model, self._rows(X))
