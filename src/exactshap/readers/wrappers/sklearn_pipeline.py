"""Explain pipelines in input space: column-wise steps before any model with an exact reader."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import ExactnessError, InputError, UnsupportedStructureError
from exactshap.frames import Table, as_table
from exactshap.games import player_of_columns
from exactshap.readers import (
    Columns,
    DelegatingReader,
    OwnCall,
    Reader,
    Request,
    TransformedReader,
    fitted_names,
    joined_outputs,
    library_class,
    require_fitted,
    sklearn_name,
    writes_to_rows,
)
from exactshap.readers import read as read_any
from exactshap.readers.additive import (
    MapsSideBySide,
    Weight,
    is_affine,
    is_map,
    is_projection,
    linear_step,
    read_projection,
    response_of,
)
from exactshap.readers.kernel_machines import read_feature_map
from exactshap.readers.wrappers._columns import (
    SAMPLE_PIPELINE,
    TRIED_ROWS,
    ColumnOwners,
    all_chains_of,
    flat_steps,
    is_unknown,
    require_apart,
    require_background_apart,
    require_rows_apart,
    same_cells,
    table_after,
    takes_texts,
)
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution

_FEATURE_MAPS = ("Nystroem", "RBFSampler")
# Explained rows on which steps of one column each are tried: some, such as embeddings of texts, take long
RETRIED_ROWS = 32


def read(model: Model, request: Request) -> Reader:
    """Read a fitted pipeline: its last step, with the input columns as players of the transformed columns."""
    steps = flat_steps(model)
    if not steps or not hasattr(steps[-1], "predict"):
        raise UnsupportedStructureError(
            "The pipeline has no final model", f"Its last step is {type(steps[-1]).__name__ if steps else None}"
        )
    if (held := maps_side_by_side(steps)) is not None:
        place, before = held
        return PipelineReader(model, [*steps[:place], before], steps[place + 1 :], request)
    mixing = [place for place, step in enumerate(steps[:-1]) if sklearn_name(step) in (*_FEATURE_MAPS, "PolynomialFeatures")]
    # A projection is read with all that follows, so that the tail starts where one is.
    mixing = [place for place in range(len(steps) - 1) if is_projection(steps[place:])] or mixing
    # Steps before ``start`` work column by column; from there on one reader takes the whole tail.
    start = mixing[0] if mixing else len(steps) - 1
    if start > 0:
        return PipelineReader(model, steps[:start], steps[start:], request)
    inner = _read_tail(steps, request, model)
    return DelegatingReader(inner, model=model) if len(steps) == 1 else inner


def read_selected(model: Model, request: Request) -> Reader:
    """Read an elimination of features: its model on the columns that are left."""
    require_fitted(model, "estimator_")
    return PipelineReader(model, [model], [model.estimator_], request)


def _read_tail(steps: list[Any], request: Request, model: Model = None) -> Reader:
    """Read the final model, with steps before it that mix columns; ``model`` is the pipeline of them that predicts."""
    if len(steps) == 1:
        return read_any(steps[0], request)
    model = make_pipeline(*steps) if model is None else model
    if is_projection(steps):
        return read_projection(steps, request, model)
    if sklearn_name(steps[0]) in _FEATURE_MAPS and len(steps) == 2 and (linear := linear_step(steps[1])) is not None:
        if request.asks_response and hasattr(model, "classes_"):
            request = replace(request, output=response_of(steps[1]))
        return read_feature_map(steps[0], steps[1], linear, request, model)
    raise UnsupportedStructureError(
        f"{type(steps[0]).__name__} mixes columns and what follows is not linear in its features",
        f"Got {[type(step).__name__ for step in steps[1:]]}",
        f"Explain after it, or {SAMPLE_PIPELINE}",
    )


def _n_columns(step: Model, request: Request) -> int:
    """Return how many columns the first step takes: steps of other libraries may know names only, or nothing."""
    if takes_texts(step):
        if type(step).__name__ != "HashingVectorizer":  # which learns nothing
            require_fitted(step, "vocabulary_")
        if request.background is not None and request.background.n_columns != 1:
            got = f"Got a background of {request.background.n_columns} columns"
            raise InputError(f"{type(step).__name__} takes one column of texts", got, "Pass that column: X[['text']]")
        return 1
    if sklearn_name(step) in ("DictVectorizer", "FeatureHasher"):
        raise UnsupportedStructureError(
            f"{type(step).__name__} takes dicts, and players are columns",
            do="Explain a function of frames: explain(lambda rows: pipeline.predict(rows.to_dict('records')), X, background)",
        )
    if hasattr(step, "n_features_in_"):
        return int(step.n_features_in_)
    if hasattr(step, "feature_names_in_"):
        return len(step.feature_names_in_)
    # scikit-learn's own steps know their columns once they are fitted: this one is not.
    if library_class(step, "sklearn") is step.__class__ or request.background is None:
        require_fitted(step, "n_features_in_")
    assert request.background is not None
    return request.background.n_columns


def _transformed(step: Model, rows: TableLike, what: str) -> TableLike:
    try:
        return step.transform(rows)
    except (ValueError, TypeError) as error:
        do = "Pass rows like those of the fit"
        raise InputError(f"The step {type(step).__name__} refuses the {what}", f"{error}", do) from error


def _after(step: Model, rows: Table) -> Table:
    """Return rows of the background after a step. It may change what it is given."""
    given = rows.copy()
    native = given.column(0) if takes_texts(step) else given.native
    return as_table(_transformed(step, native, "background"), what="transformed background")


def _hands_on(model: Model, call: OwnCall) -> bool:
    """Say whether a model has its last step's call: not naive Bayes' joint log-likelihood, and settings in pipelines only."""
    return hasattr(model, call.method) and (not call.settings or hasattr(model, "steps"))


def _whole(step: Model) -> Model:
    """Return the step of the pipeline that ``step`` is the first part of."""
    return step.step if isinstance(step, BeforeMaps) else step


class PipelineReader(TransformedReader):
    """Explain a pipeline by its inner reader, with transformed columns grouped by input column."""

    def __init__(self, model: Model, front: list[Any], tail: list[Any], request: Request) -> None:
        self.front, self.tail = front, tail
        own = [_whole(step) for step in front]
        fitted, n_columns = fitted_names(own[0]), _n_columns(own[0], request)
        model_name = " + ".join(type(step).__name__ for step in (*own, *tail))
        columns, background = Columns.of(request, fitted, n_columns, model_name), request.background
        follow, owners, maps = self._owners(columns, background)
        self._owners_seen = owners if follow.seen else None
        self._has_unknown = any(map(is_unknown, own))
        if follow.seen and background is not None and background.n_rows > TRIED_ROWS:
            require_background_apart(self.rows, background, columns.players, owners)
        read_inner, names = functools.partial(_read_tail, [*maps, *tail]), {"model_name": model_name, "fitted_names": fitted}
        super().__init__(read_inner, request, columns, owners, background, model=model, **names)
        call = self.traits.own_call
        if call is not None and not _hands_on(model, call):
            self.traits = replace(self.traits, own_call=None)

    def _owners(self, columns: Columns, background: Table | None) -> tuple[ColumnOwners, np.ndarray, list[MapsSideBySide]]:
        """Return each transformed column's input column, how it was traced, and maps."""
        owners = np.arange(len(columns.names))
        follow = ColumnOwners(player_of_columns(columns.players, len(owners)).tolist(), columns.names)
        rows = None if background is None else background.take(slice(0, TRIED_ROWS))
        maps = []
        for step in self.front:
            after = None
            if rows is not None:
                # First, so that what a step inside refuses is said of the background
                after = _after(step, rows)
                if is_unknown(_whole(step)):
                    require_rows_apart(type(_whole(step)).__name__, functools.partial(_after, step), rows, after)
            if isinstance(step, BeforeMaps):
                owners, block = step.owners(follow, owners, rows)
                maps.append(block)
            else:
                owners = follow.after(step, owners, rows)
            rows = after
        return follow, owners, maps

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        # What was only seen on background rows is tried on explained rows as well; known steps need no trial.
        if self._owners_seen is not None and self.traits.background is not None:
            require_apart(self.rows, X, self.traits.background, self.traits.players, self._owners_seen)
        elif self._has_unknown and X.n_rows > 1:
            few = X.take(slice(0, RETRIED_ROWS))
            require_rows_apart("the pipeline", self.rows, few, self.rows(few))
        return super().solve(X, semivalue, order)

    def rows(self, X: Table) -> Table:
        """Return the rows as the earlier steps transform them; sparse ones stay sparse."""
        rows = self._readable(X)
        for step in self.front:
            rows = _transformed(step, rows, "rows")
        return as_table(rows, what="transformed X", allow_empty=True)

    def _readable(self, X: Table) -> Any:
        """Return the rows for the first step: a copy where a step writes to them, the column itself where it takes texts."""
        if takes_texts(self.front[0]):
            return X.column(0)
        return (X.copy() if any(map(writes_to_rows, self.front)) else X).native

    def predict(self, X: Table) -> np.ndarray:
        """Return the prediction of the pipeline; of its last step if no method of the pipeline returns the value."""
        if self.traits.own_call is not None:
            return self.traits.own_call(self.traits.model, self._readable(X))
        rows = self.rows(X)
        self._require_own_rows(X, rows)
        return self.inner.predict(rows)

    def _require_own_rows(self, X: Table, rows: Table) -> None:
        """Compare the pipeline's predictions with its last steps' for our transformed rows."""
        if any(isinstance(step, BeforeMaps) for step in self.front):  # rows that no step of the pipeline takes
            return
        # A Gaussian process of pairs of classes has a predict_proba that only raises
        chances = hasattr(self.traits.model, "predict_proba") and getattr(self.tail[-1], "multi_class", "") != "one_vs_one"
        method = "predict_proba" if chances else "predict"
        last = self.tail[0] if len(self.tail) == 1 else make_pipeline(*self.tail)
        own, ours = getattr(self.traits.model, method)(self._readable(X)), getattr(last, method)(rows.native)
        if method == "predict_proba":  # of several targets a list
            own, ours = joined_outputs(own), joined_outputs(ours)
        if not same_cells(np.asarray(ours), np.asarray(own)).all():
            got = f"Its {method} answers otherwise than {type(self.tail[-1]).__name__}.{method} for its transformed rows"
            do = "Explain its last step: Explainer(pipeline[-1], pipeline[:-1].transform(background))"
            raise ExactnessError("The pipeline transforms rows otherwise inside its prediction", got, do)


