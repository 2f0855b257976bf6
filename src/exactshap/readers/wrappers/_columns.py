"""Trace each output column of a preprocessing step to its input column.

Steps of scikit-learn are known. Of others, and of functions, transforming rows of the background with one column changed at a time shows
which column each output is made from; names of outputs, where they say so, are held against that.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactshap._runtime.types import Foreign, Model, TableLike
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table, as_table
from exactshap.games import player_of_columns
from exactshap.readers import library_class, sklearn_name, writes_to_rows
from exactshap.readers.additive import Weight, is_selection

_BY_NAME = {  # the token of the input column can be read off get_feature_names_out
    "StandardScaler",
    "MinMaxScaler",
    "MaxAbsScaler",
    "RobustScaler",
    "PowerTransformer",
    "QuantileTransformer",
    "Binarizer",
    "OrdinalEncoder",
    "OneHotEncoder",
    "KBinsDiscretizer",
    "SplineTransformer",
    "SimpleImputer",
    "MissingIndicator",
    "TargetEncoder",
    "AdditiveChi2Sampler",
}
# Background rows on which a step that is not known is tried column by column, to see what each output is made of.
TRIED_ROWS = 256
MIXED_ROWS = 4096  # background rows that are mixed at a time, to see whether any of them shows more
# Relative difference of a step's numbers on equal cells: rows of one batch may be rounded in another order.
SAME = 1e-9
SAMPLE_PIPELINE = "sample with Explainer(pipeline.predict, background), of a classifier pipeline.predict_proba"
# A name that no user's column has, with digits of a fixed number: x1 would also be found in x10.
_TOKEN = re.compile(r"xqcol(\d{7})")


@dataclass(frozen=True, eq=False)
class ColumnOwners:
    """Follow input columns through fitted steps.

    Parameters
    ----------
    players : sequence of int
        The player of each input column: a step may mix columns of one player.
    names : sequence of str
        Of the input columns, for messages.
    seen : list of str
        Filled by ``after``: steps that were tried on rows.
    """

    players: Sequence[int]
    names: Sequence[str]
    seen: list[str] = field(default_factory=list)

    def after(self, step: Model, owners: np.ndarray, rows: Table | None) -> np.ndarray:
        """Return the input column that each output column of ``step`` depends on: of a mixed one, the first of its player.

        ``owners`` (n_step_inputs,) are those of the columns before the step, ``rows`` a few rows as the step takes them.
        """
        step, chains = unfrozen(step), chains_of(step)
        if chains != [[step]]:
            return np.concatenate([owners[:0], *(self.after_chain(chain, owners, rows) for chain in chains)])
        if isinstance(step, Weight):
            return owners
        name = sklearn_name(step)
        # Columns of one player may be mixed: whatever the step makes of them is that player's.
        if self._is_of_one(owners):
            return np.full(_n_outputs(step, rows), owners[0])
        # Ufuncs of numpy work cell by cell, so that no row need be tried.
        if name == "FunctionTransformer" and (step.func is None or isinstance(step.func, np.ufunc)):
            return owners
        return owners[self._inputs_of_outputs(step, name, len(owners), rows)]

    def after_chain(self, chain: Sequence[Any], owners: np.ndarray, rows: Table | None, *, is_whole: bool = True) -> np.ndarray:
        """Return the same for steps one after the other, some of which select columns; for their first ones if not whole."""
        for place, step in enumerate(chain):
            # Rows as this step takes them; it may write to them
            rows = rows if rows is None or not place else table_after(rows.copy(), chain[place - 1])
            owners = owners[step.columns] if isinstance(step, Selected) else self.after(step, owners, rows)
            # Whatever a step makes of the columns of one player is that player's.
            if isinstance(step, Selected) and is_whole and self._is_of_one(owners):
                return np.full(step.n_outputs, owners[0])
        return owners

    def _is_of_one(self, owners: np.ndarray) -> bool:
        return len({self.players[column] for column in owners}) == 1

    def _inputs_of_outputs(self, step: Model, name: str, n_columns: int, rows: Table | None) -> np.ndarray:
        if is_selection(step):
            return np.flatnonzero(step.get_support())
        if name in _BY_NAME:
            return _owners_by_name(step, n_columns)
        # What is left of scikit-learn mixes columns (projections, polynomials, distances): a trial could only seem to deny it.
        if type(step).__module__.startswith("sklearn.") and name != "FunctionTransformer":
            raise self._mixing(step)
        inputs = None if name == "FunctionTransformer" else _inputs_by_prefix(step, n_columns)
        if rows is None:
            # Names of category_encoders begin with their input column, and are trusted where no row can show it.
            if inputs is not None and library_class(step, "category_encoders") is not None:
                return inputs
            raise UnsupportedStructureError(
                f"{_called(step)} needs rows to show that it works column by column",
                "Got no background",
                "Pass background=X_reference",
            )
        changed = _changed_outputs(step, rows)
        self.seen.append(_called(step))
        # Names and trial agree: no output changed with a column other than the one it is named after.
        if inputs is not None and not np.any(changed & (inputs != np.arange(n_columns)[:, None])):
            return inputs
        if inputs is not None or np.any(changed.sum(axis=0) > 1):
            raise self._mixing(step)
        if changed.shape == (n_columns, n_columns) and not np.any(changed & ~np.eye(n_columns, dtype=bool)):
            # One output for each column, also for columns that are constant here.
            return np.arange(n_columns)
        # An output that never changed may still depend on any column: its owner would be a guess.
        if not np.all(changed.any(axis=0)):
            raise _unseen(step, np.flatnonzero(~changed.any(axis=0)))
        return changed.argmax(axis=0)

    def _mixing(self, step: Model) -> UnsupportedStructureError:
        return UnsupportedStructureError(
            f"The step {_called(step)} is not known to work column by column",
            "Its output columns may mix input columns, which then cannot be players exactly",
            "Join the columns that it mixes into one player with groups=; explain after it: Explainer(pipeline[-1], "
            f"background=pipeline[:-1].transform(background)); or {SAMPLE_PIPELINE}",
        )


# -- steps that join others -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Selected:
    """Select columns of a table, as a ColumnTransformer does for each of its steps."""

    columns: list[int]
    n_outputs: int  # of the steps that follow


def chains_of(step: Model) -> list[list[Any]]:
    """Return the chains of steps that a step joins. Its outputs are theirs, one chain after the other; a single step is its own."""
    step = unfrozen(step)
    name = sklearn_name(step)
    if step is None or _is(step, "passthrough"):
        return [[]]
    if name == "Pipeline":
        return [flat_steps(step)]
    if name == "FeatureUnion":
        parts = [(name, part) for name, part in step.transformer_list if part is not None and not _is(part, "drop")]
        return [[part, *_weight(step, name)] for name, part in parts]
    if name == "ColumnTransformer":
        # Private, but it holds selections by name, mask and callable as numbers.
        indices = {name: list(map(int, columns)) for name, columns in step._transformer_to_input_indices.items()}
        widths = {name: place.stop - place.start for name, place in step.output_indices_.items()}
        parts = [(name, part) for name, part, _ in step.transformers_ if not _is(part, "drop") and widths[name]]
        return [[Selected(indices[name], widths[name]), part, *_weight(step, name)] for name, part in parts]
    return [[step]]


def all_chains_of(step: Model) -> list[list[Any]]:
    """Return the same with the last step of each chain taken apart, too."""
    found = []
    for chain in chains_of(step):
        weight = [part for part in chain[-1:] if isinstance(part, Weight)]
        *before, last = chain[: len(chain) - len(weight)] or [None]
        is_apart = last is None or last is unfrozen(step)
        found += [chain] if is_apart else [[*before, *inner, *weight] for inner in all_chains_of(last)]
    return found


def _weight(step: Model, part: str) -> list[Weight]:
    """Return the factor of a part's outputs, if it has one."""
    weights = step.transformer_weights or {}
    return [Weight(float(weights[part]))] if part in weights else []


