"""Small things that every scikit-learn reader needs."""

from __future__ import annotations

import copy
from typing import Any

from exactshap._runtime.types import Model

__all__ = [
    "fitted_names",
    "nameless",
    "require_fitted",
    "writes_to_rows",
]


def require_fitted(model: Model, *attributes: str) -> None:
    """Raise scikit-learn's NotFittedError for a model that was not fitted."""
    if all(hasattr(model, attribute) for attribute in attributes):
        return
    from sklearn.exceptions import NotFittedError

    raise NotFittedError(
        f"This {type(model).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before explaining this estimator."
    )


def fitted_names(model: Model) -> tuple[str, ...] | None:
    """Return the column names that the model was fitted with, or None."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def nameless(estimator: Model) -> Any:
    """Return a copy that takes arrays without a warning about names."""
    twin = copy.copy(estimator)
    twin.__dict__.pop("feature_names_in_", None)
    return twin


def writes_to_rows(estimator: Model) -> bool:
    """Return whether an estimator writes to its input (``copy=False``). Estimators inside it count as well."""
    return any(not value for name, value in estimator.get_params().items() if name.rpartition("__")[2] == "copy")
