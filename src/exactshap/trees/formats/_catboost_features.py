"""Read what CatBoost's trees split on: float features, one-hot categories, target statistics with their tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from exactshap.errors import ModelFormatError, UnsupportedStructureError
from exactshap.trees.ensemble import HashedColumns, TargetStatistic, offsets_of
from exactshap.trees.formats._document import MAX_COLUMNS, Node, field, integer, number, numbers, read_json

_COUNTS = ("Counter", "FeatureFreq")
# Marks an empty place of a table.
_NOT_A_HASH = 2**64 - 1


class Split(NamedTuple):
    """Describe a split; ``key`` is the number that it compares, for a category the outcome of the equality, 0 or 1."""

    key: tuple[int, int]
    node: Node


@dataclass(frozen=True, eq=False)
class Features:
    """Describe the columns of a model: names, float features, hashed columns, and numbers of their splits."""

    names: tuple[str, ...]
    floats: np.ndarray  # int64 array: the user's column of each float feature
    missing_left: np.ndarray  # bool array: whether NaN of a float feature is below every border
    categorical: np.ndarray  # int64 array: the user's column of each categorical feature
    hashed: HashedColumns | None
    # number of each possible split, by which the library finds it: of a float feature and a border, a categorical one and a
    # value
    places: dict[tuple[str, int, float], int]
    # int64 (n_statistics + 1,): numbers of the splits of each target statistic: they come after those of the float features
    # and categories
    first_split: np.ndarray
    borders: tuple[np.ndarray, ...]  # tuple of float32 arrays: borders of each target statistic
    target_borders: tuple[int, ...]
    has_target_statistics: bool  # some that depend on the target

    def split(self, entry: Any, where: str) -> Split:
        """Return the split that a tree's entry describes."""
        kind = field(entry, "split_type", str)
        if kind == "FloatFeature":
            f = _whole(entry.get("float_feature_index"), f"{where}: float_feature_index", 0, len(self.floats) - 1)
            column, border = int(self.floats[f]), single(number(entry, "border"))
            self._check_place(entry, (kind, f, border), where)
            return Split((column, -1), Node(column, border, bool(self.missing_left[f])))
        if kind == "OneHotFeature":
            return self._one_hot(entry, where)
        if kind == "OnlineCtr":
            return self._statistic(entry, where)
        raise UnsupportedStructureError(
            f"{where}: CatBoost splits of kind {kind[:30]!r} are not supported",
            "They use text, embeddings or estimated features",
            "Encode the columns before fitting",
        )

    def _one_hot(self, entry: dict, where: str) -> Split:
        c = _whole(entry.get("cat_feature_index"), f"{where}: cat_feature_index", 0, len(self.categorical) - 1)
        column = int(self.categorical[c])
        assert self.hashed is not None
        known, value = self.hashed.values[column], _whole(entry.get("value"), f"{where}: value", -(2**31), 2**31 - 1)
        code = np.flatnonzero(known == value)
        if not len(code):
            raise ModelFormatError(f"{where}: compares with a category that its column does not list")
        self._check_place(entry, ("OneHotFeature", c, value), where)
        return Split((column, int(code[0])), Node(column, 0.5, True, members=(int(code[0]),)))

    def _check_place(self, entry: dict, what: tuple[str, int, float], where: str) -> None:
        """Refuse a split with a number that contradicts its description. The library uses the number."""
        place = _whole(entry.get("split_index"), f"{where}: split_index", 0, 2**62)
        if self.places.get(what) != place:
            raise ModelFormatError(f"{where}: split_index {place} is not that of {what[0]} {what[1]} with {what[2]}")

    def _statistic(self, entry: dict, where: str) -> Split:
        place = _whole(entry.get("split_index"), f"{where}: split_index", 0, 2**62)
        s = int(np.searchsorted(self.first_split, place, side="right")) - 1
        border = single(number(entry, "border"))
        if not 0 <= s < len(self.borders) or self.borders[s][place - self.first_split[s]] != border:
            raise ModelFormatError(f"{where}: split_index {place} is none of a target statistic with border {border}")
        if entry.get("ctr_target_border_idx", self.target_borders[s]) != self.target_borders[s]:
            raise ModelFormatError(f"{where}: split_index {place} has another ctr_target_border_idx")
        column = len(self.names) + s
        return Split((column, -1), Node(column, border, True))


def single(border: float) -> float:
    """Round to float32: CatBoost's borders are such numbers, written in decimals."""
    with np.errstate(over="ignore"):
        return float(np.float32(border))


