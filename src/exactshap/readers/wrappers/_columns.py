"""Which input column each output column of a preprocessing step is made from, for steps that never mix columns."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.errors import UnsupportedStructureError, message
from exactshap.readers import library_class, sklearn_name

__all__ = ["column_owners"]

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
_TOKEN = re.compile(r"xqcol(\d{7})")


def column_owners(step: Any, n_columns: int) -> np.ndarray:
    """Return the number of the input column that each output column of a fitted step depends on.

    Raises UnsupportedStructureError, naming the step, for steps that mix columns (PCA, k-nearest-neighbour imputation,
    row normalisation) or that are not known to be column-wise.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return np.arange(n_columns)
    name = sklearn_name(step)
    if name in _STRUCTURES:
        return _STRUCTURES[name](step, n_columns)
    known = library_class(step, "sklearn")
    if name and known is not None and known.__module__.startswith("sklearn.feature_selection") and hasattr(step, "get_support"):
        return np.flatnonzero(step.get_support())
    if name in _BY_NAME:
        return _owners_by_name(step, n_columns)
    raise UnsupportedStructureError(
        message(
            f"The step {type(step).__name__} is not known to work column by column",
            "Its output columns may mix input columns, so that input columns cannot be players exactly",
            "Explain after it: Explainer(pipeline[-1], background=pipeline[:-1].transform(background)), or sample with Explainer(pipeline.predict, background), of a classifier pipeline.predict_proba",
        )
    )


def _owners_by_name(step: Any, n_columns: int) -> np.ndarray:
    anonymous = copy.copy(step)
    if hasattr(anonymous, "feature_names_in_"):
        del anonymous.feature_names_in_
    if hasattr(anonymous, "feature_name_combiner"):
        anonymous.feature_name_combiner = "concat"  # the user's own may leave out the column
    names = anonymous.get_feature_names_out([f"xqcol{j:07d}" for j in range(n_columns)])
    return np.array([int(_TOKEN.search(name).group(1)) for name in names], int)  # type: ignore[union-attr]


def _pipeline(step: Any, n_columns: int) -> np.ndarray:
    owners = np.arange(n_columns)
    for _, part in step.steps:
        owners = owners[column_owners(part, len(owners))]
    return owners


def _column_transformer(step: Any, n_columns: int) -> np.ndarray:
    owners = np.empty(sum(part.stop - part.start for part in step.output_indices_.values()), int)
    for name, part, _ in step.transformers_:
        columns = np.asarray(step._transformer_to_input_indices[name], int)
        place = step.output_indices_[name]
        if part == "drop" or place.stop == place.start:
            continue
        single = len(columns) == 1  # whatever a step makes of one column is made of that one
        owners[place] = columns[0] if single else columns[column_owners(part, len(columns))]
    return owners


def _feature_union(step: Any, n_columns: int) -> np.ndarray:
    parts = [part for _, part in step.transformer_list if part not in ("drop", None)]
    return np.concatenate([column_owners(part, n_columns) for part in parts])


def _function(step: Any, n_columns: int) -> np.ndarray:
    if step.func is None or isinstance(step.func, np.ufunc):
        return np.arange(n_columns)
    raise UnsupportedStructureError(
        message(
            f"FunctionTransformer({getattr(step.func, '__name__', step.func)!s}) may mix columns",
            "Only NumPy's elementwise functions (ufuncs) are known not to",
            "Use a ufunc such as np.log1p, or give it one column at a time in a ColumnTransformer",
        )
    )


_STRUCTURES: dict[str, Callable[[Any, int], np.ndarray]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "FunctionTransformer": _function,
}
