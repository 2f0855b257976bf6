"""How the coefficients of an RKHS weighting are learned."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from exactshap.estimators.rkhs_weighting._problem import WeightingProblem, row_kernel

__all__ = ["SOLVERS"]


def least_squares(problem: WeightingProblem) -> np.ndarray:
    r"""Solve :math:`(\Phi^\top W \Phi + m \lambda G + m \epsilon I)\, a = \Phi^\top W y` (Eq. 64)."""
    from scipy.linalg import LinAlgError

    if problem.prefers_rows:
        try:
            return _by_rows(problem)
        except LinAlgError:  # the penalty is numerically semi-definite
            pass
    return problem.solve(*problem.moments, problem.total)


def _by_rows(problem: WeightingProblem) -> np.ndarray:
    r"""Return the same a from kernel values of the rows, :math:`(K + m I)\, c = W^{1/2} y`, :math:`a = L^{-\top} Z c`."""
    from scipy.linalg import solve, solve_triangular

    parts = list(problem.whitened())
    K = row_kernel((Z for _, _, Z in parts), len(problem.X))
    K[np.diag_indices_from(K)] += problem.total
    c = solve(K, np.sqrt(problem.weights) * problem.y, assume_a="pos", overwrite_a=True)
    a = np.empty(problem.n_terms)
    for rows, factor, Z in parts:
        a[rows] = solve_triangular(factor, Z @ c, lower=True, trans="T")
    return a


def lasso(problem: WeightingProblem) -> np.ndarray:
    """Minimise the squared error / (2 m) + alpha |a|_1 in the random features, without intercept."""
    from sklearn.linear_model import Lasso

    left = problem.moments[0]
    model = Lasso(
        alpha=max(problem.alpha, 1e-12), fit_intercept=False, precompute=left / problem.total * len(problem.X), max_iter=5000
    )
    features = np.concatenate([block[0] for block in problem.blocks()])
    root = np.sqrt(problem.weights * len(problem.X) / problem.total)
    return model.fit(features * root[:, None], problem.y * root).coef_


def gradient(problem: WeightingProblem) -> np.ndarray:
    r"""Stochastic functional gradient descent with averaging: one step for each term, in the order drawn.

    Step t moves the weight function by :math:`-\eta\, \overline{(h(x) - y)\, \phi(w_t, x)}\, K(w_t, \cdot)`, shrinks it by
    :math:`1 - \eta \lambda`, projects it onto the ball of norm B = sqrt(m) / theta, and the running average is returned. The
    step is eta = B / (rho kappa sqrt(T)), or 1 / (lambda (t + 1)) where that is smaller; rho = max |y| is the slope of the loss at 0.
    theta and kappa are the averages over the parameters drawn, largest over the rows: they need no closed form.

    .. math:: \theta^2 = \max_x \overline{\phi(w_t, x)\, E_w[K(w_t, w)\, \phi(w, x)]}, \qquad \kappa^2 = \max_x \overline{\phi(w_t, x)^2}
    """
    return _descent(problem, greedy_steps=False)


def greedy(problem: WeightingProblem) -> np.ndarray:
    r"""Greedy optimal steps: each new term gets the coefficient that minimises the regularised loss along its direction.

    .. math:: a = -\frac{\overline{((1-\lambda) h(x) - y)\, h_w(x)} + \lambda (1 - \lambda)\, \alpha(w)}
              {\overline{h_w(x)^2} + \lambda K(w, w)}, \qquad \alpha \leftarrow (1 - \lambda)\, \alpha + a K(w, \cdot)
    """
    return _descent(problem, greedy_steps=True)


def _descent(problem: WeightingProblem, *, greedy_steps: bool) -> np.ndarray:
    features = np.concatenate([block[0] for block in problem.blocks()])
    weights = problem.weights / problem.total
    order = problem.rng.permutation(problem.n_terms)
    starts = np.concatenate([[0], np.cumsum([len(group.parameters) for group in problem.groups])])
    owner = np.repeat(np.arange(len(problem.groups)), np.diff(starts))
    a, average, h = np.zeros(problem.n_terms), np.zeros(problem.n_terms), np.zeros(len(features))
    gram, squared_norm = [group.gram for group in problem.groups], 0.0
    scatter, ball, step = (features, math.inf, 0.0) if greedy_steps else _gradient_constants(problem, features)
    for number, t in enumerate(order):
        g, local = owner[t], t - starts[owner[t]]
        rows = slice(starts[g], starts[g + 1])
        column, alpha_at = features[:, t], float(gram[g][local] @ a[rows])
        if greedy_steps:
            shrink = problem.alpha
            residual = (1.0 - shrink) * h - problem.y
            push = -(weights @ (residual * column) + shrink * (1.0 - shrink) * alpha_at)
            push /= max(weights @ column**2 + shrink * gram[g][local, local], 1e-300)
        else:
            eta = min(step, 1.0 / (problem.alpha * (number + 1))) if problem.alpha > 0 else step
            shrink = min(1.0, eta * problem.alpha)
            push = -eta * float(weights @ ((h - problem.y) * scatter[:, t]))
        squared_norm = (1 - shrink) ** 2 * squared_norm + 2 * push * (1 - shrink) * alpha_at + push**2 * gram[g][local, local]
        onto = min(1.0, ball / math.sqrt(max(squared_norm, 1e-300)))
        squared_norm *= onto**2
        a *= onto * (1.0 - shrink)
        a[t] += onto * push
        h = onto * ((1.0 - shrink) * h + push * column)
        average += (a - average) / (number + 1)
    return a if greedy_steps else average


def _gradient_constants(problem: WeightingProblem, features: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return phi(w_t, x) (n, T), the radius B of the ball and the step of :func:`gradient`."""
    scatter = np.concatenate(
        [group.base.predictor(group.parameters, problem.X[:, list(group.subset)]) for group in problem.groups], axis=1
    )
    used = problem.weights > 0
    theta = math.sqrt(max(float((scatter * features)[used].mean(axis=1).max(initial=0.0)), 1e-24))
    kappa = math.sqrt(max(float((scatter**2)[used].mean(axis=1).max(initial=0.0)), 1e-24))
    ball, slope = math.sqrt(problem.total) / theta, max(float(np.abs(problem.y[used]).max(initial=0.0)), 1e-12)
    return scatter, ball, ball / (slope * kappa * math.sqrt(problem.n_terms))


SOLVERS: dict[str, Callable[[WeightingProblem], np.ndarray]] = {
    "least_squares": least_squares,
    "lasso": lasso,
    "gradient": gradient,
    "greedy": greedy,
}
