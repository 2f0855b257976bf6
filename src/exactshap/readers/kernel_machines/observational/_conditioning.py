"""What an observational game conditions on: the rows, their weights, and the kernel that measures what is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.errors import InputError, message
from exactshap.kernels import Component

__all__ = ["conditioning", "conditioning_components", "conditioning_rows", "players_first"]


def conditioning_rows(reader: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that the conditional distribution is learnt from, and their positive weights."""
    if reader.background is not None:
        keep = reader.weights > 0
        return reader.columns(reader.background, "background")[keep], reader.weights[keep]
    parts = reader.expansion.parts
    if not any(part.points.size for part in parts):
        raise InputError(
            message(
                "value_function='observational' needs rows to learn the conditional distribution from",
                f"{reader.model_name} keeps no training rows (its kernel is linear or polynomial, or it has no support vectors)",
                "Pass background=X_train",
            )
        )
    rows = np.unique(np.concatenate([part.points.T for part in parts]), axis=0) if len(parts) > 1 else parts[0].points.T
    return rows, np.full(len(rows), 1.0 / len(rows))


def conditioning(reader: Any, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the one-player factors (n_players, n, m) of the kernel that measures what is known.

    One component: its own factors, as in the paper. Several: their mean weighted by amplitude, so that every column that any
    component looks at is conditioned on. Only monomials: Gaussians of median bandwidth.
    """
    components = [part.component for part in reader.expansion.parts]
    columns = np.ascontiguousarray(second.T)
    if not components:
        return players_first(reader, _median_gaussian(reader).factors(first, columns))
    total = sum(abs(part.amplitude) for part in components)
    mean: Any = 0.0
    for part in components:
        mean = mean + abs(part.amplitude) / total * reader._grouped(part.factors(first, columns))
    return np.ascontiguousarray(np.moveaxis(mean, 1, 0))


def conditioning_components(reader: Any) -> list[Component]:
    """Return the components whose mean :func:`conditioning` evaluates."""
    return [part.component for part in reader.expansion.parts] or [_median_gaussian(reader)]


def _median_gaussian(reader: Any) -> Component:
    """Return the Gaussian whose bandwidths are the median distances of the conditioning rows."""
    rows, _ = conditioning_rows(reader)
    some = rows[:: max(1, len(rows) // 500)]
    distances = np.abs(some[:, None, :] - some[None, :, :]).reshape(-1, rows.shape[1])
    bandwidth = np.array([np.median(d[d > 0]) if np.any(d > 0) else 1.0 for d in distances.T])
    return Component(squared=0.5 / bandwidth**2)


def players_first(reader: Any, factors: np.ndarray) -> np.ndarray:
    """Lay (n, n_columns, m) out as (n_players, n, m)."""
    return np.ascontiguousarray(np.moveaxis(reader._grouped(factors), 1, 0))
