"""Convert XGBoost's models (live, JSON, UBJSON) to flat trees; live models are read like files, through their own dump."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Json, Model
from exactshap.errors import ModelFormatError, message
from exactshap.trees.ensemble import Forest, RawForest, TreeModel, check_totals, model_of, offsets_of
from exactshap.trees.formats import _xgboost_layout as layout
from exactshap.trees.formats._document import (
    MAX_COLUMNS,
    MAX_OUTPUTS,
    MAX_SET_WORDS,
    MAX_WORDS,
    Records,
    field,
    guarded,
    integer,
    numbers,
    records,
    rounds_read,
)
from exactshap.trees.formats._ubj import read_ubj


def convert(model: Model) -> TreeModel:
    """Return a live XGBoost model as :class:`TreeModel`.

    A ``Booster`` has all rounds, an ``XGBModel`` those up to the best one, as they predict.
    """
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    document = read_ubj(bytes(booster.save_raw("ubj")))
    missing = getattr(model, "missing", np.nan)
    classes = getattr(model, "classes_", None)
    ensemble = from_document(
        document,
        name=type(model).__name__,
        live=True,
        follow_best=booster is not model,
        missing_value=np.nan if missing is None else float(missing),
        classes=classes,
    )
    if not layout.has_offset(document) or callable(getattr(model, "objective", None)):  # custom objectives start from 0.5
        return ensemble
    return replace(ensemble, offset_note=_offset_note(ensemble.name, booster))


def _offset_note(name: str, booster: Model) -> str:
    """Return the note on offsets of a model; "" for one fitted to sampled rows, with another mean."""
    trained = json.loads(booster.save_config())["learner"]["gradient_booster"].get("tree_train_param", {})
    if float(trained.get("subsample", 1.0)) != 1.0:
        return ""
    text = (
        f"The trees of {name} do not start from its base_score: it is a slice of later rounds, or was updated with other rows,"
        " fitted with base_margin= or an objective of its own, to sampled rows and loaded, or a median or quantile to many equal"
        " targets"
    )
    why = "Without an offset XGBoost predicts from base_score, and so the values say; with one, base_score is left out"
    return message(text, why, "Pass the offsets of the explained rows, explain(model, X, offset=...)")


@guarded("XGBoost model")
def from_document(
    document: Json,
    *,
    name: str = "XGBoost model",
    live: bool = False,
    n_stages: int | None = None,
    follow_best: bool = True,
    missing_value: float = float("nan"),
    classes: Any = None,
) -> TreeModel:
    """Return the model that a parsed dump describes.

    ``n_stages`` keeps the first boosting rounds only; without it ``follow_best`` stops at the round that early stopping chose.
    """
    version = layout.checked_version(document, live=live)
    learner = field(document, "learner")
    parameters = field(learner, "learner_model_param")
    n_features = integer(field(parameters, "num_feature", (str, int)), "num_feature", 0, MAX_COLUMNS)
    n_outputs = max(
        1,
        integer(parameters.get("num_class", 0), "num_class", 0, MAX_OUTPUTS),
        integer(parameters.get("num_target", 1), "num_target", 0, MAX_OUTPUTS),
    )
    booster, weights = layout.booster_of(learner)
    objective = field(learner, "objective.name", str)
    layout.check_objective(objective)
    blocks = records(field(booster, "trees", (list, Records)))
    if not live:
        layout.check_order(blocks)
    owners = numbers(field(booster, "tree_info", (list, np.ndarray)), "tree_info", np.int64, len(blocks))
    stage = layout.stages_of(booster, len(blocks), n_outputs)
    n_rounds, reason = int(stage[-1]) + 1 if len(stage) else 0, "n_stages"
    if n_stages is None and follow_best:
        n_stages, reason = layout.best_stages(learner, n_rounds), "best_iteration"
    if n_stages is not None:
        kept = np.flatnonzero(stage < n_stages)
        blocks, owners, stage, weights = blocks.take(kept), owners[kept], stage[kept], weights[kept]
    categories = _categories(booster, learner, n_features)
    constant = layout.base_margin(parameters, objective, n_outputs, version)
    forest = _raw_forest(blocks, owners, weights, constant)
    names = tuple(map(str, learner.get("feature_names") or ()))
    model = model_of(
        forest,
        constant,
        n_features=n_features,
        less_equal=False,
        single_precision=True,
        library="xgboost",
        name=name,
        unit=layout.unit_of(objective, n_outputs),
        output_names=layout.output_names_of(learner, objective, n_outputs, classes),
        feature_names=names if len(names) == n_features and names else None,
        tree_stage=stage,
        objective=objective,
        epsilon=float(np.finfo(np.float32).eps),
        categories=categories,
        missing_value=missing_value,
        reading=rounds_read(n_stages, n_rounds, reason),
    )
    _check_coded_columns(forest, categories, typed=bool(learner.get("feature_types")))
    return model


def _raw_forest(blocks: Records, owners: np.ndarray, weights: np.ndarray, constant: np.ndarray) -> RawForest:
    """Read the trees, a column of all at a time; nodes are numbered within a tree."""
    left, sizes = blocks.column("left_children", np.int64)
    # Before values of all outputs are allocated, which a small file may claim to have
    check_totals(sizes, constant)
    n_outputs = len(constant)
    right, feature = (blocks.column(name, np.int64, sizes)[0] for name in ("right_children", "split_indices"))
    missing, is_leaf = _flags(blocks, "default_left", sizes), left == -1
    by_category = _flags(blocks, "split_type", sizes) & ~is_leaf if blocks.has("split_type") else np.zeros(len(left), bool)
    threshold = blocks.column("split_conditions", np.float32, sizes)[0].astype(float)
    covered = blocks.has("sum_hessian")
    value = _vector_leaves(blocks, right, is_leaf, sizes, n_outputs)
    sets = _category_sets(blocks, sizes)
    # XGBoost sends the categories of the set to the right, so the children are stored in reverse
    if sets is not None:
        q = sets[0]
        left[q], right[q], missing[q], threshold[q] = right[q].copy(), left[q].copy(), ~missing[q], 0.0
    _check_categorical(by_category, sizes, sets)
    # XGBoost 2 writes no covers of trees with vector leaves; of others the error names the tree without them
    cover = blocks.column("sum_hessian", np.float32, sizes)[0] if covered or value is None else np.zeros(len(left))
    output = np.full(len(blocks), -1) if value is not None else owners
    if value is None:
        if (bad := np.flatnonzero((owners < 0) | (owners >= n_outputs))).size:
            raise ModelFormatError(f"tree {bad[0]}: output {owners[bad[0]]} out of range [0, {n_outputs})")
        value = np.zeros((len(left), n_outputs))
        value[np.arange(len(left)), np.repeat(owners, sizes)] = threshold
    offset = offsets_of(sizes)
    nodes = Forest(
        offset,
        offset[:-1],
        feature=feature,
        left=left,
        right=np.where(is_leaf, -1, right),
        threshold=threshold,
        cover=cover.astype(float),
        missing=missing.astype(np.int8),
        zero_is_missing=np.zeros(len(left), bool),
        value=np.repeat(weights, sizes)[:, None] * value,
    )
    return RawForest(nodes, output, sets)


def _vector_leaves(
    blocks: Records, right: np.ndarray, is_leaf: np.ndarray, counts: np.ndarray, n_outputs: int
) -> np.ndarray | None:
    """Return leaf values (n_nodes, n_outputs), None if leaves are single numbers."""
    parameters = blocks.inner("tree_param")
    texts = {None} if parameters is None else set(parameters.entries("size_leaf_vector"))
    found = {max(integer(1 if text is None else text, "size_leaf_vector", 0, MAX_OUTPUTS), 1) for text in texts}
    if found <= {1}:
        return None
    if found != {n_outputs}:
        raise ModelFormatError(f"The trees' leaves hold {sorted(found)} values", f"The model has {n_outputs} outputs")
    if not blocks.has("leaf_weights"):
        base = blocks.column("base_weights", np.float32, n_outputs * counts)[0]
        return base.reshape(-1, n_outputs).astype(float)
    weights, lengths = blocks.column("leaf_weights", np.float32)
    rows = lengths // n_outputs
    place, tree = right[is_leaf], np.repeat(np.arange(len(blocks)), counts)[is_leaf]
    if (bad := (place < 0) | (place >= rows[tree]) | (lengths[tree] % n_outputs != 0)).any():
        k = int(tree[np.argmax(bad)])
        raise ModelFormatError(
            f"tree {k}: leaf_weights hold {lengths[k]} numbers for leaves up to {place[tree == k].max(initial=-1)}"
        )
    if (lengths % n_outputs).any():
        raise ModelFormatError(f"tree {int(np.argmax(lengths % n_outputs))}: leaf_weights are not rows of {n_outputs}")
    value = np.zeros((len(right), n_outputs))
    value[is_leaf] = weights.reshape(-1, n_outputs)[place + (np.cumsum(rows) - rows)[tree]]
    return value


def _category_sets(blocks: Records, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the nodes of category splits, and where their bit sets are."""
    if not blocks.has("categories_nodes"):
        return None
    nodes, counts = blocks.column("categories_nodes", np.int64)
    if not len(nodes):
        return None
    first, length = (blocks.column(name, np.int64, counts)[0] for name in ("categories_segments", "categories_sizes"))
    categories, n_categories = blocks.column("categories", np.int64)
    tree = np.repeat(np.arange(len(blocks)), counts)
    bad = (nodes < 0) | (nodes >= sizes[tree]) | (first < 0) | (length < 0) | (first > n_categories[tree] - length)
    if bad.any():
        s = int(np.argmax(bad))
        raise ModelFormatError(f"tree {tree[s]} node {nodes[s]}: its category segment {first[s]}+{length[s]} is out of range")
    if length.sum() > len(categories):
        raise ModelFormatError("The category segments overlap", f"They hold {length.sum()} of {len(categories)} categories")
    start = first + (np.cumsum(n_categories) - n_categories)[tree]
    chosen = categories[np.repeat(start - (np.cumsum(length) - length), length) + np.arange(length.sum())]
    where = nodes + (np.cumsum(sizes) - sizes)[tree]
    return where, *_bit_sets(chosen, length, tree, nodes)


