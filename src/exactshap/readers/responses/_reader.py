"""Share what all readers of a response need: traits of the score, link, and the model's own call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactshap.frames import Table
from exactshap.readers import Reader, SecondReading
from exactshap.readers.responses._links import Response, needs_rows

# Players up to which visiting all coalitions costs less than 100 waves (benchmarks/bench_probabilities.py): a third at 10 players
ALL_COALITIONS = 10
CHUNK_VALUES = 2**22  # scores of hybrids at a time: 32 MiB


class LinkedReader(Reader):
    """Read an inverse link of a score, bound to its background; subclasses solve it."""

    def __init__(self, inner: Reader, response: Response, *, block_rows: int = 256) -> None:
        if inner.traits.background is None:
            raise needs_rows(response.unit)
        traits, self.inner = inner.traits, inner
        self.traits = replace(
            traits.with_rounding(relative=traits.relative_rounding, floor=0.0),
            unit=response.unit,
            own_call=response.call,
            offset=None,  # it would change the slope of the link
            block_rows=block_rows,
            uses_threads=False,
            second_reading=SecondReading,
        )
        self._link, self._slope, self._shift, self._rows = str(response.link), response.slope, response.shift, response.rows

    def predict(self, X: Table) -> np.ndarray:
        """Return the model's own response."""
        assert self.traits.own_call is not None
        return self.traits.own_call.of_table(self.traits.model, self._rows(X))
