"""What a reader is: a model bound to a background and a value function."""

from __future__ import annotations

import copy
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from exactshap._runtime.cache import copied_state
from exactshap._runtime.calibration import clocked
from exactshap._runtime.progress import Asks
from exactshap._runtime.types import Foreign, Model, TableLike
from exactshap.errors import ExplanationWarning, InputTypeError, message, warn
from exactshap.frames import Table, with_unique_index
from exactshap.games import Game
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution, choose, count_sets, solve

# Part of the largest prediction: where rounding leaves more than that uncertain, values are approximate.
COARSE = 1e-6
# The same for a model in single precision, in its rounding units.
COARSE_EPSILONS = 2**13


def outputs_of(chosen: list[int], single: bool, values: np.ndarray) -> np.ndarray:
    """Return the explained outputs of predictions (n_rows,) or (n_rows, n_model_outputs)."""
    values = values.reshape(len(values), -1)[:, chosen]
    return values[:, 0] if single else values


def joined_outputs(values: Foreign) -> np.ndarray:
    """Return predictions as one array: of several targets some classifiers answer a list, a table of class shares for each.

    >>> joined_outputs([[[0.25, 0.75]], [[1.0, 0.0]]])
    array([[0.25, 0.75, 1.  , 0.  ]])
    """
    if isinstance(values, list) and all(np.ndim(table) == 2 for table in values):
        return np.concatenate([np.asarray(table, float) for table in values], axis=1)
    return np.asarray(values, float)


def _unchanged(values: np.ndarray) -> np.ndarray:
    return values


