"""Check trees as libraries store them, and lay them out as :class:`FlatTrees`, from live models and files alike."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from exactshap._native import kernel
from exactshap.errors import ModelFormatError, memory_needed, message
from exactshap.trees.ensemble._flat import FlatTrees, LeafFunction, LinearLeaves, offsets_of

MAX_DEPTH = 10_000
MAX_NODES = 100_000_000
# Leaf values of all nodes and outputs: 4 GiB.
MAX_CELLS = 2**29

# As in layout.cpp: the faults of a node, and the array of each
FAULTS = (
    ("", ""),
    ("left child", "left"),
    ("right child", "right"),
    ("reached twice. The nodes form a cycle or share a child", ""),
    ("deeper than {} levels", ""),
    ("feature", "feature"),
    ("threshold", "threshold"),
    ("leaf value", "value"),
    ("cover", "cover"),
    ("missing direction", "missing"),
)


@dataclass(frozen=True, eq=False)
class RawTree:
    """Hold one tree as a library stores it; unreachable nodes are allowed.

    Parameters
    ----------
    feature : int array of shape (n_nodes,)
        The column of each split; not read at leaves.
    threshold : array of shape (n_nodes,)
    left, right : int arrays of shape (n_nodes,)
        Children; -1 at leaves.
    value : array of shape (n_nodes,) or (n_nodes, n_outputs)
        Read at leaves only.
    cover : array of shape (n_nodes,), default=None
        Read at leaves only; None if the library kept none.
    missing : int8 array of shape (n_nodes,), default=None
        Where missing values go; None: right.
    zero_is_missing : bool array of shape (n_nodes,), default=None
        Whether zeros are treated as missing at the node; None: nowhere.
    categories : dict of node to uint32 array, optional
        Bit sets of the categories that go left.
    output : int, default=-1
        Output that a one-dimensional ``value`` adds to; -1: the only one, or all.
    root : int, default=0
    functions : dict of node to LeafFunction, optional
        Linear functions of leaves, added to their values.

    Examples
    --------
    >>> leaf = RawTree(np.array([-1]), np.zeros(1), np.array([-1]), np.array([-1]), np.array([2.5]), np.array([10.0]))
    >>> leaf.root, leaf.output
    (0, -1)
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    cover: np.ndarray | None = None
    missing: np.ndarray | None = None
    zero_is_missing: np.ndarray | None = None
    categories: dict[int, np.ndarray] = field(default_factory=dict)
    output: int = -1
    root: int = 0
    functions: dict[int, LeafFunction] = field(default_factory=dict)


class Forest(NamedTuple):
    """Hold trees as a library stores them; children are numbered within a tree, roots over all trees."""

    offset: np.ndarray  # int64 (n_trees + 1,): the trees' first nodes
    root: np.ndarray  # int64 (n_trees,)
    feature: np.ndarray  # int64 (n_nodes,); left and right likewise
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray  # float64 (n_nodes,)
    cover: np.ndarray  # float64 (n_nodes,), read at leaves
    missing: np.ndarray  # int8 (n_nodes,)
    zero_is_missing: np.ndarray  # bool (n_nodes,)
    value: np.ndarray  # float64 (n_nodes, n_outputs), read at leaves


@dataclass(frozen=True, eq=False)
class RawForest:
    """Hold all trees of an ensemble, one after the other, in the same arrays."""

    nodes: Forest
    output: np.ndarray  # int64 (n_trees,): the only one that a tree adds to, or -1
    # bit sets, if there are any: node numbers (over all trees), the start of each node's words, their number, and the words
    sets: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None
    # linear functions of leaves (over all trees), and the output that each adds to
    functions: dict[int, tuple[LeafFunction, int]] = field(default_factory=dict)


class Laid(NamedTuple):
    """Hold the reachable nodes as in :class:`~exactshap.trees.FlatTrees`; ``order`` has their numbers in the forest."""

    tree_start: np.ndarray
    order: np.ndarray  # int64 (n_nodes,)
    feature: np.ndarray
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray
    cover: np.ndarray
    missing: np.ndarray
    zero_is_missing: np.ndarray
    value: np.ndarray


lay_out = kernel("trees.lay_out(forest, laid, n_features, max_depth)")


