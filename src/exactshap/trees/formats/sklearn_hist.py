"""scikit-learn's histogram gradient boosting as flat trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.trees.ensemble import RawTree, TreeModel, build

__all__ = ["convert"]

_LOG_LINK = ("poisson", "gamma")


def convert(model: Any) -> TreeModel:
    """Return a fitted ``HistGradientBoosting*`` as a :class:`TreeModel`: baseline plus trees, in the space of its link."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    columns, categories = _columns(model)
    n_outputs = model.n_trees_per_iteration_
    raw = [_raw_tree(stage[o], columns, o if n_outputs > 1 else -1) for stage in model._predictors for o in range(n_outputs)]
    trees = build(
        raw,
        n_features=model.n_features_in_,
        constant=np.ravel(model._baseline_prediction),
        less_equal=True,
        single_precision=False,
    )
    classes = getattr(model, "classes_", None)
    names = getattr(model, "feature_names_in_", None)
    if classes is None:
        output_names: tuple[str, ...] = ("output",)
        unit = "log of the target" if model.loss in _LOG_LINK else "target"
    elif n_outputs > 1:
        output_names, unit = tuple(map(str, classes)), "score before the softmax"
    else:
        output_names, unit = (str(classes[-1]),), "log-odds"
    return TreeModel(
        trees=trees,
        library="scikit-learn",
        name=type(model).__name__,
        unit=unit,
        output_names=output_names,
        single_output=n_outputs == 1,
        feature_names=None if names is None else tuple(map(str, names)),
        tree_output=np.array([tree.output for tree in raw], np.int32),
        tree_stage=(np.arange(len(raw)) // n_outputs).astype(np.int32),
        objective=str(model.loss),
        categories=categories,
    )


def _columns(model: Any) -> tuple[np.ndarray, tuple[tuple[Any, ...] | None, ...]]:
    """Return the model's column of each column that the trees see, and the categories; categorical columns come first there."""
    n = model.n_features_in_
    preprocessor = getattr(model, "_preprocessor", None)
    if preprocessor is None:
        return np.arange(n), ()
    categorical = np.asarray(model.is_categorical_, bool)
    known: list[tuple[Any, ...] | None] = [None] * n
    encoder = preprocessor.named_transformers_["encoder"]
    for j, values in zip(np.flatnonzero(categorical), encoder.categories_, strict=True):
        known[j] = tuple(value for value in values.tolist() if value is not None and value == value)
    return np.concatenate([np.flatnonzero(categorical), np.flatnonzero(~categorical)]), tuple(known)


def _raw_tree(predictor: Any, columns: np.ndarray, output: int) -> RawTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    categorical = np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
    return RawTree(
        feature=columns[np.where(leaf, 0, nodes["feature_idx"])],
        threshold=nodes["num_threshold"].astype(float),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        value=nodes["value"].astype(float),
        cover=nodes["count"].astype(float),
        missing=nodes["missing_go_to_left"].astype(np.int8),
        categories={int(q): predictor.raw_left_cat_bitsets[nodes["bitset_idx"][q]] for q in categorical},
        output=output,
    )
