"""From a table to the numbers that trees compare: categories become codes, the library's missing value becomes NaN."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap.errors import ExplanationWarning, InputError, message

if TYPE_CHECKING:
    from exactshap.trees._model import TreeModel

__all__ = ["encode"]

_UNSEEN = {"xgboost": -1.0}  # every other library reads an unseen category as missing


def encode(model: TreeModel, table: Any) -> np.ndarray:
    """Return float64 (n_rows, n_features) for a :class:`~exactshap.frames.Table`: codes in categorical columns, NaN if missing.

    Arrays hold codes already. In frames, categorical columns hold the categories' names; those that the model never saw
    follow the library (a branch of their own in XGBoost, missing elsewhere) with an ExplanationWarning.
    """
    categorical = [j for j, known in enumerate(model.categories) if known is not None]
    named = [j for j in categorical if table.is_frame and table.column(j).dtype.kind not in "fiu" or _is_categorical(table, j)]
    plain = [j for j in range(table.n_columns) if j not in set(named)]
    X = np.empty((table.n_rows, table.n_columns))
    X[:, plain] = (table.select(plain) if named else table).numeric() if plain else 0.0
    if not np.isnan(model.missing_value):
        X[:, plain] = np.where(_same(X[:, plain], model.missing_value, model.library), np.nan, X[:, plain])
    for j in named:
        X[:, j] = _codes(table, j, model.categories[j] or _own_categories(table, j), model.library)
    if model.library == "xgboost" and categorical:  # negative codes, fractions included, are invalid there
        X[:, categorical] = np.where(X[:, categorical] < 0.0, -1.0, X[:, categorical])
    return X


def _same(X: np.ndarray, missing: float, library: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.float32(missing) == X.astype(np.float32) if library == "xgboost" else missing == X


def _is_categorical(table: Any, j: int) -> bool:
    return bool(table.is_frame) and "Categorical" in str(table._series(j).dtype)


def _own_categories(table: Any, j: int) -> tuple[Any, ...]:
    if not _is_categorical(table, j):
        raise InputError(
            message(f"In X, {table.label(j)} holds text", "The model knows codes only", "Pass a categorical column or codes")
        )
    return tuple(table._series(j).cat.get_categories().to_list())


def _codes(table: Any, j: int, known: tuple[Any, ...], library: str) -> np.ndarray:
    code = {value: float(c) for c, value in enumerate(known)}
    codes, unseen = np.empty(table.n_rows), []
    for i, value in enumerate(table.column(j).tolist()):
        if value is None or value != value or type(value).__name__ == "NAType":
            codes[i] = np.nan
        elif value in code:
            codes[i] = code[value]
        else:
            codes[i] = _UNSEEN.get(library, np.nan)
            unseen.append(value)
    if unseen:
        names = sorted({repr(value) for value in unseen})[:5]
        warnings.warn(
            message(f"In X, {table.label(j)} holds categories that the model has not seen", f"Got {', '.join(names)}",
                    "They follow the model's own rule for unseen categories"),  # fmt: skip
            ExplanationWarning,
            stacklevel=6,
        )
    return codes
