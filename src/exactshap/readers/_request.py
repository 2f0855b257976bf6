"""Hold the user's settings, and derive value function, players, names and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, no_output
from exactshap.frames import Table

# Of any model with a background: columns are replaced by those of its rows.
REPLACING = ("interventional", "baseline")
# Conditional means of any model with a background.
CONDITIONAL = ("observational", "observational-copula", "observational-forest")
# What shap and papers call value functions.
_VALUE_FUNCTIONS_ELSEWHERE = {
    "conditional": "observational",
    "marginal": "interventional",
    "tree_path_dependent": "path_dependent",
}

# What shap and scikit-learn call settings.
_SETTINGS_ELSEWHERE = {
    "algorithm": "estimator",
    "bg_w": "background_weights",
    "bg_X": "background",
    "data": "background",
    "feature_perturbation": "value_function",
    "masker": "background",
    "max_evals": "budget",
    "model_output": "output",
    "npermutations": "budget",
    "nsamples": "budget",
    "seed": "random_state",
}
# Alternatives to settings of shap, shapiq and lightshap.
_SETTINGS_ROUTES = {
    "approximate": "Values are exact or carry standard errors; there is no approximation to switch on",
    "check_additivity": "Every explanation is checked; on_inexact='warn' returns what does not add up, with a warning",
    "feature_dependence": "Pass value_function='interventional' or 'observational'",
    "link": "The unit is that of the model's output: pass a function of another unit (log-odds of predict_proba), or output=",
    "max_order": "It is called 'order' here, and goes with the rows: explainer(X, index='k-sii', order=2)",
    "n_background_samples": "All rows of background= are used: pass as many as are wanted",
}
# Values of ``output=`` that mean the response.
_RESPONSES = ("probability", "response")


@dataclass(frozen=True, eq=False)
class Request:
    """Hold the user's settings, passed unchanged to every ``read`` function.

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
        Players that are groups of columns. Columns in no group are single players.
    feature_names : tuple of str or None
        Names for models that were fitted without.
    players : tuple of (name, columns) or None
        All players, decided by an outer reader (a pipeline); it overrides ``groups``. A player may have no columns.
    options : mapping
        Further settings of one family (``eta=``, ...); a reader must refuse those that it does not know.
    memory_limit : float
        Bytes of working memory, for readers that choose a method by it or allocate much at construction.
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

    @property
    def asks_response(self) -> bool:
        """Say whether ``output=`` is the response, such as a probability."""
        return isinstance(self.output, str) and self.output in _RESPONSES

    @property
    def outer_response(self) -> Any:
        """Return the response that a wrapper asks for, or None."""
        return self.output if hasattr(self.output, "link") else None

    def refuse_options(self, known: tuple[str, ...] = (), *, owner: str) -> None:
        """Raise for settings that the reader does not know."""
        for name in self.options:
            if name not in known:
                raise UnknownNameError(f"{owner} has no setting {name!r}", do=_route(name, known))

    def refuse_outputs(self, names: tuple[str, ...], *, owner: str) -> None:
        """Raise for an ``output=`` that is none of ``names``."""
        select_outputs(names, self.output, owner=owner)


class Columns(NamedTuple):
    """Hold the names of a model's columns, and the columns and names of its players."""

    names: tuple[str, ...]
    players: tuple[tuple[int, ...], ...]
    player_names: tuple[str, ...]

    @classmethod
    def of(cls, request: Request, fitted: tuple[str, ...] | None, n_columns: int, owner: str) -> Columns:
        """Return the columns under the user's settings; ``owner`` is the model, for messages.

        >>> Columns.of(Request(groups={"place": ["x0", "x2"]}), None, 3, "SVR")
        Columns(names=('x0', 'x1', 'x2'), players=((0, 2), (1,)), player_names=('place', 'x1'))
        """
        names = _names(request, fitted, n_columns, owner)
        return cls(names, *players_of(request, names))


