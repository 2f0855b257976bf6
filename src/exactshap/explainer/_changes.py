"""Notice models that changed since they were read.

What is seen may be a cache only: explanations are compared with those of the model as it is now.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from exactshap._runtime.process_settings import without_warnings
from exactshap._runtime.types import Model
from exactshap.errors import BudgetError, ExactnessError, message
from exactshap.explainer._certify import Check, largest_of_rows, tolerance_of, worst_of
from exactshap.explainer._solve import Cut, solve_rows
from exactshap.frames import Table
from exactshap.readers import ModelState, Reader, Request, read, reader_for
from exactshap.semivalues import Question
from exactshap.solvers import Solution

COMPARED_ROWS = 64  # rows of a verification, and of values by background row, that are solved again
# Standard errors between two samples of the same values, of which there may be thousands.
STANDARD_ERRORS = 8.0


class Changes:
    """Watch a model for changes.

    A change that is seen may be one of a cache: the values of the model read anew decide.
    """

    def __init__(self, model: Model, request: Request, reader: Reader) -> None:
        self._model, self._request = model, request
        # A function that is called for each coalition answers as it is now.
        self._state = None if reader.traits.calls is not None and callable(model) else ModelState(model)
        self.is_used = False  # whether there was an explanation
        self._is_held = reader.traits.model is model

    def __getstate__(self) -> dict[str, object]:
        """Leave out a model that the reader holds in another form, as a library's own object may not pickle."""
        if self._is_held or self._state is None:
            return self.__dict__
        return {**self.__dict__, "_model": None, "_state": ModelState(None, self.seen())}

    def seen(self) -> str | None:
        """Return a name of what has changed since the model was read; None if nothing is seen."""
        return None if self._state is None else self._state.change()

    def after_first(self, seen: str | None) -> None:
        """Leave out what the first explanation itself has changed: caches and counters."""
        if self._state is not None and seen is None:
            self._state = self._state.without_own_changes()
        self.is_used = True

    def compared(self, table: Table, cut: Cut, question: Question, order: int, solution: Solution) -> Check:
        """Compare values with those of the model read anew."""
        if not table.n_rows:
            return Check()
        try:
            with without_warnings, np.errstate(all="ignore"):
                reader, semivalue, order = reader_for(read(self._model, self._request), question, order)
                anew, prediction = solve_rows(reader, table, cut, semivalue, order, False)
        except Exception:  # whatever it is that the changed model refuses, it is another model
            return Check(np.inf, 0.0, 1)
        now, before = anew.part, solution.part
        if now.values.shape != before.values.shape:
            return Check(np.inf, 0.0, 1)
        with np.errstate(all="ignore"):
            size = largest_of_rows(now.values - before.values) + largest_of_rows(now.empty - before.empty)
            # Twice, as both are rounded
            allowed = 2.0 * tolerance_of(reader, prediction, anew)
            for part in (now, before):
                if part.std_error is not None:
                    allowed += STANDARD_ERRORS * largest_of_rows(part.std_error)
        return Check(*worst_of(size, allowed), 1)

    def require_none(self, reader: Reader, table: Table) -> None:
        """Raise an error if Shapley values of a few rows are others than those of the model as it is now."""
        change = self.seen()
        if change is None:
            return
        some = table.take(slice(0, COMPARED_ROWS))
        cut = Cut([slice(0, some.n_rows)] if some.n_rows else [], max(some.n_rows, 1), 1)
        own, semivalue, _ = reader_for(reader, "shapley")
        solution, _ = solve_rows(own, some, cut, semivalue, 1, False)
        if not self.compared(some, cut, semivalue, 1, solution).passed:
            raise ExactnessError(change_message(reader, change))


def change_message(reader: Reader, change: str) -> str:
    """Return the error for a model that has changed."""
    return message(
        f"{reader.traits.model_name} has changed since it was read", f"Its {change} is another one", "Make a new Explainer"
    )


@contextlib.contextmanager
def blaming(reader: Reader, change: str) -> Iterator[None]:
    """Name the change that was seen if the model does not take its rows."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (BudgetError, MemoryError)):
            raise
        raise ExactnessError(change_message(reader, change)) from error
