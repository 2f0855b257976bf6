"""A reader that solves games for players in a tree; another reader's fast path knows no trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap.frames import Table
from exactshap.readers._base import Reader
from exactshap.readers._delegating import DelegatingReader
from exactshap.semivalues import Hierarchy, Question, Semivalue, find
from exactshap.solvers import Cost, Solution, solve

__all__ = ["HierarchicalReader", "reader_for"]

# Bytes of the arrays of one block of the solver's sweep, all levels together.
WORK_BYTES = 2.0**27
# Coalitions for each row of a function, without a budget.
DEFAULT_CALLS = 2**12


class HierarchicalReader(DelegatingReader):
    """Solves ``inner``'s games as they are written; names of players in a hierarchy are those of ``inner``."""

    def __init__(self, inner: Reader) -> None:
        super().__init__(inner, block_rows=16)
        self.options = getattr(inner, "options", {})

    def solve(self, X: Table, semivalue: Any, order: int) -> Solution:
        # The certificate asks for Shapley values of its own rows
        if isinstance(semivalue, Semivalue):
            return self.inner.solve(X, semivalue, order)
        budget = self.options.get("budget") or DEFAULT_CALLS if self.asks is not None else None
        found = solve(self.inner.game(X), semivalue, order, budget=budget)
        scale = (
            self.inner.solve(X, find("shapley"), 1).scale if self.asks is None else found.scale
        )  # what its own arithmetic adds up
        return replace(found, part=replace(found.part, scale=np.maximum(found.scale, scale)))

    def memory(self, n_rows: int, order: int) -> float:
        background = 1 if self.background is None else self.background.n_rows
        return WORK_BYTES + 16.0 * (n_rows + background) * self.n_terms * self.n_players

    def cost(self, few: Table, n_rows: int, semivalue: Any, order: int, block_rows: int) -> Cost:
        row, found = few.take(slice(0, 1)), []
        seconds = clocked(lambda: found.append(self.solve(row, semivalue, order)))
        cost = Cost(seconds, method=found[0].method, exact=found[0].exact)
        return replace(n_rows * cost, bytes=self.memory(block_rows, order))

    def stability(self, X: Table) -> None:
        return None


def reader_for(reader: Reader, index: str | Question) -> tuple[Reader, Any]:
    """Return the reader that answers a question, and the question by player number."""
    question = find(index)
    if isinstance(question, Hierarchy):
        return HierarchicalReader(reader), question.among(reader.player_names)
    return reader, question
