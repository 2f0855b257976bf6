r"""Compute the exact covariance of the Shapley values of a Gaussian process.

The value of a coalition, :math:`v(S) = \sum_z w_z f(x_S, z_{\bar S})`, is linear in f; so is every semivalue, and under a
Gaussian posterior the values are jointly Gaussian. Averaging k((x_S, z), (x'_{S'}, z')) over independent S (each player with
probability t) and S' (with probability s) gives a product of bilinear factors F_k(t, s), so that

.. math:: \operatorname{Cov}(\phi_j, \phi_{j'}) = P_{jj'} - \Phi_j^\top (K + \sigma^2 I)^{-1} \Phi_{j'}

with the prior part P a two-dimensional integral of a polynomial of degree d - 1 in each variable (Gauss-Legendre with
ceil(d/2) nodes a side is exact) and Phi_j the value of the kernel sections of the training rows. Each product component of the
covariance function gives its own P and Phi.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.linear_algebra import solve_lower
from exactshap._runtime.machine import Sample, seconds_per_unit
from exactshap._runtime.slices import slices
from exactshap.errors import InputError
from exactshap.semivalues import Beta, Measure, Semivalue, find
from exactshap.solvers.core import coarse_bound, enough_nodes

fill_prior = kernel("rkhs.fill_prior(corner, left, right, between, weights, nodes, node_weights, interactions, out)")
fill_functionals = kernel("rkhs.fill_functionals(a, b, weights, nodes, node_weights, out)")
fill_pair_functionals = kernel("rkhs.fill_pair_functionals(a, b, weights, nodes, node_weights, out)")
fill_spread = kernel("rkhs.fill_spread(corner, cross, between, spread)")

# Columns of a triangular solve are padded to whole tiles, as a smaller last tile would get other bits.
TILE_COLUMNS = 16
# Functionals (rows x players x training rows) held at once: 32 MiB.
BLOCK_VALUES = 2**22


@dataclass(frozen=True, eq=False)
class KernelFactors:
    r"""Hold one product component :math:`s \prod_j k_j` of the covariance function between all rows."""

    amplitude: float  # s
    own: np.ndarray  # (n_rows, n_players): k_j(x_j, x_j)
    rows: np.ndarray  # (n_rows, n_players, n_background): k_j(x_j, z_j)
    background: np.ndarray  # (n_background, n_players, n_background): k_j(z_j, z'_j)
    rows_train: np.ndarray  # (n_rows, n_players, n_train): k_j(x_j, X_ij)
    background_train: np.ndarray  # (n_background, n_players, n_train): k_j(z_j, X_ij)

    def take(self, block: slice) -> KernelFactors:
        """Return the factors of some explained rows."""
        own, rows, rows_train = (np.ascontiguousarray(array[block]) for array in (self.own, self.rows, self.rows_train))
        return KernelFactors(self.amplitude, own, rows, self.background, rows_train, self.background_train)

    def independent(self, weights: np.ndarray) -> KernelFactors:
        """Return the factors of one reference row: means over the background, with independent columns."""
        return KernelFactors(
            self.amplitude,
            self.own,
            (self.rows @ weights)[:, :, None],
            np.einsum("z,zjy,y->j", weights, self.background, weights)[None, :, None],
            self.rows_train,
            np.einsum("z,zji->ji", weights, self.background_train)[None],
        )

    def functionals(self, weights: np.ndarray, measure: Measure, size: int) -> np.ndarray:
        """Return Phi (n_rows, n_sets, n_train)."""
        return self.amplitude * _functionals(self.rows_train, self.background_train, weights, measure, size)

    def prior(self, weights: np.ndarray, measure: Measure, size: int) -> tuple[np.ndarray, float]:
        """Return P (n_rows, n_pairs) and the bound on its quadrature error."""
        n_rows, n_players = self.own.shape
        spread = np.empty(n_rows)
        fill_spread(self.own, self.rows, self.background, spread)
        pairs, relative = np.zeros((n_rows, n_players * (n_players + 1) // 2)), 0.0
        # Bits of a row depend on that row alone: each takes the rule of its own spread, whatever rows lie around it
        counts = np.array([_n_nodes(measure, n_players - size, float(one)) for one in spread])
        for n_nodes in np.unique(counts):
            chosen = np.flatnonzero(counts == n_nodes)
            rule = measure.rule(2 * int(n_nodes) - 1 if n_nodes else max(0, n_players - size))
            nodes, node_weights = (np.array(part, float) for part in rule)
            error = 2.0 * coarse_bound(float(spread[chosen].max()), int(n_nodes)) if n_nodes else 0.0
            own, rows = (np.ascontiguousarray(array[chosen]) for array in (self.own, self.rows))
            found = np.zeros((len(chosen), pairs.shape[1]))
            fill_prior(own, rows, rows, self.background, weights, nodes, node_weights, size == 2, found)
            pairs[chosen], relative = found, max(relative, error)
        tops = [np.abs(array).max(axis=(0, 2), initial=0.0) for array in (self.own[:, :, None], self.rows, self.background)]
        height = float(np.max(tops, axis=0).prod())  # the product of all |F|
        # Two derivatives, each at most twice the bound of its factor: hence 4
        return self.amplitude * pairs, 4.0 * relative * abs(self.amplitude) * height if relative else 0.0

    def ends(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the prior variance of f(x) - mean f(Z), and its training covariances. They are (n_rows,) and (n_rows, n_train)."""
        between = weights @ self.background.prod(axis=1) @ weights
        # With BLAS the bits of a row would depend on its place among the others
        crossed = (self.rows.prod(axis=1) * weights).sum(axis=1)
        variance = self.own.prod(axis=1) - 2.0 * crossed + between
        sections = self.rows_train.prod(axis=1) - weights @ self.background_train.prod(axis=1)
        return self.amplitude * variance, self.amplitude * sections


