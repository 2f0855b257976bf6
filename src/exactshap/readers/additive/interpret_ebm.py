"""Read explainable boosting machines of interpret as tables over bins, by the model's own binning.

The background is folded into one small table per coalition of a term's players.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.cache import copied_state
from exactshap._runtime.slices import slices
from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, OwnCall, Request, require_fitted, score_names
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._terms import Bound, Coalitions, Reference, by_size, coalitions
from exactshap.readers.additive.response import response_of_link, unit_of_link, with_response
from exactshap.readers.responses import Response, probabilities
from exactshap.solvers.additive import Bins, Lookups, Stack, fill_cells, fill_fold, fill_lookups

# Rows on which our own search among the cuts is compared with the model's.
PROBED_ROWS = 128
# Rows that the model bins at once, as floats; a large background is stored as integers.
CHUNK_ROWS = 2**16


def _response(model: Model) -> Response:
    """Return the second class's probability, or a log-link regression's mean."""
    if hasattr(model, "classes_"):
        return probabilities(model.classes_, "logistic" if model.link_ == "vlogit" else "softmax")
    return response_of_link(model, model.link_, OwnCall("predict"), f"Its link is {model.link_}")


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    """Read the intercept and the bins' scores of each term, in link space.

    Without a background, the training rows are used: the model keeps their joint histogram over the bins of each term, which is
    all that an additive game needs, so the values are exactly those for ``background=`` the training rows. Merged,
    private and re-loaded models keep estimates of it or none, and are refused without a background.
    """
    require_fitted(model, "term_scores_", "bins_", "intercept_")
    _refuse_unknown(model)
    is_classifier = hasattr(model, "classes_")
    names = score_names(model.classes_) if is_classifier else ("target",)
    outputs = Outputs.of(names, request.output, owner=type(model).__name__)
    chosen = outputs.numbers
    intercept = np.atleast_1d(np.asarray(model.intercept_, float))
    scores = [np.asarray(table, float) for table in model.term_scores_]
    scores = [table[..., None] if len(names) == 1 else table for table in scores]
    training = _training(model, request)
    cells = _Cells(_twin(model, [table.shape[:-1] for table in scores]))
    # The model's documented call, in the unit of its link
    in_link_space = OwnCall("predict", finish=functools.partial(_in_link_space, model))
    call = outputs.call("decision_function") if is_classifier else in_link_space
    form = AdditiveForm(
        blocks=(BinnedTerms(tuple(map(tuple, model.term_features_)), tuple(t[..., chosen] for t in scores), training),),
        intercept=intercept[chosen],
        encode=cells,
        own_call=call,
        in_double=False,
        n_columns=len(model.bins_),
        outputs=outputs,
        unit=_unit(model, names),
        floor=0.0 if is_classifier or model.link_ == "identity" else 1.0,
        has_training=training is not None,
    )
    return AdditiveReader(model, request, form)


def _unit(model: Model, names: tuple[str, ...]) -> str:
    """Return the unit: a margin of two classes, scores of more, the link of a regression."""
    if not hasattr(model, "classes_"):
        return unit_of_link(model.link_)
    if len(names) == 1:
        return f"log-odds of class {names[0]}"
    return "log-odds" if model.link_ == "vlogit" else "score before the softmax"


def _refuse_unknown(model: Model) -> None:
    if not np.all(np.isfinite(np.atleast_1d(model.intercept_))) or not all(np.isfinite(t).all() for t in model.term_scores_):
        raise UnsupportedStructureError(
            f"This {type(model).__name__} has scores that are not finite",
            "It was fitted on a single class, or edited",
            "Fit it on at least two classes",
        )


def _twin(model: Model, shapes: list[tuple[int, ...]]) -> Model:
    twin = copy.copy(model)
    # A copy with numbers of cells as scores: its own prediction gives the cell of a row.
    twin.term_scores_ = [np.arange(np.prod(shape), dtype=float).reshape(shape) for shape in shapes]
    twin.intercept_ = 0.0
    return twin


def _training(model: Model, request: Request) -> tuple[np.ndarray, ...] | None:
    """Return the training rows' weight in each cell; None with a background."""
    if request.background is not None:
        return None
    if not hasattr(model, "histogram_weights_") or not hasattr(model, "bin_weights_"):
        raise InputError(
            f"{type(model).__name__} needs reference rows",
            "Got background=None, and this model does not hold its exact training histogram (only a directly fitted, "
            "non-private EBM does; merged and re-loaded ones do not)",
            "Pass background=X_reference (a frame or array of rows to compare with)",
        )
    return tuple(np.asarray(weights, float) for weights in model.bin_weights_)


def _in_link_space(model: Model, values: np.ndarray) -> np.ndarray:
    if model.link_ == "identity":
        return values
    from interpret.utils import link_func

    return np.asarray(link_func(values, model.link_, model.link_param_), float)


# -- cells -----------------------------------------------------------------------------------------------------------------


