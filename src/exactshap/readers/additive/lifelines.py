"""Read linear survival regressions of lifelines: Cox's log partial hazard, and the log of a median survival time."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.readers import Outputs, Request, raise_not_fitted
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._formula import FrameCall, is_of_terms, read_formula
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts
from exactshap.readers.responses import Response

_INTERCEPT = "Intercept"


def _response(model: Model) -> Response:
    """Return the hazard relative to the baseline's, or the median time."""
    names = () if _has_formula(model) else _names(model)
    if _is_cox(model):
        return Response("exponential", FrameCall("predict_partial_hazard", names=names), "partial hazard")
    return Response("exponential", FrameCall("predict_median", names=names), "median survival time")


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    r"""Read a linear predictor, from which lifelines subtracts its mean over the training rows.

    .. math:: \log h(t \mid x) - \log h_0(t) = (x - \bar x) \cdot \beta, \qquad \log t_{1/2}(x) = b + x \cdot \beta
    """
    names, link, method = _names(model), None, "predict_log_partial_hazard"
    unit = "log partial hazard: high is early"
    if not _is_cox(model):
        link, method, unit = np.log, "predict_median", "log of the median survival time"
    if _has_formula(model):
        call = FrameCall(method) if link is None else FrameCall(method, finish=np.log)
        return read_formula(model, request, names, call, unit=unit, way=method, floor=0.0 if link is None else 1.0)
    call = FrameCall(method, names=names)
    at_zero = call(model, np.zeros((1, len(names))))
    coefficients = np.asarray(_coefficients(model), float)[:, None]
    parts = LinearParts(coefficients, at_zero if link is None else link(at_zero), ("output",), unit, method, link)
    return read_parts(
        model,
        request,
        parts,
        names,
        FrameCall(method, finish=parts.call(Outputs.of(("output",), "all", owner="")).finish, names=names),
    )


def _is_cox(model: Model) -> bool:
    """Say whether it is Cox's original model, with a baseline hazard of any form."""
    return hasattr(model, "predict_log_partial_hazard") and hasattr(model, "params_")


def _coefficients(model: Model) -> Any:
    """Return the coefficients of the columns as a Series; refuse models that are not linear in them."""
    if not hasattr(model, "durations") and not hasattr(model, "params_"):
        raise_not_fitted(model)
    if _is_cox(model):
        return model.params_
    if not any(kind.__name__ == "ParametericAFTRegressionFitter" for kind in type(model).__mro__):
        raise _refused(model, "Got a model with hazards of another form")
    params = model.params_
    of_columns = params[params.index.get_level_values(1) != _INTERCEPT]
    parameters = of_columns.index.get_level_values(0).unique()
    if len(parameters) > 1:
        raise _refused(model, f"Columns act on {', '.join(parameters)}")
    return of_columns.droplevel(0)


def _refused(model: Model, why: str) -> UnsupportedStructureError:
    way = "explain(lambda rows: model.predict_survival_function(rows, times=[t]).T, X, background)"
    do = f"Explain its survival probability at a time t: {way}, exact up to 13 players"
    return UnsupportedStructureError(
        f"{type(model).__name__} can be read only where its prediction is linear in the columns", why, do
    )


def _names(model: Model) -> tuple[str, ...]:
    """Return the columns, or the terms of a formula."""
    return tuple(str(name) for name in _coefficients(model).index if name != _INTERCEPT)


def _has_formula(model: Model) -> bool:
    """Say whether parameters are those of a formula's terms, and not of columns."""
    return _INTERCEPT in _coefficients(model).index or is_of_terms(_names(model))
