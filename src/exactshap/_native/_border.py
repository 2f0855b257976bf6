"""Errors for arguments that do not fit a kernel: the library reports a position, these give it its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from exactshap._native._signature import Parameter
from exactshap.errors import InputTypeError, message

__all__ = ["describe", "misfit", "mismatch", "unusable"]


def describe(argument: Any) -> str:
    """Describe what was passed.

    >>> describe(np.zeros((3, 2), np.float32).T)
    'an array of f4 of shape (2, 3), not C-contiguous'
    """
    if not isinstance(argument, np.ndarray):
        return f"{type(argument).__name__}"
    words = f"an array of {argument.dtype.str[1:]} of shape {argument.shape}"
    flags = argument.flags
    faults = [
        *([] if flags.c_contiguous else ["not C-contiguous"]),
        *([] if flags.writeable else ["read-only"]),
        *([] if flags.aligned else ["not aligned"]),
        *([] if argument.dtype.isnative else ["bytes in the other order"]),
    ]
    return ", ".join([words, *faults])


def _flat(
    parameters: tuple[Parameter, ...], arguments: tuple[Any, ...], prefix: str = ""
) -> Iterator[tuple[str, Parameter, Any]]:
    """Name every argument and every field in the library's order."""
    for parameter, argument in zip(parameters, arguments, strict=True):
        name = prefix + parameter.name
        if parameter.kind == "fields":
            fields = argument if isinstance(argument, tuple) else getattr(argument, "value", argument)  # of a Handle
            yield from _flat(parameter.fields, tuple(fields), f"{name}.")
        else:
            yield name, parameter, argument


def misfit(name: str, parameters: tuple[Parameter, ...], arguments: tuple[Any, ...], position: int) -> InputTypeError:
    """Return the error for the argument (or field) at a position."""
    what, parameter, argument = list(_flat(parameters, arguments))[position]
    return InputTypeError(
        message(f"`{what}` does not fit the compiled kernel `{name}`", describe(argument), f"Pass {parameter}")
    )


def unusable(name: str, parameters: tuple[Parameter, ...], arguments: tuple[Any, ...]) -> Exception:
    """Return the error for arguments of a wrong kind or number."""
    if len(parameters) != len(arguments):
        return TypeError(f"`{name}` takes {len(parameters)} arguments, not {len(arguments)}")
    needed = {"in": "__array_struct__", "out": "__array_struct__", "int": "__index__", "real": "__float__"}
    every = list(_flat(parameters, arguments))
    bad = (i for i, (_, parameter, argument) in enumerate(every) if not hasattr(argument, needed[parameter.kind]))
    return misfit(name, parameters, arguments, next(bad, len(every) - 1))


def mismatch(name: str, parameters: tuple[Parameter, ...], arguments: tuple[Any, ...]) -> InputTypeError:
    """Return the error for arrays with sizes that do not belong together."""
    shapes = ", ".join(
        f"{what} {argument.shape if isinstance(argument, np.ndarray) else argument}"
        for what, _, argument in _flat(parameters, arguments)
    )
    return InputTypeError(
        message(f"The sizes of the arguments of `{name}` do not belong together", shapes, "Pass arrays of matching shapes")
    )
