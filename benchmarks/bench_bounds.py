"""Printed bounds of all expansions against their errors at 20,000 random places each, in 80-bit numbers (and mpmath).

``missed`` counts errors above the bound: none may be. ``bound / error`` is the bound over the largest error of one expansion, in the worst case.

python benchmarks/bench_bounds.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import mpmath
import numpy as np

from exactshap.expansions import expand, matern, rational_quadratic

N_EXPANSIONS, N_PLACES = 50, 400
Wide = np.longdouble


class Case(NamedTuple):
    """One expansion at some places: errors and the bound."""

    errors: np.ndarray
    bound: float


def normal(t: np.ndarray) -> np.ndarray:
    with mpmath.workdps(30):
        return np.array([Wide(mpmath.nstr(mpmath.ncdf(max(min(mpmath.mpf(float(one)), 60), -60)), 25)) for one in t])


LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": lambda t: 1 / (1 + np.exp(-t)),
    "normal": normal,
    "complementary log-log": lambda t: -np.expm1(-np.exp(t)),
    "log-log": lambda t: np.exp(-np.exp(-t)),
}


def of_links(name: str, rng: np.random.Generator) -> Iterator[Case]:
    """Yield expansions for limits of 1 to 700."""
    for limit in np.exp(rng.uniform(0.0, math.log(700.0), N_EXPANSIONS)).tolist():
        expansion = expand(name, limit)
        t = (expansion.limit * rng.uniform(-1.0, 1.0, N_PLACES)).astype(Wide)
        phases = np.multiply.outer(t, expansion.rates.imag.astype(Wide))
        real, imaginary = expansion.coefficients.real.astype(Wide), expansion.coefficients.imag.astype(Wide)
        found = expansion.constant + np.cos(phases) @ real - np.sin(phases) @ imaginary
        yield Case(np.abs(found - LINKS[name](t)), expansion.error)


def of_tanh(rng: np.random.Generator) -> Iterator[Case]:
    """Yield tanh(t) = 2 sigma(2 t) - 1, as networks have it."""
    for limit in np.exp(rng.uniform(0.0, math.log(350.0), N_EXPANSIONS)).tolist():
        expansion = expand("logistic", 2.0 * limit)
        t = (expansion.limit / 2.0 * rng.uniform(-1.0, 1.0, N_PLACES)).astype(Wide)
        phases = np.multiply.outer(2.0 * t, expansion.rates.imag.astype(Wide))
        found = 2.0 * (expansion.constant + np.sin(phases) @ -expansion.coefficients.imag.astype(Wide)) - 1.0
        yield Case(np.abs(found - np.tanh(t)), 2.0 * expansion.error)


def of_matern(rng: np.random.Generator) -> Iterator[Case]:
    """Yield smoothnesses of 0.1 to 50, by Bessel functions of 30 digits."""
    for nu in np.exp(rng.uniform(math.log(0.1), math.log(50.0), N_EXPANSIONS)).tolist():
        mixture, squared = matern(nu), np.exp(rng.uniform(-40.0, 8.0, N_PLACES))
        with mpmath.workdps(30):
            z = [mpmath.sqrt(2 * mpmath.mpf(nu) * mpmath.mpf(s)) for s in squared.tolist()]
            constant = mpmath.mpf(2) ** (1 - nu) / mpmath.gamma(nu)
            exact = [Wide(mpmath.nstr(constant * one**nu * mpmath.besselk(nu, one), 25)) for one in z]
        yield Case(np.abs(_mixed(mixture, squared) - np.array(exact)), mixture.error)


def of_quadratic(rng: np.random.Generator) -> Iterator[Case]:
    """Yield shapes of 0.04 to 10,000."""
    for alpha in np.exp(rng.uniform(math.log(0.04), math.log(1e4), N_EXPANSIONS)).tolist():
        mixture, squared, wide = rational_quadratic(alpha), np.exp(rng.uniform(-40.0, 8.0, N_PLACES)), Wide(alpha)
        exact = np.exp(-wide * np.log1p(squared.astype(Wide) / (2 * wide)))
        yield Case(np.abs(_mixed(mixture, squared) - exact), mixture.error)


def _mixed(mixture, squared: np.ndarray) -> np.ndarray:
    waves = np.exp(-np.multiply.outer(squared.astype(Wide), mixture.rates.astype(Wide)))
    return waves @ mixture.weights.astype(Wide)


def main() -> None:
    rng = np.random.default_rng(0)
    kinds = {name: of_links(name, rng) for name in LINKS}
    kinds |= {"tanh": of_tanh(rng), "Matern": of_matern(rng), "rational quadratic": of_quadratic(rng)}
    for name, cases in kinds.items():
        n, missed, loosest, largest = 0, 0, 0.0, 0.0
        for case in cases:
            n, missed = n + len(case.errors), missed + int((case.errors > case.bound).sum())
            loosest, largest = max(loosest, case.bound / float(case.errors.max())), max(largest, case.bound)
        print(f"{name:22} {n:,} places, {missed} missed, bound / error {loosest:6.1f}, largest bound {largest:.1e}", flush=True)


if __name__ == "__main__":
    main()
