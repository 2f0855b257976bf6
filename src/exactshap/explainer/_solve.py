"""Blocks of rows: solved one by one or on threads, with progress, and put together as an explanation."""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.progress import Progress, progress_rows
from exactshap._runtime.threads import map_in_threads, rows_alone_pay
from exactshap._runtime.workers import map_on_workers
from exactshap.errors import InputError, rows_from
from exactshap.explainer._hybrids import APART
from exactshap.frames import Table, above
from exactshap.readers import Reader, certified, own_prediction, solve_some
from exactshap.results.explanation import Explanation
from exactshap.semivalues import Semivalue
from exactshap.solvers import Rows, Solution, in_pieces, player_sets

__all__ = ["Cut", "facts_of", "solve_blocks", "wrap"]


_SAME_NAMES = (
    "approximation_error",
    "covariance_residual",
    "method",
    "n_evaluations",
    "prediction",
    "residual",
    "set_std",
    "tolerance",
)


_same_of = operator.attrgetter(*_SAME_NAMES)

Task = tuple[int, Callable[[], Table], int]  # the first row of a block, its rows, and how many at their end are only compared
Put = Callable[[int, Solution], Solution]  # takes a block by its first row, and returns it without what is copied


class Cut(NamedTuple):
    """How rows are cut into blocks; how many of them are solved at once, and on how many threads each."""

    blocks: list[slice]
    blocks_at_once: int
    threads_of_each: int


def solve_blocks(
    reader: Reader,
    table: Table,
    cut: Cut,
    semivalue: Semivalue,
    order: int,
    progress: Progress,
    company: Table | None = None,
) -> Solution:
    """Return the solution of all rows beside its predictions, from one block after another, and the comparison of those in company.

    A few rows are predicted together with those in company, which then cost no call of the model; many are not copied for it. No
    bit depends on the number of workers.
    """
    blocks, n_rows = cut.blocks, table.n_rows
    if not blocks:
        return _nothing(reader, order)
    n_compared = 0 if company is None or n_rows >= APART else company.n_rows
    if len(blocks) == 1:
        together = above(table, company) if company is not None and n_compared else table
        with progress_rows(progress, n_rows, reader.asks) as report, np.errstate(all="ignore"):
            try:
                solution = reader.answer(together, semivalue, order, n_compared)
            except InputError as error:
                error.count_from(0, functools.partial(_named, table))
                raise
            report(n_rows)
    else:
        solution = _joined(reader, table, cut, semivalue, order, progress, company if n_compared else None)
    if company is None or n_compared:
        return solution
    with np.errstate(all="ignore"), rows_from(n_rows, functools.partial(_named, table)):
        return solution.with_(comparison=reader.compare(company))


def _joined(
    reader: Reader, table: Table, cut: Cut, semivalue: Semivalue, order: int, progress: Progress, company: Table | None
) -> Solution:
    """Return the solution of several blocks, the last of which has company."""
    blocks, n_compared = cut.blocks, 0 if company is None else company.n_rows
    tasks: list[Task] = [(block.start, functools.partial(table.take, block), 0) for block in blocks]
    if company is not None:
        start, last, _ = tasks[-1]
        tasks[-1] = start, lambda: above(last(), company), n_compared
    rows, comparison = Rows(table.n_rows), None
    with progress_rows(progress, table.n_rows, reader.asks) as report, rows_from(0, functools.partial(_named, table)):
        put = functools.partial(_put, rows, cut.threads_of_each)
        for block, part in zip(blocks, _parts(reader, tasks, semivalue, order, cut, put), strict=True):
            comparison = part.comparison
            report(block.stop)
    return rows.solution().with_(comparison=comparison)


def _put(rows: Rows, workers: int, start: int, block: Solution) -> Solution:
    """Put a block into its rows on as many threads as have solved it: to copy it takes longer than to solve a linear model."""
    pieces = [] if workers == 1 else list(in_pieces([block]))
    if len(pieces) < 2:
        return rows.put(start, block)
    left = list(map_in_threads(lambda piece: rows.put(start + piece[0], piece[1]), pieces, workers))
    return left[0].with_(comparison=block.comparison)


def _parts(reader: Reader, tasks: Sequence[Task], semivalue: Semivalue, order: int, cut: Cut, put: Put) -> Iterator[Solution]:
    """Yield the solutions of blocks as ``put`` leaves them; threads that share the blocks share what it does, too."""

    def run(task: Task) -> Solution:
        start, make, n_compared = task
        return put(start, _answer(reader, start, make(), semivalue, order, n_compared))

    sent = ((reader, start, make(), semivalue, order, n_compared) for start, make, n_compared in tasks)
    if (parts := map_on_workers(_answer, sent)) is not None:
        return (put(start, part) for (start, _, _), part in zip(tasks, parts, strict=True))
    if cut.threads_of_each > 1 and reader.solves_one_by_one and type(reader).answer is Reader.answer:
        return _one_by_one(reader, run, tasks, (semivalue, order), cut.threads_of_each, put)
    return map(run, tasks) if cut.blocks_at_once == 1 else _in_threads(reader, run, tasks, cut.blocks_at_once)


def _in_threads(reader: Reader, run: Callable[[Task], Solution], tasks: Sequence[Task], workers: int) -> Iterator[Solution]:
    """Yield the solutions of blocks from threads, where these share the work: of a function that is called, the first block tells."""
    n_alone = int(reader.threads_pay() is None)
    yield from map(run, tasks[:n_alone])
    left = tasks[n_alone:]
    yield from map(run, left) if reader.threads_pay() is False else map_in_threads(run, left, workers)


