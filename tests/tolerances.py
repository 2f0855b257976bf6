"""The only place with tolerances; each with its reason."""

import numpy as np

EPS = float(np.finfo(np.float64).eps)
TINIEST = float(np.finfo(np.float64).smallest_subnormal)


def exact(scale, n_terms=1, n_players=1):
    """Rounding of a sum of ``n_terms`` products of ``n_players`` factors whose magnitudes add up to ``scale``.

    A product of d factors is off by d eps relative (Higham 2002, Lemma 3.1), a sum of n rounded terms by sqrt(n) eps
    with overwhelming probability (Higham & Mary 2019); two sides are compared and 16 is the safety factor of both. Below
    2.2e-308 a rounding is off by half the smallest number instead (Higham 2002, equation 2.8).
    """
    return 16.0 * (np.sqrt(n_terms) + n_players) * (EPS * np.max(scale) + TINIEST)


def assert_close(actual, expected, scale, n_terms=1, n_players=1):
    """Compare value by value within :func:`exact`."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    error = np.max(np.abs(actual - expected), initial=0.0)
    limit = exact(scale, n_terms, n_players)
    assert error <= limit, f"largest difference {error:.3g} is above the tolerance {limit:.3g}"


CHAIN = 1e-12
"""Trees of depth up to 1000: a product of 1000 factors is off by 1000 eps / 2 = 1.1e-13 relative (Higham 2002, Lemma 3.1)."""

FLOAT32_PEER = 2e-6
"""shap's interventional kernel adds up in float32: 6e-8 relative for each of ten trees and some ten additions, values of size 1."""

FLOAT32_MARGIN = 2e-6
"""XGBoost adds leaf values in float32: sqrt(T) roundings of 6e-8 each, T <= 100 trees here, relative to the largest margin, times 3."""


def assert_regression_close(actual, expected, scale):
    """Compare regressions of the same rows: condition numbers below 1e3 and a relative jitter of 1e-10 on the diagonal.

    Interpolation with a relative jitter of 1e-10 misses each value by about that much, and sums of 2^d weighted values by less.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    error = np.max(np.abs(actual - expected), initial=0.0)
    assert error <= 1e-9 * max(np.max(scale), 1e-300), f"largest difference {error:.3g} at scale {np.max(scale):.3g}"


# Mean squared z-scores over seeds, players and games; 1 is perfect. Some 300 scores that hang together within a game: their mean is
# off by 0.3 by chance. The process' errors are never drawn, so that its standard errors may be too large on games smoother than its
# prior: a factor of three is allowed on that side, and 1.5 on the other.
JACKKNIFE_Z2 = (0.5, 1.8)
PROCESS_Z2 = (0.1, 2.2)
# mean squared error over mean squared standard error of an unbiased estimate, whose variance estimate is unbiased as well: 1 up to
# the chance of 30 or 150 heavy-tailed draws
VARIANCE_RATIO = (0.5, 1.8)


def assert_close_r2(actual, expected, n_terms=100):
    """Compare shares of R2 (of size 1) within the rounding of games of at most ``n_terms`` leaf pairs and 2^6 coalitions.

    Q(S) is a sum of squares of the size of the total variation, so the scale is 1; constants of boosters (their base scores
    and residuals) can make it several times larger: 16 for that.
    """
    actual, expected = np.broadcast_arrays(np.asarray(actual, float), np.asarray(expected, float))
    assert_close(actual, expected, scale=16.0, n_terms=n_terms, n_players=16)


def posterior(covariance, magnitude, n_values):
    """Rounding of a quadratic form with (K + noise)^-1: eps times the condition of ``covariance`` and the prior's magnitude.

    ``n_values`` values of coalitions are added up besides (Higham 2002, section 10.1 for the Cholesky solve).
    """
    return 16.0 * EPS * (np.linalg.cond(covariance) + n_values) * magnitude


def ridge(eta, scale):
    """Rounding of a solve with K / n + eta I, K / n of norm at most 1: 1 / eta bounds its condition (for eta < 1)."""
    return 64.0 * EPS / min(eta, 1.0) * scale


END_WEIGHTS = 2e-9
"""Outermost weights of scipy's Gauss rules of 1000 nodes are 7e-10 off, relatively, as is what they alone decide; times three."""


