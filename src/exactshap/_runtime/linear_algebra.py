"""Call SciPy's LAPACK and BLAS on triangles without Python's lock, so that other threads run meanwhile.

SciPy's own wrappers, which hold the lock, are the fallback where SciPy offers the routines in another form; the bits are the same.
Matrices are changed in place, column by column, and may be blocks of larger ones; entries above the diagonal of a triangle are
neither read nor written.

Half of the seconds of observational values are triangular solves of some 250 background rows (0.21 of 0.39 s for 200 rows of 7 columns).
With the lock held, four threads would take twice as long.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import re
from typing import Any

import numpy as np

from exactshap._runtime.types import Foreign

_ITEM = np.dtype(np.float64).itemsize
# Options of LAPACK and BLAS: triangle on the left, lower, non-unit diagonal, as it is or transposed.
_LEFT, _LOWER, _PLAIN, _TRANSPOSED = b"L", b"L", b"N", b"T"
# SciPy's signature of a routine with 32-bit integers, as called here: characters, integers and doubles by address.
# Builds with 64-bit integers (ILP64) have other signatures and are not called.
_KNOWN = re.compile(r"void \(((char|int|\w+_d) \*(, )?)+\)")


def factorise_lower(matrix: np.ndarray) -> bool:
    """Replace a matrix's lower triangle by its Cholesky factor L, K = L L^T.

    Return whether that failed, as K is not positive definite.
    """
    return _lapack("dpotrf", matrix)


def solve_definite(matrix: np.ndarray, right: np.ndarray, *, ridge: float = 0.0) -> tuple[np.ndarray, np.ndarray] | None:
    """Return L and K^-1 B; None where K = L L^T, with ``ridge`` on its diagonal, is not positive definite.

    L is the lower triangle of ``matrix.T``, in the same memory: of ``matrix``, K row by row, only entries on and above the diagonal are
    read, and they are overwritten.
    """
    matrix.flat[:: len(matrix) + 1] += ridge
    factor = matrix.T
    if factorise_lower(factor):
        return None
    return factor, np.ascontiguousarray(solve_factored(factor, right.copy(order="F")))


def inverse_of(factor: np.ndarray) -> np.ndarray:
    """Return (L L^T)^-1, symmetric to the bit, given L as the lower triangle of ``factor``."""
    inverse = np.triu(factor.T).T
    _lapack("dpotri", inverse)
    whole = inverse + inverse.T
    np.fill_diagonal(whole, inverse.diagonal())
    return whole


def solve_lower(triangle: np.ndarray, matrix: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Set B to L^-1 B, or to L^-T B if ``transposed``. Return B."""
    _check_sides(triangle, len(matrix))
    if not matrix.size:
        return matrix
    routine, places = _routine("cython_blas", "dtrsm"), (*_placed(triangle), *_placed(matrix, written=True))
    if routine is None:
        from scipy.linalg import blas

        matrix[...] = blas.dtrsm(1.0, triangle, matrix, lower=1, trans_a=transposed)
        return matrix
    options = _LEFT, _LOWER, _TRANSPOSED if transposed else _PLAIN, _PLAIN
    _called(routine, *options, *matrix.shape, 1.0, *places)
    return matrix


def solve_factored(factor: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Set B to (L L^T)^-1 B; return B."""
    return solve_lower(factor, solve_lower(factor, matrix), transposed=True)


def _lapack(name: str, triangle: np.ndarray) -> bool:
    """Call a routine for one lower triangle, and return whether it failed."""
    _check_sides(triangle, len(triangle))
    if not triangle.size:
        return False
    failed, routine, place = ctypes.c_int(0), _routine("cython_lapack", name), _placed(triangle, written=True)
    if routine is None:
        from scipy.linalg import lapack

        factor, info = getattr(lapack, name)(triangle, lower=1)
        np.copyto(triangle, factor, where=np.tri(len(triangle), dtype=bool))
        return bool(info)
    _called(routine, _LOWER, len(triangle), *place, ctypes.byref(failed))
    return failed.value != 0


def _check_sides(triangle: np.ndarray, n: int) -> None:
    if triangle.shape != (n, n):
        raise ValueError(f"A triangle must be of shape {(n, n)} here, got {triangle.shape}")


def _placed(matrix: np.ndarray, *, written: bool = False) -> tuple[ctypes.c_void_p, int]:
    """Return a matrix's address and the number of entries between its columns."""
    if written and not matrix.flags.writeable:
        raise ValueError("A matrix that is overwritten must not be read-only")
    n_rows, n_columns = matrix.shape
    # A single column may have any stride in NumPy
    apart = matrix.strides[1] // _ITEM if n_columns > 1 else n_rows
    lies_well = matrix.flags.aligned and (n_rows <= 1 or matrix.strides[0] == _ITEM) and apart >= n_rows
    if matrix.dtype != np.float64 or not lies_well:
        raise ValueError(f"Not float64 column by column: {matrix.dtype} of shape {matrix.shape}, strides {matrix.strides}")
    return ctypes.c_void_p(matrix.ctypes.data), max(apart, 1)


def _called(routine: Foreign, *arguments: Any) -> None:
    """Call a Fortran routine, which takes all arguments by address."""
    routine(*map(_slot, arguments))


def _slot(argument: Any) -> Any:
    if isinstance(argument, int):
        return ctypes.byref(ctypes.c_int(argument))
    return ctypes.byref(ctypes.c_double(argument)) if isinstance(argument, float) else argument


@functools.cache
def _routine(module: str, name: str) -> Any:
    """Return a routine that SciPy offers to compiled code, None if unknown."""
    from scipy import LowLevelCallable

    found = LowLevelCallable.from_cython(importlib.import_module(f"scipy.linalg.{module}"), name)
    if not _KNOWN.fullmatch(found.signature):
        return None
    # PyCapsule_GetPointer needs Python's lock, hence PYFUNCTYPE; the routine itself runs without: CFUNCTYPE
    address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    n_arguments = found.signature.count("*")
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)
    return prototype(address(found.function, found.signature.encode()))