# -- maps of some columns in front of a linear model: those in a ColumnTransformer or FeatureUnion ---------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """Hold the column-wise steps of one part, selections of columns included, and the maps that follow."""

    before: list[Any]
    maps: list[Any]


@dataclass(frozen=True, eq=False)
class BeforeMaps:
    """Apply a ColumnTransformer or FeatureUnion up to its maps. ``transform`` returns their input."""

    step: Model
    parts: Sequence[_Part]

    def get_params(self) -> dict[str, Any]:
        return dict(self.step.get_params())

    def transform(self, rows: TableLike) -> np.ndarray:
        made = (functools.reduce(table_after, part.before, as_table(rows)).native for part in self.parts)
        return np.concatenate([np.asarray(own.toarray() if hasattr(own, "toarray") else own, float) for own in made], axis=1)

    def owners(self, follow: ColumnOwners, owners: np.ndarray, rows: Table | None) -> tuple[np.ndarray, MapsSideBySide]:
        """Return the input column of each transformed column, and their maps."""
        after = [follow.after_chain(part.before, owners, rows, is_whole=not part.maps) for part in self.parts]
        blocks = [(part.maps, len(own)) for part, own in zip(self.parts, after, strict=True)]
        return np.concatenate(after), MapsSideBySide(blocks)


def maps_side_by_side(steps: Sequence[Any]) -> tuple[int, BeforeMaps] | None:
    """Return the place of the step that holds maps, and what is before them. None without a linear model behind it."""
    for place, step in enumerate(steps[:-1]):
        if sklearn_name(step) in ("ColumnTransformer", "FeatureUnion"):
            parts = [_part(chain) for chain in all_chains_of(step)]
            if any(is_map(part.maps[0]) for part in parts if part.maps) and is_projection(
                [MapsSideBySide(()), *steps[place + 1 :]]
            ):
                return place, BeforeMaps(step, parts)
    return None


def _part(chain: list[Any]) -> _Part:
    """Split a chain of steps at the first of its maps, or weights, that only affine steps follow."""
    for place, step in enumerate(chain):
        if (is_map(step) or isinstance(step, Weight)) and all(map(is_affine, chain[place + 1 :])):
            return _Part(chain[:place], chain[place:])
    return _Part(chain, [])
