"""Read results of statsmodels as linear predictors: least squares, generalised, mixed, class, count and hazard models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import UnsupportedStructureError, message
from exactshap.readers import Outputs, OwnCall, Request
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._formula import FrameCall, is_of_terms, read_formula
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts
from exactshap.readers.responses import Response, no_response

_CONSTANT = "Intercept"  # its name in formulas
_LINKS = {"Identity": "target", "Log": "log of the target", "Logit": "log-odds"}
_OWN_SCALE = ("OLS", "WLS", "GLS", "GLSAR", "RLM", "QuantReg", "MixedLM")  # predict is the linear predictor
_OTHERS = ("GLM", "GEE")
_COUNTS = ("Poisson", "NegativeBinomial", "NegativeBinomialP", "GeneralizedPoisson")
_CLASSES = {
    "Logit": "log-odds",
    "Probit": "probit",
    **dict.fromkeys(_COUNTS, "log of the target"),
    "OrderedModel": "latent score: high is a late category",
    "PHReg": "log hazard: high is early",
}
_KNOWN = (*_OWN_SCALE, *_CLASSES, *_OTHERS, "MNLogit")
# Inverse links by their names in `exactshap.expansions.links`; None: the score is the response
_INVERSE = {
    "Identity": None,
    **dict.fromkeys(("Log", *_COUNTS), "exponential"),
    "Logit": "logistic",
    "Probit": "normal",
    "CLogLog": "complementary log-log",
    "LogLog": "log-log",
    "Cauchy": "cauchit",
}


@dataclass(frozen=True, eq=False)
class HazardCall(FrameCall):
    """Call ``PHReg``, which takes rows by keyword and returns an object."""

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        return super().__call__(_Hazards(model), rows)


@dataclass(frozen=True)
class _Hazards:
    model: Model

    def predict(self, rows: TableLike) -> np.ndarray:
        return np.asarray(self.model.predict(exog=rows).predicted_values, float)


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
    r"""Read a result's linear predictor :math:`x \cdot \beta`, without the offsets of the fit."""
    fitted, kind = model.model, type(model.model).__name__
    columns = _columns(fitted)
    params = np.asarray(model.params, float)
    if params.ndim == 1 and kind in _MORE_PARAMETERS:
        params = params[: len(columns)]
    by_formula = hasattr(fitted, "formula")
    of_terms = by_formula and is_of_terms(columns)
    if kind not in _KNOWN or params.ndim > 1 + (kind == "MNLogit" and not of_terms) or len(params) != len(columns):
        got = f"Got parameters of shape {np.shape(model.params)}; known: {', '.join(_KNOWN)}"
        function = "model.predict"
        if hasattr(fitted, "smoother"):  # of GLMGam: its predict takes the smooth terms' columns apart
            function = f"lambda rows: model.predict(rows, exog_smooth=rows[{list(fitted.smoother.variable_names)}])"
        do = f"Call it: explain({function}, X, background), exact up to 13 players"
        raise UnsupportedStructureError(f"{kind} can be read only where it has one linear predictor", got, do)
    if of_terms:
        terms = [name for name in columns if name != _CONSTANT]
        training = getattr(fitted.data, "frame", None)
        # Terms may cancel, as a year and an intercept do; results without data cannot tell
        size = 0.0 if fitted.exog is None else float((np.abs(fitted.exog) @ np.abs(params)).max(initial=0.0))
        call, unit = _frame_call(kind, ()), _unit(model)
        reader = read_formula(model, request, terms, call, unit=unit, way="predict", training=training, floor=size)
        reader.traits = replace(reader.traits, offset_note=_offset_note(fitted))
        return reader
    inside = np.array([not (by_formula and name == _CONSTANT) for name in columns])
    names = tuple(name for name, kept in zip(columns, inside, strict=True) if kept)
    params = params.reshape(len(columns), -1)
    outputs = _classes(fitted)[1:] if kind == "MNLogit" else ("output",)
    parts = LinearParts(params[inside], params[~inside].sum(axis=0), outputs, _unit(model))
    of_frames = _frame_call(kind, names)
    own = of_frames if by_formula or kind == "PHReg" else OwnCall("predict", of_frames.settings)
    if kind == "MNLogit":  # the first class is the reference, with zeros
        chosen = Outputs.of(outputs, request.output, owner=kind)
        own = replace(own, finish=replace(chosen, numbers=[k + 1 for k in chosen.numbers]).pick)
    reader = read_parts(model, request, parts, names if by_formula or hasattr(fitted.data.orig_exog, "columns") else None, own)
    reader.traits = replace(reader.traits, offset_note=_offset_note(fitted))
    return reader


# Kinds that have parameters beyond those of the columns: dispersions, variances, thresholds
_MORE_PARAMETERS = ("NegativeBinomial", "NegativeBinomialP", "GeneralizedPoisson", "MixedLM", "OrderedModel")


def _columns(fitted: Model) -> list[str]:
    """Return the names of the columns, without further parameters of counts and categories."""
    names = [str(name) for name in fitted.exog_names]
    return names[: len(names) - getattr(fitted, "k_extra", 0)] if type(fitted).__name__ in _MORE_PARAMETERS else names


def _frame_call(kind: str, names: tuple[str, ...]) -> FrameCall:
    """Return the call that gives a frame's linear predictor."""
    if kind == "PHReg":
        return HazardCall("predict", names=names)
    words = "linpred" if kind == "OrderedModel" else "linear"
    settings: dict[str, Any] = {} if kind in _OWN_SCALE else {"which": words}
    return FrameCall("predict", settings, names=names)


def _classes(fitted: Model) -> tuple[str, ...]:
    """Return the names of the classes; the others are compared with the first."""
    given = fitted.data.orig_endog
    if np.ndim(given) == 2 and given.shape[1] > 1:  # an indicator of each class
        return tuple(map(str, getattr(given, "columns", range(given.shape[1]))))
    known = given.cat.categories if hasattr(given, "cat") else np.unique(np.asarray(given))
    # formulas make numbers floats, in a frame of one column
    return tuple(str(label).removesuffix(".0") if np.ndim(given) == 2 else str(label) for label in known)


def _unit(model: Model) -> str:
    fitted = model.model
    if hasattr(fitted, "family"):
        link = type(fitted.family.link).__name__
        return _LINKS.get(link, f"{link} link of the target")
    if type(fitted).__name__ == "MNLogit":
        return f"log-odds against class {_classes(fitted)[0]}"
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
