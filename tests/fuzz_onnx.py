"""Damage ONNX files and see that each is refused, or explained as onnxruntime answers it: no crash, no silent misreading.

Run a campaign with: python tests/fuzz_onnx.py --count 20000 --seed 0
"""

import argparse
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime

import mutants
import onnx_models
from exactshap import Explainer
from exactshap.errors import ExactnessError, InputError, ModelFormatError, UnsupportedStructureError
from mutants import mutant, other_bytes
from oracles import interventional_values

SECONDS = 5.0
NUMBERS = [-1, 0, 1, 2, 3, 4, 7, 255, 2**31, -(2**31), 2**62]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e30, -1e30, 3e38, float("inf"), float("nan"), 1e-30]
TEXTS = [b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT", b"BRANCH_EQ", b"LEAF", b"LOGISTIC", b"SOFTMAX", b"NONE"]
TEXTS += [b"AVERAGE", b"SUM", b"MAX", b"RBF", b"LINEAR", b"POLY", b"PROBIT", b"L1", b"", b"x", b"\xff"]
KINDS = ["TreeEnsembleRegressor", "TreeEnsembleClassifier", "TreeEnsemble", "LinearRegressor", "Scaler", "Concat", "Add", "Exp"]


def damaged(data, rng):
    """Damage the bytes, or one entry of the parsed file: files of the first kind are hardly ever read."""
    if not rng.integers(4):
        return (mutant if rng.integers(2) else other_bytes)(data, rng)
    model = onnx.ModelProto.FromString(data)
    for _ in range(1 + rng.integers(2)):
        node = model.graph.node[rng.integers(len(model.graph.node))]
        CHANGES[rng.integers(len(CHANGES))](model, node, rng)
    return model.SerializeToString()


def change_entry(model, node, rng):
    """Change one number or text of an attribute, by a little or by a lot."""
    if not len(node.attribute):
        return
    attribute = node.attribute[rng.integers(len(node.attribute))]
    for name, values in (("ints", NUMBERS), ("floats", FLOATS), ("strings", TEXTS)):
        entries = getattr(attribute, name)
        if len(entries):
            place = rng.integers(len(entries))
            near = rng.integers(2) and name != "strings"
            entries[place] = entries[place] + rng.integers(-2, 3) if near else values[rng.integers(len(values))]
            return
    attribute.i, attribute.f = NUMBERS[rng.integers(len(NUMBERS))], FLOATS[rng.integers(len(FLOATS))]
    attribute.s = TEXTS[rng.integers(len(TEXTS))]


def swap_entries(model, node, rng):
    """Swap two entries of an attribute."""
    if not len(node.attribute):
        return
    attribute = node.attribute[rng.integers(len(node.attribute))]
    for name in ("ints", "floats", "strings"):
        entries = getattr(attribute, name)
        if len(entries):
            i, j = rng.integers(len(entries), size=2)
            entries[i], entries[j] = entries[j], entries[i]


def resize(model, node, rng):
    """Repeat or drop an entry, or a whole attribute."""
    if not len(node.attribute):
        return
    attribute = node.attribute[rng.integers(len(node.attribute))]
    entries = next((part for part in (attribute.ints, attribute.floats, attribute.strings) if len(part)), None)
    if entries is None or not rng.integers(3):
        del node.attribute[rng.integers(len(node.attribute))]
    elif rng.integers(2):
        entries.append(entries[rng.integers(len(entries))])
    else:
        del entries[rng.integers(len(entries))]


def change_tensor(model, node, rng):
    """Change the bytes, the shape or the type of a tensor."""
    tensors = [*model.graph.initializer, *(attribute.t for attribute in node.attribute if attribute.HasField("t"))]
    if not tensors:
        return
    tensor = tensors[rng.integers(len(tensors))]
    how = rng.integers(4)
    if how == 0 and tensor.raw_data:
        raw = bytearray(tensor.raw_data)
        raw[rng.integers(len(raw))] = rng.integers(256)
        tensor.raw_data = bytes(raw)
    elif how == 1 and len(tensor.dims):
        tensor.dims[rng.integers(len(tensor.dims))] = NUMBERS[rng.integers(len(NUMBERS))]
    elif how == 2:
        tensor.data_type = int(rng.integers(17))
    elif len(tensor.int64_data):
        tensor.int64_data[rng.integers(len(tensor.int64_data))] = NUMBERS[rng.integers(len(NUMBERS))]


def rewire(model, node, rng):
    """Connect an input to another tensor, or change the operator."""
    names = [name for other in model.graph.node for name in (*other.output, *other.input)]
    if rng.integers(2) and len(node.input):
        node.input[rng.integers(len(node.input))] = names[rng.integers(len(names))]
    elif rng.integers(2):
        node.op_type = KINDS[rng.integers(len(KINDS))]
    else:
        model.graph.output[0].name = names[rng.integers(len(names))]


def change_input(model, node, rng):
    """Change the type or the width of an input of the graph."""
    kind = model.graph.input[rng.integers(len(model.graph.input))].type.tensor_type
    if rng.integers(2):
        kind.elem_type = int(rng.integers(12))
    elif len(kind.shape.dim) == 2:
        kind.shape.dim[1].dim_value = [0, 1, 3, 5, 2**40][rng.integers(5)]


CHANGES = [change_entry] * 4 + [swap_entries] * 2 + [resize] * 2 + [change_tensor, rewire, change_input]


def labels_of(data):
    """Return the labels of a file's ZipMap in their order, which is lost in the dictionaries that it answers."""
    for node in (node for node in onnx.ModelProto.FromString(data).graph.node if node.op_type == "ZipMap"):
        for attribute in node.attribute:
            return [*attribute.ints, *(text.decode() for text in attribute.strings)]
    return None


def own_answers(session, rows, labels=None):
    """Return a session's answers for rows, as a user would ask for them: every output that is a table of numbers."""
    feeds, table = {}, hasattr(rows, "columns")
    for entry in session.get_inputs():
        dtype = {"tensor(float)": np.float32, "tensor(double)": float, "tensor(int64)": np.int64}.get(entry.type, object)
        feeds[entry.name] = rows[[entry.name]].to_numpy(dtype) if table else np.asarray(rows).astype(dtype)
    answers = []
    for answer in session.run(None, feeds):
        if isinstance(answer, list) and answer and isinstance(answer[0], dict):
            answer = np.array([[row[label] for label in labels or row] for row in answer])
        answers.append(np.asarray(answer, float).reshape(len(rows), -1) if np.asarray(answer).dtype.kind == "f" else None)
    return answers


def transformed(explanation):
    """Return the tables that a file may answer where an explanation has a score."""
    score = explanation.prediction
    with np.errstate(over="ignore"):
        second = 1.0 / (1.0 + np.exp(-score))
        exponentials = np.exp(score - score.max(axis=1, keepdims=True)) if score.ndim == 2 else np.exp(score)[:, None]
        plain = score if score.ndim == 2 else score[:, None]
        yield "as it is", plain
        if score.ndim == 1:
            yield "second of two", np.column_stack([1 - score, score])
            yield "second of two", np.column_stack([-score, score])
            yield "second of two", np.column_stack([score, -score])
            yield "logistic", np.column_stack([1 - second, second])
            yield "second alone", plain
            yield "exponential", exponentials
        else:
            yield "softmax", exponentials / exponentials.sum(axis=1, keepdims=True)
            yield "logistic", second


def verdict_of(data, rows, background):
    """Read, explain and compare a file."""
    try:
        with warnings.catch_warnings(), tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            warnings.simplefilter("ignore")
            file.write(data)
            file.flush()
            explanation = Explainer(file.name, background)(rows)
    except (ModelFormatError, UnsupportedStructureError, InputError):
        return "refused"
    except ExactnessError as error:
        if "overflow" in str(error):
            return "refused: overflow"
        return "refused: parts part" if "parts return" in str(error) or "were not read" in str(error) else f"Inexact: {error}"
    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        answers = own_answers(session, rows, labels_of(data))
    except Exception:
        return "explained: onnxruntime refuses the rest of the file"
    for place, answer in enumerate(answers):
        for how, table in transformed(explanation):
            if answer is not None and answer.shape == table.shape and np.allclose(answer, table, rtol=1e-4, atol=1e-4):
                return compared(how, explanation, session, place, rows, background, labels_of(data))
    return "Misread: no answer of onnxruntime is the prediction"


def compared(how, explanation, session, place, rows, background, labels):
    """Compare values with brute force where the answer is the score itself."""
    if how in ("logistic", "softmax", "exponential"):
        return f"explained: {how}"
    values = explanation.values if explanation.values.ndim == 3 else explanation.values[:, :, None]
    score = explanation.prediction.reshape(len(rows), -1)
    answers = own_answers(session, rows, labels)[place]
    brute = interventional_values(lambda cells: own_answers(session, cells, labels)[place], rows, background)
    for k in range(values.shape[2]):
        column = next((c for c in range(answers.shape[1]) if np.allclose(answers[:, c], score[:, k], 1e-4, 1e-4)), None)
        if column is None:
            return "Misread: no column is the score"
        right = brute[..., column]
        scale = max(np.abs(right).max(), np.abs(score).max(), 1e-3)
        if not np.abs(right - values[:, :, k]).max() <= max(1e-4 * scale, float(np.max(explanation.tolerance))):
            return "Misread: values are not those of brute force"
    return "explained: brute force"


def campaign(count, seed, report=None):
    """Return how often each verdict came up."""
    onnxruntime.set_default_logger_severity(4)

    def judge(one):
        data, rows = one
        part = (rows.iloc[:2], rows.iloc[4:7]) if hasattr(rows, "columns") else (rows[:2], rows[4:7])
        return verdict_of(data, *part)

    whole = [(path.read_bytes(), onnx_models.rows_of(path)) for path in onnx_models.files()]
    return mutants.campaign(whole, lambda one, rng: (damaged(one[0], rng), one[1]), judge, count, seed, SECONDS, report)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    verdicts = campaign(options.count, options.seed, report=lambda text: print(text, flush=True))
    print(dict(verdicts.most_common()))
    raise SystemExit(any(verdict[0].isupper() for verdict in verdicts))


if __name__ == "__main__":
    main()
