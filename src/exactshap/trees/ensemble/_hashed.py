"""Compute the columns that CatBoost makes of categories: codes for one-hot splits, and hashed target statistics.

A target statistic is a number that a table keeps for each category, or for each combination of categories and conditions, seen
in training; trees split on it as on any number. It is a function of its source columns alone, so in a game it belongs to the
player that holds them: a column of its own for the trees, none for the user.

CatBoost identifies categories by CityHash64, version 1.0 (Pike and Alakuijala, 2011), in arithmetic modulo 2^64 on little-endian
words. Later versions give other numbers for the same text.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import is_missing

# Of CatBoost's hash of several hashes
_MULTIPLIER = np.uint64(0x4906BA494954CB65)
# 64 bits
_MASK = 0xFFFFFFFFFFFFFFFF
# Odd constants of CityHash: K0..K3, and the multiplier of the step from 128 to 64 bits
_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_MIX = 0x9DDFEA08EB382D69


@dataclass(frozen=True, eq=False)
class TargetStatistic:
    """Look up a number by the hash of categories and conditions."""

    categories: tuple[int, ...]  # the columns with hashed categories, in the order of the hash
    # tuple of (column, border, whether missing values are above): conditions x > border that are hashed after them
    above: tuple[tuple[int, float, bool], ...]
    equal: tuple[tuple[int, int], ...]  # tuple of (column, category's hash): conditions of equality that are hashed last
    keys: np.ndarray  # uint64 (n_keys,): hashes of the combinations seen in training, ascending
    values: np.ndarray  # float64 (n_keys,): the statistic of each of them, float32 numbers
    unknown: float  # the statistic of all other combinations

    @property
    def sources(self) -> tuple[int, ...]:
        """Return the columns that it is a function of, ascending."""
        return tuple(sorted({*self.categories, *(j for j, _, _ in self.above), *(j for j, _ in self.equal)}))

    def column(self, hashes: dict[int, np.ndarray], X: np.ndarray) -> np.ndarray:
        """Return each row's statistic (n_rows,) from hashes of categories and numbers of other columns."""
        # The order (categories, then borders, then equalities) is part of the hash, as in the file's keys
        key = np.zeros(len(X), np.uint64)
        for j in self.categories:
            key = _chained(key, hashes[j])
        for j, border, missing_above in self.above:
            key = _chained(key, np.where(np.isnan(X[:, j]), missing_above, X[:, j].astype(np.float32) > border))
        for j, category in self.equal:
            key = _chained(key, hashes[j] == category)
        if not len(self.keys):
            return np.full(len(X), self.unknown)
        # The place of a hash above all known ones is past the end, where nothing can be compared
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(self.keys[place] == key, self.values[place], self.unknown)


