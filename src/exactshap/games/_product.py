"""Games that are sums of products of one-player factors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from exactshap.errors import InputError, InputTypeError, message
from exactshap.games._base import check_masks, frozen, squeeze

__all__ = ["ProductGame"]


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
            raise InputError(message(text, f"Got {inside.shape}"))
        n_terms, n_players = inside.shape[-2:]
        if n_players < 1:
            raise InputError(message("A game needs at least one player", f"Got `a` of shape {inside.shape}"))
        given = np.asarray(c)
        coefficients = given[:, None] if given.ndim == 1 else given
        if coefficients.ndim != 2 or len(coefficients) != n_terms:
            raise InputError(message(f"`c` must have one row for each of the {n_terms} terms", f"Got shape {given.shape}"))
        outside = _as_factors(b, "b")
        outside = outside if outside.ndim == 3 else np.broadcast_to(outside, (1, n_terms, n_players))
        if outside.shape[1:] != (n_terms, n_players):
            raise InputError(message(f"`b` must broadcast to (n_background, {n_terms}, {n_players})", f"Got {np.shape(b)}"))
        if not np.iscomplexobj(coefficients):
            coefficients = coefficients.astype(float, copy=False)
        object.__setattr__(self, "n_rows", None if inside.ndim == 2 else len(inside))
        object.__setattr__(self, "single_output", given.ndim == 1)
        object.__setattr__(self, "a", frozen(inside[None] if inside.ndim == 2 else inside))
        object.__setattr__(self, "b", frozen(outside))
        object.__setattr__(self, "c", frozen(coefficients))
        object.__setattr__(self, "weights", frozen(normalised_weights(weights, len(outside))))
        constants = np.broadcast_to(np.asarray(constant, float), (coefficients.shape[1],))
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
        raise InputError(message(f"`{name}` must be numeric", f"Got dtype {array.dtype}"))
    array = array if array.dtype.kind == "c" else array.astype(float, copy=False)
    if not np.all(np.isfinite(array)):
        raise InputError(message(f"`{name}` must be finite", "Got NaN or infinity"))
    return array


def normalised_weights(weights: ArrayLike | None, n: int) -> np.ndarray:
    """Return weights (n,) that sum to one, or refuse them."""
    if weights is None:
        return np.full(n, 1.0 / n)
    try:
        array = np.asarray(weights, float)
    except (TypeError, ValueError):
        raise InputTypeError(message("Background weights must be numbers", f"Got {weights!r}")) from None
    if array.shape != (n,):
        raise InputError(message(f"Background weights must have shape ({n},)", f"Got {array.shape}", "Pass one weight per row"))
    with np.errstate(over="ignore"):
        total = float(array.sum())
    if math.isinf(total) and np.all(np.isfinite(array)):
        array = array / np.abs(array).max()
        total = float(array.sum())
    if not np.all(np.isfinite(array)) or array.min() < 0 or total <= 0:
        raise InputError(
            message(
                "Background weights must be finite, non-negative and not all zero",
                f"Got minimum {array.min():.6g} and sum {total:.6g}",
            )
        )
    shares: np.ndarray = array / total
    return shares
