"""Read a library's own dump of its trees independently of ``exactshap.trees.formats``, to compare both.

The nodes must be the same, and so must the path-dependent v(S) by a walk over the dump.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.types import Foreign, Model
from exactshap.trees import FlatTrees
from exactshap.trees.ensemble import MISSING_NEVER

# LightGBM's dump says this for all larger thresholds, infinite ones (missing or not) among them.
LARGEST_DUMPED = 1e300


@dataclass
class Node:
    """Hold a node of a dumped tree, a leaf if ``below`` is None.

    Rows with ``x <= threshold`` (``x < threshold`` if ``strict``) go to ``below``; missing ones as ``missing_below`` says, None: as 0.0.
    """

    value: np.ndarray
    cover: float
    feature: int = -1
    threshold: float = 0.0
    below: Node | None = None
    above: Node | None = None
    missing_below: bool | None = False
    strict: bool = False
    zero_is_missing: bool = False
    # Of a linear leaf: what is added to its value, and the coefficients of its columns
    offset: float = 0.0
    coefficients: tuple[tuple[int, float], ...] = ()


def own_trees(model: Model, library: str) -> list[Node] | None:
    """Return the trees of the library's own dump, in its order; None where this second reading does not know their form."""
    readers: dict[str, Callable[[Any], Iterator[Node]]] = {
        "xgboost": _xgboost,
        "lightgbm": _lightgbm,
        "catboost": _catboost,
        "scikit-learn": _sklearn,
    }
    if library not in readers:
        return None
    try:
        return list(readers[library](model))
    # Categories, vector leaves, another kind of model: what this second reading does not know is no error of the first.
    except (KeyError, AttributeError, TypeError, ValueError):
        return None


def _leaf(value: object, cover: float, share: float = 1.0) -> Node:
    return Node(share * np.atleast_1d(np.asarray(value, float)), float(cover))


def _xgboost(model: Model) -> Iterator[Node]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    settings = json.loads(booster.save_config())["learner"]["gradient_booster"]
    # XGBoost 3.4 moved the settings of DART into the tree booster itself.
    dropout = settings.get("dart_train_param", {})
    if settings["name"] != "gbtree" or any(float(dropout.get(name, 0)) for name in ("rate_drop", "one_drop")):
        raise ValueError("the dump leaves the weights of dropped trees out")
    if {"int", "i"} & {*(booster.feature_types or ())}:
        # The dump writes whole thresholds for columns of whole numbers and none for truth values; the model compares with its own.
        booster = booster.copy()
        booster.feature_types = None
    names = booster.feature_names or [f"f{j}" for j in range(booster.num_features())]
    column = {name: j for j, name in enumerate(names)}

    def node(entry: dict) -> Node:
        if "leaf" in entry:
            return _leaf(entry["leaf"], entry["cover"])
        # By number: the order of children in the dump is not that of yes and no.
        children = {child["nodeid"]: child for child in entry["children"]}
        below, above = node(children[entry["yes"]]), node(children[entry["no"]])
        # Thresholds are float32 in the model; the decimal text of the dump is rounded back to them.
        return Node(np.zeros(1), entry["cover"], column[entry["split"]], float(np.float32(entry["split_condition"])), below, above,
                    entry["missing"] == entry["yes"], strict=True)  # fmt: skip

    for text in booster.get_dump(dump_format="json", with_stats=True):
        yield node(json.loads(text))


def _lightgbm(model: Model) -> Iterator[Node]:
    dump = (model if hasattr(model, "dump_model") else model.booster_).dump_model()
    trees = dump["tree_info"]
    # Random forests of LightGBM predict means: each tree counts as one part of them.
    share = dump["num_tree_per_iteration"] / len(trees) if dump.get("average_output") else 1.0

    def node(entry: dict) -> Node:
        if "leaf_value" in entry:
            leaf = _leaf(entry["leaf_value"], entry.get("leaf_count", 1.0), share)
            if "leaf_const" in entry:
                leaf.offset = share * (entry["leaf_const"] - entry["leaf_value"])
                terms = zip(entry["leaf_features"], entry["leaf_coeff"], strict=True)
                leaf.coefficients = tuple((column, share * value) for column, value in terms)
            return leaf
        if entry["decision_type"] != "<=":
            raise ValueError("a set of categories")
        kind = entry["missing_type"]
        # Without missing values in training LightGBM takes NaN for 0.0.
        missing = None if kind == "None" else bool(entry["default_left"])
        below, above = node(entry["left_child"]), node(entry["right_child"])
        threshold = entry["threshold"] if abs(entry["threshold"]) < LARGEST_DUMPED else np.copysign(np.inf, entry["threshold"])
        return Node(np.zeros(1), entry["internal_count"], entry["split_feature"], threshold, below, above, missing,
                    zero_is_missing=kind == "Zero")  # fmt: skip

    for tree in trees:
        yield node(tree["tree_structure"])


