"""Convert LightGBM's text models, of files and live boosters, to flat trees."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import ModelFormatError
from exactshap.trees.ensemble import MISSING_NEVER, LeafFunction, RawTree, TreeModel, model_of
from exactshap.trees.formats._document import (
    CHARACTERS_OF_NUMBERS,
    MAX_COLUMNS,
    MAX_OUTPUTS,
    guarded,
    integer,
    log_odds,
    names_of_outputs,
    rounds_read,
)

KNOWN_VERSIONS = ("v2", "v3", "v4")
# The largest decision_type: NaN is missing, goes left, and the split is one of categories.
_KINDS = 11
# Bits of decision_type; the next two are the missing type: 0 none, 1 zero, 2 NaN.
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_OF_TREES = re.compile(
    "num_leaves|num_cat|num_features|split_feature|split_gain|threshold|decision_type|is_linear|(left|right)_child|shrinkage"
    "|leaf_(value|weight|count|const|features|coeff)|internal_(value|weight|count)|cat_(boundaries|threshold)"
)
_UNITS = {  # unit of the raw score, by objective; "raw score" for other objectives
    **dict.fromkeys(("binary", "multiclassova", "cross_entropy"), "log-odds"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "log of the target"),
    **dict.fromkeys(("lambdarank", "rank_xendcg"), "score"),
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "mape", "quantile"), "target"),
    "cross_entropy_lambda": "inverse softplus of the intensity",
    "multiclass": "score before the softmax",
}


def convert(model: Model) -> TreeModel:
    """Return a live model as :class:`TreeModel`, up to its best iteration."""
    if hasattr(model, "model_to_string"):
        return from_text(model.model_to_string(), name=type(model).__name__)
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    return from_text(model.booster_.model_to_string(), name=type(model).__name__, classes=getattr(model, "classes_", None))


@guarded("LightGBM model")
def from_text(text: str, *, name: str = "LightGBM model", n_stages: int | None = None, classes: Any = None) -> TreeModel:
    """Return the model that a LightGBM text describes; ``n_stages`` keeps the first boosting rounds only."""
    # The library's text ends at a NUL, and its line at a carriage return
    if odd := re.search(r"[\x00-\x08\x0b-\x1f]", text):
        raise ModelFormatError("Not a LightGBM text model", f"Got the control character {odd[0]!r}")
    body, ended, tail = text.partition("\nend of trees")
    if not body.startswith("tree\n") or not ended:
        raise ModelFormatError("Not a complete LightGBM text model", "It must start with 'tree' and have 'end of trees'")
    head, *blocks = body.split("\nTree=")
    header = _entries(head, "header")
    if header.get("version") not in KNOWN_VERSIONS:
        raise ModelFormatError(
            f"LightGBM format {header.get('version', 'unknown')[:20]!r} is not known",
            f"This version of exactshap knows {', '.join(KNOWN_VERSIONS)}",
        )
    n_classes = integer(header.get("num_class"), "num_class", 1, MAX_OUTPUTS)
    n_outputs = integer(header.get("num_tree_per_iteration", n_classes), "num_tree_per_iteration", 1, MAX_OUTPUTS)
    if n_classes != n_outputs:
        raise ModelFormatError(f"num_class is {n_classes}, num_tree_per_iteration {n_outputs}", "They must agree")
    n_features = integer(header.get("max_feature_idx"), "max_feature_idx", -1, MAX_COLUMNS) + 1
    if len(blocks) % n_outputs:
        raise ModelFormatError(f"The file holds {len(blocks)} trees", f"The model has {n_outputs} outputs")
    keep = len(blocks) if n_stages is None else min(len(blocks), n_stages * n_outputs)
    # A random forest's average is folded into the leaves
    share = n_outputs / keep if "average_output" in header and keep else 1.0
    raw = [_raw_tree(block, k, share, k % n_outputs) for k, block in enumerate(blocks[:keep])]
    # The library reads by these sizes
    sizes, lengths = header.get("tree_sizes", "").split(), [str(len(f"Tree={block}\n".encode())) for block in blocks]
    if "tree_sizes" in header and sizes != lengths:
        raise ModelFormatError("tree_sizes are not those of the trees", f"Got {' '.join(sizes)[:60]!r}")
    names = tuple(header.get("feature_names", "").split(" "))
    if len(names) != n_features:
        raise ModelFormatError(f"feature_names must hold {n_features} names", f"Got {len(names)}")
    objective = header.get("objective", "").split(" ")
    level = re.search(r"^\[alpha: ([0-9.e-]{1,20})\]$", tail, re.MULTILINE) if objective[0] == "quantile" else None
    levels = () if level is None else (f"quantile {float(level[1]):g}",)
    return model_of(
        raw,
        np.zeros(n_outputs),
        n_features=n_features,
        library="lightgbm",
        name=name,
        unit=_unit(objective),
        output_names=names_of_outputs(n_outputs, "class", classes, levels),
        feature_names=None if names == tuple(f"Column_{j}" for j in range(n_features)) else names,
        tree_stage=np.arange(keep) // n_outputs,
        boosted="average_output" not in header,
        objective=objective[0],
        frame_categories=_frame_categories(tail),
        reading=rounds_read(n_stages, len(blocks) // n_outputs, "n_stages"),
    )


def _entries(block: str, where: str) -> dict[str, str]:
    """Return the ``key=value`` lines of a block; a bare word is a key without value."""
    entries: dict[str, str] = {}
    for line in block.split("\n"):
        key, _, value = line.partition("=")
        if key in entries and key:
            raise ModelFormatError(f"{where}: key {key[:40]!r} occurs twice")
        entries[key] = value.strip()
    return entries


def _raw_tree(block: str, k: int, share: float, output: int) -> RawTree:
    where = f"tree {k}"
    entries = _entries_of_tree(block, k)
    n_leaves = integer(entries.get("num_leaves"), f"{where}: num_leaves", 1, 2**31)
    value = share * _numbers(entries, "leaf_value", where, float, n_leaves)
    functions = _leaf_functions(entries, where, n_leaves, value, share)
    if n_leaves == 1:
        none = np.full(1, -1)
        return RawTree(none, np.zeros(1), none, none, value, np.ones(1), output=output, functions=functions)
    n = n_leaves - 1

    def column(name: str, kind: type) -> np.ndarray:
        return _numbers(entries, name, where, kind, n)

    kinds, feature, threshold = column("decision_type", int), column("split_feature", int), column("threshold", float)
    if (bad := (kinds < 0) | (kinds > _KINDS)).any():
        raise ModelFormatError(f"{where}: decision_type {kinds[np.argmax(bad)]} is not known")
    left, right = (_children(column(name, int), n_leaves, where) for name in ("left_child", "right_child"))
    cover = _numbers(entries, "leaf_count", where, float, n_leaves) if "leaf_count" in entries else np.zeros(n_leaves)
    missing_type = (kinds >> 2) & 3
    categorical = (kinds & _CATEGORICAL) != 0
    default = np.where((kinds & _DEFAULT_LEFT) != 0, 1, 0)
    # Categories outside the set go right, missing or not. Without a missing type NaN is read as 0
    missing = np.where(categorical, 0, np.where(missing_type == 0, MISSING_NEVER, default))
    leaves = np.full(n_leaves, -1)
    return RawTree(
        feature=np.concatenate([feature, leaves]),
        threshold=np.concatenate([threshold, np.zeros(n_leaves)]),
        left=np.concatenate([left, leaves]),
        right=np.concatenate([right, leaves]),
        value=np.concatenate([np.zeros(n), value]),
        # ``build`` sums covers of splits from their leaves
        cover=np.concatenate([np.zeros(n), cover]),
        missing=np.concatenate([missing, np.zeros(n_leaves, int)]),
        zero_is_missing=np.concatenate([(missing_type == 1) & ~categorical, np.zeros(n_leaves, bool)]),
        categories=_category_sets(entries, np.flatnonzero(categorical), threshold, where),
        output=output,
        # Leaves follow the n splits in the arrays
        functions={n + leaf: function for leaf, function in functions.items()},
    )


def _leaf_functions(
    entries: dict[str, str], where: str, n_leaves: int, value: np.ndarray, share: float
) -> dict[int, LeafFunction]:
    """Return the linear functions of ``linear_tree``, by leaf.

    A leaf gives ``leaf_const`` plus its linear terms, but ``leaf_value`` if one of its columns is missing.
    """
    if not integer(entries.get("is_linear", 0), f"{where}: is_linear", 0, 1):
        return {}
    constant = share * _numbers(entries, "leaf_const", where, float, n_leaves)
    counts = _numbers(entries, "num_features", where, int, n_leaves)
    if (counts < 0).any() or (counts > MAX_COLUMNS).any():
        raise ModelFormatError(f"{where}: num_features must be within [0, {MAX_COLUMNS}]")
    ends = np.cumsum(counts)
    columns = _numbers(entries, "leaf_features", where, int, int(ends[-1]))
    coefficients = share * _numbers(entries, "leaf_coeff", where, float, int(ends[-1]))
    terms = [slice(end - count, end) for end, count in zip(ends.tolist(), counts.tolist(), strict=True)]
    return {
        # The constant part is ``leaf_value``, for rows with a missing cell; the function adds the difference
        leaf: LeafFunction(columns[some], coefficients[some], constant[leaf] - value[leaf])
        for leaf, some in enumerate(terms)
        if counts[leaf] or constant[leaf] != value[leaf]
    }


def _entries_of_tree(block: str, k: int) -> dict[str, str]:
    """Return a tree's entries, between its number and an empty line."""
    where = f"tree {k}"
    number, _, block = block.partition("\n")
    if integer(number, f"{where}: number", 0, 2**31) != k:
        raise ModelFormatError(f"{where}: numbered {number.strip()[:20]}", "Trees must be numbered from 0 in order")
    if not block.endswith("\n"):
        raise ModelFormatError(f"{where}: has no empty line at its end", "The library reads on to one")
    entries = _entries(block.rstrip("\n"), where)
    # Such a line can hide the next one from the library.
    if strange := [name for name in entries if not _OF_TREES.fullmatch(name)]:
        raise ModelFormatError(f"{where}: unknown entry {strange[0][:40]!r}")
    return entries


