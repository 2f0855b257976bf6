"""Read multilayer perceptrons of scikit-learn with one hidden layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.readers import Outputs, OwnCall, Reader, Request, target_names
from exactshap.readers.networks.one_layer import ACTIVATIONS, Layer, NetworkReader, unknown_activation
from exactshap.readers.responses import HybridScores, Response, SampledResponse, of_score, probabilities


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = b_2 + W_2' g(b_1 + W_1' x), of a classifier the log-odds."""
    return _classifier(model, request) if hasattr(model, "classes_") else _regressor(model, request)


def _regressor(model: Model, request: Request) -> Reader:
    """Read the target exactly, or sample what a wrapper makes of it."""
    layer = _layer(model, "predict")
    name = type(model).__name__
    if model.out_activation_ != "identity":
        got, do = f"Got {model.out_activation_!r}", "Explain its predict method: explain(model.predict, X, background)"
        raise UnsupportedStructureError(f"The outputs of {name} are not sums of its units", got, do)
    outer: Response | None = request.outer_response
    own = request if outer is None else of_score(request)
    outputs = Outputs.of(target_names(model.n_outputs_), own.output, owner=name)
    target = NetworkReader(
        model,
        own,
        replace(layer, out_weights=layer.out_weights[:, outputs.numbers], out_bias=layer.out_bias[outputs.numbers]),
        outputs.call("predict"),
        outputs=outputs,
        unit="target",
        precision=model.coefs_[0].dtype,
    )
    return target if outer is None else _sampled(target, outer, request)


def _sampled(score: NetworkReader, response: Response, request: Request) -> Reader:
    return SampledResponse(score, HybridScores(score.hybrids), response, request, "units join players")


def _classifier(model: Model, request: Request) -> Reader:
    """Read the log-odds of two classes exactly, or sample probabilities."""
    layer, outer = _layer(model, "predict_proba"), request.outer_response
    if model.n_outputs_ != 1:
        return _classes(model, request, layer)
    label = str(model.classes_[1])
    chance = probabilities(model.classes_)
    # A calibration takes the probability, as the model has no other score
    response = chance if outer is None else outer.after(chance)
    own = of_score(request) if request.asks_response or outer is not None else request
    score = NetworkReader(
        model,
        own,
        layer,
        OwnCall("predict_proba", finish=_log_odds),
        outputs=Outputs.of((label,), own.output, owner=type(model).__name__),
        unit=f"log-odds of class {label}",
        precision=model.coefs_[0].dtype,
        # What predict_proba loses of the log-odds is no matter to what is made of the sum itself
        odds_rounding=8.0 * float(np.finfo(model.coefs_[0].dtype).eps) if own is request else 0.0,
    )
    return score if own is request else _sampled(score, response, request)


def _classes(model: Model, request: Request, layer: Layer) -> Reader:
    """Sample the probabilities of several classes or labels."""
    outer: Response | None = request.outer_response
    if outer is None and not request.asks_response:
        got = f"Got {model.n_outputs_} scores, which predict_proba does not say"
        do = "Pass output='probability', or explain the scores: OneLayerNetwork(model.coefs_[0], model.intercepts_[0],"
        do += " model.coefs_[1], model.intercepts_[1], activation=model.activation)"
        raise UnsupportedStructureError(f"{type(model).__name__} has log-odds only of two classes", got, do)
    names = tuple(map(str, model.classes_))
    response = Response(model.out_activation_, OwnCall("predict_proba"), "probability")
    score = NetworkReader(
        model,
        of_score(request),
        layer,
        response.call,  # of what is made of the scores
        outputs=Outputs.of(names, "all", owner=type(model).__name__),
        unit="score",
        precision=model.coefs_[0].dtype,
    )
    return _sampled(score, response if outer is None else outer.after(response), request)


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


def _layer(model: Model, method: str) -> Layer:
    name, do = type(model).__name__, f"Explain its {method} method: explain(model.{method}, X, background)"
    if len(model.coefs_) != 2:
        raise UnsupportedStructureError(
            f"{name} is read exactly with one hidden layer only", f"Got {len(model.coefs_) - 1}", do
        )
    if model.activation not in ACTIVATIONS:
        raise unknown_activation(name, model.activation)
    (weights, out), (bias, out_bias) = model.coefs_, model.intercepts_
    weights, bias, out, out_bias = (np.asarray(array, float) for array in (weights, bias, out, out_bias))
    return Layer(weights, bias, out, out_bias, model.activation)