def _catboost(model: Model) -> Iterator[Node]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        dump = json.loads(path.read_text())
    scale = float(dump["scale_and_bias"][0])
    treatment = {j: f["nan_value_treatment"] for j, f in enumerate(dump["features_info"]["float_features"])}
    # CatBoost numbers float features apart from categories; flat numbers are those of the table's columns.
    column = {j: f["flat_feature_index"] for j, f in enumerate(dump["features_info"]["float_features"])}
    for tree in dump["oblivious_trees"]:
        splits, weights = tree["splits"] or [], tree["leaf_weights"]
        values = scale * np.reshape(tree["leaf_values"], (len(weights), -1))

        def node(level: int, leaf: int, known: dict, splits=splits, values=values, weights=weights) -> Node:  # type: ignore[no-untyped-def]
            if not level:
                return _leaf(values[leaf], weights[leaf])
            split = splits[level - 1]
            j, border = split["float_feature_index"], float(np.float32(split["border"]))
            low, high = known.get(j, (-np.inf, np.inf))
            # Decided above: oblivious trees repeat their splits at every level, and one branch of such a split is empty.
            if border <= low or border >= high:
                return node(level - 1, 2 * leaf + (border <= low), known)
            below = node(level - 1, 2 * leaf, {**known, j: (low, border)})
            above = node(level - 1, 2 * leaf + 1, {**known, j: (border, high)})
            # NaN > border is false, so that NaN as it is goes below.
            missing = {"AsIs": True, "AsFalse": True, "AsTrue": False}[treatment[j]]
            return Node(np.zeros(1), below.cover + above.cover, column[j], border, below, above, missing)

        yield node(len(splits), 0, {})


def _sklearn(model: Model) -> Iterator[Node]:
    if hasattr(model, "_predictors"):
        for stage in model._predictors:
            for predictor in stage:
                yield _hist_node(predictor.nodes, 0)
        return
    classes, boosted = getattr(model, "classes_", None), hasattr(model, "init_")
    members = np.ravel(getattr(model, "estimators_", [model]))
    share = model.learning_rate if boosted else 1.0 / len(members)

    def leaf_of(value: np.ndarray) -> np.ndarray:
        # Boosting adds up raw scores; forests of classifiers average shares of classes, which older trees store as counts.
        if classes is None or boosted:
            return value[:, 0]
        return np.concatenate([row[:n] / row[:n].sum() for row, n in zip(value, np.atleast_1d(model.n_classes_), strict=True)])

    def node(tree: Foreign, q: int) -> Node:
        cover = tree.weighted_n_node_samples[q]
        if tree.children_left[q] < 0:
            return _leaf(leaf_of(tree.value[q]), cover, share)
        below, above = (node(tree, int(side[q])) for side in (tree.children_left, tree.children_right))
        missing = bool(tree.missing_go_to_left[q]) if hasattr(tree, "missing_go_to_left") else False
        return Node(np.zeros(1), cover, int(tree.feature[q]), float(tree.threshold[q]), below, above, missing)

    if hasattr(model, "estimator_weights_"):
        raise ValueError("votes are not stored")
    if hasattr(model, "score_samples"):
        raise ValueError("path lengths of isolation forests are not stored")
    for member in members:
        yield node(member.tree_, 0)


def _hist_node(nodes: np.ndarray, q: int) -> Node:
    entry = nodes[q]
    if entry["is_leaf"]:
        return _leaf(entry["value"], entry["count"])
    if entry["is_categorical"]:
        raise ValueError("a set of categories")
    below, above = _hist_node(nodes, int(entry["left"])), _hist_node(nodes, int(entry["right"]))
    return Node(np.zeros(1), entry["count"], int(entry["feature_idx"]), float(entry["num_threshold"]), below, above,
                bool(entry["missing_go_to_left"]))  # fmt: skip


