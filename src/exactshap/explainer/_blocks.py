"""Blocks of rows: solved one by one or on threads, with progress, under the memory there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from exactshap._runtime.progress import Progress, counting
from exactshap.frames import Table
from exactshap.readers import Reader
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution

__all__ = ["Solved", "physical_memory", "solve_blocks"]

Solved = tuple[Solution, np.ndarray, np.ndarray, np.ndarray]


def solve_blocks(
    reader: Reader, table: Table, blocks: list[slice], semivalue: Semivalue, order: int, n_jobs: int | None, progress: Progress
) -> Iterator[Solved]:
    """Yield solution, prediction, residual and tolerance of each block, in order, whatever the number of threads."""
    with counting(progress, table.n_rows) as report:
        for rows, part in zip(blocks, _parallel(reader, table, blocks, semivalue, order, n_jobs), strict=True):
            yield part
            report(rows.stop)


def _parallel(
    reader: Reader, table: Table, blocks: list[slice], semivalue: Semivalue, order: int, n_jobs: int | None
) -> Iterable[Solved]:
    tasks = ((reader, table.take(rows), semivalue, order) for rows in blocks)
    if n_jobs in (None, 1) or len(blocks) < 2 or reader.threads_inside:
        return (_solve_block(*task) for task in tasks)
    from joblib import Parallel, delayed

    return Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(delayed(_solve_block)(*task) for task in tasks)


def _solve_block(
    reader: Reader, table: Table, semivalue: Semivalue, order: int
) -> tuple[Solution, np.ndarray, np.ndarray, np.ndarray]:
    """Return solution, prediction, residual and tolerance of one block of rows."""
    with np.errstate(all="ignore"):  # overflow is told by the certificate
        return _solved(reader, table, semivalue, order)


def _solved(
    reader: Reader, table: Table, semivalue: Semivalue, order: int
) -> tuple[Solution, np.ndarray, np.ndarray, np.ndarray]:
    solution = reader.solve(table, semivalue, order)
    prediction = np.asarray(reader.predict(table), float)
    whole = solution.empty + solution.values.sum(axis=1) if semivalue.is_efficient(order) else solution.full
    tolerance = np.broadcast_to(reader.tolerance(table, prediction, solution), (table.n_rows,))
    return solution, prediction, prediction - whole, tolerance


def physical_memory() -> float:
    """Return the bytes of memory of this machine."""
    import os

    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return 2.0**36
