"""Inverse links as sums of exponentials, against many digits of mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactshap.errors import BudgetError, UnknownNameError
from exactshap.expansions import expand, links
from tolerances import EPS

EXACT = {"logistic": lambda t: 1 / (1 + mpmath.exp(-t)), "normal": mpmath.ncdf, "exponential": mpmath.exp}


def in_many_digits(expansion, t):
    """The sum of the expansion's own numbers, without rounding."""
    with mpmath.workdps(40):
        total = mpmath.mpf(expansion.constant)
        for c, r in zip(expansion.coefficients.tolist(), expansion.rates.tolist(), strict=True):
            total += (mpmath.mpc(c) * mpmath.exp(mpmath.mpc(r) * mpmath.mpf(t))).real
        return total


@pytest.mark.parametrize("name", ["logistic", "normal"])
@pytest.mark.parametrize("limit", [0.5, 8.0, 9.0, 20.0, 50.0])
def test_the_bound_holds_and_is_not_loose(name, limit):
    expansion = expand(name, limit)
    places = [*np.linspace(-expansion.limit, expansion.limit, 41), *np.random.default_rng(0).uniform(-limit, limit, 20)]
    with mpmath.workdps(40):
        errors = [abs(in_many_digits(expansion, t) - EXACT[name](mpmath.mpf(float(t)))) for t in places]
    worst = float(max(errors))
    assert worst <= expansion.error
    assert expansion.error <= 100 * worst


@given(st.sampled_from(["logistic", "normal"]), st.floats(0.0, 700.0), st.floats(-1.0, 1.0))
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
    assert links() == ("exponential", "logistic", "normal")
