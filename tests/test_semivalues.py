import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import oracles
from exactshap import semivalues
from exactshap.errors import InputError, InputTypeError, UnknownNameError
from exactshap.games import OracleGame
from exactshap.semivalues import Atom, Beta, Density, Mixture, Moments, Semivalue, SignedDensity
from exactshap.semivalues._named import _aggregated_moment
from exactshap.solvers import solve
from tolerances import conditioned, printed, roundings

D = 5


@pytest.fixture(scope="module")
def game():
    rng = np.random.default_rng(0)
    values = rng.normal(size=2**D)
    return OracleGame(lambda masks: values[masks @ (1 << np.arange(D))], D)


@pytest.fixture(scope="module")
def table(game):
    return oracles.table_of(game)


def solved(game, index, order):
    solution = solve(game, index, order)
    return dict(zip(solution.sets, solution.values, strict=True))


def test_shapley_is_the_average_over_all_orders_of_arrival(game, table):
    expected = [float(x) for x in oracles.shapley(table, D)]
    for found in (solve(game).values, oracles.shapley_of(lambda S: float(table[frozenset(S)]), D)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=roundings(5) * 2**D)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    ("index", "definition"),
    [
        ("sii", lambda v, T, k: oracles.sii(v, D, T)),
        ("shapley", lambda v, T, k: oracles.sii(v, D, T)),
        ("banzhaf", lambda v, T, k: oracles.banzhaf(v, D, T)),
        ("banzhaf-interaction", lambda v, T, k: oracles.banzhaf(v, D, T)),
        ("fourier", lambda v, T, k: oracles.fourier(v, D, T)),
        ("moebius", lambda v, T, k: oracles.moebius(v, D, T)),
        ("leave-one-out", lambda v, T, k: oracles.leave_one_out(v, D, T)),
        ("stii", lambda v, T, k: oracles.stii(v, D, T, k)),
        ("k-sii", lambda v, T, k: oracles.k_sii(v, D, T, k)),
    ],
)
def test_every_index_agrees_with_its_textbook_definition_set_by_set(game, table, index, definition, order):
    for T, value in solved(game, index, order).items():
        assert value == pytest.approx(float(definition(table, T, order)), abs=roundings(5_000)), T


@pytest.mark.parametrize("order", [1, 2, 3])
def test_fsii_is_the_constrained_least_squares_fit(game, table, order):
    expected = oracles.fsii(table, D, order)
    for T, value in solved(game, "fsii", order).items():
        assert value == pytest.approx(expected[T], abs=conditioned(1e5)), T


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (16, 1), (4, 1), (2, 5), (1, 16)])
def test_beta_weights_follow_the_convention_of_kwon_and_zou(alpha, beta):
    weights = semivalues.beta(alpha, beta).weights(6)
    expected = [oracles.beta_weight(6, s, alpha, beta) for s in range(6)]
    np.testing.assert_allclose(weights, expected, rtol=roundings(5_000))


def test_printed_weights_of_beta_16_1_and_shapley_as_beta_1_1():
    assert semivalues.beta(16, 1).weights(6)[0] == pytest.approx(0.762, abs=printed(3))
    assert semivalues.beta(16, 1).weights(6)[5] == pytest.approx(4.9e-5, abs=printed(6))
    np.testing.assert_allclose(semivalues.beta(1, 1).weights(9), semivalues.find("shapley").weights(9), rtol=roundings(500))


@pytest.mark.parametrize("name", semivalues.available())
@pytest.mark.parametrize("d", [1, 2, 7, 40])
def test_weights_of_one_player_have_the_mass_of_their_index(name, d):
    weights = semivalues.find(name).weights(d)
    mass = 0.5 if name == "fourier" else 1.0
    assert sum(math.comb(d - 1, s) * w for s, w in enumerate(weights)) == pytest.approx(mass, abs=roundings(5_000))


def faithful_moment(s, k, r):
    """FSII's functional of t^r below its highest size (Tsai et al. 2023), exactly."""
    if r <= k - s:
        return Fraction(int(r == 0))
    tau = s + r
    share = (-1) ** (k - s) * Fraction(s, k + s) * math.comb(k, s)
    return share * Fraction(math.comb(tau - 1, k), math.comb(tau + k - 1, k + s))


@pytest.mark.parametrize("k", range(2, 9))
def test_the_density_of_fsii_has_its_moments(k):
    for s in range(1, k):
        density = semivalues.find("fsii").of_size(s, k)
        for r in range(3 * k):
            moment = sum(c / (r + i + 1) for i, c in enumerate(density.coefficients))
            assert moment == faithful_moment(s, k, r), (s, r)
        weights = density.rule(4 * k)[1]
        assert np.abs(weights).sum() <= density.size * (1 + 1e-12)


