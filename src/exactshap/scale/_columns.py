"""Lay out the columns of a partition's output: names, order and content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.optional import require
from exactshap._runtime.types import TableLike
from exactshap.errors import ExactnessError, InputError, UnknownNameError, did_you_mean
from exactshap.readers import Traits
from exactshap.results.data import frame_kind, frame_of
from exactshap.results.explanation import Explanation

EXACT = "exact"
_TOTALS = ("baseline", "prediction", "residual")
_DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Layout:
    """Name the output columns: kept ones, values, totals, ``exact``, standard errors."""

    keep: tuple[str, ...]
    endings: tuple[str, ...]  # suffixes of names, one per output; one empty text for a single output
    players: tuple[str, ...]  # players, and sets of them for orders above 1
    sampled: bool  # whether values have standard errors
    # how many values of a row are written, the largest in magnitude with the names of their players; None: all
    top_k: int | None
    dtype: str  # of the values and their errors: "float64" or "float32"

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Return one column for each output and player, output by output."""
        return tuple(f"phi{ending}_{player}" for ending in self.endings for player in self.players)

    @cached_property
    def errors(self) -> tuple[str, ...]:
        """Return columns like ``values`` for sampled explanations, else none."""
        return tuple(f"se{name.removeprefix('phi')}" for name in self.values) if self.sampled else ()

    @property
    def ranked(self) -> list[str]:
        """Return the suffixes of the largest values, output by output."""
        return [f"_{k + 1}{ending}" for ending in self.endings for k in range(self.top_k or 0)]

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.values if self.top_k is None else tuple(f"value{rank}" for rank in self.ranked)

    @property
    def totals(self) -> list[list[str]]:
        return [[f"{total}{ending}" for ending in self.endings] for total in _TOTALS]

    @cached_property
    def kinds(self) -> list[tuple[str, str]]:
        """Return the computed columns in order, with Arrow's names of their types."""
        number = "float" if self.dtype == "float32" else "double"
        values, errors = [(name, number) for name in self.values], self.errors
        if self.top_k is not None:
            values = [
                (f"{name}{rank}", kind) for rank in self.ranked for name, kind in (("feature", "string"), ("value", number))
            ]
            values += [(f"rest{ending}", number) for ending in self.endings]
            errors = tuple(f"se{rank}" for rank in self.ranked if self.sampled)
        totals = [(name, "double") for names in self.totals for name in names]
        return [*values, *totals, (EXACT, "bool"), *((name, number) for name in errors)]

    def columns(self, explanation: Explanation) -> dict[str, np.ndarray]:
        rows = explanation.n_rows
        values = explanation.values if explanation.set_values is None else explanation.set_values
        named = dict(zip(self.values, _by_output(values), strict=True))
        for names, total in zip(self.totals, _TOTALS, strict=True):
            named |= zip(names, np.asarray(getattr(explanation, total)).reshape(rows, len(names)).T, strict=True)
        named[EXACT] = explanation.rows_within_tolerance & explanation.exact
        return named | self._errors(explanation)

    def _errors(self, explanation: Explanation) -> dict[str, np.ndarray]:
        errors = explanation.std_error if explanation.set_values is None else explanation.set_std_error
        if errors is None:  # exact values have no standard error, not even 0, though the schema has a column for it
            return {name: np.full(explanation.n_rows, np.nan) for name in self.errors}
        if not self.errors:
            got = f"method: {explanation.method}"
            raise ExactnessError("Values were sampled although the schema says that they are exact", got, "Please report this")
        return dict(zip(self.errors, _by_output(errors), strict=True))

    def marked(self, n_rows: int) -> dict[str, np.ndarray]:
        names = (*self.values, *(name for names in self.totals for name in names), *self.errors)
        return {name: np.full(n_rows, np.nan) for name in names} | {EXACT: np.zeros(n_rows, bool)}

    def written(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        available = columns if self.top_k is None else {**columns, **self._largest(columns)}
        return {name: available[name].astype(self.dtype) if kind == "float" else available[name] for name, kind in self.kinds}

    def _largest(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return each row's largest values, their players, and the sum of the others."""
        ranked: dict[str, np.ndarray] = {}
        names, top = np.array(self.players, object), self.top_k or 0
        for k, ending in enumerate(self.endings):
            own = slice(k * len(names), (k + 1) * len(names))
            values = np.stack([columns[name] for name in self.values[own]], axis=1)
            order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :top]
            largest = np.take_along_axis(values, order, axis=1)
            features = np.where(np.isnan(largest), np.array(None), names[order])
            others = values.copy()
            np.put_along_axis(others, order, 0.0, axis=1)
            ranked[f"rest{ending}"] = others.sum(axis=1)
            errors = [columns[name] for name in self.errors[own]]
            ranked_errors = np.take_along_axis(np.stack(errors, axis=1), order, axis=1) if errors else None
            for j in range(top):
                ranked[f"feature_{j + 1}{ending}"], ranked[f"value_{j + 1}{ending}"] = features[:, j], largest[:, j]
                if ranked_errors is not None:
                    ranked[f"se_{j + 1}{ending}"] = ranked_errors[:, j]
        return ranked


def _by_output(values: np.ndarray) -> np.ndarray:
    """Return (n_outputs * n_players, n_rows) of values (n_rows, n_players[, n_outputs])."""
    cube = values[:, :, None] if values.ndim == 2 else values
    return np.ascontiguousarray(cube.transpose(2, 1, 0)).reshape(cube.shape[1] * cube.shape[2], cube.shape[0])


def layout_of(
    traits: Traits, keep: Sequence[str], *, sampled: bool, order: int = 1, top_k: int | None = None, dtype: str = "float64"
) -> Layout:
    """Return the layout for a reader's traits, or refuse names that clash.

    >>> from types import SimpleNamespace
    >>> traits = SimpleNamespace(single_output=True, output_names=("y",), player_names=("age",))
    >>> [name for name, _ in layout_of(traits, ["id"], sampled=False).kinds]
    ['phi_age', 'baseline', 'prediction', 'residual', 'exact']
    """
    check_count("order", order)
    if top_k is not None:
        check_count("top_k", top_k)
    endings = ("",) if traits.single_output else tuple(f"_{name}" for name in traits.output_names)
    sizes = range(1, order + 1)  # in the order of explanation.sets
    players = tuple(" & ".join(names) for size in sizes for names in combinations(traits.player_names, size))
    if dtype not in _DTYPES:
        raise UnknownNameError(f"Unknown type dtype={dtype!r}", do=did_you_mean(str(dtype), _DTYPES))
    top = None if top_k is None else min(int(top_k), len(players))
    layout = Layout(tuple(keep), endings, players, sampled, top, dtype)
    names = [*layout.keep, *(name for name, _ in layout.kinds)]
    repeated = {name for name, count in Counter(names).items() if count > 1}
    if repeated:
        name = min(repeated)
        do = "Rename a feature or an output" if name not in layout.keep else "Rename it, or do not keep it"
        raise InputError(f"Two columns of the output would be called {name!r}", do=do)
    return layout


def join_columns(frame: TableLike, keep: Sequence[str], columns: dict[str, np.ndarray]) -> Any:
    """Return a frame's kept columns and new ones, in the same library with the same index."""
    kind = frame_kind(frame)
    library = require(str(kind), "frames", purpose=f"A {kind} frame")
    if kind == "pandas":
        new = library.DataFrame(columns, index=frame.index)
        return library.concat([frame[list(keep)], new], axis=1) if keep else new
    if kind == "polars":
        new = library.DataFrame(columns)
        return frame.select(list(keep)).hstack(new) if keep else new
    return library.table([*(frame[name] for name in keep), *columns.values()], names=[*keep, *columns])


def output_columns(
    explanation: Explanation, before: Mapping[str, np.ndarray] = MappingProxyType({}), kind: str | None = None
) -> Any:
    """Return an explanation as a table of the columns that :class:`Partition` makes.

    Parameters
    ----------
    explanation : Explanation
    before : mapping of name to array of shape (n_rows,), default={}
        Columns before these, such as identifiers.
    kind : {"pandas", "polars", "pyarrow"} or None, default=None
        None: as the data of the explanation; for arrays the first that is installed.

    Returns
    -------
    table : frame
        ``phi_<feature>``, ``baseline``, ``prediction``, ``residual``, ``exact`` and, of sampled values, ``se_<feature>``; above
        order 1 sets of players follow, as ``phi_<feature> & <feature>``.

    Raises
    ------
    MissingDependencyError
        No library of frames is installed.

    Examples
    --------
    >>> from exactshap import Explanation
    >>> explanation = Explanation(
    ...     values=[[1.0, 2.0]], baseline=[0.5], prediction=[3.5], residual=[0.0], tolerance=1e-12,
    ...     feature_names=["age", "bmi"], value_function="baseline",
    ... )
    >>> list(output_columns(explanation, {"row": np.array([7])}))
    ['row', 'phi_age', 'phi_bmi', 'baseline', 'prediction', 'residual', 'exact']
    """
    names = SimpleNamespace(
        single_output=explanation.output_names is None,
        output_names=explanation.output_names or (),
        player_names=explanation.feature_names,
    )
    sampled, order = explanation.std_error is not None, explanation.order
    layout = layout_of(names, tuple(before), sampled=sampled, order=order)  # type: ignore[arg-type]
    return frame_of(None, {**before, **layout.columns(explanation)}, kind or frame_kind(explanation.data))
