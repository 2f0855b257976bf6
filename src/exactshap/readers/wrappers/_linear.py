"""Recognise linear last steps, before which stacks and feature maps can be read."""

from __future__ import annotations

from typing import Any

from exactshap._runtime.types import Model
from exactshap.readers import known_class, replaced
from exactshap.readers.additive import linear_parts

_LINEAR = (
    "sklearn.linear_model.",
    "sklearn.svm._classes.LinearSV",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
)
# Machines that are linear where their kernel is.
_MACHINES = tuple(f"sklearn.svm._classes.{name}" for name in ("SVR", "NuSVR", "SVC", "NuSVC"))


def linear_step(model: Model) -> Any:
    """Return a linear step's parts if it predicts without a link, else None.

    >>> from sklearn.linear_model import PoissonRegressor, Ridge
    >>> linear_step(Ridge().fit([[0.0], [2.0]], [1.0, 1.0])).intercept
    array([1.])
    >>> linear_step(PoissonRegressor().fit([[0.0], [2.0]], [1.0, 1.0]))
    """
    known = known_class(model)
    if known is None or replaced(model, known):
        return None
    name = f"{known.__module__}.{known.__qualname__}"
    if not name.startswith(_LINEAR) and not (name in _MACHINES and _has_one_product(model)):
        return None
    parts = linear_parts(model)
    return parts if parts.link is None else None


def _has_one_product(machine: Model) -> bool:
    """Say whether a kernel machine is linear and not a vote of several."""
    return machine.kernel == "linear" and len(getattr(machine, "classes_", ())) <= 2
