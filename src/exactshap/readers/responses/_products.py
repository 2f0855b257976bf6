r"""Evaluate scores that are sums of products at the hybrids of a row and the background.

.. math:: f(x_S, z_{\bar S}) = c_0 + \sum_l c_l \prod_{j \in S} a_{lj} \prod_{j \notin S} b_{zlj}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.slices import slices
from exactshap.readers.responses._sampled import RowScores

# Players up to which all coalitions are visited at once; products at a time: 2 MiB, half of a core's second cache
MOST_PLAYERS, CHUNK_PRODUCTS = 20, 2**18

# src/native/responses/products.cpp
add_along = kernel("responses.add_along(place, present, absent, coefficients, out)")

# Background rows, and the factors b (n_some, n_players, n_terms) of the players outside
Tile = tuple[slice, np.ndarray]


@dataclass(frozen=True, eq=False)
class ProductScores(RowScores):
    """Hold the factors of one row's hybrids."""

    coefficients: np.ndarray  # (n_outputs, n_terms)
    present: np.ndarray  # (n_players, n_terms): a
    absent: Callable[[], Iterable[Tile]]
    constant: np.ndarray  # (n_outputs,)

    @classmethod
    def of_row(
        cls, coefficients: np.ndarray, present: np.ndarray, absent: Callable[[], Iterable[Tile]], constant: np.ndarray
    ) -> ProductScores:
        """Return the scores of a row. Players matter if their factors differ from those of some background row."""
        moving = np.any([(outside != present).any(axis=(0, 2)) for _, outside in absent()], axis=0)
        # Those of other players are the same in all hybrids
        coefficients = coefficients * present[~moving].prod(axis=0)

        def tiles() -> Iterator[Tile]:
            return ((rows, np.ascontiguousarray(outside[:, moving])) for rows, outside in absent())

        players = np.flatnonzero(moving).tolist()
        scores = cls(lambda masks: scores.of_masks(masks[:, players]), players, coefficients, present[moving], tiles, constant)
        return scores

    def of_masks(self, masks: np.ndarray) -> np.ndarray:
        """Return the scores (n_background, n_outputs, n_masks), by the definition; masks are those of ``players``."""
        tiles = []
        for _, outside in self.absent():
            some = slices(max(len(masks), 1), CHUNK_PRODUCTS // max(1, outside.shape[0] * outside.shape[2]))
            tiles.append(np.concatenate([self._of_tile(masks[rows], outside) for rows in some]))
        return np.concatenate(tiles, axis=1).transpose(1, 2, 0) + self.constant[:, None]

    def _of_tile(self, masks: np.ndarray, outside: np.ndarray) -> np.ndarray:
        products = np.ones((len(masks), len(outside), outside.shape[2]))
        for inside, a, b in zip(masks.T, self.present, outside.transpose(1, 0, 2), strict=True):
            products *= np.where(inside[:, None, None], a, b)
        return np.einsum("mzl,ol->mzo", products, self.coefficients)

    def along(self, orders: np.ndarray) -> np.ndarray:
        n_background, n_orders, n_players = orders.shape
        scores = np.empty((n_background, len(self.constant), n_orders, n_players + 1))
        scores[...] = self.constant[:, None, None]
        for rows, outside in self.absent():
            add_along(np.ascontiguousarray(orders[rows], np.int32), self.present, outside, self.coefficients, scores[rows])
        return scores

    def every(self) -> tuple[list[int], Iterable[np.ndarray]] | None:
        """Return the scores of all coalitions: each is one product with one of fewer players."""
        return (self.players, self._of_all()) if 2 <= len(self.players) <= MOST_PLAYERS else None

    def _of_all(self) -> Iterator[np.ndarray]:
        n_coalitions = 2 ** len(self.players)
        for _, tile in self.absent():
            for some in slices(len(tile), CHUNK_PRODUCTS // (n_coalitions * tile.shape[2])):
                outside = tile[some]
                scores = np.zeros((len(outside), len(self.constant), n_coalitions)) + self.constant[:, None]
                for terms in slices(outside.shape[2], CHUNK_PRODUCTS // n_coalitions):
                    products = np.ones((len(outside), outside[:, :, terms].shape[2], 1))
                    for a, b in zip(self.present[:, terms, None], outside.transpose(1, 0, 2)[:, :, terms, None], strict=True):
                        products = np.concatenate([products * b, products * a], axis=2)
                    scores += self.coefficients[:, terms] @ products
                yield scores
