"""Results of statsmodels: least squares, generalised linear models and binary or count regressions, as their linear predictor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError, message
from exactshap.readers import OwnCall, Request
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._formula import is_of_terms, read_formula
from exactshap.readers.additive._frame_call import FrameCall
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts
from exactshap.readers.responses import Response, no_response

_CONSTANT = "Intercept"  # as formulas call it
_LINKS = {"Identity": "target", "Log": "log of the target", "Logit": "log-odds"}
_OWN_SCALE = ("OLS", "WLS", "GLS", "GLSAR", "RLM", "QuantReg")  # predict is the linear predictor
_OTHERS = ("GLM", "GEE")
_CLASSES = {"Logit": "log-odds", "Probit": "probit", "Poisson": "log of the target"}
_KNOWN = (*_OWN_SCALE, *_CLASSES, *_OTHERS)
# Inverse links as `exactshap.expansions.links` calls them; None: the score is the response
_INVERSE = {
    "Identity": None,
    "Log": "exponential",
    "Poisson": "exponential",
    "Logit": "logistic",
    "Probit": "normal",
    "CLogLog": "complementary log-log",
    "LogLog": "log-log",
    "Cauchy": "cauchit",
}


def _response(model: Model) -> Response:
    """Return what ``predict`` answers: the mean of the target, of two classes the probability."""
    fitted, kind = model.model, type(model.model).__name__
    link = "Identity" if kind in _OWN_SCALE else type(fitted.family.link).__name__ if hasattr(fitted, "family") else kind
    if link not in _INVERSE:
        raise no_response(model, f"Got the link {link}; known are {', '.join(_INVERSE)}")
    is_binary = kind in ("Logit", "Probit") or type(getattr(fitted, "family", None)).__name__ == "Binomial"
    names = tuple(str(name) for name in fitted.exog_names if name != _CONSTANT)
    call = FrameCall("predict", names=() if is_of_terms(names) else names) if hasattr(fitted, "formula") else OwnCall("predict")
    return Response(_INVERSE[link], call, "probability" if is_binary else "target")


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    r"""Read the linear predictor of a result, :math:`x \cdot \beta`, without the offsets of the fit."""
    fitted = model.model
    params = np.asarray(model.params, float)
    columns = [str(name) for name in fitted.exog_names]
    if type(fitted).__name__ not in _KNOWN or params.shape != (len(columns),):
        got = f"Got parameters of shape {params.shape}; known: {', '.join(_KNOWN)}"
        do = "Call it: explain(model.predict, X, background), exact up to 13 players"
        raise UnsupportedStructureError(
            message(f"{type(fitted).__name__} can be read only where it has one linear predictor", got, do)
        )
    by_formula = hasattr(fitted, "formula")
    settings: dict[str, Any] = {} if type(fitted).__name__ in _OWN_SCALE else {"which": "linear"}
    if by_formula and is_of_terms(columns):
        terms = [name for name in columns if name != _CONSTANT]
        training, linear = getattr(fitted.data, "frame", None), FrameCall("predict", settings)
        # Terms may cancel, as a year and an intercept do; results without data do not know
        size = 0.0 if fitted.exog is None else float((np.abs(fitted.exog) @ np.abs(params)).max(initial=0.0))
        reader = read_formula(model, request, terms, linear, unit=_unit(model), way="predict", training=training, floor=size)
        reader.traits = replace(reader.traits, offset_note=_offset_note(fitted))
        return reader
    inside = np.array([not (by_formula and name == _CONSTANT) for name in columns])
    names = tuple(name for name, kept in zip(columns, inside, strict=True) if kept)
    call: OwnCall = FrameCall("predict", settings, names=names) if by_formula else OwnCall("predict", settings)
    parts = LinearParts(params[inside][:, None], np.array([params[~inside].sum()]), ("output",), _unit(model))
    reader = read_parts(model, request, parts, names if by_formula or hasattr(fitted.data.orig_exog, "columns") else None, call)
    reader.traits = replace(reader.traits, offset_note=_offset_note(fitted))
    return reader


def _unit(model: Model) -> str:
    fitted = model.model
    if hasattr(fitted, "family"):
        link = type(fitted.family.link).__name__
        return _LINKS.get(link, f"{link} link of the target")
    if type(fitted).__name__ == "QuantReg":
        return f"quantile {model.q:g} of the target"
    return _CLASSES.get(type(fitted).__name__, "target")


def _offset_note(fitted: Model) -> str:
    for name in ("exposure", "offset"):
        given = getattr(fitted, name, None)
        if given is not None and np.any(np.asarray(given, float)):
            do = "Pass the offsets of the explained rows, explain(model, X, offset=...); of an exposure its log"
            what = f"{type(fitted).__name__} was fitted with {name}s of its rows"
            return message(what, "The values leave them out, as predict(X) does", do)
    return ""
