"""Build kernel, penalised functionals and a basis of the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from exactshap._runtime.checks import is_number, sample_weights
from exactshap._runtime.slices import slices
from exactshap._runtime.types import Column, Foreign, RandomState, TableLike
from exactshap.errors import BudgetError, InputError, UnknownNameError, did_you_mean, memory_needed
from exactshap.games import all_masks
from exactshap.kernels import Component, Kernel, from_sklearn
from exactshap.semivalues import find
from exactshap.solvers.rkhs import (
    check_eta,
    choose_eta,
    embedding_weights,
    median_gaussian,
    player_functionals,
    subset_product,
)

VALUE_FUNCTIONS = ("interventional", "observational")
# Kernel factors evaluated at once: 64 MiB.
PREDICTED_VALUES = 2**23
# Largest size of the functionals of a fit, in bytes.
MAX_FUNCTIONAL_BYTES = 8.0 * 2**30
# Gamma (n_chosen, n, n): Gamma[a, i, q] is the value of column a at x_q for the kernel section of X_i; and the relative
# standard error of a sampled one in Frobenius norm, None where it is exact
Functionals = tuple[np.ndarray, float | None]


@dataclass(eq=False, repr=False)
class PenalisedKernelModel(BaseEstimator):  # type: ignore[misc]
    """Hold the parameters that both estimators share, and the rows of their fits; the estimators document them."""

    kernel: str | Foreign = "rbf"
    _: KW_ONLY
    gamma: float | None = None
    alpha: float = 1.0
    shapley_penalty: float = 1.0
    features: Any = None
    value_function: str = "interventional"
    eta: float | str | None = 1e-3
    n_coalitions: int = 64
    random_state: RandomState = None

    def _checks(self) -> list[tuple[str, bool, str]]:
        return [
            ("gamma", self.gamma is None or is_number(self.gamma, above=True), "a float > 0 or None"),
            ("alpha", is_number(self.alpha), "a float >= 0"),
            ("shapley_penalty", is_number(self.shapley_penalty), "a float >= 0"),
            ("value_function", self.value_function in VALUE_FUNCTIONS, f"one of {list(VALUE_FUNCTIONS)}"),
            ("n_coalitions", is_number(self.n_coalitions, 2, whole=True), "an int >= 2"),
        ]

    def _weighted(self, X: np.ndarray, y: np.ndarray, sample_weight: Column) -> tuple[np.ndarray, np.ndarray]:
        """Keep the rows of positive weight as ``X_fit_``. Return their targets and weights."""
        weights = sample_weights(sample_weight, len(X))
        keep = weights > 0
        self.X_fit_ = X[keep]
        return y[keep], weights[keep]

    def _function(self, X: TableLike) -> np.ndarray:
        """Return f(x), (n_rows,) or (n_rows, n_functions)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(cross_kernel(self.kernel_, X, self.X_fit_) @ self.dual_coef_)

    def _basis(self, weights: np.ndarray) -> Basis:
        """Set ``kernel_``, and return the basis of the training rows."""
        X, (n, d) = self.X_fit_, self.X_fit_.shape
        self.kernel_ = from_sklearn(self.kernel, d, gamma=self.gamma)
        columns = penalised_columns(self.features, d, getattr(self, "feature_names_in_", None))
        random_state = check_random_state(self.random_state)
        _refuse_too_large(n, d, len(columns))
        eigenvalues, vectors = np.linalg.eigh(cross_kernel(self.kernel_, X, X))
        keep = eigenvalues > n * np.finfo(float).eps * max(eigenvalues[-1], 0.0)
        roots = np.sqrt(eigenvalues[keep])
        to_dual = vectors[:, keep] / roots
        shares = weights / weights.sum()
        parts = self.kernel_.expand(d)
        if self.value_function == "interventional":
            functionals: Functionals = _interventional(parts, X, shares, columns), None
        else:
            functionals = _observational(parts, X, shares, columns, self.eta, self.n_coalitions, random_state)
        gram = np.zeros((len(roots), len(roots)))
        for gamma in functionals[0]:
            coordinates = to_dual.T @ gamma
            gram += (coordinates * shares) @ coordinates.T
        return Basis(vectors[:, keep] * roots, to_dual, (gram + gram.T) / 2.0, functionals[1])


