"""A reader that wraps another one: pipelines, scaled targets, and whatever else changes a few things only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap._runtime.progress import Asks
from exactshap.frames import Table
from exactshap.games import Game
from exactshap.readers._base import Reader
from exactshap.readers._stages import Stages
from exactshap.semivalues import Semivalue
from exactshap.solvers import Comparison, Cost, MadeRows, Solution

__all__ = ["DelegatingReader"]


class DelegatingReader(Reader):
    """Says what ``inner`` says of the rows that its own method ``rows`` makes of X; wrappers override what they change.

    Parameters
    ----------
    inner : Reader
    **own
        Attributes of :class:`Reader` that are the wrapper's own (``model``, ``model_name``, ``unit`` ...); the others are inner's.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from exactshap.readers import DelegatingReader, Request, read
    >>> inner = read(SVR().fit([[0.0], [1.0]], [0.0, 1.0]), Request())
    >>> DelegatingReader(inner, unit="degrees").unit
    'degrees'
    """

    def __init__(self, inner: Reader, **own: Any) -> None:
        self.inner = inner
        for name in Reader.__annotations__:
            setattr(self, name, own.pop(name) if name in own else getattr(inner, name))
        assert not own, f"a reader has no attribute {next(iter(own))!r}"

    def rows(self, X: Table) -> Table:
        """Return the rows as the inner reader takes them."""
        return X

    def answer(self, X: Table, semivalue: Semivalue, order: int, n_compared: int = 0) -> Solution:
        return self.inner.answer(self.rows(X), semivalue, order, n_compared)

    def takes_made_rows(self) -> bool:
        """Return False: what a wrapper makes of rows or of an answer would be left out."""
        return False

    def answer_made(self, rows: MadeRows, semivalue: Semivalue, order: int, n_compared: int = 0) -> Solution | None:
        return None

    def evaluate(self, X: Table) -> Solution:
        return self.inner.evaluate(self.rows(X))

    def compare(self, X: Table, prediction: np.ndarray | None = None) -> Comparison:
        return self.inner.compare(self.rows(X), prediction)

    def predict(self, X: Table) -> np.ndarray:
        return self.inner.predict(self.rows(X))

    def predict_again(self, X: Table) -> np.ndarray:
        return self.inner.predict_again(self.rows(X)) if self._forwards else super().predict_again(X)

    def predicted_background(self) -> np.ndarray:
        return self.inner.predicted_background() if self._forwards else super().predicted_background()

    def stages(self, X: Table) -> Stages | None:
        return self.inner.stages(self.rows(X)) if self._forwards else super().stages(X)

    @property
    def _forwards(self) -> bool:
        return type(self).predict is DelegatingReader.predict

    def game(self, X: Table) -> Game:
        return self.inner.game(self.rows(X))

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        return self.inner.solve(self.rows(X), semivalue, order)

    def tolerance(self, prediction: np.ndarray, solution: Solution) -> np.ndarray:
        return self.inner.tolerance(prediction, solution)

    def cancelled(self, X: Table) -> np.ndarray | float:
        return self.inner.cancelled(self.rows(X))

    def threads_pay(self) -> bool | None:
        return self.inner.threads_pay()

    def shares_predictions(self, n_rows: int) -> bool:
        return self.inner.shares_predictions(n_rows)

    def asks(self) -> Asks | None:
        return self.inner.asks()

    def n_terms(self) -> float:
        return self.inner.n_terms()

    def epsilon(self) -> float:
        return self.inner.epsilon()

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        return self.inner.stability(self.rows(X))

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        return self.inner.masked_predictions(self.rows(X), masks)

    def reading_difference(self) -> float | None:
        return self.inner.reading_difference()

    def reading_gap(self) -> str:
        return self.inner.reading_gap()

    def bound_to(self, row: Table) -> DelegatingReader | None:
        inner = self.inner.bound_to(self.rows(row))
        if inner is None:
            return None
        bound = self._rebound(row)
        bound.inner = inner
        return bound

    def memory(self, n_rows: int, order: int) -> float:
        return self.inner.memory(n_rows, order)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        return self.inner.cost(self.rows(few), n_rows, semivalue, order, block_rows)

    def memory_advice(self) -> str:
        return self.inner.memory_advice()