def read_features(document: dict) -> Features:
    """Read the columns that the trees of a parsed JSON export split on."""
    info = field(document, "features_info")
    for kind in ("text_features", "embedding_features"):
        if info.get(kind):
            raise UnsupportedStructureError(
                f"CatBoost models with {kind.replace('_', ' ')} are not supported",
                "Their splits are functions of words or vectors that the export does not hold",
                "Encode the columns before fitting, or sample with Explainer(model.predict, background)",
            )
    floats, categories, ctrs = (_entries(info, kind) for kind in ("float_features", "categorical_features", "ctrs"))
    flat, names = _flat_columns([*floats, *categories])
    treatment = [entry.get("nan_value_treatment", "AsIs") for entry in floats]
    if not set(treatment) <= {"AsIs", "AsFalse", "AsTrue"}:
        raise ModelFormatError("Unknown nan_value_treatment", f"Got {sorted(map(str, set(treatment)))}")
    values = [numbers(entry.get("values") or [], "one-hot values", np.int64) for entry in categories]
    places = _places([_borders(entry) for entry in floats], values)
    borders = tuple(map(_borders, ctrs))
    missing_left = np.array([kind != "AsTrue" for kind in treatment], bool)
    columns = flat[: len(floats)], flat[len(floats) :]
    statistics = tuple(_statistic(entry, document.get("ctr_data") or {}, columns, missing_left) for entry in ctrs)
    return Features(
        names=names,
        floats=columns[0],
        missing_left=missing_left,
        categorical=columns[1],
        hashed=HashedColumns(dict(zip(columns[1].tolist(), values, strict=True)), statistics) if categories else None,
        places=places,
        first_split=len(places) + offsets_of(np.array([len(b) for b in borders])),
        borders=borders,
        has_target_statistics=any(entry.get("ctr_type") not in _COUNTS for entry in ctrs),
        target_borders=tuple(_whole(entry.get("target_border_idx", 0), "target_border_idx", 0, 2**31) for entry in ctrs),
    )


def _borders(entry: dict) -> np.ndarray:
    """Return the borders (float32) of a feature or a target statistic, which must increase."""
    borders = numbers(entry.get("borders") or [], "borders", np.float32)
    if not (borders[1:] > borders[:-1]).all():
        raise ModelFormatError("The borders of a feature must increase", f"Got {borders[:9].tolist()}")
    return borders


def _places(borders: list[np.ndarray], values: list[np.ndarray]) -> dict[tuple[str, int, float], int]:
    """Return the numbers of the splits: those of float features border by border, then those of categories value by value."""
    kinds = (("FloatFeature", borders), ("OneHotFeature", values))
    named = [(kind, f, float(one)) for kind, lists in kinds for f, some in enumerate(lists) for one in some]
    if len(set(named)) < len(named):
        raise ModelFormatError("A one-hot value of a column occurs twice")
    return {what: number for number, what in enumerate(named)}


def _entries(info: dict, kind: str) -> list[dict]:
    entries = info.get(kind) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ModelFormatError(f"features_info.{kind} must be a list of objects")
    stated = [entry.get("feature_index") for entry in entries] if kind != "ctrs" else list(range(len(entries)))
    # True is 1 in Python, but another number for the library
    if str(stated) != str([*range(len(entries))]):
        raise ModelFormatError(f"features_info.{kind} must be in the order of feature_index", f"Got {stated[:9]}")
    return entries


