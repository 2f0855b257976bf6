r"""Estimate conditional means under a Gaussian copula with the background's margins, by drawing missing columns.

.. math:: v_x(S) = E[f(x_S, X_{\bar S}) \mid X_S = x_S], \qquad
          Z_{\bar S} \mid Z_S = z_S \sim N\bigl(R_{\bar S S} R_{SS}^{-1} z_S,\; R_{\bar S \bar S} - R_{\bar S S} R_{SS}^{-1} R_{S \bar S}\bigr)

with normal scores :math:`z_j = \Phi^{-1}(F_j(x_j))` and their correlations R (Aas, Jullum & Loland 2021, section 3.2). A drawn cell is
a cell of the background: :math:`F_j^{-1}` is not interpolated.
"""

from __future__ import annotations

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap.errors import InputError, InputTypeError, message
from exactshap.frames import Table
from exactshap.readers import Reader, columns_of

# Scramblings of the points; their spread is the standard error.
REPLICATES = 8
# Largest fraction of rows with one value in a continuous column.
LARGEST_TIE = 0.1
# Rows of one call of the model.
CALL_ROWS = 2**16
# Correlations of columns that determine each other are raised to it.
SMALLEST_EIGENVALUE = 1e-9


class GaussianCopula:
    """Fit a copula to a background; evaluate the model on draws, a power of two for each of 8 scramblings."""

    replicates = REPLICATES

    def __init__(self, reader: Reader, background: Table, weights: np.ndarray, n_samples: object, random_state: int) -> None:
        n_samples = check_count("n_samples", n_samples, REPLICATES)
        self.reader, self.background, self.weights = reader, background, weights
        self.power = int(np.ceil(np.log2(n_samples / REPLICATES)))
        self.random_state = random_state
        cells = self._cells(background)
        self.order = np.argsort(cells, axis=0, kind="stable")
        self.sorted = np.take_along_axis(cells, self.order, axis=0)
        self.cumulated = np.cumsum(weights[self.order], axis=0)
        self._refuse_ties()
        scores = self.scores(background)
        scores = scores - weights @ scores
        covariance = scores.T @ (weights[:, None] * scores)
        deviation = np.sqrt(np.diag(covariance))
        self.correlations = _raised(covariance / np.outer(deviation, deviation))

    def _cells(self, X: Table) -> np.ndarray:
        try:
            cells = X.numeric()
        except (InputError, InputTypeError) as error:
            do = "Pass value_function='observational' or 'observational-forest', which take text, or rows that are encoded"
            raise InputError("A Gaussian copula needs columns of numbers", f"{error}".partition(". ")[0], do) from error
        if np.isnan(cells).any():
            j = int(np.flatnonzero(np.isnan(cells).any(axis=0))[0])
            raise InputError(self._message(X.label(j), "has missing cells"))
        return cells

    def _refuse_ties(self) -> None:
        for j, column in enumerate(self.sorted.T):
            _, places = np.unique(column, return_inverse=True)
            share = np.bincount(places, self.weights[self.order[:, j]]).max()
            if share > max(LARGEST_TIE, 2.0 * self.weights.max()):
                label = self.background.label(j)
                raise InputError(self._message(label, f"holds one value in {share:.0%} of the background"))

    def _message(self, label: str, got: str) -> str:
        text = "value_function='observational-copula' needs continuous columns"
        do = "Pass 'observational' (kernel regressions) or 'observational-forest', which take columns of any kind"
        return message(text, f"{label[0].upper()}{label[1:]} {got}", do)

    def scores(self, X: Table) -> np.ndarray:
        """Return the normal scores (n_rows, n_columns) of rows. They come from ranks among the background's cells."""
        from scipy.special import ndtri

        cells, below = self._cells(X), np.concatenate([np.zeros((1, self.sorted.shape[1])), self.cumulated])
        ranks = np.empty_like(cells)
        for j, column in enumerate(cells.T):
            left, right = (np.searchsorted(self.sorted[:, j], column, side) for side in ("left", "right"))  # type: ignore[call-overload]
            ranks[:, j] = 0.5 * (below[left, j] + below[right, j])
        half = 0.5 * self.weights.min()
        return np.asarray(ndtri(np.clip(ranks, half, 1.0 - half)))

    def bound_to(self, X: Table) -> BoundCopula:
        return BoundCopula(self, X)

    def bytes(self, n_rows: int) -> float:
        """Return the memory of one coalition."""
        return 32.0 * (CALL_ROWS + REPLICATES * 2.0**self.power) * self.background.n_columns

    def conditional(self, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the regression (n_outside, n_inside) of missing on known scores, and a root of the covariance that is left."""
        R, outside = self.correlations, ~inside
        slopes = np.linalg.solve(R[np.ix_(inside, inside)], R[np.ix_(inside, outside)]).T
        covariance = R[np.ix_(outside, outside)] - slopes @ R[np.ix_(inside, outside)]
        return slopes, np.linalg.cholesky(_raised(covariance))


class BoundCopula:
    """``v(mask) -> (n_rows, n_outputs * REPLICATES)`` for proper coalitions of some rows; replicates are the last axis."""

    def __init__(self, copula: GaussianCopula, X: Table) -> None:
        from scipy.special import ndtri
        from scipy.stats import qmc

        self.copula, self.X, self.scores = copula, X, copula.scores(X)
        d = X.n_columns
        seeds = np.random.SeedSequence(copula.random_state).generate_state(REPLICATES)
        points = [qmc.Sobol(d, seed=int(seed)).random_base2(copula.power) for seed in seeds]
        self.normal = ndtri(np.clip(np.concatenate(points), 2.0**-40, 1.0 - 2.0**-40))  # (n_draws, d)

    def __call__(self, mask: np.ndarray) -> np.ndarray:
        inside = columns_of(self.copula.reader, mask[None])[0]
        if inside.all():
            return np.repeat(self._outputs(self.copula.reader.predict(self.X)), REPLICATES, axis=1)
        slopes, root = self.copula.conditional(inside)
        noise, centres = self.normal[:, : len(root)] @ root.T, self.scores[:, inside] @ slopes.T
        step = max(1, CALL_ROWS // len(noise))
        parts = [self._some(slice(i, i + step), inside, centres[i : i + step], noise) for i in range(0, self.X.n_rows, step)]
        return np.concatenate(parts) if parts else np.empty((0, 1))

    def _some(self, rows: slice, inside: np.ndarray, centres: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return v(S) of some rows, from one call of the model."""
        from scipy.special import ndtr

        copula, X = self.copula, self.X.take(rows)
        shares = ndtr(centres[:, None, :] + noise).reshape(X.n_rows * len(noise), -1)
        cells = np.zeros((len(shares), X.n_columns), int)
        for place, j in enumerate(np.flatnonzero(~inside)):
            cells[:, j] = copula.order[np.searchsorted(copula.cumulated[:-1, j], shares[:, place], "right"), j]
        drawn = X.repeat(len(noise)).hybrid(copula.background, inside, cells)
        predicted = self._outputs(copula.reader.predict(drawn)).reshape(
            X.n_rows, REPLICATES, -1, copula.reader.traits.n_outputs
        )
        return np.moveaxis(predicted.mean(axis=2), 1, 2).reshape(X.n_rows, -1)

    def _outputs(self, predicted: np.ndarray) -> np.ndarray:
        return np.asarray(predicted, float).reshape(len(predicted), -1)

    def describe(self) -> str:
        copula = self.copula
        n, draws = len(copula.weights), len(self.normal)
        return (
            f"conditional means under a Gaussian copula of {n} background rows, {draws} draws a coalition (unbiased for the "
            "estimated conditional distribution; its own error is not in the standard errors)"
        )


def _raised(matrix: np.ndarray) -> np.ndarray:
    """Return a covariance with eigenvalues of at least 1e-9."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    if len(matrix) == 0 or eigenvalues[0] >= SMALLEST_EIGENVALUE:
        return matrix
    return np.asarray((vectors * np.maximum(eigenvalues, SMALLEST_EIGENVALUE)) @ vectors.T)
