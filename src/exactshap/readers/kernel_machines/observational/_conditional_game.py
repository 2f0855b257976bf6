"""The observational games of some rows: one conditional expectation for each coalition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.threads import coalitions_in_threads
from exactshap.games import OracleGame, check_masks
from exactshap.readers.kernel_machines.observational._embedding_choice import Routes

__all__ = ["ConditionalGame"]


@dataclass(frozen=True, eq=False)
class ConditionalGame:
    """A batch of observational games, one for each row; v(empty) and v(D) are exact by definition."""

    function: Any
    empty: np.ndarray
    full: np.ndarray
    intercept: np.ndarray
    n_players: int
    single_output: bool
    size: float = 0.0  # values of a coalition's largest matrix
    routes: Routes | None = None  # what each form would cost, for ``choose``
    approximate: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.full)

    @property
    def n_outputs(self) -> int:
        return self.full.shape[1]

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S), of shape (n_rows, n_masks[, n_outputs])."""
        masks = check_masks(masks, self.n_players)
        groups = _with_complements(masks) if hasattr(self.function, "pair") else [(i,) for i in range(len(masks))]
        values = np.empty((self.n_rows, len(masks), self.n_outputs))
        for group, found in zip(
            groups, coalitions_in_threads(lambda group: self._some(masks, group), groups, self.size), strict=True
        ):
            for column, value in zip(group, found, strict=True):
                values[:, column] = value
        return values[..., 0] if self.single_output else values

    def _some(self, masks: np.ndarray, group: tuple[int, ...]) -> list[np.ndarray]:
        """Return v of one coalition, or of one and its complement."""
        if len(group) == 2 and not masks[group[0]].all() and masks[group[0]].any():
            return [part + self.intercept for part in self.function.pair(masks[group[0]])]
        return [self._one(masks[column]) for column in group]

    def _one(self, mask: np.ndarray) -> np.ndarray:
        if mask.all():
            return self.full
        return np.asarray(self.function(mask) + self.intercept) if mask.any() else np.broadcast_to(self.empty, self.full.shape)

    def as_oracle(self) -> OracleGame:
        """Return one game whose outputs are all outputs of all rows."""
        return OracleGame(self._flat, self.n_players)

    def _flat(self, masks: np.ndarray) -> np.ndarray:
        return np.moveaxis(self.value(masks).reshape(self.n_rows, len(masks), -1), 1, 0).reshape(len(masks), -1)


def _with_complements(masks: np.ndarray) -> list[tuple[int, ...]]:
    """Return the numbers of the masks, each with that of its complement where both are there."""
    waiting: dict[bytes, list[int]] = {}
    groups: list[tuple[int, ...]] = []
    for i, mask in enumerate(masks):
        others = waiting.get(np.packbits(~mask).tobytes())
        if others:
            groups.append((others.pop(), i))
        else:
            waiting.setdefault(np.packbits(mask).tobytes(), []).append(i)
    return groups + [(i,) for left in waiting.values() for i in left]
