"""ONNX files: every kind that converters write is explained as onnxruntime answers it, and damaged ones are refused."""

import pickle

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import fuzz_onnx  # noqa: E402
import onnx_models  # noqa: E402
from exactshap import Explainer, explain  # noqa: E402
from exactshap.errors import ExactshapError, InputError, ModelFormatError, UnsupportedStructureError  # noqa: E402
from exactshap.testing import check_reader  # noqa: E402
from exactshap.trees import load, loads  # noqa: E402
from tolerances import SINGLE_PRECISION_SUM, SINGLE_RESPONSE  # noqa: E402

FILES = onnx_models.files()
BY_NAME = {path.stem: path for path in FILES}
PROBABILITIES = ("boosting_two", "boosting_three", "xgboost_two", "xgboost_three", "lightgbm_two", "pipeline_frame")


def parts_of(rows, *places):
    """Return some rows of a frame or an array."""
    return tuple(rows.iloc[place] if hasattr(rows, "iloc") else rows[place] for place in places)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_values_are_those_of_brute_force_with_onnxruntime(path):
    rows, background = parts_of(onnx_models.rows_of(path), slice(3, 7), slice(20, 28))
    verdict = fuzz_onnx.verdict_of(path.read_bytes(), rows, background)
    transformed = any(word in path.stem for word in ("_two", "_three", "poisson", "frame"))
    assert verdict in (
        ("explained: logistic", "explained: softmax", "explained: exponential") if transformed else ("explained: brute force",)
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_readers_pass_their_checks(path):
    rows, background = parts_of(onnx_models.rows_of(path), slice(0, 3), slice(20, 28))
    check_reader(str(path), rows, background)


@pytest.mark.parametrize("name", [*PROBABILITIES, "xgboost_poisson"])
def test_probabilities_and_rates_are_the_file_s_own(name):
    rows, background = parts_of(onnx_models.rows_of(BY_NAME[name]), slice(0, 3), slice(20, 28))
    answers, session = explain(BY_NAME[name], rows, background, output="response"), onnxruntime.InferenceSession(BY_NAME[name])
    if name == "xgboost_poisson":  # the exponential of the score
        (own,) = session.run(None, {"X": rows})
        np.testing.assert_allclose(answers.prediction, own[:, 0], rtol=SINGLE_RESPONSE)
        scores = explain(BY_NAME[name], rows, background).prediction
        np.testing.assert_allclose(scores, np.log(own[:, 0]), rtol=SINGLE_RESPONSE, atol=SINGLE_RESPONSE)
        return
    own = fuzz_onnx.own_answers(session, rows)[1]
    np.testing.assert_array_equal(answers.prediction, own if answers.prediction.ndim == 2 else own[:, 1])
    assert answers.unit.startswith("probability")


def test_path_bytes_and_parsed_model_are_one_model():
    path = BY_NAME["boosting"]
    rows, background = onnx_models.X[:3], onnx_models.X[20:30]
    by_path = explain(str(path), rows, background)
    for model in (path, onnx.load(path)):
        np.testing.assert_array_equal(explain(model, rows, background).values, by_path.values)
    explainer = pickle.loads(pickle.dumps(Explainer(path, background)))
    np.testing.assert_array_equal(explainer(rows).values, by_path.values)
    assert "onnxruntime" in by_path.method


def test_a_session_is_explained_as_a_function():
    path = BY_NAME["boosting"]
    rows, background = onnx_models.X[:3], onnx_models.X[20:30]
    as_function = explain(onnxruntime.InferenceSession(path), rows, background)
    np.testing.assert_allclose(as_function.values, explain(path, rows, background).values, atol=SINGLE_PRECISION_SUM)


@pytest.mark.parametrize("name", ["refused_normalizer", "refused_equal"])
def test_the_way_out_of_a_refusal_works(name):
    path = onnx_models.FOLDER / f"{name}.onnx"
    rows, background = onnx_models.X[:3], onnx_models.X[20:30]
    with pytest.raises(UnsupportedStructureError, match=r"explain\(onnxruntime.InferenceSession\(path\), X, background\)"):
        explain(path, rows, background)
    assert explain(onnxruntime.InferenceSession(path), rows, background).certificate().passed
    if name == "refused_normalizer":  # columns of one player may be mixed
        check_reader(path, rows, background, groups={"all": [0, 1, 2, 3]})


@pytest.mark.parametrize("post", ["LOGISTIC", "SOFTMAX"])
def test_a_transform_that_onnxruntime_leaves_out_is_refused(post):
    stumps = onnx_models.stumps(["BRANCH_LEQ"] * 4, [0.0] * 4, post_transform=post)
    model = onnx_models.graph("TreeEnsembleRegressor", **stumps)
    with pytest.raises(UnsupportedStructureError, match=f"leaves out the transform of a single output. Got .*{post}"):
        explain(model, onnx_models.X[:3], onnx_models.X[20:30])


def test_sums_of_columns_are_players_only_where_these_are_one():
    """Each column less its neighbour, in front of stumps: X - X[:, [1, 0, 3, 2]]."""
    helper, model = onnx.helper, onnx_models.graph("TreeEnsembleRegressor", **onnx_models.stumps(["BRANCH_LEQ"] * 4, [0.0] * 4))
    model.graph.node[0].input[0] = "differences"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 0, 3, 2]), "neighbours"))
    for place, node in enumerate(
        (
            helper.make_node("Gather", ["X", "neighbours"], ["others"], axis=1),
            helper.make_node("Sub", ["X", "others"], ["differences"]),
        )
    ):
        model.graph.node.insert(place, node)
    rows, background = onnx_models.X[:3], onnx_models.X[20:30]
    with pytest.raises(UnsupportedStructureError, match="Sub mixes columns"):
        explain(model, rows, background)
    check_reader(model, rows, background, groups={"left": [0, 1], "right": [2, 3]})


