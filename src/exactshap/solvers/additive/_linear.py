"""A linear model's rows beside its own predictions, in one pass: values, what is missing to a prediction, what rounding explains of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap._runtime.threads import map_in_threads
from exactshap.errors import InputError, message, rows_from
from exactshap.semivalues import Semivalue
from exactshap.solvers.additive._stacks import in_a_layout, method_of, single_weight
from exactshap.solvers.core import Comparison, MadeRows, Solution, player_sets

__all__ = ["Linear", "LinearOutputs", "LinearPlayers", "answer_linear", "answer_outputs", "answer_players", "answer_scaled"]

_ARGUMENTS = "X, by_column, linear, weight, prediction, efficient, out, empty, residual, tolerance, first, last"
answer_scaled = kernel(f"additive.answer_scaled({_ARGUMENTS})")
answer_outputs = kernel(f"additive.answer_outputs({_ARGUMENTS})")
answer_players = kernel(f"additive.answer_players({_ARGUMENTS})")
PIECE = 2**18  # numbers of a piece of the rows, at least, which stays in a core's caches
OF_A_CALL = 2**20  # of one that takes a while to cut and to predict, such as a frame's
OF_OUTPUTS = 2**21  # of several outputs, times these: BLAS multiplies smaller matrices in another way, which has other bits
LEAST = 1024  # rows that pieces are multiples of, but for the last one: BLAS takes some at a time
ENOUGH = 4  # pieces from which on threads are worth waking
RUNS = 8  # times that each of them takes pieces, neighbours together: the last one alone keeps a thread waiting
_NOTHING = Solution.zeros(0, 0)


class Linear(NamedTuple):
    """A linear model bound to a background; ``growth (scale + |f(x)| + floor)`` is what rounding explains of a prediction."""

    coefficients: np.ndarray
    absent: np.ndarray  # values of the terms without their player
    constant: float
    growth: float
    floor: float
    sizes: np.ndarray = np.empty(0)  # of a sum of linear models, (n_columns,): its scale is sum_j |x_j| sizes_j


class LinearOutputs(NamedTuple):
    """The same of several outputs, ``coefficients`` and ``absent (n_columns, n_outputs)``; |f(x)| is the largest of them."""

    coefficients: np.ndarray
    absent: np.ndarray
    constant: np.ndarray
    growth: float
    floor: float


class LinearPlayers(NamedTuple):
    """The same of any number of outputs, where several columns may belong to one of the ``players (n_columns,)``."""

    coefficients: np.ndarray
    absent: np.ndarray
    constant: np.ndarray
    players: np.ndarray
    growth: float
    floor: float


def answer_linear(
    linear: Handle,
    rows: np.ndarray | MadeRows,
    predict: Callable[[Any], np.ndarray],
    semivalue: Semivalue,
    order: int,
    n_compared: int = 0,
    n_jobs: int = 1,
    *,
    n_players: int | None = None,
    is_quick: bool = True,
) -> Solution | None:
    """Return the solution of rows beside the model's own predictions, the last ``n_compared`` of which are only compared.

    The same bits as of one step after the other: terms are solved, ``finish`` and ``beside``. None where something is not finite.
    Pieces of the rows are predicted and solved while they are in a core's caches; threads share them, and write where they belong.
    What is the same for all rows is written once where they are many: fresh memory costs as much as the values.

    Parameters
    ----------
    linear : Handle of Linear, LinearOutputs or LinearPlayers
    rows : array of shape (n_rows, n_columns), or MadeRows
    predict : callable
        ``predict(slice)``: the model's own predictions of some of the rows; of rows that are made, ``predict(piece)``.
    n_players : int, optional
        Columns are players by default.
    is_quick : bool, default=True
        Whether some of the rows cost little to cut and to predict.
    """
    (n_rows, n_columns), sets = rows.shape, player_sets(rows.shape[1] if n_players is None else n_players, order)
    n_own, weight, efficient = n_rows - n_compared, single_weight(semivalue, order), semivalue.is_efficient(order)
    model: Any = linear.value
    answer, tail = _ANSWERS[type(model)], np.shape(model.constant)
    values, prediction = np.empty((n_own, len(sets), *tail)), np.empty((n_rows, *tail))
    residual, tolerance = np.empty(prediction.shape), np.empty(n_rows)
    size = OF_OUTPUTS if prediction.size > n_rows else PIECE if is_quick else OF_A_CALL
    n_pieces = prediction.size * n_columns // size if n_rows > LEAST else 1
    empty = np.empty((n_rows if n_pieces < 2 else 1, *tail))

    def run_there(some: slice) -> tuple[int, int]:
        """Return whether all sums are finite, and all rows within their tolerance."""
        prediction[some] = _of_each_row(predict(some), (some.stop - some.start, *tail))
        arrays = prediction, efficient, values, empty, residual, tolerance
        return answer(*laid, linear, weight, *arrays, some.start, some.stop)  # type: ignore[no-any-return]

    def run_made(some: slice) -> tuple[int, int]:
        """Return the same of rows that are made, which lie elsewhere."""
        with rows.lent(some) as piece:  # type: ignore[union-attr]
            n = len(piece)
            prediction[some] = _of_each_row(predict(piece), (n, *tail))
            arrays = prediction[some], efficient, values[some], empty[some], residual[some], tolerance[some]
            return answer(*in_a_layout(piece), linear, weight, *arrays, 0, n)  # type: ignore[no-any-return]

    laid = in_a_layout(rows) if isinstance(rows, np.ndarray) else ()
    run = run_there if laid else run_made
    finite, within = run(slice(0, n_rows)) if n_pieces < 2 else _all_of_pieces(run, n_rows, n_pieces, n_jobs)
    if not finite:
        return None
    solution = _NOTHING.with_(
        values=values,
        empty=empty[:n_own] if n_pieces < 2 else np.broadcast_to(empty, (n_own, *tail)),
        full=None,
        method=method_of(n_columns),
        sets=sets,
        residual=residual[:n_own],
        error_bound=np.zeros(n_own) if n_pieces < 2 else np.broadcast_to(0.0, n_own),
        scale=0.0,
        prediction=prediction[:n_own],
        tolerance=tolerance[:n_own],
        is_within=bool(within),
        comparison=Comparison(prediction[n_own:], residual[n_own:], tolerance[n_own:]) if n_compared else None,
    )
    return _without_outputs(solution) if tail == (1,) else solution


_ANSWERS: dict[type, Callable[..., Any]] = {Linear: answer_scaled, LinearOutputs: answer_outputs, LinearPlayers: answer_players}


def _without_outputs(solution: Solution) -> Solution:
    """Return the solution of one output without its axis."""
    other = solution.comparison
    if other is not None:
        other = Comparison(other.prediction[:, 0], other.residual[:, 0], other.tolerance)
    ends = {name: getattr(solution, name)[..., 0] for name in ("values", "empty", "residual", "prediction")}
    return solution.with_(**ends, comparison=other)


def _of_each_row(prediction: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if shape[1:] == (1,) and prediction.ndim == 1:
        prediction = prediction[:, None]
    if prediction.shape != shape:  # of a model that was edited
        got = f"Got shape {prediction.shape} for {shape[0]} rows"
        wanted = "one number" if shape[1:] in ((), (1,)) else f"{shape[1]} numbers"
        raise InputError(message(f"The model does not predict {wanted} for each row", got, "Fit it again"))
    return prediction


def _all_of_pieces(function: Callable[[slice], tuple[int, int]], n_rows: int, n_pieces: int, n_jobs: int) -> tuple[bool, bool]:
    """Return what is true of all pieces of the rows, which are of about one size and the same for every number of threads.

    A thread takes neighbours, as what is written of them shares pages of memory.
    """
    starts = [k * n_rows // n_pieces // LEAST * LEAST for k in range(n_pieces)]
    pieces = [slice(start, stop) for start, stop in itertools.pairwise([*starts, n_rows]) if start < stop]
    workers = n_jobs if len(pieces) >= ENOUGH else 1
    n_runs = RUNS * workers
    runs = [pieces[k * len(pieces) // n_runs : (k + 1) * len(pieces) // n_runs] for k in range(n_runs)]

    def run(neighbours: list[slice]) -> list[tuple[int, int]]:
        with np.errstate(all="ignore"):  # of each thread; overflow is told by the certificate
            return [_counted(function, piece) for piece in neighbours]

    finite, within = zip(*itertools.chain.from_iterable(map_in_threads(run, runs, workers)), strict=True)
    return all(finite), all(within)


def _counted(function: Callable[[slice], tuple[int, int]], piece: slice) -> tuple[int, int]:
    with rows_from(piece.start):
        return function(piece)
