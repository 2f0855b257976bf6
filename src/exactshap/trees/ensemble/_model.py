"""Describe a tree ensemble beyond its arrays, and encode tables as the numbers that its trees compare.

The description has names, outputs, stages, categories and the unit. In encoded tables categories are codes, and the library's missing
value is NaN.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactshap._runtime.types import TableLike
from exactshap.errors import (
    ExplanationWarning,
    InputError,
    UnknownNameError,
    UnsupportedStructureError,
    message,
    no_output,
    warn,
)
from exactshap.frames import as_table, check_columns, is_missing, underscored
from exactshap.trees.ensemble._build import RawForest, RawTree, build
from exactshap.trees.ensemble._flat import LIGHTGBM_ZERO, FlatTrees, taken
from exactshap.trees.ensemble._hashed import HashedColumns
from exactshap.trees.ensemble._routing import margin


@dataclass(frozen=True, eq=False, repr=False)
class TreeModel:
    """Hold a tree ensemble as data, independent of its library.

    Attributes
    ----------
    trees : FlatTrees
        Learning rate, DART weights and averaging are folded into the leaf values; ``trees.constant`` is the initial margin.
    library, name : str
        The library and the class of the model.
    unit : str
        Unit of the outputs: "target", "log-odds", "score before the softmax", "probability", ...
    output_names : tuple of str
    single_output : bool
        Whether predictions are (n_rows,).
    feature_names : tuple of str or None
    tree_output : int32 array of shape (n_trees,)
        The output that each tree adds to; -1 if it adds to all.
    tree_stage : int32 array of shape (n_trees,)
        Boosting round of each tree, ascending; zeros for averages.
    boosted : bool
        Whether stage s was fitted to the residual of the stages before it.
    objective : str
        The library's name of the loss.
    default_output : int or None
        The output chosen by "auto": the positive class of a binary probability forest.
    epsilon : float
        Rounding unit of the library's own predictions.
    categories : tuple
        For each column None (numeric), or the tuple of its categories in the order of their codes, empty if the model knows
        codes only; () if no column is categorical.
    frame_categories : tuple
        LightGBM's form of the same: the categories of a frame's categorical columns, in the order of the columns.
    missing_value : float
        Numeric value that the library treats as missing besides NaN.
    hashed : HashedColumns or None
        What CatBoost makes of categorical columns. Its target statistics are columns of ``trees`` that follow the user's own.
    reading : str
        Which boosting rounds were read and why, if not all; also in ``explanation.method``.
    offset_note : str
        Note on offsets that the model was fitted with and that predictions leave out; "" where no trace shows any.
    """

    trees: FlatTrees
    library: str
    name: str
    unit: str
    output_names: tuple[str, ...]
    single_output: bool
    tree_output: np.ndarray
    tree_stage: np.ndarray
    feature_names: tuple[str, ...] | None = None
    boosted: bool = True
    objective: str = ""
    default_output: int | None = None
    epsilon: float = float(np.finfo(np.float64).eps)
    categories: tuple[tuple[Any, ...] | None, ...] = ()
    frame_categories: tuple[tuple[Any, ...], ...] = ()
    missing_value: float = float("nan")
    hashed: HashedColumns | None = None
    reading: str = ""
    offset_note: str = ""

    def __repr__(self) -> str:
        more = ", ..." if len(self.output_names) > 3 else ""
        names = ", ".join(map(repr, self.output_names[:3])) + more  # repr: names come from files
        return f"<TreeModel {self.name!r} of {self.library}: {self.trees!r}, {names} ({self.unit})>"

    @functools.cached_property
    def absent(self) -> float:
        """Return the value of cells that a sparse matrix does not store."""
        return self.missing_value if self.library == "xgboost" else 0.0

    @property
    def n_features(self) -> int:
        """Return the number of columns of the user's table."""
        return self.trees.n_features - (len(self.hashed.statistics) if self.hashed is not None else 0)

    def tree_players(
        self, players: tuple[tuple[int, ...], ...], names: tuple[str, ...] | None = None
    ) -> tuple[tuple[int, ...], ...]:
        """Return the columns of ``trees`` of each player, computed ones included.

        Raises UnsupportedStructureError, with the groups to pass, if a column is computed from those of several players.
        """
        if self.hashed is None:
            return players
        return self.hashed.extend(players, names or self.feature_names or tuple(f"x{j}" for j in range(self.n_features)))

    def require_covers(self, game: str, do: str) -> None:
        """Refuse a model that keeps no training weights in its nodes.

        The error names the ``game`` that needs them, and what to ``do``.
        """
        roots = self.trees.tree_start[:-1]
        bad = np.flatnonzero((self.trees.feature[roots] >= 0) & ~(self.trees.cover[roots] > 0))
        if bad.size:
            where = f"{self.name} keeps no training weights in its nodes (first in tree {bad[0]})"
            raise UnsupportedStructureError(where, f"The path-dependent {game} is made of them", do)

    def require_constant_leaves(self, game: str, do: str) -> None:
        """Refuse linear functions in leaves. The error names the ``game`` and what to ``do``."""
        if self.trees.linear is not None:
            what = f"{self.name} has linear functions in its leaves"
            raise UnsupportedStructureError(what, f"The {game} is made of constant ones", do)

    def predict(self, X: TableLike) -> np.ndarray:
        """Return the float64 margin by our routing, (n_rows,) or (n_rows, n_outputs).

        ``X`` is an array of shape (n_rows, n_features), with codes in categorical columns, or a DataFrame with the columns
        that the model was fitted with.
        """
        names = None if self.library == "lightgbm" else self.feature_names  # ``encode`` compares its names
        table = check_columns(as_table(X, allow_empty=True), names, self.n_features, owner=self.name)
        values = margin(self.trees, encode(self, table))
        return values[:, 0] if self.single_output else values

    def output_number(self, output: Any = "auto") -> int | None:
        """Return the number of an output, None for all. ``output`` is "auto", "all", an int or a name."""
        if output == "all" or (output == "auto" and self.default_output is None):
            return None
        if output == "auto":
            return self.default_output
        if isinstance(output, (int, np.integer)) and not isinstance(output, bool):
            if -len(self.output_names) <= output < len(self.output_names):
                return int(output) % len(self.output_names)  # negative numbers count from the end
            raise InputError(no_output(self.name, output, self.output_names))
        if output in self.output_names:
            return self.output_names.index(output)
        raise UnknownNameError(no_output(self.name, output, ("auto", "all", *self.output_names)))

    def pick(self, output: Any = "auto") -> TreeModel:
        """Return the model with one output or all.

        ``output`` is "auto" (the default output if there is one), "all", an int or a name.
        """
        o = self.output_number(output)
        if o is None or self.single_output:
            return self
        keep = np.flatnonzero((self.tree_output == o) | (self.tree_output < 0))
        return replace(
            self,
            trees=take_trees(self.trees.pick(o), keep),
            output_names=(self.output_names[o],),
            single_output=True,
            tree_output=np.full(len(keep), -1, np.int32),
            tree_stage=self.tree_stage[keep],
            default_output=None,
        )