def _is(part: Any, word: str) -> bool:
    return isinstance(part, str) and part == word


def table_after(table: Table, step: Any) -> Table:
    """Return a table after a step, or a selection of its columns."""
    if isinstance(step, Selected):
        return table.select(step.columns)
    return as_table(step.transform(table.column(0) if takes_texts(step) else table.native), what="transformed rows")


def unfrozen(step: Model) -> Model:
    """Return the estimator in a ``FrozenEstimator``, which does what it does; others as they are."""
    while sklearn_name(step) == "FrozenEstimator":
        step = step.estimator
    return step


def flat_steps(pipeline: Model) -> list[Any]:
    """Return the steps of a prediction, with those of nested pipelines."""
    steps: list[Any] = []
    for _, step in pipeline.steps:
        step = unfrozen(step)
        if sklearn_name(step) == "Pipeline" or any(cls.__module__ == "imblearn.pipeline" for cls in type(step).__mro__):
            steps += flat_steps(step)
        elif step is not None and not isinstance(step, str) and not hasattr(step, "fit_resample"):
            # Samplers of imbalanced-learn are left out: they change the training rows only.
            steps.append(step)
    return steps


def is_unknown(step: Model) -> bool:
    """Say whether a step may use other rows than the one that it transforms: a function, or another library's."""
    step, chains = unfrozen(step), chains_of(step)
    if chains != [[step]]:
        return any(is_unknown(part) for chain in chains for part in chain)
    if sklearn_name(step) == "FunctionTransformer":
        return step.func is not None and not isinstance(step.func, np.ufunc)
    return not isinstance(step, Selected | Weight) and not type(step).__module__.startswith("sklearn.")


