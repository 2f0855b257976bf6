r"""Fit a Gaussian process with closed-form Shapley values of its functional components.

Sums over all sets of columns are integrals:

.. math:: \sum_{U \ni i, j} \frac{1}{|U|^2} \prod_{k \in U} h_k
          = h_i h_j \int_0^1 u \prod_{k \ne i, j} (1 + u\, h_k)\, (-\ln u)\, \mathrm{d}u

as :math:`1/n^2 = \int_0^1 u^{n-1} (-\ln u)\, \mathrm{d}u`; for i = j one factor h and the factor u are left out. Integrands have degree
d - 1: ceil(d / 2) Gauss nodes of either weight are exact.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from exactshap._runtime.checks import is_number, is_width
from exactshap._runtime.types import Column, TableLike
from exactshap.errors import InputError
from exactshap.kernels import Custom, Kernel
from exactshap.semivalues import find
from exactshap.solvers.product import gauss_rule, set_sums

# Candidate length scales, as multiples of median distances.
WIDTHS = (0.5, 1.0, 2.0)
# Candidate strengths of interactions, c of the kernel, half a decade apart.
STRENGTHS = (0.1, 0.3, 1.0, 3.0)
# Smallest variance of the noise that is tried, relative to that of the process.
SMALLEST_NOISE = 1e-8


@dataclass(eq=False, repr=False, kw_only=True)
class FanovaGaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Fit a Gaussian process with Gaussian Shapley values, by a FANOVA kernel.

    .. math:: k(x, x') = s^2 \prod_{j=1}^d \bigl(1 + c\, \tilde k_j(x_j, x'_j)\bigr), \qquad
              \tilde k_j(a, b) = k_j(a, b) - \frac{\mu_j(a)\, \mu_j(b)}{\bar\mu_j}

    with Gaussian :math:`k_j` and :math:`\mu_j` their means over the training rows: a priori f is a sum of independent :math:`f_U`, one for each
    set U of columns, with mean 0 over every column. The game :math:`v(S) = \sum_{U \subseteq S} f_U(x_U)`, the "functional" one of this
    kernel, is then also the mean of f over independent draws of the columns outside S, and linear in f.

    Parameters
    ----------
    length_scale : float, array of shape (n_features,) or "auto", default="auto"
        "auto": the median distance in each column times 1/2, 1 or 2, whichever gives the largest marginal likelihood.
    strength : float or "auto", default="auto"
        c. "auto": 0.1, 0.3, 1 or 3, by marginal likelihood. Small values prefer few columns at a time.
    noise : float or "auto", default="auto"
        Variance of the noise relative to s^2; "auto" by marginal likelihood. s^2 itself is always its maximiser.

    Attributes
    ----------
    length_scale_ : array of shape (n_features,)
    strength_, noise_, variance_ : float
        c, the variance of the noise and s^2, the last two in squared units of the target.
    log_marginal_likelihood_ : float

    Notes
    -----
    Where a factor less 1 is no covariance, as in a product of Gaussian kernels (:math:`k_j(x, x) - 1 = 0`), there are no such
    components: "functional" values have no covariance then, but ``value_function="interventional"`` has one.

    References
    ----------
    .. [1] Mohammadi, Muandet, Tiddi, ten Teije and Chau (2026). Exact Shapley attributions in quadratic-time for FANOVA Gaussian
       processes. AAAI, arXiv 2508.14499. The same quantities by recursions of Newton's kind; here by Gauss rules.
    .. [2] Durrande, Ginsbourger, Roustant and Carraro (2013). ANOVA kernels and RKHS of zero mean functions. J. Multivariate Analysis
       115, equation 9.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(60, 3))
    >>> model = FanovaGaussianProcess().fit(X, X[:, 0] + X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=60))
    >>> found = model.shapley_values(X[:2])
    >>> found.values.shape, found.covariance.shape, bool(np.abs(found.residual).max() < 1e-9)
    ((2, 3), (2, 3, 3), True)
    >>> model.shapley_effects().of_mean.argmax()
    np.int64(0)
    """

    length_scale: float | str | np.ndarray = "auto"
    strength: float | str = "auto"
    noise: float | str = "auto"

    def fit(self, X: TableLike, y: Column) -> FanovaGaussianProcess:
        """Fit the process to ``X (n_rows, n_features)`` and ``y (n_rows,)``."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, float)
        variance = float(y.var())
        if not np.isfinite(variance) or (variance == 0.0 and np.ptp(y) > 0):
            raise InputError(
                "The variance of `y` must be a number of float64", f"Got {variance}", "Divide y by its largest magnitude"
            )
        self._X, self._shift, self._scale = X, float(y.mean()), math.sqrt(variance) or 1.0
        target = (y - self._shift) / self._scale
        best = None
        # The components read these attributes, so they are set for each candidate; the best ones are set below.
        for scales, strength in itertools.product(self._length_scales(X), self._strengths()):
            self.length_scale_, self.strength_ = scales, strength
            means = np.stack([_gauss(x, x, scale).mean(axis=1) for x, scale in zip(X.T, scales, strict=True)])
            roots = np.sqrt(means.mean(axis=1))
            # Normalised mu_j of the training rows, and roots of their means
            self._means = means / roots[:, None], roots
            fitted = _profile(np.prod([1.0 + h for h in self._components(X)], axis=0), target, self.noise)
            if best is None or fitted[0] > best[0][0]:
                best = fitted, scales, strength, self._means
        assert best is not None
        (likelihood, ratio, variance), self.length_scale_, self.strength_, self._means = best
        # The density of y is that of the scaled target over scale^n.
        self.log_marginal_likelihood_ = float(likelihood - len(y) * np.log(self._scale))
        self._ratio = ratio
        self.variance_, self.noise_ = float(variance * self._scale**2), float(ratio * variance * self._scale**2)
        self._sections = self._components(X)
        kernel = np.prod([1.0 + h for h in self._sections], axis=0)
        self._cholesky = cholesky(kernel + ratio * np.eye(len(X)), lower=True)
        self.dual_coef_ = cho_solve((self._cholesky, True), target) * self._scale
        return self

    def predict(self, X: TableLike, return_std: bool = False) -> Any:
        """Return the posterior mean of f (n_rows,), with ``return_std`` also its deviation."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        sections = np.prod([1.0 + h for h in self._components(X)], axis=0)
        mean = self._shift + sections @ self.dual_coef_
        if not return_std:
            return mean
        prior = np.prod(1.0 + self._own(X), axis=1)
        # A variance of 0 may be rounded to a negative number.
        return mean, np.sqrt(np.maximum(self.variance_ * (prior - self._explained(sections)), 0.0))

    def shapley_values(self, X: TableLike, value_function: str = "functional") -> FanovaValues:
        r"""Return the posterior of the Shapley values of the functional components.

        .. math:: \phi_j = \sum_{U \ni j} \frac{f_U(x)}{|U|}, \quad
                  \operatorname{Cov}(\phi_i, \phi_j) = s^2 \sum_{U \ni i, j} \frac{\prod_{k \in U} c\, \tilde k_k(x, x)}{|U|^2}
                  - \Phi_i^\top (K + \sigma^2 I)^{-1} \Phi_j

        ``value_function="normalized"`` shares the constant component equally: every value gains :math:`f_\emptyset / d`, every section 1 / d and
        every prior covariance 1 / d^2.

        The result has ``values (n_rows, d)``, ``covariance (n_rows, d, d)`` and ``std``, in units of the target; ``baseline``, the
        constant component; ``residual`` and ``covariance_residual (n_rows,)``, which are rounding where the sums are right.

        Both sums over 2^d sets are integrals of polynomials. Cost O(n_train d^2) a row for the means, O(n_train^2 d) for the triangular
        solve, O(d^3 / 2) for the prior.
        """
        check_is_fitted(self)
        if value_function not in ("functional", "normalized"):
            do = "Use 'functional' or 'normalized'; Explainer(model, background) has the others"
            raise InputError("Unknown `value_function` of components", f"Got {value_function!r}", do)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        sections = self._components(X)
        constant = 0.0 if value_function == "functional" else 1.0 / X.shape[1]
        functionals = np.stack(set_sums(sections), axis=1) + constant  # (n_rows, d, n_train)
        values = functionals @ self.dual_coef_ + constant * self._shift
        # L^-1 Phi gives Phi' (K + noise)^-1 Phi by one triangular solve for all rows and players.
        whitened = solve_triangular(self._cholesky, functionals.reshape(-1, functionals.shape[2]).T, lower=True)
        whitened = whitened.T.reshape(functionals.shape)
        own = self._own(X)
        covariance = self.variance_ * (squared_shares(own) + constant**2 - whitened @ whitened.transpose(0, 2, 1))
        # The kernel section of f_empty, which "functional" leaves out
        fixed = 1.0 if constant == 0.0 else 0.0
        moving = np.prod([1.0 + h for h in sections], axis=0) - fixed
        variance = self.variance_ * (np.prod(1.0 + own, axis=1) - fixed - self._explained(moving))
        baseline = fixed * (self._shift + float(self.dual_coef_.sum()))
        # Not computed from the values, so that efficiency is checked, not assumed.
        residual = self.predict(X) - baseline - values.sum(axis=1)
        return FanovaValues(values, covariance, baseline, residual, variance - covariance.sum(axis=(1, 2)))

    def shapley_effects(self) -> FanovaEffects:
        r"""Return the Shapley effects, which split the variance over independent columns.

        .. math:: \mathrm{effect}_j = \sum_{U \ni j} \frac{\sigma_U^2}{|U|}, \qquad
                  \sigma_U^2 = \alpha^\top \Bigl[\bigodot_{k \in U} G_k\Bigr] \alpha, \quad
                  G_k = \frac{c^2}{n} \tilde K_k \tilde K_k^\top

        a product game over pairs of training rows; for the posterior expectation :math:`\alpha \alpha^\top` is replaced by
        :math:`\alpha \alpha^\top - s^2 (K + \sigma^2 I)^{-1}` and the prior's own variance is added. Cost O(n_train^2 d^2).

        The result has the effects ``of_mean`` and ``expected (d,)``, and the variances ``total_of_mean`` and ``expected_total``.
        """
        check_is_fitted(self)
        grams = [h @ h.T / len(h) for h in self._sections]
        pairs = np.outer(self.dual_coef_, self.dual_coef_)
        inverse = self.variance_ * cho_solve((self._cholesky, True), np.eye(len(self._X)))
        own = list(self._own(self._X).mean(axis=0)[:, None])
        of_mean, learned = np.transpose([[(pairs * part).sum(), (inverse * part).sum()] for part in set_sums(grams)])
        whole = np.prod([1.0 + gram for gram in grams], axis=0) - 1.0
        prior = self.variance_ * (np.prod([1.0 + one[0] for one in own]) - 1.0)
        return FanovaEffects(
            of_mean,
            float((pairs * whole).sum()),
            of_mean - learned + self.variance_ * np.concatenate(set_sums(own)),
            float(((pairs - inverse) * whole).sum() + prior),
        )

    @property
    def kernel_(self) -> Kernel:
        """Return the kernel divided by s^2, as a product of one-column kernels."""
        check_is_fitted(self)
        return Custom([functools.partial(self._factor, j) for j in range(self._X.shape[1])])

    @property
    def X_fit_(self) -> np.ndarray:
        """Return the training rows."""
        return np.array(self._X)

    @property
    def intercept_(self) -> float:
        """Return what was subtracted from the targets."""
        return self._shift

    def factors(self, X: np.ndarray) -> np.ndarray:
        """Return the factors 1 + c k~_j, (n_features, n_rows, n_train)."""
        return 1.0 + np.stack(self._components(X))

    def _factor(self, j: int, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return 1 + c k~_j of cells (n, 1) and (1, m) of column j."""
        a, b = np.ravel(x), np.ravel(z)
        return 1.0 + self.strength_ * (_gauss(a, b, self.length_scale_[j]) - np.outer(self._mean(a, j), self._mean(b, j)))

    def _components(self, X: np.ndarray) -> list[np.ndarray]:
        """Return c k~_j of rows and training rows, d arrays (n_rows, n_train)."""
        return [
            self.strength_ * (_gauss(X[:, j], self._X[:, j], scale) - np.outer(self._mean(X[:, j], j), self._means[0][j]))
            for j, scale in enumerate(self.length_scale_)
        ]

    def _own(self, X: np.ndarray) -> np.ndarray:
        """Return c k~_j(x, x) >= 0, (n_rows, d)."""
        means = np.stack([self._mean(X[:, j], j) for j in range(X.shape[1])], axis=1)
        return self.strength_ * np.maximum(1.0 - means**2, 0.0)

    def _mean(self, x: np.ndarray, j: int) -> np.ndarray:
        """Return mu_j(x) divided by the root of its mean, (n_rows,)."""
        return _gauss(x, self._X[:, j], self.length_scale_[j]).mean(axis=1) / self._means[1][j]

    def _explained(self, sections: np.ndarray) -> np.ndarray:
        return (solve_triangular(self._cholesky, sections.T, lower=True) ** 2).sum(axis=0)

    def _length_scales(self, X: np.ndarray) -> list[np.ndarray]:
        if not (isinstance(self.length_scale, str) and self.length_scale == "auto"):
            scales = np.array(self.length_scale).ravel()
            if not (len(scales) in (1, X.shape[1]) and all(map(is_width, scales))):
                what = f"The 'length_scale' parameter must be a number > 0, {X.shape[1]} of them, or 'auto'"
                raise InputError(what, f"Got {self.length_scale!r}")
            return [np.broadcast_to(scales.astype(float), (X.shape[1],))]
        medians = np.array([np.median(np.abs(np.subtract.outer(x, x))[np.triu_indices(len(x), 1)]) for x in X.T])
        spread = np.where(medians > 0, medians, np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0))
        return [width * spread for width in WIDTHS]

    def _strengths(self) -> tuple[float, ...]:
        if isinstance(self.strength, str) and self.strength == "auto":
            return STRENGTHS
        if not is_width(self.strength):
            raise InputError("The 'strength' parameter must be > 0 or 'auto'", f"Got {self.strength!r}")
        return (float(self.strength),)


@dataclass(frozen=True, eq=False)
class FanovaValues:
    """Hold the distribution of Shapley values of the functional components.

    Attributes
    ----------
    values : array of shape (n_rows, n_features)
        Posterior means, in units of the target.
    covariance : array of shape (n_rows, n_features, n_features)
        Exact posterior covariance, in squared units.
    baseline : float
        Posterior mean of the constant component; 0 where it is shared ("normalized").
    residual : array of shape (n_rows,)
        Posterior mean of f(x) - baseline - sum of values.
    covariance_residual : array of shape (n_rows,)
        Posterior variance of f(x) - f_empty (of f(x)), computed independently, less the sum of the covariance.
    """

    values: np.ndarray
    covariance: np.ndarray
    baseline: float
    residual: np.ndarray
    covariance_residual: np.ndarray

    @property
    def std(self) -> np.ndarray:
        """Return standard deviations, (n_rows, n_features)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0))


