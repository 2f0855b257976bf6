"""Join explanations of several parts of the rows, such as the folds of a cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from exactshap.errors import InputError, InputTypeError
from exactshap.frames import as_table
from exactshap.results.data._explanation_data import ExplanationData
from exactshap.results.data._validation import OPTIONAL

Kind = TypeVar("Kind", bound=ExplanationData)

_SAME = ("feature_names", "output_names", "index", "order", "value_function", "unit", "sets", "groups")
_PER_ROW = ("values", "baseline", "prediction", "residual", "tolerance")
# Parts that the model's name lists one by one.
SHOWN_PARTS = 10


def concat(cls: type[Kind], parts: Iterable[ExplanationData], names: Sequence[str] | None = None) -> Kind:
    """Join explanations of other rows, such as the folds of a cross-validation.

    Parameters
    ----------
    parts : iterable of Explanation
        Of the same players, outputs and question. Each row keeps its baseline, tolerance and residual, so that the certificate is
        that of the whole.
    names : sequence of str, default=None
        What to call the parts; ``model_name`` then lists their models, rows and baselines.

    Returns
    -------
    explanation : Explanation

    Raises
    ------
    InputError
        If the parts answer different questions, or some are exact and others sampled.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import KFold
    >>> from exactshap import Explanation, explain
    >>> X, y = load_diabetes(return_X_y=True)
    >>> folds = [explain(Ridge().fit(X[a], y[a]), X[b], X[a]) for a, b in KFold(5).split(X)]
    >>> whole = Explanation.concat(folds)
    >>> whole.values.shape, whole.certificate().passed
    ((442, 10), True)
    """
    if not isinstance(parts, Iterable):
        raise InputTypeError("Explanations are joined from a list of them", f"Got {type(parts).__name__}")
    listed = [parts] if isinstance(parts, ExplanationData) else list(parts)
    _check(listed, names)
    first = listed[0]
    found: dict[str, Any] = {name: getattr(first, name) for name in _SAME}
    found |= {name: np.concatenate([getattr(part, name) for part in listed]) for name in _PER_ROW}
    found |= {name: _all_or_none(listed, name) for name in OPTIONAL}
    found["data"] = _data(listed)
    found["error_bound"] = np.concatenate([np.broadcast_to(part.error_bound, (part.n_rows,)) for part in listed])
    found["method"] = "; ".join(dict.fromkeys(part.method for part in listed if part.method))
    found["model_name"] = _model_name(listed, names)
    found["n_evaluations"] = sum(part.n_evaluations for part in listed)
    seconds = [part.seconds for part in listed if part.seconds is not None]
    found["seconds"] = sum(seconds) if len(seconds) == len(listed) else None
    sizes, digests = ({getattr(part, name) for part in listed} for name in ("background_size", "background_hash"))
    # 0: each part has its own, which is not the same as none at all
    found["background_size"] = first.background_size if len(sizes) == 1 else 0
    found["background_hash"] = first.background_hash if len(digests) == 1 else None
    return cls(**found, **_masks(listed))


def _check(parts: list[Any], names: Sequence[str] | None) -> None:
    if not parts or not all(isinstance(part, ExplanationData) for part in parts):
        got = "nothing" if not parts else f"{[type(part).__name__ for part in parts[:5]]}"
        raise InputTypeError("`parts` must be explanations", f"Got {got}", "Pass Explanation.concat([first, second])")
    for name in _SAME:
        for place, part in enumerate(parts):
            if getattr(part, name) != getattr(parts[0], name):
                got = f"{name} of part 0 is {getattr(parts[0], name)!r}, of part {place} {getattr(part, name)!r}"
                raise InputError("The parts must answer one question about the same players", got)
    if names is not None and len(names) != len(parts):
        raise InputError("`names` must hold one name for each part", f"Got {len(names)} names, {len(parts)} parts")


def _all_or_none(parts: list[Any], name: str) -> np.ndarray | None:
    arrays = [getattr(part, name) for part in parts if getattr(part, name) is not None]
    if arrays and len(arrays) < len(parts):
        do = "Join the parts of one kind"
        raise InputError("Some of the parts are exact and others are not", f"{len(arrays)} have {name!r}", do)
    return np.concatenate(arrays) if arrays else None


def _data(parts: list[Any]) -> Any:
    if any(part.data is None for part in parts):
        return None
    tables = [as_table(part.data, allow_empty=True) for part in parts]
    if len({(table.names, type(table.native)) for table in tables}) > 1:
        do = "Explain tables of one kind"
        raise InputError("The rows of the parts do not fit together", "Their columns or libraries differ", do)
    if not tables[0].is_frame:
        return np.concatenate([np.asarray(table.native) for table in tables])
    import narwhals.stable.v2 as nw

    frames: list[Any] = [table.readable() for table in tables]
    return tables[0].labelled(nw.concat(frames, how="vertical").to_native())


def _model_name(parts: list[Any], names: Sequence[str] | None) -> str:
    models = list(dict.fromkeys(part.model_name for part in parts))
    if len(parts) > SHOWN_PARTS:
        return f"{len(parts)} parts: {', '.join(models)}"
    texts, start = [], 0
    for place, part in enumerate(parts):
        last = start + part.n_rows - 1
        means = np.atleast_1d(part.baseline.mean(axis=0)) if part.n_rows else np.empty(0)
        baseline = ", ".join(f"{mean:.6g}" for mean in means[:3]) + ("..." if len(means) > 3 else "")
        name = f"part {place}" if names is None else str(names[place])
        texts.append(f"{name}: {part.model_name}, rows {start} to {last}, baseline {baseline}")
        start += part.n_rows
    return "; ".join(texts)


def _masks(parts: list[Any]) -> dict[str, Any]:
    """Return the parts' checks of coalitions as one: the difference closest to its tolerance, and all rows."""
    starts = np.cumsum([0, *(part.n_rows for part in parts)]).tolist()
    compared = [part for part in parts if part.mask_difference is not None]
    rows = tuple(start + row for start, part in zip(starts, parts, strict=False) for row in part.mask_rows)
    reasons = "; ".join(dict.fromkeys(part.mask_reason for part in parts if part.mask_reason))
    if len(compared) < len(parts):
        reason = f"{len(parts) - len(compared)} of {len(parts)} parts: {reasons}" if compared else reasons
        return {"mask_reason": reason}
    worst = max(compared, key=lambda part: part.mask_difference / part.mask_tolerance if part.mask_tolerance else 0.0)
    return {
        "mask_difference": worst.mask_difference,
        "mask_tolerance": worst.mask_tolerance,
        "n_masks": sum(part.n_masks for part in parts),
        "mask_rows": rows,
    }
