"""What the user asked for, and what every reader makes of it: value function, players, names, outputs, checked numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, message, no_output
from exactshap.frames import Table

__all__ = ["Request", "choose_value_function", "finite_numbers", "names_of", "players_of", "select_outputs"]


@dataclass(frozen=True, eq=False)
class Request:
    """What the user asked for besides the model, passed to every ``read`` function as it came in.

    Attributes
    ----------
    background : Table or None
        Reference rows; never subsampled.
    weights : array of shape (n_background,) or None
        Their weights, normalised and checked.
    value_function : str
        A name, or "auto": the reader decides (interventional with a background, else its own default).
    output : "auto", "all", int or str
        Which output or kind of output of a model with several.
    groups : mapping of name to list of column names or numbers, or None
        Players that are groups of columns. Columns in no group are players of their own.
    feature_names : tuple of str or None
        Names for models that were fitted without.
    players : tuple of (name, columns) or None
        All players, decided by an outer reader (a pipeline); it overrides ``groups``. A player may have no columns.
    options : mapping
        Further settings of one family (``eta=``, ...); a reader must refuse those that it does not know.
    memory_limit : float
        Bytes of working memory, for readers that choose a method by it or allocate much when they are made.
    """

    background: Table | None = None
    weights: np.ndarray | None = None
    value_function: str = "auto"
    output: Any = "auto"
    groups: Mapping[str, Any] | None = None
    feature_names: tuple[str, ...] | None = None
    players: tuple[tuple[str, tuple[int, ...]], ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    memory_limit: float = 2.0**30

    def refuse_options(self, known: tuple[str, ...] = (), *, owner: str) -> None:
        """Raise for settings that the reader does not know."""
        for name in self.options:
            if name not in known:
                raise UnknownNameError(message(f"{owner} has no setting {name!r}", do=_route(name, known)))


_SETTINGS_ELSEWHERE = {  # what shap and scikit-learn call them
    "algorithm": "estimator",
    "data": "background",
    "feature_perturbation": "value_function",
    "masker": "background",
    "max_evals": "budget",
    "model_output": "output",
    "npermutations": "budget",
    "nsamples": "budget",
    "seed": "random_state",
}
_VALUE_FUNCTIONS_ELSEWHERE = {
    "conditional": "observational",
    "marginal": "interventional",
    "tree_path_dependent": "path_dependent",
}


def _route(name: str, known: tuple[str, ...]) -> str:
    """Return what to do about a setting that a reader does not know."""
    if name in ("index", "order"):
        return f"Pass it with the rows: explainer(X, {name}=...)"
    here = _SETTINGS_ELSEWHERE.get(name, "")
    if here in ("background", "output", "value_function", *known):
        return f"It is called {here!r} here"
    return did_you_mean(name, known) if known else "Remove it"


def choose_value_function(request: Request, supported: tuple[str, ...], default: str | None, *, owner: str) -> str:
    """Return the value function's name: the one asked for, interventional with a background, else the family's default."""
    name = request.value_function
    if name == "auto":
        if request.background is not None:
            name = "interventional"
        elif default is not None:
            return default
        else:
            raise InputError(
                message(
                    f"{owner} needs reference rows",
                    "Got background=None",
                    "Pass background=X_reference (a frame or array of rows to compare with)",
                )
            )
    if name not in supported:
        here = _VALUE_FUNCTIONS_ELSEWHERE.get(name, "")
        do = f"It is called {here!r} here" if here in supported else did_you_mean(name, supported)
        raise UnknownNameError(message(f"{owner} has no value function {name!r}", do=do))
    if name in ("interventional", "interventional-independent", "baseline") and request.background is None:
        raise InputError(message(f"value_function={name!r} needs reference rows", "Got background=None", "Pass background="))
    if name == "baseline" and request.background is not None and request.background.n_rows != 1:
        raise InputError(
            message(
                "value_function='baseline' needs exactly one reference row",
                f"Got {request.background.n_rows}",
                "Pass one row, or use 'interventional'",
            )
        )
    return name


def players_of(request: Request, feature_names: tuple[str, ...]) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """Return the columns and the name of each player: the groups asked for, then every remaining column, in column order."""
    if request.players is not None:
        return tuple(columns for _, columns in request.players), tuple(name for name, _ in request.players)
    if request.groups is None:
        return tuple((j,) for j in range(len(feature_names))), feature_names
    if not isinstance(request.groups, Mapping):
        raise InputTypeError(
            message(
                "`groups` must map a name to a list of columns",
                f"Got {type(request.groups).__name__}",
                "Pass groups={'blood': ['s1', 's2']}",
            )
        )
    owner = _group_of_column(request.groups, feature_names)
    players: dict[str, list[int]] = {}
    for j, column in enumerate(feature_names):
        name = owner.get(j, column)
        if j not in owner and column in request.groups:
            raise InputError(message(f"Group {column!r} has the name of a column outside it", do="Give the group another name"))
        players.setdefault(name, []).append(j)
    empty = [name for name in request.groups if str(name) not in players]
    if empty:
        raise InputError(message(f"Group {empty[0]!r} has no columns", do="Name at least one column for each group"))
    return tuple(tuple(columns) for columns in players.values()), tuple(players)


def _group_of_column(groups: Mapping[str, Any], feature_names: tuple[str, ...]) -> dict[int, str]:
    owner: dict[int, str] = {}
    for name, members in groups.items():
        if not isinstance(members, (str, int, np.integer, Iterable)):
            raise InputTypeError(
                message(f"Group {name!r} must be a list of columns", f"Got {members!r}", "Pass names or numbers of columns")
            )
        for member in [members] if isinstance(members, (str, int, np.integer)) else members:
            j = _column_number(member, feature_names, name)
            if j in owner:
                raise InputError(
                    message(f"Column {feature_names[j]!r} is in more than one group", f"Got {owner[j]!r} and {name!r}")
                )
            owner[j] = str(name)
    return owner


def _column_number(member: Any, feature_names: tuple[str, ...], group: Any) -> int:
    if isinstance(member, str):
        if member in feature_names:
            return feature_names.index(member)
        raise UnknownNameError(
            message(f"Group {group!r} names an unknown column {member!r}", do=did_you_mean(member, feature_names))
        )
    if isinstance(member, (bool, np.bool_)) or not isinstance(member, (int, np.integer)):
        raise InputTypeError(
            message(
                f"Group {group!r} must hold names or numbers of columns", f"Got {member!r}", "Masks and slices are not read"
            )
        )
    if 0 <= int(member) < len(feature_names):
        return int(member)
    raise InputError(message(f"Group {group!r} names column {member}", f"There are {len(feature_names)} columns"))


def names_of(request: Request, fitted: tuple[str, ...] | None, n_columns: int, owner: str) -> tuple[str, ...]:
    """Return the feature names: the model's own, else those asked for, else those of the background, else x0, x1, ..."""
    if fitted is not None:
        return fitted
    if request.feature_names is not None:
        if len(request.feature_names) != n_columns:
            raise InputError(
                message(f"`feature_names` must hold {n_columns} names for {owner}", f"Got {len(request.feature_names)}")
            )
        return request.feature_names
    if request.background is not None and request.background.names is not None and request.background.n_columns == n_columns:
        return request.background.names
    return tuple(f"x{j}" for j in range(n_columns))