def build(
    raw: Sequence[RawTree] | RawForest, *, n_features: int, constant: ArrayLike, less_equal: bool, single_precision: bool
) -> FlatTrees:
    """Lay trees out in one set of arrays. Parents come before children, ``right == left + 1``, leaf covers are summed upwards.

    Parameters
    ----------
    raw : sequence of RawTree, or RawForest
    n_features : int
    constant : array of shape (n_outputs,)
        Constant that the trees are added to.
    less_equal : bool
        Whether a value equal to the threshold goes left.
    single_precision : bool
        Whether the library compares in float32.

    Returns
    -------
    trees : FlatTrees

    Raises
    ------
    ModelFormatError
        Naming tree and node, for child numbers out of range, cycles, shared nodes, columns out of range, values or linear functions that are
        not finite, negative covers and trees deeper than ``MAX_DEPTH``.

    Examples
    --------
    >>> from exactshap.trees import RawTree, build
    >>> stump = RawTree(
    ...     feature=np.array([0, -1, -1]), threshold=np.array([0.5, 0.0, 0.0]), left=np.array([1, -1, -1]),
    ...     right=np.array([2, -1, -1]), value=np.array([0.0, 1.0, 2.0]), cover=np.array([0.0, 3.0, 1.0]),
    ... )
    >>> trees = build([stump], n_features=1, constant=np.zeros(1), less_equal=True, single_precision=False)
    >>> trees.cover.tolist()
    [4.0, 3.0, 1.0]
    """
    constant = np.atleast_1d(np.asarray(constant, float)).copy()
    # Before anything is allocated: a file's claim of billions of nodes must not take the memory first
    sizes = np.diff(raw.nodes.offset) if isinstance(raw, RawForest) else np.array([len(tree.feature) for tree in raw], np.int64)
    check_totals(sizes, constant)
    forest = raw if isinstance(raw, RawForest) else joined(raw, len(constant))
    laid = _laid(forest, len(constant), int(n_features))
    start, count, words = _category_sets(forest, laid.order)
    trees = FlatTrees(
        **{name: values for name, values in laid._asdict().items() if name != "order"},
        category_start=start,
        category_count=count,
        category_words=words,
        constant=constant,
        n_features=int(n_features),
        less_equal=bool(less_equal),
        single_precision=bool(single_precision),
        linear=collected(forest.functions, laid.feature, laid.order, int(n_features), len(constant)),
    )
    # Finite leaves can still add up to infinity, which no check of single nodes sees
    if not np.isfinite(largest_sum(trees)):
        raise ModelFormatError("The leaf values are too large", "Their sum over the trees overflows")
    return trees


def complete_forest(depth: int, n_trees: int, n_features: int) -> FlatTrees:
    """Return complete trees with random splits of standard normal columns, to measure speed."""
    # Always the same forest, so that measured figures can be compared
    rng = np.random.default_rng(0)
    place = np.arange(2 ** (depth + 1) - 1)
    is_split = place < 2**depth - 1
    raw = [
        RawTree(
            feature=np.where(is_split, rng.integers(0, n_features, len(place)), -1),
            threshold=rng.normal(size=len(place)) / 2.0,
            # A complete tree in level order: the children of node q are 2q + 1 and 2q + 2
            left=np.where(is_split, 2 * place + 1, -1),
            right=np.where(is_split, 2 * place + 2, -1),
            value=rng.normal(size=len(place)),
            cover=np.ones(len(place)),
        )
        for _ in range(n_trees)
    ]
    return build(raw, n_features=n_features, constant=np.zeros(1), less_equal=True, single_precision=False)


def largest_sum(trees: FlatTrees) -> float:
    """Bound the sum of magnitudes in one prediction."""
    with np.errstate(over="ignore"):
        return float(trees.largest.sum() + np.abs(trees.constant).max(initial=0.0))


def check_totals(sizes: np.ndarray, constant: np.ndarray) -> None:
    """Refuse trees of too many nodes or leaf values, by their numbers of nodes, and constants that are not finite."""
    n_nodes = int(sizes.sum())
    if n_nodes > MAX_NODES:
        raise ModelFormatError("The model has too many nodes", f"Got {n_nodes}; the limit is {MAX_NODES}")
    if n_nodes * len(constant) > MAX_CELLS:
        needed = 8.0 * float(n_nodes) * len(constant)
        raise ModelFormatError(
            "The table of leaf values does not fit",
            f"{n_nodes} nodes x {len(constant)} outputs would need {memory_needed(needed, 8.0 * MAX_CELLS)}",
        )
    if not np.all(np.isfinite(constant)):
        raise ModelFormatError("The model's constant (base score) must be finite", f"Got {constant.tolist()}")
    if (sizes == 0).any():
        raise ModelFormatError(f"tree {int(np.argmin(sizes))}: has no nodes")


def joined(raw: Sequence[RawTree], n_outputs: int) -> RawForest:
    """Return the trees as one; refuse arrays that differ in length, naming the tree."""
    for k, tree in enumerate(raw):
        _check_tree(tree, k, n_outputs)
    offset = offsets_of(np.array([len(tree.feature) for tree in raw], np.int64))
    values = [_dense(np.asarray(tree.value, float), tree.output, n_outputs) for tree in raw]
    threshold, sets = _chain(raw, "threshold", float), _sets(raw, offset)
    if sets is not None:
        # What a library keeps in their place, such as the number of a set, need not be a valid threshold
        threshold[sets[0]] = 0.0
    nodes = Forest(
        offset,
        offset[:-1] + np.array([tree.root for tree in raw], np.int64),
        feature=_chain(raw, "feature", np.int64),
        left=_chain(raw, "left", np.int64),
        right=_chain(raw, "right", np.int64),
        threshold=threshold,
        cover=_chain(raw, "cover", float),
        missing=_chain(raw, "missing", np.int8),
        zero_is_missing=_chain(raw, "zero_is_missing", bool),
        value=np.ascontiguousarray(np.concatenate([np.empty((0, n_outputs)), *values])),
    )
    return RawForest(nodes, np.array([tree.output for tree in raw], np.int64), sets, _functions(raw, offset))


