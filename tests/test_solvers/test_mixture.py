"""Exponential kernels and mixtures of Gaussians in one sweep, against the product games of their factors."""

import functools
import math

import numpy as np
import pytest

from exactshap import semivalues
from exactshap.expansions import matern, rational_quadratic
from exactshap.games import ProductGame
from exactshap.semivalues import Atom, Beta, Mixture, Semivalue
from exactshap.solvers import solve
from exactshap.solvers.product import (
    ExponentialTerms,
    graded_rules,
    mixture_rules,
    prepare_mixture,
    solve_functional,
    solve_mixture,
    solve_terms,
)
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


def random_factors(rng, level, d):
    """Return one minus factors around a level: beta distributed, or 0 and 1."""
    if rng.random() < 0.2:
        return rng.choice([0.0, 1.0], d, p=[1.0 - level, level])
    return rng.beta(3.0 * level, 3.0 * (1.0 - level), d)


@pytest.mark.parametrize(
    ("measure", "d"),
    [*((Beta(p, q), d) for p, q in ((1, 1), (4, 1), (0.5, 2)) for d in (5, 40, 200)), (Beta(1, 1), 400)],
    ids=str,
)
def test_bounds_of_rules_around_a_reference_hold(measure, d):
    """Products of random factors at every reference and size: within the bound, and the smallest bound is below rounding."""
    rng, smallest = np.random.default_rng(0), math.inf
    t, mass = measure.rule(d - 1)
    rules = mixture_rules(Semivalue("of a beta distribution", measure), d).references.value
    n_sizes = rules.errors.shape[1]
    for number, errors in enumerate(rules.errors.reshape(-1, len(rules.radii))):
        if np.isinf(errors).all():
            continue
        reference, end = rules.references[number // n_sizes], rules.ends[number // n_sizes]
        some = slice(*rules.offsets[number : number + 2])
        c = random_factors(rng, np.clip(reference * rng.uniform(0.9, 1.1), 1e-3, 1.0 - 1e-3), d)
        delta = c[1:] - reference
        bounds = rules.radii * abs(delta.sum()) + rules.radii**2 * (delta**2).sum() / 2.0
        if reference in (0.0, 1.0):
            bounds = rules.radii * abs(delta).sum()
        exact, found = (
            weights @ np.prod(1.0 - np.multiply.outer(nodes, c[1:]), axis=1)
            for nodes, weights in ((t, mass), (rules.nodes[some], rules.weights[some]))
        )
        tail = math.exp(-end * (c.sum() - 1.0)) if end < 1.0 else 0.0
        bound = np.exp(np.minimum((errors + bounds).min(), 0.0)) + tail
        assert abs(found - exact) <= bound + 20.0 * d * EPS * exact
        smallest = min(smallest, bound)
    assert smallest < EPS or d < 10
    cut = rules.ends < 1.0  # what ends leave out is below what is allowed
    assert cut.any() == (d >= 200)
    assert (rules.ends[cut] * (d * rules.references[cut] - 1.0) >= -math.log(EPS)).all()


# -- exponential kernels -----------------------------------------------------------------------------------------------


def terms_of(d, n_terms, outputs, seed, reach=1.0):
    rng = np.random.default_rng(seed)
    squared, absolute = reach * rng.random((2, d))
    absolute[:: 2 if d > 1 else 1] = 0.0
    points, c = rng.normal(size=(d, n_terms)), rng.normal(size=(outputs, n_terms))
    return ExponentialTerms(points, squared, absolute, c), rng.normal(size=(5, d))


def by_factors(terms, X, question):
    u = X[:, :, None] - terms.points
    a = np.exp(-terms.squared[:, None] * u**2 - terms.absolute[:, None] * np.abs(u)).transpose(0, 2, 1)
    return solve(ProductGame(terms.coefficients.T, a, np.ones((1, *a.shape[1:]))), question)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.name)
@pytest.mark.parametrize(("d", "n_terms", "outputs"), [(1, 1, 1), (2, 9, 2), (7, 8, 1), (16, 3, 1), (17, 30, 2), (33, 17, 1)])
def test_the_sweep_agrees_with_the_product_game(question, d, n_terms, outputs):
    for seed, reach in enumerate((1e-3, 1.0, 1e3)):  # factors near 1, anywhere and near 0
        terms, X = terms_of(d, n_terms, outputs, seed, reach)
        ours, reference = solve_functional(graded_rules(question, d), X, terms), by_factors(terms, X, question)
        exponent = reach * 2.0 * d * max(1.0, np.abs(X).max() + np.abs(terms.points).max()) ** 2
        size = reference.scale.max() * max(1.0, min(exponent, 1.0 / EPS))  # an exponential is off by eps times its exponent
        for name in ("values", "empty", "full"):
            assert_close(getattr(ours, name), getattr(reference, name), size, n_terms, d)
        assert_close(ours.scale, reference.scale, reference.scale.max(), n_terms, d)
        assert (ours.error_bound <= 4.0 * EPS * ours.scale).all()


def test_bits_of_a_row_of_exponential_kernels_depend_on_it_alone():
    terms, X = terms_of(20, 45, 1, 0)
    rules = graded_rules(semivalues.find("shapley"), 20)
    together = solve_functional(rules, X, terms).values
    for i in range(len(X)):
        np.testing.assert_array_equal(solve_functional(rules, X[i : i + 1], terms).values[0], together[i])


def test_near_terms_take_few_nodes_and_far_ones_as_many_as_are_exact():
    rules = graded_rules(semivalues.find("shapley"), 40)
    counts = []
    for reach in (1e-6, 1e6):
        terms, X = terms_of(40, 16, 1, 3, reach)
        counts.append(solve_functional(rules, X, terms).n_nodes)
    assert counts == [rules.sizes[0], rules.sizes[-1]]
    assert counts[0] < counts[1] <= 20
    assert graded_rules(semivalues.find("shapley"), 3).sizes.tolist() == [2]


@pytest.mark.parametrize("missing", ["squared", "absolute"])
def test_rows_whose_squares_overflow_are_far_from_every_point(missing):
    terms, X = terms_of(6, 9, 1, 5)
    rules, one = graded_rules(semivalues.find("shapley"), 6), np.ones(6)
    terms = terms._replace(**{"squared": one, "absolute": one, missing: np.zeros(6)})
    found = []
    for far in (1e100, 1e200):
        X[:, 2] = far
        found.append(solve_functional(rules, X, terms))
    assert np.isfinite(found[1].values).all()
    np.testing.assert_array_equal(found[0].values, found[1].values)