def select_outputs(names: tuple[str, ...], output: Any, *, owner: str) -> tuple[list[int], bool]:
    """Return the numbers of the outputs asked for ("auto" and "all": every one) and whether a single one was picked."""
    if isinstance(output, str) and output in ("auto", "all") and output not in names:
        return list(range(len(names))), False
    if isinstance(output, (int, np.integer)) and not isinstance(output, bool):
        if not -len(names) <= output < len(names):
            raise InputError(no_output(owner, output, names))
        return [int(output) % len(names)], True
    if str(output) in names:
        return [names.index(str(output))], True
    raise UnknownNameError(no_output(owner, output, names))


def finite_numbers(
    X: Table, what: str, owner: str, *, allow_nan: bool = False, names: tuple[str, ...] | None = None
) -> np.ndarray:
    """Return the rows as float64; refuse NaN and infinity by row and column in scikit-learn's words."""
    values = X.numeric(what=what)
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if bad.any():
        i, j = (int(position) for position in np.argwhere(bad)[0])
        kind = "NaN" if np.isnan(values[i, j]) else "infinity or a value too large for dtype('float64')"
        label = X.label(j) if names is None or X.is_frame else f"column {names[j]!r}"
        raise InputError(
            message(
                f"Input {what} contains {kind} (first at row {i}, {label})",
                f"{owner} does not accept missing or infinite values",
                "Impute them, or explain the Pipeline that does",
            )
        )
    return values
