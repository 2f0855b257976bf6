"""Blocks of rows: solved one by one or on threads, with progress, and put together as an explanation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from exactshap._runtime.progress import Progress, counting
from exactshap.frames import Table
from exactshap.readers import Answer, Reader
from exactshap.results.explanation import Explanation
from exactshap.semivalues import Semivalue
from exactshap.solvers import player_sets

__all__ = ["solve_blocks", "wrap"]


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
    tasks = ((reader, table.take(rows), semivalue, order) for rows in blocks)
    if n_jobs in (None, 1) or len(blocks) < 2 or reader.threads_inside:
        return (_answer(*task) for task in tasks)
    from joblib import Parallel, delayed

    return Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(delayed(_answer)(*task) for task in tasks)


def _answer(reader: Reader, table: Table, semivalue: Semivalue, order: int) -> Answer:
    with np.errstate(all="ignore"):  # overflow is told by the certificate
        return reader.answer(table, semivalue, order)


def wrap(
    reader: Reader,
    table: Table,
    answers: list[Answer],
    semivalue: Semivalue,
    order: int,
    *,
    seconds: float,
    background_hash: str | None,
) -> Explanation:
    """Put the answers of all blocks under each other, with what is known about them."""
    sets = player_sets(reader.n_players, order)
    tail = () if reader.single_output else (reader.n_outputs,)
    solutions = [part.solution for part in answers]
    values = _rows([s.values for s in solutions], (0, len(sets), *tail))
    std_error = None
    if any(s.std_error is not None for s in solutions):  # rows that happen to be exact among sampled ones
        std_error = np.concatenate([np.zeros_like(s.values) if s.std_error is None else s.std_error for s in solutions])
    background = reader.background
    return Explanation(
        values=values[:, : reader.n_players],
        baseline=_rows([s.empty for s in solutions], (0, *tail)),
        prediction=_rows([part.prediction for part in answers], (0, *tail)),
        residual=_rows([part.residual(semivalue, order) for part in answers], (0, *tail)),
        tolerance=_rows([part.tolerance for part in answers], (0,)),
        std_error=None if std_error is None else std_error[:, : reader.n_players],
        data=table.native,
        feature_names=reader.player_names,
        output_names=None if reader.single_output else reader.output_names,
        index=semivalue.name,
        order=order,
        sets=sets if order > 1 else None,
        set_values=values if order > 1 else None,
        set_std_error=std_error if order > 1 else None,
        value_function=reader.value_function,
        unit=reader.unit,
        method=_longest([s.method for s in solutions]),
        model_name=reader.model_name,
        error_bound=_rows([np.broadcast_to(s.error_bound, (len(s.values),)) for s in solutions], (0,)),
        n_evaluations=sum(s.n_evaluations for s in solutions),
        seconds=seconds,
        background_size=None if background is None else background.n_rows,
        background_hash=background_hash,
        groups=_groups(reader),
        covariances=_optional_rows([s.covariance for s in solutions]),
        covariance_residual=_optional_rows([s.covariance_residual for s in solutions]),
        set_std=_optional_rows([s.set_std for s in solutions]),
        approximation_error=_optional_rows([s.approximation_error for s in solutions]),
        stability_bound=reader.stability(table) if semivalue.name == "shapley" else None,
    )


def _groups(reader: Reader) -> dict[str, tuple[str, ...]] | None:
    if all(len(columns) == 1 for columns in reader.players):
        return None
    return {
        name: tuple(reader.feature_names[j] for j in columns)
        for name, columns in zip(reader.player_names, reader.players, strict=True)
        if len(columns) != 1
    }


def _rows(parts: list[Any], empty_shape: tuple[int, ...]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(empty_shape)


def _optional_rows(parts: list[Any]) -> np.ndarray | None:
    """Join what every block has, or return None."""
    return np.concatenate(parts) if parts and all(part is not None for part in parts) else None


def _longest(methods: list[str]) -> str:
    return max(methods, key=lambda text: (len(text), text), default="")
