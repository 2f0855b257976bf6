"""What a solver returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

import numpy as np

from exactshap._runtime.words import fields_html, fields_text
from exactshap.games import Game
from exactshap.semivalues import Question
from exactshap.solvers.core._sets import player_sets

# Attributes of an explanation, which a solution has not
_OF_EXPLANATIONS = (
    "plot",
    "to_frame",
    "save",
    "report",
    "player_names",
    "feature_names",
    "interactions",
    "to_shap",
    "to_shapiq",
)
# Arrays by the object that holds them
_OF_PARTS = ("values", "empty", "full", "std_error", "error_bound", "scale")
_OF_POSTERIORS = ("covariance", "covariance_residual", "set_std")
_OF_SOLUTIONS = ("residual", "approximation_error")
_PER_ROW = (*_OF_PARTS, *_OF_POSTERIORS, *_OF_SOLUTIONS)


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Hold values of a part of a game. Parts add up.

    A part is a block of terms, some trees or one tile of the background. It has all axes, and neither constant nor residual:
    :meth:`finish` makes a :class:`Solution` of the sum.

    Attributes
    ----------
    values : array of shape (n_rows, n_sets, n_outputs)
        In the unit of the game. For order 1 the sets are the players, in order.
    empty, full : arrays of shape (n_rows, n_outputs)
        v(empty) and v(D).
    method : str
        Which method ran, with its parameters.
    std_error : array like ``values``, or None
        Standard error of sampled values; None (not 0) for exact ones.
    error_bound : array of shape (n_rows,) or float
        A-priori bound on the quadrature error of each value; 0.0 where the rule is exact.
    scale : array of shape (n_rows,) or float
        Sum of the magnitudes that were added up: rounding errors are a small multiple of eps times this.
    n_nodes : int
        The largest number of quadrature nodes; 0 where there were none.
    """

    values: np.ndarray
    empty: np.ndarray
    full: np.ndarray
    method: str
    std_error: np.ndarray | None = None
    error_bound: np.ndarray | float = 0.0
    scale: np.ndarray | float = 0.0
    n_nodes: int = 0

    @classmethod
    def zeros(cls, n_rows: int, n_sets: int, *n_outputs: int, method: str = "") -> Part:
        """Return the part of no terms at all."""
        ends, rows = np.zeros((n_rows, *n_outputs)), np.zeros(n_rows)
        return cls(np.zeros((n_rows, n_sets, *n_outputs)), ends, ends, method, error_bound=rows, scale=rows)

    @staticmethod
    def join(parts: Iterable[Part], n_rows: int) -> Part:
        """Stack ``n_rows`` rows of batches, with the longest name of a method."""
        stack, methods, n_nodes, start = _Stack(n_rows), list[str](), 0, 0
        for part in parts:
            # A batch of all rows is the answer itself: no copy
            if len(part.values) == n_rows:
                return part
            stack.put(start, _arrays_of(part, _OF_PARTS))
            start += len(part.values)
            methods.append(part.method)
            n_nodes = max(n_nodes, part.n_nodes)
        return Part(**stack.arrays(), method=_longest(methods), n_nodes=n_nodes)

    def __add__(self, other: Part) -> Part:
        """Return the part of the sum of two games.

        They have the same players; their random errors are assumed to be independent.

        Values, ends, scales and bounds add; standard errors add in squares.
        """
        errors = [part.std_error for part in (self, other) if part.std_error is not None]
        return Part(
            self.values + other.values,
            self.empty + other.empty,
            self.full + other.full,
            self.method if self.method == other.method else f"{self.method}; {other.method}",
            std_error=np.hypot(*errors) if len(errors) == 2 else errors[0] if errors else None,
            error_bound=self.error_bound + other.error_bound,
            scale=self.scale + other.scale,
            n_nodes=max(self.n_nodes, other.n_nodes),
        )

    def __mul__(self, factor: float) -> Part:
        """Return the part of the game factor * v."""
        size = abs(factor)
        return replace(
            self,
            values=self.values * factor,
            empty=self.empty * factor,
            full=self.full * factor,
            std_error=None if self.std_error is None else self.std_error * size,
            error_bound=self.error_bound * size,
            scale=self.scale * size,
        )

    def shifted(self, constant: np.ndarray | float) -> Part:
        """Return the part of the game v + constant."""
        return replace(self, empty=self.empty + constant, full=self.full + constant)

    def with_shared_baseline(self, n_players: int, mass: float) -> Part:
        """Return the part of a game that shares v(empty) equally.

        It is ``v(S) - v(empty) + v(empty) |S| / d``, with v(empty) / d more for each player, times the ``mass`` of the index.
        """
        values = self.values.copy()
        values[:, :n_players] += mass * self.empty[:, None] / n_players
        return replace(self, values=values, empty=np.zeros_like(self.empty))

    def finish(
        self,
        n_players: int,
        semivalue: Question,
        order: int,
        *,
        constant: np.ndarray | float = 0.0,
        empty: np.ndarray | float | None = None,
        magnitude: np.ndarray | float = 0.0,
        single_row: bool = False,
        single_output: bool = False,
        with_residual: bool = True,
        n_evaluations: int = 0,
    ) -> Solution:
        """Return the solution, with constant, sets and residual, and without unused axes.

        Parameters
        ----------
        n_players, semivalue, order
            The question.
        constant : float or array of shape (n_outputs,)
            Summand of v(empty) and v(D) that the parts leave out.
        empty : float or array of shape (n_outputs,), default=None
            v(empty) of all rows, if the parts do not add it up.
        magnitude : float or array of shape (n_rows,)
            Lower limit of ``scale``, which rounding is relative to.
        single_row, single_output : bool
            Whether the game has no axis of rows, or of outputs.
        with_residual : bool
            Whether to compute the residual; for many rows that takes as long as a linear model.
        n_evaluations : int
            Calls of ``value`` on coalitions.
        """

        def squeezed(array: np.ndarray) -> np.ndarray:
            array = array[..., 0] if single_output else array
            return array[0] if single_row else array

        scale = np.maximum(self.scale, magnitude)
        nodes = f" ({self.n_nodes} node{'s' if self.n_nodes > 1 else ''})" if self.n_nodes else ""
        last = self.full + constant
        first = self.empty + constant if empty is None else np.full(last.shape, empty)
        residual = None
        if with_residual and semivalue.is_efficient(order):
            # Without the constant, which would only add rounding.
            rise = self.full - self.empty if empty is None else last - first
            residual = squeezed(rise - self.values.sum(axis=-2))
        part = replace(
            self,
            values=squeezed(self.values),
            empty=squeezed(first),
            full=squeezed(last),
            method=self.method + nodes,
            std_error=None if self.std_error is None else squeezed(self.std_error),
            error_bound=np.max(self.error_bound) if single_row else self.error_bound,
            scale=np.max(scale) if single_row else scale,
        )
        return Solution(part, player_sets(n_players, order), residual, n_evaluations)

    def finish_game(
        self, game: Game, semivalue: Question, order: int, *, constant: np.ndarray | float = 0.0, n_evaluations: int = 0
    ) -> Solution:
        """Return the solution with the players and axes of a game."""
        axes = {"single_row": game.n_rows is None, "single_output": game.single_output}
        return self.finish(game.n_players, semivalue, order, constant=constant, n_evaluations=n_evaluations, **axes)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Hold the uncertainty of a Gaussian process about its values; see :class:`Solution`."""

    covariance: np.ndarray | None = None
    covariance_residual: np.ndarray | None = None
    set_std: np.ndarray | None = None

    @staticmethod
    def of_outputs(posteriors: Sequence[Posterior]) -> Posterior:
        """Stack the posteriors of several outputs along the last axis."""
        known = [_arrays_of(posterior, _OF_POSTERIORS) for posterior in posteriors]
        return Posterior(**{name: np.stack([arrays[name] for arrays in known], axis=-1) for name in known[0]})

    def __mul__(self, factor: float) -> Posterior:
        """Return the posterior of the game factor * v."""
        powers = {"covariance": factor**2, "covariance_residual": factor**2, "set_std": abs(factor)}
        return Posterior(**{name: array * powers[name] for name, array in _arrays_of(self, _OF_POSTERIORS).items()})


_NONE = Posterior()
T = TypeVar("T")


class _Field(Generic[T]):
    """Forward a field of another field."""

    def __init__(self, path: str) -> None:
        self.get = attrgetter(path)

    def __get__(self, instance: object, owner: type) -> T:
        return cast(T, self if instance is None else self.get(instance))


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Hold values of sets of players, with bounds on their error.

    Attributes
    ----------
    part : Part
        Values, ends and errors of the whole game, without unused axes; its fields are also fields of the solution.
    values : array of shape ([n_rows,] n_sets[, n_outputs])
        In the unit of the game. For order 1 the sets are the players, in order.
    empty, full : arrays of shape ([n_rows,][n_outputs])
        v(empty) and v(D).
    method : str
        Which method ran, with its parameters.
    sets : tuple of tuples of int
        The sets, by size and then lexicographically.
    residual : array or None
        v(D) - v(empty) - sum(values), where the index is efficient; None elsewhere.
    std_error : array like ``values``, or None
        Standard error of sampled values; None (not 0) for exact ones.
    error_bound : array of shape ([n_rows]) or float
        A-priori bound on the quadrature error of each value; 0.0 where the rule is exact.
    scale : array of shape ([n_rows]) or float
        Sum of the magnitudes that were added up: rounding errors are a small multiple of eps times this.
    n_evaluations, n_nodes : int
        Calls of ``value`` on coalitions, and the largest number of quadrature nodes; 0 where there were none.
    posterior : Posterior
        The three arrays below, of a Gaussian process.
    covariance : array of shape (n_rows, n_players, n_players[, n_outputs]), or None
        Posterior covariance of the order-1 values of a Gaussian process; None for models without one.
    covariance_residual : array of shape (n_rows[, n_outputs]), or None
        The process's own variance of v(D) - v(empty) less the sum of ``covariance``; None where the values do not add up to that.
    set_std : array like ``values``, or None
        Posterior standard deviation of every set, for order 2.
    approximation_error : array of shape (n_rows,), or None
        Estimated error of any v(S) of an approximated game; None for other games.
    index : str
        The name of the index that the values belong to.
    """

    part: Part
    sets: tuple[tuple[int, ...], ...] = ()
    residual: np.ndarray | None = None
    n_evaluations: int = 0
    posterior: Posterior = _NONE
    approximation_error: np.ndarray | None = None
    index: str = ""

    values = _Field[np.ndarray]("part.values")
    empty = _Field[np.ndarray]("part.empty")
    full = _Field[np.ndarray]("part.full")
    method = _Field[str]("part.method")
    std_error = _Field[np.ndarray | None]("part.std_error")
    error_bound = _Field[np.ndarray | float]("part.error_bound")
    scale = _Field[np.ndarray | float]("part.scale")
    n_nodes = _Field[int]("part.n_nodes")
    covariance = _Field[np.ndarray | None]("posterior.covariance")
    covariance_residual = _Field[np.ndarray | None]("posterior.covariance_residual")
    set_std = _Field[np.ndarray | None]("posterior.set_std")

    @property
    def exact(self) -> bool:
        """Whether values are exact up to rounding and the reported bound.

        They are then neither sampled nor approximated.
        """
        return self.std_error is None and self.approximation_error is None

    def __getattr__(self, name: str) -> Any:
        # Called only after the ordinary look-up has failed
        if name in _OF_EXPLANATIONS:
            do = "Explanation.from_solution(solution, player_names=[...]) has names, pictures, frames and files"
            raise AttributeError(f"A Solution has no attribute {name!r}. {do}.")
        return object.__getattribute__(self, name)  # raises the first error again

    def __repr__(self) -> str:
        return fields_text("Solution", _facts_of(self))

    def _repr_html_(self) -> str:
        return fields_html("Solution", _facts_of(self))

    @staticmethod
    def join(solutions: Iterable[Solution], n_rows: int) -> Solution:
        """Stack ``n_rows`` rows of batches, with the longest name of a method."""
        rows, start = Rows(n_rows), 0
        for solution in solutions:
            rows.put(start, solution)
            start += len(solution.values)
        return rows.solution()

    def __mul__(self, factor: float) -> Solution:
        """Return the solution of the game factor * v."""
        residual, error = self.residual, self.approximation_error
        return replace(
            self,
            part=self.part * factor,
            residual=None if residual is None else residual * factor,
            posterior=self.posterior * factor,
            approximation_error=None if error is None else error * abs(factor),
        )

    def renamed(self, method: str) -> Solution:
        """Return the solution with another name of its method."""
        return replace(self, part=replace(self.part, method=method))

    def rows(self, chosen: slice) -> Solution:
        """Return some rows of a batch."""
        return self._each(lambda array: array[chosen] if np.ndim(array) else array)

    def as_batch(self) -> Solution:
        """Return a single game's solution as a batch of one."""
        return self._each(lambda array: np.asarray(array)[None])

    def _each(self, change: Callable[[Any], Any]) -> Solution:
        """Change every array of the rows."""
        arrays = {name: change(array) for name, array in _arrays_of(self, _PER_ROW).items()}
        return _of_arrays(arrays, self.method, self.n_nodes, sets=self.sets, n_evaluations=self.n_evaluations, index=self.index)


