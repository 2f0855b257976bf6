"""Expand the formula of a fitted kernel machine into product terms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from exactshap._runtime.slices import slices
from exactshap._runtime.types import TableLike
from exactshap.kernels import Component, Kernel, ScaledMixture


@dataclass(frozen=True, eq=False)
class ExpansionPart:
    """Hold one component of the kernel over some training rows: f(x) gains sum_l coefficients[l] prod_j k_j(x_j, points[j, l]).

    ``points (n_columns, n_terms)``, ``coefficients (n_outputs, n_terms)`` with the amplitude folded in.
    """

    component: Component
    coefficients: np.ndarray
    points: np.ndarray
    magnitude: float  # sum of the |coefficients| before any summation over training rows

    def factors(self, X: np.ndarray) -> np.ndarray:
        """Return the one-column factors (n_rows, n_columns, n_terms)."""
        return self.component.factors(X, self.points)


@dataclass(frozen=True, eq=False)
class Monomials:
    """Hold all monomial components: ``powers (n_columns, n_terms)``, ``coefficients (n_outputs, n_terms)``."""

    powers: np.ndarray
    coefficients: np.ndarray
    magnitudes: np.ndarray

    @classmethod
    def join(cls, parts: Sequence[Monomials]) -> Monomials | None:
        """Return the monomials of all parts; None if there are none."""
        powers, coefficients = ([getattr(part, name) for part in parts] for name in ("powers", "coefficients"))
        heights = [part.magnitudes for part in parts]
        return cls(np.concatenate(powers, 1), np.concatenate(coefficients, 1), np.concatenate(heights)) if parts else None

    def factors(self, X: np.ndarray) -> np.ndarray:
        return X[:, :, None] ** self.powers


@dataclass(frozen=True, eq=False)
class RadialTerms:
    """Hold all Gaussians of a radial kernel over some training rows: f(x) gains sum_l coefficients[l] k(x, points[:, l])."""

    kernel: ScaledMixture
    coefficients: np.ndarray
    points: np.ndarray

    def cut(self, width: int) -> Iterator[RadialTerms]:
        """Yield pieces of at most ``width`` terms."""
        for terms in slices(self.points.shape[1], width):
            yield RadialTerms(self.kernel, self.coefficients[:, terms], np.ascontiguousarray(self.points[:, terms]))


@dataclass(frozen=True, eq=False)
class Expansion:
    r"""Hold a fitted machine :math:`f(x) = b + \sum_p s_p \sum_l \alpha_l \prod_j k_{pj}(x_j, X_{lj})`."""

    parts: tuple[ExpansionPart, ...]
    monomials: Monomials | None
    intercept: np.ndarray  # (n_outputs,)
    n_columns: int
    # whether the model's own kernel computes distances as |x|^2 + |y|^2 - 2 x.y, which loses digits far from the origin
    cancels: bool = False

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @property
    def blocks(self) -> tuple[ExpansionPart | Monomials, ...]:
        return self.parts + ((self.monomials,) if self.monomials is not None else ())

    @cached_property
    def magnitude(self) -> float:
        """Return the least magnitude that rounding is relative to: that of all parts and of the intercept."""
        return float(sum(part.magnitude for part in self.parts) + np.abs(self.intercept).max(initial=0.0))

    def lost(self, precision: float) -> float:
        """Return what a kernel between equal rows is off by, at most, in units of the kernel.

        Their squared distance is rounding of the squared norms, so that a Gaussian is off by 1 - exp(-eps |x|^2); of a mixture of
        Gaussians, the largest of which see any distance, by the mean of that.
        """
        if not self.cancels:
            return 0.0
        lost, magnitudes = defaultdict[int, float](float), defaultdict[int, float](float)
        for part in self.parts:
            rate = part.component.squared
            if rate is None:
                continue
            kernel = id(part.points) if part.component.relative_error > 0.0 else id(part)
            norm = float((rate[:, None] * part.points**2).sum(axis=0).max(initial=0.0))
            lost[kernel] += part.magnitude * min(precision * norm, 1.0)
            magnitudes[kernel] += part.magnitude
        return max((lost[kernel] / size for kernel, size in magnitudes.items() if size > 0.0), default=0.0)

    @cached_property
    def is_mixture(self) -> bool:
        """Say whether radial kernels are included as mixtures of Gaussians."""
        return any(part.component.relative_error > 0.0 for part in self.parts)

    @cached_property
    def radial(self) -> tuple[RadialTerms, ...]:
        """Return the radial kernels that only constants multiply. The weights of their Gaussians sum to 1."""
        members: dict[tuple[int, int], list[ExpansionPart]] = {}
        for part in self.parts:
            if part.component.member_of is not None:
                members.setdefault((id(part.component.member_of), id(part.points)), []).append(part)
        return tuple(
            RadialTerms(some[0].component.member_of, np.sum([part.coefficients for part in some], axis=0), some[0].points)  # type: ignore[arg-type]
            for some in members.values()
        )

    @cached_property
    def without_radial(self) -> Expansion:
        """Return the expansion without :attr:`radial`."""
        return replace(self, parts=tuple(part for part in self.parts if part.component.member_of is None))

    def outputs(self, chosen: Sequence[int]) -> Expansion:
        """Return the expansion of some outputs."""
        rows = list(chosen)
        monomials = self.monomials and replace(self.monomials, coefficients=self.monomials.coefficients[rows])
        parts = tuple(replace(part, coefficients=np.ascontiguousarray(part.coefficients[rows])) for part in self.parts)
        return replace(self, parts=parts, monomials=monomials, intercept=self.intercept[rows])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f(x) (n_rows, n_outputs) by the formula above."""
        total = np.zeros((len(X), self.n_outputs)) + self.intercept
        for block in self.blocks:
            total += block.factors(X).prod(axis=1) @ block.coefficients.T
        return total


