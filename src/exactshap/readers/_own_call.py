"""The documented call that gives a model's own prediction, as data: a pipeline or a search answers the same call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactshap._runtime.types import Foreign, Model, TableLike
from exactshap.errors import InputTypeError, message
from exactshap.frames import Table, with_unique_index

__all__ = ["Offset", "OwnCall", "joined_outputs", "outputs_of"]


def outputs_of(chosen: list[int], single: bool, values: np.ndarray) -> np.ndarray:
    """Return the explained outputs of predictions (n_rows,) or (n_rows, n_model_outputs)."""
    values = values.reshape(len(values), -1)[:, chosen]
    return values[:, 0] if single else values


def joined_outputs(values: Foreign) -> np.ndarray:
    """Return predictions as one array: of several targets some classifiers answer a list, a table of class shares for each.

    >>> joined_outputs([[[0.25, 0.75]], [[1.0, 0.0]]])
    array([[0.25, 0.75, 1.  , 0.  ]])
    """
    if isinstance(values, list) and all(np.ndim(table) == 2 for table in values):
        return np.concatenate([np.asarray(table, float) for table in values], axis=1)
    return np.asarray(values, float)


def _unchanged(values: np.ndarray) -> np.ndarray:
    return values


@dataclass(frozen=True, eq=False)
class OwnCall:
    """Call a documented method of a model and shape its result. The result becomes the explained output.

    Parameters
    ----------
    settings : mapping, default={}
        Keyword arguments of the call, which scikit-learn's pipelines hand to their last step.
    finish : callable, default: unchanged
        ``finish(values) -> (n_rows,) or (n_rows, n_outputs)`` in the explained unit.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> model = SVR().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> OwnCall("predict")(model, [[0.0]]).shape
    (1,)
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[np.ndarray], np.ndarray] = _unchanged

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        """Return the prediction of ``model``, or of whatever wraps it. The rows are of the kind that it was fitted with."""
        try:
            values = getattr(model, self.method)(with_unique_index(rows), **self.settings)
        except (TypeError, ValueError) as error:
            if type(rows).__module__.startswith("scipy.sparse"):  # of a model that was fitted on dense rows
                raise InputTypeError(
                    message(f"{type(model).__name__} refuses sparse rows", f"{error}", "Pass X.toarray()")
                ) from error
            raise
        # A copy: some models return one array again and again
        return np.array(self.finish(joined_outputs(values)), float)

    def of_table(self, model: Model, X: Table) -> np.ndarray:
        """Return the same of a table."""
        return self(model, X.native)


@dataclass(frozen=True, eq=False)
class Offset:
    """How a model takes an offset of each row.

    Attributes
    ----------
    keyword : str or None
        Of the model's own call; None where it has none, so that the offset is added to its answer.
    replaces : float or array of shape (n_model_outputs,)
        What the model leaves out where an offset is given: XGBoost's base_score.
    """

    keyword: str | None = None
    replaces: np.ndarray | float = 0.0
