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
from exactshap.semivalues import Beta, Measure, Semivalue
from exactshap.solvers.core import Part, log_errors

# Ratio of neighbouring references.
_RATIO = 1.1
# Nodes of the rules around references, and the radii of the circles that bound their errors.
_REFERENCE_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20)
_RADII = np.geomspace(0.25, 1000.0, 20)
# Nodes of an exact rule that needs no smaller ones.
_SMALL_ENOUGH = 8
# Moments and rules are sums of positive numbers; their difference is known to this share of them.
_MOMENT_ROUNDING = 1e-13

# Error of quadrature and of the shortened mixture, relative to a coefficient: a fiftieth of the mixture's own bound.
_ALLOWED = 2.0**-54
_TINIEST = 1e-300
# Nodes that replace all small rates.
_N_LOW = 10
# Rounding of vectors of norm 1.
_NORM_ROUNDING = 1e-15

# Logarithms of the parameters of ellipses, and nodes of the rules for factors of any kind.
_LOG_RADII = np.geomspace(0.05, 7.0, 24)
_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 96, 112, 128)


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


fill_mixture = kernel(
    "product.fill_mixture(inside, outside, background_weights, c, terms, mixture, rules, references, values, empty, full, largest)"
)


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
    (n_rows, n_players, n_terms), n_outputs = inside.shape, len(coefficients)
    values = np.zeros((n_rows, n_players, n_outputs))
    empty, full = np.zeros((n_rows, n_outputs)), np.zeros((n_rows, n_outputs))
    largest = np.zeros(n_rows, np.int64)
    arguments = (np.ascontiguousarray(array, float) for array in (inside, outside, weights, coefficients))
    # Rows take terms by their distance, as those that are alike share smaller rules; a background row that is the point of some
    # terms ties these to their places.
    by_distance = np.argsort(inside.sum(axis=1), axis=1, kind="stable")
    order = np.tile(np.arange(n_terms), (n_rows, 1)) if outside.any() else by_distance
    fill_mixture(*arguments, order, mixture.arrays, *rules, values, empty, full, largest)
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


class _ReferenceRules(NamedTuple):
    references: np.ndarray  # (n_references,): c, growing, the first one 0
    ends: np.ndarray  # (n_references,): nodes of the exact rule behind are left out
    radii: np.ndarray  # (n_radii,): rho
    errors: np.ndarray  # (n_references, n_sizes, n_radii): logarithms of sum_r E_r rho^-r
    offsets: np.ndarray  # (n_references n_sizes + 1,)
    nodes: np.ndarray
    weights: np.ndarray


def reference_rules(measure: Measure, n_players: int, margin: float) -> Handle:
    r"""Return Gauss rules for products of many factors between 0 and 1 that lie around a common one.

    With :math:`c_k = 1 - a_k` and a reference c, the product without player j is, in :math:`s = t / (1 - t c)`,

    .. math:: \prod_{k \ne j} (1 - t c_k) = (1 - t c)^{d - 1} \prod_{k \ne j} (1 - s\, \delta_k), \qquad \delta_k = c_k - c

    The first factor goes into the weight. What is left is near 1 and has a short series in s, so that 5 to 10 nodes do what takes a rule for
    t 15 to 25: 150 columns of a Matern kernel take half the time, 60 columns 1.2 to 1.4 times less, 30 columns the same. On a circle
    :math:`|s| = \rho` it is at most :math:`\exp(\rho\, |\sum \delta_k| + \rho^2 \sum \delta_k^2 / 2)`, as
    :math:`|1 + w| \le \exp(\mathrm{Re}\, w + |w|^2 / 2)`; by Cauchy's inequality a rule with the error :math:`E_r` for :math:`s^r` is off
    by at most that times :math:`\sum_{r \ge 2n} E_r \rho^{-r}`. There are none for measures without a density of one sign.

    The exact rule for polynomials of degree d - 1 is the measure here. Of its nodes those that are left out add at most
    :math:`\exp(-\mathrm{end}\, (\sum c_k - 1))`, by design below exp(-margin).
    """
    t, mass = measure.rule(n_players - 1)
    sizes = [size for size in _REFERENCE_SIZES if size < len(t)] if isinstance(measure, Beta) and len(t) > _SMALL_ENOUGH else []
    references = _references(n_players) if sizes else np.zeros(0)
    ends = _ends(references, n_players, margin)
    common, kept = 1.0 - np.outer(references, t), t <= ends[:, None]
    places, masses = t / common * kept, mass * common ** (n_players - 1) * kept
    rules = _gauss_rules(places, masses, sizes)
    errors = _errors(places, masses, rules, sizes, n_players)
    nodes = [found / (1.0 + references[:, None] * found) for found, _ in rules]
    # By the nodes as they are rounded, so that the roundings of d - 1 factors cancel
    weights = [
        found * (1.0 - references[:, None] * node) ** (1 - n_players) for node, (_, found) in zip(nodes, rules, strict=True)
    ]
    none = np.zeros((len(references), 0))
    return Handle(
        _ReferenceRules(
            references,
            ends,
            _RADII,
            errors,
            np.append(0, np.cumsum(np.tile(np.asarray(sizes, np.int64), len(references)))),
            np.nan_to_num(np.concatenate([none, *nodes], axis=1).ravel(), nan=0.5),
            np.nan_to_num(np.concatenate([none, *weights], axis=1).ravel()),
        )
    )


