"""How rows are cut into blocks under the memory there is, and what they will cost."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from exactshap._runtime.calibration import Sample, clocked, seconds_per_unit
from exactshap._runtime.memory import physical_memory
from exactshap._runtime.progress import duration
from exactshap._runtime.threads import worker_count
from exactshap._runtime.words import fields_html
from exactshap.errors import BudgetError, InputError, InputTypeError, memory_needed, message, rows_from
from exactshap.explainer._solve import Cut, facts_of, wrap
from exactshap.frames import Table, as_table
from exactshap.readers import FEW_AT_ONCE, Reader, Request, read
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost, player_sets

__all__ = ["Forecast", "cut_rows", "forecast", "refused_beyond_memory"]

LOOKED_AT, MOST_PATTERNS = 65_536, 16  # rows whose cells are looked at in one go; rows that a plan times for them, at most
TIMED_ROWS = 16  # at most, on which a reader times pieces of the work
ENOUGH_BLOCKS, ENOUGH_EVEN = (
    4,
    2,
)  # for each thread: with fewer, some would wait for the last; fewer where all rows take the same time
# rows of a block, or so, of a model that threads ask themselves: what it and we make of them stays in a core's caches, and the threads,
# which hold the interpreter between its columns, seldom wait for each other
CACHED_BLOCK = 10_240
ALIGNED = 1024  # rows that blocks of the same bits are multiples of: BLAS takes some at a time
QUICK = 0.005  # seconds of a prediction up to which it is timed again for more rows


@dataclass(frozen=True, repr=False)
class Forecast:
    """What an explanation will cost; printed, it is a sentence. Made by :meth:`exactshap.Explainer.plan`.

    Attributes
    ----------
    method : str
        As ``explanation.method`` will say.
    exact : bool
    seconds : float
        On one thread.
    memory, result : float
        Bytes of working memory, beyond what the explainer holds already, and of the result.
    block_rows : int
        Rows solved at a time.
    advice : str
        What would ask less of a function, where nobody chose how much.
    """

    method: str
    exact: bool
    seconds: float
    memory: float
    result: float
    block_rows: int
    advice: str = ""

    @property
    def _kind(self) -> str:
        other = "exact for an approximated game" if "enumeration" in self.method else "sampled, with standard errors"
        return "exact" if self.exact else other

    def __repr__(self) -> str:
        return f"Forecast: {self}"

    def _repr_html_(self) -> str:
        facts = {
            "method": f"{self.method} ({self._kind})",
            "time": f"about {duration(self.seconds)} on one thread",
            "working memory": f"{self.memory / 2**20:.0f} MiB, in blocks of {self.block_rows} rows",
            "result": f"{self.result / 2**20:.1f} MiB",
            **({"less": self.advice} if self.advice else {}),
        }
        return fields_html("Forecast", facts)

    def __str__(self) -> str:
        return (
            f"{self.method} ({self._kind}): about {duration(self.seconds)} on one thread, {self.memory / 2**20:.0f} MiB of working"
            f" memory, {self.result / 2**20:.1f} MiB of result, blocks of {self.block_rows} rows"
            f"{'; ' if self.advice else ''}{self.advice}"
        )


def forecast(
    reader: Reader, table: Table, semivalue: Semivalue, order: int, limit: float, first: tuple[Table, int, int] | None
) -> Forecast:
    """Say which method will run and what it will cost: pieces of the work are timed, no row is explained.

    ``first`` are rows that are solved before the first explanation, as the certificate asks: some of them, how many, and how many
    at a time.
    """
    check_result(reader, table.n_rows, order)
    _refuse_odd_rows(reader, table, semivalue, order)
    n_rows, block = table.n_rows, block_size(reader, table.n_rows, order, limit)
    result = result_bytes(reader, n_rows, order)
    if not n_rows:
        return Forecast("nothing to do", True, 0.0, 0.0, result, block)
    cost = _cost(reader, table, n_rows, block, semivalue, order)
    before = Cost() if first is None else _cost(reader, *first, find("shapley"), 1)
    answers = result if n_rows > block else 0.0  # blocks are held until they are joined
    overhead = seconds_per_unit("explanation", _explanation)
    asks = reader.asks()
    advice = "" if asks is None else asks.advice
    seconds, held = cost.seconds + before.seconds + overhead, max(cost.bytes + answers, before.bytes)  # one after the other
    return Forecast(cost.method, cost.exact, seconds, held, result, block, advice)


def _refuse_odd_rows(reader: Reader, table: Table, semivalue: Semivalue, order: int) -> None:
    """Refuse rows that the call would: one row of each pattern of missing, infinite and very large cells is timed as the first are."""
    seen: set[bytes] = set()
    for start in range(0, table.n_rows, LOOKED_AT):
        odd = np.stack([_odd_cells(table.take(slice(start, start + LOOKED_AT)), j) for j in range(table.n_columns)], axis=1)
        for i in np.flatnonzero(odd.any(axis=1)):
            pattern = odd[i].tobytes()
            if pattern not in seen and len(seen) < MOST_PATTERNS:
                seen.add(pattern)
                with rows_from(start + int(i), table.row_label):
                    _cost(reader, table.take([start + int(i)]), 1, 1, semivalue, order)


def _odd_cells(table: Table, j: int) -> np.ndarray:
    """Return 0 for a cell that any model takes, 1 for a missing one, 2 for one that is not finite in single precision."""
    try:
        numbers = table.select([j]).numeric()[:, 0]
    except (InputError, InputTypeError):  # text, of which the model itself decides
        return np.zeros(table.n_rows, np.int8)
    return np.where(np.isnan(numbers), 1, 2 * (np.abs(numbers) > np.finfo(np.float32).max)).astype(np.int8)


def _cost(reader: Reader, rows: Table, n_rows: int, block: int, semivalue: Semivalue, order: int) -> Cost:
    few = rows.take(slice(0, min(TIMED_ROWS, block, n_rows)))
    return reader.cost(few, n_rows, semivalue, order, block) + _predictions(reader, few, n_rows, -(-n_rows // block))


def _predictions(reader: Reader, few: Table, n_rows: int, n_blocks: int) -> Cost:
    """Return the cost of the model's own predictions."""
    row = few.take(slice(0, 1))
    one = clocked(lambda: reader.predict(row))
    each = 0.0
    if one < QUICK:
        one, some = (min(clocked(lambda rows=rows: reader.predict(rows)) for _ in range(2)) for rows in (row, few))  # type: ignore[misc]
        each = max(0.0, some - one) / max(1, few.n_rows - 1)
    return Cost(n_blocks * one + (n_rows - n_blocks) * each)