def takes_texts(step: Model) -> bool:
    """Say whether a step takes a column of texts: scikit-learn's vectorizers, which hold no number of features when they are fitted."""
    known = library_class(step, "sklearn")
    return known is not None and known.__module__ == "sklearn.feature_extraction.text" and known.__name__ != "TfidfTransformer"


def readable(model: Model, X: Table) -> TableLike:
    """Return rows as a fitted model takes them: a column of texts if its first step takes that, a copy if a step writes to them."""
    if reads_texts(model):
        return X.column(0)
    return (X.copy() if writes_to_rows(model) else X).native


def without_names(X: Table, fitted: Model) -> Table:
    """Return a frame as an array where a fitted model knows no names of columns; other rows as they are."""
    if not X.is_frame or hasattr(fitted, "feature_names_in_"):
        return X
    return Table(X.numeric(categories=True), None, X.n_rows, X.n_columns)


def reads_texts(model: Model) -> bool:
    """Say whether a model or the first inside it takes a column of texts."""
    if hasattr(model, "steps"):
        return bool(model.steps) and reads_texts(model.steps[0][1])
    for name in ("best_estimator_", "regressor_", "estimator_", "estimators_"):
        if (held := getattr(model, name, None)) is not None and not isinstance(held, np.ndarray):
            return reads_texts(held[0] if isinstance(held, list) else held)
    return takes_texts(model)


def _n_outputs(step: Model, rows: Table | None) -> int:
    try:
        return len(step.get_feature_names_out())
    except (AttributeError, ValueError, TypeError):
        if rows is None:
            raise UnsupportedStructureError(
                f"{type(step).__name__} does not say how many columns it makes",
                "Got no background to try it on",
                "Pass background=X_reference",
            ) from None
        return as_table(step.transform(rows.column(0) if takes_texts(step) else rows.native)).n_columns


