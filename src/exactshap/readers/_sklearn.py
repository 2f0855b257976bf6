"""Small things that every scikit-learn reader needs."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["are_sklearns_own", "assuming_finite", "fitted_names", "is_sklearns_own", "require_fitted", "writes_to_rows"]


def assuming_finite() -> AbstractContextManager[None]:
    """Let models of scikit-learn predict rows that were looked at already: for its linear ones, looking takes as long as predicting."""
    from sklearn import config_context

    return config_context(assume_finite=True)  # type: ignore[no-any-return]


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


def is_sklearns_own(method: Any) -> bool:
    """Say whether a function is scikit-learn's own code, which what was put in its place is not."""
    return getattr(getattr(method, "__code__", None), "co_filename", "").startswith(_library())


def are_sklearns_own(kind: type, names: Iterable[str]) -> bool:
    """Say whether methods are scikit-learn's own in every class that has them: what was put in their place may do more."""
    return all(is_sklearns_own(vars(one)[name]) for one in kind.__mro__ for name in names if name in vars(one))


def writes_to_rows(estimator: Any) -> bool:
    """Say whether an estimator, or one inside it, was told to make no copy (``copy=False``), and writes to what it is given."""
    return any(not value for name, value in estimator.get_params().items() if name.rpartition("__")[2] == "copy")


@functools.cache
def _library() -> str:
    import sklearn

    return os.path.join(os.path.dirname(sklearn.__file__), "")
