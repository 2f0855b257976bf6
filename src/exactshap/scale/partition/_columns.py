"""The columns of a partition's output: their names, their order, and what an explanation puts into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.optional import FRAME_LIBRARIES, INSTALL_FRAMES, first_installed, require
from exactshap.errors import ExactnessError, InputError, MissingDependencyError, message
from exactshap.results.data import frame_kind

if TYPE_CHECKING:
    from exactshap.readers import Reader
    from exactshap.results.explanation import Explanation

__all__ = ["EXACT", "Layout", "beside", "layout_of", "output_columns"]

EXACT = "exact"
_TOTALS = ("baseline", "prediction", "residual")


@dataclass(frozen=True)
class Layout:
    """Names of the columns: kept ones, values, totals, ``exact``, standard errors.

    Attributes
    ----------
    keep : tuple of str
    values : tuple of str
        One for each output and player, output by output.
    totals : tuple of tuples of str
        For baseline, prediction and residual, the column of each output.
    errors : tuple of str
        Like ``values`` for sampled explanations, else empty.
    """

    keep: tuple[str, ...]
    values: tuple[str, ...]
    totals: tuple[tuple[str, ...], ...]
    errors: tuple[str, ...]

    @property
    def made(self) -> tuple[str, ...]:
        """Every column that is not kept but made, in order."""
        return (*self.values, *(name for names in self.totals for name in names), EXACT, *self.errors)

    def columns(self, explanation: Explanation) -> dict[str, np.ndarray]:
        """Return the columns of an explanation, float64 but for ``exact``."""
        rows = explanation.n_rows
        named = dict(zip(self.values, _by_output(explanation.values), strict=True))
        for names, field in zip(self.totals, _TOTALS, strict=True):
            named |= zip(names, np.asarray(getattr(explanation, field)).reshape(rows, len(names)).T, strict=True)
        named[EXACT] = explanation.rows_within_tolerance & explanation.exact
        return named | self._errors(explanation)

    def _errors(self, explanation: Explanation) -> dict[str, np.ndarray]:
        if explanation.std_error is None:  # known exactly, though the schema has a place: no error is claimed, not even 0
            return {name: np.full(explanation.n_rows, np.nan) for name in self.errors}
        if not self.errors:
            got = f"method: {explanation.method}"
            raise ExactnessError(message("Values were sampled that were announced as exact", got, "Please report this"))
        return dict(zip(self.errors, _by_output(explanation.std_error), strict=True))

    def marked(self, n_rows: int) -> dict[str, np.ndarray]:
        """Return the columns of rows that cannot be explained: NaN and not exact."""
        return {name: np.zeros(n_rows, bool) if name == EXACT else np.full(n_rows, np.nan) for name in self.made}


def _by_output(values: np.ndarray) -> np.ndarray:
    """Return (n_outputs * n_players, n_rows) of values (n_rows, n_players[, n_outputs])."""
    cube = values[:, :, None] if values.ndim == 2 else values
    return np.ascontiguousarray(cube.transpose(2, 1, 0)).reshape(cube.shape[1] * cube.shape[2], cube.shape[0])


def layout_of(reader: Reader, keep: Sequence[str], *, sampled: bool) -> Layout:
    """Return the columns for a reader, or refuse names that would meet.

    >>> from types import SimpleNamespace
    >>> reader = SimpleNamespace(single_output=True, output_names=("y",), player_names=("age",))
    >>> layout_of(reader, ["id"], sampled=False).made
    ('phi_age', 'baseline', 'prediction', 'residual', 'exact')
    """
    endings = ("",) if reader.single_output else tuple(f"_{name}" for name in reader.output_names)
    labels = [f"{ending}_{player}" for ending in endings for player in reader.player_names]
    layout = Layout(
        keep=tuple(keep),
        values=tuple(f"phi{label}" for label in labels),
        totals=tuple(tuple(f"{total}{ending}" for ending in endings) for total in _TOTALS),
        errors=tuple(f"se{label}" for label in labels) if sampled else (),
    )
    names = [*layout.keep, *layout.made]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        do = "Rename a feature or an output" if repeated not in layout.keep else "Rename it, or do not keep it"
        raise InputError(message(f"Two columns of the output would be called {repeated!r}", do=do))
    return layout


def beside(frame: Any, keep: Sequence[str], columns: dict[str, np.ndarray]) -> Any:
    """Return the kept columns of a frame beside new ones, in a frame of the same library with the same index."""
    kind = frame_kind(frame)
    library = require(str(kind), "frames", purpose=f"A {kind} frame")
    if kind == "pandas":
        made = library.DataFrame(columns, index=frame.index)
        return library.concat([frame[list(keep)], made], axis=1) if keep else made
    if kind == "polars":
        made = library.DataFrame(columns)
        return frame.select(list(keep)).hstack(made) if keep else made
    return library.table([*(frame[name] for name in keep), *columns.values()], names=[*keep, *columns])


def output_columns(
    explanation: Explanation, before: Mapping[str, np.ndarray] = MappingProxyType({}), kind: str | None = None
) -> Any:
    """Return an explanation as a table of the columns that :class:`Partition` makes.

    Parameters
    ----------
    explanation : Explanation
        Of order 1.
    before : mapping of name to array of shape (n_rows,), default={}
        Columns before these, such as identifiers.
    kind : {"pandas", "polars", "pyarrow"} or None, default=None
        None: as the data of the explanation; for arrays the first that is installed.

    Returns
    -------
    table : frame
        ``phi_<feature>``, ``baseline``, ``prediction``, ``residual``, ``exact`` and, of sampled values, ``se_<feature>``.

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
    layout = layout_of(names, tuple(before), sampled=explanation.std_error is not None)  # type: ignore[arg-type]
    library = kind or frame_kind(explanation.data) or first_installed(FRAME_LIBRARIES)
    if library is None:
        raise MissingDependencyError(message("A frame needs pandas, polars or pyarrow", do=INSTALL_FRAMES))
    columns = {**before, **layout.columns(explanation)}
    frames = require(library, "frames", purpose=f"A {library} frame")
    return frames.table(columns) if library == "pyarrow" else frames.DataFrame(columns)
