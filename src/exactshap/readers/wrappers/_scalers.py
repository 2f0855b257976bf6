"""Scalers and splines of scikit-learn by their arithmetic alone, which threads share: what ``transform`` does first takes longer than scaling.

The same operations on the same operands as in ``transform``, so that the bits are the same. Whatever may be more than numbers in plain
arrays, and rows that are not finite, go the documented way, which knows what to say of them.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers import is_sklearns_own
from exactshap.readers.wrappers._scaling import Features, Operation, Scaling, SplinedRows

__all__ = ["come_in_pieces", "scaling_of"]

MODULE, SPLINES = "sklearn.preprocessing._data", ("sklearn.preprocessing._polynomial", "SplineTransformer")
THROUGH = ("transform", "_validate_data", "_check_n_features", "_check_feature_names")  # methods of some release or other
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
TRIED = 5  # columns of the trial,
TRIED_SIZES = (1e-3, 1.0, 1e3, 1e6)  # and magnitudes of its rows


def scaling_of(steps: list[Any], X: Table) -> Scaling | SplinedRows | None:
    """Return what scalers, and splines among them, do to rows by their attributes as they are now; None where ``transform`` may do more.

    Parameters
    ----------
    steps : list of transformers
    X : Table

    Returns
    -------
    scaling : Scaling, SplinedRows or None
    """
    place = _place_of_splines(steps)
    if place is None or not _gives_arrays() or (array := _numbers(X)) is None:
        return None
    dtype, front, back = array.dtype, steps[:place], steps[place + 1 :]
    operations = _all_operations(front, X.names, X.n_columns, dtype)
    if operations is None:
        return None
    scaling = Scaling(array, operations)
    if place == len(steps):
        return scaling
    if not _takes(steps[place], None if front else X.names, X.n_columns):
        return None
    features = (
        None if back and steps[place].sparse_output else _spline_features(steps[place], dtype)
    )  # sparse: scalers may refuse
    after = None if features is None else _all_operations(back, None, features.width, dtype)
    return None if features is None or after is None else SplinedRows(scaling, features, after)


def come_in_pieces(steps: list[Any]) -> bool:
    """Say whether what steps make of numbers need not be in memory, as far as no table tells."""
    place = _place_of_splines(steps)
    if place is None or place == len(steps):
        return place is not None
    return _spline_features(steps[place], FLOATS[0]) is not None


def _place_of_splines(steps: list[Any]) -> int | None:
    """Return the place of the splines among steps of scikit-learn's own classes, behind all if there are none; None for other steps."""
    places = [place for place, step in enumerate(steps) if _is_own(step, *SPLINES)]
    if len(places) > 1 or not all(place in places or _is_scaler(step) for place, step in enumerate(steps)):
        return None
    return places[0] if places else len(steps)


def _all_operations(
    steps: list[Any], names: tuple[str, ...] | None, n_columns: int, dtype: np.dtype
) -> tuple[Operation, ...] | None:
    """Return what scalers, one after the other, do to rows with such columns."""
    operations: list[Operation] = []
    for place, step in enumerate(steps):
        if not (_takes(step, None if place else names, n_columns) and _agrees(step, dtype)):
            return None
        mine = _operations(step, dtype, n_columns)
        if mine is None:
            return None
        operations += mine
    return tuple(operations)


def _is_scaler(step: Any) -> bool:
    return type(step).__name__ in _OPERATIONS and _is_own(step, MODULE, type(step).__name__)


def _is_own(step: Any, module: str, name: str) -> bool:
    """Say whether a step is of scikit-learn's own class, without methods or a kind of output of its own."""
    kind = type(step)
    if kind.__name__ != name or getattr(sys.modules.get(module), name, None) is not kind:
        return False
    own = vars(step)
    return own.keys().isdisjoint(THROUGH) and not own.get("_sklearn_output_config")


def _gives_arrays() -> bool:
    from sklearn import get_config

    config = get_config()
    return config["transform_output"] == "default" and not config["array_api_dispatch"]


def _numbers(X: Table) -> np.ndarray | None:
    """Return rows as scikit-learn reads them itself, if it takes them as they are."""
    if not X.n_rows:
        return None
    if X.is_frame and not (X.has_one_dtype and X.dtypes[0] in FLOATS):
        return None
    array = np.asarray(X.native) if X.is_frame else X.native
    return array if type(array) is np.ndarray and array.dtype in FLOATS and array.flags.aligned else None


def _takes(step: Any, names: tuple[str, ...] | None, n_columns: int) -> bool:
    """Say whether scikit-learn would neither refuse nor warn of rows with such columns."""
    own = vars(step)
    fitted = own.get("feature_names_in_")
    if fitted is None or names is None:
        same = fitted is None and names is None
    else:
        same = tuple(fitted) == names and set(map(type, names)) == {str}
    return same and own.get("n_features_in_") == n_columns


# -- the arithmetic of each class ----------------------------------------------------------------------------------------


def _standard(step: Any, dtype: np.dtype) -> Iterator[Operation]:
    if step.with_mean:
        yield Operation(np.subtract, (step.mean_.astype(dtype, copy=False),))
    if step.with_std:
        yield Operation(np.divide, (step.scale_.astype(dtype, copy=False),))


def _min_max(step: Any, dtype: np.dtype) -> Iterator[Operation]:
    yield Operation(np.multiply, (step.scale_,))
    yield Operation(np.add, (step.min_,))
    if step.clip:
        low, high = step.feature_range
        yield _clip(low, high, dtype)


def _max_abs(step: Any, dtype: np.dtype) -> Iterator[Operation]:
    yield Operation(np.divide, (step.scale_,))
    if step.clip:
        yield _clip(-1.0, 1.0, dtype)


