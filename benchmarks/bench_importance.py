"""Coverage of the intervals of importances in 20 simulations: rows, background rows, and the noise of sampled values.

    python benchmarks/bench_importance.py

Each simulation has its own columns, function and model. Its population is finite: some thousand rows, explained against each of some
hundred background rows, so that the true mean |value| is known and a replicate is a choice of rows, not a new explanation. Naive: the
mean of |value| with the bootstrap over rows, which takes noise and background for known.
"""

import json
import sys
import warnings

import numpy as np

from exactshap import Explainer, Explanation

SIMULATIONS, REPLICATES = 20, 100
POPULATION, BACKGROUND = 3000, 600
ROWS, BACKGROUND_ROWS = 300, 100
NOISE = 0.3  # standard error of a sampled value, of the root mean square of the values


def population(seed):
    """Return values by background row of a population, (n_background, n_rows, n_players)."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.svm import SVR

    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 7))
    mixing = np.eye(d) + rng.uniform(-0.5, 0.5, size=(d, d))
    X = rng.normal(size=(POPULATION + BACKGROUND + 300, d)) @ mixing
    if seed % 2:
        X = np.exp(X / 2.0)  # skewed columns
    y = np.sin(X[:, 0]) * (1.0 + X[:, 1]) + X[:, 2] ** 2 / 2.0 + 0.1 * rng.normal(size=len(X))
    models = (SVR(C=10.0), RandomForestRegressor(20, max_depth=4, random_state=0), Ridge())
    model = models[seed % 3].fit(X[-300:], y[-300:])
    explainer = Explainer(model, X[POPULATION : POPULATION + BACKGROUND], progress=False)
    return explainer.background_values(X[:POPULATION])


def explained(values, std_error=None):
    """Return values as an explanation."""
    n = len(values)
    prediction = values.sum(axis=1)
    return Explanation(
        values=values,
        baseline=np.zeros(n),
        prediction=prediction,
        residual=np.zeros(n),
        tolerance=1e-9,
        feature_names=[f"x{j}" for j in range(values.shape[1])],
        value_function="interventional",
        std_error=std_error,
    )


def covers(importance, truth):
    """Return which intervals hold the truth, and by how much of their width the estimate is off."""
    inside = (importance.lower <= truth) & (truth <= importance.upper)
    return inside, (importance.values - truth) / (importance.upper - importance.lower)


def replicate(by_row, rng):
    """Return (covered, bias) of each method on one choice of rows, background rows and noise."""
    rows = rng.integers(POPULATION, size=ROWS)
    some = rng.integers(BACKGROUND, size=BACKGROUND_ROWS)
    values = by_row[:, rows].mean(axis=0)
    known = np.abs(by_row.mean(axis=0))  # the background is part of the question
    noise = NOISE * np.sqrt(np.square(values).mean(axis=0)) * np.ones_like(values)
    noisy = values + noise * rng.normal(size=values.shape)
    chosen = by_row[np.ix_(some, rows)]
    of_some = explained(chosen.mean(axis=0))
    truth = known.mean(axis=0)
    seed = int(rng.integers(2**31))
    return {
        "rows": covers(explained(values).importance(random_state=seed), truth),
        "rows, sampled values": covers(explained(noisy, noise).importance(), truth),
        "rows, sampled values, naive": covers(explained(noisy).importance(random_state=seed), truth),
        "rows and background": covers(of_some.importance(background_values=chosen), truth),
        "rows and background, naive": covers(of_some.importance(random_state=seed), truth),
    }


def main(simulations=SIMULATIONS, replicates=REPLICATES):
    found = {}
    for seed in range(simulations):
        by_row, rng = population(seed), np.random.default_rng(1000 + seed)
        runs = [replicate(by_row, rng) for _ in range(replicates)]
        for method in runs[0]:
            covered = np.mean([run[method][0] for run in runs])
            bias = np.mean([run[method][1] for run in runs], axis=0)
            found.setdefault(method, []).append((float(covered), float(np.abs(bias).max())))
        print(seed, {method: cells[-1] for method, cells in found.items()}, file=sys.stderr, flush=True)
    for method, cells in found.items():
        coverage = [covered for covered, _ in cells]
        print(
            f"{method:30s} coverage {np.mean(coverage):.3f}, of simulations {min(coverage):.3f} to {max(coverage):.3f}; "
            f"largest bias {max(bias for _, bias in cells):.2f} of an interval's width"
        )
    print(json.dumps({method: [covered for covered, _ in cells] for method, cells in found.items()}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:]))
