"""Multilayer perceptrons of scikit-learn with one hidden layer, for regression."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError, message
from exactshap.readers import OwnCall, Reader, Request, fitted_names, outputs_of, require_fitted, select_outputs
from exactshap.readers.networks.one_layer import ACTIVATIONS, Layer, NetworkReader, unknown_activation

__all__ = ["read"]


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = b_2 + W_2' g(b_1 + W_1' x)."""
    require_fitted(model, "coefs_")
    name = type(model).__name__
    if len(model.coefs_) != 2:
        got, do = f"Got {len(model.coefs_) - 1}", "Explain its predict method: explain(model.predict, X, background)"
        raise UnsupportedStructureError(message(f"{name} is read exactly with one hidden layer only", got, do))
    if model.activation not in ACTIVATIONS:
        raise unknown_activation(name, model.activation)
    if model.out_activation_ != "identity":
        got, do = f"Got {model.out_activation_!r}", "Explain its predict method: explain(model.predict, X, background)"
        raise UnsupportedStructureError(message(f"The outputs of {name} are no sums of its units", got, do))
    (weights, out), (bias, out_bias) = model.coefs_, model.intercepts_
    names = ("target",) if model.n_outputs_ == 1 else tuple(f"target {k}" for k in range(model.n_outputs_))
    chosen, single = select_outputs(names, request.output, owner=name)
    single = single or model.n_outputs_ == 1
    layer = Layer(
        np.asarray(weights, float),
        np.asarray(bias, float),
        np.asarray(out, float)[:, chosen],
        np.asarray(out_bias, float)[chosen],
        model.activation,
    )
    return NetworkReader(
        model,
        request,
        layer,
        OwnCall("predict", finish=functools.partial(outputs_of, chosen, single)),
        fitted_names=fitted_names(model),
        output_names=tuple(names[k] for k in chosen),
        single_output=single,
        unit="target",
        precision=weights.dtype,
    )
