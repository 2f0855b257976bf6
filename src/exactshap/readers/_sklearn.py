"""Small things that every scikit-learn reader needs."""

from __future__ import annotations

from typing import Any

__all__ = ["fitted_names", "require_fitted"]


def require_fitted(model: Any, *attributes: str) -> None:
    """Raise scikit-learn's NotFittedError for a model that was not fitted."""
    if all(hasattr(model, attribute) for attribute in attributes):
        return
    from sklearn.exceptions import NotFittedError

    raise NotFittedError(
        f"This {type(model).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before explaining this estimator."
    )


def fitted_names(model: Any) -> tuple[str, ...] | None:
    """Return the column names that the model was fitted with, or None."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)
