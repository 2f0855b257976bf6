"""Read kernel machines as product games, by one reader for every family of kernel models."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactshap._runtime.process_settings import without_warnings
from exactshap._runtime.slices import slices
from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.games import Game, normalised_weights
from exactshap.kernels import Kernel
from exactshap.readers import Outputs, OwnCall, Reader, Request, Rounding, Traits, choose_value_function, fitted_names
from exactshap.readers.kernel_machines._bound import BoundMachine, Strategy
from exactshap.readers.kernel_machines._expansion import Expansion, expand
from exactshap.readers.kernel_machines._gaussian_posterior import GaussianPosterior, WithPosterior
from exactshap.readers.kernel_machines._observational import bind
from exactshap.readers.kernel_machines._strategies import FoldedBackground, Streamed
from exactshap.readers.responses import HybridScores, ProductScores, RowScores, SampledResponse, of_score
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution

VALUE_FUNCTIONS = ("functional", "normalized", "baseline", "interventional", "interventional-independent", "observational")
# Rows of one evaluation of all terms.
PREDICTED_ROWS = 128
# Off by so much, an exponent leaves no digit of a kernel between equal rows
LOST = 0.1


class KernelReader(Reader):
    """Read a kernel machine bound to a value function.

    ``names`` are those of the fit, where they are not in ``model.feature_names_in_``. ``predict(table) -> (n_rows,) or (n_rows, n_outputs)``
    is the model's own prediction path, and ``own_call`` the same as a single documented call, None where there is none; one of them may
    be left out. ``posterior`` is what a Gaussian process needs for the covariance of its Shapley values, ``epsilon`` the rounding unit of
    the model's own arithmetic.
    """

    def __init__(
        self,
        model: Model,
        request: Request,
        expansion: Expansion,
        outputs: Outputs,
        *,
        unit: str,
        own_call: OwnCall | None = None,
        predict: Callable[[Table], np.ndarray] | None = None,
        names: tuple[str, ...] | None = None,
        posterior: GaussianPosterior | None = None,
        epsilon: float = float(np.finfo(np.float64).eps),
    ) -> None:
        self.expansion, self._predict = expansion, predict
        traits = Traits.of(
            model,
            request,
            fitted_names=names or fitted_names(model),
            n_columns=expansion.n_columns,
            value_functions=VALUE_FUNCTIONS,
            default="functional",
            output_names=outputs.names,
            single_output=outputs.single,
            unit=unit,
            own_call=own_call,
            rounding=Rounding(precision=epsilon, cancels=True),
        )
        if traits.background is not None:
            traits = replace(traits, weights=normalised_weights(request.weights, traits.background.n_rows))
        self.traits = traits
        # Names that the user gave are those of messages; a frame's own are in the frame.
        self._given_names = None if request.feature_names is None else self.traits.feature_names
        self._refuse_bad_fit()
        # Traits are made twice, as the tolerance needs the number of terms of the bound machine.
        self.strategy = self._strategy(request, posterior)
        self.traits = replace(
            traits.with_rounding(n_terms=_n_terms(self.strategy.machine)),
            advice_on_memory=self.strategy.advice_on_memory() or traits.advice_on_memory,
            uses_threads=self.strategy.uses_threads,
            block_rows=self.strategy.block_rows or traits.block_rows,
        )

    def _strategy(self, request: Request, posterior: GaussianPosterior | None) -> Strategy:
        """Choose how the games will be solved."""
        rows = None if self.traits.background is None else self.float_rows(self.traits.background, "background")
        machine = BoundMachine(
            self.traits.model_name,
            self.expansion,
            self.traits.players,
            self.traits.value_function,
            self.traits.single_output,
            rows,
            self.traits.weights,
            request.memory_limit,
            self.traits.rounding.precision,
        )
        if self.traits.value_function == "observational":
            if posterior is not None:
                posterior.refuse_unless_linear(self.traits.value_function)
            return bind(machine, request, self._mean_prediction)
        request.refuse_options(owner=self.traits.model_name)
        # Factors outside S become 1, which is k(x, x) only for normalised kernels.
        if not machine.replaces_columns:
            self._refuse_unnormalised()
        joint = self.traits.value_function == "interventional"
        mean: Strategy = FoldedBackground(machine) if joint else Streamed(machine)
        return mean if posterior is None else WithPosterior(mean, posterior)

    def _refuse_bad_fit(self) -> None:
        if not np.isfinite(self.expansion.magnitude):
            raise InputError(
                f"{self.traits.model_name} has coefficients that are not finite: it predicts NaN or infinity for every row",
                "Its kernel overflowed on its own training rows",
                "Fit it again with length scales of the size of the columns' differences",
            )
        off = self.expansion.lost(self.traits.rounding.precision)
        if off >= LOST:
            raise UnsupportedStructureError(
                f"{self.traits.model_name} predicts rounding at its own training rows",
                f"It takes squared distances as |x|^2 + |y|^2 - 2 x.y, off by {off:.2g} in units of its kernel",
                "Fit it with a smaller gamma (a larger length scale), or on centred and scaled columns",
            )

    def _refuse_unnormalised(self) -> None:
        parts = [part for part in self.expansion.parts if not part.component.is_normalised]
        if parts or (self.expansion.monomials is not None and np.any(self.expansion.monomials.powers)):
            raise UnsupportedStructureError(
                f"value_function={self.traits.value_function!r} sets kernel factors to 1, which is only defined for factors that are 1 at x = x'",
                "The kernel has linear, polynomial or user-given factors of arbitrary scale",
                "Pass background= for interventional values, or one reference row with value_function='baseline'",
            )

    def _mean_prediction(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the model's mean prediction (n_outputs,) over the background, or over ``rows`` without one."""
        table = Table(rows, None, *rows.shape) if self.traits.background is None else self.traits.background
        shares = weights if self.traits.weights is None else self.traits.weights
        total = np.zeros(self.traits.n_outputs)
        # The training rows come as an array, also where the model was fitted with names
        with without_warnings:
            for block in slices(table.n_rows, PREDICTED_ROWS):
                predictions = np.asarray(self.predict(table.take(block)), float)
                total += shares[block] @ predictions.reshape(len(predictions), -1)
        return total

    def float_rows(self, X: Table, what: str = "X") -> np.ndarray:
        """Return the rows as float64 (n_rows, n_columns); NaN and infinity are refused by row and column."""
        return X.finite(what, self.traits.model_name, names=self._given_names)

    def predict(self, X: Table) -> np.ndarray:
        return super().predict(X) if self._predict is None else self._predict(X)

    def game(self, X: Table) -> Game:
        """Return the batch of games of some rows: of products, or observational ones."""
        return self.strategy.game(self.float_rows(X))  # type: ignore[no-any-return]

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        return self.strategy.solve(self.float_rows(X), semivalue, order)

    def bind(self, row: Table) -> KernelReader | None:
        machine = self.strategy.machine
        if not machine.replaces_columns or self.traits.value_function == "observational":
            return None
        bound = self._rebound(row)
        # One reference row is not worth tables, and its covariance is not compared.
        bound.strategy = Streamed(replace(machine, background=self.float_rows(row), weights=np.ones(1)))
        bound.traits = bound.traits.with_rounding(n_terms=_n_terms(bound.strategy.machine))
        return bound

    # -- forecasts ---------------------------------------------------------------------------------------------------

    def memory(self, n_rows: int, order: int) -> float:
        return self.strategy.memory(n_rows, order)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        found = self.strategy.cost(self.float_rows(few), n_rows, semivalue, order, -(-n_rows // block_rows))
        return replace(found, bytes=self.memory(block_rows, order))

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        """Return the bound of Theorem 6 of RKHS-SHAP where it holds."""
        return self.strategy.stability(functools.partial(X.finite, "X", self.traits.model_name, names=self._given_names))

    # -- masked by hand ----------------------------------------------------------------------------------------------

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Mask by hand: columns replaced for the usual value functions; for "functional" columns moved onto each training row."""
        if self.traits.value_function != "functional":
            return super().masked_predictions(X, masks)
        machine, values = self.strategy.machine, self.float_rows(X)
        return np.stack([machine.functional_value(values, np.asarray(mask, bool)) for mask in masks], axis=1)


def _n_terms(machine: BoundMachine) -> float:
    return float(machine.n_terms * len(machine.mixture))


def read_arrays(
    model: Model,
    request: Request,
    kernel: Kernel,
    points: TableLike,
    dual: np.ndarray,
    intercept: ArrayLike = 0.0,
    *,
    names: tuple[str, ...],
    method: str = "predict",
    link: Callable[[np.ndarray], np.ndarray] | None = None,
    cancels: bool = False,
    **facts: Any,
) -> KernelReader:
    r"""Read the arrays of a machine.

    .. math:: f(x) = b + \sum_i \alpha_i\, k(x, X_i)

    ``dual`` (n_training,) are those of one output, or (n_training, n_outputs). ``method`` of the model gives the prediction, of which
    ``link`` is explained; ``facts`` are other settings of the reader.
    """
    multiple, dual = dual.ndim == 2, dual if dual.ndim == 2 else dual[:, None]
    outputs = Outputs.of(names, request.output, owner=type(model).__name__, multiple=multiple)
    intercept = np.broadcast_to(intercept, dual.shape[1:])[outputs.numbers]
    expansion = expand(kernel, points, dual[:, outputs.numbers], intercept, cancels=cancels)
    return KernelReader(model, request, expansion, outputs, own_call=outputs.call(method, link=link), **facts)


def with_outer_response(read: Callable[..., Reader]) -> Callable[..., Reader]:
    """Extend the reader of a score by the response that a wrapper makes of it."""

    @wraps(read)
    def read_either(model: Model, request: Request, *names: object) -> Reader:
        outer = request.outer_response
        if outer is None or not hasattr(model, outer.call.method):
            return read(model, request, *names)
        choose_value_function(request, owner=f"The {outer.unit} of {type(model).__name__}")
        score = read(model, of_score(request), *names)
        assert isinstance(score, KernelReader)
        machine = score.strategy.machine
        background, _ = machine.rows_and_weights()
        hybrids = HybridScores(
            functools.partial(_scores, score),
            has_orders=True,
            magnitude=float(machine.peak(background).max()),
            bytes=24.0 * min(machine.tile_values, machine.n_terms * machine.n_columns * len(background)),
        )
        return sampled(model, score, hybrids, request)

    return read_either


def sampled(model: Model, score: Reader, hybrids: HybridScores, request: Request) -> Reader:
    """Return the reading of the response that ``model`` makes of a score: of a feature map a pipeline."""
    score.traits = replace(score.traits, model=model)
    return SampledResponse(score, hybrids, request.outer_response, request, "terms join players")


def _scores(score: KernelReader, X: Table) -> RowScores:
    """Return the scores of one row's hybrids."""
    machine = score.strategy.machine
    present, step = machine.present(score.float_rows(X))[0], machine.tile_values // max(1, machine.n_terms * machine.n_columns)

    def absent() -> Iterator[tuple[slice, np.ndarray]]:
        return ((rows, machine.absent_of_all(rows)) for rows in slices(len(machine.mixture), step))

    constant = np.broadcast_to(machine.expansion.intercept, machine.n_outputs)
    return ProductScores.of_row(machine.coefficients, present, absent, constant)
