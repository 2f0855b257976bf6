"""Solve with triangles on threads, and invert factored matrices.

SciPy's wrappers of LAPACK's factorisations and inverses let other threads run during a call; those of solves hold Python's lock. Here BLAS
solves without it: half of the seconds of observational values are triangular solves of some 250 background rows, and four threads would
take twice as long. SciPy's wrapper is the fallback where SciPy offers the routine in another form; the bits are the same.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import re
from typing import Any

import numpy as np

_ITEM = np.dtype(np.float64).itemsize
# SciPy's signature of a routine with 32-bit integers, as called here: characters, integers and doubles by address.
# Builds with 64-bit integers (ILP64) have other signatures and are not called.
_KNOWN = re.compile(r"void \(((char|int|\w+_d) \*(, )?)+\)")


def inverse_of(factor: np.ndarray) -> np.ndarray:
    """Return (L L^T)^-1, symmetric to the bit, given L (lower, zero above)."""
    from scipy.linalg import lapack

    inverse, _ = lapack.dpotri(factor, lower=1)
    whole = inverse + inverse.T
    np.fill_diagonal(whole, inverse.diagonal())
    return np.asarray(whole)


def solve_factored(factor: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Set B to (L L^T)^-1 B; return B."""
    return solve_lower(factor, solve_lower(factor, matrix), transposed=True)


def solve_lower(triangle: np.ndarray, matrix: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Set B to L^-1 B, or to L^-T B if ``transposed``. Return B.

    Both lie column by column, perhaps as blocks of larger matrices. Entries above the diagonal of L are not read.
    """
    if triangle.shape != (len(matrix), len(matrix)):
        raise ValueError(f"A triangle must be of shape {(len(matrix), len(matrix))} here, got {triangle.shape}")
    if not matrix.size:
        return matrix
    routine, places = _routine("cython_blas", "dtrsm"), (*_placed(triangle), *_placed(matrix, written=True))
    if routine is None:
        from scipy.linalg import blas

        matrix[...] = blas.dtrsm(1.0, triangle, matrix, lower=1, trans_a=transposed)
        return matrix
    # Triangle on the left, lower, as it is or transposed, non-unit diagonal
    options = b"L", b"L", b"T" if transposed else b"N", b"N"
    routine(*map(_slot, (*options, *matrix.shape, 1.0, *places)))
    return matrix


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


def _slot(argument: Any) -> Any:
    """Return what Fortran takes: all arguments by address."""
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
