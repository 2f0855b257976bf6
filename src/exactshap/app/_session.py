"""Explain one row with changed cells, against a filtered background."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy as np

from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputError, UnknownNameError, did_you_mean
from exactshap.frames import Table, as_table, is_missing
from exactshap.results.data import filtered_rows, in_microseconds
from exactshap.results.explanation import Explanation

# Explainers that are kept, of other backgrounds and baseline rows.
_KEPT = 8
# Most steps of a slider.
_MOVES = 200
# Largest end of a slider, of which rounding outwards makes no infinity.
_LARGEST = 1e308


class WhatIf:
    """Explain changed rows of one model, for :func:`run_app`.

    Parameters
    ----------
    model : object
        As of :class:`exactshap.Explainer`.
    data : DataFrame or array of shape (n_rows, n_features)
        Rows to choose from; their columns give the ranges of the sliders.
    background : DataFrame or array, default=None
        Reference rows; a filter keeps some of them. None uses the family's own value function.
    **settings
        Of :class:`exactshap.Explainer`.

    Raises
    ------
    ExactshapError
        What :class:`exactshap.Explainer` raises.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVR
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> what_if = WhatIf(SVR().fit(X, X[:, 0]), X, X[:10])
    >>> explanation = what_if.explain(3, {"x0": 0.5}, "x1 > 0")
    >>> explanation.certificate().passed, explanation.background_size == (X[:10, 1] > 0).sum()
    (True, np.True_)
    """

    def __init__(self, model: Model, data: TableLike, background: TableLike = None, **settings: Any) -> None:
        self.model, self.settings = model, settings
        self.data = as_table(data, what="data")
        self.background = None if background is None else as_table(background, what="background")
        self._explainers = BoundedCache()
        self.names = self.data.names or tuple(self.explainer().reader.traits.feature_names)
        self.explainer()

    def explainer(self, where: str = "", baseline_row: int | None = None) -> Any:
        """Return the explainer for a background filter or one baseline row."""
        from exactshap.explainer import Explainer

        where = where.strip()

        def make() -> Explainer:
            if baseline_row is None:
                return Explainer(self.model, self._filtered(where), **self.settings)
            settings = {**self.settings, "value_function": "baseline"}
            return Explainer(self.model, self.data.take([baseline_row]).native, **settings)

        return self._explainers.get_or_make(("explainer", where, baseline_row), make, keep=_KEPT)

    def _filtered(self, where: str) -> Any:
        if self.background is None or not where:
            if where:
                raise InputError("A filter chooses background rows", "There is no background", "Pass --background FILE")
            return None if self.background is None else self.background.native
        keep = np.flatnonzero(filtered_rows(self.background, self.names, where))
        if not keep.size:
            raise InputError(f"No background row has {where}", do="Widen the filter")
        return self.background.take(keep).native

    def row(self, i: int, changes: dict[str, Any] | None = None) -> Any:
        """Return row ``i`` as a one-row table with some cells changed. Columns keep their types."""
        row = self.data.take([i])
        if not changes:
            return row.native
        unknown = next((name for name in changes if name not in self.names), None)
        if unknown is not None:
            raise UnknownNameError(f"There is no column {unknown!r}", do=did_you_mean(unknown, self.names))
        if not row.is_frame:
            # Whole numbers would truncate others; those of the background become whole again
            native = row.native.astype(float) if row.native.dtype.kind in "iub" else np.array(row.native)
            for name, value in changes.items():
                try:
                    native[0, self.names.index(name)] = np.nan if is_missing(value) else value
                except (ValueError, TypeError) as error:
                    raise _unfit(name, value, native.dtype, f": {error}") from error
            return native
        return _changed(row, changes)

    def explain(
        self, i: int, changes: dict[str, Any] | None = None, where: str = "", baseline_row: int | None = None
    ) -> Explanation:
        """Return the explanation of row ``i`` with changed cells.

        Parameters
        ----------
        i : int
        changes : dict of column to cell, optional
        where : str, default=""
            Background rows to keep, such as ``age > 40 and sex = F``, in the language of the pages' filters; "" keeps all.
        baseline_row : int, optional
            A row of the data to compare with, instead of the background.

        Returns
        -------
        explanation : Explanation
            Of one row.

        Raises
        ------
        InputError
            If the filter cannot be read or keeps no row, or a column cannot hold its cell.
        """
        return self.explainer(where, baseline_row)(self.row(i, changes))

    @functools.cached_property
    def controls(self) -> list[dict[str, Any]]:
        """Return the range of each column.

        ``low``, ``high`` and ``step`` of numbers, ``choices`` of text and categories, None among them where a cell is missing.
        """
        return [_control(self.data, j, name) for j, name in enumerate(self.names)]

    def cells(self, i: int) -> list[Any]:
        """Return the cells of row ``i`` as plain values, None where missing."""
        row = self.data.take([i])
        return [_plain(in_microseconds(row.column(j))[0]) for j in range(len(self.names))]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if is_missing(value) else value


def _changed(row: Table, changes: dict[str, Any]) -> Any:
    import narwhals.stable.v2 as nw

    frame = nw.from_native(row.native, eager_only=True)
    cells = []
    for name, value in changes.items():
        # Shifted by its one row a column is missing, in its own dtype, whether pandas or narwhals has a word for that
        cells.append(nw.col(name).shift(1) if is_missing(value) else _cell(frame[name], value))
    return frame.with_columns(*cells).to_native()


def _cell(column: TableLike, value: Any) -> Any:
    """Return a column of one cell, in the dtype of ``column``. Refuse what that does not hold."""
    import narwhals.stable.v2 as nw

    dtype, new = column.dtype, nw.new_series(column.name, [value], backend=column.implementation)
    # Others would be missing; polars' own Categorical has no fixed ones
    has_fixed = isinstance(dtype, nw.Enum) or (isinstance(dtype, nw.Categorical) and column.implementation.is_pandas())
    if has_fixed and value not in (known := column.cat.get_categories().to_list()):
        raise _unfit(column.name, value, dtype, f": {known}")
    if dtype == nw.Boolean and isinstance(value, str):  # any text would be true
        raise _unfit(column.name, value, dtype)
    is_whole = dtype.is_integer() or dtype == nw.Boolean
    try:
        if dtype in (nw.Object, nw.Unknown):
            return new
        if isinstance(new.dtype, nw.Datetime) and isinstance(dtype, nw.Datetime) and dtype.time_zone:
            new = new.dt.replace_time_zone(dtype.time_zone)
        return new.cast(nw.Float64 if is_whole and not _holds(dtype, new, value) else dtype)
    except Exception as error:  # each library has its own errors for cells that are no numbers, dates or categories
        raise _unfit(column.name, value, dtype, f": {error}") from error


def _holds(dtype: Any, series: Any, value: Any) -> bool:
    """Say whether a type has the value: casts truncate numbers, and go round at the largest."""
    try:
        return bool(series.cast(dtype)[0] == value)
    except Exception:  # each library has its own errors
        return False


def _unfit(name: str, value: Any, dtype: Any, why: str = "") -> InputError:
    return InputError(f"Column {name!r} cannot hold {value!r}", f"Its cells are {type(dtype).__name__}{why}")


def _control(data: Table, j: int, name: str) -> dict[str, Any]:
    cells = data.column(j)
    if cells.dtype.kind not in "fiu":
        texts = {_plain(value) for value in in_microseconds(cells).tolist()}
        # Last: the missing cell, without which a list would stand at its first text
        return {"name": name, "choices": sorted(texts, key=lambda text: (text is None, str(text)))}
    known = np.clip(cells[np.isfinite(cells.astype(float))], -_LARGEST, _LARGEST)
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    # Columns of whole numbers stay whole, whatever their type: missing cells make floats of integers in pandas.
    whole = bool(known.size) and bool(np.all(known == np.round(known)))
    return {"name": name, "whole": whole, **_grid(low, high if high > low else low + 1.0, whole)}


def _grid(low: float, high: float, whole: bool) -> dict[str, float]:
    """Return a slider's step and ends. The step is 1, 2 or 5 times a power of ten, and the ends are its multiples.

    >>> _grid(-3.0459, 2.7594, False)
    {'low': -3.05, 'high': 2.8, 'step': 0.05}
    """
    if whole:
        return {"low": low, "high": high, "step": 1.0}
    smallest = max(high / _MOVES - low / _MOVES, sys.float_info.min)  # the difference may overflow
    places = -math.floor(math.log10(smallest))
    # 0.999: rounding may lift a range just above a multiple of the step.
    step = next(size for size in (1.0, 2.0, 5.0, 10.0) if size * 10.0**-places >= 0.999 * smallest) * 10.0**-places
    ends = (math.floor(low / step) * step, math.ceil(high / step) * step, step)
    return dict(zip(("low", "high", "step"), (round(end, places) for end in ends), strict=True))
