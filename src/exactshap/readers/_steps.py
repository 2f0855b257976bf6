"""The steps of an answer, which threads may share: rows are solved, the model predicts them, and both are held against each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from exactshap._runtime.threads import Pace, pace_of_little, rows_in_threads
from exactshap.errors import rows_from
from exactshap.frames import Table
from exactshap.readers._stages import SHARE, STAGED, Stages, stages_in_threads
from exactshap.semivalues import Semivalue
from exactshap.solvers import Comparison, Solution

__all__ = ["certified", "own_prediction", "solve_some", "solved_in_threads"]


class Reads(Protocol):
    """What the steps ask of a reader."""

    solves_one_by_one: bool

    def shares_predictions(self, n_rows: int) -> bool: ...

    def stages(self, X: Table) -> Stages | None: ...

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution: ...

    def predict_again(self, X: Table) -> np.ndarray: ...

    def tolerance(self, X: Table, prediction: np.ndarray, solution: Solution) -> np.ndarray: ...

    def compare(self, X: Table, prediction: np.ndarray | None = None) -> Comparison: ...

    def threads_pay(self) -> bool | None: ...


def solve_some(reader: Reads, X: Table, semivalue: Semivalue, order: int, rows: slice) -> Solution:
    """Return the solution of some of the rows, on whatever thread."""
    with np.errstate(all="ignore"), rows_from(rows.start):  # of each thread; overflow is told by the certificate
        return reader.solve(X.take(rows), semivalue, order)


def _predict_some(reader: Reads, X: Table, rows: slice) -> np.ndarray:
    """Return the model's own prediction of some of the rows, on whatever thread."""
    with np.errstate(all="ignore"), rows_from(rows.start):
        return own_prediction(reader, X.take(rows))


def own_prediction(reader: Reads, X: Table) -> np.ndarray:
    """Return the model's own prediction as a copy: some models return one array again and again."""
    return np.array(reader.predict_again(X), float)


def certified(reader: Reads, X: Table, solution: Solution, prediction: np.ndarray, *, efficient: bool) -> Solution:
    """Return a solution beside the model's own prediction, and the comparison of the rows of ``X`` that it leaves out, the last ones."""
    n_rows = len(solution.values)
    mine, others = X.parted(n_rows) if n_rows < X.n_rows else (X, X)
    own = prediction[:n_rows]
    solution = solution.beside(own, reader.tolerance(mine, own, solution), efficient=efficient)
    if others is X:
        return solution
    return solution.with_(comparison=reader.compare(others, prediction[n_rows:]))


def solved_in_threads(reader: Reads, X: Table, mine: Table, semivalue: Semivalue, order: int) -> tuple[Solution, np.ndarray]:
    """Return the solution of the first rows, which are ``mine``, and the predictions of all, from threads that share them."""
    n_rows, shares = mine.n_rows, reader.shares_predictions(mine.n_rows)
    stages = reader.stages(X) if n_rows >= STAGED else None
    if (pace := pace_of_little(n_rows, 1.0 if stages is None else SHARE)) is not None:
        solve_all = partial(reader.solve, mine, semivalue, order)
        return _solved_alone(reader, X, solve_all, n_rows, pace, shares and stages is None)
    solve = partial(solve_some, reader, mine, semivalue, order)
    if stages is not None and (shared := stages_in_threads(stages, solve, n_rows)) is not None:
        return Solution.join(shared[0], n_rows), shared[1]
    if not shares:
        predict = partial(own_prediction, reader, X)
        parts, prediction = rows_in_threads(solve, n_rows, predict, reader.threads_pay, one_by_one=reader.solves_one_by_one)
        return Solution.join(parts, n_rows), prediction

    def solve_and_predict(rows: slice) -> tuple[Solution, np.ndarray]:
        return solve(rows), _predict_some(reader, X, rows)

    def predict_company() -> list[np.ndarray]:
        return [_predict_some(reader, X, slice(n_rows, X.n_rows))] if n_rows < X.n_rows else []

    pairs, last = rows_in_threads(solve_and_predict, n_rows, predict_company, reader.threads_pay)
    parts, predictions = zip(*pairs, strict=True)
    found = [*predictions, *last]
    return Solution.join(parts, n_rows), found[0] if len(found) == 1 else np.concatenate(found)


def _solved_alone(
    reader: Reads, X: Table, solve: Callable[[], Solution], n_rows: int, pace: Pace, shares: bool
) -> tuple[Solution, np.ndarray]:
    """Return the same of few rows from this thread, which keeps their pace for larger requests, as threads do."""
    predict = partial(own_prediction, reader, X)
    if shares:
        return pace.keep("each", n_rows, lambda: (solve(), predict()))
    return pace.keep("each", n_rows, solve), pace.keep("beside", n_rows, predict)