def _of_arrays(arrays: dict[str, Any], method: str, n_nodes: int, **others: Any) -> Solution:
    some = ({name: arrays[name] for name in names if name in arrays} for names in (_OF_PARTS, _OF_POSTERIORS, _OF_SOLUTIONS))
    part, posterior, own = some
    return Solution(Part(method=method, n_nodes=n_nodes, **part), posterior=Posterior(**posterior), **own, **others)


def _arrays_of(owner: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the arrays that are not None, by name."""
    return {name: array for name in names if (array := getattr(owner, name)) is not None}


def _facts_of(solution: Solution) -> dict[str, str]:
    """Describe a solution and its error by short texts."""
    residual, error, bound = solution.residual, solution.std_error, np.max(solution.error_bound, initial=0.0)
    facts = {
        "values": np.array2string(np.asarray(solution.values), precision=6, threshold=12, edgeitems=3),
        "shape": " x ".join(map(str, np.shape(solution.values))),
        "v(empty), v(D)": " to ".join(_range(ends) for ends in (solution.empty, solution.full)),
        "method": solution.method,
        "exact": "yes" if solution.exact else "no",
        "residual": "" if residual is None else f"at most {np.max(np.abs(residual), initial=0.0):.2g}",
        "std error": "" if error is None else f"at most {np.max(error, initial=0.0):.2g}",
        "error bound": f"{bound:.2g}" if bound > 0 else "",
        "evaluations": f"{solution.n_evaluations:,}" if solution.n_evaluations else "",
    }
    return {name: text for name, text in facts.items() if text}


def _range(ends: np.ndarray) -> str:
    low, high = np.min(ends, initial=np.inf), np.max(ends, initial=-np.inf)
    return f"{low:.6g}" if low == high else f"[{low:.6g}, {high:.6g}]"


class Rows:
    """Collect batches of rows of one solution, each copied into its place.

    Parameters
    ----------
    n_rows : int
        Of all batches together.

    Examples
    --------
    >>> from exactshap import solve
    >>> from exactshap.games import ProductGame
    >>> from exactshap.solvers import Rows
    >>> rows = Rows(3)
    >>> for start, stop in ((1, 3), (0, 1)):
    ...     rows.put(start, solve(ProductGame([1.0], [[[2.0, 3.0]]] * (stop - start), [[1.0, 1.0]])))
    >>> rows.solution().values.shape
    (3, 2)
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._stack = _Stack(n_rows)
        self._whole: Solution | None = None  # a batch of all rows, which is not copied
        # The fields of each batch that are no arrays, by its first row
        self._facts: dict[int, tuple[str, int, int, tuple[tuple[int, ...], ...]]] = {}

    def put(self, start: int, solution: Solution) -> None:
        """Store the batch of rows from ``start``, on any thread, in any order.

        Arrays that some batches lack are left out, except for standard errors: they are 0 for exact rows among sampled ones, as
        None would mean that all rows are exact.
        """
        if len(solution.values) == self._n_rows:
            self._whole = solution
            return
        self._stack.put(start, _arrays_of(solution, _PER_ROW))
        self._facts[start] = solution.method, solution.n_nodes, solution.n_evaluations, solution.sets

    def solution(self) -> Solution:
        """Return all rows."""
        if self._whole is not None:
            return self._whole
        methods, nodes, evaluations, sets = zip(*(self._facts[start] for start in sorted(self._facts)), strict=True)
        arrays = self._stack.arrays()
        return _of_arrays(arrays, _longest(methods), max(nodes), n_evaluations=sum(evaluations), sets=sets[0])


class _Stack:
    """Stack arrays of rows by name, each batch copied into its place."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._arrays: dict[str, np.ndarray] = {}
        self._names: list[frozenset[str]] = []  # of each batch

    def put(self, start: int, known: dict[str, Any]) -> None:
        rows = slice(start, start + len(known["values"]))
        # Bounds and scales may be one number for all rows of a part
        for name, array in known.items():
            if (whole := self._arrays.get(name)) is None:
                # Rows without a standard error keep 0: see :meth:`Rows.put`
                fresh = (np.zeros if name == "std_error" else np.empty)((self._n_rows, *np.shape(array)[1:]))
                whole = self._arrays.setdefault(name, fresh)  # that of the first thread
            whole[rows] = array
        self._names.append(frozenset(known))

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that all batches have, and standard errors."""
        common = frozenset.intersection(*self._names) | {"std_error"}
        return {name: array for name, array in self._arrays.items() if name in common}


def _longest(methods: Iterable[str]) -> str:
    return max(methods, key=lambda text: (len(text), text))


@dataclass(frozen=True)
class Cost:
    """Forecast seconds on one thread, bytes of working memory, and exactness.

    ``a + b`` is both in sequence, with the memory of both; ``n * a`` is n of them in the same memory.

    Attributes
    ----------
    seconds : float
        NaN if they depend on the user's own function.
    bytes : float
        Without the input and the result.
    exact : bool
        Whether values are exact up to rounding, for the game in question.
    method : str
        As in ``Solution.method``.

    Examples
    --------
    >>> Cost(1.0, 8.0, method="tables") + 3 * Cost(0.5, 8.0, exact=False)
    Cost(seconds=2.5, bytes=16.0, exact=False, method='tables')
    """

    seconds: float = 0.0
    bytes: float = 0.0
    exact: bool = True
    method: str = ""

    def __add__(self, other: Cost) -> Cost:
        method = "; ".join(text for text in (self.method, other.method) if text)
        return Cost(self.seconds + other.seconds, self.bytes + other.bytes, self.exact and other.exact, method)

    def __mul__(self, times: float) -> Cost:
        return Cost(times * self.seconds, self.bytes, self.exact, self.method)

    __rmul__ = __mul__