@dataclass(frozen=True, eq=False)
class MonomialFactors:
    r"""Hold a component :math:`s\, \psi(x)\, \psi(x')` of a linear or polynomial kernel, :math:`\psi = \prod_j \psi_j`."""

    amplitude: float
    rows: np.ndarray  # (n_rows, n_players): psi_j(x_j)
    background: np.ndarray  # (n_background, n_players)
    train: np.ndarray  # (n_train,): psi of the training rows

    def take(self, block: slice) -> MonomialFactors:
        return MonomialFactors(self.amplitude, self.rows[block], self.background, self.train)

    def independent(self, weights: np.ndarray) -> MonomialFactors:
        return MonomialFactors(self.amplitude, self.rows, (weights @ self.background)[None], self.train)

    def _values(self, weights: np.ndarray, measure: Measure, size: int) -> np.ndarray:
        rows, background = (np.ascontiguousarray(array)[:, :, None] for array in (self.rows, self.background))
        return _functionals(rows, background, weights, measure, size)

    def functionals(self, weights: np.ndarray, measure: Measure, size: int) -> np.ndarray:
        return self.amplitude * self._values(weights, measure, size) * self.train

    def prior(self, weights: np.ndarray, measure: Measure, size: int) -> tuple[np.ndarray, float]:
        values = self._values(weights, measure, size)[:, :, 0]
        first, second = np.triu_indices(self.rows.shape[1])
        if size == 1:
            return self.amplitude * values[:, first] * values[:, second], 0.0
        pairs = np.zeros((len(values), len(first)))
        pairs[:, first != second] = values**2
        return self.amplitude * pairs, 0.0

    def ends(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        change = self.rows.prod(axis=1) - weights @ self.background.prod(axis=1)
        return self.amplitude * change**2, self.amplitude * np.outer(change, self.train)


Factors = KernelFactors | MonomialFactors


def _functionals(a: np.ndarray, b: np.ndarray, weights: np.ndarray, measure: Measure, size: int) -> np.ndarray:
    n_rows, n_players, n_terms = a.shape
    nodes, node_weights = (np.array(part, float) for part in measure.rule(max(0, n_players - size)))
    out = np.zeros((n_rows, n_players if size == 1 else n_players * (n_players - 1) // 2, n_terms))
    fill = fill_functionals if size == 1 else fill_pair_functionals
    fill(np.ascontiguousarray(a), np.ascontiguousarray(b), weights, nodes, node_weights, out)
    return out


def _n_nodes(measure: Measure, degree: int, spread: float) -> int:
    """Return the number of nodes that is enough for a spread, or 0 if an exact rule is needed."""
    n_nodes = enough_nodes(spread, max(0, degree)) if isinstance(measure, Beta) and np.isfinite(spread) else 0
    return n_nodes if n_nodes < max(0, degree) // 2 + 1 else 0


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Hold the posterior covariance of the values of each row, with its certificate."""

    # (n_rows, n_players, n_players): symmetric and positive semi-definite, in squared units of the output
    covariance: np.ndarray
    total: np.ndarray  # (n_rows,): posterior variance of f(x) - mean f(Z), computed without any Shapley value
    # array of shape (n_rows,) or None: ``total - covariance.sum()`` before clipping, for efficient indices
    residual: np.ndarray | None
    clipped: float  # the largest negative eigenvalue that was set to zero, as a positive number: pure rounding
    scale: np.ndarray  # (n_rows,): trace of the prior covariance: rounding errors are relative to it
    error_bound: float  # a-priori bound on the quadrature error of an entry; 0.0 where the rule is exact

    @property
    def std(self) -> np.ndarray:
        """Return the standard deviation (n_rows, n_players) of each value, in units of the output."""
        return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))


def shapley_covariance(
    components: Sequence[Factors],
    cholesky: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    semivalue: str | Semivalue = "shapley",
    order: int = 1,
    scale: float = 1.0,
) -> Uncertainty:
    r"""Return the exact posterior covariance of a Gaussian process' Shapley values.

    .. math:: \operatorname{Cov}(\phi_j, \phi_{j'}) = \sum_p P^{(p)}_{jj'} - \Phi_j^\top (K + \sigma^2 I)^{-1} \Phi_{j'},
              \qquad \Phi = \sum_p \Phi^{(p)}

    Parameters
    ----------
    components : sequence of KernelFactors or MonomialFactors
        The components p of the covariance function, over the same rows, players, background and training rows.
    cholesky : array of shape (n_train, n_train)
        Lower Cholesky factor of K + sigma^2 I.
    weights : array of shape (n_background,), default=None
        Background weights that sum to one; equal by default.
    semivalue : str or Semivalue, default="shapley"
    order : int, default=1
        Order of the request, on which values of single players depend for some indices.
    scale : float, default=1.0
        Factor of the covariance function, for targets that were standardised: the square of their standard deviation.

    Returns
    -------
    uncertainty : Uncertainty

    Notes
    -----
    Cost O(n_background^2 n_nodes^2 d^2) for each row and component, O(n_train n_background n_nodes d) for Phi and
    O(n_train^2 d) for the triangular solve. Exact up to rounding, of about eps times ``uncertainty.scale`` and the condition
    of K + sigma^2 I.

    Examples
    --------
    >>> from exactshap.kernels import RBF
    >>> from exactshap.solvers.rkhs import KernelFactors
    >>> X, x, z = np.array([[0.0, 1.0], [2.0, 0.5]]), np.array([[1.0, 1.0]]), np.zeros((1, 2))
    >>> part, = RBF().expand(2)
    >>> pairs = [part.factors(a, b.T) for a, b in ((x, x), (x, z), (z, z), (x, X), (z, X))]
    >>> factors = KernelFactors(1.0, pairs[0][:, :, 0], *pairs[1:])
    >>> found = shapley_covariance([factors], np.linalg.cholesky(part.matrix(X, X) + 0.1 * np.eye(2)))
    >>> found.covariance.shape, bool(abs(found.residual[0]) < 1e-14)
    ((1, 2, 2), True)
    """
    rule = find(semivalue)
    measure = rule.of_size(1, order)
    weights, n_rows, n_players = _checked(components, cholesky, weights)
    first, second = np.triu_indices(n_players)
    covariance = np.zeros((n_rows, n_players, n_players))
    scales, total = np.empty(n_rows), np.empty(n_rows)
    error_bound = 0.0
    for block in slices(n_rows, BLOCK_VALUES // max(1, n_players * len(cholesky))):
        parts = [part.take(block) for part in components]
        priors = [part.prior(weights, measure, 1) for part in parts]
        upper = np.sum([values for values, _ in priors], axis=0)
        error_bound = max(error_bound, sum(error for _, error in priors))
        # P is symmetric: components fill one triangle
        prior = np.empty((len(upper), n_players, n_players))
        prior[:, first, second] = prior[:, second, first] = upper
        explained = _whiten(cholesky, np.sum([part.functionals(weights, measure, 1) for part in parts], axis=0))
        covariance[block] = prior - explained @ explained.transpose(0, 2, 1)
        total[block] = _total(parts, cholesky, weights)
        scales[block] = np.trace(prior, axis1=1, axis2=2)
    # Beyond order 1 single players add up alone only if they are Shapley values
    adds_up = rule.is_efficient(1) if order == 1 else measure == Beta(1, 1)
    residual = total - covariance.sum(axis=(1, 2)) if adds_up else None
    covariance, clipped = _clip(covariance)
    return Uncertainty(
        covariance=scale * covariance,
        total=scale * total,
        residual=None if residual is None else scale * residual,
        clipped=scale * clipped,
        scale=scale * scales,
        error_bound=scale * error_bound,
    )


def interaction_variance(
    components: Sequence[Factors],
    cholesky: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    semivalue: str | Semivalue = "sii",
    scale: float = 1.0,
) -> np.ndarray:
    r"""Return the posterior variance of every interaction of two players.

    The formulas are those of :func:`shapley_covariance` with :math:`\partial_t \partial_s F` for both players. As :math:`v_x` is
    linear in f, so is every interaction index of order 2.

    Parameters
    ----------
    components, cholesky, weights, scale
        As in :func:`shapley_covariance`.
    semivalue : str or Semivalue, default="sii"

    Returns
    -------
    variance : array of shape (n_rows, n_pairs)
        Pairs in lexicographic order, in squared units of the output.

    Notes
    -----
    Cost and memory O(n_train d^2) for each row. The full covariance of all pairs would be O(d^4) and is not computed.

    Examples
    --------
    >>> from exactshap.kernels import RBF
    >>> from exactshap.solvers.rkhs import KernelFactors
    >>> X, x, z = np.array([[0.0, 1.0], [2.0, 0.5]]), np.array([[1.0, 1.0]]), np.zeros((1, 2))
    >>> part, = RBF().expand(2)
    >>> pairs = [part.factors(a, b.T) for a, b in ((x, x), (x, z), (z, z), (x, X), (z, X))]
    >>> factors = KernelFactors(1.0, pairs[0][:, :, 0], *pairs[1:])
    >>> interaction_variance([factors], np.linalg.cholesky(part.matrix(X, X) + 0.1 * np.eye(2))).shape
    (1, 1)
    """
    measure = find(semivalue).of_size(2, 2)
    weights, n_rows, n_players = _checked(components, cholesky, weights)
    first, second = np.triu_indices(n_players)
    variance = np.empty((n_rows, n_players * (n_players - 1) // 2))
    for block in slices(n_rows, BLOCK_VALUES // max(1, variance.shape[1] * len(cholesky))):
        parts = [part.take(block) for part in components]
        # The triangle includes pairs of a player with itself, which are no interactions
        prior = np.sum([part.prior(weights, measure, 2)[0] for part in parts], axis=0)[:, first != second]
        explained = _whiten(cholesky, np.sum([part.functionals(weights, measure, 2) for part in parts], axis=0))
        variance[block] = prior - (explained**2).sum(axis=2)
    return scale * np.maximum(variance, 0.0)


def _checked(components: Sequence[Factors], cholesky: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, int, int]:
    if not components:
        raise InputError("A Gaussian process needs at least one kernel component", "Got none")
    n_background = components[0].background.shape[0]
    weights = np.full(n_background, 1.0 / n_background) if weights is None else np.array(weights, float)
    if weights.shape != (n_background,):
        raise InputError(f"Background weights must have shape ({n_background},)", f"Got {weights.shape}")
    if cholesky.ndim != 2 or cholesky.shape[0] != cholesky.shape[1]:
        raise InputError("`cholesky` must be a square lower triangular matrix", f"Got shape {cholesky.shape}")
    if not np.all(np.diag(cholesky) > 0):
        raise InputError(
            "`cholesky` must have a positive diagonal: the covariance of the training rows is singular",
            f"Got a minimum of {np.diag(cholesky).min()!r}",
            "Add noise to the Gaussian process (alpha= or a WhiteKernel)",
        )
    return weights, *components[0].rows.shape[:2]


def _whiten(cholesky: np.ndarray, functionals: np.ndarray) -> np.ndarray:
    """Return L^-1 Phi^T, laid out as (n_rows, n_sets, n_train)."""
    n_rows, n_sets, n_train = functionals.shape
    n_columns = n_rows * n_sets
    columns = np.zeros((-(-n_columns // TILE_COLUMNS) * TILE_COLUMNS, n_train))
    columns[:n_columns] = functionals.reshape(n_columns, n_train)
    solved = solve_lower(np.asfortranarray(cholesky, float), columns.T)
    return solved.T[:n_columns].reshape(n_rows, n_sets, n_train)


def _total(parts: Sequence[Factors], cholesky: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the posterior variance (n_rows,) of f(x) - mean f(Z)."""
    ends = [part.ends(weights) for part in parts]
    sections = np.sum([section for _, section in ends], axis=0)
    explained = _whiten(cholesky, sections[:, None, :])[:, 0]
    return np.sum([variance for variance, _ in ends], axis=0) - (explained**2).sum(axis=1)


def _clip(covariance: np.ndarray) -> tuple[np.ndarray, float]:
    """Symmetrise and set negative eigenvalues (rounding) to zero; also return the largest magnitude of these."""
    covariance = (covariance + covariance.transpose(0, 2, 1)) / 2.0
    eigenvalues, vectors = np.linalg.eigh(covariance)
    clipped = float(max(0.0, -eigenvalues.min(initial=0.0)))
    # Eigenvalues ascend, so the first decides; rows without a negative one keep their bits
    bad = eigenvalues[:, 0] < 0
    positive = np.maximum(eigenvalues[bad], 0.0)
    repaired = np.einsum("rjk,rk,rlk->rjl", vectors[bad], positive, vectors[bad])
    covariance[bad] = (repaired + repaired.transpose(0, 2, 1)) / 2.0
    return covariance, clipped


def covariance_seconds(order: int) -> float:
    """Return this machine's seconds per multiplication of the covariances of values of this order."""
    # Several rows, as half of the time of one row would be Python's.
    n_rows, n_background, n_train, n_players = 4, 8, 200, 8

    def sample() -> Sample:
        rng, shapley = np.random.default_rng(0), find("shapley" if order == 1 else "k-sii")
        shapes = ((n_rows, n_players), (n_rows, n_players, n_background), (n_background, n_players, n_background))
        shapes += ((n_rows, n_players, n_train), (n_background, n_players, n_train))  # type: ignore[assignment]
        factors = [KernelFactors(1.0, *(rng.random(shape) for shape in shapes))]
        weights, cholesky = np.full(n_background, 1.0 / n_background), np.eye(n_train)
        pairs = float(n_background * n_players // 2 * n_players)
        work = pairs**2 / 2.0 + n_train * pairs + n_train**2 * n_players
        if order == 1:
            return n_rows * work, lambda: shapley_covariance(factors, cholesky, weights, semivalue=shapley, order=1)
        work += pairs**2 / 2.0 + n_train * pairs * n_players + n_train**2 * n_players**2 / 2.0

        def run() -> None:
            shapley_covariance(factors, cholesky, weights, semivalue=shapley, order=2)
            interaction_variance(factors, cholesky, weights, semivalue=shapley)

        return n_rows * work, run

    return seconds_per_unit(f"posterior covariance, order {order}", sample)


def component_seconds() -> float:
    """Return this machine's seconds of one more component of a kernel, without its multiplications."""

    def sample() -> Sample:
        rng, shapley, n = np.random.default_rng(0), find("shapley"), 16
        shapes = ((1, 2), (1, 2, 1), (1, 2, 1), (1, 2, 2), (1, 2, 2))
        factors = [KernelFactors(1.0, *(rng.random(shape) for shape in shapes)) for _ in range(n)]
        return n, lambda: shapley_covariance(factors, np.eye(2), np.ones(1), semivalue=shapley, order=1)

    return seconds_per_unit("posterior covariance, component", sample)