@dataclass(frozen=True, eq=False)
class OwnCall:
    """Call a documented method of a model and shape its result. The result becomes the explained output.

    Parameters
    ----------
    settings : mapping, default={}
        Keyword arguments of the call, which scikit-learn's pipelines hand to their last step.
    finish : callable, default: unchanged
        ``finish(values) -> (n_rows,) or (n_rows, n_outputs)`` in the explained unit.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> model = SVR().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> OwnCall("predict")(model, [[0.0]]).shape
    (1,)
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[np.ndarray], np.ndarray] = _unchanged

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        """Return the prediction of ``model``, or of whatever wraps it. The rows are of the kind that it was fitted with."""
        try:
            values = getattr(model, self.method)(with_unique_index(rows), **self.settings)
        except (TypeError, ValueError) as error:
            if type(rows).__module__.startswith("scipy.sparse"):  # of a model that was fitted on dense rows
                raise InputTypeError(
                    message(f"{type(model).__name__} refuses sparse rows", f"{error}", "Pass X.toarray()")
                ) from error
            raise
        # A copy: some models return one array again and again
        return np.array(self.finish(joined_outputs(values)), float)

    def of_table(self, model: Model, X: Table) -> np.ndarray:
        """Return the same of a table."""
        return self(model, X.native)

    def in_double(self, model: Model, X: Table) -> np.ndarray:
        """Return the same of a table in double precision, as the terms: many models compute in the precision of their rows."""
        return self(model, X.in_double().native)


@dataclass(frozen=True, eq=False)
class Offset:
    """How a model takes an offset of each row."""

    keyword: str | None = None  # of the model's own call; None where it has none, so that the offset is added to its answer
    # number or (n_model_outputs,): what the model leaves out where an offset is given: XGBoost's base_score
    replaces: np.ndarray | float = 0.0


@dataclass(frozen=True)
class SecondReading:
    """State how another way of reading a model differs from its reader's."""

    difference: float | None = None  # the largest relative difference; None where there is no second reading
    gap: str = ""  # why there is none, where the family has one


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
    offset: Offset | None = Offset()  # how the model takes one; None where no offset of a row is a sum in the explained unit
    offset_note: str = ""  # what to warn of where rows come without an offset, of a model that was fitted with offsets
    absent: float = 0.0  # what a cell that a sparse matrix leaves out is to the model
    n_terms: float = 1.0  # added up for one prediction
    precision: float = float(np.finfo(np.float64).eps)  # rounding unit of the model's own predictions
    rounding: float | None = (
        None  # relative error of a prediction; None: that of n_terms products of one factor for each column
    )
    floor: float = 0.0  # magnitude that rounding is relative to besides the scale of a solution and the prediction
    cancels: bool = False  # whether terms may be so much larger than their sum that the certificate counts the digits left
    asks: Asks | None = None  # what a row asks of a model that is called for each coalition
    memory_advice: str = "Raise memory_limit=, lower the order, or group columns with groups="

    __getstate__ = copied_state

    @functools.cached_property
    def n_features(self) -> int:
        return len(self.feature_names)

    @functools.cached_property
    def n_players(self) -> int:
        return len(self.players)

    @functools.cached_property
    def n_outputs(self) -> int:
        return len(self.output_names)

    @abstractmethod
    def predict(self, X: Table) -> np.ndarray:
        """Return the model's own prediction, (n_rows,) or (n_rows, n_outputs). Residuals are taken against it."""

    @abstractmethod
    def game(self, X: Table) -> Game:
        """Return the rows' games: the definition, in one of three kinds."""

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve the games of some rows. Override where structure or streaming makes it faster; ``game`` stays the reference implementation."""
        return solve(self.game(X), semivalue, order)

    def memory(self, n_rows: int, order: int) -> float:
        """Return the working memory of a block in bytes. It decides how many rows make one."""
        return 8.0 * 4 * n_rows * count_sets(self.n_players, order) * self.n_outputs

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Return the cost of solving ``n_rows`` rows in blocks. It is for one thread, with memory beyond what is held already.

        ``few`` of the rows are there to time pieces of the work on, which are then multiplied; no row is solved that takes long.
        """
        row = few.take(slice(0, 1))
        found = choose(self.game(row), semivalue, order).cost
        if np.isnan(found.seconds):
            found = replace(found, seconds=clocked(lambda: self.solve(row, semivalue, order)))
        return replace(n_rows * found, bytes=self.memory(block_rows, order))

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        """Return a bound on how far values move, where known.

        It is a function of delta, the largest move of any column.
        """
        return None

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Return v(S) from the model on rows masked by hand, or None. It is (n_rows, n_masks[, n_outputs]).

        It is the independent reference that ``verify`` compares ``game(X).value(masks)`` with. The default handles the value
        functions that are defined by replacing columns: "interventional" and "baseline".
        """
        if self.background is None or self.value_function not in ("interventional", "baseline"):
            return None
        return hand_masked(self, X, masks)

    def second_reading(self) -> SecondReading:
        """Return how a second, independent reading of the model differs."""
        return SecondReading()

    def bind(self, row: Table) -> Reader | None:
        """Return this reading with one reference row, None where nothing is replaced. Arrays are shared.

        The games of a hybrid of x and that row are known without solving: players that come from the row get nothing, the others
        share what the model predicts more for the hybrid than for the row. The certificate rests on it.
        """
        return None

    def _rebound(self, row: Table) -> Self:
        """Return a shallow copy with another background, for ``bind`` to complete."""
        assert row.n_rows == 1
        copied = copy.copy(self)
        copied.background, copied.weights = row, None
        return copied


def is_of_target(unit: str) -> bool:
    """Say whether a unit is that of predictions of a target, not of something before a link.

    >>> is_of_target("quantile 0.1 of the target"), is_of_target("log of the target")
    (True, False)
    """
    return unit in ("target", "output of the function") or unit.startswith(("quantile ", "expectile "))


def rounding_of(reader: Reader) -> float:
    r"""Return the relative error of a prediction.

    .. math:: 4\, \epsilon\, (\sqrt{n_\mathrm{terms}} + d)

    A product of d factors is off by at most d eps relative (Higham 2002, Lemma 3.1), a sum of n rounded terms by
    sqrt(n) eps with overwhelming probability (Higham & Mary 2019); 4 = 2 sides (ours and the model's) x 2 for its constant.
    """
    if reader.rounding is not None:
        return reader.rounding
    return 4.0 * reader.precision * (math.sqrt(reader.n_terms) + reader.n_features)


def warn_of_rounding(name: str, limit: float, largest: float, precision: float) -> bool:
    """Return whether rounding leaves too few digits of the largest number, and say how many it leaves."""
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
    columns = np.zeros((len(masks), reader.n_features), bool)
    for player, members in enumerate(reader.players):
        columns[:, list(members)] = masks[:, player : player + 1]
    return columns


def hand_masked(reader: Reader, X: Table, masks: np.ndarray) -> np.ndarray:
    """Return mean model predictions over hand-masked rows.

    They take the columns of the coalition from X and the rest from the background.
    """
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
