"""Read product kernels over columns of mixed kinds: one kernel and bandwidth each."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.types import PerColumn, RandomState
from exactshap.decompose.pairwise._columns import encode_columns, lay_out, pooled_names
from exactshap.decompose.pairwise._kernels import FactorArrays, add_all_distances
from exactshap.errors import (
    ExplanationWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
    UnsupportedStructureError,
    did_you_mean,
    message,
    warn,
)
from exactshap.frames import Table
from exactshap.frames.stored import StoredTable
from exactshap.kernels import Radial
from exactshap.solvers.product import shorten_mixture

# The numbers that the compiled kernels know
KERNELS = {"rbf": 0, "laplacian": 1, "cauchy": 2, "categorical": 3}
# As a fraction of the bandwidth: where rows of a column differ by less, its factors are above exp(-UNSEEN^2 / 2).
UNSEEN = 0.01
# Rows: from here on, a column of categories that few rows share is named.
MIN_ROWS = 20
# distances and bandwidths up to here, and down to its reciprocal, have squares that neither overflow nor vanish
SQUARABLE = 2.0**500
# Rows: the median distance is exact up to here, and that of a seeded subsample of this size beyond.
MEDIAN_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Factors:
    """Hold the one-column factors of a product kernel, in the order of the players.

    ``columns (n_columns, n_rows)`` are numbers or category codes, ``kernels`` and ``bandwidths`` one per column, ``starts``
    (n_players + 1,) the columns of each player, ``names`` one per player. With ``radial`` all "rbf" columns together have one factor,
    that function of their distance.
    """

    columns: np.ndarray
    column_names: tuple[str, ...]
    kernels: tuple[str, ...]
    bandwidths: np.ndarray
    starts: np.ndarray
    names: tuple[str, ...]
    radial: Radial | None = None

    @functools.cached_property
    def gaussians(self) -> tuple[tuple[float, Factors], ...]:
        """Return weights and product kernels that add up to this kernel; a product kernel gives itself."""
        if self.radial is None:
            return ((1.0, self),)
        is_radial = np.array([kind == "rbf" for kind in self.kernels])
        # No distance is larger than the one between the ends of all columns: Gaussians are kept that matter up to there.
        ranges = np.ptp(self.columns[is_radial], axis=1) / self.bandwidths[is_radial]
        mixture = self.radial.mixture()
        rates, weights, _ = shorten_mixture(mixture.rates, mixture.weights, float((ranges**2).sum()))
        widths = [
            # exp(-rate u^2 / s^2) is a Gaussian of bandwidth s / sqrt(2 rate).
            np.where(is_radial, self.bandwidths / np.sqrt(2.0 * max(rate, 1e-300)), self.bandwidths)
            for rate in rates.tolist()
        ]
        parts = (replace(self, bandwidths=width, radial=None) for width in widths)
        return tuple(zip(weights.tolist(), parts, strict=True))

    @property
    def error(self) -> float:
        """Bound the error of the sum of all :attr:`gaussians`."""
        return 0.0 if self.radial is None else self.radial.mixture().error + 1e-16

    @property
    def n_rows(self) -> int:
        return self.columns.shape[1]

    @property
    def n_players(self) -> int:
        return len(self.names)

    @functools.cached_property
    def arrays(self) -> Handle:
        """Return the arrays that the compiled kernels read."""
        self._refuse_radial()
        kinds = np.array([KERNELS[name] for name in self.kernels], np.int64)
        return Handle(FactorArrays(np.ascontiguousarray(self.columns), kinds, self.scales, self.starts))

    @property
    def scales(self) -> np.ndarray:
        """Return what multiplies a difference (n_columns,): 1 / sigma, for the Gaussian 1 / (sqrt(2) sigma)."""
        gaussian = np.array([name == "rbf" for name in self.kernels])
        return np.where(gaussian, np.sqrt(0.5), 1.0) / self.bandwidths

    def _refuse_radial(self) -> None:
        """Refuse to take a function of one distance for a product over the columns."""
        if self.radial is not None:
            raise UnsupportedStructureError(
                "This statistic needs a kernel that is a product over the columns",
                f"Got {self.radial}",
                f"Pass a name: {', '.join(KERNELS)}",
            )

    def take(self, rows: np.ndarray | slice) -> Factors:
        """Return some rows, with the same kernels and bandwidths; a slice of all rows is no copy."""
        return replace(self, columns=np.ascontiguousarray(self.columns[:, rows]))

    def kernel_matrices(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the kernel matrix of each player, of shape (n_players, n_rows, n_others): the reference implementation."""
        self._refuse_radial()
        out = np.ones((self.n_players, len(rows), len(others)))
        for j, (start, stop) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            for k in range(start, stop):
                u = np.abs(self.columns[k, rows][:, None] - self.columns[k, others][None, :])
                out[j] *= _kernel(self.kernels[k], u, self.bandwidths[k])
        return out

    def describe(self) -> dict[str, Any]:
        """Return the kernel and the bandwidth of each column, by name."""
        names = [str(self.radial) if self.radial and name == "rbf" else name for name in self.kernels]
        kernels = dict(zip(self.column_names, names, strict=True))
        sigmas = {
            n: float(s) for n, s, k in zip(self.column_names, self.bandwidths, self.kernels, strict=True) if k != "categorical"
        }
        return {"kernel": kernels, "bandwidth": sigmas}


