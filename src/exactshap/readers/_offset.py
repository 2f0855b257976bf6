"""Offsets of rows: log exposures and base margins, which belong to a row and not to its columns."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from exactshap.errors import InputError, UnsupportedStructureError, message
from exactshap.frames import Table
from exactshap.readers._base import Reader
from exactshap.readers._own_call import Offset

__all__ = ["require_score", "with_offset"]


def require_score(reader: Reader) -> Offset:
    """Return how a model takes offsets."""
    if reader.offset is None or reader.unit.startswith("probability"):
        what = f"An offset is added to a score, and {reader.model_name} is explained as {reader.unit}"
        raise UnsupportedStructureError(message(what, do=_way_to_score(reader)))
    return reader.offset


def with_offset(reader: Reader, X: Table, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions with an offset for each row, and their shift.

    The shift is by how much they exceed predictions without.
    """
    how = require_score(reader)
    every = offset if offset.ndim == 2 or reader.single_output else np.repeat(offset[:, None], reader.n_outputs, axis=1)
    wanted = (X.n_rows,) if reader.single_output else (X.n_rows, reader.n_outputs)
    if every.shape != wanted:
        raise InputError(message(f"`offset` must have shape {wanted}", f"Got {offset.shape}", "Pass one number for each row"))
    if np.size(how.replaces) not in (1, reader.n_outputs):
        do = "Explain all outputs with output='all'; explanation.output(name) picks one"
        raise UnsupportedStructureError(message("An offset is given to all outputs of the model at once", do=do))
    shift = every - (np.ravel(how.replaces)[0] if reader.single_output else how.replaces)
    if how.keyword is None or reader.own_call is None:
        return np.asarray(reader.predict(X), float) + shift, shift
    offset_reader = copy.copy(reader)
    offset_reader.own_call = replace(reader.own_call, settings={**reader.own_call.settings, how.keyword: every})
    return np.asarray(offset_reader.predict(X), float), shift


def _way_to_score(reader: Reader) -> str:
    if reader.offset is None:
        return "Explain the score with output='auto', or make the offset a column of a function's rows"
    return "Explain a function that adds the offset, as a column of its rows, before it turns scores into probabilities"
