"""Linear models: what a row adds to the background's mean, column by column (``src/native/additive/linear.cpp``)."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.semivalues import Semivalue
from exactshap.solvers.additive._stacks import method_of, weight_alone
from exactshap.solvers.core import Part, player_sets

__all__ = ["Linear", "fill_linear", "solve_linear", "solve_linear_precisely"]

# 100,000 rows of 20 columns: 4 ms; by `add_singles`, of products that NumPy makes, 13 ms
fill_linear = kernel("additive.fill_linear(X, linear, weight, out, full, scale)")


class Linear(NamedTuple):
    """A linear model bound to a background.

    Attributes
    ----------
    coefficients, absent : arrays of shape (n_columns, n_outputs)
        ``absent`` are the terms' means over the background.
    players : integer array of shape (n_columns,)
        Of each column.
    """

    coefficients: np.ndarray
    absent: np.ndarray
    players: np.ndarray


def solve_linear(linear: Handle, rows: np.ndarray, n_players: int, semivalue: Semivalue, order: int) -> Part:
    r"""Return the part of a linear model.

    .. math:: \phi_j = p(0) \sum_l (\beta_l x_l - \mathrm{E}\, \beta_l z_l)

    over the columns l of player j: whatever the index, a term of one player has nothing to share.

    Parameters
    ----------
    rows : array of shape (n_rows, n_columns)
    """
    model = cast(Linear, linear.value)
    n_rows, n_outputs = len(rows), model.absent.shape[1]
    values = np.empty((n_rows, len(player_sets(n_players, order)), n_outputs))
    full, scale = np.empty((n_rows, n_outputs)), np.empty(n_rows)
    fill_linear(np.ascontiguousarray(rows, float), linear, weight_alone(semivalue, order), values, full, scale)
    empty = np.broadcast_to(model.absent.sum(axis=0), full.shape)
    return Part(values, empty, full, method_of(len(model.players)), scale=scale)


def solve_linear_precisely(
    model: Linear, means: np.ndarray, rows: np.ndarray, n_players: int, semivalue: Semivalue, order: int
) -> Part:
    """Return the same, added up in the machine's extended precision: where large coefficients cancel, three more digits hold.

    Parameters
    ----------
    means : longdouble array of shape (n_columns,)
        Of the background's columns.
    rows : array of shape (n_rows, n_columns)
    """
    terms = rows[:, :, None].astype(np.longdouble) * model.coefficients
    gains = weight_alone(semivalue, order) * ((rows - means)[:, :, None] * model.coefficients)
    values = np.zeros((len(rows), len(player_sets(n_players, order)), model.absent.shape[1]))
    for player in np.unique(model.players):
        values[:, player] = gains[:, model.players == player].sum(axis=1)
    full = np.asarray(terms.sum(axis=1), float)
    empty = np.broadcast_to(np.asarray((means[:, None] * model.coefficients).sum(axis=0), float), full.shape)
    scale = np.asarray(np.maximum(np.abs(terms), np.abs(model.absent)).max(axis=2).sum(axis=1), float)
    return Part(values, empty, full, method_of(len(model.players)), scale=scale)