def _kernel(name: str, u: np.ndarray, sigma: float) -> np.ndarray:
    if name == "rbf":
        return np.exp(-(u**2) / (2.0 * sigma**2))
    if name == "laplacian":
        return np.exp(-u / sigma)
    return 1.0 / (1.0 + (u / sigma) ** 2) if name == "cauchy" else (u == 0).astype(float)


def read_factors(
    tables: Sequence[Table | StoredTable],
    owners: Sequence[str],
    names: tuple[str, ...],
    *,
    kernel: PerColumn,
    bandwidth: PerColumn,
    groups: Mapping[str, Any] | None,
    random_state: RandomState,
    what: str = "",
) -> Factors:
    """Read pooled tables: encode the columns, choose kernels and bandwidths, put the columns in the order of the players."""
    from exactshap.readers import Request, players_of

    radial = kernel if isinstance(kernel, Radial) else None
    if radial is not None and np.any(np.asarray(radial.bandwidth) != 1.0):
        raise InputError(
            f"Bandwidths of `kernel{what}` are those of `bandwidth{what}`", f"Got {radial}", f"Pass bandwidth{what}="
        )
    wanted = _per_column(None if radial else kernel, names, f"kernel{what}", default=None)
    for name in wanted:
        # A list or a set in the place of a name cannot be looked up.
        if name is not None and (not isinstance(name, str) or name not in KERNELS):
            raise UnknownNameError(f"Unknown kernel {name!r} in `kernel{what}`", do=did_you_mean(str(name), KERNELS))
    # A kernel for all columns leaves text categorical; a kernel for a single column is taken literally.
    explicit = isinstance(kernel, (Mapping, list, tuple))
    categorical = [name == "categorical" if name and (explicit or name == "categorical") else None for name in wanted]
    columns, is_category = encode_columns(tables, owners, categorical)
    _warn_of_identifiers(columns, [j for j, text in enumerate(is_category) if text and categorical[j] is None], names)
    kernels = tuple("categorical" if text else name or "rbf" for name, text in zip(wanted, is_category, strict=True))
    players, player_names = players_of(Request(groups=groups), names)
    # one factor more, of the same player, says whether a number is missing: a level of its own, as far as can be from every number
    gaps = [bool(np.isnan(column).any()) for column in columns]
    members = [
        [place for j in player for place in ([(j, False), (j, True)] if gaps[j] else [(j, False)])] for player in players
    ]
    order = [place for player in members for place in player]
    columns = lay_out(columns, order)
    column_names = tuple(f"{names[j]} is missing" if says_missing else names[j] for j, says_missing in order)
    kernels = tuple("categorical" if says_missing else kernels[j] for j, says_missing in order)
    sigmas = _per_column(bandwidth, names, f"bandwidth{what}", default="median")
    chosen = [sigmas[j] for j, _ in order]
    return Factors(
        columns=columns,
        column_names=column_names,
        kernels=kernels,
        bandwidths=_bandwidths(chosen, column_names, columns, kernels, random_state, f"bandwidth{what}"),
        starts=np.cumsum([0, *map(len, members)]).astype(np.int64),
        names=player_names,
        radial=radial,
    )


