"""Read ONNX files with the columns of their inputs as players of the one inner model."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._graphs import OnnxFile, Parts, column_names, dtype_of, feeds_of, numbers_of
from exactshap._runtime.types import Model
from exactshap.errors import ExactnessError, InputError
from exactshap.frames import Table, as_table, check_columns
from exactshap.games import player_of_columns
from exactshap.readers import Columns, Reader, Request, SecondReading, TransformedReader
from exactshap.readers import read as read_any
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution

# Of scores in single precision: exponentials and logistic functions in two libraries
TRANSFORM_TOLERANCE = 2e-5
CHECKED_ROWS = 64


def read(model: Model, request: Request) -> Reader:
    """Read a file as columns that stay apart up to one model; a session of onnxruntime as a function."""
    if hasattr(model, "get_inputs"):
        function = _SessionCall(model)
        return read_any(function, replace(request, options={**request.options, "exact_owner": False}))
    file = model if isinstance(model, OnnxFile) else OnnxFile(model)
    inputs = file.inputs(None if request.background is None else request.background.n_columns)
    n_columns = sum(width for _, _, width in inputs)
    columns = Columns.of(request, column_names(inputs), n_columns, file.name)
    # What one player holds may be mixed
    parts = file.split(n_columns, player_of_columns(columns.players, n_columns).tolist())
    return OnnxReader(file, parts, request, columns)


class OnnxReader(TransformedReader):
    """Explain the scores of the model inside, its columns grouped by input column."""

    def __init__(self, file: OnnxFile, parts: Parts, request: Request, columns: Columns) -> None:
        self._parts, self._runs, self._is_transformed = parts, file.is_run_by, parts.core.is_transformed
        fitted = column_names(parts.inputs)
        background = request.background
        if background is not None:
            background = check_columns(background, fitted, len(columns.names), owner=file.name, what="background")
        super().__init__(
            functools.partial(read_any, parts.core),
            request,
            columns,
            parts.owners,
            background,
            model=file,
            model_name=file.name,
            fitted_names=fitted,
            own_call=None,
            second_reading=functools.partial(
                SecondReading, gap="they come from a file, without the library that could dump them"
            ),
        )
        if background is not None:
            self._check_transform(background.take(slice(0, CHECKED_ROWS)))

    def rows(self, X: Table) -> Table:
        """Return the rows as the file gives them to its model."""
        front = self._parts.front
        if front is None:
            ((_, dtype, _),) = self._parts.inputs
            with np.errstate(over="ignore"):
                return as_table(X.numeric().astype(dtype), what="rows", allow_empty=True)
        return as_table(front.run(self._feeds(X)), what="rows of the model", allow_empty=True)

    def predict(self, X: Table) -> np.ndarray:
        """Return the file's prediction, before its transform of the score."""
        if self._is_transformed or self.inner.traits.own_call is None:
            return self.inner.predict(self.rows(X))
        return self.inner.traits.own_call.finish(self._answers(X))

    def _answers(self, X: Table) -> np.ndarray:
        """Return what the whole file answers, (n_rows, n_outputs)."""
        return self._parts.whole.run(self._feeds(X)).astype(float).reshape(X.n_rows, -1)

    def _feeds(self, X: Table) -> dict[str, np.ndarray]:
        return feeds_of([X.column(j) for j in range(X.n_columns)], self._parts.inputs)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        solution = super().solve(X, semivalue, order)
        return solution.renamed(f"{solution.method}; predictions by {self._runs}")

    def _check_transform(self, rows: Table) -> None:
        """Compare outputs of the whole file with those of its parts. The score before its transform is explained."""
        answers, parts = self._answers(rows), self._parts.core.responses(np.asarray(self.rows(rows).native))
        if answers.shape != parts.shape or not np.allclose(answers, parts, rtol=TRANSFORM_TOLERANCE, atol=TRANSFORM_TOLERANCE):
            raise ExactnessError(
                f"{self.traits.model_name} does not return what its parts return",
                do="Explain it as a function over onnxruntime",
            )


class _SessionCall:
    """Call a session of onnxruntime on tables and return its last output."""

    def __init__(self, session: Model) -> None:
        self._session, self.__name__ = session, "InferenceSession.run"

    def __call__(self, rows: Any) -> np.ndarray:
        table, given = as_table(rows), self._session.get_inputs()
        widths = [entry.shape[1] if len(entry.shape) == 2 else 0 for entry in given]
        sizes = [width if isinstance(width, int) else table.n_columns - len(given) + 1 for width in widths]
        if sum(sizes) != table.n_columns:
            raise InputError(f"The session takes {sum(sizes)} columns", f"Got {table.n_columns}")
        inputs = [(entry.name, dtype_of(entry.type), size) for entry, size in zip(given, sizes, strict=True)]
        feeds = feeds_of([table.column(j) for j in range(table.n_columns)], inputs)
        return numbers_of(self._session.run(None, feeds)[-1])