def model_of(
    raw: Sequence[RawTree] | RawForest,
    constant: ArrayLike,
    *,
    n_features: int,
    less_equal: bool = True,
    single_precision: bool = False,
    tree_stage: ArrayLike | None = None,
    boosted: bool = True,
    **facts: Any,
) -> TreeModel:
    """Build trees, and describe them; by default a boosting round has a tree for each output, or one for all."""
    trees = build(raw, n_features=n_features, constant=constant, less_equal=less_equal, single_precision=single_precision)
    outputs = np.array(raw.output if isinstance(raw, RawForest) else [tree.output for tree in raw], np.int32)
    if tree_stage is None:
        tree_stage = np.arange(trees.n_trees) * boosted // (trees.n_outputs if (outputs >= 0).all() else 1)
    return TreeModel(
        trees=trees,
        single_output=trees.n_outputs == 1,
        tree_output=outputs if trees.n_outputs > 1 else np.full(trees.n_trees, -1, np.int32),
        tree_stage=np.full(trees.n_trees, tree_stage, np.int32),
        boosted=boosted,
        **facts,
    )


def take_trees(trees: FlatTrees, chosen: np.ndarray) -> FlatTrees:
    """Return an ensemble of the chosen trees, by number and in this order, with the same constant."""
    chosen = np.asarray(chosen, np.int64)
    if len(chosen) == trees.n_trees and np.array_equal(chosen, np.arange(trees.n_trees)):
        return trees
    tree_start, nodes = taken(trees.tree_start, chosen)
    shift = nodes - np.arange(len(nodes))
    fields: dict[str, Any] = {
        name: getattr(trees, name)[nodes]
        for name in ("feature", "threshold", "missing", "zero_is_missing", "category_start", "category_count", "cover", "value")
    }
    children: dict[str, Any] = {
        name: np.where(getattr(trees, name)[nodes] >= 0, getattr(trees, name)[nodes] - shift, -1).astype(np.int32)
        for name in ("left", "right")
    }
    linear = None if trees.linear is None else trees.linear.take(nodes)
    return replace(trees, tree_start=tree_start, linear=linear, **fields, **children)


# --- tables -----------------------------------------------------------------------------------------------------------
def encode(model: TreeModel, table: TableLike, what: str = "X", names: Sequence[str] | None = None) -> np.ndarray:
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


def readable(model: TreeModel, table: TableLike) -> Any:
    """Return the table, with the same cells, in a form that the library predicts.

    Numbers in pandas columns of objects (and, for LightGBM, of Arrow's dtypes) become float64. LightGBM 4.6 and CatBoost 1.2.10 end
    the process at polars columns of type Categorical (LightGBM: Enum and arrow's dictionaries too), and CatBoost does not know
    arrow tables. XGBoost 3.4 refuses categories that only the dtype has.
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


def _without_idle_categories(model: TreeModel, table: TableLike) -> Any:
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


def _with_fixed_categories(model: TreeModel, table: TableLike, frame: TableLike) -> Any:
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


def _with_plain_numbers(model: TreeModel, table: TableLike, columns: list[int]) -> Any:
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


def _named_categories(model: TreeModel, table: TableLike, what: str = "X") -> dict[int, tuple[Any, ...]]:
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


def _lightgbm_categories(model: TreeModel, table: TableLike) -> dict[int, tuple[Any, ...]]:
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
