"""Predictions whose rows cannot be cut: threads share the columns first, and then the rows are solved while one thread adds up."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from exactshap._runtime.crew import in_company
from exactshap._runtime.threads import Pace, known_pace, map_in_threads, threads_of_a_block
from exactshap.frames import Table

__all__ = ["SHARE", "STAGED", "Stages", "predicted_in_stages", "stages_in_threads", "values_of_a_piece"]

T = TypeVar("T")
STAGED = 1536  # rows, from which on searching all of them at once is quicker than half of them on each thread
SHARE = 0.5  # of the work that threads are otherwise worth: nothing is tried first, and tasks are even
PIECES = 2  # of the rows for each thread, one of which has something else to begin with; fewer rows have a lower pace
FIRST = 16  # of the rows of a prediction that can be cut, a first piece that tells, where no pace is known
LEAST = 2048  # rows of each other piece of it, at least: fewer keep other threads waiting
ALONE, TOGETHER = 2**16, 2**18  # values of a piece of rows that several kernels write one after the other: 0.5 MiB and 2 MiB


class Stages(NamedTuple):
    """A model's own prediction of some rows in two stages, which has the bits of its own method.

    Attributes
    ----------
    columns : sequence of callable
        Each is called once, on whatever thread; False where it found nothing.
    finish : callable
        ``finish() -> (n_rows,) or (n_rows, n_outputs)``: the prediction, when all of them have found something.
    """

    columns: Sequence[Callable[[], bool]]
    finish: Callable[[], np.ndarray]


def stages_in_threads(stages: Stages, function: Callable[[slice], T], n_rows: int) -> tuple[list[T], np.ndarray] | None:
    """Return ``function(rows)`` for slices that cover all rows, and the prediction; None where some columns find nothing.

    Where no request before these tells their pace, the first columns tell whether they are work for threads.
    """
    pace, asked = known_pace(n_rows)
    seconds: list[float] = []

    def timed(part: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        found = part()
        seconds.append(time.perf_counter() - started)
        return found

    columns, found, workers = list(stages.columns), True, threads_of_a_block.get()
    if not pace.each:
        found, guess = timed(columns.pop(0)), Pace()
        guess.note("beside", len(stages.columns) * seconds[0] / n_rows)
        workers = 1 if guess.is_little(n_rows, asked, SHARE) else workers
    if not all([found, *map_in_threads(timed, columns, workers)]):
        return None

    def solve(rows: slice) -> T:
        return pace.keep("each", rows.stop - rows.start, partial(function, rows))

    tasks: list[Callable[[], Any]] = [
        partial(timed, stages.finish),
        *(partial(solve, rows) for rows in _pieces(n_rows, workers)),
    ]
    prediction, *parts = map_in_threads(lambda task: task(), tasks, workers)
    pace.note("beside", sum(seconds) / n_rows)
    return parts, prediction


def _pieces(n_rows: int, workers: int) -> list[slice]:
    """Return slices of the rows, all of one size."""
    step = n_rows if workers == 1 else -(-n_rows // (PIECES * workers))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def values_of_a_piece() -> int:
    """Return how many values stay in the caches of a thread that is alone; others would wait at each step between pieces as small."""
    return TOGETHER if in_company.get() else ALONE


class Predicts(Protocol):
    """What a sum's own prediction asks of its models."""

    def shares_predictions(self, n_rows: int) -> bool: ...

    def predict_again(self, X: Table) -> np.ndarray: ...


def predicted_in_stages(
    readers: Sequence[Predicts],
    rows: Callable[[int, Table], Table],
    X: Table,
    add_up: Callable[[list[np.ndarray]], np.ndarray],
) -> Stages | None:
    """Return a sum's own prediction in parts: what each model predicts, in pieces where it can, and then their sum.

    ``rows(k, some)``: some of the rows as model k takes them. None where there are not enough parts for the threads; a model that
    refuses its rows, or predicts no finite numbers, finds nothing, so that the solver, or the documented call, says why.
    """
    workers = threads_of_a_block.get()
    some_of_each, whole = _pieces_of_prediction(X.n_rows, workers), [slice(0, X.n_rows)]
    pieces = [some_of_each if reader.shares_predictions(X.n_rows) else whole for reader in readers]
    found: list[list[np.ndarray]] = [[np.empty(0)] * len(some) for some in pieces]

    def ask(k: int, place: int) -> bool:
        try:
            with np.errstate(all="ignore"):
                found[k][place] = np.array(readers[k].predict_again(rows(k, X.take(pieces[k][place]))))
        except Exception:  # of whatever kind: it is raised again where the rows are not shared
            return False
        return bool(np.isfinite(found[k][place]).all())  # others may be refused by what adds them up

    def finish() -> np.ndarray:
        with np.errstate(all="ignore"):
            return add_up([np.concatenate(some) if len(some) > 1 else some[0] for some in found])

    parts = [(k, place) for k, some in enumerate(pieces) for place in range(len(some))]
    parts.sort(key=lambda part: len(pieces[part[0]]) == 1)  # first a piece, which keeps the other threads waiting
    return Stages([partial(ask, *part) for part in parts], finish) if len(parts) >= workers else None


def _pieces_of_prediction(n_rows: int, workers: int) -> list[slice]:
    """Return slices of the rows, one for each thread, and a small one before them that tells the pace, where it is not known."""
    first = 0 if known_pace(n_rows)[0].each else n_rows // FIRST
    n_others = max(1, min(workers, (n_rows - first) // LEAST))
    ends = [first + k * (n_rows - first) // n_others for k in range(n_others + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise([0, *ends] if first else ends)]
