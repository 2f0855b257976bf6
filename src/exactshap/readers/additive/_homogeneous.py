r"""Interpolate homogeneous functions of two or three columns with a proven error bound.

A function with :math:`f(s x) = s^p f(x)` for s > 0 is known from its values on the surface :math:`\max_j |x_j| = 1`. Its faces
are squares (or edges): :math:`f(x) = r^p f(x / r)`, :math:`r = \max_j |x_j|`. On a face it is analytic. It is evaluated at N Chebyshev
points in each direction of a face; their polynomial is cut into narrow cells with polynomials of a lower degree, which are cheap
to evaluate.

**The bound.** Let one coordinate of a face be complex, :math:`a + i b` with :math:`|b| \le y < 1`, and the others real. Then
:math:`x^\top x` never vanishes, :math:`|x^\top x| \le k - 1 + a^2 + b^2` and :math:`|x|^2 / |x^\top x| \le (1 + y^2) / (1 - y^2)`, because
one coordinate is 1. A function of norm :math:`\|\alpha\|` in the space of the weighting, continued to such x, is at most
:math:`M = \|\alpha\|\, \theta(|x^\top x|, |x|^2 / |x^\top x|)` (:meth:`exactshap.estimators.rkhs_weighting._instantiations.Instantiation.theta`). Polynomial
interpolation at n Chebyshev points of a cell of half-width h, where the Bernstein ellipse
:math:`\rho = y/h + \sqrt{1 + y^2/h^2}` stays in that strip, then errs by

.. math:: E(n, h) \le \frac{4 M \rho^{-(n - 1)}}{\rho - 1}, \qquad
          E_2(n, h) \le (1 + \Lambda_n)\, E(n, h), \quad \Lambda_n \le 1 + \tfrac{2}{\pi} \ln n

in one and in two directions, and the narrow polynomials (P points, cells of half-width h) of the wide one (N points, h = 1) by

.. math:: E(P, h) + \Lambda_P\, E(N, 1) \qquad\text{or}\qquad E_2(P, h) + \Lambda_P^2\, E_2(N, 1).

The grid is chosen by this bound before anything is evaluated on it. Rounding comes on top, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exactshap._native import kernel

# Part of the largest value on the surface. Explanations promise 1e-8 of the largest value, for sums of terms.
TARGET_ERROR = 5e-12
# Points for a lower bound of the function's magnitude.
PROBED_POINTS = 256
MAX_NODES = 256
# Points of a narrow cell in each direction, and how many cells across a face at most.
NARROW_CELLS = ((8, 40), (10, 48), (12, 64))

fill_homogeneous = kernel("additive.fill_homogeneous(X, coefficients, degree, out)")
fill_hybrid_means = kernel("additive.fill_hybrid_means(X, background, weights, inside, coefficients, degree, out)")


@dataclass(frozen=True)
class Growth:
    """Bound a function of ``n_columns`` columns for complex rows: |f| <= ``norm`` * ``theta(radius, tilt)``, tilt <= ``largest_tilt``."""

    n_columns: int
    degree: int
    norm: float
    theta: Callable[[float, float], float]
    largest_tilt: float

    @property
    def reach(self) -> float:
        """y, the largest imaginary part that the tilt allows: tilt = (1 + y^2) / (1 - y^2)."""
        return math.sqrt((self.largest_tilt - 1.0) / (self.largest_tilt + 1.0))

    def interpolation_error(self, n: int, half_width: float) -> float:
        """Return E or E_2 for n points in each direction of a cell."""
        y = self.reach
        if y == 0.0:
            return math.inf
        rho = y / half_width + math.sqrt(1.0 + (y / half_width) ** 2)
        a = 1.0 - half_width + half_width * (rho + 1.0 / rho) / 2.0
        largest = self.norm * self.theta(math.sqrt(self.n_columns - 1 + a**2 + y**2), self.largest_tilt)
        one_direction = 4.0 * largest * rho ** (1 - n) / (rho - 1.0)
        return one_direction * (1.0 + lebesgue(n)) ** (self.n_columns - 2)


def lebesgue(n: int) -> float:
    """Return Rivlin's bound of the Lebesgue constant of n Chebyshev points."""
    return 1.0 + 2.0 / math.pi * math.log(n)


@dataclass(frozen=True)
class InterpolationPlan:
    """Hold a grid with a small enough proven ``error`` on the unit surface."""

    n_nodes: int
    n_powers: int
    n_cells: int
    error: float

    def n_evaluations(self, n_columns: int) -> int:
        return 2 * n_columns * self.n_nodes ** (n_columns - 1)


def plan(growth: Growth, largest: float) -> InterpolationPlan | None:
    """Return the cheapest grid with a bound below TARGET_ERROR of ``largest``."""
    half = 0.5 * TARGET_ERROR * largest
    for n_powers, most in NARROW_CELLS:
        n_cells = next((n for n in range(1, most + 1) if growth.interpolation_error(n_powers, 1.0 / n) <= half), None)
        spread = lebesgue(n_powers) ** (growth.n_columns - 1)
        n_nodes = next((n for n in range(2, MAX_NODES + 1) if spread * growth.interpolation_error(n, 1.0) <= half), None)
        if n_cells is not None and n_nodes is not None:
            error = growth.interpolation_error(n_powers, 1.0 / n_cells) + spread * growth.interpolation_error(n_nodes, 1.0)
            return InterpolationPlan(n_nodes, n_powers, n_cells, error)
    return None


