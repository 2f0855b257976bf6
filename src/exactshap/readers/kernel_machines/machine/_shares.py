"""Equal shares of a number that every player brings along."""

from __future__ import annotations

import numpy as np

from exactshap.games import ProductGame

__all__ = ["with_equal_shares"]


def with_equal_shares(game: ProductGame, total: np.ndarray, *, constant: np.ndarray) -> ProductGame:
    """Return a batch of games plus ``total`` (n_outputs,) times |S| / d, with another constant."""
    d = game.n_players
    c = np.concatenate([game.c, np.broadcast_to(total / d, (d, game.n_outputs))])
    a = np.concatenate([game.a, np.ones((len(game.a), d, d))], axis=1)
    b = np.concatenate([game.b, np.broadcast_to(1.0 - np.eye(d), (1, d, d))], axis=1)
    return ProductGame(c[:, 0] if game.single_output else c, a, b, constant=constant)
