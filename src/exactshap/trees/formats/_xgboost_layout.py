"""Read an XGBoost document apart from its nodes: version, weights of trees, rounds and the best round."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap._runtime.types import Json
from exactshap.errors import ExplanationWarning, ModelFormatError, UnsupportedStructureError, message, warn
from exactshap.trees.formats._document import CHARACTERS_OF_NUMBERS, Records, field, integer, names_of_outputs, numbers, records

KNOWN_VERSION = (3, 4)
_LOGIT = ("reg:logistic", "binary:logistic")
_EXPECTILES = "reg:expectileerror"
# Objectives with the exponential of a margin as base_score, and what the margin is
_LOG = {
    "count:poisson": "log of the target",
    "reg:gamma": "log of the target",
    "reg:tweedie": "log of the target",
    "survival:aft": "log of the survival time",
    "survival:cox": "log hazard",
}
_OF_MEANS = (*_LOGIT, "count:poisson", "reg:gamma", "reg:squarederror", "reg:tweedie")
_OF_QUANTILES = ("reg:absoluteerror", "reg:quantileerror")
# Excess fraction of rows on one side of the base score: 0.08 and more with offsets of the size of the target
_UNBALANCED = 0.02
# Fraction of the largest weight of a tree: some 1e-8 without offsets, 0.05 and more with them.
ROUNDING_OF_ROOT = 1e-3
# Place of the levels of the outputs in a document, and what each output is of the target
_LEVELS = {
    "reg:quantileerror": ("quantile_loss_param", "quantile_alpha", "quantile"),
    _EXPECTILES: ("expectile_loss_param", "expectile_alpha", "expectile"),
}
_OBJECTIVES = frozenset(
    f"{family}:{name}"
    for family, names in {
        "binary": "hinge logistic logitraw",
        "count": "poisson",
        "multi": "softmax softprob",
        "rank": "map ndcg pairwise",
        "reg": "absoluteerror expectileerror gamma linear logistic pseudohubererror quantileerror squarederror squaredlogerror tweedie",
        "survival": "aft cox",
    }.items()
    for name in names.split()
)
_FIELDS = {  # known entries of each object that takes part in a prediction
    "": "learner version",
    "learner": "attributes feature_names feature_types gradient_booster learner_model_param objective",
    "learner_model_param": "base_score boost_from_average num_class num_feature num_target",
    "gradient_booster": "gbtree model name weight_drop",
    "gbtree": "model name",
    "model": "cats gbtree_model_param iteration_indptr tree_info trees weight_drop",
    "gbtree_model_param": "num_parallel_tree num_trees",
    "cats": "enc feature_segments sorted_idx",
    "trees": "base_weights categories categories_nodes categories_segments categories_sizes default_left id leaf_weights "
    "left_children loss_changes parents right_children split_conditions split_indices split_type sum_hessian tree_param",
    "tree_param": "num_deleted num_feature num_nodes size_leaf_vector",
}


def checked_version(document: Json, *, live: bool) -> tuple[int, ...]:
    """Return the version that wrote a document; a newer one is read if it has no entry that this version does not know.

    Files of a newer minor version are warned about once, files of a newer major version refused: unlike for ``live`` models, there
    is no prediction of the library to compare with.
    """
    version = tuple(int(v) for v in numbers(field(document, "version", (list, np.ndarray)), "version", np.int64)[:2])
    if version <= KNOWN_VERSION:
        return version
    got, known = (".".join(map(str, v)) for v in (version, KNOWN_VERSION))
    if version[0] > KNOWN_VERSION[0] and not live:
        raise ModelFormatError(
            f"XGBoost format {got} is newer than {known}, which this version of exactshap knows",
            do="Explain the live Booster, or upgrade exactshap",
        )
    unknown = _unknown_entry(document)
    if unknown is not None:
        raise ModelFormatError(
            f"XGBoost format {got} has an entry {unknown!r} that format {known} does not have",
            "It may change predictions",
            "Upgrade exactshap, or save the model with an older XGBoost",
        )
    if not live:
        _warn_of_newer(got, known)
    return version


@functools.cache
def _warn_of_newer(got: str, known: str) -> None:
    warn(
        message(
            f"XGBoost format {got} is newer than {known}, which this version of exactshap knows",
            "All its entries are known and are read as before",
            "Compare explanation.prediction with XGBoost's own, or upgrade exactshap",
        ),
        ExplanationWarning,
    )


def _unknown_entry(document: dict) -> str | None:
    """Return the path of the first unknown entry, or None."""
    learner = field(document, "learner")
    booster = field(learner, "gradient_booster")
    model = booster.get("model") or field(booster, "gbtree.model") if booster.get("name") != "gblinear" else {}
    parts = {"": document, "learner": learner, "gradient_booster": booster, "model": model}
    parts |= {name: field(learner, name) for name in ("learner_model_param",) if name in learner}
    parts |= {name: field(model, name) for name in ("gbtree_model_param", "cats") if name in model}
    found = {name: set(part) for name, part in parts.items()}
    if "trees" in model:
        blocks = records(field(model, "trees", (list, Records)))
        inner = blocks.inner("tree_param")
        found |= {"trees": blocks.names(), "tree_param": set() if inner is None else inner.names()}
    if booster.get("name") == "dart":
        found["gbtree"] = set(field(booster, "gbtree"))
    unknown = ((name, key) for name, keys in found.items() for key in sorted(keys - set(_FIELDS[name].split())))
    return next((f"{name}.{key}".lstrip(".") for name, key in unknown), None)


def check_objective(objective: str) -> None:
    """Refuse an objective without a known link. It turns base_score into a margin."""
    if objective not in _OBJECTIVES:
        raise ModelFormatError(
            "This objective of XGBoost is not known", f"Got {objective[:40]!r}", f"Known: {', '.join(sorted(_OBJECTIVES))}"
        )


def booster_of(learner: dict) -> tuple[dict, np.ndarray]:
    """Return the document and the weights of the trees: 1 except for DART, a booster of its own until version 3.4."""
    booster = field(learner, "gradient_booster")
    kind = field(booster, "name", str)
    if kind == "gblinear":
        raise UnsupportedStructureError(
            "XGBoost's gblinear booster has no trees",
            "It is a linear model",
            "Explain an equivalent linear model: intercept and weights are in booster.get_dump()",
        )
    if kind not in ("dart", "gbtree"):
        raise ModelFormatError("Unknown XGBoost booster", f"Got {kind[:40]!r}", "Known: gbtree, dart")
    model = field(booster, "gbtree.model" if kind == "dart" else "model")
    n_trees = len(field(model, "trees", (list, Records)))
    holder = booster if kind == "dart" else model
    if kind == "gbtree" and "weight_drop" not in model:
        return model, np.ones(n_trees)
    weights = numbers(field(holder, "weight_drop", (list, np.ndarray)), "weight_drop", np.float32, n_trees)
    return model, weights.astype(float)


def stages_of(booster: dict, n_trees: int, n_outputs: int) -> np.ndarray:
    """Return the boosting round of each tree, from ``iteration_indptr`` where the file has it."""
    if "iteration_indptr" in booster:
        bounds = numbers(booster["iteration_indptr"], "iteration_indptr", np.int64)
        steps = bounds[1:] - bounds[:-1]
        if len(bounds) and (bounds[0] != 0 or bounds[-1] != n_trees or (steps < 0).any()):
            raise ModelFormatError(f"iteration_indptr must ascend from 0 to {n_trees}", f"Got {bounds[:5].tolist()}...")
        return np.arange(len(steps)).repeat(steps) if len(bounds) else np.zeros(n_trees, np.int64)
    parallel = integer(booster.get("gbtree_model_param", {}).get("num_parallel_tree", 1), "num_parallel_tree", 0, 2**31)
    # A round has ``num_parallel_tree`` trees for each output, and rounds follow each other
    return np.arange(n_trees) // (max(parallel, 1) * n_outputs)


def check_order(blocks: Records) -> None:
    """Refuse trees out of order. By their numbers XGBoost assigns output, round and weight."""
    if blocks.has("id") and (found := blocks.entries("id")) != list(range(len(blocks))):
        place = next(k for k, number in enumerate(found) if number != k)
        raise ModelFormatError(
            f"tree {place}: must have the id {place}", f"Got {str(found[place])[:40]!r}", "Save the model again"
        )


def best_stages(learner: dict, n_rounds: int) -> int | None:
    """Return the rounds XGBoost's estimators use after early stopping; None for all."""
    attributes = field(learner, "attributes") if "attributes" in learner else {}
    best = attributes.get("best_iteration")
    if best is None:
        return None
    stages = integer(best, "best_iteration", 0, 2**31) + 1
    if stages > n_rounds:
        raise ModelFormatError(
            f"best_iteration is {stages - 1}", f"The model has {n_rounds} boosting rounds", "Say how many with n_stages="
        )
    return stages


