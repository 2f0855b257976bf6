"""Read models around a single one: searches, thresholds, self-training, frozen estimators, and regressors of transformed targets."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnknownNameError, UnsupportedStructureError, no_output
from exactshap.frames import Table
from exactshap.readers import (
    AffineReader,
    DelegatingReader,
    Offset,
    Outputs,
    Reader,
    Request,
    fitted_names,
    is_of_target,
    sklearn_name,
)
from exactshap.readers import read as read_any
from exactshap.readers.additive import SCALERS
from exactshap.readers.responses import LinkedReader, exponential, needs_rows
from exactshap.readers.wrappers._columns import readable, without_names
from exactshap.readers.wrappers._sum import Member, SumReader, own_answers, read_member, request_of_sum

# Name, rate and shift: the target is exp(rate * prediction) + shift
_LOGARITHMS = {
    (np.log, np.exp): ("log", 1.0, 0.0),
    (np.log1p, np.expm1): ("log1p", 1.0, -1.0),
    (np.log2, np.exp2): ("log2", math.log(2.0), 0.0),
}
_INSIDE = {
    "BaseSearchCV": "best_estimator_",
    "BaseThresholdClassifier": "estimator_",
    "SelfTrainingClassifier": "estimator_",
    "FrozenEstimator": "estimator",
}


# -- the model inside makes the predictions ----------------------------------------------------------------------------------


def read_inside(model: Model, request: Request) -> Reader:
    """Read the fitted model inside; a threshold changes labels, not the output that is explained."""
    inside = next(_INSIDE[cls.__name__] for cls in type(model).__mro__ if cls.__name__ in _INSIDE)
    if inside == "best_estimator_" and model.refit is False:
        do = "Fit one with the best parameters, or search with refit=True"
        raise InputError(f"{type(model).__name__} holds no fitted model", "Got refit=False", do)
    held = getattr(model, inside)
    if request.background is not None:
        request = replace(request, background=_as_fitted(model, held, request.background))
    if request.feature_names is None:
        request = replace(request, feature_names=fitted_names(model))
    return HolderReader(model, inside, read_any(held, request))


class HolderReader(DelegatingReader):
    """Explain the model in an attribute of another by ``inner``; the current object there predicts."""

    def __init__(self, model: Model, inside: str, inner: Reader) -> None:
        names, call = fitted_names(model) or inner.traits.fitted_names, inner.traits.own_call
        # Searches and thresholds hand no settings of a call through, in a pipeline neither
        answers = call is not None and not call.settings and hasattr(model, call.method)
        super().__init__(
            inner, model=model, model_name=inner.traits.model_name, fitted_names=names, own_call=call if answers else None
        )
        self.inside = inside

    def rows(self, X: Table) -> Table:
        return _as_fitted(self.traits.model, getattr(self.traits.model, self.inside), X)

    def predict(self, X: Table) -> np.ndarray:
        """Call the model itself, or the current one inside."""
        held, call = getattr(self.traits.model, self.inside), self.inner.traits.own_call
        if call is None:
            return self.inner.predict(self.rows(X))
        model, X = (held, self.rows(X)) if self.traits.own_call is None else (self.traits.model, X)
        return call(model, readable(held, X))


def _as_fitted(model: Model, held: Model, X: Table) -> Table:
    """Return the rows as the model inside was fitted on them; self-training passes arrays."""
    return X if fitted_names(model) is None else without_names(X, held)


# -- transformed targets: values in units of a scaled and shifted target, of its logarithm or of the target itself -------------


def read_target(model: Model, request: Request) -> Reader:
    """Read the inner regressor and undo the target's scaling of its values; logarithms stay unless ``output="response"``."""
    back = model.transformer_
    name = sklearn_name(back)
    identity = name == "FunctionTransformer" and back.func is None and back.inverse_func is None
    logarithm = _LOGARITHMS.get((back.func, back.inverse_func)) if name == "FunctionTransformer" else None
    if request.output == "probability" or request.outer_response is not None:
        raise UnknownNameError(no_output(type(model).__name__, str(request.output), ("target",)))
    if logarithm is None and not identity and name not in SCALERS:
        raise UnsupportedStructureError(
            "The target's inverse transformation is not a scaling and a shift, so that values do not carry over exactly",
            f"Got {type(back).__name__}",
            "Explain `model.regressor_` (in units of the transformed target), or sample with Explainer(model.predict, background)",
        )
    if back.n_features_in_ > 1:
        return _read_several(model, request, back if name in SCALERS else None, None if logarithm is None else logarithm[0])
    asks_target = logarithm is not None and request.asks_response
    inner = read_any(model.regressor_, replace(request, output="auto", options={}) if asks_target else request)
    _require_target(model, inner)
    if logarithm is not None:
        name, rate, shift = logarithm
        if not asks_target:
            reader = TargetReader(model, inner, f"{name} of the target", link=back.func)
            # A logarithm undoes an exponential: their rounding is that of numbers about 1
            reader.traits = reader.traits.with_rounding(floor=reader.traits.rounding.floor + 1.0)
            return reader
        inner, factor = _exponential(model, request, rate, inner), 1.0
    else:
        zero, one = (0.0, 1.0) if identity else np.ravel(back.inverse_transform(np.array([[0.0], [1.0]])))
        factor, shift = float(one - zero), float(zero)
    return TargetReader(model, inner, "target", factor=factor, shift=shift)


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
        call = outputs.call("predict", link=model.transformer_.func)
        unit = f"{logarithm} of the target"
    reader = SumReader(model, request, members, call, outputs=outputs, unit=unit, constant=shift)
    # A logarithm undoes an exponential: their rounding is that of numbers about 1
    floor = reader.traits.rounding.floor + float(np.abs(shift).max()) + float(logarithm is not None)
    reader.traits = reader.traits.with_rounding(floor=floor)
    return reader


def _exponential(model: Model, request: Request, rate: float, logarithm: Reader) -> Reader:
    """Read the exponential of predictions that are sums of terms, kernels, trees or units."""
    output = exponential(rate, "target")
    if request.background is None:
        raise needs_rows(output.unit)
    do = 'Pass output="auto" for its logarithm, or sample with explain(model.predict, X, background)'
    refusal = UnsupportedStructureError(
        "The exponential of these predictions is read only of sums of terms, kernel machines, trees and networks of one layer",
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


class TargetReader(AffineReader):
    """Explain factor * f(x) + shift by a function of the model's own predictions."""

    def __init__(self, model: Model, inner: Reader, unit: str, link: np.ufunc | None = None, **affine: float) -> None:
        outputs = Outputs(inner.traits.output_names, list(range(inner.traits.n_outputs)), inner.traits.single_output)
        name, call = f"{type(model).__name__}({inner.traits.model_name})", outputs.call("predict", link=link)
        super().__init__(inner, model=model, model_name=name, unit=unit, own_call=call, offset=Offset(), **affine)

    def predict(self, X: Table) -> np.ndarray:
        assert self.traits.own_call is not None
        return own_answers(self.traits.model, self.traits.own_call, X)
