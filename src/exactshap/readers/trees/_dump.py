"""A library's own dump of its trees, read a second time and by other means than ``exactshap.trees.formats``: only checks use it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Node", "own_trees"]

LARGEST_DUMPED = 1e300  # LightGBM's dump says this for all larger thresholds, infinite ones (missing or not) among them


@dataclass
class Node:
    """A node of a dumped tree: a leaf where ``below`` is None.

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


def own_trees(model: Any, library: str) -> list[Node] | None:
    """Return the trees as the library itself tells them, in its order; None where this second reading has no word for them."""
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
    except (KeyError, AttributeError, TypeError, ValueError):  # categories, vector leaves, another kind of model
        return None


def _leaf(value: Any, cover: float, share: float = 1.0) -> Node:
    return Node(share * np.atleast_1d(np.asarray(value, float)), float(cover))


def _xgboost(model: Any) -> Iterator[Node]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if json.loads(booster.save_config())["learner"]["gradient_booster"]["name"] != "gbtree":
        raise ValueError("the dump leaves the weights of dropped trees out")
    names = booster.feature_names or [f"f{j}" for j in range(booster.num_features())]
    column = {name: j for j, name in enumerate(names)}

    def node(entry: dict) -> Node:
        if "leaf" in entry:
            return _leaf(entry["leaf"], entry["cover"])
        children = {child["nodeid"]: child for child in entry["children"]}
        below, above = node(children[entry["yes"]]), node(children[entry["no"]])
        return Node(np.zeros(1), entry["cover"], column[entry["split"]], float(np.float32(entry["split_condition"])), below, above,
                    entry["missing"] == entry["yes"], strict=True)  # fmt: skip

    for text in booster.get_dump(dump_format="json", with_stats=True):
        yield node(json.loads(text))


def _lightgbm(model: Any) -> Iterator[Node]:
    dump = (model if hasattr(model, "dump_model") else model.booster_).dump_model()
    trees = dump["tree_info"]
    share = dump["num_tree_per_iteration"] / len(trees) if dump.get("average_output") else 1.0

    def node(entry: dict) -> Node:
        if "leaf_value" in entry:
            return _leaf(entry["leaf_value"], entry.get("leaf_count", 1.0), share)
        if entry["decision_type"] != "<=":
            raise ValueError("a set of categories")
        kind = entry["missing_type"]
        missing = None if kind == "None" else bool(entry["default_left"])
        below, above = node(entry["left_child"]), node(entry["right_child"])
        threshold = entry["threshold"] if abs(entry["threshold"]) < LARGEST_DUMPED else np.copysign(np.inf, entry["threshold"])
        return Node(np.zeros(1), entry["internal_count"], entry["split_feature"], threshold, below, above, missing,
                    zero_is_missing=kind == "Zero")  # fmt: skip

    for tree in trees:
        yield node(tree["tree_structure"])


def _catboost(model: Any) -> Iterator[Node]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        dump = json.loads(path.read_text())
    scale = float(dump["scale_and_bias"][0])
    treatment = {j: f["nan_value_treatment"] for j, f in enumerate(dump["features_info"]["float_features"])}
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
            if border <= low or border >= high:  # decided above
                return node(level - 1, 2 * leaf + (border <= low), known)
            below = node(level - 1, 2 * leaf, {**known, j: (low, border)})
            above = node(level - 1, 2 * leaf + 1, {**known, j: (border, high)})
            missing = {"AsIs": True, "AsFalse": True, "AsTrue": False}[treatment[j]]  # NaN > border is false
            return Node(np.zeros(1), below.cover + above.cover, column[j], border, below, above, missing)

        yield node(len(splits), 0, {})


def _sklearn(model: Any) -> Iterator[Node]:
    if hasattr(model, "_predictors"):
        for stage in model._predictors:
            for predictor in stage:
                yield _hist_node(predictor.nodes, 0)
        return
    classes, boosted = getattr(model, "classes_", None), hasattr(model, "init_")
    members = np.ravel(getattr(model, "estimators_", [model]))
    share = model.learning_rate if boosted else 1.0 / len(members)

    def node(tree: Any, q: int) -> Node:
        cover = tree.weighted_n_node_samples[q]
        if tree.children_left[q] < 0:
            value = tree.value[q, 0] / tree.value[q, 0].sum() if classes is not None and not boosted else tree.value[q, :, 0]
            return _leaf(value, cover, share)
        below, above = (node(tree, int(side[q])) for side in (tree.children_left, tree.children_right))
        missing = bool(tree.missing_go_to_left[q]) if hasattr(tree, "missing_go_to_left") else False
        return Node(np.zeros(1), cover, int(tree.feature[q]), float(tree.threshold[q]), below, above, missing)

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
