r"""Convert models of imodels, Perpetual, treelite and YDF to flat trees, from their own nodes.

Of imodels these are FIGS, RuleFit, rule lists, and trees with hierarchical shrinkage. A rule is a product of indicators, hence a tree that
is zero except on one path; a linear term of RuleFit is a tree of three leaves, two of them constant:

.. math:: f(x) = b + \sum_j \beta_j \min(\max(x_j, l_j), u_j) + \sum_r \gamma_r \prod_{(j, t) \in r} 1[x_j \lessgtr t]

treelite serves LightGBM, XGBoost and scikit-learn models, which are read from its dump.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import ModelFormatError, UnsupportedStructureError
from exactshap.trees.ensemble import LeafFunction, RawTree, TreeModel, model_of
from exactshap.trees.formats._document import Node, log_odds, names_of_outputs, tree_of
from exactshap.trees.formats.sklearn import convert as convert_sklearn
from exactshap.trees.formats.sklearn import of_estimator

# Unit of the margin, by Perpetual's loss
_OF_LOSSES = {"SquaredLoss": "target", "QuantileLoss": "target", "HuberLoss": "target", "LogLoss": "log-odds"}
_SAMPLE_PERPETUAL = "Sample it: explain(lambda rows: model.{}(rows), X, background)"
_SAMPLE_YDF = "Sample it: explain(lambda rows: model.predict(rows), X, background), with rows as a frame"
# Unit of the margin, by YDF's activation
_OF_ACTIVATIONS = {
    "SIGMOID": "log-odds",
    "SOFTMAX": "score before the softmax",
    "IDENTITY": "target",
    "EXPONENTIAL": "log of the target",
}
# Unit of the margin, by treelite's postprocessor
_OF_POSTPROCESSORS = {
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


# --- imodels ----------------------------------------------------------------------------------------------------------
_of_imodels = partial(of_estimator, library="imodels", single_precision=False, tree_stage=0)


def convert_imodels(model: Model) -> TreeModel:
    """Return a fitted ``FIGS``, ``RuleFit``, greedy rule list or shrunk tree as a :class:`TreeModel`."""
    from sklearn.utils.validation import check_is_fitted

    kinds = [cls.__name__ for cls in type(model).__mro__]
    if "HSTree" in kinds:
        return _shrunk(model)
    fitted, read = next(_OF_IMODELS[name] for name in kinds if name in _OF_IMODELS)
    check_is_fitted(model, fitted)
    return read(model)


def _shrunk(model: Model) -> TreeModel:
    """Return the trees that were shrunk in place, with the classes of the fit."""
    inside = convert_sklearn(model.estimator_)
    classes = getattr(model, "classes_", None)
    if inside.unit == "score before the softmax":
        do = "Explain the boosting itself: explain(model.estimator_, X, background)"
        raise UnsupportedStructureError(
            f"{type(model).__name__} has no call for the scores of {len(inside.output_names)} classes", do=do
        )
    names = inside.output_names
    if classes is not None and inside.unit.startswith(("probability", "log-odds")):
        names = tuple(map(str, classes))[-len(names) :]
    return replace(inside, library="imodels", name=type(model).__name__, output_names=names)


def _figs(model: Model) -> TreeModel:
    """Return the sum of trees; for a classifier differences to the first class, the inputs of its softmax."""
    if getattr(model, "categorical_features_", None) is not None:
        _refuse_imodels(model, "encodes its categorical columns", f"categorical_features={model.categorical_features_!r:.80}")
    classes = getattr(model, "classes_", None)
    raw = [_tree_of_figs(root, int(model.n_outputs), classes is not None) for root in model.trees_]
    if classes is None:
        unit, names = "target", names_of_outputs(int(model.n_outputs), "target")
    else:
        names = tuple(map(str, classes[1:]))
        unit = "log-odds" if len(names) == 1 else "log-odds against the first class"
    return _of_imodels(model, raw, np.zeros(len(names)), unit=unit, output_names=names)


def _children_of_figs(node: Foreign) -> list[Foreign]:
    return [] if node.left is None and node.right is None else [node.left, node.right]


def _tree_of_figs(root: Foreign, n_outputs: int, classifies: bool) -> RawTree:
    """Return the nodes of one tree; without covers where some have none."""

    def node(_: int, entry: Foreign) -> Node:
        if _children_of_figs(entry):
            return Node(entry.feature, entry.threshold)
        value = np.broadcast_to(np.ravel(entry.value), n_outputs).astype(float)
        cover = np.sum(entry.value_sklearn) if hasattr(entry, "value_sklearn") else np.nan
        return Node(value=value[1:] - value[:1] if classifies else value, cover=cover)

    tree = tree_of(root, _children_of_figs, node)
    return replace(tree, cover=None) if np.isnan(np.asarray(tree.cover, float)).any() else tree


def _chain(columns: Any, thresholds: Any, passes_left: Any, value: np.ndarray, cover: np.ndarray | None = None) -> RawTree:
    """Return a chain of n splits, each of which passes on to the next or ends in a leaf.

    Node n is the leaf behind all splits, and node n + 1 + q the other leaf of split q.
    """
    n = len(columns)
    following, leaf, ends = 1 + np.arange(n), n + 1 + np.arange(n), np.full(n + 1, -1)
    return RawTree(
        feature=np.concatenate([columns, ends]).astype(int),
        threshold=np.concatenate([thresholds, np.zeros(n + 1)]).astype(float),
        left=np.concatenate([np.where(passes_left, following, leaf), ends]),
        right=np.concatenate([np.where(passes_left, leaf, following), ends]),
        value=value,
        cover=cover,
    )


def _rule_list(model: Model) -> TreeModel:
    """Return the list as one tree: each rule ends in a leaf or passes on to the next."""
    *rules, default = model.rules_
    probability = np.array([*(0.0 for _ in rules), default["val"], *(rule["val_right"] for rule in rules)], float)
    tree = _chain(
        [rule["index_col"] for rule in rules],
        [rule["cutoff"] for rule in rules],
        np.array([not rule.get("flip") for rule in rules], bool),
        value=np.stack([1.0 - probability, probability], axis=1),
        cover=np.array([*(rule["num_pts"] for rule in model.rules_), *(rule["num_pts_right"] for rule in rules)], float),
    )
    names = tuple(map(str, model.classes_))
    # rule lists compare by <, not <=
    return _of_imodels(
        model, [tree], np.zeros(2), less_equal=False, unit="probability", output_names=names, boosted=False, default_output=1
    )


def _rule_fit(model: Model) -> TreeModel:
    """Return rules and linear terms as trees; for a classifier the log-odds 2 f(x) - 1."""
    classes = getattr(model, "classes_", None)
    slope = 1.0 if classes is None else 2.0
    raw = [_tree_of_rule(model, rule, slope) for rule in model.rules_without_feature_names_]
    if model.include_linear:
        raw += [
            _tree_of_term(model, j, slope * coefficient) for j, coefficient in enumerate(model.coef[: model.n_features_in_])
        ]
    constant = slope * float(np.ravel(model.intercept)[0]) - (0.0 if classes is None else 1.0)
    unit, name = ("target", "output") if classes is None else ("log-odds", str(classes[1]))
    return _of_imodels(model, raw, np.array([constant]), unit=unit, output_names=(name,))


def _tree_of_rule(model: Model, rule: Foreign, slope: float) -> RawTree:
    """Return a chain of splits, one per condition of the rule."""
    conditions = list(rule.agg_dict.items())
    if any(symbol not in ("<=", ">") for (_, symbol), _ in conditions):
        _refuse_imodels(model, "has a rule that is no chain of <= and >", f"{rule}")
    columns = [int(name.removeprefix("X_")) for (name, _), _ in conditions]
    goes_left = np.array([symbol == "<=" for (_, symbol), _ in conditions], bool)
    value = np.zeros(2 * len(conditions) + 1)
    value[len(conditions)] = slope * float(rule.args[0])  # where all conditions hold
    return _chain(columns, [float(threshold) for _, threshold in conditions], goes_left, value)


def _tree_of_term(model: Model, j: int, coefficient: float) -> RawTree:
    """Return a linear term, constant beyond the quantiles at which RuleFit clips the column."""
    low, high = -np.inf, np.inf
    if model.lin_standardise:
        coefficient = coefficient * float(model.friedscale.scale_multipliers[j])
        low, high = (float(limit) for limit in model.winsorizer.winsor_lims[:, j])
    term = LeafFunction(np.array([j]), np.array([coefficient]))
    if not np.isfinite([low, high]).all():
        one = np.array([-1])
        return RawTree(one, np.zeros(1), one, one, np.zeros(1), functions={0: term})
    return RawTree(
        feature=np.array([j, -1, j, -1, -1]),
        threshold=np.array([low, 0.0, high, 0.0, 0.0]),
        left=np.array([1, -1, 3, -1, -1]),
        right=np.array([2, -1, 4, -1, -1]),
        value=coefficient * np.array([0.0, low, 0.0, 0.0, high]),
        functions={3: term},
    )


def _refuse_imodels(model: Model, what: str, got: str) -> NoReturn:
    call = "predict_proba" if hasattr(model, "classes_") else "predict"
    do = f"Call it: explain(model.{call}, X, background), exact up to 13 players"
    raise UnsupportedStructureError(f"{type(model).__name__} {what}", f"Got {got}", do)


_OF_IMODELS: dict[str, tuple[str, Callable[[Model], TreeModel]]] = {  # and the attribute that a fit leaves
    "FIGS": ("trees_", _figs),
    "FIGSCV": ("figs", lambda model: replace(_figs(model.figs), name=type(model).__name__)),
    "GreedyRuleListClassifier": ("rules_", _rule_list),
    "RuleFit": ("rules_without_feature_names_", _rule_fit),
}


# --- Perpetual --------------------------------------------------------------------------------------------------------
def convert_perpetual(model: Model) -> TreeModel:
    """Return a fitted ``PerpetualBooster`` of one output: its base score and the weights of its leaves."""
    objective = str(model.objective)
    if not getattr(model, "n_features_", 0):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError("This PerpetualBooster instance is not fitted yet. Call 'fit' before explaining it.")
    if np.ndim(model.base_score) or objective not in _OF_LOSSES:
        called = "predict_proba" if objective == "LogLoss" else "predict"
        got = f"Got {objective} with {np.size(model.base_score)} outputs"
        raise UnsupportedStructureError(
            "PerpetualBooster is read with one output that is a sum of trees", got, _SAMPLE_PERPETUAL.format(called)
        )
    raw = [_tree_of_perpetual(nodes) for nodes in model.get_node_lists(map_features_names=False)]
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    numbered = names == [str(j) for j in range(len(names))]  # arrays have no names
    classes: Any = getattr(model, "classes_", ())
    return model_of(
        raw,
        model.base_score,
        n_features=int(model.n_features_),
        less_equal=False,
        library="perpetual",
        name=type(model).__name__,
        unit=_OF_LOSSES[objective],
        output_names=(str(classes[1]) if objective == "LogLoss" else "output",),
        feature_names=None if numbered or not names else tuple(names),
        objective=objective,
    )


def _tree_of_perpetual(nodes: list[Any]) -> RawTree:
    place = {node.num: node for node in nodes}
    if any(
        not node.is_leaf and (node.left_cats or node.missing_node not in (node.left_child, node.right_child)) for node in nodes
    ):
        what = "A tree of PerpetualBooster splits on categories, or has branches of their own for missing values"
        raise UnsupportedStructureError(what, do=_SAMPLE_PERPETUAL.format("predict"))
    children = {child for node in nodes if not node.is_leaf for child in (node.left_child, node.right_child)}
    if not children | {0} <= set(place):
        raise ModelFormatError("A tree of PerpetualBooster lacks nodes", f"Got {sorted(children - set(place))!r:.100}")
    return tree_of(
        place[0], lambda node: [] if node.is_leaf else [place[node.left_child], place[node.right_child]], _node_of_perpetual
    )


def _node_of_perpetual(_: int, node: Foreign) -> Node:
    if not node.is_leaf:
        return Node(int(node.split_feature), node.split_value, node.missing_node == node.left_child)
    # Numbers printed in their shortest form
    return Node(value=float(np.float32(node.weight_value)), cover=node.hessian_sum)


# --- treelite ---------------------------------------------------------------------------------------------------------
def convert_treelite(model: Model) -> TreeModel:
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
    n_cells, first = int(np.prod(dump["leaf_vector_shape"])), np.cumsum([0, *classes]).tolist()
    # Trees of single numbers add to the output of one target and class
    is_of_one = n_cells == 1 and len(places) > 1
    raw = [
        _tree_of_treelite(tree, share, first[t] + c if is_of_one else -1, n_cells, places)
        for tree, t, c in zip(dump["trees"], dump["target_id"], dump["class_id"], strict=True)
    ]
    constant = np.resize(np.asarray(dump["base_scores"], float), len(classes) * max(classes))[places]
    unit = _OF_POSTPROCESSORS.get(dump["postprocessor"], "raw score")
    return model_of(
        raw,
        constant,
        n_features=int(dump["num_feature"]),
        less_equal=_comparison_of_treelite(dump["trees"]) != "<",
        single_precision=single,
        library="treelite",
        name="treelite model",
        unit=log_odds(dump["sigmoid_alpha"]) if unit == "log-odds" else unit,
        output_names=_names_of_treelite(classes),
        boosted=not averaged,
        objective=dump["task_type"],
        default_output=1 if averaged and classes == [2] else None,
        epsilon=float(np.finfo(dump["leaf_output_type"]).eps),
    )


def _tree_of_treelite(tree: dict[str, Any], share: float, output: int, n_cells: int, places: np.ndarray) -> RawTree:
    numbered = {entry["node_id"]: entry for entry in tree["nodes"]}
    # Weights or numbers of training rows, if all nodes have them
    covers = next((name for name in ("sum_hess", "data_count") if all(name in entry for entry in tree["nodes"])), "")

    def children(entry: dict[str, Any]) -> list[dict[str, Any]]:
        if "leaf_value" in entry:
            return []
        sides = [numbered[entry["left_child"]], numbered[entry["right_child"]]]
        # Members of a set last
        return sides[::-1] if "category_list" in entry and not entry["category_list_right_child"] else sides

    def node(_: int, entry: dict[str, Any]) -> Node:
        cover = float(entry.get(covers, 0.0))
        if "leaf_value" not in entry:
            column, threshold, members = (
                entry["split_feature_id"],
                tree["threshold"][entry["node_id"]],
                entry.get("category_list"),
            )
            missing_left = bool(entry["default_left"]) != bool(entry.get("category_list_right_child", False))
            return Node(column, threshold, missing_left, cover=cover, members=members)
        value = share * np.ravel(np.asarray(entry["leaf_value"], float))
        value = value if n_cells == 1 else value[places]
        return Node(value=value[0] if output >= 0 or len(value) == 1 else value, cover=cover)

    return tree_of(numbered[0], children, node, output=output)


def _comparison_of_treelite(trees: list[dict[str, Any]]) -> str:
    """Return the common comparison of all splits."""
    known = {node["comparison_op"] for tree in trees for node in tree["nodes"] if "comparison_op" in node}
    if len(known) > 1 or not known <= {"<", "<="}:
        do = "Explain its predictions: explain(lambda rows: treelite.gtil.predict(model, rows)[:, 0, 0], X, background)"
        raise UnsupportedStructureError("This treelite model compares cells in ways that are not supported", f"Got {known}", do)
    return next(iter(known), "<=")


def _names_of_treelite(classes: list[int]) -> tuple[str, ...]:
    if len(classes) > 1:
        return tuple(f"target {t} = {c}" if n > 1 else f"target {t}" for t, n in enumerate(classes) for c in range(n))
    return ("output",) if classes == [1] else tuple(f"class {c}" for c in range(classes[0]))


# --- YDF --------------------------------------------------------------------------------------------------------------
def convert_ydf(model: Model) -> TreeModel:
    """Return a model of numeric and boolean columns: scores of boosting, class shares of forests."""
    boosted = hasattr(model, "initial_predictions")
    features = model.input_features()
    column = {feature.column_idx: j for j, feature in enumerate(features)}
    trees = model.get_all_trees()
    classifies = model.task().name == "CLASSIFICATION"
    if model.task().name not in ("CLASSIFICATION", "REGRESSION", "RANKING"):
        raise UnsupportedStructureError(
            f"{type(model).__name__} is read for classes and numbers", f"Got {model.task()}", _SAMPLE_YDF
        )
    labels = tuple(map(str, model.label_classes())) if classifies else ()
    constant = np.asarray(model.initial_predictions(), float) if boosted else np.zeros(max(len(labels), 1))
    leaf = _leaf_of_ydf(model, boosted, len(trees), len(constant))
    raw = [_tree_of_ydf(tree.root, column, leaf, k % len(constant) if boosted else -1) for k, tree in enumerate(trees)]
    names = ("output",) if not classifies else labels[1:] if len(constant) == 1 else labels
    unit = "probability" if classifies else "target"
    if boosted:
        # Only the description tells a Poisson loss, as rates are predicted
        is_rate = model.activation().name == "IDENTITY" and "Loss: POISSON\n" in model.describe("text")
        unit = _OF_ACTIVATIONS.get("EXPONENTIAL" if is_rate else model.activation().name, "score")
    return model_of(
        raw,
        constant,
        n_features=len(features),
        less_equal=False,
        single_precision=True,
        library="ydf",
        name=type(model).__name__,
        unit=unit,
        output_names=names,
        feature_names=tuple(str(feature.name) for feature in features),
        boosted=boosted,
        default_output=1 if classifies and not boosted and len(labels) == 2 else None,
        epsilon=float(np.finfo(np.float32).eps),
    )


def _leaf_of_ydf(model: Model, boosted: bool, n_trees: int, n_outputs: int) -> Any:
    """Return a function from a leaf to what it adds to outputs."""
    if boosted or n_outputs == 1:
        share = 1.0 if boosted else 1.0 / n_trees
        return lambda value: share * value.value
    votes = model.winner_takes_all()

    def shares(value: Foreign) -> np.ndarray:
        chances = np.asarray(value.probability, float)
        return np.eye(n_outputs)[np.argmax(chances)] / n_trees if votes else chances / n_trees

    return shares


def _tree_of_ydf(root: Foreign, column: dict[int, int], leaf: Any, output: int) -> RawTree:
    """Return a tree; a row goes right where its condition holds."""

    def node(_: int, entry: Foreign) -> Node:
        if hasattr(entry, "condition"):
            return _split_of_ydf(entry.condition, column)
        return Node(value=leaf(entry.value), cover=entry.value.num_examples)

    return tree_of(
        root, lambda entry: [entry.neg_child, entry.pos_child] if hasattr(entry, "condition") else [], node, output=output
    )


def _split_of_ydf(condition: Foreign, column: dict[int, int]) -> Node:
    """Return the split of x >= threshold (true is 1)."""
    kind = type(condition).__name__
    if kind not in ("NumericalHigherThanCondition", "IsTrueCondition"):
        raise UnsupportedStructureError("A tree of YDF can be read only where it splits on numbers", f"Got {kind}", _SAMPLE_YDF)
    if condition.attribute not in column:
        raise ModelFormatError("A tree of YDF splits on a column that is no input", f"Got {condition.attribute}")
    threshold = float(np.float32(condition.threshold)) if kind == "NumericalHigherThanCondition" else 0.5
    return Node(column[condition.attribute], threshold, missing_left=not condition.missing)
