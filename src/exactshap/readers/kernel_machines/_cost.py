"""What a kernel machine costs: a few rows with a few terms and background rows are solved, and multiplied."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap.readers.kernel_machines._expansion import cut_terms
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost
from exactshap.solvers.product import quadrature_units, solve_terms

__all__ = ["factor_seconds", "plain_cost"]

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
