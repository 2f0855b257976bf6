"""Convert scikit-survival's trees, forests and boosting to flat trees: risks, and curves with one output per time."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.trees.ensemble import RawTree, TreeModel
from exactshap.trees.formats.sklearn import of_estimator, raw_tree

CURVES = {"cumulative hazard": 0, "survival": 1}  # its position in the values of a node


def convert(model: Model) -> TreeModel:
    """Return a fitted tree, forest or boosted model as its risk score."""
    if hasattr(model, "init_"):
        return _boosted(model)
    at_events = np.asarray((model if hasattr(model, "is_event_time_") else model.estimators_[0]).is_event_time_, bool)
    raw = [raw_tree(tree, share * _risk(tree.value, at_events)) for tree, share in _trees(model)]
    return _survival(model, raw, ("output",), "sum of cumulative hazards: high is early")


def of_curve(model: Model, curve: str, columns: np.ndarray) -> TreeModel:
    """Return the mean curve of the trees at some of ``model.unique_times_``."""
    kind = CURVES[curve]
    raw = []
    for tree, share in _trees(model):
        if tree.value.shape[1:] != (len(model.unique_times_), 2):
            do = "Fit with low_memory=False, or explain the risk with output='auto'"
            raise UnsupportedStructureError(f"This {type(model).__name__} kept no curves", "Got low_memory=True", do)
        raw.append(raw_tree(tree, share * tree.value[:, columns, kind]))
    unit = "probability of survival" if curve == "survival" else "cumulative hazard"
    names = tuple(f"t = {time:.10g}" for time in np.asarray(model.unique_times_)[columns])
    return _survival(model, raw, names, unit)


def curve_columns(model: Model, times: Any) -> np.ndarray:
    """Return the position of each time in the curve, a step function on ``model.unique_times_``; None: all."""
    known = np.asarray(model.unique_times_, float)
    if times is None:
        return np.arange(len(known))
    wanted = np.atleast_1d(np.asarray(times, float))
    places = np.searchsorted(known, wanted, side="right") - 1
    if wanted.ndim != 1 or not len(wanted) or not ((places >= 0) & (wanted <= known[-1])).all():
        raise InputError(f"`times` must lie between {known[0]:g} and {known[-1]:g}", f"Got {times!r:.100}")
    return np.unique(places)


def _trees(model: Model) -> list[tuple[Any, float]]:
    members = getattr(model, "estimators_", None)
    return [(model.tree_, 1.0)] if members is None else [(member.tree_, 1.0 / len(members)) for member in members]


def _risk(value: np.ndarray, at_events: np.ndarray) -> np.ndarray:
    """Return each node's cumulative hazards summed over event times, which ``low_memory`` stores."""
    return value[:, 0, :1] if value.shape[1] == 1 < len(at_events) else value[:, at_events, 0].sum(axis=1, keepdims=True)


def _survival(model: Model, raw: list[RawTree], names: tuple[str, ...], unit: str, *, boosted: bool = False) -> TreeModel:
    facts = dict[str, Any](library="scikit-survival", objective="survival", boosted=boosted)
    return of_estimator(model, raw, np.zeros(len(names)), unit=unit, output_names=names, **facts)


def _boosted(model: Model) -> TreeModel:
    """Return the weighted sum of the trees; for losses of times ``predict`` returns its exponential."""
    if not isinstance(model.init_, str) or model.init_ != "zero" or model.dropout_rate > 0.0:
        got = "Got dropout_rate > 0" if model.dropout_rate > 0.0 else f"Got init={type(model.init_).__name__}"
        do = "Sample it: explain(model.predict, X, background)"
        raise UnsupportedStructureError(f"{type(model).__name__} can be read only where it is a plain sum of trees", got, do)
    members = [stage[0].tree_ for stage in model.estimators_]
    raw = [raw_tree(tree, model.learning_rate * tree.value[:, 0, :1]) for tree in members]
    unit = "log hazard: high is early" if model.loss == "coxph" else "log of the survival time"
    return _survival(model, raw, ("output",), unit, boosted=True)
