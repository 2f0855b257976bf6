"""Values by background row, which belong to one explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from exactshap.errors import InputError, message

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

__all__ = ["checked_background_values"]


def checked_background_values(rows: ExplanationData, by_background: np.ndarray) -> np.ndarray:
    """Return values by background row as an array, if their mean over the background are the explanation's values.

    Parameters
    ----------
    by_background : array of shape (n_background, n_rows, n_players[, n_outputs])
        Of :meth:`exactshap.Explainer.background_values`.
    """
    by_background = np.asarray(by_background, float)
    do = "Pass explainer.background_values(X) of the same explainer and rows"
    if by_background.ndim != rows.values.ndim + 1 or by_background.shape[1:] != rows.values.shape or len(by_background) < 2:
        got = f"Got shape {by_background.shape}; expected (n_background >= 2, {', '.join(map(str, rows.values.shape))})"
        raise InputError(message("The 'background_values' parameter does not fit the explanation", got, do))
    missed = np.abs(by_background.mean(axis=0) - rows.values)
    allowed = rows.tolerance.reshape(-1, *[1] * (rows.values.ndim - 1)) + np.max(rows.error_bound, initial=0.0)
    if np.any(missed > allowed):
        got = f"Their mean is off by {missed.max():.2g}"
        raise InputError(message("The 'background_values' parameter is of other values", got, do))
    return by_background
