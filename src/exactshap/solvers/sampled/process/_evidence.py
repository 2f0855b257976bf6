"""Compute covariances of a process over coalitions, and the evidence of rows for its hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.linear_algebra import factorise_lower, invert_triangle, multiply_by_lower, solve_factored, square_lower

# src/native/sampled/relevance.cpp
fill_covariance = kernel("sampled.fill_covariance(scale, mirrored_scale, constant, diagonal, exponential, difference)")
fill_sums = kernel("sampled.fill_sums(scale, mirrored_scale, constant, exponential)")
fill_weighted = kernel("sampled.fill_weighted(inverse, dual, scaled, difference)")
fill_singles = kernel("sampled.fill_singles(points, rho, nodes, weights, sign, out)")
correct_curvature = kernel("sampled.correct_curvature(curvature, steps, turns, convex)")

# Jitter on the diagonal, relative to the kernel's variance of 1: far below any useful white part
JITTER = 1e-10
# Rows of a covariance that are computed at once
BLOCK_ROWS = 256
# Sum of theta up to which k(x, -x') = exp(-sum of theta) / k(x, x') neither over- nor underflows
LONGEST_SPREAD = 600.0
# weak priors, which matter for few rows: log theta around its mean, that mean around log(1 / (2 d)), log tau
SPREAD, LEVEL_SPREAD, WHITE_SPREAD, TYPICAL_WHITE = 1.0, 1.0, 3.0, 3e-3
# Most outputs in the curvature, of which an approximation is enough
COUNTED_OUTPUTS = 8
# The value where the covariance cannot be factorised
IMPOSSIBLE = 1e25

Slopes = Callable[[], tuple[np.ndarray, np.ndarray]]  # gradient and curvature, computed on demand


def covariance(points: np.ndarray, others: np.ndarray, theta: np.ndarray, sign: int) -> np.ndarray:
    """Return (k(x, x') + sign k(x, -x')) / 2 for rows of -1 and 1, or k itself; all but the odd half get a free constant."""
    spread, share, constant = theta.sum(), 0.5 if sign else 1.0, float(sign >= 0)
    matrix = np.asarray((points * (0.5 * theta)) @ others.T)
    if spread < LONGEST_SPREAD:
        # k(x, -x') = exp(-spread) / k(x, x'): one exponential per entry is enough
        scale = share * np.exp(-0.5 * spread)
        fill_sums(scale, sign * scale, constant, np.exp(matrix, out=matrix))
        return matrix
    same, mirrored = _of_long_spread(matrix, spread, share, sign)
    return np.asarray(same + mirrored + constant)


def covariance_and_slopes(
    points: np.ndarray, theta: np.ndarray, sign: int, white: float, work: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return K = K_s + K_m + the free constant + the white part, and K_s - K_m, in ``work`` (2, n, n).

    K_s = k(x, x') and K_m = sign k(x, -x'), halved where both count.
    """
    matrix, difference = work
    spread, share, constant, diagonal = theta.sum(), 0.5 if sign else 1.0, float(sign >= 0), white + JITTER
    np.matmul(points * (0.5 * theta), points.T, out=matrix)
    if spread < LONGEST_SPREAD:
        scale = share * np.exp(-0.5 * spread)
        fill_covariance(scale, sign * scale, constant, diagonal, np.exp(matrix, out=matrix), difference)
    else:
        same, mirrored = _of_long_spread(matrix, spread, share, sign)
        difference[:] = same - mirrored
        matrix[:] = same + mirrored + constant + diagonal * np.eye(len(points))
    return matrix, difference