class NoConditionalMeans(Exception):
    """Say that conditional means must be those of the whole model's predictions.

    A part of it has none of its own, or does not see all columns as they come. The outermost ``read`` answers it.
    """


def _route(name: str, known: tuple[str, ...]) -> str:
    """Return the alternative to an unknown setting."""
    # In shapiq both are settings of the explainer.
    if name in ("index", "order"):
        return f"Pass it with the rows: explainer(X, {name}=...)"
    if name in _SETTINGS_ROUTES:
        return _SETTINGS_ROUTES[name]
    here = _SETTINGS_ELSEWHERE.get(name, "")
    # Only suggested to readers that accept them.
    if here in ("background", "background_weights", "output", "value_function", *known):
        return f"It is called {here!r} here"
    return did_you_mean(name, known) if known else "Remove it"


def choose_value_function(
    request: Request, supported: tuple[str, ...] = REPLACING, default: str | None = None, *, owner: str
) -> str:
    """Return the user's value function, or the one by default.

    By default that is interventional with a background, else the family's own, ``default``: None if the family needs one. ``owner``
    is the model, for messages.

    >>> choose_value_function(Request(), ("functional", "interventional"), "functional", owner="SVR")
    'functional'
    """
    name = request.value_function
    if name == "auto":
        if request.background is not None:
            name = "interventional"
        elif default is not None:
            return default
        else:
            raise InputError(
                f"{owner} needs reference rows",
                "Got background=None",
                "Pass background=X_reference (a frame or array of rows to compare with)",
            )
    if name in CONDITIONAL and name not in supported:
        raise NoConditionalMeans
    if not isinstance(name, str) or name not in supported:
        # A list or a mapping in the place of a name cannot be looked up.
        name = str(name)
        here = _VALUE_FUNCTIONS_ELSEWHERE.get(name, "")
        # Conditional ones are available for any model, outside the family, hence also suggested.
        known = tuple(dict.fromkeys((*supported, *CONDITIONAL)))
        do = f"It is called {here!r} here" if here in known else did_you_mean(name, known)
        raise UnknownNameError(f"{owner} has no value function {name!r}", do=do)
    if name in ("interventional", "interventional-independent", "baseline") and request.background is None:
        raise InputError(f"value_function={name!r} needs reference rows", "Got background=None", "Pass background=")
    if name == "baseline" and request.background is not None and request.background.n_rows != 1:
        raise InputError(
            "value_function='baseline' needs exactly one reference row",
            f"Got {request.background.n_rows}",
            "Pass one row, or use 'interventional'",
        )
    return name


def _names(request: Request, fitted: tuple[str, ...] | None, n_columns: int, owner: str) -> tuple[str, ...]:
    """Return the names of the model, the user or the background, or x0, x1, ..."""
    if fitted is not None:
        return fitted
    if request.feature_names is not None:
        if len(request.feature_names) != n_columns:
            raise InputError(f"`feature_names` must hold {n_columns} names for {owner}", f"Got {len(request.feature_names)}")
        return request.feature_names
    # The background's names are used only if their number is right; a wrong number is refused later.
    if request.background is not None and request.background.names is not None and request.background.n_columns == n_columns:
        return request.background.names
    return tuple(f"x{j}" for j in range(n_columns))


def select_outputs(names: tuple[str, ...], output: object, *, owner: str) -> tuple[list[int], bool]:
    """Return the numbers of the selected outputs, and whether one was picked. "auto" and "all" are every one.

    >>> select_outputs(("no", "yes"), "yes", owner="forest"), select_outputs(("no", "yes"), "all", owner="forest")
    (([1], True), ([0, 1], False))
    """
    # A class may itself be called "all" or "auto", which takes precedence.
    if isinstance(output, str) and output in ("auto", "all") and output not in names:
        return list(range(len(names))), False
    # True is an int in Python, but here the name of a class, handled below.
    if isinstance(output, (int, np.integer)) and not isinstance(output, bool):
        if not -len(names) <= output < len(names):
            raise InputError(no_output(owner, output, names))
        # Negative numbers count from the end, as in Python.
        return [int(output) % len(names)], True
    if str(output) in names:
        return [names.index(str(output))], True
    raise UnknownNameError(no_output(owner, output, names))


