"""Functional games of exponential kernels in one sweep, value by value against the product game of their factors."""

import numpy as np
import pytest

from exactshap import semivalues
from exactshap.games import ProductGame
from exactshap.semivalues import Atom, Mixture, Semivalue
from exactshap.solvers import solve
from exactshap.solvers.product import ExponentialTerms, functional_rules, solve_functional
from tolerances import EPS, assert_close

ENDS = Semivalue("from the empty coalition", Mixture(((0.5, Atom(0.0)), (0.25, Atom(1e-9)), (0.25, Atom(0.3)))))
QUESTIONS = [semivalues.find("shapley"), semivalues.find("banzhaf"), semivalues.beta(4, 1), Semivalue("first", Atom(0.0)), ENDS]


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
        ours, reference = solve_functional(functional_rules(question, d), X, terms), by_factors(terms, X, question)
        exponent = reach * 2.0 * d * max(1.0, np.abs(X).max() + np.abs(terms.points).max()) ** 2
        size = reference.scale.max() * max(1.0, min(exponent, 1.0 / EPS))  # an exponential is off by eps times its exponent
        for name in ("values", "empty", "full"):
            assert_close(getattr(ours, name), getattr(reference, name), size, n_terms, d)
        assert_close(ours.scale, reference.scale, reference.scale.max(), n_terms, d)
        assert (ours.error_bound <= 4.0 * EPS * ours.scale).all()


def test_bits_of_a_row_depend_on_that_row_alone():
    terms, X = terms_of(20, 45, 1, 0)
    rules = functional_rules(semivalues.find("shapley"), 20)
    together = solve_functional(rules, X, terms).values
    for i in range(len(X)):
        np.testing.assert_array_equal(solve_functional(rules, X[i : i + 1], terms).values[0], together[i])


def test_near_terms_take_few_nodes_and_far_ones_as_many_as_are_exact():
    rules = functional_rules(semivalues.find("shapley"), 40)
    counts = []
    for reach in (1e-6, 1e6):
        terms, X = terms_of(40, 16, 1, 3, reach)
        counts.append(solve_functional(rules, X, terms).n_nodes)
    assert counts == [rules.sizes[0], rules.sizes[-1]]
    assert counts[0] < counts[1] <= 20
    assert functional_rules(semivalues.find("shapley"), 3).sizes.tolist() == [2]


@pytest.mark.parametrize("missing", ["squared", "absolute"])
def test_rows_whose_squares_overflow_are_far_from_every_point(missing):
    terms, X = terms_of(6, 9, 1, 5)
    rules, one = functional_rules(semivalues.find("shapley"), 6), np.ones(6)
    terms = terms._replace(**{"squared": one, "absolute": one, missing: np.zeros(6)})
    found = []
    for far in (1e100, 1e200):
        X[:, 2] = far
        found.append(solve_functional(rules, X, terms))
    assert np.isfinite(found[1].values).all()
    np.testing.assert_array_equal(found[0].values, found[1].values)
