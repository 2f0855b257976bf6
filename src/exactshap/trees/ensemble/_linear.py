"""Hold linear functions of leaves, which add to the constant values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exactshap.errors import ModelFormatError


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Return the start of each owner's items in compressed rows."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def taken(start: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return some owners' starts in compressed rows, and their items' old positions."""
    counts = np.diff(start)[chosen]
    new = offsets_of(counts)
    # Number the new items, and shift each owner's by the distance between its starts
    return new, np.arange(new[-1]) + np.repeat(start[chosen] - new[:-1], counts)


class LeafFunction(NamedTuple):
    """Hold the linear function of one leaf, beyond the leaf's constant value.

    A row that reaches the leaf gets ``value + offset + sum(coefficients * x[columns])``; where one of the columns is missing (NaN),
    it gets ``value`` alone, as in LightGBM.

    Parameters
    ----------
    columns : int array of shape (n_terms,)
        Columns of the function. The path to the leaf need not split on them.
    coefficients : array of shape (n_terms,) or (n_terms, n_outputs)
    offset : float or array of shape (n_outputs,), default=0.0

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap.trees import LeafFunction, RawTree, build, margin
    >>> leaf = RawTree(np.array([-1]), np.zeros(1), np.array([-1]), np.array([-1]), np.array([2.5]),
    ...                functions={0: LeafFunction([0, 1], [1.0, -2.0])})
    >>> trees = build([leaf], n_features=2, constant=np.zeros(1), less_equal=True, single_precision=False)
    >>> margin(trees, [[3.0, 1.0], [np.nan, 1.0]]).tolist()
    [[3.5], [2.5]]
    """

    columns: Sequence[int] | np.ndarray
    coefficients: Sequence[float] | np.ndarray
    offset: float | np.ndarray = 0.0


class LeafTerms(NamedTuple):
    """Bundle what kernels read of :class:`LinearLeaves`."""

    start: np.ndarray
    column: np.ndarray
    coefficient: np.ndarray
    offset: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class LinearLeaves:
    """Hold linear functions of leaves in compressed rows: node q owns terms ``start[q]:start[q + 1]``."""

    start: np.ndarray  # int64 (n_nodes + 1,)
    column: np.ndarray  # int32 (n_terms,)
    coefficient: np.ndarray  # float64 (n_terms, n_outputs)
    offset: np.ndarray  # float64 (n_nodes, n_outputs): added where no column of the leaf's terms is missing

    @property
    def arrays(self) -> LeafTerms:
        return LeafTerms(self.start, self.column, self.coefficient, self.offset)

    @property
    def node(self) -> np.ndarray:
        """Return the node (n_terms,) of each term."""
        return np.repeat(np.arange(len(self.offset)), np.diff(self.start))

    @property
    def columns(self) -> np.ndarray:
        """Return the columns that any leaf multiplies, ascending."""
        return np.unique(self.column)

    def take(self, nodes: np.ndarray) -> LinearLeaves:
        """Return the functions of some nodes, in the given order."""
        start, terms = taken(self.start, nodes)
        return LinearLeaves(start, self.column[terms], self.coefficient[terms], self.offset[nodes])

    def pick(self, output: int) -> LinearLeaves:
        """Return the functions of one output."""
        coefficient, offset = (np.ascontiguousarray(values[:, [output]]) for values in (self.coefficient, self.offset))
        return replace(self, coefficient=coefficient, offset=offset)


def collected(
    functions: Mapping[int, tuple[LeafFunction, int]], feature: np.ndarray, order: np.ndarray, n_features: int, n_outputs: int
) -> LinearLeaves | None:
    """Return the functions of a forest's nodes after they are laid out; None if there are none.

    ``functions`` has each node's function and the output that it adds to (-1: the only one, or all); ``order`` is each laid
    node's number in the forest.
    """
    if not functions:
        return None
    n = len(order)
    counts, offset = np.zeros(n, np.int64), np.zeros((n, n_outputs))
    columns, coefficients = [np.empty(0, np.int32)], [np.empty((0, n_outputs))]
    for q, node in enumerate(order.tolist()):
        if node not in functions:
            continue
        function, output = functions[node]
        column, coefficient, offset[q] = _checked(function, output, f"leaf {node}", n_features, n_outputs)
        # No row stops at a split, so its function would silently be ignored
        if feature[q] >= 0:
            raise ModelFormatError(f"node {node}: has a linear function", "It splits; only leaves have functions")
        counts[q] = len(column)
        columns.append(column)
        coefficients.append(coefficient)
    return LinearLeaves(offsets_of(counts), np.concatenate(columns), np.ascontiguousarray(np.concatenate(coefficients)), offset)


def _checked(
    function: LeafFunction, output: int, where: str, n_features: int, n_outputs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns, coefficients (n_terms, n_outputs) and the offset (n_outputs,) of one leaf."""
    column, coefficient = np.asarray(function.columns), np.asarray(function.coefficients, float)
    if column.ndim != 1 or len(coefficient) != len(column) or (len(column) and column.dtype.kind not in "iu"):
        raise ModelFormatError(
            f"{where}: columns and coefficients differ in length", f"Got {column.shape}, {coefficient.shape}"
        )
    if len(column) and not (column.min() >= 0 and column.max() < n_features):
        raise ModelFormatError(f"{where}: a column is not valid for {n_features} columns", f"Got {column.tolist()}")
    dense, offset = np.zeros((len(column), n_outputs)), np.zeros(n_outputs)
    chosen = [output] if output >= 0 else list(range(n_outputs))
    if coefficient.ndim == 2 and coefficient.shape[1] != n_outputs:
        raise ModelFormatError(f"{where}: coefficients of {coefficient.shape[1]} outputs", f"The model has {n_outputs}")
    # One column of coefficients serves all chosen outputs
    dense[:, chosen] = coefficient[:, None] if coefficient.ndim == 1 else coefficient[:, chosen]
    offset[chosen] = np.broadcast_to(function.offset, n_outputs)[chosen]
    if not (np.isfinite(dense).all() and np.isfinite(offset).all()):
        raise ModelFormatError(f"{where}: the linear function must be finite", f"Got {function}"[:200])
    return column.astype(np.int32), dense, offset