def base_margin(parameters: dict, objective: str, n_outputs: int, version: tuple[int, ...]) -> np.ndarray:
    r"""Return base_score in margin space, of shape (n_outputs,): one number or, from 3.1 on, a list, each written as text.

    .. math:: m = \operatorname{logit}(b) \text{ for logistic losses}, \quad \ln b \text{ for log links}, \quad b \text{ otherwise}

    Expectiles beyond the first are :math:`b_k = b_{k-1} + \ln(1 + e^{m_k})`, so that they cannot cross.
    """
    text = parameters.get("base_score", "5E-1")
    if not set(str(text)) <= CHARACTERS_OF_NUMBERS | set("[],"):
        raise ModelFormatError("base_score must hold numbers", f"Got {str(text)[:40]!r}")
    # Otherwise the library reads one number.
    listed = isinstance(text, str) and text.startswith("[") and text.endswith("]")
    parts = text[1:-1].split(",") if listed else [text] if isinstance(text, str) else np.atleast_1d(text).tolist()
    if objective == "binary:logitraw" and version < (3, 1):
        raise UnsupportedStructureError(
            "The meaning of base_score under binary:logitraw differs between XGBoost's versions",
            f"Got a model of version {'.'.join(map(str, version))}",
            "Refit with binary:logistic, or save it again with XGBoost 3.1 or later",
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = [int(part) if str(part).strip(" +-").isdecimal() else float(part) for part in parts]
        base = numbers(values, "base_score", np.float32).astype(float)
        if objective in _LOGIT:
            base = -np.log(1.0 / base - 1.0)
        elif objective in _LOG:
            base = np.log(base)
        elif objective == _EXPECTILES:
            base[1:] = np.log(np.expm1(np.diff(base)))
    if len(base) not in (1, n_outputs):
        raise ModelFormatError(f"base_score holds {len(base)} numbers", f"The model has {n_outputs} outputs")
    return base if len(base) == n_outputs else np.full(n_outputs, base[0])


def has_offset(document: dict) -> bool:
    """Say whether a model was fitted with offsets instead of its base_score.

    From 3.1 on XGBoost estimates base_score as the mean of y for these objectives, so that the gradients add up to zero at the first root,
    which then has a weight of rounding only. Offsets leave base_score as it is, and another weight there. With an objective of
    one's own, which no file names, the objective reads as the default, and base_score as the default, too. For medians and quantiles
    the numbers of rows on each side differ by at most one; equal targets differ by more, but give leaves of equal values.
    """
    learner = document["learner"]
    objective, parameters = learner["objective"], learner["learner_model_param"]
    balanced = float((objective.get("reg_loss_param") or {}).get("scale_pos_weight", 1.0)) == 1.0
    estimated = (
        str(parameters.get("boost_from_average")) == "1" and balanced and objective["name"] in (*_OF_MEANS, *_OF_QUANTILES)
    )
    booster = learner["gradient_booster"]
    untouched = objective["name"] == "reg:squarederror" and str(parameters.get("base_score")).strip("[]") in ("5E-1", "0.5")
    if untouched or not estimated or booster["name"] != "gbtree" or tuple(map(int, document["version"][:2])) < (3, 1):
        return False
    blocks = records(booster["model"]["trees"])
    if not len(blocks) or int(parameters.get("num_target", 1)) > 1:
        return False
    first = blocks.take(np.zeros(1, np.int64))
    weights = first.column("base_weights", np.float32)[0]
    if objective["name"] in _OF_QUANTILES:
        leaves = first.column("split_conditions", np.float32)[0][first.column("left_children", np.int64)[0] < 0]
        n_rows = float(first.column("sum_hessian", np.float32)[0][0])
        return len(np.unique(leaves)) == len(leaves) and bool(abs(weights[0]) > _UNBALANCED + 2.0 / n_rows)
    # A root alone has nothing to be compared with
    return len(weights) > 1 and bool(abs(weights[0]) > ROUNDING_OF_ROOT * np.abs(weights).max(initial=0.0))


def unit_of(objective: str, n_outputs: int) -> str:
    """Return the unit of the margins."""
    if objective == _EXPECTILES and n_outputs > 1:
        return "target of the lowest expectile, then the inverse softplus of each step to the next"
    if objective.startswith("binary:logitraw"):
        return "raw log-odds"
    if objective in _LOGIT:
        return "log-odds"
    if objective.startswith("multi:"):
        return "score before the softmax"
    if objective in _LOG:
        return _LOG[objective]
    return "score" if objective.startswith(("rank:", "binary:")) else "target"


def output_names_of(learner: dict, objective: str, n_outputs: int, classes: Any) -> tuple[str, ...]:
    """Return the classes, targets or levels that the margins belong to."""
    word = "class" if objective.startswith("multi:") else "target"
    # Of several targets the classes are those of each
    classes = classes if n_outputs == 1 or word == "class" else None
    levels: tuple[str, ...] = ()
    if objective in _LEVELS:
        holder, entry, level = _LEVELS[objective]
        text = str((learner["objective"].get(holder) or {}).get(entry, "")).strip("[]()")
        # No names of quantiles or expectiles in files without levels
        if text and set(text) <= CHARACTERS_OF_NUMBERS | {","}:
            levels = tuple(f"{level} {float(one):g}" for one in text.split(","))
    return names_of_outputs(n_outputs, word, classes, levels)
