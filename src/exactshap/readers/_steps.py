"""The steps of an answer, which threads may share: rows are solved, the model predicts them, and both are held against each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from exactshap._runtime.threads import Pace, map_in_threads, pace_of_little, rows_in_threads, threads_of_a_block
from exactshap.errors import rows_from
from exactshap.frames import Table
from exactshap.readers._stages import SHARE, STAGED, Stages, stages_in_threads
from exactshap.semivalues import Semivalue
from exactshap.solvers import Comparison, Rows, Solution

__all__ = ["answered_in_threads", "certified", "own_prediction", "solve_some"]


HELD_ROWS = 2**14  # rows of a piece that is held against predictions: a few numbers each


class Reads(Protocol):
    """What the steps ask of a reader."""

    solves_one_by_one: bool

    def shares_predictions(self, n_rows: int) -> bool: ...

    def stages(self, X: Table) -> Stages | None: ...

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution: ...

    def predict_again(self, X: Table) -> np.ndarray: ...

    def tolerance(self, prediction: np.ndarray, solution: Solution) -> np.ndarray: ...

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
    return _with_company(reader, X, _beside(reader, solution, prediction[:n_rows], efficient), prediction[n_rows:])


def _beside(reader: Reads, solution: Solution, own: np.ndarray, efficient: bool) -> Solution:
    """Return a solution beside the model's own prediction of its rows, on whatever thread."""
    with np.errstate(all="ignore"):  # of each thread; overflow is told by the certificate
        return solution.beside(own, reader.tolerance(own, solution), efficient=efficient)


def _with_company(reader: Reads, X: Table, solution: Solution, others: np.ndarray) -> Solution:
    """Return a solution with the comparison of the last rows of ``X``, whose own predictions are ``others``, if there are any."""
    if not len(others):
        return solution
    return solution.with_(comparison=reader.compare(X.parted(X.n_rows - len(others))[1], others))


def answered_in_threads(reader: Reads, X: Table, mine: Table, semivalue: Semivalue, order: int) -> Solution:
    """Return the solution of the first rows, which are ``mine``, beside their predictions; threads share all of the work.

    Pieces are put where they belong as they come; where the model predicts all rows at once, they are held against that in the end.
    """
    n_rows, shares, efficient = mine.n_rows, reader.shares_predictions(mine.n_rows), semivalue.is_efficient(order)
    stages = reader.stages(X) if n_rows >= STAGED else None
    if (pace := pace_of_little(n_rows, 1.0 if stages is None else SHARE)) is not None:
        solve_all = partial(reader.solve, mine, semivalue, order)
        alone = _solved_alone(reader, X, solve_all, n_rows, pace, shares and stages is None)
        return certified(reader, X, *alone, efficient=efficient)
    found = Rows(n_rows)

    def solve(rows: slice) -> None:
        found.put(rows.start, solve_some(reader, mine, semivalue, order, rows))

    def answer(rows: slice) -> None:
        part = solve_some(reader, mine, semivalue, order, rows)
        found.put(rows.start, _beside(reader, part, _predict_some(reader, X, rows), efficient))

    if shares and stages is None:
        rest = slice(n_rows, X.n_rows)
        predict_rest = (lambda: _predict_some(reader, X, rest)) if n_rows < X.n_rows else (lambda: np.zeros(0))
        _, others = rows_in_threads(answer, n_rows, predict_rest, reader.threads_pay)
        return _with_company(reader, X, found.solution(), others)
    shared = None if stages is None else stages_in_threads(stages, solve, n_rows)  # None: some of them found nothing
    predict = partial(own_prediction, reader, X)
    _, prediction = shared or rows_in_threads(solve, n_rows, predict, reader.threads_pay, one_by_one=reader.solves_one_by_one)
    return _with_company(reader, X, _held(reader, found.solution(), prediction[:n_rows], efficient), prediction[n_rows:])


def _held(reader: Reads, solution: Solution, own: np.ndarray, efficient: bool) -> Solution:
    """Return a solution beside the model's own predictions; threads hold pieces against them."""
    residual, tolerance = np.empty(own.shape), np.empty(len(own))

    def hold(rows: slice) -> None:
        piece = _beside(reader, solution.rows(rows), own[rows], efficient)
        residual[rows], tolerance[rows] = piece.residual, piece.tolerance

    workers = threads_of_a_block.get() if len(own) > HELD_ROWS else 1
    for _ in map_in_threads(hold, (slice(i, i + HELD_ROWS) for i in range(0, len(own), HELD_ROWS)), workers):
        pass
    return solution.beside(own, tolerance, efficient=False).with_(residual=residual)


def _solved_alone(
    reader: Reads, X: Table, solve: Callable[[], Solution], n_rows: int, pace: Pace, shares: bool
) -> tuple[Solution, np.ndarray]:
    """Return the same of few rows from this thread, which keeps their pace for larger requests, as threads do."""
    predict = partial(own_prediction, reader, X)
    if shares:
        return pace.keep("each", n_rows, lambda: (solve(), predict()))
    return pace.keep("each", n_rows, solve), pace.keep("beside", n_rows, predict)