class _Cells:
    """Number the cell of each row in each term.

    The twin is the model with the numbers 0, 1, 2, ... as scores: its public ``eval_terms`` returns the cell of each row, and treats
    missing values, unknown categories and strings as the model does, in any version. If all columns are numbers, our own search among
    the cuts replaces the twin once both agree on rows at and next to the cuts: 1,000 rows take a twentieth of the time.
    """

    def __init__(self, twin: Model) -> None:
        self.twin = twin
        largest = max((scores.size for scores in twin.term_scores_), default=0)
        self.dtype = np.int32 if largest < 2**31 else np.int64
        self.bins: Handle | None = None
        if (bins := _numeric_bins(twin)) is not None:
            self._compare(bins)

    def __call__(self, X: Table, what: str) -> np.ndarray:
        is_numbers = X.is_plain or (X.names is None and X.native.dtype.kind in "fiub")
        if self.bins is not None and is_numbers:
            return self._by_search(X.numeric(what=what))
        if X.n_rows <= CHUNK_ROWS:
            return self._by_twin(X.native)
        return np.concatenate([self._by_twin(X.take(part).native) for part in slices(X.n_rows, CHUNK_ROWS)])

    def _by_twin(self, rows: TableLike) -> np.ndarray:
        return self.twin.eval_terms(rows).astype(self.dtype, order="C")  # type: ignore[no-any-return]

    def _by_search(self, rows: np.ndarray) -> np.ndarray:
        cells = np.empty((len(rows), len(self.twin.term_scores_)), self.dtype)
        fill_cells(np.ascontiguousarray(rows), self.bins, cells)
        return cells

    def _compare(self, bins: Bins) -> None:
        """Use our own search if it agrees with the model's at the cuts."""
        rng = np.random.default_rng(0)
        rows = np.empty((PROBED_ROWS, len(self.twin.bins_)))
        for j in range(rows.shape[1]):
            ways = np.flatnonzero(bins.column == j)  # none of a column in no term
            cuts = np.concatenate([np.empty(0), *(bins.cuts[bins.cut_start[w] : bins.cut_start[w + 1]] for w in ways)])
            # The side of the cut's own value shows only at the cut and next to it.
            near = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), [np.nan, -1e300, 0.0, 1e300]])
            rows[:, j] = rng.choice(near, PROBED_ROWS)
        self.bins = Handle(bins)
        if not np.array_equal(self._by_twin(rows), self._by_search(rows)):
            self.bins = None


def _numeric_bins(model: Model) -> Bins | None:
    """Return the bins of an EBM of numeric columns, or None.

    ``bins_[j]`` holds the cuts of column j, for terms of one column, of two, ...: the last holds for all larger ones. A term's
    tables have a bin for missing values before, and one for unknown categories behind those between the cuts.
    """
    if any(kind != "continuous" for kind in model.feature_types_in_):
        return None
    used: list[list[int]] = []
    strides: list[np.ndarray] = []
    levels_of = [[(j, min(len(columns), len(model.bins_[j])) - 1) for j in columns] for columns in model.term_features_]
    ways = {level: w for w, level in enumerate(sorted({level for levels in levels_of for level in levels}))}  # by column
    for columns, levels, scores in zip(model.term_features_, levels_of, model.term_scores_, strict=True):
        used.append([ways[level] for level in levels])
        shape = np.array(scores.shape[: len(columns)], np.int64)
        if any(len(model.bins_[j][level]) + 3 != size for (j, level), size in zip(levels, shape, strict=True)):
            return None
        strides.append(_c_strides(shape))
    cuts = [np.asarray(model.bins_[j][level], float) for j, level in ways]
    starts = (np.cumsum([0, *map(len, parts)]) for parts in (cuts, used))
    column = np.array([j for j, _ in ways], np.int64)
    cut_start, way_start = (start.astype(np.int64) for start in starts)
    way = np.array([w for term in used for w in term], np.int64)
    stride = np.concatenate([*strides, way[:0]])
    return Bins(np.concatenate([*cuts, np.empty(0)]), cut_start, column, way_start, way, stride)