def _one_by_one(
    reader: Reader,
    run: Callable[[Task], Solution],
    tasks: Sequence[Task],
    question: tuple[Semivalue, int],
    workers: int,
    put: Put,
) -> Iterator[Solution]:
    """Yield the solutions of blocks whose rows go one by one to whichever thread comes first: no thread waits for the end of a block.

    Of each block the model predicts all rows in one call, as where one thread solves it: predictions may depend on their company.
    """
    n_alone = 0
    while n_alone < len(tasks) and rows_alone_pay() is None:  # the first block tells
        yield run(tasks[n_alone])
        n_alone += 1
    left = tasks[n_alone:]
    if not (rows_alone_pay() and reader.threads_pay()):
        yield from map(run, left)
        return
    blocks = [(start, make(), n_compared) for start, make, n_compared in left]
    steps = [step for block in blocks for step in _steps(reader, block, question)]
    with contextlib.closing(map_in_threads(lambda step: step(), steps, workers)) as found:  # nothing goes on after an error
        for start, X, n_compared in blocks:
            n_rows = X.n_rows - n_compared
            solution = Solution.join(itertools.islice(found, n_rows), n_rows)
            with np.errstate(all="ignore"), rows_from(start):
                part = certified(reader, X, solution, next(found), efficient=question[0].is_efficient(question[1]))
            yield put(start, part)


def _steps(reader: Reader, block: tuple[int, Table, int], question: tuple[Semivalue, int]) -> Iterator[Callable[[], Any]]:
    """Yield what solves the rows of a block, one by one, and what predicts all of them."""
    start, X, n_compared = block
    n_rows = X.n_rows - n_compared

    def solve(i: int) -> Solution:
        with rows_from(start):
            return solve_some(reader, X, *question, slice(i, i + 1))

    def predict() -> np.ndarray:
        with np.errstate(all="ignore"), rows_from(start):
            return own_prediction(reader, X)

    yield from (functools.partial(solve, i) for i in range(n_rows))
    yield predict


def _answer(reader: Reader, start: int, rows: Table, semivalue: Semivalue, order: int, n_compared: int) -> Solution:
    with np.errstate(all="ignore"), rows_from(start):  # overflow is told by the certificate
        return reader.answer(rows, semivalue, order, n_compared)


def _named(table: Table, row: int) -> str:
    return table.row_label(row) if row < table.n_rows else "a row mixed with the background"


def facts_of(reader: Reader, semivalue: Semivalue, order: int) -> dict[str, Any]:
    """Return what explanations that answer a question about a model have in common."""
    background = reader.background
    return {
        "feature_names": reader.player_names,
        "output_names": None if reader.single_output else reader.output_names,
        "index": semivalue.name,
        "order": order,
        "value_function": reader.value_function,
        "unit": reader.unit,
        "model_name": reader.model_name,
        "background_size": None if background is None else background.n_rows,
        "groups": _groups(reader),
    }


def wrap(
    reader: Reader,
    table: Table,
    solution: Solution,
    semivalue: Semivalue,
    order: int,
    shared: dict[str, Any],
    *,
    seconds: float,
    **facts: Any,
) -> Explanation:
    """Return a solution beside its predictions as an explanation; ``shared`` are the :func:`facts_of` its question."""
    std_error, groups, n_players = solution.std_error, shared["groups"], len(reader.player_names)
    given = {
        **dict(zip(_SAME_NAMES, _same_of(solution), strict=True)),
        "values": solution.values[:, :n_players],
        "baseline": solution.empty,
        "std_error": None if std_error is None else std_error[:, :n_players],
        "data": table.numeric(absent=reader.absent) if table.is_sparse else table.native,
        "sets": solution.sets or player_sets(n_players, order),
        "set_values": solution.values if order > 1 else None,
        "set_std_error": std_error if order > 1 else None,
        "error_bound": solution.error_bound,
        "seconds": seconds,
        "groups": groups and _columns_in(table, reader, groups),
        "covariances": solution.covariance,
        "stability_bound": reader.stability(table) if semivalue.name == "shapley" else None,
        **facts,
    }
    return Explanation.of_solver(shared, given)


def _nothing(reader: Reader, order: int) -> Solution:
    """Return the solution of no rows."""
    tail = () if reader.single_output else (reader.n_outputs,)
    part = Solution.zeros(0, len(player_sets(reader.n_players, order)), *tail)
    return part.beside(part.empty, np.zeros(0), efficient=False)


def _columns_in(table: Table, reader: Reader, groups: dict[str, tuple[str, ...]]) -> dict[str, tuple[str | int, ...]]:
    """Return the columns of each group by names that the explained rows have, else by number: ``feature_names=`` may say others."""
    names = table.names or tuple(f"x{j}" for j in range(table.n_columns))
    if names == reader.feature_names:
        return dict(groups)
    number = {name: j for j, name in enumerate(reader.feature_names)}
    return {name: tuple(number[column] for column in columns) for name, columns in groups.items()}


def _groups(reader: Reader) -> dict[str, tuple[str, ...]] | None:
    if {*map(len, reader.players)} == {1}:
        return None
    return {
        name: tuple(reader.feature_names[j] for j in columns)
        for name, columns in zip(reader.player_names, reader.players, strict=True)
        if len(columns) != 1
    }
