"""The only place with tolerances; each with its reason."""

import numpy as np

EPS = float(np.finfo(np.float64).eps)


def exact(scale, n_terms=1, n_players=1):
    """Rounding of a sum of ``n_terms`` products of ``n_players`` factors whose magnitudes add up to ``scale``.

    A product of d factors is off by d eps relative (Higham 2002, Lemma 3.1), a sum of n rounded terms by sqrt(n) eps
    with overwhelming probability (Higham & Mary 2019); two sides are compared and 16 is the safety factor of both.
    """
    return 16.0 * EPS * (np.sqrt(n_terms) + n_players) * np.max(scale)


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
