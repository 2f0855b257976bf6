"""Define cooperative games: products, sums of small terms, and oracles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from exactshap.errors import BudgetError, ExactshapError, InputError, InputTypeError

# Players: 2^24 masks of 24 booleans are 400 MiB.
MAX_ENUMERATED_PLAYERS = 24
# Players: floats end at 2^1024.
MAX_COUNTED_PLAYERS = 1000


class Game(Protocol):
    """Hold a batch of cooperative games over the same players.

    Attributes
    ----------
    n_players, n_outputs : int
    n_rows : int or None
        Games of the batch; None for a single game, with results without a row axis.
    single_output : bool
        Whether the output axis is dropped in public results.

    Examples
    --------
    >>> from exactshap.games import OracleGame
    >>> game: Game = OracleGame(lambda masks: masks.sum(axis=1) ** 2.0, 3)
    >>> game.value([True, True, False])
    array([4.])
    """

    @property
    def n_players(self) -> int: ...

    @property
    def n_rows(self) -> int | None: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def single_output(self) -> bool: ...

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) ([n_rows,] n_masks[, n_outputs]) of boolean masks.

        ``masks`` has shape (n_masks, n_players).
        """


def check_masks(masks: ArrayLike, n_players: int) -> np.ndarray:
    """Return ``masks`` (n_masks, n_players) or (n_players,) as a boolean array of two axes.

    >>> check_masks([1, 0], 2)
    array([[ True, False]])
    """
    array = np.atleast_2d(np.asarray(masks))
    if array.ndim != 2 or array.shape[1] != n_players:
        raise InputError(
            f"`masks` must have shape (n_masks, {n_players})", f"Got {np.shape(masks)}", "Pass one boolean per player"
        )
    return array.astype(bool, copy=False)


def unmasked(returned: Any) -> np.ndarray:
    """Return a function's answer as an array, with NaN where a masked one hides cells."""
    hides = isinstance(returned, np.ma.MaskedArray)  # unlike np.ma.is_masked, as arrays of pandas have a _mask, too
    return np.asarray(returned.astype(float).filled(np.nan) if hides else returned)


def player_of_columns(players: Sequence[Sequence[int]], n_columns: int) -> np.ndarray:
    """Return the player (n_columns,) that holds each column, -1 of none.

    >>> player_of_columns(((0, 2), (1,)), 4)
    array([ 0,  1,  0, -1], dtype=int32)
    """
    owner = np.full(n_columns, -1, np.int32)
    for player, columns in enumerate(players):
        owner[list(columns)] = player
    return owner


def n_coalitions(n_players: int) -> float:
    """Return 2^d, capped at 2^1000, as such counts are only compared with limits."""
    return 2.0 ** min(n_players, MAX_COUNTED_PLAYERS)


