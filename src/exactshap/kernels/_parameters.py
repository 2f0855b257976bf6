"""Check the parameters of kernels, when a kernel is made and when its columns are known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from exactshap.errors import BudgetError, InputError, InputTypeError

# Products of one-column factors: this many take seconds for each row.
MAX_COMPONENTS = 200_000
# Times 0 it is 0; times the square of any distance above 1e-149 the exponential of its negative is 0.
LARGEST_RATE = 1e300


def check_positive(value: ArrayLike, name: str, owner: str) -> None:
    """Refuse all but a positive number or one per column; infinity switches a column off."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputTypeError(f"The {name!r} parameter of {owner} must be > 0", f"Got {value!r}") from None
    if array.ndim > 1 or array.size == 0:
        raise InputError(f"The {name!r} parameter of {owner} must be a number or one per column", f"Got shape {array.shape}")
    if not np.all(array > 0):
        raise InputError(f"The {name!r} parameter of {owner} must be > 0", f"Got {value!r}")


def check_finite(value: object, name: str, owner: str, *, low: float = -math.inf) -> None:
    """Refuse all but a finite number of at least ``low``."""
    if not isinstance(value, (int, float, np.number)):
        raise InputTypeError(f"The {name!r} parameter of {owner} must be a number", f"Got {value!r}")
    if not math.isfinite(value) or value < low:
        limit = "" if low == -math.inf else f" >= {low:g}"
        raise InputError(f"The {name!r} parameter of {owner} must be finite{limit and ' and' + limit}", f"Got {value!r}")


def per_column(value: ArrayLike, n_features: int, name: str, owner: str) -> np.ndarray:
    """Return a parameter as one number for each column, shape (n_features,)."""
    array = np.asarray(value, float)
    if array.size not in (1, n_features):
        raise InputError(
            f"The {name!r} parameter of {owner} must be a number or one per column ({n_features})", f"Got shape {array.shape}"
        )
    return np.broadcast_to(array, (n_features,)).copy()


def inverse_squares(sigma: np.ndarray, numerators: ArrayLike = 1.0) -> np.ndarray:
    """Return numerators / sigma^2, finite for any sigma > 0. Equal cells have distance 0."""
    with np.errstate(over="ignore", under="ignore"):
        # The root first: the square of a small sigma would underflow to 0 and divide by it
        return np.asarray(np.minimum((np.sqrt(numerators) / sigma) ** 2, LARGEST_RATE))


def check_size(n_components: int, what: str) -> None:
    """Refuse expansions of too many components."""
    if n_components > MAX_COMPONENTS:
        raise BudgetError(
            f"The expansion of {what} is too large",
            f"It has {n_components:.3g} terms; the limit is {MAX_COMPONENTS:.3g}",
            "Use Explainer(model.predict, background) for sampled values",
        )
