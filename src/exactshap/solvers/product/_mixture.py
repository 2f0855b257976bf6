r"""Solve games of radial kernels, with mixtures of Gaussians of a distance as terms.

.. math:: v(S) = \sum_z w_z \sum_i c_i\, k\Bigl(\sum_{j \in S} D_j(x, X_i) + \sum_{j \notin S} D_j(z, X_i)\Bigr), \qquad
    k(s) = \sum_l \omega_l e^{-\rho_l s}

Each Gaussian is a product game. One sweep solves all of them, with only those parts of the mixture that matter at the distances
of a few neighbouring terms; a mixture of 40 to 140 Gaussians costs some 15 to 30 times a single one.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, log_errors
from exactshap.solvers.product._reference_rules import reference_rules

fill_mixture = kernel(
    "product.fill_mixture(inside, outside, background_weights, c, terms, mixture, rules, references, values, empty, full, largest)"
)

# Error of quadrature and of the shortened mixture, relative to a coefficient: a fiftieth of the mixture's own bound
_ALLOWED = 2.0**-54
_TINIEST = 1e-300
_N_LOW = 10  # nodes that replace all small rates
_NORM_ROUNDING = 1e-15  # of vectors of norm 1


class _MixtureArrays(NamedTuple):
    rates: np.ndarray
    weights: np.ndarray
    tails: np.ndarray
    reaches: np.ndarray
    low_rates: np.ndarray
    low_weights: np.ndarray
    dropped: float


class PreparedMixture(NamedTuple):
    """Hold a mixture as the kernel reads it, and a bound on the error of shortening it, relative to a coefficient."""

    arrays: Handle
    error: float


class _RuleArrays(NamedTuple):
    gammas: np.ndarray
    errors: np.ndarray
    offsets: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray
    allowed: float


class MixtureRules(NamedTuple):
    """Hold rules for factors of any kind, and those for functional terms."""

    bounded: Handle
    references: Handle


def prepare_mixture(rates: np.ndarray, weights: np.ndarray) -> PreparedMixture:
    r"""Prepare a mixture, with few nodes to replace any number of its smallest rates.

    The Gauss rule of n nodes for the discrete measure of rates up to R has, at squared distances up to s, an error of at most

    .. math:: \frac{s^{2n}}{(2n)!} \int \pi_n^2

    with the monic orthogonal polynomial :math:`\pi_n`.
    """
    order = np.argsort(rates)
    rates, weights = rates[order], weights[order]
    # Rational quadratics of small alpha have rates that are 0 as floats; up to 1e-300 none differs from another at any distance
    n_lost = int((rates < _TINIEST).sum())
    if n_lost:
        rates, weights = np.append(_TINIEST, rates[n_lost:]), np.append(weights[:n_lost].sum(), weights[n_lost:])
    n_rates, n = len(rates), _N_LOW
    low_rates, low_weights = np.zeros((n_rates + 1, n)), np.zeros((n_rates + 1, n))
    reaches = np.full(n_rates + 1, np.inf)
    for count in range(1, n_rates + 1):
        # As many rates as nodes or fewer are an exact rule themselves
        if count <= n:
            low_rates[count, :count], low_weights[count, :count] = rates[:count], weights[:count]
            continue
        low_rates[count], low_weights[count], reaches[count] = gauss_rule(rates[:count], weights[:count], n)
    tails = np.cumsum(weights[::-1])[::-1].copy()
    arrays = _MixtureArrays(rates, weights, tails, np.minimum(reaches, 1e300), low_rates, low_weights, math.log(_ALLOWED))
    return PreparedMixture(Handle(arrays), (1.0625 * n_rates + 2.0) * _ALLOWED)  # a 16th for the end of the integral over t


def shorten_mixture(rates: np.ndarray, weights: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a shorter mixture for squared distances up to ``reach``, and its additional error."""
    arrays: _MixtureArrays = prepare_mixture(rates, weights).arrays.value  # type: ignore[assignment]
    covered = int(np.flatnonzero(arrays.reaches >= reach).max(initial=0))
    used = arrays.low_weights[covered] > 0.0
    few = arrays.low_rates[covered][used], arrays.low_weights[covered][used]
    return np.append(few[0], arrays.rates[covered:]), np.append(few[1], arrays.weights[covered:]), _ALLOWED


