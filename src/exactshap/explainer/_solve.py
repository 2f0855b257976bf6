"""Blocks of rows: solved one by one or on threads, with progress, and put together as an explanation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from exactshap._runtime.progress import Progress, progress_rows
from exactshap._runtime.threads import map_in_threads
from exactshap.explainer._mask_check import MaskCheck
from exactshap.frames import Table, above
from exactshap.readers import Reader
from exactshap.results.explanation import Explanation
from exactshap.semivalues import Semivalue
from exactshap.solvers import Rows, Solution, player_sets

__all__ = ["mask_facts", "solve_blocks", "wrap"]

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


def solve_blocks(
    reader: Reader,
    table: Table,
    blocks: list[slice],
    semivalue: Semivalue,
    order: int,
    n_jobs: int | None,
    progress: Progress,
    company: Table | None = None,
) -> Solution:
    """Return the solution of all rows beside its predictions, from one block after another, whatever the number of threads.

    Rows in ``company`` are solved with the last block, and stand below its own.
    """
    if not blocks:
        return _nothing(reader, order)
    rows = Rows(table.n_rows + (0 if company is None else company.n_rows))
    with progress_rows(progress, table.n_rows) as report:
        for block, part in zip(blocks, _parts(reader, _tables(table, blocks, company), semivalue, order, n_jobs), strict=True):
            rows.add(part)
            report(block.stop)
    return rows.solution()


def _tables(table: Table, blocks: list[slice], company: Table | None) -> list[Callable[[], Table]]:
    """Return what makes the rows of each block when their turn comes."""
    makers: list[Callable[[], Table]] = [functools.partial(table.take, rows) for rows in blocks]
    if company is not None:
        last = makers[-1]
        makers[-1] = lambda: above(last(), company)
    return makers


def _parts(
    reader: Reader, tables: Sequence[Callable[[], Table]], semivalue: Semivalue, order: int, n_jobs: int | None
) -> Iterator[Solution]:
    def run(make: Callable[[], Table]) -> Solution:
        with np.errstate(all="ignore"):  # overflow is told by the certificate
            return reader.answer(make(), semivalue, order)

    if n_jobs in (None, 1) or len(tables) < 2 or reader.threads_inside:
        return map(run, tables)
    return map_in_threads(run, tables, n_jobs)


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
    background, std_error = reader.background, solution.std_error
    return Explanation(
        **{name: getattr(solution, name) for name in _SAME_NAMES},
        values=solution.values[:, : reader.n_players],
        baseline=solution.empty,
        std_error=None if std_error is None else std_error[:, : reader.n_players],
        data=table.native,
        feature_names=reader.player_names,
        output_names=None if reader.single_output else reader.output_names,
        index=semivalue.name,
        order=order,
        sets=player_sets(reader.n_players, order) if order > 1 else None,
        set_values=solution.values if order > 1 else None,
        set_std_error=std_error if order > 1 else None,
        value_function=reader.value_function,
        unit=reader.unit,
        model_name=reader.model_name,
        error_bound=np.broadcast_to(solution.error_bound, (table.n_rows,)),
        seconds=seconds,
        background_size=None if background is None else background.n_rows,
        groups=_groups(reader),
        covariances=solution.covariance,
        stability_bound=reader.stability(table) if semivalue.name == "shapley" else None,
        **facts,
    )


def mask_facts(check: MaskCheck | None) -> dict[str, Any]:
    """Return what an explanation carries of its coalitions that were compared with the model."""
    if check is None:
        return {}
    return {
        "mask_difference": check.difference,
        "mask_tolerance": check.tolerance,
        "n_masks": check.n_masks,
        "mask_rows": check.rows,
    }


def _nothing(reader: Reader, order: int) -> Solution:
    """Return the solution of no rows."""
    tail = () if reader.single_output else (reader.n_outputs,)
    part = Solution.zeros(0, len(player_sets(reader.n_players, order)), *tail)
    return part.beside(part.full, np.zeros(0), efficient=False)


def _groups(reader: Reader) -> dict[str, tuple[str, ...]] | None:
    if all(len(columns) == 1 for columns in reader.players):
        return None
    return {
        name: tuple(reader.feature_names[j] for j in columns)
        for name, columns in zip(reader.player_names, reader.players, strict=True)
        if len(columns) != 1
    }
