"""How near estimated conditional means come to the true Shapley values, next to the imputers of shapiq, and their seconds.

    python benchmarks/bench_observational.py [ROWS_OF_THE_BACKGROUND] [REPETITIONS]

Designs whose conditional means are known or integrated: correlated Gaussians, their exponentials (a Gaussian copula), a mixture of two
Gaussians (none). f is smooth or a tree's. shapiq's conditional imputers get all 2^d coalitions and as many draws as our copula.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from exactshap import Explainer
from exactshap.games import OracleGame
from exactshap.solvers import solve

D, ROWS, DRAWS = 5, 10, 256
COVARIANCE = 0.6 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
CENTRES = np.array([np.full(D, -1.0), np.full(D, 1.0)])


def smooth(x):
    return x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + 0.5 * x[:, 3]


def steps(x):
    return np.where(x[:, 0] > 0.3, 2.0 * (x[:, 1] > 0), np.round(x[:, 2])) + (x[:, 3] > 0.5)


def given(rows, mask, rng, n):
    """Return n draws of a Gaussian given the columns of ``mask``."""
    inside, outside = np.flatnonzero(mask), np.flatnonzero(~mask)
    slopes = COVARIANCE[np.ix_(outside, inside)] @ np.linalg.inv(COVARIANCE[np.ix_(inside, inside)])
    left = COVARIANCE[np.ix_(outside, outside)] - slopes @ COVARIANCE[np.ix_(inside, outside)]
    drawn = np.tile(rows, (n, 1))
    drawn[:, outside] = slopes @ rows[inside] + rng.multivariate_normal(np.zeros(len(outside)), left, n)
    return drawn


class Gaussian:
    name = "Gaussian"

    def draw(self, n, rng):
        return rng.multivariate_normal(np.zeros(D), COVARIANCE, n)

    def conditional(self, row, mask, rng, n):
        return given(row, mask, rng, n)


class Exponential(Gaussian):
    name = "exponentials of Gaussians"

    def draw(self, n, rng):
        return np.expm1(super().draw(n, rng))

    def conditional(self, row, mask, rng, n):
        return np.expm1(given(np.log1p(row), mask, rng, n))


class Mixture(Gaussian):
    name = "mixture of two Gaussians"

    def draw(self, n, rng):
        return 0.5 * super().draw(n, rng) + CENTRES[rng.integers(2, size=n)]

    def conditional(self, row, mask, rng, n):
        precision = np.linalg.inv(0.25 * COVARIANCE[np.ix_(mask, mask)])
        away = (row - CENTRES)[:, mask]
        weights = np.exp(-0.5 * np.einsum("ci,ij,cj->c", away, precision, away))
        first = round(n * weights[0] / weights.sum())
        parts = [c + 0.5 * given(2 * (row - c), mask, rng, m) for c, m in zip(CENTRES, (first, n - first), strict=True)]
        return np.concatenate(parts)


DESIGNS = (Gaussian(), Exponential(), Mixture())


def truth(design, f, rows, rng, n=4000):
    mean = f(design.draw(400_000, rng)).mean()

    def value(row):
        return lambda masks: [
            mean if not m.any() else f(row[None])[0] if m.all() else f(design.conditional(row, m, rng, n)).mean() for m in masks
        ]

    return np.stack([solve(OracleGame(value(row), D)).values for row in rows])


def imputed(kind):
    """Return the values of one of shapiq's imputers, all coalitions."""

    def values(f, rows, background):
        imputer = kind(f, background, sample_size=DRAWS, random_state=0)
        found = []
        for row in rows:
            imputer.fit(row)
            found.append(solve(OracleGame(lambda masks: imputer(np.asarray(masks)), D)).values)
        return np.stack(found)

    return values


def methods():
    def ours(name):
        return lambda f, rows, background: Explainer(f, background, value_function=name)(rows).values

    found = {name: ours(name) for name in ("observational", "observational-copula", "observational-forest", "interventional")}
    try:
        from shapiq.imputer import GaussianCopulaImputer, GaussianImputer
    except ImportError:
        return found
    return found | {"shapiq Gaussian": imputed(GaussianImputer), "shapiq copula": imputed(GaussianCopulaImputer)}


def main(n, repetitions):
    print(
        f"{n} background rows, {ROWS} rows explained, {D} columns, {repetitions} runs: mean squared error of the values over their"
    )
    print("mean square (standard error over runs), and seconds a run")
    for design in DESIGNS:
        for f in (smooth, steps):
            errors, seconds = {}, {}
            for run in range(repetitions):
                rng = np.random.default_rng(run)
                background, rows = design.draw(n, rng), design.draw(ROWS, rng)
                expected = truth(design, f, rows, rng)
                for name, method in methods().items():
                    started = time.perf_counter()
                    error = np.mean((method(f, rows, background) - expected) ** 2) / np.mean(expected**2)
                    seconds[name] = seconds.get(name, 0.0) + (time.perf_counter() - started) / repetitions
                    errors.setdefault(name, []).append(error)
            for name, found in errors.items():
                spread = np.std(found, ddof=1) / repetitions**0.5
                print(
                    f"{design.name:26} {f.__name__:7} {name:21} {np.mean(found):.3f} ({spread:.3f})  {seconds[name]:.2f} s",
                    flush=True,
                )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 10)
