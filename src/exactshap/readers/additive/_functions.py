"""Define terms as functions: contracted products of one-column bases, and callables evaluated on hybrid rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.slices import slices
from exactshap._runtime.threads import raise_if_cancelled
from exactshap.errors import InputError
from exactshap.readers.additive._terms import (
    BACKGROUND_CHUNK,
    CHUNK_VALUES,
    Bound,
    Coalitions,
    Reference,
    by_size,
    coalitions,
    row_products,
    weighted_mean,
)
from exactshap.solvers.additive import Stack

if TYPE_CHECKING:
    from exactshap.readers.additive._homogeneous import Interpolant

# -- products of one-column bases ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ProductTerm:
    r"""A tensor on products of one-column bases.

    .. math:: f(x) = \sum_{b_1 \dots b_k} C_{b_1 \dots b_k} \prod_p B_p(x_{j_p})_{b_p}

    ``columns[p]`` is j_p (repeats allowed), ``bases[p](values (n,)) -> (n, n_p)``, ``tensor (n_1, ..., n_k, n_outputs)``.
    """

    columns: tuple[int, ...]
    bases: tuple[Callable[[np.ndarray], np.ndarray], ...]
    tensor: np.ndarray

    def values(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return every factor's basis values, each of shape (n_rows, n_p)."""
        return [basis(rows[:, column]) for basis, column in zip(self.bases, self.columns, strict=True)]

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        """Return f(x), of shape (n_rows, n_outputs)."""
        return _contract(self.values(rows), np.ones(len(self.columns), bool), self.tensor.reshape(-1, self.tensor.shape[-1]))

    def bind(self, reference: Reference, owner: Sequence[int]) -> _BoundProduct:
        own = coalitions(self.columns, owner)
        return _BoundProduct(self, own, tuple(self.folded(inside, reference) for inside in own.inside))

    def folded(self, inside: np.ndarray, reference: Reference) -> np.ndarray:
        """Return the tensor (n_inside_products, n_outputs) with outside factors averaged."""
        axes = np.append(np.flatnonzero(inside), np.flatnonzero(~inside))
        width = int(np.prod([self.tensor.shape[p] for p in np.flatnonzero(~inside)]))
        ordered = self.tensor.transpose(*axes, len(axes)).reshape(-1, width, self.tensor.shape[-1])
        mean = weighted_mean(lambda rows: _products(self.values(rows), ~inside), reference, width)
        return np.einsum("iwo,w->io", ordered, mean)


