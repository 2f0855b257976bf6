"""The models of a sum: how each of them is read, and what it adds."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.errors import ExactshapError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Reader, Request
from exactshap.readers import read as read_any
from exactshap.readers.wrappers._live_players import read_live

__all__ = ["Member", "name_of_sum", "read_member", "total_of"]


@dataclass(frozen=True, eq=False)
class Member:
    """One model of a sum.

    Attributes
    ----------
    reader : Reader
    weights : array of shape (n_member_outputs, n_outputs)
        What each of its outputs adds to those of the sum.
    columns : tuple of int or None
        The columns that it was fitted on, as an array; None: it takes the rows as they come.
    """

    reader: Reader
    weights: np.ndarray
    columns: tuple[int, ...] | None = None

    def rows(self, X: Table) -> Table:
        """Return the rows as the member takes them."""
        return X if self.columns is None else _array(X, self.columns)

    def add_to(self, total: np.ndarray, values: np.ndarray) -> None:
        """Add to ``total (..., n_outputs)`` what the member's ``values (..., [n_member_outputs])`` give to the sum."""
        for target, source, weight in self._shares:
            given = values if self.reader.single_output else values[source]
            total[target] += given if weight == 1.0 else weight * given

    @functools.cached_property
    def _shares(self) -> tuple[tuple[Any, Any, float], ...]:
        """Return outputs of the sum, outputs of the member, and the weight between them, where that is not 0."""
        weights = self.weights
        if len(weights) > 1 and np.array_equal(weights, weights[0, 0] * np.eye(len(weights))):
            return ((..., ..., float(weights[0, 0])),)  # all outputs at once
        return tuple(((..., k), (..., i), float(weights[i, k])) for i, k in np.argwhere(weights))

    @property
    def magnitude(self) -> float:
        """The largest factor between an error of the member's outputs and one of the sum's."""
        return float(np.abs(self.weights).sum(axis=0).max(initial=0.0))


def total_of(members: Sequence[Member], arrays: Iterable[np.ndarray], constant: np.ndarray | None = None) -> np.ndarray:
    r"""Return the weighted sum (..., n_outputs) of what members give, one array (..., [n_member_outputs]) of each.

    .. math:: c + \sum_m a_m W_m
    """
    total: np.ndarray | None = None
    for member, array in zip(members, arrays, strict=True):
        if total is None:
            shape = array.shape if member.reader.single_output else array.shape[:-1]
            total = np.full((*shape, member.weights.shape[1]), 0.0)
        member.add_to(total, array)
    assert total is not None
    if constant is not None:
        total += constant
    return total


def name_of_sum(model: Any, readers: Iterable[Reader]) -> str:
    """Return what a sum is called: its class, with the kinds of its models."""
    return f"{type(model).__name__}({', '.join(dict.fromkeys(reader.model_name for reader in readers))})"


def read_member(model: Any, request: Request, owner: str, columns: Sequence[int] | None = None) -> Reader:
    """Read one model of a sum for the sum's players; ``columns``: those that it was fitted on, as an array.

    A model that cannot be read is refused with the sum's own prediction as the way out.
    """
    if columns is not None:
        request = _of_columns(request, tuple(columns))
    try:
        return read_live(functools.partial(read_any, model), request) if request.players else read_any(model, request)
    except UnsupportedStructureError as error:
        raise UnsupportedStructureError(_of_member(owner, error)) from error
    except ExactshapError as error:
        raise type(error)(_of_member(owner, error)) from error


def _of_member(owner: str, error: Exception) -> str:
    return f"{owner} is read as the sum of its models, and one of them is refused: {error}"


def _of_columns(request: Request, columns: tuple[int, ...]) -> Request:
    """Return the request of a model that was fitted on some columns, which may be repeated; players keep their number."""
    assert request.players is not None
    assert request.feature_names is not None
    players = tuple(
        (name, tuple(place for place, column in enumerate(columns) if column in members)) for name, members in request.players
    )
    background = None if request.background is None else _array(request.background, columns)
    repeated = len(set(columns)) < len(columns)
    names = tuple(request.feature_names[c] + (f" [{place}]" if repeated else "") for place, c in enumerate(columns))
    return replace(request, background=background, players=players, feature_names=names)


def _array(X: Table, columns: tuple[int, ...]) -> Table:
    values = X.numeric() if X.is_frame else np.asarray(X.native)
    if columns != tuple(range(X.n_columns)):
        values = values[:, list(columns)]
    return Table(np.ascontiguousarray(values), None, X.n_rows, len(columns))
