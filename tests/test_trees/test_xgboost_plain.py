"""XGBoost's trees read in one pass and its bytes by the C interface, against the ways that take longer."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import reference_ubj
from exactshap.errors import ExactshapError
from exactshap.trees import loads
from exactshap.trees.formats import _xgboost_plain, xgboost
from exactshap.trees.formats._xgboost_plain import plain_trees, saved
from mutants import mutant
from test_trees.test_ubj import write

FOLDER = Path(__file__).parents[1] / "data" / "trees"
FILES = sorted(path.name for path in FOLDER.glob("xgboost*.ubj"))
PLAIN = ["xgboost34_dart.ubj", "xgboost_dart.ubj"]  # others hold categories, or have several outputs
ODD = [
    *(np.array(numbers).astype(kind) for numbers in ([], [0], [-1, 0, 1], [2, 2, 2], [7] * 40) for kind in ("i4", "i8", "u1")),
    np.array([1.5, np.nan, np.inf], np.float32),
    np.array([1.5, -1e300], float),
    *([], [1, 2, 3], "text", 3, None, True, {}, {"size_leaf_vector": "2"}, {"size_leaf_vector": "0"}, {"size_leaf_vector": 1}),
]


def outcome(data):
    """What becomes of the bytes of a file: arrays, or an error in words."""
    try:
        model = loads(data)
    except ExactshapError as error:
        return type(error).__name__, str(error)
    known = dataclasses.asdict(model.trees) | {"output": model.tree_output, "stage": model.tree_stage}
    return {name: (value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else value for name, value in known.items()}


@pytest.fixture
def both_ways(monkeypatch):
    """A function that says how bytes are read in one pass (whether any were), and entry by entry."""

    def ways(data):
        used = []

        def watched(*arguments):
            used.append(plain_trees(*arguments))
            return used[-1]

        monkeypatch.setattr(xgboost, "plain_trees", watched)
        quick = outcome(data)
        monkeypatch.setattr(xgboost, "plain_trees", lambda *_: None)
        return quick, outcome(data), any(found is not None for found in used)

    return ways


@pytest.mark.parametrize("name", FILES)
def test_one_pass_gives_the_same_bits(name, both_ways):
    quick, slow, used = both_ways((FOLDER / name).read_bytes())
    assert isinstance(slow, dict)
    assert quick == slow
    assert used == (name in PLAIN)


@pytest.mark.parametrize("name", PLAIN)
def test_damaged_files_end_alike(name, both_ways):
    data, rng = (FOLDER / name).read_bytes(), np.random.default_rng(0)
    read = 0
    for _ in range(200):
        quick, slow, used = both_ways(mutant(data, rng))
        assert quick == slow
        read += used
    assert read > 0


@pytest.mark.parametrize("name", PLAIN)
def test_odd_entries_end_alike(name, both_ways):
    rng, verdicts = np.random.default_rng(1), []
    for k in range(300):
        document = reference_ubj.read_ubj((FOLDER / name).read_bytes())
        booster = document["learner"]["gradient_booster"]
        trees = booster.get("model", booster.get("gbtree", {}).get("model"))["trees"]
        tree = trees[rng.integers(len(trees))]
        key = list(tree)[k % len(tree)]
        if k % 5 == 0:
            del tree[key]
        elif k % 5 == 1:  # another order of the same entries
            tree[key] = tree.pop(key)
        elif k % 5 == 2 and isinstance(tree[key], np.ndarray) and len(tree[key]):  # another number
            tree[key] = tree[key].copy()
            tree[key][rng.integers(len(tree[key]))] = rng.integers(4)
        else:
            tree[key] = ODD[rng.integers(len(ODD))]
        quick, slow, used = both_ways(write(document))
        assert quick == slow
        verdicts.append((isinstance(slow, dict), used))
    assert {(True, True), (True, False), (False, False)} <= set(verdicts)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("output", [-1, 7])
def test_trees_of_an_output_that_is_not_there_are_refused(name, output, both_ways):
    document = reference_ubj.read_ubj((FOLDER / name).read_bytes())
    booster = document["learner"]["gradient_booster"]
    model = booster.get("model", booster.get("gbtree", {}).get("model"))
    owners = np.array(model["tree_info"], np.int32)
    owners[len(owners) // 2] = output
    model["tree_info"] = owners
    quick, slow, used = both_ways(write(document))
    assert quick == slow
    assert f"output {output} out of range" in str(quick)
    assert not used


@pytest.fixture
def booster(monkeypatch):
    xgb = pytest.importorskip("xgboost")
    monkeypatch.setattr(_xgboost_plain, "_agreeing", set())
    X = np.random.default_rng(0).normal(size=(50, 3))
    return xgb.train({"max_depth": 2}, xgb.DMatrix(X, X[:, 0]), num_boost_round=3)


def test_saved_is_what_xgboost_saves(booster):
    own = bytes(booster.save_raw("ubj"))
    assert [saved(booster) for _ in range(3)] == [own] * 3
    assert len(_xgboost_plain._agreeing) == 1


def test_a_method_of_its_own_is_asked(booster):
    saved(booster)
    booster.save_raw = lambda raw_format: bytearray(b"mine")
    assert saved(booster) == b"mine"


def test_a_class_with_a_method_of_its_own_is_asked_each_time(booster):
    class Fewer(type(booster)):
        def save_raw(self, raw_format="ubj"):
            kept = self if self.attr("all") else self[:1]
            return kept.save_raw(raw_format) if kept is not self else super().save_raw(raw_format)

    fewer = Fewer(model_file=booster.save_raw("ubj"))
    fewer.set_attr(all="yes")
    assert saved(fewer) == bytes(fewer.save_raw("ubj"))
    fewer.set_attr(all=None)
    assert saved(fewer) == bytes(fewer.save_raw("ubj"))
    assert not _xgboost_plain._agreeing


@pytest.mark.parametrize("direct", [None, b"other"])
def test_another_interface_is_not_trusted(booster, direct, monkeypatch):
    own = bytes(booster.save_raw("ubj"))
    monkeypatch.setattr(_xgboost_plain, "_saved", lambda booster: direct)
    assert [saved(booster) for _ in range(2)] == [own] * 2
    assert not _xgboost_plain._agreeing
