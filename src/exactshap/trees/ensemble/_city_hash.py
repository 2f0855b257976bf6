"""CityHash64, version 1.0 (Pike and Alakuijala, 2011): the hash by which CatBoost knows a category.

All arithmetic is modulo 2^64 and words are little-endian. Later versions of CityHash give other numbers for the same text.
"""

from __future__ import annotations

import struct

__all__ = ["city_hash_64"]

_MASK = 0xFFFFFFFFFFFFFFFF
# Odd constants of the algorithm, K0..K3 and the multiplier of the 128-to-64-bit step.
_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_MIX = 0x9DDFEA08EB382D69


def city_hash_64(text: bytes) -> int:
    """Return the 64-bit hash of some bytes; four formulas by length.

    Examples
    --------
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
    # The last 1 to 64 bytes have seeded v and w
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
