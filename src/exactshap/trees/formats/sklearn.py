"""Convert scikit-learn's trees, forests, boosting and isolation forests to flat trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import UnsupportedStructureError
from exactshap.trees.ensemble import RawTree, TreeModel, build, fitted_columns, model_of
from exactshap.trees.formats._document import log_odds, names_of_outputs

_LOG_LINK = ("poisson", "gamma")


def convert(model: Model) -> TreeModel:
    """Return a fitted model of ``sklearn.tree`` or ``sklearn.ensemble`` as a :class:`TreeModel`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    kind = {cls.__name__ for cls in type(model).__mro__}
    if "RandomTreesEmbedding" in kind:
        raise UnsupportedStructureError(
            "RandomTreesEmbedding has no prediction", do="Explain a forest fitted to a target instead"
        )
    if "IsolationForest" in kind:
        return _isolation_forest(model)
    if "BaseHistGradientBoosting" in kind:
        return _histogram_boosting(model)
    if "BaseWeightBoosting" in kind:
        return _ada_boost(model)
    if "BaseGradientBoosting" in kind:
        return _gradient_boosting(model)
    return _average(model, list(getattr(model, "estimators_", [model])))


def raw_tree(tree: Foreign, value: np.ndarray, columns: np.ndarray | None = None, output: int = -1) -> RawTree:
    """Return scikit-learn's arrays of one tree, with other values of its nodes."""
    feature = tree.feature
    if columns is not None:  # leaves have feature -2, which is no valid column
        feature = np.where(feature >= 0, np.asarray(columns)[np.maximum(feature, 0)], -1)
    missing = getattr(tree, "missing_go_to_left", np.zeros(len(feature)))
    return RawTree(
        feature=feature,
        threshold=tree.threshold,
        left=tree.children_left,
        right=tree.children_right,
        value=value,
        cover=tree.weighted_n_node_samples,
        missing=np.asarray(missing, np.int8),
        output=output,
    )


def of_estimator(
    model: Model,
    raw: list[RawTree],
    constant: np.ndarray,
    *,
    library: str = "scikit-learn",
    single_precision: bool = True,
    **facts: Any,
) -> TreeModel:
    """Return a model of trees with the columns of a scikit-learn estimator."""
    n_features, names = model.n_features_in_, fitted_columns(model)
    trees = build(raw, n_features=n_features, constant=constant, less_equal=True, single_precision=single_precision)
    return model_of(trees, raw, library=library, name=type(model).__name__, feature_names=names, **facts)


def _average(model: Model, estimators: list[Any]) -> TreeModel:
    """Convert decision trees and forests, the mean of their leaf values."""
    # Leaves are divided by the number of trees, so that the trees add up to the prediction
    share = 1.0 / len(estimators)
    classes = getattr(model, "classes_", None)
    n_classes = None if classes is None else np.atleast_1d(model.n_classes_)
    raw = [raw_tree(estimator.tree_, share * _leaf_shares(estimator.tree_.value, n_classes)) for estimator in estimators]
    n_outputs = raw[0].value.shape[1]
    names = names_of_outputs(n_outputs, "target") if classes is None else _class_names(model, classes)
    return of_estimator(
        model,
        raw,
        np.zeros(n_outputs),
        unit="probability" if classes is not None else "target",
        output_names=names,
        boosted=False,
        objective=str(model.criterion),
        default_output=1 if classes is not None and n_outputs == 2 else None,
    )


def _leaf_shares(value: np.ndarray, n_classes: np.ndarray | None) -> np.ndarray:
    """Return means (n_nodes, n_targets), or class shares target by target as in ``predict_proba``."""
    if n_classes is None:
        return value[:, :, 0]
    # Targets with fewer classes than the largest are padded with zeros
    counts = [value[:, k, :n] for k, n in enumerate(n_classes)]
    return np.concatenate([count / count.sum(axis=1, keepdims=True) for count in counts], axis=1)


def _class_names(model: Model, classes: Any) -> tuple[str, ...]:
    if model.n_outputs_ == 1:
        return tuple(map(str, classes))
    return tuple(f"target {k} = {label}" for k, labels in enumerate(classes) for label in labels)


