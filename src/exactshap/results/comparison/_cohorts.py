"""Compare each group of an explanation with all other rows."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes
from exactshap._runtime.words import PrintedTable
from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from exactshap.frames import as_table, is_missing, warn_of_other_order
from exactshap.results.comparison._comparison import Comparison, compare
from exactshap.results.comparison._report import chosen_output, finish
from exactshap.results.data import (
    ExplanationData,
    as_days,
    categories_in_order,
    cell_text,
    counted,
    frame_of,
    ordered_categories,
    picture,
    player_columns,
)
from exactshap.results.plots import escape, new_axes

MAX_COHORTS = 30
# Distinct numbers of a column up to which each is a group of its own.
MAX_VALUES_UNBINNED = 10
MISSING = "missing"
_SHOWN = 10  # players of a printed table
NO_TEXT = "no value"  # where "missing" is a text of the column
_OF_SIZES = "fiumM"  # kinds of dtypes with an order: numbers, dates and times


@dataclass(frozen=True, eq=False, repr=False)
class Cohorts(PrintedTable, Mapping[str, Comparison]):
    """Hold mean values of the groups of an explanation; made by :meth:`exactshap.Explanation.by`.

    Attributes
    ----------
    name : str
        What the rows were grouped by.
    comparisons : mapping of label to Comparison
        Each group (second) against all other rows (first); ``cohorts[label]`` is one of them.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap import Explanation
    >>> X = np.array([[0.0, 1.0], [0.0, 3.0], [1.0, 5.0], [1.0, 7.0]])
    >>> explanation = Explanation(values=X, baseline=np.zeros(4), prediction=X.sum(axis=1), residual=np.zeros(4),
    ...                           tolerance=1e-12, feature_names=["sex", "age"], value_function="baseline", data=X)
    >>> cohorts = explanation.by("sex")
    >>> cohorts.labels, cohorts.means
    (('0', '1'), array([[0., 2.],
           [1., 6.]]))
    >>> cohorts["1"].difference
    array([1., 4.])
    """

    name: str
    comparisons: Mapping[str, Comparison]

    def __getitem__(self, label: str) -> Comparison:
        if label not in self.comparisons:
            raise UnknownNameError(f"There is no group {label!r}", do=did_you_mean(str(label), self.labels))
        return self.comparisons[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    @property
    def _first(self) -> Comparison:
        """Return one comparison, for what all have in common."""
        return next(iter(self.comparisons.values()))

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the groups."""
        return tuple(self.comparisons)

    @property
    def n_rows(self) -> tuple[int, ...]:
        """Return the number of rows of each group."""
        return tuple(one.n_rows[1] for one in self.comparisons.values())

    @property
    def means(self) -> np.ndarray:
        """Return each group's mean values, (n_groups, n_players[, n_outputs])."""
        return np.stack([one.means[1] for one in self.comparisons.values()])

    @property
    def mean_intervals(self) -> np.ndarray:
        """Return bootstrap intervals of ``means`` over rows, (n_groups, n_players[, n_outputs], 2)."""
        return np.stack([one.mean_intervals[1] for one in self.comparisons.values()])

    def to_frame(self, kind: str | None = None) -> Any:
        """Return one row per group and player (and output).

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"} or None, default=None
        """
        parts = {label: one.columns() for label, one in self.comparisons.items()}
        names = [name for name in next(iter(parts.values())) if all(name in part for part in parts.values())]
        columns: dict[str, Any] = {"group": [label for label, part in parts.items() for _ in part["feature"]]}
        columns |= {name: np.concatenate([np.asarray(part[name]) for part in parts.values()]) for name in names}
        return frame_of(None, columns, kind or self._first.backend)

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        """Return headings and rows of text, the most different means first."""
        first = self._first
        means = self.means.reshape(len(self), -1)
        outputs = [""] if first.output_names is None else [f"[{name}]" for name in first.output_names]
        names = [f"{name}{output}" for name in first.feature_names for output in outputs]
        order = np.argsort(-np.ptp(means, axis=0), kind="stable")[:_SHOWN]
        return ["feature", *self.labels], [[names[j], *(f"{mean:.4g}" for mean in means[:, j])] for j in order], len(names)

    @picture
    def plot(self, ax: Axes = None, *, output: int | str | None = None, max_display: int = 10) -> Any:
        """Draw all groups' mean values with intervals, a colour each.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        output : int or str, optional
            Which output, where there are several.
        max_display : int, default=10
            Number of players shown.

        Returns
        -------
        ax : matplotlib Axes
        """
        first = self._first
        k = chosen_output(first.output_names, output)
        means, intervals = (array if k is None else array[:, :, k] for array in (self.means, self.mean_intervals))
        order = np.argsort(-np.ptp(means, axis=0), kind="stable")[: check_count("max_display", max_display)]
        ax = new_axes(7.0, 0.5 * len(order) + 1.8) if ax is None else ax
        colours = require("matplotlib", "plots", purpose="Plotting").colormaps["cividis"](np.linspace(0.0, 0.9, len(self)))
        # The marks of a player stand closer together than two players
        spread = min(0.3, 0.1 * (len(self) - 1))
        shifts = np.linspace(-spread, spread, len(self))
        for g, label in enumerate(self):
            place = np.arange(len(order)) + shifts[g]
            ends = np.abs(intervals[g, order].T - means[g, order])
            shown = {"xerr": ends} if np.isfinite(ends).all() else {}
            name = escape(f"{label} ({self.n_rows[g]:,})")
            ax.errorbar(means[g, order], place, fmt="o", color=colours[g], markersize=4, capsize=2, label=name, **shown)
        ax.set_xlabel(f"mean value ({escape(first.unit)}; bars: {100 * first.level:g} % intervals over rows)")
        ax.legend(title=escape(self.name), frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        finish(ax, [first.feature_names[j] for j in order])
        return ax

    def _head(self) -> tuple[str, dict[str, str]]:
        sizes = (f"{label}: {counted(n, 'row')}" for label, n in zip(self.labels, self.n_rows, strict=True))
        facts = {"groups": ", ".join(sizes), "each": "cohorts[label] compares a group with all other rows, with intervals"}
        return f"Mean values ({self._first.unit}) by {self.name}, {len(self)} groups", facts


def by(explanation: ExplanationData, column: Any, *, bins: int = 4, drift: bool = False, **settings: Any) -> Cohorts:
    """Compare groups of these rows, each with all others.

    Parameters
    ----------
    column : str, int or array of shape (n_rows,)
        A column of the data, or a label for each row. Numbers and dates with more than ten values are cut at their quantiles.
    bins : int, default=4
        Into how many groups they are cut.
    drift : bool, default=False
        As of :meth:`compare`, for each group.
    **settings
        The others of :meth:`compare`, except ``labels``.

    Returns
    -------
    cohorts : Cohorts
        ``means``, ``cohorts[label]`` (a Comparison), ``to_frame()``, ``plot()``.
    """
    name, cells, categories = _cells(explanation, column)
    cells = _of_numpy(cells)
    labels = np.asarray(_labels(cells, bins), object)
    # Groups in the order of their cells, not of their texts: "10" comes after "9".
    wanted = list(dict.fromkeys(labels[np.argsort(_order(cells, categories), kind="stable")]))
    if not 2 <= len(wanted) <= MAX_COHORTS:
        do = "Pass a column with fewer values, or an array with a label for each row"
        raise InputError(f"{name} makes {counted(len(wanted), 'group')}", f"2 to {MAX_COHORTS} can be compared", do)
    found = {}
    for label in wanted:
        inside = labels == label
        found[label] = compare(explanation[~inside], explanation[inside], labels=("the rest", label), drift=drift, **settings)
    return Cohorts(name, found)


def _cells(explanation: ExplanationData, column: Any) -> tuple[str, np.ndarray, list[Any]]:
    """Return the name, cells (n_rows,) and ordered categories of a column of the data or of the caller's labels."""
    if isinstance(column, (str, int, np.integer)):
        return _column_of_data(explanation, int(column) if isinstance(column, np.integer) else column)
    values = np.asarray(column)
    if values.shape != (explanation.n_rows,):
        got = f"Got shape {values.shape} for {explanation.n_rows} rows"
        raise InputError("Rows are grouped by a column of the data or by one label for each row", got)
    if explanation.data is not None:
        warn_of_other_order(as_table(explanation.data), column, "column")
    return str(getattr(column, "name", None) or "labels"), values, categories_in_order(column)


def _column_of_data(explanation: ExplanationData, column: str | int) -> tuple[str, np.ndarray, list[Any]]:
    if explanation.data is None:
        do = "Pass one label for each row"
        raise InputError("Rows are grouped by a column of the data", "This explanation has data=None", do)
    table = as_table(explanation.data)
    members = dict(zip(explanation.feature_names, player_columns(explanation, table), strict=True))
    shown = {columns[0]: name for name, columns in members.items() if len(columns) == 1}
    # Arrays have no names: a player of one column gives it its name.
    names = table.names or [shown.get(j, f"column {j}") for j in range(table.n_columns)]
    if isinstance(column, str):
        number = {**{name: j for j, name in shown.items()}, **{name: j for j, name in enumerate(names)}}
        if column not in number:
            got = f"{column!r} is a group of the columns {list(members[column])}" if column in members else ""
            do = "Pass the number of one of them" if got else did_you_mean(column, number)
            raise UnknownNameError(f"The data have no column {column!r}", got, do)
        return column, table.column(number[column]), ordered_categories(table, number[column])
    if isinstance(column, bool) or not -table.n_columns <= column < table.n_columns:
        raise InputTypeError(f"There is no column {column!r}", f"The data have {table.n_columns} columns")
    j = int(column) % table.n_columns
    return names[j], table.column(j), ordered_categories(table, j)


def _of_numpy(cells: np.ndarray) -> np.ndarray:
    """Return numbers, decimals and dates of Python as those of NumPy; other cells as they are.

    >>> _of_numpy(np.array([datetime.date(2024, 1, 1), None], object))
    array(['2024-01-01T00:00:00.000', 'NaT'], dtype='datetime64[ms]')
    """
    known = [] if cells.dtype.kind != "O" else [cell for cell in cells if not is_missing(cell)]
    if known and all(isinstance(cell, Decimal | Real) and not isinstance(cell, bool) for cell in known):
        return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
    if known and all(isinstance(cell, datetime.date) for cell in known):
        days = as_days(np.array([cell_text(cell) for cell in cells], object))
        return cells if days is None else (days * 86_400_000).astype("M8[ms]")
    return cells


def _labels(cells: np.ndarray, bins: int) -> list[str]:
    """Return a label for each row: its cell as text, or the quarter (with 4 bins) of the numbers or dates that it lies in."""
    if cells.dtype.kind not in _OF_SIZES:
        texts = [cell_text(cell) for cell in cells]
        missing = NO_TEXT if MISSING in texts and "" in texts else MISSING
        return [text or missing for text in texts]
    if cells.dtype.kind in "mM":
        cells = cells.astype(f"{cells.dtype.kind}8[us]")  # quantiles of days lie between them
    gone = np.isnan(cells)
    known = cells[~gone]
    ends = np.unique(known)
    names = _distinct(ends, 6)
    if len(ends) > MAX_VALUES_UNBINNED:
        check_count("bins", bins, 2)
        # Many equal cells make quantiles coincide: there are then fewer groups than bins. Between infinities lies no number
        ends = np.unique(np.quantile(known[np.isfinite(known)], np.linspace(0.0, 1.0, bins + 1)))
        ends[[0, -1]] = min(ends[0], known.min()), max(ends[-1], known.max())
        names = [f"{start} to {end}" for start, end in itertools.pairwise(_distinct(ends, 4))]
    # The largest number lies on the last edge, and belongs to the last group.
    place = np.clip(np.searchsorted(ends, cells, side="right") - 1, 0, len(names) - 1)
    return [MISSING if is_gone else names[k] for is_gone, k in zip(gone, place, strict=True)]


def _distinct(numbers: np.ndarray, digits: int) -> list[str]:
    """Return distinct numbers, dates or times as distinct texts.

    They have more digits, or smaller units, where the usual ones are not enough.

    >>> _distinct(np.array([20240101.0, 20240102.0]), 6), _distinct(np.array([0.5, 1.0]), 6)
    (['20240101', '20240102'], ['0.5', '1'])
    """
    if numbers.dtype.kind in "mM":
        forms = ([str(cell) for cell in numbers.astype(f"{numbers.dtype.kind}8[{unit}]")] for unit in ("D", "s", "us"))
        return next(texts for texts in forms if len(set(texts)) == len(numbers))
    while len(set(texts := [f"{number:.{digits}g}" for number in numbers])) < len(numbers) and digits < 17:
        digits += 1
    return texts


def _order(cells: np.ndarray, categories: list[Any]) -> np.ndarray:
    """Return what sorts the groups: numbers and dates by size, texts by category or name, missing cells last."""
    if categories and cells.dtype.kind not in _OF_SIZES:
        place = {category: k for k, category in enumerate(categories)}
        return np.array([place.get(cell, len(place)) for cell in cells.tolist()])
    if cells.dtype.kind in _OF_SIZES:
        return cells
    texts = [cell_text(cell) for cell in cells]
    return np.unique([f"0{text}" if text else "1" for text in texts], return_inverse=True)[1]
