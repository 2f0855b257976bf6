"""Compare a table's columns with those of the fit, or another table's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap.errors import ExplanationWarning, InputError, InputTypeError, UnknownNameError, message, warn
from exactshap.frames._table import UNNAMED, Table, narwhals

_NAMES_SHOWN = 12


def check_columns(
    table: Table, names: Sequence[str] | None, n_features: int, *, owner: str, what: str = "X", align: bool = False
) -> Table:
    """Check a table's columns against the names of the fit, with scikit-learn's messages.

    ``owner`` is the model's name and ``what`` the table's; ``align`` reorders the columns of a frame by name instead of refusing another order.

    >>> from exactshap.frames import as_table
    >>> check_columns(as_table([[1.0, 2.0]]), None, 2, owner="SVR").n_columns
    2
    """
    if table.names is not None and names is not None:
        wanted, got = list(names), list(table.names)
        if wanted == got:
            return table
        # Wrappers of LightGBM hand on its names; CatBoost and EBMs write tuples of a MultiIndex as Python does. Where another model
        # does not know the names as they are, it refuses itself.
        spellings = (got, [str(label) for label in getattr(table.native, "columns", ())], [underscored(name) for name in got])
        spelled = next((names for names in spellings if sorted(names) == sorted(wanted)), spellings[-1])
        if wanted != spelled:
            if align and sorted(wanted) == sorted(spelled):
                return table.select([spelled.index(name) for name in wanted])
            raise UnknownNameError(_name_message(wanted, got, spelled, what))
        return table
    if table.n_columns != n_features:
        raise InputError(f"{what} has {table.n_columns} features, but {owner} is expecting {n_features} features as input")
    return table


def warn_of_other_order(table: Table, column: Any, what: str, rows: str = "X") -> None:
    """Warn of a Series with the rows' labels in another order: cells go by position. ``rows`` is the table's name.

    >>> import pandas as pd
    >>> from exactshap.frames import as_table
    >>> rows = pd.DataFrame({"a": [1.0, 2.0]})
    >>> warn_of_other_order(as_table(rows), rows["a"], "y")  # says nothing
    """
    other: Any = getattr(column, "index", None)
    if not table.dtypes or type(other).__module__.partition(".")[0] != "pandas":
        return
    index = table.native.index
    if len(index) == len(other) and not index.equals(other) and index.isin(other).all() and other.isin(index).all():
        got = f"Got {list(other[:3])} for rows {list(index[:3])}"
        do = f"Pass {what}.loc[{rows}.index], or {what}.to_numpy() if the positions are meant"
        warn(
            message(f"`{what}` has the labels of the rows in another order, and goes to them by position", got, do),
            ExplanationWarning,
        )


def underscored(name: str) -> str:
    """Return a name as LightGBM keeps it: with underscores for white space.

    >>> underscored("mean radius")
    'mean_radius'
    """
    return re.sub(r"\s", "_", name)


def with_dtypes_of(reference: Table, table: Table, *, narrow: bool = False) -> Table:
    """Return rows in the dtypes of the reference rows, where no cell changes.

    Hybrids of the two then have these dtypes: categories stay categories, and float32 stays float32. Numbers that would change keep theirs,
    and so do those for which the dtype is too ``narrow`` to compute with, unless that is wanted.

    >>> from exactshap.frames import as_table
    >>> reference = as_table(np.ones((2, 2), np.float32))
    >>> with_dtypes_of(reference, as_table([[0.5, 2.0]])).native.dtype, with_dtypes_of(reference, as_table([[0.1, 2.0]])).native.dtype
    (dtype('float32'), dtype('float64'))
    """
    if table.is_sparse or reference.is_sparse or table.is_frame != reference.is_frame:
        return table
    if not table.is_frame:
        cells = _cast(table.native, reference.native.dtype, narrow)
        return table if cells is None else Table(cells, None, *cells.shape)
    if table.dtypes and reference.dtypes:
        return table if all(map(_same_dtype, table.dtypes, reference.dtypes)) else _pandas_like(reference, table, narrow)
    return _frame_like(reference, table, narrow)


def with_column_of(reference: Table, table: Table) -> Table:
    """Return a list or Series of texts with the container and the name of the reference's column.

    A Series with another name is not changed, and refused later.

    >>> from exactshap.frames import as_table
    >>> import pandas as pd
    >>> with_column_of(as_table(pd.Series(["good", "bad"], name="review")), as_table(["so so"])).names
    ('review',)
    """
    one_column = table.n_columns == reference.n_columns == 1
    if (
        not one_column
        or table.names == reference.names
        or not (table.was_column or reference.was_column)
        or table.is_sparse
        or reference.is_sparse
    ):
        return table
    names = {other.names for other in (table, reference)} - {None, (UNNAMED,)}
    if len(names) > 1:
        return table
    cells = np.asarray(table.column(0), object)
    if reference.names is None:
        return Table(cells.reshape(-1, 1), None, table.n_rows, 1, was_column=True)
    if not hasattr(reference.native, "columns"):
        return table
    native = type(reference.native)({reference.native.columns[0]: cells})
    if table.dtypes and reference.dtypes:
        native.index = table.native.index
    return Table(native, reference.names, table.n_rows, 1, was_column=True)


def _cast(cells: np.ndarray, dtype: np.dtype, narrow: bool) -> np.ndarray | None:
    """Return numbers in another dtype; None if they have it already or one would change."""
    if cells.dtype == dtype or cells.dtype.kind not in "fiub" or dtype.kind not in "fiu":
        return None
    if not narrow and _may_wrap(cells.dtype, dtype):
        return None
    with np.errstate(all="ignore"):
        cast = cells.astype(dtype)
    return cast if np.array_equal(cast, cells, equal_nan=True) else None


def _pandas_like(reference: Table, table: Table, narrow: bool) -> Table:
    native = table.native.copy(deep=False)
    for j, dtype in enumerate(reference.dtypes):
        column = native.iloc[:, j]
        if _same_dtype(column.dtype, dtype):
            continue
        if column.dtype == object:  # of a row that is turned back into a frame: its cells have the dtype
            column = column.infer_objects()
            native.isetitem(j, column.array)
        if not narrow and _may_wrap(column.dtype, dtype):
            continue
        _require_one_zone(table.label(j), column.dtype, dtype)
        try:
            # pandas warns of cells in no category, and will refuse them without naming them
            own = column.astype("category").cat if type(dtype).__name__ == "CategoricalDtype" else None
            cast = column.astype(dtype) if own is None else own.set_categories(dtype.categories, ordered=dtype.ordered)
        except (ValueError, TypeError, OverflowError):
            cast = None
        changed = None if cast is None else _changed(column, cast)
        if changed is not None and not changed.any():
            native.isetitem(j, cast.array)  # type: ignore[union-attr]
        elif type(dtype).__name__ == "CategoricalDtype":
            new = sorted({str(cell) for cell in (column if changed is None else column[changed])})
            do = f"Add them there: background[{table.native.columns[j]!r}].cat.add_categories({new})"
            raise InputError(f"{table.label(j)} of X has categories that the background does not know", f"Got {new}", do)
    return Table(native, table.names, table.n_rows, table.n_columns)


def _may_wrap(own: Any, wanted: Any) -> bool:
    """Say whether integers are fewer in the wanted dtype, where a function's arithmetic may wrap around.

    >>> _may_wrap(np.dtype(int), np.dtype("i1")), _may_wrap(np.dtype("i1"), np.dtype(int)), _may_wrap(np.dtype(float), np.dtype(int))
    (True, False, False)
    """
    try:
        here, there = (np.dtype(getattr(dtype, "numpy_dtype", str(dtype).lower())) for dtype in (own, wanted))
    except TypeError:  # of no numbers
        return False
    return bool(there.kind in "iub" and there != np.int64 and not np.can_cast(here, there, "safe"))


def _require_one_zone(label: str, *dtypes: Any) -> None:
    """Refuse dates and times of two zones: in the other's zone an hour or a day would be another for the same function.

    >>> _require_one_zone("column 'at'", np.dtype("M8[ns]"), np.dtype("M8[s]"))
    """
    # pandas' own, those of Arrow in pandas, and narwhals'
    inner = [getattr(dtype, "pyarrow_dtype", dtype) for dtype in dtypes]
    zones = {str(getattr(dtype, "tz", getattr(dtype, "time_zone", None))) for dtype in inner}
    if len(zones) > 1 and all(str(dtype).lower().startswith(("date", "timestamp")) for dtype in dtypes):
        got = f"Got {dtypes[0]} and {dtypes[1]}"
        raise InputTypeError(f"{label} of X and of the background have different time zones", got, "Convert one to the other's")


def _same_dtype(one: Any, other: Any) -> bool:
    """Say whether two dtypes are equal, codes of categories included: pandas ignores their order."""
    return bool(one == other and (getattr(one, "categories", None) is None or one.categories.equals(other.categories)))


def _changed(column: Any, cast: Any) -> np.ndarray:
    before, after = column.astype(object).to_numpy(), cast.astype(object).to_numpy()
    gone, missing = column.isna().to_numpy(), cast.isna().to_numpy()
    differs = [bool(one != other) for one, other in zip(before[~gone & ~missing], after[~gone & ~missing], strict=True)]
    changed = gone != missing
    changed[~gone & ~missing] = differs
    return np.asarray(changed)


def _frame_like(reference: Table, table: Table, narrow: bool) -> Table:
    """Return frames of libraries that stack only equal dtypes in the reference's dtypes."""
    here, there = table.readable(), reference.readable()
    if here.implementation is not there.implementation:
        return table
    columns = []
    for j, name in enumerate(table.names or ()):
        mine, dtype = here[name], there[name].dtype
        # Types of Arrow are finer than narwhals': text and large text, codes of 8 and of 32 bits
        own, wanted = (getattr(series.to_native(), "type", None) for series in (mine, there[name]))
        if mine.dtype != dtype or own != wanted:
            _require_one_zone(table.label(j), mine.dtype, dtype)
            try:
                arrow = None if wanted is None else mine.to_native().cast(wanted)
                cast = mine.cast(dtype) if arrow is None else narwhals().from_native(arrow, series_only=True).alias(name)
                back = mine.dtype == dtype or bool((cast.cast(mine.dtype) == mine).all())
                same = back and cast.null_count() == mine.null_count() and (narrow or not _may_wrap(mine.dtype, dtype))
            except Exception:  # each library has its own errors for invalid numbers or categories
                same = False
            if not same:
                what, got = f"{table.label(j)} of X and of the background do not mix", f"Got {mine.dtype} and {dtype}"
                raise InputTypeError(what, got, "Cast one of them to the other's dtype")
            columns.append(cast)
    return Table(here.with_columns(*columns).to_native(), table.names, table.n_rows, table.n_columns) if columns else table


