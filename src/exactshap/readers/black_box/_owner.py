"""Bound methods of models that are known exactly: the same numbers as the model's own reader, or not its method."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import RAISED, ExplanationWarning
from exactshap.frames import Table
from exactshap.readers import Reader, Request, is_own_method, joined_outputs, known_class, read

__all__ = ["CHECKED_ROWS", "owner_reader"]

# Background rows that a function is tried on before it is explained.
CHECKED_ROWS = 16


def owner_reader(model: Model, request: Request) -> Reader | None:
    """Return the exact reader of a method's owner, or None. None unless the method is what that reader reproduces.

    It must be the very method of the owner's library, give numbers and not labels, and agree with the reader on background rows
    and on mixtures of them: a forest's labels and probabilities agree on every row that it has memorised.
    """
    owner = getattr(model, "__self__", None)
    known = known_class(owner)
    if known is None or request.background is None or not is_own_method(model, known):
        return None
    try:
        reader = copy_context().run(_read_exactly, owner, request)
        rows = _checked_rows(request.background)
        expected, got = joined_outputs(model(rows.native)), np.asarray(reader.predict(rows), float)
    except Exception:  # whatever keeps the owner from being read exactly, the function itself can still be sampled
        return None
    if expected.shape != got.shape or not np.allclose(expected, got, rtol=64 * reader.precision, atol=0.0):
        return None
    return reader


def _read_exactly(owner: Any, request: Request) -> Reader:
    RAISED.set((ExplanationWarning,))  # of a part of the owner that can only be called
    return read(owner, request)


def _checked_rows(background: Table) -> Table:
    """Return the first background rows, plain and mixed with neighbours.

    The mixed ones take every other column from the neighbour.
    """
    here = np.arange(min(background.n_rows, CHECKED_ROWS))
    rows = background.take(np.tile(here, 2))
    others = background.take(np.concatenate([here, (here + 1) % background.n_rows]))
    return rows.hybrid(others, np.arange(background.n_columns) % 2 == 0)