def test_densities_of_any_sign():
    density = SignedDensity((Fraction(4), Fraction(-6)))  # FSII of single players within pairs
    assert density.size == 2.0
    nodes, weights = density.rule(3)
    assert [weights @ nodes**r for r in range(4)] == pytest.approx(
        [4 / (r + 1) - 6 / (r + 2) for r in range(4)], abs=roundings(50)
    )


@pytest.mark.parametrize(("size", "order"), [(1, 2), (1, 3), (2, 3), (3, 6), (5, 12)])
@pytest.mark.parametrize("degree", [0, 1, 2, 60, 199])
def test_signed_moments_keep_all_digits(size, order, degree):
    """The rule of FSII against its rational moments, at degrees where a Vandermonde solve has no digit left."""
    nodes, weights = semivalues.find("fsii").rule(size, order, degree=degree)
    limit = 64 * np.finfo(float).eps * np.abs(weights).sum()  # scipy's Gauss weights are off by up to 40 eps at these degrees
    assert np.abs(weights).sum() < (10 if order < 12 else 100)  # the least that any weights of this functional have
    for r in {0, min(1, degree), min(5, degree), degree // 2, degree}:
        assert weights @ nodes**r == pytest.approx(float(faithful_moment(size, order, r)), abs=limit), r


@pytest.mark.parametrize(("size", "order"), [(1, 2), (1, 3), (2, 3), (1, 4), (2, 4), (3, 4)])
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 40, 199])
def test_k_sii_keeps_its_digits_at_any_degree(size, order, degree):
    """Integral, ends and slopes against the rational moments; slopes amplify rounding by the square of the degree (Markov)."""
    nodes, weights = semivalues.find("k-sii").rule(size, order, degree=degree)
    limit = 16 * np.finfo(float).eps * (4 + (degree**2 if order - size > 1 else 0))
    for r in {0, min(1, degree), min(2, degree), min(17, degree), degree // 2, degree}:
        assert weights @ nodes**r == pytest.approx(float(_aggregated_moment(size, order, r)), abs=limit), r


def test_a_new_semivalue_is_one_line(game, table):
    optimist = Semivalue("optimist", Atom(0.9))
    expected = [
        float(oracles.weighted(table, D, (j,), lambda s: Fraction(9, 10) ** s * Fraction(1, 10) ** (D - 1 - s)))
        for j in range(D)
    ]
    np.testing.assert_allclose(solve(game, optimist).values, expected, atol=roundings(500))


def test_density_atoms_and_moments_can_state_the_uniform_measure(game):
    expected = solve(game).values
    same = [
        Density(lambda t: np.ones_like(t)),
        Density(lambda t: 3.0 + 0 * t),
        Moments(lambda r: Fraction(1, r + 1)),
        Mixture(tuple((weight, Atom(node)) for node, weight in zip(*Beta().gauss(4), strict=True))),
    ]
    for measure in same:
        np.testing.assert_allclose(solve(game, Semivalue("uniform", measure)).values, expected, atol=roundings(5_000))


def test_efficiency_is_declared_only_where_it_holds(game):
    total = float(game.value(np.ones((1, D), bool))[0] - game.value(np.zeros((1, D), bool))[0])
    for name, order in itertools.product(semivalues.available(), (1, 2, 3)):
        values = solve(game, name, order).values.sum()
        assert semivalues.find(name).is_efficient(order) == bool(np.isclose(values, total, atol=conditioned(1e6))), (
            name,
            order,
        )


class Sloppy:
    def rule(self, degree):
        return Beta().gauss(2 if degree < 8 else 3)


NOT_POSITIVE = ("a", None, 0, -1.0, float("nan"), float("inf"))


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: semivalues.find("shaply"), UnknownNameError, "Did you mean 'shapley'"),
        (lambda: semivalues.find(3), InputTypeError, "must be a name or a Semivalue"),
        (lambda: Atom(1.5), InputError, r"must be in \[0, 1\]"),
        (lambda: Beta(0, 1), InputError, "must be a finite float > 0"),
        (lambda: Semivalue("bad", Mixture(((0.7, Atom(0.5)),))), InputError, "mass 1"),
        (lambda: Semivalue("bad", 3), InputTypeError, "must have a rule"),
        (lambda: Semivalue("bad", Density(lambda t: -t)), InputError, "non-negative"),
        (lambda: Semivalue("bad", Moments(lambda r: Fraction(2, r + 1))), InputError, "mass 1"),
        (lambda: Semivalue("sloppy", Sloppy()), InputError, "exact to the degree of the call"),
        *((lambda wrong=wrong: semivalues.beta(wrong, 1), (InputError, InputTypeError), "parameter") for wrong in NOT_POSITIVE),
    ],
)
def test_bad_measures_are_refused(build, error, text):
    with pytest.raises(error, match=text):
        build()
