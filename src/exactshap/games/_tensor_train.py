"""Games that are chains of matrices, one for each player."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactshap.errors import InputError, message
from exactshap.games._base import check_masks, frozen, squeeze
from exactshap.games._product import normalised_weights

__all__ = ["TensorTrainGame"]


@dataclass(frozen=True, eq=False)
class TensorTrainGame:
    r"""A chain of matrices, one for each player: a tensor train (matrix product).

    .. math:: v(S) = v_0 + \sum_m w_m\, G_1^{(m)}(S)\, G_2^{(m)}(S) \cdots G_d^{(m)}(S), \qquad
              G_j^{(m)}(S) = A_j \text{ if } j \in S, \text{ else } B_{mj}

    with :math:`A_j` and :math:`B_{mj}` of shape (r_{j-1}, r_j), r_0 = 1, and as many outputs as the last has columns. Players that
    interact through what passes along a chain have small ranks r: linear dynamics, hidden Markov models, weighted automata, functions
    fitted as tensor trains. A sum of L products is the case of diagonal matrices of rank L.

    Parameters
    ----------
    inside : sequence of arrays of shape (r_{j-1}, r_j) or (n_rows, r_{j-1}, r_j)
        Matrices of players inside the coalition, in the order of the chain. With a leading axis the game is a batch of games.
    outside : sequence of arrays broadcastable to (n_background, r_{j-1}, r_j)
        Matrices of players outside. With a leading axis the value is the weighted mean over the background.
    weights : array of shape (n_background,), default=None
        Background weights; None means equal weights. They are normalised to sum to one.
    constant : float or array of shape (n_outputs,), default=0.0
        Added to the value of every coalition and never attributed.

    Raises
    ------
    InputError
        If the matrices do not fit together, or are not finite.

    References
    ----------
    .. [1] Oseledets, I. (2011). Tensor-train decomposition. SIAM J. Sci. Comput. 33(5), equation 1.2.

    Examples
    --------
    >>> game = TensorTrainGame([[[2.0, 1.0]], [[3.0], [5.0]]], [[[1.0, 0.0]], [[1.0], [1.0]]])
    >>> game.value([[False, False], [True, False], [False, True], [True, True]])  # 1, 2 + 1, 3, 2 * 3 + 1 * 5
    array([ 1.,  3.,  3., 11.])
    """

    inside: Sequence[Any]
    outside: Sequence[Any]
    weights: Any = None
    constant: Any = 0.0
    single_output: bool = field(init=False)
    n_rows: int | None = field(init=False)

    def __post_init__(self) -> None:
        inside, outside = ([np.asarray(core, float) for core in cores] for cores in (self.inside, self.outside))
        if not inside or len(inside) != len(outside):
            text = "A chain needs one matrix inside and one outside for each player"
            raise InputError(message(text, f"Got {len(inside)} and {len(outside)}"))
        if len({core.ndim for core in inside}) > 1:
            raise InputError(message("All matrices inside must have a leading axis of rows, or none"))
        object.__setattr__(self, "n_rows", None if inside[0].ndim == 2 else len(inside[0]))
        inside = [core[None] if core.ndim == 2 else core for core in inside]
        outside = [core[None] if core.ndim == 2 else core for core in outside]
        before, n_background = 1, max(len(core) for core in outside)
        for j, (one, other) in enumerate(zip(inside, outside, strict=True)):
            _check_core(j, one, other, before, len(inside[0]), n_background)
            before = one.shape[2]
        object.__setattr__(self, "inside", tuple(frozen(core) for core in inside))
        object.__setattr__(self, "outside", tuple(frozen(core) for core in outside))
        object.__setattr__(self, "weights", frozen(normalised_weights(self.weights, n_background)))
        object.__setattr__(self, "single_output", before == 1)
        object.__setattr__(self, "constant", frozen(np.broadcast_to(np.asarray(self.constant, float), (before,))))

    @property
    def n_players(self) -> int:
        return len(self.inside)

    @property
    def n_background(self) -> int:
        return len(self.weights)

    @property
    def n_outputs(self) -> int:
        return int(self.inside[-1].shape[2])

    @property
    def largest_rank(self) -> int:
        return max(core.shape[2] for core in self.inside)

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) for boolean ``masks`` of shape (n_masks, n_players), by the definition."""
        masks = check_masks(masks, self.n_players)
        n_rows = 1 if self.n_rows is None else self.n_rows
        values = np.empty((n_rows, len(masks), self.n_outputs))
        for k, mask in enumerate(masks):
            chain = np.ones((1, 1, 1, 1))
            for member, inside, outside in zip(mask, self.inside, self.outside, strict=True):
                chain = chain @ (inside[:, None] if member else outside[None])
            chain = np.broadcast_to(chain, (n_rows, self.n_background, 1, self.n_outputs))
            values[:, k] = np.einsum("rmok,m->rk", chain, self.weights) + self.constant
        return squeeze(self, values)


def _check_core(j: int, inside: np.ndarray, outside: np.ndarray, before: int, n_rows: int, n_background: int) -> None:
    """Refuse matrices of player j that do not fit to those before, to each other, or to the rows."""
    if inside.ndim != 3 or inside.shape[:2] != (n_rows, before) or inside.shape[2] < 1:
        text = f"The matrix inside of player {j} must have shape ([{n_rows},] {before}, rank)"
        raise InputError(
            message(text, f"Got {inside.shape}", "Each has as many rows as the one before has columns; the first has 1")
        )
    if outside.ndim != 3 or outside.shape[1:] != inside.shape[1:] or len(outside) not in (1, n_background):
        text = f"The matrix outside of player {j} must have shape ([{n_background},] {before}, {inside.shape[2]})"
        raise InputError(message(text, f"Got {outside.shape}"))
    if not (np.all(np.isfinite(inside)) and np.all(np.isfinite(outside))):
        raise InputError(message(f"The matrices of player {j} must be finite", "Got NaN or infinity"))
