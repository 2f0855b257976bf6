"""Gauss rules for products of factors around a common one, against integrals of high precision and products that nobody tuned on."""

import math

import numpy as np
import pytest
from mpmath import mp

from exactshap.semivalues import Atom, Beta, EndSlopes
from exactshap.solvers.product._reference_rules import reference_rules
from tolerances import EPS

MARGIN = 60.0 * math.log(2.0)
QUESTIONS = [Beta(1, 1), Beta(4, 1), Beta(0.5, 2)]


def rules_of(measure, d):
    """Each rule with its reference, end, and errors by radius."""
    arrays = reference_rules(measure, d, MARGIN).value
    n_sizes = arrays.errors.shape[1]
    for i, (reference, end) in enumerate(zip(arrays.references, arrays.ends, strict=True)):
        for j in range(n_sizes):
            nodes = slice(arrays.offsets[i * n_sizes + j], arrays.offsets[i * n_sizes + j + 1])
            yield reference, end, arrays.nodes[nodes], arrays.weights[nodes], arrays.errors[i, j], arrays.radii


def integral(measure, reference, r, d):
    """The integral of t^r (1 - c t)^(d - 1 - r) against the density of a beta distribution."""
    p, q, c = mp.mpf(measure.p), mp.mpf(measure.q), mp.mpf(float(reference))
    return mp.beta(p + r, q) / mp.beta(p, q) * mp.hyp2f1(r + 1 - d, p + r, p + q + r, c)


@pytest.mark.parametrize(
    ("measure", "d"),
    [*((measure, d) for measure in QUESTIONS for d in (3, 4)), *zip(QUESTIONS, (12, 12, 20), strict=True)],
    ids=str,
)
def test_rules_are_exact_and_otherwise_too_small(measure, d):
    with mp.workdps(60):
        for reference, end, t, weights, _, _ in rules_of(measure, d):
            n = len(t)
            assert end == 1.0
            assert 0.0 < t.min() <= t.max() < 1.0
            assert weights.min() > 0.0
            for r in {0, 1, n, 2 * n - 1, 2 * n, min(2 * n + 5, d - 1)}:
                found = mp.fsum(
                    w * mp.mpf(x) ** r * (1 - reference * x) ** (d - 1 - r)
                    for x, w in zip(map(mp.mpf, t), weights, strict=True)
                )
                ratio = float(found / integral(measure, reference, r, d))
                if r < 2 * n:
                    assert abs(ratio - 1.0) < 40.0 * d * EPS
                else:
                    # Beyond some five nodes what is missing is less than rounding
                    assert 0.0 < ratio < (1.0 if n <= 5 else 1.0 + 40.0 * d * EPS)


@pytest.mark.parametrize(
    ("measure", "d"),
    [*((measure, d) for measure in QUESTIONS for d in (5, 40)), *zip(QUESTIONS, (700, 200, 200), strict=True)],
    ids=str,
)
def test_bounds_hold(measure, d):
    """Products of random factors at every reference and size: beta distributed, equal, or 0 and 1."""
    rng = np.random.default_rng(0)
    t, mass = measure.rule(d - 1)
    smallest = math.inf
    for reference, end, nodes, weights, errors, radii in rules_of(measure, d):
        if np.isinf(errors).all():
            continue
        level = np.clip(reference * rng.uniform(0.9, 1.1), 1e-3, 1.0 - 1e-3)
        c = (
            rng.choice([0.0, 1.0], d, p=[1.0 - level, level])
            if rng.random() < 0.2
            else rng.beta(3.0 * level, 3.0 * (1.0 - level), d)
        )
        delta = c[1:] - reference
        bounds = radii * abs(delta.sum()) + radii**2 * (delta**2).sum() / 2.0
        if reference in (0.0, 1.0):
            bounds = radii * abs(delta).sum()
        exact, found = (
            weight @ np.prod(1.0 - np.multiply.outer(place, c[1:]), axis=1) for place, weight in ((t, mass), (nodes, weights))
        )
        tail = math.exp(-end * (c.sum() - 1.0)) if end < 1.0 else 0.0
        bound = np.exp(np.minimum((errors + bounds).min(), 0.0)) + tail
        assert abs(found - exact) <= bound + 20.0 * d * EPS * exact
        smallest = min(smallest, bound)
    assert smallest < EPS or d < 10


def test_ends_leave_out_what_is_promised():
    arrays = reference_rules(Beta(1, 1), 400, MARGIN).value
    cut = arrays.ends < 1.0
    assert 0 < cut.sum() < len(cut)
    assert not cut[0]
    assert (arrays.ends[cut] * (400 * arrays.references[cut] - 1.0) >= MARGIN).all()


@pytest.mark.parametrize("measure", [Atom(0.3), EndSlopes()], ids=str)
def test_no_rules_without_a_density_of_one_sign(measure):
    assert len(reference_rules(measure, 40, MARGIN).value.references) == 0


@pytest.mark.parametrize("d", [1, 2])
def test_no_rules_where_the_exact_one_has_a_single_node(d):
    assert len(reference_rules(Beta(1, 1), d, MARGIN).value.references) == 0


@pytest.mark.parametrize("measure", QUESTIONS, ids=str)
@pytest.mark.parametrize("d", [1, 2, 7, 30, 200])
def test_rules_for_players_that_are_left_are_exact(measure, d):
    arrays = reference_rules(measure, d, MARGIN).value
    assert len(arrays.left_offsets) == min(d, 33)
    with mp.workdps(40):
        for m, (first, stop) in enumerate(zip(arrays.left_offsets[:-1], arrays.left_offsets[1:], strict=True), start=1):
            t, weights = arrays.left_nodes[first:stop], arrays.left_weights[first:stop]
            assert len(t) == (m + 1) // 2
            for r in range(m):
                expected = mp.beta(measure.p + r, measure.q + d - m) / mp.beta(measure.p, measure.q)
                assert abs(float(mp.fdot(weights, t**r) / expected) - 1.0) < 40.0 * d * EPS


@pytest.mark.parametrize("measure", [Atom(0.5), EndSlopes()], ids=str)
def test_other_measures_have_no_rules_for_players_that_are_left(measure):
    arrays = reference_rules(measure, 40, MARGIN).value
    assert list(arrays.left_offsets) == [0]
    assert arrays.left_nodes.size == 0
