"""The residuals that trees of a boosted ensemble meet, each what those before it have left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.threads import map_in_threads, worker_count
from exactshap.decompose.r2._layout import EnsembleLayout
from exactshap.trees import prepared
from exactshap.trees.ensemble import sum_leaf_values

__all__ = ["bytes_of_a_wave", "in_waves"]

WAVE_BYTES = 2**27  # of residuals that are worked out at a time,
WAVE_CHUNKS = 8  # or of so many chunks for each thread: some wait for the last one of a wave
MET_ROWS = 1024  # rows of a task that takes them through the trees, whose nodes stay in a core's caches


def in_waves(
    layout: EnsembleLayout,
    chunks: list[tuple[int, int]],
    run: Callable[[tuple[int, int], np.ndarray], np.ndarray],
    residual: np.ndarray,
    averaged: bool,
    n_jobs: int | None,
) -> Iterator[np.ndarray]:
    """Yield ``run(chunk, met)`` of all chunks from threads, of so many at a time that the residuals which they meet stay in memory."""
    size = _chunks_of_a_wave(layout.n_rows, n_jobs)
    for first in range(0, len(chunks), size):
        wave = chunks[first : first + size]
        tasks = zip(wave, _met_by_chunks(layout, wave, residual, averaged, n_jobs), strict=True)
        yield from map_in_threads(lambda task: run(*task), tasks, n_jobs)


def bytes_of_a_wave(layout: EnsembleLayout) -> float:
    """Return the bytes of the residuals that are held at once, at most; one thread holds those of one chunk."""
    n_chunks = (
        min(layout.trees.n_trees, _chunks_of_a_wave(layout.n_rows, layout.n_jobs)) if worker_count(layout.n_jobs) > 1 else 1
    )
    return 8.0 * layout.n_rows * n_chunks


def _chunks_of_a_wave(n_rows: int, n_jobs: int | None) -> int:
    return max(WAVE_CHUNKS * worker_count(n_jobs), WAVE_BYTES // max(1, 8 * n_rows))


def _met_by_chunks(
    layout: EnsembleLayout, chunks: list[tuple[int, int]], residual: np.ndarray, averaged: bool, n_jobs: int | None
) -> Sequence[np.ndarray]:
    """Return the residuals (n_rows,) that the first tree of each chunk meets, and move ``residual`` on to the end.

    .. math:: r_{k+1,i} = r_{ki} - v_k(x_i)

    Threads take rows through the trees; of an average all trees meet the same.
    """
    if averaged:
        return [residual] * len(chunks)
    met = np.empty((len(chunks), layout.n_rows))
    trees, routes = layout.trees, layout.trees.routes.value
    ways = [Handle(routes._replace(tree_start=trees.tree_start[first : last + 1])) for first, last in chunks]

    def run(start: int) -> None:
        rows = slice(start, start + MET_ROWS)
        X, negative = prepared(trees, layout.X[rows]), -residual[rows, None]  # leaves are added to it
        for of_chunk, way in zip(met, ways, strict=True):
            of_chunk[rows] = -negative[:, 0]
            sum_leaf_values(X, way, negative)
        residual[rows] = -negative[:, 0]

    for _ in map_in_threads(run, range(0, layout.n_rows, MET_ROWS), n_jobs):
        pass
    return list(met)
