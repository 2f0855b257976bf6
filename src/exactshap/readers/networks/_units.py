r"""Units of one row and a background: their game by its definition, and with a kink at zero by meeting in the middle.

.. math:: v_x(S) = c + \sum_z w_z \sum_h o_h\, g\Bigl(\beta_h + \sum_{j \in S} s_{hj}(x) + \sum_{j \notin S} s_{hj}(z)\Bigr)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from exactshap.errors import BudgetError, message
from exactshap.semivalues import Semivalue
from exactshap.solvers import Part
from exactshap.solvers.product import MAX_HINGE_PLAYERS, solve_hinges

__all__ = ["Units"]

_BLOCK_VALUES = 2**20  # of what players add to sums, at a time: 8 MiB


class Units(NamedTuple):
    """Hold the units of one row, bound to background rows.

    Attributes
    ----------
    row : array of shape (n_players, n_units)
        What each player of the row adds to the sum of each unit.
    absent : array of shape (n_background, n_players, n_units)
        The same of the background.
    weights : array of shape (n_background,)
    bias : array of shape (n_units,)
    out : array of shape (n_units, n_outputs)
    activation : callable
        g.
    """

    row: np.ndarray
    absent: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    out: np.ndarray
    activation: Callable[[np.ndarray], np.ndarray]

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) - c of shape (n_masks, n_outputs), by its definition."""
        values = np.empty((len(masks), self.out.shape[1]))
        for place, mask in enumerate(masks):
            values[place] = self.weights @ self.scores(mask)
        return values

    def scores(self, mask: np.ndarray) -> np.ndarray:
        """Return what the units of the hybrids of a coalition add to the outputs, of shape (n_background, n_outputs)."""
        sums = self.bias + self.row[mask].sum(axis=0) + self.absent[:, ~mask].sum(axis=1)
        return np.asarray(self.activation(sums) @ self.out)

    def meet_in_the_middle(self, semivalue: Semivalue, order: int, owner: str) -> Part:
        """Solve rectified units, one block of background rows after the other."""
        n_background, (d, n_units) = len(self.absent), self.row.shape
        step = max(1, _BLOCK_VALUES // max(1, d * n_units))
        total = None
        for start in range(0, n_background, step):
            part = self._block(slice(start, min(start + step, n_background)), semivalue, order, owner)
            total = part if total is None else total + part
        assert total is not None
        return total

    def _block(self, rows: slice, semivalue: Semivalue, order: int, owner: str) -> Part:
        absent, d = self.absent[rows], len(self.row)
        steps = (self.row - absent).transpose(0, 2, 1).reshape(-1, d)
        shifts = (self.bias + absent.sum(axis=1)).ravel()
        c = (self.weights[rows, None, None] * self.out).reshape(-1, self.out.shape[1])
        try:
            return solve_hinges(steps, np.arange(len(steps) + 1), shifts, c, semivalue, order)
        except BudgetError as error:
            got = f"More than {MAX_HINGE_PLAYERS} players move the sum of a unit across its kink"
            do = "Join columns with groups=, or sample: explain(model.predict, X, background)"
            raise BudgetError(message(f"The units of {owner} have too many players", got, do)) from error
