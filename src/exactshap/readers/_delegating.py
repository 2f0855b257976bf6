"""A reader that wraps another one: pipelines, scaled targets, and whatever else changes a few things only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.games import Game
from exactshap.readers._base import Reader, SecondReading, rounding_of
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution

__all__ = ["DelegatingReader"]


class DelegatingReader(Reader):
    """Pass every question on to ``inner``, about the rows that ``rows`` makes. Wrappers override what they change.

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
        self.inner, own = inner, {"rounding": rounding_of(inner), **own}
        for name in Reader.__annotations__:
            setattr(self, name, own.pop(name) if name in own else getattr(inner, name))
        assert not own, f"a reader has no attribute {next(iter(own))!r}"

    def rows(self, X: Table) -> Table:
        """Return the rows as the inner reader takes them."""
        return X

    def predict(self, X: Table) -> np.ndarray:
        return self.inner.predict(self.rows(X))

    def game(self, X: Table) -> Game:
        return self.inner.game(self.rows(X))

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        return self.inner.solve(self.rows(X), semivalue, order)

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        return self.inner.stability(self.rows(X))

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        return self.inner.masked_predictions(self.rows(X), masks)

    def memory(self, n_rows: int, order: int) -> float:
        return self.inner.memory(n_rows, order)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        return self.inner.cost(self.rows(few), n_rows, semivalue, order, block_rows)

    def second_reading(self) -> SecondReading:
        return self.inner.second_reading()

    def bind(self, row: Table) -> DelegatingReader | None:
        inner = self.inner.bind(self.rows(row))
        if inner is None:
            return None
        bound = self._rebound(row)
        bound.inner, bound.n_terms, bound.rounding = inner, inner.n_terms, rounding_of(inner)
        return bound
