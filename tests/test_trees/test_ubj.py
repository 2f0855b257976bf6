"""The reader of Universal Binary JSON, against a writer of our own and against hostile bytes."""

import re
import struct
import tracemalloc

import numpy as np
import pytest

import reference_ubj
from exactshap.errors import ModelFormatError
from exactshap.trees.formats._ubj import Scanned, read_ubj

READERS = pytest.mark.parametrize("read", [read_ubj, reference_ubj.read_ubj], ids=["scan", "reference"])


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


@READERS
def test_what_is_written_is_read(read):
    got = read(write(DOCUMENT))
    assert list(got) == list(DOCUMENT)
    for name, value in DOCUMENT.items():
        if isinstance(value, np.ndarray):
            assert got[name].dtype == value.dtype
            np.testing.assert_array_equal(got[name], value)
        else:
            assert got[name] == value


@READERS
def test_other_lengths_and_open_arrays(read):
    assert read(b"{i\x01a[U\x07I\x01\x00]}") == {"a": [7, 256]}
    assert read(b"{i\x01a[I\x00\x07I\x01\x00i\xff]}") == {"a": [7, 256, -1]}
    assert read(b"{i\x01a[#i\x02I\xff\xfeI\x01\x00}") == {"a": [-2, 256]}
    assert read(b"{U\x01aC\x41}") == {"a": "A"}
    assert read(b"{#i\x01i\x01aZ") == {"a": None}
    assert read(b"[]") == []
    assert read(b"Z") is None


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


@READERS
@pytest.mark.parametrize(("data", "text"), HOSTILE, ids=[text for _, text in HOSTILE])
def test_hostile_bytes_are_refused_without_allocating(data, text, read):
    read_ubj(b"Z")  # compiled outside of the measurement
    wanted = re.escape(text) if read is reference_ubj.read_ubj else r"Malformed UBJSON at byte \d+\. \w+"
    tracemalloc.start()
    try:
        with pytest.raises(ModelFormatError, match=wanted):
            read(data)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@READERS
def test_every_truncation_is_refused(read):
    data = write(DOCUMENT)
    for n in range(len(data)):
        with pytest.raises(ModelFormatError):
            read(data[:n])


def outcome(read, data):
    try:
        return repr(read(data))
    except ModelFormatError:
        return "refused"


def test_the_scan_reads_damaged_bytes_as_the_reference_does():
    data, rng = write(DOCUMENT), np.random.default_rng(0)
    seen = []
    for _ in range(2000):
        damaged = bytearray(data)
        for i in rng.integers(0, len(data), rng.integers(1, 4)):
            damaged[i] = rng.choice(np.frombuffer(b"iUIlLdDTFZSC{}[]$#\x00\x01\x02\xff", np.uint8))
        seen.append(outcome(reference_ubj.read_ubj, bytes(damaged)))
        assert outcome(read_ubj, bytes(damaged)) == seen[-1]
    assert 0.01 < np.mean([text != "refused" for text in seen]) < 0.99


def test_more_tiny_values_than_a_model_has_are_refused_without_allocating():
    data = b"[" + b"T" * 300_000 + b"]"
    read_ubj(b"Z")
    tracemalloc.start()
    with pytest.raises(ModelFormatError, match=r"too many tiny values. 300,001 values in 300,002 bytes"):
        read_ubj(data)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    assert read_ubj(b"[" + b"T" * 900 + b"]") == [True] * 900


TREES = [
    {"a": np.array([1, 2], np.int32), "b": np.array([0.5], np.float32), "p": {"size": "1"}},
    {"a": np.array([3], np.int32), "p": {"size": "2"}, "b": np.array([1.5, 2.5], np.float32)},
]