def players_of(request: Request, feature_names: tuple[str, ...]) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """Return the columns and names of the players. Groups and all remaining columns are in column order.

    >>> players_of(Request(groups={"place": ["city", "region"]}), ("city", "age", "region"))
    (((0, 2), (1,)), ('place', 'age'))
    """
    # A pipeline has already grouped its transformed columns: groups name its input columns.
    if request.players is not None:
        return tuple(columns for _, columns in request.players), tuple(name for name, _ in request.players)
    if request.groups is None:
        # zip of one iterable gives (0,), (1,), ... without a loop in Python, as there may be thousands of columns.
        return tuple(zip(range(len(feature_names)))), feature_names
    if not isinstance(request.groups, Mapping):
        raise InputTypeError(
            "`groups` must map a name to a list of columns",
            f"Got {type(request.groups).__name__}",
            "Pass groups={'blood': ['s1', 's2']}",
        )
    owner = _group_of_column(request.groups, feature_names)
    players: dict[str, list[int]] = {}
    for j, column in enumerate(feature_names):
        name = owner.get(j, column)
        if j not in owner and column in request.groups:
            raise InputError(f"Group {column!r} has the name of a column outside it", do="Give the group another name")
        # A group has the place of its first column, so that players keep the order of columns.
        players.setdefault(name, []).append(j)
    empty = [name for name in request.groups if str(name) not in players]
    if empty:
        raise InputError(f"Group {empty[0]!r} has no columns", do="Name at least one column for each group")
    return tuple(tuple(columns) for columns in players.values()), tuple(players)


def _group_of_column(groups: Mapping[str, Any], feature_names: tuple[str, ...]) -> dict[int, str]:
    owner: dict[int, str] = {}
    for name, members in groups.items():
        if not isinstance(members, (str, int, np.integer, Iterable)):
            raise InputTypeError(
                f"Group {name!r} must be a list of columns", f"Got {members!r}", "Pass names or numbers of columns"
            )
        # Text is iterable: "s1" is the name of one column, not "s" and "1".
        for member in [members] if isinstance(members, (str, int, np.integer)) else members:
            j = _column_number(member, feature_names, name)
            if j in owner:
                raise InputError(f"Column {feature_names[j]!r} is in more than one group", f"Got {owner[j]!r} and {name!r}")
            owner[j] = str(name)
    return owner


def _column_number(member: Model, feature_names: tuple[str, ...], group: Any) -> int:
    if isinstance(member, tuple):  # of a MultiIndex: CatBoost and EBMs have names of their own for it
        member = str(member) if str(member) in feature_names else " ".join(map(str, member))
    if isinstance(member, str):
        if member in feature_names:
            return feature_names.index(member)
        raise UnknownNameError(f"Group {group!r} names an unknown column {member!r}", do=did_you_mean(member, feature_names))
    # A mask of True and False would be read as columns 1 and 0.
    if isinstance(member, (bool, np.bool_)) or not isinstance(member, (int, np.integer)):
        raise InputTypeError(
            f"Group {group!r} must hold names or numbers of columns", f"Got {member!r}", "Masks and slices are not accepted"
        )
    places = {j for j in (int(member),) if 0 <= j < len(feature_names)}
    # Labels of frames may be numbers, too
    label = str(member)
    if label in feature_names:
        places.add(feature_names.index(label))
    if len(places) > 1:
        named, placed = repr(label), repr(feature_names[int(member)])
        raise InputError(
            f"Group {group!r} names column {member}",
            f"One column has that label, another one, {placed}, that place",
            f"Pass its label as text: {named} or {placed}",
        )
    if places:
        return places.pop()
    raise InputError(f"Group {group!r} names column {member}", f"There are {len(feature_names)} columns")
