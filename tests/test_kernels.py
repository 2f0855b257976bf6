"""Kernels against their formulas, and their sums and products against sums and products of matrices."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from exactshap.errors import BudgetError, InputError, UnknownNameError
from exactshap.expansions import expand, links, matern, rational_quadratic
from exactshap.kernels import (
    RBF,
    Cauchy,
    Chi2,
    Constant,
    Custom,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    from_sklearn,
)
from tolerances import EPS, roundings

RNG = np.random.default_rng(0)
X, Y = RNG.random((6, 3)), RNG.random((4, 3))  # not negative, as chi-squared asks
SIGMA = np.array([0.5, 1.0, 2.0])


def one_plus(x, y):
    return 1.0 + x * y


def distance(x, y):
    return np.sqrt(((x - y) ** 2 / SIGMA**2).sum())


def matern_by_bessel(nu, r):
    s = np.sqrt(2 * nu) * r
    return 2 ** (1 - nu) / special.gamma(nu) * s**nu * special.kv(nu, s)


KERNELS = {
    "rbf": (RBF(SIGMA), lambda x, y: np.exp(-((x - y) ** 2 / (2 * SIGMA**2)).sum())),
    "laplacian": (Laplacian(SIGMA), lambda x, y: np.exp(-(np.abs(x - y) / SIGMA).sum())),
    "cauchy": (Cauchy(SIGMA), lambda x, y: np.prod(1 / (1 + (x - y) ** 2 / SIGMA**2))),
    "chi2": (Chi2(0.7), lambda x, y: np.exp(-0.7 * ((x - y) ** 2 / (x + y)).sum())),
    "linear": (Linear(offset=0.3, gamma=2.0), lambda x, y: 0.3 + 2.0 * x @ y),
    "polynomial": (Polynomial(degree=2, gamma=0.5, offset=1.0), lambda x, y: (0.5 * x @ y + 1.0) ** 2),
    "custom": (Custom([one_plus, None, one_plus]), lambda x, y: (1 + x[0] * y[0]) * (1 + x[2] * y[2])),
    "matern 1/2": (Matern(SIGMA, nu=0.5), lambda x, y: np.exp(-distance(x, y))),
    "matern 5/2": (Matern(SIGMA, nu=2.5), lambda x, y: matern_by_bessel(2.5, distance(x, y))),
    "matern": (Matern(SIGMA, nu=0.8), lambda x, y: matern_by_bessel(0.8, distance(x, y))),
    "rational quadratic": (RationalQuadratic(SIGMA, alpha=0.7), lambda x, y: (1 + distance(x, y) ** 2 / 1.4) ** -0.7),
    "constant": (Constant(2.5), lambda x, y: 2.5),
}
MATRICES = {name: np.array([[formula(x, y) for y in Y] for x in X]) for name, (_, formula) in KERNELS.items()}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_their_formulas_and_sums_and_products_those_of_matrices(name):
    first, matrix = KERNELS[name][0], MATRICES[name]
    np.testing.assert_allclose(first(X, Y), matrix, rtol=roundings(50))
    for other, (second, _) in KERNELS.items():
        np.testing.assert_allclose((first + 2.0 * second)(X, Y), matrix + 2.0 * MATRICES[other], rtol=roundings(100))
        np.testing.assert_allclose((first * second)(X, Y), matrix * MATRICES[other], rtol=roundings(200))


RADIAL = [Matern(SIGMA, nu=nu) for nu in (0.3, 0.5, 1.5, 2.5, 7.7, 30.0)] + [
    RationalQuadratic(SIGMA, alpha=a) for a in (0.2, 1.0, 1e4)
]


@pytest.mark.parametrize("kernel", RADIAL, ids=str)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_components_add_up_to_a_radial_kernel(kernel, scale):
    parts = kernel.expand(3)
    total = sum(part.matrix(scale * X, scale * Y) for part in parts)
    error = sum(part.amplitude * part.relative_error for part in parts)
    assert error < 1e-13
    np.testing.assert_allclose(total, kernel(scale * X, scale * Y), atol=error + 100 * EPS, rtol=0)
    np.testing.assert_allclose(np.diag(kernel(X)), 1.0, rtol=8 * EPS)


def test_products_of_mixtures_add_their_errors():
    one, other = Matern(1.0).expand(2), RationalQuadratic(2.0).expand(2)
    both = (3.0 * Matern(1.0) * RationalQuadratic(2.0)).expand(2)
    errors = [sum(part.amplitude * part.relative_error for part in parts) for parts in (one, other, both)]
    np.testing.assert_allclose(errors[2], 3.0 * (errors[0] + errors[1]), rtol=roundings(1000))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.7, 4.0, 20.0])
def test_a_matern_kernel_at_extreme_distances(nu):
    kernel, zero = Matern(1.0, nu=nu), np.zeros((1, 1))
    distances = np.array([[0.0], [1e-300], [1e-160], [1e3], [1e100], [1e300]])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(kernel(distances, zero)[:, 0], [1, 1, 1, 0, 0, 0], atol=8 * EPS)


@pytest.mark.parametrize("kernel", [Matern(1.0), RationalQuadratic(1.0)], ids=str)
def test_one_column_is_a_product_without_a_mixture(kernel):
    (part,) = kernel.expand(1)
    assert part.relative_error == 0.0
    assert part.is_normalised
    np.testing.assert_array_equal(part.matrix(X[:, :1], Y[:, :1]), kernel(X[:, :1], Y[:, :1]))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Matern(nu=0.0), "The 'nu' parameter of Matern must be > 0. Got 0.0"),
        (lambda: Matern(bandwidth=-1.0), "The 'bandwidth' parameter of Matern must be > 0"),
        (lambda: RationalQuadratic(alpha=np.inf), "The 'alpha' parameter of RationalQuadratic must be finite"),
        (lambda: Matern([1.0, 2.0]).expand(3), "one per column"),
        (lambda: from_sklearn("rbf", 2, gamma=-0.5), r"`gamma` of the kernel .* must be at least 0\. Got -0\.5"),
        (lambda: from_sklearn("laplacian", 2, gamma=-0.5), r"`gamma` of the kernel .* must be at least 0\. Got -0\.5"),
    ],
)
def test_shapes_bandwidths_and_rates_are_checked(make, text):
    assert all(isinstance(from_sklearn(name, 2, gamma=0.0), Constant) for name in ("rbf", "laplacian"))
    with pytest.raises(InputError, match=text):
        make()


# --- links and radial kernels as sums of exponentials, against many digits of mpmath ----------------------------------


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
@pytest.mark.parametrize("limit", [0.5, 8.0, 9.0, 20.0, 50.0, 200.0])
def test_the_bound_holds_and_is_not_loose(name, limit):
    """Ten thousand random places of each are in benchmarks/bench_bounds.py."""
    expansion = expand(name, limit)
    places = [*np.linspace(-expansion.limit, expansion.limit, 7), *np.random.default_rng(0).uniform(-limit, limit, 5)]
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
    with pytest.raises(BudgetError, match=r"(?s)terms, .* too far from zero.*predict_proba, X, background, exact_owner=False"):
        expand("logistic", 1e5)
    assert set(links()) == set(EXACT)


def matern_in_many_digits(nu, squared):
    z = mpmath.sqrt(2 * nu * squared)
    return mpmath.mpf(2) ** (1 - nu) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z) if z else mpmath.mpf(1)


def quadratic_in_many_digits(alpha, squared):
    return (1 + squared / (2 * alpha)) ** -alpha


MIXTURES = {"matern": (matern, matern_in_many_digits), "quadratic": (rational_quadratic, quadratic_in_many_digits)}


def mixture_error(name, shape, squared):
    """How far a mixture is from its kernel at a squared distance, in 40 digits."""
    with mpmath.workdps(40):
        mixture, s = MIXTURES[name][0](shape), mpmath.mpf(float(squared))
        pairs = zip(mixture.weights.tolist(), mixture.rates.tolist(), strict=True)
        total = mpmath.fsum(mpmath.mpf(w) * mpmath.exp(-mpmath.mpf(rate) * s) for w, rate in pairs)
        return float(abs(total - MIXTURES[name][1](mpmath.mpf(shape), s)))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *(("matern", nu) for nu in (0.5, 1.0, 1.5, 2.5, 3.7, 10.0, 10.5, 50.0)),
        *(("quadratic", alpha) for alpha in (0.3, 0.5, 1.0, 3.0, 10.0, 11.0, 100.0, 1e4)),
    ],
)
def test_the_bound_of_a_mixture_holds_and_is_not_loose(name, shape):
    mixture = MIXTURES[name][0](shape)
    worst = max(mixture_error(name, shape, squared) for squared in np.exp(np.linspace(-40.0, 8.0, 40)))
    assert worst <= mixture.error <= 1e-13
    assert mixture.error <= 100.0 * worst
    assert (mixture.weights > 0.0).all()
    np.testing.assert_allclose(mixture(0.0), 1.0, rtol=8 * EPS)


@settings(deadline=None, max_examples=40)  # 40 digits of some 20 to 650 terms
@given(st.sampled_from(list(MIXTURES)), st.floats(-2.3, 5.0).map(math.exp), st.floats(-60.0, 9.0))
def test_the_bound_of_a_mixture_holds_for_any_shape_at_any_distance(name, shape, logarithm):
    assert mixture_error(name, shape, math.exp(logarithm)) <= MIXTURES[name][0](shape).error <= 1e-13


def test_smooth_kernels_take_fewer_terms():
    assert [len(matern(nu).rates) for nu in (0.5, 1.5, 2.5, 50.0)] == [138, 59, 42, 24]


@pytest.mark.parametrize(("make", "name"), [(matern, "nu"), (rational_quadratic, "alpha")])
def test_mixtures_without_end_are_refused(make, name):
    with pytest.raises(BudgetError, match=rf"Got {name}=0.01, which takes some 6,025.*Use a larger {name}"):
        make(0.01)
