"""Lay out the columns of a partition's output: names, order and content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    is_sampled: bool  # whether there are standard errors
    # how many values of a row are written, the largest in magnitude with the names of their players; None: all
    top_k: int | None = None
    dtype: str = "float64"  # of the values and their errors: "float64" or "float32"

    @property
    def _labels(self) -> list[str]:
        return [f"{ending}_{player}" for ending in self.endings for player in self.players]

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(f"phi{label}" for label in self._labels)

    @property
    def totals(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(f"{total}{ending}" for ending in self.endings) for total in _TOTALS)

    @property
    def errors(self) -> tuple[str, ...]:
        """Return columns like ``values`` for sampled explanations, else none."""
        return tuple(f"se{label}" for label in self._labels) if self.is_sampled else ()

    def _ranked(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}_{k + 1}{ending}" for ending in self.endings for k in range(self.top_k or 0))

    @property
    def names_of_features(self) -> tuple[str, ...]:
        return self._ranked("feature")

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.values if self.top_k is None else self._ranked("value")

    @property
    def computed(self) -> tuple[str, ...]:
        totals = (name for names in self.totals for name in names)
        if self.top_k is None:
            return (*self.values, *totals, EXACT, *self.errors)
        ranked = [pair for pairs in zip(self.names_of_features, self.numbers, strict=True) for pair in pairs]
        errors = self._ranked("se") if self.is_sampled else ()
        return (*ranked, *(f"rest{ending}" for ending in self.endings), *totals, EXACT, *errors)

    def kind_of(self, name: str) -> str:
        """Return Arrow's name for the type of a computed column."""
        if name == EXACT or name in self.names_of_features:
            return "bool" if name == EXACT else "string"
        return "double" if any(name in names for names in self.totals) else {"float32": "float"}.get(self.dtype, "double")

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
        """Return the columns of rows that cannot be explained: NaN and not exact."""
        names = (*self.values, *(name for names in self.totals for name in names), *self.errors)
        return {name: np.full(n_rows, np.nan) for name in names} | {EXACT: np.zeros(n_rows, bool)}

    def written(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        available = columns if self.top_k is None else {**columns, **self._largest(columns)}
        small = {name: available[name].astype(self.dtype) for name in self.computed if self.kind_of(name) == "float"}
        return {name: small.get(name, available[name]) for name in self.computed}

    def _largest(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the largest values of each row, their players, and the sum of the others."""
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
    >>> layout_of(traits, ["id"], sampled=False).computed
    ('phi_age', 'baseline', 'prediction', 'residual', 'exact')
    """
    check_count("order", order)
    if top_k is not None:
        check_count("top_k", top_k)
    endings = ("",) if traits.single_output else tuple(f"_{name}" for name in traits.output_names)
    sizes = range(1, order + 1)  # in the order of explanation.sets
    players = tuple(" & ".join(names) for size in sizes for names in combinations(traits.player_names, size))
    if dtype not in _DTYPES:
        raise UnknownNameError(f"Unknown type dtype={dtype!r}", do=did_you_mean(str(dtype), _DTYPES))
    layout = Layout(tuple(keep), endings, players, sampled, None if top_k is None else min(int(top_k), len(players)), dtype)
    names = [*layout.keep, *layout.computed]
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
