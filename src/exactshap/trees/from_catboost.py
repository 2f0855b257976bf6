"""CatBoost's models (live, JSON) as flat trees: oblivious trees written out as binary ones, and the non-symmetric kind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from exactshap.errors import ModelFormatError, UnsupportedStructureError, message
from exactshap.trees._build import MAX_DEPTH, RawTree, build
from exactshap.trees._document import MAX_COLUMNS, MAX_OUTPUTS, field, guarded, integer, numbers, read_json
from exactshap.trees._model import TreeModel

__all__ = ["convert", "from_document"]

_LOG = ("Poisson", "Tweedie")
_LOG_ODDS = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll", "MultiLogloss", "MultiCrossEntropy")


def convert(model: Any) -> TreeModel:
    """Return a live CatBoost model as a :class:`TreeModel`, through its own JSON export."""
    if not model.is_fitted():
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet. Call 'fit' before explaining it.")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        model.save_model(path, format="json")
        document = read_json(Path(path).read_bytes(), "CatBoost model")
    classes = list(getattr(model, "classes_", ())) or None
    return from_document(document, name=type(model).__name__, classes=classes)


@guarded("CatBoost model")
def from_document(
    document: Any, *, name: str = "CatBoost model", n_stages: int | None = None, classes: Any = None
) -> TreeModel:
    """Return the model that a parsed JSON export describes; ``n_stages`` keeps the first trees only."""
    columns, missing_left, names = _columns(field(document, "features_info"))
    scale_and_bias = field(document, "scale_and_bias", list)
    if len(scale_and_bias) != 2:
        raise ModelFormatError(message("scale_and_bias must be [scale, [bias, ...]]"))
    scale = float(scale_and_bias[0])
    bias = numbers(scale_and_bias[1] if isinstance(scale_and_bias[1], list) else [scale_and_bias[1]], "bias", np.float64)
    oblivious = "oblivious_trees" in document
    blocks = field(document, "oblivious_trees" if oblivious else "trees", list)[:n_stages]
    n_outputs = _n_outputs(blocks, oblivious, len(bias))
    if len(bias) not in (1, n_outputs):
        raise ModelFormatError(message(f"bias holds {len(bias)} numbers", f"The model has {n_outputs} outputs"))
    read = _oblivious if oblivious else _nested
    raw = [read(block, f"tree {k}", columns, missing_left, scale, n_outputs) for k, block in enumerate(blocks)]
    trees = build(
        raw, n_features=len(names), constant=np.broadcast_to(bias, (n_outputs,)), less_equal=True, single_precision=True
    )
    objective = _objective(document)
    classes = _class_names(document) if classes is None else classes
    return TreeModel(
        trees=trees,
        library="catboost",
        name=name,
        unit="log-odds" if objective in _LOG_ODDS else "log of the target" if objective in _LOG else "target",
        output_names=_output_names(n_outputs, classes),
        single_output=n_outputs == 1,
        feature_names=names if all(names) and names != tuple(map(str, range(len(names)))) else None,
        tree_output=np.full(len(raw), -1, np.int32),
        tree_stage=np.arange(len(raw), dtype=np.int32),
        objective=objective,
    )


def _columns(info: dict) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return the table's column of each float feature, whether its NaN goes left, and the columns' names."""
    for kind in ("categorical_features", "text_features", "embedding_features", "ctrs"):
        if info.get(kind):
            raise UnsupportedStructureError(
                message(
                    f"CatBoost models with {kind.replace('_', ' ')} are not supported",
                    "They are stored as hashes and target statistics that combine columns, which is no product of one-column factors",
                    "Encode the columns before fitting, or sample with Explainer(model.predict, background)",
                )
            )
    features = [entry for entry in info.get("float_features") or [] if isinstance(entry, dict)]
    flat = np.array(
        [integer(entry.get("flat_feature_index"), "flat_feature_index", 0, MAX_COLUMNS) for entry in features], np.int64
    )
    if len(set(flat.tolist())) < len(flat) or flat.max(initial=-1) >= len(flat):
        raise ModelFormatError(
            message("float_features must number the columns from 0 without gaps", f"Got {flat[:9].tolist()}")
        )
    treatment = [entry.get("nan_value_treatment", "AsIs") for entry in features]
    if not set(treatment) <= {"AsIs", "AsFalse", "AsTrue"}:
        raise ModelFormatError(message("Unknown nan_value_treatment", f"Got {sorted(map(str, set(treatment)))}"))
    names = [""] * len(flat)
    for j, entry in zip(flat.tolist(), features, strict=True):
        names[j] = str(entry.get("feature_id") or "")
    return flat, np.array([kind != "AsTrue" for kind in treatment], bool), tuple(names)


def _n_outputs(blocks: list, oblivious: bool, n_bias: int) -> int:
    if not blocks:
        return n_bias
    if oblivious:
        leaves = len(field(blocks[0], "leaf_values", list))
        return integer(max(leaves >> min(len(field(blocks[0], "splits", list)), 64), 1), "outputs", 1, MAX_OUTPUTS)
    node = blocks[0]
    for _ in range(MAX_DEPTH):
        if "value" in node:
            break
        node = field(node, "left")
    value = field(node, "value", (list, int, float))
    return integer(len(value) if isinstance(value, list) else 1, "outputs", 1, MAX_OUTPUTS)


