"""Define the three kinds of cooperative games: products, sums of small terms, and oracles.

Every model is read into one of these. Each has one mandatory method, ``value(masks)``, which is slow and simple:
the definition that every fast solver is tested against. Games are frozen; their arrays are read-only.
"""

from exactshap.games._composed import LiveGame as LiveGame
from exactshap.games._composed import SumGame as SumGame
from exactshap.games._composed import affine as affine
from exactshap.games._composed import spread as spread
from exactshap.games._composed import weighted_sum as weighted_sum
from exactshap.games._composed import with_equal_shares as with_equal_shares
from exactshap.games._games import AdditiveGame, Game, OracleGame, ProductGame, all_masks
from exactshap.games._games import check_masks as check_masks
from exactshap.games._games import coalition_products as coalition_products
from exactshap.games._games import n_coalitions as n_coalitions
from exactshap.games._games import normalised_weights as normalised_weights
from exactshap.games._games import player_of_columns as player_of_columns
from exactshap.games._games import squeeze as squeeze
from exactshap.games._games import unmasked as unmasked

__all__ = ["AdditiveGame", "Game", "OracleGame", "ProductGame", "all_masks"]
