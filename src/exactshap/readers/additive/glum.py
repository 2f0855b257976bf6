"""Read generalised linear models of glum as linear predictors, categories included."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, OwnCall, Request, require_fitted
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._terms import ColumnTerms, LinearTerms, TermBlock
from exactshap.readers.additive.response import with_response
from exactshap.readers.responses import Response, no_response

_UNITS = {"IdentityLink": "target", "LogLink": "log of the target", "LogitLink": "log-odds"}
_RESPONSES = {"LogLink": ("exponential", "target"), "LogitLink": ("logistic", "probability"), "IdentityLink": (None, "target")}


def _response(model: Model) -> Response:
    """Return the mean."""
    require_fitted(model, "coef_")
    link = type(model.link_instance).__name__
    if link not in _RESPONSES:
        raise no_response(model, f"Got a {link}")
    name, unit = _RESPONSES[link]
    return Response(name, OwnCall("predict"), unit)


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    r"""Read the linear predictor without the offsets of the fit.

    .. math:: g(\mu(x)) = b + \sum_j \beta_j x_j + \sum_j \gamma_j[x_j]
    """
    require_fitted(model, "coef_", "intercept_")
    if getattr(model, "formula", None) is not None:
        do = "Call it on frames: explain(model.linear_predictor, X, background), exact up to 13 players"
        raise UnsupportedStructureError("Terms of a formula are not columns of the rows", f"Got {model.formula!r}", do)
    columns = _columns(model)
    names = tuple(column.name for column in columns) if hasattr(model, "categorical_levels_") else None
    link = type(model.link_instance).__name__
    form = AdditiveForm(
        blocks=(_block(columns),),
        intercept=np.array([float(model.intercept_)]),
        encode=functools.partial(_encoded, columns),
        predict=functools.partial(OwnCall("linear_predictor").of_table, model),
        n_columns=len(columns),
        fitted_names=names,
        outputs=Outputs.of(("output",), request.output, owner=type(model).__name__),
        unit=_UNITS.get(link, f"{link} of the target"),
    )
    return AdditiveReader(model, request, form)


@dataclass(frozen=True, eq=False)
class _Column:
    """Hold the coefficient of a numeric column, or those of categories and missing cells."""

    name: str
    coefficients: np.ndarray
    levels: tuple[object, ...] = ()

    def encode(self, X: Table, j: int, what: str) -> np.ndarray:
        """Return numbers, or positions of categories among the coefficients."""
        if not self.levels:
            values = X.select([j]).numeric(what=what)[:, 0]
            if np.isfinite(values).all():
                return values
            raise self._refused(X, j, what, int(np.argmin(np.isfinite(values))))
        places: dict[object, int] = {level: place for place, level in enumerate(self.levels)}
        missing = len(self.levels) if len(self.coefficients) > len(self.levels) else -1
        cells = X.column(j)
        codes = np.array([missing if cell != cell or cell is None else places.get(cell, -1) for cell in cells], float)
        if (codes < 0.0).any():
            raise self._refused(X, j, what, int(np.argmin(codes)))
        return codes

    def _refused(self, X: Table, j: int, what: str, row: int) -> InputError:
        known = f"It knows {', '.join(map(repr, self.levels[:5]))}" if self.levels else "It knows finite numbers"
        cell = X.column(j)[row]
        what = f"Input {what} holds a value that the model does not know (first at row {row}, column {self.name!r})"
        return InputError(what, f"Got {cell!r}", known, row=row)


def _columns(model: Model) -> tuple[_Column, ...]:
    """Return the columns in the order of the fit, with their coefficients."""
    coefficients = np.asarray(model.coef_, float)
    levels = getattr(model, "categorical_levels_", {})
    terms = list(model.term_names_)
    columns = []
    for name in dict.fromkeys(terms):
        own = coefficients[[place for place, term in enumerate(terms) if term == name]]
        known = tuple(levels.get(name, ()))
        if known and len(own) - bool(model.has_missing_category_[name]) < len(known):
            own = np.concatenate([np.zeros(1), own])  # drop_first: the first category is the reference
        columns.append(_Column(str(name), own, known))
    return tuple(columns)


def _block(columns: tuple[_Column, ...]) -> TermBlock:
    if not any(column.levels for column in columns):
        return LinearTerms(np.array([column.coefficients for column in columns]))
    return ColumnTerms(tuple((j,) for j in range(len(columns))), functools.partial(_terms, columns))


def _encoded(columns: tuple[_Column, ...], X: Table, what: str) -> np.ndarray:
    return np.stack([column.encode(X, j, what) for j, column in enumerate(columns)], axis=1)


def _terms(columns: tuple[_Column, ...], rows: np.ndarray) -> np.ndarray:
    """Return the terms (n_rows, n_columns, 1)."""
    terms = np.empty((*rows.shape, 1))
    for j, column in enumerate(columns):
        own = column.coefficients
        terms[:, j, 0] = own[rows[:, j].astype(int)] if column.levels else own[0] * rows[:, j]
    return terms
