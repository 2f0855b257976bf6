"""Find the relevances of players, the most probable hyperparameters of a process over coalitions.

Newton steps maximise the evidence of the calls and a weak prior; their curvature takes two products with d columns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from exactshap._runtime.linear_algebra import inverse_of, solve_definite
from exactshap.solvers.sampled.process._halves import JITTER, Half, kernel_parts, of_half

# weak priors, which matter for few rows: log theta around its mean, that mean around log(1 / (2 d)), log tau
SPREAD, LEVEL_SPREAD, WHITE_SPREAD, TYPICAL_WHITE = 1.0, 1.0, 3.0, 3e-3
# Most outputs in the curvature, of which an approximation is enough
COUNTED_OUTPUTS = 8
# The value where the covariance cannot be factorised
IMPOSSIBLE = 1e25

# Bounds of log theta: from invisible to rho = 1 - 4e-9
RELEVANCE = (-12.0, 3.0)
# Bounds of log tau
WHITE = (-18.0, 2.0)
# Rows of the first, coarse search
COARSE_ROWS = 80
# Rows of each search over those of the one before
GROWTH = 1.7
# Nats of the posterior that a step must promise to be evaluated: in one of several searches, and in the only one, of few rows
ENOUGH, ENOUGH_ALONE = 4.0, 0.5
# tau at the start of searches that are given one relevance for all players
LEVEL_WHITE = 1.5e-3
# Longest step in any coordinate
LONGEST = 2.0
# Fraction of its slope that a step must gain (Armijo)
SUFFICIENT = 1e-4
# Trials of a step, each shorter than the one before
MAX_TRIALS = 12
# Newton steps of a search, on few rows and on more than so many: further steps there follow what games that jump show by chance (values of
# 82 cells of 14 players and more have 0.97 +- 0.02 of the squared errors of 25 steps, and cover more)
MAX_STEPS, LARGE, MAX_STEPS_IF_LARGE = 25, 400, 5
# Least fraction of the assumed curvature along a step (Powell)
CONVEX = 0.2

Slopes = Callable[[], tuple[np.ndarray, np.ndarray]]  # gradient and curvature, computed on demand
Function = Callable[[np.ndarray], tuple[float, Slopes]]


def find_relevances(points: np.ndarray, halves: list[Half], start: np.ndarray | None = None) -> np.ndarray:
    """Return log theta (d,) and log tau, the posterior's maximum, or near it if there are many rows.

    From coarse to fine: few rows start from equal relevances, more rows from those that some of them give, which makes the search on all
    rows short. ``start`` is the result of fewer rows, from which all rows continue.
    """
    bounds = np.array([RELEVANCE] * points.shape[1] + [WHITE]).T
    sizes = _sizes(len(points)) if start is None else [len(points)]
    enough = ENOUGH_ALONE if start is None and len(sizes) == 1 else ENOUGH
    here = typical_logs(points.shape[1]) if start is None else start
    for size in sizes:
        rows = evenly_spaced(len(points), size)  # the full coalition is always among them
        posterior = Posterior.of(points[rows], [half.rows(rows) for half in halves])
        most = MAX_STEPS_IF_LARGE if size > LARGE else MAX_STEPS
        here = search(posterior, here, bounds, most, enough)
    return here


def level_start(n_players: int, total: float) -> np.ndarray:
    """Return the start of a search for a given sum of relevances: the same theta for all players."""
    return np.log(np.append(np.full(n_players, total / n_players), LEVEL_WHITE))


def _sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows of finer and finer searches."""
    sizes = [n_rows]
    while sizes[0] > 1.5 * COARSE_ROWS:
        sizes.insert(0, max(COARSE_ROWS, round(sizes[0] / GROWTH)))
    return sizes


def evenly_spaced(n_rows: int, wanted: int) -> np.ndarray:
    """Return at most ``wanted`` of the rows 0..n_rows - 1, the first and the last among them."""
    n = min(n_rows, wanted)
    return np.rint(np.arange(n) * ((n_rows - 1) / max(n - 1, 1))).astype(int)


def search(function: Function, start: np.ndarray, bounds: np.ndarray, max_steps: int, enough: float) -> np.ndarray:
    """Minimise ``function(x) -> (value, slopes)`` within ``bounds`` (2, n); return the point (n,).

    ``slopes() -> (gradient, curvature)``, (n,) and (n, n), is called at accepted points only, before the next is tried. Newton steps
    with backtracking; the curvature is corrected by all steps so far. A step that promises to gain less than ``enough`` is the
    last one and is not evaluated. Coordinates at a bound that the gradient pushes against rest.
    """
    point = _within(start, bounds)
    value, slopes = function(point)
    gradient, curvature = slopes()
    steps, turns = np.empty((2, max_steps, len(point)))
    for n_steps in range(max_steps):
        free = ~((point <= bounds[0]) & (gradient > 0) | (point >= bounds[1]) & (gradient < 0))
        direction = _newton_step(corrected_curvature(curvature, steps[:n_steps], turns[:n_steps]), gradient, free)
        # A Newton step gains half of its slope in the quadratic model
        if -0.5 * (direction @ gradient) < enough:
            return _within(point + direction, bounds)
        accepted = _walk(function, point, value, gradient, direction, bounds)
        if accepted is None:
            return point
        new_point, value, slopes = accepted
        new_gradient, curvature = slopes()
        steps[n_steps], turns[n_steps] = new_point - point, new_gradient - gradient
        point, gradient = new_point, new_gradient
    return point


