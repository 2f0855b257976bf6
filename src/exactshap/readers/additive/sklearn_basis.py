"""Read pipelines that are additive in their columns: scalers, PolynomialFeatures, a linear model."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import (
    Reader,
    Request,
    finite_numbers,
    fitted_names,
    library_class,
    nameless,
    replaced,
    require_fitted,
    select_outputs,
    sklearn_name,
)
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, linear_parts, response_of
from exactshap.readers.additive.terms import MonomialTerms, TermBlock

_BASIS = "sklearn.preprocessing._polynomial.PolynomialFeatures"
_SCALERS = tuple(
    f"sklearn.preprocessing._data.{name}" for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
)
_LINEAR = ("sklearn.linear_model.", "sklearn.svm._classes.LinearSV")


@dataclass(frozen=True, eq=False)
class _Steps:
    """Hold the steps: scalers of columns, the basis, scalers of basis columns, the linear model."""

    before: tuple[Any, ...]
    basis: Any
    after: tuple[Any, ...]
    linear: Any


def is_basis(pipeline: Model) -> bool:
    """Say whether steps are [scalers] + PolynomialFeatures + [scalers] + linear model."""
    return _steps(pipeline) is not None


def _steps(pipeline: Model) -> _Steps | None:
    """Return the steps of scikit-learn's own classes, or None."""
    steps = [step for _, step in pipeline.steps if not (step is None or (isinstance(step, str) and step == "passthrough"))]
    names = [_full_name(step) for step in steps]
    bases = [s for s, name in enumerate(names[:-1]) if name == _BASIS]
    if len(bases) != 1 or not names[-1].startswith(_LINEAR):
        return None
    place = bases[0]
    if any(name not in _SCALERS for s, name in enumerate(names[:-1]) if s != place):
        return None
    # Clips basis columns: not affine
    if any(getattr(step, "clip", False) for step in steps[place + 1 : -1]):
        return None
    return _Steps(
        tuple(map(nameless, steps[:place])), nameless(steps[place]), tuple(map(nameless, steps[place + 1 : -1])), steps[-1]
    )


def _full_name(step: Model) -> str:
    known = library_class(step, "sklearn")
    return "" if known is None or replaced(step, known) else f"{known.__module__}.{known.__qualname__}"


def read_basis(pipeline: Model, request: Request) -> Reader:
    """Read a sum of monomials of the pipeline's input columns, or its response."""
    return with_response(lambda _: response_of(pipeline.steps[-1][1]))(_read_score)(pipeline, request)


def _read_score(pipeline: Model, request: Request) -> AdditiveReader:
    """Read f as a sum of monomials of the pipeline's input columns."""
    steps = _steps(pipeline)
    if steps is None:
        raise UnsupportedStructureError(
            "This Pipeline is not a basis of single columns and a linear model",
            f"Its steps are {[type(step).__name__ for _, step in pipeline.steps]}",
            "Known: [scalers] + PolynomialFeatures + [scalers] + a linear model",
        )
    require_fitted(steps.basis, "n_features_in_")
    parts = linear_parts(steps.linear)
    chosen, picked = select_outputs(parts.output_names, request.output, owner="Pipeline")
    single = picked or len(parts.output_names) == 1
    coefficients, intercept, size = _unscaled(parts, steps.after)
    call = parts.call(chosen, single)
    blocks, constant = _blocks(steps.basis, coefficients[:, chosen])
    form = AdditiveForm(
        blocks=blocks,
        intercept=intercept[chosen] + constant,
        encode=functools.partial(_encode, steps, request.feature_names),
        predict=functools.partial(call.in_double, pipeline),
        n_columns=steps.basis.n_features_in_,
        fitted_names=fitted_names(pipeline),
        output_names=tuple(parts.output_names[k] for k in chosen),
        unit=parts.unit,
        single_output=single,
        floor=parts.floor + size,
        precision=parts.precision_for(request.background),
        own_call=call,
    )
    return AdditiveReader(pipeline, request, form)


def _encode(steps: _Steps, names: tuple[str, ...] | None, X: Table, what: str) -> np.ndarray:
    """Return the basis' input (n_rows, n_columns): every scaler works on single columns, by its own transform."""
    values = finite_numbers(X, what, "Pipeline", names=names)
    for scaler in steps.before:
        values = _positional(scaler, values)
    return values


def _positional(transformer: Model, values: np.ndarray) -> np.ndarray:
    """Transform an array by position, for any container of the result."""
    result = transformer.transform(values)
    return np.asarray(result.toarray() if hasattr(result, "toarray") else result, float)


def affine_of(scaler: Model, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and offset (width,) of a fitted scaler: u -> slope u + offset for each column."""
    name = sklearn_name(scaler)
    if name == "MinMaxScaler":
        return np.asarray(scaler.scale_, float), np.asarray(scaler.min_, float)
    centre = getattr(scaler, "mean_" if name == "StandardScaler" else "center_", None)
    with_centre = getattr(scaler, "with_mean", True) and getattr(scaler, "with_centering", True)
    slope = np.ones(width) if scaler.scale_ is None else 1.0 / np.asarray(scaler.scale_, float)
    return slope, -slope * centre if centre is not None and with_centre else np.zeros(width)


def _unscaled(parts: LinearParts, scalers: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, float]:
    """Fold the scalers after the basis into the coefficients; also return the magnitude that they subtract."""
    coefficients, intercept, size = parts.coefficients.astype(float), parts.intercept, 0.0
    for scaler in reversed(scalers):
        slope, offset = affine_of(scaler, len(coefficients))
        intercept = intercept + offset @ coefficients
        size += float((np.abs(offset) @ np.abs(coefficients)).max(initial=0.0))
        coefficients = slope[:, None] * coefficients
    return coefficients, intercept, size


def _blocks(basis: Model, coefficients: np.ndarray) -> tuple[tuple[TermBlock, ...], np.ndarray]:
    """Return the terms of the basis, and the sum of its constant columns."""
    powers = np.asarray(basis.powers_, np.int64)
    constant = ~powers.any(axis=1)
    used = ~constant & coefficients.any(axis=1)
    return (MonomialTerms(powers[used], coefficients[used]),), coefficients[constant].sum(axis=0)
