"""Which input column each output column of a preprocessing step is made from.

Steps of scikit-learn are known. Of others, the names of their output columns say which column each is made from, and transforming
a few rows of the background, with one column changed at a time, shows whether that is so.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import UnsupportedStructureError, message
from exactshap.frames import Table, as_table
from exactshap.readers import library_class, sklearn_name

__all__ = ["TRIED_ROWS", "ColumnOwners", "readable", "reads_texts", "takes_texts"]

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
# Background rows on which a step that is not known is tried.
TRIED_ROWS = 32
_TOKEN = re.compile(r"xqcol(\d{7})")


@dataclass(frozen=True, eq=False)
class ColumnOwners:
    """Follows input columns through fitted steps.

    Parameters
    ----------
    players : sequence of int
        The player of each input column: a step may mix columns of one player.
    names : sequence of str
        Of the input columns, for messages.
    """

    players: Sequence[int]
    names: Sequence[str]

    def after(self, step: Model, owners: np.ndarray, rows: Table | None) -> np.ndarray:
        """Return the input column that each output column of ``step`` depends on: of a mixed one, the first of its player.

        Parameters
        ----------
        step : transformer, "passthrough" or None
        owners : int array of shape (n_step_inputs,)
            The input column that each column before the step depends on.
        rows : Table or None
            A few rows as the step takes them.
        """
        if step is None or (isinstance(step, str) and step == "passthrough"):
            return owners
        name = sklearn_name(step)
        if name == "Pipeline":
            return self._after_pipeline(step, owners, rows)
        if name == "ColumnTransformer":
            return self._after_columns(step, owners, rows)
        if name == "FeatureUnion":
            parts = [part for _, part in step.transformer_list if part not in ("drop", None)]
            return np.concatenate([self.after(part, owners, rows) for part in parts])
        if len({self.players[column] for column in owners}) == 1:
            return np.full(_n_outputs(step, rows), owners[0])
        if name == "FunctionTransformer":
            _refuse_functions(step)
            return owners
        return owners[self._inputs_of_outputs(step, name, len(owners), rows)]

    def _inputs_of_outputs(self, step: Model, name: str, n_columns: int, rows: Table | None) -> np.ndarray:
        known = library_class(step, "sklearn")
        if (
            name
            and known is not None
            and known.__module__.startswith("sklearn.feature_selection")
            and hasattr(step, "get_support")
        ):
            return np.flatnonzero(step.get_support())
        if name in _BY_NAME:
            return _owners_by_name(step, n_columns)
        is_sklearns = type(step).__module__.startswith("sklearn.")
        inputs = None if is_sklearns else _inputs_by_prefix(step, n_columns)
        if inputs is None:
            raise self._mixing(step)
        if rows is not None:
            if not _acts_on_columns_apart(step, inputs, rows):
                raise self._mixing(step)
        elif library_class(step, "category_encoders") is None:
            raise UnsupportedStructureError(
                message(
                    f"Whether {type(step).__name__} treats columns apart can only be seen on rows",
                    "Got no background",
                    "Pass background=X_reference",
                )
            )
        return inputs

    def _mixing(self, step: Model) -> UnsupportedStructureError:
        return UnsupportedStructureError(
            message(
                f"The step {type(step).__name__} is not known to work column by column",
                "Its output columns may mix input columns, so that input columns cannot be players exactly",
                "Make the columns that it mixes one player with groups=; explain after it: Explainer(pipeline[-1], "
                "background=pipeline[:-1].transform(background)); or sample with Explainer(pipeline.predict, background), "
                "of a classifier pipeline.predict_proba",
            )
        )

    def _after_pipeline(self, step: Model, owners: np.ndarray, rows: Table | None) -> np.ndarray:
        for _, part in step.steps:
            owners = self.after(part, owners, rows)
            rows = rows if rows is None or part in ("passthrough", None) else as_table(part.transform(rows.native))
        return owners

    def _after_columns(self, step: Model, owners: np.ndarray, rows: Table | None) -> np.ndarray:
        after = np.empty(sum(part.stop - part.start for part in step.output_indices_.values()), int)
        for name, part, _ in step.transformers_:
            columns = np.asarray(step._transformer_to_input_indices[name], int)
            place = step.output_indices_[name]
            if (isinstance(part, str) and part == "drop") or place.stop == place.start:
                continue
            if len({self.players[column] for column in owners[columns]}) == 1:  # whatever a step makes of them
                after[place] = owners[columns[0]]
            else:
                after[place] = self.after(part, owners[columns], None if rows is None else rows.select(columns.tolist()))
        return after


def takes_texts(step: Model) -> bool:
    """Say whether a step takes a column of texts: scikit-learn's vectorizers, which hold no number of features when they are fitted."""
    known = library_class(step, "sklearn")
    return known is not None and known.__module__ == "sklearn.feature_extraction.text" and known.__name__ != "TfidfTransformer"


def readable(model: Model, X: Table) -> TableLike:
    """Return rows as a fitted model takes them: a column of texts where that is what its first step takes."""
    return X.column(0) if reads_texts(model) else X.native


def reads_texts(model: Model) -> bool:
    """Say whether a model, or the first of those inside it, takes a column of texts."""
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
                message(
                    f"{type(step).__name__} does not say how many columns it makes",
                    "Got no background to see it on",
                    "Pass background=X_reference",
                )
            ) from None
        return as_table(step.transform(rows.column(0) if takes_texts(step) else rows.native)).n_columns


def _inputs_by_prefix(step: Model, n_columns: int) -> np.ndarray | None:
    """Return each output's input by its name, or None.

    The name begins with the input's ("town_1" of "town"); None where the names do not say.
    """
    inputs = [str(name) for name in getattr(step, "feature_names_in_", ())]
    if len(inputs) != n_columns or not hasattr(step, "get_feature_names_out"):
        return None
    found = []
    for output in map(str, step.get_feature_names_out()):
        candidates = [j for j, name in enumerate(inputs) if output == name or output.startswith(f"{name}_")]
        if not candidates:
            return None
        found.append(max(candidates, key=lambda j: len(inputs[j])))
    return np.array(found, int)


def _acts_on_columns_apart(step: Model, inputs: np.ndarray, rows: Table) -> bool:
    """Return whether changing a column changes only its own outputs. ``inputs`` says which those are; some rows are tried."""
    some = rows.take(slice(0, TRIED_ROWS))
    before = _cells(step.transform(some.native))
    for j in range(some.n_columns):
        mask = np.arange(some.n_columns) != j
        for shift in (1, some.n_rows // 2):
            moved = some.hybrid(some.take(np.roll(np.arange(some.n_rows), shift)), mask)
            after = _cells(step.transform(moved.native))
            changed = ~np.all((before == after) | ((before != before) & (after != after)), axis=0)
            if np.any(inputs[changed] != j):
                return False
    return True


def _cells(rows: TableLike) -> np.ndarray:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, object)


def _refuse_functions(step: Model) -> None:
    if step.func is not None and not isinstance(step.func, np.ufunc):
        raise UnsupportedStructureError(
            message(
                f"FunctionTransformer({getattr(step.func, '__name__', step.func)!s}) may mix columns",
                "Only NumPy's elementwise functions (ufuncs) are known not to",
                "Use a ufunc such as np.log1p, or give it one column at a time in a ColumnTransformer",
            )
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
