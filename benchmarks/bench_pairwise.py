"""MMD and HSIC: shares by one sweep of pair blocks, against the paper's algorithm, and against themselves with permutations.

The yardstick is the paper's recursion for the MMD (Mohammadi, Chau & Muandet 2025, section 4.1): for one feature after the
other, elementary symmetric polynomials of the other features' kernel values by Newton's identities, O(d^2) per pair and
feature, O(d^3) per pair in all. It runs in NumPy over blocks of rows that fit the cache: a loop over features of equal cost, so that
one feature is timed and scaled; ``note`` says so. Its values are compared with ours. ``over_factors`` is our time next to NumPy's own
for evaluating the d kernel factors of all pairs, which any method must do.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time

import numpy as np
from timing import best, row

from exactshap import decompose_hsic, decompose_mmd

D, SIGMA = 20, 6.3


def samples(n, d=D, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d)) + 0.1


def shapley_weights(d):
    return [math.factorial(q) * math.factorial(d - q - 1) / math.factorial(d) for q in range(d)]


def paper_block(A, B, j, sigma):
    """gamma_j for all pairs of rows of A and B: (k_j - 1) sum_q mu(q) e_q(kernel values of the others)."""
    d = A.shape[1]
    powers = [None] + [np.zeros((len(A), len(B))) for _ in range(d - 1)]
    for k in range(d):
        kernel = np.exp(-((A[:, k, None] - B[None, :, k]) ** 2) / (2 * sigma**2))
        if k == j:
            own = kernel
            continue
        power = kernel.copy()
        for s in range(1, d):
            powers[s] += power
            power *= kernel
    weights, e = shapley_weights(d), [np.ones((len(A), len(B)))]
    total = weights[0] * e[0]
    for q in range(1, d):
        e.append(sum((-1) ** (r - 1) * e[q - r] * powers[r] for r in range(1, q + 1)) / q)
        total += weights[q] * e[q]
    return (own - 1.0) * total


def paper_feature(X, Z, j, sigma, rows=32):
    """phi_j of the unbiased MMD2, all pairs, block by block of rows."""
    n, m = len(X), len(Z)
    share = 0.0
    for A, B, scale in ((X, X, 1 / (n * (n - 1))), (Z, Z, 1 / (m * (m - 1))), (X, Z, -2 / (n * m))):
        share += scale * sum(paper_block(A[i : i + rows], B, j, sigma).sum() for i in range(0, len(A), rows))
    return share


def factor_seconds(X, Z, sigma):
    """Return NumPy's seconds for the kernel factors of all pairs of rows, in blocks that fit the cache."""

    def evaluate():
        for A, B in ((X, X), (Z, Z), (X, Z)):
            columns = np.ascontiguousarray(B.T)
            for i in range(0, len(A), 8):
                np.exp(-((A[i : i + 8, :, None] - columns) ** 2) / (2 * sigma**2))

    return best(evaluate, 3)


def against_paper(n=1000):
    X, Z = samples(n)
    ours = best(lambda: decompose_mmd(X, Z, bandwidth=SIGMA), 5)
    shares = decompose_mmd(X, Z, bandwidth=SIGMA)
    with_median = best(lambda: decompose_mmd(X, Z), 3)
    started = time.perf_counter()
    share = paper_feature(X, Z, 0, SIGMA)
    plain = (time.perf_counter() - started) * D
    what = f"MMD, n = m = {n}, d = {D}, one thread"
    return [
        row(
            f"{what}: the paper's algorithm in NumPy",
            ours,
            plain,
            ">= 50 x and <= 0.5 s",
            note="the paper's: one feature of twenty, times twenty",
            difference=float(abs(share - shares.values[0])),
            with_median_heuristic=with_median,
            over_factors=ours / factor_seconds(X, Z, SIGMA),
        ),
    ]


def permutations(n=1000, count=200):
    X, Z = samples(n)
    y = X[:, 0] * X[:, 1]
    rows = []
    for name, one, many in (
        (
            "MMD",
            lambda: decompose_mmd(X, Z, bandwidth=SIGMA),
            lambda: decompose_mmd(X, Z, bandwidth=SIGMA, n_permutations=count),
        ),
        (
            "HSIC",
            lambda: decompose_hsic(X, y, bandwidth_x=SIGMA, bandwidth_y=1.0),
            lambda: decompose_hsic(X, y, bandwidth_x=SIGMA, bandwidth_y=1.0, n_permutations=count),
        ),
    ):
        single, all_of_them = best(one, 5), best(many, 3)
        rows.append(
            row(
                f"{name}, n = {n}, d = {D}: {count} permutations against one evaluation (peer)",
                all_of_them,
                single,
                "ours <= 20 x one evaluation",
                times_one_evaluation=all_of_them / single,
            )
        )
    return rows


_LARGE = """
import resource, time
import numpy as np
from exactshap import decompose_mmd
rng = np.random.default_rng(0)
X, Z = rng.normal(size=({n}, 20)), rng.normal(size=({n}, 20)) + 0.1
decompose_mmd(X[:100], Z[:100])
started, cpu = time.perf_counter(), time.process_time()
shares = decompose_mmd(X, Z, n_jobs={jobs})
print(time.perf_counter() - started, time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, shares.residual, shares.total,
      shares.total_std_error)
"""


def large(n, jobs, what, target):
    """Run in a process of its own, for its peak memory: everything included, the interpreter and its libraries too."""
    code = _LARGE.format(n=n, jobs=jobs)
    text = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    seconds, cpu, peak, residual, total, error = map(float, text.split())
    return row(what, seconds, None, target, cpu_seconds=cpu, peak_mib=peak, residual=residual, mmd2=total, std_error=error)


def run() -> list[dict]:
    """Measure everything; about two minutes."""
    return [
        *against_paper(),
        *permutations(),
        large(10_000, 2, "MMD, n = m = 10,000, d = 20, two threads", "<= 60 s and < 500 MB"),
        large(50_000, 2, "MMD, n = m = 50,000, d = 20, blocks of 2,000 rows, two threads", "no target"),
    ]


if __name__ == "__main__":
    for result in run():
        print(result)
