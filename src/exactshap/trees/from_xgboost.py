"""XGBoost's models (live, JSON, UBJSON) as flat trees; live models take the same way as files, through their own dump."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.errors import ModelFormatError, UnsupportedStructureError, message
from exactshap.trees._build import RawTree, build
from exactshap.trees._document import MAX_COLUMNS, MAX_OUTPUTS, bit_set, field, guarded, integer, numbers, words_budget
from exactshap.trees._model import TreeModel
from exactshap.trees._ubj import read_ubj

__all__ = ["convert", "from_document"]

KNOWN_VERSION = (3, 2)
_LOGIT = ("reg:logistic", "binary:logistic")
_LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")


def convert(model: Any) -> TreeModel:
    """Return a live ``Booster`` or ``XGBModel`` as a :class:`TreeModel`; estimators stop at their best iteration."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    stages = None
    if booster is not model:
        best = booster.attr("best_iteration")
        stages = None if best is None else int(best) + 1
    document = read_ubj(bytes(booster.save_raw("ubj")))
    missing = getattr(model, "missing", np.nan)
    classes = getattr(model, "classes_", None)
    return from_document(document, name=type(model).__name__, live=True, n_stages=stages,
                         missing_value=np.nan if missing is None else float(missing), classes=classes)  # fmt: skip


@guarded("XGBoost model")
def from_document(
    document: Any,
    *,
    name: str = "XGBoost model",
    live: bool = False,
    n_stages: int | None = None,
    missing_value: float = float("nan"),
    classes: Any = None,
) -> TreeModel:
    """Return the model that a parsed dump describes; ``n_stages`` keeps the first boosting rounds only."""
    version = tuple(int(v) for v in numbers(field(document, "version", (list, np.ndarray)), "version", np.int64)[:2])
    if version > KNOWN_VERSION and not live:
        got, known = (".".join(map(str, v)) for v in (version, KNOWN_VERSION))
        raise ModelFormatError(message(f"XGBoost format {got} is newer than {known}, which this version of exactshap knows",
                                       do="Explain the live Booster, or upgrade exactshap"))  # fmt: skip
    learner = field(document, "learner")
    parameters = field(learner, "learner_model_param")
    n_features = integer(field(parameters, "num_feature", (str, int)), "num_feature", 0, MAX_COLUMNS)
    n_outputs = max(1, integer(parameters.get("num_class", 0), "num_class", 0, MAX_OUTPUTS),
                    integer(parameters.get("num_target", 1), "num_target", 0, MAX_OUTPUTS))  # fmt: skip
    booster, weights = _booster(learner)
    objective = field(learner, "objective.name", str)
    blocks = field(booster, "trees", list)
    owners = numbers(field(booster, "tree_info", (list, np.ndarray)), "tree_info", np.int64, len(blocks))
    stage = _stages(booster, len(blocks), n_outputs)
    keep = range(len(blocks)) if n_stages is None else np.flatnonzero(stage < n_stages)
    raw = _raw_trees(blocks, keep, owners, weights, n_outputs)
    trees = build(raw, n_features=n_features, constant=_base_margin(parameters, objective, n_outputs, version),
                  less_equal=False, single_precision=True)  # fmt: skip
    names = tuple(map(str, learner.get("feature_names") or ()))
    return TreeModel(
        trees=trees,
        library="xgboost",
        name=name,
        unit=_unit(objective),
        output_names=_output_names(objective, n_outputs, classes),
        single_output=n_outputs == 1,
        feature_names=names if len(names) == n_features and names else None,
        tree_output=np.array([tree.output for tree in raw], np.int32),
        tree_stage=stage[np.asarray(keep, np.int64)].astype(np.int32),
        objective=objective,
        epsilon=float(np.finfo(np.float32).eps),
        categories=_categories(booster, learner, n_features),
        missing_value=missing_value,
    )


def _booster(learner: dict) -> tuple[dict, np.ndarray | None]:
    """Return the trees' document and DART's tree weights."""
    booster = field(learner, "gradient_booster")
    kind = field(booster, "name", str)
    if kind == "gblinear":
        raise UnsupportedStructureError(
            message(
                "XGBoost's gblinear booster has no trees",
                "It is a linear model",
                "Explain an equivalent linear model: intercept and weights are in booster.get_dump()",
            )
        )
    if kind == "dart":
        model = field(booster, "gbtree.model")
        n_trees = len(field(model, "trees", list))
        return model, numbers(field(booster, "weight_drop", (list, np.ndarray)), "weight_drop", np.float32, n_trees).astype(
            float
        )
    if kind != "gbtree":
        raise ModelFormatError(message("Unknown XGBoost booster", f"Got {kind[:40]!r}", "Known: gbtree, dart"))
    return field(booster, "model"), None


