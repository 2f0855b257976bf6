"""Convert Perpetual's boosters to flat trees, from their own lists of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import ModelFormatError, UnsupportedStructureError
from exactshap.trees.ensemble import RawTree, TreeModel, build, model_of

_UNITS = {"SquaredLoss": "target", "QuantileLoss": "target", "HuberLoss": "target", "LogLoss": "log-odds"}
_DO = "Sample it: explain(lambda rows: model.{}(rows), X, background)"


def convert(model: Model) -> TreeModel:
    """Return a fitted ``PerpetualBooster`` of one output: its base score and the weights of its leaves."""
    objective = str(model.objective)
    if not getattr(model, "n_features_", 0):
        raise NotFittedError("This PerpetualBooster instance is not fitted yet. Call 'fit' before explaining it.")
    if np.ndim(model.base_score) or objective not in _UNITS:
        called = "predict_proba" if objective == "LogLoss" else "predict"
        got = f"Got {objective} with {np.size(model.base_score)} outputs"
        raise UnsupportedStructureError(
            "PerpetualBooster is read with one output that is a sum of trees", got, _DO.format(called)
        )
    raw = [_tree(nodes) for nodes in model.get_node_lists(map_features_names=False)]
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    numbered = names == [str(j) for j in range(len(names))]  # arrays have no names
    classes: Any = getattr(model, "classes_", ())
    constant = model.base_score
    trees = build(raw, n_features=int(model.n_features_), constant=constant, less_equal=False, single_precision=False)
    return model_of(
        trees,
        raw,
        library="perpetual",
        name=type(model).__name__,
        unit=_UNITS[objective],
        output_names=(str(classes[1]) if objective == "LogLoss" else "output",),
        feature_names=None if numbered or not names else tuple(names),
        objective=objective,
    )


def _tree(nodes: list[Any]) -> RawTree:
    place = {node.num: q for q, node in enumerate(nodes)}
    if any(
        not node.is_leaf and (node.left_cats or node.missing_node not in (node.left_child, node.right_child)) for node in nodes
    ):
        what = "A tree of PerpetualBooster splits on categories, or has branches of their own for missing values"
        raise UnsupportedStructureError(what, do=_DO.format("predict"))
    children = {child for node in nodes if not node.is_leaf for child in (node.left_child, node.right_child)}
    if not children | {0} <= set(place):
        raise ModelFormatError("A tree of PerpetualBooster lacks nodes", f"Got {sorted(children - set(place))!r:.100}")
    return RawTree(
        feature=np.array([-1 if node.is_leaf else int(node.split_feature) for node in nodes]),
        threshold=np.array([0.0 if node.is_leaf else node.split_value for node in nodes]),
        left=_children(nodes, place, "left_child"),
        right=_children(nodes, place, "right_child"),
        value=np.array([node.weight_value for node in nodes], np.float32).astype(
            float
        ),  # numbers printed in their shortest form
        cover=np.array([node.hessian_sum for node in nodes], float),
        missing=np.array([int(node.missing_node == node.left_child) for node in nodes], np.int8),
        root=place[0],
    )


def _children(nodes: list[Foreign], place: dict[int, int], side: str) -> np.ndarray:
    return np.array([-1 if node.is_leaf else place[getattr(node, side)] for node in nodes])
