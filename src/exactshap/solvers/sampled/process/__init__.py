"""Gaussian process over coalitions: relevances of players, covariances on the hypercube, posterior values."""

from __future__ import annotations

from exactshap.solvers.sampled.process._cube_index import functionals, needs_even, white_functionals
from exactshap.solvers.sampled.process._evidence import covariance
from exactshap.solvers.sampled.process._hypercube import MAX_ROWS, CubeProcess, fit_process

__all__ = [
    "MAX_ROWS",
    "CubeProcess",
    "covariance",
    "fit_process",
    "functionals",
    "needs_even",
    "white_functionals",
]
