"""A booster's own margin of few rows without what its documented call does first, which takes longer than all of its trees.

A direct way is used only where it has shown, once in each process, that it gives the documented call's bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.trees import TreeModel
from exactshap.trees.ensemble import readable

__all__ = ["OwnMargin"]

FEW = 1024  # rows, from which on nobody notices what a call costs


class OwnMargin:
    """The library's own margin of a table: ``own_margin(table) -> (n_rows,) or (n_rows, n_outputs)``.

    Parameters
    ----------
    model : object
    ensemble : TreeModel
        What its library's converter made of it.
    name : str
        The model's documented method, which must stay the one that was compared.
    documented : callable
        ``documented(model, rows)``, of rows of whatever kind the library takes.
    direct : callable
        ``direct(model, array)`` of C-contiguous numbers in double or single precision; None where it cannot.
    """

    def __init__(
        self,
        model: Any,
        ensemble: TreeModel,
        name: str,
        documented: Callable[[Any, Any], Any],
        direct: Callable[[Any, np.ndarray], np.ndarray | None],
    ) -> None:
        self._model, self._ensemble, self._name = model, ensemble, name
        self._documented, self._direct = documented, direct
        self._compared: Any = None  # the method that the direct way agreed with; False: it did not

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compared": None}  # another process may have another release

    def __call__(self, X: Table) -> Any:
        if X.n_rows <= FEW and (array := self._cells(X)) is not None and self._agrees():
            found = self._direct(self._model, array)
            if found is not None:
                return found
        return self._documented(self._model, readable(self._ensemble, X).native)

    def _cells(self, X: Table) -> np.ndarray | None:
        """Return rows as the library reads them itself; None where it may do more than take numbers as they are."""
        if not X.is_frame:
            array = X.native
            return np.ascontiguousarray(array) if array.dtype in (np.float64, np.float32) else None
        return X.numeric() if X.is_plain and not any(self._ensemble.categories) else None

    def _agrees(self) -> bool:
        """Say whether the direct way gives the bits of the model's method, and that is still the one that it was compared with."""
        method = getattr(type(self._model), self._name)
        if self._compared is None:
            n = self._ensemble.n_features
            trial = np.stack([np.linspace(-1.0, 1.0, n), np.zeros(n), np.full(n, np.nan)])
            try:
                ours, own = self._direct(self._model, trial), np.asarray(self._documented(self._model, trial))
                self._compared = ours is not None and np.array_equal(ours, own, equal_nan=True) and method
            except Exception:  # of whatever kind: the documented call will tell the user, if it is more than the trial's rows
                self._compared = False
        return method is self._compared and self._name not in self._model.__dict__
