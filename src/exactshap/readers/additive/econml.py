"""Read linear treatment effects of econml; causal forests are refused with an alternative."""

from __future__ import annotations

import functools
from typing import NoReturn

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError, message
from exactshap.readers import OwnCall, Request, outputs_of, raise_not_fitted, select_outputs
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts


def read(model: Model, request: Request) -> AdditiveReader:
    r"""Read the effect of each treatment, which is linear in the columns of ``X``.

    .. math:: \theta_k(x) = b_k + \sum_j x_j \beta_{jk}
    """
    if not hasattr(model, "models_nuisance_"):
        raise_not_fitted(model)
    if not hasattr(model, "fit_cate_intercept"):
        _refuse(model, "solves equations that its trees weight, and is no sum of trees")
    if model.featurizer is not None:
        _refuse(model, f"is linear in columns that {type(model.featurizer).__name__} makes of X")
    coefficients = np.asarray(model.coef_, float)
    if coefficients.ndim > 2:
        _refuse(model, "has several outcomes and treatments")
    coefficients = np.atleast_2d(coefficients)
    intercept = np.atleast_1d(model.intercept_) if model.fit_cate_intercept else np.zeros(len(coefficients))
    names = _names(model, len(coefficients))
    chosen, picked = select_outputs(names, request.output, owner=type(model).__name__)
    call = OwnCall("const_marginal_effect", finish=functools.partial(outputs_of, chosen, picked or len(names) == 1))
    columns = model.cate_feature_names()
    numbered = list(columns) == [f"X{j}" for j in range(len(columns))]  # of an array
    parts = LinearParts(coefficients.T, np.asarray(intercept, float), names, "treatment effect")
    return read_parts(model, request, parts, None if numbered else tuple(map(str, columns)), call)


def _names(model: Model, n: int) -> tuple[str, ...]:
    """Return the names of the treatments, or of several outcomes."""
    for names in (model.cate_treatment_names(), model.cate_output_names()):
        if n > 1 and len(names) == n:
            return tuple(map(str, names))
    return ("effect",) if n == 1 else tuple(f"effect {k}" for k in range(n))


def _refuse(model: Model, what: str) -> NoReturn:
    do = "Call it: explain(model.effect, X, background), exact up to 13 players"
    raise UnsupportedStructureError(message(f"The effect of {type(model).__name__} {what}", do=do))
