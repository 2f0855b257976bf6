"""Run graphs by onnxruntime or onnx's reference evaluator, and split a file into three: steps, model, whole."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from exactshap._graphs._document import Attributes, onnx_package, parse, refused
from exactshap._graphs._walk import CORES, MAX_COLUMNS, Columns, Score, Unread, walk
from exactshap._runtime.cache import copied_state
from exactshap._runtime.files import read_bounded
from exactshap._runtime.optional import first_installed, require
from exactshap._runtime.types import Foreign, Model
from exactshap.errors import InputError, ModelFormatError, UnsupportedStructureError

# Element types of inputs, by onnx's numbers and onnxruntime's names
DTYPES: dict[int | str, Any] = {1: np.float32, 6: np.int32, 7: np.int64, 8: np.object_, 9: np.bool_, 11: np.float64}
DTYPES |= {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(string)": np.object_}
DTYPES |= {"tensor(bool)": np.bool_, "tensor(double)": np.float64}

Input = tuple[str, Any, int]  # name, dtype and number of columns

# Bytes of a file.
MAX_BYTES = 2**30
# Transforms of a model's output, which its score leaves out
_TRANSFORMS = ("post_transform", "prob_a", "prob_b")
# Input of a graph of one operator
_TABLE = "rows"


class Runner:
    """Compute one output of a graph for rows; pickled as the graph's bytes."""

    def __init__(self, content: bytes, output: str) -> None:
        self.content, self.output = content, output

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in copied_state(self).items() if name != "_session"}

    @functools.cached_property
    def _session(self) -> Any:
        try:
            if first_installed(("onnxruntime",)) is None:
                return require("onnx.reference", "onnx", purpose="Running an ONNX file").ReferenceEvaluator(self.content)
            runtime = require("onnxruntime", "onnx", purpose="Running an ONNX file")
            options = runtime.SessionOptions()
            # One thread, as ``n_jobs`` sets the threads; 4 is "fatal", so that errors are raised, not printed
            options.intra_op_num_threads, options.log_severity_level = 1, 4
            return runtime.InferenceSession(self.content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # each runtime has its own errors for graphs that it refuses
            raise ModelFormatError("The ONNX file cannot be run", f"{type(error).__name__}: {error}") from None

    def run(self, feeds: dict[str, np.ndarray]) -> np.ndarray:
        """Return the output as an array."""
        session = self._session
        try:
            # One output by name, so that others are not computed
            (answer,) = session.run([self.output], feeds)
        except Exception as error:  # likewise
            raise InputError("The ONNX file refuses the rows", f"{error}", "Pass rows like those of the training") from None
        return numbers_of(answer)


def dtype_of(kind: str) -> Any:
    """Return the dtype of an onnxruntime type."""
    if kind not in DTYPES:
        raise InputError("An input of the session is not a table of numbers or texts", f"Got {kind}")
    return DTYPES[kind]


def numbers_of(answer: Foreign) -> np.ndarray:
    """Return an output as numbers; a list of dictionaries (ZipMap) becomes a table."""
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        return np.array([list(row.values()) for row in answer], float)
    return np.asarray(answer)


def feeds_of(columns: Sequence[np.ndarray], inputs: Sequence[Input]) -> dict[str, np.ndarray]:
    """Return the columns of a table as a graph's inputs."""
    feeds, start = {}, 0
    for name, dtype, width in inputs:
        part = [_cells(column, dtype, name) for column in columns[start : start + width]]
        feeds[name] = np.stack(part, axis=1)
        start += width
    return feeds


def _cells(column: np.ndarray, dtype: Any, name: str) -> np.ndarray:
    """Return one column in the type of an input, or refuse cells of another type."""
    column = np.asarray(column)
    if dtype is np.object_:
        if all(isinstance(cell, str) for cell in column.tolist()):
            return column.astype(np.object_)
        wrong = next(i for i, cell in enumerate(column.tolist()) if not isinstance(cell, str))
        got = f"Got {column.tolist()[wrong]!r:.50} at row {wrong}"
        raise InputError(f"The input {name!r} takes texts", got, "Pass a column of texts")
    # A column of integers with missing cells comes as floats, and fits if all are whole
    if np.dtype(dtype).kind in "ib" and column.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            wrong_cells = np.flatnonzero(column != column.astype(np.int64))
        if wrong_cells.size:
            got = f"Got {column[wrong_cells[0]]} at row {wrong_cells[0]}"
            raise InputError(f"The input {name!r} takes whole numbers", got, "Round them, or pass the right column")
    try:
        with np.errstate(over="ignore"):
            return column.astype(dtype)
    except (ValueError, TypeError) as error:
        raise InputError(f"The input {name!r} takes numbers", f"{error}", "Pass the columns in the file's order") from None


def column_names(inputs: Sequence[Input]) -> tuple[str, ...] | None:
    """Return the names of the columns if a file has one input for each; names of a table are not stored."""
    names = tuple(name for name, _, _ in inputs)
    return names if len(names) > 1 and all(width == 1 for _, _, width in inputs) else None


@dataclass(frozen=True, eq=False)
class Core:
    """Hold the one model of a graph, without the transform of its scores."""

    name: str
    node: bytes
    runner: Runner  # from a table of ``n_columns`` numbers to scores
    transformed: Runner  # likewise, with the transform
    dtype: Any  # of that table
    n_columns: int
    # steps after the score: ``scale * score + shift``, and perhaps an exponential; or the
    # shares of classes in their sum
    scale: float
    shift: float
    exponential: bool
    normalised: bool
    column: int | None  # the one score that the graph uses

    @property
    def attributes(self) -> Attributes:
        """Return the attributes of the operator."""
        onnx = onnx_package()
        return Attributes(onnx.NodeProto.FromString(self.node))

    @property
    def is_transformed(self) -> bool:
        """Say whether the output of the file is a transform of the score."""
        attributes = self.attributes
        # TreeEnsemble numbers its transforms, older operators name them
        by_number = attributes.kind == "TreeEnsemble"
        post = attributes.integer("post_transform", 0) if by_number else attributes.text("post_transform", "NONE")
        return self.exponential or self.normalised or post not in ("NONE", 0) or "prob_a" in attributes

    def scores(self, rows: Any) -> np.ndarray:
        """Return the scores (n_rows, n_scores) in double precision; there may be more scores than outputs."""
        return self.scale * self._answers(self.runner, rows) + self.shift

    def responses(self, rows: Any) -> np.ndarray:
        """Return the transformed scores."""
        if self.exponential:
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(self.scores(rows)))
        answers = self._answers(self.transformed, rows)
        if self.normalised:
            return np.asarray(answers / np.abs(answers).sum(axis=1, keepdims=True))
        return self.scale * answers + self.shift

    def _answers(self, runner: Runner, rows: Any) -> np.ndarray:
        with np.errstate(over="ignore"):
            answer = runner.run({_TABLE: np.ascontiguousarray(rows, self.dtype)}).astype(float)
        answer = answer.reshape(len(rows), -1)
        return answer if self.column is None else answer[:, [self.column]]