@dataclass(frozen=True, eq=False)
class Interpolant:
    """``coefficients (n_faces, n_cells, n_cells or 1, n_powers, n_powers or 1)``; ``error``, its bound on the unit surface."""

    coefficients: np.ndarray
    degree: int
    error: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f(x), of shape (n_rows,)."""
        out = np.empty(len(X))
        fill_homogeneous(np.ascontiguousarray(X), self.coefficients, self.degree, out)
        return out

    def hybrid_means(self, X: np.ndarray, background: np.ndarray, weights: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return the means over the background, of shape (n_rows, n_coalitions)."""
        out = np.empty((len(X), len(inside)))
        rows, others = np.ascontiguousarray(X), np.ascontiguousarray(background)
        fill_hybrid_means(rows, others, weights, inside, self.coefficients, self.degree, out)
        return out

    def errors(self, radius: np.ndarray) -> np.ndarray:
        """Return the bound where the largest |x_j| is ``radius``: r^p times that of the unit surface."""
        return self.error * radius**self.degree


def interpolate(
    function: Callable[[np.ndarray], np.ndarray], growth: Growth, most_evaluations: float = math.inf
) -> Interpolant | None:
    """Return an interpolant with a proven error below :data:`TARGET_ERROR`. The error is relative to the largest value.

    None where no grid is fine enough, where the one that is takes more than ``most_evaluations``, or where the interpolant is
    not the function at a few points (the proof says nothing about functions that are not what they say).
    """
    points = np.random.default_rng(0).uniform(-1.0, 1.0, size=(PROBED_POINTS, growth.n_columns))
    points /= np.abs(points).max(axis=1, keepdims=True)
    truth = np.asarray(function(points), float)
    largest = float(np.abs(truth).max())
    grid = plan(growth, largest)
    if grid is None or grid.n_evaluations(growth.n_columns) > most_evaluations:
        return None
    values = _surface_values(function, growth.n_columns, grid.n_nodes)
    interpolant = Interpolant(_coefficients(values, grid), growth.degree, grid.error)
    return interpolant if np.all(np.abs(interpolant(points) - truth) <= 10.0 * TARGET_ERROR * largest) else None  # 10: rounding


def _chebyshev_points(n: int) -> np.ndarray:
    return np.cos(np.pi * (np.arange(n) + 0.5) / n)


def _surface_values(function: Callable[[np.ndarray], np.ndarray], n_columns: int, n_nodes: int) -> np.ndarray:
    """Return f on the grid of every face, (n_faces, n_nodes[, n_nodes]). Faces stand by column, positive side first."""
    grid = np.meshgrid(*[_chebyshev_points(n_nodes)] * (n_columns - 1), indexing="ij")
    plane = np.stack([g.ravel() for g in grid], axis=1)
    faces = [function(np.insert(plane, column, sign, axis=1)) for column in range(n_columns) for sign in (1.0, -1.0)]
    return np.stack(faces).reshape(-1, *grid[0].shape)


def _to_narrow(grid: InterpolationPlan) -> np.ndarray:
    """Return the map (n_cells, n_powers, n_nodes) from face values to coefficients. They are those of narrow cells."""
    from numpy.polynomial import chebyshev

    centers = (2.0 * np.arange(grid.n_cells) + 1.0) / grid.n_cells - 1.0
    nodes = _chebyshev_points(grid.n_powers)
    places = (centers[:, None] + nodes / grid.n_cells).ravel()
    wide = _chebyshev_points(grid.n_nodes)
    to_series = chebyshev.chebvander(wide, grid.n_nodes - 1).T * (2.0 / grid.n_nodes)  # discrete orthogonality
    to_series[0] *= 0.5
    values = (chebyshev.chebvander(places, grid.n_nodes - 1) @ to_series).reshape(grid.n_cells, grid.n_powers, grid.n_nodes)
    return np.asarray(np.linalg.inv(np.vander(nodes, increasing=True)) @ values)


def _coefficients(values: np.ndarray, grid: InterpolationPlan) -> np.ndarray:
    """Return the coefficients of the narrow cells. They are (n_faces, n_cells, n_cells or 1, n_powers, n_powers or 1)."""
    to_narrow = _to_narrow(grid)
    if values.ndim == 2:
        return np.ascontiguousarray(values @ to_narrow.reshape(-1, grid.n_nodes).T).reshape(
            len(values), grid.n_cells, 1, grid.n_powers, 1
        )
    flat = to_narrow.reshape(-1, grid.n_nodes)
    coefficients = (flat @ values @ flat.T).reshape(len(values), grid.n_cells, grid.n_powers, grid.n_cells, grid.n_powers)
    return np.ascontiguousarray(coefficients.transpose(0, 1, 3, 2, 4))
