"""Read TransformedTargetRegressor, in units of a scaled and shifted target, of a target's logarithm or of the target itself."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, UnsupportedStructureError, no_output
from exactshap.frames import Table
from exactshap.games import AdditiveGame, Game, ProductGame, SumGame
from exactshap.readers import (
    DelegatingReader,
    Offset,
    Outputs,
    OwnCall,
    Reader,
    Request,
    is_of_target,
    outputs_of,
    sklearn_name,
    writes_to_rows,
)
from exactshap.readers import read as read_any
from exactshap.readers.kernel_machines import with_equal_shares
from exactshap.readers.responses import LinkedReader, exponential, needs_rows
from exactshap.readers.wrappers._columns import readable
from exactshap.readers.wrappers._sum import Member, SumReader, read_member, request_of_sum
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution

_AFFINE = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
# Name, rate and shift: the target is exp(rate * prediction) + shift
_LOGARITHMS = {
    (np.log, np.exp): ("log", 1.0, 0.0),
    (np.log1p, np.expm1): ("log1p", 1.0, -1.0),
    (np.log2, np.exp2): ("log2", math.log(2.0), 0.0),
}


def read(model: Model, request: Request) -> Reader:
    """Read the inner regressor and undo the target's scaling of its values; logarithms stay unless ``output="response"``."""
    back = model.transformer_
    name = sklearn_name(back)
    identity = name == "FunctionTransformer" and back.func is None and back.inverse_func is None
    logarithm = _LOGARITHMS.get((back.func, back.inverse_func)) if name == "FunctionTransformer" else None
    if request.output == "probability" or request.outer_response is not None:
        raise UnknownNameError(no_output(type(model).__name__, str(request.output), ("target",)))
    if logarithm is None and not identity and name not in _AFFINE:
        raise UnsupportedStructureError(
            "The target's inverse transformation is not a scaling and a shift, so that values do not carry over exactly",
            f"Got {type(back).__name__}",
            "Explain `model.regressor_` (in units of the transformed target), or sample with Explainer(model.predict, background)",
        )
    if back.n_features_in_ > 1:
        return _read_several(model, request, back if name in _AFFINE else None, None if logarithm is None else logarithm[0])
    asks_target = logarithm is not None and request.asks_response
    inner = read_any(model.regressor_, replace(request, output="auto", options={}) if asks_target else request)
    _require_target(model, inner)
    if logarithm is not None:
        name, rate, shift = logarithm
        if not asks_target:
            finish = functools.partial(_logarithms, back.func, inner.traits.single_output)
            # A logarithm undoes an exponential: their rounding is that of numbers about 1
            return TargetReader(model, inner, finish, f"{name} of the target", inner.traits.rounding.floor + 1.0)
        return AffineReader(model, _exponential(model, request, rate, inner), factor=1.0, shift=shift)
    zero, one = (0.0, 1.0) if identity else np.ravel(back.inverse_transform(np.array([[0.0], [1.0]])))
    return AffineReader(model, inner, factor=float(one - zero), shift=float(zero))


def _require_target(model: Model, inner: Reader) -> None:
    if not is_of_target(inner.traits.unit):
        raise UnsupportedStructureError(
            f"{type(model).__name__} transforms predictions, and those of {inner.traits.model_name} are exact only as {inner.traits.unit}",
            do="Sample with Explainer(model.predict, background)",
        )


def _read_several(model: Model, request: Request, scaler: Model, logarithm: str | None) -> SumReader:
    """Read several targets, or their logarithms. ``scaler`` gives each a scale and a shift of its own."""
    n_targets, owner = int(model.transformer_.n_features_in_), type(model).__name__
    if logarithm is not None and request.asks_response:
        do = 'Pass output="auto" for their logarithms, or sample with explain(model.predict, X, background)'
        raise UnsupportedStructureError("The exponential of several predictions cannot be read", f"Got {n_targets}", do)
    inner = read_member(model.regressor_, replace(request_of_sum(model, request), output="auto"), owner)
    _require_target(model, inner)
    outputs = Outputs.of(inner.traits.output_names, request.output, owner=owner)
    ends = np.outer([0.0, 1.0], np.ones(n_targets))
    zero, one = ends if scaler is None else scaler.inverse_transform(ends)
    members, shift = [Member(inner, np.diag(one - zero)[:, outputs.numbers])], zero[outputs.numbers]
    call, unit = outputs.call("predict"), "target"
    if logarithm is not None:
        call = OwnCall("predict", finish=functools.partial(_picked_logarithms, model.transformer_.func, outputs))
        unit = f"{logarithm} of the target"
    own = functools.partial(_own_prediction, model, call)
    reader = SumReader(model, request, members, own, outputs=outputs, unit=unit, constant=shift)
    # A logarithm undoes an exponential: their rounding is that of numbers about 1
    floor = reader.traits.rounding.floor + float(np.abs(shift).max()) + float(logarithm is not None)
    reader.traits = reader.traits.with_rounding(floor=floor)
    return reader


