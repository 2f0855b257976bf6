"""Damaged model files: whatever the damage, the answer is a ModelFormatError or a model that predicts. Never a hang or a flood."""

import json
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exactshap.errors import ModelFormatError, UnsupportedStructureError
from exactshap.trees import loads
from mutants import WORDS, mutant
from reference_ubj import document_of

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
