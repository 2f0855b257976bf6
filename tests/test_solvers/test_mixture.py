"""Mixtures of Gaussians in one sweep, against the sum of the product games of all Gaussians."""

import functools

import numpy as np
import pytest

from exactshap import semivalues
from exactshap.expansions import matern, rational_quadratic
from exactshap.semivalues import Atom, Mixture, Semivalue
from exactshap.solvers.product import mixture_rules, prepare_mixture, solve_mixture, solve_terms
from tolerances import EPS, assert_close

MIXTURES = {
    "matern 1/2": matern(0.5),
    "matern 5/2": matern(2.5),
    "matern 50": matern(50.0),
    "quadratic 0.3": rational_quadratic(0.3),
    "quadratic 1": rational_quadratic(1.0),
}


@functools.cache
def prepared(name):
    return prepare_mixture(MIXTURES[name].rates, MIXTURES[name].weights)


ENDS = Semivalue("from the empty coalition", Mixture(((0.5, Atom(0.0)), (0.25, Atom(1e-9)), (0.25, Atom(0.3)))))
QUESTIONS = [semivalues.find("shapley"), semivalues.find("banzhaf"), semivalues.beta(4, 1), Semivalue("first", Atom(0.0)), ENDS]


def game(d, n_terms, scale, functional, seed=0):
    """Distances with duplicates: rows and background rows that are terms' points, and rows that share columns with one."""
    rng = np.random.default_rng(seed)
    X, Z, points = (rng.normal(size=(n, d)) for n in (3, 4, n_terms))
    points[0], points[n_terms // 2], X[1, : d // 2] = X[0], Z[0], points[-1, : d // 2]
    inside, outside = (np.ascontiguousarray(scale * (rows[:, :, None] - points.T) ** 2 / d) for rows in (X, Z))
    outside = np.zeros((1, d, n_terms)) if functional else outside
    return inside, outside, np.full(len(outside), 1.0 / len(outside)), rng.normal(size=(2, n_terms))


def one_by_one(mixture, question, inside, outside, weights, c):
    parts = [
        solve_terms(np.exp(-rate * inside), np.exp(-rate * outside), weight * c, weights, question, 1, all_nodes=True)
        for weight, rate in zip(mixture.weights, mixture.rates, strict=True)
    ]
    return [np.sum([getattr(part, name) for part in parts], axis=0) for name in ("values", "empty", "full")]


def assert_sum(found, mixture, question, arrays):
    """Compare with the sum of the product games of all Gaussians."""
    for one, other in zip((found.values, found.empty, found.full), one_by_one(mixture, question, *arrays), strict=True):
        assert_close(one, other, found.scale.max(), arrays[0].shape[2], arrays[0].shape[1])


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize(
    ("d", "n_terms", "functional", "scale"),
    [
        (1, 3, False, 1e-3),
        (1, 3, True, 1.0),
        (7, 9, False, 1.0),
        (7, 9, True, 100.0),
        (18, 11, False, 100.0),
        (18, 11, True, 1e-3),
    ],
)
def test_one_sweep_is_the_sum_of_all_gaussians(name, d, n_terms, functional, scale):
    mixture, arrays = MIXTURES[name], game(d, n_terms, scale, functional)
    for question in QUESTIONS if d == 7 else QUESTIONS[:1]:
        found = solve_mixture(mixture_rules(question, d), prepared(name), *arrays)
        assert_sum(found, mixture, question, arrays)
        assert (found.error_bound <= 0.1 * len(mixture.rates) * 100.0 * EPS * found.scale).all()


@pytest.mark.parametrize("n_terms", [1, 21])
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_terms_at_background_points(question, n_terms):
    """Background rows that are the point of one term, of a whole strip of terms, of none, and of one that another row has too."""
    rng = np.random.default_rng(1)
    X, Z, points = (rng.normal(size=(n, 6)) for n in (2, 5, n_terms))
    points[16:], points[0], Z[3] = Z[1], Z[0], Z[0]
    inside, outside = (np.ascontiguousarray((rows[:, :, None] - points.T) ** 2) for rows in (X, Z))
    arrays = inside, outside, np.array([0.1, 0.3, 0.2, 0.4, -0.5]), rng.normal(size=(2, n_terms))
    found = solve_mixture(mixture_rules(question, 6), prepared("matern 1/2"), *arrays)
    assert_sum(found, MIXTURES["matern 1/2"], question, arrays)


@pytest.mark.parametrize("functional", [False, True])
def test_bits_of_a_row_depend_on_that_row_alone(functional):
    inside, *others = game(12, 20, 1.0, functional)
    rules, mixture = mixture_rules(QUESTIONS[0], 12), prepared("matern 1/2")
    together = solve_mixture(rules, mixture, inside, *others).values
    for i in range(len(inside)):
        np.testing.assert_array_equal(solve_mixture(rules, mixture, inside[i : i + 1], *others).values[0], together[i])


@pytest.mark.parametrize("name", MIXTURES)
def test_few_nodes_stand_for_the_small_rates(name):
    """At every reach, the nodes of the first rates against these themselves."""
    rates, weights, _, reaches, low_rates, low_weights, dropped = prepared(name).arrays.value
    for count in range(1, len(rates) + 1):
        s = np.linspace(0.0, 1.0, 40)[:, None] * min(reaches[count], 1e6)
        exact = np.exp(-s * rates[:count]) @ weights[:count]
        found = np.exp(-s * low_rates[count]) @ low_weights[count]
        np.testing.assert_allclose(found, exact, atol=np.exp(dropped) + 16.0 * EPS, rtol=0)


def test_far_terms_take_more_nodes_than_near_ones():
    rules, mixture = mixture_rules(QUESTIONS[0], 40), prepared("matern 5/2")
    counts = [solve_mixture(rules, mixture, *game(40, 16, scale, False)).n_nodes for scale in (1e-9, 1.0)]
    assert counts[0] < counts[1] <= 20


NEAR_AND_FAR = np.array([1e-3, 1e4, 1.0, 1e4, 1e4, 0.1, 1e4, 1e4, 1e-6])  # terms of one strip, which share a rule


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 100.0, 1e4, 1e7, NEAR_AND_FAR], ids=str)
@pytest.mark.parametrize("d", [60, 200])
def test_functional_terms_of_many_columns(scale, d):
    """Factors from all near 1 to all but a few near 0: the rules for what they have in common, against all nodes of every Gaussian."""
    mixture, (inside, *others) = MIXTURES["matern 1/2"], game(d, 9, 1.0, True)
    arrays = inside * scale, *others
    assert_sum(solve_mixture(mixture_rules(QUESTIONS[0], d), prepared("matern 1/2"), *arrays), mixture, QUESTIONS[0], arrays)


