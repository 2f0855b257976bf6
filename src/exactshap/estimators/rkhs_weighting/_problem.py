"""Solve the penalised least squares of RKHS weightings in their random features."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from exactshap._runtime.slices import slices
from exactshap.estimators.rkhs_weighting._interface import Instantiation, checked

# Values of one block of expectations: 16 MiB.
BLOCK_VALUES = 2**21


@dataclass(frozen=True, eq=False)
class Group:
    """Hold the terms of one subset: ``parameters (n_terms, n_parameters)`` and its ``probability``.

    ``penalty_size`` is the number of columns that sets the kernel's width in the penalty: None takes those of the subset.
    """

    subset: tuple[int, ...]
    parameters: np.ndarray
    probability: float
    base: Instantiation
    penalty_size: int | None = None

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return p(I) E[K(w_t, w) phi(w, x_I)], of shape (n_rows, n_terms)."""
        values = np.asarray(self.base.expectation(self.parameters, X[:, list(self.subset)]), float)
        return self.probability * checked(self.base, "expectation", values, (len(X), len(self.parameters)))

    @functools.cached_property
    def gram(self) -> np.ndarray:
        size = len(self.subset) if self.penalty_size is None else self.penalty_size
        values = np.asarray(self.base.kernel(self.parameters, self.parameters, size), float)
        return checked(self.base, "kernel", values, (len(self.parameters), len(self.parameters)))


Terms = TypeVar("Terms", "Group", "WeightingTerm")


def places_of(groups: Sequence[Terms]) -> list[slice]:
    ends = itertools.accumulate((len(group.parameters) for group in groups), initial=0)
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def pieces_of(groups: Sequence[Terms], coefficients: np.ndarray) -> Iterator[tuple[Terms, np.ndarray]]:
    return ((group, coefficients[place]) for group, place in zip(groups, places_of(groups), strict=True))