def _stages(booster: dict, n_trees: int, n_outputs: int) -> np.ndarray:
    """Return the boosting round of each tree: from ``iteration_indptr``, which older files lack."""
    if "iteration_indptr" in booster:
        bounds = numbers(booster["iteration_indptr"], "iteration_indptr", np.int64)
        if len(bounds) and (bounds[0] != 0 or bounds[-1] != n_trees or (np.diff(bounds) < 0).any()):
            raise ModelFormatError(
                message(f"iteration_indptr must ascend from 0 to {n_trees}", f"Got {bounds[:5].tolist()}...")
            )
        return np.repeat(np.arange(max(len(bounds) - 1, 0)), np.diff(bounds)) if len(bounds) else np.zeros(n_trees, np.int64)
    parallel = integer(booster.get("gbtree_model_param", {}).get("num_parallel_tree", 1), "num_parallel_tree", 0, 2**31)
    return np.arange(n_trees) // (max(parallel, 1) * n_outputs)


def _raw_trees(blocks: list, keep: Any, owners: np.ndarray, weights: np.ndarray | None, n_outputs: int) -> list[RawTree]:
    raw, used = [], 0
    for k in keep:
        if not isinstance(blocks[k], dict):
            raise ModelFormatError(message(f"tree {k}: must be an object", f"Got {type(blocks[k]).__name__}"))
        if n_outputs > 1 and not 0 <= owners[k] < n_outputs:
            raise ModelFormatError(message(f"tree {k}: output {owners[k]} out of range [0, {n_outputs})"))
        tree = _raw_tree(blocks[k], int(k), n_outputs, int(owners[k]), 1.0 if weights is None else float(weights[k]), used)
        used += sum(len(bits) for bits in tree.categories.values())
        raw.append(tree)
    return raw


def _raw_tree(block: dict, k: int, n_outputs: int, owner: int, weight: float, used: int) -> RawTree:
    where = f"tree {k}"
    left = numbers(field(block, "left_children", (list, np.ndarray)), f"{where}: left_children", np.int64)
    n = len(left)

    def column(name: str, dtype: type) -> np.ndarray:
        return numbers(field(block, name, (list, np.ndarray)), f"{where}: {name}", dtype, n)

    right = column("right_children", np.int64)
    threshold = column("split_conditions", np.float32).astype(np.float64)
    missing = column("default_left", np.int8) != 0
    is_leaf = left == -1
    value, vector = _leaf_values(block, threshold, right, is_leaf, n_outputs, where)
    categories = _category_sets(block, n, where, used) if "categories_nodes" in block else {}
    nodes = np.array(list(categories), np.int64)
    # XGBoost sends the categories of the set to the right: we store the children the other way round.
    left[nodes], right[nodes], missing[nodes] = right[nodes].copy(), left[nodes].copy(), ~missing[nodes]
    split_type = numbers(block.get("split_type", np.zeros(n, np.int64)), f"{where}: split_type", np.int64, n)
    if (bad := np.flatnonzero((split_type != 0) & ~is_leaf & ~np.isin(np.arange(n), nodes))).size:
        raise ModelFormatError(message(f"{where} node {bad[0]}: a categorical split without categories"))
    return RawTree(
        feature=column("split_indices", np.int64),
        threshold=threshold,
        left=np.where(is_leaf, -1, left),
        right=np.where(is_leaf, -1, right),
        value=weight * value,
        cover=np.where(is_leaf, column("sum_hessian", np.float32).astype(float), 0.0),
        missing=missing.astype(np.int8),
        categories=categories,
        output=-1 if vector or n_outputs == 1 else owner,
    )


