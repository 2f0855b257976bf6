"""Hold the halves of a game, and covariances of a process over coalitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from exactshap._runtime.linear_algebra import inverse_of, solve_definite
from exactshap._runtime.slices import slices

# Jitter on the diagonal, relative to the kernel's variance of 1: far below any useful white part
JITTER = 1e-10
# Rows of a covariance that are computed at once
BLOCK_ROWS = 256


def covariance(points: np.ndarray, others: np.ndarray, theta: np.ndarray, sign: int) -> np.ndarray:
    """Return covariances (n_points, n_others) of one half, without the white part. Rows are of -1 and 1."""
    return of_half(*kernel_parts(points, others, theta, paired=sign != 0), sign)


def kernel_parts(
    points: np.ndarray, others: np.ndarray, theta: np.ndarray, *, paired: bool
) -> tuple[np.ndarray, np.ndarray | float]:
    """Return k(x, x') / 2 and k(x, -x') / 2 for pairs; k(x, x') and 0 for single coalitions."""
    inner, spread = (points * (0.5 * theta)) @ others.T, 0.5 * theta.sum()
    if not paired:
        return np.exp(inner - spread), 0.0
    spread += np.log(2.0)
    return np.exp(inner - spread), np.exp(-spread - inner)


def of_half(same: np.ndarray, mirrored: np.ndarray | float, sign: int) -> np.ndarray:
    """Return (k(x, x') + sign k(x, -x')) / 2, or k(x, x') itself; all but the odd half get a free constant."""
    return np.asarray(same + sign * mirrored + float(sign >= 0))


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
        solved = solve_definite(matrix, half.target, ridge=white + JITTER)
        if solved is None:
            raise np.linalg.LinAlgError("The covariance of the sampled coalitions is not positive definite")
        factor, dual = solved
        return cls(half, factor, dual, (half.target * dual).sum(axis=0) / len(points))

    def precisions(self, n_last: int) -> np.ndarray:
        """Return (K^-1)_ii of the last rows: as K = L L^T, the last block of K^-1 is (V V^T)^-1, V the last block of L."""
        return inverse_of(self.factor[-n_last:, -n_last:]).diagonal()
