"""Convert explanations to other libraries, make them of solutions, join them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from exactshap._runtime.optional import require
from exactshap.errors import InputError, InputTypeError, MissingDependencyError, UnknownNameError
from exactshap.frames import as_table, label_text
from exactshap.results.data._cells import cells
from exactshap.results.data._explanation_data import ExplanationData
from exactshap.results.data._frames import frame_kind, frame_of, named_columns
from exactshap.results.data._names_elsewhere import SHAPIQ_NAMES
from exactshap.results.data._validation import OPTIONAL

Kind = TypeVar("Kind", bound=ExplanationData)

_SAME = ("feature_names", "output_names", "index", "order", "value_function", "unit", "sets", "groups")
_PER_ROW = ("values", "baseline", "prediction", "residual", "tolerance")
# Parts that the model's name lists one by one.
SHOWN_PARTS = 10
# Of each value and term, in the tolerance of your own game's solution: the solver's arithmetic and ours.
ROUNDINGS = 16.0


def to_frame(
    explanation: ExplanationData,
    kind: str | None = None,
    *,
    std: bool = False,
    baseline: bool = False,
    prediction: bool = False,
) -> Any:
    """Return one column per player, as a frame.

    Orders above 1 have one per set; the frame is of the kind that the data came in.

    Several outputs give columns ``"player[output]"``. A pandas index is kept.

    Parameters
    ----------
    kind : {"pandas", "polars", "pyarrow"} or None, default=None
        None: as the data; for arrays the first of these three that is installed.
    std : bool, default=False
        Also columns ``se_<player>`` of standard errors (sampled values) or ``std_<player>`` of standard deviations (a Gaussian
        process).
    baseline, prediction : bool, default=False
        Also columns of these names.
    """
    columns = dict(
        _player_columns(explanation, explanation.values if explanation.set_values is None else explanation.set_values)
    )
    spread = _spread(explanation) if std else None
    for prefix, errors in spread or ():
        for name, column in _player_columns(explanation, errors):
            columns[f"{prefix}_{name}"] = _new(columns, f"{prefix}_{name}", column)
    ends = {
        "baseline": explanation.baseline if baseline else None,
        "prediction": explanation.prediction if prediction else None,
    }
    for name, numbers in ends.items():
        for full_name, column in () if numbers is None else named_columns([name], explanation.output_names, numbers[:, None]):
            columns[full_name] = _new(columns, full_name, column)
    return frame_of(explanation.data, columns, kind)


def _new(columns: Mapping[str, np.ndarray], name: str, column: np.ndarray) -> np.ndarray:
    if name in columns:
        raise InputError(f"A feature is called {name!r}, as the column would be", do="Rename the feature")
    return np.ascontiguousarray(column)


def _spread(explanation: ExplanationData) -> list[tuple[str, np.ndarray]]:
    """Return standard errors as "se" and standard deviations as "std" of the values in the frame."""
    of_sets = explanation.set_values is not None
    known = {
        "se": explanation.set_std_error if of_sets else explanation.std_error,
        "std": explanation.set_std if of_sets else explanation.std,
    }
    found = [(name, errors) for name, errors in known.items() if errors is not None]
    if not found:
        got = "They are exact for a deterministic model"
        raise InputError("These values have no standard errors or deviations", got, "Leave std= out")
    return found


def _player_columns(explanation: ExplanationData, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Return one column per set of players (and output) of values, with its name."""
    players = [" & ".join(explanation.feature_names[j] for j in players) for players in explanation.sets or ()]
    named = named_columns(players, explanation.output_names, values)
    if len({name for name, _ in named}) != len(named):
        raise InputError("Two columns of the frame would have the same name", do="Rename the features or outputs")
    return [(name, np.ascontiguousarray(column)) for name, column in named]


def to_shap(explanation: ExplanationData) -> Any:
    """Return a real ``shap.Explanation``. Of order 2 it has shap's matrices, pairs halved on both sides.

    Numbers go to its ``data``; text goes to ``display_data`` and its sorted category codes to ``data``. A group of columns
    shows the mean of its columns if they are numeric, else their text.
    """
    if explanation.order > 2:
        got = f"This explanation has sets of up to {explanation.order}"
        raise InputError("shap knows single columns and pairs", got, "Use to_shapiq(i), or explain with order=2")
    values = explanation.values.copy()
    if explanation.order > 1:  # half of a pair's value on either side of the diagonal
        values, singles = explanation.interactions / 2.0, np.arange(explanation.n_players)
        values[:, singles, singles] = explanation.values
    error = None if explanation.std_error is None or explanation.order > 1 else explanation.std_error.copy()
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
        instance_names=[label_text(label) for label in explanation.data.index] if kind == "pandas" else None,
        error_std=error,
        compute_time=explanation.seconds,
    )


