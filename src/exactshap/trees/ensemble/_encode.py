"""Encode a table as the numbers that trees compare: categories as codes, the library's missing value as NaN."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import ExplanationWarning, InputError, UnknownNameError, message, warn
from exactshap.frames import is_missing, underscored
from exactshap.trees.ensemble._flat import LIGHTGBM_ZERO

if TYPE_CHECKING:
    from exactshap.trees.ensemble._hashed import HashedColumns


class Columns(Protocol):
    """Describe the user's columns of a model; attributes as in :class:`~exactshap.trees.ensemble.TreeModel`."""

    @property
    def library(self) -> str: ...
    @property
    def feature_names(self) -> tuple[str, ...] | None: ...
    @property
    def categories(self) -> tuple[tuple[Any, ...] | None, ...]: ...
    @property
    def frame_categories(self) -> tuple[tuple[Any, ...], ...]: ...
    @property
    def missing_value(self) -> float: ...
    @property
    def absent(self) -> float: ...
    @property
    def hashed(self) -> HashedColumns | None: ...


def encode(model: Columns, table: TableLike, what: str = "X", names: Sequence[str] | None = None) -> np.ndarray:
    """Return float64 (n_rows, n_features) for a :class:`~exactshap.frames.Table`: codes in categorical columns, NaN if missing.

    Arrays hold codes already (scikit-learn's hold categories). In frames, categorical columns hold the categories' names;
    those that the model never saw are missing values, as in LightGBM and scikit-learn, with an ExplanationWarning.
    XGBoost 3.2 gives unseen names the code of a neighbour, so they are refused there. CatBoost hashes any name.
    ``what`` names the table in messages, ``names`` the columns of an array.
    """
    if model.hashed is not None:
        return model.hashed.encode(table, what)
    if not model.categories and math.isnan(model.missing_value) and model.library != "lightgbm":
        return table.numeric(what=what, absent=model.absent, categories=True, names=names)
    named = _named_categories(model, table, what)
    if not named and model.library == "lightgbm":
        return _without_zeros(table.numeric(what=what, names=names))
    plain = [j for j in range(table.n_columns) if j not in named]
    X = np.empty((table.n_rows, table.n_columns))
    if plain:
        rest = table.select(plain) if named else table
        left = names if names is None else [names[j] for j in plain]
        X[:, plain] = rest.numeric(what=what, absent=model.absent, categories=True, names=left)
    has_missing = not np.isnan(model.missing_value)
    if has_missing:
        X[:, plain] = np.where(_same(X[:, plain], model.missing_value, model.library), np.nan, X[:, plain])
    for j, known in named.items():
        X[:, j] = _codes(table, j, known, model.library, what)
        if has_missing and j in table.categorical:  # XGBoost compares it with the frame's own codes
            own = _codes(table, j, _own_categories(table, j, what), "", what)
            X[:, j] = np.where(own == model.missing_value, np.nan, X[:, j])
    if model.library == "lightgbm":
        return _without_zeros(X)
    # Negative codes, including fractions, are invalid there
    if model.library == "xgboost" and model.categories:
        coded = [j for j, known in enumerate(model.categories) if known is not None]
        X[:, coded] = np.where(X[:, coded] < 0.0, -1.0, X[:, coded])
    return X


def _without_zeros(X: np.ndarray) -> np.ndarray:
    """Return rows as LightGBM's trees compare them, with tiny numbers as zero."""
    return np.where(np.abs(X) <= LIGHTGBM_ZERO, 0.0, X)


