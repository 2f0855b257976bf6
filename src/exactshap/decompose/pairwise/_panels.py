"""Cut sums over pairs of rows into tasks, and show their progress."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.progress import Progress, duration, progress_text
from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.pairwise._factors import LANES, Factors, PanelBlock, fill_contributions
from exactshap.solvers.product import GradedRules

# Rows of one task: a constant, so that any number of threads adds up in the same order.
PANEL_ROWS = 128
# Rows of a block of pairs: a task of seconds, and a megabyte or so of columns.
TASK_ROWS = 4096
# Tasks submitted at a time: an executor's map would hold the arguments of all.
TASKS_AT_ONCE = 128
# A block of contributions stays in the second-level cache.
_BLOCK_BYTES = 1 << 20
Run = Callable[..., Iterable[Any]]  # an ordered map
# Takes the number of pairs that are done, where progress is shown.
_COUNT: ContextVar[Callable[[int], None] | None] = ContextVar("count", default=None)


@dataclass(frozen=True)
class BlockPair:
    """Name the pairs of one block of rows with another, or with itself."""

    first: tuple[int, int]
    second: tuple[int, int]

    @property
    def rows(self) -> np.ndarray:
        """Return the first block's rows, then those of a second block."""
        sides = [np.arange(*self.first)] if self.first == self.second else [np.arange(*self.first), np.arange(*self.second)]
        return np.concatenate(sides)

    @property
    def begin(self) -> int:
        """Return where the second block begins in ``rows``; 0 for a block with itself."""
        return 0 if self.first == self.second else self.first[1] - self.first[0]


def block_pairs(n_rows: int, boundary: int = 0, *, whole: bool) -> list[BlockPair]:
    """Cut all pairs of rows into tasks for any number of workers, or by samples if ``whole``; no block crosses ``boundary``."""
    cuts = sorted({*range(0, n_rows, n_rows if whole else TASK_ROWS), n_rows, boundary})
    blocks = list(itertools.pairwise(cuts))
    return [BlockPair(one, other) for place, one in enumerate(blocks) for other in blocks[place:]]


def run_in_waves(run: Callable[..., Iterable[Any]], function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
    """Yield ``function(task)`` in order, submitting a few tasks at a time."""
    # Python's own map is lazy already.
    if run is map:
        yield from map(function, tasks)
        return
    waiting = iter(tasks)
    while wave := list(itertools.islice(waiting, TASKS_AT_ONCE)):
        yield from run(function, wave)


def panels_of(n_rows: int) -> list[tuple[int, int]]:
    """Return the row ranges that threads share."""
    return list(itertools.pairwise([*range(0, n_rows, PANEL_ROWS), n_rows]))


def blocks_of(panel: tuple[int, int], n_rows: int, n_players: int, begin: int = 0) -> Iterator[PanelBlock]:
    """Cut a panel's pairs with later rows, those from ``begin`` on, into blocks that fit the cache."""
    width = LANES * (8 if n_players < 2 else 2 if n_players < 64 else 1)
    height = min(PANEL_ROWS, max(4, _BLOCK_BYTES // (8 * width * (n_players + 1))))
    start, stop = panel
    for top in range(start, stop, height):
        for left in range(max(top, begin), n_rows, width):
            yield PanelBlock(top, min(top + height, stop), left, min(left + width, n_rows))


def add_up(
    add: Callable[..., None],
    shapes: Sequence[tuple[int, ...]],
    n_rows: int,
    n_jobs: int | None,
    begin: int = 0,
    *,
    counted: bool = False,
) -> list[np.ndarray]:
    """Return arrays of some shapes, to which ``add(panel, *arrays)`` adds in threads. Pairs that are ``counted`` show the progress."""

    def of_panel(panel: tuple[int, int]) -> list[np.ndarray]:
        arrays = [np.zeros(shape) for shape in shapes]
        add(panel, *arrays)
        return arrays

    totals, panels = [np.zeros(shape) for shape in shapes], panels_of(begin or n_rows)
    count = _COUNT.get() if counted else None
    for (start, stop), arrays in zip(panels, map_in_threads(of_panel, panels, n_jobs), strict=True):
        for total, array in zip(totals, arrays, strict=True):
            total += array
        if count is not None:
            height = stop - start
            count(height * (n_rows - begin) if begin else height * (2 * n_rows - start - stop + 1) // 2)
    return totals


def add_up_gaussians(
    add: Callable[..., None], shapes: Sequence[tuple[int, ...]], factors: Factors, n_jobs: int | None, begin: int
) -> list[np.ndarray]:
    """Return what ``add(one, panel, *arrays)`` adds up for each Gaussian of a radial kernel, or for a product kernel itself."""
    parts = [
        (weight, add_up(functools.partial(add, one), shapes, factors.n_rows, n_jobs, begin, counted=True))
        for weight, one in factors.gaussians
    ]
    return [np.sum([weight * arrays[i] for weight, arrays in parts], axis=0) for i in range(len(shapes))]


def contributions(
    factors: Factors, rules: GradedRules, panel: tuple[int, int], begin: int
) -> Iterator[tuple[PanelBlock, np.ndarray]]:
    """Yield blocks with contributions of pairs (n_players + 1, height, padded), valid until the next one."""
    buffer = np.empty(0)
    for block in blocks_of(panel, factors.n_rows, factors.n_players, begin):
        shape = (factors.n_players + 1, block.height, block.padded)
        size = int(np.prod(shape))
        # One buffer for all blocks, as each is valid until the next one only.
        buffer = buffer if buffer.size >= size else np.empty(size)
        out = buffer[:size].reshape(shape)
        fill_contributions(factors.arrays, rules.arrays, block, out)
        yield block, out


@contextmanager
def showing(progress: Progress, statistic: str, n_rows: int, n_columns: int, n_blocks: int, n_kernels: int) -> Iterator[None]:
    """Show the progress of the enclosed sweeps over blocks of rows."""
    size = n_rows // n_blocks
    total = max(1, n_kernels * n_blocks * size * (size + 1) // 2)

    def text(done: int, seconds: float) -> str:
        left = f", about {duration(seconds * (total - done) / done)} left" if 0 < done < total else ""
        part = f"{min(1.0, done / total):.0%} of the pairs in {duration(seconds)}{left}"
        return f"{statistic} of {n_rows:,} rows x {n_columns} columns: {part}"

    with progress_text(progress, text) as line:
        done = 0

        def count(pairs: int) -> None:
            nonlocal done
            done += pairs
            line.reached(done)
            if callable(progress):
                progress(done, total)

        token = _COUNT.set(count)
        try:
            yield
        finally:
            _COUNT.reset(token)
