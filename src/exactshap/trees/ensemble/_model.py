"""Describe a tree ensemble beyond its arrays: names, outputs, stages, categories, link."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputError, UnknownNameError, UnsupportedStructureError, no_output
from exactshap.trees.ensemble._encode import encode
from exactshap.trees.ensemble._flat import FlatTrees
from exactshap.trees.ensemble._forest import RawForest, RawTree
from exactshap.trees.ensemble._linear import taken
from exactshap.trees.ensemble._routing import margin

if TYPE_CHECKING:
    from exactshap.trees.ensemble._hashed import HashedColumns


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
        from exactshap.frames import as_table, check_columns

        names = None if self.library == "lightgbm" else self.feature_names  # ``encode`` compares its names
        table = check_columns(as_table(X, allow_empty=True), names, self.n_features, owner=self.name)
        values = margin(self.trees, encode(self, table))
        return values[:, 0] if self.single_output else values

    def output_number(self, output: Any = "auto") -> int | None:
        """Return the number of an output, None for all.

        ``output`` is "auto", "all", an int or a name.
        """
        if output == "all" or (output == "auto" and self.default_output is None):
            return None
        return self.default_output if output == "auto" else self._number(output)

    def pick(self, output: Any = "auto") -> TreeModel:
        """Return the model with one output or all.

        ``output`` is "auto" (the default output if there is one), "all", an int or a name.
        """
        o = self.output_number(output)
        if o is None or self.single_output:
            return self
        trees = self.trees
        trees = replace(
            trees,
            value=np.ascontiguousarray(trees.value[:, [o]]),
            constant=trees.constant[[o]],
            linear=None if trees.linear is None else trees.linear.pick(o),
        )
        keep = np.flatnonzero((self.tree_output == o) | (self.tree_output < 0))
        return replace(
            self,
            trees=take_trees(trees, keep),
            output_names=(self.output_names[o],),
            single_output=True,
            tree_output=np.full(len(keep), -1, np.int32),
            tree_stage=self.tree_stage[keep],
            default_output=None,
        )

    def _number(self, output: Any) -> int:
        if isinstance(output, (int, np.integer)) and not isinstance(output, bool):
            if -len(self.output_names) <= output < len(self.output_names):
                return int(output) % len(self.output_names)  # negative numbers count from the end
            raise InputError(no_output(self.name, output, self.output_names))
        if output in self.output_names:
            return self.output_names.index(output)
        raise UnknownNameError(no_output(self.name, output, ("auto", "all", *self.output_names)))


def model_of(
    trees: FlatTrees,
    raw: Sequence[RawTree] | RawForest,
    *,
    tree_stage: ArrayLike | None = None,
    boosted: bool = True,
    **facts: Any,
) -> TreeModel:
    """Describe trees that were built; by default each boosted one is a round."""
    outputs = raw.output if isinstance(raw, RawForest) else [tree.output for tree in raw]
    stages = np.arange(trees.n_trees) * boosted if tree_stage is None else tree_stage
    return TreeModel(
        trees=trees,
        single_output=trees.n_outputs == 1,
        tree_output=np.array(outputs, np.int32),
        tree_stage=np.asarray(stages, np.int32),
        boosted=boosted,
        **facts,
    )


def fitted_columns(model: Model) -> tuple[str, ...] | None:
    """Return the columns of a scikit-learn estimator."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


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
