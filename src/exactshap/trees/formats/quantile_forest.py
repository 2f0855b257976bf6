"""Convert forests of quantile-forest, by the mean of the training targets in each leaf."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import ModelFormatError, UnsupportedStructureError
from exactshap.trees.ensemble import TreeModel
from exactshap.trees.formats._document import names_of_outputs
from exactshap.trees.formats.sklearn import of_estimator, raw_tree


def convert(model: Model) -> TreeModel:
    """Return the mean of the leaf means, as ``predict(X, quantiles="mean", aggregate_leaves_first=False)``."""
    check_is_fitted(model)
    if model.monotonic_cst is not None:
        what = f"{type(model).__name__} clips the means of its leaves under monotonic constraints"
        do = "Sample it: explain(lambda rows: model.predict(rows, quantiles='mean'), X, background)"
        raise UnsupportedStructureError(what, "Got monotonic_cst", do)
    means = _leaf_means(model.forest_) / len(model.estimators_)
    raw = [raw_tree(tree.tree_, value[: tree.tree_.node_count]) for tree, value in zip(model.estimators_, means, strict=True)]
    n_outputs = means.shape[2]
    return of_estimator(
        model,
        raw,
        np.zeros(n_outputs),
        library="quantile-forest",
        unit="target",
        output_names=names_of_outputs(n_outputs, "target"),
        boosted=False,
        objective=str(model.criterion),
    )


def _leaf_means(forest: Foreign) -> np.ndarray:
    """Return means (n_trees, n_nodes, n_outputs) of the kept targets; they are numbered from 1, and 0 is empty."""
    numbers, targets = np.asarray(forest.y_train_leaves), np.asarray(forest.y_train)
    if numbers.max(initial=0) > targets.shape[1]:
        raise ModelFormatError(f"A leaf keeps target {numbers.max()}", f"Got {targets.shape[1]} targets")
    kept = numbers > 0
    values = np.stack([targets[k][numbers[:, :, k] - 1] for k in range(len(targets))], axis=2)
    return np.asarray((values * kept).sum(axis=3) / np.maximum(kept.sum(axis=3), 1))