def _name_message(wanted: list[str], got: list[str], spelled: list[str], what: str) -> str:
    known, own = set(wanted), dict(zip((*spelled, *got), (*got, *got), strict=True))
    missing = [name for name in wanted if name not in own]
    extra = [name for name, other in zip(got, spelled, strict=True) if not {name, other} & known]
    wanted = [own.get(name, name) for name in wanted]
    text = f"The feature names of `{what}` should match those that were passed during fit."
    if not missing and not extra:
        comma = "," if len(wanted) > _NAMES_SHOWN else ""
        return (
            f"{text} Feature names must be in the same order as they were in fit. Got {_listed(got)}."
            f" Pass {_selection(wanted, what)}{comma} or align=True."
        )
    do = f"Pass {_selection(wanted, what)}" if not missing else "Pass exactly the columns that the model was fitted with"
    return f"{text} Missing: {_listed(missing)}; unexpected: {_listed(extra)}. {do}."


def _listed(names: list[str]) -> str:
    """Return names as text, shortened if there are many.

    >>> _listed(["a", "b"]), _listed(["a"] * 13)[-16:]
    ("['a', 'b']", "'a', ... 1 more]")
    """
    more = len(names) - _NAMES_SHOWN
    return f"{names}" if more <= 0 else f"{names[:_NAMES_SHOWN]}"[:-1] + f", ... {more} more]"


def _selection(wanted: list[str], what: str) -> str:
    """Return code that selects the wanted columns, names written out if few."""
    return f"{what}[{wanted}]" if len(wanted) <= _NAMES_SHOWN else f"{what}[names], with the names in the order of the fit"
