"""Blocks of rows: solved one by one or on threads, with progress, and put together as an explanation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from exactshap._runtime.progress import Progress, progress_rows
from exactshap._runtime.threads import map_in_threads
from exactshap._runtime.workers import map_on_workers
from exactshap.errors import InputError, rows_from
from exactshap.explainer._mask_check import Ends, ends_of
from exactshap.frames import Table, above
from exactshap.readers import Reader
from exactshap.results.explanation import Explanation
from exactshap.semivalues import Semivalue
from exactshap.solvers import Rows, Solution, player_sets

__all__ = ["Cut", "solve_blocks", "wrap"]

T = TypeVar("T")

APART = 1024  # rows from which on those in company are a block of their own
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
) -> tuple[Solution, Ends | None]:
    """Return the solution of all rows beside its predictions, from one block after another, and residuals of those in company.

    A few rows are solved together with those in company, which then cost no call of the model; many are not copied for it. No bit
    depends on the number of workers.
    """
    blocks, n_rows = cut.blocks, table.n_rows
    if not blocks:
        return _nothing(reader, order), None
    apart = company is not None and n_rows >= APART
    if len(blocks) == 1 and not apart:
        together = table if company is None else above(table, company)
        with progress_rows(progress, n_rows, reader.asks) as report, np.errstate(all="ignore"):
            try:
                solution = reader.answer(together, semivalue, order)
            except InputError as error:
                error.count_from(0, functools.partial(_named, table))
                raise
            report(n_rows)
        return (solution, None) if company is None else _split(solution, n_rows)
    makers: list[Callable[[], Table]] = [functools.partial(table.take, block) for block in blocks]
    starts, n_together = [block.start for block in blocks], n_rows
    if company is not None and not apart:
        last, n_together = makers[-1], n_rows + company.n_rows
        makers[-1] = lambda: above(last(), company)
    elif company is not None:
        makers.append(lambda: company)
        starts.append(n_rows)
    rows, hybrids = Rows(n_together), None
    with progress_rows(progress, n_rows, reader.asks) as report, rows_from(0, functools.partial(_named, table)):
        for place, part in enumerate(_parts(reader, list(zip(starts, makers, strict=True)), semivalue, order, cut)):
            if place < len(blocks):
                rows.add(part)
                report(blocks[place].stop)
            else:
                hybrids = ends_of(part)
    solution = rows.solution()
    return (solution, hybrids) if n_together == n_rows else _split(solution, n_rows)


def _split(solution: Solution, n_rows: int) -> tuple[Solution, Ends]:
    """Return the first rows, and residuals and tolerances of the others, which were solved in their company."""
    residual, tolerance = ends_of(solution)
    return solution.rows(slice(n_rows)), (residual[n_rows:], tolerance[n_rows:])


def _parts(
    reader: Reader, tables: Sequence[tuple[int, Callable[[], Table]]], semivalue: Semivalue, order: int, cut: Cut
) -> Iterator[Solution]:
    def run(one: tuple[int, Callable[[], Table]]) -> Solution:
        start, make = one
        return _answer(reader, start, make(), semivalue, order)

    tasks = ((reader, start, make(), semivalue, order) for start, make in tables)
    if len(tables) > 1 and (parts := map_on_workers(_answer, tasks)) is not None:
        return parts
    return map(run, tables) if cut.blocks_at_once == 1 else _in_threads(reader, run, tables, cut.blocks_at_once)


def _in_threads(reader: Reader, run: Callable[[T], Solution], tables: Sequence[T], workers: int) -> Iterator[Solution]:
    """Yield the solutions of blocks from threads, where these share the work: of a function that is called, the first block tells."""
    n_alone = int(reader.threads_pay() is None)
    yield from map(run, tables[:n_alone])
    left = tables[n_alone:]
    yield from map(run, left) if reader.threads_pay() is False else map_in_threads(run, left, workers)


def _answer(reader: Reader, start: int, rows: Table, semivalue: Semivalue, order: int) -> Solution:
    with np.errstate(all="ignore"), rows_from(start):  # overflow is told by the certificate
        return reader.answer(rows, semivalue, order)


def _named(table: Table, row: int) -> str:
    return table.row_label(row) if row < table.n_rows else "a row mixed with the background"


def wrap(
    reader: Reader,
    table: Table,
    solution: Solution,
    semivalue: Semivalue,
    order: int,
    *,
    seconds: float,
    **facts: Any,
) -> Explanation:
    """Return a solution beside its predictions as an explanation, with what is known about the model."""
    background, std_error, n_players = reader.background, solution.std_error, len(reader.player_names)
    return Explanation.of_solver(
        **{name: getattr(solution, name) for name in _SAME_NAMES},
        values=solution.values[:, :n_players],
        baseline=solution.empty,
        std_error=None if std_error is None else std_error[:, :n_players],
        data=table.native,
        feature_names=reader.player_names,
        output_names=None if reader.single_output else reader.output_names,
        index=semivalue.name,
        order=order,
        sets=solution.sets or player_sets(n_players, order),
        set_values=solution.values if order > 1 else None,
        set_std_error=std_error if order > 1 else None,
        value_function=reader.value_function,
        unit=reader.unit,
        model_name=reader.model_name,
        error_bound=solution.error_bound,
        seconds=seconds,
        background_size=None if background is None else background.n_rows,
        groups=_groups(reader),
        covariances=solution.covariance,
        stability_bound=reader.stability(table) if semivalue.name == "shapley" else None,
        **facts,
    )


def _nothing(reader: Reader, order: int) -> Solution:
    """Return the solution of no rows."""
    tail = () if reader.single_output else (reader.n_outputs,)
    part = Solution.zeros(0, len(player_sets(reader.n_players, order)), *tail)
    return part.beside(part.full, np.zeros(0), efficient=False)


def _groups(reader: Reader) -> dict[str, tuple[str, ...]] | None:
    if {*map(len, reader.players)} == {1}:
        return None
    return {
        name: tuple(reader.feature_names[j] for j in columns)
        for name, columns in zip(reader.player_names, reader.players, strict=True)
        if len(columns) != 1
    }
