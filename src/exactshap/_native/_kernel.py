"""Call a compiled kernel: arguments become slots of eight bytes, and the library reads them.

An array's slot is the address of its ``__array_struct__``, NumPy's array interface for C: at some 0.3 us the cheapest way to
pass the pointer, with dtype, shape and flags, which the library checks.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from exactshap._native._library import raise_interruption, symbol
from exactshap.errors import InputTypeError, ModelFormatError

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p)
_address = ctypes.pythonapi["PyCapsule_GetPointer"]  # a private copy, so that argument types set here do not affect others
_address.argtypes, _address.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
_NO_MEMORY, _INTERRUPTED, _MISMATCH, _FAULT = 1, 2, 3, 4


def kernel(declaration: str) -> Kernel:
    """Return a compiled kernel by its declaration: room, name and argument names.

    >>> fill_singles = kernel("product.fill_singles(a, b, c, weights, rows, nodes, node_weights, out)")
    >>> fill_singles.name
    'product.fill_singles'
    """
    return Kernel(declaration)


class Kernel:
    """Call a compiled function, which is looked up in the library on first use."""

    def __init__(self, declaration: str) -> None:
        self.name, _, names = declaration.removesuffix(")").partition("(")
        self._names = [name.strip() for name in names.split(",") if name.strip()]
        self._overloads: list[_Overload] = []

    def __repr__(self) -> str:
        return f"Kernel('{self.name}({', '.join(self._names)})')"

    def __call__(self, *arguments: Any) -> Any:
        """Run the function; return nothing, its number, or a tuple of several."""
        first = 0
        # One function for each combination of dtypes: a negative status says that an argument does not fit this one
        for overload in self._overloads or self._look_up():
            status, results = _run(self.name, overload, arguments)
            if status == 0:
                return results
            if status > 0:
                raise _failure(self.name, overload, arguments, status)
            # Of several mismatches that of the first function is reported
            first = first or status
        raise misfit(self.name, self._overloads[0].parameters, arguments, -1 - first)

    def _look_up(self) -> list[_Overload]:
        found: list[_Overload] = []
        while (overload := _overload(self.name, self._names, len(found))) is not None:
            found.append(overload)
        self._overloads = found
        return found


def _run(name: str, overload: _Overload, arguments: tuple[Any, ...]) -> tuple[int, Any]:
    """Pack, call, and return the status with the returned numbers."""
    slots, kept = _pack(name, overload, arguments)
    if overload.results is None:
        return overload.call(slots, None), None
    results = overload.results()
    status = overload.call(slots, ctypes.byref(results))
    numbers = tuple(getattr(results, field) for field, _ in results._fields_)
    del kept  # keeps the capsules alive until here
    return status, numbers[0] if len(numbers) == 1 else numbers


def _pack(name: str, overload: _Overload, arguments: tuple[Any, ...]) -> tuple[bytes, list[Any]]:
    """Return the slots, and what must stay alive during the call."""
    slots, layout = list(arguments), overload.layout
    try:
        kept = [arguments[i].__array_struct__ for i in layout.arrays]
        for i, capsule in zip(layout.arrays, kept, strict=True):
            # The capsule of the array interface has no name
            slots[i] = _address(capsule, None)
        for i in layout.structures:
            handle = arguments[i] if isinstance(arguments[i], Handle) else Handle(arguments[i])
            kept.append(handle)
            slots[i] = handle.address(overload.parameters[i])
        return layout.packer.pack(*slots), kept
    except (AttributeError, IndexError, struct.error) as error:
        raise unusable(name, overload.parameters, arguments) from error


def _pack_fields(parameter: Parameter, value: tuple) -> tuple[int, Any]:
    """Return the address of a NamedTuple's slots, and what keeps them alive."""
    layout, names = parameter.layout, getattr(value, "_fields", ())
    if names != layout.names:
        raise InputTypeError("A structure does not fit a compiled kernel", f"fields {', '.join(names)}", f"Pass {parameter}")
    slots = list(value)
    kept: list[Any] = [value[i].__array_struct__ for i in layout.arrays]
    for i, capsule in zip(layout.arrays, kept, strict=True):
        slots[i] = _address(capsule, None)
    for i in layout.structures:
        slots[i], inner = _pack_fields(parameter.fields[i], value[i])
        kept.append(inner)
    buffer = ctypes.create_string_buffer(layout.packer.pack(*slots))
    return ctypes.addressof(buffer), (buffer, kept)


def _failure(name: str, overload: _Overload, arguments: tuple[Any, ...], status: int) -> BaseException:
    """Return the exception for a status of the library."""
    if status == _INTERRUPTED:
        raise_interruption()
    if status == _MISMATCH:
        return mismatch(name, overload.parameters, arguments)
    if status == _FAULT:
        return ModelFormatError(f"The compiled kernel `{name}` got indices that are out of range")
    return MemoryError(f"No memory for the scratch of the compiled kernel `{name}`. Pass fewer rows at a time.")


class Handle:
    """Hold a NamedTuple of arrays and numbers for many calls, with addresses taken once.

    ``Handle(nodes)`` is accepted wherever the NamedTuple is. Its arrays must not be replaced.
    """

    def __init__(self, value: tuple) -> None:
        self.value = value
        self._packed: dict[int, tuple[int, Any, Parameter]] = {}  # by the parameter's identity, as hashing costs more

    def __reduce__(self) -> tuple[type[Handle], tuple[tuple]]:
        return Handle, (self.value,)  # addresses are valid in one process only

    def address(self, parameter: Parameter) -> int:
        """Return the address of the slots of the fields, packed on first use."""
        # The entry keeps its parameter alive, so that no other object gets its identity
        packed = self._packed.get(id(parameter))
        if packed is None:
            mine = (*_pack_fields(parameter, self.value), parameter)
            packed = self._packed.setdefault(id(parameter), mine)  # that of another thread stays in use
        return packed[0]