def _products(bases: list[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """Return products of the chosen factors' bases, (n_rows, product of their sizes)."""
    products = np.ones((len(bases[0]), 1))
    for p in np.flatnonzero(chosen):
        products = (products[:, :, None] * bases[p][:, None, :]).reshape(len(products), -1)
    return products


def _contract(bases: list[np.ndarray], inside: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    """Return (n_rows, n_outputs): the inside factors of the rows against a tensor (n_inside_products, n_outputs)."""
    values = np.empty((len(bases[0]), tensor.shape[1]))
    for part in slices(len(values), CHUNK_VALUES // max(1, tensor.size)):
        values[part] = row_products(_products([basis[part] for basis in bases], inside), tensor)
    return values


@dataclass(frozen=True, eq=False)
class _BoundProduct:
    term: ProductTerm
    own: Coalitions
    folded: tuple[np.ndarray, ...]
    row_calls = 0.0  # evaluations for one row, of which forecasts know the time

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return all coalition values (n_rows, 2^k, n_outputs)."""
        bases = self.term.values(rows)
        values = [_contract(bases, inside, tensor) for inside, tensor in zip(self.own.inside, self.folded, strict=True)]
        return np.stack(values, axis=1)

    def errors(self, rows: np.ndarray) -> float:
        return 0.0


# -- any vectorised function ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FunctionTerm:
    """Check every call of a user's function of some columns: ``function(values (n, k)) -> (n,) or (n, n_outputs)``.

    An ``interpolant`` takes its place for mixed coalitions, with a bound on the error.
    """

    columns: tuple[int, ...]
    function: Callable[[np.ndarray], Any]
    label: str
    n_outputs: int | None = None
    interpolant: Interpolant | None = None

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the function's values (n, n_outputs), or refuse them."""
        raise_if_cancelled()
        try:
            result = np.asarray(self.function(values))
        except Exception as error:
            raise InputError(f"{self.label} raised {type(error).__name__} for {len(values)} rows", f"{error}") from error
        if result.dtype.kind not in "fiub":
            raise InputError(f"{self.label} must return real numbers", f"Got dtype {result.dtype}")
        wanted = "(n_rows,)" if self.n_outputs in (None, 1) else f"(n_rows, {self.n_outputs})"
        shapes = {(len(values), self.n_outputs or 1)} | ({(len(values),)} if self.n_outputs in (None, 1) else set())
        if result.shape not in shapes and not (self.n_outputs is None and result.ndim == 2 and len(result) == len(values)):
            raise InputError(
                f"{self.label} returned shape {result.shape} for {len(values)} rows",
                f"It must return {wanted}",
                "Vectorise it over the rows of its array of shape (n_rows, n_columns)",
            )
        result = result.astype(float, copy=False).reshape(len(values), -1)
        self._check_finite(values, result)
        return result

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        """Return f(x), of shape (n_rows, n_outputs)."""
        return self(rows[:, self.columns])

    def bind(self, reference: Reference, owner: Sequence[int]) -> _BoundFunction:
        own, merged = coalitions(self.columns, owner), _distinct(reference, self.columns)
        return _BoundFunction(self, own, merged, hybrid_means(self, merged.rows[:1], own.inside[:1], merged)[0, 0])

    def _check_finite(self, values: np.ndarray, result: np.ndarray) -> None:
        bad = ~np.isfinite(result).all(axis=1)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"{self.label} returned NaN or infinity",
                f"First for the values {values[first].tolist()}",
                "Terms must be finite on every mix of a row with the background",
            )


@dataclass(frozen=True, eq=False)
class _BoundFunction:
    term: FunctionTerm
    own: Coalitions
    reference: Reference
    mean: np.ndarray

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return all coalition values (n_rows, 2^k, n_outputs); the mixed ones need hybrids of the rows and the background."""
        values = rows[:, self.term.columns]
        table = np.empty((len(rows), len(self.own.inside), len(self.mean)))
        table[:, 0] = self.mean
        table[:, -1] = self.term(values.copy())
        inside, reference = np.ascontiguousarray(self.own.inside[1:-1]), self.reference
        if self.term.interpolant is not None and len(inside):
            table[:, 1:-1, 0] = self.term.interpolant.hybrid_means(values, reference.rows, reference.weights, inside)
            return table
        for part in slices(len(rows), CHUNK_VALUES // BACKGROUND_CHUNK):
            table[part, 1:-1] = hybrid_means(self.term, values[part], inside, reference)
        return table

    @property
    def row_calls(self) -> float:
        return float((len(self.own.inside) - 2) * len(self.reference.rows) + 1)

    def errors(self, rows: np.ndarray) -> np.ndarray | float:
        r"""Return the bound (n_rows,) on the error of a mixed coalition's value.

        A hybrid of x and z has no entry above max(r_x, r_z), r the largest |entry| in the columns of the term, so that the
        mean errs by at most :math:`\epsilon \sum_z w_z \max(r_x, r_z)^p`.
        """
        if self.term.interpolant is None:
            return 0.0
        own = np.abs(rows[:, self.term.columns]).max(axis=1)
        others = np.abs(self.reference.rows).max(axis=1)
        order = np.argsort(others)
        bounds = self.term.interpolant.errors(others[order]) * self.reference.weights[order]
        below = np.searchsorted(others[order], own)
        mass = np.append(0.0, np.cumsum(self.reference.weights[order]))
        above = np.append(np.cumsum(bounds[::-1])[::-1], 0.0)
        return np.asarray(self.term.interpolant.errors(own) * mass[below] + above[below])


def hybrid_means(term: FunctionTerm, values: np.ndarray, inside: np.ndarray, reference: Reference) -> np.ndarray:
    """Return the mean of f over hybrids, of shape (n_rows, n_coalitions, n_outputs)."""
    step = CHUNK_VALUES // (len(values) * min(len(reference.rows), BACKGROUND_CHUNK) * values.shape[1])
    parts = [_mean_over_background(term, values, inside[codes], reference) for codes in slices(len(inside), step)]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(values), 0, 1))


def _mean_over_background(term: FunctionTerm, values: np.ndarray, inside: np.ndarray, reference: Reference) -> np.ndarray:
    """Return f at the first background row plus the mean deviation, in one order: a constant column gets exactly zero."""
    origin, deviation = np.zeros(()), np.zeros(())
    for z in slices(len(reference.rows), BACKGROUND_CHUNK):
        rows = reference.rows[z]
        hybrids = np.where(inside[None, :, None, :], values[:, None, None, :], rows[None, None, :, :])
        results = term(hybrids.reshape(-1, values.shape[1])).reshape(*hybrids.shape[:3], -1)
        results = np.ascontiguousarray(results.transpose(0, 1, 3, 2))
        origin = results[..., :1] if z.start == 0 else origin
        deviation = deviation + ((results - origin) * reference.weights[z]).sum(axis=-1)
    return origin[..., 0] + deviation


def _distinct(reference: Reference, columns: tuple[int, ...]) -> Reference:
    """Return the distinct background rows of some columns, with their added weights."""
    rows, index = np.unique(reference.rows[:, columns], axis=0, return_inverse=True)
    return Reference(rows, np.bincount(index.reshape(-1), reference.weights, minlength=len(rows)))


# -- terms one by one ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SeparateTerms:
    """Evaluate and bind terms one by one."""

    terms: tuple[ProductTerm | FunctionTerm, ...]

    @property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        return tuple(term.columns for term in self.terms)

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        return np.stack([term.evaluate(rows) for term in self.terms], axis=1)

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> Bound:
        assert reference is not None
        return BoundTerms(tuple(term.bind(reference, owner) for term in self.terms))


@dataclass(frozen=True, eq=False)
class BoundTerms(Bound):
    """Hold bound terms, each with a table of its own."""

    terms: tuple[_BoundProduct | _BoundFunction, ...]

    @property
    def row_calls(self) -> float:  # type: ignore[override]
        return sum(term.row_calls for term in self.terms)

    def errors(self, rows: np.ndarray) -> np.ndarray | float:
        return sum(term.errors(rows) for term in self.terms)

    def stacks(self, rows: np.ndarray) -> Iterator[Stack]:
        for chosen in by_size(term.own.players for term in self.terms):
            tables = [self.terms[l].table(rows) for l in chosen]
            yield Stack(tuple(self.terms[l].own.players for l in chosen), np.stack(tables))
