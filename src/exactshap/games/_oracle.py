"""Games known only by calling something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from exactshap.errors import ExactshapError, InputError, InputTypeError, message
from exactshap.games._base import check_masks

__all__ = ["OracleGame"]


@dataclass(frozen=True, eq=False)
class OracleGame:
    """A game behind a function.

    Parameters
    ----------
    function : callable
        ``function(masks)`` with boolean ``masks`` of shape (n_masks, n_players) returns v(S) of shape (n_masks,) or
        (n_masks, n_outputs); (n_masks, 1) is one output. It gets a read-only array; what it raises is chained.
    n_players : int
        Number of players.

    Raises
    ------
    InputError
        If the number of players is no positive int; from ``value``, if the function answers another shape or numbers that are not finite.

    Examples
    --------
    >>> OracleGame(lambda masks: masks.sum(axis=1) ** 2.0, n_players=3).value([[True, True, False]])
    array([4.])
    """

    function: Callable[[np.ndarray], ArrayLike]
    n_players: int
    n_rows: ClassVar[None] = None  # a single game

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputTypeError(message("`function` must be callable", f"Got {type(self.function).__name__}"))
        if int(self.n_players) < 1:
            raise InputError(message("`n_players` must be at least 1", f"Got {self.n_players!r}"))

    @property
    def single_output(self) -> bool:
        return self._probe.ndim == 1

    @property
    def n_outputs(self) -> int:
        return 1 if self.single_output else self._probe.shape[1]

    @property
    def _probe(self) -> np.ndarray:
        """Some value returned before, for the number of outputs; the empty coalition's if there is none yet."""
        if "_returned" not in self.__dict__:
            self.value(np.zeros((1, self.n_players), bool))
        return np.asarray(self.__dict__["_returned"])

    def value(self, masks: ArrayLike) -> np.ndarray:
        """Return v(S) by calling the function on boolean ``masks`` (n_masks, n_players)."""
        coalitions = np.array(check_masks(masks, self.n_players), order="C")
        coalitions.setflags(write=False)
        try:
            values = np.asarray(self.function(coalitions))
        except ExactshapError:
            raise
        except Exception as error:
            raise _failure(coalitions, error) from error
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.dtype.kind not in "fiub":
            raise InputTypeError(message("The game's function must return real numbers", f"Got dtype {values.dtype}"))
        values = values.astype(float, copy=False)
        if values.ndim not in (1, 2) or len(values) != len(coalitions):
            raise InputError(message(f"The game's function returned shape {values.shape} for {len(coalitions)} coalitions"))
        if not np.all(np.isfinite(values)):
            bad = int(np.flatnonzero(~np.isfinite(values.reshape(len(coalitions), -1)).all(axis=1))[0])
            raise InputError(
                message(
                    "The game's function returned NaN or infinity",
                    f"First for coalition {np.flatnonzero(coalitions[bad]).tolist()}",
                )
            )
        if len(values):
            self.__dict__.setdefault("_returned", values[:1])  # saves the probe a call
        return values


def _failure(masks: np.ndarray, error: Exception) -> InputError:
    """Return what to raise where a game's function raised ``error``."""
    if isinstance(error, ValueError) and "read-only" in str(error):
        return InputError(message("The game's function changes its input", f"{error}", "Let it work on masks.copy()"))
    first = np.flatnonzero(masks[0]).tolist() if len(masks) else []
    text = f"The game's function raised {type(error).__name__} on {len(masks)} coalitions, the first {first}"
    return InputError(message(text, f"{error}", "Its own error is chained"))