def dump_difference(trees: FlatTrees, own: list[Node], outputs: np.ndarray) -> float:
    """Return the largest difference of leaf values and covers to a dump.

    It is relative to the largest of the ensemble; infinity for another split.

    ``outputs`` (n_trees,) is the output that a tree adds to; -1: to all.
    """
    if len(own) != trees.n_trees:
        return float("inf")
    # Relative to the largest leaf of all: the last digits of tiny leaves count for nothing in a sum.
    largest = np.abs(trees.value).max(initial=0.0) or 1.0
    worst = 0.0
    for root, node, output in zip(trees.tree_start[:-1], own, outputs, strict=True):
        stack, whole = [(int(root), node)], max(node.cover, 1e-300)
        alone = node if node.below is None else None
        while stack:
            q, node = stack.pop()
            if trees.feature[q] != node.feature:
                return float("inf")
            if node.below is None or node.above is None:
                value = trees.value[q] if len(node.value) == trees.n_outputs else trees.value[q, max(int(output), 0)]
                worst = max(worst, float(np.abs(value - node.value).max()) / largest)
                worst = max(worst, _function_difference(trees, q, node) / largest)
                # Libraries count nothing at a tree that is one leaf
                if trees.cover.any() and node is not alone:
                    worst = max(worst, abs(float(trees.cover[q]) - node.cover) / whole)
                continue
            if not _same_split(trees, q, node):
                return float("inf")
            stack += [(int(trees.left[q]), node.below), (int(trees.right[q]), node.above)]
    return worst


def _function_difference(trees: FlatTrees, q: int, node: Node) -> float:
    """Return the largest difference of a leaf's linear function to a dump; infinity for other columns."""
    if trees.linear is None:
        return float("inf") if node.coefficients else abs(node.offset)
    terms = slice(trees.linear.start[q], trees.linear.start[q + 1])
    if trees.linear.column[terms].tolist() != [column for column, _ in node.coefficients]:
        return float("inf")
    ours = [*trees.linear.coefficient[terms].sum(axis=1), trees.linear.offset[q].sum()]  # those of other outputs are 0
    return float(np.abs(np.subtract(ours, [*(value for _, value in node.coefficients), node.offset])).max())


def _same_split(trees: FlatTrees, q: int, node: Node) -> bool:
    missing = int(MISSING_NEVER) if node.missing_below is None else int(node.missing_below)
    return (
        trees.threshold[q] == node.threshold
        and int(trees.missing[q]) == missing
        and bool(trees.zero_is_missing[q]) == node.zero_is_missing
        and trees.less_equal is not node.strict
        and trees.category_start[q] < 0
    )


def walked_values(own: list[Node], rows: np.ndarray, present: np.ndarray, n_outputs: int, outputs: np.ndarray) -> np.ndarray:
    """Return the path-dependent sum of trees (n_rows, n_masks, n_outputs): absent columns split by cover.

    ``present`` (n_masks, n_features) says which columns a coalition knows; ``rows`` are numbers as the library compares them.
    """
    total = np.zeros((len(rows), len(present), n_outputs))
    for m, known in enumerate(present):
        for node, output in zip(own, outputs, strict=True):
            stack = [(node, np.ones(len(rows)))]
            while stack:
                node, weight = stack.pop()
                if node.below is None or node.above is None:
                    part = weight[:, None] * node.value
                    total[:, m, :] += part if part.shape[1] == n_outputs else 0.0
                    if part.shape[1] != n_outputs:
                        total[:, m, int(output)] += part[:, 0]
                    continue
                if known[node.feature]:
                    share = _goes_below(node, rows[:, node.feature]).astype(float)
                else:
                    both = node.below.cover + node.above.cover
                    # A node that no training row reached splits evenly.
                    share = np.full(len(rows), node.below.cover / both if both else 0.5)
                stack += [(node.below, weight * share), (node.above, weight * (1.0 - share))]
    return total


def _goes_below(node: Node, x: np.ndarray) -> np.ndarray:
    """Return which rows a split sends below, by the library's rules."""
    x = np.where(np.isnan(x), 0.0, x) if node.missing_below is None else x
    # LightGBM's kZeroThreshold: numbers that are smaller are zero to it.
    missing = np.isnan(x) | (node.zero_is_missing & (np.abs(x) <= np.float32(1e-35)))
    below = x < node.threshold if node.strict else x <= node.threshold
    return np.where(missing, bool(node.missing_below), below)