def _gradient_boosting(model: Model) -> TreeModel:
    """Convert gradient boosting: the initial margin plus learning_rate times the trees, by stage and class."""
    classes = getattr(model, "classes_", None)
    n_stages, n_outputs = model.estimators_.shape
    raw = [
        raw_tree(stage[o].tree_, model.learning_rate * stage[o].tree_.value[:, 0, 0], output=o if n_outputs > 1 else -1)
        for stage in model.estimators_
        for o in range(n_outputs)
    ]
    names: tuple[str, ...] = (f"quantile {model.alpha:g}",) if model.loss == "quantile" else ("output",)
    unit = log_odds(2.0 if model.loss == "exponential" else 1.0) if n_outputs == 1 else "score before the softmax"
    if classes is not None:
        names = (str(classes[-1]),) if n_outputs == 1 else tuple(map(str, classes))
    return of_estimator(
        model,
        raw,
        _initial_margin(model, n_outputs),
        unit="target" if classes is None else unit,
        output_names=names,
        tree_stage=np.repeat(np.arange(n_stages), n_outputs),
        objective=str(model.loss),
    )


def _ada_boost(model: Model) -> TreeModel:
    r"""Return AdaBoost's decision function: each tree votes for a class, with a weight.

    .. math:: f_k(x) = \sum_m w_m \Bigl(1[c_m(x) = k] - \frac{1[c_m(x) \ne k]}{K - 1}\Bigr) / \sum_m w_m, \qquad K = 2: f_2 - f_1
    """
    classes = getattr(model, "classes_", None)
    if classes is None or len(classes) < 2 or not all(hasattr(member, "tree_") for member in model.estimators_):
        got = "the weighted median of its models" if classes is None else "models that are no trees, or one class"
        do = "Sample it: explain(model.predict, X, background)" if classes is None else "Call model.decision_function"
        raise UnsupportedStructureError(f"{type(model).__name__} is read as a sum of trees", f"Got {got}", do)
    n_classes = len(classes)
    # 1 for the predicted class, -1 / (K - 1) for the others
    votes = (np.eye(n_classes) * n_classes - 1.0) / (n_classes - 1)
    if n_classes == 2:
        votes = votes[:, 1:] - votes[:, :1]
    raw = []
    weights = np.asarray(model.estimator_weights_, float)[: len(model.estimators_)]
    for member, share in zip(model.estimators_, weights / model.estimator_weights_.sum(), strict=True):
        # A member fitted to a resample may have fewer classes, with other numbers than the ensemble
        winner = np.searchsorted(classes, member.classes_[np.argmax(member.tree_.value[:, 0, :], axis=1)])
        raw.append(raw_tree(member.tree_, share * votes[winner]))
    names = (str(classes[1]),) if n_classes == 2 else tuple(map(str, classes))
    unit = "decision function of class " + names[0] if n_classes == 2 else "decision function"
    return of_estimator(model, raw, np.zeros(len(names)), unit=unit, output_names=names, objective="votes")


def _initial_margin(model: Model, n_outputs: int) -> np.ndarray:
    init = model.init_
    if isinstance(init, str) and init == "zero":
        return np.zeros(n_outputs)
    if not type(init).__module__.startswith("sklearn.dummy"):
        raise UnsupportedStructureError(
            f"{type(model).__name__} starts from another model, init={type(init).__name__}",
            "Its prediction is not a sum of trees",
            "Call it: explain(model.predict, X, background), of a classifier model.decision_function; or fit with init=None",
        )
    # A private name: scikit-learn clips the initial probabilities; its margin less all trees would lose digits
    return np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32)), float).reshape(-1)


