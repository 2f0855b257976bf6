"""A linear model's rows beside its own predictions, in one pass: values, what is missing to a prediction, what rounding explains of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.errors import InputError, message
from exactshap.semivalues import Semivalue
from exactshap.solvers.additive._stacks import in_a_layout, method_of, single_weight
from exactshap.solvers.core import Comparison, Solution, player_sets

__all__ = ["Linear", "answer_linear", "answer_scaled"]

answer_scaled = kernel("additive.answer_scaled(X, by_column, linear, weight, prediction, efficient, out, kept, parts)")
_NOTHING = Solution.zeros(0, 0)


class Linear(NamedTuple):
    """A linear model bound to a background; ``growth (scale + |f(x)| + floor)`` is what rounding explains of a prediction."""

    coefficients: np.ndarray
    absent: np.ndarray  # values of the terms without their player
    constant: float
    growth: float
    floor: float


def answer_linear(
    linear: Handle, rows: np.ndarray, prediction: np.ndarray, semivalue: Semivalue, order: int, n_compared: int = 0
) -> Solution | None:
    """Return the solution of rows beside the model's own predictions, the last ``n_compared`` of which are only compared.

    The same bits as :func:`solve_scaled`, ``finish`` and ``beside`` one after the other. None where something is not finite.
    """
    (n_rows, n_players), sets = rows.shape, player_sets(rows.shape[1], order)
    if prediction.shape != (n_rows,):  # of a model that was edited
        got = f"Got shape {prediction.shape} for {n_rows} rows"
        raise InputError(message("The model does not predict one number for each row", got, "Fit it again"))
    rows, by_column = in_a_layout(rows)
    n_own, efficient = n_rows - n_compared, semivalue.is_efficient(order)
    values, kept, parts = np.empty((n_own, len(sets))), np.empty((4, n_rows)), np.empty((3, n_rows))
    if not answer_scaled(rows, by_column, linear, single_weight(semivalue, order), prediction, efficient, values, kept, parts):
        return None
    empty, residual, tolerance, bound = kept
    total, full, scale = parts
    comparison = None
    if n_compared:
        comparison = Comparison(prediction[n_own:], residual[n_own:], tolerance[n_own:])
        empty, residual, tolerance, bound = kept[:, :n_own]
        total, full, scale = parts[:, :n_own]
    return _NOTHING.with_(
        values=values,
        empty=empty,
        full=full,
        method=method_of(n_players),
        sets=sets,
        residual=residual,
        total=total if efficient else None,
        error_bound=bound,
        scale=scale,
        prediction=prediction[:n_own],
        tolerance=tolerance,
        comparison=comparison,
    )