def _picked_logarithms(logarithm: np.ufunc, outputs: Outputs, values: np.ndarray) -> np.ndarray:
    return outputs.pick(logarithm(values))


def _own_prediction(model: Model, call: OwnCall, X: Table) -> np.ndarray:
    return call(model, readable(model, X.copy() if writes_to_rows(model.regressor_) else X))


def _exponential(model: Model, request: Request, rate: float, logarithm: Reader) -> Reader:
    """Read the exponential of predictions that are sums of terms, of trees or of units."""
    output = exponential(rate, "target")
    if request.background is None:
        raise needs_rows(output.unit)
    do = 'Pass output="auto" for its logarithm, or sample with explain(model.predict, X, background)'
    refusal = UnsupportedStructureError(
        "The exponential of these predictions is read only of sums of terms, of trees and of networks of one layer",
        f"Got {logarithm.traits.model_name}",
        do,
    )
    try:
        reader = read_any(model.regressor_, replace(request, output=output, options={}))
    except (UnknownNameError, UnsupportedStructureError) as error:
        raise refusal from error
    core = reader
    while isinstance(core, DelegatingReader):
        core = core.inner
    # A mean of exponentials is not the exponential of a mean
    if not isinstance(core, LinkedReader):
        raise refusal
    return read_any(model.regressor_, replace(request, output=output)) if request.options else reader


class TargetReader(DelegatingReader):
    """Explain the model's predictions, finished, by ``inner`` in that unit. ``floor`` is the magnitude that rounds besides."""

    def __init__(
        self, model: Model, inner: Reader, finish: Callable[[np.ndarray], np.ndarray], unit: str, floor: float
    ) -> None:
        name, call = f"{type(model).__name__}({inner.traits.model_name})", OwnCall("predict", finish=finish)
        super().__init__(inner, model=model, model_name=name, unit=unit, own_call=call, offset=Offset())
        self.traits = self.traits.with_rounding(floor=floor)

    def predict(self, X: Table) -> np.ndarray:
        assert self.traits.own_call is not None
        return _own_prediction(self.traits.model, self.traits.own_call, X)


class AffineReader(TargetReader):
    """Explain factor * f(x) + shift of another reader's model."""

    def __init__(self, model: Model, inner: Reader, *, factor: float, shift: float) -> None:
        self.factor, self.shift, traits = factor, shift, inner.traits
        finish = functools.partial(outputs_of, list(range(traits.n_outputs)), traits.single_output)
        # Of prediction, baseline and the sum of the values
        floor = abs(factor) * traits.rounding.floor + (traits.n_players + 2.0) * abs(shift)
        super().__init__(model, inner, finish, "target", floor)

    def game(self, X: Table) -> Game:
        """Return factor * v(S) + shift; if v(empty) is 0 by definition, each player gets an equal share of the shift."""
        if self.traits.value_function != "normalized":
            return _affine(self.inner.game(X), self.factor, self.shift)
        game = _affine(self.inner.game(X), self.factor, 0.0)
        assert isinstance(game, ProductGame)
        return with_equal_shares(game, np.full(game.n_outputs, self.shift), constant=game.constant)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        return self._carried(self.inner.solve(X, semivalue, order))

    def _carried(self, solution: Solution) -> Solution:
        """Return the inner solution in units of the target."""
        solution = solution * self.factor
        part = solution.part.shifted(self.shift)
        if self.traits.value_function == "normalized":
            part = part.with_shared_baseline(self.traits.n_players)
        return replace(solution, part=replace(part, scale=part.scale + abs(self.shift)))

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        """Return the inner bound in units of the target."""
        bound = self.inner.stability(X)
        return None if bound is None else functools.partial(_scaled_bound, bound, abs(self.factor))

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        values = self.inner.masked_predictions(X, masks)
        return None if values is None else values * self.factor + self.shift


def _logarithms(logarithm: np.ufunc, single: bool, values: np.ndarray) -> np.ndarray:
    return outputs_of([0], single, np.asarray(logarithm(values)))


def _scaled_bound(bound: Callable[[Any], Any], factor: float, delta: Any) -> Any:
    found = bound(delta)
    return replace(found, bound=found.bound * factor, rkhs_norm=found.rkhs_norm * factor)


def _affine(game: Game, factor: float, shift: float) -> Game:
    if isinstance(game, ProductGame):
        c = game.c[:, 0] if game.single_output else game.c
        a = game.a[0] if game.n_rows is None else game.a
        return ProductGame(c * factor, a, game.b, game.weights, game.constant * factor + shift)
    if isinstance(game, AdditiveGame):
        tables = [table * factor for table in game.tables]
        tables = [table[..., 0] for table in tables] if game.single_output else tables
        return AdditiveGame(game.n_players, game.subsets, tables, game.constant * factor + shift)
    return SumGame((game,), (factor * np.eye(game.n_outputs),), np.full(game.n_outputs, shift), game.single_output)
