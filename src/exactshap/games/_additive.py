"""Games that are sums of terms on few players each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from exactshap.errors import InputError, message
from exactshap.games._base import check_masks, frozen, squeeze

__all__ = ["AdditiveGame"]


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
            raise InputError(message("One table is needed for each subset", f"Got {len(terms)} subsets, {len(arrays)} tables"))
        dimensions = {array.ndim for array in arrays} or {1}
        if len(dimensions) > 1 or not dimensions <= {1, 2, 3}:
            raise InputError(message("All tables must have the same 1, 2 or 3 dimensions", f"Got {sorted(dimensions)}"))
        ndim = dimensions.pop()
        arrays = [array if ndim == 3 else array.reshape((-1, array.shape[-1], 1)) for array in arrays]
        for term, array in zip(terms, arrays, strict=True):
            _check_term(term, array, n_players)
        if len({(array.shape[0], array.shape[2]) for array in arrays}) > 1:
            raise InputError(message("All tables must have the same rows and outputs", f"Got {[t.shape for t in arrays]}"))
        constants = np.atleast_1d(np.asarray(constant, float))
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
            codes = masks[:, list(subset)] @ (1 << np.arange(len(subset)))
            values += table[:, codes.astype(int), :]
        return squeeze(self, values)


def _check_term(subset: tuple[int, ...], table: np.ndarray, n_players: int) -> None:
    if len(set(subset)) != len(subset) or any(not 0 <= j < n_players for j in subset):
        raise InputError(message(f"A term's players must be distinct and within 0..{n_players - 1}", f"Got {subset}"))
    if table.shape[1] != 2 ** len(subset):
        raise InputError(message(f"The table of term {subset} must hold {2 ** len(subset)} values", f"Got {table.shape[1]}"))
    if not np.all(np.isfinite(table)):
        raise InputError(message(f"The table of term {subset} must be finite", "Got NaN or infinity"))
