"""Define semivalues by measures on [0, 1] for each set size, with quadrature rules."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from exactshap.errors import InputError, InputTypeError


class Measure(Protocol):
    """Describe a (possibly signed) measure on [0, 1] of total mass 1."""

    def rule(self, degree: int) -> Rule:
        """Return nodes and weights (n_nodes,) exact for polynomials up to ``degree``."""


@dataclass(frozen=True)
class Beta:
    r"""Provide the density of the beta distribution; Beta(1, 1) gives Shapley values.

    .. math:: \mathrm{d}\mu(t) = \frac{t^{p-1} (1-t)^{q-1}}{B(p, q)}\, \mathrm{d}t

    Parameters
    ----------
    p, q : float > 0, default=1.0

    Raises
    ------
    InputError
        If a parameter is not a finite number > 0.

    Examples
    --------
    >>> nodes, weights = Beta(2, 1).rule(degree=3)
    >>> (weights @ nodes).round(4)  # the mean, 2 / 3
    np.float64(0.6667)
    """

    p: float = 1.0
    q: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("p", self.p), ("q", self.q)):
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"The {name!r} parameter of Beta must be a finite float > 0", f"Got {value!r}")

    def rule(self, degree: int) -> Rule:
        return self.gauss(degree // 2 + 1)

    def gauss(self, n_nodes: int) -> Rule:
        """Return the Gauss-Jacobi rule, exact up to degree ``2 n_nodes - 1``."""
        return gauss_jacobi(n_nodes, float(self.p), float(self.q))


@dataclass(frozen=True)
class Atom:
    """Put all mass at one point: players join with probability ``t``.

    Parameters
    ----------
    t : float in [0, 1]
        1/2 is Banzhaf, 0 the marginal contribution to the empty coalition, 1 leave-one-out.

    Raises
    ------
    InputError
        If ``t`` is outside [0, 1].

    Examples
    --------
    >>> from exactshap.semivalues import Semivalue
    >>> Semivalue("optimist", Atom(0.75)).weights(2)
    array([0.25, 0.75])
    """

    t: float

    def __post_init__(self) -> None:
        if not 0 <= self.t <= 1:
            raise InputError("The 't' parameter of Atom must be in [0, 1]", f"Got {self.t!r}")

    def rule(self, degree: int) -> Rule:
        return np.array([float(self.t)]), np.ones(1)


@dataclass(frozen=True)
class Density:
    """Normalise a probability density, a vectorised function on (0, 1).

    Parameters
    ----------
    function : callable
        ``function(t (n,)) -> (n,)``, not negative, in any unit.
    resolution : int, default=128
        Gauss-Legendre nodes: exact for polynomial densities of degree below ``2 * resolution - degree``, spectrally accurate for
        smooth ones.

    Raises
    ------
    InputError
        If the density is negative, not finite or zero throughout.

    Examples
    --------
    >>> from exactshap.semivalues import Semivalue
    >>> Semivalue("late", Density(lambda t: t**2)).weights(2).round(4)  # Beta(3, 1)
    array([0.25, 0.75])
    """

    function: Callable[[np.ndarray], np.ndarray]
    resolution: int = 128

    def rule(self, degree: int) -> Rule:
        nodes, weights = gauss_jacobi(self.resolution + degree // 2 + 1, 1.0, 1.0)
        weights = weights * np.asarray(self.function(nodes), float)
        # Normalised by the rule's own sum, so that the mass is 1 at every degree
        total = weights.sum()
        if not np.isfinite(total) or total <= 0 or weights.min() < 0:
            raise InputError("A density must be finite, non-negative and not zero on (0, 1)", f"Its integral is {total!r}")
        return nodes, weights / total


@dataclass(frozen=True)
class Moments:
    """Define a signed functional by its exact rational moments.

    The weights at the Chebyshev points come from the moments in the Chebyshev basis, in rational arithmetic: a Vandermonde solve loses
    all digits beyond degree 25 or so. Rounding grows as the sum of their magnitudes, nearly the least that any weights on [0, 1] have.

    Parameters
    ----------
    moment : callable
        ``moment(r) -> Fraction``, the functional of t^r; ``moment(0)`` is 1.

    >>> uniform = Moments(lambda r: Fraction(1, r + 1))
    >>> Semivalue("uniform", uniform).weights(3).round(4)
    array([0.3333, 0.1667, 0.3333])
    """

    moment: Callable[[int], Fraction]

    def rule(self, degree: int) -> Rule:
        n = max(degree, 1)
        j = np.arange(n + 1)
        found = np.zeros(n + 1)
        found[: degree + 1] = chebyshev_functionals([self.moment(r) for r in range(degree + 1)])
        # Clenshaw-Curtis weights: a cosine transform of the functional of T_0, ..., T_n, with half weight for the ends
        found[[0, n]] /= 2.0
        # cos(pi j k / n) has period 2 n in j k; integers are reduced without rounding
        weights = 2.0 / n * (np.cos(np.pi / n * (np.outer(j, j) % (2 * n))) @ found)
        weights[[0, n]] /= 2.0
        return chebyshev_points(n), weights


@dataclass(frozen=True)
class Mixture:
    r"""Add up weighted measures, exactly where they are exact.

    Parameters
    ----------
    parts : tuple of (float, measure)
        Weights, which may be negative, and measures; the masses of all together are 1.

    Examples
    --------
    >>> nodes, weights = Mixture(((0.5, Atom(0.0)), (0.5, Atom(1.0)))).rule(degree=3)
    >>> nodes, weights
    (array([0., 1.]), array([0.5, 0.5]))
    """

    parts: tuple[tuple[float, Measure], ...]

    def rule(self, degree: int) -> Rule:
        rules = [(share, *measure.rule(degree)) for share, measure in self.parts]
        return np.concatenate([nodes for _, nodes, _ in rules]), np.concatenate(
            [share * weights for share, _, weights in rules]
        )


@dataclass(frozen=True)
class EndSlopes:
    r"""Give :math:`f'(1) - f'(0)`, of mass 0, from values at Chebyshev points.

    Its weights are those of the derivative at the end of a Chebyshev grid (Trefethen 2000, Spectral Methods in MATLAB, equation 6.5):
    all weights on [0, 1] amplify rounding by at least the square of the degree (Markov), and these by no more.
    """

    def rule(self, degree: int) -> Rule:
        n = max(degree, 1)
        j = np.arange(n + 1)
        slopes = np.full(n + 1, (2.0 * n * n + 1.0) / 6.0)
        slopes[1:] = (-1.0) ** j[1:] / np.sin(np.pi * j[1:] / (2 * n)) ** 2
        slopes[n] /= 2.0
        # The slope at 0 has the weights of that at 1 in reverse with opposite sign; dx / dt = 2 for x = 2 t - 1
        return chebyshev_points(n), 2.0 * (slopes + slopes[::-1])


@dataclass(frozen=True)
class SignedDensity:
    r"""Integrate against a polynomial density of any sign and mass 1.

    The functional is :math:`\int f(t)\, q(t)\, \mathrm{d}t` with :math:`q(t) = \sum_i q_i t^i`.

    Gauss-Legendre nodes; q is evaluated in rational arithmetic, as its coefficients alternate. The sum of the magnitudes of the
    weights is small, at most :attr:`size`.
    """

    coefficients: tuple[Fraction, ...]

    def rule(self, degree: int) -> Rule:
        top = len(self.coefficients) - 1
        nodes, weights = gauss_jacobi((max(degree, top) + top) // 2 + 1, 1.0, 1.0)
        return nodes, weights * np.array([self._at(Fraction(float(t))) for t in nodes])

    def _at(self, t: Fraction) -> float:
        value = Fraction(0)
        for coefficient in reversed(self.coefficients):
            value = value * t + coefficient
        return float(value)

    @property
    def size(self) -> float:
        r"""Return the root of :math:`\int q^2`, a bound of the sum of \|weights\|.

        It bounds :math:`\int |q|` and, as rules are exact for q^2, that sum.
        """
        squares = (a * b / (i + j + 1) for i, a in enumerate(self.coefficients) for j, b in enumerate(self.coefficients))
        return math.sqrt(sum(squares, Fraction(0)))


Rule = tuple[np.ndarray, np.ndarray]


def chebyshev_points(n: int) -> np.ndarray:
    """Return the n + 1 points (1 + cos(pi j / n)) / 2, from 1 to 0."""
    return np.cos(np.pi * np.arange(n + 1) / (2 * n)) ** 2


def chebyshev_functionals(moments: list[Fraction]) -> np.ndarray:
    """Return the functional of T_k(2 t - 1), k = 0, 1, ..., from moments."""
    found = []
    # T_1 = T_{-1} begins the recursion T_{k+1} = 2 (2 t - 1) T_k - T_{k-1}
    previous, current = [-1, 2], [1]
    for _ in moments:
        found.append(float(sum((c * moment for c, moment in zip(current, moments, strict=False)), Fraction(0))))
        following = [0, *(4 * c for c in current)]
        for r, c in enumerate(current):
            following[r] -= 2 * c
        for r, c in enumerate(previous):
            following[r] -= c
        previous, current = current, following
    return np.array(found)


@functools.lru_cache(maxsize=1024)
def gauss_jacobi(n_nodes: int, p: float, q: float) -> Rule:
    """Return read-only nodes and weights for Beta(p, q), exact up to degree ``2 n_nodes - 1``."""
    from scipy.special import roots_jacobi, roots_legendre

    if p == q == 1.0:
        x, weights = roots_legendre(n_nodes)
    else:
        # SciPy's density is (1 - x)^alpha (1 + x)^beta with x = 2 t - 1, so the exponent of 1 - t is first
        x, weights = roots_jacobi(n_nodes, q - 1.0, p - 1.0)
    nodes, weights = (1.0 + x) / 2.0, weights / weights.sum()
    # Read-only, as the cache shares them
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


MeasureOfSize = Callable[[int, int], Measure]


@dataclass(frozen=True)
class Semivalue:
    """Name an index by its measure.

    Parameters
    ----------
    name : str
        Shown in reprs, plot titles and reports.
    measure : object or callable
        One measure for every set size: :class:`Atom`, :class:`Beta`, :class:`Density`, a :class:`Mixture` of them, or any object with
        ``rule(degree) -> (nodes, weights)``, exact for polynomials up to that degree. ``measure(size, order)`` returns one where it
        depends on the size of the set T and on the requested highest order.
    efficient : bool, default=False
        Whether the values of all sets of size 1..order add up to v(D) - v(empty). Only then the sum is a certificate.
    cumulative : bool, default=False
        Whether a request of order k means all sizes 1..k together as one expansion (k-SII, STII, FSII).
    mass : float, default=1.0
        Mass of the measure of single players: 1 for a mean of marginals, 1/2 for coefficients of Walsh characters.

    Examples
    --------
    >>> from exactshap.semivalues import Atom
    >>> nodes, weights = Semivalue("optimist", Atom(0.9)).rule(degree=3)
    >>> nodes, weights
    (array([0.9]), array([1.]))
    >>> class Ends:  # half of the mass at either end
    ...     def rule(self, degree):
    ...         return np.array([0.0, 1.0]), np.array([0.5, 0.5])
    >>> Semivalue("ends", Ends()).weights(3)
    array([0.5, 0. , 0.5])
    """

    name: str
    measure: Measure | MeasureOfSize = field(hash=False)  # slow, and equal ones have equal names
    efficient: bool = False
    cumulative: bool = False
    mass: float = 1.0

    def __post_init__(self) -> None:
        _check_measure(self.name, self.of_size(1, 1), self.mass)

    def of_size(self, size: int, order: int) -> Measure:
        """Return the measure for sets of ``size`` within a request of ``order``."""
        if hasattr(self.measure, "rule") or not callable(self.measure):
            return self.measure
        return self.measure(size, order)

    def rule(self, size: int = 1, order: int | None = None, *, degree: int) -> Rule:
        """Return nodes and weights (n_nodes,) exact for an integrand of degree ``degree``."""
        return self.of_size(size, size if order is None else order).rule(degree)

    def weights(self, n_players: int, size: int = 1, order: int | None = None) -> np.ndarray:
        r"""Return the weight of one marginal by coalition size.

        Its shape is (n_players - size + 1,), over coalitions of s players outside T.

        .. math:: p(s) = \int t^s (1-t)^{d-|T|-s}\, \mathrm{d}\mu(t)
        """
        degree = n_players - size
        nodes, weights = self.rule(size, order, degree=degree)
        s = np.arange(degree + 1)[:, None]
        found: np.ndarray = (weights * nodes**s * (1.0 - nodes) ** (degree - s)).sum(axis=1)
        return found

    def is_efficient(self, order: int) -> bool:
        """Say whether all values up to ``order`` sum to v(D) - v(empty)."""
        return self.efficient and (order == 1 or self.cumulative)


def _check_measure(name: str, measure: Measure, mass: float) -> None:
    if not hasattr(measure, "rule"):
        raise InputTypeError(
            f"The measure of semivalue {name!r} must have a rule(degree) method",
            f"Got {type(measure).__name__}",
            "Use semivalues.Atom(t), Beta(p, q), Density(function) or a Mixture of them",
        )
    nodes, weights = measure.rule(7)
    if not (np.isclose(weights.sum(), mass, atol=1e-10) and np.all((nodes >= 0) & (nodes <= 1))):
        raise InputError(f"The measure of semivalue {name!r} must have mass {mass:g} on [0, 1]", f"Got mass {weights.sum()!r}")
    # Two rules must agree on the moments for which both are exact
    finer_nodes, finer_weights = measure.rule(9)
    for r in range(8):
        coarse, fine = weights @ nodes**r, finer_weights @ finer_nodes**r
        if not np.isclose(coarse, fine, rtol=1e-8, atol=1e-10):
            raise InputError(
                f"The rule of semivalue {name!r} must be exact to the degree of the call",
                f"Moment {r}: {coarse!r} against {fine!r}",
            )
