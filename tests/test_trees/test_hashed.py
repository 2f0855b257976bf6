"""Hashes of categories against those that CatBoost writes; columns that are looked up; players that hold them."""

import json

import numpy as np
import pytest

from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.trees.ensemble import HashedColumns, TargetStatistic
from exactshap.trees.ensemble._hashed import category_hash, city_hash_64

WRITTEN = {"a": -805065478, "b": 1982436109, "c": -1883343840, "1": 1121341681, "3": 593172586}  # by CatBoost 1.2.10


def texts(seed=0):
    """Texts of 0 to 200 bytes and more, some of them beyond ASCII: every formula of the hash and its borders."""
    rng = np.random.default_rng(seed)
    letters = [chr(c) for c in range(32, 127)] + list("äéßøΩ€漢字")
    found = ["".join(rng.choice(letters, n)) for n in [*range(80), *range(120, 136), 192, 193, 400]]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("text", WRITTEN)
def test_known_hashes(text):
    assert category_hash(text, "here") == WRITTEN[text]
    assert (city_hash_64(text.encode()) - WRITTEN[text]) % 2**32 == 0
    assert city_hash_64(b"") == 0x9AE16A3B2F90404F  # its constant k2


def test_hashes_are_those_that_catboost_writes(tmp_path):
    catboost = pytest.importorskip("catboost")
    words = texts()
    ours = {category_hash(word, "here"): word for word in words}
    assert len(ours) == len(words)
    X = np.array(words * 3, object)[:, None]
    y = np.random.default_rng(1).normal(size=len(X))
    settings = {"one_hot_max_size": 255, "verbose": 0, "allow_writing_files": False, "cat_features": [0], "thread_count": 1}
    model = catboost.CatBoostRegressor(iterations=300, depth=6, learning_rate=0.5, **settings).fit(X, y)
    model.save_model(str(tmp_path / "model.json"), format="json")
    theirs = json.loads((tmp_path / "model.json").read_text())["features_info"]["categorical_features"][0]["values"]
    assert set(theirs) <= set(ours)
    sizes = {len(ours[value].encode()) for value in theirs}
    formulas = [(1, 3), (4, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 2000)]
    assert all(any(low <= size <= high for size in sizes) for low, high in formulas)


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (-12, "-12"), (np.int8(3), "3"), (True, "1"), (np.False_, "0"), (b"a", "a")]
)
def test_whole_numbers_and_truth_values_are_hashed_as_decimals(value, text):
    assert category_hash(value, "here") == category_hash(text, "here")


@pytest.mark.parametrize("value", [None, float("nan"), 1.0, 2.5, (1,)])
def test_other_cells_are_refused(value):
    with pytest.raises(InputError, match="In X, column 3 holds a"):
        category_hash(value, "column 3")


def statistic(categories, above=(), equal=(), keys=(), values=(), unknown=-1.0):
    order = np.argsort(np.array(keys, np.uint64), kind="stable")
    return TargetStatistic(categories, above, equal, np.array(keys, np.uint64)[order], np.array(values, float)[order], unknown)


def key(*parts):
    """m (key + m part) modulo 2^64, part by part, in Python's whole numbers."""
    m, found = 0x4906BA494954CB65, 0
    for part in parts:
        found = m * (found + m * part) % 2**64
    return found


def test_statistics_look_up_categories_and_conditions():
    a, b = category_hash("a", ""), category_hash("b", "")
    assert min(a, b) < 0 < max(a, b)  # signs are extended
    looked = statistic((0,), ((1, 0.5, True),), ((2, b),), [key(a, 0, 1), key(a, 1, 1), key(b, 1, 0)], [1.0, 2.0, 3.0])
    hashed = HashedColumns({0: np.array([], np.int64), 2: np.array([b, a])}, (looked,))
    columns = list("aaabbbc"), [0.0, 1.0, np.nan, 0.7, 0.7, 0.5, 0.7], list("bbbacaa")
    table = as_table(np.array(list(zip(*columns, strict=True)), object))
    X = hashed.encode(table)
    assert X.shape == (7, 4)
    assert X[:, 3].tolist() == [1.0, 2.0, 2.0, 3.0, 3.0, -1.0, -1.0]
    assert X[:, 0].tolist() == [-1.0] * 7
    assert X[:, 2].tolist() == [0.0, 0.0, 0.0, 1.0, -1.0, 1.0, 1.0]
    assert looked.sources == (0, 1, 2)
    assert statistic((0,)).column({0: np.array([a, b])}, X[:2]).tolist() == [-1.0, -1.0]


def test_players_hold_what_is_made_of_them():
    hashed = HashedColumns(
        {j: np.array([], np.int64) for j in range(5)}, tuple(statistic(pair) for pair in [(0,), (1, 2), (2, 3), (4,)])
    )
    assert hashed.extend(((0,), (1, 2, 3), (), (4,)), tuple("abcde")) == ((0, 5), (1, 2, 3, 6, 7), (), (4, 8))
    with pytest.raises(
        UnsupportedStructureError, match=r"The first combines 'b', 'c': .* Pass groups=\{'b\+c\+d': \['b', 'c', 'd'\]\}"
    ):
        hashed.extend(tuple((j,) for j in range(5)), tuple("abcde"))
    with pytest.raises(UnsupportedStructureError, match=r"combines 'c', 'd'.*Pass groups=\{'a\+e': \['a', 'e'\], 'b\+c\+d': "):
        hashed.extend(((0, 4), (1, 2), (3,)), tuple("abcde"))
