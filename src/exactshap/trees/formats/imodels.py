r"""Convert rule models of imodels to flat trees: FIGS, RuleFit, rule lists, trees with hierarchical shrinkage.

A rule is a product of indicators, hence a tree that is zero except on one path; a linear term of RuleFit is a tree of three
leaves, two of them constant:

.. math:: f(x) = b + \sum_j \beta_j \min(\max(x_j, l_j), u_j) + \sum_r \gamma_r \prod_{(j, t) \in r} 1[x_j \lessgtr t]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import UnsupportedStructureError
from exactshap.trees.ensemble import LeafFunction, RawTree, TreeModel, build, fitted_columns, model_of
from exactshap.trees.formats._document import names_of_outputs
from exactshap.trees.formats.sklearn import convert as convert_sklearn


def convert(model: Model) -> TreeModel:
    """Return a fitted ``FIGS``, ``RuleFit``, greedy rule list or shrunk tree as a :class:`TreeModel`."""
    kinds = [cls.__name__ for cls in type(model).__mro__]
    if "FIGSCV" in kinds:
        check_is_fitted(model, "figs")
        return replace(convert(model.figs), name=type(model).__name__)
    if "HSTree" in kinds:
        return _shrunk(model)
    read = next(_READERS[name] for name in kinds if name in _READERS)
    return read(model)


def _model_of(model: Model, raw: list[RawTree], constant: np.ndarray, *, less_equal: bool = True, **facts: Any) -> TreeModel:
    """Return a model of trees that compare in double precision."""
    n_features = int(model.n_features_in_)
    trees = build(raw, n_features=n_features, constant=constant, less_equal=less_equal, single_precision=False)
    return model_of(
        trees,
        raw,
        library="imodels",
        name=type(model).__name__,
        feature_names=fitted_columns(model),
        tree_stage=np.zeros(len(raw)),
        **facts,
    )


def _shrunk(model: Model) -> TreeModel:
    """Return the trees that were shrunk in place, with the classes of the fit."""
    check_is_fitted(model.estimator_)
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
    check_is_fitted(model, "trees_")
    if getattr(model, "categorical_features_", None) is not None:
        _refuse(model, "encodes its categorical columns", f"categorical_features={model.categorical_features_!r:.80}")
    classes = getattr(model, "classes_", None)
    raw = [_nodes(root, int(model.n_outputs), classes is not None) for root in model.trees_]
    if classes is None:
        unit, names = "target", names_of_outputs(int(model.n_outputs), "target")
    else:
        names = tuple(map(str, classes[1:]))
        unit = "log-odds" if len(names) == 1 else "log-odds against the first class"
    return _model_of(model, raw, np.zeros(len(names)), unit=unit, output_names=names)


def _nodes(root: Foreign, n_outputs: int, classifies: bool) -> RawTree:
    """Return the nodes of one tree, parents first."""
    nodes, left, right = [root], [], []
    for node in nodes:  # grows in the loop
        inner = node.left is not None or node.right is not None
        left.append(len(nodes) if inner else -1)
        right.append(len(nodes) + 1 if inner else -1)
        nodes += [node.left, node.right] if inner else []
    value = np.array([np.broadcast_to(np.ravel(node.value), n_outputs) for node in nodes], float)
    covers = [np.sum(node.value_sklearn) if hasattr(node, "value_sklearn") else np.nan for node in nodes]
    leaves = np.array(left) < 0
    return RawTree(
        feature=np.where(leaves, -1, [node.feature for node in nodes]),
        threshold=np.where(leaves, 0.0, [0.0 if node.threshold is None else node.threshold for node in nodes]),
        left=np.array(left),
        right=np.array(right),
        value=value[:, 1:] - value[:, :1] if classifies else value,
        cover=None if np.isnan(covers).any() else np.array(covers, float),
    )


def _rule_list(model: Model) -> TreeModel:
    """Return the list as one tree: each rule ends in a leaf or passes on to the next."""
    check_is_fitted(model, "rules_")
    rules = model.rules_
    chain = [*rules[:-1], {**rules[-1], "index_col": -1, "cutoff": 0.0}]
    n = len(chain)
    # node q < n is a rule or the default; node n + q is the leaf of rule q
    flip = np.array([bool(rule.get("flip")) for rule in chain[:-1]], bool)
    leaf, following = n + np.arange(n - 1), 1 + np.arange(n - 1)
    ends = np.full(n, -1)
    probability = np.array([*(0.0 for _ in chain[:-1]), chain[-1]["val"], *(rule["val_right"] for rule in chain[:-1])], float)
    tree = RawTree(
        feature=np.concatenate([[rule["index_col"] for rule in chain], ends[1:]]).astype(int),
        threshold=np.concatenate([[rule["cutoff"] for rule in chain], np.zeros(n - 1)]),
        left=np.concatenate([np.where(flip, leaf, following), ends]).astype(int),
        right=np.concatenate([np.where(flip, following, leaf), ends]).astype(int),
        value=np.stack([1.0 - probability, probability], axis=1),
        cover=np.array([*(rule["num_pts"] for rule in chain), *(rule["num_pts_right"] for rule in chain[:-1])], float),
    )
    names = tuple(map(str, model.classes_))
    # rule lists compare by <, not <=
    return _model_of(
        model, [tree], np.zeros(2), less_equal=False, unit="probability", output_names=names, boosted=False, default_output=1
    )


def _rule_fit(model: Model) -> TreeModel:
    """Return rules and linear terms as trees; for a classifier the log-odds 2 f(x) - 1."""
    check_is_fitted(model, "rules_without_feature_names_")
    classes = getattr(model, "classes_", None)
    slope = 1.0 if classes is None else 2.0
    raw = [_rule(model, rule, slope) for rule in model.rules_without_feature_names_]
    if model.include_linear:
        raw += [_linear(model, j, slope * coefficient) for j, coefficient in enumerate(model.coef[: model.n_features_in_])]
    constant = slope * float(np.ravel(model.intercept)[0]) - (0.0 if classes is None else 1.0)
    unit, name = ("target", "output") if classes is None else ("log-odds", str(classes[1]))
    return _model_of(model, raw, np.array([constant]), unit=unit, output_names=(name,))


def _rule(model: Model, rule: Foreign, slope: float) -> RawTree:
    """Return a chain of splits, one per condition of the rule."""
    conditions = list(rule.agg_dict.items())
    if any(symbol not in ("<=", ">") for (_, symbol), _ in conditions):
        _refuse(model, "has a rule that is no chain of <= and >", f"{rule}")
    n = len(conditions)
    columns = [int(name.removeprefix("X_")) for (name, _), _ in conditions]
    goes_left = np.array([symbol == "<=" for (_, symbol), _ in conditions], bool)
    # nodes 0 to n - 1 are conditions; at node n all hold, at each other leaf one fails
    on, off, ends = 1 + np.arange(n), n + 1 + np.arange(n), np.full(n + 1, -1)
    value = np.zeros(2 * n + 1)
    value[n] = slope * float(rule.args[0])
    return RawTree(
        feature=np.concatenate([columns, ends]).astype(int),
        threshold=np.concatenate([[float(threshold) for _, threshold in conditions], np.zeros(n + 1)]),
        left=np.concatenate([np.where(goes_left, on, off), ends]).astype(int),
        right=np.concatenate([np.where(goes_left, off, on), ends]).astype(int),
        value=value,
    )


def _linear(model: Model, j: int, coefficient: float) -> RawTree:
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


def _refuse(model: Model, what: str, got: str) -> NoReturn:
    call = "predict_proba" if hasattr(model, "classes_") else "predict"
    do = f"Call it: explain(model.{call}, X, background), exact up to 13 players"
    raise UnsupportedStructureError(f"{type(model).__name__} {what}", f"Got {got}", do)


_READERS = {"FIGS": _figs, "GreedyRuleListClassifier": _rule_list, "RuleFit": _rule_fit}
