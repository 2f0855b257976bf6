"""Damaged model files: whatever the damage, the answer is a ModelFormatError or a model that predicts. Never a hang or a flood."""

import json
import re
import struct
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reference_ubj
from exactshap.errors import ModelFormatError, UnsupportedStructureError
from exactshap.trees import loads
from exactshap.trees.formats._ubj import read_ubj
from mutants import WORDS, mutant
from reference_ubj import document_of, write

FOLDER = Path(__file__).parents[1] / "data" / "trees"
FILES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))
N_MUTANTS = 80
MEMORY = 64 * 2**20
SECONDS = 2.0


def survives(data):
    """Load and, if it is a model, predict: within the memory and the time that the file's size deserves."""
    started = time.process_time()
    tracemalloc.start()
    try:
        model = loads(data)
        if model.n_features <= 1000:
            assert np.isfinite(model.predict(np.zeros((2, model.n_features), int))).all()  # 0 is a category too
            verdict = "model"
        else:
            verdict = "wide model"
    except ModelFormatError:
        verdict = "refused"
    except UnsupportedStructureError:
        verdict = "unsupported"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MEMORY, f"{peak} bytes for a file of {len(data)}"
    assert time.process_time() - started < SECONDS
    return verdict


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """Compile or load the kernels outside of the time limits."""
    for name in FILES:
        model = loads((FOLDER / name).read_bytes())
        model.predict(np.zeros((1, model.n_features), int))


@pytest.mark.parametrize("name", FILES)
def test_seeded_mutants(name):
    data = (FOLDER / name).read_bytes()
    assert survives(data) == "model"
    rng = np.random.default_rng(sum(name.encode()))
    verdicts = [survives(mutant(data, rng)) for _ in range(N_MUTANTS)]
    assert verdicts.count("refused") > N_MUTANTS // 10


def leaves_of(document, path=()):
    """Every place of a JSON document, containers included."""
    yield path
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for key, value in items:
        yield from leaves_of(value, (*path, key))


def replaced(document, path, value):
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = replaced(document[path[0]], path[1:], value)
    return copy


PARSED = {name: document_of(FOLDER / name) for name in FILES if not name.endswith("txt")}
PLACES = {name: list(leaves_of(document)) for name, document in PARSED.items()}
ODD = [None, True, [], {}, "", "x", "5E-1", -1, 0, 1, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf")]
ODD += [[[]], [1] * 40, [-1] * 3, ["1"], [None], {"a": 1}]
VALUES = st.one_of(st.sampled_from(ODD), st.integers(-100, 100), st.floats(allow_nan=True))


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(st.sampled_from(sorted(PARSED)), st.integers(0, 10**6), VALUES)
def test_any_entry_replaced_by_anything(name, place, value):
    path = PLACES[name][place % len(PLACES[name])]
    survives(json.dumps(replaced(PARSED[name], path, value)).encode())


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.sampled_from([name for name in FILES if name.endswith("txt")]), st.integers(0, 10**6), st.sampled_from(WORDS))
def test_any_line_of_text_replaced(name, place, word):
    lines = (FOLDER / name).read_bytes().split(b"\n")
    k = place % len(lines)
    key, separator, _ = lines[k].partition(b"=")
    survives(b"\n".join([*lines[:k], key + separator + word, *lines[k + 1 :]]))


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.sampled_from([b"tree\n", b"{", b"{i\x01a", b'{"learner":', b"tree\nversion=v4\n"]), st.binary(max_size=200))
def test_noise(start, noise):
    assert survives(start + noise) == "refused"


# --- UBJSON -----------------------------------------------------------------------------------------------------------


READERS = pytest.mark.parametrize("read", [read_ubj, reference_ubj.read_ubj], ids=["scan", "reference"])


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


def test_an_entry_that_occurs_twice_is_refused():
    data = write({"trees": [{"a": np.array([1], np.int32)}]}).replace(
        b"}}", write({"a": np.array([2], np.int32)})[1:-1] + b"}}"
    )
    with pytest.raises(ModelFormatError, match="tree 0: key 'a' occurs twice"):
        read_ubj(data)["trees"].column("a", np.int64)
