"""Hold the data of an explanation, convert it and describe it.

Pictures and reports take this data; :class:`exactshap.Explanation`, which people hold, adds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use
from exactshap.results.data._cells import Axis as Axis
from exactshap.results.data._cells import Cells as Cells
from exactshap.results.data._cells import as_days as as_days
from exactshap.results.data._cells import axis as axis
from exactshap.results.data._cells import axis_name as axis_name
from exactshap.results.data._cells import categories_in_order as categories_in_order
from exactshap.results.data._cells import cell_text as cell_text
from exactshap.results.data._cells import cells as cells
from exactshap.results.data._cells import fingerprint as fingerprint
from exactshap.results.data._cells import in_microseconds as in_microseconds
from exactshap.results.data._cells import in_order as in_order
from exactshap.results.data._cells import ordered_categories as ordered_categories
from exactshap.results.data._cells import player_columns as player_columns
from exactshap.results.data._cells import row_bytes as row_bytes
from exactshap.results.data._cells import row_name as row_name
from exactshap.results.data._certificate import Certificate as Certificate
from exactshap.results.data._certificate import near_one as near_one
from exactshap.results.data._certificate import without_noise as without_noise
from exactshap.results.data._conversion import concat as concat
from exactshap.results.data._conversion import from_solution as from_solution
from exactshap.results.data._conversion import to_frame as to_frame
from exactshap.results.data._conversion import to_shap as to_shap
from exactshap.results.data._conversion import to_shapiq as to_shapiq
from exactshap.results.data._explanation_data import ExplanationData as ExplanationData
from exactshap.results.data._facts import bibtex as bibtex
from exactshap.results.data._facts import cited_by_decomposition as cited_by_decomposition
from exactshap.results.data._facts import cited_by_values as cited_by_values
from exactshap.results.data._facts import counted as counted
from exactshap.results.data._facts import facts as facts
from exactshap.results.data._facts import game_sentence as game_sentence
from exactshap.results.data._facts import game_title as game_title
from exactshap.results.data._facts import headline as headline
from exactshap.results.data._facts import index_title as index_title
from exactshap.results.data._facts import readable as readable
from exactshap.results.data._facts import value_function_sentence as value_function_sentence
from exactshap.results.data._frames import NamedValues as NamedValues
from exactshap.results.data._frames import frame_kind as frame_kind
from exactshap.results.data._frames import frame_of as frame_of
from exactshap.results.data._frames import write_parquet as write_parquet
from exactshap.results.data._names_elsewhere import answers_keywords as answers_keywords
from exactshap.results.data._names_elsewhere import called_here as called_here
from exactshap.results.data._names_elsewhere import keyword_here as keyword_here
from exactshap.results.data._names_elsewhere import picture as picture
from exactshap.results.data._names_elsewhere import refuse_name as refuse_name
from exactshap.results.data._validation import place_of as place_of
from exactshap.results.data._validation import row_numbers as row_numbers

if TYPE_CHECKING:
    from exactshap.results.data._filter import filter_grammar as filter_grammar
    from exactshap.results.data._filter import filtered_rows as filtered_rows
    from exactshap.results.data._importance import Importance as Importance
    from exactshap.results.data._importance import bootstrap_deviations as bootstrap_deviations
    from exactshap.results.data._importance import checked_background_values as checked_background_values
    from exactshap.results.data._importance import importance as importance
    from exactshap.results.data._importance import interval_around as interval_around
    from exactshap.results.data._importance import normal_reach as normal_reach
    from exactshap.results.data._importance import percentile_expansion as percentile_expansion
    from exactshap.results.data._observed import Observed as Observed
    from exactshap.results.data._observed import named_target as named_target
    from exactshap.results.data._observed import observe as observe
    from exactshap.results.data._observed import response as response

__getattr__ = on_first_use(
    __name__,
    {
        "_filter": "filter_grammar filtered_rows",
        "_importance": "Importance bootstrap_deviations checked_background_values importance interval_around normal_reach percentile_expansion",
        "_observed": "Observed named_target observe response",
    },
)
