"""scikit-learn's gradient boosting, whose own method keeps all other threads waiting, tree by tree, which lets them go on."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers import OwnPrediction, are_sklearns_own, fitted_names
from exactshap.trees import TreeModel

__all__ = ["boosted_margin"]

THROUGH = ("_raw_predict", "_raw_predict_init")  # methods that the documented one goes through
MANY = 2048  # rows, from which on threads that ask every tree wait for each other for a small part of its answer only
TRIED = 256  # rows of the trial


def boosted_margin(model: Any, ensemble: TreeModel) -> OwnPrediction:
    """Return the margin of a model that its converter made ``ensemble`` of: by the documented method where a thread is alone, as that is quicker."""
    name = "decision_function" if hasattr(model, "decision_function") else "predict"
    is_own = all(hasattr(model, way) for way in THROUGH) and are_sklearns_own(type(model), (name, *THROUGH))
    return OwnPrediction(
        model,
        name,
        functools.partial(_documented, name),
        _tree_by_tree if is_own else None,
        trial=functools.partial(_trial, ensemble),
        through=THROUGH,
        cells=functools.partial(_cells, model),
        most=np.inf,
        shared_from=MANY,
    )


def _documented(name: str, model: Any, rows: Any) -> Any:
    return getattr(model, name)(rows)


def _tree_by_tree(model: Any, rows: np.ndarray) -> np.ndarray | None:
    r"""Add up the model as it is now, of finite rows in single precision; None where its trees are not as it fits them.

    .. math:: F_k(x) = \mathrm{init}_k(x) + \sum_m \eta \, v_{mk}[\mathrm{leaf}_{mk}(x)]

    scikit-learn adds up in this order, too.
    """
    stages = getattr(model, "estimators_", None)
    if not isinstance(stages, np.ndarray) or stages.ndim != 2:
        return None
    trees = [[estimator.tree_ for estimator in stage] for stage in stages.tolist()]
    if not _are_plain([tree for stage in trees for tree in stage], rows.shape[1]):
        return None
    sums = np.ascontiguousarray(model._raw_predict_init(rows).T)
    if len(sums) != stages.shape[1]:
        return None
    rate = float(model.learning_rate)
    for stage in trees:
        for total, tree in zip(sums, stage, strict=True):
            total += (rate * tree.value[:, 0, 0]).take(tree.apply(rows))
    return sums[0] if len(sums) == 1 else np.ascontiguousarray(sums.T)


def _are_plain(trees: list[Any], n_columns: int) -> bool:
    """Say whether these are scikit-learn's trees of one number, of so many columns: they count them nowhere."""
    from sklearn.tree._tree import Tree

    return all(type(t) is Tree and t.n_features == n_columns and t.n_outputs == t.max_n_classes == 1 for t in trees)


def _cells(model: Any, X: Table) -> np.ndarray | None:
    """Return rows in single precision, as the trees compare them; None of what may be refused or warned of."""
    numbers = _numbers(X) if X.names == fitted_names(model) else None
    if numbers is None or numbers.shape[1] != model.n_features_in_:
        return None
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(numbers, np.float32)
    return rows if np.isfinite(rows).all() else None


def _numbers(X: Table) -> np.ndarray | None:
    """Return numbers that are as exact in double precision as they came."""
    if not X.is_frame:
        return X.native if X.native.dtype in (np.float64, np.float32) else None
    return X.numeric() if X.is_plain and all(dtype.itemsize <= 8 for dtype in set(X.dtypes)) else None


def _trial(ensemble: TreeModel) -> np.ndarray:
    """Return rows around each column's thresholds, spread over the leaves."""
    trees, rows = ensemble.trees, np.random.default_rng(0).random((TRIED, ensemble.n_features))
    inner = trees.feature >= 0
    for j in np.unique(trees.feature[inner]):
        cuts = trees.threshold[inner & (trees.feature == j)]
        rows[:, j] = np.quantile([cuts.min() - 1.0, *cuts, cuts.max() + 1.0], rows[:, j])
    return rows.astype(np.float32)
