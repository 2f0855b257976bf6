"""Cooperative games in three kinds: products, sums of small terms, and oracles.

Whatever people bring is read into one of these. Each has one mandatory method, ``value(masks)``, which is slow and obvious:
it is the definition that every fast solver is tested against. Games are frozen; their arrays are read-only.
"""

from exactshap.games._additive import AdditiveGame
from exactshap.games._base import Game, all_masks, check_masks
from exactshap.games._base import n_coalitions as n_coalitions
from exactshap.games._base import squeeze as squeeze
from exactshap.games._oracle import OracleGame
from exactshap.games._product import ProductGame
from exactshap.games._product import normalised_weights as normalised_weights

__all__ = ["AdditiveGame", "Game", "OracleGame", "ProductGame", "all_masks", "check_masks"]
