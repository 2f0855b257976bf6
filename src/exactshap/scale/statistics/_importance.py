"""Global importances of a table in parts: what parts are added up of does not depend on how it was cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.optional import FRAME_LIBRARIES, first_installed, require
from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, message, printable
from exactshap.frames import as_table
from exactshap.results.data import counted
from exactshap.scale.statistics._exact_sum import ExactSums

__all__ = ["GlobalImportance", "value_columns"]

_VALUE = "phi_"


@dataclass(frozen=True, repr=False)
class GlobalImportance:
    r"""Hold every column's mean and mean absolute value. The rows come in parts.

    .. math:: \frac{1}{n} \sum_i |\phi_{ij}| \quad\text{and}\quad \frac{1}{n} \sum_i \phi_{ij}

    Attributes
    ----------
    feature_names : tuple of str
        Columns of values without ``phi_``: features, or ``<output>_<feature>``.
    n_rows : int
        Rows that were explained.
    n_bad_rows : int
        Rows that were marked; they are in no mean.
    max_residual : float
        Largest ``|residual|``.
    sums, absolute_sums : ExactSums
        Sums without rounding.

    Notes
    -----
    Sums are whole numbers of 2^-1074, so ``a + b`` is exact and the means have the same bits for any number of parts; each is
    rounded once. Cost: about 25 ns for each value.

    Examples
    --------
    >>> import pandas
    >>> table = pandas.DataFrame({"phi_age": [1.0, -3.0], "prediction": [0.0, 0.0], "residual": [0.0, 0.0]})
    >>> importance = GlobalImportance.of(table[:1]) + GlobalImportance.of(table[1:])
    >>> importance.mean_abs, importance.mean
    (array([2.]), array([-1.]))
    """

    feature_names: tuple[str, ...]
    n_rows: int
    n_bad_rows: int
    max_residual: float
    sums: ExactSums
    absolute_sums: ExactSums

    @classmethod
    def of(cls, table: TableLike) -> GlobalImportance:
        """Return the importances of one output of :class:`Partition`.

        Parameters
        ----------
        table : pandas, polars or pyarrow table with columns ``phi_...``

        Returns
        -------
        importance : GlobalImportance
        """
        wide = as_table(table, allow_empty=True)
        features, numbers, explained = value_columns(table)
        names = wide.names or ()
        residuals = [j for j, name in enumerate(names) if name == "residual" or name.startswith("residual_")]
        left = np.abs(wide.select(residuals).numeric())[explained] if residuals else np.zeros((0, 0))
        sums, magnitudes = ExactSums.with_magnitudes(numbers[explained])
        return cls(
            feature_names=features,
            n_rows=int(explained.sum()),
            n_bad_rows=int((~explained).sum()),
            max_residual=float(left.max(initial=0.0)),
            sums=sums,
            absolute_sums=magnitudes,
        )

    def __add__(self, other: GlobalImportance) -> GlobalImportance:
        if self.feature_names != other.feature_names:
            got = f"Got {list(self.feature_names)[:6]} and {list(other.feature_names)[:6]}"
            raise InputError(message("Parts of different features cannot be added", got))
        return GlobalImportance(
            feature_names=self.feature_names,
            n_rows=self.n_rows + other.n_rows,
            n_bad_rows=self.n_bad_rows + other.n_bad_rows,
            max_residual=max(self.max_residual, other.max_residual),
            sums=self.sums + other.sums,
            absolute_sums=self.absolute_sums + other.absolute_sums,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as what JSON holds; sums are texts of whole numbers, which JSON's numbers would round.

        Returns
        -------
        content : dict
        """
        sums = {name: [f"{unit:x}" for unit in getattr(self, name).units] for name in ("sums", "absolute_sums")}
        counts = {"n_rows": self.n_rows, "n_bad_rows": self.n_bad_rows, "max_residual": self.max_residual}
        return {"feature_names": list(self.feature_names), **counts, **sums}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> GlobalImportance:
        """Return what :meth:`to_json` was made of.

        Parameters
        ----------
        content : mapping

        Returns
        -------
        importance : GlobalImportance
        """
        sums = {name: ExactSums(tuple(int(unit, 16) for unit in content[name])) for name in ("sums", "absolute_sums")}
        return cls(**{**content, "feature_names": tuple(content["feature_names"]), **sums})

    @property
    def mean(self) -> np.ndarray:
        """Return each feature's mean value (n_features,), in the output's unit."""
        return self.sums.means(self.n_rows)

    @property
    def mean_abs(self) -> np.ndarray:
        """Return each feature's mean absolute value (n_features,), in the output's unit."""
        return self.absolute_sums.means(self.n_rows)

    def to_frame(self) -> Any:
        """Return a frame with the columns ``feature``, ``mean_abs`` and ``mean``. It is of whichever library is installed.

        Returns
        -------
        frame : pandas, polars or pyarrow table
        """
        columns = {"feature": list(self.feature_names), "mean_abs": self.mean_abs, "mean": self.mean}
        kind = first_installed(FRAME_LIBRARIES) or "pandas"
        library = require(kind, "frames", purpose="A frame")
        return library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)

    def __repr__(self) -> str:
        bad = f", {counted(self.n_bad_rows, 'row')} could not be explained" if self.n_bad_rows else ""
        lines = [f"mean |value| of {len(self.feature_names)} features over {counted(self.n_rows, 'row')}{bad}"]
        strength = self.mean_abs
        order = np.argsort(-strength, kind="stable")[:10]
        width = max((len(self.feature_names[j]) for j in order), default=0)
        lines += [f"  {self.feature_names[j]:<{width}}  {strength[j]:.6g}" for j in order]
        more = len(strength) - len(order)
        return printable("\n".join([*lines, f"  ({more} more)"] if more else lines))


def value_columns(table: TableLike) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return value columns' names and numbers, and which rows were explained. The numbers are (n_rows, n_columns)."""
    wide = as_table(table, allow_empty=True)
    names = wide.names or ()
    values = [j for j, name in enumerate(names) if name.startswith(_VALUE)]
    if not values:
        got = f"Got {list(names)[:6]}"
        raise InputError(message("The table has no columns of values", got, "Pass what a Partition gives"))
    numbers = wide.select(values).numeric()
    return tuple(names[j].removeprefix(_VALUE) for j in values), numbers, ~np.isnan(numbers).all(axis=1)
