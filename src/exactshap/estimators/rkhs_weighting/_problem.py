"""The penalised least squares problem of an RKHS weighting in its random features."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from exactshap.estimators.rkhs_weighting._instantiation import ROW_BLOCK, Instantiation, checked

__all__ = ["Group", "WeightingProblem", "moments_of", "row_kernel"]


@dataclass(frozen=True, eq=False)
class Group:
    """The terms of one subset: ``parameters (n_terms, n_parameters)`` and the ``probability`` of the subset.

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


@dataclass(frozen=True, eq=False)
class WeightingProblem:
    """A weighted least squares problem in the random features of all groups."""

    groups: list[Group]
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    alpha: float
    ridge: float
    rng: np.random.Generator

    @property
    def n_terms(self) -> int:
        return sum(len(group.parameters) for group in self.groups)

    @property
    def total(self) -> float:
        """m, the sum of the weights: repeated rows count as often as they are repeated."""
        return float(self.weights.sum())

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield features (n, T), targets and weights of blocks of rows: memory stays flat in the number of rows."""
        step = max(1, ROW_BLOCK * 4 // max(1, self.n_terms))
        for i in range(0, len(self.X), step):
            rows = slice(i, i + step)
            yield self.features(rows), self.y[rows], self.weights[rows]

    def features(self, rows: slice) -> np.ndarray:
        """Return the features (n, T) of some rows."""
        X, start = self.X[rows], 0
        features = np.empty((len(X), self.n_terms))
        for group in self.groups:
            stop = start + len(group.parameters)
            features[:, start:stop] = group.features(X)
            start = stop
        return features

    @functools.cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Phi' W Phi (T, T) and Phi' W y (T,)."""
        return moments_of(self)[:2]

    def with_alpha(self, alpha: float) -> WeightingProblem:
        """Return the problem with another penalty; what does not depend on it is shared."""
        other = replace(self, alpha=alpha)
        if "moments" in self.__dict__:
            other.__dict__["moments"] = self.moments
        return other

    def take(self, rows: np.ndarray) -> WeightingProblem:
        """Return the problem of some rows."""
        return replace(self, X=self.X[rows], y=self.y[rows], weights=self.weights[rows])

    def penalised(self, left: np.ndarray, total: float) -> np.ndarray:
        """Return left + total (alpha G + ridge I); G is block-diagonal over the groups."""
        system = left.copy()
        for rows, penalty in self.penalties():
            system[rows, rows] += total * penalty
        return system

    def penalties(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the block alpha G + ridge I of every group, with its place."""
        start = 0
        for group in self.groups:
            stop = start + len(group.parameters)
            yield slice(start, stop), self.alpha * group.gram + self.ridge * np.eye(stop - start)
            start = stop

    def solve(self, left: np.ndarray, right: np.ndarray, total: float) -> np.ndarray:
        """Return the solution a of (left + total (alpha G + ridge I)) a = right."""
        from scipy.linalg import LinAlgError, lstsq, solve

        system = self.penalised(left, total)
        try:
            return np.asarray(solve(system, right, assume_a="pos"))
        except LinAlgError:  # numerically semi-definite: the solution of least norm
            return np.asarray(lstsq(system, right)[0])

    def whitened(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        r"""Yield place, Cholesky factor L and :math:`Z = L^{-1} \Phi^\top W^{1/2}` of every group, alpha G + ridge I = L L'."""
        from scipy.linalg import cholesky, solve_triangular

        root = np.sqrt(self.weights)[:, None]
        for group, (rows, penalty) in zip(self.groups, self.penalties(), strict=True):
            factor = cholesky(penalty, lower=True, overwrite_a=True)
            yield rows, factor, solve_triangular(factor, (root * group.features(self.X)).T, lower=True)

    @property
    def prefers_rows(self) -> bool:
        """Whether solving by rows takes fewer operations: small groups, and fewer rows than terms."""
        n, T, sizes = len(self.X), self.n_terms, [len(group.parameters) for group in self.groups]
        return sum(b**3 + 3 * n * b**2 for b in sizes) + 3 * T * n**2 + n**3 < 3 * n * T**2 + T**3

    def mean_residual(self, a: np.ndarray) -> float:
        sums = sum(float(weights @ (y - features @ a)) for features, y, weights in self.blocks())
        return sums / self.total


def moments_of(problem: WeightingProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Phi' W Phi (T, T), Phi' W y (T,) and Phi' W 1 (T,); half of the symmetric product is computed."""
    from scipy.linalg.blas import dsyrk

    left, right, sums = np.zeros((problem.n_terms, problem.n_terms), order="F"), *np.zeros((2, problem.n_terms))
    for features, y, weights in problem.blocks():
        right += features.T @ (weights * y)
        sums += features.T @ weights
        features *= np.sqrt(weights)[:, None]
        left = dsyrk(1.0, features.T, beta=1.0, c=left, overwrite_c=1, lower=1)
    return np.ascontiguousarray(left + np.tril(left, -1).T), right, sums


def row_kernel(whitened: Iterable[np.ndarray], n_rows: int) -> np.ndarray:
    r"""Return the sum of Z' Z, :math:`W^{1/2} \Phi (\alpha G + \epsilon I)^{-1} \Phi^\top W^{1/2}`, of shape (n_rows, n_rows)."""
    from scipy.linalg.blas import dsyrk

    K = np.zeros((n_rows, n_rows), order="F")
    for Z in whitened:
        K = dsyrk(1.0, Z.T, beta=1.0, c=K, overwrite_c=1, lower=1)
    return np.ascontiguousarray(K + np.tril(K, -1).T)