# -- terms ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BinnedTerms:
    """Hold tables over bins: ``scores[l]`` (n_bins, ..., n_outputs); a row has the number of its cell in each term (C order).

    ``training[l]``, if given, holds the weight of each cell, the default background.
    """

    columns: tuple[tuple[int, ...], ...]
    scores: tuple[np.ndarray, ...]
    training: tuple[np.ndarray, ...] | None = None

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        flat = [scores.reshape(-1, scores.shape[-1]) for scores in self.scores]
        return np.stack([values[rows[:, l]] for l, values in enumerate(flat)], axis=1)

    def hybrid(self, row: np.ndarray, rows: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return the cells of rows with the bins of one row (1, n_terms) in the ``chosen`` columns."""
        cells = rows.copy()
        for l, (columns, scores) in enumerate(zip(self.columns, self.scores, strict=True)):
            shape = scores.shape[:-1]
            pairs = zip(np.unravel_index(row[:, l], shape), np.unravel_index(rows[:, l], shape), columns, strict=True)
            bins = [np.broadcast_to(own, len(rows)) if chosen[j] else other for own, other, j in pairs]
            cells[:, l] = np.ravel_multi_index(bins, shape) if bins else 0
        return cells

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> Bound:
        own = [coalitions(columns, owner) for columns in self.columns]
        return _BoundBins(tuple(_bind_table(*term) for term in zip(self.scores, self._support(reference), own, strict=True)))

    def _support(self, reference: Reference | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the cells that the background visits, and their weights."""
        for l, scores in enumerate(self.scores):
            if reference is None:
                assert self.training is not None
                weights = self.training[l].reshape(-1)
            else:
                weights = np.bincount(reference.rows[:, l], reference.weights, minlength=int(np.prod(scores.shape[:-1])))
            cells = np.flatnonzero(weights)
            yield cells, weights[cells] / weights.sum()


@dataclass(frozen=True, eq=False)
class _FoldedTable:
    players: tuple[int, ...]
    shape: np.ndarray
    strides: np.ndarray
    folded: np.ndarray


def _bind_table(scores: np.ndarray, support: tuple[np.ndarray, np.ndarray], own: Coalitions) -> _FoldedTable:
    """Fold the background into one table per coalition: T_A[x_A] = sum_z w_z f_I(x_A, z outside A)."""
    shape = np.array(scores.shape[:-1], np.int64)
    cells, weights = support
    bins = np.stack(np.unravel_index(cells, tuple(shape)), axis=1)
    flat = np.ascontiguousarray(scores.reshape(-1, scores.shape[-1]), float)
    strides = np.zeros((len(own.inside), 1 + len(shape)), np.int64)
    tables, start = [], 0
    for code, inside in enumerate(own.inside):
        table, strides[code, 1:] = _fold(flat, shape, inside, bins, weights)
        strides[code, 0] = start
        start += len(table)
        tables.append(table)
    return _FoldedTable(own.players, shape, strides, np.concatenate(tables))


def _fold(
    scores: np.ndarray, shape: np.ndarray, inside: np.ndarray, bins: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the table of one coalition, and its strides, 0 outside."""
    full_strides = _c_strides(shape)
    outside, index = np.unique(bins[:, ~inside] @ full_strides[~inside], return_inverse=True)
    # A constant background makes no rounding: its weight is exactly 1
    single = len(outside) == 1
    mass = np.ones(1) if single else np.bincount(index, weights)
    own = np.zeros(1, np.int64)  # where the cells of the columns inside begin, in C order
    for size, stride in zip(shape[inside], full_strides[inside], strict=True):
        own = (own[:, None] + stride * np.arange(size)).reshape(-1)
    table = np.empty((len(own), scores.shape[1]))
    fill_fold(scores, own, outside, mass, table)
    strides = np.zeros(len(shape), np.int64)
    strides[inside] = _c_strides(shape[inside])
    return table, strides


def _c_strides(shape: np.ndarray) -> np.ndarray:
    return np.append(np.cumprod(shape[:0:-1])[::-1], 1).astype(np.int64) if len(shape) else np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class _BoundBins(Bound):
    terms: tuple[_FoldedTable, ...]

    __getstate__ = copied_state

    @functools.cached_property
    def _sizes(self) -> tuple[tuple[tuple[tuple[int, ...], ...], Handle, int], ...]:
        """Group terms by their number of players: players, tables, number of outputs."""
        return tuple(self._of_size(chosen) for chosen in by_size(term.players for term in self.terms))

    def _of_size(self, chosen: list[int]) -> tuple[tuple[tuple[int, ...], ...], Handle, int]:
        terms = [self.terms[l] for l in chosen]
        n_codes, width = len(terms[0].strides), max(len(term.shape) for term in terms)
        shape, strides = np.ones((len(terms), width), np.int64), np.zeros((len(terms), n_codes, 1 + width), np.int64)
        start = 0
        for place, term in enumerate(terms):
            shape[place, : len(term.shape)] = term.shape
            strides[place, :, : 1 + len(term.shape)] = term.strides
            strides[place, :, 0] += start
            start += len(term.folded)
        folded = np.concatenate([term.folded for term in terms])
        if not np.isfinite(folded).all():
            raise InputError("Scores overflow where the background is summed over", do="Explain a model of smaller scores")
        lookups = Lookups(np.array(chosen, np.int64), shape, strides, folded)
        return tuple(term.players for term in terms), Handle(lookups), folded.shape[1]

    def stacks(self, rows: np.ndarray) -> Iterator[Stack]:
        for players, lookups, n_outputs in self._sizes:
            tables = np.empty((len(players), len(rows), 2 ** len(players[0]), n_outputs))
            fill_lookups(rows, lookups, tables)
            yield Stack(players, tables)
