"""Fewer nodes than an exact rule has: the a-priori bound, for sets of any size and signed functionals, against exact rules."""

import math
from fractions import Fraction

import numpy as np
import pytest

from exactshap import decompose_hsic, decompose_mmd, semivalues
from exactshap.errors import ExactnessError
from exactshap.games import ProductGame
from exactshap.semivalues import Atom, Beta, EndSlopes, Mixture, Moments
from exactshap.solvers import solve
from exactshap.solvers.core import RELATIVE_TRUNCATION, _nodes, bound, coarse_bound, enough_nodes
from oracles import product_polynomial
from tolerances import EPS, exact, roundings

ORDERS = [("shapley", 2), *((name, 2) for name in ("k-sii", "stii", "fsii", "chaining")), (semivalues.beta(4, 1), 2)]
ORDERS += [("k-sii", 3), ("fsii", 3), ("sii", 3)]


@pytest.fixture
def careless(monkeypatch):
    """Aim at 1e-3 instead of rounding, so that truncation can be seen."""

    def aim(target):
        monkeypatch.setattr(_nodes, "RELATIVE_TRUNCATION", target)
        _nodes._enough.cache_clear()

    yield aim
    _nodes._enough.cache_clear()


def adversarial(name, d):
    """Return inside and outside factors (2, d) of two terms."""
    rng = np.random.default_rng(d)
    a = rng.normal(size=(2, d))
    return {
        "near one": (1.0 + a / d, np.ones((2, d))),
        "near zero": (np.where(a > 0, 10.0 ** (-20.0 * np.abs(a)), 0.0), np.ones((2, d))),
        "zero inside": (np.zeros((2, d)), np.ones((2, d))),
        "opposite signs": (np.where(np.arange(d) < 6, -1.0, 1.0) * np.ones((2, d)), np.ones((2, d)) + 0.1 * a / d),
        "any sign": (a, rng.normal(size=(2, d))),
        "large": (1.0 + 3.0 * np.abs(a) / d, 1.0 - 3.0 * np.abs(a) / d),
        "few far": (np.where(np.arange(d) % 9 == 0, 0.01, 1.0 - 0.1 * np.abs(a) / d), np.ones((2, d))),
    }[name]


GAMES = ["near one", "near zero", "zero inside", "opposite signs", "any sign", "large", "few far"]


@pytest.mark.parametrize("target", [1e-1, 1e-3, 1e-6, RELATIVE_TRUNCATION])
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize(("index", "order"), ORDERS, ids=str)
def test_the_reported_bound_includes_what_truncation_does(careless, name, index, order, target):
    d = 24 if order == 3 else 45
    game = ProductGame([1.0, -0.7], *adversarial(name, d))
    full = solve(game, index, order, all_nodes=True)
    careless(target)
    few = solve(game, index, order)
    slopes = 2.0 * d * d if (index, order) == ("k-sii", 3) else 1.0  # rounding of exact end slopes (Markov)
    error = np.abs(few.values - full.values).max()
    assert error <= few.error_bound + slopes * 2.0**order * exact(few.scale, 2, d)
    assert few.error_bound <= 2.0**order * target * few.scale
    assert full.error_bound == 0.0


def test_truncation_can_be_seen(careless):
    """What keeps the test above from passing for free."""
    game = ProductGame([1.0, -0.7], *adversarial("zero inside", 45))
    full = solve(game, "k-sii", 2, all_nodes=True)
    careless(1e-3)
    few = solve(game, "k-sii", 2)
    assert np.abs(few.values - full.values).max() > 1e-9 * few.scale


def reference(c, a, b, players, order):
    """k-SII of one set: the coefficients of its polynomial, their integral, ends and slopes, as fractions."""
    total = Fraction(0)
    for cl, al, bl in zip(c, a, b, strict=True):
        factor = Fraction(cl) * math.prod(Fraction(al[k]) - Fraction(bl[k]) for k in players)
        coefficients = [factor * x for x in product_polynomial(np.delete(al, list(players)), np.delete(bl, list(players)))]
        total += sum(x / (r + 1) for r, x in enumerate(coefficients))
        if order > len(players):
            total += (coefficients[0] - sum(coefficients)) / 2
        if order - len(players) > 1:
            total += (sum(r * x for r, x in enumerate(coefficients)) - coefficients[1]) / 12
    return float(total)


@pytest.mark.parametrize("all_nodes", [False, True])
@pytest.mark.parametrize(
    ("d", "order", "width"),
    [*((d, 1, width) for d in (50, 120, 300) for width in (1.0, 30.0)), (300, 2, 1.0), (60, 3, 1.0)],
)
def test_values_of_many_players_against_high_precision(d, order, width, all_nodes):
    """Wide and narrow kernels: few nodes by the bound, and many. Order 1 of k-SII is the Shapley value."""
    rng = np.random.default_rng(d)
    c, b = rng.normal(size=2), np.ones((2, d))
    a = np.exp(-width * rng.normal(size=(2, d)) ** 2 / d)
    found = solve(ProductGame(c, a, b), "k-sii", order, all_nodes=all_nodes)
    assert found.error_bound <= 2.0**order * RELATIVE_TRUNCATION * np.abs(c).sum()
    for players in [one for one in ((0,), (d - 1,), (0, 1), (3, d - 1), (1, 5, d - 1)) if len(one) <= order]:
        expected = reference(c, a, b, players, order)
        slopes = 2.0 * d * d if all_nodes and order == 3 else 1.0
        assert abs(found.values[found.sets.index(players)] - expected) <= slopes * 2.0**order * exact(np.abs(c).sum(), 2, d)


