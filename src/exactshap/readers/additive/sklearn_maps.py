"""Read linear models of linear maps and polynomials of the columns. These are of all columns, or of some side by side."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from exactshap._runtime.slices import slices
from exactshap._runtime.types import Model
from exactshap.readers import (
    Outputs,
    Reader,
    Request,
    fitted_names,
    library_class,
    nameless,
    replaced,
    require_fitted,
    sklearn_name,
)
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._terms import CHUNK_VALUES, LinearTerms, MonomialTerms, TermBlock
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LINEAR, linear_parts, read_parts, response_of

# They scale and shift each column; minima and maxima may clip, too
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_POLYNOMIALS = "PolynomialFeatures"


@dataclass(frozen=True, eq=False)
class MapsSideBySide:
    """Map the columns of each block by its own steps, as a ColumnTransformer does; a block without steps stays.

    ``blocks`` are pairs of steps and numbers of columns: a linear map, scaler or polynomials first, then what is affine.
    """

    blocks: Sequence[tuple[Sequence[Any], int]]

    @property
    def n_columns(self) -> int:
        return sum(width for _, width in self.blocks)

    def transform(self, rows: np.ndarray) -> np.ndarray:
        return np.concatenate(self.parts(rows), axis=1)

    def parts(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return what each block makes of its columns."""
        parts, start = [], 0
        for steps, width in self.blocks:
            part = rows[:, start : start + width]
            for step in steps:
                part = np.asarray(nameless(step).transform(part))
            parts.append(part)
            start += width
        return parts


@dataclass(frozen=True, eq=False)
class Weight:
    """Multiply all columns by a number, as transformer_weights do."""

    factor: float

    def transform(self, rows: np.ndarray) -> np.ndarray:
        return rows * self.factor


def is_map(step: Model) -> bool:
    """Say whether a step makes linear maps of its columns, such as principal components, or polynomials."""
    return isinstance(step, MapsSideBySide) or sklearn_name(step) == _POLYNOMIALS or sklearn_name(step) in _MAPS


def is_affine(step: Model) -> bool:
    """Say whether a step is a linear map, scales each column or selects some."""
    name = sklearn_name(step)
    scales = name in SCALERS and not getattr(step, "clip", False)  # clipping is no affine map
    return isinstance(step, Weight) or name in _MAPS or scales or is_selection(step)


def is_selection(step: Model) -> bool:
    """Say whether a step of scikit-learn selects columns."""
    known = library_class(step, "sklearn") if sklearn_name(step) else None
    return known is not None and known.__module__.startswith("sklearn.feature_selection") and hasattr(step, "get_support")


def is_projection(steps: Sequence[Any]) -> bool:
    """Say whether steps are a map, perhaps affine ones, and a linear model."""
    return len(steps) > 1 and is_map(steps[0]) and all(map(is_affine, steps[1:-1])) and _is_linear(steps[-1])


def _is_linear(step: Model) -> bool:
    """Say whether a step is a linear model of scikit-learn's own."""
    known = library_class(step, "sklearn")
    return known is not None and f"{known.__module__}.{known.__qualname__}".startswith(LINEAR) and not replaced(step, known)


def read_projection(steps: Sequence[Any], request: Request, model: Model) -> Reader:
    """Read a linear model of mapped rows, in the requested unit. ``model`` is the pipeline of the steps."""
    return with_response(lambda _: response_of(steps[-1]))(functools.partial(_read_score, steps))(model, request)


