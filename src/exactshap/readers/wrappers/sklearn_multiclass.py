"""Several machines side by side: one-vs-rest and one-vs-one classifiers, one regressor for each target."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap.errors import UnsupportedStructureError, message
from exactshap.frames import Table
from exactshap.readers import Reader, Request, fitted_names, require_fitted, select_outputs, sklearn_name
from exactshap.readers import read as read_any
from exactshap.readers.kernel_machines import KernelReader, merge

__all__ = ["read"]


def read(model: Any, request: Request) -> Reader:
    """Read the parts, all kernel machines, and stack them as outputs of one machine."""
    require_fitted(model, "estimators_")
    names = _names(model)
    chosen, single = select_outputs(names, request.output, owner=type(model).__name__)
    single = single or len(names) == 1
    parts = [read_any(model.estimators_[k], replace(request, output="auto")) for k in chosen]
    for part in parts:
        if not isinstance(part, KernelReader) or not part.single_output:
            raise UnsupportedStructureError(
                message(
                    f"{type(model).__name__} is read when its parts are kernel machines with one output",
                    f"Got {part.model_name}",
                    "Explain model.estimators_[k] one at a time",
                )
            )
    return KernelReader(
        model,
        request,
        merge([part.expansion for part in parts]),  # type: ignore[attr-defined]
        functools.partial(_predict, model, [part.predict for part in parts], single),
        feature_names=fitted_names(model) or parts[0].fitted_names,
        output_names=tuple(names[k] for k in chosen),
        unit=parts[0].unit.split(" (")[0],
        single_output=single,
    )


def _names(model: Any) -> tuple[str, ...]:
    if not hasattr(model, "classes_"):
        return tuple(f"target {k}" for k in range(len(model.estimators_)))
    classes = [str(c) for c in model.classes_]
    if sklearn_name(model) == "OneVsOneClassifier":
        return tuple(f"{second} vs {first}" for first, second in itertools.combinations(classes, 2))
    return (classes[1],) if len(model.estimators_) == 1 else tuple(classes)


def _predict(model: Any, parts: list[Any], single: bool, X: Table) -> np.ndarray:
    """Return what the parts predict: for one-vs-rest that is the model's own decision function, column by column."""
    bare = Table(
        X.native if not X.is_frame or hasattr(model, "feature_names_in_") else X.numeric(), None, X.n_rows, X.n_columns
    )
    columns = [np.asarray(part(bare), float) for part in parts]
    return columns[0] if single else np.stack(columns, axis=1)
