"""Cut rows into blocks within the memory limit, and forecast their cost."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import numpy as np

from exactshap._runtime.machine import Sample, clocked, clocked_waiting, physical_memory, seconds_by_size, seconds_per_unit
from exactshap._runtime.progress import duration
from exactshap._runtime.slices import slices
from exactshap._runtime.threads import worker_count
from exactshap._runtime.words import fields_html
from exactshap.errors import BudgetError, InputError, InputTypeError, memory_needed, rows_from
from exactshap.explainer._certify import Certifier
from exactshap.explainer._results import wrap
from exactshap.explainer._solve import TIMED_ROWS, Cut, predict
from exactshap.frames import Table, as_table
from exactshap.readers import Reader, Request, read
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost, count_sets

# Rows searched for odd cells in one go; rows timed for the patterns of these, at most
SEARCHED_ROWS, MOST_PATTERNS = 65_536, 16
# Pieces of the rows for each thread: with fewer, some threads would wait for the last one.
PIECES = 4
SMALL_RESULT = 2.0**26  # bytes that every machine has
# Pieces of a full block at most: smaller ones take longer to hand out than to solve
MOST_PIECES = 16
# Rows, players and order of the explanations that are timed for each set and for each cell of values, which is dearer in sets of players
SIZES_TIMED = {"sets": (1, 200, 2), "cells of players": (20_000, 20, 1), "cells of sets": (200, 100, 2)}
BYTES_OF_A_SET = 72.0  # a pair of players as a tuple
# Seconds of a prediction from which on none of more rows is timed.
PATIENCE = 0.002


@dataclass(frozen=True, repr=False)
class Forecast:
    """Forecast the cost of an explanation; made by :meth:`exactshap.Explainer.plan`.

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
    row_group : float
        Bytes of the working memory that reading the largest row group of files takes; 0 where rows are in memory.
    """

    method: str
    exact: bool
    seconds: float
    memory: float
    result: float
    block_rows: int
    advice: str = ""
    row_group: float = 0.0

    @property
    def _memory(self) -> str:
        of_group = f" ({self.row_group / 2**20:.0f} of them for a row group of the files)" if self.row_group else ""
        return f"{self.memory / 2**20:.0f} MiB of working memory{of_group}"

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
            "memory": f"{self._memory}, in blocks of {self.block_rows} rows",
            "result": f"{self.result / 2**20:.1f} MiB",
            **({"less": self.advice} if self.advice else {}),
        }
        return fields_html("Forecast", facts)

    def __str__(self) -> str:
        return (
            f"{self.method} ({self._kind}): about {duration(self.seconds)} on one thread, {self._memory},"
            f" {self.result / 2**20:.1f} MiB of result, blocks of {self.block_rows} rows"
            f"{'; ' if self.advice else ''}{self.advice}"
        )


def forecast(reader: Reader, certifier: Certifier, table: Table, semivalue: Semivalue, order: int, limit: float) -> Forecast:
    """Say which method will run and what it will cost: pieces of the work are timed, no row is explained.

    The background is predicted, which the first explanation then need not.
    """
    check_result(reader, table.n_rows, order)
    _refuse_odd_rows(reader, table, semivalue, order)
    n_rows, block = table.n_rows, block_size(reader, table.n_rows, order, limit)
    result = result_bytes(reader, n_rows, order)
    if not n_rows:
        return Forecast("nothing to do", True, 0.0, 0.0, result, block)
    # The background's prediction is work that the first explanation needs anyway: it is not part of the forecast.
    certifier.prepare()
    few = table.take(slice(0, min(TIMED_ROWS, block, n_rows)))
    # Rows of the certificate are predicted as well, and its hybrids are solved.
    n_others, comparing = certifier.cost(few, n_rows, semivalue, order)
    cost = reader.cost(few, n_rows, semivalue, order, block) + _predictions(reader, few, n_rows + n_others, -(-n_rows // block))
    # v(D), the magnitude for the tolerance, and what compares predictions with them
    answers = 8.0 * n_rows * (2.0 * len(reader.traits.output_names) + 1.0)
    overhead = comparing.seconds + _seconds_around(reader.traits.n_players, n_rows * reader.traits.n_outputs, order)
    calls = reader.traits.calls
    advice = "" if calls is None else calls.advice
    # Names of sets are Python tuples, nine times as large as their values; comparing a question makes them a second time.
    tuples = BYTES_OF_A_SET * count_sets(reader.traits.n_players, order) * (2 if comparing.bytes else 1) if order > 1 else 0.0
    memory = max(cost.bytes, comparing.bytes) + answers + tuples
    return Forecast(cost.method, cost.exact, cost.seconds + overhead, memory, result, block, advice)


def _refuse_odd_rows(reader: Reader, table: Table, semivalue: Semivalue, order: int) -> None:
    """Refuse rows that the call would: one row of each pattern of missing, infinite and very large cells is timed as the first are."""
    seen: set[bytes] = set()
    for start in range(0, table.n_rows, SEARCHED_ROWS):
        odd = _odd_cells(table.take(slice(start, start + SEARCHED_ROWS)))
        for i in np.flatnonzero(odd.any(axis=1)):
            # Models refuse by kind of cell and column, so that one row stands for all rows of its pattern.
            pattern = odd[i].tobytes()
            if pattern not in seen and len(seen) < MOST_PATTERNS:
                seen.add(pattern)
                with rows_from(start + int(i), table.row_label):
                    row = table.take([start + int(i)])
                    reader.cost(row, 1, semivalue, order, 1)
                    reader.predict(row)


def _odd_cells(rows: Table) -> np.ndarray:
    """Return 0 for ordinary cells, 1 for missing, 2 for non-finite ones. The last are not finite in single precision."""
    try:
        numbers = rows.numeric()
    except (InputError, InputTypeError):
        # Text, of which the model itself decides.
        if rows.n_columns == 1:
            return np.zeros((rows.n_rows, 1), np.int8)
        # One column of text keeps a whole table from being numeric: columns are looked at one by one.
        return np.concatenate([_odd_cells(rows.select([j])) for j in range(rows.n_columns)], axis=1)
    return np.where(np.isnan(numbers), 1, 2 * (np.abs(numbers) > np.finfo(np.float32).max)).astype(np.int8)


def _predictions(reader: Reader, few: Table, n_rows: int, n_calls: int) -> Cost:
    """Return the cost of the model's own predictions."""
    # A function may wait for a server, which takes no processor time.
    timed = clocked if reader.traits.calls is None else clocked_waiting
    one, each = seconds_by_size(
        lambda n: reader.predict(few.take(np.arange(n) % few.n_rows)), n_rows, patience=PATIENCE, n_units=n_rows, timed=timed
    )
    # The first row of each call pays for the call itself.
    return Cost(n_calls * one + (n_rows - n_calls) * each)