def _warn_of_identifiers(columns: np.ndarray, texts: list[int], names: tuple[str, ...]) -> None:
    """Warn of categories that few rows share: the factor is 0 between most rows, and with it the kernel of all columns."""
    n_rows = columns.shape[1]
    for j in texts:
        n_categories = int(columns[j].max(initial=-1.0)) + 1
        if n_rows >= MIN_ROWS and 4 * n_categories > n_rows:
            what = f"Few rows share a category of {names[j]!r}, which hides what the other columns hold"
            warn(message(what, f"{n_categories} categories in {n_rows} rows", "Leave it out"), ExplanationWarning)


def read_side(
    table: Table | StoredTable, name: str, kernel: PerColumn, bandwidth: PerColumn, groups: Any, random_state: RandomState
) -> Factors:
    """Read one of several tables of the same rows, with settings of its own."""
    names, what = pooled_names((table,), (name,), name.lower()), f"_{name.lower()}"
    return read_factors(
        (table,), (name,), names, kernel=kernel, bandwidth=bandwidth, groups=groups, random_state=random_state, what=what
    )


def _per_column(setting: PerColumn, names: tuple[str, ...], what: str, default: Any) -> list[Any]:
    """Return one setting per column, from one value, a sequence or a mapping."""
    if isinstance(setting, Mapping):
        unknown = [key for key in setting if key not in names and not (isinstance(key, int) and 0 <= key < len(names))]
        if unknown:
            raise UnknownNameError(f"`{what}` names an unknown column {unknown[0]!r}", do=did_you_mean(unknown[0], names))
        return [setting.get(name, setting.get(j, default)) for j, name in enumerate(names)]
    if isinstance(setting, (list, tuple, np.ndarray)):
        if len(setting) != len(names):
            raise InputError(f"`{what}` must hold one entry for each of the {len(names)} columns", f"Got {len(setting)}")
        return list(setting)
    return [setting] * len(names)


def _bandwidths(
    wanted: list[Any],
    names: tuple[str, ...],
    columns: np.ndarray,
    kernels: tuple[str, ...],
    random_state: RandomState,
    what: str,
) -> np.ndarray:
    medians = _Medians(columns, [k for k, kernel in enumerate(kernels) if kernel != "categorical"], random_state)
    sigmas = np.ones(len(names))
    for j, value in enumerate(wanted):
        if kernels[j] == "categorical":
            continue
        if isinstance(value, str):
            if value not in ("median", "column-median"):
                raise UnknownNameError(f"Unknown `{what}` {value!r}", do=did_you_mean(value, ("median", "column-median")))
            # A product of Laplacian kernels is a function of the city-block distance, of Gaussians of the Euclidean one.
            metric = "cityblock" if kernels[j] == "laplacian" else "euclidean"
            sigmas[j] = medians.of_all(metric) if value == "median" else medians.of_column(j, metric)
        else:
            sigmas[j] = _checked(value, names[j], what, squared=kernels[j] == "rbf")
    _warn_of_unseen(
        [j for j, value in enumerate(wanted) if value == "median" and kernels[j] != "categorical"], sigmas, names, medians, what
    )
    return sigmas


def _warn_of_unseen(common: list[int], sigmas: np.ndarray, names: tuple[str, ...], medians: _Medians, what: str) -> None:
    """Warn of columns that a bandwidth of all columns together cannot see: their kernel factor is 1 whatever they hold."""
    unseen = [j for j in common if medians.varies(j) and medians.own(j) < UNSEEN * sigmas[j]]
    if not unseen:
        return
    first = unseen[0]
    warn(
        message(
            f"{len(unseen)} of {len(names)} columns vary too little for the common bandwidth to count",
            f"Rows differ by {medians.own(first):.3g} in {names[first]!r} (median); {what}='median' is {sigmas[first]:.3g}",
            f"Pass {what}='column-median', or standardise the columns",
        ),
        ExplanationWarning,
    )


