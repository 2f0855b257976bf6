"""Check that arrays of explanations fit together, and make them read-only."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, message

# Arrays that not every explanation has
OPTIONAL = (
    "std_error",
    "set_values",
    "set_std_error",
    "set_std",
    "covariances",
    "covariance_residual",
    "approximation_error",
)
# Kinds of arrays: NumPy also makes numbers of texts and times, and of complex numbers with a warning.
_NUMBERS = "biufO"


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an Explanation's fields as consistent read-only float arrays and tuples, or raise."""
    _check_facts(given)
    values = _array("values", given["values"])
    if values.ndim not in (2, 3):
        raise InputError("`values` must have shape (n_rows, n_players[, n_outputs])", f"Got {values.shape}")
    n_rows, n_players, *outputs = values.shape
    result = _checked_arrays(given, n_rows, n_players, tuple(outputs)) | {"values": values}
    result["feature_names"] = _names("feature_names", given["feature_names"], n_players, "values", values.shape)
    result["output_names"] = _output_names(given["output_names"], tuple(outputs), values.shape)
    result["sets"] = _sets(given, n_players)
    result["tolerance"] = _per_row("tolerance", given["tolerance"], n_rows)
    bound = _array("error_bound", given["error_bound"])
    result["error_bound"] = _per_row("error_bound", bound, n_rows) if bound.ndim else float(bound)
    result["mask_rows"] = tuple(map(int, given["mask_rows"]))
    result |= {name: float(given[name]) for name in ("mask_difference", "mask_tolerance") if given[name] is not None}
    result["groups"] = _groups(given["groups"], result["feature_names"])
    set_values = result.get("set_values")
    if set_values is not None and not np.array_equal(set_values[:, :n_players], values, equal_nan=True):
        raise InputError("`values` must be the order-1 part of `set_values`", "They differ")
    _check_data(given["data"], n_rows, n_players if given["groups"] is None else None)
    return result


def _check_facts(given: Mapping[str, Any]) -> None:
    """Check the types of fields that only texts use. No repr or report may fail later."""
    for name in ("index", "value_function", "unit", "method", "model_name", "mask_reason"):
        if not isinstance(given[name], str):
            raise InputTypeError(f"`{name}` must be a str", f"Got {given[name]!r}")
    if not _is_count(given["order"]) or given["order"] < 1:
        raise InputError("`order` must be an int >= 1", f"Got {given['order']!r}")
    for name in ("n_evaluations", "background_size", "n_masks"):
        value = given[name]
        if not _is_count(value) and not (value is None and name == "background_size"):
            raise InputTypeError(f"`{name}` must be an int >= 0", f"Got {value!r}")
    for name, limit in (("seconds", 2.0**63), ("mask_difference", np.inf), ("mask_tolerance", np.inf)):
        value = given[name]
        is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if value is not None and not (is_real and 0 <= float(value) <= limit):
            raise InputTypeError(f"`{name}` must be a number >= 0 or None", f"Got {value!r}")
    digest, rows = given["background_hash"], given["mask_rows"]
    if given["error_bound"] is None:
        raise InputTypeError("`error_bound` must be a number or an array", "Got None", "Pass 0.0 where there is none")
    if digest is not None and not isinstance(digest, str):
        raise InputTypeError("`background_hash` must be a str or None", f"Got {digest!r}")
    if not isinstance(rows, (tuple, list)) or not all(_is_count(row) for row in rows):
        raise InputTypeError("`mask_rows` must be numbers of rows", f"Got {rows!r:.60}")


