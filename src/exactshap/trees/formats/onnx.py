"""Convert ONNX ensembles to flat trees: ``TreeEnsembleRegressor``, ``TreeEnsembleClassifier`` and ``TreeEnsemble``.

A file is refused where onnxruntime deviates from the definition of the operators (scores that no leaf adds to, targets of inner
nodes, nodes out of order).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from exactshap._graphs import Attributes, OnnxFile, TreeCore, refused
from exactshap.errors import ModelFormatError
from exactshap.trees.ensemble import MAX_CELLS, MAX_NODES, Forest, RawForest, TreeModel, largest_sum, model_of, offsets_of
from exactshap.trees.formats._document import MAX_OUTPUTS, guarded, names_of_outputs, parents_first

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
# Of the first four modes: whether equal values fail, and whether the larger values pass
_STRICT, _TURNED = (False, True, True, False), (False, False, True, True)
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_UNITS = {"NONE": "target", "LOGISTIC": "log-odds", "SOFTMAX": "score before the softmax"}


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Hold nodes of all trees, one tree after the other; ``true`` and ``false`` are positions, -1 at leaves."""

    sizes: np.ndarray
    mode: np.ndarray  # places among _MODES, -1 at leaves
    feature: np.ndarray
    threshold: np.ndarray
    true: np.ndarray
    false: np.ndarray
    missing_true: np.ndarray


@dataclass(frozen=True, eq=False)
class _Leaves:
    """Hold what leaves add: ``value`` (n_nodes, n_outputs), and where they add something."""

    value: np.ndarray
    given: np.ndarray


def from_bytes(content: bytes, *, name: str) -> TreeModel:
    """Return the trees of a file that consists of one ensemble."""
    parts = OnnxFile(content, name).split()
    if not isinstance(parts.core, TreeCore) or parts.front is not None:
        held = "other steps" if isinstance(parts.core, TreeCore) else parts.core.attributes.kind
        raise refused(f"{name!r} holds more than an ensemble of trees", f"Got {held}; explain(path, X) reads the whole file")
    return convert(parts.core)


@guarded("ensemble of trees")
def convert(core: TreeCore) -> TreeModel:
    """Return the scores of an ensemble, before their transform."""
    attributes = core.attributes
    if attributes.kind == "TreeEnsemble":
        nodes, leaves, names, post = _ensemble(attributes)
    else:
        nodes = _nodes(attributes)
        leaves, names, post = _outputs(attributes, nodes)
    if post != "NONE" and len(leaves.value[0]) == 1 and not attributes.kind.endswith("Classifier"):
        raise refused("onnxruntime leaves out the transform of a single output", f"Got post_transform={post}")
    constant = _base_values(attributes, len(names))
    share = core.scale * _share(attributes, len(nodes.sizes))
    if core.normalised and post != "SOFTMAX":  # shares that sum to 1 already
        raise refused("Scores of classes are divided by their sum")
    model = _model(core, nodes, share * leaves.value, core.scale * constant + core.shift, names, post)
    if core.column is None:
        return model
    if core.column != (1 if model.single_output else core.column % len(names)):
        raise refused("The file goes on with one score of several", f"Got number {core.column}")
    return model.pick(core.column)


