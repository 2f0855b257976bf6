"""Read RKHS weightings as additive games, with one term per subset of columns (STAR-SHAP)."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, no_output
from exactshap.readers import Outputs, OwnCall, Request
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._functions import FunctionTerm, SeparateTerms
from exactshap.readers.additive._homogeneous import Growth, Interpolant, interpolate
from exactshap.readers.additive.response import with_response
from exactshap.readers.responses import Response, probabilities

# An interpolant is built if its evaluations cost at most as much as explaining this many rows directly.
PAID_ROWS = 64


def _response(model: Model) -> Response:
    """Return the probability of a classifier with the logistic loss; a regression predicts its response."""
    if not hasattr(model, "classes_"):
        return Response(None, OwnCall("predict"), "target")
    if model.loss != "logistic":
        raise UnknownNameError(no_output(type(model).__name__, "probability", (str(model.classes_[1]),)))
    return probabilities(model.classes_)


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    """Read the functions f_J of a fitted weighting; those of two or three columns are interpolated for mixed coalitions."""
    classes = getattr(model, "classes_", None)
    names = ("target",) if classes is None else (str(classes[1]),)
    n_background = 0 if request.background is None else request.background.n_rows
    terms = [
        FunctionTerm(term.subset, term, f"The function of columns {term.subset}", 1, _interpolant(term, n_background))
        for term in _split_by_column(model.terms_)
    ]
    form = AdditiveForm(
        blocks=(SeparateTerms(tuple(terms)),),
        intercept=np.array([model.intercept_]),
        own_call=OwnCall("predict" if classes is None else "decision_function"),
        n_columns=model.n_features_in_,
        outputs=Outputs.of(names, request.output, owner=type(model).__name__),
        unit="target" if classes is None else f"{'log-odds' if model.loss == 'logistic' else 'margin'} of class {names[0]}",
        magnitude=functools.partial(_magnitude, model.terms_),
    )
    return AdditiveReader(model, request, form)


def _interpolant(term: Any, n_background: int) -> Interpolant | None:
    """Return a homogeneous term's interpolant if it pays, else None."""
    k = len(term.subset)
    if term.base.degree is None or k not in (2, 3) or term.base.largest_tilt(k) <= 1.0:
        return None
    return interpolate(term, _growth(term), PAID_ROWS * (2**k - 2) * n_background)


def _growth(term: Any) -> Growth:
    k = len(term.subset)
    return Growth(k, term.base.degree, _norm(term), functools.partial(term.base.theta, k), term.base.largest_tilt(k))


def _norm(term: Any) -> float:
    r"""Bound the norm :math:`\sqrt{c^\top G c}` of the term's weight function, rounding included."""
    gram, c = term.base.kernel(term.parameters, term.parameters, len(term.subset)), term.coefficients
    lost = 4.0 * len(c) * np.finfo(float).eps * float(np.abs(c) @ np.abs(gram) @ np.abs(c))
    return math.sqrt(max(float(c @ gram @ c), 0.0) + lost)


def _split_by_column(terms: Sequence[Any]) -> Iterator[Any]:
    """Yield the terms, those of stumps split into functions of one column each."""
    for term in terms:
        if not term.base.one_column or len(term.subset) == 1:
            yield term
            continue
        for place, column in enumerate(term.subset):
            chosen = term.parameters[:, 0] == place
            if chosen.any():
                yield _OneColumn(
                    (column,), place, len(term.subset), term.parameters[chosen], term.coefficients[chosen], term.base
                )


@dataclass(frozen=True, eq=False)
class _OneColumn:
    """Evaluate a column's stumps, with expectations divided by the subset's size."""

    subset: tuple[int, ...]
    place: int
    size: int
    parameters: np.ndarray
    coefficients: np.ndarray
    base: Any

    def __call__(self, X: np.ndarray) -> np.ndarray:
        wide = np.zeros((len(X), self.size))
        wide[:, self.place] = X[:, 0]
        return (self.base.expectation(self.parameters, wide) * self.coefficients).sum(axis=1)


def _magnitude(terms: Sequence[Any], rows: np.ndarray) -> np.ndarray:
    """Return the sum of |a_t p E[...]| (n_rows,): large coefficients of opposite signs cancel inside each function."""
    total = np.zeros(len(rows))
    for term in terms:
        absolute = type(term)(term.subset, term.parameters, np.abs(term.coefficients), term.base)
        total += np.abs(absolute(rows[:, list(term.subset)]))
    return total