def _of_long_spread(matrix: np.ndarray, spread: float, share: float, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Return K_s and K_m, by an exponential each, where one over the other is no float."""
    return share * np.exp(matrix - 0.5 * spread), sign * share * np.exp(-matrix - 0.5 * spread)


def _half_of_covariance(points: np.ndarray, theta: np.ndarray, sign: int, white: float) -> np.ndarray:
    """Return K (n, n) on and above its diagonal, in blocks of rows that fit the cache; the rest is not set."""
    matrix = np.empty((len(points), len(points)))
    for start in range(0, len(points), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        matrix[rows, start:] = covariance(points[rows], points[start:], theta, sign)
    np.fill_diagonal(matrix, matrix.diagonal() + (white + JITTER))
    return matrix


def factorise(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Replace K = L L^T by its lower Cholesky factor, return it and whether that failed; entries above are arbitrary."""
    factor = matrix.T  # in LAPACK's order
    return factor, factorise_lower(factor)


@dataclass(frozen=True, eq=False)
class Half:
    """Hold one half of the game: ``sign`` -1 is (v(S) - v(D - S)) / 2, +1 the same with a plus, 0 the game at single coalitions."""

    sign: int
    target: np.ndarray  # (n_pairs, n_outputs), scaled
    scale: np.ndarray  # (n_outputs,)
    offset: np.ndarray  # (n_outputs,), subtracted from the even half

    @classmethod
    def of(cls, inside: np.ndarray, outside: np.ndarray | None, sign: int) -> Half:
        target = inside if outside is None else (inside + sign * outside) / 2.0
        offset = target.mean(axis=0) if sign >= 0 else np.zeros(target.shape[1])
        target = target - offset
        scale = np.sqrt(np.mean(target**2, axis=0))
        scale = np.where(scale > 0, scale, 1.0)
        return cls(sign, target / scale, scale, offset)

    def rows(self, chosen: np.ndarray) -> Half:
        return replace(self, target=self.target[chosen])


@dataclass(frozen=True, eq=False)
class FittedHalf:
    """Condition a half on its values at some rows."""

    half: Half
    factor: np.ndarray  # lower Cholesky factor (n_pairs, n_pairs); what stands above its diagonal means nothing
    dual: np.ndarray  # (n_pairs, n_outputs), scaled
    variance: np.ndarray  # (n_outputs,), of the scaled target

    @classmethod
    def at(cls, points: np.ndarray, half: Half, theta: np.ndarray, white: float) -> FittedHalf:
        """Return the half given its values at all ``points``; raise where their covariance is not positive definite."""
        factor, failed = factorise(_half_of_covariance(points, theta, half.sign, white))
        if failed:
            raise np.linalg.LinAlgError("The covariance of the sampled coalitions is not positive definite")
        dual = np.ascontiguousarray(solve_factored(factor, half.target.copy(order="F")))
        return cls(half, factor, dual, (half.target * dual).sum(axis=0) / len(points))

    def precisions(self, n_last: int) -> np.ndarray:
        """Return (K^-1)_ii of the last rows: as K = L L^T, the last block of K^-1 is V^-T V^-1, V the last block of L."""
        inverse = invert_triangle(self.factor[-n_last:, -n_last:], np.zeros((n_last, n_last), order="F"))
        return np.asarray((inverse**2).sum(axis=0))


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""Compute one half's negative log marginal likelihood of log theta and log tau, with scales profiled out.

    .. math:: \tfrac12 \sum_k \bigl(m \log \hat\sigma_k^2 + \log |K|\bigr), \qquad \hat\sigma_k^2 = y_k^\top K^{-1} y_k / m
    """

    points: np.ndarray  # (m, d), column by column
    half: Half
    work: np.ndarray  # (3, m, m): K and then its factor, K_s - K_m, room for an inverse
    theta: np.ndarray
    white: float
    factor: np.ndarray  # lower Cholesky factor of K
    dual: np.ndarray  # alpha = K^-1 y, (m, n_outputs)
    variance: np.ndarray  # (n_outputs,)

    @classmethod
    def at(cls, points: np.ndarray, half: Half, work: np.ndarray, theta: np.ndarray, white: float) -> Evidence | None:
        """Return the evidence, or None where the covariance is not positive definite."""
        factor, failed = factorise(covariance_and_slopes(points, theta, half.sign, white, work[:2])[0])
        if failed:
            return None
        dual = np.ascontiguousarray(solve_factored(factor, half.target.copy(order="F")))
        variance = np.maximum((half.target * dual).sum(axis=0) / len(points), 1e-300)
        return cls(points, half, work, theta, white, factor, dual, variance)

    def value(self) -> float:
        log_determinant = 2.0 * np.log(self.factor.diagonal()).sum()
        return float(0.5 * (len(self.points) * np.log(self.variance).sum() + len(self.variance) * log_determinant))

    def take_slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient (d + 1,) and curvature (d + 1, d + 1), overwriting the work space."""
        inverse_factor = invert_triangle(self.factor, self.work[2].T)
        curvature = self._curvature(inverse_factor)
        return self._take_gradient(inverse_factor), curvature

    def _curvature(self, inverse_factor: np.ndarray) -> np.ndarray:
        r"""Return the mean of observed and expected curvature, in which all traces cancel but for those of second derivatives, left out.

        .. math:: \sum_k \frac{1}{2 \hat\sigma_k^2} \Bigl(V_k^\top K^{-1} V_k -
                  \frac{V_k^\top \alpha_k \alpha_k^\top V_k}{m \hat\sigma_k^2}\Bigr), \qquad V_k = (\partial_i K\, \alpha_k)_i

        "Average information" (Gilmour, Thompson & Cullis 1995, Biometrics 51, 1440-1450), minus the part of the profiled scale: never
        negative, at the cost of two products with d columns.
        """
        m, n_outputs = self.dual.shape
        counted = range(0, n_outputs, -(-n_outputs // COUNTED_OUTPUTS))
        total = np.zeros((len(self.theta) + 1, len(self.theta) + 1))
        for k in counted:
            columns = self._moved(k)
            slope = self.dual[:, k] @ columns
            root = multiply_by_lower(inverse_factor, columns)
            total += (root.T @ root - np.outer(slope, slope) / (m * self.variance[k])) * (0.5 / self.variance[k])
        return total * (n_outputs / len(counted))

    def _moved(self, k: int) -> np.ndarray:
        r"""Return :math:`\partial_i K\, \alpha_k` for log theta and, last, for log tau: (m, d + 1).

        .. math:: \partial K / \partial \log\theta_j = \tfrac12 \theta_j \bigl(x_j x_j^\top \circ (K_s - K_m) - (K_s + K_m)\bigr)
        """
        alpha = self.dual[:, k]
        plain = self.half.target[:, k] - (self.white + JITTER) * alpha  # (K_s + K_m) alpha, as K alpha = y
        if self.half.sign >= 0:
            plain -= alpha.sum()
        columns = self.points.T
        moved = np.empty((len(self.theta) + 1, len(alpha)))
        moved[:-1] = 0.5 * self.theta[:, None] * (columns * ((columns * alpha) @ self.work[1]) - plain)
        moved[-1] = self.white * alpha
        return moved.T

    def _take_gradient(self, inverse_factor: np.ndarray) -> np.ndarray:
        r"""Return tr(D dK) for every log, with D the derivative in the covariance; both inverses are overwritten.

        .. math:: D = \tfrac12 \Bigl(n\, K^{-1} - \sum_k \alpha_k \alpha_k^\top / \hat\sigma_k^2\Bigr) \quad (n\ \text{outputs}), \qquad
                  \mathrm{tr}\, D K = \tfrac12 \Bigl(n m - \sum_k y_k^\top \alpha_k / \hat\sigma_k^2\Bigr)
        """
        m, n_outputs = self.dual.shape
        scaled = self.dual / self.variance
        whole = self._of_ones(inverse_factor, scaled) if self.half.sign >= 0 else 0.0
        square_lower(inverse_factor)
        inverse = inverse_factor.T
        trace = 0.5 * (n_outputs * inverse.trace() - (scaled * self.dual).sum())
        total = (
            0.5 * (n_outputs * m - (scaled * self.half.target).sum()) - (self.white + JITTER) * trace - whole
        )  # D, K_s + K_m
        fill_weighted(inverse, self.dual, scaled, self.work[1])
        weighted = multiply_by_lower(self.work[1].T, self.points.copy(order="F"), transposed=True)
        sums = (self.points * weighted).sum(axis=0)
        return np.append(0.5 * self.theta * (sums - total), trace * self.white)

    def _of_ones(self, inverse_factor: np.ndarray, scaled: np.ndarray) -> float:
        """Return the sum of all entries of D, which the free constant of an even half adds to tr D K."""
        ones = multiply_by_lower(inverse_factor, np.ones((len(inverse_factor), 1)))  # L^-1 1
        return 0.5 * float(self.dual.shape[1] * (ones**2).sum() - (self.dual.sum(axis=0) * scaled.sum(axis=0)).sum())


@dataclass(frozen=True, eq=False)
class Posterior:
    """Compute the negative log posterior of log theta (d,) and log tau, given the halves' values at ``points`` (m, d)."""

    points: np.ndarray
    halves: list[Half]
    typical: np.ndarray = field(init=False)
    precision: np.ndarray = field(init=False)  # of the prior (d + 1, d + 1)
    work: np.ndarray = field(init=False)  # (n_halves, 3, m, m) for all evaluations: fresh memory doubles the time of small ones

    def __post_init__(self) -> None:
        m, d = self.points.shape
        # x^T P x = sum_j (x_j - mean)^2 / SPREAD^2 + mean^2 / LEVEL_SPREAD^2, with x_j the distances from the typical log theta
        precision = np.full((d + 1, d + 1), 1.0 / (d * LEVEL_SPREAD) ** 2 - 1.0 / (d * SPREAD**2))
        precision[-1] = precision[:, -1] = 0.0
        np.fill_diagonal(precision, precision.diagonal() + np.append(np.full(d, SPREAD**-2.0), WHITE_SPREAD**-2.0))
        object.__setattr__(self, "typical", np.log(np.append(np.full(d, 0.5 / d), TYPICAL_WHITE)))
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "points", np.asfortranarray(self.points))
        object.__setattr__(self, "work", np.zeros((len(self.halves), 3, m, m)))

    @classmethod
    def of(cls, points: np.ndarray, halves: list[Half], rows: np.ndarray) -> Posterior:
        """Return the posterior given some rows (n_rows,)."""
        return cls(points[rows], [half.rows(rows) for half in halves])

    def __call__(self, logs: np.ndarray) -> tuple[float, Slopes]:
        """Return its value, and a function for its gradient (d + 1,) and approximate curvature (d + 1, d + 1)."""
        value, slopes = self.evidence(logs)
        pull = self.precision @ (logs - self.typical)

        def more_slopes() -> tuple[np.ndarray, np.ndarray]:
            gradient, curvature = slopes()
            return gradient + pull, curvature + self.precision

        return value + 0.5 * float(pull @ (logs - self.typical)), more_slopes

    def evidence(self, logs: np.ndarray) -> tuple[float, Slopes]:
        """Return the evidence without the prior; take its slopes before the next evaluation, which reuses the memory."""
        theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
        evidences = [Evidence.at(self.points, *each, theta, white) for each in zip(self.halves, self.work, strict=True)]
        halves = [evidence for evidence in evidences if evidence is not None]
        # An unacceptable value, so that the search tries a shorter step
        if len(halves) < len(evidences):
            return IMPOSSIBLE, lambda: (np.zeros(len(logs)), np.zeros((len(logs), len(logs))))

        def slopes() -> tuple[np.ndarray, np.ndarray]:
            gradients, curvatures = zip(*[half.take_slopes() for half in halves], strict=True)
            return np.add.reduce(gradients), np.add.reduce(curvatures)

        return sum(half.value() for half in halves), slopes
