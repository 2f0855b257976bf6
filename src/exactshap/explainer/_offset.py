"""Add offsets of rows to baselines and to the model's own predictions."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, InputTypeError, UnknownNameError, UnsupportedStructureError, did_you_mean
from exactshap.explainer._certify import Certified, largest_of_rows
from exactshap.frames import Table, as_table, warn_of_other_order
from exactshap.readers import Offset, Reader
from exactshap.solvers import Solution

ROUNDINGS = 4.0  # of an offset, and of its sum with a prediction, by the model and by us


def without_offset(background: TableLike, offset: Any) -> Any:
    """Return the background without the column of offsets."""
    names = getattr(background, "columns", ())
    if not isinstance(offset, str) or offset not in list(names):
        return background
    table = as_table(background, what="background")
    return table.select([j for j, name in enumerate(table.names or ()) if name != offset]).native


def split_offset(X: TableLike, offset: Any, feature_names: tuple[str, ...]) -> tuple[Any, np.ndarray | None]:
    """Return the rows without the column that holds their offsets, and the offsets."""
    if offset is None:
        return X, None
    what = "`offset` must hold a finite number for each row"
    if isinstance(offset, str):
        X, offset = _without_column(X, offset, feature_names)
    if hasattr(offset, "index"):
        warn_of_other_order(as_table(X, allow_empty=True), offset, "offset")
    # NumPy counts dates in units of their resolution.
    if np.asarray(offset).dtype.kind in "mM":
        raise InputTypeError(what, "Got dates or times")
    try:
        values = np.asarray(offset, float)
    except (TypeError, ValueError) as error:
        raise InputTypeError(what, f"Got {type(offset).__name__}: {error}") from error
    # A frame of one column is (n, 1), and means one number for each row.
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim not in (1, 2):
        raise InputError(what, f"Got shape {values.shape}")
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        # log(0) of an exposure is the usual way to minus infinity.
        do = "Leave out rows without exposure" if np.isneginf(values[row]).any() else ""
        raise InputError(what, f"Got {values[row]} at row {row}", do, row=row)
    return X, values


def _without_column(X: TableLike, name: str, feature_names: tuple[str, ...]) -> tuple[Any, np.ndarray]:
    table = as_table(X, allow_empty=True)
    names = table.names or ()
    if name not in names:
        raise UnknownNameError(f"X has no column {name!r} of offsets", do=did_you_mean(name, names))
    # Removed from the rows, the model would miss a column; kept, it would count twice.
    if name in feature_names:
        do = "Pass the offsets as an array, or fit the model without that column"
        raise InputError(f"Column {name!r} is a feature of the model", "Got it as offset= too", do)
    j = names.index(name)
    rest = table.select([k for k in range(table.n_columns) if k != j])
    return rest.native, table.select([j]).numeric(what="offset")[:, 0]


def add_offsets(
    reader: Reader, table: Table, solution: Solution, certified: Certified, offsets: np.ndarray
) -> tuple[Solution, Certified]:
    """Return both with the offsets in baseline and prediction. The residual holds what the model's own call with them says."""
    moved, shift = certified_with(reader, table, solution, certified, offsets)
    method = f"{solution.method}; the offsets of the rows are in the baseline"
    return replace(solution, part=replace(solution.part.shifted(shift), method=method)), moved


def certified_with(
    reader: Reader, table: Table, solution: Solution, certified: Certified, offsets: np.ndarray
) -> tuple[Certified, np.ndarray]:
    """Return the residual with offsets, and how far they move a prediction."""
    check_offsets(reader, table.n_rows, offsets)
    if not table.n_rows:  # models refuse to predict no row
        return certified, np.zeros(certified.prediction.shape)
    with np.errstate(all="ignore"):
        prediction, shift = with_offset(reader, table, offsets)
    # What the reading missed before, and by how much the model's call with offsets moved otherwise than by the shift.
    residual = certified.residual + (prediction - certified.prediction - shift)
    size = largest_of_rows(offsets) + largest_of_rows(shift)
    tolerance = certified.tolerance + ROUNDINGS * reader.traits.rounding.precision * (size + np.abs(solution.scale))
    return certified._replace(prediction=prediction, residual=residual, tolerance=tolerance), shift


def check_offsets(reader: Reader, n_rows: int, offsets: np.ndarray) -> None:
    """Refuse offsets that are not one for each row, and units without offsets."""
    if len(offsets) != n_rows:
        raise InputError("`offset` must hold one number for each row", f"Got {len(offsets)} for {n_rows} rows")
    require_score(reader)


def require_score(reader: Reader) -> Offset:
    """Return how a model uses offsets, or refuse units without offsets."""
    if reader.traits.offset is None or reader.traits.unit.startswith("probability"):
        what = f"An offset is added to a score, and {reader.traits.model_name} is explained as {reader.traits.unit}"
        do = "Explain a function that adds the offset, as a column of its rows, before it turns scores into probabilities"
        if reader.traits.offset is None:
            do = "Explain the score with output='auto', or make the offset a column of a function's rows"
        raise UnsupportedStructureError(what, do=do)
    return reader.traits.offset


def with_offset(reader: Reader, X: Table, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions with an offset for each row, and their shift.

    The shift is by how much they exceed predictions without.
    """
    how = require_score(reader)
    every = (
        offset
        if offset.ndim == 2 or reader.traits.single_output
        else np.repeat(offset[:, None], reader.traits.n_outputs, axis=1)
    )
    wanted = (X.n_rows,) if reader.traits.single_output else (X.n_rows, reader.traits.n_outputs)
    if every.shape != wanted:
        raise InputError(f"`offset` must have shape {wanted}", f"Got {offset.shape}", "Pass one number for each row")
    # The call takes margins of all classes, of which only some are explained.
    if np.size(how.replaces) not in (1, reader.traits.n_outputs):
        do = "Explain all outputs with output='all'; explanation.output(name) picks one"
        raise UnsupportedStructureError("An offset is given to all outputs of the model at once", do=do)
    # XGBoost leaves its base_score out where a margin is given: the prediction moves by the difference of both.
    shift = every - (np.ravel(how.replaces)[0] if reader.traits.single_output else how.replaces)
    if how.keyword is None or reader.traits.own_call is None:
        return np.asarray(reader.predict(X), float) + shift, shift
    # A copy with another call: readers are shared by threads and never change.
    offset_reader = copy.copy(reader)
    call = replace(reader.traits.own_call, settings={**reader.traits.own_call.settings, how.keyword: every})
    offset_reader.traits = replace(reader.traits, own_call=call)
    return np.asarray(offset_reader.predict(X), float), shift
