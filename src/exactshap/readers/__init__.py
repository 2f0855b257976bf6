"""Read models as games: one file per family or library, chosen by dotted name and imported on first use.

``AdditiveModel`` and ``KernelMachine`` describe your own models by functions or arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use
from exactshap.readers._base import COARSE as COARSE
from exactshap.readers._base import Reader
from exactshap.readers._base import columns_of as columns_of
from exactshap.readers._base import is_of_target as is_of_target
from exactshap.readers._base import warn_of_rounding as warn_of_rounding
from exactshap.readers._delegating import AffineReader as AffineReader
from exactshap.readers._delegating import DelegatingReader
from exactshap.readers._delegating import TransformedReader as TransformedReader
from exactshap.readers._delegating import read_live as read_live
from exactshap.readers._delegating import reader_for as reader_for
from exactshap.readers._delegating import require_all_columns as require_all_columns
from exactshap.readers._identity import fitted_names as fitted_names
from exactshap.readers._identity import is_own_method as is_own_method
from exactshap.readers._identity import is_regressor as is_regressor
from exactshap.readers._identity import library_class as library_class
from exactshap.readers._identity import nameless as nameless
from exactshap.readers._identity import raise_not_fitted as raise_not_fitted
from exactshap.readers._identity import replaced as replaced
from exactshap.readers._identity import require_fitted as require_fitted
from exactshap.readers._identity import sklearn_name as sklearn_name
from exactshap.readers._identity import writes_to_rows as writes_to_rows
from exactshap.readers._registry import MOST_BEYOND as MOST_BEYOND
from exactshap.readers._registry import known_class as known_class
from exactshap.readers._registry import read, register
from exactshap.readers._registry import read_every_class as read_every_class
from exactshap.readers._registry import registered as registered
from exactshap.readers._registry import require_own_prediction as require_own_prediction
from exactshap.readers._request import Columns as Columns
from exactshap.readers._request import Request
from exactshap.readers._request import choose_value_function as choose_value_function
from exactshap.readers._request import players_of as players_of
from exactshap.readers._request import select_outputs as select_outputs
from exactshap.readers._state import ModelState as ModelState
from exactshap.readers._traits import Offset as Offset
from exactshap.readers._traits import Outputs as Outputs
from exactshap.readers._traits import OwnCall as OwnCall
from exactshap.readers._traits import Rounding, Traits
from exactshap.readers._traits import SecondReading as SecondReading
from exactshap.readers._traits import class_names as class_names
from exactshap.readers._traits import joined_outputs as joined_outputs
from exactshap.readers._traits import outputs_of as outputs_of
from exactshap.readers._traits import score_names as score_names
from exactshap.readers._traits import target_names as target_names
from exactshap.readers._ways_out import refuse_missing_attribute as refuse_missing_attribute

__all__ = [
    "AdditiveModel",
    "DelegatingReader",
    "KernelMachine",
    "OneLayerNetwork",
    "Reader",
    "Request",
    "Rounding",
    "TermScores",
    "Traits",
    "explain_terms",
    "read",
    "register",
]

if TYPE_CHECKING:
    from exactshap.readers._row_games import Coalitions as Coalitions
    from exactshap.readers._row_games import ConditionalGame as ConditionalGame
    from exactshap.readers._row_games import RowGames as RowGames
    from exactshap.readers._row_games import RowReader as RowReader
    from exactshap.readers._row_games import averaged as averaged
    from exactshap.readers._row_games import solve_moving as solve_moving
    from exactshap.readers._row_games import some_coalitions as some_coalitions
    from exactshap.readers._row_games import split_by_row as split_by_row
    from exactshap.readers.additive import AdditiveModel, TermScores, explain_terms
    from exactshap.readers.kernel_machines import KernelMachine
    from exactshap.readers.networks import OneLayerNetwork

__getattr__ = on_first_use(
    __name__,
    {
        "_row_games": "Coalitions ConditionalGame RowGames RowReader averaged solve_moving some_coalitions split_by_row",
        "additive": "AdditiveModel TermScores explain_terms",
        "kernel_machines": "KernelMachine",
        "networks": "OneLayerNetwork",
    },
)
