"""Define distributions over subsets of columns: the interactions of a weighting."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap.errors import BudgetError, InputError

# Largest number of subsets: more than terms can be drawn.
MAX_SUBSETS = 100_000


class SubsetDistribution(ABC):
    """Define a distribution over subsets of columns. Subclass it to add prior knowledge."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n_features: int, n: int) -> list[tuple[int, ...]]:
        """Return ``n`` subsets, each a sorted tuple of columns."""

    @abstractmethod
    def probability(self, subset: tuple[int, ...], n_features: int) -> float:
        """Return the probability of one subset."""

    @abstractmethod
    def support(self, n_features: int) -> Iterator[tuple[int, ...]]:
        """Yield every subset of positive probability."""

    def masses(self, n_features: int, power: int = 1) -> dict[int, float]:
        """Return the sum of powers of probabilities over the subsets of each size."""
        masses: dict[int, float] = {}
        for subset in self.support(n_features):
            masses[len(subset)] = masses.get(len(subset), 0.0) + self.probability(subset, n_features) ** power
        return masses

    def check(self, n_features: int) -> None:
        """Refuse a distribution if its first subsets do not fit ``n_features`` columns."""
        first = itertools.islice(self.support(n_features), 1000)
        bad = [subset for subset in first if not all(0 <= j < n_features for j in subset)]
        if bad:
            raise InputError(f"Subsets must name columns between 0 and {n_features - 1}", f"Got {bad[0]}")

    def draw(self, rng: np.random.Generator, n_features: int, n: int) -> list[tuple[int, ...]]:
        """Draw ``n`` subsets by :meth:`sample`, sorted and checked."""
        drawn = [tuple(sorted(int(j) for j in subset)) for subset in self.sample(rng, n_features, n)]
        if len(drawn) != n:
            raise InputError(f"{type(self).__name__}.sample must return {n} subsets", f"Got {len(drawn)}")
        for subset in dict.fromkeys(drawn):
            if not subset or len(set(subset)) != len(subset) or not 0 <= subset[0] <= subset[-1] < n_features:
                wanted = f"{type(self).__name__}.sample must return distinct columns between 0 and {n_features - 1}"
                raise InputError(wanted, f"Got {subset}")
        return drawn

    def mass_of(self, subset: tuple[int, ...], n_features: int) -> float:
        probability = float(self.probability(subset, n_features))
        if not 0.0 < probability <= 1.0 + 1e-9:
            wanted = f"{type(self).__name__}.probability of {subset}, which it drew, must be in (0, 1]"
            raise InputError(wanted, f"Got {probability}")
        return probability


@dataclass(frozen=True)
class Full(SubsetDistribution):
    """Draw all columns always, for a weighting without structure."""

    def sample(self, rng: np.random.Generator, n_features: int, n: int) -> list[tuple[int, ...]]:
        return [tuple(range(n_features))] * n

    def probability(self, subset: tuple[int, ...], n_features: int) -> float:
        return 1.0

    def support(self, n_features: int) -> Iterator[tuple[int, ...]]:
        yield tuple(range(n_features))


@dataclass(frozen=True)
class UniformSubsets(SubsetDistribution):
    """Draw a size uniformly, then a subset of that size. With ``sequence`` its columns are adjacent."""

    sizes: tuple[int, ...]
    sequence: bool = False

    def check(self, n_features: int) -> None:
        bad = [k for k in self.sizes if not 1 <= k <= n_features]
        if bad or not self.sizes:
            raise InputError(
                f"Subset sizes must be between 1 and the number of features, {n_features}", f"Got {list(self.sizes)}"
            )

    def sample(self, rng: np.random.Generator, n_features: int, n: int) -> list[tuple[int, ...]]:
        return [self._one(rng, n_features, int(k)) for k in rng.choice(self.sizes, size=n)]

    def _one(self, rng: np.random.Generator, n_features: int, k: int) -> tuple[int, ...]:
        if self.sequence:
            start = int(rng.integers(n_features - k + 1))
            return tuple(range(start, start + k))
        return tuple(int(j) for j in np.sort(rng.choice(n_features, size=k, replace=False)))

    def _count(self, k: int, n_features: int) -> int:
        return n_features - k + 1 if self.sequence else math.comb(n_features, k)

    def probability(self, subset: tuple[int, ...], n_features: int) -> float:
        return 1.0 / (len(self.sizes) * self._count(len(subset), n_features))

    def support(self, n_features: int) -> Iterator[tuple[int, ...]]:
        for k in self.sizes:
            if self.sequence:
                yield from (tuple(range(start, start + k)) for start in range(n_features - k + 1))
            else:
                yield from itertools.combinations(range(n_features), k)

    def masses(self, n_features: int, power: int = 1) -> dict[int, float]:
        """Return c / (s c)^power for each of the s sizes. Its c subsets have equal probability 1 / (s c)."""
        return {k: 1.0 / (len(self.sizes) ** power * self._count(k, n_features) ** (power - 1)) for k in self.sizes}