def readable(model: Columns, table: TableLike) -> Any:
    """Return the table, with the same cells, in a form that the library predicts.

    Numbers in pandas columns of objects (and, for LightGBM, of Arrow's dtypes) become float64. LightGBM 4.6 and CatBoost 1.2.10 end the process at polars columns of type Categorical (LightGBM: Enum and arrow's
    dictionaries too), and CatBoost does not know arrow tables. XGBoost 3.4 refuses categories that only the dtype has.
    """
    if model.library == "scikit-learn" and model.categories and type(table.native).__module__.startswith("pyarrow"):
        # As NumPy's arrays, missing cells of dictionaries have the last category (pyarrow 26)
        return replace(table, native=table.native.to_pandas())
    if model.library not in ("catboost", "lightgbm", "xgboost"):
        return table
    if table.is_sparse:
        return table
    # Long doubles: XGBoost reads other numbers from their bytes
    if not table.is_frame and table.native.dtype.itemsize > 8:
        return replace(table, native=table.native.astype(np.float64))
    if table.names is None or table.is_plain:
        return table
    # Without narwhals, as every call passes here
    if type(table.native).__module__.startswith("pandas"):
        refused = {"lightgbm": ("object", "ArrowDtype"), "xgboost": ("object", "str", "string")}.get(model.library, ())
        dtypes = [(str(dtype), type(dtype).__name__) for dtype in table.native.dtypes] if refused else []
        table = _with_plain_numbers(model, table, [j for j, names in enumerate(dtypes) if not set(refused).isdisjoint(names)])
        return _without_idle_categories(model, table) if model.library == "xgboost" and model.categories else table
    import narwhals.stable.v2 as nw

    frame = table.readable()
    # pandas makes objects of booleans with missing cells
    gaps = [
        j
        for j, (name, kind) in enumerate(frame.schema.items())
        if str(kind) == "Unknown"
        or (kind == nw.Boolean and frame[name].null_count())
        or (kind == nw.String and model.library == "xgboost")
    ]
    table = _with_plain_numbers(model, table, gaps)
    frame = table.readable()
    if model.library == "xgboost":
        return _with_fixed_categories(model, table, frame)
    coded = [name for name, kind in frame.schema.items() if isinstance(kind, (nw.Categorical, nw.Enum))]
    if not (coded or frame.implementation.is_pyarrow()):
        return table
    if model.library == "catboost" and frame.implementation.is_polars():
        return replace(table, native=frame.with_columns(nw.col(*coded).cast(nw.String)).to_native())
    return replace(table, native=frame.to_pandas())


def _without_idle_categories(model: Columns, table: TableLike) -> Any:
    """Return a pandas table without categories that neither the model nor a cell has."""
    native = table.native
    for j in table.categorical:
        column, known = native.iloc[:, j], model.categories[j]
        if known is not None and not set(column.cat.categories).issubset(known):
            used = column.cat.remove_unused_categories()
            if set(used.cat.categories).issubset(known):
                native = native.copy(deep=False)
                native.isetitem(j, used)
    return replace(table, native=native)


def _with_fixed_categories(model: Columns, table: TableLike, frame: TableLike) -> Any:
    """Return the table with an Enum of the cells' names instead of polars' Categorical columns and Enums of more names.

    XGBoost 3.4 refuses those of open-ended columns, and names that the model does not know.
    """
    import narwhals.stable.v2 as nw

    if not frame.implementation.is_polars():
        return table
    known = dict(zip(table.names, model.categories, strict=False))  # no names: the model knows codes only
    coded = [
        name
        for name, kind in frame.schema.items()
        if isinstance(kind, nw.Categorical)
        or (isinstance(kind, nw.Enum) and known.get(name) and not set(kind.categories).issubset(known[name] or ()))
    ]
    fixed = [frame[name].cast(nw.Enum(sorted(frame[name].drop_nulls().unique().to_list()))) for name in coded]
    return replace(table, native=frame.with_columns(*fixed).to_native()) if fixed else table


def _with_plain_numbers(model: Columns, table: TableLike, columns: list[int]) -> Any:
    """Return the table with float64 where the library refuses a dtype."""
    if columns:
        named = _named_categories(model, table)
        texts = [table.names[j] for j in columns if j in named]
        if texts and model.library == "xgboost":
            raise InputError(
                "The model was fitted with columns of categorical dtype",
                f"Got text in {', '.join(map(repr, texts[:10]))}",
                "Convert them, X.astype({name: 'category'}) in pandas, or read a .parquet file that keeps them; .csv does not",
            )
        columns = [j for j in columns if j not in named]
    if not columns:
        return table
    import narwhals.stable.v2 as nw

    frame, numbers = table.readable(), table.select(columns).numeric()
    series = [nw.new_series(table.names[j], numbers[:, k], backend=frame.implementation) for k, j in enumerate(columns)]
    if frame.implementation.is_pandas():  # by position: a frame's own index stays
        native = table.native.copy(deep=False)
        for j, column in zip(columns, series, strict=True):
            native.isetitem(j, column.to_numpy())
        return replace(table, native=native)
    return replace(table, native=frame.with_columns(*series).to_native())