def test_columns_of_scanned_objects():
    """Against the objects themselves; the order of the entries may differ."""
    found = read_ubj(write({"trees": TREES}))["trees"]
    assert isinstance(found, Scanned)
    for name, dtype in [("a", np.int64), ("b", np.float32)]:
        values, counts = found.column(name, dtype)
        np.testing.assert_array_equal(values, np.concatenate([tree[name] for tree in TREES]))
        assert values.dtype == dtype
        assert counts.tolist() == [len(tree[name]) for tree in TREES]
    assert found.inner("p").distinct("size") == {"1", "2"}
    assert found.inner("nothing") is None
    assert found.has("a")
    assert not found.has("nothing")
    assert found[1]["p"] == {"size": "2"}
    assert found.take(np.array([1])).column("a", np.int64)[0].tolist() == [3]
    with pytest.raises(ModelFormatError, match=r"tree 1: a must hold 2 numbers. Got 1"):
        found.column("a", np.int64, np.array([2, 2]))
    with pytest.raises(ModelFormatError, match="tree 0: has no entry 'nothing'"):
        found.column("nothing", np.int64)
    with pytest.raises(ModelFormatError, match="Entry 'a' of the trees must be an object"):
        found.inner("a")


def test_several_columns_at_once():
    rng = np.random.default_rng(0)
    counts = [3, 1, 2]
    trees = [{"a": rng.integers(9, size=n, dtype=np.int32), "b": rng.integers(9, size=n, dtype=np.uint8)} for n in counts]
    found = read_ubj(write({"trees": trees}))["trees"]
    values, sizes = found.columns(("b", "a"), np.int64)
    np.testing.assert_array_equal(values, [np.concatenate([tree[name] for tree in trees]) for name in ("b", "a")])
    assert sizes.tolist() == counts
    with pytest.raises(ModelFormatError, match=r"tree 1: a must hold 2 numbers. Got 1"):
        found.columns(("a", "b"), np.int64, np.array([3, 2, 2]))
    with pytest.raises(ModelFormatError, match="tree 0: has no entry 'c'"):
        found.columns(("a", "c"), np.int64)
    trees[1]["b"] = np.array([300], np.int32)
    mixed = read_ubj(write({"trees": trees}))["trees"]
    assert mixed.columns(("a", "b"), np.int64)[0][1].tolist() == [*trees[0]["b"], 300, *trees[2]["b"]]
    trees[2]["a"] = np.array([1], np.int32)
    with pytest.raises(ModelFormatError, match=r"tree 2: b must hold 1 numbers. Got 2"):
        read_ubj(write({"trees": trees}))["trees"].columns(("a", "b"), np.int64)


def test_entries_that_the_first_object_lacks():
    found = read_ubj(write({"trees": [{"a": 1}, {"b": 2, "a": 1}, {"c": 1}]}))["trees"]
    with pytest.raises(ModelFormatError, match="tree 1: its entries are not those of tree 0"):
        found.has("b")
    with pytest.raises(ModelFormatError, match="tree 2: has no entry 'a', unlike others"):
        found.has("a")
    many = {f"k{i}": i for i in range(65)}
    with pytest.raises(ModelFormatError, match=r"tree 0: must not have more than 64 entries. Got 65"):
        read_ubj(write({"trees": [many]}))["trees"].has("k1")
    with pytest.raises(ModelFormatError, match="out of range"):
        read_ubj(write({"trees": [{"a": 1}, many]}))["trees"].has("a")


@pytest.mark.parametrize("second", [[3], np.array([3], np.int64), np.array([3], np.uint8)])
def test_columns_of_several_types(second):
    found = read_ubj(write({"trees": [{"a": np.array([1, 2], np.int32)}, {"a": second}]}))["trees"]
    values, counts = found.column("a", np.int64)
    assert values.tolist() == [1, 2, 3]
    assert counts.tolist() == [2, 1]


def test_an_entry_that_occurs_twice_is_refused():
    data = write({"trees": [{"a": np.array([1], np.int32)}]}).replace(
        b"}}", write({"a": np.array([2], np.int32)})[1:-1] + b"}}"
    )
    with pytest.raises(ModelFormatError, match="tree 0: key 'a' occurs twice"):
        read_ubj(data)["trees"].column("a", np.int64)
