r"""Convert scikit-learn's trees, forests, boosting and isolation forests to flat trees, and those of packages that hold its trees.

The packages are quantile-forest (the mean of the training targets in each leaf), scikit-survival (risks, and curves with one output per
time) and NGBoost (one output for each boosted parameter of the distribution):

.. math:: \theta_k(x) = \theta_{0k} - \eta \sum_m \rho_m\, h_{mk}(x)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import InputError, ModelFormatError, UnsupportedStructureError
from exactshap.trees.ensemble import RawTree, TreeModel, model_of
from exactshap.trees.formats._document import log_odds, names_of_outputs

CURVES = {"cumulative hazard": 0, "survival": 1}  # of scikit-survival: its position in the values of a node
# Parameters of NGBoost's distributions before the exponential function
_PARAMETERS = {
    "Normal": ("loc", "log of scale"),
    "NormalFixedVar": ("loc",),
    "NormalFixedMean": ("log of scale",),
    "Laplace": ("loc", "log of scale"),
    "LogNormal": ("mean of the logarithm", "log of its deviation"),
    "T": ("loc", "log of scale", "log of the degrees of freedom"),
    "TFixedDf": ("loc", "log of scale"),
    "TFixedDfFixedVar": ("loc",),
    "Exponential": ("log of scale",),
    "HalfNormal": ("log of scale",),
    "Poisson": ("log of the rate",),
    "Gamma": ("log of alpha", "log of beta"),
    "Weibull": ("log of shape", "log of scale"),
}


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
    n_features, names = int(model.n_features_in_), getattr(model, "feature_names_in_", None)
    return model_of(
        raw,
        constant,
        n_features=n_features,
        single_precision=single_precision,
        library=library,
        name=type(model).__name__,
        feature_names=None if names is None else tuple(map(str, names)),
        **facts,
    )


def _average(model: Model, estimators: list[Any]) -> TreeModel:
    """Convert decision trees and forests, the mean of their leaf values."""
    # Leaves are divided by the number of trees, so that the trees add up to the prediction
    share = 1.0 / len(estimators)
    classes = getattr(model, "classes_", None)
    n_classes = None if classes is None else np.atleast_1d(model.n_classes_)
    raw = [raw_tree(estimator.tree_, share * _leaf_shares(estimator.tree_.value, n_classes)) for estimator in estimators]
    n_outputs = raw[0].value.shape[1]
    if classes is None:
        names = names_of_outputs(n_outputs, "target")
    elif model.n_outputs_ == 1:
        names = tuple(map(str, classes))
    else:
        names = tuple(f"target {k} = {label}" for k, labels in enumerate(classes) for label in labels)
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


def _gradient_boosting(model: Model) -> TreeModel:
    """Convert gradient boosting: the initial margin plus learning_rate times the trees, by stage and class."""
    n_outputs = model.estimators_.shape[1]
    raw = [
        raw_tree(stage[o].tree_, model.learning_rate * stage[o].tree_.value[:, 0, 0], output=o)
        for stage in model.estimators_
        for o in range(n_outputs)
    ]
    return of_estimator(
        model,
        raw,
        _initial_margin(model, n_outputs),
        objective=str(model.loss),
        **_names_and_unit(model, n_outputs),
    )


def _names_and_unit(model: Model, n_outputs: int) -> dict[str, Any]:
    """Return what the margins of boosted trees are called."""
    classes = getattr(model, "classes_", None)
    if classes is not None:
        unit = log_odds(2.0 if model.loss == "exponential" else 1.0) if n_outputs == 1 else "score before the softmax"
        return {"output_names": names_of_outputs(n_outputs, "class", classes), "unit": unit}
    level = model.quantile if hasattr(model, "quantile") else model.alpha
    names = (f"quantile {level:g}",) if model.loss == "quantile" else ("output",)
    return {"output_names": names, "unit": "log of the target" if model.loss in ("poisson", "gamma") else "target"}


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
    # The trees and the baseline have no public names. The reader's ``_check_background`` compares them with the model's own
    # predictions, so that a release that changes them is refused, not misread.
    columns, categories = _histogram_columns(model)
    n_outputs = model.n_trees_per_iteration_
    raw = [_histogram_tree(stage[o], columns, o) for stage in model._predictors for o in range(n_outputs)]
    return of_estimator(
        model,
        raw,
        np.ravel(model._baseline_prediction),
        single_precision=False,
        objective=str(model.loss),
        categories=categories,
        **_names_and_unit(model, n_outputs),
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


# --- quantile-forest --------------------------------------------------------------------------------------------------
def convert_quantile_forest(model: Model) -> TreeModel:
    """Return the mean of the leaf means, as ``predict(X, quantiles="mean", aggregate_leaves_first=False)``."""
    from sklearn.utils.validation import check_is_fitted

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


# --- scikit-survival --------------------------------------------------------------------------------------------------
def convert_survival(model: Model) -> TreeModel:
    """Return a fitted tree, forest or boosted model as its risk score."""
    if hasattr(model, "init_"):
        return _boosted_survival(model)
    at_events = np.asarray((model if hasattr(model, "is_event_time_") else model.estimators_[0]).is_event_time_, bool)
    raw = []
    for tree, share in _survival_trees(model):
        # Each node's cumulative hazards summed over event times, which ``low_memory`` stores
        is_stored, value = tree.value.shape[1] == 1 < len(at_events), tree.value
        risk = value[:, 0, :1] if is_stored else value[:, at_events, 0].sum(axis=1, keepdims=True)
        raw.append(raw_tree(tree, share * risk))
    return _survival(model, raw, ("output",), "sum of cumulative hazards: high is early")


def of_curve(model: Model, curve: str, columns: np.ndarray) -> TreeModel:
    """Return the mean curve of the trees at some of ``model.unique_times_``."""
    kind = CURVES[curve]
    raw = []
    for tree, share in _survival_trees(model):
        if tree.value.shape[1:] != (len(model.unique_times_), 2):
            do = "Fit with low_memory=False, or explain the risk with output='auto'"
            raise UnsupportedStructureError(f"This {type(model).__name__} kept no curves", "Got low_memory=True", do)
        raw.append(raw_tree(tree, share * tree.value[:, columns, kind]))
    unit = "probability of survival" if curve == "survival" else "cumulative hazard"
    names = tuple(f"t = {time:.10g}" for time in np.asarray(model.unique_times_)[columns])
    return _survival(model, raw, names, unit)


def curve_columns(model: Model, times: Any) -> np.ndarray:
    """Return the position of each time in the curve, a step function on ``model.unique_times_``; None: all."""
    known = np.asarray(model.unique_times_, float)
    if times is None:
        return np.arange(len(known))
    wanted = np.atleast_1d(np.asarray(times, float))
    places = np.searchsorted(known, wanted, side="right") - 1
    if wanted.ndim != 1 or not len(wanted) or not ((places >= 0) & (wanted <= known[-1])).all():
        raise InputError(f"`times` must lie between {known[0]:g} and {known[-1]:g}", f"Got {times!r:.100}")
    return np.unique(places)


def _survival_trees(model: Model) -> list[tuple[Any, float]]:
    members = getattr(model, "estimators_", None)
    return [(model.tree_, 1.0)] if members is None else [(member.tree_, 1.0 / len(members)) for member in members]


def _survival(model: Model, raw: list[RawTree], names: tuple[str, ...], unit: str, *, boosted: bool = False) -> TreeModel:
    return of_estimator(
        model,
        raw,
        np.zeros(len(names)),
        library="scikit-survival",
        unit=unit,
        output_names=names,
        boosted=boosted,
        objective="survival",
    )


def _boosted_survival(model: Model) -> TreeModel:
    """Return the weighted sum of the trees; for losses of times ``predict`` returns its exponential."""
    if not isinstance(model.init_, str) or model.init_ != "zero" or model.dropout_rate > 0.0:
        got = "Got dropout_rate > 0" if model.dropout_rate > 0.0 else f"Got init={type(model.init_).__name__}"
        do = "Sample it: explain(model.predict, X, background)"
        raise UnsupportedStructureError(f"{type(model).__name__} can be read only where it is a plain sum of trees", got, do)
    members = [stage[0].tree_ for stage in model.estimators_]
    raw = [raw_tree(tree, model.learning_rate * tree.value[:, 0, :1]) for tree in members]
    unit = "log hazard: high is early" if model.loss == "coxph" else "log of the survival time"
    return _survival(model, raw, ("output",), unit, boosted=True)


# --- NGBoost ----------------------------------------------------------------------------------------------------------
def convert_ngboost(model: Model) -> TreeModel:
    """Convert a fitted ``NGBoost`` of scikit-learn's trees, with an output for each parameter."""
    if not len(model.base_models):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet. Call 'fit' before explaining it.")
    raw = []
    for learners, scaling, columns in zip(model.base_models, model.scalings, model.col_idxs, strict=True):
        for k, learner in enumerate(learners):
            if not hasattr(learner, "tree_"):
                got = f"Got {type(learner).__name__}"
                do = "Sample it: explain(lambda rows: model.predict(rows), X, background)"
                raise UnsupportedStructureError(
                    f"{type(model).__name__} can be read only where its learners are trees", got, do
                )
            value = -model.learning_rate * scaling * learner.tree_.value[:, 0, 0]
            raw.append(raw_tree(learner.tree_, value, np.asarray(columns), output=k))
    constant = np.ravel(np.asarray(model.init_params, float))
    kinds = [cls.__name__ for cls in model.Dist.__mro__]
    # NGBoost wraps the distribution for uncensored targets
    kind = next((name for name in kinds if name in _PARAMETERS or name == "Categorical"), kinds[0])
    names, unit = _parameters(kind, len(constant))
    return model_of(
        raw,
        constant,
        n_features=model.n_features,
        single_precision=True,
        library="ngboost",
        name=type(model).__name__,
        unit=unit,
        output_names=names,
        objective=kind,
    )


def _parameters(kind: str, n: int) -> tuple[tuple[str, ...], str]:
    """Return the names of a distribution's parameters, and their unit."""
    if kind == "Categorical":
        return tuple(str(k) for k in range(1, n + 1)), "log-odds" if n == 1 else "log-odds against the first class"
    known = _PARAMETERS.get(kind, ())
    names = known if len(known) == n else tuple(f"parameter {k}" for k in range(n))
    return names, f"{names[0]} of {kind}" if n == 1 else f"parameter of {kind}"