def _robust(step: Any, dtype: np.dtype) -> Iterator[Operation]:
    if step.with_centering:
        yield Operation(np.subtract, (step.center_,))
    if step.with_scaling:
        yield Operation(np.divide, (step.scale_,))


def _clip(low: float, high: float, dtype: np.dtype) -> Operation:
    if not {type(low), type(high)} <= {int, float}:
        raise TypeError("a bound for each column, or what is none")
    return Operation(np.clip, (np.asarray(low, dtype), np.asarray(high, dtype)), hides=True)


# of each class: its arithmetic, the options that choose it, and the fitted numbers
_OPERATIONS: dict[str, tuple[Callable[[Any, np.dtype], Iterator[Operation]], tuple[str, ...], tuple[str, ...]]] = {
    "StandardScaler": (_standard, ("with_mean", "with_std"), ("mean_", "scale_")),
    "MinMaxScaler": (_min_max, ("clip",), ("scale_", "min_")),
    "MaxAbsScaler": (_max_abs, ("clip",), ("scale_",)),
    "RobustScaler": (_robust, ("with_centering", "with_scaling"), ("center_", "scale_")),
}


def _operations(step: Any, dtype: np.dtype, n_columns: int) -> list[Operation] | None:
    """Return what a scaler does by its attributes as they are now; None where they are not what its ``fit`` leaves."""
    arithmetic, _, numbers = _OPERATIONS[type(step).__name__]
    own = vars(step)
    for name in numbers:
        value = own.get(name)
        if value is not None and not (type(value) is np.ndarray and value.dtype in FLOATS and value.shape == (n_columns,)):
            return None
    try:
        found = list(arithmetic(step, dtype))
    except (AttributeError, TypeError, ValueError):  # numbers that are None, or a range that is none
        return None
    for operation in found:
        if operation.operands[0] is None:
            return None
    return found


# -- the trial -----------------------------------------------------------------------------------------------------------

_tried: dict[Hashable, bool] = {}  # by class, its methods, its options and the dtype of rows


def _agrees(step: Any, dtype: np.dtype) -> bool:
    """Say whether the arithmetic has given the bits of a class's ``transform`` in this process, and that is still the same function."""
    kind: Any = type(step)
    own = vars(step)
    options = tuple([own.get(name) for name in _OPERATIONS[kind.__name__][1]])
    if not {bool}.issuperset(map(type, options)):
        return False
    key = kind, tuple([getattr(kind, name, None) for name in _methods(kind)]), options, dtype
    if key not in _tried:
        _tried[key] = all(map(is_sklearns_own, key[1])) and _gives_the_same(step, dtype)
    return _tried[key]


@functools.cache
def _methods(kind: type) -> tuple[str, ...]:
    """Return which methods there are in this release."""
    return tuple(name for name in THROUGH if hasattr(kind, name))


def _gives_the_same(step: Any, dtype: np.dtype) -> bool:
    """Compare on a copy of the step with numbers that no precision represents, in both layouts."""
    one = copy.copy(step)
    vars(one).pop("feature_names_in_", None)
    one.n_features_in_ = TRIED
    for place, name in enumerate(_OPERATIONS[type(step).__name__][2]):
        setattr(one, name, np.sqrt(np.arange(2.0, 2.0 + TRIED)) * np.float64(1.1) ** place)
    rows = np.concatenate([size * np.linspace(-1.0, 1.0, 3 * TRIED).reshape(3, -1) for size in TRIED_SIZES]).astype(dtype)
    try:
        return all(_is_same(one, layout(rows)) for layout in (np.ascontiguousarray, np.asfortranarray))
    except Exception:  # of whatever kind: the documented call will tell the user, if it is more than the trial's rows
        return False


def _is_same(step: Any, rows: np.ndarray) -> bool:
    operations = _operations(step, rows.dtype, TRIED)
    ours = None if operations is None else Scaling(rows, tuple(operations)).all()
    own = step.transform(rows.copy("K"))
    if ours is None or type(own) is not np.ndarray or own.dtype != ours.dtype or own.strides != ours.strides:
        return False
    return own.tobytes() == ours.tobytes()


# -- splines -------------------------------------------------------------------------------------------------------------

OPTIONS = ("degree", "extrapolation", "include_bias", "handle_missing", "sparse_output", "n_features_in_", "n_features_out_")
KEPT_SPLINES = 64  # fitted splines that are remembered
_known_splines: dict[Hashable, tuple[Features | None]] = {}  # by all that makes them; None where the arithmetic has other bits


def _spline_features(step: Any, dtype: np.dtype) -> Features | None:
    """Return the features of fitted splines, if on rows about their knots they have had the bits of ``transform`` in this process."""
    from exactshap.readers.additive import SplineFeatures

    try:
        about = _about_splines(step), dtype
        if (known := _known_splines.get(about)) is None:
            features = SplineFeatures.of(step)
            is_known = features is not None and all(map(is_sklearns_own, about[0][1])) and features.has_bits_of(step, dtype)
            if len(_known_splines) >= KEPT_SPLINES:
                _known_splines.clear()
            known = _known_splines[about] = (features if is_known else None,)
        return known[0]
    except Exception:  # of whatever kind: attributes that no fit leaves, which the documented call will tell of
        return None


def _about_splines(step: Any) -> tuple[Any, ...]:
    kind: Any = type(step)
    own = vars(step)
    bases = []
    for one in own["bsplines_"]:
        arrays = one.t.dtype, one.t.tobytes(), one.c.dtype, one.c.tobytes()
        bases.append((type(one), type(one).__call__, one.k, one.axis, one.extrapolate, *arrays))
    methods = tuple([getattr(kind, name) for name in _methods(kind)])
    return kind, methods, tuple([own.get(name) for name in OPTIONS]), tuple(bases)