def _is_count(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < 2**63


def _checked_arrays(given: Mapping[str, Any], n_rows: int, n_players: int, outputs: tuple[int, ...]) -> dict[str, Any]:
    n_sets = None if given["sets"] is None else len(given["sets"])
    wanted: dict[str, tuple[int | None, ...]] = {
        "baseline": (n_rows, *outputs),
        "prediction": (n_rows, *outputs),
        "residual": (n_rows, *outputs),
        "std_error": (n_rows, n_players, *outputs),
        "set_values": (n_rows, n_sets, *outputs),
        "set_std_error": (n_rows, n_sets, *outputs),
        "set_std": (n_rows, n_sets, *outputs),
        "covariances": (n_rows, n_players, n_players, *outputs),
        "covariance_residual": (n_rows, *outputs),
        "approximation_error": (n_rows,),
    }
    shapes = {name: shape for name, shape in wanted.items() if name not in OPTIONAL or given[name] is not None}
    values_shape = (n_rows, n_players, *outputs)
    arrays = {name: _array(name, given[name]) for name in shapes}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            got = f"`{name}` has shape {arrays[name].shape}, `values` has shape {values_shape}"
            raise InputError(f"`{name}` does not fit `values`", got, f"`{name}` must have shape {shape}")
    return arrays


def _array(name: str, array: Any) -> np.ndarray:
    kind = getattr(getattr(array, "dtype", None), "kind", "f")
    if kind not in _NUMBERS:
        raise InputTypeError(f"`{name}` must be an array of real numbers", f"Got dtype {array.dtype}")
    try:
        result = np.asarray(array, dtype=np.float64).view()
    except (TypeError, ValueError, OverflowError) as error:
        raise InputTypeError(f"`{name}` must be an array of numbers", f"{error}") from None
    result.flags.writeable = False
    return result


def _per_row(name: str, value: object, n_rows: int) -> np.ndarray:
    array = _array(name, value)
    if array.ndim == 0:
        array = _array(name, np.full(n_rows, float(array)))
    if array.shape != (n_rows,):
        raise InputError(f"`{name}` must have shape ({n_rows},), one per row of `values`", f"Got {array.shape}")
    return array


def _names(name: str, names: Sequence[str], wanted: int, other: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    if isinstance(names, (str, Mapping)):
        raise InputTypeError(f"`{name}` must be a sequence of strings", f"Got {names!r}")
    result = tuple(names)
    for item in result:
        if not isinstance(item, str):
            raise InputTypeError(f"`{name}` must be strings", f"Got {type(item).__name__} {item!r}")
    if len(result) != wanted:
        raise InputError(f"`{name}` does not fit `{other}`", f"There are {len(result)} names, `{other}` has shape {shape}")
    if len(set(result)) != len(result):
        twice = next(item for item in result if result.count(item) > 1)
        raise InputError(f"`{name}` must be unique", f"{twice!r} occurs {result.count(twice)} times")
    return result


def _output_names(names: Sequence[str] | None, outputs: tuple[int, ...], shape: tuple[int, ...]) -> tuple[str, ...] | None:
    if not outputs:
        if names is None:
            return None
        raise InputError("`output_names` is for several outputs", f"Got {list(names)}; `values` has shape {shape}", "Pass None")
    if names is None:
        raise InputError("`values` has several outputs and `output_names` is None", f"`values` has shape {shape}")
    return _names("output_names", names, outputs[0], "values", shape)


def _sets(given: Mapping[str, Any], n_players: int) -> tuple[tuple[int, ...], ...]:
    singles = tuple((j,) for j in range(n_players))
    if given["sets"] is None:
        if given["order"] != 1 or given["set_values"] is not None:
            raise InputError("`sets` is needed with order > 1", f"Got order={given['order']} and sets=None")
        return singles
    sets = tuple(given["sets"])
    if sets[:n_players] != singles:
        raise InputError("`sets` must begin with all single players, in order", f"Got {sets[: n_players + 1]}")
    if not all(_is_count(j) and j < n_players for players in sets[n_players:] for j in players):
        raise InputError("`sets` has a player that is not there", f"There are {n_players} players, numbered from 0")
    if given["order"] > 1 and given["set_values"] is None:
        raise InputError("`set_values` is needed with order > 1", f"Got order={given['order']} and set_values=None")
    largest = max((len(players) for players in sets), default=1)
    if largest > given["order"]:
        raise InputError("`sets` has sets above the order", f"Got order={given['order']}, a set of {largest}")
    return singles + sets[n_players:]


def _groups(groups: Any, names: tuple[str, ...]) -> dict[str, tuple[Any, ...]] | None:
    if groups is None:
        return None
    if not isinstance(groups, Mapping):
        raise InputTypeError("`groups` must map player names to columns", f"Got {type(groups).__name__}")
    unknown = [name for name in groups if name not in names]
    if unknown:
        raise InputError("`groups` names a player that is not in `feature_names`", f"Got {unknown[0]!r}")
    for name, columns in groups.items():
        if isinstance(columns, (str, Mapping)) or not all(_is_count(j) or isinstance(j, str) for j in columns):
            raise InputTypeError(f"Group {name!r} must be a sequence of column numbers or names", f"Got {columns!r}")
    return {name: tuple(columns) for name, columns in groups.items()}


def _check_data(data: TableLike, n_rows: int, n_columns: int | None) -> None:
    if data is None:
        return
    shape = tuple(getattr(data, "shape", None) or (len(data),))
    if shape[0] != n_rows or (n_columns is not None and len(shape) == 2 and shape[1] != n_columns):
        players = "" if n_columns is None else f" and {n_columns} players"
        raise InputError("`data` does not fit `values`", f"`data` has shape {shape}, `values` has {n_rows} rows{players}")


def row_numbers(rows: Any, n_rows: int) -> np.ndarray:
    """Return the non-negative row numbers of an int, slice, mask or array."""
    if isinstance(rows, slice):
        return np.arange(n_rows)[rows]
    chosen = np.asarray(rows)
    if chosen.dtype == bool:
        if chosen.shape != (n_rows,):
            raise InputError("A row mask must have one entry per row", f"It has shape {chosen.shape}; there are {n_rows}")
        return np.flatnonzero(chosen)
    if chosen.size == 0:
        return np.empty(0, np.int64)
    if chosen.dtype.kind not in "iu" or chosen.ndim > 1:
        do = (
            "Take an output with .output(name), a feature with explanation[:, name], a labelled row with X.index.get_loc(label)"
        )
        raise InputTypeError("Rows are selected by an int, a slice, a boolean mask or an array of ints", f"Got {rows!r}", do)
    chosen = np.atleast_1d(chosen).astype(np.int64)
    outside = chosen[(chosen < -n_rows) | (chosen >= n_rows)]
    if outside.size:
        raise IndexError(message(f"Row {outside[0]} is out of range", f"There are {n_rows} rows"))
    return chosen % max(n_rows, 1)


def player_numbers(players: Any, names: tuple[str, ...]) -> list[int]:
    if isinstance(players, slice):
        return list(range(len(names)))[players]
    wanted = list(players)
    if wanted and all(isinstance(item, (bool, np.bool_)) for item in wanted):
        if len(wanted) != len(names):
            raise InputError("A mask of players must have one entry per player", f"Got {len(wanted)} for {len(names)}")
        return [j for j, chosen in enumerate(wanted) if chosen]
    return [place_of(item, names, "player") for item in wanted]


def place_of(item: Any, names: Sequence[str], noun: str, do: str = "Pass a name or a number") -> int:
    """Return which of ``names`` is meant by a name or a number.

    ``noun`` says in messages what they are the names of, and ``do`` what else to pass.

    >>> place_of("bmi", ("age", "bmi"), "feature"), place_of(-1, ("age", "bmi"), "feature")
    (1, 1)
    """
    if isinstance(item, str):
        if item not in names:
            raise UnknownNameError(f"Unknown {noun} {item!r}", do=did_you_mean(item, names))
        return list(names).index(item)
    if isinstance(item, bool) or not isinstance(item, (int, np.integer)):
        got = f"Got {type(item).__name__}"
        raise InputTypeError(f"One {noun} is named or numbered", got, do)
    if not -len(names) <= item < len(names):
        raise InputError(f"There is no {noun} {item!r}", f"There are {len(names)}: {list(names)}")
    return int(item) % len(names)