def _named_categories(model: Columns, table: TableLike, what: str = "X") -> dict[int, tuple[Any, ...]]:
    """Return the categories of named columns, in the order of codes."""
    coded = [j for j, known in enumerate(model.categories) if known is not None]
    if model.library == "scikit-learn":  # it has its own encoder, also for arrays
        return {j: model.categories[j] or () for j in coded}
    if not table.is_frame:
        return {}
    if model.library == "lightgbm":
        return _lightgbm_categories(model, table)
    categorical = table.categorical if coded else ()
    return {
        j: model.categories[j] or _own_categories(table, j, what)
        for j in coded
        if j in categorical or table.column(j).dtype.kind not in "fiu"
    }


def _lightgbm_categories(model: Columns, table: TableLike) -> dict[int, tuple[Any, ...]]:
    """Match columns by position, and names with underscores for white space, as LightGBM does."""
    if model.feature_names is not None:
        wanted, got = list(model.feature_names), [underscored(name) for name in table.names]
        if wanted != got:
            raise UnknownNameError(
                "The feature names should match those that were passed during fit, in the same order",
                f"Expected {wanted}, got {list(table.names)}",
                "Pass exactly the columns that the model was fitted with",
            )
    columns = table.categorical
    if len(columns) != len(model.frame_categories):
        raise InputError(
            f"The model was fitted with {len(model.frame_categories)} columns of categorical dtype",
            f"Got {len(columns)}",
            "Pass a frame of the same dtypes (from .parquet, which keeps them; .csv does not), or an array of codes",
        )
    return dict(zip(columns, model.frame_categories, strict=True))


def _same(X: np.ndarray, missing: float, library: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        # XGBoost compares in single precision
        return np.equal(X.astype(np.float32), np.float32(missing)) if library == "xgboost" else np.equal(X, missing)


def _own_categories(table: TableLike, j: int, what: str) -> tuple[Any, ...]:
    series = table.readable()[table.names[j]]
    if not str(series.dtype).startswith(("Categorical", "Enum")):
        raise InputError(
            f"In {what}, {table.label(j)} holds text", "The model knows codes only", "Pass a categorical column or codes"
        )
    return tuple(series.cat.get_categories().to_list())


def _uncut(table: TableLike, j: int, known: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the categories of a column by code where XGBoost 3.2 keeps them cut; refuse those that it would confuse.

    It cuts the UTF-8 bytes of all names of a pandas column at lengths that count characters, when it is fitted and when it
    predicts: names keep their codes if all categories have the order of the fit, and others' codes if not.
    """
    # Other libraries' columns go to XGBoost as Arrow's, where names stay whole.
    is_pandas = table.is_frame and type(table.native).__module__.startswith("pandas")
    own = _own_categories(table, j, "X") if is_pandas and j in table.categorical else ()
    if own and own != known and all(isinstance(name, str) for name in own):
        text, ends = "".join(own).encode(errors="replace"), np.cumsum([0, *map(len, own)]).tolist()
        if known == tuple(text[a:b].decode(errors="replace") for a, b in itertools.pairwise(ends)):
            return own
    if any(isinstance(name, str) and "\N{REPLACEMENT CHARACTER}" in name for name in known):
        raise InputError(
            f"XGBoost keeps the categories of {table.label(j)} cut within letters beyond ASCII, and confuses them in another order",
            f"Got {list(own)}, and the model holds {list(known)}",
            "Pass a column with the categories of the fit, in their order, or refit with names in ASCII",
        )
    return known


def _codes(table: TableLike, j: int, known: tuple[Any, ...], library: str, what: str) -> np.ndarray:
    known = _uncut(table, j, known) if library == "xgboost" else known
    code = {value: float(c) for c, value in enumerate(known)}
    values = table.column(j).tolist()
    missing = [is_missing(value) for value in values]
    unseen = sorted({repr(v) for v, gone in zip(values, missing, strict=True) if not gone and v not in code})[:5]
    if unseen and library == "xgboost":
        raise InputError(
            f"In {what}, {table.label(j)} holds categories that the model has not seen",
            f"Got {', '.join(unseen)}",
            "XGBoost refuses them or, before 3.4, silently takes a neighbouring category: replace them by a missing value, or refit",
        )
    if unseen:
        warn(
            message(
                f"In {what}, {table.label(j)} holds categories that the model has not seen",
                f"Got {', '.join(unseen)}",
                "They are read as missing, as the model itself does",
            ),
            ExplanationWarning,
        )
    return np.array([np.nan if gone else code.get(v, np.nan) for v, gone in zip(values, missing, strict=True)], float)