@dataclass(frozen=True, eq=False)
class _Score:
    r"""Hold a linear function of a step's outputs, :math:`u \mapsto b + u \beta`.

    What cancels in the products of the steps counts as rounding: at most :math:`|u|` times ``sizes``, plus ``offset``.
    """

    coefficients: np.ndarray
    intercept: np.ndarray
    sizes: np.ndarray
    offset: np.ndarray

    def before(self, step: Model) -> _Score:
        r"""Return the same function of the step's inputs: :math:`(u W + m) \beta = u (W \beta) + m \beta`."""
        matrix, shift = _affine_of(step, len(self.coefficients))
        return _Score(
            matrix @ self.coefficients,
            self.intercept + shift @ self.coefficients,
            abs(matrix) @ self.sizes,
            self.offset + np.abs(shift) @ self.sizes,
        )

    def only(self, places: slice | np.ndarray) -> _Score:
        """Return the function of some outputs, with the whole intercept."""
        return replace(self, coefficients=self.coefficients[places], sizes=self.sizes[places])


@dataclass(frozen=True, eq=False)
class _Block:
    """Hold coefficients and sizes of a block's columns, or of monomials of them with some ``powers``."""

    columns: slice
    powers: np.ndarray | None
    coefficients: np.ndarray
    sizes: np.ndarray


def _read_score(steps: Sequence[Any], model: Model, request: Request) -> AdditiveReader:
    """Read a linear model of mapped rows as a sum of columns and monomials."""
    maps, parts = _maps_of(steps[0]), linear_parts(steps[-1])
    outputs = Outputs.of(parts.output_names, request.output, owner=type(model).__name__)
    coefficients, intercept = parts.coefficients[:, outputs.numbers].astype(float), parts.intercept[outputs.numbers]
    score = _Score(coefficients, intercept, np.abs(coefficients), np.zeros(len(intercept)))
    for step in reversed(steps[1:-1]):
        score = score.before(step)
    blocks, score = _blocks(maps, score)
    cancels = any(np.any(block.sizes != np.abs(block.coefficients)) for block in blocks)
    sizes = _terms(blocks, maps.n_columns, [block.sizes.max(axis=1, keepdims=True) for block in blocks])
    return read_parts(
        model,
        request,
        parts,
        fitted_names(steps[0]),
        blocks=_terms(blocks, maps.n_columns, [block.coefficients for block in blocks]),
        intercept=score.intercept,
        n_columns=maps.n_columns,
        magnitude=functools.partial(_cancelled, sizes) if cancels else None,
        floor=parts.floor + float(score.offset.max(initial=0.0)),
    )


def _maps_of(step: Model) -> MapsSideBySide:
    """Return a map as the one block of all columns."""
    if isinstance(step, MapsSideBySide):
        return step
    require_fitted(step, "n_features_in_" if sklearn_name(step) == _POLYNOMIALS else "components_")
    return MapsSideBySide([([step], int(step.n_features_in_))])


def _blocks(maps: MapsSideBySide, score: _Score) -> tuple[list[_Block], _Score]:
    """Return a score of mapped columns, block by block, and its intercept."""
    blocks: list[_Block] = []
    place = start = 0
    for (steps, width), made in zip(maps.blocks, maps.parts(np.zeros((1, maps.n_columns))), strict=True):
        own = score.only(slice(place, place + made.shape[1]))
        powers = steps[0].powers_ if steps and sklearn_name(steps[0]) == _POLYNOMIALS else None
        for step in reversed(steps if powers is None else steps[1:]):
            own = own.before(step)
        if powers is not None:
            powers, own = _without_constants(powers, own)
        blocks.append(_Block(slice(start, start + width), powers, own.coefficients, own.sizes))
        score = replace(score, intercept=own.intercept, offset=own.offset)
        place, start = place + made.shape[1], start + width
    return blocks, score


def _without_constants(powers: np.ndarray, score: _Score) -> tuple[np.ndarray, _Score]:
    """Return the monomials of columns with a coefficient. Constant ones join the intercept."""
    degrees = powers.sum(axis=1)
    constant, used = score.only(degrees == 0), np.flatnonzero((degrees > 0) & score.sizes.any(axis=1))
    intercept, offset = constant.coefficients.sum(axis=0), constant.sizes.sum(axis=0)
    return powers[used], replace(score.only(used), intercept=score.intercept + intercept, offset=score.offset + offset)


