r"""Every question is one measure on [0, 1] per set size: nodes and weights, nothing else.

Let :math:`V(t)` be the multilinear extension of a game on the diagonal: each player joins with probability ``t``. With
:math:`I_T(t) = \partial_T V(t, \dots, t)`, a polynomial of degree ``d - |T|``, every semivalue and interaction index is

.. math:: \phi_T = \int_0^1 I_T(t)\, \mathrm{d}\mu_{|T|}(t),

so that an index *is* its measure :math:`\mu`. A measure answers one question, :meth:`rule`: nodes and weights that
integrate every polynomial up to a degree exactly. A new semivalue is one line::

    optimist = Semivalue("optimist", Atom(0.9))

===================== =========================================== ==========================
index                 measure for sets of size s (of order k)     source
===================== =========================================== ==========================
shapley, sii          uniform = Beta(1, 1)                        Owen 1972; Grabisch 1999
banzhaf               atom at 1/2                                 Banzhaf 1965; Grabisch 1999
leave-one-out         atom at 1                                   v(D) - v(D minus T)
moebius               atom at 0                                   Harsanyi dividends
stii                  Beta(1, k) at s = k, atom 0 below           Sundararajan et al. 2020
fsii                  Beta(k, k) at s = k, signed moments below   Tsai et al. 2023
k-sii                 signed moments (Bernoulli numbers)          Bordt & von Luxburg 2023
chaining              Beta(s, 1)                                  Marichal & Roubens 1999
===================== =========================================== ==========================
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, message

__all__ = ["Atom", "Beta", "Density", "Measure", "Moments", "Nodes", "Semivalue", "aggregate", "available", "beta", "find"]

Rule = tuple[np.ndarray, np.ndarray]


class Measure(Protocol):
    """A (possibly signed) measure on [0, 1] of total mass 1."""

    def rule(self, degree: int) -> Rule:
        """Return nodes and weights, each of shape (n_nodes,), exact for polynomials up to ``degree``."""


@dataclass(frozen=True)
class Beta:
    """The density t^(p-1) (1-t)^(q-1) / B(p, q); Beta(1, 1) is uniform."""

    p: float = 1.0
    q: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("p", self.p), ("q", self.q)):
            if not (np.isfinite(value) and value > 0):
                raise InputError(message(f"The {name!r} parameter of Beta must be a finite float > 0", f"Got {value!r}"))

    def rule(self, degree: int) -> Rule:
        return self.gauss(degree // 2 + 1)

    def gauss(self, n_nodes: int) -> Rule:
        """Return the Gauss-Jacobi rule with ``n_nodes`` nodes, exact up to degree ``2 n_nodes - 1``."""
        return _gauss_jacobi(n_nodes, float(self.p), float(self.q))


@dataclass(frozen=True)
class Atom:
    """All mass at one point: every player joins with probability ``t``."""

    t: float

    def __post_init__(self) -> None:
        if not 0 <= self.t <= 1:
            raise InputError(message("The 't' parameter of Atom must be in [0, 1]", f"Got {self.t!r}"))

    def rule(self, degree: int) -> Rule:
        return np.array([float(self.t)]), np.ones(1)


@dataclass(frozen=True)
class Nodes:
    """A discrete measure: ``weights`` (summing to 1) at ``nodes`` in [0, 1]."""

    nodes: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        nodes, weights = np.asarray(self.nodes, float), np.asarray(self.weights, float)
        if nodes.ndim != 1 or nodes.shape != weights.shape or nodes.size == 0:
            raise InputError(message("Nodes needs as many nodes as weights", f"Got {nodes.shape} and {weights.shape}"))
        if not (np.all((nodes >= 0) & (nodes <= 1)) and np.isclose(weights.sum(), 1.0, rtol=0, atol=1e-12)):
            raise InputError(
                message("Nodes must lie in [0, 1] and their weights sum to 1", f"Got weights that sum to {weights.sum()!r}")
            )

    def rule(self, degree: int) -> Rule:
        return np.asarray(self.nodes, float), np.asarray(self.weights, float)


@dataclass(frozen=True)
class Density:
    """A probability density given as a vectorised function on (0, 1), normalised here.

    The density is integrated by Gauss-Legendre with ``resolution`` nodes: exact for polynomial densities of degree below
    ``2 * resolution - degree``, spectrally accurate for smooth ones.
    """

    function: Callable[[np.ndarray], np.ndarray]
    resolution: int = 128

    def rule(self, degree: int) -> Rule:
        nodes, weights = _gauss_jacobi(self.resolution + degree // 2 + 1, 1.0, 1.0)
        weights = weights * np.asarray(self.function(nodes), float)
        total = weights.sum()
        if not np.isfinite(total) or total <= 0 or weights.min() < 0:
            raise InputError(
                message("A density must be finite, non-negative and not zero on (0, 1)", f"Its integral is {total!r}")
            )
        return nodes, weights / total


@dataclass(frozen=True)
class Moments:
    """A signed functional known by its exact rational moments ``moment(r) = L(t^r)``, with ``moment(0) = 1``.

    The weights come from the moments in the Legendre basis, in rational arithmetic: a Vandermonde solve loses all digits
    beyond degree 25 or so.
    """

    moment: Callable[[int], Fraction]

    def rule(self, degree: int) -> Rule:
        nodes, weights = _gauss_jacobi(degree + 1, 1.0, 1.0)
        x = 2.0 * nodes - 1.0
        density = np.zeros_like(nodes)
        previous, current = np.ones_like(x), x
        moments = [self.moment(r) for r in range(degree + 1)]
        for k in range(degree + 1):
            legendre = previous if k == 0 else current
            density += (2 * k + 1) * float(_legendre_functional(k, moments)) * legendre
            if k >= 1:
                previous, current = current, ((2 * k + 1) * x * current - k * previous) / (k + 1)
        return nodes, weights * density


def _legendre_functional(k: int, moments: list[Fraction]) -> Fraction:
    """Return L(P_k) for the shifted Legendre polynomial P_k(t) = sum_r (-1)^(k+r) C(k,r) C(k+r,r) t^r."""
    terms = ((-1) ** (k + r) * math.comb(k, r) * math.comb(k + r, r) * moments[r] for r in range(k + 1))
    return sum(terms, Fraction(0))


@functools.lru_cache(maxsize=1024)
def _gauss_jacobi(n_nodes: int, p: float, q: float) -> Rule:
    from scipy.special import roots_jacobi, roots_legendre

    if p == q == 1.0:
        x, weights = roots_legendre(n_nodes)
    else:
        x, weights = roots_jacobi(n_nodes, q - 1.0, p - 1.0)
    nodes, weights = (1.0 + x) / 2.0, weights / weights.sum()
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
    measure : Measure or callable
        One measure for every set size, or ``measure(size, order) -> Measure`` when it depends on the size of the set T and
        on the requested highest order.
    efficient : bool, default=False
        Whether the values of all sets of size 1..order add up to v(D) - v(empty). It is what makes the sum a certificate.
    cumulative : bool, default=False
        Whether a request of order k means all sizes 1..k together as one expansion (k-SII, STII, FSII).

    Examples
    --------
    >>> nodes, weights = Semivalue("optimist", Atom(0.9)).rule(degree=3)
    >>> nodes, weights
    (array([0.9]), array([1.]))
    """

    name: str
    measure: Measure | MeasureOfSize
    efficient: bool = False
    cumulative: bool = False

    def __post_init__(self) -> None:
        _check_measure(self.name, self.of_size(1, 1))

    def of_size(self, size: int, order: int) -> Measure:
        """Return the measure for sets of ``size`` players within a request of ``order``."""
        if hasattr(self.measure, "rule") or not callable(self.measure):
            return self.measure  # type: ignore[return-value]
        return self.measure(size, order)

    def rule(self, size: int = 1, order: int | None = None, *, degree: int) -> Rule:
        """Return nodes and weights, each of shape (n_nodes,), exact for the integrand of degree ``degree``."""
        return self.of_size(size, size if order is None else order).rule(degree)

    def weights(self, n_players: int, size: int = 1, order: int | None = None) -> np.ndarray:
        r"""Return the weight of one marginal over coalitions of s players outside T, of shape (n_players - size + 1,).

        .. math:: p(s) = \int t^s (1-t)^{d-|T|-s}\, \mathrm{d}\mu(t)
        """
        degree = n_players - size
        nodes, weights = self.rule(size, order, degree=degree)
        s = np.arange(degree + 1)[:, None]
        return (weights * nodes**s * (1.0 - nodes) ** (degree - s)).sum(axis=1)

    def is_efficient(self, order: int) -> bool:
        """Say whether the values of one request of ``order`` sum to v(D) - v(empty)."""
        return self.efficient and (order == 1 or self.cumulative)


