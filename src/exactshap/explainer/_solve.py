"""Solve and predict blocks of rows, on threads or on joblib's workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from exactshap._runtime.progress import Progress, progress_rows
from exactshap._runtime.threads import map_in_threads, map_on_workers
from exactshap.errors import BudgetError, InputError
from exactshap.frames import Table, above
from exactshap.readers import Reader, refuse_missing_attribute
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Part, Rows, Solution, count_sets

# of a block: its solutions by their first row, and the prediction of all of its rows
Answer = tuple[list[tuple[int, Solution]], np.ndarray]
# Rows of a block from which others have a separate call, which costs less than copying so many rows.
ROWS_OF_OWN_CALL = 1024
# Terms x background rows x rows from which on a request may take a minute: then its time is forecast if the first block takes long.
LARGE_REQUEST = 1e8
TIMED_ROWS = 16  # at most, on which a reader times pieces of the work


class Cut(NamedTuple):
    """Hold how rows are cut."""

    blocks: list[slice]  # rows that the model predicts in one call: no number of threads changes them
    piece_rows: int  # rows of a block that a thread solves at a time
    workers: int  # threads

    def pieces(self, block: slice) -> Iterator[slice]:
        """Yield the pieces of a block."""
        for start in range(block.start, block.stop, self.piece_rows):
            yield slice(start, min(start + self.piece_rows, block.stop))


def solve_rows(
    reader: Reader,
    table: Table,
    cut: Cut,
    semivalue: Semivalue,
    order: int,
    progress: Progress,
    others: Table | None = None,
) -> tuple[Solution, np.ndarray]:
    """Return the solution of all rows and the model's own predictions. Those of the ``others`` follow them.

    The model predicts the other rows in its call for the last block, unless that is large; nothing is solved for them.
    """
    if not cut.blocks:
        tail = () if reader.traits.single_output else (reader.traits.n_outputs,)
        nothing = Part.zeros(0, count_sets(reader.traits.n_players, order), *tail)
        return Solution(nothing), nothing.empty
    # No other block is copied to take them
    others = others if cut.blocks[-1].stop - cut.blocks[-1].start < ROWS_OF_OWN_CALL else None
    # Only prepared here: it is timed if the first block takes long enough for a line of progress.
    ahead = _seconds_ahead(reader, table, cut, semivalue, order)
    try:
        with progress_rows(progress, table.n_rows, reader.traits.calls, ahead, n_steps=len(cut.blocks)) as report:
            if len(cut.blocks) == 1 and cut.workers == 1:  # nothing to join
                [(_, solution)], prediction = _answer(reader, table, semivalue, order, 0, others)
                report(table.n_rows)
                return solution, prediction
            n_predicted = table.n_rows + (0 if others is None else others.n_rows)
            answers = _answers(reader, table, cut, semivalue, order, others)
            return _joined(cut, answers, table.n_rows, n_predicted, report)
    except InputError as error:
        error.count_from(0, lambda i: table.row_label(i) if i < table.n_rows else "a row mixed with the background")
        raise


def _seconds_ahead(reader: Reader, table: Table, cut: Cut, semivalue: Semivalue, order: int) -> Callable[[], float] | None:
    """Return a forecast of a large request. Functions say by their calls how far they are."""
    n_background = 1 if reader.traits.background is None else reader.traits.background.n_rows
    n_products = table.n_rows * reader.traits.rounding.n_terms * n_background * reader.traits.n_players ** (order - 1)
    if reader.traits.calls is not None or n_products < LARGE_REQUEST:
        return None

    def ahead() -> float:
        few = table.take(slice(0, min(TIMED_ROWS, table.n_rows)))
        with np.errstate(all="ignore"):
            return reader.cost(few, table.n_rows, semivalue, order, cut.piece_rows).seconds / cut.workers

    return ahead


def _joined(
    cut: Cut, answers: Iterator[Answer], n_rows: int, n_predicted: int, report: Callable[[int], None]
) -> tuple[Solution, np.ndarray]:
    """Return the solutions of all blocks as one, and their predictions, those of other rows last."""
    rows = Rows(n_rows)
    # One array for all blocks: of many rows each further one counts
    predictions = np.empty(0)
    for block, (parts, prediction) in zip(cut.blocks, answers, strict=True):
        for start, part in parts:
            rows.put(start, part)
        if block.start == 0:
            predictions = np.empty((n_predicted, *prediction.shape[1:]))
        predictions[block.start : block.start + len(prediction)] = prediction
        report(block.stop)
    return rows.solution(), predictions


def _answers(
    reader: Reader, table: Table, cut: Cut, semivalue: Semivalue, order: int, others: Table | None
) -> Iterator[Answer]:
    """Yield each block, solved and predicted: by joblib's active backend, in this thread, or in several."""
    last = cut.blocks[-1].start
    tasks = (
        (reader, table.take(block), semivalue, order, block.start, others if block.start == last else None)
        for block in cut.blocks
    )
    # A single block leaves nothing to distribute.
    on_workers = None if len(cut.blocks) == 1 else map_on_workers(_answer, tasks)
    if on_workers is not None:
        return on_workers
    if cut.workers == 1:
        return itertools.starmap(_answer, tasks)
    return _in_threads(reader, table, cut, semivalue, order, others)