def _explanation() -> Sample:
    """Return what every explanation costs, whatever the model: checks, tables, certificates."""
    from exactshap.readers import AdditiveModel

    rows, shapley = as_table(np.ones((1, 2))), find("shapley")
    reader = read(AdditiveModel([((0, 1), lambda values: values.sum(axis=1))]), Request(background=rows))

    def run() -> None:
        answer = reader.answer(as_table(rows.native), shapley, 1)
        wrap(reader, rows, answer, shapley, 1, facts_of(reader, shapley, 1), seconds=0.0).certificate()

    return 1.0, run


def cut_rows(reader: Reader, n_rows: int, order: int, limit: float, n_jobs: int | None) -> Cut:
    """Cut the rows of a request into blocks; refuse what cannot fit."""
    check_result(reader, n_rows, order)
    step = block_size(reader, n_rows, order, limit)
    jobs = worker_count(n_jobs)
    if reader.predicts_row_by_row and (jobs > 1 or n_rows > step):
        n_blocks = min(jobs * max(1, round(n_rows / (jobs * CACHED_BLOCK))), n_rows // FEW_AT_ONCE)  # as many for each thread
        step = min(step, max(1, -(-n_rows // max(1, n_blocks))))
    elif reader.predicts_in_pieces and n_rows > step and jobs > 1:
        step = _of_one_size(reader, n_rows, step, jobs)
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    return Cut(blocks, *n_workers(reader, step, len(blocks), order, limit, n_jobs))


def _of_one_size(reader: Reader, n_rows: int, step: int, jobs: int) -> int:
    """Return how many rows of blocks of at most ``step`` make as many of about one size for each thread, with the bits of such blocks."""
    even = -(-n_rows // (jobs * -(-n_rows // (jobs * step))))
    if reader.shares_predictions(even):  # however they are cut
        return even
    return step if step % ALIGNED else min(step, -(-even // ALIGNED) * ALIGNED)


def block_size(reader: Reader, n_rows: int, order: int, limit: float) -> int:
    """Return how many rows are solved at a time: as many as fit, and as the reader likes."""
    most = min(reader.block_rows, max(1, n_rows))
    if reader.memory(most, order) <= limit:
        return most
    fits = bisect.bisect_right(range(1, most + 1), limit, key=lambda rows: reader.memory(rows, order))
    if fits:
        return fits
    raise BudgetError(
        message(
            f"Explaining one row at order {order} does not fit in memory_limit",
            f"It would need {memory_needed(reader.memory(1, order), limit)}",
            reader.memory_advice(),
        )
    )


def n_workers(reader: Reader, block: int, n_blocks: int, order: int, limit: float, n_jobs: int | None) -> tuple[int, int]:
    """Return how many blocks are solved side by side, and on how many threads one of them: the other number is 1.

    Few blocks follow one another, and their rows share the threads, unless threads may ask the model about rows of their own; those,
    too, of which several do not fit in memory.
    """
    if reader.threads_inside or (jobs := worker_count(n_jobs)) == 1:
        return 1, 1

    def fit(rows: int) -> int:
        return int(min(jobs, max(1.0, limit // max(1.0, reader.memory(rows, order)))))

    of_each = ENOUGH_EVEN if reader.rows_are_cheap else ENOUGH_BLOCKS
    enough = 2 if reader.predicts_row_by_row or reader.predicts_in_pieces else of_each * jobs
    at_once = fit(block) if n_blocks >= enough or block == 1 else 1
    shared = fit(block // jobs) if block > 1 else 1
    return (at_once, 1) if at_once >= shared else (1, shared)


def result_bytes(reader: Reader, n_rows: int, order: int) -> float:
    """Return the bytes of the values."""
    return 8.0 * n_rows * len(player_sets(reader.n_players, order)) * reader.n_outputs


@contextmanager
def refused_beyond_memory(what: str) -> Iterator[None]:
    """Say what to do where memory ends although the forecast fitted: others use it, too."""
    try:
        yield
    except MemoryError as error:
        if isinstance(error, BudgetError):
            raise
        do = "Pass fewer rows at a time; scale.explain_dataset explains files of any size into files"
        raise BudgetError(message(f"{what} does not fit in memory", f"{error}" or "Got a MemoryError", do)) from error


def check_result(reader: Reader, n_rows: int, order: int) -> None:
    """Refuse a result that this machine cannot hold: values, and baseline, prediction, residual and tolerance of each row."""
    result = result_bytes(reader, n_rows, order) + 8.0 * 4 * n_rows * reader.n_outputs
    if result > 0.8 * physical_memory():
        n_sets = len(player_sets(reader.n_players, order))
        raise BudgetError(
            message(
                f"The result of order {order} does not fit in this machine",
                f"{n_rows} rows x {n_sets} sets x {reader.n_outputs} outputs are {result / 2**30:.3g} GiB",
                "Explain fewer rows at a time (scale.explain_dataset writes them to files), or group columns with groups=",
            )
        )
