"""The scores of an explainable boosting machine by interpret's own native search, without its preparations for each column."""

from __future__ import annotations

import ctypes
import operator
from functools import partial
from typing import Any

import numpy as np

from exactshap.readers import Stages
from exactshap.readers.additive.terms import slices

__all__ = ["NativeSearch"]

# values of a column, from which on interpret searches among more than LONG cuts at four times the pace; from WORTH on, fewer are made so many
AT_ONCE, LONG, WORTH = 4096, 510, 1536
PARTS = 32  # of the columns, at most, which threads may search side by side
MANY = 128  # rows, from which on a number for each cell costs less to look up than its bins
ARGUMENTS = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]


class NativeSearch:
    r"""f_0 + \sum_I f_I(x_I) of rows of numbers: ``search(model, rows) -> (n_rows,) or (n_rows, n_outputs)``.

    The model's own function makes an object of ctypes for each array of each column, anew in each call: four fifths of its time
    for one row. Here the same search is given the same cuts, and the same scores are added in the same order, which makes the
    same bits. Cuts and scores are the model's as they are now, whatever happened since to the model.
    """

    def __init__(self) -> None:
        self._plan: _Plan | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_plan": None}  # addresses are of this process

    def __call__(self, model: Any, rows: np.ndarray) -> np.ndarray | None:
        """Return None where interpret has no such search, or refuses."""
        plan = self._plan_of(model, rows)
        bins = None if plan is None else plan.bins(rows)
        if plan is None or bins is None:
            return None
        intercept = np.atleast_1d(model.intercept_)
        if len(rows) == 1 and len(intercept) == 1:
            return _of_one_row(model.term_scores_, plan.cells, bins[:, 0].tolist(), float(intercept[0]))
        return _added(intercept, model.term_scores_, plan, bins)

    def stages(self, model: Any, rows: np.ndarray) -> Stages | None:
        """Return the same of many rows in parts, columns of all rows: interpret searches many values of one at a higher pace."""
        plan = self._plan_of(model, rows)
        if plan is None or not len(rows) or not plan.cells:
            return None
        intercept, bins = np.atleast_1d(model.intercept_), plan.empty(rows)
        searches = [partial(plan.fill, bins, rows, part) for part in slices(len(bins), -(-len(bins) // PARTS))]
        return Stages(searches, partial(_added, intercept, model.term_scores_, plan, bins))

    def _plan_of(self, model: Any, rows: np.ndarray) -> _Plan | None:
        plan = self._plan
        if plan is None or not plan.is_of(model):
            plan = self._plan = _Plan(model)
        fits = rows.shape[1] == len(model.bins_) and len(model.term_scores_) == len(plan.cells)  # addresses know no ends
        return plan if fits and plan.search else None


def _added(intercept: np.ndarray, term_scores: list[np.ndarray], plan: _Plan, bins: np.ndarray) -> np.ndarray:
    """Add up the scores of rows in the model's order."""
    n_rows = bins.shape[1]
    total = np.full(n_rows if len(intercept) == 1 else (n_rows, len(intercept)), intercept, float)
    if n_rows < MANY:
        for scores, cell in zip(term_scores, plan.cells, strict=True):
            total += scores[cell(bins)]
        return total
    for scores, cell, width in zip(term_scores, plan.cells, plan.widths, strict=True):
        total += _looked_up(scores, cell(bins), width)
    return total


def _looked_up(scores: np.ndarray, bins: Any, width: int) -> np.ndarray:
    """Return ``scores[bins]``, of many rows in a half or a third of the time, where a table is as wide as its cuts say."""
    if not isinstance(bins, tuple):
        return scores.take(bins, axis=0)
    if width != scores.shape[1]:
        return scores[bins]  # type: ignore[no-any-return]
    first, second = bins
    return scores.reshape(-1, *scores.shape[2:]).take(first * width + second, axis=0)


def _of_one_row(term_scores: list[np.ndarray], cells: list[Any], bins: list[int], total: float) -> np.ndarray:
    """Add up one row's scores as numbers: arrays of one element take twelve times as long."""
    for scores, cell in zip(term_scores, cells, strict=True):
        total += scores.item(cell(bins))
    return np.array([total])


class _Plan:
    """Where the cuts of a model lie: one search for each column and each number of columns that its terms have."""

    def __init__(self, model: Any) -> None:
        self._features, self._bins = model.term_features_, model.bins_
        ways: dict[tuple[int, int], int] = {}
        self.cells = [
            operator.itemgetter(*(ways.setdefault((j, min(len(self._bins[j]), len(columns)) - 1), len(ways)) for j in columns))
            for columns in self._features
        ]
        # of tables of terms of two columns: bins of missing values, between the cuts, and of what is unknown; 0 of other terms
        self.widths = [self._width(columns) for columns in self._features]
        self._cuts = [(j, level, self._bins[j][level]) for j, level in ways]
        self._places = [(j, len(cuts), cuts.ctypes.data) for j, _, cuts in self._cuts]
        plain = all(cuts.dtype == np.float64 and cuts.flags.c_contiguous for _, _, cuts in self._cuts)
        self.search: Any = _native_search() if plain else None

    def _width(self, columns: tuple[int, ...]) -> int:
        return len(self._bins[columns[1]][min(len(self._bins[columns[1]]), 2) - 1]) + 3 if len(columns) == 2 else 0

    def is_of(self, model: Any) -> bool:
        """Say whether the model still has these cuts: a new fit has others."""
        same = model.term_features_ is self._features and model.bins_ is self._bins
        return same and all(self._bins[j][level] is cuts for j, level, cuts in self._cuts)

    def bins(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the bin of each row by each of the ways, (n_ways, n_rows); ``cells[l]`` picks those of term l."""
        if len(rows) == 1:
            return self._bins_of_one(rows[0])
        found = self.empty(rows)
        return found if self.fill(found, rows, slice(None)) else None

    def _bins_of_one(self, row: np.ndarray) -> np.ndarray | None:
        values, found, search = np.array(row, float), np.empty((len(self._places), 1), np.int64), self.search
        first, out = values.ctypes.data, found.ctypes.data
        for j, n_cuts, cuts in self._places:
            if search(1, first + 8 * j, n_cuts, cuts, out):
                return None
            out += 8
        return found

    def empty(self, rows: np.ndarray) -> np.ndarray:
        """Return room for the bins, from way to way as wide as the longest search writes."""
        n = len(rows)
        return np.empty((len(self._places), _n_searched(n)), np.int64)[:, :n]

    def fill(self, bins: np.ndarray, rows: np.ndarray, ways: slice) -> bool:
        """Write the bins of all rows by some of the ways; say whether the search did not refuse."""
        n, n_long = len(rows), _n_searched(len(rows))
        values, search = np.zeros(n_long), self.search
        column, first, out = values[:n], values.ctypes.data, bins[ways].ctypes.data
        for j, n_cuts, cuts in self._places[ways]:
            column[...] = rows[:, j]
            if search(n_long if n_cuts > LONG else n, first, n_cuts, cuts, out):
                return False
            out += 8 * n_long
        return True


def _n_searched(n: int) -> int:
    """Return how many values are searched among many cuts."""
    return AT_ONCE if WORTH <= n < AT_ONCE else n


def _native_search() -> Any:
    """Return interpret's ``Discretize`` (rows, values, cuts, their values, bins), where it is as it was when this was written."""
    try:
        from interpret.utils._native import Native

        search = Native.get_native_singleton()._unsafe.Discretize
        return search if search.argtypes == ARGUMENTS and search.restype is ctypes.c_int32 else None
    except (ImportError, AttributeError):
        return None
