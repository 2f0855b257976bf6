"""Radial kernels of a machine: one sweep over the distances serves all Gaussians of their mixtures."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap.kernels import ScaledMixture
from exactshap.readers.kernel_machines.machine import BoundMachine, RadialTerms
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part
from exactshap.solvers.product import PreparedMixture, mixture_rules, prepare_mixture, solve_mixture

__all__ = ["radial_cost", "radial_memory", "solve_radial"]

BLOCK_VALUES = 2**18  # distances of one sub-block of rows: 2 MiB
SAMPLE_TERMS, SAMPLE_BACKGROUND = 64, 4


def solve_radial(machine: BoundMachine, values: np.ndarray, semivalue: Semivalue) -> Part:
    """Return the sum of all terms with radial kernels, for single players."""
    pieces = (piece for terms in machine.expansion.radial for piece in terms.cut(_width(machine)))
    parts = (
        _rows(machine, piece, values, weights, outside, semivalue)
        for piece in pieces
        for weights, outside in _background(machine, piece)
    )
    return functools.reduce(operator.add, parts)


def _rows(
    machine: BoundMachine,
    terms: RadialTerms,
    values: np.ndarray,
    weights: np.ndarray,
    outside: np.ndarray,
    semivalue: Semivalue,
) -> Part:
    """Solve all rows with a piece of the terms and a tile of the background."""
    rules, mixture = mixture_rules(semivalue, machine.n_players), _prepared(terms.kernel)
    step = max(1, BLOCK_VALUES // max(1, terms.points.shape[1] * max(machine.n_players, machine.n_columns)))
    parts = (
        solve_mixture(rules, mixture, machine.distances(terms, values[i : i + step]), outside, weights, terms.coefficients)
        for i in range(0, len(values), step)
    )
    return Part.join(parts, len(values)) if len(values) else Part.zeros(0, machine.n_players, machine.n_outputs)


@functools.lru_cache(maxsize=64)
def _prepared(kernel: ScaledMixture) -> PreparedMixture:
    return prepare_mixture(kernel.mixture.rates, kernel.mixture.weights)


def _width(machine: BoundMachine) -> int:
    """Return how many terms a tile has, so that their background fits."""
    return max(8, machine.tile_values // max(1, len(machine.mixture) * machine.n_columns))


def _background(machine: BoundMachine, terms: RadialTerms) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield weights and distances (n_background, n_players, n_terms) of the background, zeros where absent factors are 1."""
    if not machine.replaces_columns:
        yield np.ones(1), np.zeros((1, machine.n_players, terms.points.shape[1]))
        return
    rows, weights = machine.rows_and_weights()
    step = max(1, machine.tile_values // max(1, terms.points.shape[1] * machine.n_columns))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        yield np.array(weights[some]), np.ascontiguousarray(machine.distances(terms, rows[some]))


def radial_memory(machine: BoundMachine, n_rows: int) -> float:
    """Return the bytes of the distances of a tile of the background and of a block of rows, and of the sums."""
    columns, width = machine.n_columns, min(_width(machine), machine.n_radial)
    tile = min(max(machine.tile_values, width * columns), len(machine.mixture) * width * columns)
    rows = min(max(BLOCK_VALUES, width * columns), n_rows * width * columns)
    sums = n_rows * machine.n_outputs * (3.0 * machine.n_players + 8.0)
    return 8.0 * ((1.0 + float(machine.has_groups)) * (2.0 * tile + rows) + sums)


def radial_cost(machine: BoundMachine, few: np.ndarray, n_rows: int, semivalue: Semivalue) -> Cost:
    """Solve a few rows with a few terms and background rows, and multiply: cost is linear in all three."""
    total = Cost()
    for terms in machine.expansion.radial:
        piece = next(terms.cut(SAMPLE_TERMS))
        weights, outside = next(_background(machine, piece))
        some = slice(0, SAMPLE_BACKGROUND)

        def sample(
            piece: RadialTerms = piece, weights: np.ndarray = weights[some], outside: np.ndarray = outside[some]
        ) -> None:
            _rows(machine, piece, few, weights, outside, semivalue)

        sample()  # the first loads the kernel
        n_pairs = len(weights[some]) * piece.points.shape[1]
        share = len(machine.mixture) * terms.points.shape[1] / n_pairs
        total += Cost(
            min(clocked(sample) for _ in range(2)) / len(few) * share * n_rows, method="quadrature of a mixture of Gaussians"
        )
    return total