def _children(side: np.ndarray, n_leaves: int, where: str) -> np.ndarray:
    """Return children as numbers of nodes; in the file splits count from 0 up, leaves from -1 down."""
    n = n_leaves - 1
    if (bad := (side < -n_leaves) | (side >= n)).any():
        q = int(np.argmax(bad))
        raise ModelFormatError(f"{where} node {q}: child {side[q]} out of range [{-n_leaves}, {n})")
    # ~side is -side - 1: leaf -1 is number 0
    return np.where(side < 0, n + ~side, side)


def _numbers(entries: dict[str, str], name: str, where: str, kind: type, length: int | None = None) -> np.ndarray:
    if name not in entries:
        raise ModelFormatError(f"{where}: {name} is missing")
    try:
        # Python accepts 1_0 and digits of other scripts, the library does not
        if not set(entries[name]) <= CHARACTERS_OF_NUMBERS:
            raise ValueError
        values = np.array([kind(v) for v in entries[name].split()], np.int64 if kind is int else np.float64)
    except (ValueError, OverflowError):
        raise ModelFormatError(f"{where}: {name} must hold numbers", f"Got {entries[name][:40]!r}") from None
    if length is not None and len(values) != length:
        raise ModelFormatError(f"{where}: {name} must hold {length} numbers", f"Got {len(values)}")
    return values