def _flat_columns(entries: list[dict]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the user's column of each feature, and the columns' names."""
    flat = [_whole(entry.get("flat_feature_index"), "flat_feature_index", 0, MAX_COLUMNS) for entry in entries]
    if sorted(flat) != list(range(len(flat))):
        raise ModelFormatError("The features must number the columns from 0 without gaps", f"Got {flat[:9]}")
    names = [""] * len(flat)
    for j, entry in zip(flat, entries, strict=True):
        names[j] = str(entry.get("feature_id") or "")
    return np.array(flat, np.int64), tuple(names)


def _statistic(entry: dict, tables: dict, columns: tuple[np.ndarray, np.ndarray], missing_left: np.ndarray) -> TargetStatistic:
    floats, categorical = columns
    parts: dict[str, list] = {"cat_feature_value": [], "float_feature": [], "cat_feature_exact_value": []}
    for element in field(entry, "elements", list):
        kind = field(element, "combination_element", str)
        if kind == "float_feature":
            f = _whole(element.get("float_feature_index"), "float_feature_index", 0, len(floats) - 1)
            parts[kind].append((int(floats[f]), single(number(element, "border")), not missing_left[f]))
        elif kind in parts:
            column = int(categorical[_whole(element.get("cat_feature_index"), "cat_feature_index", 0, len(categorical) - 1)])
            exact = kind == "cat_feature_exact_value"
            parts[kind].append((column, _whole(element.get("value"), "value", -(2**31), 2**31)) if exact else column)
        else:
            raise ModelFormatError("Unknown part of a target statistic", f"Got {kind[:40]!r}")
    name = field(entry, "identifier", str)
    if name not in tables:
        raise ModelFormatError(f"ctr_data holds no table of the target statistic {name[:80]!r}")
    if read_json(name.encode(), "identifier") != {"identifier": entry["elements"], "type": entry.get("ctr_type")}:
        raise ModelFormatError("A target statistic is not the one that its identifier names", f"Got {name[:80]!r}")
    keys, values, unknown = _table(entry, field(tables[name], "hash_map", list), tables[name])
    categories, above, equal = map(tuple, parts.values())
    return TargetStatistic(categories, above, equal, keys, values, unknown)


def _table(entry: dict, cells: list, table: dict) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Return sorted hashes, their statistics, and that of unknown hashes, in float32 as CatBoost.

    .. math:: \left(\frac{\mathrm{count} + \mathrm{prior}}{\mathrm{total} + \mathrm{denominator}} + \mathrm{shift}\right) \mathrm{scale}
    """
    stride = _whole(table.get("hash_stride"), "hash_stride", 2, 2**16)
    if len(cells) % stride:
        raise ModelFormatError(f"hash_map must hold rows of {stride} entries", f"Got {len(cells)} entries")
    hashes = np.array([integer(text, "hash", 0, _NOT_A_HASH) for text in cells[::stride]], np.uint64)
    counts = np.stack([numbers(cells[c::stride], "hash_map", np.float64) for c in range(1, stride)], axis=1)
    kept = hashes != np.uint64(_NOT_A_HASH)
    order = np.argsort(hashes[kept], kind="stable")
    keys = hashes[kept][order]
    if (keys[1:] == keys[:-1]).any():
        raise ModelFormatError("hash_map holds a hash twice")
    count, total, count_unknown, total_unknown = _shares(entry, counts[kept][order], table)
    settings = [number(entry, key) for key in ("prior_numerator", "prior_denomerator", "shift", "scale")]
    prior, denominator, shift, scale = (np.float32(single(value)) for value in settings)
    with np.errstate(all="ignore"):
        values = ((count + prior) / (total + denominator) + shift) * scale
        unknown = ((count_unknown + prior) / (total_unknown + denominator) + shift) * scale
    if not (np.isfinite(values).all() and np.isfinite([unknown, prior, denominator, shift, scale]).all()):
        raise ModelFormatError("A target statistic is not finite")
    return keys, values.astype(float), float(unknown)


def _shares(entry: dict, counts: np.ndarray, table: dict) -> tuple[np.ndarray, np.ndarray, np.float32, np.float32]:
    """Return the float32 count and total of each row of a table, and of an unknown hash."""
    kind, border = field(entry, "ctr_type", str), _whole(entry.get("target_border_idx", 0), "target_border_idx", 0, 2**31)
    # A mean is stored as sum, then count
    nothing, whole = np.float32(0), counts[:, kind == "BinarizedTargetMeanValue" :]
    if not ((whole >= 0).all() and (whole % 1 == 0).all() and (whole.sum(axis=1) < 2**31).all()):
        raise ModelFormatError("A target statistic must count in whole numbers below 2^31")
    if kind in _COUNTS:
        total = np.float32(_whole(table.get("counter_denominator"), "counter_denominator", 0, 2**31))
        return counts[:, 0].astype(np.float32), np.full(len(counts), total), nothing, total
    if kind == "BinarizedTargetMeanValue":
        if counts.shape[1] != 2:
            raise ModelFormatError("A mean needs a sum and a count", f"Got {counts.shape[1]} numbers")
        return counts[:, 0].astype(np.float32), counts[:, 1].astype(np.float32), nothing, nothing
    if kind not in ("Borders", "Buckets"):
        raise ModelFormatError("Unknown kind of target statistic", f"Got {kind[:40]!r}")
    if border >= counts.shape[1] - (kind == "Borders"):
        raise ModelFormatError(f"target_border_idx {border} is out of range", f"There are {counts.shape[1]} classes")
    chosen = counts[:, border + 1 :].sum(axis=1) if kind == "Borders" else counts[:, border]
    return chosen.astype(np.float32), counts.sum(axis=1).astype(np.float32), nothing, nothing


def _whole(value: object, what: str, low: int, high: int) -> int:
    """Return a whole number within [low, high]; text is refused, as CatBoost reads it as zero."""
    if isinstance(value, str):
        raise ModelFormatError(f"{what} must be a whole number", f"Got the text {value[:40]!r}")
    return integer(value, what, low, high)
