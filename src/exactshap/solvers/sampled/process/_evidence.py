"""Compute covariances of a process over coalitions, and the evidence of rows for its hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from exactshap._runtime.linear_algebra import factorise_lower, inverse_of, solve_factored
from exactshap._runtime.slices import slices

# Jitter on the diagonal, relative to the kernel's variance of 1: far below any useful white part
JITTER = 1e-10
# Rows of a covariance that are computed at once
BLOCK_ROWS = 256
# weak priors, which matter for few rows: log theta around its mean, that mean around log(1 / (2 d)), log tau
SPREAD, LEVEL_SPREAD, WHITE_SPREAD, TYPICAL_WHITE = 1.0, 1.0, 3.0, 3e-3
# Most outputs in the curvature, of which an approximation is enough
COUNTED_OUTPUTS = 8
# The value where the covariance cannot be factorised
IMPOSSIBLE = 1e25

Slopes = Callable[[], tuple[np.ndarray, np.ndarray]]  # gradient and curvature, computed on demand


def covariance(points: np.ndarray, others: np.ndarray, theta: np.ndarray, sign: int) -> np.ndarray:
    """Return (k(x, x') + sign k(x, -x')) / 2 for rows of -1 and 1, or k itself; all but the odd half get a free constant."""
    same, mirrored = _parts(points, others, theta, sign)
    return np.asarray(same + mirrored + float(sign >= 0))


def _parts(points: np.ndarray, others: np.ndarray, theta: np.ndarray, sign: int) -> tuple[np.ndarray, np.ndarray | float]:
    """Return K_s = k(x, x') and K_m = sign k(x, -x'), halved where both count."""
    inner, spread = (points * (0.5 * theta)) @ others.T, 0.5 * theta.sum()
    if sign == 0:
        return np.exp(inner - spread), 0.0
    spread += np.log(2.0)
    return np.exp(inner - spread), sign * np.exp(-spread - inner)


def _solved(matrix: np.ndarray, white: float, target: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return L, K = L L^T, and K^-1 y; None if K is not positive definite. K is ``matrix``, overwritten, and the white part."""
    matrix.flat[:: len(matrix) + 1] += white + JITTER
    factor = matrix.T  # in LAPACK's order; only the triangle on and above the matrix' diagonal is read
    if factorise_lower(factor):
        return None
    return factor, np.ascontiguousarray(solve_factored(factor, target.copy(order="F")))


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
        matrix = np.empty((len(points), len(points)))
        for rows in slices(len(points), BLOCK_ROWS):
            matrix[rows, rows.start :] = covariance(points[rows], points[rows.start :], theta, half.sign)
        solved = _solved(matrix, white, half.target)
        if solved is None:
            raise np.linalg.LinAlgError("The covariance of the sampled coalitions is not positive definite")
        factor, dual = solved
        return cls(half, factor, dual, (half.target * dual).sum(axis=0) / len(points))

    def precisions(self, n_last: int) -> np.ndarray:
        """Return (K^-1)_ii of the last rows: as K = L L^T, the last block of K^-1 is (V V^T)^-1, V the last block of L."""
        return inverse_of(self.factor[-n_last:, -n_last:]).diagonal()


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""Compute one half's negative log marginal likelihood of log theta and log tau, with scales profiled out.

    .. math:: \tfrac12 \sum_k \bigl(m \log \hat\sigma_k^2 + \log |K|\bigr), \qquad \hat\sigma_k^2 = y_k^\top K^{-1} y_k / m
    """

    points: np.ndarray  # (m, d)
    half: Half
    theta: np.ndarray
    white: float
    difference: np.ndarray  # K_s - K_m, (m, m)
    factor: np.ndarray  # lower Cholesky factor of K = K_s + K_m + the free constant + the white part
    dual: np.ndarray  # alpha = K^-1 y, (m, n_outputs)
    variance: np.ndarray  # (n_outputs,)

    @classmethod
    def at(cls, points: np.ndarray, half: Half, theta: np.ndarray, white: float) -> Evidence | None:
        """Return the evidence, or None where the covariance is not positive definite."""
        same, mirrored = _parts(points, points, theta, half.sign)
        solved = _solved(same + mirrored + float(half.sign >= 0), white, half.target)
        if solved is None:
            return None
        factor, dual = solved
        variance = np.maximum((half.target * dual).sum(axis=0) / len(points), 1e-300)
        return cls(points, half, theta, white, same - mirrored, factor, dual, variance)

    def value(self) -> float:
        log_determinant = 2.0 * np.log(self.factor.diagonal()).sum()
        return float(0.5 * (len(self.points) * np.log(self.variance).sum() + len(self.variance) * log_determinant))

    def slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient (d + 1,) and curvature (d + 1, d + 1)."""
        inverse = inverse_of(self.factor)
        return self._gradient(inverse), self._curvature(inverse)

    def _gradient(self, inverse: np.ndarray) -> np.ndarray:
        r"""Return tr(D dK) for every log, with D the derivative in the covariance.

        .. math:: D = \tfrac12 \Bigl(n\, K^{-1} - \sum_k \alpha_k \alpha_k^\top / \hat\sigma_k^2\Bigr) \quad (n\ \text{outputs}), \qquad
                  \mathrm{tr}\, D K = \tfrac12 \Bigl(n m - \sum_k y_k^\top \alpha_k / \hat\sigma_k^2\Bigr)
        """
        m, n_outputs = self.dual.shape
        scaled = self.dual / self.variance
        D = 0.5 * (n_outputs * inverse - scaled @ self.dual.T)
        trace = D.trace()
        # tr D (K_s + K_m)
        total = 0.5 * (n_outputs * m - (scaled * self.half.target).sum()) - (self.white + JITTER) * trace
        if self.half.sign >= 0:
            total -= D.sum()
        sums = (self.points * ((D * self.difference) @ self.points)).sum(axis=0)
        return np.append(0.5 * self.theta * (sums - total), trace * self.white)

    def _curvature(self, inverse: np.ndarray) -> np.ndarray:
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
            total += (columns.T @ inverse @ columns - np.outer(slope, slope) / (m * self.variance[k])) * (
                0.5 / self.variance[k]
            )
        return total * (n_outputs / len(counted))

    def _moved(self, k: int) -> np.ndarray:
        r"""Return :math:`\partial_i K\, \alpha_k` for log theta and, last, for log tau: (m, d + 1).

        .. math:: \partial K / \partial \log\theta_j = \tfrac12 \theta_j \bigl(x_j x_j^\top \circ (K_s - K_m) - (K_s + K_m)\bigr)
        """
        alpha = self.dual[:, k]
        plain = self.half.target[:, k] - (self.white + JITTER) * alpha  # (K_s + K_m) alpha, as K alpha = y
        if self.half.sign >= 0:
            plain -= alpha.sum()
        moved = 0.5 * self.theta * (self.points * (self.difference @ (self.points * alpha[:, None])) - plain[:, None])
        return np.column_stack([moved, self.white * alpha])