class TreeCore(Core):
    """Hold an ensemble of trees."""


class LinearCore(Core):
    """Hold a linear model."""


class SupportCore(Core):
    """Hold a support vector machine."""


_CLASSES = {"trees": TreeCore, "linear": LinearCore, "support vectors": SupportCore}


@dataclass(frozen=True, eq=False)
class Parts:
    """Hold the parts of a file."""

    inputs: tuple[Input, ...]  # name, dtype, number of columns of each
    owners: np.ndarray  # int array: the input column of each column of the core
    front: Runner | None  # computes those columns; None if the input is the table of the core
    core: Core
    whole: Runner  # the file up to the explained output


class OnnxFile:
    """Hold an ONNX model, parsed as untrusted data."""

    def __init__(self, model: Model, name: str | None = None, max_bytes: int = MAX_BYTES) -> None:
        if isinstance(model, (str, PathLike)):
            name, model = name or str(model).replace("\\", "/").rpartition("/")[2], read_bounded(model, max_bytes)
        self.content = model if isinstance(model, bytes) else model.SerializeToString()
        self.name = name or "ONNX model"
        parse(self.content, self.name)

    def inputs(self, n_columns: int | None = None) -> tuple[Input, ...]:
        """Return each input's name, dtype and number of columns. A width that the file leaves open is ``n_columns``."""
        return tuple(_inputs(parse(self.content, self.name), n_columns))

    def split(self, n_columns: int | None = None, players: Sequence[int] | None = None) -> Parts:
        """Return the parts of the file.

        ``n_columns`` counts the columns of a table if the file leaves its width open; ``players`` is the player of each column,
        and what one player has may be mixed.
        """
        proto = parse(self.content, self.name)
        inputs = tuple(_inputs(proto, n_columns))
        width = sum(columns for _, _, columns in inputs)
        kinds = {entry.name: entry.type.tensor_type.elem_type for entry in proto.graph.input}
        ends = np.cumsum([n for _, _, n in inputs])
        first = {name: Columns(np.arange(end - n, end), kinds[name]) for (name, _, n), end in zip(inputs, ends, strict=True)}
        states = walk(proto, first, range(width) if players is None else players)
        output, score = _explained(proto, states, self.name)
        source = score.node.input[0]
        is_front = source in {name for name, _, _ in inputs}
        front = None if is_front and len(inputs) == 1 else Runner(_part(proto, source), source)
        whole = Runner(_part(proto, output), output)
        return Parts(inputs, score.source.owners, front, _core(proto, score, self.name), whole)

    @property
    def is_run_by(self) -> str:
        """Return what runs the file: onnxruntime if it is installed, else the reference evaluator of onnx."""
        return first_installed(("onnxruntime",)) or "the reference evaluator of onnx"


