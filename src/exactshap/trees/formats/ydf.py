"""Convert YDF's forests and boosted trees to flat trees, by ``model.get_all_trees()``."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import ModelFormatError, UnsupportedStructureError
from exactshap.trees.ensemble import RawTree, TreeModel, build, model_of

_DO = "Sample it: explain(lambda rows: model.predict(rows), X, background), with rows as a frame"
_UNITS = {
    "SIGMOID": "log-odds",
    "SOFTMAX": "score before the softmax",
    "IDENTITY": "target",
    "EXPONENTIAL": "log of the target",
}


def convert(model: Model) -> TreeModel:
    """Return a model of numeric and boolean columns: scores of boosting, class shares of forests."""
    boosted = hasattr(model, "initial_predictions")
    features = model.input_features()
    column = {feature.column_idx: j for j, feature in enumerate(features)}
    trees = model.get_all_trees()
    classifies = model.task().name == "CLASSIFICATION"
    if model.task().name not in ("CLASSIFICATION", "REGRESSION", "RANKING"):
        raise UnsupportedStructureError(f"{type(model).__name__} is read for classes and numbers", f"Got {model.task()}", _DO)
    labels = tuple(map(str, model.label_classes())) if classifies else ()
    constant = np.asarray(model.initial_predictions(), float) if boosted else np.zeros(max(len(labels), 1))
    leaf = _leaf_of(model, boosted, len(trees), len(constant))
    raw = [
        _tree(tree.root, column, leaf, k % len(constant) if boosted and len(constant) > 1 else -1)
        for k, tree in enumerate(trees)
    ]
    names = ("output",) if not classifies else labels[1:] if len(constant) == 1 else labels
    trees = build(raw, n_features=len(features), constant=constant, less_equal=False, single_precision=True)
    return model_of(
        trees,
        raw,
        library="ydf",
        name=type(model).__name__,
        unit=_unit(model) if boosted else "probability" if classifies else "target",
        output_names=names,
        feature_names=tuple(str(feature.name) for feature in features),
        tree_stage=np.arange(len(raw)) // len(constant) * boosted,
        boosted=boosted,
        default_output=1 if classifies and not boosted and len(labels) == 2 else None,
        epsilon=float(np.finfo(np.float32).eps),
    )


def _unit(model: Model) -> str:
    """Return the unit of the scores. Only the description tells a Poisson loss, as rates are predicted."""
    activation = model.activation().name
    if activation == "IDENTITY" and "Loss: POISSON\n" in model.describe("text"):
        activation = "EXPONENTIAL"
    return _UNITS.get(activation, "score")


def _leaf_of(model: Model, boosted: bool, n_trees: int, n_outputs: int) -> Any:
    """Return a function from a leaf to what it adds to outputs."""
    if boosted or n_outputs == 1:
        share = 1.0 if boosted else 1.0 / n_trees
        return lambda value: share * value.value
    votes = model.winner_takes_all()

    def shares(value: Foreign) -> np.ndarray:
        chances = np.asarray(value.probability, float)
        return np.eye(n_outputs)[np.argmax(chances)] / n_trees if votes else chances / n_trees

    return shares


def _tree(root: Foreign, column: dict[int, int], leaf: Any, output: int) -> RawTree:
    """Return a tree; a row goes right where its condition holds."""
    nodes = [root]
    left, right, feature, threshold, missing, value, cover = [], [], [], [], [], [], []
    for node in nodes:  # grows in the loop
        is_leaf = not hasattr(node, "condition")
        left.append(-1 if is_leaf else len(nodes))
        right.append(-1 if is_leaf else len(nodes) + 1)
        kind, at = (0, 0.0) if is_leaf else _condition(node.condition, column)
        feature.append(-1 if is_leaf else kind)
        threshold.append(at)
        missing.append(0 if is_leaf else int(not node.condition.missing))
        value.append(leaf(node.value) if is_leaf else None)
        cover.append(float(node.value.num_examples) if is_leaf else 0.0)
        nodes += [] if is_leaf else [node.neg_child, node.pos_child]
    empty = 0.0 * np.asarray(next(one for one in value if one is not None))
    return RawTree(
        feature=np.array(feature),
        threshold=np.array(threshold),
        left=np.array(left),
        right=np.array(right),
        value=np.array([empty if one is None else one for one in value]),
        cover=np.array(cover),
        missing=np.array(missing, np.int8),
        output=output,
    )


def _condition(condition: Foreign, column: dict[int, int]) -> tuple[int, float]:
    """Return column and threshold of x >= threshold; true is 1."""
    kind = type(condition).__name__
    if kind not in ("NumericalHigherThanCondition", "IsTrueCondition"):
        raise UnsupportedStructureError("A tree of YDF can be read only where it splits on numbers", f"Got {kind}", _DO)
    if condition.attribute not in column:
        raise ModelFormatError("A tree of YDF splits on a column that is no input", f"Got {condition.attribute}")
    threshold = float(np.float32(condition.threshold)) if kind == "NumericalHigherThanCondition" else 0.5
    return column[condition.attribute], threshold
