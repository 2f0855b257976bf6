"""Read columns of samples as numbers, with a kernel and bandwidth each."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exactshap._runtime.types import PerColumn, RandomState
from exactshap.decompose.pairwise._factors import KERNELS, Factors, add_all_distances
from exactshap.errors import ExplanationWarning, InputError, InputTypeError, UnknownNameError, did_you_mean, message, warn
from exactshap.frames import Table, is_missing
from exactshap.frames.stored import StoredTable, pieces_of, scratch_array
from exactshap.kernels import Radial

_TEXT_TYPES = ("String", "Categorical", "Enum", "Boolean")
# As a fraction of the bandwidth: where rows of a column differ by less, its factors are above exp(-UNSEEN^2 / 2).
UNSEEN = 0.01
# Rows: from here on, a column of categories that few rows share is named.
MIN_ROWS = 20
# distances and bandwidths up to here, and down to its reciprocal, have squares that neither overflow nor vanish
SQUARABLE = 2.0**500
# Rows: the median distance is exact up to here, and that of a seeded subsample of this size beyond.
MEDIAN_ROWS = 2000


def read_side(
    table: Table | StoredTable, name: str, kernel: PerColumn, bandwidth: PerColumn, groups: Any, random_state: RandomState
) -> Factors:
    """Read one of several tables of the same rows, with settings of its own."""
    names, what = pooled_names((table,), (name,), name.lower()), f"_{name.lower()}"
    return read_factors(
        (table,), (name,), names, kernel=kernel, bandwidth=bandwidth, groups=groups, random_state=random_state, what=what
    )


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


def pooled_names(tables: Sequence[Table | StoredTable], owners: Sequence[str], fallback: str = "x") -> tuple[str, ...]:
    """Return the common column names of some tables, or refuse them."""
    first, names = tables[0], tables[0].names
    for table, owner in zip(tables[1:], owners[1:], strict=True):
        text, do = f"`{owners[0]}` and `{owner}` must have the same columns", "Select the common columns of both"
        if table.n_columns != first.n_columns:
            raise InputError(text, f"Got {first.n_columns} and {table.n_columns}", do)
        if table.names is None or names is None or table.names == names:
            continue
        missing, extra = [n for n in names if n not in table.names], [n for n in table.names if n not in names]
        if missing or extra:
            raise InputError(text, f"Only in `{owners[0]}`: {missing}; only in `{owner}`: {extra}", do)
        text = f"`{owners[0]}` and `{owner}` must have their columns in the same order"
        raise InputError(text, f"`{owner}` holds {list(table.names)}", f"Pass {owner}[{list(names)}]")
    named = next((table.names for table in tables if table.names is not None), None)
    return named or tuple(f"{fallback}{j}" for j in range(first.n_columns))


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


def encode_columns(
    tables: Sequence[Table | StoredTable], owners: Sequence[str], categorical: Sequence[bool | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pooled columns (n_columns, n_rows) and whether each is categorical.

    ``categorical`` marks the columns; None infers it: text, categories and booleans are categorical. A missing category is one more
    category, a missing number NaN. Columns of stored tables are read a piece at a time, into a scratch file.
    """
    shape = (tables[0].n_columns, sum(table.n_rows for table in tables))
    columns = _empty(shape, on_disk=any(isinstance(table, StoredTable) for table in tables))
    is_category = np.array(
        [any(_is_text(table, j) for table in tables) if wanted is None else wanted for j, wanted in enumerate(categorical)],
        bool,
    )
    codes: list[dict[Any, int]] = [{} for _ in categorical]
    start = 0
    for table, owner in zip(tables, owners, strict=True):
        first = start
        for piece in pieces_of(table):
            stop = start + piece.n_rows
            for j, coded in enumerate(is_category):
                # Codes are shared by all tables: a category has the same number in both samples.
                columns[j, start:stop] = _codes(piece, j, codes[j]) if coded else _numbers(piece, j, owner, start - first)
            start = stop
    return columns, is_category


def _is_text(table: Table | StoredTable, j: int) -> bool:
    if isinstance(table, StoredTable):
        # A column of a file has one type, which the first piece shows.
        return any(_is_text(piece, j) for piece in itertools.islice(table.pieces(), 1))
    if table.names is not None:
        dtype = str(table.readable()[table.names[j]].dtype)
        if dtype.startswith(_TEXT_TYPES):
            return True
        # Only a column of objects may hold anything, so its cells are inspected.
        if dtype not in ("Object", "Unknown"):
            return False
    values = table.column(j)
    return values.dtype.kind in "bUS" or (values.dtype.kind == "O" and any(isinstance(v, (str, bool)) for v in values))


