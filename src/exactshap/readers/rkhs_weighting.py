"""RKHS weightings as additive games: one term for each subset of columns (STAR-SHAP)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers._additive import AdditiveForm, AdditiveReader
from exactshap.readers._base import Reader, Request, finite_numbers
from exactshap.readers._function_terms import FunctionTerm, FunctionTerms
from exactshap.readers._homogeneous import Interpolant, interpolate
from exactshap.readers._sklearn import fitted_names, require_fitted
from exactshap.readers._terms import Bound, Coalitions, Reference, by_size, coalitions, weighted_mean
from exactshap.solvers._additive import Stack

__all__ = ["read"]


def read(model: Any, request: Request) -> Reader:
    """Read the functions f_J of a fitted weighting; those of two or three columns are interpolated for mixed coalitions."""
    require_fitted(model, "terms_")
    smooth, others = [], []
    for term in _split_by_column(model.terms_):
        interpolant = None
        if term.base.degree is not None and len(term.subset) in (2, 3):
            interpolant = interpolate(term, len(term.subset), term.base.degree)
        (others if interpolant is None else smooth).append((term, interpolant))
    blocks: list[Any] = [HomogeneousTerms(tuple(SmoothTerm(t.subset, t, i) for t, i in smooth if i is not None))]
    blocks.append(FunctionTerms(tuple(FunctionTerm(t.subset, t, f"The function of columns {t.subset}", 1) for t, _ in others)))
    form = AdditiveForm(
        blocks=tuple(block for block in blocks if block.terms),
        intercept=np.array([model.intercept_]),
        encode=functools.partial(_numbers, type(model).__name__),
        predict=functools.partial(_predict, model),
        n_columns=model.n_features_in_,
        fitted_names=fitted_names(model),
        output_names=("target",),
        unit="target",
        single_output=True,
        magnitude=functools.partial(_magnitude, model.terms_),
    )
    return AdditiveReader(model, request, form)


def _split_by_column(terms: Sequence[Any]) -> Iterator[Any]:
    """Yield the terms; a term of stumps is a sum of functions of one column each, and yields those."""
    for term in terms:
        if type(term.base).__name__ != "Stump" or len(term.subset) == 1:
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
    """The stumps of one column of a larger subset: the expectation still divides by the size of the subset."""

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


def _numbers(owner: str, X: Table, what: str) -> np.ndarray:
    return finite_numbers(X, what, owner)


def _predict(model: Any, X: Table) -> np.ndarray:
    return np.asarray(model.predict(X.native), float)


def _magnitude(terms: Sequence[Any], rows: np.ndarray) -> np.ndarray:
    """Return the sum of |a_t p E[...]| (n_rows,): large coefficients of opposite signs cancel inside each function."""
    total = np.zeros(len(rows))
    for term in terms:
        absolute = type(term)(term.subset, term.parameters, np.abs(term.coefficients), term.base)
        total += np.abs(absolute(rows[:, list(term.subset)]))
    return total


# -- terms with an interpolant -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SmoothTerm:
    """A homogeneous function of two or three columns: ``direct``, and its ``interpolant`` for mixed coalitions."""

    columns: tuple[int, ...]
    direct: Callable[[np.ndarray], np.ndarray]
    interpolant: Interpolant


@dataclass(frozen=True, eq=False)
class HomogeneousTerms:
    """Terms whose full coalitions are evaluated directly and whose mixed ones by interpolation."""

    terms: tuple[SmoothTerm, ...]

    @property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        return tuple(term.columns for term in self.terms)

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        return np.stack([term.direct(rows[:, list(term.columns)]) for term in self.terms], axis=1)[:, :, None]

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> Bound:
        assert reference is not None
        bound = []
        for term in self.terms:
            rows = np.ascontiguousarray(reference.rows[:, list(term.columns)])
            mean = weighted_mean(lambda values, term=term: term.direct(values)[:, None], Reference(rows, reference.weights), 1)
            bound.append(
                _BoundSmooth(term, coalitions(term.columns, owner), Reference(rows, reference.weights), float(mean[0]))
            )
        return _BoundTerms(tuple(bound))


@dataclass(frozen=True, eq=False)
class _BoundSmooth:
    term: SmoothTerm
    own: Coalitions
    reference: Reference
    mean: float

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return all coalition values (n_rows, 2^k, 1)."""
        values = np.ascontiguousarray(rows[:, list(self.term.columns)])
        table = np.empty((len(rows), len(self.own.inside), 1))
        table[:, 0] = self.mean
        table[:, -1, 0] = self.term.direct(values)
        if len(self.own.inside) > 2:
            means = self.term.interpolant.hybrid_means(
                values, self.reference.rows, self.reference.weights, self.own.inside[1:-1]
            )
            table[:, 1:-1, 0] = means
        return table


@dataclass(frozen=True, eq=False)
class _BoundTerms:
    terms: tuple[_BoundSmooth, ...]

    @property
    def row_calls(self) -> float:
        return float(sum((len(term.own.inside) - 2) * len(term.reference.rows) + 1 for term in self.terms))

    def stacks(self, rows: np.ndarray) -> Iterator[Stack]:
        for chosen in by_size(term.own.players for term in self.terms):
            tables = [self.terms[l].table(rows) for l in chosen]
            yield Stack(tuple(self.terms[l].own.players for l in chosen), np.stack(tables))
