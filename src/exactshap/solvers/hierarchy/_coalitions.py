"""The coalitions that a hierarchy of players admits, and their weights: few, where groups are small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap.games import all_masks
from exactshap.semivalues import Branch, Semivalue

__all__ = ["Admitted", "admitted", "n_admitted"]


@dataclass(frozen=True, eq=False)
class Admitted:
    """Coalitions before each player: ``masks (n, n_players)`` with ``weights (n,)``, per player."""

    masks: dict[int, np.ndarray]
    weights: dict[int, np.ndarray]

    def matrix(self, n_players: int) -> np.ndarray:
        """Return the weights (n_players, 2^d) of all coalitions of few players: values are the matrix times the table of v."""
        found = np.zeros((n_players, 2**n_players))
        bits = 1 << np.arange(n_players)
        for j, masks in self.masks.items():
            codes = masks @ bits
            np.add.at(found[j], codes | (1 << j), self.weights[j])
            np.add.at(found[j], codes, -self.weights[j])
        return found


def admitted(tree: Branch, semivalue: Semivalue, n_players: int) -> Admitted:
    """Return what can be there before each player joins, with the weight of it."""
    found = Admitted({}, {})
    _descend(tree, semivalue, np.zeros((1, n_players), bool), np.ones(1), found)
    return found


def n_admitted(tree: Branch) -> float:
    """Return an upper limit of the number of different coalitions."""
    n = len(tree.members)
    ways = float(n) if tree.ordered else 2.0 ** (n - 1)
    inner = [member for member in tree.members if isinstance(member, Branch)]
    own = (n + 1.0 if tree.ordered else 2.0**n) if len(inner) < n else 0.0
    each = 1.0 if tree.ordered else ways
    return own + each * sum(n_admitted(member) for member in inner)


def _descend(tree: Branch, semivalue: Semivalue, before: np.ndarray, weights: np.ndarray, found: Admitted) -> None:
    """Add the siblings that can be there before each member, and go down."""
    blocks = np.zeros((len(tree.members), before.shape[1]), bool)
    for block, member in zip(blocks, tree.members, strict=True):
        block[list(member.players()) if isinstance(member, Branch) else [member]] = True  # type: ignore[index]
    for place, member in enumerate(tree.members):
        if tree.ordered:
            chosen, share = blocks[:place].any(axis=0).reshape(1, -1), np.ones(1)
        else:
            subsets = all_masks(len(blocks) - 1)
            chosen = subsets.astype(np.int64) @ np.delete(blocks, place, axis=0).astype(np.int64) > 0
            share = semivalue.weights(len(blocks))[subsets.sum(axis=1)]
        masks = (before[:, None] | chosen).reshape(-1, before.shape[1])
        product = np.outer(weights, share).ravel()
        if isinstance(member, Branch):
            _descend(member, semivalue, masks, product, found)
        else:
            found.masks[int(member)], found.weights[int(member)] = masks, product
