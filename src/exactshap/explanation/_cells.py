"""What the players' cells look like: numbers to place on an axis, and the text to show for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from exactshap.errors import InputError, InputTypeError, message

if TYPE_CHECKING:
    from exactshap.explanation._explanation import Explanation
    from exactshap.frames import Table

__all__ = ["Cells", "cell_text", "cells", "player_columns"]


@dataclass(frozen=True, eq=False)
class Cells:
    """Numbers and texts of the players, as drawn and converted.

    Attributes
    ----------
    numbers : array of shape (n_rows, n_players)
        The column of each player, the mean of a group of numeric columns, or sorted category codes of text (NaN if missing).
    display : object array of shape (n_rows, n_players)
        Numbers as they are and everything else as text.
    numeric : bool array of shape (n_players,)
        Whether ``numbers`` are measurements rather than codes.
    """

    numbers: np.ndarray
    display: np.ndarray
    numeric: np.ndarray


def cells(explanation: Explanation, rows: np.ndarray | None = None) -> Cells | None:
    """Return the cells of all or some rows, or None if the explanation holds no data."""
    if explanation.data is None:
        return None
    from exactshap.frames import as_table

    table = as_table(explanation.data, allow_empty=True)
    players = player_columns(explanation, table)
    if rows is not None:
        table = table.take(rows)
    columns = [_player_cells(table, members) for members in players]
    display = np.empty((table.n_rows, len(players)), object)
    for j, (_, shown, _) in enumerate(columns):
        display[:, j] = shown
    numbers = np.stack([column for column, _, _ in columns], axis=1) if columns else np.empty((table.n_rows, 0))
    return Cells(numbers, display, np.array([numeric for _, _, numeric in columns], bool))


def player_columns(explanation: Explanation, table: Table) -> list[tuple[int, ...]]:
    """Return the column numbers of each player: its group, its name, or the next column that belongs to no group."""
    groups = explanation.groups or {}
    members = {name: tuple(_number(column, table) for column in columns) for name, columns in groups.items()}
    taken = {j for columns in members.values() for j in columns}
    free = (j for j in range(table.n_columns) if j not in taken)
    players = [members[name] if name in members else (next(free, -1),) for name in explanation.feature_names]
    if any(-1 in columns for columns in players) or next(free, None) is not None:
        raise InputError(
            message(
                "`data` does not have the columns of the players",
                f"`data` has {table.n_columns} columns for {explanation.n_players} players",
            )
        )
    return players


def _number(column: int | str, table: Table) -> int:
    if not isinstance(column, str):
        return int(column)
    names = table.names or tuple(f"x{j}" for j in range(table.n_columns))  # what readers call the columns of arrays
    if column not in names:
        raise InputError(message(f"A group names column {column!r}, which `data` does not have", f"Got {names}"))
    return names.index(column)


def _player_cells(table: Table, members: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, bool]:
    try:
        numbers = table.select(list(members)).numeric()
    except (InputError, InputTypeError):
        return _text_cells(table, members)
    column = numbers[:, 0] if len(members) == 1 else numbers.mean(axis=1)
    return column, column.astype(object), True


def _text_cells(table: Table, members: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, bool]:
    columns = [[cell_text(value) for value in table.column(j)] for j in members]
    texts = [", ".join(row) for row in zip(*columns, strict=True)]
    code = {text: float(number) for number, text in enumerate(sorted({text for text in texts if text}))}
    numbers = np.array([code.get(text, np.nan) for text in texts], float)
    display = np.empty(len(texts), object)
    display[:] = texts
    return numbers, display, False


def cell_text(value: object) -> str:
    """Return a cell as text; whatever a library writes for a missing one is empty.

    >>> cell_text("NY"), cell_text(None), cell_text(float("nan")), cell_text(3)
    ('NY', '', '', '3')
    """
    missing = value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
    return "" if missing else str(value)