def cross_kernel(kernel: Kernel, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the kernel matrix (n, m), made in blocks of rows."""
    blocks = [kernel(X[rows], Y) for rows in slices(len(X), PREDICTED_VALUES // max(1, Y.size))]
    return np.concatenate(blocks) if blocks else np.zeros((0, len(Y)))


def penalised_columns(features: Any, n_features: int, names: Sequence[str] | None) -> list[int]:
    """Return the column numbers of ``features``: names, numbers, a single one, or None for all."""
    if features is None:
        return list(range(n_features))
    single = isinstance(features, str) or not hasattr(features, "__iter__")
    columns = [_column(item, n_features, names) for item in ([features] if single else list(features))]
    if len(set(columns)) < len(columns):
        raise InputError("`features` must not name a column twice", f"Got {features!r}")
    return columns


def _column(item: Any, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(item, str):
        known = [] if names is None else list(names)
        if item not in known:
            hint = did_you_mean(item, known) if known else "X had no column names: pass column numbers"
            raise UnknownNameError(f"`features` names an unknown column {item!r}", do=hint)
        return known.index(item)
    if not isinstance(item, (int, np.integer)) or isinstance(item, bool) or not 0 <= item < n_features:
        raise InputError(f"`features` must hold column names or numbers in [0, {n_features})", f"Got {item!r}")
    return int(item)


@dataclass(frozen=True, eq=False)
class Basis:
    r"""Hold coordinates beta with f = rows beta on the training rows, |f| = |beta|, phi_q = penalties beta."""

    # (n, rank): U Lambda^(1/2) of K = U Lambda U^T; directions of eigenvalue below n eps of the largest carry rounding and
    # are dropped
    rows: np.ndarray
    to_dual: np.ndarray  # (n, rank): U Lambda^(-1/2): alpha = to_dual beta
    gram: np.ndarray  # (rank, rank): sum_a sum_q w_q / sum(w) of the outer products of the penalised functionals
    relative_error: float | None


def _refuse_too_large(n: int, d: int, n_columns: int) -> None:
    needed = 8.0 * n**2 * (d + n_columns + 6.0)
    if needed > MAX_FUNCTIONAL_BYTES:
        raise BudgetError(
            f"Shapley-regularised learning from {n} rows does not fit in memory",
            f"It would need {memory_needed(needed, MAX_FUNCTIONAL_BYTES)}",
            "Fit on fewer rows, or penalise fewer columns with features=",
        )


def _factors(part: Component, X: np.ndarray) -> np.ndarray:
    """Return one-column factors between the rows, (n_columns, n, n)."""
    return np.ascontiguousarray(part.factors(X, np.ascontiguousarray(X.T)).transpose(1, 0, 2))


def _interventional(parts: Sequence[Component], X: np.ndarray, shares: np.ndarray, columns: Sequence[int]) -> np.ndarray:
    """Return the exact Gamma for the training rows as background."""
    total = np.zeros((len(columns), len(X), len(X)))
    for part in parts:
        if part.is_monomial:
            psi = np.ascontiguousarray(part.monomial(X).T)[:, None, :]
            own = player_functionals(psi, psi, shares, columns)
            total += part.amplitude * psi.prod(axis=0)[0][:, None] * own
        else:
            factors = _factors(part, X)
            total += part.amplitude * player_functionals(factors, factors, shares, columns)
    return total


def _observational(
    parts: Sequence[Component],
    X: np.ndarray,
    shares: np.ndarray,
    columns: Sequence[int],
    eta: float | str | None,
    n_coalitions: int,
    random_state: np.random.RandomState,
) -> Functionals:
    """Return Gamma of conditional mean embeddings, exact or as a mean over random coalitions."""
    factors = [_factors(part, X) for part in parts]
    amplitudes = np.array([part.amplitude for part in parts])
    # What is conditioned on is that of explanations: monomials do not measure how close rows are
    close = [(abs(part.amplitude), f) for part, f in zip(parts, factors, strict=True) if not part.is_monomial]
    shown = close or [(1.0, _factors(median_gaussian(X), X))]
    known = np.ascontiguousarray(sum(share / sum(amplitude for amplitude, _ in shown) * f for share, f in shown))
    eta = choose_eta(known) if isinstance(eta, str) and eta == "auto" else check_eta(eta, "ShapleyKernelRidge")

    def embedded(mask: np.ndarray) -> np.ndarray:
        """Return K^O_S[i, q]: the kernel section of X_i integrated over the missing columns given those of x_q."""
        if mask.all():
            return np.asarray(sum(s * f.prod(axis=0) for s, f in zip(amplitudes, factors, strict=True)))
        if not mask.any():
            mean = sum(s * f.prod(axis=0) @ shares for s, f in zip(amplitudes, factors, strict=True))
            return np.repeat(np.asarray(mean)[:, None], len(X), axis=1)
        across = subset_product(known, mask)
        weights = embedding_weights(across.copy(), across, eta, shares)
        total = np.zeros((len(X), len(X)))
        for s, f in zip(amplitudes, factors, strict=True):
            total += s * subset_product(f, mask) * (subset_product(f, ~mask) @ weights)
        return total

    if 2 ** (X.shape[1] - 1) <= n_coalitions:
        return _enumerated(embedded, X.shape, columns), None
    return _sampled(embedded, X.shape, columns, n_coalitions, random_state)


def _enumerated(embedded: Any, shape: tuple[int, int], columns: Sequence[int]) -> np.ndarray:
    n, d = shape
    p = find("shapley").weights(d)
    total = np.zeros((len(columns), n, n))
    for mask in all_masks(d):
        matrix, size = embedded(mask), int(mask.sum())
        for row, column in enumerate(columns):
            total[row] += (p[size - 1] if mask[column] else -p[size]) * matrix
    return total


def _sampled(
    embedded: Any, shape: tuple[int, int], columns: Sequence[int], n_coalitions: int, random_state: np.random.RandomState
) -> Functionals:
    """Average K^O_(S + A) - K^O_S over uniform subsets S of the other columns."""
    n, d = shape
    values = np.zeros((len(columns), n, n))
    variance = 0.0
    for row, column in enumerate(columns):
        others = np.delete(np.arange(d), column)
        squares = np.zeros((n, n))
        for _ in range(n_coalitions):
            mask = np.zeros(d, bool)
            mask[random_state.choice(others, random_state.randint(d), replace=False)] = True
            without = embedded(mask)
            mask[column] = True
            difference = embedded(mask) - without
            values[row] += difference / n_coalitions
            squares += difference**2 / n_coalitions
        variance += float((squares - values[row] ** 2).sum()) / max(1, n_coalitions - 1)
    norm = float((values**2).sum())
    return values, float(np.sqrt(variance / norm)) if norm > 0 else 0.0
