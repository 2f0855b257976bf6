"""Read model and data into an Explainer, for all commands on models."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import exactshap
from exactshap._runtime.types import Model, TableLike
from exactshap.cli._io import column_names, load_model, read_table, take_columns
from exactshap.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from exactshap.frames import Table


@dataclass(frozen=True, kw_only=True)
class Task:
    """Hold what a command is about: a model on some rows, or a saved explanation, with the options typed."""

    model: Path  # the file of the model, or of a saved explanation
    data: Path | None  # the file of the rows; None for a saved explanation
    background: Path | None = None  # the file of the reference rows
    target: str | None = None  # column of the data that is the target
    drop: tuple[str, ...] = ()  # columns of the files that are not features: the target, identifiers
    allow_pickle: bool = False
    trust: bool = False
    n_stages: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)  # keyword arguments of Explainer
    rows: slice | list[int] | str | None = None  # of the data, as numbers or as a filter; None means all
    keep: tuple[str, ...] = ()  # columns of the data that are written with the values
    offset: str | None = None  # column of the data that holds the offsets of its rows

    @property
    def file(self) -> Path:
        if self.data is None:
            do = "Pass a .csv or .parquet file after the model"
            raise InputError("The values of a model need rows", "DATA is missing", do)
        return self.data

    def seeded(self, seed: int) -> Task:
        """Return the task with the seed of its samples. Readings without a budget draw nothing, and refuse a seed."""
        return replace(self, settings=self.settings | {"random_state": seed}) if "budget" in self.settings else self

    @property
    def is_saved(self) -> bool:
        return self.model.suffix.lower() == ".npz"

    def saved(self, **further: bool) -> exactshap.Explanation:
        """Load the chosen rows and output of a saved explanation.

        Options that ask for another explanation are refused; ``further`` says which of a command's own were given.
        """
        choices: dict[str, Any] = {
            "DATA": self.data,
            "--background": self.background,
            "--target": self.target,
            "--drop": self.drop,
            "--keep": self.keep,
            "--offset": self.offset,
            "--value-function": self.settings["value_function"] != "auto",
            "--groups": self.settings["groups"],
            "--align": self.settings["align"],
            "--budget": "budget" in self.settings,
            "--n-stages": self.n_stages is not None,
            **{f"--{name}": was_given for name, was_given in further.items()},
        }
        if given := [name for name, choice in choices.items() if choice]:
            do = "Leave them out, or pass the model"
            what = "A saved explanation has its own rows and settings"
            raise InputError(what, f"Got {', '.join(given)} with {self.model.name}", do)
        chosen = self._loaded if self.rows is None else self._loaded[self.row_numbers]
        output = self.settings["output"]
        return chosen if output in ("auto", "all") else chosen.output(output)

    @cached_property
    def _loaded(self) -> exactshap.Explanation:
        return exactshap.Explanation.load(self.model)

    def explainer(self) -> tuple[exactshap.Explainer, Any]:
        """Read the files; return the bound Explainer and the rows."""
        rows = self.file.name  # first, as reading the model takes longer
        explainer = self.without_data()
        traits = explainer.reader.traits
        features = traits.fitted_names or (None if traits.background is None else traits.background.names)
        kept = [name for name in self.keep if name not in self.drop and _is_unknown(name, features)]
        X = take_columns(self.table.native, tuple(name for name in (*self.drop, *kept) if name != self.offset), what=rows)
        if self.offset is not None:
            take_columns(X, (self.offset,), what=rows)  # raises if it is not there
        self._refuse_unknown(X, traits.fitted_names, self.file)
        return explainer, X

    @cached_property
    def _whole(self) -> Table:
        import numpy as np

        from exactshap.frames import as_table

        if not self.is_saved:
            return as_table(read_table(self.file, self.drop), what=self.file.name, allow_empty=True)
        data = self._loaded.data
        return as_table(np.empty((self._loaded.n_rows, 0)) if data is None else data, what=self.model.name, allow_empty=True)

    @cached_property
    def row_numbers(self) -> np.ndarray:
        """Return the numbers of the chosen rows."""
        import numpy as np

        from exactshap.results.data import filtered_rows

        table, everything = self._whole, np.arange(self._whole.n_rows)
        file = (self.model if self.is_saved else self.file).name
        if isinstance(self.rows, str):
            kept = filtered_rows(table, table.names or (), self.rows)
            if not kept.any():
                raise InputError(f"No row of {file} has {self.rows}", do="Widen the filter of --rows")
            return everything[kept]
        if self.rows is None:
            return everything
        if isinstance(self.rows, slice):
            if not everything[self.rows].size:
                chosen = ":".join("" if end is None else str(end) for end in (self.rows.start, self.rows.stop))
                raise InputError(f"--rows {chosen} chooses no row", f"{file} has {table.n_rows} rows, numbered from 0")
            return everything[self.rows]
        outside = next((i for i in self.rows if not -table.n_rows <= i < table.n_rows), None)
        if outside is not None:
            raise InputError(f"There is no row {outside}", f"{file} has {table.n_rows} rows, numbered from 0")
        return everything[self.rows]

    @cached_property
    def table(self) -> Table:
        return self._whole if self.rows is None else self._whole.take(self.row_numbers)

    def kept_columns(self) -> dict[str, Any]:
        """Return the numbers of the rows, and kept columns in their own dtypes."""
        native = self.table.native
        if self.keep:
            take_columns(native, self.keep, what=self.file.name)  # raises for a column that is not there
        columns = {name: native[name] for name in self.keep}
        # Without pandas' labels of rows: NumPy has no integers with gaps, and no time zones
        return {"row": self.row_numbers, **{name: getattr(column, "array", column) for name, column in columns.items()}}

    def without_data(self) -> exactshap.Explainer:
        """Read model and background; return the bound Explainer."""
        model = self.read_model()
        return exactshap.Explainer(model, self.read_background(model), **self.settings)

    def read_model(self) -> Any:
        return load_model(self.model, allow_pickle=self.allow_pickle, trust=self.trust, n_stages=self.n_stages)

    def read_background(self, model: Model) -> Any:
        """Read the reference rows without the columns that are no features of the data."""
        if self.background is None:
            return None
        from exactshap.readers import fitted_names

        fitted = fitted_names(model) or getattr(model, "feature_names", None)
        kept = [name for name in self.keep if _is_unknown(name, fitted)]
        table = read_table(self.background, (*self.drop, *kept))
        names = column_names(table)
        # An offset that is a feature stays, for the error that says so
        offset = () if self.offset is None or (fitted and not _is_unknown(self.offset, fitted)) else (self.offset,)
        there = tuple(name for name in dict.fromkeys((*self.drop, *kept, *offset)) if name in names)
        X = take_columns(table, there, what=self.background.name)
        self._refuse_unknown(X, fitted, self.background)
        return X

    def _refuse_unknown(self, X: TableLike, fitted: tuple[str, ...] | None, file: Path) -> None:
        unknown = [name for name in column_names(X) if name != self.offset and _is_unknown(name, fitted)]
        if unknown:
            raise InputError(
                f"{file.name} has columns that the model was not fitted with",
                f"Got {', '.join(map(repr, unknown[:10]))}",
                "Name the target with --target and other columns with --drop",
            )

    def column(self, name: str) -> Any:
        """Read a column of the chosen rows; from pandas and polars with its name."""
        native = self.table.native
        if type(native).__module__.startswith(("pandas.", "polars.")) and name in native.columns:
            return native[name]
        return self.table.column((self.table.names or ()).index(name))

    def explain(self, index: str, order: int) -> exactshap.Explanation:
        """Explain all rows, with a progress line if it takes long."""
        explainer, X = self.explainer()
        return explainer(X, index=index, order=order, offset=self.offset)


def _is_unknown(name: str, fitted: tuple[str, ...] | None) -> bool:
    """Say whether a column is none that the model was fitted with. Some libraries write white space as underscores."""
    from exactshap.frames import underscored

    return fitted is not None and name not in fitted and underscored(name) not in fitted


def command_line() -> str:
    """Return the running command as typed."""
    return shlex.join(["exactshap", *sys.argv[1:]])