@dataclass(frozen=True)
class GivenSubsets(SubsetDistribution):
    """Draw from the user's subsets, with their probabilities (equal by default)."""

    subsets: tuple[tuple[int, ...], ...]
    probabilities: tuple[float, ...] | None = None

    def check(self, n_features: int) -> None:
        for subset in self.subsets:
            if not subset or len(set(subset)) != len(subset) or not all(0 <= j < n_features for j in subset):
                raise InputError(f"Subsets must name distinct columns between 0 and {n_features - 1}", f"Got {subset}")
        weights = self._weights()
        if (
            len(weights) != len(self.subsets)
            or min(weights, default=0.0) <= 0
            or not math.isclose(sum(weights), 1.0, abs_tol=1e-9)
        ):
            raise InputError("Subset probabilities must be positive and sum to 1, one for each subset", f"Got {weights}")

    def _weights(self) -> tuple[float, ...]:
        return tuple([1.0 / len(self.subsets)] * len(self.subsets)) if self.probabilities is None else tuple(self.probabilities)

    def sample(self, rng: np.random.Generator, n_features: int, n: int) -> list[tuple[int, ...]]:
        return [tuple(sorted(self.subsets[i])) for i in rng.choice(len(self.subsets), size=n, p=self._weights())]

    def probability(self, subset: tuple[int, ...], n_features: int) -> float:
        # A subset that is given twice has the sum of both probabilities.
        return sum(w for other, w in zip(self.subsets, self._weights(), strict=True) if tuple(sorted(other)) == subset)

    def support(self, n_features: int) -> Iterator[tuple[int, ...]]:
        yield from {tuple(sorted(subset)) for subset in self.subsets}


def subset_distribution(subsets: Any, sequence: bool) -> SubsetDistribution:
    """Return the distribution for ``subsets``: None, an int, a sequence of ints or subsets, or an object."""
    if subsets is None:
        return Full()
    if isinstance(subsets, SubsetDistribution):
        return subsets
    subsets = subsets.tolist() if isinstance(subsets, np.ndarray) else subsets
    if isinstance(subsets, (int, np.integer)) and not isinstance(subsets, bool):
        return UniformSubsets((int(subsets),), sequence)
    if isinstance(subsets, Sequence) and not isinstance(subsets, str) and len(subsets) > 0:
        if all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in subsets):
            return UniformSubsets(tuple(dict.fromkeys(int(k) for k in subsets)), sequence)
        if all(isinstance(subset, Sequence) and not isinstance(subset, str) for subset in subsets):
            return GivenSubsets(tuple(tuple(int(j) for j in subset) for subset in subsets))
    raise InputError(
        "The 'subsets' parameter of RKHSWeightingRegressor must be None, a size, a list of sizes, a list of subsets or a SubsetDistribution",
        f"Got {subsets!r}",
    )


def connected_subsets(
    size: int, *, edges: Iterable[tuple[int, int]] = (), grid: tuple[int, int] | None = None
) -> list[tuple[int, ...]]:
    """Return all connected subsets of ``size`` columns, as ``subsets=`` of RKHS weightings.

    Parameters
    ----------
    size : int
        At least 1.
    edges : iterable of pairs of int, default=()
        Which columns are neighbours.
    grid : pair of int, default=None
        Lines and columns of a picture, of which pixels next to or above each other are neighbours as well; pixel (r, c) is
        column ``r * n_columns + c``.

    Returns
    -------
    subsets : list of tuples of int
        Sorted, each once.

    Raises
    ------
    InputError, BudgetError
        If the size is below 1, or there are more than 100,000 subsets.

    Examples
    --------
    >>> connected_subsets(2, edges=[(0, 1), (1, 2), (2, 3)])
    [(0, 1), (1, 2), (2, 3)]
    >>> len(connected_subsets(3, grid=(3, 3)))  # L and I shapes in a square of nine
    22
    """
    check_count("size", size)
    neighbours: dict[int, set[int]] = {}
    for i, j in itertools.chain(edges, () if grid is None else _grid_edges(*grid)):
        neighbours.setdefault(int(i), set()).add(int(j))
        neighbours.setdefault(int(j), set()).add(int(i))
    # Sets, as a connected subset is reached in several ways.
    found = {frozenset([i]) for i in neighbours}
    for _ in range(size - 1):  # every connected set of k + 1 columns is one of k and a neighbour
        found = {one | {j} for one in found for i in one for j in neighbours[i] if j not in one}
        if len(found) > MAX_SUBSETS:
            text = f"There are more than {MAX_SUBSETS} connected subsets"
            raise BudgetError(text, f"Got size={size}", "Pass a smaller size, or draw some of them")
    return sorted(tuple(sorted(one)) for one in found)


def _grid_edges(n_rows: int, n_columns: int) -> list[tuple[int, int]]:
    """Return the horizontal and vertical neighbours of a grid of columns.

    >>> _grid_edges(2, 2)
    [(0, 1), (0, 2), (1, 3), (2, 3)]
    """
    right = [(r * n_columns + c, r * n_columns + c + 1) for r in range(n_rows) for c in range(n_columns - 1)]
    down = [(r * n_columns + c, (r + 1) * n_columns + c) for r in range(n_rows - 1) for c in range(n_columns)]
    return sorted(right + down)