def _model(
    core: TreeCore, nodes: _Nodes, value: np.ndarray, constant: np.ndarray, names: tuple[str, ...], post: str
) -> TreeModel:
    single = core.dtype is np.float32
    threshold, turned, less_equal = _comparisons(nodes, single=single)
    left, right = np.where(turned, nodes.false, nodes.true), np.where(turned, nodes.true, nodes.false)
    is_split, offset = left >= 0, offsets_of(nodes.sizes)
    first = np.repeat(offset[:-1], nodes.sizes)
    forest = Forest(
        offset,
        offset[:-1],
        feature=np.where(is_split, nodes.feature, -1),
        left=np.where(is_split, left - first, -1),
        right=np.where(right >= 0, right - first, -1),
        threshold=np.where(is_split, threshold, 0.0),
        cover=np.zeros(len(left)),
        missing=(nodes.missing_true ^ turned).astype(np.int8),
        zero_is_missing=np.zeros(len(left), bool),
        value=np.ascontiguousarray(value),
    )
    raw = RawForest(forest, _tree_outputs(value, nodes.sizes))
    is_classifier = core.attributes.kind.endswith("Classifier")
    model = model_of(
        raw,
        constant,
        n_features=core.n_columns,
        less_equal=less_equal,
        single_precision=single,
        library="onnx",
        name=core.name,
        unit="log of the target" if core.exponential else _UNITS.get(post, "score"),
        output_names=names,
        boosted=False,
        objective="exponential" if core.exponential else post,
        default_output=1 if is_classifier and value.shape[1] == 2 else None,
        epsilon=float(np.finfo(np.float32).eps),
    )
    if model.trees.n_nodes < len(nodes.mode):
        raise ModelFormatError(f"{len(nodes.mode) - model.trees.n_nodes} nodes belong to no tree")
    if is_classifier and post == "NONE":
        shares = not np.any(constant) and value.min() >= 0.0 and largest_sum(model.trees) <= 1.001
        return replace(model, unit="probability" if shares else "score")
    return model


def _comparisons(nodes: _Nodes, *, single: bool) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return thresholds for one comparison, whether the false child is left, and whether equal values go left.

    Where strict comparisons are mixed with others, x < t becomes x <= the number before t.
    """
    inner = nodes.mode >= 0
    mode = np.maximum(nodes.mode, 0)
    if inner.any() and mode.max() >= len(_STRICT):
        raise refused("An ensemble of ONNX splits on equality or sets", f"Got {_MODES[int(mode.max())]}")
    strict, turned = np.array(_STRICT)[mode] & inner, np.array(_TURNED)[mode] & inner
    if not strict.any() or (strict | ~inner).all():
        return nodes.threshold, turned, not strict.any()
    kind = np.float32 if single else np.float64
    # In the precision of the comparison: the number before t in float64 would be t again in float32
    before = np.nextafter(nodes.threshold.astype(kind), kind(-np.inf)).astype(float)
    return np.where(strict, before, nodes.threshold), turned, True


def _tree_outputs(value: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the output that each tree adds to; -1 for several, or a single one."""
    if value.shape[1] == 1:
        return np.full(len(sizes), -1, np.int64)
    adds = np.logical_or.reduceat(value != 0.0, np.cumsum(sizes) - sizes, axis=0)
    return np.where(adds.sum(axis=1) == 1, adds.argmax(axis=1), -1)


# -- the operators of versions 1 to 3 ------------------------------------------------------------------------------------
def _nodes(attributes: Attributes) -> _Nodes:
    tree, number = attributes.integers("nodes_treeids"), attributes.integers("nodes_nodeids")
    n = len(tree)
    if not 0 < n <= MAX_NODES:
        raise ModelFormatError("An ensemble of ONNX has no nodes, or too many", f"Got {n}")
    modes = np.array(attributes.texts("nodes_modes"))
    places = {mode: place for place, mode in enumerate(_MODES)}
    values = attributes.numbers("nodes_values", finite=False)
    true, false = attributes.integers("nodes_truenodeids"), attributes.integers("nodes_falsenodeids")
    feature = attributes.integers("nodes_featureids")
    tracks = attributes.integers("nodes_missing_value_tracks_true")
    lengths = {len(array) for array in (number, modes, values, true, false, feature)}
    if len(tracks):  # which may be left out
        lengths.add(len(tracks))
    if lengths != {n}:
        raise ModelFormatError("The lists of nodes differ in length", f"Got {sorted(lengths)} for {n} nodes")
    if unknown := set(modes.tolist()) - {"LEAF", *places}:
        raise ModelFormatError("A node has an unknown mode", f"Got {sorted(unknown)!r:.80}")
    # A tree starts wherever the number of the tree changes
    starts = np.flatnonzero(np.concatenate([[True], tree[1:] != tree[:-1]]))
    if len(np.unique(tree[starts])) < len(starts):
        raise refused("The nodes of a tree do not stand together")
    sizes = np.diff(np.append(starts, n))
    trees = np.repeat(np.arange(len(sizes)), sizes)
    find, leaf = _Finder(trees, number), modes == "LEAF"
    return _Nodes(
        sizes=sizes.astype(np.int64),
        mode=np.array([places.get(mode, -1) for mode in modes.tolist()], np.int64),
        feature=feature,
        threshold=values,
        true=np.where(leaf, -1, find(trees, np.where(leaf, number, true), "true child")),
        false=np.where(leaf, -1, find(trees, np.where(leaf, number, false), "false child")),
        missing_true=_truths(tracks, n, "nodes_missing_value_tracks_true"),
    )