def all_masks(n_players: int) -> np.ndarray:
    """Return all 2^d coalitions. Bit j of the row number is player j.

    Parameters
    ----------
    n_players : int
        d.

    Returns
    -------
    masks : bool array of shape (2^d, d)

    Raises
    ------
    BudgetError
        If d > 24; nothing is allocated.

    Examples
    --------
    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if n_players > MAX_ENUMERATED_PLAYERS:
        raise BudgetError(
            f"Enumerating all coalitions of {n_players} players is out of reach",
            f"2^{n_players} coalitions are 10^{math.log10(n_players) + (n_players - 40) * math.log10(2):.0f} TiB of masks; "
            f"the limit is {MAX_ENUMERATED_PLAYERS} players",
            "Use a game with structure, or a sampled solver with budget=",
        )
    bits = np.arange(2**n_players)[:, None] >> np.arange(n_players)
    masks: np.ndarray = bits & 1 == 1
    return masks


def coalition_products(factors: np.ndarray, *, absent: bool = False) -> np.ndarray:
    """Return products (2^n_players, n) of the factors of each coalition's members, or of all others."""
    # Each player doubles the table: coalitions with it are second
    table = np.ones((1, factors.shape[1]))
    for factor in factors:
        table = np.concatenate([table * factor, table] if absent else [table, table * factor])
    return table


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only view."""
    view = array.view()
    view.setflags(write=False)
    return view


def squeeze(game: Game, values: np.ndarray) -> np.ndarray:
    """Drop the axes of ``values`` (n_rows, ..., n_outputs) that the game does not have."""
    if game.single_output:
        values = values[..., 0]
    return values[0] if game.n_rows is None else values


@dataclass(frozen=True, eq=False, init=False)
class ProductGame:
    r"""A sum of products of one-player factors.

    .. math:: v(S) = v_0 + \sum_m w_m \sum_l c_l \prod_{j \in S} a_{lj} \prod_{j \notin S} b_{mlj}

    Parameters
    ----------
    c : array of shape (n_terms,) or (n_terms, n_outputs)
        Coefficients, in the unit of the outputs. One-dimensional: one output, dropped from every result.
    a : array of shape (n_terms, n_players) or (n_rows, n_terms, n_players)
        Factors of players inside the coalition. With a leading axis the game is a batch of ``n_rows`` games.
    b : array broadcastable to (n_background, n_terms, n_players), default=1.0
        Factors of players outside. With a leading axis the value is the weighted mean over the background.
    weights : array of shape (n_background,), default=None
        Background weights; None means equal weights. They are normalised to sum to one.
    constant : float or array of shape (n_outputs,), default=0.0
        Added to the value of every coalition and never attributed.

    Factors may be complex (random Fourier features); the game is then the real part of the sum.

    Raises
    ------
    InputError
        If the factors do not have one shape, or hold numbers that are not finite.

    Examples
    --------
    >>> game = ProductGame(c=[1.0], a=[[2.0, 3.0]], b=[[1.0, 1.0]])
    >>> game.value([[False, False], [True, False], [False, True], [True, True]])
    array([1., 2., 3., 6.])
    """

    c: np.ndarray
    a: np.ndarray
    b: np.ndarray
    weights: np.ndarray
    constant: np.ndarray
    single_output: bool = field(init=False)
    n_rows: int | None = field(init=False)

    def __init__(
        self,
        c: ArrayLike,
        a: ArrayLike,
        b: ArrayLike = 1.0,
        weights: ArrayLike | None = None,
        constant: ArrayLike = 0.0,
    ) -> None:
        inside = _as_factors(a, "a")
        if inside.ndim not in (2, 3):
            text = "`a` must have shape (n_terms, n_players) or (n_rows, n_terms, n_players)"
            raise InputError(text, f"Got {inside.shape}")
        n_terms, n_players = inside.shape[-2:]
        if n_players < 1:
            raise InputError("A game needs at least one player", f"Got `a` of shape {inside.shape}")
        given = _as_factors(c, "c")
        coefficients = given[:, None] if given.ndim == 1 else given
        if coefficients.ndim != 2 or len(coefficients) != n_terms:
            raise InputError(f"`c` must have one row for each of the {n_terms} terms", f"Got shape {given.shape}")
        outside = _as_factors(b, "b")
        # Without a background axis there is one background row
        outside = outside if outside.ndim == 3 else np.broadcast_to(outside, (1, n_terms, n_players))
        if outside.shape[1:] != (n_terms, n_players):
            raise InputError(f"`b` must broadcast to (n_background, {n_terms}, {n_players})", f"Got {np.shape(b)}")
        object.__setattr__(self, "n_rows", None if inside.ndim == 2 else len(inside))
        object.__setattr__(self, "single_output", given.ndim == 1)
        object.__setattr__(self, "a", frozen(inside[None] if inside.ndim == 2 else inside))
        object.__setattr__(self, "b", frozen(outside))
        object.__setattr__(self, "c", frozen(coefficients))
        object.__setattr__(self, "weights", frozen(normalised_weights(weights, len(outside))))
        constants = np.broadcast_to(_as_factors(constant, "constant"), (coefficients.shape[1],))
        object.__setattr__(self, "constant", frozen(constants))

    @property
    def n_terms(self) -> int:
        return int(self.a.shape[1])

    @property
    def n_players(self) -> int:
        return int(self.a.shape[2])

    @property
    def n_background(self) -> int:
        return len(self.b)

    @property
    def n_outputs(self) -> int:
        return int(self.c.shape[1])

    @property
    def is_complex(self) -> bool:
        return any(np.iscomplexobj(array) for array in (self.a, self.b, self.c))

    def value(self, masks: ArrayLike) -> np.ndarray:
        """Return v(S) for boolean ``masks`` of shape (n_masks, n_players), by the definition."""
        masks = check_masks(masks, self.n_players)
        values = np.empty((self.a.shape[0], len(masks), self.n_outputs))
        for k, mask in enumerate(masks):
            inside = self.a[:, :, mask].prod(axis=2)
            outside = np.einsum("m,ml->l", self.weights, self.b[:, :, ~mask].prod(axis=2))
            values[:, k] = np.real((inside * outside) @ self.c) + self.constant
        return squeeze(self, values)


def _as_factors(values: ArrayLike, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fciub":
        raise InputError(f"`{name}` must be numeric", f"Got dtype {array.dtype}")
    array = array if array.dtype.kind == "c" else array.astype(float, copy=False)
    if not np.all(np.isfinite(array)):
        raise InputError(f"`{name}` must be finite", "Got NaN or infinity")
    return array


def normalised_weights(weights: ArrayLike | None, n: int) -> np.ndarray:
    """Return weights (n,) that sum to one, or refuse them."""
    if weights is None:
        return np.full(n, 1.0 / n)
    try:
        if np.asarray(weights).dtype.kind in "mM":
            raise TypeError("NumPy would count dates in units of their resolution")
        array = np.asarray(weights, float)
    except (TypeError, ValueError):
        raise InputTypeError("Background weights must be numbers", f"Got {weights!r}") from None
    if array.shape != (n,):
        raise InputError(f"Background weights must have shape ({n},)", f"Got {array.shape}", "Pass one weight per row")
    with np.errstate(over="ignore"):
        total = float(array.sum())
    # Finite weights may have an infinite sum, unless divided by the largest
    if math.isinf(total) and np.all(np.isfinite(array)):
        array = array / np.abs(array).max()
        total = float(array.sum())
    if not np.all(np.isfinite(array)) or array.min() < 0 or total <= 0:
        raise InputError(
            "Background weights must be finite, non-negative and not all zero",
            f"Got minimum {array.min():.6g} and sum {total:.6g}",
        )
    shares: np.ndarray = array / total
    return shares


@dataclass(frozen=True, eq=False, init=False)
class AdditiveGame:
    r"""Sum terms, each a table over coalitions of a few players.

    .. math:: v(S) = v_0 + \sum_I v_I(S \cap I)

    Parameters
    ----------
    n_players : int
        Players are numbered 0..n_players - 1; those in no term are dummies.
    subsets : sequence of tuples of int
        The players of each term, without repetition. Terms may overlap.
    tables : sequence of arrays of shape (2^|I|,), (n_rows, 2^|I|) or (n_rows, 2^|I|, n_outputs)
        ``tables[i][..., code]`` is v_I of the coalition: bit p of the code says whether ``subsets[i][p]`` is inside.
    constant : float or array of shape (n_outputs,), default=0.0
        Added to the value of every coalition.

    Raises
    ------
    InputError
        If tables and subsets do not fit together.

    Examples
    --------
    >>> game = AdditiveGame(3, [(0,), (0, 2)], [[0.0, 1.0], [0.0, 0.0, 0.0, 5.0]])
    >>> game.value([[True, False, False], [True, True, True]])
    array([1., 6.])
    """

    n_players: int
    subsets: tuple[tuple[int, ...], ...]
    tables: tuple[np.ndarray, ...]
    constant: np.ndarray
    single_output: bool = field(init=False)
    n_rows: int | None = field(init=False)
    n_outputs: int = field(init=False)

    def __init__(
        self, n_players: int, subsets: Iterable[Iterable[int]], tables: Iterable[ArrayLike], constant: ArrayLike = 0.0
    ) -> None:
        terms = tuple(tuple(int(j) for j in subset) for subset in subsets)
        arrays = [np.asarray(table, float) for table in tables]
        if len(terms) != len(arrays):
            raise InputError("One table is needed for each subset", f"Got {len(terms)} subsets, {len(arrays)} tables")
        dimensions = {array.ndim for array in arrays} or {1}
        if len(dimensions) > 1 or not dimensions <= {1, 2, 3}:
            raise InputError("All tables must have the same 1, 2 or 3 dimensions", f"Got {sorted(dimensions)}")
        ndim = dimensions.pop()
        arrays = [array if ndim == 3 else array.reshape((-1, array.shape[-1], 1)) for array in arrays]
        for term, array in zip(terms, arrays, strict=True):
            _check_term(term, array, n_players)
        # Rows and outputs must agree; each table has the coalitions of its own players
        if len({(array.shape[0], array.shape[2]) for array in arrays}) > 1:
            raise InputError("All tables must have the same rows and outputs", f"Got {[t.shape for t in arrays]}")
        constants = np.atleast_1d(_as_factors(constant, "constant"))
        n_outputs = arrays[0].shape[2] if arrays else constants.size
        object.__setattr__(self, "n_players", n_players)
        object.__setattr__(self, "subsets", terms)
        object.__setattr__(self, "tables", tuple(frozen(array) for array in arrays))
        object.__setattr__(self, "single_output", ndim < 3)
        object.__setattr__(self, "n_rows", None if ndim == 1 else len(arrays[0]))
        object.__setattr__(self, "n_outputs", n_outputs)
        object.__setattr__(self, "constant", frozen(np.broadcast_to(constants, (n_outputs,))))

    def value(self, masks: ArrayLike) -> np.ndarray:
        """Return v(S) for boolean ``masks`` of shape (n_masks, n_players), by the definition."""
        masks = check_masks(masks, self.n_players)
        values = np.zeros((self.n_rows or 1, len(masks), self.n_outputs)) + self.constant
        for subset, table in zip(self.subsets, self.tables, strict=True):
            # Bit p is the p-th player of the term, which is not player p of the game
            codes = masks[:, list(subset)] @ (1 << np.arange(len(subset)))
            values += table[:, codes.astype(int), :]
        return squeeze(self, values)


def _check_term(subset: tuple[int, ...], table: np.ndarray, n_players: int) -> None:
    if len(set(subset)) != len(subset) or any(not 0 <= j < n_players for j in subset):
        raise InputError(f"A term's players must be distinct and within 0..{n_players - 1}", f"Got {subset}")
    if table.shape[1] != 2 ** len(subset):
        raise InputError(f"The table of term {subset} must hold {2 ** len(subset)} values", f"Got {table.shape[1]}")
    if not np.all(np.isfinite(table)):
        raise InputError(f"The table of term {subset} must be finite", "Got NaN or infinity")


@dataclass(frozen=True, eq=False)
class OracleGame:
    """Define a game by a function.

    Parameters
    ----------
    function : callable
        ``function(masks)`` with boolean ``masks`` of shape (n_masks, n_players) returns v(S) of shape (n_masks,) or
        (n_masks, n_outputs); (n_masks, 1) is one output. Its argument is read-only; its errors are chained.
    n_players : int
        Number of players.

    Raises
    ------
    InputError
        If the number of players is no positive int; from ``value``, if the function returns another shape or numbers that are not finite.

    Examples
    --------
    >>> OracleGame(lambda masks: masks.sum(axis=1) ** 2.0, n_players=3).value([[True, True, False]])
    array([4.])
    """

    function: Callable[[np.ndarray], ArrayLike]
    n_players: int
    n_rows: ClassVar[None] = None  # a single game

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputTypeError("`function` must be callable", f"Got {type(self.function).__name__}")
        if int(self.n_players) < 1:
            raise InputError("`n_players` must be at least 1", f"Got {self.n_players!r}")

    @property
    def single_output(self) -> bool:
        return self._probe.ndim == 1

    @property
    def n_outputs(self) -> int:
        return 1 if self.single_output else self._probe.shape[1]

    @property
    def _probe(self) -> np.ndarray:
        """Return an earlier value, or that of the empty coalition, to count the outputs."""
        if "_returned" not in self.__dict__:
            self.value(np.zeros((1, self.n_players), bool))
        return np.asarray(self.__dict__["_returned"])

    def value(self, masks: ArrayLike) -> np.ndarray:
        """Return v(S) by calling the function on boolean ``masks`` (n_masks, n_players)."""
        # A read-only copy; the caller's array stays writable
        coalitions = np.array(check_masks(masks, self.n_players), order="C")
        coalitions.setflags(write=False)
        try:
            values = unmasked(self.function(coalitions))
        # Our own errors are clear already
        except ExactshapError:
            raise
        except Exception as error:
            raise _failure(coalitions, error) from error
        # One column is one output, as many predict functions return it
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.dtype.kind not in "fiub":
            raise InputTypeError("The game's function must return real numbers", f"Got dtype {values.dtype}")
        values = values.astype(float, copy=False)
        if values.ndim not in (1, 2) or len(values) != len(coalitions) or 0 in values.shape[1:]:
            raise InputError(f"The game's function returned shape {values.shape} for {len(coalitions)} coalitions")
        if not np.all(np.isfinite(values)):
            bad = int(np.flatnonzero(~np.isfinite(values.reshape(len(coalitions), -1)).all(axis=1))[0])
            raise InputError(
                "The game's function returned NaN or infinity",
                f"First for coalition {np.flatnonzero(coalitions[bad]).tolist()}",
            )
        if len(values):
            self.__dict__.setdefault("_returned", values[:1])  # saves the probe a call
        return values


def _failure(masks: np.ndarray, error: Exception) -> InputError:
    """Return the error to raise when a game's function raised ``error``."""
    if isinstance(error, ValueError) and "read-only" in str(error):
        return InputError("The game's function changes its input", f"{error}", "Let it work on masks.copy()")
    first = np.flatnonzero(masks[0]).tolist() if len(masks) else []
    text = f"The game's function raised {type(error).__name__} on {len(masks)} coalitions, the first {first}"
    return InputError(text, f"{error}", "Its own error is chained")
