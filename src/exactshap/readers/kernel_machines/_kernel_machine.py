"""Kernel machines as product games: the reader that every family of kernel models shares."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap.errors import UnsupportedStructureError, message
from exactshap.frames import Table, check_columns
from exactshap.games import ProductGame, normalised_weights
from exactshap.readers import Reader, Request, choose_value_function, finite_numbers, names_of, players_of
from exactshap.readers.kernel_machines._cost import BACKGROUND_VALUES, BLOCK_VALUES, factor_seconds, machine_memory, plain_cost
from exactshap.readers.kernel_machines._expansion import Expansion, Monomials, Part, cut_terms
from exactshap.readers.kernel_machines._folded_background import FoldedBackground
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost, Solution, player_sets
from exactshap.solvers.product import Sums, folded_method, solve_terms
from exactshap.solvers.rkhs import machine_stability

__all__ = ["KernelReader", "with_equal_shares"]

VALUE_FUNCTIONS = ("functional", "normalized", "baseline", "interventional", "interventional-independent", "observational")
_ROW_FIELDS = ("values", "empty", "full", "scale", "error_bound")


class KernelReader(Reader):
    """A kernel machine bound to a value function.

    Parameters
    ----------
    model : object
        The user's model, for its own ``predict`` and its name.
    request : Request
    expansion : Expansion
        The model's formula.
    predict : callable
        ``predict(table) -> (n_rows,) or (n_rows, n_outputs)``: the model's own prediction path.
    feature_names : tuple of str or None
        Names that the model was fitted with.
    output_names : tuple of str
    unit : str
    single_output : bool
    posterior : object or None
        What a Gaussian process needs for the covariance of its Shapley values.
    epsilon : float
        Rounding unit of the model's own arithmetic.
    """

    value_functions = VALUE_FUNCTIONS

    def __init__(
        self,
        model: Any,
        request: Request,
        expansion: Expansion,
        predict: Callable[[Table], np.ndarray],
        *,
        feature_names: tuple[str, ...] | None = None,
        output_names: tuple[str, ...] = ("output",),
        unit: str = "target",
        single_output: bool = True,
        posterior: Any = None,
        epsilon: float = float(np.finfo(np.float64).eps),
    ) -> None:
        self.model, self.model_name = model, type(model).__name__
        self.fitted_names = feature_names
        self.feature_names = names_of(request, feature_names, expansion.n_columns, self.model_name)
        self._given_names = None if request.feature_names is None else self.feature_names
        self.output_names, self.unit, self.single_output = output_names, unit, single_output
        self.expansion, self._predict, self.posterior, self._epsilon = expansion, predict, posterior, epsilon
        self.players, self.player_names = players_of(request, self.feature_names)
        self.value_function = choose_value_function(request, VALUE_FUNCTIONS, "functional", owner=self.model_name)
        self.background = None if request.background is None else self._checked(request.background, "background")
        self.weights = None if self.background is None else normalised_weights(request.weights, self.background.n_rows)
        self.conditional: Any = None
        if self.value_function == "observational":
            from exactshap.readers.kernel_machines.observational import _observational

            self.conditional = _observational.bind(self, request)
            self.block_rows = 4096  # all rows of a block share the factorisations of a coalition
            self.threads_inside = True
        else:
            request.refuse_options(owner=self.model_name)
        if self.value_function in ("functional", "normalized"):
            self._refuse_unnormalised()
        self._reference = None if self.background is None else self.columns(self.background, "background")
        self._folded = FoldedBackground(self)
        if not self._folded.kept and self._folded.pays(find("shapley"), 1):
            self.block_rows = 1024  # tables that are not kept are made again for each block of rows

    def _checked(self, table: Table, what: str) -> Table:
        return check_columns(table, self.fitted_names, self.n_features, owner=self.model_name, what=what)

    def _refuse_unnormalised(self) -> None:
        parts = [part for part in self.expansion.parts if not part.component.is_normalised]
        if parts or (self.expansion.monomials is not None and np.any(self.expansion.monomials.powers)):
            raise UnsupportedStructureError(
                message(
                    f"value_function={self.value_function!r} sets kernel factors to 1, which is only defined for factors that are 1 at x = x'",
                    "The kernel has linear, polynomial or user-given factors, whose scale is arbitrary",
                    "Pass background= for interventional values, or one reference row with value_function='baseline'",
                )
            )

    def columns(self, X: Table, what: str = "X") -> np.ndarray:
        """Return the rows as float64 (n_rows, n_columns); NaN and infinity are refused by row and column."""
        return finite_numbers(X, what, self.model_name, names=self._given_names)

    def predict(self, X: Table) -> np.ndarray:
        return self._predict(X)

    # -- the games ---------------------------------------------------------------------------------------------------

    def game(self, X: Table) -> Any:
        """Return the batch of product games of some rows, with all terms at once."""
        if self.conditional is not None:
            return self.conditional.game(X)
        values = self.columns(X)
        a, b = [np.ones((len(values), self.n_players, 0))], [np.ones((self._mixture()[0], self.n_players, 0))]
        c = [np.zeros((self.expansion.n_outputs, 0))]  # no block at all: a kernel of noise alone
        for block in self.expansion.blocks:
            a.append(self._grouped(block.factors(values)))
            b.append(self._absent(block, slice(None), a[-1].shape[2]))
            c.append(block.coefficients)
        stacked = [np.concatenate(arrays, axis=-1) for arrays in (a, b, c)]
        game = ProductGame(
            c=stacked[2][0] if self.single_output else stacked[2].T,
            a=stacked[0].transpose(0, 2, 1),
            b=stacked[1].transpose(0, 2, 1),
            weights=self._mixture()[1],
            constant=self.expansion.intercept,
        )
        return self._normalised(game) if self.value_function == "normalized" else game

    def _normalised(self, game: ProductGame) -> ProductGame:
        """Return v(S) - v(empty) + v(empty) |S| / d: each player brings an equal share of the baseline, v'(empty) = 0."""
        baseline = game.c.sum(axis=0) + game.constant
        return with_equal_shares(game, baseline, constant=game.constant - baseline)

    def _mixture(self) -> tuple[int, np.ndarray]:
        """Return how many absent factors each term has, and their weights: one for each background row where rows are joint."""
        if self.value_function == "interventional":
            assert self.weights is not None
            return len(self.weights), np.array(self.weights)
        return 1, np.ones(1)

    def _absent(self, block: Part | Monomials, rows: slice, n_terms: int) -> np.ndarray:
        """Return the factors of absent players, (n_mixture, n_players, n_terms)."""
        if self.value_function in ("functional", "normalized"):
            return np.ones((1, self.n_players, n_terms))
        assert self._reference is not None
        assert self.weights is not None
        if self.value_function == "interventional-independent":
            return np.einsum("m,mjl->jl", self.weights, self._grouped(block.factors(self._reference)))[None]
        return self._grouped(block.factors(self._reference[rows]))

    def _grouped(self, factors: np.ndarray) -> np.ndarray:
        """Multiply the factors of each player's columns: (n, n_columns, m) -> (n, n_players, m)."""
        if self.players == tuple((j,) for j in range(self.expansion.n_columns)):
            return factors
        result = np.ones((factors.shape[0], self.n_players, factors.shape[2]))
        for p, columns in enumerate(self.players):
            for j in columns:
                result[:, p] *= factors[:, j]
        return result

    # -- streaming solution ------------------------------------------------------------------------------------------

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve some rows: blocks of rows x tiles of the background added up by linearity, or the background summed up first."""
        if self.conditional is not None:
            return self.conditional.solve(X, semivalue, order)
        values = self.columns(X)
        if self._folded.pays(semivalue, order):
            method = folded_method(self.n_players, self._folded.n_background)
            return self._solution(self._folded.sums(values, semivalue, order), X, semivalue, order, method)
        sums = None
        for block, coefficients, weights, absent in self._tiles():
            n_terms = absent.shape[2]
            step = max(1, BLOCK_VALUES // max(1, n_terms * max(self.n_players, self.expansion.n_columns)))
            rows = [
                solve_terms(self._grouped(block.factors(values[i : i + step])), absent, coefficients, weights, semivalue, order)
                for i in range(0, len(values), step)
            ]
            tile = rows[0] if len(rows) == 1 else _stack(rows)
            sums = tile if sums is None else sums + tile
        return self._solution(sums if sums is not None else self._nothing(len(values), order), X, semivalue, order)

    def _tiles(self) -> Iterator[tuple[Part | Monomials, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield (block of terms, coefficients, background weights, absent factors), each small enough for memory."""
        for block in self.expansion.blocks:
            for part in cut_terms(block, max(1, BACKGROUND_VALUES // (8 * self.expansion.n_columns))):
                for weights, absent in self.background_tiles(part):
                    yield part, part.coefficients, weights, absent

    def background_tiles(self, part: Part | Monomials) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (background weights, absent factors (n_background, n_players, n_terms)) of a block of terms."""
        n_mixture, weights = self._mixture()
        width = part.coefficients.shape[1]
        step = max(1, BACKGROUND_VALUES // max(1, width * self.expansion.n_columns))
        for start in range(0, n_mixture, step):
            rows = slice(start, start + step)
            yield weights[rows], np.ascontiguousarray(self._absent(part, rows, width))

    def _nothing(self, n_rows: int, order: int) -> Sums:
        ends = np.zeros((n_rows, self.expansion.n_outputs))
        return Sums(
            np.zeros((n_rows, len(player_sets(self.n_players, order)), ends.shape[1])), ends, ends, ends[:, 0], ends[:, 0], 0
        )

    def _solution(self, sums: Sums, X: Table, semivalue: Semivalue, order: int, method: str | None = None) -> Solution:
        empty, full = sums.empty + self.expansion.intercept, sums.full + self.expansion.intercept
        values, residual = sums.values, None
        if self.value_function == "normalized":
            values = values.copy()
            values[:, : self.n_players] += empty[:, None, :] / self.n_players  # any semivalue of an additive game
            empty = np.zeros_like(empty)
        if semivalue.is_efficient(order):
            residual = full - empty - values.sum(axis=1)
        drop = (lambda array: array[..., 0]) if self.single_output else (lambda array: array)
        extra = {} if self.posterior is None else self.posterior.uncertainty(self, X, semivalue, order)
        return Solution(
            values=drop(values),
            sets=player_sets(self.n_players, order),
            empty=drop(empty),
            full=drop(full),
            residual=None if residual is None else drop(residual),
            method=sums.method if method is None else method,
            error_bound=sums.error_bound,
            scale=np.maximum(sums.scale, self._peak(X)),
            **extra,
        )

    def _peak(self, X: Table) -> np.ndarray:
        """Return the magnitude (n_rows,) that rounding is relative to in the model's own arithmetic.

        A factor exp(-s) is off by s eps relative and s exp(-s) <= 1/e: an absolute error of eps for each coefficient. A
        distance computed as |x|^2 + |y|^2 - 2 x.y is off by eps (|x|^2 + |y|^2), which the exponent inherits.
        """
        peak = np.full(
            X.n_rows, sum(part.magnitude for part in self.expansion.parts) + np.abs(self.expansion.intercept).max(initial=0.0)
        )
        if self.expansion.monomials is None and not self.expansion.cancels:
            return peak
        values = self.columns(X)
        if self.expansion.cancels:
            for part in self.expansion.parts:
                if part.component.squared is not None and part.points is not None:
                    rate = part.component.squared
                    norms = (rate * values**2).sum(axis=1) + (rate[:, None] * part.points**2).sum(axis=0).max(initial=0.0)
                    peak += part.magnitude * norms
        if self.expansion.monomials is not None:
            block = self.expansion.monomials
            peak += np.abs(values[:, :, None] ** block.powers).prod(axis=1) @ block.magnitudes
        return peak

    # -- forecasts ---------------------------------------------------------------------------------------------------

    def epsilon(self) -> float:
        return self._epsilon

    def n_terms(self) -> float:
        return float(sum(block.coefficients.shape[1] for block in self.expansion.blocks)) * self._mixture()[0]

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of one tile of the background, of one block of factors of rows, and of the sums of all rows."""
        if self.conditional is not None:
            return float(self.conditional.memory(n_rows, order))
        plain = machine_memory(self, n_rows, order) + self._folded.memory(n_rows, order)
        return plain if self.posterior is None else plain + float(self.posterior.memory(self, n_rows, order))

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        n_blocks = -(-n_rows // block_rows)
        if self.conditional is not None:
            found = self.conditional.cost(few, n_rows, n_blocks)
        elif self._folded.pays(semivalue, order):
            factors = sum(factor_seconds(self, part, self.columns(few)) for part in self.expansion.blocks)
            tables = 1 if self._folded.kept else n_blocks
            found = self._folded.cost(n_rows, order, n_blocks) + Cost(factors * (n_rows + tables * self._folded.n_background))
        else:
            found = plain_cost(self, self.columns(few), n_rows, n_blocks, semivalue, order)
        if self.posterior is not None:
            found = found + self.posterior.cost(self, n_rows, n_blocks, order)
        return replace(found, bytes=self.memory(block_rows, order))

    def memory_advice(self) -> str:
        owner = self.conditional if self.conditional is not None else self.posterior
        return super().memory_advice() if owner is None else str(owner.memory_advice())

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        """Return the bound of Theorem 6 of RKHS-SHAP for this machine, where its conditions hold."""
        if self.conditional is not None:
            return self.conditional.stability if self.conditional.has_stability() else None
        if self.background is None or self.value_function in ("functional", "normalized"):
            return None
        parts = [(part.component, part.coefficients, part.points) for part in self.expansion.parts if part.points is not None]
        rows = (self.columns(X), self.columns(self.background, "background"))
        reach = np.stack([np.abs(values).max(axis=0, initial=0.0) for values in rows])
        return functools.partial(machine_stability, parts, self._moving_monomials(), reach)

    def _moving_monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return powers (n_columns, n_monomials) and coefficients (n_outputs, n_monomials) of all but the constants."""
        monomials = self.expansion.monomials
        if monomials is None:
            return np.zeros((self.expansion.n_columns, 0), int), np.zeros((self.expansion.n_outputs, 0))
        moving = monomials.powers.any(axis=0)
        return monomials.powers[:, moving], monomials.coefficients[:, moving]

    # -- the independent twin ----------------------------------------------------------------------------------------

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Mask by hand: columns replaced for the usual value functions; for "functional" columns moved onto each training row.

        A factor is 1 where x_j equals the training row's own value, so v(S) is the sum over training rows of the kernel at
        hybrids of x and that row. This uses one kernel matrix, not the factors of the solver.
        """
        if self.value_function == "functional":
            values = self.columns(X)
            return np.stack([self._functional(values, np.asarray(mask, bool)) for mask in masks], axis=1)
        return super().masked_predictions(X, masks)

    def _functional(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        inside = np.zeros(self.expansion.n_columns, bool)
        for chosen, columns in zip(mask, self.players, strict=True):
            inside[list(columns)] = chosen
        total = np.zeros((len(values), self.expansion.n_outputs)) + self.expansion.intercept
        if self.expansion.monomials is not None:  # constants: _refuse_unnormalised lets no other monomial pass
            total += self.expansion.monomials.coefficients.sum(axis=1)
        for part in self.expansion.parts:
            assert part.points is not None
            for term, point in enumerate(part.points.T):
                hybrid = np.where(inside, values, point)
                kernel = part.component.matrix(hybrid, point[None, :])[:, 0] / part.component.amplitude
                total += kernel[:, None] * part.coefficients[:, term]
        return total[:, 0] if self.single_output else total


def with_equal_shares(game: ProductGame, total: np.ndarray, *, constant: np.ndarray) -> ProductGame:
    """Return a batch of games plus ``total`` (n_outputs,) times |S| / d, with another constant."""
    d = game.n_players
    c = np.concatenate([game.c, np.broadcast_to(total / d, (d, game.n_outputs))])
    a = np.concatenate([game.a, np.ones((len(game.a), d, d))], axis=1)
    b = np.concatenate([game.b, np.broadcast_to(1.0 - np.eye(d), (1, d, d))], axis=1)
    return ProductGame(c[:, 0] if game.single_output else c, a, b, constant=constant)


def _stack(rows: list[Sums]) -> Sums:
    """Put blocks of rows under each other."""
    joined = {name: np.concatenate([getattr(part, name) for part in rows]) for name in _ROW_FIELDS}
    return Sums(**joined, nodes=max(part.nodes for part in rows))
