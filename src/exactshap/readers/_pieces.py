"""A model's own prediction of many rows, a piece of them at a time.

What the model makes of a piece stays in a core's caches, and threads share the pieces.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers._stages import STAGED, Stages

__all__ = ["LINES", "InPieces", "many_cells", "nameless", "trial_rows"]

VALUES = 2**19  # numbers that a piece makes at a time: 4 MiB
LINES = 64  # rows, of which pieces are made of whole numbers but for the last: linear algebra takes some at a time
TRIED = 2 * STAGED + 5  # rows of a trial: more than one piece


@dataclass(frozen=True)
class InPieces:
    """A model's own prediction by pieces of rows, each by ``predict(model, rows) -> array or None``, where rows do not share arithmetic.

    It is the direct way of an :class:`OwnPrediction`, and equal to others that do the same.

    Parameters
    ----------
    predict : callable
        A function of a module; None where the documented call is to be asked.
    width : int
        Numbers that it makes of a row at a time.
    """

    predict: Callable[[Any, np.ndarray], np.ndarray | None]
    width: int

    def __call__(self, model: Any, rows: np.ndarray) -> np.ndarray | None:
        found: dict[int, np.ndarray] = {}
        pieces = self._pieces(len(rows))
        return _joined(found) if all(self._add(model, rows, piece, found) for piece in pieces) else None

    def stages(self, model: Any, rows: np.ndarray) -> Stages:
        """Return the same in parts that threads may share."""
        found: dict[int, np.ndarray] = {}
        tasks = [partial(self._add, model, rows, piece, found) for piece in self._pieces(len(rows))]
        return Stages(tasks, partial(_joined, found))

    def _pieces(self, n_rows: int) -> list[slice]:
        """Return an even number of slices of about as many rows, or one of few rows."""
        step = max(2 * LINES, VALUES // max(1, self.width))
        count = 2 * -(-n_rows // (2 * step)) if n_rows >= STAGED else 1
        ends = [*(n_rows * piece // count // LINES * LINES for piece in range(count)), n_rows]
        return [slice(start, stop) for start, stop in pairwise(ends)]

    def _add(self, model: Any, rows: np.ndarray, piece: slice, found: dict[int, np.ndarray]) -> bool:
        with np.errstate(all="ignore"):  # of each thread; overflow is told by the certificate
            part = self.predict(model, rows[piece])
        if part is None:
            return False
        found[piece.start] = part
        return True


def many_cells(cells: Callable[[Table], np.ndarray | None], X: Table) -> np.ndarray | None:
    """Return ``cells(X)`` of many rows, None of few: these are one piece, which the documented call takes."""
    return cells(X) if X.n_rows >= STAGED else None


def trial_rows(n_columns: int) -> np.ndarray:
    """Return rows in more than one piece, of some magnitudes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(TRIED, n_columns)) * 10.0 ** rng.integers(-1, 3, (TRIED, 1))


def nameless(estimator: Any) -> Any:
    """Return a copy that takes arrays without a warning about names."""
    twin = copy.copy(estimator)
    twin.__dict__.pop("feature_names_in_", None)
    return twin


def _joined(found: dict[int, np.ndarray]) -> np.ndarray:
    return np.concatenate([found[start] for start in sorted(found)])
