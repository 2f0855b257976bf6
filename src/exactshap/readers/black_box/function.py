"""Explain functions of rows by sampled coalitions with standard errors; check answers and forecast calls."""

from __future__ import annotations

import functools
import logging
import math
import zlib
from collections.abc import Callable, Iterable
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_tolerance, is_number
from exactshap._runtime.machine import Sample, clocked_waiting, seconds_by_size, seconds_per_unit
from exactshap._runtime.progress import Calls, count_coalitions, fewer_coalitions
from exactshap._runtime.types import Foreign, Model, TableLike
from exactshap.errors import (
    RAISED,
    ExplanationWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
    UnsupportedStructureError,
    did_you_mean,
)
from exactshap.frames import Table, as_table, with_dtypes_of
from exactshap.games import OracleGame, player_of_columns
from exactshap.readers import (
    MOST_BEYOND,
    AffineReader,
    OwnCall,
    Reader,
    Request,
    Rounding,
    RowGames,
    Traits,
    choose_value_function,
    columns_of,
    is_own_method,
    is_regressor,
    joined_outputs,
    known_class,
    read_every_class,
    select_outputs,
    solve_moving,
    split_by_row,
)
from exactshap.readers import read as read_any
from exactshap.readers.black_box._call import Place, call, first_call, hybrid_rows, name_of, precision, rounding
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import (
    Cost,
    Solution,
    bytes_besides_calls,
    choose,
    n_calls,
    seconds_besides_calls,
    seconds_pooled,
    solve_pooled,
)

# Settings of the sampler alone
SAMPLED = ("estimator", "surrogate", "polynomial_order", "frontier", "pairing", "sampling")
# Settings that go on to the solver
OF_SOLVER = ("budget", "tol", "random_state", "method", *SAMPLED)
OPTIONS = (*OF_SOLVER, "batch_size", "deterministic", "exact_owner", "output_names", "rows_together")
# Methods that are read wherever they agree with their model's reader
USUAL_METHODS = ("predict_proba", "decision_function", "predict", "score_samples")
# Words of ``output=`` that mean all that a method returns
_RETURNED = (("predict_proba", "probability"), ("predict_proba", "response"), ("predict", "response"))
# Matrices of all coalitions at once.
SQUARES_OF_POOL = 4.0
# An estimator of many rows: one process over rows and coalitions.
POOLED = "pooled"
SAMPLING = frozenset(OPTIONS) - {"exact_owner", "deterministic", "batch_size"}
# Cells of one batch of rows: 64 MiB.
BATCH_CELLS = 2**23
# Limits of one batch, so that a slow function shows progress within a row.
BATCH_ROWS, BATCH_COALITIONS = 2**15, 512
# Factor on the rounding: a function's own arithmetic may depend on the batch that a row is in.
BATCH_ROUNDINGS = 8.0

# Background rows on which a function is tried before it is explained.
CHECKED_ROWS = 16

# Players up to which all coalitions are offered, and what a sample of the usual size takes besides its calls (benchmarks/growth.py).
MOST_OFFERED, SAMPLE_SECONDS = 16, 0.2
# Seconds of a call from which on no larger batch of coalitions is timed.
PATIENCE = 0.02

logger = logging.getLogger("exactshap")


def read(model: Model, request: Request) -> Reader:
    """Read a function on rows; a bound method of a model with an exact reader is passed to that reader.

    The owner is used if the method is its library's own and the one that its reader reproduces, with a log line at INFO, and never
    for methods that return labels. Any sampling option (``budget=``, ``tol=``, ...) or ``exact_owner=False`` keeps the function a
    black box.
    """
    request.refuse_options(OPTIONS, owner="The black-box reader")
    if request.asks_response and (getattr(model, "__name__", ""), request.output) in _RETURNED:
        request = replace(request, output="auto")
    # Sampling options only matter if the function is sampled.
    if request.options.get("exact_owner", True) and not SAMPLING & set(request.options):
        kept = {name: value for name, value in request.options.items() if name not in OPTIONS}
        reader = owner_reader(model, replace(request, options=kept))
        if reader is not None:
            logger.info(
                "%s is a method of %s, which is known exactly: its own reader is used. Pass exact_owner=False to sample the function.",
                name_of(model),
                reader.traits.model_name,
            )
            return reader
    return BlackBox(model, request)


