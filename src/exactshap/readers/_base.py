"""What a reader is: a model bound to a background and a value function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, message, no_output
from exactshap.frames import Table
from exactshap.games import Game
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution, solve

__all__ = ["Reader", "Request", "choose_value_function", "finite_numbers", "names_of", "players_of", "select_outputs"]


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


class Reader(ABC):
    """A fitted model read as cooperative games, one per row.

    Concrete readers set the attributes in ``__init__`` and are final: they are not subclassed further. They are picklable
    and stateless: nothing changes after construction.
    """

    value_functions: ClassVar[tuple[str, ...]] = ()
    block_rows: int = 256  # rows of one block at most: what a thread solves at a time, and a step of progress
    threads_inside: bool = False  # whether solve() takes the threads itself, so that blocks follow one another

    model: Any
    model_name: str
    feature_names: tuple[str, ...]
    fitted_names: tuple[str, ...] | None  # what the model itself knows; None if it was fitted without names
    output_names: tuple[str, ...]
    single_output: bool
    unit: str
    value_function: str
    players: tuple[tuple[int, ...], ...]  # columns of each player
    player_names: tuple[str, ...]
    background: Table | None = None
    weights: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def n_players(self) -> int:
        return len(self.players)

    @property
    def n_outputs(self) -> int:
        return len(self.output_names)

    @abstractmethod
    def predict(self, X: Table) -> np.ndarray:
        """Return the model's OWN prediction, of shape (n_rows,) or (n_rows, n_outputs): the residual is a check against it."""

    @abstractmethod
    def game(self, X: Table) -> Game:
        """Return the batch of games of the rows: the definition, in one of the three kinds."""

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve the games of some rows. Override where structure or streaming makes it faster; ``game`` stays the reference implementation."""
        return solve(self.game(X), semivalue, order)

    def row_bytes(self, order: int) -> float:
        """Return the memory that one row needs while it is solved: it decides how many rows make a block."""
        return 8.0 * 4 * self.n_players**order * self.n_outputs

    def row_operations(self, order: int) -> float:
        """Return about how many multiplications one row costs: it is the forecast of ``Explainer.plan``."""
        return float(self.n_players**order)

    def forecast(self, X: Table, semivalue: Semivalue, order: int, block_rows: int) -> tuple[str, bool, float] | None:
        """Return method, exactness and seconds where rows share work, so that one row says too little; None elsewhere."""
        return None

    def fixed_bytes(self) -> float:
        """Return the memory needed besides the rows."""
        return 0.0

    def memory_advice(self) -> str:
        """Return what to do where one row does not fit in ``memory_limit``."""
        return "Raise memory_limit=, lower the order, or group columns with groups="

    def tolerance(self, X: Table, prediction: np.ndarray, solution: Solution) -> np.ndarray:
        r"""Return the largest residual (n_rows,) that rounding can explain.

        .. math:: 4\, \epsilon\, (\sqrt{n_\mathrm{terms}} + d)\, (\mathrm{scale} + |f(x)|)

        A product of d factors is off by at most d eps relative (Higham 2002, Lemma 3.1), a sum of n rounded terms by
        sqrt(n) eps with overwhelming probability (Higham & Mary 2019); 4 = 2 sides (ours and the model's) x 2 for its constant.
        """
        magnitude = np.abs(prediction).reshape(X.n_rows, -1).max(axis=1, initial=0.0)
        growth = np.sqrt(self.n_terms()) + self.n_features
        return 4.0 * self.epsilon() * growth * (np.asarray(solution.scale) + magnitude) + np.max(solution.error_bound)

    def n_terms(self) -> float:
        """Return how many terms are added up for one prediction (for the tolerance)."""
        return 1.0

    def epsilon(self) -> float:
        """Return the rounding unit of the model's own predictions: float64 unless it computes in float32."""
        return float(np.finfo(np.float64).eps)

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        """Return a function of delta that bounds how far values of X move when no column moves by more, where one is known."""
        return None

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Return v(S) (n_rows, n_masks[, n_outputs]) by masking columns by hand and calling the model, or None.

        It is the independent reference that ``verify`` compares ``game(X).value(masks)`` with. The default handles the value
        functions that are defined by replacing columns: "interventional" and "baseline".
        """
        if self.background is None or self.value_function not in ("interventional", "baseline"):
            return None
        return hand_masked(self, X, masks)


def hand_masked(reader: Reader, X: Table, masks: np.ndarray) -> np.ndarray:
    """Mean model prediction over rows that take the columns of the coalition from X and the rest from the background."""
    background = reader.background
    assert background is not None
    weights = np.full(background.n_rows, 1.0 / background.n_rows) if reader.weights is None else reader.weights
    rows, references = X.repeat(background.n_rows), background.tile(X.n_rows)
    values = []
    for mask in np.asarray(masks, bool):
        columns = np.zeros(reader.n_features, bool)
        for inside, player in zip(mask, reader.players, strict=True):
            columns[list(player)] = inside
        prediction = np.asarray(reader.predict(rows.hybrid(references, columns)))
        values.append(
            np.einsum("rm...,m->r...", prediction.reshape(X.n_rows, background.n_rows, *prediction.shape[1:]), weights)
        )
    return np.stack(values, axis=1)


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
    owner: dict[int, str] = {}
    for name, members in request.groups.items():
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