def gauss_rule(rates: np.ndarray, weights: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the Gauss rule of n nodes of a discrete measure, by Lanczos with full orthogonalisation, and how far it reaches.

    The last of the ``rates`` is the largest.
    """
    # Rates may be as large as 1e292 (``matern``): in units of the largest no square overflows
    x, largest = rates / rates[-1], float(rates[-1])
    mass = float(weights.sum())
    basis = [np.sqrt(weights / mass)]
    diagonal, off_diagonal = [], []
    for _ in range(n):
        product = x * basis[-1]
        diagonal.append(float(product @ basis[-1]))
        # Twice, as one pass of Gram-Schmidt leaves more than rounding
        for _ in range(2):
            for vector in basis:
                product = product - (vector @ product) * vector
        norm = float(np.linalg.norm(product))
        off_diagonal.append(max(norm, _NORM_ROUNDING))
        # Fewer nodes are exact up to rounding
        if norm < _NORM_ROUNDING:
            break
        basis.append(product / norm)
    size = len(diagonal)
    matrix = np.diag(diagonal) + np.diag(off_diagonal[: size - 1], 1) + np.diag(off_diagonal[: size - 1], -1)
    # Golub & Welsch: nodes are eigenvalues of the Jacobi matrix, weights squared first components of its eigenvectors
    nodes, vectors = np.linalg.eigh(matrix)
    found_rates, found_weights = np.zeros(n), np.zeros(n)
    found_rates[:size], found_weights[:size] = largest * np.clip(nodes, 0.0, 1.0), mass * vectors[0] ** 2
    # The product of all norms squared is the integral of pi_n^2; the logarithm of the error, solved for s
    square = math.log(mass) + 2.0 * float(np.sum(np.log(off_diagonal)))
    reach = math.exp((math.log(_ALLOWED) + math.lgamma(2 * size + 1) - square) / (2 * size))
    return found_rates, found_weights, reach / largest


@functools.lru_cache(maxsize=64)
def mixture_rules(semivalue: Semivalue, n_players: int) -> MixtureRules:
    """Return the rules for single players with their errors. The last of the bounded ones is exact."""
    degree, measure = n_players - 1, semivalue.of_size(1, 1)
    exact = degree // 2 + 1
    counts = [count for count in _SIZES if count < exact]
    # The bound of single players is that of one difference |a - b| <= 2 H and the other factors
    errors = np.array(
        [np.log(2.0) + log_errors(count, measure, _LOG_RADII) for count in counts] + [np.full(len(_LOG_RADII), -np.inf)]
    )
    # Exact rules have error 0, with logarithm minus infinity
    rules = [measure.rule(2 * count - 1) for count in counts] + [measure.rule(degree)]
    nodes, weights = (np.concatenate(parts).astype(float) for parts in zip(*rules, strict=True))
    offsets = np.cumsum([0, *(len(rule[0]) for rule in rules)])
    allowed = math.log(_ALLOWED)
    # The end of the integral takes a 16th of what is allowed
    references = reference_rules(measure, n_players, math.log(16.0) - allowed)
    return MixtureRules(Handle(_RuleArrays(np.cosh(_LOG_RADII), errors, offsets, nodes, weights, allowed)), references)


def _order(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Return the order (n_rows, n_terms) in which rows take terms, by their distance: those that are alike share smaller rules.

    A background row that is the point of some terms ties these to their places.
    """
    n_rows, _, n_terms = inside.shape
    if outside.any():
        return np.tile(np.arange(n_terms), (n_rows, 1))
    return np.argsort(inside.sum(axis=1), axis=1, kind="stable")


_LOG_RADII = np.geomspace(0.05, 7.0, 24)  # logarithms of the parameters of ellipses
_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 96, 112, 128)


def solve_mixture(
    rules: MixtureRules,
    mixture: PreparedMixture,
    inside: np.ndarray,
    outside: np.ndarray,
    weights: np.ndarray,
    coefficients: np.ndarray,
) -> Part:
    r"""Return the part of some terms for single players.

    ``inside`` (n_rows, n_players, n_terms) are squared distances of the rows from each term's point, ``outside`` (n_background, n_players,
    n_terms) the same of the background, zeros where absent factors are 1; ``coefficients`` are (n_outputs, n_terms). The bits of a row depend
    on that row alone. ``error_bound`` is that of quadrature and of the shortened mixture, not of the mixture itself.
    """
    (n_rows, n_players, _), n_outputs = inside.shape, len(coefficients)
    values = np.zeros((n_rows, n_players, n_outputs))
    empty, full = np.zeros((n_rows, n_outputs)), np.zeros((n_rows, n_outputs))
    largest = np.zeros(n_rows, np.int64)
    arguments = (np.ascontiguousarray(array, float) for array in (inside, outside, weights, coefficients))
    fill_mixture(*arguments, _order(inside, outside), mixture.arrays, *rules, values, empty, full, largest)
    scale = np.full(n_rows, np.abs(coefficients).max(axis=0, initial=0.0).sum() * np.abs(weights).sum())
    return Part(
        values,
        empty,
        full,
        "quadrature of a mixture of Gaussians",
        error_bound=4.0 * mixture.error * scale,
        scale=scale,
        n_nodes=int(largest.max(initial=0)),
    )