def _inputs_by_prefix(step: Model, n_columns: int) -> np.ndarray | None:
    """Return each output's input, with which its name begins ("town_1" of "town"); None where the names do not say."""
    inputs = [str(name) for name in getattr(step, "feature_names_in_", ())]
    if len(inputs) != n_columns or not hasattr(step, "get_feature_names_out"):
        return None
    found = []
    for output in map(str, step.get_feature_names_out()):
        candidates = [j for j, name in enumerate(inputs) if output == name or output.startswith(f"{name}_")]
        if not candidates:
            return None
        # The longest name: "town_hall_1" is made of "town_hall", not of "town".
        found.append(max(candidates, key=lambda j: len(inputs[j])))
    return np.array(found, int)


def _changed_outputs(step: Model, rows: Table) -> np.ndarray:
    """Return which outputs change with which column, (n_columns, n_outputs)."""
    before = _cells(step.transform(rows.native))
    if before.ndim != 2:
        made = f"Got {before.ndim} dimension{'' if before.ndim == 1 else 's'}"
        raise UnsupportedStructureError(f"{_called(step)} makes no table of columns", made, f"S{SAMPLE_PIPELINE[1:]}")
    require_rows_apart(_called(step), lambda some: step.transform(some.native), rows, before)
    changed = np.zeros((rows.n_columns, before.shape[1]), bool)
    for j in range(rows.n_columns):
        mask = np.arange(rows.n_columns) != j
        # Neighbours are often alike (sorted rows): cells also come from rows that are far away.
        for shift in {1, rows.n_rows // 3, rows.n_rows // 2}:
            moved = rows.hybrid(rows.take(np.roll(np.arange(rows.n_rows), shift)), mask)
            after = _cells(step.transform(moved.native))
            # NaN differs from itself, and NaN in both places is no change.
            changed[j] |= ~np.all((before == after) | ((before != before) & (after != after)), axis=0)
    return changed


def require_rows_apart(name: str, transform: Callable[[Table], Foreign], rows: Table, transformed: Foreign) -> None:
    """Refuse a step that drops rows, or mixes them."""
    n, cells = rows.n_rows, _cells(transformed)

    def is_same(trial: np.ndarray) -> bool:
        alone, expected = _cells(transform(rows.take(trial))), cells[trial]
        return alone.shape == expected.shape and bool(same_cells(alone, expected, cells).all())

    # One row alone has one value only, which batches of many rows do not show: a function may number the values that it meets.
    trials = [np.arange(1, n, 2), np.array([0]), np.array([n - 1])] if n > 1 else []
    if len(cells) != n or not all(map(is_same, trials)):
        raise UnsupportedStructureError(
            f"{name} transforms a row differently when other rows come with it",
            "Every second row alone, or one alone, gave other numbers, or rows were dropped",
            "Compute what it needs from other rows in fit, and use that in transform; fix the seed of a step that draws",
        )


def require_apart(
    transform: Callable[[Table], Table], X: Table, background: Table, players: Sequence[Sequence[int]], owners: np.ndarray
) -> None:
    """Check on the explained rows what a trial on the background showed.

    Each row is mixed with one of the background, and up to TRIED_ROWS of the background with one of the rows.
    """
    cells = _cells(transform(X))
    require_rows_apart("the pipeline", transform, X, cells)
    pairs = np.arange(max(X.n_rows, min(background.n_rows, TRIED_ROWS)))
    numbers, places = pairs % background.n_rows, pairs % X.n_rows
    pair = _mixed_pair(transform, X.take(places), cells[places], background.take(numbers), players, owners)
    if pair is not None:
        shown = f"Row {places[pair[0]]} mixed with background row {numbers[pair[0]]} shows it; the background rows alone do not"
        raise _mixed(pair[1], shown)


def require_background_apart(
    transform: Callable[[Table], Table], background: Table, players: Sequence[Sequence[int]], owners: np.ndarray
) -> None:
    """Check on the whole background what a trial on its first rows showed; each is mixed with three others."""
    n = background.n_rows
    for start in range(0, n, MIXED_ROWS):
        places = np.arange(start, min(start + MIXED_ROWS, n))
        own = background.take(places)
        cells = _cells(transform(own))
        require_rows_apart("the pipeline", transform, own, cells)
        for shift in sorted({1, n // 3, n // 2}):
            numbers = (places + shift) % n
            pair = _mixed_pair(transform, own, cells, background.take(numbers), players, owners)
            if pair is not None:
                first, second = places[pair[0]], numbers[pair[0]]
                raise _mixed(pair[1], f"Background row {first} mixed with background row {second} shows it")


def _mixed_pair(
    transform: Callable[[Table], Table],
    own: Table,
    inside: np.ndarray,
    other: Table,
    players: Sequence[Sequence[int]],
    owners: np.ndarray,
) -> tuple[int, int] | None:
    """Return the first pair of rows and output that mix players; ``inside`` are the cells of ``own``.

    Every two players are apart in one of about 2 log2(d) mixes, with either of them from ``own``: the outputs of players from there must
    be those of ``own``, the others those of ``other``.
    """
    outside, player_of = _cells(transform(other)), player_of_columns(players, own.n_columns)
    # Two players differ in some bit of their numbers: the mixes by each bit set every two of them apart.
    for bit in range(max(len(players) - 1, 1).bit_length()):
        for side in (0, 1):
            mask = (player_of >> bit) % 2 == side
            expected = np.where(mask[owners], inside, outside)
            wrong = ~same_cells(_cells(transform(own.hybrid(other, mask))), expected)
            if wrong.any():
                pair, output = np.argwhere(wrong)[0]
                return int(pair), int(output)
    return None


def _mixed(output: int, shown: str) -> UnsupportedStructureError:
    return UnsupportedStructureError(
        f"Output {output} of the steps before the model is not made from one column alone",
        shown,
        f"Join the columns that are mixed into one player with groups=; or {SAMPLE_PIPELINE}",
    )


def same_cells(cells: np.ndarray, expected: np.ndarray, batch: np.ndarray | None = None) -> np.ndarray:
    """Return which cells are the same: numbers but for rounding of their columns in a batch, others as they are."""
    try:
        numbers = (expected if batch is None else batch).astype(float)
        # A number that is small among those of its column may be what large ones left, rounded in another order
        size = np.abs(np.where(np.isfinite(numbers), numbers, 0.0)).max(axis=0, initial=0.0)
        return np.isclose(cells.astype(float), expected.astype(float), rtol=SAME, atol=SAME * size, equal_nan=True)
    except (TypeError, ValueError):  # texts and dates
        return (cells == expected) | ((cells != cells) & (expected != expected))


def _cells(rows: Foreign) -> np.ndarray:
    rows = rows.native if isinstance(rows, Table) else rows
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, object)


def _called(step: Model) -> str:
    """Return a step's name, with its function if it has one."""
    name = type(step).__name__
    return f"{name}({getattr(step.func, '__name__', step.func)!s})" if name == "FunctionTransformer" else name


def _unseen(step: Model, places: np.ndarray) -> UnsupportedStructureError:
    return UnsupportedStructureError(
        f"The input column of output {int(places[0])} of {_called(step)} cannot be determined",
        "The output is the same whichever column of the background changes",
        f"Pass a background of many different rows, give the step one column at a time in a ColumnTransformer, or {SAMPLE_PIPELINE}",
    )


def _owners_by_name(step: Model, n_columns: int) -> np.ndarray:
    anonymous = copy.copy(step)
    if hasattr(anonymous, "feature_names_in_"):
        del anonymous.feature_names_in_
    if hasattr(anonymous, "feature_name_combiner"):
        # The user's own may leave out the column
        anonymous.feature_name_combiner = "concat"
    names = anonymous.get_feature_names_out([f"xqcol{j:07d}" for j in range(n_columns)])
    return np.array([int(_TOKEN.search(name).group(1)) for name in names], int)  # type: ignore[union-attr]
