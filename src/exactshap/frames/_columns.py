"""The columns of a table against those that a model was fitted with."""

from __future__ import annotations

from collections.abc import Sequence

from exactshap.errors import InputError, UnknownNameError, message
from exactshap.frames._table import Table

__all__ = ["check_columns"]

_NAMES_SHOWN = 12


def check_columns(
    table: Table, names: Sequence[str] | None, n_features: int, *, owner: str, what: str = "X", align: bool = False
) -> Table:
    """Check a table against the columns a model was fitted with, in scikit-learn's words; reorder only on request.

    Parameters
    ----------
    table : Table
    names : sequence of str or None
        What the model was fitted with.
    n_features : int
    owner : str
        The model's name, for messages.
    what : str, default="X"
        The table's.
    align : bool, default=False
        Reorder the columns of a frame by name instead of refusing another order.

    Returns
    -------
    table : Table

    Raises
    ------
    UnknownNameError
        If names differ.
    InputError
        If the number of columns does.

    Examples
    --------
    >>> from exactshap.frames import as_table
    >>> check_columns(as_table([[1.0, 2.0]]), None, 2, owner="SVR").n_columns
    2
    """
    if table.names is not None and names is not None:
        wanted, got = list(names), list(table.names)
        if wanted != got:
            if align and sorted(wanted) == sorted(got):
                return table.select([got.index(name) for name in wanted])
            raise UnknownNameError(_name_message(wanted, got, what))
        return table
    if table.n_columns != n_features:
        raise InputError(
            message(f"{what} has {table.n_columns} features, but {owner} is expecting {n_features} features as input")
        )
    return table


def _name_message(wanted: list[str], got: list[str], what: str) -> str:
    known, here = set(wanted), set(got)
    missing, extra = [n for n in wanted if n not in here], [n for n in got if n not in known]
    text = f"The feature names of `{what}` should match those that were passed during fit."
    if not missing and not extra:
        comma = "," if len(wanted) > _NAMES_SHOWN else ""
        return (
            f"{text} Feature names must be in the same order as they were in fit. Got {_listed(got)}."
            f" Pass {_selection(wanted, what)}{comma} or align=True."
        )
    do = f"Pass {_selection(wanted, what)}" if not missing else "Pass exactly the columns that the model was fitted with"
    return f"{text} Missing: {_listed(missing)}; unexpected: {_listed(extra)}. {do}."


def _listed(names: list[str]) -> str:
    """Return names as a list, the first of them if they are many.

    >>> _listed(["a", "b"]), _listed(["a"] * 13)[-16:]
    ("['a', 'b']", "'a', ... 1 more]")
    """
    more = len(names) - _NAMES_SHOWN
    return f"{names}" if more <= 0 else f"{names[:_NAMES_SHOWN]}"[:-1] + f", ... {more} more]"


def _selection(wanted: list[str], what: str) -> str:
    """Return code that takes the wanted columns; few names are written out."""
    return f"{what}[{wanted}]" if len(wanted) <= _NAMES_SHOWN else f"{what}[names], with the names in the order of the fit"