def _references(n_players: int) -> np.ndarray:
    """Return references that grow by a ratio in c up to 1/2, and in 1 - c from there."""
    steps = np.arange(int(np.log(max(n_players, 1.0)) / np.log(_RATIO)) + 1)
    low = 0.5 / n_players * _RATIO**steps
    low = low[low < 0.5]
    return np.concatenate([[0.0], low, 1.0 - low[::-1], [1.0]])


def _ends(references: np.ndarray, n_players: int, margin: float) -> np.ndarray:
    """Return where the integrals end, with room for sums between a reference and its neighbours."""
    gaps = np.diff(references, append=references[-1:])
    least = n_players * (0.99 * references - 0.5 * np.maximum(gaps, np.roll(gaps, 1))) - 1.0
    return np.where(least > margin, margin / np.maximum(least, margin), 1.0)


def _gauss_rules(places: np.ndarray, masses: np.ndarray, sizes: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return places and weights (n_measures, size) of the Gauss rules of discrete measures (n_measures, n_places)."""
    total, largest = masses.sum(axis=1), max(sizes, default=0)
    basis = np.zeros((len(places), largest + 1, places.shape[1]))
    basis[:, 0] = np.sqrt(masses / total[:, None])
    diagonal, off_diagonal = np.zeros((2, len(places), largest))
    with np.errstate(all="ignore"):
        for i in range(largest):  # Lanczos
            product = places * basis[:, i]
            diagonal[:, i] = (product * basis[:, i]).sum(axis=1)
            # Twice, as one pass of Gram-Schmidt leaves more than rounding
            for _ in range(2):
                shares = basis[:, : i + 1] @ product[:, :, None]
                product -= (shares.transpose(0, 2, 1) @ basis[:, : i + 1])[:, 0]
            off_diagonal[:, i] = np.sqrt((product**2).sum(axis=1))
            basis[:, i + 1] = product / off_diagonal[:, i, None]
        return [_rule_of_jacobi_matrices(diagonal[:, :size], off_diagonal[:, :size], total) for size in sizes]


def _rule_of_jacobi_matrices(
    diagonal: np.ndarray, off_diagonal: np.ndarray, total: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues of Jacobi matrices, and one over the sums of squares of the orthonormal polynomials there."""
    n_measures, size = diagonal.shape
    matrices, i = np.zeros((n_measures, size, size)), np.arange(size)
    matrices[:, i, i], matrices[:, i[1:], i[:-1]] = diagonal, off_diagonal[:, :-1]
    places = np.linalg.eigvalsh(matrices)
    # Eigenvalues are off by rounding of the largest one; a step of Newton takes each to its own
    for _ in range(2):
        before, slope_before, slope, squares = np.zeros((4, n_measures, size))
        here = np.ones((n_measures, size))
        for k in range(size):
            squares += here**2
            alpha, gamma = diagonal[:, k, None], off_diagonal[:, k, None]
            beta = off_diagonal[:, k - 1, None] if k else 0.0
            slope_before, slope = slope, ((places - alpha) * slope + here - beta * slope_before) / gamma
            before, here = here, ((places - alpha) * here - beta * before) / gamma
        places = places - here / slope
    return places, total[:, None] / squares


def _errors(
    places: np.ndarray, masses: np.ndarray, rules: list[tuple[np.ndarray, np.ndarray]], sizes: list[int], n_players: int
) -> np.ndarray:
    r"""Return logarithms of :math:`\sum_{r=2n}^{d-1} E_r \rho^{-r}` for each measure, size and radius.

    Gauss rules underestimate :math:`s^r`, so that the sum is that over the places less that over the nodes.
    """
    errors = np.full((len(places), len(sizes), len(_RADII)), np.inf)
    largest = max(sizes, default=0)
    with np.errstate(all="ignore"):
        for column, radius in enumerate(_RADII):
            x = places / radius
            # Two powers at a time, from x^(2 n) to the last ones: sums of positive numbers
            pairs = np.multiply.accumulate(np.broadcast_to(x * x, (largest, *x.shape)))[:-1]
            pairs = np.einsum("nmp,mp->nm", pairs, masses * (1.0 + x))
            last = (masses * _powers(x, 2 * largest, n_players)).sum(axis=1)
            exact = np.cumsum(np.concatenate([last[None], pairs[::-1]]), axis=0)[::-1]
            for row, ((found, weights), size) in enumerate(zip(rules, sizes, strict=True)):
                rule = (weights * _powers(found / radius, 2 * size, n_players)).sum(axis=1)
                some = np.log(np.maximum(exact[size - 1] - rule, 0.0) + _MOMENT_ROUNDING * exact[size - 1])
                errors[:, row, column] = np.where(np.isnan(some), np.inf, some)
    # A measure of few places has no larger rules
    errors[(masses > 0.0).sum(axis=1)[:, None] <= np.asarray(sizes, int)] = np.inf
    return errors


def _powers(x: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return x^start + ... + x^(stop - 1) for x >= 0."""
    logarithm = np.log(x)
    some = np.expm1((stop - start) * logarithm) / np.expm1(logarithm)
    return np.asarray(np.where(logarithm == 0.0, stop - start, some) * np.exp(start * logarithm))