def _chained(key: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Append a part to a hash: m (key + m part) modulo 2^64; negative parts are sign-extended."""
    return _MULTIPLIER * (key + _MULTIPLIER * part.astype(np.int64).view(np.uint64))


@dataclass(frozen=True, eq=False)
class HashedColumns:
    """Hold the columns of CatBoost's trees besides numbers."""

    # for each categorical column the hashes that one-hot splits compare it with: its code is
    # the position there, -1 for all others
    values: dict[int, np.ndarray]
    statistics: tuple[TargetStatistic, ...]  # the columns that follow the user's own

    def encode(self, table: TableLike, what: str = "X") -> np.ndarray:
        """Return float64 (n_rows, n_columns + n_statistics): numbers, codes of categories, target statistics."""
        n = table.n_columns
        # Categorical columns may hold text: their codes are filled in below
        plain = [j for j in range(n) if j not in self.values]
        X = np.empty((table.n_rows, n + len(self.statistics)))
        X[:, plain] = table.select(plain).numeric(what=what) if plain else 0.0
        hashes = {j: _hashes(table, j) for j in self.values}
        for j, known in self.values.items():
            X[:, j] = _codes(hashes[j], known)
        # Hashes overflow on purpose: they are taken modulo 2^64
        with np.errstate(over="ignore"):
            for s, statistic in enumerate(self.statistics):
                X[:, n + s] = statistic.column(hashes, X)
        return X

    def extend(self, players: tuple[tuple[int, ...], ...], names: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the players with each statistic in the player of its sources.

        If several players hold its sources, the error says which columns to group.
        """
        owner = {j: player for player, columns in enumerate(players) for j in columns}
        extended = [list(columns) for columns in players]
        n = len(owner)
        for s, statistic in enumerate(self.statistics):
            owners = {owner[j] for j in statistic.sources}
            if len(owners) > 1:
                raise _together(self.statistics, [set(columns) for columns in players], statistic, names)
            extended[owners.pop()].append(n + s)
        return tuple(map(tuple, extended))


def _together(
    statistics: tuple[TargetStatistic, ...], blocks: list[set[int]], first: TargetStatistic, names: tuple[str, ...]
) -> UnsupportedStructureError:
    """Return the finest groups of columns that keep the sources of every statistic together."""
    for statistic in statistics:
        touched = [block for block in blocks if block & set(statistic.sources)]
        # Merge all blocks that a statistic touches; after the last statistic no block can be split further
        blocks = [block for block in blocks if not block & set(statistic.sources)] + [set().union(*touched)]
    together = sorted(sorted(block) for block in blocks if len(block) > 1)
    groups = {"+".join(names[j] for j in block): [names[j] for j in block] for block in together}
    listed = ", ".join(repr(names[j]) for j in first.sources)
    return UnsupportedStructureError(
        "CatBoost's trees split on target statistics that combine columns",
        f"The first combines {listed}: it is not a function of one player, so the game is not a product",
        f"Pass groups={groups}, refit with max_ctr_complexity=1, or sample with Explainer(model.predict, background)",
    )


def category_hash(value: object, where: str) -> int:
    """Return CatBoost's signed 32-bit hash of a category: text as UTF-8, whole numbers in decimals."""
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        # True counts as 1 and not as the text 'True'
        value = str(int(value))
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        raise InputError(
            f"In X, {where} holds {'a missing value' if is_missing(value) else 'a value that is neither text nor a whole number'}",
            f"Got {value!r}",
            "CatBoost refuses it in a categorical column: make it text, such as 'missing'",
        )
    # CatBoost keeps the low half as a signed number
    low = city_hash_64(value) & 0xFFFFFFFF
    return low - (low >> 31 << 32)


def _hashes(table: TableLike, j: int) -> np.ndarray:
    """Return the hash of each cell of a column, int64 (n_rows,); equal cells of one type are hashed once."""
    known_hashes: dict[tuple[type, Any], int] = {}
    where = table.label(j)
    out = np.empty(table.n_rows, np.int64)
    for i, value in enumerate(table.column(j).tolist()):
        # With the type: 1 and 1.0 are one key of a dict, but 1.0 is refused
        key = (type(value), value)
        if key not in known_hashes:
            known_hashes[key] = category_hash(value, where)
        out[i] = known_hashes[key]
    return out


def _codes(hashes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return each hash's position among the known ones, else -1."""
    if not len(known):
        return np.full(len(hashes), -1.0)
    # Codes are positions in the file's order, so hashes are looked up through its sorting
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, hashes, sorter=order), len(known) - 1)
    code = order[place]
    return np.where(known[code] == hashes, code, -1).astype(float)


def city_hash_64(text: bytes) -> int:
    """Return the 64-bit hash of some bytes; four formulas by length.

    >>> hex(city_hash_64(b"")), hex(city_hash_64(b"Oslo"))
    ('0x9ae16a3b2f90404f', '0xc63ee5fefdf1511a')
    """
    n = len(text)
    if n <= 16:
        return _up_to_16(text, n)
    if n <= 32:
        return _up_to_32(text, n)
    return _up_to_64(text, n) if n <= 64 else _longer(text, n)


def _word(text: bytes, start: int) -> int:
    return int.from_bytes(text[start : start + 8], "little")


def _rotated(word: int, shift: int) -> int:
    word &= _MASK
    return (word >> shift | word << (64 - shift)) & _MASK


def _folded(word: int) -> int:
    word &= _MASK
    return word ^ word >> 47


def _joined(low: int, high: int) -> int:
    """Mix two words to one (Murmur-inspired)."""
    low, high = low & _MASK, high & _MASK
    once = _folded((low ^ high) * _MIX)
    return _folded((high ^ once) * _MIX) * _MIX & _MASK


def _up_to_16(text: bytes, n: int) -> int:
    if n > 8:
        first, last = _word(text, 0), _word(text, n - 8)
        return _joined(first, _rotated(last + n, n)) ^ last
    if n >= 4:
        first, last = int.from_bytes(text[:4], "little"), int.from_bytes(text[-4:], "little")
        return _joined(n + (first << 3), last)
    if n > 0:
        first, middle, last = text[0], text[n // 2], text[-1]
        return _folded((first + (middle << 8)) * _K2 ^ (n + (last << 2)) * _K3) * _K2 & _MASK
    return _K2


def _up_to_32(text: bytes, n: int) -> int:
    a, b = _word(text, 0) * _K1, _word(text, 8)
    c, d = _word(text, n - 8) * _K2, _word(text, n - 16) * _K0
    return _joined(_rotated(a - b, 43) + _rotated(c, 30) + d, a + _rotated(b ^ _K3, 20) - c + n)


def _up_to_64(text: bytes, n: int) -> int:
    first, third = _word(text, 0), _word(text, 16)
    v = _half(first + (n + _word(text, n - 16)) * _K0, _word(text, 8), third, _word(text, 24))
    w = _half(third + _word(text, n - 32), _word(text, n - 24), _word(text, n - 16), _word(text, n - 8))
    mixed = _folded((v[0] + w[1]) * _K2 + (w[0] + v[1]) * _K0)
    return _folded(mixed * _K0 + v[1]) * _K2 & _MASK


def _half(a: int, second: int, third: int, fourth: int) -> tuple[int, int]:
    """Digest 32 bytes of a text of 33 to 64; ``a`` holds its first word and a seed."""
    b, c = _rotated(a + fourth, 52), _rotated(a, 37)
    a += second
    c += _rotated(a, 7)
    a += third
    return a + fourth, b + _rotated(a, 31) + c


def _longer(text: bytes, n: int) -> int:
    x, y, z = _word(text, 0), _word(text, n - 16) ^ _K1, _word(text, n - 56) ^ _K0
    v = _digest(text, n - 64, n, y)
    w = _digest(text, n - 32, n * _K1, _K0)
    z += _folded(v[1]) * _K1
    x = _rotated(z + x, 39) * _K1
    y = _rotated(y, 33) * _K1
    # v and w were seeded by the last 1 to 64 bytes
    for start in range(0, (n - 1) // 64 * 64, 64):
        x = _rotated(x + y + v[0] + _word(text, start + 16), 37) * _K1 ^ w[1]
        y = _rotated(y + v[1] + _word(text, start + 48), 42) * _K1 ^ v[0]
        z = _rotated(z ^ w[0], 33)
        v = _digest(text, start, v[1] * _K1, x + w[0])
        w = _digest(text, start + 32, z + w[1], y)
        z, x = x, z
    return _joined(_joined(v[0], w[0]) + _folded(y) * _K1 + z, _joined(v[1], w[1]) + x)


def _digest(text: bytes, start: int, a: int, b: int) -> tuple[int, int]:
    """Digest 32 bytes and two seeds to two words."""
    first, second, third, fourth = struct.unpack_from("<4Q", text, start)
    a += first
    b = _rotated(b + a + fourth, 21)
    mixed = a + second + third
    return (mixed + fourth) & _MASK, (b + _rotated(mixed, 44) + a) & _MASK
