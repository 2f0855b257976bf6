"""The reader of Universal Binary JSON, against a writer of our own and against hostile bytes."""

import struct
import tracemalloc

import numpy as np
import pytest

from exactshap.errors import ModelFormatError
from exactshap.trees._ubj import read_ubj


def key(text):
    data = text.encode()
    return b"L" + struct.pack(">q", len(data)) + data


def write(value):
    """Write what XGBoost writes: counted plain arrays, typed number arrays, 64-bit lengths."""
    if isinstance(value, dict):
        return b"{" + b"".join(key(k) + write(v) for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[#L" + struct.pack(">q", len(value)) + b"".join(map(write, value))
    if isinstance(value, np.ndarray):
        marker = {"f4": b"d", "f8": b"D", "i4": b"l", "i8": b"L", "i1": b"i", "u1": b"U", "i2": b"I"}[value.dtype.str[1:]]
        return b"[$" + marker + b"#L" + struct.pack(">q", len(value)) + value.astype(value.dtype.newbyteorder(">")).tobytes()
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if value is None:
        return b"Z"
    if isinstance(value, str):
        return b"S" + key(value)
    return b"D" + struct.pack(">d", value) if isinstance(value, float) else b"L" + struct.pack(">q", value)


DOCUMENT = {
    "empty": {},
    "list": [1, "two", 3.5, None, True, False, [], [[]], {"deep": [{"er": 1}]}],
    "text": "wert äöü",
    "typed": np.array([1.5, -2.0], np.float32),
    "bytes": np.array([1, 255], np.uint8),
    "long": np.array([2**40], np.int64),
    "none": np.array([], np.int32),
}


def test_what_is_written_is_read():
    got = read_ubj(write(DOCUMENT))
    assert list(got) == list(DOCUMENT)
    for name, value in DOCUMENT.items():
        if isinstance(value, np.ndarray):
            assert got[name].dtype == value.dtype
            np.testing.assert_array_equal(got[name], value)
        else:
            assert got[name] == value


def test_other_lengths_and_open_arrays():
    assert read_ubj(b"{i\x01a[U\x07I\x01\x00]}") == {"a": [7, 256]}
    assert read_ubj(b"{U\x01aC\x41}") == {"a": "A"}
    assert read_ubj(b"{#i\x01i\x01aZ") == {"a": None}


HOSTILE = [
    (b"", "1 bytes wanted, 0 left"),
    (b"{", "bytes wanted"),
    (b"{L" + struct.pack(">q", 2**62), "length 4611686018427387904 is beyond the end"),
    (b"{L" + struct.pack(">q", -1), "length -1 is beyond the end"),
    (b"{i\x01a[$d#L" + struct.pack(">q", 2**40), "beyond the end"),
    (b"{i\x01a[$d#L" + struct.pack(">q", 3) + b"\0\0\0\0", "12 bytes wanted, 4 left"),
    (b"{i\x01a[$Z#L" + struct.pack(">q", 1) + b"\0", "typed array of b'Z'"),
    (b"{i\x01a[$T#i\x05\0\0\0\0\0\0", "typed array of b'T'"),
    (b"{i\x01a[#L" + struct.pack(">q", 2**40), "beyond the end"),
    (b"{i\x01aTi\x01aF}", "key 'a' occurs twice"),
    (b"{i\x01\xffT}", "text is not UTF-8"),
    (b"{i\x01aX}", "unknown marker b'X'"),
    (b"{}}", "1 bytes after the end"),
    (b"[" * 1000, "nested deeper than 64"),
    (b"{i\x01a" * 100, "nested deeper than 64"),
    (b"{D" + struct.pack(">d", 1.0), "a length was expected"),
    (b"{$i#i\x01i\x01a\x01", "typed objects"),
]


@pytest.mark.parametrize(("data", "text"), HOSTILE, ids=[text for _, text in HOSTILE])
def test_hostile_bytes_are_refused_without_allocating(data, text):
    tracemalloc.start()
    try:
        with pytest.raises(ModelFormatError, match=text.replace("(", r"\(")):
            read_ubj(data)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_every_truncation_is_refused():
    data = write(DOCUMENT)
    for n in range(len(data)):
        with pytest.raises(ModelFormatError):
            read_ubj(data[:n])