def _dense(value: np.ndarray, output: int, n_outputs: int) -> np.ndarray:
    """Return the values (n_nodes, n_outputs) of one tree."""
    if value.ndim == 2:
        return value
    dense = np.zeros((len(value), n_outputs))
    dense[:, max(output, 0)] = value
    return dense


def _chain(raw: Sequence[RawTree], name: str, dtype: type) -> np.ndarray:
    """Return one array of all trees' nodes, zeros where a tree has none."""
    arrays = [getattr(tree, name) for tree in raw]
    parts = [np.zeros(len(t.feature), dtype) if a is None else a for t, a in zip(raw, arrays, strict=True)]
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype)


def _sets(raw: Sequence[RawTree], offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    sets = [
        (int(offset[k]) + node, np.asarray(bits, np.uint32))
        for k, tree in enumerate(raw)
        for node, bits in tree.categories.items()
        if 0 <= node < len(tree.feature)
    ]
    if not sets:
        return None
    counts = np.array([len(bits) for _, bits in sets], np.int64)
    # Start of each set's words among all words
    start = np.cumsum(counts) - counts
    return np.array([q for q, _ in sets], np.int64), start, counts, np.concatenate([bits for _, bits in sets])


def _functions(raw: Sequence[RawTree], offset: np.ndarray) -> dict[int, tuple[LeafFunction, int]]:
    for k, tree in enumerate(raw):
        if wrong := [node for node in tree.functions if not 0 <= node < len(tree.feature)]:
            raise ModelFormatError(f"tree {k}: no node {wrong[0]} for a linear function")
    return {
        int(offset[k]) + node: (function, tree.output)
        for k, tree in enumerate(raw)
        for node, function in tree.functions.items()
    }


def _check_tree(tree: RawTree, k: int, n_outputs: int) -> None:
    n = len(tree.feature)
    lengths = {
        name: len(values)
        for name in ("threshold", "left", "right", "value", "cover", "missing", "zero_is_missing")
        if (values := getattr(tree, name)) is not None and len(values) != n
    }
    if lengths:
        raise ModelFormatError(f"tree {k}: arrays of {n} nodes differ in length", f"Got {lengths}")
    outputs = np.shape(tree.value)[1] if np.ndim(tree.value) == 2 else n_outputs if tree.output >= 0 else 1
    if outputs != n_outputs or tree.output >= n_outputs or not 0 <= tree.root < n:
        raise ModelFormatError(
            f"tree {k}: leaves for {outputs} outputs or output {tree.output} out of range", f"The model has {n_outputs}"
        )


def _laid(forest: RawForest, n_outputs: int, n_features: int) -> Laid:
    """Return the reachable nodes by tree and level. Siblings are adjacent, and covers summed upwards."""
    given, n = forest.nodes, len(forest.nodes.left)
    numbers = functools.partial(np.empty, n)
    laid = Laid(
        np.empty(len(given.offset), np.int64),
        order=numbers(np.int64),
        feature=numbers(np.int32),
        left=numbers(np.int32),
        right=numbers(np.int32),
        threshold=numbers(),
        cover=numbers(),
        missing=numbers(np.int8),
        zero_is_missing=numbers(bool),
        value=np.empty((n, n_outputs)),
    )
    n_reached, fault, q, place = lay_out(given, laid, n_features, MAX_DEPTH)
    if fault:
        raise ModelFormatError(_fault(given, laid.cover[place], n_features, fault, q))
    # All nodes are reachable: no copy
    if n_reached == n:
        return laid
    # Unreachable nodes (deleted ones that files keep) are left out; copies release their memory
    return Laid(laid.tree_start, *(values[:n_reached].copy() for values in laid[1:]))


def _fault(given: Forest, cover: float, n_features: int, fault: int, q: int) -> str:
    """Say what is wrong with node q."""
    # The last tree that starts at or before q
    k = int(np.searchsorted(given.offset, q, side="right")) - 1
    (what, name), where = FAULTS[fault], f"tree {k} node {q - given.offset[k]}"
    if name == "":
        return message(f"{where}: {what.format(MAX_DEPTH)}")
    got = cover if name == "cover" else getattr(given, name)[q]
    if name in ("left", "right"):
        return message(f"{where}: {what} {got} out of range [0, {given.offset[k + 1] - given.offset[k]})")
    return message(f"{where}: {what} is not valid{f' for {n_features} columns' if name == 'feature' else ''}", f"Got {got}")


def _category_sets(forest: RawForest, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, count = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int32)
    if forest.sets is None:
        return start, count, np.zeros(1, np.uint32)
    nodes, starts, counts, words = forest.sets
    # Sets are listed by the file's nodes; -1 marks unreachable ones
    number = np.full(len(forest.nodes.left), -1, np.int64)
    number[order] = np.arange(len(order))
    reached = number[nodes] >= 0
    start[number[nodes[reached]]], count[number[nodes[reached]]] = starts[reached], counts[reached]
    return start, count, words if len(words) else np.zeros(1, np.uint32)


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