def _truths(numbers: np.ndarray, n: int, name: str) -> np.ndarray:
    """Return an attribute's numbers as truth values; none are there where the attribute is left out."""
    if not len(numbers):
        return np.zeros(n, bool)
    if numbers.min() < 0 or numbers.max() > 1:
        raise ModelFormatError(f"{name} must hold zeros and ones")
    return numbers.astype(bool)


class _Finder:
    """Find a node's position by the numbers of its tree and itself."""

    def __init__(self, tree: np.ndarray, number: np.ndarray) -> None:
        self._known = np.unique(number)
        # Ranks, as numbers may be as large as 2^63: tree * rank cannot overflow
        key = tree * len(self._known) + np.searchsorted(self._known, number)
        self._order = np.argsort(key, kind="stable")
        self._keys = key[self._order]
        if (np.diff(self._keys) == 0).any():
            raise ModelFormatError("A tree has two nodes of one number")

    def __call__(self, tree: np.ndarray, number: np.ndarray, what: str) -> np.ndarray:
        rank = np.searchsorted(self._known, number)
        is_known = (rank < len(self._known)) & (self._known[np.minimum(rank, len(self._known) - 1)] == number)
        key = tree * len(self._known) + rank
        # A key above the last one has no position; the comparison below marks it as missing
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        wrong = ~is_known | (self._keys[place] != key)
        if wrong.any():
            raise ModelFormatError(f"A {what} is missing", f"Got {number[wrong][0]}")
        return self._order[place]


def _outputs(attributes: Attributes, nodes: _Nodes) -> tuple[_Leaves, tuple[str, ...], str]:
    """Return leaf values, names of the outputs, and the transform that follows."""
    post = attributes.text("post_transform", "NONE")
    if post not in _TRANSFORMS:
        raise ModelFormatError("post_transform is unknown", f"Got {post!r}")
    if attributes.kind == "TreeEnsembleRegressor":
        n_outputs = attributes.integer("n_targets", 1)
        return _added(attributes, nodes, "target", n_outputs), names_of_outputs(n_outputs, "target"), post
    labels = attributes.texts("classlabels_strings") or tuple(map(str, attributes.integers("classlabels_int64s")))
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise refused("A classifier has one label, or one twice", f"Got {labels!r:.80}")
    return _of_classes(attributes, nodes, labels, post)


def _of_classes(
    attributes: Attributes, nodes: _Nodes, labels: tuple[str, ...], post: str
) -> tuple[_Leaves, tuple[str, ...], str]:
    """Return the scores of classes, or that of the second of two classes.

    onnxruntime skips the transform of a class that no leaf adds to, and treats two classes in its own way.
    """
    leaves = _added(attributes, nodes, "class", len(labels))
    used = leaves.given.any(axis=0)
    if len(labels) == 2 and used.sum() == 1:
        if post not in ("NONE", "LOGISTIC"):
            raise refused("Two classes have one score", f"Got post_transform={post}")
        return _Leaves(leaves.value[:, used], leaves.given[:, used]), labels[1:], post
    leaf = nodes.mode < 0
    start = np.cumsum(nodes.sizes) - nodes.sizes
    always = np.logical_and.reduceat(leaves.given | ~leaf[:, None], start, axis=0).any(axis=0)
    if not always.all():
        raise refused("A class has no score for every row", f"Got {labels[int(np.argmin(always))]!r}")
    return leaves, labels, post


