"""Run a graph by onnxruntime, or if it is not installed by the reference evaluator of onnx."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap._runtime.cache import copied_state
from exactshap._runtime.optional import first_installed, require
from exactshap._runtime.types import Foreign
from exactshap.errors import InputError, ModelFormatError

# Element types of inputs, by onnx's numbers and onnxruntime's names
DTYPES: dict[int | str, Any] = {1: np.float32, 6: np.int32, 7: np.int64, 8: np.object_, 9: np.bool_, 11: np.float64}
DTYPES |= {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(string)": np.object_}
DTYPES |= {"tensor(bool)": np.bool_, "tensor(double)": np.float64}

Input = tuple[str, Any, int]  # name, dtype and number of columns


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