@pytest.mark.parametrize(
    ("index", "order", "d"),
    [
        *((index, 2, 300) for index in ("shapley", "k-sii", "stii", "fsii", "chaining")),
        ("shapley", 1, 1000),
        ("shapley", 1, 5000),
    ],
)
def test_many_players_take_few_nodes(index, order, d):
    rng = np.random.default_rng(0)
    game = ProductGame(rng.normal(size=20), np.exp(-(rng.normal(size=(20, d)) ** 2) / d))
    solution = solve(game, index, order)
    assert int(solution.method.split("(")[1].split()[0]) < 20
    assert solution.error_bound > 0
    if solution.residual is not None:
        assert abs(solution.residual) <= 2.0**order * exact(np.abs(game.c).sum(), 20, d)


@pytest.mark.parametrize("degree", [0, 1, 5, 100])
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0, 1e4])
def test_enough_nodes_never_exceed_the_exact_count_and_meet_the_target(spread, degree):
    n = enough_nodes(spread, degree)
    assert 1 <= n <= degree // 2 + 1
    assert n == degree // 2 + 1 or bound(np.ceil(spread * 16) / 16, n) <= RELATIVE_TRUNCATION


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0, 25.0, 100.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "measure",
    [
        *(Beta(), EndSlopes(), Beta(2, 1)),
        *(semivalues.find("k-sii").of_size(*size) for size in ((1, 3), (2, 3))),
        *(semivalues.find("fsii").of_size(*size) for size in ((1, 2), (2, 4))),
    ],
    ids=str,
)
def test_the_bound_holds_for_equal_factors(spread, sign, measure):
    """The worst product of a given spread, rising or falling: never further off than the bound, at any number of nodes."""
    d = max(2, int(4 * spread))
    delta = min(spread / d, 0.5)
    ends = (1.0, 1.0 - 2.0 * delta)
    base, top = ends if sign < 0 else ends[::-1]
    nodes, weights = measure.rule(d)
    truth = (weights * (base + nodes * (top - base)) ** d).sum()
    for n_nodes in range(1, d // 2 + 1, 1 + d // 100):
        nodes, weights = measure.rule(2 * n_nodes - 1)
        value = (weights * (base + nodes * (top - base)) ** d).sum()
        assert abs(value - truth) <= coarse_bound(d * delta, n_nodes, measure) + 64 * d**3 * EPS


def test_the_parts_of_a_measure_add_up():
    assert coarse_bound(3.0, 5, Mixture(((2.0, Beta()), (-1.0, Atom(0.5))))) == 2.0 * bound(3.0, 5)
    assert coarse_bound(3.0, 5, Atom(0.0)) == 0.0
    slopes = bound(3.0, 5, 0.0, 1.0)
    assert coarse_bound(3.0, 5, Mixture(((1.0, Beta()), (-0.5, EndSlopes())))) == bound(3.0, 5) + 0.5 * slopes
    unknown = Moments(lambda r: Fraction(1, r + 1))
    assert enough_nodes(1.0, 400, unknown) == 201
    assert enough_nodes(1.0, 400, Mixture(((0.5, unknown), (0.5, Beta())))) == 201


def statistics(index):
    rng = np.random.default_rng(0)
    X, Z, y = rng.normal(size=(30, 40)), rng.normal(size=(25, 40)) + 0.3, rng.normal(size=30)
    settings = {"order": 2, "index": index, "bandwidth": 3.0}
    yield decompose_mmd(X, Z, **settings)
    yield decompose_hsic(X, y, order=2, index=index, bandwidth_x=3.0)


@pytest.mark.parametrize("index", ["sii", "k-sii"])
def test_interactions_of_statistics_with_fewer_nodes_against_exact_rules(careless, index):
    few = list(statistics(index))
    careless(0.0)
    for one, two in zip(few, statistics(index), strict=True):
        assert 0.0 < one.details["error_bound"] < roundings(50)
        assert np.abs(one.set_values - two.set_values).max() <= one.details["error_bound"] + 64 * 55 * EPS


def test_error_bounds_of_statistics_include_the_truncation(careless):
    careless(0.0)
    full = list(statistics("sii"))
    careless(1e-2)
    for one, two in zip(statistics("sii"), full, strict=True):
        error = np.abs(one.set_values - two.set_values).max()
        assert 1e-11 < error <= one.details["error_bound"]
    with pytest.raises(ExactnessError, match="do not add up"):  # where values have to add up, their sum is a second witness
        next(statistics("k-sii"))
