"""Choose what an observational game conditions on: rows, weights, and the kernel of the known columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.errors import InputError
from exactshap.readers.kernel_machines.machine import BoundMachine
from exactshap.solvers.rkhs import median_gaussian


def conditioning_rows(machine: BoundMachine) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn the conditional distribution from, and positive weights."""
    if machine.background is not None:
        background, weights = machine.rows_and_weights()
        return background[weights > 0], weights[weights > 0]
    parts = machine.expansion.parts
    points: list[np.ndarray] = []
    for part in parts:
        # Components of one kernel share the rows of the fit, which may repeat.
        if part.points is not None and not any(part.points is one or np.array_equal(part.points, one) for one in points):
            points.append(part.points)
    if not any(rows.size for rows in points):
        raise InputError(
            "value_function='observational' needs rows to learn the conditional distribution from",
            f"{machine.name} keeps no training rows (its kernel is linear or polynomial, or it has no support vectors)",
            "Pass background=X_train",
        )
    if len(points) == 1:
        return points[0].T, np.full(points[0].shape[1], 1.0 / points[0].shape[1])
    rows, places = np.unique(np.concatenate(points, axis=1), axis=1, return_inverse=True)
    machines = np.split(places.ravel(), np.cumsum([one.shape[1] for one in points])[:-1])
    # A row counts as often as the machine of several that holds it most often repeats it.
    counts = np.max([np.bincount(own, minlength=rows.shape[1]) for own in machines], axis=0)
    return rows.T, counts / counts.sum()


def conditioning(machine: BoundMachine, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return one-player factors (n_players, n, m) of the conditioning kernel.

    They measure how close the known columns are.

    One component: its own factors, as in the paper. Several: their mean weighted by amplitude, so that every column that any
    component looks at is conditioned on. Only monomials: Gaussians of median bandwidth.
    """
    components = [part.component for part in machine.expansion.parts]
    columns = np.ascontiguousarray(second.T)
    if not components:
        return players_first(machine, median_gaussian(conditioning_rows(machine)[0]).factors(first, columns))
    total = sum(abs(part.amplitude) for part in components)
    mean: Any = 0.0
    for part in components:
        mean = mean + abs(part.amplitude) / total * machine.grouped(part.factors(first, columns))
    return np.ascontiguousarray(np.moveaxis(mean, 1, 0))


def players_first(machine: BoundMachine, factors: np.ndarray) -> np.ndarray:
    """Lay (n, n_columns, m) out as (n_players, n, m)."""
    return np.ascontiguousarray(np.moveaxis(machine.grouped(factors), 1, 0))
