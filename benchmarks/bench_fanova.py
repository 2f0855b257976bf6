"""Shapley values of FANOVA components: Gauss nodes next to recursions of Newton's kind and next to all sets of columns.

    python benchmarks/bench_fanova.py

Newton's identities give the elementary symmetric polynomials of the other columns from power sums (arXiv 2508.14499 builds on them, with
work shared between the columns that is not shared here: compare digits, not seconds); the reference is exact arithmetic on the same factors.
"""

from __future__ import annotations

import itertools
import time
from fractions import Fraction

import numpy as np

from exactshap.solvers.product import set_sums


def newton(h):
    """Return the sums over sets with j of prod h / |U| for factors (d, n), by power sums of the others."""
    d = len(h)
    found = []
    for j in range(d):
        others = np.delete(h, j, axis=0)
        powers = [np.sum(others**k, axis=0) for k in range(1, d)]
        e = [np.ones(h.shape[1])]
        for q in range(1, d):
            e.append(sum((-1) ** (i - 1) * e[q - i] * powers[i - 1] for i in range(1, q + 1)) / q)
        found.append(h[j] * sum(e[q] / (q + 1) for q in range(d)))
    return np.array(found)


def exact(h):
    """Return the same in fractions, from the coefficients of the product."""
    found = []
    for j in range(len(h)):
        coefficients = [Fraction(1)]
        for k, one in enumerate(h):
            if k != j:
                f = Fraction(float(one))
                coefficients = [
                    a + f * b for a, b in zip([*coefficients, Fraction(0)], [Fraction(0), *coefficients], strict=True)
                ]
        found.append(float(Fraction(float(h[j])) * sum(c / (q + 1) for q, c in enumerate(coefficients))))
    return np.array(found)


def all_sets(h):
    d = len(h)
    found = np.zeros(h.shape)
    for size in range(1, d + 1):
        for U in itertools.combinations(range(d), size):
            found[list(U)] += h[list(U)].prod(axis=0) / size
    return found


if __name__ == "__main__":
    for d in (5, 10, 20, 40, 80):
        h = np.random.default_rng(0).uniform(-0.9, 0.9, (d, 500))
        reference = np.array([exact(column) for column in h.T[:5]]).T
        line = f"d = {d:3}"
        for name, function in (("Gauss nodes", lambda h: np.array(set_sums(list(h)))), ("Newton", newton)):
            started = time.perf_counter()
            values = function(h)
            seconds = time.perf_counter() - started
            line += f"; {name}: {seconds:.4f} s, off by {np.abs(values[:, :5] - reference).max() / np.abs(reference).max():.1g}"
        if d <= 10:
            started = time.perf_counter()
            all_sets(h)
            line += f"; all sets: {time.perf_counter() - started:.4f} s"
        print(line)