def _check_measure(name: str, measure: Measure) -> None:
    if not hasattr(measure, "rule"):
        raise InputTypeError(
            message(
                f"The measure of semivalue {name!r} must have a rule(degree) method",
                f"Got {type(measure).__name__}",
                "Use semivalues.Atom(t), Beta(p, q), Nodes(nodes, weights), Density(function) or Moments(moment)",
            )
        )
    nodes, weights = measure.rule(7)
    if not (np.isclose(weights.sum(), 1.0, atol=1e-10) and np.all((nodes >= 0) & (nodes <= 1))):
        raise InputError(
            message(f"The measure of semivalue {name!r} must have mass 1 on [0, 1]", f"Got mass {weights.sum()!r}")
        )
    finer_nodes, finer_weights = measure.rule(9)
    for r in range(8):
        coarse, fine = weights @ nodes**r, finer_weights @ finer_nodes**r
        if not np.isclose(coarse, fine, rtol=1e-8, atol=1e-10):
            raise InputError(
                message(
                    f"The rule of semivalue {name!r} must be exact to the degree asked",
                    f"Moment {r}: {coarse!r} against {fine!r}",
                )
            )


def beta(alpha: float, beta: float) -> Semivalue:
    r"""Return the Beta(alpha, beta) semivalue of Kwon & Zou (2022), in the paper's convention.

    .. math:: p(s) = B(s + \beta, d - 1 - s + \alpha) / B(\alpha, \beta)

    A large ``alpha`` stresses small coalitions: Beta(16, 1) puts weight 0.76 on the empty one at d = 6.

    Parameters
    ----------
    alpha, beta : float > 0

    Returns
    -------
    semivalue : Semivalue
        Shapley for alpha = beta = 1.

    Raises
    ------
    InputError, InputTypeError
        If a parameter is not a finite number > 0.

    Examples
    --------
    >>> beta(16, 1).weights(6)[0].round(2)
    np.float64(0.76)
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not isinstance(value, (int, float, np.number)):
            raise InputTypeError(message(f"The '{name}' parameter must be a float > 0", f"Got {value!r}"))
    return Semivalue(f"beta({alpha:g}, {beta:g})", Beta(p=beta, q=alpha), efficient=alpha == beta == 1)


def _taylor(size: int, order: int) -> Measure:
    return Beta(1, order) if size == order else Atom(0.0)


def _faithful(size: int, order: int) -> Measure:
    return Beta(order, order) if size == order else Moments(functools.partial(_faithful_moment, size, order))


def _faithful_moment(s: int, k: int, r: int) -> Fraction:
    if r <= k - s:
        return Fraction(int(r == 0))
    tau = s + r
    sign = (-1) ** (k - s)
    return sign * Fraction(s, k + s) * math.comb(k, s) * Fraction(math.comb(tau - 1, k), math.comb(tau + k - 1, k + s))


def _aggregated(size: int, order: int) -> Measure:
    return Beta(1, 1) if size == order else Moments(functools.partial(_aggregated_moment, size, order))


def _aggregated_moment(s: int, k: int, r: int) -> Fraction:
    tau = s + r
    terms = (math.comb(tau - s, u - s) * bernoulli(u - s) / (tau - u + 1) for u in range(s, min(k, tau) + 1))
    return sum(terms, Fraction(0))


@functools.lru_cache(maxsize=256)
def bernoulli(n: int) -> Fraction:
    """Return the Bernoulli number B_n with B_1 = -1/2, exactly."""
    if n == 0:
        return Fraction(1)
    return -sum((math.comb(n + 1, k) * bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)


_TABLE: dict[str, Semivalue] = {
    value.name: value
    for value in (
        Semivalue("shapley", Beta(1, 1), efficient=True),
        Semivalue("banzhaf", Atom(0.5)),
        Semivalue("leave-one-out", Atom(1.0)),
        Semivalue("moebius", Atom(0.0)),
        Semivalue("sii", Beta(1, 1), efficient=True),
        Semivalue("banzhaf-interaction", Atom(0.5)),
        Semivalue("chaining", lambda size, order: Beta(size, 1), efficient=True),
        Semivalue("stii", _taylor, efficient=True, cumulative=True),
        Semivalue("fsii", _faithful, efficient=True, cumulative=True),
        Semivalue("k-sii", _aggregated, efficient=True, cumulative=True),
    )
}


def available() -> tuple[str, ...]:
    """Return the names that ``index=`` understands.

    >>> available()[:3]
    ('shapley', 'banzhaf', 'leave-one-out')
    """
    return tuple(_TABLE)


def find(index: str | Semivalue) -> Semivalue:
    """Return the semivalue behind a name, or the object itself.

    Parameters
    ----------
    index : str or Semivalue
        One of :func:`available`; case, spaces around it and ``_`` for ``-`` do not matter.

    Raises
    ------
    UnknownNameError
        For unknown names, with the closest known one.

    Examples
    --------
    >>> find("K_SII").name
    'k-sii'
    """
    if isinstance(index, Semivalue):
        return index
    if not isinstance(index, str):
        raise InputTypeError(message("`index` must be a name or a Semivalue", f"Got {type(index).__name__}"))
    try:
        return _TABLE[index.strip().lower().replace("_", "-")]
    except KeyError:
        raise UnknownNameError(message(f"Unknown index {index!r}", do=did_you_mean(index, _TABLE))) from None


def aggregate(interactions: dict[tuple[int, ...], np.ndarray], order: int) -> dict[tuple[int, ...], np.ndarray]:
    r"""Aggregate Shapley interaction indices of sizes 1..order into k-SII.

    .. math:: \phi_T = \sum_{U \supseteq T, |U| \le k} B_{|U|-|T|}\, \mathrm{SII}_U

    The rule of ``"k-sii"`` needs no supersets; this sum is its independent twin (Bordt & von Luxburg 2023).
    """
    result = {}
    for players in interactions:
        chosen = set(players)
        total = np.zeros_like(np.asarray(interactions[players], float))
        for other, value in interactions.items():
            if len(other) <= order and chosen.issubset(other):
                total = total + float(bernoulli(len(other) - len(players))) * np.asarray(value)
        result[players] = total
    return result