def _category_sets(entries: dict[str, str], nodes: np.ndarray, threshold: np.ndarray, where: str) -> dict[int, np.ndarray]:
    """Return the bit sets of the categorical nodes: ``threshold`` holds the number of the set."""
    n_sets = integer(entries.get("num_cat", 0), f"{where}: num_cat", 0, 2**31)
    if not len(nodes):
        return {}
    bounds = _numbers(entries, "cat_boundaries", where, int, n_sets + 1)
    words = _numbers(entries, "cat_threshold", where, int, int(bounds[-1]))
    sets = {}
    for q in nodes.tolist():
        # The number may be negative, NaN or huge: checked before it is an index
        s = int(threshold[q]) if 0 <= threshold[q] < len(bounds) - 1 else -1
        if s < 0 or not 0 <= bounds[s] <= bounds[s + 1] <= len(words):
            raise ModelFormatError(f"{where} node {q}: category set {threshold[q]} is out of range")
        sets[q] = words[bounds[s] : bounds[s + 1]].astype(np.uint32)
    return sets


def _frame_categories(tail: str) -> tuple[tuple[Any, ...], ...]:
    """Return the categories of the frame's categorical columns, in order."""
    line = next((line for line in tail.split("\n") if line.startswith("pandas_categorical:")), "pandas_categorical:null")
    known = json.loads(line.partition(":")[2])
    if known is not None and not (isinstance(known, list) and all(isinstance(c, list) for c in known)):
        raise ModelFormatError("pandas_categorical must be a list of lists")
    return tuple(tuple(v if not isinstance(v, (list, dict)) else str(v) for v in values) for values in known or ())


def _unit(objective: list[str]) -> str:
    unit = _UNITS.get(objective[0], "raw score")
    slope = next((word.partition(":")[2] for word in objective if word.startswith("sigmoid:")), "1")
    if unit == "log-odds":
        return log_odds(float(slope))
    # ``reg_sqrt`` of all objectives that predict the target but "huber", which ignores the word
    if unit == "target" and "sqrt" in objective and objective[0] != "huber":
        return "signed square root of the target"
    return unit
