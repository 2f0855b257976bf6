"""What a solver returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.words import fields_html, fields_text
from exactshap.semivalues import Question
from exactshap.solvers.core._arrays import all_of, either
from exactshap.solvers.core._sets import player_sets
from exactshap.solvers.core._words import solution_facts

__all__ = ["Rows", "Solution"]


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Values of sets of players, with what is known of their error.

    It is also what is added up on the way, one block of terms, some trees or one tile of the background at a time: such a part
    has all axes (n_rows, n_sets, n_outputs), and no constant, ``sets`` or ``residual`` before :meth:`finish`.

    Attributes
    ----------
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
    covariance : array of shape (n_rows, n_players, n_players[, n_outputs]), or None
        Posterior covariance of the order-1 values of a Gaussian process; None for models without one.
    covariance_residual : array of shape (n_rows[, n_outputs]), or None
        The process's own variance of v(D) - v(empty) less the sum of ``covariance``; None where the values do not add up to that.
    set_std : array like ``values``, or None
        Posterior standard deviation of every set, for order 2.
    approximation_error : array of shape (n_rows,), or None
        Estimate of how far any v(S) of an approximated game is off; None for games that are not approximated.
    index : str
        The name of the index that the values belong to.
    """

    values: np.ndarray
    empty: np.ndarray
    full: np.ndarray
    method: str
    sets: tuple[tuple[int, ...], ...] = ()
    residual: np.ndarray | None = None
    std_error: np.ndarray | None = None
    error_bound: np.ndarray | float = 0.0
    scale: np.ndarray | float = 0.0
    n_evaluations: int = 0
    n_nodes: int = 0
    covariance: np.ndarray | None = None
    covariance_residual: np.ndarray | None = None
    set_std: np.ndarray | None = None
    approximation_error: np.ndarray | None = None
    index: str = ""

    @property
    def exact(self) -> bool:
        """Return whether the values are exact up to rounding and the reported bound.

        They are then neither sampled nor approximated.
        """
        return self.std_error is None and self.approximation_error is None

    def __getattr__(self, name: str) -> Any:
        if name in _OF_EXPLANATIONS:
            do = "Explanation.from_solution(solution, player_names=[...]) has names, pictures, frames and files"
            raise AttributeError(f"A Solution has no attribute {name!r}. {do}.")
        return object.__getattribute__(self, name)  # raises again, whatever it was

    def __repr__(self) -> str:
        return fields_text("Solution", solution_facts(self))

    def _repr_html_(self) -> str:
        return fields_html("Solution", solution_facts(self))

    @classmethod
    def zeros(cls, n_rows: int, n_sets: int, *n_outputs: int, method: str = "") -> Solution:
        """Return the part of no terms at all."""
        ends, rows = np.zeros((n_rows, *n_outputs)), np.zeros(n_rows)
        return cls(np.zeros((n_rows, n_sets, *n_outputs)), ends, ends, method, error_bound=rows, scale=rows)

    @staticmethod
    def join(parts: Iterable[Solution], n_rows: int) -> Solution:
        """Put ``n_rows`` rows of batches that answer one question under each other; the longest name of a method speaks for all."""
        rows, start = Rows(n_rows), 0
        for part in parts:
            rows.put(start, part)
            start += len(part.values)
        return rows.solution()

    def __add__(self, other: Solution) -> Solution:
        """Return the solution of the sum of two games.

        They have the same players; their random errors are taken as independent.

        Values, ends, scales, bounds and covariances add; standard errors and deviations add in squares.
        """
        added = {name: getattr(self, name) + getattr(other, name) for name in _ADDED}
        some = {
            name: either(np.add, self, other, name) for name in ("covariance", "covariance_residual", "approximation_error")
        }
        spread = {name: either(np.hypot, self, other, name) for name in ("std_error", "set_std")}
        return Solution(
            **added,
            **some,
            **spread,
            method=self.method if self.method == other.method else f"{self.method}; {other.method}",
            sets=self.sets,
            residual=None if self.residual is None or other.residual is None else self.residual + other.residual,
            n_nodes=max(self.n_nodes, other.n_nodes),
        )

    def __mul__(self, factor: float) -> Solution:
        """Return the solution of the game factor * v."""
        scaled: dict[str, Any] = {}
        for names, by in ((_SIGNED, factor), (_UNSIGNED, abs(factor)), (_SQUARED, factor**2)):
            scaled |= {name: array * by for name in names if (array := getattr(self, name)) is not None}
        return replace(self, **scaled)

    def shifted(self, constant: np.ndarray | float) -> Solution:
        """Return the solution of the game v + constant."""
        return replace(self, empty=self.empty + constant, full=self.full + constant)

    def with_shared_baseline(self, n_players: int) -> Solution:
        """Return the solution of ``v(S) - v(empty) + v(empty) |S| / d``: any semivalue of the last, additive game is 1 / d of it."""
        values = self.values.copy()
        values[:, :n_players] += self.empty[:, None] / n_players
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
    ) -> Solution:
        """Return the sum of all parts as users get it: with the constant, the sets and the residual, without axes of one.

        Parameters
        ----------
        n_players, semivalue, order
            The question.
        constant : float or array of shape (n_outputs,)
            What v(empty) and v(D) have in common and the parts leave out.
        empty : float or array of shape (n_outputs,), default=None
            v(empty) of all rows, where the parts do not add it up.
        magnitude : float or array of shape (n_rows,)
            What rounding is relative to at least: a lower limit of ``scale``.
        single_row, single_output : bool
            Whether the game has no axis of rows, or of outputs.
        with_residual : bool
            Whether what is missing to v(D) is worked out; in bulk that takes as long as a linear model.
        """

        def squeezed(array: np.ndarray) -> np.ndarray:
            array = array[..., 0] if single_output else array
            return array[0] if single_row else array

        # A single row would feel each step of arrays that adds nothing.
        nothing = isinstance(constant, float) and constant == 0.0
        scale = self.scale if isinstance(magnitude, float) and magnitude == 0.0 else np.maximum(self.scale, magnitude)
        nodes = f" ({self.n_nodes} node{'s' if self.n_nodes > 1 else ''})" if self.n_nodes else ""
        last = self.full if nothing else self.full + constant
        first = all_of(empty, last.shape) if empty is not None else self.empty if nothing else self.empty + constant
        residual = None
        if with_residual and semivalue.is_efficient(order):
            # The difference is taken without the constant, which would only round it.
            rise = self.full - self.empty if empty is None else last - first
            residual = squeezed(rise - self.values.sum(axis=-2))
        return replace(
            self,
            values=squeezed(self.values),
            empty=squeezed(first),
            full=squeezed(last),
            method=self.method + nodes,
            sets=player_sets(n_players, order),
            residual=residual,
            std_error=None if self.std_error is None else squeezed(self.std_error),
            error_bound=np.max(self.error_bound) if single_row else self.error_bound,
            scale=np.max(scale) if single_row else scale,
        )

    def rows(self, chosen: slice) -> Solution:
        """Return some rows of a batch."""
        arrays = {name: array for name in _PER_ROW if isinstance(array := getattr(self, name), np.ndarray) and array.ndim}
        some: dict[str, Any] = {name: array[chosen] for name, array in arrays.items()}
        return replace(self, **some)

    def as_batch(self) -> Solution:
        """Return a single game's solution as that of a batch of one."""
        known: dict[str, Any] = {
            name: np.asarray(array)[None] for name in _PER_ROW if (array := getattr(self, name)) is not None
        }
        return replace(self, **known)