class _Overload(NamedTuple):
    """Describe one function of the library."""

    call: Any
    parameters: tuple[Parameter, ...]  # parameters that Python passes
    layout: Layout
    results: Any  # the type of the returned numbers, or None


def _overload(name: str, names: list[str], which: int) -> _Overload | None:
    """Return the ``which``-th function of a name, or None after the last."""
    entry, text = symbol(name.replace(".", "_")), ctypes.create_string_buffer(4096)
    entry.restype, entry.argtypes = ctypes.c_void_p, [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64]
    address = entry(which, text, len(text))
    if not address:
        return None
    every = parse(text.value.decode())
    taken = tuple(parameter for parameter in every if parameter.kind != "gives")
    if len(taken) != len(names):
        raise TypeError(f"`{name}` is declared with {len(names)} arguments in Python and {len(taken)} in C++")
    parameters = tuple(the_one(Parameter(p.kind, n, p.dtype, p.ndim, p.fields)) for p, n in zip(taken, names, strict=True))
    given = [
        (f"_{i}", ctypes.c_int64 if p.dtype == "int" else ctypes.c_double)
        for i, p in enumerate(p for p in every if p.kind == "gives")
    ]
    return _Overload(
        _CALL(address),
        parameters,
        Layout.of(parameters),
        type("Results", (ctypes.Structure,), {"_fields_": given}) if given else None,
    )


class Layout(NamedTuple):
    """Describe how arguments, or the fields of a structure, are packed into slots of eight bytes."""

    names: tuple[str, ...]
    arrays: tuple[int, ...]  # their positions
    structures: tuple[int, ...]
    packer: struct.Struct

    @classmethod
    def of(cls, parameters: tuple[Parameter, ...]) -> Layout:
        arrays = tuple(i for i, parameter in enumerate(parameters) if parameter.is_array)
        structures = tuple(i for i, parameter in enumerate(parameters) if parameter.kind == "fields")
        formats = "".join({"int": "q", "real": "d"}.get(parameter.kind, "Q") for parameter in parameters)
        return cls(tuple(parameter.name for parameter in parameters), arrays, structures, struct.Struct(f"={formats}"))


@dataclass(frozen=True)
class Parameter:
    """Describe one argument of a kernel.

    ``kind`` is "in" or "out" for arrays of ``dtype`` and ``ndim``, "int", "real", "gives" for a returned number, or "fields" for
    a NamedTuple of further parameters.
    """

    kind: str
    name: str = ""
    dtype: str = ""
    ndim: int = 0
    fields: tuple[Parameter, ...] = ()

    @property
    def is_array(self) -> bool:
        return self.kind in ("in", "out")

    @functools.cached_property
    def layout(self) -> Layout:
        """Return how the fields are packed, which is the same at every call."""
        return Layout.of(self.fields)

    def __str__(self) -> str:
        if self.is_array:
            return f"a C-contiguous{' writable' if self.kind == 'out' else ''} array of {self.dtype} with {self.ndim} dimension{'s' * (self.ndim != 1)}"
        if self.kind == "fields":
            return "a NamedTuple with the fields " + ", ".join(f"`{field.name}`" for field in self.fields)
        return {"int": "a whole number", "real": "a number"}[self.kind]


def parse(text: str) -> tuple[Parameter, ...]:
    """Read a signature.

    >>> [parameter.kind for parameter in parse(" in:f8:2 int {left=in:i4:1,depth=int} out:f8:1 gives:int")]
    ['in', 'int', 'fields', 'out', 'gives']
    """
    return tuple(_parameter(token) for token in text.split())


def _parameter(token: str, name: str = "") -> Parameter:
    if token.startswith("{"):
        fields = (field.partition("=") for field in _split(token[1:-1]))
        return Parameter("fields", name, fields=tuple(_parameter(value, key) for key, _, value in fields))
    kind, *rest = token.split(":")
    if kind == "gives":
        return Parameter(kind, name, dtype=rest[0])
    return Parameter(kind, name, rest[0], int(rest[1])) if rest else Parameter(kind, name)


def _split(text: str) -> list[str]:
    """Split at the commas outside of inner braces."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@functools.cache
def the_one(parameter: Parameter) -> Parameter:
    """Return one object for all equal parameters, so that equal kernels share addresses."""
    return parameter


def describe(argument: Any) -> str:
    """Describe an argument for messages.

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
            # Fields count like arguments, in depth-first order, as in the library's status
            fields = argument if isinstance(argument, tuple) else getattr(argument, "value", argument)  # of a Handle
            yield from _flat(parameter.fields, tuple(fields), f"{name}.")
        else:
            yield name, parameter, argument


def misfit(name: str, parameters: tuple[Parameter, ...], arguments: tuple[Any, ...], position: int) -> InputTypeError:
    """Return the error for the argument (or field) at a position."""
    what, parameter, argument = list(_flat(parameters, arguments))[position]
    return InputTypeError(f"`{what}` does not fit the compiled kernel `{name}`", describe(argument), f"Pass {parameter}")


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
        f"The sizes of the arguments of `{name}` do not belong together", shapes, "Pass arrays of matching shapes"
    )