def test_what_follows_trees_scales_their_base_values_too():
    stumps = onnx_models.stumps(["BRANCH_LEQ"] * 4, [0.0] * 4)
    model = onnx_models.graph("TreeEnsembleRegressor", base_values=[0.75], **stumps)
    model.graph.node[0].output[0] = "scores"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.full(1, 3.0, np.float32), "three"))
    model.graph.node.append(onnx.helper.make_node("Mul", ["scores", "three"], ["y"]))
    check_reader(model, onnx_models.X[:3], onnx_models.X[20:30])


@pytest.mark.parametrize("name", ["forest", "boosting_two", "xgboost_three", "modes", "double", "ensemble", "lightgbm_forest"])
def test_trees_of_a_file_are_loaded_as_data(name):
    rows = onnx_models.rows_of(BY_NAME[name])
    model = load(BY_NAME[name])
    explanation = explain(BY_NAME[name], rows[:9], rows[20:24])
    np.testing.assert_allclose(
        model.pick().predict(rows[:9]), explanation.prediction, rtol=SINGLE_PRECISION_SUM, atol=SINGLE_PRECISION_SUM
    )
    assert explain(model, rows[:9], rows[20:24]).certificate().passed


@pytest.mark.parametrize("name", ["nodes_trueleafs", "nodes_falseleafs", "nodes_missing_value_tracks_true"])
def test_flags_that_are_no_truth_values_are_refused_by_their_name(name):
    model = onnx.load(BY_NAME["ensemble"])
    (flags,) = [entry for entry in model.graph.node[0].attribute if entry.name == name]
    flags.ints[0] = 2
    with pytest.raises(ModelFormatError, match=f"{name} must hold zeros and ones"):
        loads(model.SerializeToString())


def test_load_says_what_it_does_not_take():
    with pytest.raises(UnsupportedStructureError, match="more than an ensemble"):
        load(BY_NAME["pipeline"])
    with pytest.raises(InputError, match="boosting rounds"):
        load(BY_NAME["boosting"], n_stages=2)
    with pytest.raises(UnsupportedStructureError, match="training weights"):
        explain(BY_NAME["boosting"], onnx_models.X[:3])


