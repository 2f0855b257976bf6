"""Read pipelines of linear maps, scalers, or polynomials of single columns, with a linear model at their end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from exactshap._runtime.types import Model
from exactshap.frames import Table
from exactshap.readers import (
    Outputs,
    Reader,
    Request,
    finite_numbers,
    fitted_names,
    library_class,
    nameless,
    replaced,
    require_fitted,
    sklearn_name,
)
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._monomials import MonomialTerms
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LINEAR, linear_parts, read_parts, response_of

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


def _is_linear(step: Model) -> bool:
    """Say whether a step is a linear model of scikit-learn's own."""
    known = library_class(step, "sklearn")
    return known is not None and f"{known.__module__}.{known.__qualname__}".startswith(LINEAR) and not replaced(step, known)


def _is_scaler(step: Model) -> bool:
    """Say whether a step scales each column without clipping it, which is no affine map."""
    return sklearn_name(step) in _SCALERS and not getattr(step, "clip", False)


def _affine_of(scaler: Model, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and offset (width,) of a fitted scaler: u -> slope u + offset for each column."""
    name = sklearn_name(scaler)
    if name == "MinMaxScaler":
        return np.asarray(scaler.scale_, float), np.asarray(scaler.min_, float)
    centre = getattr(scaler, "mean_" if name == "StandardScaler" else "center_", None)
    with_centre = getattr(scaler, "with_mean", True) and getattr(scaler, "with_centering", True)
    slope = np.ones(width) if scaler.scale_ is None else 1.0 / np.asarray(scaler.scale_, float)
    return slope, -slope * centre if centre is not None and with_centre else np.zeros(width)


# -- linear maps, such as principal components -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MapsSideBySide:
    """Map the columns of each block by its own steps, as a ColumnTransformer does; a block without steps stays.

    ``blocks`` are pairs of steps (maps or scalers) and numbers of columns.
    """

    blocks: Sequence[tuple[Sequence[Any], int]]

    def transform(self, rows: np.ndarray) -> np.ndarray:
        parts, start = [], 0
        for steps, width in self.blocks:
            part = rows[:, start : start + width]
            for step in steps:
                part = np.asarray(nameless(step).transform(part))
            parts.append(part)
            start += width
        return np.concatenate(parts, axis=1)

    def affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix and the shift of all blocks."""
        matrices, shifts = zip(*(_product(steps, width) for steps, width in self.blocks), strict=True)
        return block_diag(*matrices), np.concatenate(shifts)


def _product(steps: Sequence[Any], width: int) -> tuple[np.ndarray, np.ndarray]:
    matrix, shift = np.eye(width), np.zeros(width)
    for step in steps:
        following, offset = _map_of(step, matrix.shape[1])
        matrix, shift = matrix @ following, shift @ following + offset
    return matrix, shift


def is_map(step: Model) -> bool:
    """Say whether a step is a linear map of its columns, such as principal components."""
    return isinstance(step, MapsSideBySide) or sklearn_name(step) in _MAPS


def is_affine(step: Model) -> bool:
    """Say whether a step is a linear map or scales each column."""
    return is_map(step) or _is_scaler(step)


def is_projection(steps: Sequence[Any]) -> bool:
    """Say whether steps are linear maps, perhaps scalers, and a linear model."""
    return len(steps) > 1 and is_map(steps[0]) and all(map(is_affine, steps[1:-1])) and _is_linear(steps[-1])


def read_projection(steps: Sequence[Any], request: Request, model: Model) -> Reader:
    """Read a linear model of mapped rows, in the requested unit."""
    return with_response(lambda _: response_of(steps[-1]))(functools.partial(_read_score, steps))(model, request)


def _read_score(steps: Sequence[Any], model: Model, request: Request) -> AdditiveReader:
    r"""Read a linear model of mapped rows as one of the rows.

    .. math:: f(x) = b + \bigl((x - m) W\bigr) \beta = b - m W \beta + \sum_j x_j (W \beta)_j

    ``model`` is the pipeline of the steps. It computes the products one after the other: the sizes that cancel in them, :math:`(|x| + |m|)\, |W|\, |\beta|`, count as rounding.
    """
    if not isinstance(steps[0], MapsSideBySide):
        require_fitted(steps[0], "components_")
    parts = linear_parts(steps[-1])
    coefficients, intercept = parts.coefficients.astype(float), parts.intercept
    sizes, offset = np.abs(coefficients), np.zeros(coefficients.shape[1])
    for step in reversed(steps[:-1]):
        matrix, shift = _map_of(step, len(coefficients))
        intercept, coefficients = intercept + shift @ coefficients, matrix @ coefficients
        offset, sizes = offset + np.abs(shift) @ sizes, np.abs(matrix) @ sizes
    return read_parts(
        model,
        request,
        replace(parts, coefficients=coefficients, intercept=intercept),
        fitted_names(steps[0]),
        magnitude=functools.partial(_cancelled, sizes.max(axis=1), float(offset.max())),
        precision=parts.precision_for(request.background),
    )


def _cancelled(sizes: np.ndarray, offset: float, rows: np.ndarray) -> np.ndarray:
    return np.asarray((np.abs(rows) * sizes).sum(axis=1) + offset)


def _map_of(step: Model, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and the shift of a step: u -> u matrix + shift."""
    if isinstance(step, MapsSideBySide):
        return step.affine()
    if sklearn_name(step) in _SCALERS:
        slope, shift = _affine_of(step, width)
        return np.diag(slope), shift
    return _MAPS[sklearn_name(step)](step)


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


# -- polynomials -------------------------------------------------------------------------------------------------------------


def read_basis(pipeline: Model, request: Request) -> Reader | None:
    """Read [scalers] + PolynomialFeatures + [scalers] + a linear model, or its response; None if steps are others."""
    steps = [step for _, step in pipeline.steps if not (step is None or (isinstance(step, str) and step == "passthrough"))]
    names = [sklearn_name(step) for step in steps]
    if names[:-1].count("PolynomialFeatures") != 1 or not _is_linear(steps[-1]):
        return None
    place = names.index("PolynomialFeatures")
    others = {*names[:place], *names[place + 1 : -1]}
    if not others <= set(_SCALERS) or not all(map(_is_scaler, steps[place + 1 : -1])):
        return None
    read = functools.partial(_read_monomials, steps[:place], steps[place:])
    return with_response(lambda _: response_of(steps[-1]))(read)(pipeline, request)


def _read_monomials(before: Sequence[Any], steps: Sequence[Any], pipeline: Model, request: Request) -> AdditiveReader:
    """Read f as a sum of monomials of the columns that ``before`` scales; ``steps`` begin with the basis."""
    basis = nameless(steps[0])
    require_fitted(basis, "n_features_in_")
    parts = linear_parts(steps[-1])
    outputs = Outputs.of(parts.output_names, request.output, owner="Pipeline")
    coefficients, intercept, size = parts.coefficients.astype(float), parts.intercept, 0.0
    # Scalers after the basis are folded into the coefficients; what they subtract rounds.
    for scaler in reversed(steps[1:-1]):
        slope, offset = _affine_of(scaler, len(coefficients))
        intercept = intercept + offset @ coefficients
        size += float((np.abs(offset) @ np.abs(coefficients)).max(initial=0.0))
        coefficients = slope[:, None] * coefficients
    coefficients, powers = coefficients[:, outputs.numbers], np.asarray(basis.powers_, np.int64)
    is_constant = ~powers.any(axis=1)
    used = ~is_constant & coefficients.any(axis=1)
    form = AdditiveForm(
        blocks=(MonomialTerms(powers[used], coefficients[used]),),
        intercept=intercept[outputs.numbers] + coefficients[is_constant].sum(axis=0),
        encode=functools.partial(_encode, tuple(map(nameless, before)), request.feature_names),
        n_columns=basis.n_features_in_,
        fitted_names=fitted_names(pipeline),
        outputs=outputs,
        unit=parts.unit,
        floor=parts.floor + size,
        precision=parts.precision_for(request.background),
        own_call=parts.call(outputs),
    )
    return AdditiveReader(pipeline, request, form)


def _encode(scalers: Sequence[Any], names: tuple[str, ...] | None, X: Table, what: str) -> np.ndarray:
    """Return the basis' input (n_rows, n_columns): every scaler works on single columns, by its own transform."""
    values = finite_numbers(X, what, "Pipeline", names=names)
    for scaler in scalers:
        result = scaler.transform(values)  # a frame or an array, dense or sparse
        values = np.asarray(result.toarray() if hasattr(result, "toarray") else result, float)
    return values