def _bit_sets(
    categories: np.ndarray, length: np.ndarray, tree: np.ndarray, nodes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start and length of each set's 32-bit words, and the words."""
    owner = np.repeat(np.arange(len(length)), length)
    bad = (categories < 0) | (categories // 32 >= MAX_SET_WORDS)
    if bad.any():
        c = int(np.argmax(bad))
        s = owner[c]
        raise ModelFormatError(f"tree {tree[s]} node {nodes[s]}: category out of range", f"Got {categories[c]}")
    n_words = np.ones(len(length), np.int64)
    np.maximum.at(n_words, owner, categories // 32 + 1)
    if n_words.sum() > MAX_WORDS:
        raise ModelFormatError("The category sets are too large", f"The limit is {MAX_WORDS} words")
    start = np.cumsum(n_words) - n_words
    words = np.zeros(int(n_words.sum()), np.uint32)
    np.bitwise_or.at(words, start[owner] + categories // 32, np.uint32(1) << (categories % 32).astype(np.uint32))
    return start, n_words, words


def _flags(blocks: Records, name: str, sizes: np.ndarray) -> np.ndarray:
    """Return zeros and ones as truth values; refuse other numbers, which the library misreads."""
    flags, _ = blocks.column(name, np.int64, sizes)
    if (other := flags[(flags & ~1) != 0]).size:
        raise ModelFormatError(f"{name} must hold zeros and ones", f"Got {other[0]}")
    return flags.astype(bool)


def _check_categorical(stated: np.ndarray, sizes: np.ndarray, sets: Any) -> None:
    """Refuse trees with category sets at other nodes than category splits."""
    found = np.zeros(len(stated), bool)
    if sets is not None:
        found[sets[0]] = True
    if (stated != found).any():
        q = int(np.argmax(stated != found))
        k = int(np.searchsorted(np.cumsum(sizes), q, side="right"))
        text = "a categorical split without categories" if stated[q] else "categories of a split that is none of categories"
        raise ModelFormatError(f"tree {k} node {q - sizes[:k].sum()}: {text}")


def _check_coded_columns(forest: RawForest, categories: tuple[Any, ...], *, typed: bool) -> None:
    """Refuse category splits of numeric columns, and numeric splits of categorical ones."""
    if forest.sets is None:
        return
    splits, coded = forest.nodes.left >= 0, np.array([known is not None for known in categories])
    by_category = np.zeros(len(splits), bool)
    by_category[forest.sets[0]] = True
    column, by_category = forest.nodes.feature[splits], by_category[splits]
    if not categories:
        coded = np.bincount(column[by_category & (not typed)], minlength=column.max() + 1) > 0
    if (bad := np.flatnonzero(coded[column] != by_category)).size:
        raise ModelFormatError(f"Column {column[bad[0]]} is split by number and by category, or against its type")


def _categories(booster: dict, learner: dict, n_features: int) -> tuple[tuple[Any, ...] | None, ...]:
    """Return the categories of each column by code, () for unnamed categories (codes)."""
    kinds = [str(kind) for kind in learner.get("feature_types") or ()]
    if "c" not in kinds or len(kinds) != n_features:
        return ()
    encoded = (booster.get("cats") or {}).get("enc") or []
    known = [_category_values(encoded[j]) if j < len(encoded) else () for j in range(n_features)]
    return tuple(known[j] if kind == "c" else None for j, kind in enumerate(kinds))


def _category_values(entry: Any) -> tuple[Any, ...]:
    values = np.asarray(field(entry, "values", (list, np.ndarray)))
    if "offsets" not in entry:
        return tuple(values.tolist())
    offsets = numbers(entry["offsets"], "category offsets", np.int64)
    text = numbers(values, "category text", np.int64).astype(np.uint8).tobytes()
    if len(offsets) and (offsets[0] != 0 or offsets[-1] > len(text) or (np.diff(offsets) < 0).any()):
        raise ModelFormatError("Category names are out of range")
    # XGBoost cuts names of pandas that are not ASCII, also within a character.
    return tuple(text[a:b].decode(errors="replace") for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
