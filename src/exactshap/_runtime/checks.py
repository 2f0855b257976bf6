"""Check numbers from users, and parameters and sample weights of estimators, by scikit-learn's public names only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError


def is_number(value: object, least: float = 0.0, *, whole: bool = False, above: bool = False) -> bool:
    """Say whether a value is a finite number of at least ``least``, or above it."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer) if whole else (int, float, np.number)):
        return False
    return bool((least < value if above else least <= value) and value < math.inf)


def is_width(value: object) -> bool:
    """Say whether powers up to the third of a positive number are finite and not 0."""
    return is_number(value, 1e-100) and is_number(1.0 / float(value), 1e-100)  # type: ignore[arg-type]


def check_count(name: str, value: object, least: int = 1) -> int:
    """Return a whole number of at least ``least``, or refuse it by its name.

    >>> check_count("k", np.int64(3))
    3
    """
    if not is_number(value, least, whole=True):
        raise InputError(f"The {name!r} parameter must be an int >= {least}", f"Got {value!r}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_memory_limit(memory_limit: Any) -> None:
    """Refuse all but a positive number of bytes."""
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, (int, float, np.number)) or not memory_limit > 0:
        raise InputError("The 'memory_limit' parameter must be a positive number of bytes", f"Got {memory_limit!r}")


def check_tolerance(tol: object) -> None:
    """Refuse a tolerance of standard errors that is none, also where all coalitions are visited and it has no use."""
    if tol is not None and not is_number(tol, above=True):
        raise InputError("The 'tol' parameter must be a finite float > 0", f"Got {tol!r}")


def check_jobs(n_jobs: object) -> None:
    """Refuse all but a whole number of threads other than 0, or None."""
    if n_jobs is not None and (not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0):
        raise InputError("The 'n_jobs' parameter must be an int other than 0, or None", f"Got {n_jobs!r}")


def checked_generator(random_state: Any) -> np.random.Generator:
    """Return NumPy's generator of a seed, or refuse the seed by its name.

    >>> checked_generator(3).integers(10) == checked_generator(np.random.default_rng(3)).integers(10)
    np.True_
    """
    try:
        # NumPy takes True for 1, which nobody means.
        if not isinstance(random_state, (bool, np.bool_)):
            return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        pass
    raise InputError("The 'random_state' parameter must be None, an int >= 0 or a numpy Generator", f"Got {random_state!r}")


def check_level(level: Any) -> None:
    """Refuse a level of confidence that is not between 0 and 1."""
    if not is_number(level, above=True) or level >= 1:
        raise InputError("The 'level' parameter must be a float in (0, 1)", f"Got {level!r}")


def check_parameters(model: Model, checks: list[tuple[str, bool, str]]) -> None:
    """Refuse the first invalid parameter: (name, whether it is valid, what it must be)."""
    for name, fine, wanted in checks:
        if not fine:
            got = f"Got {getattr(model, name)!r} instead"
            raise InputError(f"The {name!r} parameter of {type(model).__name__} must be {wanted}", got)


def sample_weights(weights: Any, n_rows: int) -> np.ndarray:
    """Return one weight for each row, finite, not negative, not all zero; equal ones by default."""
    from sklearn.utils import check_array

    if weights is None or isinstance(weights, (int, float, np.number)):
        weights = np.full(n_rows, 1.0 if weights is None else float(weights))
    array = np.asarray(check_array(weights, ensure_2d=False, dtype=np.float64, input_name="sample_weight"))
    if array.shape != (n_rows,):
        raise InputError(f"Sample weights must have shape ({n_rows},)", f"Got {array.shape}", "Pass one weight per row")
    if (array < 0).any():
        raise InputError("Negative values in data passed to `sample_weight`", f"Got {array.min():.6g}")
    if not array.any():
        raise InputError("Sample weights must not all be zero: at least one non-zero number is needed", f"Got {n_rows} zeros")
    return array