def _added(attributes: Attributes, nodes: _Nodes, kind: str, n_outputs: int) -> _Leaves:
    """Return the weights of leaves from the lists of targets or classes."""
    n = len(nodes.mode)
    if not 0 < n_outputs <= MAX_OUTPUTS or n * n_outputs > MAX_CELLS:
        raise ModelFormatError("The number of outputs is out of range", f"Got {n_outputs}")
    tree, number = attributes.integers(f"{kind}_treeids"), attributes.integers(f"{kind}_nodeids")
    output, weight = attributes.integers(f"{kind}_ids"), attributes.numbers(f"{kind}_weights")
    if not len(tree) == len(number) == len(output) == len(weight):
        raise ModelFormatError(f"The lists of {kind} weights differ in length")
    if not len(output) or output.min() < 0 or output.max() >= n_outputs:
        raise ModelFormatError(f"{kind}_ids are out of range", f"The model has {n_outputs} outputs")
    place = _Finder(attributes.integers("nodes_treeids"), attributes.integers("nodes_nodeids"))(tree, number, "leaf")
    value, given = np.zeros((n, n_outputs)), np.zeros((n, n_outputs), bool)
    if (nodes.mode[place] >= 0).any() or len(np.unique(place * n_outputs + output)) < len(place):
        raise refused("A weight belongs to an inner node, or to a leaf that has it already")
    value[place, output], given[place, output] = weight, True
    return _Leaves(value, given)


def _base_values(attributes: Attributes, n_outputs: int) -> np.ndarray:
    base = np.empty(0) if attributes.kind == "TreeEnsemble" else attributes.numbers("base_values")
    if attributes.kind == "TreeEnsembleClassifier" and n_outputs == 1 and base.size and attributes.integers("class_ids").any():
        raise refused("The score of two classes is that of the second, and has base values")
    if base.size not in (0, n_outputs):
        raise refused("The number of base values is not that of the outputs", f"Got {base.size} for {n_outputs}")
    return base if base.size else np.zeros(n_outputs)


def _share(attributes: Attributes, n_trees: int) -> float:
    if attributes.kind == "TreeEnsemble":
        how = {0: "AVERAGE", 1: "SUM"}.get(attributes.integer("aggregate_function", 1), "another")
    else:
        how = attributes.text("aggregate_function", "SUM")
    if how not in ("SUM", "AVERAGE"):
        raise refused("The trees of an ensemble are read as their sum or average", f"Got {how}")
    return 1.0 / n_trees if how == "AVERAGE" else 1.0


