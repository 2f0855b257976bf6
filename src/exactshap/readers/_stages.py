"""Predictions whose rows cannot be cut: threads share the columns first, and then the rows are solved while one thread adds up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from exactshap._runtime.threads import Pace, known_pace, map_in_threads, threads_of_a_block

__all__ = ["SHARE", "STAGED", "Stages", "stages_in_threads"]

T = TypeVar("T")
STAGED = 1536  # rows, from which on searching all of them at once is quicker than half of them on each thread
SHARE = 0.5  # of the work that threads are otherwise worth: nothing is tried first, and tasks are even
PIECES = 2  # of the rows for each thread, one of which has something else to begin with; fewer rows have a lower pace


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

    first, *others = stages.columns
    found, guess = timed(first), Pace()
    guess.note("beside", len(stages.columns) * seconds[0] / n_rows)
    workers = 1 if not pace.each and guess.is_little(n_rows, asked, SHARE) else threads_of_a_block.get()
    if not all([found, *map_in_threads(timed, others, workers)]):
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