class BlackBox(Reader):
    """Explain a function by calling it on rows mixed with the background.

    ``function`` takes tables of the kind that the background is (read-only arrays, or fresh frames) and returns (n_rows,),
    (n_rows, 1) or (n_rows, n_outputs) real numbers. Options: ``budget`` and ``tol`` count coalitions per row, each of them one call
    per background row; ``rows_together`` rows at a time share coalitions and relevances, or one process over rows and coalitions with
    ``estimator="pooled"``; see :func:`exactshap.solve` for the rest.
    The seed defaults to 0 and is the same for every row.
    """

    def __init__(self, function: Callable[..., Any], request: Request) -> None:
        name, background = name_of(function), request.background
        # First, as the function cannot be called without reference rows.
        choose_value_function(request, owner=name)
        assert background is not None
        if background.is_sparse:
            do = "Pass dense rows, and a function that makes them sparse: lambda rows: f(scipy.sparse.csr_matrix(rows))"
            raise InputTypeError("Functions are called with dense rows", "Got a sparse `background`", do)
        self.options = _checked_options(dict(request.options))
        self._fixed = single_values(background)
        is_probability = name.endswith(".predict_proba") and not isinstance(function, functools.partial)
        is_probability = is_probability and not is_regressor(getattr(function, "__self__", None))  # skorch's have one, too
        traits = Traits.of(
            OfColumn(function) if background.was_column else function,
            request,
            model_name=name,
            n_columns=background.n_columns,
            unit="probability" if is_probability else "output of the function",
            # A row needs many calls: small blocks for progress and for threads
            block_rows=self.options["rows_together"] or 4,
            # Rows that are estimated together are a block, whatever the number of threads
            uses_threads=self.options["rows_together"] is not None,
        )
        self._method = self._chosen_method(traits.n_players)
        budget, tol = self.options.get("budget"), self.options.get("tol")
        # Coalitions of a row: at most, and usually, where a tolerance decides
        self._coalitions = n_calls(traits.n_players, budget, self._method, tol)
        self._usual_coalitions = n_calls(traits.n_players, budget, self._method)
        self.traits, self._outputs = self._of_first_call(traits, request.output)
        # After the first call, which shows the precision of the answers.
        self.traits = self.traits.with_rounding(relative=BATCH_ROUNDINGS * self.traits.relative_rounding)
        self.traits = replace(self.traits, calls=self._forecast())

    def _of_first_call(self, traits: Traits, output: object) -> tuple[Traits, list[int] | None]:
        """Call a few background rows twice, for the number of outputs, the precision and whether other batches change answers."""
        function, name, unit = traits.model, traits.model_name, traits.unit
        rows = traits.reference.take(slice(0, CHECKED_ROWS))
        first, names = first_call(function, rows, name, self.options["batch_size"])
        is_vector = first.ndim == 1
        names = _named(self.options["output_names"], ("output",) if is_vector else names, name)
        chosen, single = select_outputs(names, output, owner=name)
        output_names, single = tuple(names[k] for k in chosen), is_vector or single
        # Networks and boosters with a last layer or objective of the user's own return margins
        if unit == "probability" and np.abs(first - 0.5).max(initial=0.0) > 0.5 + MOST_BEYOND:
            unit = "output of the function"
        if single:
            unit = _unit_of_one(unit, output_names[0])
        mode = self.options["deterministic"]
        settings = {"refuse": mode == "raise", "most": self.options["batch_size"]}
        eps = precision(first) if mode == "skip" else rounding(function, rows, first, name, **settings)
        traits = replace(
            traits,
            output_names=output_names,
            single_output=single,
            unit=unit,
            rounding=Rounding(float(traits.reference.n_rows), eps),
        )
        return traits, None if is_vector else chosen

    def predict(self, X: Table) -> np.ndarray:
        if X.n_rows == 0:
            return np.zeros((0,) if self.traits.single_output else (0, self.traits.n_outputs))
        model, name = self.traits.model, self.traits.model_name
        return self._select(call(model, self._like_background(X), name, most=self.options["batch_size"]))

    def _select(self, values: np.ndarray) -> np.ndarray:
        values = values.astype(float, copy=False)
        if self._outputs is None:
            if values.ndim != 1:
                raise InputError(f"{self.traits.model_name} returned shape {values.shape}", "It returned one output before")
            return values
        if values.ndim != 2 or values.shape[1] <= max(self._outputs):
            raise InputError(f"{self.traits.model_name} returned shape {values.shape}", "It returned several outputs before")
        values = values[:, self._outputs]
        return values[:, 0] if self.traits.single_output else values

    def game(self, X: Table) -> Any:
        return RowGames(
            tuple(self.row_game(X.take(slice(i, i + 1)), i) for i in range(X.n_rows)),
            self.traits.n_players,
            self.traits.n_outputs,
            self.traits.single_output,
        )

    def row_game(self, row: Table, number: int | None = None) -> OracleGame:
        """Return the game of one row: the weighted mean prediction over the background, players outside S from there."""
        return OracleGame(RowFunction(self, row, number), self.traits.n_players)

    @functools.cached_property
    def batch_coalitions(self) -> int:
        """Return the number of coalitions in one call of the function."""
        return max(self.batch_rows() // self.traits.reference.n_rows, 1)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        X, settings = self._like_background(X), {name: self.options[name] for name in OF_SOLVER if name in self.options}
        if self.options.get("estimator") == POOLED and X.n_rows:
            return self._solve_pooled(X, semivalue, order)
        if self.options["rows_together"] is not None and X.n_rows:
            return self._solve_together(X, semivalue, order, settings)

        def solve_row(i: int) -> Solution:
            row = X.take(slice(i, i + 1))
            # A player with columns that are the same in the row and in all background rows gets exactly 0, and costs no call.
            return solve_moving(self.row_game(row, i), self._moving(row), semivalue, order, **settings).as_batch()

        return Solution.join(map(solve_row, range(X.n_rows)), X.n_rows)

    def _moving(self, row: Table) -> list[int]:
        """Return players with columns where the row differs from the background. One different background row is enough."""
        idle = {j for j, value in self._fixed.items() if _same(row.column(j)[0], value)}
        return [place for place, columns in enumerate(self.traits.players) if not idle.issuperset(columns)]

    def _solve_pooled(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Estimate all rows by one process over rows and coalitions, each row from coalitions of its own."""
        if order > 1:
            raise InputError(f"estimator={POOLED!r} has values of single players only", f"Got order={order}", "Use 'process'")
        background, rows = self.traits.reference.numeric(what="background"), X.numeric()
        if not (np.isfinite(background).all() and np.isfinite(rows).all()):
            raise InputError(f"estimator={POOLED!r} needs numbers in all cells", "Got missing ones", "Use estimator='process'")
        spread = np.concatenate([background, rows]).std(axis=0)
        owners = player_of_columns(self.traits.players, self.traits.n_features)
        function = RowFunction(self, X)

        def answers(numbers: np.ndarray, masks: np.ndarray) -> np.ndarray:
            try:
                found = function.of_rows(numbers, masks)
            except InputError:  # row by row, so that the error names the row
                own = [np.flatnonzero(numbers == i) for i in range(X.n_rows)]
                parts = [
                    RowFunction(self, X.take(slice(i, i + 1)), i).by_row(masks[some])[:, 0]
                    for i, some in enumerate(own)
                    if len(some)
                ]
                found = np.concatenate(parts)
            return found.reshape(len(masks), -1)

        parts = solve_pooled(
            answers,
            (rows - background.mean(axis=0)) / np.where(spread > 0, spread, 1.0),
            owners,
            [self._moving(X.take(slice(i, i + 1))) for i in range(X.n_rows)],
            semivalue,
            budget=int(self._coalitions),
            rng=np.random.default_rng(self._seed_of(X)),
        )
        d, single = self.traits.n_players, self.traits.single_output
        solutions = (part.finish(d, semivalue, 1, single_output=single, n_evaluations=n).as_batch() for part, n in parts)
        return Solution.join(solutions, X.n_rows)

    def _solve_together(self, X: Table, semivalue: Semivalue, order: int, settings: dict[str, Any]) -> Solution:
        """Estimate all rows from the same coalitions, as outputs of one game with the same relevances.

        Other rows get other coalitions, so that errors of means over rows average out: the seed and the rows' cells decide.
        """
        settings = {**settings, "random_state": self._seed_of(X)}
        rows = [X.take(slice(i, i + 1)) for i in range(X.n_rows)]
        moving = sorted({j for row in rows for j in self._moving(row)})
        together = [
            RowFunction(self, X.take(slice(i, i + self.batch_coalitions))) for i in range(0, X.n_rows, self.batch_coalitions)
        ]

        def value(masks: np.ndarray) -> np.ndarray:
            try:
                answers = [some.by_row(masks) for some in together]
            except InputError:  # row by row, so that the error names the row
                answers = [RowFunction(self, row, i).by_row(masks) for i, row in enumerate(rows)]
            return np.concatenate(answers, axis=1).reshape(len(masks), -1)

        found = solve_moving(OracleGame(value, self.traits.n_players), moving, semivalue, order, **settings)
        found = split_by_row(found, X.n_rows, self.traits.n_outputs, self.traits.single_output)
        method, calls = f"{found.method}, {X.n_rows} rows together", X.n_rows * found.n_evaluations
        return replace(found.renamed(method), n_evaluations=calls)

    def _seed_of(self, X: Table) -> list[int] | None:
        """Return the seed of rows together, which depends on their cells."""
        if self.options["random_state"] is None:
            return None
        cells = repr([np.asarray(X.column(j)).tolist() for j in range(X.n_columns)])
        return [self.options["random_state"], zlib.crc32(cells.encode())]

    def _like_background(self, X: Table) -> Table:
        """Return rows in the background's dtypes; refuse rows of another library, which cannot be mixed."""
        mine, theirs = (type(table.native).__module__.split(".")[0] for table in (X, self.traits.reference))
        if X.is_frame and self.traits.reference.is_frame and mine != theirs:
            raise InputTypeError(
                "X and the background must be tables of one kind", f"Got {mine} and {theirs}", "Convert one of them"
            )
        return with_dtypes_of(self.traits.reference, X)

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of one batch, which the function copies, of all coalitions and of the solver.

        Where a tolerance decides, the solver's are those of the usual number of calls.
        """
        n_players, coalitions = self.traits.n_players, self._coalitions
        each = float(self.traits.reference.n_rows) * self.traits.n_features
        batch = min(max(self.batch_rows() * self.traits.n_features, each), coalitions * each)
        held = 8.0 * (2.5 * batch + 3.0 * coalitions * (n_players + self.traits.n_outputs))
        if self.options.get("estimator") == POOLED:
            held += 8.0 * SQUARES_OF_POOL * self._pooled_calls(n_rows, coalitions) ** 2
        elif self.options.get("estimator") in (None, "auto", "process"):
            held += bytes_besides_calls(self._usual_coalitions, self._method, n_players, order)
        return held + super().memory(n_rows, order)

    def _pooled_calls(self, n_rows: float, coalitions: float) -> float:
        """Return the coalitions of rows that one process knows: the empty one is that of all rows."""
        return 1.0 + min(n_rows, self.traits.block_rows) * (coalitions - 1.0)

    def batch_rows(self) -> int:
        """Return the most rows of several coalitions together. A single one is cut at ``batch_size``."""
        # Bounded in memory, and small enough for progress within a row.
        most = min(BATCH_CELLS // max(self.traits.n_features, 1), BATCH_ROWS, BATCH_COALITIONS * self.traits.reference.n_rows)
        return self.options["batch_size"] or max(most, 1)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Time the function on one coalition, and on batches while that is quick."""
        row, coalitions, method = self.row_game(few.take(slice(0, 1))), self._coalitions, self._method
        most = int(min(coalitions, self.batch_coalitions))
        # Hybrids with columns from both sides, so that the function is timed on rows as it will get them.
        masks = np.random.default_rng(0).random((most, self.traits.n_players)) < 0.5
        n_units = n_rows * coalitions
        one, each = seconds_by_size(
            lambda n: row.value(masks[:n]), most, patience=PATIENCE, n_units=n_units, timed=clocked_waiting
        )
        seconds = one + (coalitions - 1) * each
        if self.options.get("estimator") == POOLED:
            together = float(min(self.traits.block_rows, max(n_rows, 1)))
            pool = self._pooled_calls(together, coalitions)
            seconds += self.traits.n_outputs * seconds_pooled(pool, together, self.traits.n_players) / together
        else:
            seconds += seconds_besides_calls(coalitions, method, self.traits.n_players, order)
        seconds += seconds_per_unit("function, row", _row)
        return Cost(n_rows * seconds, exact=method == "enumeration", method=method, bytes=self.memory(block_rows, order))

    def _forecast(self) -> Calls:
        """Return the coalitions of a row, and advice on fewer unless the user chose them."""
        coalitions, n_players, tol = self._coalitions, self.traits.n_players, self.options.get("tol")
        if tol is not None:
            return Calls(f"{self.traits.model_name} is called until standard errors are below tol={tol}", None)
        per_row = (
            f"{coalitions:,.0f} coalitions for each row, {self.traits.reference.n_rows:,} background rows for each of them"
        )
        fewer = fewer_coalitions(n_players)
        chosen = self.options.get("budget") is not None or fewer >= coalitions or self._method == "enumeration"
        advice = "" if chosen else _advice(n_players, coalitions, fewer)
        return Calls(f"{self._method}: {per_row}", coalitions, advice, every=self._method == "enumeration")

    def _chosen_method(self, n_players: int) -> str:
        """Return the method for each row; a setting of the sampler selects it."""
        method = self.options.get("method", "auto")
        if method == "auto" and any(self.options.get(name) is not None for name in SAMPLED):
            method = "regression"
        return choose(OracleGame(len, n_players), budget=self.options.get("budget"), method=method).method


@dataclass(frozen=True, eq=False)
class OfColumn:
    """Wrap a function of texts as a function of a one-column table. It takes a list or a Series."""

    function: Callable[..., Any]

    @property
    def __self__(self) -> Any:
        return getattr(self.function, "__self__", None)

    def __call__(self, rows: TableLike) -> Any:
        if hasattr(rows, "iloc"):
            return self.function(rows.iloc[:, 0])
        return self.function(rows[:, 0].tolist() if isinstance(rows, np.ndarray) else rows.to_series(0))


@dataclass(frozen=True, eq=False)
class RowFunction:
    """Evaluate v(S) of a row, or of several, in batches of coalitions; ``number`` names the row in messages."""

    reader: BlackBox
    rows: Table
    number: int | None = None

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        return self.by_row(masks)[:, 0]

    def by_row(self, masks: np.ndarray) -> np.ndarray:
        """Return the values (n_masks, n_rows[, n_outputs]) of all rows, in as few calls as batches have room for."""
        columns, step = columns_of(self.reader, masks), max(self.reader.batch_coalitions // self.rows.n_rows, 1)
        return np.concatenate([self._means(columns[i : i + step]) for i in range(0, len(masks), step)])

    def of_rows(self, numbers: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return the values (n_masks[, n_outputs]) of one row each, ``numbers`` (n_masks,)."""
        columns, step = columns_of(self.reader, masks), self.reader.batch_coalitions
        cuts = range(0, len(masks), step)
        return np.concatenate([self._means(columns[i : i + step], numbers[i : i + step])[:, 0] for i in cuts])

    def _means(self, columns: np.ndarray, numbers: np.ndarray | None = None) -> np.ndarray:
        reader, background = self.reader, self.reader.traits.reference
        n_rows = self.rows.n_rows if numbers is None else 1
        mixed = hybrid_rows(self.rows, background, columns, numbers)
        place = Place(columns, reader.traits.feature_names, self.number)
        model, name, most = reader.traits.model, reader.traits.model_name, reader.options["batch_size"]
        predicted = reader._select(call(model, mixed, name, place, most=most))
        count_coalitions(n_rows * len(columns))
        predicted = predicted.reshape(n_rows, len(columns), background.n_rows, *predicted.shape[1:])
        if reader.traits.weights is None:
            return np.asarray(predicted.mean(axis=2).swapaxes(0, 1))
        return np.einsum("rcm...,m->cr...", predicted, reader.traits.weights)


def _unit_of_one(unit: str, name: str) -> str:
    """Return the unit of a function with one output: its own name where it has one.

    >>> _unit_of_one("probability", "yes"), _unit_of_one("output of the function", "price in EUR")
    ('probability of yes', 'price in EUR')
    """
    if unit == "probability":
        return unit if name == "output" else f"probability of {name}"
    return f"{name} of the function" if name.split(" ")[0] == "output" else name


def _named(wanted: Any, names: tuple[str, ...], owner: str) -> tuple[str, ...]:
    """Return the user's names of the outputs, or those known."""
    if wanted is None:
        return names
    if isinstance(wanted, (str, bytes)) or not isinstance(wanted, Iterable):
        raise InputTypeError("`output_names` must be a sequence of str", f"Got {wanted!r}")
    texts = tuple(str(name) for name in wanted)
    if len(texts) != len(names) or len(set(texts)) != len(texts):
        got = f"{owner} has {len(names)} output{'s' * (len(names) != 1)}. Got {list(texts)}"
        raise InputError("`output_names` must hold one name for each output, all of them different", got)
    return texts


def _checked_options(options: dict[str, Any]) -> dict[str, Any]:
    usual = {"random_state": 0, "batch_size": None, "deterministic": "warn", "output_names": None, "rows_together": None}
    options = {**usual, **{name: value for name, value in options.items() if name != "exact_owner"}}
    check_tolerance(options.get("tol"))
    known = ("warn", "raise", "skip")
    if options["deterministic"] not in known:
        raise UnknownNameError(
            f"Unknown deterministic={options['deterministic']!r}", do=did_you_mean(str(options["deterministic"]), known)
        )
    seed = options["random_state"]
    if seed is not None and not is_number(seed, whole=True):
        raise InputError("The 'random_state' parameter must be None or an int >= 0 here", f"Got {seed!r}")
    if options.get("estimator") == POOLED:
        _check_pooled(options)
    for name in ("batch_size", "rows_together"):
        size = options[name]
        if size is not None and not is_number(size, 1, whole=True):
            raise InputError(f"The {name!r} parameter must be None or an int >= 1", f"Got {size!r}")
    return options


def _check_pooled(options: dict[str, Any]) -> None:
    """Refuse what one process over rows and coalitions has no use for."""
    for name in ("rows_together", "budget"):
        if options.get(name) is None:
            raise InputError(f"estimator={POOLED!r} needs {name}=", "Got None", "Pass e.g. rows_together=100, budget=30")
    for name in (*SAMPLED[1:], "tol"):
        if options.get(name) is not None:
            raise InputError(f"estimator={POOLED!r} does not use {name!r}", f"Got {options[name]!r}", "Leave it out")
    if options.get("method", "auto") not in ("auto", "regression"):
        raise InputError(f"estimator={POOLED!r} samples coalitions", f"Got method={options['method']!r}", "Leave it out")


def single_values(background: Table) -> dict[int, Any]:
    """Return the value of each column that holds only one."""
    columns = {j: background.column(j) for j in range(background.n_columns)}
    return {j: cells[0] for j, cells in columns.items() if all(_same(cell, cells[0]) for cell in cells[1:])}


def _same(one: Any, other: Any) -> bool:
    """Say whether two cells are the same to a function: missing cells are; 0.0 and -0.0 are not, nor are True and 1."""
    if getattr(one, "ndim", 0) or getattr(other, "ndim", 0):  # a vector in a cell
        return np.array_equal(one, other)
    try:
        # NaN is the one number that differs from itself.
        alike = bool(one == other or (one != one and other != other))
    except (TypeError, ValueError):  # pandas' NA compares to nothing
        return one is other
    return alike and _kind(one) == _kind(other)


def _kind(cell: object) -> tuple[bool, bool]:
    """Return what distinguishes cells that compare equal: whether it is a boolean, and whether a negative zero."""
    is_negative_zero = isinstance(cell, (float, np.floating)) and cell == 0.0 and math.copysign(1.0, cell) < 0.0
    return isinstance(cell, (bool, np.bool_)), is_negative_zero


def owner_reader(model: Model, request: Request) -> Reader | None:
    """Return the exact reader of a method's owner, or None. None unless the method is what that reader reproduces.

    It must be the very method of the owner's library, give numbers and not labels, and agree with the reader on background rows
    and on mixtures of them: a forest's labels and probabilities agree on every row that it has memorised. Other methods than the
    usual ones, and a ``functools.partial`` of a method, must be the reader's own call.
    """
    is_partial = isinstance(model, functools.partial) and not model.args
    method, has_settings = (model.func, bool(model.keywords)) if is_partial else (model, False)
    owner: Any = getattr(method, "__self__", None)
    known = known_class(owner)
    if known is None or request.background is None or not is_own_method(method, known, has_settings=has_settings):
        return None
    answers = _Answers(model, request.background)
    for read_owner in (read_any, *_READINGS.get(method.__name__, _RESPONSE)):
        if (reader := _agreeing(read_owner, answers, owner, request)) is not None:
            return reader
    # Of one-class machines: decision_function = score_samples - offset_
    offset = np.ravel(getattr(owner[-1] if hasattr(owner, "steps") else owner, "offset_", ()))
    if method.__name__ != "score_samples" or len(offset) != 1:
        return None
    shift, own_call = float(offset[0]), OwnCall("score_samples")
    reader = _agreeing(read_any, answers, owner, request, shift)
    return reader and AffineReader(reader, shift=shift, model=owner, own_call=own_call, unit="score of the row")


def _read_as(output: str, owner: Model, request: Request) -> Reader:
    """Read all that ``output=`` names, where it is exact."""
    reader = read_any(owner, replace(request, output=output))
    if reader.traits.is_sampled or not _asks_everything(request):  # one of its outputs has no name
        raise UnsupportedStructureError(f"The {reader.traits.unit} of {reader.traits.model_name} is called", request.output)
    return reader


def _asks_everything(request: Request) -> bool:
    return isinstance(request.output, str) and request.output in ("auto", "all")


# What methods return where the model itself is read as something else: the response, such as a rate, unless named here
_RESPONSE = (functools.partial(_read_as, "response"),)
_READINGS: dict[str, tuple[Callable[[Model, Request], Reader], ...]] = {
    "predict_proba": (read_every_class, *_RESPONSE),
    "decision_function": (functools.partial(_read_as, "ovr"),),
}


@dataclass(frozen=True, eq=False)
class _Answers:
    """Hold a method's answers on background rows. Readings of its owner are compared with them."""

    method: Callable[..., Any]
    background: Table

    @functools.cached_property
    def rows(self) -> Table:
        """Return the first background rows, plain and mixed: with every other column of their neighbour."""
        here = np.arange(min(self.background.n_rows, CHECKED_ROWS))
        neighbours = self.background.take(np.concatenate([here, (here + 1) % self.background.n_rows]))
        return self.background.take(np.tile(here, 2)).hybrid(neighbours, np.arange(self.background.n_columns) % 2 == 0)

    @functools.cached_property
    def values(self) -> np.ndarray:
        """Return what the method answers: one call for all readings, and none where the owner cannot be read."""
        return joined_outputs(self.method(self.rows.native))


def _agreeing(
    read_owner: Callable[[Model, Request], Reader], answers: _Answers, owner: Model, request: Request, shift: float = 0.0
) -> Reader | None:
    """Return the owner's reader if it predicts what the method returns, less ``shift``."""
    try:
        # In a separate context, so that its warnings are not repeated.
        reader = copy_context().run(_read_exactly, read_owner, owner, replace(request, output="auto"))
        got, relative = np.asarray(reader.predict(answers.rows), float), 64 * reader.traits.rounding.precision
        agrees = answers.values.shape == got.shape and _is_call_of(answers.method, reader)
        if not agrees or not np.allclose(answers.values, got + shift, rtol=relative, atol=relative * abs(shift)):
            return None
        names = request.feature_names or reader.traits.feature_names
        if request.asks_response or names != reader.traits.feature_names:  # no output of this method; the user's names
            return None
        return reader if _asks_everything(request) else read_owner(owner, request)
    # If the owner cannot be read exactly, the function can still be sampled.
    except Exception:
        return None


def _is_call_of(method: Foreign, reader: Reader) -> bool:
    """Say whether a method is what the reader itself calls, perhaps with more settings; the usual methods are."""
    bound, settings = (method.func, method.keywords) if isinstance(method, functools.partial) else (method, {})
    if not settings and bound.__name__ in USUAL_METHODS:
        return True
    call = reader.traits.own_call
    return call is not None and call.method == bound.__name__ and settings.items() <= call.settings.items()


def _read_exactly(read_owner: Callable[[Model, Request], Reader], owner: Model, request: Request) -> Reader:
    # A warning says that a part of the owner can only be called: then the owner has no exact reader.
    RAISED.set((ExplanationWarning,))
    return read_owner(owner, request)


def _row() -> Sample:
    """Return the work per row without that of the function."""
    rows = as_table(np.array([[0.0, 0.0], [1.0, 1.0]]))
    reader, row = BlackBox(lambda X: X[:, 0], Request(background=rows.take([0]))), rows.take([1])
    return 1.0, lambda: reader.solve(row, find("shapley"), 1)


def _advice(n_players: int, coalitions: float, fewer: int) -> str:
    """Return what asks for fewer coalitions than a sample has, and for all of them where that may be quicker.

    >>> _advice(14, 2076, 300).partition(", ")[2]
    'tol= for as few as an error allows, budget=16384 for all of them, exactly: quicker where one takes less than 14 microseconds'
    """
    advice, every = f"budget={fewer} asks for fewer, tol= for as few as an error allows", 2**n_players
    if n_players > MOST_OFFERED:
        return advice
    worth = 1e6 * SAMPLE_SECONDS / (every - coalitions)
    return f"{advice}, budget={every} for all of them, exactly: quicker where one takes less than {worth:.0f} microseconds"