_ADDED = ("values", "empty", "full", "error_bound", "scale", "n_evaluations")
_SIGNED = ("values", "empty", "full", "residual")
_UNSIGNED = ("std_error", "error_bound", "scale", "set_std", "approximation_error")
_SQUARED = ("covariance", "covariance_residual")
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
_PER_ROW = (*_SIGNED, *_UNSIGNED, *_SQUARED)


class Rows:
    """Collect batches of rows that answer one question, each into its place. No batch is held until the last.

    Parameters
    ----------
    n_rows : int
        Of all batches together.

    Examples
    --------
    >>> from exactshap.solvers import Rows, Solution
    >>> rows = Rows(3)
    >>> for start, stop in ((1, 3), (0, 1)):
    ...     rows.put(start, Solution.zeros(stop - start, n_sets=4))
    >>> rows.solution().values.shape
    (3, 4)
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._whole: Solution | None = None  # a batch of all rows, which is not copied
        self._arrays: dict[str, np.ndarray] = {}
        self._facts: dict[int, _Facts] = {}  # of each batch, by its first row

    def put(self, start: int, part: Solution) -> None:
        """Take the batch of rows from ``start``, on any thread, in any order.

        What not all batches have is left out, except for standard errors: rows that happen to be exact among sampled ones have those
        of 0, as None would say so of all rows.
        """
        n_rows = len(part.values)
        if n_rows == self._n_rows:
            self._whole = part
            return
        known = {name: array for name in _PER_ROW if (array := getattr(part, name)) is not None}
        # Bounds and scales may be one number for all rows of a part
        for name, array in known.items():
            if (whole := self._arrays.get(name)) is None:
                made = (np.zeros if name == "std_error" else np.empty)((self._n_rows, *np.shape(array)[1:]))
                whole = self._arrays.setdefault(name, made)  # that of whichever thread was first
            whole[start : start + n_rows] = array
        self._facts[start] = _Facts(part.method, part.n_evaluations, part.n_nodes, part.sets, frozenset(known))

    def solution(self) -> Solution:
        """Return all rows."""
        if self._whole is not None:
            return self._whole
        facts = [self._facts[start] for start in sorted(self._facts)]
        of_all = frozenset.intersection(*(fact.arrays for fact in facts)) | {"std_error"}
        arrays: dict[str, Any] = {name: array for name, array in self._arrays.items() if name in of_all}
        return Solution(
            method=max((fact.method for fact in facts), key=lambda text: (len(text), text)),
            n_evaluations=sum(fact.n_evaluations for fact in facts),
            n_nodes=max(fact.n_nodes for fact in facts),
            sets=facts[0].sets,
            **arrays,
        )


class _Facts(NamedTuple):
    """What is no array in a batch, and which arrays it has."""

    method: str
    n_evaluations: int
    n_nodes: int
    sets: tuple[tuple[int, ...], ...]
    arrays: frozenset[str]
