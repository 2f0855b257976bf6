"""What a kernel machine costs: a few rows with a few terms and background rows are solved, and multiplied."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap.readers.kernel_machines._expansion import cut_terms
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, player_sets
from exactshap.solvers.product import quadrature_units, solve_terms

__all__ = ["BACKGROUND_VALUES", "BLOCK_VALUES", "factor_seconds", "machine_memory", "plain_cost"]

BLOCK_VALUES = 2**18  # factors of one sub-block of rows: 2 MiB, what stays in the second cache of a core
BACKGROUND_VALUES = 2**22  # factors of one tile of background rows x training rows: 32 MiB
MANY_COLUMNS = 24  # beyond, rows differ in their numbers of nodes, and are copied by it
SAMPLE_ROWS, SAMPLE_UNITS = 4, 2e6  # explained rows of a sample, and its work: some milliseconds
SAMPLE_TERMS, SAMPLE_BACKGROUND = (32, 512), 16


def plain_cost(reader: Any, values: np.ndarray, n_rows: int, n_blocks: int, semivalue: Semivalue, order: int) -> Cost:
    """Return the cost of quadrature: cost is linear in rows, terms and background rows, and those of a sample are real ones."""
    rows = values[:SAMPLE_ROWS]
    n_background, weights = reader._mixture()
    pairs = SAMPLE_UNITS / SAMPLE_ROWS / quadrature_units(reader.n_players, semivalue, order)
    total = Cost()
    for block in reader.expansion.blocks:
        n_terms = block.coefficients.shape[1]
        part = next(cut_terms(block, int(np.clip(pairs, *SAMPLE_TERMS))))
        width = part.coefficients.shape[1]
        m = int(np.clip(pairs / width, 1, min(SAMPLE_BACKGROUND, n_background)))
        absent = np.ascontiguousarray(reader._absent(part, slice(0, m), width))
        inside, mean = reader._grouped(part.factors(rows)), np.array(weights[:m])
        solve = functools.partial(solve_terms, inside, absent, part.coefficients, mean, semivalue, order)
        method = solve().method  # the first loads the kernels
        sweep = min(clocked(solve) for _ in range(2)) / len(rows) / m * n_background
        factors = factor_seconds(reader, part, rows) * (n_blocks * _moving(reader, n_background) + n_rows)
        total += Cost((n_rows * sweep + factors) * n_terms / width, method=method if not total.method else "")
    return total


def factor_seconds(reader: Any, part: Any, rows: np.ndarray) -> float:
    """Return the seconds of the factors of one row with the terms of a part."""
    return min(clocked(lambda: reader._grouped(part.factors(rows))) for _ in range(2)) / len(rows)


def _moving(reader: Any, n_background: int) -> float:
    """Return how many background rows have factors of their own."""
    return 0.0 if reader.value_function in ("functional", "normalized") else float(n_background)


def machine_memory(reader: Any, n_rows: int, order: int) -> float:
    """Return the bytes of tiles of the background, of a block of factors of rows, and of the sums of all rows."""
    columns, n_background = reader.expansion.n_columns, reader._mixture()[0]
    width = max((block.coefficients.shape[1] for block in reader.expansion.blocks), default=0)
    width = min(width, max(1, BACKGROUND_VALUES // (8 * columns)))
    tile = min(max(BACKGROUND_VALUES, width * columns), n_background * width * columns)
    tiles = 1.0 if tile < BACKGROUND_VALUES // 2 else 2.0  # the next one is made while the last is held
    rows = min(max(BLOCK_VALUES, width * columns), n_rows * width * columns)
    sets = len(player_sets(reader.n_players, order))
    sums = n_rows * (3.0 * reader.expansion.n_outputs * sets + 2.0 * columns) + 32.0 * (6 * reader.n_players + sets)
    return 8.0 * (_copies(reader) * (tiles * tile + rows) + 0.3 * float(columns > MANY_COLUMNS) * rows + sums)


def _copies(reader: Any) -> float:
    """Return how many arrays of factors there are at once: products of columns and sums of exponents need a second."""
    parts = [part.component for part in reader.expansion.parts]
    summed = any(part.absolute is not None or part.chi2 is not None or part.cauchy for part in parts)
    return 1.1 + float(summed) + float(any(len(columns) != 1 for columns in reader.players))
