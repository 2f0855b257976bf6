"""Models become games here: one file per family or library, found by dotted name, imported on first sight."""

from exactshap.readers._base import Reader, Request, choose_value_function, names_of, players_of, select_outputs
from exactshap.readers._registry import read, register, registered

__all__ = [
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
