"""Fit a Gaussian process over coalitions: relevances of players, covariances, posterior values."""

from __future__ import annotations

from exactshap.solvers.sampled.process._halves import covariance as covariance
from exactshap.solvers.sampled.process._hypercube import MAX_ROWS as MAX_ROWS
from exactshap.solvers.sampled.process._hypercube import CubeProcess as CubeProcess
from exactshap.solvers.sampled.process._hypercube import fit_process as fit_process
from exactshap.solvers.sampled.process._relevance import evenly_spaced as evenly_spaced
from exactshap.solvers.sampled.process._relevance import level_start as level_start
from exactshap.solvers.sampled.process._values import Prior as Prior
from exactshap.solvers.sampled.process._values import Question as Question
from exactshap.solvers.sampled.process._values import functionals as functionals
from exactshap.solvers.sampled.process._values import needs_even as needs_even
from exactshap.solvers.sampled.process._values import white_functionals as white_functionals
