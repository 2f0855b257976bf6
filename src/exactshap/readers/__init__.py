"""Models become games here: one file per family or library, found by dotted name, imported on first sight.

``AdditiveModel`` and ``KernelMachine`` are the ways in for models of your own, given as functions or arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exactshap.readers._base import FEW_AT_ONCE as FEW_AT_ONCE
from exactshap.readers._base import Reader
from exactshap.readers._base import columns_of as columns_of
from exactshap.readers._conditional_game import Coalitions as Coalitions
from exactshap.readers._conditional_game import ConditionalGame as ConditionalGame
from exactshap.readers._conditional_game import some_coalitions as some_coalitions
from exactshap.readers._delegating import DelegatingReader
from exactshap.readers._hierarchical import reader_for as reader_for
from exactshap.readers._identity import is_own_method as is_own_method
from exactshap.readers._identity import library_class as library_class
from exactshap.readers._identity import replaced as replaced
from exactshap.readers._identity import sklearn_name as sklearn_name
from exactshap.readers._own_call import OwnCall as OwnCall
from exactshap.readers._own_call import outputs_of as outputs_of
from exactshap.readers._own_prediction import OwnPrediction as OwnPrediction
from exactshap.readers._pieces import LINES as LINES
from exactshap.readers._pieces import InPieces as InPieces
from exactshap.readers._pieces import many_cells as many_cells
from exactshap.readers._pieces import nameless as nameless
from exactshap.readers._pieces import trial_rows as trial_rows
from exactshap.readers._players import players_of
from exactshap.readers._registry import known_class as known_class
from exactshap.readers._registry import read, register, registered
from exactshap.readers._registry import require_own_prediction as require_own_prediction
from exactshap.readers._request import RESPONSES as RESPONSES
from exactshap.readers._request import Request, choose_value_function, names_of, select_outputs
from exactshap.readers._request import finite_numbers as finite_numbers
from exactshap.readers._sklearn import are_sklearns_own as are_sklearns_own
from exactshap.readers._sklearn import assuming_finite as assuming_finite
from exactshap.readers._sklearn import fitted_names as fitted_names
from exactshap.readers._sklearn import is_sklearns_own as is_sklearns_own
from exactshap.readers._sklearn import require_fitted as require_fitted
from exactshap.readers._sklearn import writes_to_rows as writes_to_rows
from exactshap.readers._stages import STAGED as STAGED
from exactshap.readers._stages import Stages as Stages
from exactshap.readers._stages import predicted_in_stages as predicted_in_stages
from exactshap.readers._stages import values_of_a_piece as values_of_a_piece
from exactshap.readers._steps import certified as certified
from exactshap.readers._steps import own_prediction as own_prediction
from exactshap.readers._steps import solve_some as solve_some

__all__ = [
    "AdditiveModel",
    "DelegatingReader",
    "KernelMachine",
    "Reader",
    "Request",
    "choose_value_function",
    "names_of",
    "players_of",
    "read",
    "register",
    "registered",
    "select_outputs",
]

if TYPE_CHECKING:
    from exactshap.readers.additive import AdditiveModel
    from exactshap.readers.kernel_machines import KernelMachine

_MODELS = {
    "AdditiveModel": "exactshap.readers.additive.additive_model",
    "KernelMachine": "exactshap.readers.kernel_machines.kernel_machine",
}


def __getattr__(name: str) -> Any:
    """Import the models that people build themselves on first use."""
    import importlib

    if name in _MODELS:
        return getattr(importlib.import_module(_MODELS[name]), name)
    raise AttributeError(f"module 'exactshap.readers' has no attribute {name!r}")