@pytest.mark.parametrize("exponent", [0.0, 0.03, 0.04, 0.09, 0.15, 0.3])
@pytest.mark.parametrize("d", [7, 8, 17])
def test_exponentials_near_one(exponent, d):
    """Where few powers are enough, in whole blocks of players, and where they end."""
    inside, outside = np.full((1, d, 1), exponent), np.zeros((1, d, 1))
    found = solve_mixture(
        mixture_rules(QUESTIONS[0], d), prepare_mixture(np.ones(1), np.ones(1)), inside, outside, np.ones(1), np.ones((1, 1))
    )
    assert_close(found.full, np.full((1, 1), np.exp(-d * exponent)), 1.0, 1, d)
    assert_close(found.values, np.full((1, d, 1), np.expm1(-d * exponent) / d), 1.0, 1, d)


def test_rates_that_are_zero_as_floats():
    """The smallest rates of a rational quadratic with small alpha: terms that no distance moves."""
    mixture, arrays = rational_quadratic(0.04), game(3, 2, 1.0, False)
    assert (mixture.rates == 0.0).any()
    found = solve_mixture(mixture_rules(QUESTIONS[0], 3), prepare_mixture(mixture.rates, mixture.weights), *arrays)
    assert_sum(found, mixture, QUESTIONS[0], arrays)
