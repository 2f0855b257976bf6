"""Model files: margins of the libraries reproduced from the files alone, and what is refused."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from exactshap import Explainer, explain
from exactshap.errors import ExplanationWarning, InputError, ModelFormatError, UnknownNameError, UnsupportedStructureError
from exactshap.testing import check_reader
from exactshap.trees import load, loads
from exactshap.trees.ensemble import _build
from exactshap.trees.formats import catboost as from_catboost
from exactshap.trees.formats import xgboost as from_xgboost
from exactshap.trees.formats.xgboost import from_document
from reference_ubj import document_of, typed, write
from tolerances import FLOAT32_MARGIN, assert_close, roundings

FOLDER = Path(__file__).parents[1] / "data" / "trees"
GOLDEN = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))


def expected(name):
    content = json.loads((FOLDER / f"{name}.expected.json").read_text())
    rows = [[np.nan if value is None else value for value in row] for row in content["X"]]
    text = any(isinstance(value, str) for value in rows[0])
    return np.array(rows, object if text else float), np.array(content["margin"])


GROUPS = {"catboost_combined.json": {"together": [0, 1, 2]}}  # columns that target statistics combine


def document(name):
    return document_of(FOLDER / name)


def loaded(document):
    return loads(json.dumps(document).encode(), name="changed")


@pytest.mark.parametrize("file", ["xgboost_multiclass.ubj", "xgboost_poisson.json"])
def test_explanations_of_files_do_not_promise_a_response(file):
    """They have none: a file has no prediction of its own to hold it against."""
    model = load(FOLDER / file)
    explanation = explain(model, np.zeros((2, model.n_features)), np.ones((2, model.n_features)))
    text = " ".join(repr(explanation).split())
    assert "explain the model that its own library loads from the file" in text
    assert "pass output=" not in text.lower()


def test_there_are_golden_files_of_every_format():
    assert len(GOLDEN) == 22
    kinds = {name.split("_")[0].rstrip("34") + Path(name).suffix for name in GOLDEN}
    assert kinds == {"xgboost.json", "xgboost.ubj", "lightgbm.txt", "catboost.json"}


@pytest.mark.parametrize("name", GOLDEN)
def test_margins_are_the_librarys_own(name):
    X, margin = expected(name)
    model = load(FOLDER / name)
    if name.startswith("xgboost"):
        assert np.abs(model.predict(X) - margin).max() <= FLOAT32_MARGIN * max(1.0, np.abs(margin).max())
    else:
        assert_close(model.predict(X), margin, np.abs(margin).max(), model.trees.n_trees)
    assert model.name == name
    assert model.n_features == X.shape[1]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", GOLDEN)
def test_loaded_models_can_be_explained(name):
    X, _ = expected(name)
    model = load(FOLDER / name)
    check_reader(model, X[:6], X[6:14], groups=GROUPS.get(name))
    if model.trees.linear is None:  # which has no path-dependent game
        check_reader(model, X[:6], groups=GROUPS.get(name))
    clone = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(clone.predict(X), model.predict(X))


@pytest.mark.parametrize("name", [name for name in GOLDEN if name.endswith("ubj")])
def test_json_and_ubjson_say_the_same(name):
    (X, _), read = expected(name), load(FOLDER / name)
    for again in (loaded(document(name)), loads(write(typed(document(name))))):
        np.testing.assert_array_equal(again.predict(X), read.predict(X))


def test_units_and_names():
    assert load(FOLDER / "xgboost_multiclass.ubj").output_names == ("class 0", "class 1", "class 2")
    assert load(FOLDER / "xgboost_multiclass.ubj").unit == "score before the softmax"
    assert load(FOLDER / "xgboost_poisson.json").unit == "log of the target"
    assert load(FOLDER / "xgboost_named.ubj").feature_names == ("a", "b", "c", "d")
    assert load(FOLDER / "xgboost_named.ubj").categories == (None, None, None, tuple("tuvwxyz"))
    assert load(FOLDER / "catboost_multiclass.json").output_names == ("0", "1", "2")


def test_first_stages_only():
    model = load(FOLDER / "lightgbm_multiclass.txt", n_stages=1)
    assert model.trees.n_trees == 3
    with pytest.warns(ExplanationWarning, match="Got n_stages=99, the file holds 2"):
        assert load(FOLDER / "lightgbm_multiclass.txt", n_stages=99).trees.n_trees == 6
    with pytest.warns(ExplanationWarning, match="Got n_stages=99, the file holds"):
        load(FOLDER / "catboost_oblivious.json", n_stages=99)
    assert load(FOLDER / "xgboost_dart.ubj", n_stages=2).trees.n_trees == 2
    assert load(FOLDER / "catboost_oblivious.json", n_stages=0).trees.n_trees == 0
    with pytest.raises(InputError, match=r"`n_stages` must not be negative. Got -1"):
        load(FOLDER / "xgboost_dart.ubj", n_stages=-1)


def test_missing_value_of_xgboost_files():
    X, _ = expected("xgboost_dart.ubj")
    model = load(FOLDER / "xgboost_dart.ubj", missing_value=-999.0)
    np.testing.assert_array_equal(model.predict(np.where(np.isnan(X), -999.0, X)), model.predict(X))


def older(document):
    """The form that XGBoost wrote before 2.0: no round pointers, no category container, one base_score, boolean defaults."""
    document["version"] = [1, 7, 6]
    model = document["learner"]["gradient_booster"]["model"]
    model.pop("iteration_indptr"), model.pop("cats")
    parameters = document["learner"]["learner_model_param"]
    parameters["base_score"] = parameters["base_score"].strip("[]")
    for tree in model["trees"]:
        tree["default_left"] = [bool(v) for v in tree["default_left"]]
    return document


@pytest.mark.parametrize("name", ["xgboost_regression.json", "xgboost_poisson.json"])
def test_older_xgboost_form(name):
    X, _ = expected(name)
    model = loaded(older(document(name)))
    np.testing.assert_array_equal(model.predict(X), load(FOLDER / name).predict(X))
    np.testing.assert_array_equal(model.tree_stage, load(FOLDER / name).tree_stage)


@pytest.mark.parametrize(
    ("objective", "base", "margin"),
    [
        ("reg:squarederror", 0.3, 0.3),
        ("binary:logistic", 0.3, -0.8472978603872036),
        ("binary:logistic", 0.5, 0.0),
        ("count:poisson", 2.0, 0.6931471805599453),
        ("binary:hinge", 0.3, 0.3),
        ("binary:logitraw", 0.3, 0.3),
    ],
)
@pytest.mark.parametrize("form", ["{}", "[{}]", "[{}, ]"])
def test_base_score_forms_and_links(objective, base, margin, form):
    content = document("xgboost_poisson.json")
    content["learner"]["objective"] = {"name": objective}
    content["learner"]["learner_model_param"]["base_score"] = form.format(base).replace(", ]", "]")
    model = loaded(content)
    np.testing.assert_allclose(model.trees.constant, [margin], rtol=FLOAT32_MARGIN, atol=FLOAT32_MARGIN)


def test_names_are_checked():
    pd = pytest.importorskip("pandas")
    model = load(FOLDER / "xgboost_named.ubj")
    X, _ = expected("xgboost_named.ubj")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(d=pd.Categorical(np.array(list("tuvwxyz"))[X[:, 3].astype(int)]))
    np.testing.assert_array_equal(model.predict(frame), model.predict(X))
    with pytest.raises(UnknownNameError, match="same order as they were in fit"):
        model.predict(frame[list("bacd")])
    with pytest.raises(InputError, match=r"X has 3 features, but xgboost_named.ubj is expecting 4"):
        model.predict(X[:, :3])
    with pytest.raises(InputError, match=r"column 'd' holds categories that the model has not seen. Got 'new'"):
        model.predict(frame.assign(d="new"))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (pickle.dumps({"a": 1}), "is a pickle. Pickles run code"),
        (b"\x1f\x8b\x08\0", "is compressed"),
        (b"PK\x03\x04", "is a zip archive"),
        (b"binf\0\0", "XGBoost's old binary format"),
        (b"CBM1\0\0", "CatBoost's binary format"),
        (b"\x04\0\0\0\x08\0\0\0", r"checkpoint of treelite.*treelite.Model.deserialize\(path\)"),
        (b'<?xml version="1.0"?>\n<PMML version="4.3">', r"PMML file.*auto_detect_estimator\(path\)"),
        (b"", "is not an XGBoost, LightGBM, CatBoost or ONNX model"),
        (b"hello", "is not an XGBoost, LightGBM, CatBoost or ONNX model"),
        (b"{}", "is not an XGBoost, LightGBM, CatBoost or ONNX model"),
        (b"[1, 2]", "is not an XGBoost"),
        (b'{"learner": {}, "version": [3, 2]}', "The model has no entry 'learner_model_param'"),
        (b'{"learner": 3, "version": [3, 2]}', "Entry 'learner' must be a dict. Got int"),
        (b'{"learner": {}, "learner": {}}', "Key 'learner' occurs twice"),
        (b'{"learner": ' + b"[" * 100_000, "Malformed 'm'. RecursionError"),
        (b'{"learner": {', "Malformed 'm'. JSONDecodeError"),
        (b'{"a": "\xff"}', "Malformed 'm'. UnicodeDecodeError"),
        (b"tree\nversion=v4", "Not a complete LightGBM text model"),
        (
            b"tree\nversion=v9\n\nend of trees\n",
            "LightGBM format 'v9' is not known. This version of exactshap knows v2, v3, v4",
        ),
        (b"tree\n\xff", "is not UTF-8 text"),
    ],
)
def test_other_files_are_refused(data, text):
    with pytest.raises(ModelFormatError, match=text):
        loads(data, name="m")


def test_size_is_checked_before_reading(tmp_path):
    path = tmp_path / "big.json"
    path.write_bytes(b"{" + b" " * 100)
    with pytest.raises(ModelFormatError, match=r"'big.json' is too large. It has 101 bytes; the limit is 50. Raise max_bytes="):
        load(path, max_bytes=50)


def edit(path, value):
    def change(content):
        *way, last = path
        here = content
        for step in way:
            here = here[step]
        here[last] = value

    return change


TREES = ("learner", "gradient_booster", "model", "trees", 1)
XGBOOST_FAULTS = [
    (edit((*TREES, "right_children", 0), 91), r"tree 1 node 0: .*child 91 out of range \[0, \d+\)"),
    (edit((*TREES, "left_children", 0), 0), r"tree 1 node \d+: reached twice"),
    (edit((*TREES, "split_indices", 0), 77), r"tree 1 node 0: feature is not valid for 4 columns. Got 77"),
    (edit((*TREES, "split_conditions", 0), "x"), r"tree 1: split_conditions must be a flat list"),
    (edit((*TREES, "split_conditions", -1), float("nan")), r"tree 1 node \d+: leaf value is not valid"),
    (edit((*TREES, "split_conditions"), [1.0]), r"tree 1: split_conditions must hold \d+ numbers. Got 1"),
    (edit((*TREES, "left_children", 0), 2**70), r"tree 1: left_children must be a flat list|beyond int64"),
    (edit((*TREES, "sum_hessian", -1), -4.0), r"tree 1 node \d+: cover is not valid"),
    (edit(TREES, 7), r"tree 1: must be an object. Got int"),
    (edit((*TREES, "split_type"), [1] * 99), r"tree 1: split_type must hold"),
    (edit(("learner", "learner_model_param", "num_feature"), "99999999999"), r"num_feature must be within"),
    (edit(("learner", "learner_model_param", "num_class"), "99999999"), r"num_class must be within"),
    (edit(("learner", "learner_model_param", "base_score"), f"[-{10**20}]"), r"base_score holds whole numbers beyond 2\^53"),
    (edit(("learner", "learner_model_param", "base_score"), "0.5,0.5]"), r"Malformed XGBoost model. ValueError"),
    (edit(("learner", "learner_model_param", "base_score"), "1_0"), r"base_score must hold numbers. Got \'1_0\'"),
    (edit(("learner", "learner_model_param", "base_score"), "[1,2]"), r"base_score holds 2 numbers. The model has 1 outputs"),
    (edit(("learner", "gradient_booster", "name"), "gbforest"), r"Unknown XGBoost booster. Got 'gbforest'"),
    (edit(("learner", "gradient_booster", "model", "trees", 1, "id"), 2), r"tree 1: must have the id 1. Got '2'"),
    (edit(("learner", "gradient_booster", "model", "trees", 1, "id"), "1"), r"tree 1: must have the id 1. Got '1'"),
    (edit(("learner", "gradient_booster", "model", "tree_info"), [0]), r"tree_info must hold 3 numbers"),
    (edit(("learner", "gradient_booster", "model", "iteration_indptr"), [0, 2, 1, 3]), r"iteration_indptr must ascend"),
    (edit(("learner", "objective"), None), r"Entry 'objective.name'|has no entry"),
    (edit(("learner", "gradient_booster", "model", "tree_info", 1), 76), r"tree 1: output 76 out of range \[0, 1\)"),
    (edit((*TREES, "split_type", 0), 7), r"split_type must hold zeros and ones. Got 7"),
    (edit((*TREES, "default_left", 0), 8), r"default_left must hold zeros and ones. Got 8"),
    (edit((*TREES, "split_type"), None), r"tree 1: has no entry 'split_type'"),
    (edit((*TREES, "tree_param"), 7), r"must be an object"),
]


def test_vector_leaves_without_covers_need_a_background():
    """As XGBoost 2 wrote them."""
    content, (X, margin) = document("xgboost_vector_leaf.ubj"), expected("xgboost_vector_leaf.ubj")
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        del tree["sum_hessian"]
    model = loaded(content)
    assert np.abs(model.predict(X) - margin).max() <= FLOAT32_MARGIN * max(1.0, np.abs(margin).max())
    check_reader(model, X[:6], X[6:14])
    with pytest.raises(UnsupportedStructureError, match="keeps no training weights in its nodes"):
        Explainer(model)


def test_values_of_all_outputs_are_bounded_before_they_are_allocated(monkeypatch):
    content = document("xgboost_regression.json")
    content["learner"]["objective"]["name"] = "multi:softprob"
    content["learner"]["learner_model_param"]["num_class"] = "60000"
    content["learner"]["learner_model_param"]["base_score"] = "0.5"
    monkeypatch.setattr(_build, "MAX_CELLS", 2**10)
    monkeypatch.setattr(from_xgboost, "_vector_leaves", lambda *_: pytest.fail("values are made before they are counted"))
    with pytest.raises(ModelFormatError, match=r"table of leaf values does not fit. \d+ nodes x 60000 outputs would need"):
        loaded(content)


def test_category_sets_are_bounded(monkeypatch):
    content = document("xgboost_regression.json")
    k = next(k for k, t in enumerate(content["learner"]["gradient_booster"]["model"]["trees"]) if t["categories_nodes"])
    block = content["learner"]["gradient_booster"]["model"]["trees"][k]
    block["categories"][0] = 2**40
    with pytest.raises(ModelFormatError, match=rf"tree {k} node \d+: category out of range"):
        loaded(content)
    block["categories"][0] = 2**24 - 1
    monkeypatch.setattr(from_xgboost, "MAX_WORDS", 2**18)
    with pytest.raises(ModelFormatError, match=r"category sets are too large. The limit is 262144 words"):
        loaded(content)
    sizes, segments = block["categories_sizes"], block["categories_segments"]
    block["categories"][0], block["categories_sizes"] = 0, [len(block["categories"])] * len(sizes)
    block["categories_segments"] = [0] * len(sizes)
    with pytest.raises(ModelFormatError, match=r"category segments overlap" if len(sizes) > 1 else "x"):
        loaded(content)
    block["categories_segments"], block["categories_sizes"] = segments, [999, *sizes[1:]]
    with pytest.raises(ModelFormatError, match=rf"tree {k} node \d+: its category segment \d+\+999 is out of range"):
        loaded(content)
    block["categories_nodes"], block["categories_sizes"] = [], []
    block["categories_segments"] = []
    with pytest.raises(ModelFormatError, match=rf"tree {k} node \d+: a categorical split without categories"):
        loaded(content)


def test_category_sets_of_all_trees_together_are_bounded(monkeypatch):
    content = document("catboost_categories.json")
    monkeypatch.setattr(from_catboost, "MAX_WORDS", int(loaded(content).trees.category_count.sum()))
    loaded(content)
    with_categories = next(tree for tree in content["oblivious_trees"] if "OneHotFeature" in str(tree["splits"]))
    content["oblivious_trees"].append(with_categories)
    with pytest.raises(ModelFormatError, match=r"tree 4 node \d+: the category sets are too large. The limit is \d+ words"):
        loaded(content)


def test_categories_and_kinds_of_splits_must_name_the_same_nodes():
    """Without kinds XGBoost compares the codes with the condition, and leaves the categories unread."""
    content = document("xgboost_regression.json")
    trees = content["learner"]["gradient_booster"]["model"]["trees"]
    assert any(tree["categories_nodes"] for tree in trees)
    for tree in trees:
        tree["split_type"] = [0] * len(tree["split_type"])
    with pytest.raises(ModelFormatError, match=r"tree \d node \d+: categories of a split that is none of categories"):
        loaded(content)
    for tree in trees:
        del tree["split_type"]
    with pytest.raises(ModelFormatError, match=r"tree \d node \d+: categories of a split that is none of categories"):
        loaded(content)


def test_a_column_holds_codes_or_numbers():
    """XGBoost takes numbers between -1 and 0 for no category, but the code of a column is cut to a whole number before it is looked up."""
    content = document("xgboost_regression.json")
    tree = next(t for t in content["learner"]["gradient_booster"]["model"]["trees"] if t["categories_nodes"])
    node = tree["categories_nodes"][0]
    assert content["learner"]["feature_types"][tree["split_indices"][node]] == "c"
    types = content["learner"]["feature_types"]
    for known in (types, [], ["c"] * len(types), ["float"] * len(types)):
        content["learner"]["feature_types"] = known
        tree["split_indices"][node] = 0 if known in (types, []) else types.index("c")
        with pytest.raises(ModelFormatError, match=r"Column \d is split by number and by category, or against its type"):
            loaded(content)


LIGHTGBM_FAULTS = [
    ("left_child=", "left_child=99 ", r"tree 0: left_child must hold"),
    ("leaf_value=", "leaf_value=x ", r"tree 0: leaf_value must hold numbers"),
    ("Tree=1", "Tree=7", r"tree 1: numbered 7"),
    ("num_leaves=6", "num_leaves=66", r"tree 0: .* must hold 6[56] numbers"),
    ("max_feature_idx=3", "max_feature_idx=9", r"feature_names must hold 10 names"),
    ("tree_sizes=", "tree_sizes=1 ", r"tree_sizes are not those of the trees. Got '1 "),
    ("num_class=1", "num_class=91", r"num_class is 91, num_tree_per_iteration 1"),
    ("shrinkage=", "shrinkage=0", r"tree_sizes are not those of the trees"),
    ("decision_type=", "0.5 0.5\ndecision_type=", r"tree 0: unknown entry '0.5 0.5'"),
    ("num_tree_per_iteration=1", "num_tree_per_iteration=2", r"num_class is 1, num_tree_per_iteration 2"),
    (
        "num_class=1\nnum_tree_per_iteration=1",
        "num_class=2\nnum_tree_per_iteration=2",
        r"holds 3 trees. The model has 2 outputs",
    ),
    ("leaf_value=-0.", "leaf_value=-0_0.", r"tree \d: leaf_value must hold numbers. Got '-0_0"),
    ("num_class=1", "num_class=0_1", r"num_class must be a whole number. Got '0_1'"),
    ("feature_infos=", "feature_infos=\0", r"Got the control character '\\x00'"),
    ("feature_infos=", "feature_infos=\r", r"Got the control character '\\r'"),
    ("decision_type=", "decision_type=1", r"tree 0: decision_type 1\d+ is not known"),
    ("left_child=2", "left_child=5", r"tree 0 node 0: child 5 out of range \[-6, 5\)"),
    ("\n\n\nTree=1", "\nTree=1", r"tree 0: has no empty line at its end"),
    ("split_gain=", "split_feature=1\nsplit_gain=", r"tree 0: key 'split_feature' occurs twice"),
    ("\nend of trees", "\n", r"Not a complete LightGBM text model"),
    ("cat_boundaries=0 ", "cat_boundaries=0 9", r"tree \d: cat_threshold must hold 9\d numbers"),
    ("num_cat=1", "num_cat=", r"tree \d: num_cat must be a whole number"),
    ("num_cat=1", "num_cat=0", r"tree \d: cat_boundaries must hold 1 numbers"),
]


@pytest.mark.parametrize(("old", "new", "text"), LIGHTGBM_FAULTS)
def test_malformed_lightgbm(old, new, text):
    content = (FOLDER / "lightgbm_regression.txt").read_text()
    assert old in content
    with pytest.raises(ModelFormatError, match=text):
        loads(content.replace(old, new, 1).encode())


def test_lightgbm_outputs_are_the_classes_where_the_file_does_not_say():
    X, _ = expected("lightgbm_multiclass.txt")
    data = (FOLDER / "lightgbm_multiclass.txt").read_bytes()
    np.testing.assert_array_equal(loads(data.replace(b"num_tree_per_iteration=3\n", b"")).predict(X), loads(data).predict(X))
    with pytest.raises(ModelFormatError, match="num_class must be a whole number"):
        loads(data.replace(b"num_tree_per_iteration=3\n", b"").replace(b"num_class=3\n", b""))


def test_lightgbm_line_ends_do_not_matter():
    X, _ = expected("lightgbm_regression.txt")
    data = (FOLDER / "lightgbm_regression.txt").read_bytes()
    np.testing.assert_array_equal(loads(data.replace(b"\n", b"\r\n")).predict(X), loads(data).predict(X))


SPLIT = ("oblivious_trees", 1, "splits", 0)
FLOATS, CATEGORIES = ("features_info", "float_features"), ("features_info", "categorical_features")
CATBOOST_FAULTS = [
    (edit(("oblivious_trees", 1, "leaf_values"), [1.0]), r"tree 1: 3 splits need 1 x 2\^3 leaf values. Got 1"),
    (edit(("oblivious_trees", 1, "leaf_values", 0), float("inf")), r"tree 1: a leaf value is not finite"),
    (edit(("oblivious_trees", 1, "leaf_values", 0), True), r"tree 1: leaf_values must hold numbers. Got a truth value"),
    (edit(("oblivious_trees", 1, "leaf_values", 0), -(2**53) - 1), r"tree 1: leaf_values holds whole numbers beyond 2\^53"),
    (edit(("scale_and_bias", 0), 2**53 + 2), r"scale holds whole numbers beyond 2\^53"),
    (edit(("scale_and_bias", 0), "1"), r"scale must be a flat list of numbers"),
    (edit((*SPLIT, "split_index"), 7.5), r"tree 1: split_index must be a whole number. Got '7.5'"),
    (edit((*SPLIT, "float_feature_index"), True), r"float_feature_index must be a whole number"),
    (edit((*SPLIT, "float_feature_index"), 9), r"tree 1: float_feature_index must be within \[0, 3\]"),
    (edit((*SPLIT, "border"), "x"), r"Entry 'border' must be a int or float. Got str"),
    (edit((*SPLIT, "border"), 0.125), r"tree 1: split_index \d+ is not that of FloatFeature \d with 0.125"),
    (edit((*SPLIT, "split_index"), 77), r"tree 1: split_index 77 is not that of FloatFeature"),
    (edit((*FLOATS, 0, "borders", 0), 9e9), r"The borders of a feature must increase. Got \[8999999488.0"),
    (edit((*FLOATS, 1, "feature_index"), None), r"must be in the order of feature_index. Got \[0, None"),
    (edit((*FLOATS, 1, "feature_index"), True), r"in the order of feature_index. Got \[0, True"),
    (edit(("oblivious_trees", 0, "splits"), [{}] * 100), r"has no entry 'split_type'"),
    (edit(("oblivious_trees", 1, "leaf_weights"), [1, 2]), r"tree 1: leaf_weights must hold 8 numbers"),
    (edit((*SPLIT, "split_index"), "8"), r"tree 1: split_index must be a whole number. Got the text '8'"),
    (edit((*FLOATS, 1, "flat_feature_index"), "1"), r"flat_feature_index must be .* the text '1'"),
    (edit(("scale_and_bias", 1), 1.5), r"bias must be a list of numbers. Got float"),
    (edit(("scale_and_bias",), [1]), r"scale_and_bias must be"),
    (edit(("scale_and_bias",), [1, [1, 2, 3]]), r"bias holds 3 numbers. The model has 1 outputs"),
    (edit((*FLOATS, 0, "flat_feature_index"), 9), r"must number the columns from 0 without gaps"),
    (edit((*FLOATS, 0, "nan_value_treatment"), "Perhaps"), r"Unknown nan_value_treatment"),
]


def ctr(*path):
    """The path of the first target statistic, or of an entry of it."""
    return ("features_info", "ctrs", 0, *path)


def table_edit(change):
    def apply(content):
        change(next(iter(content["ctr_data"].values())))

    return apply


def cell_edit(place, value):
    return table_edit(lambda table: table["hash_map"].__setitem__(place, value))


CATEGORY_FAULTS = [
    (edit((*CATEGORIES, 0, "flat_feature_index"), 0), "must number the columns from 0 without gaps"),
    (edit((*CATEGORIES, 1, "values"), ["x"]), "one-hot values must be a flat list of whole numbers"),
    (edit((*CATEGORIES, 1, "values"), [1]), "compares with a category that its column does not list"),
    (edit((*CATEGORIES, 1, "values"), [1] * 9), "A one-hot value of a column occurs twice"),
    (edit((*CATEGORIES, 1, "feature_index"), 0), "must be in the order of feature_index. Got"),
    (
        edit(("oblivious_trees", 1, "splits", 1, "split_index"), 4),
        "tree 1: split_index 4 is not that of OneHotFeature 1 with -725272813",
    ),
    (edit(("features_info", "categorical_features"), {"a": 1}), "categorical_features must be a list of objects"),
    (edit(ctr("elements", 0, "cat_feature_index"), 3), r"cat_feature_index must be within \[0, 2\]"),
    (edit(ctr("elements", 0, "combination_element"), "magic"), "Unknown part of a target statistic. Got 'magic'"),
    (edit(ctr("identifier"), "other"), "ctr_data holds no table of the target statistic 'other'"),
    (
        lambda content: content.update(json.loads(json.dumps(content).replace("Borders", "Median"))),
        "Unknown kind of target statistic. Got 'Median'",
    ),
    (edit(ctr("target_border_idx"), 1), "target_border_idx 1 is out of range. There are 2 classes"),
    (edit(ctr("borders"), [0.25, 0.5]), r"split_index \d+ is none of a target statistic with border"),
    (edit(ctr("prior_denomerator"), -1e308), "A target statistic is not finite"),
    (edit(ctr("elements", 0, "cat_feature_index"), 1), "is not the one that its identifier names"),
    (edit(ctr("ctr_type"), "Buckets"), "is not the one that its identifier names"),
    (edit(("oblivious_trees", 0, "leaf_weights", 0), float("inf")), "tree 0: a leaf weight is not finite"),
    (edit(ctr("scale"), float("nan")), "A target statistic is not finite"),
    (edit(("ctr_data",), {}), "ctr_data holds no table of the target statistic"),
    (table_edit(lambda table: table.update(hash_stride=1)), r"hash_stride must be within \[2, 65536\]"),
    (table_edit(lambda table: table["hash_map"].pop()), "hash_map must hold rows of 3 entries"),
    (cell_edit(0, "-1"), r"hash must be within \[0, 18446744073709551615\]"),
    (table_edit(lambda table: table["hash_map"].extend(table["hash_map"][-3:])), "hash_map holds a hash twice"),
    (cell_edit(1, 2**63), r"hash_map holds whole numbers beyond 2\^53"),
    (cell_edit(1, 12.9), r"must count in whole numbers below 2\^31"),
    (cell_edit(1, 2**31 - 1), r"must count in whole numbers below 2\^31"),
    (cell_edit(1, -1), r"must count in whole numbers below 2\^31"),
    (cell_edit(1, "x"), "hash_map must be a flat list of numbers"),
]


def link_of_version(content):
    """The base score under this link differs between versions."""
    content["learner"]["objective"], content["version"] = {"name": "binary:logitraw"}, [2, 1, 0]


ESTIMATED = {"split_type": "EstimatedFeature", "value": 7}
CLASSES = ("model_info", "class_params")
FAULTS = {
    "xgboost_regression.json": XGBOOST_FAULTS,
    "xgboost_poisson.json": [
        (edit(("version",), [4, 0, 0]), "XGBoost format 4.0 is newer than 3.4, which this version of exactshap knows"),
        (link_of_version, "base_score under binary:logitraw differs between XGBoost's versions"),
    ],
    "xgboost_multiclass.ubj": [
        (edit(("learner", "gradient_booster", "model", "tree_info", 4), 3), r"tree 4: output 3 out of range \[0, 3\)")
    ],
    "catboost_oblivious.json": [
        *CATBOOST_FAULTS,
        (edit(("features_info", "text_features"), [{"flat_feature_index": 4}]), "text features .* are functions of words"),
        (edit(SPLIT, ESTIMATED), "tree 1: CatBoost splits of kind 'EstimatedFeature'"),
    ],
    "catboost_categories.json": CATEGORY_FAULTS,
    "catboost_multiclass.json": [  # the library predicts -inf for classes without outputs
        (edit((*CLASSES, "classes_count"), 30), "classes_count= are not supported. Got 30 for 3 outputs"),
        (edit((*CLASSES, "class_to_label"), [0, 2, 1]), r"class_to_label must number the 3 classes. Got \[0, 2, 1\]"),
    ],
}


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [(name, *fault) for name, faults in FAULTS.items() for fault in faults],
    ids=[text[:45] for faults in FAULTS.values() for _, text in faults],
)
def test_malformed_json(name, change, text):
    content = document(name)
    change(content)
    with pytest.raises((ModelFormatError, UnsupportedStructureError), match=text):
        loaded(content)


def test_a_newer_version_of_a_live_model_is_read():
    """Its own predictions tell whether it was read well."""
    content = document("xgboost_poisson.json")
    content["version"] = [4, 0, 0]
    assert from_document(content, live=True).trees.n_trees == 2


# binary files have no number beyond int64
BINARY_FAULTS = [(change, text) for change, text in XGBOOST_FAULTS if "int64" not in text]


@pytest.mark.parametrize(("change", "text"), BINARY_FAULTS, ids=[text[:45] for _, text in BINARY_FAULTS])
def test_malformed_ubjson(change, text):
    content = document("xgboost_regression.json")
    change(content)
    with pytest.raises(ModelFormatError, match=text):
        loads(write(typed(content)))


def test_exponents_that_libraries_cannot_read():
    data = (FOLDER / "catboost_oblivious.json").read_bytes()
    with pytest.raises(ModelFormatError, match="An exponent has more than three digits"):
        loads(data.replace(b'"leaf_values": [', b'"leaf_values": [0e1234, ', 1))


def test_files_without_covers_need_a_background():
    content = document("catboost_oblivious.json")
    for block in content["oblivious_trees"]:
        block["leaf_weights"] = []
    model = loaded(content)
    X, _ = expected("catboost_oblivious.json")
    with pytest.raises(UnsupportedStructureError, match=r"keeps no training weights in its nodes \(first in tree 0\)"):
        Explainer(model)
    check_reader(model, X[:4], X[4:9])


def test_oblivious_trees_have_no_empty_boxes():
    content = document("catboost_oblivious.json")
    block = content["oblivious_trees"][0]
    X, _ = expected("catboost_oblivious.json")
    content["oblivious_trees"] = [block]
    features = content["features_info"]["float_features"]
    features[1]["borders"], first = [-0.5, 0.0, 0.5], len(features[0]["borders"])
    block["splits"] = [
        {"split_type": "FloatFeature", "float_feature_index": 1, "border": border, "split_index": first + k}
        for border, k in ((0.5, 2), (-0.5, 0), (0.0, 1))
    ]
    model = loaded(content)
    assert (model.trees.feature[: model.trees.tree_start[1]] < 0).sum() == 4
    index = (X[:, 1] > 0.5) + 2 * (X[:, 1] > -0.5) + 4 * (X[:, 1] > 0.0)
    bias = content["scale_and_bias"][1][0]
    np.testing.assert_allclose(loaded(content).predict(X) - bias, np.array(block["leaf_values"])[index], atol=roundings(5))