def _isolation_forest(model: Model) -> TreeModel:
    r"""Convert an isolation forest as its average path length.

    It is the part of the score that is a sum of trees.

    .. math:: h(x) = \frac1T \sum_k \mathrm{depth}_k(x) + c(n_{\mathrm{leaf}}), \quad \mathrm{score} = -2^{-h(x) / c(\psi)}
    """
    if model.max_samples_ <= 1:
        raise UnsupportedStructureError(
            "An IsolationForest of single points has no path length",
            f"Got max_samples_={model.max_samples_}",
            "Fit with a larger max_samples",
        )
    raw = []
    for estimator, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        tree = estimator.tree_
        # A leaf of n points stands for the subtree that would separate them, of mean depth c(n)
        length = _node_depths(tree) + average_path_length(tree.n_node_samples)
        raw.append(raw_tree(tree, length / len(model.estimators_), columns))
    return of_estimator(
        model,
        raw,
        np.zeros(1),
        unit="average path length",
        output_names=("path length",),
        boosted=False,
        objective="isolation",
    )


def _node_depths(tree: Foreign) -> np.ndarray:
    """Return the number of edges above each node; scikit-learn numbers parents before children."""
    depth = np.zeros(tree.node_count)
    for q in np.flatnonzero(tree.children_left >= 0):
        depth[[tree.children_left[q], tree.children_right[q]]] = depth[q] + 1
    return depth


def average_path_length(n: np.ndarray) -> np.ndarray:
    r"""Return the mean depth of an unsuccessful search in a binary tree of n points (Liu, Ting & Zhou 2008, eq. 1).

    .. math:: c(n) = 2 (\ln(n - 1) + \gamma) - 2 (n - 1) / n, \quad c(2) = 1, \quad c(1) = 0
    """
    n = np.asarray(n, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        c = 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    return np.where(n <= 1, 0.0, np.where(n == 2, 1.0, c))


def _histogram_boosting(model: Model) -> TreeModel:
    """Return a fitted ``HistGradientBoosting*`` as a :class:`TreeModel`: baseline plus trees, in the space of its link."""
    # The trees and the baseline have no public names. `_check_background` of the reader compares them with the model's own
    # predictions, so that a release that changes them is refused, not misread.
    columns, categories = _histogram_columns(model)
    n_outputs = model.n_trees_per_iteration_
    raw = [
        _histogram_tree(stage[o], columns, o if n_outputs > 1 else -1) for stage in model._predictors for o in range(n_outputs)
    ]
    classes = getattr(model, "classes_", None)
    if classes is None:
        output_names: tuple[str, ...] = (f"quantile {model.quantile:g}",) if model.loss == "quantile" else ("output",)
        unit = "log of the target" if model.loss in _LOG_LINK else "target"
    elif n_outputs > 1:
        output_names, unit = tuple(map(str, classes)), "score before the softmax"
    else:
        output_names, unit = (str(classes[-1]),), "log-odds"
    return of_estimator(
        model,
        raw,
        np.ravel(model._baseline_prediction),
        single_precision=False,
        unit=unit,
        output_names=output_names,
        tree_stage=np.arange(len(raw)) // n_outputs,
        objective=str(model.loss),
        categories=categories,
    )


def _histogram_columns(model: Model) -> tuple[np.ndarray, tuple[tuple[Any, ...] | None, ...]]:
    """Return the model's column of each tree column, and the categories. Categorical columns come first in the trees."""
    n = model.n_features_in_
    # The categories have no public name either
    preprocessor = getattr(model, "_preprocessor", None)
    if preprocessor is None:
        return np.arange(n), ()
    categorical = np.asarray(model.is_categorical_, bool)
    known: list[tuple[Any, ...] | None] = [None] * n
    encoder = preprocessor.named_transformers_["encoder"]
    for j, values in zip(np.flatnonzero(categorical), encoder.categories_, strict=True):
        known[j] = tuple(value for value in values.tolist() if value is not None and value == value)
    # The preprocessor puts encoded columns first, and the trees number columns after it
    return np.concatenate([np.flatnonzero(categorical), np.flatnonzero(~categorical)]), tuple(known)


def _histogram_tree(predictor: Model, columns: np.ndarray, output: int) -> RawTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    categorical = np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
    return RawTree(
        # Leaves may hold any column here, as ``build`` goes by the children: 0 is valid
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