FRAME = onnx_models.frame()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (FRAME.drop(columns="town"), "town"),
        (FRAME.assign(town=1.0), "takes texts"),
        (FRAME.assign(n=0.5), "whole numbers"),
        (FRAME.assign(n=77), "refuses the rows"),
    ],
)
def test_wrong_rows_are_refused_in_words(rows, words):
    with pytest.raises(ExactshapError, match=words):
        explain(BY_NAME["pipeline_frame"], rows[:3], FRAME[20:25])


def test_what_lies_outside_the_file_is_not_read():
    model = onnx.load(BY_NAME["ridge"])
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    with pytest.raises(ModelFormatError, match="outside the file"):
        explain(model, onnx_models.X[:3], onnx_models.X[20:30])


@pytest.mark.parametrize("content", [b"\x08", b"\x08\x09", b"\x08\xff\xff\xff", b"\x08\x09:\x00"])
def test_what_is_no_onnx_file_is_refused(content):
    with pytest.raises(ModelFormatError):
        loads(content)


def test_a_file_without_inputs_is_refused():
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    constant = onnx.numpy_helper.from_array(np.ones((1, 1), np.float32), "c")
    answer = helper.make_tensor_value_info("y", kind, [1, 1])
    graph = helper.make_graph([helper.make_node("Identity", ["c"], ["y"])], "constant", [], [answer], [constant])
    with pytest.raises(UnsupportedStructureError, match="Identity is not known"):
        explain(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), np.zeros((1, 2)), np.zeros((2, 2)))


def test_columns_are_counted_before_they_are_made():
    """3,000 categories of each of 3,000 columns are a file of some kilobytes."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    encode = helper.make_node("OneHotEncoder", ["X"], ["cube"], domain="ai.onnx.ml", cats_int64s=list(range(3000)))
    flatten = helper.make_node("Flatten", ["cube"], ["y"])
    ends = (helper.make_tensor_value_info(name, kind, [None, n]) for name, n in (("X", 3000), ("y", 1)))
    graph = helper.make_graph([encode, flatten], "wide", *([end] for end in ends))
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    with pytest.raises(ModelFormatError, match=r"OneHotEncoder makes too many columns. Got 9000000"):
        explain(helper.make_model(graph, opset_imports=versions), np.zeros((1, 3000)), np.zeros((2, 3000)))


def test_without_onnxruntime_the_reference_evaluator_answers(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnxruntime" else find(name, *rest))
    for name in ("boosting", "pipeline_frame", "ridge"):
        rows, background = parts_of(onnx_models.rows_of(BY_NAME[name]), slice(0, 3), slice(20, 28))
        explanation = explain(BY_NAME[name], rows, background)
        assert "reference evaluator of onnx" in explanation.method
        assert explanation.certificate().passed


def test_damaged_files_are_refused_or_explained_as_onnxruntime_answers():
    verdicts = fuzz_onnx.campaign(150, seed=1)
    assert not [verdict for verdict in verdicts if verdict[0].isupper()], verdicts
    assert sum(number for verdict, number in verdicts.items() if verdict.startswith("explained")) > 15


@pytest.mark.parametrize(("kind", "number", "is_read"), [("Mul", 1.0, True), ("Mul", 1.25, False), ("Add", 1.0, False)])
def test_arithmetic_on_probabilities_is_refused_where_it_does_something(kind, number, is_read):
    """What is explained is the score, so that a factor of its probability would be taken for one of the score."""
    path = next(path for path in onnx_models.files() if path.stem == "lightgbm_two")
    model, rows = onnx.load(path), onnx_models.rows_of(path)
    last = next(node for node in model.graph.node if node.op_type == "Mul")
    last.op_type = kind
    one = next(value for value in model.graph.initializer if value.name == last.input[1])
    one.CopyFrom(onnx.numpy_helper.from_array(np.full(one.dims, number, np.float32), one.name))
    if is_read:
        assert explain(model, rows[:2], rows[4:7]).unit.startswith("log-odds")
        return
    with pytest.raises(UnsupportedStructureError, match=f"{kind} follows probabilities"):
        explain(model, rows[:2], rows[4:7])