def _seconds_around(n_players: int, n_rows: int, order: int) -> float:
    """Return the seconds of every explanation without the model: checks, tables, certificates, names of sets."""

    def each(unit: str) -> float:
        return seconds_per_unit(f"around an explanation, {unit}", lambda: _after_solving(*SIZES_TIMED[unit]))

    _, run = _after_solving(1, 2, 1)
    run()  # the first of a process imports what the call needs
    once, n_sets = clocked(run), count_sets(n_players, order)
    if order == 1:
        return once + n_sets * n_rows * each("cells of players")
    return once + n_sets * (each("sets") + n_rows * each("cells of sets"))


def _after_solving(n_rows: int, n_players: int, order: int) -> Sample:
    """Return what follows once a sum of columns is solved, in cells of its values."""
    from exactshap.readers import AdditiveModel

    index = find("shapley" if order == 1 else "k-sii")
    model = AdditiveModel([((j,), np.ravel) for j in range(n_players)])
    reader = read(model, Request(background=as_table(np.ones((1, n_players)))))
    table, certifier = as_table(np.ones((n_rows, n_players))), Certifier(reader)
    solution, prediction = reader.solve(table, index, order), predict(reader, table)

    def run() -> None:
        certified = certifier.certify(table, solution, prediction, None, index, order)
        wrap(reader, table, solution, certified, index, order).certificate()

    return float(n_rows * count_sets(n_players, order)), run


def cut_rows(reader: Reader, n_rows: int, order: int, limit: float, n_jobs: int | None) -> Cut:
    """Cut a request into blocks and pieces for threads, or refuse it."""
    check_result(reader, n_rows, order)
    step = block_size(reader, n_rows, order, limit)
    blocks = slices(n_rows, step)
    # A reader with threads of its own takes them in ``solve``: with these there would be more than ``n_jobs``.
    jobs = 1 if reader.traits.uses_threads or n_rows < 2 else worker_count(n_jobs)
    if jobs == 1:
        return Cut(blocks, step, 1)
    piece = min(step, max(-(-n_rows // (PIECES * jobs)), reader.traits.block_rows // MOST_PIECES, 1))
    # Pieces become smaller first; threads become fewer only where single rows are still too much together.
    while piece > 1 and jobs * reader.memory(piece, order) > limit:
        piece = -(-piece // 2)
    fits = int(limit // max(1.0, reader.memory(piece, order)))
    return Cut(blocks, piece, max(1, min(jobs, fits)))


def block_size(reader: Reader, n_rows: int, order: int, limit: float) -> int:
    """Return the number of rows to solve at a time, limited by memory and by the reader."""
    most = min(reader.traits.block_rows, max(1, n_rows))
    if reader.memory(most, order) <= limit:
        return most
    # Memory grows with the rows, so that the largest number of rows that fits is found by bisection.
    fits = bisect.bisect_right(range(1, most + 1), limit, key=lambda rows: reader.memory(rows, order))
    if fits:
        return fits
    advice = reader.traits.advice_on_memory
    raise BudgetError(
        f"Explaining one row at order {order} does not fit in memory_limit",
        f"It would need {memory_needed(reader.memory(1, order), limit)}",
        advice if order == 1 else f"{advice}; a lower order= needs less",
    )


def result_bytes(reader: Reader, n_rows: int, order: int) -> float:
    """Return the bytes of values, and of baseline, prediction, residual, tolerance and error bound of each row."""
    n_outputs = len(reader.traits.output_names)
    return 8.0 * n_rows * ((count_sets(len(reader.traits.players), order) + 3.0) * n_outputs + 2.0)


def check_result(reader: Reader, n_rows: int, order: int) -> None:
    """Refuse a result that this machine cannot hold."""
    result = result_bytes(reader, n_rows, order)
    if result > SMALL_RESULT and result > 0.8 * physical_memory():
        n_sets = count_sets(reader.traits.n_players, order)
        raise BudgetError(
            f"The result of order {order} does not fit in this machine",
            f"{n_rows} rows x {n_sets} sets x {reader.traits.n_outputs} outputs are {result / 2**30:.3g} GiB",
            "Explain fewer rows at a time (scale.explain_dataset writes them to files), or group columns with groups=",
        )