def roundings(count):
    """``count`` roundings in a row of values of size one (or relative to the values): eps / 2 each, on both of two sides."""
    return count * EPS


def conditioned(condition):
    """A solution of linear equations of that condition number, or a sum in which that factor cancels: five roundings, enlarged by it."""
    return 5 * EPS * condition


def printed(decimals):
    """Half a unit of the last decimal that a paper prints."""
    return 0.5 * 10.0**-decimals


FOREST_DIGITS = 2.0**-40
"""Forests of conditional means see predictions to 40 binary digits of the power of two above the largest: half a unit, at most twice that."""

HALF_THE_DIGITS = 1e-6
"""Roots of small differences, and what an optimiser or a regression with a jitter of 1e-10 gives: about half of sixteen digits, times 60."""

DIFFERENCES = 1e-5
"""Central differences with a step of 1e-6: eps / step = 2e-10 of the function, relative to slopes down to some 1e-5 of it."""

ITERATED = 1e-4
"""Minima by iteration: flat to the root of the criterion at which it stops (1e-8 and less) along the flattest direction."""

COORDINATE_DESCENT = 2e-3
"""Two coordinate descents on features of condition 1e3 and more that stop at different duality gaps of 1e-6 to 1e-4 of the target."""

FLOAT32_FUNCTION = 1e-5
"""A function that returns single precision: 6e-8 relative, values of size ten, a few dozen of them added up."""


def chance(deviations, standard_error):
    """So many standard errors of a mean: 4.5 are left once in 150,000 draws, three once in 370 (with a fixed seed: never again)."""
    return deviations * standard_error


NORMAL_TAILS = 2.7e-3
"""What a normal density holds beyond three standard deviations: where the grid of a density picture ends."""

FOUR_DIGITS = 1e-3
"""Numbers that a page writes with four significant digits: half a unit of the last one, of numbers that begin with a 1."""

FOUR_DIGITS_ADDED = 5e-3
"""The sum of half a dozen such numbers, none larger than ten."""
INVERTED = 1e-12
"""Values of order 1 from matrices of ridge regressions, whose condition is at most 1e4 in these tests: eps times that."""

PIXELS = 1.5
"""Places of lines in two drawings of a page: a line is a pixel wide, and browsers round texts to whole ones."""

CUBIC = 1e-6
"""A ratio of bounds that are cubic but for the curvature that is added to flat parabolas, a 1e-10 of them."""

PROBABILITY = 1e-6
"""The logarithm of p / (1 - p): 1 - p keeps ten digits where p is within 1e-6 of 1."""

SOLVED_TWICE = 1e-3
"""Newton's method stops at a gradient of 1e-8; the penalty of 1e-5 turns that into 1e-3 of the coefficients."""

# predictions of some 20 trees of size up to 4 that a library adds up in float32: 20 roundings of 4 * 2^-24, and the mean of several
SINGLE_PRECISION_SUM = 1e-5

# probabilities and rates of size 1 to 10 as sums of some 200 waves of size 1: 10 * (sqrt(200) + 6 factors) * eps * 16 on both sides, and
# a bound of 1e-14 for what the waves leave out
RESPONSE = 1e-12

# the same of a library that adds up 12 trees and takes their logistic function or exponential in float32: 6e-8 * 12 leaves * sizes of 10
SINGLE_RESPONSE = 1e-5

# Shares of refits, in units of R2: least squares of condition number about 10 in 40 rows, averaged over subsets.
REFIT = 2e-13
# Root mean square of 20 x 6 scores whose standard errors come from 100 pairs of orders: 1 +- 0.1 with correlated players.
REFIT_SAMPLED = 0.25
# Half a unit of the last of so many printed decimals.
PRINTED = {4: 5e-5, 8: 5.1e-9}