# -- the operator of version 5 -------------------------------------------------------------------------------------------
def _ensemble(attributes: Attributes) -> tuple[_Nodes, _Leaves, tuple[str, ...], str]:
    """Read a ``TreeEnsemble``, in which leaves are a separate list that becomes nodes here."""
    n_outputs, place = attributes.integer("n_targets", 1), attributes.integer("post_transform", 0)
    if not 0 <= place < len(_TRANSFORMS):
        raise ModelFormatError("post_transform is unknown", f"Got {place}")
    target, weight = attributes.integers("leaf_targetids"), np.ravel(attributes.tensor("leaf_weights")).astype(float)
    if (
        not 0 < n_outputs <= MAX_OUTPUTS
        or not len(target) == len(weight) > 0
        or not 0 <= target.min() <= target.max() < n_outputs
    ):
        raise ModelFormatError("The leaves of an ensemble are out of range", f"The model has {n_outputs} outputs")
    inner = _inner_nodes(attributes, len(target))
    sizes, node, true, false = _numbered(inner, _roots(attributes, len(inner.feature)), len(target))
    is_leaf, split = node < 0, np.maximum(node, 0)
    if len(np.unique(split[~is_leaf])) < (~is_leaf).sum() or len(node) * n_outputs > MAX_CELLS:
        raise ModelFormatError("Two trees share a node, or the table of leaf values does not fit")
    offset = np.repeat(np.cumsum(sizes) - sizes, sizes)
    value, given = np.zeros((len(node), n_outputs)), np.zeros((len(node), n_outputs), bool)
    places = np.flatnonzero(is_leaf)
    leaf = -1 - node[places]
    value[places, target[leaf]], given[places, target[leaf]] = weight[leaf], True
    nodes = _Nodes(
        sizes=sizes,
        mode=np.where(is_leaf, -1, inner.mode[split]),
        feature=inner.feature[split],
        threshold=inner.threshold[split],
        true=np.where(is_leaf, -1, true + offset),
        false=np.where(is_leaf, -1, false + offset),
        missing_true=inner.missing_true[split] & ~is_leaf,
    )
    return nodes, _Leaves(value, given), names_of_outputs(n_outputs, "target"), _TRANSFORMS[place]


def _inner_nodes(attributes: Attributes, n_leaves: int) -> _Nodes:
    """Return the splits; a child that is leaf number k is -1 - k."""
    feature, split = attributes.integers("nodes_featureids"), np.ravel(attributes.tensor("nodes_splits")).astype(float)
    mode = np.ravel(attributes.tensor("nodes_modes")).astype(np.int64)
    n, tracks = len(feature), attributes.integers("nodes_missing_value_tracks_true")
    if not 0 < n <= MAX_NODES or {len(split), len(mode)} != {n} or len(tracks) not in (0, n):
        raise ModelFormatError("The lists of nodes differ in length, or are empty", f"Got {n} nodes")
    if not 0 <= mode.min() <= mode.max() < len(_MODES):
        raise ModelFormatError("A node has an unknown mode")
    sides = []
    for side in ("true", "false"):
        child, ends = attributes.integers(f"nodes_{side}nodeids"), attributes.integers(f"nodes_{side}leafs")
        if not len(child) == len(ends) == n:
            raise ModelFormatError("The lists of nodes differ in length")
        is_leaf = _truths(ends, n, f"nodes_{side}leafs")
        if ((child < 0) | (child >= np.where(is_leaf, n_leaves, n))).any():
            raise ModelFormatError(f"A {side} child is not there")
        sides.append(np.where(is_leaf, -1 - child, child))
    missing_true = _truths(tracks, n, "nodes_missing_value_tracks_true")
    return _Nodes(np.array([n]), mode, feature, split, sides[0], sides[1], missing_true)


def _roots(attributes: Attributes, n: int) -> np.ndarray:
    roots = attributes.integers("tree_roots")
    if not len(roots) or roots.min() < 0 or roots.max() >= n or len(np.unique(roots)) < len(roots):
        raise ModelFormatError("tree_roots are out of range", f"The ensemble has {n} nodes")
    return roots


def _numbered(inner: _Nodes, roots: np.ndarray, n_leaves: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the sizes of the trees, and the references of all nodes and their children within each tree."""

    def children(reference: int) -> list[int]:
        return [] if reference < 0 else [int(inner.true[reference]), int(inner.false[reference])]

    # A root with the same leaf on both sides stands for a tree that is one leaf
    is_leaf = (inner.true[roots] == inner.false[roots]) & (inner.true[roots] < 0)
    starts, limit = np.where(is_leaf, inner.true[roots], roots), len(inner.feature) + n_leaves
    trees = [parents_first(start, children, limit) for start in starts.tolist()]
    node, true, false = (np.concatenate(parts) for parts in zip(*trees, strict=True))
    return np.array([len(nodes) for nodes, _, _ in trees], np.int64), node, true, false