def expand(
    kernel: Kernel,
    points: TableLike,
    coefficients: ArrayLike,
    intercept: ArrayLike = 0.0,
    *,
    magnitudes: np.ndarray | None = None,
    cancels: bool = False,
) -> Expansion:
    """Expand a kernel machine into its product terms: points (n_training, n_columns), coefficients (n_training, n_outputs).

    ``magnitudes`` are what the coefficients are sums of, in magnitudes, where the model adds these up row by row and does not know the sums.
    """
    # Models that were fitted on sparse rows keep them so.
    points = np.asarray(points.toarray() if scipy.sparse.issparse(points) else points, float)
    coefficients = np.asarray(coefficients, float)
    magnitudes = np.abs(coefficients) if magnitudes is None else magnitudes
    columns = np.ascontiguousarray(points.T)
    intercept = np.broadcast_to(np.asarray(intercept, float), (coefficients.shape[1],)).copy()
    parts, powers, sums, heights = [], [], [], []
    for component in kernel.expand(points.shape[1]):
        if component.is_monomial:
            psi = component.monomial(points).prod(axis=1)
            powers.append(np.zeros(points.shape[1], int) if component.powers is None else component.powers)
            sums.append(component.amplitude * (psi @ coefficients))
            heights.append(abs(component.amplitude) * (np.abs(psi) @ magnitudes).max(initial=0.0))
        else:
            scaled = np.ascontiguousarray((component.amplitude * coefficients).T)
            height = abs(component.amplitude) * float(magnitudes.sum(axis=0).max(initial=0.0))
            parts.append(ExpansionPart(component, scaled, columns, height))
    monomials = Monomials(np.stack(powers, axis=1), np.stack(sums, axis=1), np.array(heights)) if powers else None
    return Expansion(tuple(parts), monomials, intercept, points.shape[1], cancels)


def merge(expansions: Sequence[Expansion]) -> Expansion:
    """Stack machines into one machine with all their outputs."""
    n_outputs = sum(e.n_outputs for e in expansions)
    parts: list[ExpansionPart] = []
    monomials: list[Monomials] = []
    offset = 0
    for e in expansions:
        rows = slice(offset, offset + e.n_outputs)
        for part in e.parts:
            coefficients = np.zeros((n_outputs, part.coefficients.shape[1]))
            coefficients[rows] = part.coefficients
            parts.append(replace(part, coefficients=coefficients))
        if e.monomials is not None:
            block = np.zeros((n_outputs, e.monomials.coefficients.shape[1]))
            block[rows] = e.monomials.coefficients
            monomials.append(replace(e.monomials, coefficients=block))
        offset += e.n_outputs
    intercept, cancels = np.concatenate([e.intercept for e in expansions]), any(e.cancels for e in expansions)
    return Expansion(tuple(parts), Monomials.join(monomials), intercept, expansions[0].n_columns, cancels)


def cut_terms(block: ExpansionPart | Monomials, width: int) -> Iterator[ExpansionPart | Monomials]:
    """Yield a block of terms in pieces of at most ``width`` terms."""
    n_terms = block.coefficients.shape[1]
    if n_terms <= width:
        yield block
        return
    for terms in slices(n_terms, width):
        coefficients = np.ascontiguousarray(block.coefficients[:, terms])
        if isinstance(block, Monomials):
            yield Monomials(block.powers[:, terms], coefficients, block.magnitudes[terms])
        else:
            yield replace(block, coefficients=coefficients, points=np.ascontiguousarray(block.points[:, terms]))
