"""Explanations in the forms of other libraries: frames, shap and shapiq."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.optional import FRAME_LIBRARIES, INSTALL_FRAMES, first_installed, require
from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, InputTypeError, MissingDependencyError, UnknownNameError, did_you_mean, message
from exactshap.results.data._cells import cells
from exactshap.results.data._names_elsewhere import SHAPIQ_NAMES

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

__all__ = ["frame_kind", "shap_of_columns", "to_frame", "to_shap", "to_shapiq"]


def frame_kind(data: TableLike) -> str | None:
    """Return which of three frame libraries a table comes from, or None. None for arrays.

    >>> frame_kind([[1.0]]) is None
    True
    """
    root = type(data).__module__.partition(".")[0]
    return root if root in FRAME_LIBRARIES else None


def to_frame(explanation: ExplanationData, kind: str | None) -> Any:
    """Return the values as a frame; see :meth:`Explanation.to_frame`."""
    if kind is not None and kind not in FRAME_LIBRARIES:
        raise UnknownNameError(message(f"Unknown kind of frame {kind!r}", do=did_you_mean(kind, FRAME_LIBRARIES)))
    kind = kind or frame_kind(explanation.data) or first_installed(FRAME_LIBRARIES)
    if kind is None:
        raise MissingDependencyError(message("A frame needs pandas, polars or pyarrow", do=INSTALL_FRAMES))
    columns = _columns(explanation)
    library = require(kind, "frames", purpose=f"A {kind} frame")
    if kind == "pandas":
        index = explanation.data.index if frame_kind(explanation.data) == "pandas" else None
        return library.DataFrame(columns, index=index, columns=list(columns))
    return library.DataFrame(columns) if kind == "polars" else library.table(columns)


def _columns(explanation: ExplanationData) -> dict[str, np.ndarray]:
    values = explanation.values if explanation.set_values is None else explanation.set_values
    players = [" & ".join(explanation.feature_names[j] for j in players) for players in explanation.sets or ()]
    if explanation.output_names is None:
        named = [(name, values[:, j]) for j, name in enumerate(players)]
    else:
        named = [
            (f"{name}[{output}]", values[:, j, k])
            for j, name in enumerate(players)
            for k, output in enumerate(explanation.output_names)
        ]
    columns = {name: np.ascontiguousarray(column) for name, column in named}
    if len(columns) != len(named):
        raise InputError(message("Two columns of the frame would have the same name", do="Rename the features or outputs"))
    return columns


def to_shap(explanation: ExplanationData) -> Any:
    """Return the values as a real ``shap.Explanation``; see :meth:`Explanation.to_shap`."""
    if explanation.order > 2:
        got = f"This explanation has sets of up to {explanation.order}"
        raise InputError(message("shap knows single columns and pairs", got, "Use to_shapiq(i), or explain with order=2"))
    if explanation.order == 1:
        return shap_of_columns(explanation)
    return _shap_explanation(explanation, _halved_pairs(explanation.interactions), None)


def shap_of_columns(explanation: ExplanationData) -> Any:
    """Return an explanation's order-1 values as a ``shap.Explanation``.

    The explanation may be of any order: this is what shap draws.
    """
    error = None if explanation.std_error is None else explanation.std_error.copy()
    return _shap_explanation(explanation, explanation.values.copy(), error)


def _shap_explanation(explanation: ExplanationData, values: np.ndarray, error: np.ndarray | None) -> Any:
    shap = require("shap", "plots", purpose="Converting to shap")
    content = cells(explanation)
    kind = frame_kind(explanation.data)
    return shap.Explanation(
        values=values,
        base_values=explanation.baseline.copy(),
        data=None if content is None else content.numbers,
        display_data=None if content is None or not content.text.any() else content.display,
        feature_names=list(explanation.feature_names),
        output_names=None if explanation.output_names is None else list(explanation.output_names),
        instance_names=[str(label) for label in explanation.data.index] if kind == "pandas" else None,
        error_std=error,
        compute_time=explanation.seconds,
    )


def _halved_pairs(interactions: np.ndarray) -> np.ndarray:
    """Return shap's matrices (n_rows, d, d[, n_outputs]): half of a pair's value on either side of the diagonal."""
    halved = interactions / 2.0
    singles = np.arange(halved.shape[1])
    halved[:, singles, singles] = interactions[:, singles, singles]
    return halved


def to_shapiq(explanation: ExplanationData, i: int | None, output: int | str) -> Any:
    """Return one row and one output as ``shapiq.InteractionValues``; see :meth:`Explanation.to_shapiq`."""
    if i is None:
        n_rows = len(explanation.values)
        got = f"This explanation has {n_rows}: to_shapiq(0) is the first"
        raise InputTypeError(message("shapiq holds one row at a time", got, "Pass the number of the row"))
    row = explanation.output(output)[i]
    index = SHAPIQ_NAMES.get((row.index, row.order == 1))
    if index is None:
        known = sorted({name for name, first in SHAPIQ_NAMES if first == (row.order == 1)})
        raise UnknownNameError(
            message(f"shapiq has no name for index {row.index!r} of order {row.order}", do=f"It knows {', '.join(known)}")
        )
    shapiq = _recent_shapiq()
    values = row.values if row.set_values is None else row.set_values
    return shapiq.InteractionValues(
        values={(): float(row.baseline[0])}  # shapiq's force and upset plots begin there
        | {players: float(value) for players, value in zip(row.sets or (), values[0], strict=True)},
        index=index,
        target_index=index,
        min_order=0,
        max_order=row.order,
        n_players=row.n_players,
        estimated=not row.exact,
        estimation_budget=row.n_evaluations or None,
        baseline_value=float(row.baseline[0]),
    )


def _recent_shapiq() -> Any:
    import importlib.metadata

    shapiq = require("shapiq", "bench", purpose="Converting to shapiq")
    version = importlib.metadata.version("shapiq")
    if tuple(int(part) for part in version.split(".")[:2]) < (1, 4):
        raise MissingDependencyError(
            message("Converting to shapiq needs shapiq >= 1.4", f"Got {version}", 'Install it with: pip install "shapiq>=1.4"')
        )
    return shapiq