def _inputs(proto: Foreign, n_columns: int | None) -> Iterable[Input]:
    """Return name, dtype and width of each input. Old files list their tensors among them."""
    tensors = {entry.name for entry in proto.graph.initializer}
    for entry in (entry for entry in proto.graph.input if entry.name not in tensors):
        kind = entry.type.tensor_type
        if kind.elem_type not in DTYPES or len(kind.shape.dim) not in (0, 2):
            raise refused(f"The input {entry.name!r} is not a table of numbers or texts")
        width = kind.shape.dim[1].dim_value if len(kind.shape.dim) == 2 else 0
        width = width or n_columns or 0
        if not 0 < width <= MAX_COLUMNS:
            do = "Pass background=: its columns are counted"
            raise UnsupportedStructureError(f"The file does not say how many columns {entry.name!r} has", do=do)
        yield entry.name, DTYPES[kind.elem_type], int(width)


def _explained(proto: Foreign, states: dict[str, Any], name: str) -> tuple[str, Score]:
    """Return the first output of the graph that comes from its one model."""
    reasons = []
    for entry in proto.graph.output:
        state = states.get(entry.name, Unread(f"no operator makes {entry.name!r}"))
        if isinstance(state, Score):
            return _table_of(proto, entry.name), state
        reasons.append(state.reason if isinstance(state, Unread) else "no model that is read")
    said = "; ".join(dict.fromkeys(reason for reason in reasons if not reason.endswith("returns labels"))) or "only labels"
    raise refused(f"{name!r} can be read only where its columns stay apart up to one model", f"Got: {said}")


def _table_of(proto: Foreign, output: str) -> str:
    """Return the table that ZipMap turns into a list of dictionaries."""
    makers = {node.output[0]: node for node in proto.graph.node if node.op_type == "ZipMap" and len(node.input) == 1}
    while output in makers:
        output = makers[output].input[0]
    return output


def _part(proto: Foreign, output: str) -> bytes:
    """Return the operators behind one tensor as a file. Nothing else of an untrusted graph may run."""
    onnx = onnx_package()
    makers = {name: node for node in proto.graph.node for name in node.output}
    needed, waiting = set(), [output]
    while waiting:
        if (name := waiting.pop()) not in needed:
            needed.add(name)
            waiting += list(makers[name].input) if name in makers else []
    graph = onnx.GraphProto(name="part")
    graph.node.extend(node for node in proto.graph.node if needed & set(node.output))
    graph.initializer.extend(entry for entry in proto.graph.initializer if entry.name in needed)
    graph.input.extend(entry for entry in proto.graph.input if entry.name in needed)
    known = {entry.name: entry for entry in proto.graph.output}
    graph.output.append(known.get(output, onnx.ValueInfoProto(name=output)))
    return _file(proto, graph)


def _file(proto: Foreign, graph: Foreign) -> bytes:
    onnx = onnx_package()
    model = onnx.ModelProto(ir_version=proto.ir_version, graph=graph)
    versions = {entry.domain: entry.version for entry in proto.opset_import}
    for domain, version in versions.items():
        model.opset_import.add(domain=domain, version=version)
    return bytes(model.SerializeToString())


def _core(proto: Foreign, score: Score, name: str) -> Core:
    """Return the model as graphs of one operator, with and without its transform."""
    width, dtype = len(score.source.owners), DTYPES[score.source.dtype or 1]
    runners = [_core_runner(proto, score, width, left_out) for left_out in (_TRANSFORMS, ())]
    return _CLASSES[CORES[score.node.op_type]](
        name=f"{score.node.op_type} of {name}",
        node=score.node.SerializeToString(),
        runner=runners[0],
        transformed=runners[1],
        dtype=dtype,
        n_columns=width,
        scale=score.scale,
        shift=score.shift,
        exponential=score.exponential,
        normalised=score.normalised,
        column=score.column,
    )


def _core_runner(proto: Foreign, score: Score, width: int, left_out: Sequence[str]) -> Runner:
    onnx = onnx_package()
    node = onnx.NodeProto()
    node.CopyFrom(score.node)
    del node.attribute[:]
    node.attribute.extend(entry for entry in score.node.attribute if entry.name not in left_out)
    node.input[0] = _TABLE
    graph = onnx.GraphProto(name="core")
    graph.node.append(node)
    graph.input.append(onnx.helper.make_tensor_value_info(_TABLE, score.source.dtype, [None, width]))
    if len(node.output) <= int(node.op_type.endswith("Classifier")):
        raise ModelFormatError(f"{node.op_type} has no scores")
    # A classifier returns labels first and scores second
    output = node.output[int(node.op_type.endswith("Classifier"))]
    graph.output.append(onnx.ValueInfoProto(name=output))
    return Runner(_file(proto, graph), output)
