"""Read an ONNX document with bounds: attributes have the wanted type, tensors lie in the file itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import Foreign
from exactshap.errors import ModelFormatError, UnsupportedStructureError

DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
# Version of the ML operators: TreeEnsemble came with 5.
MAX_ML_VERSION = 5
MAX_GRAPH_NODES = 10_000
WAY_OUT = "Explain it as a function: explain(onnxruntime.InferenceSession(path), X, background)"


def onnx_package() -> Foreign:
    """Return the package onnx, or name the extra that installs it."""
    return require("onnx", "onnx", purpose="Reading an ONNX file")


def refused(what: str, got: str = "") -> UnsupportedStructureError:
    """Return the error for a valid file without an exact reading."""
    return UnsupportedStructureError(what, got, WAY_OUT)


def parse(content: bytes, name: str) -> Any:
    """Return the ``ModelProto`` of a file's bytes; refuse what could read other files or hide code."""
    onnx = onnx_package()
    from google.protobuf.message import DecodeError

    try:
        model = onnx.ModelProto.FromString(content)
    except DecodeError as error:
        raise ModelFormatError(f"{name!r} is not an ONNX file", str(error)) from None
    if not model.graph.node or not model.graph.output:
        raise ModelFormatError(f"{name!r} is not an ONNX file", "Its graph is empty")
    if len(model.graph.node) > MAX_GRAPH_NODES:
        raise ModelFormatError(f"{name!r} has too many operators", f"The limit is {MAX_GRAPH_NODES}")
    if len(model.functions) or len(model.graph.sparse_initializer):
        raise refused(f"{name!r} holds functions or sparse tensors of its own")
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        if versions.setdefault(entry.domain, entry.version) != entry.version:
            raise ModelFormatError(f"{name!r} imports the operators {entry.domain!r} in two versions")
    if set(versions) - set(DOMAINS):
        raise refused(
            f"{name!r} needs operators that are not of the ONNX standard", f"Got {sorted(set(versions) - set(DOMAINS))!r:.100}"
        )
    if versions.get("ai.onnx.ml", 1) > MAX_ML_VERSION:
        raise refused(
            f"{name!r} is newer than what this version of exactshap reads", f"Got ai.onnx.ml {versions['ai.onnx.ml']}"
        )
    _refuse_names(model.graph, name)
    _refuse_bytes(model.graph, name)
    return model


def _refuse_bytes(graph: Foreign, name: str) -> None:
    """Refuse text that is not UTF-8, at which runtimes fail without a clear message."""
    try:
        for node in graph.node:
            words = (node.name, node.op_type, node.domain, node.doc_string, *node.input, *node.output)
            if not all(isinstance(word, str) for word in words):  # bytes, where protobuf could not decode them
                raise ModelFormatError(f"{name!r} holds texts that are not UTF-8", f"Got {words!r:.100}")
            for entry in node.attribute:
                (entry.name, entry.s.decode("utf-8"), *(text.decode("utf-8") for text in entry.strings))
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{name!r} holds texts that are not UTF-8", str(error)) from None


def _refuse_names(graph: Foreign, name: str) -> None:
    """Refuse a graph in which one name means two things."""
    produced = [output for node in graph.node for output in node.output if output]
    given = [entry.name for entry in graph.input] + [entry.name for entry in graph.initializer]
    if len(set(produced)) < len(produced) or set(produced) & set(given):
        raise ModelFormatError(f"{name!r}: two operators have one output")
    for kind in (graph.input, graph.initializer, graph.output):
        if len({entry.name for entry in kind}) < len(kind):
            raise ModelFormatError(f"{name!r}: a name of an input, output or tensor occurs twice")


def array_of(tensor: Foreign, what: str) -> np.ndarray:
    """Return a tensor's array, which must be in the file: an external path could be any file of the machine."""
    onnx = onnx_package()
    if tensor.data_location or len(tensor.external_data):
        raise ModelFormatError(f"{what} lies outside the file")
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception as error:  # of any class, depending on the fault of the tensor
        raise ModelFormatError(f"{what} is not a tensor", f"{type(error).__name__}: {error}") from None


class Attributes:
    """Hold the attributes of one operator; each is read as the type that its definition names."""

    def __init__(self, node: Foreign) -> None:
        self.kind, self._of = str(node.op_type), {entry.name: entry for entry in node.attribute}
        if len(self._of) < len(node.attribute):
            raise ModelFormatError(f"{self.kind}: an attribute occurs twice")

    def __contains__(self, name: str) -> bool:
        return name in self._of

    def _entry(self, name: str, kind: str) -> Any:
        """Return the attribute's value, or None."""
        entry = self._of.get(name)
        if entry is None:
            return None
        if entry.type != entry.AttributeType.Value(kind):
            raise ModelFormatError(f"{self.kind}: {name} must be of type {kind}")
        return entry

    def integer(self, name: str, default: int) -> int:
        entry = self._entry(name, "INT")
        return default if entry is None else int(entry.i)

    def text(self, name: str, default: str) -> str:
        entry = self._entry(name, "STRING")
        return default if entry is None else _text(entry.s, name)

    def integers(self, name: str) -> np.ndarray:
        entry = self._entry(name, "INTS")
        return np.empty(0, np.int64) if entry is None else np.array(entry.ints, np.int64)

    def texts(self, name: str) -> tuple[str, ...]:
        entry = self._entry(name, "STRINGS")
        return () if entry is None else tuple(_text(value, name) for value in entry.strings)

    def tensor(self, name: str) -> np.ndarray:
        entry = self._entry(name, "TENSOR")
        return np.empty(0) if entry is None else array_of(entry.t, f"{self.kind}: {name}")

    def numbers(self, name: str, *, finite: bool = True) -> np.ndarray:
        """Return numbers as float64, from a list or from a tensor of doubles."""
        entry, exact = self._entry(name, "FLOATS"), self.tensor(f"{name}_as_tensor")
        if entry is not None and len(entry.floats) and exact.size:
            raise ModelFormatError(f"{self.kind}: {name} is there twice")
        values = np.ravel(exact) if exact.size else np.array([] if entry is None else entry.floats, float)
        if values.dtype.kind != "f":
            raise ModelFormatError(f"{self.kind}: {name} must hold numbers", f"Got {values.dtype}")
        if finite and not np.isfinite(values).all():
            raise ModelFormatError(f"{self.kind}: {name} must be finite")
        return values.astype(float)


def _text(value: bytes, name: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{name} is not UTF-8 text", str(error)) from None