def typical_logs(n_players: int) -> np.ndarray:
    """Return the prior's mean of log theta and log tau, (n_players + 1,)."""
    return np.log(np.append(np.full(n_players, 0.5 / n_players), TYPICAL_WHITE))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Compute the negative log posterior of log theta (d,) and log tau, given the halves' values at ``points`` (m, d)."""

    points: np.ndarray
    halves: list[Half]
    typical: np.ndarray  # the prior's mean (d + 1,)
    precision: np.ndarray  # of the prior (d + 1, d + 1)

    @classmethod
    def of(cls, points: np.ndarray, halves: list[Half]) -> Posterior:
        """Return the posterior under the prior of so many players."""
        d = points.shape[1]
        # x^T P x = sum_j (x_j - mean)^2 / SPREAD^2 + mean^2 / LEVEL_SPREAD^2, with x_j the distances from the typical log theta
        precision = np.full((d + 1, d + 1), 1.0 / (d * LEVEL_SPREAD) ** 2 - 1.0 / (d * SPREAD**2))
        precision[-1] = precision[:, -1] = 0.0
        np.fill_diagonal(precision, precision.diagonal() + np.append(np.full(d, SPREAD**-2.0), WHITE_SPREAD**-2.0))
        return cls(points, halves, typical_logs(d), precision)

    def __call__(self, logs: np.ndarray) -> tuple[float, Slopes]:
        """Return its value, and a function for its gradient (d + 1,) and approximate curvature (d + 1, d + 1)."""
        theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
        halves = [Evidence.at(self.points, half, theta, white) for half in self.halves]
        pull = self.precision @ (logs - self.typical)
        known = [half for half in halves if half is not None]
        if len(known) < len(halves):  # a value that is not acceptable, so that the search tries a shorter step
            return IMPOSSIBLE, lambda: (pull, self.precision)

        def slopes() -> tuple[np.ndarray, np.ndarray]:
            gradients, curvatures = zip(*[half.slopes() for half in known], strict=True)
            return np.add.reduce(gradients) + pull, np.add.reduce(curvatures) + self.precision

        return sum(half.value() for half in known) + 0.5 * float(pull @ (logs - self.typical)), slopes
