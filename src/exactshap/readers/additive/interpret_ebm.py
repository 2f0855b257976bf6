"""Read explainable boosting machines of interpret as tables over bins, by the model's own binning."""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.slices import slices
from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, OwnCall, Request, require_fitted
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._binned import BinnedTerms, numeric_bins
from exactshap.readers.additive.response import with_response
from exactshap.readers.responses import Response, no_response, probabilities
from exactshap.solvers.additive import Bins, fill_cells

# Rows on which our own search among the cuts is compared with the model's.
PROBED_ROWS = 128
# Rows that the model bins at once, as floats; a large background is stored as integers.
CHUNK_ROWS = 2**16


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
        if (bins := numeric_bins(twin)) is not None:
            self._compare(bins)

    def __call__(self, X: Table, what: str) -> np.ndarray:
        if self.bins is not None and _is_numbers(X):
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


def _is_numbers(X: Table) -> bool:
    return X.is_plain or (X.names is None and X.native.dtype.kind in "fiub")


def _response(model: Model) -> Response:
    """Return the second class's probability, or a log-link regression's mean."""
    if hasattr(model, "classes_"):
        return probabilities(model.classes_, "logistic" if model.link_ == "vlogit" else "softmax")
    if model.link_ not in ("identity", "log"):
        raise no_response(model, f"Its link is {model.link_}")
    return Response("exponential" if model.link_ == "log" else None, OwnCall("predict"), "target")


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    """Read the intercept and the bins' scores of each term, in link space.

    Without a background, the training rows are used: the model keeps their joint histogram over the bins of each term, which is
    all that an additive game needs, so the values are exactly those for ``background=`` the training rows. Merged,
    private and re-loaded models keep estimates of it or none, and are refused without a background.
    """
    require_fitted(model, "term_scores_", "bins_", "intercept_")
    _refuse_unknown(model)
    names, unit = _outputs(model)
    outputs = Outputs.of(names, request.output, owner=type(model).__name__)
    chosen = outputs.numbers
    intercept = np.atleast_1d(np.asarray(model.intercept_, float))
    scores = [np.asarray(table, float) for table in model.term_scores_]
    scores = [table[..., None] if len(names) == 1 else table for table in scores]
    training = _training(model, request)
    cells = _Cells(_twin(model, [table.shape[:-1] for table in scores]))
    # The model's documented call, in the unit of its link
    is_classifier = hasattr(model, "classes_")
    call = (
        outputs.call("decision_function")
        if is_classifier
        else OwnCall("predict", finish=functools.partial(_in_link_space, model))
    )
    form = AdditiveForm(
        blocks=(BinnedTerms(tuple(map(tuple, model.term_features_)), tuple(t[..., chosen] for t in scores), training),),
        intercept=intercept[chosen],
        encode=cells,
        predict=functools.partial(call.of_table, model),
        own_call=call,
        n_columns=len(model.bins_),
        outputs=outputs,
        unit=unit,
        floor=0.0 if is_classifier or model.link_ == "identity" else 1.0,
        has_training=training is not None,
    )
    return AdditiveReader(model, request, form)


def _outputs(model: Model) -> tuple[tuple[str, ...], str]:
    """Return output names and unit: one margin for two classes, one score per class for more, the link of a regression."""
    if not hasattr(model, "classes_"):
        return ("target",), "target" if model.link_ == "identity" else f"{model.link_} of the target"
    classes = tuple(str(c) for c in model.classes_)
    if len(classes) == 2:
        return (classes[1],), f"log-odds of class {classes[1]}"
    return classes, "log-odds" if model.link_ == "vlogit" else "score before the softmax"


def _refuse_unknown(model: Model) -> None:
    if not np.all(np.isfinite(np.atleast_1d(model.intercept_))) or not all(np.isfinite(t).all() for t in model.term_scores_):
        raise UnsupportedStructureError(
            f"This {type(model).__name__} has scores that are not finite",
            "It was fitted on a single class, or edited",
            "Fit it on at least two classes",
        )


def _twin(model: Model, shapes: list[tuple[int, ...]]) -> Any:
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