def corrected_curvature(curvature: np.ndarray, steps: np.ndarray, turns: np.ndarray) -> np.ndarray:
    r"""Return the curvature B (n, n) corrected by each step s and turn y of the gradient on it, both (n_steps, n).

    Damped BFGS (Nocedal & Wright 2006, 18.2) with the largest t in [0, 1] that leaves :math:`s^\top r \ge c\, s^\top B s`: B stays positive
    definite.

    .. math:: B \leftarrow B - \frac{B s s^\top B}{s^\top B s} + \frac{r r^\top}{s^\top r}, \qquad r = t y + (1 - t) B s
    """
    for step, turn in zip(steps, turns, strict=True):
        old = curvature @ step
        supposed, seen = step @ old, step @ turn
        t = 1.0 if seen >= CONVEX * supposed else (1.0 - CONVEX) * supposed / (supposed - seen)
        mixed = t * turn + (1.0 - t) * old
        curvature = curvature - np.outer(old, old) / supposed + np.outer(mixed, mixed) / (step @ mixed)
    return curvature


def _within(point: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(point, bounds[0]), bounds[1])


def _newton_step(curvature: np.ndarray, gradient: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return the Newton step of the free coordinates, shortened if it is too long for any of them."""
    from scipy.linalg import lapack

    if not free.all():
        # Fixed coordinates have no slope, and no curvature in common with free ones
        curvature = np.where(free[:, None] & free, curvature, np.diag(curvature.diagonal()))
        gradient = np.where(free, gradient, 0.0)
    _, step, failed = lapack.dposv(curvature, gradient)
    if failed:  # rounding has made it indefinite
        step = gradient / curvature.diagonal()
    return step * -min(1.0, LONGEST / max(np.abs(step).max(), 1e-300))


def _walk(
    function: Function, point: np.ndarray, value: float, gradient: np.ndarray, direction: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, float, Slopes] | None:
    """Return the first of ever shorter steps that gains enough, with its value and slopes, or None."""
    length = 1.0
    for _ in range(MAX_TRIALS):
        new_point = _within(point + length * direction, bounds)
        slope = float(gradient @ (new_point - point))
        if not slope < 0.0:  # bounds turned the step uphill
            return None
        new_value, slopes = function(new_point)
        if new_value <= value + SUFFICIENT * slope:
            return new_point, new_value, slopes
        # The minimum of the parabola through the value, its slope and the new value, kept between a tenth and a half
        length *= min(max(-slope / (2.0 * (new_value - value - slope)), 0.1), 0.5)
    return None


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

    @classmethod
    def of_halves(cls, points: np.ndarray, halves: Sequence[Half], theta: np.ndarray, white: float) -> list[Evidence] | None:
        """Return each half's evidence; None where a covariance is not positive definite."""
        same, mirrored = kernel_parts(points, points, theta, paired=halves[0].sign != 0)
        found = []
        for half in halves:
            solved = solve_definite(of_half(same, mirrored, half.sign), half.target, ridge=white + JITTER)
            if solved is None:
                return None
            found.append(cls(points, half, theta, white, same - half.sign * mirrored, *solved))
        return found

    @functools.cached_property
    def variance(self) -> np.ndarray:
        """Return the profiled scales (n_outputs,)."""
        return np.maximum((self.half.target * self.dual).sum(axis=0) / len(self.points), 1e-300)

    def value(self) -> float:
        log_determinant = 2.0 * np.log(self.factor.diagonal()).sum()
        return float(0.5 * (len(self.points) * np.log(self.variance).sum() + len(self.variance) * log_determinant))

    def slopes(self, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient (d + 1,) and curvature (d + 1, d + 1), given K^-1."""
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
        halves = Evidence.of_halves(self.points, self.halves, theta, white)
        pull = self.precision @ (logs - self.typical)
        if halves is None:  # a value that is not acceptable, so that the search tries a shorter step
            return IMPOSSIBLE, lambda: (pull, self.precision)

        def slopes() -> tuple[np.ndarray, np.ndarray]:
            inverses = [inverse_of(half.factor) for half in halves]
            gradients, curvatures = zip(*map(Evidence.slopes, halves, inverses), strict=True)
            return np.add.reduce(gradients) + pull, np.add.reduce(curvatures) + self.precision

        return sum(half.value() for half in halves) + 0.5 * float(pull @ (logs - self.typical)), slopes
