r"""Read additive models as additive games, by one reader for every family of sums of small terms.

.. math:: f(x) = f_0 + \sum_I f_I(x_I), \qquad v_x(S) = f_0 + \sum_I \sum_z w_z\, f_I(x_{I \cap S}, z_{I \setminus S})
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import DTypeLike

from exactshap._native import Handle
from exactshap._runtime.machine import seconds_by_size
from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.games import AdditiveGame, normalised_weights, player_of_columns
from exactshap.readers import Outputs, OwnCall, Reader, Request, Rounding, Traits, fitted_names, warn_of_rounding
from exactshap.readers.additive._functions import BoundTerms
from exactshap.readers.additive._terms import CHUNK_VALUES, BoundLinear, Reference, TermBlock, players_of_term
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution, count_sets
from exactshap.solvers.additive import (
    Linear,
    Monomials,
    Stack,
    solve_linear,
    solve_linear_precisely,
    solve_stacks,
    stacks_cost,
)

# Rows of a block of a linear model, for which copying takes as long as solving.
LINEAR_ROWS = 2**18
# Rows of a block: its work arrays stay in a core's caches, and threads share 100,000 rows
BLOCK_ROWS = 2**14
# Rows of one timed evaluation of a forecast.
TIMED_ROWS, PATIENCE = 256, 0.01
# Most evaluations of a forecast, of functions on rows mixed with the background.
TIMED_CALLS = 5e4
# Background rows on which terms are compared with the model's own prediction.
CHECKED_ROWS = 8


class AdditiveReader(Reader):
    """Read a sum of small terms; the background is folded in once."""

    def __init__(self, model: Model, request: Request, form: AdditiveForm, model_name: str = "") -> None:
        form = replace(form, blocks=tuple(block for block in form.blocks if len(block.columns)))
        self.form, self._given_names = form, request.feature_names
        request.refuse_options(owner=model_name or type(model).__name__)
        own_rows = form.has_training and request.background is None and request.value_function in ("auto", "interventional")
        if own_rows and request.weights is not None:
            raise InputError("Weights need a background", "Got background=None", "Pass background=")
        self.traits = Traits.of(
            model,
            replace(request, value_function="auto") if own_rows else request,
            model_name=model_name,
            fitted_names=form.fitted_names or fitted_names(model),
            n_columns=form.n_columns,
            default="interventional" if own_rows else None,
            output_names=form.outputs.names,
            single_output=form.outputs.single,
            unit=form.unit,
            own_call=form.own_call,
            block_rows=BLOCK_ROWS,
        )
        owner = self.owners()
        columns = [columns for block in form.blocks for columns in block.columns]
        self._widest = max(map(len, columns), default=0)
        self._widths = [len(players_of_term(term, owner)) for term in columns]
        n_terms, precision = 1.0 + len(self._widths), float(np.finfo(form.precision).eps)
        # at most k factors in a term instead of all columns; the background's sum is added and subtracted again
        relative = float(16.0 * precision * (np.sqrt(n_terms) + self._widest + 2.0))
        floor = float(np.abs(form.intercept).max(initial=0.0)) + form.floor
        self.traits = replace(self.traits, rounding=Rounding(n_terms, precision, relative, floor))
        reference, self._is_coarse = None, False
        if (background := self.traits.background) is not None:
            weights = normalised_weights(request.weights, background.n_rows)
            self.traits = replace(self.traits, weights=weights)
            reference = Reference(self.encode(background, "background"), weights)
            self._check_terms(reference)
        self._bind(reference)
        self._streams = all(bound.streams for bound in self._bound)
        if self._linear is not None:
            self.traits = replace(self.traits, block_rows=LINEAR_ROWS)

    def _bind(self, reference: Reference | None) -> None:
        """Fold the background into the terms."""
        owner = self.owners()
        self._bound = [block.bind(reference, owner) for block in self.form.blocks]
        alone = self._bound[0] if len(self._bound) == 1 else None
        self._linear: Handle | None = alone.linear if isinstance(alone, BoundLinear) else None

    def owners(self) -> list[int]:
        """Return the player of each column."""
        owner = player_of_columns(self.traits.players, self.traits.n_features).tolist()
        if -1 in owner:
            name = self.traits.feature_names[owner.index(-1)]
            raise InputError("Every column must belong to a player", f"Column {name!r} does not")
        return owner

    def _check_terms(self, reference: Reference) -> None:
        """Compare the terms with the model's own predictions."""
        rows = self.traits.reference.take(slice(0, min(CHECKED_ROWS, self.traits.reference.n_rows)))
        encoded, own = reference.rows[: rows.n_rows], np.asarray(self.predict(rows), float).reshape(rows.n_rows, -1)
        limit, terms = self.limit(own, self.form.scale(encoded)), self.form.evaluate(encoded)
        is_right = np.abs(own - terms).max(axis=1) <= limit
        if not is_right.all():
            i, method = int(np.argmin(is_right)), "predict" if self.form.own_call is None else self.form.own_call.method
            raise UnsupportedStructureError(
                f"{self.traits.model_name} does not predict the sum of its terms",
                f"For background row {i} it predicts {own[i].tolist()}, its terms give {terms[i].tolist()}",
                f"Explain its {method} as a black box: Explainer(model.{method}, background)",
            )
        # A constant, which may be 0, does not show the size of values: the certificate counts the digits left
        if is_constant := float(np.ptp(own)) == 0.0:
            self.traits = replace(self.traits, rounding=replace(self.traits.rounding, cancels=True))
        self._is_coarse = not is_constant and warn_of_rounding(
            self.traits.model_name, float(limit.max()), float(np.abs(own).max()), self.traits.rounding.precision
        )

    def predict(self, X: Table) -> np.ndarray:
        if self.form.predict is not None:
            return self.form.predict(X)
        return super().predict(X.in_double() if self.form.in_double else X)

    def limit(self, prediction: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the difference (n_rows,) to predictions that rounding explains."""
        assert self.traits.rounding.relative is not None
        size = np.abs(prediction).max(axis=tuple(range(1, prediction.ndim)), initial=0.0)
        return self.traits.rounding.relative * (scale + size + self.traits.rounding.floor)

    def encode(self, X: Table, what: str = "X") -> np.ndarray:
        """Return rows as the terms see them, checked."""
        if self.form.encode is not None:
            return self.form.encode(X, what)
        return X.finite(what, type(self.traits.model).__name__, names=self._given_names)

    def _stacks(self, rows: np.ndarray) -> Iterator[Stack | Monomials]:
        for bound in self._bound:
            yield from bound.stacks(rows)

    def game(self, X: Table) -> AdditiveGame:
        """Return the games of some rows, one table for each term."""
        subsets: list[tuple[int, ...]] = []
        tables: list[np.ndarray] = []
        for stack in self._stacks(self.encode(X)):
            subsets.extend(stack.subsets)
            tables.extend(stack.tables)
        if not tables:
            # A model without terms still has a game, with all values 0.
            subsets, tables = [()], [np.zeros((X.n_rows, 1, self.traits.n_outputs))]
        if self.traits.single_output:
            tables = [table[:, :, 0] for table in tables]
        return AdditiveGame(self.traits.n_players, subsets, tables, self.form.intercept)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Add up the values of each term's own players."""
        part = self._solved(self.encode(X), semivalue, order)
        constant, is_single = self.form.intercept, self.traits.single_output
        solution = part.finish(
            self.traits.n_players, semivalue, order, constant=constant, single_output=is_single, with_residual=False
        )
        if not self._is_coarse:
            return solution
        error = self.limit(solution.full, np.asarray(solution.scale)) + solution.error_bound
        return replace(solution, approximation_error=error)

    def _solved(self, rows: np.ndarray, semivalue: Semivalue, order: int) -> Part:
        if self._linear is None:
            part = solve_stacks(self._stacks(rows), self.traits.n_players, len(rows), self.traits.n_outputs, semivalue, order)
            # A set of k players adds up 2^k coalition values, each with that error besides rounding.
            errors = sum(bound.errors(rows) for bound in self._bound)
            part = replace(part, error_bound=part.error_bound + 2.0**order * errors)
        # In extended precision, as rounding leaves few digits of the prediction.
        elif self._is_coarse:
            model, means = cast(Linear, self._linear.value), cast(BoundLinear, self._bound[0]).means
            part = solve_linear_precisely(model, means, rows, self.traits.n_players, semivalue, order)
        else:
            part = solve_linear(self._linear, rows, self.traits.n_players, semivalue, order)
        return part if self.form.magnitude is None else replace(part, scale=part.scale + self.form.magnitude(rows))

    def bind(self, row: Table) -> AdditiveReader | None:
        if self.traits.background is None:
            return None
        bound = self._rebound(row)
        bound._bind(Reference(self.encode(row, "background"), np.ones(1)))
        return bound

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of a block: coalition values, copied once, the result, and one chunk of hybrid rows."""
        sets = count_sets(self.traits.n_players, order)
        # Values, rows as numbers, their cells or numbers once more, and a dozen numbers of each row
        if self._streams:
            n_rows += 0 if self._linear is not None else Monomials.TILE_ROWS
            return 8.0 * n_rows * (self.traits.n_outputs * (sets + 12.0) + self.traits.n_features + len(self._widths))
        coalition_values = sum(2.0**width for width in self._widths)
        functions = (bound for bound in self._bound if isinstance(bound, BoundTerms))
        calls = max((bound.row_calls / len(bound.terms) for bound in functions), default=0.0)
        chunk = 3.0 * min(float(CHUNK_VALUES), self._widest * n_rows * calls)
        return 8.0 * (
            n_rows * (self.traits.n_outputs * (2.0 * coalition_values + 3.0 * sets) + 2.0 * self.traits.n_features) + chunk
        )

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Time some rows, those of functions with some of the background rows, and multiply."""
        rows, n_blocks = self.encode(few), -(-n_rows // block_rows)
        # The few rows repeated, as time depends on their number only.
        many = rows[np.arange(TIMED_ROWS) % len(rows)]
        calls, sample, share = sum(bound.row_calls for bound in self._bound), self, 1.0
        if TIMED_ROWS * calls > TIMED_CALLS:
            n = max(1, int(self.traits.reference.n_rows * TIMED_CALLS / (TIMED_ROWS * calls)))
            sample = copy.copy(self)
            background = self.encode(self.traits.reference.take(slice(0, n)), "background")
            sample._bind(Reference(background, np.full(n, 1.0 / n)))
            share = calls / sum(bound.row_calls for bound in sample._bound)
        one, each = seconds_by_size(lambda n: sample._solved(many[:n], semivalue, order), TIMED_ROWS, patience=PATIENCE)
        solving = stacks_cost(self._widths, n_rows, self.traits.n_outputs, order)
        # Of a call, and of its rows
        seconds = n_blocks * (one - each) + n_rows * share * each
        return replace(solving, seconds=seconds, bytes=self.memory(block_rows, order))


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditiveForm:
    """Hold an additive model's formula and its own prediction."""

    blocks: tuple[TermBlock, ...]  # the terms
    intercept: np.ndarray  # (n_outputs,)
    outputs: Outputs
    unit: str
    n_columns: int
    fitted_names: tuple[str, ...] | None = None  # where they are not in ``model.feature_names_in_``
    # The model's documented call in the unit of the terms, which a pipeline or a search may have
    own_call: OwnCall | None = None
    in_double: bool = True  # whether that is called with rows in double precision, as many models compute in that of their rows
    # ``predict(table) -> (n_rows,) or (n_rows, n_outputs)``; None: by ``own_call``
    predict: Callable[[Table], np.ndarray] | None = None
    # ``encode(table, what) -> (n_rows, ...)``: the rows as the terms see them, checked; None: as finite numbers
    encode: Callable[[Table, str], np.ndarray] | None = None
    # ``magnitude(encoded) -> (n_rows,)``: sizes that cancel inside the model's own arithmetic beyond its terms
    magnitude: Callable[[np.ndarray], np.ndarray] | None = None
    floor: float = 0.0  # absolute magnitude of rounding in the prediction (1.0 where a logarithm undoes an exponential)
    precision: DTypeLike = np.float64  # what the model computes its predictions in
    has_training: bool = False  # whether the blocks know a training background of their own

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        """Return f(x) by the formula, of shape (n_rows, n_outputs)."""
        total = np.zeros((len(rows), len(self.intercept))) + self.intercept
        for block in self.blocks:
            total += block.evaluate(rows).sum(axis=1)
        return total

    def scale(self, rows: np.ndarray) -> np.ndarray:
        """Return the magnitudes (n_rows,) of that sum: the constant, each term in any output, and what cancels."""
        total = np.full(len(rows), np.abs(self.intercept).max(initial=0.0)) + self.cancelled(rows)
        for block in self.blocks:
            total += np.abs(block.evaluate(rows)).max(axis=2).sum(axis=1)
        return total

    def cancelled(self, rows: np.ndarray) -> np.ndarray | float:
        """Return the magnitudes ([n_rows,]) that cancel inside the model's own arithmetic."""
        return 0.0 if self.magnitude is None else self.magnitude(rows)
