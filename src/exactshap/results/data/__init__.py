"""Data of an explanation: arrays that fit together, cells of its table, words, and the forms of other libraries.

Below pictures and reports, which take this data; :class:`exactshap.Explanation`, which people hold, is on top of them.
"""

from __future__ import annotations

from exactshap.results.data._cells import Cells, axis_name, cell_text, cells, player_columns, row_name
from exactshap.results.data._certificate import Certificate
from exactshap.results.data._concat import concat
from exactshap.results.data._conversion import frame_kind, shap_of_columns, to_frame, to_shap, to_shapiq
from exactshap.results.data._explanation_data import ExplanationData
from exactshap.results.data._facts import facts, headline
from exactshap.results.data._fingerprint import fingerprint
from exactshap.results.data._named_values import NamedValues
from exactshap.results.data._names_elsewhere import called_here
from exactshap.results.data._observed import Observed, observe
from exactshap.results.data._of_solution import of_solution
from exactshap.results.data._words import counted, index_title, value_function_sentence

__all__ = [
    "Cells",
    "Certificate",
    "ExplanationData",
    "NamedValues",
    "Observed",
    "axis_name",
    "called_here",
    "cell_text",
    "cells",
    "concat",
    "counted",
    "facts",
    "fingerprint",
    "frame_kind",
    "headline",
    "index_title",
    "observe",
    "of_solution",
    "player_columns",
    "row_name",
    "shap_of_columns",
    "to_frame",
    "to_shap",
    "to_shapiq",
    "value_function_sentence",
]
