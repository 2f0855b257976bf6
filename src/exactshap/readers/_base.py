"""What a reader is: a model bound to a background and a value function."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap._runtime.progress import Asks
from exactshap._runtime.shared import copied_state
from exactshap._runtime.threads import threads_of_a_block
from exactshap.frames import Table
from exactshap.games import Game
from exactshap.readers._own_call import OwnCall
from exactshap.readers._stages import Stages
from exactshap.readers._steps import answered_in_threads, certified, own_prediction
from exactshap.semivalues import Semivalue
from exactshap.solvers import Comparison, Cost, MadeRows, Solution, choose, player_sets, solve

__all__ = ["FEW_AT_ONCE", "Reader", "columns_of", "hand_masked"]

# rows of a call below which the one library that threads ask about rows of their own searches at half the pace, however few they are
FEW_AT_ONCE = 4096
_DOUBLE = float(np.finfo(np.float64).eps)


class Reader(ABC):
    """A fitted model read as cooperative games, one per row.

    Concrete readers set the attributes in ``__init__`` and are final: they are not subclassed further. They are picklable
    and stateless: nothing changes after construction.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from exactshap.readers import Reader, Request, read
    >>> reader = read(SVR().fit([[0.0], [1.0]], [0.0, 1.0]), Request())
    >>> isinstance(reader, Reader), reader.players, reader.value_function
    (True, ((0,),), 'functional')
    """

    value_functions: ClassVar[tuple[str, ...]] = ()
    block_rows: int = 256  # rows of one block at most: what a thread solves at a time, and a step of progress
    rows_are_cheap: bool = False  # whether a row costs less than a call: many hybrids are solved before the first explanation
    solves_one_by_one: bool = False  # whether rows share no work, so that threads may take them in any number
    predicts_row_by_row: bool = False  # whether threads may ask the model about their own rows, with the same bits
    predicts_in_pieces: bool = False  # the same where predicting takes as long as solving: threads of one block share it, too
    evaluates: bool = False  # whether ``evaluate`` is there: the certificate's hybrids are predicted in company of the rows
    calls_model: ClassVar[bool] = False  # whether a coalition of the game is a few calls of the model
    threads_inside: bool = False  # whether solve() takes the threads itself, so that blocks follow one another

    model: Any
    model_name: str
    feature_names: tuple[str, ...]
    fitted_names: tuple[str, ...] | None  # what the model itself knows; None if it was fitted without names
    output_names: tuple[str, ...]
    single_output: bool
    unit: str
    value_function: str
    players: tuple[tuple[int, ...], ...]  # columns of each player
    player_names: tuple[str, ...]
    background: Table | None = None
    weights: np.ndarray | None = None
    own_call: OwnCall | None = None  # the call that a pipeline or a search answers as well; None where no single call predicts
    absent: float = 0.0  # what a cell that a sparse matrix leaves out is to the model

    __getstate__ = copied_state

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def n_players(self) -> int:
        return len(self.players)

    @property
    def n_outputs(self) -> int:
        return len(self.output_names)

    @abstractmethod
    def predict(self, X: Table) -> np.ndarray:
        """Return the model's OWN prediction, of shape (n_rows,) or (n_rows, n_outputs): the residual is a check against it."""

    def predict_again(self, X: Table) -> np.ndarray:
        """Return the same of rows that ``solve`` or ``evaluate`` sees as well, and refuses where their numbers are not finite.

        Override where the model's library can be told not to look for them once more.
        """
        return self.predict(X)

    def predicted_background(self) -> np.ndarray:
        """Return the model's own predictions of the background's rows; some readers have asked for them when they were made."""
        assert self.background is not None
        return np.asarray(self.predict(self.background), float)

    @abstractmethod
    def game(self, X: Table) -> Game:
        """Return the batch of games of the rows: the definition, in one of the three kinds."""

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve the games of some rows. Override where structure or streaming makes it faster; ``game`` stays the reference implementation."""
        return solve(self.game(X), semivalue, order)

    def evaluate(self, X: Table) -> Solution:
        """Return f(x) by the formula as it was read (:func:`~exactshap.solvers.of_formula`); v(S) of a reference row z is that of a hybrid."""
        raise NotImplementedError

    def compare(self, X: Table, prediction: np.ndarray | None = None) -> Comparison:
        """Hold the formula as it was read against the model's own predictions, which may be known."""
        prediction = np.asarray(self.predict_again(X), float) if prediction is None else prediction
        ours = self.evaluate(X)
        return Comparison(prediction, prediction - ours.full, self.tolerance(prediction, ours))

    def answer(self, X: Table, semivalue: Semivalue, order: int, n_compared: int = 0) -> Solution:
        """Return the solution of a block of rows beside its predictions; wrappers transform the rows once for all of it.

        The last ``n_compared`` rows are only predicted, in the same call, and compared; where rows are cheap, solving these costs less
        than another call for the formula.
        """
        n_rows = X.n_rows - n_compared
        if n_compared and self.rows_are_cheap:
            return _parted(self.answer(X, semivalue, order), n_rows)
        mine = X.parted(n_rows)[0] if n_compared else X
        if threads_of_a_block.get() > 1:
            return answered_in_threads(self, X, mine, semivalue, order)
        solution, prediction = self.solve(mine, semivalue, order), own_prediction(self, X)
        return certified(self, X, solution, prediction, efficient=semivalue.is_efficient(order))

    def takes_made_rows(self) -> bool:
        """Return whether ``answer_made`` takes rows a piece at a time."""
        return False

    def answer_made(self, rows: MadeRows, semivalue: Semivalue, order: int, n_compared: int = 0) -> Solution | None:
        """Return the same of rows that are made a piece at a time; None where it takes whole tables, and where some are not finite."""
        return None

    def threads_pay(self) -> bool | None:
        """Return whether threads share the work of rows, which compiled code and linear algebra do; None before that is known."""
        return True

    def shares_predictions(self, n_rows: int) -> bool:
        """Return whether threads that share a block of so many rows each predict their own, and none predicts all of them meanwhile."""
        return self.predicts_in_pieces or (self.predicts_row_by_row and n_rows < FEW_AT_ONCE)

    def stages(self, X: Table) -> Stages | None:
        """Return ``predict_again`` of many rows in parts that threads may share, with the same bits; None where it is one call."""
        return None

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of working memory for a block of rows: it decides how many rows make a block."""
        return 8.0 * 4 * n_rows * len(player_sets(self.n_players, order)) * self.n_outputs

    def asks(self) -> Asks | None:
        """Return what a row asks of a model that is called, for the line of progress; None where rows are quick."""
        return None

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Return what solving ``n_rows`` rows in blocks costs, on one thread and in memory beyond what is held already.

        ``few`` of the rows are there to time pieces of the work on, which are then multiplied; no row is solved that takes long.
        """
        row = few.take(slice(0, 1))
        found = choose(self.game(row), semivalue, order).cost
        if np.isnan(found.seconds):
            found = replace(found, seconds=clocked(lambda: self.solve(row, semivalue, order)))
        return replace(n_rows * found, bytes=self.memory(block_rows, order))

    def memory_advice(self) -> str:
        """Return what to do where one row does not fit in ``memory_limit``."""
        return "Raise memory_limit=, lower the order, or group columns with groups="

    def tolerance(self, prediction: np.ndarray, solution: Solution) -> np.ndarray:
        r"""Return the largest residual (n_rows,) that rounding can explain.

        .. math:: 4\, \epsilon\, (\sqrt{n_\mathrm{terms}} + d)\, (\mathrm{scale} + |f(x)|)

        A product of d factors is off by at most d eps relative (Higham 2002, Lemma 3.1), a sum of n rounded terms by
        sqrt(n) eps with overwhelming probability (Higham & Mary 2019); 4 = 2 sides (ours and the model's) x 2 for its constant.
        """
        size, bound = np.abs(prediction), solution.error_bound
        magnitude = size if size.ndim == 1 else size.reshape(len(size), -1).max(axis=1, initial=0.0)
        growth = math.sqrt(self.n_terms()) + len(self.feature_names)
        rounding = 4.0 * self.epsilon() * growth * (solution.scale + magnitude)
        return rounding if isinstance(bound, float) and bound == 0.0 else rounding + bound

    def cancelled(self, X: Table) -> np.ndarray | float:
        """Return magnitudes ([n_rows,]) in the model's own arithmetic that its game does not add up; ``solve`` has them in its ``scale``."""
        return 0.0

    def n_terms(self) -> float:
        """Return how many terms are added up for one prediction (for the tolerance)."""
        return 1.0

    def epsilon(self) -> float:
        """Return the rounding unit of the model's own predictions: float64 unless it computes in float32."""
        return _DOUBLE

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        """Return a function of delta that bounds how far values of X move when no column moves by more, where one is known."""
        return None

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Return v(S) (n_rows, n_masks[, n_outputs]) by masking columns by hand and calling the model, or None.

        It is the independent reference that ``verify`` compares ``game(X).value(masks)`` with. The default handles the value
        functions that are defined by replacing columns: "interventional" and "baseline".
        """
        if self.background is None or self.value_function not in ("interventional", "baseline"):
            return None
        return hand_masked(self, X, masks)

    def reading_difference(self) -> float | None:
        """Return the largest relative difference of what was read to a second, independent reading of the model; None without one."""
        return None

    def reading_gap(self) -> str:
        """Return why that second reading is missing, where the family has one; "" where it has none, or nothing is missing."""
        return ""

    def bound_to(self, row: Table) -> Reader | None:
        """Return this very reading, its arrays shared, bound to one reference row; None where no rows are replaced by a background's.

        The games of a hybrid of x and that row are known without solving: players that come from the row get nothing, the others
        share what the model predicts more for the hybrid than for the row. The certificate rests on it.
        """
        return None

    def _rebound(self, row: Table) -> Self:
        """Return a shallow copy with another background, for ``bound_to`` to complete."""
        assert row.n_rows == 1
        copied = copy.copy(self)
        copied.background, copied.weights = row, None
        return copied


def columns_of(reader: Reader, masks: np.ndarray) -> np.ndarray:
    """Return which columns (n_masks, n_features) the players of each coalition are made of."""
    columns = np.zeros((len(masks), reader.n_features), bool)
    for player, members in enumerate(reader.players):
        columns[:, list(members)] = masks[:, player : player + 1]
    return columns


def hand_masked(reader: Reader, X: Table, masks: np.ndarray) -> np.ndarray:
    """Mean model prediction over rows that take the columns of the coalition from X and the rest from the background."""
    background = reader.background
    assert background is not None
    weights = np.full(background.n_rows, 1.0 / background.n_rows) if reader.weights is None else reader.weights
    rows, references = X.repeat(background.n_rows), background.tile(X.n_rows)
    values = []
    for columns in columns_of(reader, np.asarray(masks, bool)):
        prediction = np.asarray(reader.predict(rows.hybrid(references, columns)))
        values.append(
            np.einsum("rm...,m->r...", prediction.reshape(X.n_rows, background.n_rows, *prediction.shape[1:]), weights)
        )
    return np.stack(values, axis=1)


def _parted(solution: Solution, n_rows: int) -> Solution:
    """Return the first rows, with the comparison of the others."""
    assert solution.prediction is not None
    assert solution.residual is not None
    assert solution.tolerance is not None
    others = Comparison(solution.prediction[n_rows:], solution.residual[n_rows:], solution.tolerance[n_rows:])
    return solution.rows(slice(n_rows), comparison=others)
