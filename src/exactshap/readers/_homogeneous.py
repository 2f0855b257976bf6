r"""Homogeneous functions of two or three columns, interpolated on the faces of a cube.

A function with :math:`f(s x) = s^p f(x)` for s > 0 is known from its values on the surface :math:`\max_j |x_j| = 1`, whose faces
are squares (or edges): :math:`f(x) = r^p f(x / r)`, :math:`r = \max_j |x_j|`. On a face it is smooth, and piecewise polynomials
on a grid of cells converge geometrically. The direct form stays the twin; the measured error decides how fine the grid is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Interpolant", "interpolate"]

N_POWERS = 10  # polynomials of degree 9 in each direction
CELLS = (4, 8, 16, 32)
TARGET = 1e-10  # of the largest value on the surface; what explanations promise is 1e-8
N_TESTED = 4000


@dataclass(frozen=True, eq=False)
class Interpolant:
    """``coefficients (n_faces, n_cells, n_cells or 1, n_powers, n_powers or 1)``; ``error``, the bound on the unit surface."""

    coefficients: np.ndarray
    n_cells: int
    degree: int
    error: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f(x), of shape (n_rows,)."""
        from exactshap.readers import _homogeneous_kernels

        out = np.empty(len(X))
        _homogeneous_kernels.fill_values(np.ascontiguousarray(X), self.coefficients, self.n_cells, self.degree, out)
        return out

    def hybrid_means(self, X: np.ndarray, background: np.ndarray, weights: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return the means over the background for each row and coalition, of shape (n_rows, n_coalitions)."""
        from exactshap.readers import _homogeneous_kernels

        out = np.empty((len(X), len(inside)))
        arrays = [np.ascontiguousarray(array) for array in (X, background)]
        _homogeneous_kernels.fill_hybrid_means(
            *arrays, np.array(weights), np.array(inside), self.coefficients, self.n_cells, self.degree, out
        )
        return out


def interpolate(function: Callable[[np.ndarray], np.ndarray], n_columns: int, degree: int) -> Interpolant | None:
    """Return an interpolant whose error is below :data:`TARGET` of the largest value, or None if the finest grid misses it.

    The error is the larger of the one measured at random points of the surface, times ten, and the size of the highest
    coefficients, which bounds the tail of a geometrically converging expansion.
    """
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 1.0, size=(N_TESTED, n_columns))
    points /= np.abs(points).max(axis=1, keepdims=True)
    truth = function(points)
    largest = float(np.abs(truth).max(initial=0.0))
    if largest == 0.0:
        return None
    for n_cells in CELLS:
        coefficients = _fit(function, n_columns, n_cells)
        candidate = Interpolant(coefficients, n_cells, degree, 0.0)
        measured = 10.0 * float(np.abs(candidate(points) - truth).max())
        tail = 2.0 * float(
            max(np.abs(coefficients[..., -1, :]).max(), np.abs(coefficients[..., -1]).max() if n_columns == 3 else 0.0)
        )
        error = max(measured, min(tail, measured * 10.0))
        if error <= TARGET * largest:
            return Interpolant(coefficients, n_cells, degree, error)
    return None


def _fit(function: Callable[[np.ndarray], np.ndarray], n_columns: int, n_cells: int) -> np.ndarray:
    """Return the monomial coefficients of the polynomials through the Chebyshev points of every cell of every face."""
    nodes = np.cos(np.pi * (np.arange(N_POWERS) + 0.5) / N_POWERS)
    inverse = np.linalg.inv(np.vander(nodes, increasing=True))
    centers = (2.0 * np.arange(n_cells) + 1.0) / n_cells - 1.0
    axis = (centers[:, None] + nodes / n_cells).ravel()
    faces = []
    for largest in range(n_columns):
        for sign in (1.0, -1.0):
            grid = np.meshgrid(*[axis] * (n_columns - 1), indexing="ij")
            points = np.insert(np.stack([g.ravel() for g in grid], axis=1), largest, sign, axis=1)
            values = np.asarray(function(points), float)
            faces.append(_cell_coefficients(values, n_columns, n_cells, inverse))
    return np.ascontiguousarray(np.stack(faces))


def _cell_coefficients(values: np.ndarray, n_columns: int, n_cells: int, inverse: np.ndarray) -> np.ndarray:
    if n_columns == 2:
        return (values.reshape(n_cells, N_POWERS) @ inverse.T)[:, None, :, None]
    cube = values.reshape(n_cells, N_POWERS, n_cells, N_POWERS)
    return np.einsum("ap,cpdq,bq->cdab", inverse, cube, inverse)