def _numbers(piece: Table, j: int, owner: str, first: int) -> np.ndarray:
    try:
        values = piece.select([j]).numeric(what=owner)[:, 0]
    except InputTypeError as error:  # its message is about models
        do = "Pass a number in its place, such as days since the first date, or leave the column out"
        raise InputTypeError(f"{str(error).partition('. ')[0]}, which has no distance", do=do) from None
    infinite = np.isinf(values)
    if infinite.any():
        row = first + int(np.argmax(infinite))
        raise InputError(f"Input {owner} contains infinity", f"First in {piece.label(j)}, row {row}", "Clip or drop it")
    return values


def _codes(piece: Table, j: int, numbers: dict[Any, int]) -> np.ndarray:
    """Return category numbers, in order of first appearance over all tables."""
    values = (None if is_missing(value) else value for value in piece.column(j).tolist())
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], float)


def _warn_of_identifiers(columns: np.ndarray, texts: list[int], names: tuple[str, ...]) -> None:
    """Warn of categories that few rows share: the factor is 0 between most rows, and with it the kernel of all columns."""
    n_rows = columns.shape[1]
    for j in texts:
        n_categories = int(columns[j].max(initial=-1.0)) + 1
        if n_rows >= MIN_ROWS and 4 * n_categories > n_rows:
            what = f"Few rows share a category of {names[j]!r}, which hides what the other columns hold"
            warn(message(what, f"{n_categories} categories in {n_rows} rows", "Leave it out"), ExplanationWarning)


def lay_out(columns: np.ndarray, order: Sequence[tuple[int, bool]]) -> np.ndarray:
    """Return the columns in another order: ``(j, False)`` is column j, ``(j, True)`` whether its numbers are missing.

    Missing numbers of column j are replaced by its median: with the indicator column any number would do in the kernel, and
    the median changes median distances least. Columns stay where they are, in memory or in a scratch file.
    """
    if list(order) == [(j, False) for j in range(len(columns))]:
        return columns
    out = _empty((len(order), columns.shape[1]), on_disk=isinstance(columns, np.memmap))
    for place, (j, says_missing) in enumerate(order):
        missing = np.isnan(columns[j])
        out[place] = missing if says_missing else columns[j]
        if missing.any() and not says_missing:
            known = columns[j][~missing]
            out[place, missing] = np.median(known) if known.size else 0.0
    return out


def _empty(shape: tuple[int, int], *, on_disk: bool) -> np.ndarray:
    return scratch_array(shape) if on_disk else np.empty(shape)


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
    common = [j for j, value in enumerate(wanted) if value == "median" and kernels[j] != "categorical"]
    # Columns that a bandwidth of all columns together cannot see: their kernel factor is 1 whatever they hold.
    unseen = [j for j in common if np.ptp(columns[j]) > 0 and medians.own(j) < UNSEEN * sigmas[j]]
    if unseen:
        first, text = unseen[0], f"{len(unseen)} of {len(names)} columns vary too little for the common bandwidth to count"
        got = f"Rows differ by {medians.own(first):.3g} in {names[first]!r} (median); {what}='median' is {sigmas[first]:.3g}"
        warn(message(text, got, f"Pass {what}='column-median', or standardise the columns"), ExplanationWarning)
    return sigmas


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
        self.of_all = functools.cache(functools.partial(self._distance, tuple(numeric)))

    @functools.cached_property
    def _sample(self) -> np.ndarray:
        if self._columns.shape[1] <= MEDIAN_ROWS:
            return self._columns
        rows = np.random.default_rng(self._random_state).choice(self._columns.shape[1], MEDIAN_ROWS, replace=False)
        return self._columns[:, np.sort(rows)]

    def of_column(self, j: int, metric: str) -> float:
        d = len(self._numeric)
        return (d if metric == "cityblock" else math.sqrt(d)) * self._distance((j,), metric)

    def _distance(self, chosen: tuple[int, ...], metric: str) -> float:
        """Return the median distance. Refuse columns with squared distances that overflow, or all vanish."""
        columns = list(chosen)
        with np.errstate(over="ignore"):
            width = float(np.ptp(self._columns[columns], axis=1).max())
        if metric == "euclidean" and width and not 1.0 / SQUARABLE < width < SQUARABLE:
            widest = f"The widest column spans {width:.3g}"
            do = "Divide the columns by their standard deviations"
            raise InputError("The squares of the distances of rows overflow, or all vanish", widest, do)
        return _median_distance(self._sample[columns], metric)

    def own(self, j: int) -> float:
        """Return a column's median distance, estimated from at most 200 rows."""
        return _median_distance(self._sample[[j], :: -(-self._sample.shape[1] // 200)], "euclidean")


def _median_distance(columns: np.ndarray, metric: str) -> float:
    squared, n = metric == "euclidean", columns.shape[1]
    distances = np.zeros(n * (n - 1) // 2)
    add_all_distances(np.ascontiguousarray(columns, dtype=float), np.ones(len(columns)), squared, distances)
    if not distances.any():
        return 1.0
    distances = np.sqrt(distances) if squared else distances
    # Many ties make the median 0, which is no bandwidth: then the median of rows that differ.
    return float(np.median(distances)) or float(np.median(distances[distances > 0]))
