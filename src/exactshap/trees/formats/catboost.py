"""Convert CatBoost's models (live, JSON) to flat trees: oblivious trees and non-symmetric ones.

Live models are read like files, through their own JSON export; ``_catboost_features`` reads what the trees split on.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.types import Json, Model
from exactshap._runtime.words import MEAN_AND_DEVIATION
from exactshap.errors import ModelFormatError, UnsupportedStructureError
from exactshap.trees.ensemble import MAX_DEPTH, RawTree, TreeModel, model_of
from exactshap.trees.formats._catboost_features import Features, Split, read_features
from exactshap.trees.formats._document import (
    CHARACTERS_OF_NUMBERS,
    MAX_OUTPUTS,
    MAX_WORDS,
    Node,
    field,
    guarded,
    integer,
    names_of_outputs,
    number,
    numbers,
    read_json,
    rounds_read,
    tree_of,
)

# Each target has tables of target statistics of its own.
_SEVERAL_TARGETS = ("MultiRMSE", "MultiRMSEWithMissingValues", "MultiLogloss", "MultiCrossEntropy")
_LOSSES = {  # by the unit of the raw formula values; "raw score" of other losses
    "target": "RMSE MAE Quantile MultiQuantile Lq Huber Expectile MAPE LogCosh MultiRMSE MultiRMSEWithMissingValues",
    "log of the target": "Poisson Tweedie LogLinQuantile",
    "log-odds": "Logloss CrossEntropy Focal MultiClassOneVsAll MultiLogloss MultiCrossEntropy",
    "score": "YetiRank YetiRankPairwise PairLogit PairLogitPairwise QueryRMSE QuerySoftMax QueryCrossEntropy StochasticRank "
    "StochasticFilter LambdaMart GroupQuantile",
    "log hazard": "Cox",
    "score before the softmax": "MultiClass",
    MEAN_AND_DEVIATION: "RMSEWithUncertainty",
    "log of the survival time": "SurvivalAft",
}
_UNITS = {loss: unit for unit, losses in _LOSSES.items() for loss in losses.split()}
_LEVELS = {"Quantile": "quantile", "MultiQuantile": "quantile", "LogLinQuantile": "quantile", "Expectile": "expectile"}


def convert(model: Model) -> TreeModel:
    """Return a live CatBoost model as :class:`TreeModel`, through its JSON export."""
    if not model.is_fitted():
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet. Call 'fit' before explaining it.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except Exception as error:  # CatBoostError, as the library is not imported here
            raise UnsupportedStructureError(
                "CatBoost does not export this model as JSON",
                str(error),
                "Encode text and embedding columns before fitting, or sample with Explainer(model.predict, background)",
            ) from None
        document = read_json(path.read_bytes(), "CatBoost model")
    classes = list(getattr(model, "classes_", ())) or None
    return from_document(document, name=type(model).__name__, classes=classes)


@guarded("CatBoost model")
def from_document(
    document: Json, *, name: str = "CatBoost model", n_stages: int | None = None, classes: Any = None
) -> TreeModel:
    """Return the model that a parsed JSON export describes; ``n_stages`` keeps the first trees only."""
    features = read_features(document)
    names, hashed = features.names, features.hashed
    scale_and_bias = field(document, "scale_and_bias", list)
    if len(scale_and_bias) != 2:
        raise ModelFormatError("scale_and_bias must be [scale, [bias, ...]]")
    scale = float(numbers(scale_and_bias[:1], "scale", np.float64)[0])
    # A list, as CatBoost reads a plain number as zero
    bias = numbers(scale_and_bias[1], "bias", np.float64)
    oblivious = "oblivious_trees" in document
    blocks = field(document, "oblivious_trees" if oblivious else "trees", list)
    reading = rounds_read(n_stages, len(blocks), "n_stages")
    blocks = blocks[:n_stages]
    n_outputs = _n_outputs(blocks, oblivious, len(bias))
    if len(bias) not in (1, n_outputs):
        raise ModelFormatError(f"bias holds {len(bias)} numbers", f"The model has {n_outputs} outputs")
    raw: list[RawTree] = []
    words = MAX_WORDS
    for k, block in enumerate(blocks):
        raw.append((_oblivious if oblivious else _nested)(block, f"tree {k}", features, scale, n_outputs, words))
        words -= sum(map(len, raw[-1].categories.values()))
    n_columns = len(names) + (len(hashed.statistics) if hashed is not None else 0)
    objective, level = _objective(document)
    if objective in _SEVERAL_TARGETS and features.has_target_statistics:
        raise UnsupportedStructureError(
            "CatBoost's JSON export keeps the target statistics of one target only",
            f"Got categories in a model with the loss {objective}, which JSON does not predict as the model does",
            "Fit one model for each target, raise one_hot_max_size, or sample with Explainer(model.predict, background)",
        )
    known = _class_names(document, n_outputs)
    return model_of(
        raw,
        np.broadcast_to(bias, (n_outputs,)),
        n_features=n_columns,
        single_precision=True,
        library="catboost",
        name=name,
        unit=_UNITS.get(objective, "raw score"),
        output_names=_output_names(n_outputs, known if classes is None else classes, objective, level),
        feature_names=names if all(names) and names != tuple(map(str, range(len(names)))) else None,
        objective=objective,
        categories=() if hashed is None else tuple(() if j in hashed.values else None for j in range(len(names))),
        hashed=hashed,
        reading=reading,
    )


def _n_outputs(blocks: list, oblivious: bool, n_bias: int) -> int:
    if not blocks:
        return n_bias
    if oblivious:
        leaves = len(field(blocks[0], "leaf_values", list))
        # 2^depth leaves for each output; a file's depth is bounded before it shifts
        return integer(max(leaves >> min(len(_splits(blocks[0])), 64), 1), "outputs", 1, MAX_OUTPUTS)
    node = blocks[0]
    for _ in range(MAX_DEPTH):
        if "value" in node:
            break
        node = field(node, "left")
    value = field(node, "value", (list, int, float))
    return integer(len(value) if isinstance(value, list) else 1, "outputs", 1, MAX_OUTPUTS)


def _splits(block: dict) -> list:
    """Return the splits of an oblivious tree; null means none."""
    return field(block, "splits", (list, type(None))) or []


class _Box(NamedTuple):
    """Hold a node of an oblivious tree: how many splits are below, the outcomes so far as bits, and the bounds of each column."""

    level: int
    leaf: int
    known: dict[tuple[int, int], tuple[float, float]]


def _oblivious(block: dict, where: str, features: Features, scale: float, n_outputs: int, words: int) -> RawTree:
    """Expand an oblivious tree; bit i of a leaf's number is the outcome of ``splits[i]``, the last split is the root.

    CatBoost's own attributions use the covers in that order. Splits that the path already decides are left out,
    so that no leaf is an empty box.
    """
    splits = [features.split(entry, where) for entry in _splits(block)]
    depth = len(splits)
    values = numbers(field(block, "leaf_values", list), f"{where}: leaf_values", np.float64)
    if depth > 30 or len(values) != n_outputs << depth:
        raise ModelFormatError(f"{where}: {depth} splits need {n_outputs} x 2^{depth} leaf values", f"Got {len(values)}")
    if not np.isfinite(values).all():  # including those of empty boxes, which are left out below
        raise ModelFormatError(f"{where}: a leaf value is not finite")
    weights = block.get("leaf_weights") or np.zeros(1 << depth)
    weights = numbers(weights, f"{where}: leaf_weights", np.float64, 1 << depth)
    if not np.isfinite(weights).all():
        raise ModelFormatError(f"{where}: a leaf weight is not finite")
    values = scale * values.reshape(-1, n_outputs)

    def children(box: _Box) -> list[_Box]:
        if box.level == 0:
            return []
        split, level, leaf = splits[box.level - 1], box.level - 1, 2 * box.leaf
        low, high = box.known.get(split.key, (-np.inf, np.inf))
        below, above = {split.key: (low, split.node.threshold)}, {split.key: (split.node.threshold, high)}
        return [_undecided(splits, level, leaf, box.known | below), _undecided(splits, level, leaf + 1, box.known | above)]

    def node(_: int, box: _Box) -> Node:
        return splits[box.level - 1].node if box.level else Node(value=values[box.leaf], cover=weights[box.leaf])

    return tree_of(_undecided(splits, depth, 0, {}), children, node, where=where, most_words=words)


def _undecided(splits: list[Split], level: int, leaf: int, known: dict[tuple[int, int], tuple[float, float]]) -> _Box:
    """Return a node after the splits ``x > border`` of which its bounds, x in (low, high], imply the outcome."""
    while level and splits[level - 1].key in known:
        (low, high), border = known[splits[level - 1].key], splits[level - 1].node.threshold
        if low < border < high:
            break
        level, leaf = level - 1, 2 * leaf + (border <= low)
    return _Box(level, leaf, known)


def _nested(block: dict, where: str, features: Features, scale: float, n_outputs: int, words: int) -> RawTree:
    """Read a non-symmetric tree: nested objects with ``split``, ``left`` and ``right``, or ``value`` and ``weight``."""

    def node(q: int, entry: Any) -> Node:
        if not isinstance(entry, dict):
            raise ModelFormatError(f"{where} node {q}: must be an object", f"Got {type(entry).__name__}")
        if "split" in entry:
            return features.split(entry["split"], f"{where} node {q}").node
        value = field(entry, "value", (list, int, float))
        value = numbers(value if isinstance(value, list) else [value], f"{where} node {q}: value", np.float64, n_outputs)
        return Node(value=scale * value, cover=number(entry, "weight") if "weight" in entry else 0.0)

    return tree_of(block, _children, node, where=where, most_words=words)


def _children(entry: Any) -> list[Any]:
    return [field(entry, "left"), field(entry, "right")] if isinstance(entry, dict) and "split" in entry else []


def _objective(document: dict) -> tuple[str, str]:
    """Return the loss and its levels as text, "" if unknown."""
    try:
        info = document["model_info"]
        # sums of models keep the loss that they share, and no other parameters
        loss = _parsed(info["params"])["loss_function"] if "params" in info else _parsed(info["loss_function"])
        return str(loss["type"]), str((loss.get("params") or {}).get("alpha", ""))
    except (KeyError, TypeError, AttributeError):
        return "", ""


def _class_names(document: dict, n_outputs: int) -> Any:
    """Return the names of the classes; refuse classes without outputs, for which the library predicts -inf."""
    try:
        parameters = _parsed(document["model_info"]["class_params"])
        n_classes, names = parameters.get("classes_count", 0), parameters["class_names"]
        labels = parameters.get("class_to_label", list(range(n_outputs)))
    except (KeyError, TypeError, AttributeError):
        return None
    if n_outputs > 1 and n_classes not in (0, n_outputs):
        raise UnsupportedStructureError(
            "CatBoost models with classes_count= are not supported", f"Got {str(n_classes)[:20]} for {n_outputs} outputs"
        )
    if n_outputs > 1 and str(labels) != str([*range(n_outputs)]):
        raise ModelFormatError(f"class_to_label must number the {n_outputs} classes", f"Got {str(labels)[:40]}")
    return names


def _parsed(value: object) -> Any:
    """Return an entry that is an object or, in some versions, JSON text."""
    return read_json(value.encode(), "model_info") if isinstance(value, str) else value


def _output_names(n_outputs: int, classes: Any, objective: str, level: str) -> tuple[str, ...]:
    if objective == "RMSEWithUncertainty" and n_outputs == 2:
        return "mean", "log standard deviation"
    levels = level.split(",") if level and objective in _LEVELS and set(level) <= CHARACTERS_OF_NUMBERS | {","} else []
    named = [f"{_LEVELS[objective]} {float(one):g}" for one in levels] if len(levels) == n_outputs else []
    if objective in ("MultiLogloss", "MultiCrossEntropy"):  # the library's names of labels are numbers, as if of classes
        return names_of_outputs(n_outputs, "label")
    word = "target" if objective in _LOSSES["target"].split() else "class"
    return names_of_outputs(n_outputs, word, classes if isinstance(classes, list) else None, named)
