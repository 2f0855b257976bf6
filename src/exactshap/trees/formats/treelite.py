"""Convert treelite models, which serve LightGBM, XGBoost and scikit-learn models, by treelite's own dump."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.trees.ensemble import RawTree, TreeModel, build, model_of
from exactshap.trees.formats._document import log_odds

_UNITS = {  # unit of the margin, by treelite's postprocessor
    "exponential": "log of the target",
    "exponential_standard_ratio": "average path length",
    "identity": "target",
    "identity_multiclass": "probability",
    "logarithm_one_plus_exp": "inverse softplus of the target",
    "multiclass_ova": "log-odds",
    "sigmoid": "log-odds",
    "signed_square": "signed square root of the target",
    "softmax": "score before the softmax",
}


def convert(model: Model) -> TreeModel:
    """Return a ``treelite.Model`` as a :class:`TreeModel`, with margins of its targets and classes."""
    text = model.dump_as_json(pretty_print=False)
    dump = json.loads(text.replace('"threshold":,', '"threshold":null,'))  # treelite's notation of infinity
    for k, tree in enumerate(dump["trees"]):
        tree["threshold"] = np.asarray(model.get_tree_accessor(k).get_field("threshold"), float)
    classes = [int(n) for n in dump["num_class"]]
    # Among cells of (target, class)
    places = np.array([t * max(classes) + c for t, n in enumerate(classes) for c in range(n)])
    averaged, single = dump["average_tree_output"], dump["threshold_type"] == "float32"
    share = 1.0 / len(dump["trees"]) if averaged else 1.0
    raw = [
        _raw_tree(tree, share, _output(dump, k, classes, len(places)), dump["leaf_vector_shape"], places)
        for k, tree in enumerate(dump["trees"])
    ]
    constant = np.resize(np.asarray(dump["base_scores"], float), len(classes) * max(classes))[places]
    n_features, less_equal = int(dump["num_feature"]), _operator(dump["trees"]) != "<"
    unit = _UNITS.get(dump["postprocessor"], "raw score")
    trees = build(raw, n_features=n_features, constant=constant, less_equal=less_equal, single_precision=single)
    return model_of(
        trees,
        raw,
        library="treelite",
        name="treelite model",
        unit=log_odds(dump["sigmoid_alpha"]) if unit == "log-odds" else unit,
        output_names=_names(classes),
        boosted=not averaged,
        objective=dump["task_type"],
        default_output=1 if averaged and classes == [2] else None,
        epsilon=float(np.finfo(dump["leaf_output_type"]).eps),
    )


def _output(dump: dict[str, Any], k: int, classes: list[int], n_outputs: int) -> int:
    """Return the output that tree k adds to; -1 for all."""
    target, label = int(dump["target_id"][k]), int(dump["class_id"][k])
    if n_outputs == 1 or np.prod(dump["leaf_vector_shape"]) > 1:
        return -1
    return sum(classes[:target]) + label


def _raw_tree(tree: dict[str, Any], share: float, output: int, shape: list[int], places: np.ndarray) -> RawTree:
    nodes = sorted(tree["nodes"], key=lambda node: node["node_id"])
    leaf = np.array(["leaf_value" in node for node in nodes])
    swapped = [node.get("category_list_right_child", False) for node in nodes]
    children = np.array([[node.get("left_child", -1), node.get("right_child", -1)] for node in nodes])
    left, right = np.where(np.array(swapped)[:, None], children[:, ::-1], children).T
    default = np.array([bool(node.get("default_left", False)) != flip for node, flip in zip(nodes, swapped, strict=True)])
    value = np.array([_leaf(node, shape, places) for node in nodes])
    return RawTree(
        feature=np.array([node.get("split_feature_id", -1) for node in nodes]),
        threshold=np.where(leaf, 0.0, tree["threshold"]),
        left=left,
        right=right,
        value=share * (value[:, 0] if output >= 0 or value.shape[1] == 1 else value),
        cover=_covers(nodes),
        missing=np.where(leaf, 0, default).astype(np.int8),
        categories={q: _bits(node["category_list"]) for q, node in enumerate(nodes) if "category_list" in node},
        output=output,
    )


def _leaf(node: dict[str, Any], shape: list[int], places: np.ndarray) -> np.ndarray:
    """Return what a leaf adds to each output; inner nodes add nothing."""
    n_cells = int(np.prod(shape))
    cells = np.ravel(np.asarray(node.get("leaf_value", np.zeros(n_cells)), float))
    return cells if n_cells == 1 else cells[places]


def _covers(nodes: list[dict[str, Any]]) -> np.ndarray:
    """Return weights or numbers of training rows if all nodes have them."""
    for name in ("sum_hess", "data_count"):
        if all(name in node for node in nodes):
            return np.array([float(node[name]) for node in nodes])
    return np.zeros(len(nodes))


def _bits(categories: list[int]) -> np.ndarray:
    words = np.zeros(max(categories, default=0) // 32 + 1, np.uint32)
    for category in categories:
        words[category // 32] |= np.uint32(1 << (category % 32))
    return words


def _operator(trees: list[dict[str, Any]]) -> str:
    """Return the common comparison of all splits."""
    known = {node["comparison_op"] for tree in trees for node in tree["nodes"] if "comparison_op" in node}
    if len(known) > 1 or not known <= {"<", "<="}:
        do = "Explain its predictions: explain(lambda rows: treelite.gtil.predict(model, rows)[:, 0, 0], X, background)"
        raise UnsupportedStructureError("This treelite model compares cells in ways that are not supported", f"Got {known}", do)
    return next(iter(known), "<=")


def _names(classes: list[int]) -> tuple[str, ...]:
    if len(classes) > 1:
        return tuple(f"target {t} = {c}" if n > 1 else f"target {t}" for t, n in enumerate(classes) for c in range(n))
    return ("output",) if classes == [1] else tuple(f"class {c}" for c in range(classes[0]))
