"""A semivalue: a name for a measure per set size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exactshap.errors import InputError, InputTypeError, message
from exactshap.semivalues._measures import Measure, Rule

__all__ = ["Semivalue"]

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
    mass : float, default=1.0
        Of the measure of single players: 1 for a mean of marginals, 1/2 for coefficients of Walsh characters.

    Examples
    --------
    >>> from exactshap.semivalues import Atom
    >>> nodes, weights = Semivalue("optimist", Atom(0.9)).rule(degree=3)
    >>> nodes, weights
    (array([0.9]), array([1.]))
    """

    name: str
    measure: Measure | MeasureOfSize
    efficient: bool = False
    cumulative: bool = False
    mass: float = 1.0

    def __post_init__(self) -> None:
        _check_measure(self.name, self.of_size(1, 1), self.mass)

    def __hash__(self) -> int:
        # Equal ones have equal names; the measure's own hash costs more than a look-up should
        return hash(self.name)

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

        It is of shape (n_players - size + 1,), over coalitions of s players outside T.

        .. math:: p(s) = \int t^s (1-t)^{d-|T|-s}\, \mathrm{d}\mu(t)
        """
        degree = n_players - size
        nodes, weights = self.rule(size, order, degree=degree)
        s = np.arange(degree + 1)[:, None]
        found: np.ndarray = (weights * nodes**s * (1.0 - nodes) ** (degree - s)).sum(axis=1)
        return found

    def is_efficient(self, order: int) -> bool:
        """Return whether all values up to ``order`` sum to v(D) - v(empty)."""
        return self.efficient and (order == 1 or self.cumulative)


def _check_measure(name: str, measure: Measure, mass: float) -> None:
    if not hasattr(measure, "rule"):
        raise InputTypeError(
            message(
                f"The measure of semivalue {name!r} must have a rule(degree) method",
                f"Got {type(measure).__name__}",
                "Use semivalues.Atom(t), Beta(p, q), Nodes(nodes, weights), Density(function) or Moments(moment)",
            )
        )
    nodes, weights = measure.rule(7)
    if not (np.isclose(weights.sum(), mass, atol=1e-10) and np.all((nodes >= 0) & (nodes <= 1))):
        raise InputError(
            message(f"The measure of semivalue {name!r} must have mass {mass:g} on [0, 1]", f"Got mass {weights.sum()!r}")
        )
    finer_nodes, finer_weights = measure.rule(9)
    for r in range(8):
        coarse, fine = weights @ nodes**r, finer_weights @ finer_nodes**r
        if not np.isclose(coarse, fine, rtol=1e-8, atol=1e-10):
            raise InputError(
                message(
                    f"The rule of semivalue {name!r} must be exact to the degree of the call",
                    f"Moment {r}: {coarse!r} against {fine!r}",
                )
            )