@dataclass(frozen=True, eq=False)
class FanovaEffects:
    """Hold Shapley effects: the function's variance, split over the columns.

    Attributes
    ----------
    of_mean, total_of_mean : array of shape (n_features,), float
        Effects of the posterior mean, and its variance over the product of the columns' distributions, computed independently.
    expected, expected_total : array of shape (n_features,), float
        Posterior expectation of the effects and of the variance, larger by the posterior uncertainty.
    """

    of_mean: np.ndarray
    total_of_mean: float
    expected: np.ndarray
    expected_total: float


def squared_shares(h: np.ndarray) -> np.ndarray:
    """Return the sums (n_rows, d, d) over U with i and j of prod h_U / |U|^2, for h (n_rows, d) >= 0."""
    u, weights = log_rule(-(-h.shape[1] // 2))
    # (n_rows, n_nodes, d), at least 1, so that dividing by them is stable
    factors = 1.0 + u[None, :, None] * h[:, None, :]
    product = weights * factors.prod(axis=2)
    ratios = h[:, None, :] / factors
    found: np.ndarray = (ratios * (u * product)[:, :, None]).transpose(0, 2, 1) @ ratios
    j = np.arange(h.shape[1])
    found[:, j, j] = np.einsum("rq,rqj->rj", product, ratios)
    return found


@functools.lru_cache(maxsize=64)
def log_rule(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the Gauss rule of the weight :math:`-\ln u` on [0, 1], exact to degree ``2 n_nodes - 1``.

    The weight is the density of a product of two uniform numbers: a product of two Gauss-Legendre rules has its moments, and
    Lanczos' recursion (Gragg and Harrod 1984) reduces it to ``n_nodes`` nodes.
    """
    t, w = find("shapley").rule(degree=2 * n_nodes - 1)
    # Nodes of rules ascend, so that the last product is the largest
    nodes, weights, _ = gauss_rule(np.outer(t, t).ravel(), np.outer(w, w).ravel(), n_nodes)
    return nodes, weights


def _gauss(a: np.ndarray, b: np.ndarray, scale: float) -> np.ndarray:
    return np.exp(-0.5 * np.subtract.outer(a, b) ** 2 / scale**2)


def _profile(kernel: np.ndarray, target: np.ndarray, noise: float | str) -> tuple[float, float, float]:
    """Return the largest log marginal likelihood over noise, the relative noise and the variance."""
    eigenvalues, vectors = np.linalg.eigh(kernel)
    eigenvalues, squares = np.maximum(eigenvalues, 0.0), (vectors.T @ target) ** 2

    def likelihood(ratio: float) -> tuple[float, float]:
        spectrum = eigenvalues + ratio
        variance = max(float(np.mean(squares / spectrum)), np.finfo(float).tiny)
        n = len(target)
        return -0.5 * (n * np.log(2 * np.pi * variance) + np.log(spectrum).sum() + n), variance

    if isinstance(noise, str) and noise == "auto":
        found = minimize_scalar(
            lambda log: -likelihood(np.exp(log))[0], bounds=(np.log(SMALLEST_NOISE), np.log(1e3)), method="bounded"
        )
        ratio = float(np.exp(found.x))
    elif is_number(noise, above=True):
        ratio = float(noise)
    else:
        raise InputError("The 'noise' parameter must be > 0 or 'auto'", f"Got {noise!r}")
    best, variance = likelihood(ratio)
    return best, ratio, variance