def _leaf_values(
    block: dict, threshold: np.ndarray, right: np.ndarray, is_leaf: np.ndarray, n_outputs: int, where: str
) -> tuple[np.ndarray, bool]:
    """Return leaf values (n_nodes,) or, for vector leaves, (n_nodes, n_outputs)."""
    size = integer(block.get("tree_param", {}).get("size_leaf_vector", 1), f"{where}: size_leaf_vector", 0, MAX_OUTPUTS)
    if size <= 1:
        return np.where(is_leaf, threshold, 0.0), False
    if size != n_outputs:
        raise ModelFormatError(message(f"{where}: leaves hold {size} values", f"The model has {n_outputs} outputs"))
    value = np.zeros((len(threshold), size))
    if "leaf_weights" not in block:
        base = numbers(field(block, "base_weights", (list, np.ndarray)), f"{where}: base_weights", np.float32, value.size)
        return np.where(is_leaf[:, None], base.reshape(value.shape), 0.0), True
    weights = numbers(block["leaf_weights"], f"{where}: leaf_weights", np.float32)
    place = right[is_leaf]
    if len(weights) % size or (place.size and not 0 <= place.min() <= place.max() < len(weights) // size):
        raise ModelFormatError(
            message(f"{where}: leaf_weights hold {len(weights)} numbers for leaves up to {place.max(initial=-1)}")
        )
    value[is_leaf] = weights.reshape(-1, size)[place]
    return value, True


def _category_sets(block: dict, n: int, where: str, used: int) -> dict[int, np.ndarray]:
    nodes, segments, sizes, categories = (
        numbers(field(block, name, (list, np.ndarray)), f"{where}: {name}", np.int64)
        for name in ("categories_nodes", "categories_segments", "categories_sizes", "categories")
    )
    sets = {}
    for q, start, size in zip(nodes.tolist(), segments.tolist(), sizes.tolist(), strict=True):
        if not (0 <= q < n and min(start, size) >= 0 and start + size <= len(categories)):
            raise ModelFormatError(message(f"{where} node {q}: its category segment {start}+{size} is out of range"))
        sets[q] = bit_set(categories[start : start + size], f"{where} node {q}", words_budget(used, where))
        used += len(sets[q])
    return sets


def _base_margin(parameters: dict, objective: str, n_outputs: int, version: tuple[int, ...]) -> np.ndarray:
    r"""Return base_score in margin space, of shape (n_outputs,): one number or, from 3.1 on, a list, each written as text.

    .. math:: m = \operatorname{logit}(b) \text{ for logistic losses}, \quad \ln b \text{ for log links}, \quad b \text{ otherwise}
    """
    text = parameters.get("base_score", "5E-1")
    parts = text.strip("[] ").split(",") if isinstance(text, str) else np.atleast_1d(text).tolist()
    if objective == "binary:logitraw" and version < (3, 1):
        raise UnsupportedStructureError(
            message(
                "The meaning of base_score under binary:logitraw differs between XGBoost's versions",
                f"Got a model of version {'.'.join(map(str, version))}",
                "Refit with binary:logistic, or save it again with XGBoost 3.1 or later",
            )
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        base = np.array([float(part) for part in parts]).astype(np.float32).astype(float)
        if objective in _LOGIT:
            base = -np.log(1.0 / base - 1.0)
        elif objective in _LOG:
            base = np.log(base)
    if len(base) not in (1, n_outputs):
        raise ModelFormatError(message(f"base_score holds {len(base)} numbers", f"The model has {n_outputs} outputs"))
    return np.broadcast_to(base, (n_outputs,))


def _unit(objective: str) -> str:
    if objective in _LOGIT or objective.startswith(("binary:logitraw", "multi:")):
        return "log-odds"
    if objective in _LOG:
        return "log of the target"
    return "score" if objective.startswith(("rank:", "binary:")) else "target"


def _output_names(objective: str, n_outputs: int, classes: Any) -> tuple[str, ...]:
    if n_outputs == 1:
        return (str(classes[-1]),) if classes is not None and len(classes) == 2 else ("output",)
    word = "class" if objective.startswith("multi:") else "target"
    if classes is not None and len(classes) == n_outputs:
        return tuple(map(str, classes))
    return tuple(f"{word} {o}" for o in range(n_outputs))


def _categories(booster: dict, learner: dict, n_features: int) -> tuple[tuple[Any, ...] | None, ...]:
    """Return the categories of each column by code: () for a column whose categories the model does not name (codes)."""
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
        raise ModelFormatError(message("Category names are out of range"))
    return tuple(text[a:b].decode("utf-8") for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
