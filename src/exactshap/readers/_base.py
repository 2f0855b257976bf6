"""Define readers: models bound to a background and a value function."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from exactshap._runtime.cache import copied_state
from exactshap._runtime.machine import clocked
from exactshap.errors import ExplanationWarning, message, warn
from exactshap.frames import Table
from exactshap.games import Game, spread
from exactshap.readers._request import REPLACING
from exactshap.readers._traits import Traits
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Posterior, Solution, choose, count_sets, player_sets, solve

# Fraction of the largest prediction: if rounding leaves more uncertain, values are approximate.
COARSE = 1e-6
# The same for a model in single precision, in its rounding units.
COARSE_EPSILONS = 2**13


class Reader(ABC):
    """Read a fitted model as cooperative games, one per row.

    Concrete readers set ``traits`` in ``__init__``. They are picklable and stateless: nothing changes after construction.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from exactshap.readers import Reader, Request, read
    >>> reader = read(SVR().fit([[0.0], [1.0]], [0.0, 1.0]), Request())
    >>> isinstance(reader, Reader), reader.traits.players, reader.traits.value_function
    (True, ((0,),), 'functional')
    """

    traits: Traits

    __getstate__ = copied_state

    def predict(self, X: Table) -> np.ndarray:
        """Return the model's own prediction, (n_rows,) or (n_rows, n_outputs).

        By default it is that of ``traits.own_call``.
        """
        assert self.traits.own_call is not None
        return self.traits.own_call.of_table(self.traits.model, X)

    @abstractmethod
    def game(self, X: Table) -> Game:
        """Return the games of rows, the definition of their values."""

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve the games of some rows. Override where structure or streaming makes it faster; ``game`` stays the reference implementation."""
        return solve(self.game(X), semivalue, order)

    def memory(self, n_rows: int, order: int) -> float:
        """Return the working memory of a block of rows in bytes."""
        return 8.0 * 4 * n_rows * count_sets(self.traits.n_players, order) * self.traits.n_outputs

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Return the cost of solving ``n_rows`` rows in blocks on one thread.

        Pieces of the work are timed on ``few`` of the rows and multiplied; slow rows are not solved. Memory is additional.
        """
        row = few.take(slice(0, 1))
        found = choose(self.game(row), semivalue, order).cost
        if np.isnan(found.seconds):
            found = replace(found, seconds=clocked(lambda: self.solve(row, semivalue, order)))
        return replace(n_rows * found, bytes=self.memory(block_rows, order))

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        """Return a bound on how far values move, where known.

        It is a function of delta, the largest change of any column.
        """
        return None

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Return v(S) from the model on rows masked by hand, or None. It is (n_rows, n_masks[, n_outputs]).

        It is the independent reference that ``verify`` compares ``game(X).value(masks)`` with. The default handles the value
        functions that are defined by replacing columns: "interventional" and "baseline".
        """
        if self.traits.background is None or self.traits.value_function not in REPLACING:
            return None
        return _hand_masked(self, X, masks)

    def bind(self, row: Table) -> Reader | None:
        """Return this reader with one reference row, or None.

        It is None if no columns are replaced. The certificate checks games of hybrids of x and that row: players from the row get
        nothing, the others share the difference of the predictions for the hybrid and the row. Arrays are shared.
        """
        return None

    def _rebound(self, row: Table) -> Self:
        """Return a shallow copy with another background, for ``bind`` to complete."""
        assert row.n_rows == 1
        copied = copy.copy(self)
        copied.traits = replace(self.traits, background=row, weights=None)
        return copied


def is_of_target(unit: str) -> bool:
    """Say whether a unit is the target's, not a score's.

    >>> is_of_target("quantile 0.1 of the target"), is_of_target("log of the target")
    (True, False)
    """
    return unit in ("target", "output of the function") or unit.startswith(("quantile ", "expectile "))


def warn_of_rounding(name: str, limit: float, largest: float, precision: float) -> bool:
    """Warn if rounding leaves too few digits, and return whether it does."""
    share = limit / max(largest, float(np.finfo(float).tiny))
    if not np.inf > share > max(COARSE, COARSE_EPSILONS * precision):
        return False
    digits = max(0, int(-np.log10(share)))
    what = f"Rounding leaves about {digits} digit{'' if digits == 1 else 's'} of what {name} predicts"
    do = "Values are marked as approximate; scale the columns, or fit a model with a penalty"
    warn(message(what, "Its terms are large and cancel", do), ExplanationWarning)
    return True


def columns_of(reader: Reader, masks: np.ndarray) -> np.ndarray:
    """Return the columns (n_masks, n_features) of each coalition's players."""
    columns = np.zeros((len(masks), reader.traits.n_features), bool)
    for player, members in enumerate(reader.traits.players):
        columns[:, list(members)] = masks[:, player : player + 1]
    return columns


def _hand_masked(reader: Reader, X: Table, masks: np.ndarray) -> np.ndarray:
    """Return mean predictions over rows with the columns of the coalition from X, the rest from the background."""
    background = reader.traits.reference
    weights = np.full(background.n_rows, 1.0 / background.n_rows) if reader.traits.weights is None else reader.traits.weights
    rows, references = X.repeat(background.n_rows), background.tile(X.n_rows)
    values = []
    for columns in columns_of(reader, np.asarray(masks, bool)):
        prediction = np.asarray(reader.predict(rows.hybrid(references, columns)))
        values.append(
            np.einsum("rm...,m->r...", prediction.reshape(X.n_rows, background.n_rows, *prediction.shape[1:]), weights)
        )
    return np.stack(values, axis=1)


def among_all(solution: Solution, live: Sequence[int], n_players: int, order: int, axis: int = 1) -> Solution:
    """Return the solution for all players, 0 where one is not ``live``; ``axis`` is that of the sets."""
    sets = player_sets(n_players, order)
    number = {members: place for place, members in enumerate(sets)}
    places = [number[tuple(live[j] for j in members)] for members in solution.sets]

    def by_set(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else spread(values, axis, len(sets), places)

    covariance = solution.covariance
    if covariance is not None:
        # Rows and columns of the matrix: players without columns neither vary nor covary.
        covariance = spread(spread(covariance, axis, n_players, list(live)), axis + 1, n_players, list(live))
    return replace(
        solution,
        part=replace(
            solution.part, values=spread(solution.values, axis, len(sets), places), std_error=by_set(solution.std_error)
        ),
        sets=sets,
        posterior=Posterior(covariance, solution.covariance_residual, by_set(solution.set_std)),
    )