def _in_threads(
    reader: Reader, table: Table, cut: Cut, semivalue: Semivalue, order: int, others: Table | None
) -> Iterator[Answer]:
    """Yield each block, solved and predicted on threads.

    Its prediction is a task after its pieces: the solver is the one to name what it refuses.
    """

    def run(task: tuple[slice, bool]) -> Solution | np.ndarray:
        rows, is_solved = task
        if is_solved:
            return _solve(reader, table.take(rows), semivalue, order, rows.start)
        block = table.take(rows)
        return predict(reader, above(block, others) if others is not None and rows.stop == table.n_rows else block, rows.start)

    # Order matters: a block's prediction comes after its pieces, and results come back in the order of tasks.
    tasks = [task for block in cut.blocks for task in (*((piece, True) for piece in cut.pieces(block)), (block, False))]
    parts: list[tuple[int, Solution]] = []
    for (rows, is_solved), result in zip(tasks, map_in_threads(run, tasks, cut.workers), strict=True):
        if is_solved:
            parts.append((rows.start, result))  # type: ignore[arg-type]
        else:
            yield parts, result  # type: ignore[misc]
            parts = []


def _answer(reader: Reader, rows: Table, semivalue: Semivalue, order: int, start: int, others: Table | None) -> Answer:
    """Return one solved and predicted block, in any process."""
    solution = _solve(reader, rows, semivalue, order, start)
    return [(start, solution)], predict(reader, rows if others is None else above(rows, others), start)


def _solve(reader: Reader, rows: Table, semivalue: Semivalue, order: int, start: int) -> Solution:
    try:
        # In each thread, as numpy keeps this state by thread; the certificate says what overflows.
        with np.errstate(all="ignore"):
            return reader.solve(rows, semivalue, order)
    except InputError as error:
        # The reader counts rows from the start of its block, the user from the start of X.
        error.count_from(start)
        raise


def predict(reader: Reader, rows: Table, start: int = 0) -> np.ndarray:
    """Return a copy of the model's own prediction. Some models return the same array in each call."""
    try:
        with np.errstate(all="ignore"):
            prediction = np.array(reader.predict(rows), float)
    except AttributeError as error:
        refuse_missing_attribute(reader.traits.model, error)
        raise
    except InputError as error:
        error.count_from(start)
        raise
    wanted = (rows.n_rows,) if reader.traits.single_output else (rows.n_rows, reader.traits.n_outputs)
    if prediction.shape != wanted:
        what = "one number" if reader.traits.single_output else f"{reader.traits.n_outputs} numbers"
        got = f"Got shape {prediction.shape} for {rows.n_rows} rows"
        raise InputError(f"{reader.traits.model_name} does not predict {what} for each row", got)
    return prediction


def values_by_background_row(reader: Reader, table: Table, memory_limit: float, progress: Progress) -> np.ndarray:
    """Return the rows' values for one background row at a time. They are (n_background, n_rows, n_players[, n_outputs])."""
    background = reader.traits.background
    if background is None or reader.traits.value_function != "interventional":
        raise InputError(
            "Only interventional values are a mean over background rows",
            f"Got value_function={reader.traits.value_function!r}",
            "Pass a background, and leave value_function= out",
        )
    # With equal weights a plain mean over the array gives the values; with others it would not.
    if reader.traits.weights is not None and np.ptp(reader.traits.weights) > 0:
        raise InputError("Background rows with weights cannot be resampled", "Got background_weights=")
    tail = (table.n_rows, reader.traits.n_players, *(() if reader.traits.single_output else (reader.traits.n_outputs,)))
    size = 8.0 * background.n_rows * np.prod(tail)
    if size > memory_limit:
        raise BudgetError(
            "Values by background row do not fit in memory_limit",
            f"They take {size:.3g} bytes, memory_limit={memory_limit:.3g}",
            "Pass fewer rows at a time",
        )
    values = np.empty((background.n_rows, *tail))
    with progress_rows(progress, background.n_rows) as report:
        for z in range(background.n_rows):
            values[z] = _of_one(reader, background.take([z]), table)
            report(z + 1)
    return values


def _of_one(reader: Reader, row: Table, table: Table) -> np.ndarray:
    bound = reader.bind(row)
    solution = None if bound is None else bound.solve(table, find("shapley"), 1)
    if solution is None or solution.std_error is not None:
        raise InputError(
            "Values by background row must be exact",
            f"{reader.traits.model_name} is sampled, or cannot be bound to one background row",
            "Explain it with several backgrounds, Explainer(model, background[rows]), and compare their values",
        )
    return solution.values
