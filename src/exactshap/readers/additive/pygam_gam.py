"""Read generalised additive models of pyGAM in link space: spline, linear, factor and tensor terms."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator

import numpy as np

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, OwnCall, Request, raise_not_fitted
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._functions import ProductTerm, SeparateTerms
from exactshap.readers.additive.response import response_of_link, unit_of_link, with_response
from exactshap.readers.responses import Response

_KINDS = ("SplineTerm", "LinearTerm", "FactorTerm")

Factor = tuple[int, Callable[[np.ndarray], np.ndarray]]


def _response(model: Model) -> Response:
    """Return the mean of the distribution, which pyGAM calls mu."""
    return response_of_link(model, str(model.link), OwnCall("predict_mu"), f"Its link is {model.link}")


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    """Read the linear predictor: intercept + sum over terms of a coefficient tensor on products of one-column bases."""
    if not hasattr(model, "coef_") or not hasattr(model, "statistics_"):
        raise_not_fitted(model)
    terms, intercept, start = [], 0.0, 0
    for term in model.terms:
        coefficients = np.asarray(model.coef_[start : start + term.n_coefs], float)
        start += term.n_coefs
        if term.isintercept:
            intercept += float(coefficients.sum())
        else:
            terms.append(_product(term, coefficients))
    form = AdditiveForm(
        blocks=(SeparateTerms(tuple(terms)),),
        intercept=np.array([intercept]),
        encode=functools.partial(_encode, model, request.feature_names),
        predict=functools.partial(_predict, model),
        n_columns=int(model.statistics_["m_features"]),
        outputs=Outputs.of(("target",), request.output, owner=type(model).__name__),
        unit=unit_of_link(str(model.link)),
    )
    return AdditiveReader(model, request, form)


def _product(term: Foreign, coefficients: np.ndarray) -> ProductTerm:
    """Return one term as factors of one column each; ``by`` variables are separate factors."""
    marginals = list(term) if term.istensor else [term]
    factors: list[Factor] = []
    shape: list[int] = []
    for marginal in marginals:
        factors += _factors(marginal)
        shape += [int(marginal.n_coefs)] + [1] * (getattr(marginal, "by", None) is not None)
    if term.istensor and term.by is not None:
        factors.append((int(term.by), _column))
        shape.append(1)
    return ProductTerm(
        tuple(column for column, _ in factors), tuple(basis for _, basis in factors), coefficients.reshape(*shape, 1)
    )


def _factors(term: Foreign) -> list[Factor]:
    if type(term).__name__ not in _KINDS:
        raise UnsupportedStructureError(
            f"A pyGAM term of type {type(term).__name__} is not known", f"Known: {', '.join(_KINDS)} and TensorTerm"
        )
    alone = copy.copy(term)
    alone.feature, alone.by = 0, None
    by = getattr(term, "by", None)
    return [(int(term.feature), functools.partial(_basis, alone))] + ([] if by is None else [(int(by), _column)])


def _basis(term: Foreign, values: np.ndarray) -> np.ndarray:
    return np.asarray(term.build_columns(values[:, None]).toarray(), float)


def _column(values: np.ndarray) -> np.ndarray:
    return values[:, None]


def _encode(model: Model, names: tuple[str, ...] | None, X: Table, what: str) -> np.ndarray:
    """Return the rows as numbers; as in pyGAM, categories must be in the fitted range."""
    values = X.finite(what, type(model).__name__, names=names)
    for column, low, high in _categories(model):
        unknown = (values[:, column] < low) | (values[:, column] > high)
        if unknown.any():
            i = int(np.argmax(unknown))
            raise InputError(
                f"Input {what} holds a category out of the range of those fitted (first at row {i}, {X.label(column)})",
                f"Got {values[i, column]:g}; {type(model).__name__} knows {np.ceil(low) + 0.0:g} to {np.floor(high):g}",
                row=i if what == "X" else None,
            )
    return values


def _categories(model: Model) -> Iterator[tuple[int, float, float]]:
    """Yield column and range of every factor term, those inside tensors included."""
    for term in model.terms:
        for marginal in term if term.istensor else [term]:
            if type(marginal).__name__ == "FactorTerm":
                low, high = marginal.edge_knots_
                yield int(marginal.feature), float(low), float(high)


def _predict(model: Model, X: Table) -> np.ndarray:
    """Return the model's linear predictor. Its mean loses all digits where a logistic curve is flat."""
    # `predict_mu` is public, and no method without its link is
    return np.asarray(model._linear_predictor(X.finite("X", type(model).__name__)), float)
