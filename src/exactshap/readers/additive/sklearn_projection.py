"""Read linear models after linear maps, such as principal components, as linear in the input columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from exactshap._runtime.types import Model
from exactshap.readers import (
    Reader,
    Request,
    finite_numbers,
    fitted_names,
    library_class,
    nameless,
    require_fitted,
    select_outputs,
    sklearn_name,
)
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_basis import affine_of
from exactshap.readers.additive.sklearn_linear import linear_parts, response_of
from exactshap.readers.additive.terms import LinearTerms

_LINEAR = ("sklearn.linear_model.", "sklearn.svm._classes.LinearSV", "sklearn.discriminant_analysis.LinearDiscriminantAnalysis")
_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


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
    return is_map(step) or (sklearn_name(step) in _SCALERS and not getattr(step, "clip", False))


def is_projection(steps: Sequence[Any]) -> bool:
    """Say whether steps are linear maps, perhaps scalers, and a linear model."""
    if len(steps) < 2 or not is_map(steps[0]) or not all(map(is_affine, steps[1:-1])):
        return False
    known = library_class(steps[-1], "sklearn")
    return (
        known is not None and f"{known.__module__}.{known.__qualname__}".startswith(_LINEAR) and sklearn_name(steps[-1]) != ""
    )


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
    chosen, picked = select_outputs(parts.output_names, request.output, owner="Pipeline")
    single = picked or len(parts.output_names) == 1
    call = parts.call(chosen, single)
    form = AdditiveForm(
        blocks=(LinearTerms(coefficients[:, chosen]),),
        intercept=intercept[chosen],
        encode=functools.partial(finite_numbers, owner="Pipeline", names=request.feature_names),
        predict=functools.partial(call.in_double, model),
        own_call=call,
        n_columns=len(coefficients),
        fitted_names=fitted_names(steps[0]),
        output_names=tuple(parts.output_names[k] for k in chosen),
        unit=parts.unit,
        single_output=single,
        magnitude=functools.partial(_cancelled, sizes.max(axis=1), float(offset.max())),
        floor=parts.floor,
        precision=parts.precision_for(request.background),
    )
    return AdditiveReader(model, request, form)


def _cancelled(sizes: np.ndarray, offset: float, rows: np.ndarray) -> np.ndarray:
    return np.asarray((np.abs(rows) * sizes).sum(axis=1) + offset)


def _map_of(step: Model, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and the shift of a step: u -> u matrix + shift."""
    if isinstance(step, MapsSideBySide):
        return step.affine()
    if sklearn_name(step) in _SCALERS:
        slope, shift = affine_of(step, width)
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
