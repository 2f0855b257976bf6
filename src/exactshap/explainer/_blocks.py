"""Blocks of rows: solved one by one or on threads, with progress, under the memory there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exactshap._runtime.progress import Progress, counting
from exactshap.frames import Table
from exactshap.readers import Answer, Reader
from exactshap.semivalues import Semivalue

__all__ = ["physical_memory", "solve_blocks"]


def solve_blocks(
    reader: Reader, table: Table, blocks: list[slice], semivalue: Semivalue, order: int, n_jobs: int | None, progress: Progress
) -> Iterator[Answer]:
    """Yield the answer for each block, in order, whatever the number of threads."""
    with counting(progress, table.n_rows) as report:
        for rows, part in zip(blocks, _parallel(reader, table, blocks, semivalue, order, n_jobs), strict=True):
            yield part
            report(rows.stop)


def _parallel(
    reader: Reader, table: Table, blocks: list[slice], semivalue: Semivalue, order: int, n_jobs: int | None
) -> Iterable[Answer]:
    tasks = ((table.take(rows), semivalue, order) for rows in blocks)
    if n_jobs in (None, 1) or len(blocks) < 2 or reader.threads_inside:
        return (reader.answer(*task) for task in tasks)
    from joblib import Parallel, delayed

    return Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(delayed(reader.answer)(*task) for task in tasks)


def physical_memory() -> float:
    """Return the bytes of memory of this machine."""
    import os

    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return 2.0**36
