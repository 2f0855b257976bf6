r"""Homogeneous functions of two or three columns, interpolated on the faces of a cube.

A function with :math:`f(s x) = s^p f(x)` for s > 0 is known from its values on the surface :math:`\max_j |x_j| = 1`, whose faces
are squares (or edges): :math:`f(x) = r^p f(x / r)`, :math:`r = \max_j |x_j|`. On a face it is analytic. It is evaluated at the
Chebyshev points of a few wide cells, whose polynomials of high degree converge geometrically and cost few evaluations; those are
cut into narrow cells with polynomials of degree 7, which are cheap to evaluate. The direct form stays the twin; its values at
random points decide how many cells are needed, and bound the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Interpolant", "interpolate", "n_evaluations"]

N_NODES = 14  # of a wide cell, in each direction
N_POWERS = 8  # of a narrow cell
LADDER = ((2, 8), (2, 16), (4, 16), (4, 32), (8, 32), (8, 64), (16, 64))  # wide and narrow cells across a face, coarse to fine
TARGET = 1e-10  # of the largest value on the surface; what explanations promise is 1e-8
N_TESTED = 4000
SAFETY = 10.0  # the largest error at 4000 random points is rarely half of the largest error anywhere


@dataclass(frozen=True, eq=False)
class Interpolant:
    """``coefficients (n_faces, n_cells, n_cells or 1, n_powers, n_powers or 1)``; ``error``, its bound on the unit surface."""

    coefficients: np.ndarray
    degree: int
    error: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f(x), of shape (n_rows,)."""
        from exactshap.readers import _homogeneous_kernels

        out = np.empty(len(X))
        _homogeneous_kernels.fill_values(np.ascontiguousarray(X), self.coefficients, self.degree, out)
        return out

    def hybrid_means(self, X: np.ndarray, background: np.ndarray, weights: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return the means over the background for each row and coalition, of shape (n_rows, n_coalitions)."""
        from exactshap.readers import _homogeneous_kernels

        out = np.empty((len(X), len(inside)))
        rows, others = np.ascontiguousarray(X), np.ascontiguousarray(background)
        _homogeneous_kernels.fill_hybrid_means(rows, others, weights, inside, self.coefficients, self.degree, out)
        return out

    def errors(self, radius: np.ndarray) -> np.ndarray:
        """Return the bound where the largest |x_j| is ``radius``: r^p times that of the unit surface."""
        return self.error * radius**self.degree


def n_evaluations(n_columns: int) -> int:
    """Return how many evaluations the coarsest grid takes."""
    return 2 * n_columns * (LADDER[2][0] * N_NODES) ** (n_columns - 1)


def interpolate(function: Callable[[np.ndarray], np.ndarray], n_columns: int, degree: int) -> Interpolant | None:
    """Return an interpolant whose error is below :data:`TARGET` of the largest value, or None if the finest grid misses it.

    Its error bound is :data:`SAFETY` times the largest error at :data:`N_TESTED` random points of the surface.
    """
    points = np.random.default_rng(0).uniform(-1.0, 1.0, size=(N_TESTED, n_columns))
    points /= np.abs(points).max(axis=1, keepdims=True)
    truth = np.asarray(function(points), float)
    largest = float(np.abs(truth).max(initial=0.0))
    n_wide, values = 0, np.zeros(0)
    for wide, narrow in LADDER:
        if wide != n_wide:
            n_wide, values = wide, _surface_values(function, n_columns, wide)
        candidate = Interpolant(_coefficients(values, n_columns, wide, narrow), degree, 0.0)
        error = SAFETY * float(np.abs(candidate(points) - truth).max())
        if error <= TARGET * largest:
            return Interpolant(candidate.coefficients, degree, error)
    return None


def _chebyshev_points(n: int) -> np.ndarray:
    return np.cos(np.pi * (np.arange(n) + 0.5) / n)


def _axis(n_cells: int) -> np.ndarray:
    """Return the Chebyshev points of the wide cells of [-1, 1], of shape (n_cells * N_NODES,)."""
    centers = (2.0 * np.arange(n_cells) + 1.0) / n_cells - 1.0
    return (centers[:, None] + _chebyshev_points(N_NODES) / n_cells).ravel()


def _surface_values(function: Callable[[np.ndarray], np.ndarray], n_columns: int, n_cells: int) -> np.ndarray:
    """Return f on the grid of every face, of shape (n_faces, n_axis[, n_axis]): faces by column, positive side first."""
    grid = np.meshgrid(*[_axis(n_cells)] * (n_columns - 1), indexing="ij")
    plane = np.stack([g.ravel() for g in grid], axis=1)
    faces = [function(np.insert(plane, column, sign, axis=1)) for column in range(n_columns) for sign in (1.0, -1.0)]
    return np.stack(faces).reshape(-1, *grid[0].shape)


def _to_narrow(ratio: int) -> np.ndarray:
    """Return the map (ratio, N_POWERS, N_NODES) from values of a wide cell to the monomial coefficients of its narrow cells."""
    from numpy.polynomial import chebyshev

    nodes = _chebyshev_points(N_POWERS)
    centers = (2.0 * np.arange(ratio) + 1.0) / ratio - 1.0
    places = (centers[:, None] + nodes / ratio).ravel()
    transform = np.linalg.inv(chebyshev.chebvander(_chebyshev_points(N_NODES), N_NODES - 1))
    values = (chebyshev.chebvander(places, N_NODES - 1) @ transform).reshape(ratio, N_POWERS, N_NODES)
    return np.linalg.inv(np.vander(nodes, increasing=True)) @ values


def _coefficients(values: np.ndarray, n_columns: int, wide: int, narrow: int) -> np.ndarray:
    """Return the coefficients (n_faces, narrow, narrow or 1, N_POWERS, N_POWERS or 1) of the narrow cells."""
    to_narrow = _to_narrow(narrow // wide)
    if n_columns == 2:
        cells = values.reshape(-1, wide, N_NODES)
        return np.einsum("fcn,rpn->fcrp", cells, to_narrow).reshape(len(values), narrow, 1, N_POWERS, 1)
    cells = values.reshape(-1, wide, N_NODES, wide, N_NODES)
    found = np.einsum("fcndm,rpn,sqm->fcrdspq", cells, to_narrow, to_narrow, optimize=True)
    return np.ascontiguousarray(found).reshape(len(values), narrow, narrow, N_POWERS, N_POWERS)
