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
@pytest.mark.parametrize("limit", [0.5, 8.0, 9.0, 20.0, 50.0])
def test_the_bound_holds_and_is_not_loose(name, limit):
    expansion = expand(name, limit)
    places = [*np.linspace(-expansion.limit, expansion.limit, 11), *np.random.default_rng(0).uniform(-limit, limit, 6)]
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
@given(st.sampled_from(list(RADIAL)), st.floats(0.1, 50.0), st.floats(-60.0, 9.0))
def test_the_bound_of_a_mixture_holds_for_any_shape_at_any_distance(name, shape, logarithm):
    assert mixture_error(name, shape, math.exp(logarithm)) <= RADIAL[name][0](shape).error <= 1e-13


def test_smooth_kernels_take_fewer_terms():
    assert [len(matern(nu).rates) for nu in (0.5, 1.5, 2.5, 50.0)] == [138, 59, 42, 24]


@pytest.mark.parametrize(("make", "name"), [(matern, "nu"), (rational_quadratic, "alpha")])
def test_mixtures_without_end_are_refused(make, name):
    with pytest.raises(BudgetError, match=rf"Got {name}=0.01, which takes some 6,025.*Use a larger {name}"):
        make(0.01)


def matern_of_half_integers(n, squared):
    """nu = n + 1/2: a polynomial times an exponential, in 80 bits."""
    z, wide = np.sqrt(2 * (n + np.longdouble(0.5)) * squared), np.longdouble
    terms = [wide(math.comb(n, i)) * wide(math.factorial(n + i)) / math.factorial(n) * (2 * z) ** (n - i) for i in range(n + 1)]
    return np.exp(-z) * np.sum(terms, axis=0) * wide(math.factorial(n)) / math.factorial(2 * n)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="errors of 1e-15 need more digits than float64 has")
def test_no_bound_is_missed_in_ten_thousand_cases():
    rng, misses, cases = np.random.default_rng(0), 0, 0
    shapes = [("matern", n + 0.5) for n in range(16) for _ in range(10)]
    shapes += [("quadratic", float(alpha)) for alpha in np.exp(rng.uniform(np.log(0.1), np.log(1e4), 160))]
    for name, shape in shapes:
        mixture, squared = RADIAL[name][0](shape), np.exp(rng.uniform(-45.0, 9.0, 32).astype(np.longdouble))
        waves = np.exp(-np.multiply.outer(squared, mixture.rates.astype(np.longdouble)))
        wide = np.longdouble(shape)
        by_definition = (
            matern_of_half_integers(int(shape), squared) if name == "matern" else np.exp(-wide * np.log1p(squared / (2 * wide)))
        )
        misses += int((np.abs(waves @ mixture.weights.astype(np.longdouble) - by_definition) > mixture.error).sum())
        cases += len(squared)
    assert cases > 10_000
    assert misses == 0


def in_80_bits(name, t):
    """Inverse links (n,) of numbers of extended precision."""
    if name == "normal":
        with mpmath.workdps(30):
            values = [mpmath.ncdf(max(min(mpmath.mpf(float(one)), 60), -60)) for one in t]
            return np.array([np.longdouble(mpmath.nstr(value, 25)) for value in values])
    return {
        "logistic": lambda: 1 / (1 + np.exp(-t)),
        "tanh": lambda: np.tanh(t),
        "complementary log-log": lambda: -np.expm1(-np.exp(t)),
        "log-log": lambda: np.exp(-np.exp(-t)),
    }[name]()


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="errors of 1e-16 need more digits than float64 has")
@pytest.mark.parametrize("name", [*WAVES, "tanh"])
def test_bounds_of_links_at_random_places(name):
    """Ten thousand places of each are in benchmarks/bench_bounds.py."""
    rng, doubled = np.random.default_rng(0), 2.0 if name == "tanh" else 1.0  # tanh(t) = 2 sigma(2 t) - 1
    for limit in np.exp(rng.uniform(0.0, np.log(200.0), 12)).tolist():
        expansion = expand("logistic" if name == "tanh" else name, limit)
        t = expansion.limit / doubled * rng.uniform(-1.0, 1.0, 50)
        t[:2] = -expansion.limit / doubled, expansion.limit / doubled
        phases = np.multiply.outer(t.astype(np.longdouble), expansion.rates.imag.astype(np.longdouble) * doubled)
        real, imaginary = (part.astype(np.longdouble) for part in (expansion.coefficients.real, expansion.coefficients.imag))
        found = expansion.constant + np.cos(phases) @ real - np.sin(phases) @ imaginary
        missed = np.abs(doubled * found - (doubled - 1.0) - in_80_bits(name, t.astype(np.longdouble)))
        assert missed.max() <= doubled * expansion.error <= 100.0 * missed.max()
