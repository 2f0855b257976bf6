"""Inverse links and radial kernels as sums of exponentials, against many digits of mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactshap.errors import BudgetError, UnknownNameError
from exactshap.expansions import expand, links, matern, rational_quadratic
from tolerances import EPS

EXACT = {
    "logistic": lambda t: 1 / (1 + mpmath.exp(-t)),
    "normal": mpmath.ncdf,
    "exponential": mpmath.exp,
    "complementary log-log": lambda t: -mpmath.expm1(-mpmath.exp(t)),
    "log-log": lambda t: mpmath.exp(-mpmath.exp(-t)),
}
WAVES = [name for name in EXACT if name != "exponential"]


def in_many_digits(expansion, t):
    """The sum of the expansion's own numbers, without rounding."""
    with mpmath.workdps(40):
        total = mpmath.mpf(expansion.constant)
        for c, r in zip(expansion.coefficients.tolist(), expansion.rates.tolist(), strict=True):
            total += (mpmath.mpc(c) * mpmath.exp(mpmath.mpc(r) * mpmath.mpf(t))).real
        return total


@pytest.mark.parametrize("name", WAVES)
@pytest.mark.parametrize("limit", [0.5, 8.0, 9.0, 20.0, 50.0, 133.0, 200.0])
def test_the_bound_holds_and_is_not_loose(name, limit):
    """Ten thousand random places of each are in benchmarks/bench_bounds.py."""
    expansion = expand(name, limit)
    places = [*np.linspace(-expansion.limit, expansion.limit, 11), *np.random.default_rng(0).uniform(-limit, limit, 9)]
    with mpmath.workdps(40):
        errors = [abs(in_many_digits(expansion, t) - EXACT[name](mpmath.mpf(float(t)))) for t in places]
    worst = float(max(errors))
    assert worst <= expansion.error
    assert expansion.error <= 100 * worst


@given(st.sampled_from(WAVES), st.floats(0.0, 700.0), st.floats(-1.0, 1.0))
def test_sums_are_the_function_within_the_bound_and_rounding(name, limit, share):
    expansion, t = expand(name, limit), share * limit
    rounding = 4.0 * EPS * math.sqrt(len(expansion.rates)) * np.abs(expansion.coefficients).sum() + EPS * limit
    assert abs(expansion(t) - float(EXACT[name](mpmath.mpf(t)))) <= expansion.error + rounding
    assert abs(expansion(t) - expansion.function(np.array(t))) <= expansion.error + 2.0 * rounding


def test_the_exponential_is_one_term_everywhere():
    expansion = expand("exponential", 1e300)
    assert len(expansion.rates) == 1
    assert expansion.error == 0.0
    assert expansion(3.0) == np.exp(3.0)


def test_similar_limits_have_one_expansion():
    assert expand("logistic", 9.0) is expand("logistic", 12.0)
    assert [expand("logistic", limit).limit for limit in (1.0, 8.0, 8.1, 13.0, 16.1)] == [8.0, 8.0, 12.0, 16.0, 24.0]


def test_unknown_links_and_scores_without_end_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'logistic'"):
        expand("logistc", 1.0)
    with pytest.raises(BudgetError, match="too far from zero"):
        expand("logistic", 1e5)
    assert set(links()) == set(EXACT)


def matern_in_many_digits(nu, squared):
    z = mpmath.sqrt(2 * nu * squared)
    return mpmath.mpf(2) ** (1 - nu) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z) if z else mpmath.mpf(1)


def quadratic_in_many_digits(alpha, squared):
    return (1 + squared / (2 * alpha)) ** -alpha


RADIAL = {"matern": (matern, matern_in_many_digits), "quadratic": (rational_quadratic, quadratic_in_many_digits)}


def mixture_error(name, shape, squared):
    """How far a mixture is from its kernel at a squared distance, in 40 digits."""
    with mpmath.workdps(40):
        mixture, s = RADIAL[name][0](shape), mpmath.mpf(float(squared))
        pairs = zip(mixture.weights.tolist(), mixture.rates.tolist(), strict=True)
        total = mpmath.fsum(mpmath.mpf(w) * mpmath.exp(-mpmath.mpf(rate) * s) for w, rate in pairs)
        return float(abs(total - RADIAL[name][1](mpmath.mpf(shape), s)))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *(("matern", nu) for nu in (0.5, 1.0, 1.5, 2.5, 3.7, 10.0, 10.5, 50.0)),
        *(("quadratic", alpha) for alpha in (0.3, 0.5, 1.0, 3.0, 10.0, 11.0, 100.0, 1e4)),
    ],
)
def test_the_bound_of_a_mixture_holds_and_is_not_loose(name, shape):
    mixture = RADIAL[name][0](shape)
    worst = max(mixture_error(name, shape, squared) for squared in np.exp(np.linspace(-40.0, 8.0, 75)))
    assert worst <= mixture.error <= 1e-13
    assert mixture.error <= 100.0 * worst
    assert (mixture.weights > 0.0).all()
    np.testing.assert_allclose(mixture(0.0), 1.0, rtol=8 * EPS)


@settings(deadline=None, max_examples=40)  # 40 digits of some 20 to 650 terms
@given(st.sampled_from(list(RADIAL)), st.floats(-2.3, 5.0).map(math.exp), st.floats(-60.0, 9.0))
def test_the_bound_of_a_mixture_holds_for_any_shape_at_any_distance(name, shape, logarithm):
    assert mixture_error(name, shape, math.exp(logarithm)) <= RADIAL[name][0](shape).error <= 1e-13


def test_smooth_kernels_take_fewer_terms():
    assert [len(matern(nu).rates) for nu in (0.5, 1.5, 2.5, 50.0)] == [138, 59, 42, 24]


@pytest.mark.parametrize(("make", "name"), [(matern, "nu"), (rational_quadratic, "alpha")])
def test_mixtures_without_end_are_refused(make, name):
    with pytest.raises(BudgetError, match=rf"Got {name}=0.01, which takes some 6,025.*Use a larger {name}"):
        make(0.01)