def _terms(blocks: Sequence[_Block], n_columns: int, factors: Sequence[np.ndarray]) -> tuple[TermBlock, ...]:
    """Return the terms of blocks with some factors (n_terms, n_outputs) each. Those of single columns come together."""
    linear, powers, monomials = np.zeros((n_columns, factors[0].shape[1])), [], []
    for block, own in zip(blocks, factors, strict=True):
        if block.powers is None:
            linear[block.columns] = own
        else:
            powers.append(np.zeros((len(own), n_columns), np.int64))
            powers[-1][:, block.columns] = block.powers
            monomials.append(own)
    if not powers:
        return (LinearTerms(linear),)
    of_monomials = MonomialTerms(np.concatenate(powers), np.concatenate(monomials))
    return (of_monomials,) if len(powers) == len(blocks) else (LinearTerms(linear), of_monomials)


def _cancelled(terms: Sequence[TermBlock], rows: np.ndarray) -> np.ndarray:
    """Return the sum (n_rows,) of magnitudes of terms with the sizes as their coefficients."""
    step = CHUNK_VALUES // max(len(block.columns) for block in terms)
    pieces = [sum(np.abs(block.evaluate(rows[piece])).sum(axis=(1, 2)) for block in terms) for piece in slices(len(rows), step)]
    return np.concatenate(pieces) if pieces else np.zeros(0)


# -- affine steps ------------------------------------------------------------------------------------------------------------


def _affine_of(step: Model, n_outputs: int) -> tuple[Any, np.ndarray]:
    """Return the matrix, maybe sparse, and the shift of a step. It maps u to u matrix + shift."""
    if isinstance(step, Weight):
        return sparse.identity(n_outputs, format="csr") * step.factor, np.zeros(n_outputs)
    if is_selection(step):
        support = step.get_support()
        return sparse.identity(len(support), format="csr")[:, support], np.zeros(n_outputs)
    if sklearn_name(step) in SCALERS:
        slope, shift = _scaling(step, n_outputs)
        return sparse.diags(slope, format="csr"), shift
    return _MAPS[sklearn_name(step)](step)


def _scaling(scaler: Model, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and offset (width,) of a fitted scaler: u -> slope u + offset for each column."""
    name = sklearn_name(scaler)
    if name == "MinMaxScaler":
        return np.asarray(scaler.scale_, float), np.asarray(scaler.min_, float)
    centre = getattr(scaler, "mean_" if name == "StandardScaler" else "center_", None)
    with_centre = getattr(scaler, "with_mean", True) and getattr(scaler, "with_centering", True)
    slope = np.ones(width) if scaler.scale_ is None else 1.0 / np.asarray(scaler.scale_, float)
    return slope, -slope * centre if centre is not None and with_centre else np.zeros(width)


def _components(step: Model) -> tuple[np.ndarray, np.ndarray]:
    components = step.components_.toarray() if hasattr(step.components_, "toarray") else step.components_
    matrix = np.asarray(components, float).T
    return matrix, np.zeros(matrix.shape[1])


def _centred(step: Model) -> tuple[np.ndarray, np.ndarray]:
    matrix, _ = _components(step)
    # Independent components that were not whitened
    if getattr(step, "mean_", None) is None:
        return matrix, np.zeros(matrix.shape[1])
    return matrix, -np.asarray(step.mean_, float) @ matrix


def _principal(step: Model) -> tuple[np.ndarray, np.ndarray]:
    matrix, shift = _centred(step)
    scale = np.sqrt(step.explained_variance_) if step.whiten else np.ones(matrix.shape[1])
    return matrix / scale, shift / scale


_MAPS: dict[str, Callable[[Any], tuple[np.ndarray, np.ndarray]]] = {
    "PCA": _principal,
    "IncrementalPCA": _principal,
    "FastICA": _centred,
    "TruncatedSVD": _components,
    "GaussianRandomProjection": _components,
    "SparseRandomProjection": _components,
    "NeighborhoodComponentsAnalysis": _components,
}
