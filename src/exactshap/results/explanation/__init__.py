"""What an explanation holds: arrays, names, the question asked, and how far off the answer can be."""

from __future__ import annotations

from exactshap.results.explanation._cells import Cells as Cells
from exactshap.results.explanation._cells import axis_name as axis_name
from exactshap.results.explanation._cells import cells as cells
from exactshap.results.explanation._cells import row_name as row_name
from exactshap.results.explanation._certificate import Certificate
from exactshap.results.explanation._conversion import frame_kind as frame_kind
from exactshap.results.explanation._explanation import Explanation
from exactshap.results.explanation._fingerprint import fingerprint
from exactshap.results.explanation._words import NAMES_ELSEWHERE as NAMES_ELSEWHERE
from exactshap.results.explanation._words import called_here as called_here
from exactshap.results.explanation._words import counted as counted
from exactshap.results.explanation._words import index_title as index_title
from exactshap.results.explanation._words import value_function_sentence

__all__ = ["Certificate", "Explanation", "fingerprint", "value_function_sentence"]
