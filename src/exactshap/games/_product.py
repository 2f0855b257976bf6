"""Games that are sums of products of one-player factors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactshap.errors import InputError, InputTypeError, message
from exactshap.games._base import check_masks, frozen, squeeze

__all__ = ["ProductGame"]


@dataclass(frozen=True, eq=False)
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

    c: Any
    a: Any
    b: Any = 1.0
    weights: Any = None
    constant: Any = 0.0
    single_output: bool = field(init=False)
    n_rows: int | None = field(init=False)

    def __post_init__(self) -> None:
        a = _as_factors(self.a, "a")
        if a.ndim not in (2, 3):
            raise InputError(
                message("`a` must have shape (n_terms, n_players) or (n_rows, n_terms, n_players)", f"Got {a.shape}")
            )
        object.__setattr__(self, "n_rows", None if a.ndim == 2 else a.shape[0])
        a = a[None] if a.ndim == 2 else a
        n_terms, n_players = a.shape[1:]
        if n_players < 1:
            raise InputError(message("A game needs at least one player", f"Got `a` of shape {np.shape(self.a)}"))
        c = np.asarray(self.c)
        object.__setattr__(self, "single_output", c.ndim == 1)
        c = c[:, None] if c.ndim == 1 else c
        if c.ndim != 2 or c.shape[0] != n_terms:
            raise InputError(message(f"`c` must have one row for each of the {n_terms} terms", f"Got shape {np.shape(self.c)}"))
        b = _as_factors(self.b, "b")
        b = b if b.ndim == 3 else np.broadcast_to(b, (1, n_terms, n_players))
        if b.shape[1:] != (n_terms, n_players):
            raise InputError(
                message(f"`b` must broadcast to (n_background, {n_terms}, {n_players})", f"Got {np.shape(self.b)}")
            )
        object.__setattr__(self, "a", frozen(a))
        object.__setattr__(self, "b", frozen(b))
        object.__setattr__(self, "c", frozen(c if np.iscomplexobj(c) else c.astype(float, copy=False)))
        object.__setattr__(self, "weights", frozen(normalised_weights(self.weights, b.shape[0])))
        constant = np.broadcast_to(np.asarray(self.constant, float), (c.shape[1],))
        object.__setattr__(self, "constant", frozen(constant))

    @property
    def n_terms(self) -> int:
        return self.a.shape[1]

    @property
    def n_players(self) -> int:
        return self.a.shape[2]

    @property
    def n_background(self) -> int:
        return self.b.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.c.shape[1]

    @property
    def is_complex(self) -> bool:
        return any(np.iscomplexobj(array) for array in (self.a, self.b, self.c))

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) for boolean ``masks`` of shape (n_masks, n_players), by the definition."""
        masks = check_masks(masks, self.n_players)
        values = np.empty((self.a.shape[0], len(masks), self.n_outputs))
        for k, mask in enumerate(masks):
            inside = self.a[:, :, mask].prod(axis=2)
            outside = np.einsum("m,ml->l", self.weights, self.b[:, :, ~mask].prod(axis=2))
            values[:, k] = np.real((inside * outside) @ self.c) + self.constant
        return squeeze(self, values)


def _as_factors(values: Any, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fciub":
        raise InputError(message(f"`{name}` must be numeric", f"Got dtype {array.dtype}"))
    array = array if array.dtype.kind == "c" else array.astype(float, copy=False)
    if not np.all(np.isfinite(array)):
        raise InputError(message(f"`{name}` must be finite", "Got NaN or infinity"))
    return array


def normalised_weights(weights: Any, n: int) -> np.ndarray:
    """Return weights of shape (n,) that sum to one; refuse wrong lengths, negative, NaN or all-zero weights."""
    if weights is None:
        return np.full(n, 1.0 / n)
    try:
        weights = np.asarray(weights, float)
    except (TypeError, ValueError):
        raise InputTypeError(message("Background weights must be numbers", f"Got {weights!r}")) from None
    if weights.shape != (n,):
        raise InputError(
            message(f"Background weights must have shape ({n},)", f"Got {weights.shape}", "Pass one weight per row")
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if np.isinf(total) and np.all(np.isfinite(weights)):
        weights = weights / np.abs(weights).max()
        total = weights.sum()
    if not np.all(np.isfinite(weights)) or weights.min() < 0 or total <= 0:
        raise InputError(
            message(
                "Background weights must be finite, non-negative and not all zero",
                f"Got minimum {weights.min():.6g} and sum {total:.6g}",
            )
        )
    return weights / total
