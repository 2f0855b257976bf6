"""Gaussian-process uncertainty, conditional mean embeddings and the Shapley regulariser, against their issue's targets."""

import itertools

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as k
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from timing import best, row

from exactshap import Explainer
from exactshap.frames import as_table
from exactshap.kernels import RBF
from exactshap.readers.kernel_machines import KernelMachine
from exactshap.solvers.rkhs import player_functionals

D = 10


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[:, 1] += X[:, 0]
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n), rng


def covariance():
    """100 rows, d = 10, 50 background rows, n = 1000; the peer evaluates only the mean."""
    X, y, _ = data(1000)
    model = GaussianProcessRegressor(k.RBF(3.0), alpha=0.01, optimizer=None).fit(X, y)
    mean, both = Explainer(model, X[:50], uncertainty=False), Explainer(model, X[:50])
    ours = best(lambda: both(X[:100]), repeat=3)
    explanation = both(X[:100])
    sums = explanation.covariances.sum(axis=(1, 2))
    _, predictive = model.predict(np.vstack([X[:100], X[:50]]), return_cov=True)
    directions = np.hstack([np.eye(100), np.full((100, 50), -1 / 50)])
    expected = np.einsum("ia,ab,ib->i", directions, predictive, directions)
    return row(
        "GP mean and covariance, 100 rows, d = 10, 50 background rows, n = 1000 (no peer)",
        ours,
        None,
        "under 10 s",
        mean_only=best(lambda: mean(X[:100]), repeat=3),
        largest_difference_to_predict_cov=float(np.abs(sums - expected).max()),
    )


def coalition_by_formula(X, alpha, mask, eta, gamma):
    """Proposition 3 of RKHS-SHAP, as one would write it: all rows of X explained."""
    known = rbf_kernel(X[:, mask], gamma=gamma)
    unknown = rbf_kernel(X[:, ~mask], gamma=gamma)
    xi = np.linalg.solve(known + len(X) * eta * np.eye(len(X)), unknown.T).T
    return (known * (xi @ known)).T @ alpha


def observational(others=False):
    """One coalition of 1000 rows at n = 1000, on one thread (2 ** 10 of them make the explanation)."""
    X, y, rng = data(1000)
    model = KernelRidge(kernel="rbf", gamma=0.05, alpha=0.1).fit(X, y)
    reader = Explainer(model, value_function="observational").reader
    masks = rng.random((4, D)) < 0.5
    game = reader.game(as_table(X))
    timed = reader.game(as_table(data(1000, seed=1)[0])) if others else game
    both = np.concatenate([masks, ~masks])  # all coalitions come with their complements
    ours = best(lambda: timed.value(both), repeat=3) / 8
    if others:
        return row(
            "the same, of 1000 rows that are not the training rows (no peer)",
            ours,
            None,
            "1024 under 150 s",
            seconds_1024=1024 * ours,
        )
    peer = best(lambda: [coalition_by_formula(X, model.dual_coef_, mask, 1e-3, 0.05) for mask in masks], repeat=2) / 4
    found = game.value(masks)
    difference = max(
        np.abs(found[:, i] - coalition_by_formula(X, model.dual_coef_, mask, 1e-3, 0.05)).max() for i, mask in enumerate(masks)
    )
    return row(
        "observational coalition of the 1000 training rows on one thread, against Proposition 3 in NumPy (all threads)",
        ours,
        peer,
        "1024 coalitions under 150 s on two cores",
        seconds_1024=1024 * ours,
        largest_difference=float(difference),
    )


def landmarks():
    """One coalition of 100 rows with 100 landmarks of 20,000 rows; all come with their complements, ``alone`` one does not."""
    X, _, rng = data(20_000)
    alpha = rng.normal(size=len(X)) / len(X)
    machine = KernelMachine(X, alpha, RBF(3.0), predict=lambda rows: rbf_kernel(rows, X, gamma=1 / 18) @ alpha)
    game = Explainer(machine, value_function="observational", n_landmarks=100).reader.game(as_table(X[:100]))
    masks = rng.random((4, D)) < 0.5
    ours = best(lambda: game.value(np.concatenate([masks, ~masks])), repeat=3) / 8
    alone = best(lambda: game.value(masks), repeat=3) / 4
    return row("Nystroem coalition, b = 100, n = 20,000, 100 rows, one thread", ours, None, "under 0.1 s", alone=alone)


def pairs():
    """The deviations of the 45 pairs of 10 players, besides those of the players."""
    X, y, _ = data(1000)
    model = GaussianProcessRegressor(k.RBF(3.0), alpha=0.01, optimizer=None).fit(X, y)
    explainer, mean = Explainer(model, X[:20], uncertainty=True), Explainer(model, X[:20], uncertainty=False)
    return row(
        "GP values and deviations of order 2, 20 rows, d = 10, 20 background rows, n = 1000 (no peer)",
        best(lambda: explainer(X[:20], order=2), repeat=2),
        None,
        "",
        values_only=best(lambda: mean(X[:20], order=2), repeat=2),
    )


def regulariser(n=1000):
    """Gamma_A: exact, against averaging the J = 2 ** (d - 1) coalitions of Proposition 7 with factor products computed afresh."""
    X, _, _ = data(n)
    (part,) = RBF(3.0).expand(D)
    factors = np.ascontiguousarray(part.factors(X, np.ascontiguousarray(X.T)).transpose(1, 0, 2))
    weights = np.full(n, 1 / n)
    ours = best(lambda: player_functionals(factors, factors, weights, [0]), repeat=3)
    masks = np.array(list(itertools.product([False, True], repeat=D - 1)))

    def sampled(n_coalitions, rng):
        total = np.zeros((n, n))
        for _ in range(n_coalitions):
            size = rng.integers(D)
            mask = np.zeros(D, bool)
            mask[1 + rng.choice(D - 1, size, replace=False)] = True
            for sign, player in ((-1.0, False), (1.0, True)):
                mask[0] = player
                known, unknown = rbf_kernel(X[:, mask], gamma=1 / 18) if mask.any() else 1.0, ~mask
                mean = rbf_kernel(X[:, unknown], gamma=1 / 18).mean(axis=1) if unknown.any() else np.ones(n)
                total += sign * known * mean[:, None]
        return total / n_coalitions

    few = 32
    peer = best(lambda: sampled(few, np.random.default_rng(0)), repeat=2, warm_up=0) * len(masks) / few
    exact = player_functionals(factors, factors, weights, [0])[0]
    error = np.linalg.norm(sampled(128, np.random.default_rng(1)) - exact) / np.linalg.norm(exact)
    return row(
        "exact Gamma_A, n = 1000, d = 10, against sampling J = 512 coalitions (scaled from 32)",
        ours,
        peer,
        "under 20 s and faster than the sampling",
        all_ten_features=best(lambda: player_functionals(factors, factors, weights, range(D)), repeat=2),
        relative_error_of_128_samples=float(error),
    )


def run():
    return [covariance(), pairs(), observational(), observational(others=True), landmarks(), regulariser()]


if __name__ == "__main__":
    for line in run():
        print(line)