def _split(entry: Any, where: str, n_features: int) -> tuple[int, float]:
    kind = field(entry, "split_type", str)
    if kind != "FloatFeature":
        raise UnsupportedStructureError(message(f"{where}: CatBoost splits of kind {kind[:30]!r} are not supported",
                                                "They use hashes or target statistics", "Encode the columns before fitting"))  # fmt: skip
    border = field(entry, "border", (int, float))
    return integer(entry.get("float_feature_index"), f"{where}: float_feature_index", 0, n_features - 1), _single(border)


def _single(border: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(border))


def _oblivious(block: dict, where: str, columns: np.ndarray, missing_left: np.ndarray, scale: float, n_outputs: int) -> RawTree:
    """Write an oblivious tree out; bit i of a leaf's number is the outcome of ``splits[i]``, the last split is the root.

    That is the order in which CatBoost's own attributions take the covers. Splits that the path already decides are left out,
    so that no leaf is an empty box.
    """
    splits = [_split(entry, where, len(columns)) for entry in field(block, "splits", list)]
    depth = len(splits)
    values = numbers(field(block, "leaf_values", list), f"{where}: leaf_values", np.float64)
    if depth > 30 or len(values) != n_outputs << depth:
        raise ModelFormatError(
            message(f"{where}: {depth} splits need {n_outputs} x 2^{depth} leaf values", f"Got {len(values)}")
        )
    weights = block.get("leaf_weights") or np.zeros(1 << depth)
    weights = numbers(weights, f"{where}: leaf_weights", np.float64, 1 << depth)
    builder = _Nodes(n_outputs)
    stack: list[tuple[int, int, int, dict[int, tuple[float, float]]]] = [(builder.add(), depth, 0, {})]
    while stack:
        q, level, leaf, known = stack.pop()
        while level and (outcome := _decided(splits[level - 1], known)) is not None:
            level, leaf = level - 1, 2 * leaf + outcome
        if level == 0:
            builder.set_leaf(q, scale * values[leaf * n_outputs : (leaf + 1) * n_outputs], weights[leaf])
            continue
        f, border = splits[level - 1]
        left, right = builder.split(q, columns[f], border, missing_left[f])
        low, high = known.get(f, (-np.inf, np.inf))
        stack.append((left, level - 1, 2 * leaf, {**known, f: (low, border)}))
        stack.append((right, level - 1, 2 * leaf + 1, {**known, f: (border, high)}))
    return builder.tree()


def _decided(split: tuple[int, float], known: dict[int, tuple[float, float]]) -> int | None:
    """Return the outcome of ``x > border`` where x is known to be within (low, high], else None."""
    f, border = split
    if f not in known:
        return None
    low, high = known[f]
    return 1 if border <= low else 0 if border >= high else None


def _nested(block: dict, where: str, columns: np.ndarray, missing_left: np.ndarray, scale: float, n_outputs: int) -> RawTree:
    """Read a non-symmetric tree: nested objects with ``split``, ``left`` and ``right``, or ``value`` and ``weight``."""
    builder = _Nodes(n_outputs)
    stack = [(builder.add(), block)]
    while stack:
        q, node = stack.pop()
        if not isinstance(node, dict):
            raise ModelFormatError(message(f"{where} node {q}: must be an object", f"Got {type(node).__name__}"))
        if "split" in node:
            f, border = _split(node["split"], f"{where} node {q}", len(columns))
            left, right = builder.split(q, columns[f], border, missing_left[f])
            stack += [(left, field(node, "left")), (right, field(node, "right"))]
            continue
        value = field(node, "value", (list, int, float))
        value = numbers(value if isinstance(value, list) else [value], f"{where} node {q}: value", np.float64, n_outputs)
        builder.set_leaf(q, scale * value, float(field(node, "weight", (int, float)) if "weight" in node else 0.0))
    return builder.tree()


class _Nodes:
    """A tree under construction."""

    def __init__(self, n_outputs: int) -> None:
        self.zero = np.zeros(n_outputs)
        self.rows: list[tuple[int, float, int, int, bool]] = []
        self.leaves: list[tuple[np.ndarray, float]] = []

    def add(self) -> int:
        self.rows.append((-1, 0.0, -1, -1, False))
        self.leaves.append((self.zero, 0.0))
        return len(self.rows) - 1

    def split(self, q: int, column: int, border: float, missing_left: bool) -> tuple[int, int]:
        left, right = self.add(), self.add()
        self.rows[q] = (int(column), border, left, right, bool(missing_left))
        return left, right

    def set_leaf(self, q: int, value: np.ndarray, weight: float) -> None:
        self.leaves[q] = (value, weight)

    def tree(self) -> RawTree:
        feature, threshold, left, right, missing = (np.array(part) for part in zip(*self.rows, strict=True))
        value, cover = (np.array(part) for part in zip(*self.leaves, strict=True))
        return RawTree(feature, threshold, left, right, value, cover, missing.astype(np.int8))


def _objective(document: dict) -> str:
    try:
        return str(_parsed(document["model_info"]["params"])["loss_function"]["type"])
    except (KeyError, TypeError):
        return ""


def _class_names(document: dict) -> Any:
    try:
        return _parsed(document["model_info"]["class_params"])["class_names"]
    except (KeyError, TypeError):
        return None


def _parsed(value: Any) -> Any:
    """Return an entry that some versions write as an object and others as JSON text."""
    return read_json(value.encode(), "model_info") if isinstance(value, str) else value


def _output_names(n_outputs: int, classes: Any) -> tuple[str, ...]:
    if n_outputs == 1:
        return (str(classes[-1]),) if isinstance(classes, list) and len(classes) == 2 else ("output",)
    if isinstance(classes, list) and len(classes) == n_outputs:
        return tuple(map(str, classes))
    return tuple(f"output {o}" for o in range(n_outputs))
