"""Share what all readers of a response need: traits of the score, link, mean responses, and the model's own call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from exactshap.frames import Table
from exactshap.games import normalised_weights
from exactshap.readers import Reader, RowReader, SecondReading
from exactshap.readers.responses._links import Response, needs_rows

# Players up to which visiting all coalitions costs less than 100 waves (benchmarks/bench_probabilities.py): a third at 10 players
ALL_COALITIONS = 10
CHUNK_VALUES = 2**22  # scores of hybrids at a time: 32 MiB

Row = TypeVar("Row")  # what a reader keeps of a row


class LinkedReader(RowReader[Row]):
    """Read an inverse link of a score, bound to its background; subclasses solve it."""

    def __init__(self, inner: Reader, response: Response, *, block_rows: int = 256) -> None:
        if inner.traits.background is None:
            raise needs_rows(response.unit)
        traits, self.inner = inner.traits, inner
        self.traits = replace(
            traits.with_rounding(relative=traits.relative_rounding, floor=0.0),
            unit=response.unit,
            output_names=response.outputs or traits.output_names,
            weights=normalised_weights(traits.weights, inner.traits.background.n_rows),
            own_call=response.call,
            offset=None,  # it would change the slope of the link
            block_rows=block_rows,
            uses_threads=False,
            second_reading=SecondReading,
        )
        self._link, self._slope, self._shift, self._to_rows = str(response.link), response.slope, response.shift, response.rows

    def predict(self, X: Table) -> np.ndarray:
        """Return the model's own response."""
        return super().predict(self._to_rows(X))


@dataclass(frozen=True, eq=False)
class MeanResponse:
    """Evaluate v(S) of one row, by its definition: mean responses of its hybrids with the background."""

    scores: Callable[[np.ndarray], np.ndarray]  # of masks (n_masks, n_players), as (n_masks, n_background)
    respond: Callable[[np.ndarray], np.ndarray]
    weights: np.ndarray

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        step = max(1, CHUNK_VALUES // len(self.weights))
        parts = (masks[start : start + step] for start in range(0, max(len(masks), 1), step))
        return np.concatenate([self.respond(self.scores(part)) @ self.weights for part in parts])


class PlayerScores(Protocol):
    """Describe a score that is a sum over players."""

    intercept: float

    def of(self, X: Table, what: str = "X") -> np.ndarray:
        """Return s_j(x) of shape (n_rows, n_players); a row has the same bits in every batch."""

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up in the score."""


class PlayerReader(LinkedReader[np.ndarray]):
    """Read a function of a sum over players with one output, bound to a background."""

    def __init__(self, inner: Reader, scores: PlayerScores, response: Response) -> None:
        super().__init__(inner, response)
        self.scores, self._intercept = scores, self._slope * scores.intercept + self._shift
        self._keep_background(self.traits.reference)

    def _keep_background(self, rows: Table) -> None:
        self._absent = self._scores(rows, "background")  # s_j(z), of shape (n_background, n_players)
        self._absent_sizes = self.scores.sizes(rows)  # (n_background,)

    def _scores(self, X: Table, what: str = "X") -> np.ndarray:
        scores = self.scores.of(X, what)
        return scores if self._slope == 1.0 else self._slope * scores

    def _mean_response(self, row: np.ndarray, respond: Callable[[np.ndarray], np.ndarray]) -> MeanResponse:
        steps, base = row - self._absent, self._intercept + self._absent.sum(axis=1)
        return MeanResponse(lambda masks: base + masks.astype(float) @ steps.T, respond, self._weights)
