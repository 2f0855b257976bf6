"""Who plays: groups of columns, and every column that is in none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, message
from exactshap.readers._request import Request

__all__ = ["players_of"]


def players_of(request: Request, feature_names: tuple[str, ...]) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """Return the players of a request: its groups and every remaining column, in column order.

    Parameters
    ----------
    request : Request
    feature_names : tuple of str

    Returns
    -------
    columns : tuple of tuples of int
        Of each player.
    names : tuple of str

    Raises
    ------
    InputError
        If a column is in two groups, or a group is empty or has the name of a column outside it.
    InputTypeError
        If the groups are no mapping of names to columns.
    UnknownNameError
        If a group names an unknown column.

    Examples
    --------
    >>> players_of(Request(groups={"place": ["city", "region"]}), ("city", "age", "region"))
    (((0, 2), (1,)), ('place', 'age'))
    """
    if request.players is not None:
        return tuple(columns for _, columns in request.players), tuple(name for name, _ in request.players)
    if request.groups is None:
        return tuple(zip(range(len(feature_names)))), feature_names
    if not isinstance(request.groups, Mapping):
        raise InputTypeError(
            message(
                "`groups` must map a name to a list of columns",
                f"Got {type(request.groups).__name__}",
                "Pass groups={'blood': ['s1', 's2']}",
            )
        )
    owner = _group_of_column(request.groups, feature_names)
    players: dict[str, list[int]] = {}
    for j, column in enumerate(feature_names):
        name = owner.get(j, column)
        if j not in owner and column in request.groups:
            raise InputError(message(f"Group {column!r} has the name of a column outside it", do="Give the group another name"))
        players.setdefault(name, []).append(j)
    empty = [name for name in request.groups if str(name) not in players]
    if empty:
        raise InputError(message(f"Group {empty[0]!r} has no columns", do="Name at least one column for each group"))
    return tuple(tuple(columns) for columns in players.values()), tuple(players)


def _group_of_column(groups: Mapping[str, Any], feature_names: tuple[str, ...]) -> dict[int, str]:
    owner: dict[int, str] = {}
    for name, members in groups.items():
        if not isinstance(members, (str, int, np.integer, Iterable)):
            raise InputTypeError(
                message(f"Group {name!r} must be a list of columns", f"Got {members!r}", "Pass names or numbers of columns")
            )
        for member in [members] if isinstance(members, (str, int, np.integer)) else members:
            j = _column_number(member, feature_names, name)
            if j in owner:
                raise InputError(
                    message(f"Column {feature_names[j]!r} is in more than one group", f"Got {owner[j]!r} and {name!r}")
                )
            owner[j] = str(name)
    return owner


def _column_number(member: Model, feature_names: tuple[str, ...], group: Any) -> int:
    if isinstance(member, str):
        if member in feature_names:
            return feature_names.index(member)
        raise UnknownNameError(
            message(f"Group {group!r} names an unknown column {member!r}", do=did_you_mean(member, feature_names))
        )
    if isinstance(member, (bool, np.bool_)) or not isinstance(member, (int, np.integer)):
        raise InputTypeError(
            message(
                f"Group {group!r} must hold names or numbers of columns", f"Got {member!r}", "Masks and slices are not read"
            )
        )
    if 0 <= int(member) < len(feature_names):
        return int(member)
    raise InputError(message(f"Group {group!r} names column {member}", f"There are {len(feature_names)} columns"))
