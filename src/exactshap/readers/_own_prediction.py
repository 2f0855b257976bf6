"""A model's own prediction of few rows without what its documented call does first, which takes longer than all the rest.

A direct way is used only where it has shown, in this process, that it gives the documented call's bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from exactshap._runtime.crew import in_company
from exactshap._runtime.process_settings import without_warnings
from exactshap.frames import Table
from exactshap.readers._stages import Stages

__all__ = ["OwnPrediction"]

FEW = 1024  # rows, from which on nobody notices what a call costs
_of_kinds: dict[
    tuple[type, Any, Hashable], Any
] = {}  # by class, direct way and kind: the methods that it agreed with on one model


class OwnPrediction:
    """The library's own prediction of a table: ``own(table) -> (n_rows,) or (n_rows, n_outputs)``.

    Parameters
    ----------
    model : object
    name : str
        The model's documented method, which must stay the one that was compared.
    documented : callable
        ``documented(model, rows)``, of rows of whatever kind the library takes.
    direct : callable or None
        ``direct(model, array)`` of C-contiguous numbers in double or single precision, or what ``cells`` gives, None where it cannot;
        None where there is none.
        It may have ``stages(model, array)``, too.
    trial : array of shape (n_rows, n_columns), a function that returns one, or None
        Rows on which both are compared.
    few : int, default=0
        How many of them are compared by themselves as well, where the direct way takes few rows in another way.
    of_frames : bool, default=True
        Whether the library takes the numbers of a frame as they are.
    readable : callable or None
        ``readable(table)``: the table as the library's own method takes it; None where it takes all.
    through : tuple of str, default=()
        Other methods that the documented one goes through, which must stay, too.
    cells : callable or None
        ``cells(table)``: the array for the direct way, of any layout, or what else it takes, or None; by default numbers as above.
    most : float, default=FEW
        Rows up to which the direct way is taken.
    shared_from : int, optional
        Rows from which on the direct way is taken, where other threads work meanwhile; by default it is taken wherever this thread works.
    kind : hashable, default=None
        Models of a class and a kind for all of which a comparison with one speaks: for a prediction that is held against another one.
        None compares for each model.
    """

    def __init__(
        self,
        model: Any,
        name: str,
        documented: Callable[[Any, Any], Any],
        direct: Callable[[Any, np.ndarray], np.ndarray | None] | None,
        *,
        trial: np.ndarray | Callable[[], np.ndarray] | None,
        few: int = 0,
        of_frames: bool = True,
        readable: Callable[[Table], Table] | None = None,
        through: tuple[str, ...] = (),
        cells: Callable[[Table], Any] | None = None,
        most: float = FEW,
        shared_from: int | None = None,
        kind: Hashable = None,
    ) -> None:
        self._model, self._names, self._documented, self._direct = model, (name, *through), documented, direct
        self._trial, self._few, self._of_frames, self._readable = trial, few, of_frames, readable
        self._numbers, self._most, self._shared_from, self._kind = cells, most, shared_from, kind
        self._compared: Any = None  # the methods that the direct way agreed with; False: it did not

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compared": None}  # another process may have another release

    @property
    def is_direct(self) -> bool:
        """Whether there is a direct way, which may still turn out to have other bits."""
        return self._direct is not None

    def __call__(self, X: Table) -> Any:
        direct = self._direct
        if direct is not None and self._pays(X.n_rows) and (array := self._cells(X)) is not None and self._agrees(direct):
            found = direct(self._model, array)
            if found is not None:
                return found
        return self._documented(self._model, (X if self._readable is None else self._readable(X)).native)

    def _pays(self, n_rows: int) -> bool:
        shared_from = self._shared_from
        return n_rows <= self._most and (shared_from is None or (n_rows >= shared_from and in_company.get()))

    def stages(self, X: Table) -> Stages | None:
        """Return the direct way of any number of rows in parts that threads may share; None where the documented call is taken."""
        make: Callable[[Any, np.ndarray], Stages | None] | None = getattr(self._direct, "stages", None)
        if self._direct is None or make is None or (array := self._cells(X)) is None or not self._agrees(self._direct):
            return None
        return make(self._model, array)

    def _cells(self, X: Table) -> Any:
        """Return rows as the library reads them itself; None where it may do more than take numbers as they are."""
        if X.is_sparse:
            return None
        if self._numbers is not None:
            return self._numbers(X)
        if not X.is_frame:
            array = X.native
            return np.ascontiguousarray(array) if array.dtype in (np.float64, np.float32) else None
        return X.numeric() if X.is_plain and self._of_frames else None

    def _agrees(self, direct: Callable[[Any, Any], Any]) -> bool:
        """Say whether the direct way gives the bits of the model's method, and that is still the one that it was compared with."""
        methods = self._methods()
        if self._compared is None and self._kind is not None:
            self._compared = _of_kinds.get((type(self._model), direct, self._kind))
        if self._compared is None:
            self._compared = self._tried(direct) and methods
            if self._kind is not None:
                _of_kinds[type(self._model), direct, self._kind] = self._compared
        return methods == self._compared and self._model.__dict__.keys().isdisjoint(self._names)

    def _methods(self) -> tuple[Any, ...]:
        """Return the methods as every class of the model's has them: most call that of the class above."""
        return tuple(kind.__dict__.get(name) for kind in type(self._model).__mro__ for name in self._names)

    def _tried(self, direct: Callable[[Any, Any], Any]) -> bool:
        try:
            rows: Any = self._trial() if callable(self._trial) else self._trial
            parts = (rows, rows[: self._few]) if self._few else (rows,)
            with without_warnings:  # of names that the trial's rows lack: nobody has passed them
                return all(_is_same(direct(self._model, part), self._documented(self._model, part)) for part in parts)
        except Exception:  # of whatever kind: the documented call will tell the user, if it is more than the trial's rows
            return False


def _is_same(ours: np.ndarray | None, own: Any) -> bool:
    return ours is not None and np.array_equal(ours, np.asarray(own), equal_nan=True)