def to_shapiq(explanation: ExplanationData, i: int | None = None, output: int | str = 0) -> Any:
    """Return one row and output as a ``shapiq.InteractionValues``. The baseline is the empty set's value."""
    if i is None:
        got = f"This explanation has {explanation.n_rows}: to_shapiq(0) is the first"
        raise InputTypeError("shapiq holds one row at a time", got, "Pass the number of the row")
    row = explanation.output(output)[i]
    index = SHAPIQ_NAMES.get(row.index, ("", ""))[row.order > 1]
    if not index:
        known = sorted(name for name, acronyms in SHAPIQ_NAMES.items() if acronyms[row.order > 1])
        raise UnknownNameError(
            f"shapiq has no name for index {row.index!r} of order {row.order}", do=f"It knows {', '.join(known)}"
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

    shapiq = require("shapiq", None, purpose="Converting to shapiq")
    version = importlib.metadata.version("shapiq")
    if tuple(int(part) for part in version.split(".")[:2]) < (1, 4):
        raise MissingDependencyError(
            "Converting to shapiq needs shapiq >= 1.4", f"Got {version}", 'Install it with: pip install "shapiq>=1.4"'
        )
    return shapiq


def from_solution(
    cls: type[Kind],
    solution: Any,
    player_names: Sequence[str] | None = None,
    *,
    output_names: Sequence[str] | None = None,
    unit: str = "worth",
    name: str = "game",
) -> Kind:
    """Make an explanation of your own game's solution.

    Parameters
    ----------
    solution : Solution
        What :func:`exactshap.solve` returns: of one game, which becomes one row, or of a batch.
    player_names, output_names : sequence of str, default=None
        None: players and outputs are numbered.
    unit : str, default="worth"
        Of v(S).
    name : str, default="game"
        What titles call the game.

    Returns
    -------
    explanation : Explanation

    Raises
    ------
    InputError
        If there is not one name for each player.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap import Explanation, solve
    >>> from exactshap.games import OracleGame
    >>> gloves = OracleGame(lambda S: np.minimum(S[:, 0], S[:, 1] + S[:, 2] > 0).astype(float), 3)
    >>> explanation = Explanation.from_solution(solve(gloves), ["Ann", "Bob", "Cid"], unit="pairs")
    >>> explanation.to_frame("pandas").round(3).to_dict("records")
    [{'Ann': 0.667, 'Bob': 0.167, 'Cid': 0.167}]
    """
    if not hasattr(solution, "sets") or not hasattr(solution, "empty"):
        do = "Pass what exactshap.solve(game) returns"
        raise InputTypeError("`solution` must be a Solution", f"Got {type(solution).__name__}", do)
    n_players = sum(len(players) == 1 for players in solution.sets)
    # The first axis of a batch's values is that of games. It may be as long as that of sets
    shape, n_sets = solution.values.shape, len(solution.sets)
    is_square = shape == (n_sets, n_sets)
    is_batch = bool(np.ndim(solution.scale)) if is_square else len(shape) == 3 or (len(shape) == 2 and shape[0] != n_sets)
    rows = solution if is_batch else solution.as_batch()
    many, order = rows.values.ndim == 3, max(map(len, solution.sets), default=1)
    n_rows, n_outputs = len(rows.values), rows.values.shape[-1]
    residual = np.zeros_like(rows.full) if rows.residual is None else rows.residual
    ends, eps = np.abs(rows.full) + np.abs(rows.empty), float(np.finfo(float).eps)
    size = ends if ends.ndim == 1 else ends.max(axis=1, initial=0.0)
    return cls(
        values=rows.values[:, :n_players],
        baseline=rows.empty,
        prediction=rows.full,
        residual=residual,
        tolerance=np.asarray(ROUNDINGS * eps * (n_players + 1) * (np.asarray(rows.scale) + size) + rows.error_bound),
        feature_names=_names("player_names", player_names, n_players, "player"),
        output_names=_names("output_names", output_names, n_outputs, "output") if many else None,
        value_function="game",
        unit=unit,
        model_name=name,
        index=solution.index or "shapley",
        order=order,
        sets=solution.sets,
        set_values=rows.values if order > 1 else None,
        std_error=None if rows.std_error is None else rows.std_error[:, :n_players],
        set_std_error=rows.std_error if order > 1 else None,
        method=solution.method,
        error_bound=np.array(np.broadcast_to(rows.error_bound, (n_rows,))),
        n_evaluations=solution.n_evaluations,
        approximation_error=rows.approximation_error,
        mask_reason="the values are of a game without a model",
    )


def _names(what: str, names: Sequence[str] | None, n: int, noun: str) -> tuple[str, ...]:
    if names is None:
        return tuple(f"{noun} {j}" for j in range(n))
    if isinstance(names, str) or len(texts := tuple(map(str, names))) != n or len(set(texts)) != n:
        raise InputError(f"`{what}` must hold {n} different names", f"Got {names!r:.200}")
    return texts


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
