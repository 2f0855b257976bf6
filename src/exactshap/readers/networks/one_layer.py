r"""Read networks of one hidden layer as product games.

.. math:: f(x) = c + \sum_h o_h\, g\Bigl(\beta_h + \sum_j W_{jh} x_j\Bigr)

A sum of exponentials in place of g, one for each unit as long as its range asks for, makes this a sum of products
(:mod:`exactshap.expansions`). A unit that is saturated for every hybrid of a row is a constant. Rectified units have a kink, and no
such sum: the coalitions of halves of the players meet in the middle (:func:`exactshap.solvers.product.solve_hinges`).

The game of one row and a background, with :math:`s_{hj}` what player j adds to the sum of unit h, is

.. math:: v_x(S) = c + \sum_z w_z \sum_h o_h\, g\Bigl(\beta_h + \sum_{j \in S} s_{hj}(x) + \sum_{j \notin S} s_{hj}(z)\Bigr)
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from exactshap._runtime.slices import slices
from exactshap._runtime.types import Model, TableLike
from exactshap.errors import BudgetError, InputError, InputTypeError, UnsupportedStructureError
from exactshap.expansions import expand
from exactshap.frames import Table, as_table
from exactshap.games import AdditiveGame, Game, ProductGame, normalised_weights
from exactshap.readers import Outputs, OwnCall, Reader, Request, Rounding, RowReader, Traits, fitted_names, target_names
from exactshap.readers.responses import HybridScores, Response, RowScores, SampledResponse, of_score, probabilities
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution, solve
from exactshap.solvers.product import MAX_HINGE_PLAYERS, solve_hinges, solve_terms

ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "logistic": expit,
    "identity": lambda t: t,
    "relu": lambda t: np.maximum(t, 0.0),
}
# Sums beyond are constants: the logistic function of -40 is 4e-18.
_SATURATED = 40.0
# Players up to which visiting all coalitions costs less than expansions (benchmarks/bench_networks.py): 0.2 s for 1 s at 10
ENUMERATED = 10

# Numbers that players add to sums, at a time: 8 MiB.
_BLOCK_VALUES = 2**20
# Bytes of the background's factors at a time: they stay in a core's caches.
_BLOCK_BYTES = 2.0**25


class OneLayerNetwork:
    r"""Describe a network of one hidden layer by its arrays.

    Parameters
    ----------
    weights : array of shape (n_features, n_units)
        W. Of a ``torch.nn.Linear`` the transpose of ``weight``.
    bias : array of shape (n_units,)
        beta.
    out_weights : array of shape (n_units,) or (n_units, n_outputs)
        o.
    out_bias : float or array of shape (n_outputs,), default=0.0
        c.
    activation : {"tanh", "logistic", "identity", "relu"}, default="tanh"
        g.
    predict : callable, default=None
        The foreign model's own ``predict(X)``, so that the certificate is checked against it; None checks against the formula.
    precision : dtype, default=float64
        What ``predict`` computes in.

    Raises
    ------
    InputError
        If the arrays do not fit together.
    UnsupportedStructureError
        If the activation is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap import explain
    >>> network = OneLayerNetwork([[1.0], [-2.0]], [0.5], [3.0], activation="tanh")
    >>> explain(network, np.array([[0.2, 0.1]]), np.zeros((1, 2))).values.round(4)
    array([[ 0.4696, -0.4696]])
    """

    def __init__(
        self,
        weights: ArrayLike,
        bias: ArrayLike,
        out_weights: ArrayLike,
        out_bias: ArrayLike = 0.0,
        *,
        activation: str = "tanh",
        predict: Any = None,
        precision: Any = np.float64,
    ) -> None:
        if activation not in ACTIVATIONS:
            known = f"Got activation={activation!r}; exact are {', '.join(map(repr, ACTIVATIONS))}"
            do = "Explain its predict method, sampled beyond 13 players: explain(model.predict, X, background)"
            raise UnsupportedStructureError("The units of OneLayerNetwork have no exact form", known, do)
        if predict is not None and not callable(predict):
            raise InputTypeError("`predict` must be callable or None", f"Got {type(predict).__name__}")
        arrays = [np.array(one, float) for one in (weights, bias, out_weights, out_bias)]
        self.weights, self.bias, self.out_weights, self.out_bias = arrays
        shape = self.weights.shape
        fit = self.weights.ndim == 2 and self.bias.shape == shape[1:] and self.out_weights.shape[:1] == shape[1:]
        fit = fit and self.out_weights.ndim in (1, 2) and self.out_bias.shape in ((), (1,), self.out_weights.shape[1:])
        if not fit:
            got = f"Got weights {shape}, bias {self.bias.shape}, out_weights {self.out_weights.shape}, out_bias {self.out_bias.shape}"
            raise InputError("The arrays of the network do not fit together", got)
        if not all(np.isfinite(one).all() for one in arrays):
            raise InputError("The arrays of the network must be finite", "Got NaN or infinity")
        self.activation, self.own_predict, self.precision = activation, predict, np.dtype(precision)

    def predict(self, X: TableLike) -> np.ndarray:
        """Return f(x), of shape (n_rows,) or (n_rows, n_outputs)."""
        if self.own_predict is not None:
            return np.asarray(self.own_predict(X), float)
        hidden = ACTIVATIONS[self.activation](as_table(X).numeric() @ self.weights + self.bias)
        return np.asarray(hidden @ self.out_weights + self.out_bias)


def read(model: OneLayerNetwork, request: Request) -> Reader:
    """Read the arrays."""
    multiple = model.out_weights.ndim == 2
    n_outputs = model.out_weights.shape[1] if multiple else 1
    names = tuple(f"output {k}" for k in range(n_outputs)) if multiple else ("output",)
    outputs = Outputs.of(names, request.output, owner="OneLayerNetwork", multiple=multiple)
    call = outputs.call("predict")
    return NetworkReader(model, request, model, call, outputs=outputs, unit="output", precision=model.precision)


class NetworkReader(RowReader[np.ndarray]):
    """Read outputs of a network of one hidden layer, bound to a background.

    ``odds_rounding`` is what a prediction is off by for each unit of exp(prediction), where log-odds are worked out from probabilities.
    """

    def __init__(
        self,
        model: Model,
        request: Request,
        network: OneLayerNetwork,
        own_call: OwnCall,
        *,
        outputs: Outputs,
        unit: str,
        precision: Any,
        odds_rounding: float = 0.0,
    ) -> None:
        request.refuse_options(owner=type(model).__name__)
        out = network.out_weights.reshape(len(network.bias), -1)
        out, out_bias = out[:, outputs.numbers], np.broadcast_to(network.out_bias, out.shape[1:])[outputs.numbers]
        layer = OneLayerNetwork(network.weights, network.bias, out, out_bias, activation=network.activation)
        traits = Traits.of(
            model,
            request,
            fitted_names=fitted_names(model),
            n_columns=len(layer.weights),
            output_names=outputs.names,
            single_output=outputs.single,
            unit=unit,
            own_call=own_call,
        )
        # waves of a unit, or coalitions of a half of the players
        meets = layer.activation == "relu"
        each = 2.0 ** (min(traits.n_players, MAX_HINGE_PLAYERS) / 2) if meets else 100.0
        floor = float(np.abs(layer.out_bias).max(initial=0.0))
        rounding = Rounding(each * max(1, len(layer.bias)), float(np.finfo(precision).eps), floor=floor)
        weights = normalised_weights(request.weights, traits.reference.n_rows)
        self.layer, self.traits = layer, replace(traits, rounding=rounding, weights=weights)
        self.is_enumerated = not meets and traits.n_players <= ENUMERATED
        self.method = "meet in the middle" if meets else "quadrature"
        self._keep_background(traits.reference)
        self._odds_rounding = odds_rounding / self.traits.relative_rounding
        if odds_rounding:
            floor += self._odds_rounding * float(np.exp(np.maximum(self.predict(traits.reference), 0.0)).max())
            self.traits = self.traits.with_rounding(floor=floor)

    def _keep_background(self, rows: Table) -> None:
        self._absent = self._sums(rows, "background")

    def _sums(self, X: Table, what: str = "X") -> np.ndarray:
        """Return what each player adds to each unit. The shape is (n_rows, n_players, n_units)."""
        rows = X.finite(what, self.traits.model_name)
        sums = np.zeros((len(rows), self.traits.n_players, len(self.layer.bias)))
        for player, columns in enumerate(self.traits.players):
            # One by one, as a row then has the same bits in every batch.
            for j in columns:
                sums[:, player] += rows[:, j, None] * self.layer.weights[j]
        return sums

    def game(self, X: Table) -> Game:
        """Return the rows' games: by expansions that hold for all of them, or by their definition."""
        sums = self._sums(X)
        if self.layer.activation == "identity":
            return self._linear_game(sums)
        if self.layer.activation == "relu" or self.is_enumerated:
            return super().game(X)
        terms = self._terms(sums)
        inside, absent = (
            np.exp(np.take(one, terms.unit, axis=2) * terms.rates).transpose(0, 2, 1) for one in (sums, self._absent)
        )
        constant = terms.constant
        c = terms.c[:, 0] if self.traits.single_output else terms.c
        return ProductGame(c, inside, absent, self.traits.weights, constant[0] if self.traits.single_output else constant)

    def _linear_game(self, sums: np.ndarray) -> AdditiveGame:
        """Return the games of a network without activation: each player adds its own part."""
        out = self.layer.out_weights
        inside, outside = sums @ out, np.einsum("z,zju->ju", self._weights, self._absent) @ out
        players = range(self.traits.n_players)
        tables = [np.stack([np.broadcast_to(outside[j], inside[:, j].shape), inside[:, j]], axis=1) for j in players]
        if self.traits.single_output:
            tables = [table[:, :, 0] for table in tables]
        constant = self.layer.out_bias + self.layer.bias @ out
        return AdditiveGame(self.traits.n_players, [(j,) for j in players], tables, constant)

    def _rows(self, X: Table) -> Iterator[tuple[np.ndarray, float]]:
        for row in self._sums(X):
            yield row, float(self._sizes(row[None])[0])

    def _value(self, row: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        units, constant = self._units(row), self.layer.out_bias
        return (
            (lambda masks: units(masks)[:, 0] + constant[0])
            if self.traits.single_output
            else (lambda masks: units(masks) + constant)
        )

    def _units(self, row: np.ndarray) -> Units:
        layer = self.layer
        return Units(row, self._absent, self._weights, layer.bias, layer.out_weights, ACTIVATIONS[layer.activation])

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve one row after the other, each with the expansions for its own sums."""
        if self.layer.activation == "identity":
            return solve(self._linear_game(self._sums(X)), semivalue, order)
        return super().solve(X, semivalue, order)

    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        """Yield the solutions of the rows: rectified units meet in the middle, others by expansions."""
        for row, size in self._rows(X):
            if self.layer.activation == "relu":
                part = self._units(row).meet_in_the_middle(semivalue, order, self.traits.model_name)
                yield self._rounded(part, size, self.layer.out_bias, semivalue, order)
            else:
                yield self._expanded(row[None], size, semivalue, order)

    def _rounded(self, part: Part, size: float, constant: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
        """Return the values of one row with what rounds inside the units."""
        odds = np.exp(np.maximum(part.full[:, 0] + constant[0], 0.0)) if self._odds_rounding else 0.0
        part = replace(part, scale=part.scale + size + self._odds_rounding * odds)
        return self._finished(part, constant, semivalue, order)

    def _expanded(self, sums: np.ndarray, size: float, semivalue: Semivalue, order: int) -> Solution:
        """Add up blocks of terms of one row."""
        terms = self._terms(sums)
        n_background, d, _ = self._absent.shape
        width = int(max(1, _BLOCK_BYTES / (16.0 * d * n_background)))
        total = None
        for start in range(0, len(terms.unit), width):
            unit, rates, c = (array[start : start + width] for array in (terms.unit, terms.rates, terms.c))
            inside, absent = (np.exp(np.take(one, unit, axis=2) * rates) for one in (sums, self._absent))
            part = solve_terms(inside, absent, np.ascontiguousarray(c.T), self._weights, semivalue, order)
            total = part if total is None else total + part
        assert total is not None
        bound = np.asarray(total.error_bound) + 2.0**order * terms.error
        return self._rounded(replace(total, error_bound=bound), size, terms.constant, semivalue, order)

    def _terms(self, sums: np.ndarray) -> _Terms:
        """Return the waves of units that some hybrid does not saturate."""
        layer, doubled = self.layer, 2.0 if self.layer.activation == "tanh" else 1.0
        low, high = self._ranges(sums)
        constant, error = layer.out_bias.copy(), 0.0
        units, rates, coefficients = [np.zeros(0, int)], [np.zeros(0, complex)], [np.zeros((0, len(constant)), complex)]
        for h, out in enumerate(layer.out_weights):
            # A unit that is saturated in every hybrid is a constant: no expansion has to follow it so far out.
            if doubled * low[h] > _SATURATED or doubled * high[h] < -_SATURATED:
                constant += out * float(ACTIVATIONS[layer.activation](np.asarray(low[h])))
                error += 1e-17 * float(np.abs(out).max())
                continue
            expansion = self._expansion(doubled * max(abs(low[h]), abs(high[h])))
            # tanh(s) = 2 logistic(2 s) - 1: one expansion serves both activations.
            constant += out * (doubled * expansion.constant - (doubled - 1.0))
            error += doubled * expansion.error * float(np.abs(out).max())
            waves = doubled * expansion.coefficients * np.exp(doubled * expansion.rates * layer.bias[h])
            units.append(np.full(len(waves), h))
            rates.append(doubled * expansion.rates)
            coefficients.append(np.outer(waves, out))
        if len(units) == 1:  # all are saturated: a game without terms
            units.append(np.zeros(1, int))
            rates.append(np.zeros(1, complex))
            coefficients.append(np.zeros((1, len(constant)), complex))
        return _Terms(np.concatenate(units), np.concatenate(rates), np.concatenate(coefficients), constant, error)

    def _expansion(self, limit: float) -> Any:
        try:
            return expand("logistic", limit)
        except BudgetError as error:
            do = "Explain its predict method, sampled beyond 13 players: explain(model.predict, X, background)"
            got = f"Its sum reaches {limit:.3g}, with both signs"
            raise BudgetError(f"A unit of {self.traits.model_name} is too steep to be expanded", got, do) from error

    def _ranges(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest sum (n_units,) of any hybrid."""
        low = np.full(len(self.layer.bias), np.inf)
        high = -low
        for row in sums:
            # Of each player the smaller of both sides: some hybrid takes exactly those.
            low = np.minimum(low, np.minimum(row, self._absent).sum(axis=1).min(axis=0))
            high = np.maximum(high, np.maximum(row, self._absent).sum(axis=1).max(axis=0))
        return low + self.layer.bias, high + self.layer.bias

    def _sizes(self, sums: np.ndarray) -> np.ndarray:
        """Return what is added up (n_rows,) inside and behind the units."""
        slope = 0.25 if self.layer.activation == "logistic" else 1.0  # the largest of g, which multiplies the rounding of a sum
        inside = np.abs(self.layer.bias) + np.abs(sums).sum(axis=1) + np.abs(self._absent).sum(axis=1).max(axis=0)
        return np.asarray((1.0 + slope * inside) @ np.abs(self.layer.out_weights).max(axis=1))

    def hybrids(self, X: Table) -> RowScores:
        """Return the scores of one row's hybrids, for sampling."""
        units = self._units(self._sums(X)[0])

        def scores(masks: np.ndarray) -> np.ndarray:
            """Return scores of shape (n_background, n_outputs, n_masks)."""
            return np.stack([units.scores(mask) + self.layer.out_bias for mask in masks], axis=2)

        moving = (units.row != units.absent).any(axis=(0, 2))
        return RowScores(scores, np.flatnonzero(moving).tolist())

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Time one row with one background row, and multiply; games of small terms forecast themselves."""
        if self.layer.activation == "identity":
            return Reader.cost(self, few, n_rows, semivalue, order, block_rows)
        return super().cost(few, n_rows, semivalue, order, block_rows)

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of a block, and of the background's parts."""
        n_background, d, n_units = self._absent.shape
        held = super().memory(n_rows, order) + 8.0 * n_rows * d * n_units
        if self.layer.activation == "relu":
            return held + 4.0 * _BLOCK_BYTES
        if d <= ENUMERATED:
            return held + 8.0 * n_background * (d + 3.0) * n_units
        return held + 2.5 * min(
            _BLOCK_BYTES, 16.0 * d * n_background * self.traits.rounding.n_terms
        )  # sums, their waves' exponents, waves


@dataclass(frozen=True, eq=False)
class _Terms:
    """Hold the waves of all units: v(S) = constant + Re sum_l c_l prod exp(rate_l s_unit_l)."""

    unit: np.ndarray  # int64 (n_terms,)
    rates: np.ndarray  # complex128 (n_terms,)
    c: np.ndarray  # complex128 (n_terms, n_outputs)
    constant: np.ndarray  # float64 (n_outputs,)
    error: float


class Units(NamedTuple):
    """Hold the units of one row, bound to background rows."""

    row: np.ndarray  # (n_players, n_units): what each player of the row adds to the sum of each unit
    absent: np.ndarray  # (n_background, n_players, n_units): the same of the background
    weights: np.ndarray  # (n_background,)
    bias: np.ndarray  # (n_units,)
    out: np.ndarray  # (n_units, n_outputs)
    activation: Callable[[np.ndarray], np.ndarray]  # g

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) - c of shape (n_masks, n_outputs), by its definition."""
        values = np.empty((len(masks), self.out.shape[1]))
        for place, mask in enumerate(masks):
            values[place] = self.weights @ self.scores(mask)
        return values

    def scores(self, mask: np.ndarray) -> np.ndarray:
        """Return what the units of a coalition's hybrids add to the outputs. The shape is (n_background, n_outputs)."""
        sums = self.bias + self.row[mask].sum(axis=0) + self.absent[:, ~mask].sum(axis=1)
        return np.asarray(self.activation(sums) @ self.out)

    def meet_in_the_middle(self, semivalue: Semivalue, order: int, owner: str) -> Part:
        """Solve rectified units, one block of background rows after the other."""
        n_background, (d, n_units) = len(self.absent), self.row.shape
        blocks = slices(n_background, _BLOCK_VALUES // max(1, d * n_units))
        return functools.reduce(operator.add, (self._block(rows, semivalue, order, owner) for rows in blocks))

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
            raise BudgetError(f"The units of {owner} have too many players", got, do) from error


# -- multilayer perceptrons of scikit-learn ----------------------------------------------------------------------------------


def read_perceptron(model: Model, request: Request) -> Reader:
    """Read f(x) = b_2 + W_2' g(b_1 + W_1' x): targets, of two classes the log-odds; what is made of it is sampled."""
    network, outer = _network(model), request.outer_response
    names, unit, response = _scores(model)
    asks = outer is not None or (response is not None and request.asks_response)
    if unit == "score" and not asks:
        got = f"Got {model.n_outputs_} scores, which predict_proba does not say"
        do = "Pass output='probability', or explain the scores: OneLayerNetwork(model.coefs_[0], model.intercepts_[0],"
        do += " model.coefs_[1], model.intercepts_[1], activation=model.activation)"
        raise UnsupportedStructureError(f"{type(model).__name__} has log-odds only of two classes", got, do)
    own = of_score(request) if asks else request
    outputs = Outputs.of(names, own.output, owner=type(model).__name__)
    call, rounding = outputs.call("predict"), 0.0
    if response is not None:  # of several classes nothing but the probabilities is compared
        call = OwnCall("predict_proba", finish=_log_odds) if model.n_outputs_ == 1 else response.call
        # What predict_proba loses of the log-odds is no matter to what is made of the sum itself
        rounding = 0.0 if asks else 8.0 * float(np.finfo(model.coefs_[0].dtype).eps)
    precision = model.coefs_[0].dtype
    score = NetworkReader(model, own, network, call, outputs=outputs, unit=unit, precision=precision, odds_rounding=rounding)
    if not asks:
        return score
    if outer is not None:  # a calibration takes the probability, as a classifier has no other score
        response = outer if response is None else outer.after(response)
    assert response is not None
    return SampledResponse(score, HybridScores(score.hybrids), response, request, "units join players")


def _scores(model: Model) -> tuple[tuple[str, ...], str, Response | None]:
    """Return names and unit of the scores, and what a classifier makes of them."""
    if not hasattr(model, "classes_"):
        if model.out_activation_ != "identity":
            got, do = f"Got {model.out_activation_!r}", "Explain its predict method: explain(model.predict, X, background)"
            raise UnsupportedStructureError(f"The outputs of {type(model).__name__} are not sums of its units", got, do)
        return target_names(model.n_outputs_), "target", None
    if model.n_outputs_ == 1:
        label = str(model.classes_[1])
        return (label,), f"log-odds of class {label}", probabilities(model.classes_)
    # Also of two labels, each with a probability of its own
    response = Response(model.out_activation_, OwnCall("predict_proba"), "probability")
    return tuple(map(str, model.classes_)), "score", response


def _network(model: Model) -> OneLayerNetwork:
    name, method = type(model).__name__, "predict_proba" if hasattr(model, "classes_") else "predict"
    if len(model.coefs_) != 2:
        do = f"Explain its {method} method: explain(model.{method}, X, background)"
        got = f"Got {len(model.coefs_) - 1}"
        raise UnsupportedStructureError(f"{name} is read exactly with one hidden layer only", got, do)
    (weights, out), (bias, out_bias) = model.coefs_, model.intercepts_
    return OneLayerNetwork(weights, bias, out, out_bias, activation=model.activation)


def _log_odds(chances: np.ndarray) -> np.ndarray:
    r"""Return log(p / (1 - p)) of probabilities (n_rows, 2): what is left of the score, off by some eps times the odds."""
    certain = (chances <= 0.0).any(axis=1)
    if certain.any():
        got = f"Row {int(np.argmax(certain))} has a probability of exactly 0 or 1, so that predict_proba does not say its log-odds"
        do = "Explain the score by its arrays: OneLayerNetwork(model.coefs_[0], model.intercepts_[0], model.coefs_[1][:, 0],"
        do += " model.intercepts_[1], activation=model.activation); or output='probability'"
        raise InputError("The log-odds of a network are beyond what its probabilities resolve", got, do)
    chances = chances.astype(float)
    return np.asarray(np.log(chances[:, 1]) - np.log(chances[:, 0]))
