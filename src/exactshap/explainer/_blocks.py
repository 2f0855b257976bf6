"""Blocks of rows: solved one by one or on threads, with progress, under the memory there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from exactshap._runtime.progress import Progress, counting
from exactshap.frames import Table
from exactshap.readers import Reader
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution

__all__ = ["solve_blocks"]


def solve_blocks(
    reader: Reader, table: Table, blocks: list[slice], semivalue: Semivalue, order: int, n_jobs: int | None, progress: Progress
) -> Iterator[Solution]:
    """Yield the solution of each block beside its predictions, in order, whatever the number of threads."""
    with counting(progress, table.n_rows) as report:
        for rows, part in zip(blocks, _parallel(reader, table, blocks, semivalue, order, n_jobs), strict=True):
            yield part
            report(rows.stop)


def _parallel(
    reader: Reader, table: Table, blocks: list[slice], semivalue: Semivalue, order: int, n_jobs: int | None
) -> Iterable[Solution]:
    tasks = ((reader, table.take(rows), semivalue, order) for rows in blocks)
    if n_jobs in (None, 1) or len(blocks) < 2 or reader.threads_inside:
        return (_solve_block(*task) for task in tasks)
    from joblib import Parallel, delayed

    return Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(delayed(_solve_block)(*task) for task in tasks)


def _solve_block(reader: Reader, table: Table, semivalue: Semivalue, order: int) -> Solution:
    """Return the solution of one block of rows beside its predictions."""
    solution = reader.solve(table, semivalue, order)
    prediction = np.array(reader.predict(table), float)  # a copy: some models return one array again and again
    tolerance = reader.tolerance(table, prediction, solution)
    return solution.beside(prediction, tolerance, efficient=semivalue.is_efficient(order))