@dataclass(frozen=True, eq=False)
class WeightingProblem:
    """Hold what coefficients are fitted to: drawn terms, weighted rows, penalties."""

    groups: list[Group]
    X: np.ndarray  # (n_rows, n_features)
    y: np.ndarray  # (n_rows,)
    weights: np.ndarray  # (n_rows,)
    alpha: float  # of the squared RKHS norm
    ridge: float  # of the squared coefficients
    rng: np.random.Generator  # for solvers that visit terms in random order

    @property
    def n_terms(self) -> int:
        return sum(len(group.parameters) for group in self.groups)

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield features (n, T), targets and weights by blocks of rows. Memory stays bounded."""
        # All rows at once would take T numbers per row.
        for rows in slices(len(self.X), BLOCK_VALUES * 4 // max(1, self.n_terms)):
            yield self.features(rows), self.y[rows], self.weights[rows]

    def features(self, rows: slice) -> np.ndarray:
        """Return the features (n, T) of some rows."""
        X = self.X[rows]
        features = np.empty((len(X), self.n_terms))
        for group, place in zip(self.groups, places_of(self.groups), strict=True):
            features[:, place] = group.features(X)
        return features

    def take(self, rows: np.ndarray) -> WeightingProblem:
        return replace(self, X=self.X[rows], y=self.y[rows], weights=self.weights[rows])

    def penalties(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the block alpha G + ridge I and place of every group."""
        for group, place in zip(self.groups, places_of(self.groups), strict=True):
            yield place, self.alpha * group.gram + self.ridge * np.eye(len(group.parameters))

    def solve(self, left: np.ndarray, right: np.ndarray, total: float) -> np.ndarray:
        """Solve (left + total (alpha G + ridge I)) a = right for a."""
        from scipy.linalg import LinAlgError, lstsq, solve

        system = left.copy()
        for rows, penalty in self.penalties():  # G is block-diagonal over the groups
            system[rows, rows] += total * penalty
        try:
            return np.asarray(solve(system, right, assume_a="pos"))
        # Numerically semi-definite: the solution of least norm.
        except LinAlgError:
            return np.asarray(lstsq(system, right)[0])

    def whitened(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        r"""Yield each group's place, L of alpha G + ridge I = L L', and :math:`Z = L^{-1} \Phi^\top W^{1/2}`."""
        from scipy.linalg import cholesky, solve_triangular

        # Rows scaled by the roots of their weights turn a weighted problem into a plain one.
        root = np.sqrt(self.weights)[:, None]
        for group, (rows, penalty) in zip(self.groups, self.penalties(), strict=True):
            factor = cholesky(penalty, lower=True, overwrite_a=True)
            yield rows, factor, solve_triangular(factor, (root * group.features(self.X)).T, lower=True)

    @property
    def prefers_rows(self) -> bool:
        """Say whether solving by rows takes fewer operations: small groups, fewer rows than terms."""
        n, T, sizes = len(self.X), self.n_terms, [len(group.parameters) for group in self.groups]
        # Operations: Cholesky of each group and a system of n rows, against normal equations of T terms.
        return sum(b**3 + 3 * n * b**2 for b in sizes) + 3 * T * n**2 + n**3 < 3 * n * T**2 + T**3

    def mean_residual(self, a: np.ndarray) -> float:
        sums = sum(float(weights @ (y - features @ a)) for features, y, weights in self.blocks())
        return sums / self.total


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Hold sums over rows that determine the solution of a weighted least squares problem."""

    left: np.ndarray  # Phi' W Phi (T, T)
    right: np.ndarray  # Phi' W y (T,)
    means: np.ndarray  # Phi' W 1 (T,)
    squares: float  # y' W y
    target: float  # y' W 1
    total: float  # 1' W 1

    @classmethod
    def of(cls, problem: WeightingProblem) -> NormalEquations:
        from scipy.linalg.blas import dsyrk

        left, right, means = np.zeros((problem.n_terms, problem.n_terms), order="F"), *np.zeros((2, problem.n_terms))
        for features, y, weights in problem.blocks():
            right += features.T @ (weights * y)
            means += features.T @ weights
            # Last, as it changes the features in place.
            features *= np.sqrt(weights)[:, None]
            left = dsyrk(1.0, features.T, beta=1.0, c=left, overwrite_c=1, lower=1)
        # dsyrk fills the lower half only.
        left = np.ascontiguousarray(left + np.tril(left, -1).T)
        w, y = problem.weights, problem.y
        return cls(left, right, means, float(w @ y**2), float(w @ y), problem.total)

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(*(a - b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def solve(self, problem: WeightingProblem, *, centred: bool) -> tuple[np.ndarray, float]:
        """Return the coefficients and the intercept, 0 unless ``centred``: the mean of y plus that of the residuals."""
        center = self.target / self.total if centred else 0.0
        a = problem.solve(self.left, self.right - center * self.means, self.total)
        # The penalty shrinks f, so that its residuals need not have mean 0: the intercept takes their mean as well.
        rest = (self.target - center * self.total - self.means @ a) / self.total if centred else 0.0
        return a, center + float(rest)

    def score(self, a: np.ndarray, intercept: float) -> float:
        """Return the R2 of Phi a + intercept on these rows."""
        # |y - b - Phi a|^2 from the sums, without the rows.
        squares = self.squares - 2.0 * intercept * self.target + intercept**2 * self.total
        errors = squares - 2.0 * a @ (self.right - intercept * self.means) + a @ (self.left @ a)
        return r2(float(errors), self.squares - self.target**2 / self.total)


def r2(errors: float, squares: float) -> float:
    """Return 1 - errors / squares; 0 for constant targets, as scikit-learn."""
    return 1.0 - errors / squares if squares > 0.0 else 0.0


def row_kernel(whitened: Iterable[np.ndarray], n_rows: int) -> np.ndarray:
    r"""Return :math:`W^{1/2} \Phi (\alpha G + \epsilon I)^{-1} \Phi^\top W^{1/2}`, the sum of Z' Z over groups."""
    from scipy.linalg.blas import dsyrk

    K = np.zeros((n_rows, n_rows), order="F")
    for Z in whitened:
        K = dsyrk(1.0, Z.T, beta=1.0, c=K, overwrite_c=1, lower=1)
    return np.ascontiguousarray(K + np.tril(K, -1).T)


def least_squares(problem: WeightingProblem) -> np.ndarray:
    r"""Solve :math:`(\Phi^\top W \Phi + m \lambda G + m \epsilon I)\, a = \Phi^\top W y` (Eq. 64)."""
    from scipy.linalg import LinAlgError

    if problem.prefers_rows:
        try:
            return _by_rows(problem)
        except LinAlgError:  # the penalty is numerically semi-definite
            pass
    return NormalEquations.of(problem).solve(problem, centred=False)[0]


def _by_rows(problem: WeightingProblem) -> np.ndarray:
    r"""Solve :math:`(K + m I)\, c = W^{1/2} y` for the same coefficients :math:`a = L^{-\top} Z c`."""
    from scipy.linalg import solve_triangular

    parts = list(problem.whitened())
    K = row_kernel((Z for _, _, Z in parts), len(problem.X))
    c = solve_rows(K, np.sqrt(problem.weights) * problem.y, problem.total)
    a = np.empty(problem.n_terms)
    for rows, factor, Z in parts:
        a[rows] = solve_triangular(factor, Z @ c, lower=True, trans="T")
    return a


def solve_rows(K: np.ndarray, y: np.ndarray, total: float) -> np.ndarray:
    """Solve (K + total I) c = y for c; K is overwritten."""
    from scipy.linalg import solve

    K[np.diag_indices_from(K)] += total
    return np.asarray(solve(K, y, assume_a="pos", overwrite_a=True))


def lasso(problem: WeightingProblem) -> np.ndarray:
    """Minimise the squared error / (2 m) + alpha |a|_1, without intercept."""
    from sklearn.linear_model import Lasso

    model = Lasso(alpha=max(problem.alpha, 1e-12), fit_intercept=False, precompute=True, max_iter=5000)
    features = np.concatenate([block[0] for block in problem.blocks()])
    return model.fit(features, problem.y, sample_weight=problem.weights).coef_


def descent(problem: WeightingProblem, *, greedy_steps: bool) -> np.ndarray:
    r"""Run stochastic functional gradient descent with averaging, or take greedy steps: each term in random order is one.

    A step t of the gradient moves the weight function by :math:`-\eta\, \overline{(h(x) - y)\, \phi(w_t, x)}\, K(w_t, \cdot)`, shrinks it by
    :math:`1 - \eta \lambda`, projects it onto the ball of norm B = sqrt(m) / theta, and the running average is returned. The
    step is eta = B / (rho kappa sqrt(T)), or 1 / (lambda (t + 1)) where that is smaller; rho = max |y| is the slope of the loss at 0.
    theta and kappa are averages over the drawn parameters, maximised over the rows, so that no closed form is needed.

    .. math:: \theta^2 = \max_x \overline{\phi(w_t, x)\, E_w[K(w_t, w)\, \phi(w, x)]}, \qquad \kappa^2 = \max_x \overline{\phi(w_t, x)^2}

    A greedy step gives a new term the coefficient that minimises the regularised loss along its direction:

    .. math:: a = -\frac{\overline{((1-\lambda) h(x) - y)\, h_w(x)} + \lambda (1 - \lambda)\, \alpha(w)}
              {\overline{h_w(x)^2} + \lambda K(w, w)}, \qquad \alpha \leftarrow (1 - \lambda)\, \alpha + a K(w, \cdot)
    """
    features = np.concatenate([block[0] for block in problem.blocks()])
    weights = problem.weights / problem.total
    # Terms are stored by group; the steps visit them in random order.
    order, places = problem.rng.permutation(problem.n_terms), places_of(problem.groups)
    owner = np.repeat(np.arange(len(places)), [len(group.parameters) for group in problem.groups])
    a, average, h = np.zeros(problem.n_terms), np.zeros(problem.n_terms), np.zeros(len(features))
    gram, squared_norm = [group.gram for group in problem.groups], 0.0
    scatter, ball, step = (features, math.inf, 0.0) if greedy_steps else _gradient_constants(problem, features)
    for number, t in enumerate(order):
        g, rows = owner[t], places[owner[t]]
        local = t - rows.start
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
        # |(1 - s) alpha + p K(w, .)|^2, updated by the reproducing property: alpha(w) = <alpha, K(w, .)>.
        squared_norm = (1 - shrink) ** 2 * squared_norm + 2 * push * (1 - shrink) * alpha_at + push**2 * gram[g][local, local]
        onto = min(1.0, ball / math.sqrt(max(squared_norm, 1e-300)))
        squared_norm *= onto**2
        a *= onto * (1.0 - shrink)
        a[t] += onto * push
        h = onto * ((1.0 - shrink) * h + push * column)
        # The running mean of all iterates, without a copy of each.
        average += (a - average) / (number + 1)
    return a if greedy_steps else average


def _gradient_constants(problem: WeightingProblem, features: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return phi(w_t, x) (n, T), the radius B and the step size of :func:`descent`."""
    scatter = np.concatenate(
        [group.base.predictor(group.parameters, problem.X[:, list(group.subset)]) for group in problem.groups], axis=1
    )
    # Rows of weight 0 must not change the step or the radius.
    used = problem.weights > 0
    theta = math.sqrt(max(float((scatter * features)[used].mean(axis=1).max(initial=0.0)), 1e-24))
    kappa = math.sqrt(max(float((scatter**2)[used].mean(axis=1).max(initial=0.0)), 1e-24))
    ball, slope = math.sqrt(problem.total) / theta, max(float(np.abs(problem.y[used]).max(initial=0.0)), 1e-12)
    return scatter, ball, ball / (slope * kappa * math.sqrt(problem.n_terms))


SOLVERS: dict[str, Callable[[WeightingProblem], np.ndarray]] = {
    "least_squares": least_squares,
    "lasso": lasso,
    "gradient": functools.partial(descent, greedy_steps=False),
    "greedy": functools.partial(descent, greedy_steps=True),
}


@dataclass(frozen=True, eq=False)
class WeightingTerm:
    """Hold a function f_J of a weighting: ``subset`` J, ``parameters`` (n_terms, n_parameters), ``coefficients`` (n_terms,).

    The coefficients carry the probability of the subset.
    """

    subset: tuple[int, ...]
    parameters: np.ndarray
    coefficients: np.ndarray
    base: Instantiation

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f_J (n_rows,) for the subset's columns, X (n_rows, len(subset))."""
        blocks = [
            (self.base.expectation(self.parameters, X[rows]) * self.coefficients).sum(axis=1)
            for rows in slices(len(X), BLOCK_VALUES // max(1, len(self.coefficients)))
        ]
        return np.concatenate(blocks) if blocks else np.zeros(0)


def kept_terms(pieces: Iterable[tuple[Group, np.ndarray]]) -> tuple[list[WeightingTerm], np.ndarray, float]:
    """Return functions with nonzero terms, their coefficients a, and the weight function's norm."""
    terms, kept, squared = [], [np.zeros(0)], 0.0
    for group, a in pieces:
        used = a != 0
        if used.any():
            parameters = np.ascontiguousarray(group.parameters[used])
            terms.append(WeightingTerm(group.subset, parameters, group.probability * a[used], group.base))
            kept.append(a[used])
            squared += float(a[used] @ group.base.kernel(parameters, parameters, len(group.subset)) @ a[used])
    return terms, np.concatenate(kept), math.sqrt(max(squared, 0.0))
