"""Call a function on batches of rows through an ordered map."""

from __future__ import annotations

import builtins
import functools
import hashlib
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.files import atomic_write, read_bounded
from exactshap._runtime.types import TableLike
from exactshap.errors import ExplanationWarning, InputError, InputTypeError, ModelFormatError, warn
from exactshap.frames import Table, as_table
from exactshap.results.data import counted, fingerprint
from exactshap.scale._pickled import Carried, object_digest

# SHA-256, after the array: NumPy reads such a file as well.
_DIGEST_BYTES = 32


class CallError(RuntimeError):
    """Raised when a call fails; ``row`` is the first row of its batch."""

    def __init__(self, text: str, row: int) -> None:
        super().__init__(text)
        self.row = row


class _DamageWarning(ExplanationWarning):
    """Tell of a damaged file, also where warnings of the model are ignored."""

    is_always_given = True


class MappedFunction:
    """Cut a black box's rows into batches for any ordered map.

    Give it to :class:`exactshap.Explainer` in place of the function: the coalitions of a row are cut into batches, and with
    ``n_jobs`` threads the batches of several rows are under way at once.

    Parameters
    ----------
    function : callable
        Takes tables of the kind that the background is, returns (n_rows,) or (n_rows, n_outputs) numbers. It travels to the workers.
    map : callable, default=None
        An ordered map, such as ``executor.map``. None calls the function here, one batch after the other.
    batch_rows : int, default=1000
        Rows of one call. Batches do not depend on the number of workers, so the result has the same bits for any.
    kept : path, default=None
        Folder in which the answer of every finished call is kept, by the digests of the function and of its rows: after a call that
        failed, or a run that was killed, only what is missing is called. Each file holds a digest of itself; one that does not fit it is
        computed again, with a warning.

    Raises
    ------
    InputError
        If ``kept`` is given for a function that cannot be pickled, or ``batch_rows`` is no positive int.
    InputTypeError
        If ``function`` cannot be called.

    Notes
    -----
    A failed call is raised, with its coalition and row, after all other calls of the request have finished, so that those are kept.
    Kept answers are plain arrays of numbers; nothing is unpickled.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap import Explainer
    >>> def slow(rows):
    ...     return rows[:, 0] * rows[:, 1]
    >>> explainer = Explainer(MappedFunction(slow, batch_rows=2), np.zeros((1, 2)))
    >>> explainer([[2.0, 3.0]]).values
    array([[3., 3.]])
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        map: Callable[..., Iterable[Any]] | None = None,
        *,
        batch_rows: int = 1000,
        kept: str | os.PathLike[str] | None = None,
    ) -> None:
        if not callable(function):
            raise InputTypeError("The 'function' parameter must be callable", f"Got {type(function).__name__}")
        self._map, self._batch_rows = map or builtins.map, check_count("batch_rows", batch_rows)
        self._call = Carried(functools.partial(_attempt, function))
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self._folder = None if kept is None else Path(kept)
        self._digest = None if kept is None else object_digest(function)
        if self._folder is not None:
            if self._digest is None:
                do = "Leave kept= out, or pass a function that pickles"
                raise InputError(f"{self.__name__} cannot be pickled, so that kept answers cannot be matched with it", do=do)
            self._folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, rows: TableLike) -> np.ndarray:
        """Return the function's answers for some rows.

        Parameters
        ----------
        rows : array or DataFrame of shape (n_rows, n_features)

        Returns
        -------
        values : array of shape (n_rows,) or (n_rows, n_outputs)
        """
        table = as_table(rows)
        starts = range(0, table.n_rows, self._batch_rows)
        batches = [table.take(slice(start, min(start + self._batch_rows, table.n_rows))) for start in starts]
        places = [self._place(batch) for batch in batches]
        answers, differs = map(list, zip(*map(_kept, places), strict=True)) if places else ([], [])
        if damaged := sum(differs):
            text = f"{counted(damaged, 'kept answer')} in {self._folder} differed from what had been written: called again"
            warn(text, _DamageWarning)
        missing = [k for k, answer in enumerate(answers) if answer is None]
        failed: CallError | None = None
        outcomes = self._answers([batches[k].native for k in missing])
        for k, (answer, error) in zip(missing, outcomes, strict=True):
            if answer is not None:
                answers[k] = answer
                _keep(places[k], answer)
            elif failed is None:
                last = starts[k] + batches[k].n_rows - 1
                failed = CallError(f"{error} (rows {starts[k]} to {last} of {table.n_rows})", starts[k])
        if failed is not None:
            raise failed
        return np.concatenate([answer for answer in answers if answer is not None])

    def _answers(self, batches: list[Any]) -> Iterator[tuple[np.ndarray | None, str]]:
        """Yield the answer or the error of each batch. If the map itself fails (a killed worker), so do all batches left."""
        left, text = len(batches), "the map gave no answer"
        try:
            for answer in self._map(self._call, batches):
                yield answer
                left -= 1
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        yield from [(None, text)] * left

    def _place(self, batch: Table) -> Path | None:
        if self._folder is None:
            return None
        content = f"{self._digest} {batch.names} {fingerprint(batch.native)}".encode()
        return self._folder / f"{hashlib.sha256(content).hexdigest()}.npy"

    def __repr__(self) -> str:
        return f"MappedFunction({self.__name__}, batch_rows={self._batch_rows})"


def _attempt(function: Callable[[Any], Any], rows: TableLike) -> tuple[np.ndarray | None, str]:
    """Return the answer of a call, or its error as text: errors of users do not always pickle."""
    try:
        return np.asarray(function(rows)), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _kept(place: Path | None) -> tuple[np.ndarray | None, bool]:
    """Return the stored answer of a call, byte for byte, and whether its file is damaged."""
    if place is None:
        return None, False
    try:
        content = read_bounded(place, sys.maxsize - 1)
    except FileNotFoundError:
        return None, False
    except (OSError, ModelFormatError):
        return None, True
    numbers, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if digest != _digest(place, numbers):
        return None, True
    return np.load(io.BytesIO(numbers), allow_pickle=False), False


def _keep(place: Path | None, answer: np.ndarray) -> None:
    # What is not numbers is refused by the reader
    if place is None or answer.dtype.kind not in "fiub":
        return
    buffer = io.BytesIO()
    np.save(buffer, answer, allow_pickle=False)
    with atomic_write(place) as draft:
        draft.write_bytes(buffer.getvalue() + _digest(place, buffer.getvalue()))


def _digest(place: Path, numbers: bytes) -> bytes:
    return hashlib.sha256(place.name.encode() + numbers).digest()