def _checked(value: Any, name: str, what: str, *, squared: bool) -> float:
    try:
        sigma = float(value)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"The {what!r} parameter must be a float > 0, 'median' or 'column-median'", f"Got {value!r} for column {name!r}"
        ) from None
    positive = bool(np.isfinite(sigma) and sigma > 0)
    if not positive or (squared and not 1.0 / SQUARABLE < sigma < SQUARABLE):
        wanted = "a float with a square that neither overflows nor vanishes" if positive else "a finite float > 0"
        raise InputError(
            f"The {what!r} parameter must be {wanted}",
            f"Got {value!r} for column {name!r}",
            "Pass a positive number, 'median' or 'column-median'",
        )
    return sigma


class _Medians:
    r"""Choose bandwidths by the median heuristic, on at most :data:`MEDIAN_ROWS` rows.

    "median": the median distance of two rows over all numeric columns together (Euclidean; city-block for Laplacian
    columns): one number for all columns, as in the paper. "column-median": the median distance of the column alone, times
    sqrt(d) (d for Laplacian columns) for d numeric columns, so that the kernel of two typical rows is as large as with
    "median" but every column counts whatever its unit. Where more than half of the distances are 0, the median of the
    others; 1 where all are 0 (the kernel is then 1 and the share exactly 0).
    """

    def __init__(self, columns: np.ndarray, numeric: list[int], random_state: RandomState) -> None:
        self._columns, self._numeric, self._random_state = columns, numeric, random_state
        self._known: dict[str, float] = {}

    @functools.cached_property
    def _sample(self) -> np.ndarray:
        if self._columns.shape[1] <= MEDIAN_ROWS:
            return self._columns
        rows = np.random.default_rng(self._random_state).choice(self._columns.shape[1], MEDIAN_ROWS, replace=False)
        return self._columns[:, np.sort(rows)]

    def of_all(self, metric: str) -> float:
        if metric not in self._known:
            self._known[metric] = self._distance(self._numeric, metric)
        return self._known[metric]

    def of_column(self, j: int, metric: str) -> float:
        d = len(self._numeric)
        return (d if metric == "cityblock" else math.sqrt(d)) * self._distance([j], metric)

    def _distance(self, columns: list[int], metric: str) -> float:
        """Return the median distance; refuse columns with squared distances that overflow, or all vanish."""
        with np.errstate(over="ignore"):
            width = float(np.ptp(self._columns[columns], axis=1).max())
        if metric == "euclidean" and width and not 1.0 / SQUARABLE < width < SQUARABLE:
            widest = f"The widest column spans {width:.3g}"
            do = "Divide the columns by their standard deviations"
            raise InputError("The squares of the distances of rows overflow, or all vanish", widest, do)
        return _median_distance(self._sample[columns], metric)

    def varies(self, j: int) -> bool:
        return bool(np.ptp(self._columns[j]) > 0)

    def own(self, j: int) -> float:
        """Return a column's median distance, estimated from at most 200 rows."""
        return _median_distance(self._sample[[j], :: -(-self._sample.shape[1] // 200)], "euclidean")


def _median_distance(columns: np.ndarray, metric: str) -> float:
    squared, n = metric == "euclidean", columns.shape[1]
    distances = np.zeros(n * (n - 1) // 2)
    add_all_distances(np.ascontiguousarray(columns, dtype=float), np.ones(len(columns)), squared, distances)
    # Many ties make the median 0, which is no bandwidth: then the median of rows that differ.
    return _median(distances, squared) or _median(distances[distances > 0], squared) or 1.0


def _median(numbers: np.ndarray, squared: bool) -> float:
    """Return the median, or that of the square roots; NumPy's own looks for NaN as well and takes ten times as long."""
    if not len(numbers):
        return 0.0
    middle, root = len(numbers) // 2, math.sqrt if squared else float
    numbers.partition(middle)
    # After a partition the lower middle is the largest of the first half.
    return root(numbers[middle]) if len(numbers) % 2 else 0.5 * (root(numbers[:middle].max()) + root(numbers[middle]))
