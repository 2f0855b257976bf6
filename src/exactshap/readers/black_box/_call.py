"""Call functions on copies of rows, check what they return and how they round, and build hybrid rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.threads import raise_if_cancelled
from exactshap._runtime.types import Foreign, Model
from exactshap.errors import ExactshapError, ExplanationWarning, InputError, InputTypeError, message, warn
from exactshap.frames import Table, hybrid_frame, is_missing, with_unique_index
from exactshap.games import unmasked
from exactshap.readers import class_names

# Rounding units of the largest answer; sums in another order differ by less.
SUMMATION_EPSILONS = 16.0
# Rows of a call. BLAS has separate kernels for one row, up to three, and many.
SMALL_BATCHES, LARGE_BATCH = (1, 3), 128
# Small batches of each size.
CALLS_OF_EACH = 6

_OF_TABLES = "Pass a function of tables: lambda rows: net(torch.tensor(np.asarray(rows), dtype=torch.float32))"


def first_call(
    function: Callable[..., Any], rows: Table, name: str, most: int | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the answers for some rows, at most ``most`` a call, and the names of several outputs.

    They are the columns of a frame, the keys of dictionaries, or the classes of a classifier's own method; else numbers.
    """
    few = rows.take(slice(0, most))
    returned = _returned(function, few, name)
    values = _checked_output(returned, few, name)
    n_outputs = 1 if values.ndim == 1 else values.shape[1]
    _, names = _as_columns(returned, few.n_rows)
    if few.n_rows < rows.n_rows:
        values = call(function, rows, name, most=most)
    owner = getattr(getattr(function, "func", function), "__self__", None)
    if names is None or isinstance(returned, list):
        names = _class_names(owner, n_outputs) or names
    if names is None or len(names) != n_outputs or len(set(names)) != n_outputs:
        names = tuple(f"output {k}" for k in range(n_outputs))
    return values, names


def _class_names(owner: Model, n_outputs: int) -> tuple[str, ...] | None:
    """Return the classes of a classifier; of several targets, each class with the number of its target. None of others."""
    classes = getattr(owner, "classes_", ())
    if isinstance(classes, list) and all(np.ndim(labels) == 1 for labels in classes):  # of several targets
        classes = list(map(np.asarray, classes))
        if list(map(len, classes)) == [2] * n_outputs:  # chains return the second class of each
            return tuple(f"target {k} = {labels[1]}" for k, labels in enumerate(classes))
    elif not (isinstance(classes, list) or (isinstance(classes, np.ndarray) and classes.ndim == 1)):
        return None
    names = class_names(classes)
    return names if len(names) == n_outputs else None


def _as_columns(returned: Foreign, n_rows: int) -> tuple[Any, tuple[str, ...] | None]:
    """Return an answer as (n_rows, n_outputs), with names of columns if it has any.

    Frames have names; classifiers of several targets return a list of tables; networks return dictionaries of outputs, and
    pipelines of transformers a list of labels and scores for each row.

    >>> _as_columns([{"cat": 0.25, "dog": 0.75}], 1)
    (array([[0.25, 0.75]]), ('cat', 'dog'))
    >>> _as_columns([[{"label": "good", "score": 0.75}, {"label": "bad", "score": 0.25}]], 1)
    (array([[0.25, 0.75]]), ('bad', 'good'))
    """
    if (
        isinstance(returned, dict)
        and returned
        and all(np.shape(column) in ((n_rows,), (n_rows, 1)) for column in returned.values())
    ):
        columns = [np.reshape(np.asarray(column), n_rows) for column in returned.values()]
        return np.stack(columns, axis=1), tuple(map(str, returned))
    if isinstance(returned, (list, tuple)) and len(returned):
        if all(isinstance(table, np.ndarray) and table.ndim == 2 and len(table) == n_rows for table in returned):
            targets = [f"target {k}, output {c}" for k, table in enumerate(returned) for c in range(table.shape[1])]
            return np.concatenate(returned, axis=1), tuple(targets)
        if (rows := _of_dictionaries(returned)) is not None:
            return rows
    names = getattr(returned, "column_names", None) or getattr(returned, "columns", None)
    if names is None or callable(names) or len(getattr(returned, "shape", ())) != 2:
        return returned, None
    return returned, tuple(map(str, names))


def _of_dictionaries(returned: Foreign) -> tuple[np.ndarray, tuple[str, ...]] | None:
    """Return answers that are dictionaries as numbers and names.

    They have the same keys, or are lists of the same labels with scores.
    """
    rows = [
        {item["label"]: item["score"] for item in row if isinstance(item, dict) and {"label", "score"} <= item.keys()}
        if isinstance(row, list)
        else row
        for row in returned
    ]
    if not all(isinstance(row, dict) and row for row in rows) or len({frozenset(row) for row in rows}) > 1:
        return None
    keys = sorted(rows[0], key=str) if isinstance(returned[0], list) else list(rows[0])
    return np.array([[row[key] for key in keys] for row in rows]), tuple(map(str, keys))


def precision(values: np.ndarray) -> float:
    """Return the relative rounding of a function's answers: of their dtype, or of float32 where every one of them is such a number.

    A list or frame made from the answers of a float32 network is float64, but its numbers are as coarse as before. Integers and
    simple fractions (float16 has them too) are ignored.

    >>> precision(np.array([0.1, 0.2])), precision(np.array([0.1, 0.2], np.float32).astype(float)), precision(np.array([0.5, 2.0]))
    (2.220446049250313e-16, 1.1920928955078125e-07, 2.220446049250313e-16)
    """
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:
        return float(np.finfo(values.dtype).eps)
    fractions = values[values != np.rint(values)]
    with np.errstate(over="ignore"):
        coarse = np.array_equal(fractions, fractions.astype(np.float32))
        simple = np.array_equal(fractions, fractions.astype(np.float16))
    return float(np.finfo(np.float32 if coarse and not simple else np.float64).eps)


class Place(NamedTuple):
    """Say what mixed rows are, for messages."""

    columns: np.ndarray  # (n_coalitions, n_features), the columns of each coalition
    names: tuple[str, ...]  # of all columns
    row: int | None  # the row that is explained

    def of(self, rows: np.ndarray, n_rows: int) -> Place:
        """Return what some of ``n_rows`` mixed rows are, one coalition a row."""
        return self._replace(columns=self.columns[rows * len(self.columns) // n_rows])

    def inside(self, bad: int, n_rows: int) -> list[str]:
        """Return some of the columns that one of ``n_rows`` mixed rows has from the row that is explained."""
        coalition = self.columns[bad * len(self.columns) // n_rows]
        return [self.names[j] for j in np.flatnonzero(coalition)[:8]] + (["..."] if coalition.sum() > 8 else [])


def call(
    function: Callable[..., Any], rows: Table, name: str, place: Place | None = None, *, most: int | None = None
) -> np.ndarray:
    """Call the function on copies of at most ``most`` rows; return finite numbers (n_rows,) or (n_rows, n_outputs)."""
    if most is None or rows.n_rows <= most:
        return _checked_output(_returned(function, rows, name, place), rows, name, place)
    parts = []
    for start in range(0, rows.n_rows, most):
        part = rows.take(slice(start, start + most))
        there = None if place is None else place.of(np.arange(start, start + part.n_rows), rows.n_rows)
        parts.append(_checked_output(_returned(function, part, name, there), part, name, there, start))
    return np.concatenate(parts)


def _returned(function: Callable[..., Any], rows: Table, name: str, place: Place | None = None) -> Any:
    """Return the function's result; exceptions name the row and the coalition."""
    raise_if_cancelled()
    try:
        return function(_guarded(rows))
    except ExactshapError:
        raise
    except Exception as error:
        if isinstance(error, ValueError) and "read-only" in str(error):
            raise InputError(f"{name} changes its input", f"{error}", "Let it work on a copy: f(X.copy())") from error
        # The first row of the call that failed, where the function cuts rows into calls
        begun = getattr(error, "row", None)
        where = "" if begun is None else f", in the call that begins at row {begun}"
        if place is not None:
            which = "the first" if begun is None else "in the call that begins at that"
            where = f" of {len(place.columns)} coalitions, {which} with {place.inside(begun or 0, rows.n_rows)} from x"
        do = _way_out(function, rows, is_first=place is None)
        what = f"{name} raised {type(error).__name__}{_for(place)} on {rows.n_rows} rows{where}"
        raise InputError(what, f"{error}", do, row=begun if place is None else place.row) from error


def _way_out(function: Callable[..., Any], rows: Table, *, is_first: bool) -> str:
    """Return advice on a function that raises an error, perhaps for its first rows."""
    if any(kind.__module__.startswith("torch.nn") for kind in type(getattr(function, "function", function)).__mro__):
        return _OF_TABLES
    if hasattr(getattr(function, "__self__", None), "inplace_predict"):  # of XGBoost
        return "Pass its method that takes tables: explain(model.inplace_predict, X, background)"
    # It may take arrays alone, or single precision
    for dtype in ("float", "np.float32") if is_first else ():
        with suppress(Exception):
            function(rows.numeric().astype(dtype.removeprefix("np.")))
            return (
                f"It takes arrays: explain(lambda rows: f(np.asarray(rows, {dtype})), X, background). Its own error is chained"
            )
    return "Its own error is chained"


def _guarded(rows: Table) -> Any:
    if not rows.is_frame:
        array = np.array(rows.native)
        array.setflags(write=False)
        return array
    import narwhals.stable.v2 as nw

    return with_unique_index(nw.from_native(rows.native, eager_only=True).clone().to_native())


def _for(place: Place | None) -> str:
    return "" if place is None or place.row is None else f" for row {place.row}"


def _checked_output(returned: Foreign, rows: Table, name: str, place: Place | None = None, start: int = 0) -> np.ndarray:
    if returned is None:
        raise InputTypeError(f"{name} must return one number a row", "Got None", "Let it return what it computes")
    # A tensor may record gradients or be on another device
    if callable(getattr(returned, "detach", None)):
        returned = returned.detach().cpu()
    returned, outputs = _as_columns(returned, rows.n_rows)
    if outputs is not None and rows.names is not None and set(rows.names) < set(outputs):
        added = [output for output in outputs if output not in rows.names]
        do = f"Return that column alone: lambda rows: function(rows)[{added[0]!r}]"
        raise InputTypeError(f"{name} must return real numbers", f"Got its rows with {added} next to them", do)
    try:
        values = unmasked(returned)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} must return one number a row", f"Got {type(returned).__name__}: {error}") from error
    if values.dtype.kind == "O":
        values = _from_objects(values, name)
    if values.dtype.kind not in "fiub":
        raise InputTypeError(
            f"{name} must return real numbers",
            f"Got dtype {values.dtype}",
            "Pass predict_proba or decision_function instead of a predict that returns labels",
        )
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 0 and rows.n_rows == 1:  # squeezed: net(rows).squeeze() of one row
        values = values[None]
    if values.ndim not in (1, 2) or len(values) != rows.n_rows or 0 in values.shape[1:]:
        raise InputError(
            f"{name} returned shape {values.shape} for {rows.n_rows} rows",
            "Expected one number, or one row of outputs, for each",
            _way_to_rows(returned) if values.shape[1:] == (rows.n_rows,) else "",
        )
    finite = np.isfinite(values.reshape(rows.n_rows, -1)).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        where, row = (
            (f"row {start + bad}", start + bad)
            if place is None
            else (f"the coalition with {place.inside(bad, rows.n_rows)} from x", place.row)
        )
        do = "Explain a finite output, or rows it can handle"
        raise InputError(f"{name} returned NaN or infinity{_for(place)}", f"First at {where}", do, row=row)
    return values


def _way_to_rows(returned: Any) -> str:
    """Return advice on an answer with one column per row. It may be a transposed table."""
    if isinstance(returned, (list, tuple)):
        return "Return one of its parts: lambda rows: function(rows)[0]"
    return "Return its transpose: lambda rows: function(rows).T"


def _from_objects(values: np.ndarray, name: str) -> np.ndarray:
    text = next((value for value in values.flat if isinstance(value, str)), None)
    if text is not None:  # "10" is a label, too
        raise _no_number(text, name)
    try:
        gone = [is_missing(value) for value in values.flat]
        return np.where(np.reshape(gone, values.shape), np.nan, values).astype(float)
    except (ValueError, TypeError) as error:
        raise _no_number(values.flat[0], name) from error


def _no_number(value: object, name: str) -> InputTypeError:
    text = " ".join(repr(value).split())
    return InputTypeError(
        f"{name} must return real numbers",
        f"Got {type(value).__name__} such as {text if len(text) <= 60 else f'{text[:57]}...'}",
        "Pass predict_proba or decision_function instead of a predict that returns labels",
    )


def name_of(function: Model) -> str:
    """Return the name of a function; a lambda has none."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>":
        return "a function"
    return f"{type(owner).__name__}.{name}" if owner is not None else str(name)


def hybrid_rows(rows: Table, background: Table, columns: np.ndarray, numbers: np.ndarray | None = None) -> Table:
    """Return n_rows x n_coalitions x n_background rows: columns of the coalition from ``rows``, the rest from the background.

    ``columns`` (n_coalitions, n_columns) says which. With ``numbers`` (n_coalitions,) each coalition is of one row only. Frames are
    gathered column by column, so that dtypes and categories stay.
    """
    if numbers is None:
        numbers, columns = np.repeat(np.arange(rows.n_rows), len(columns)), np.tile(columns, (rows.n_rows, 1))
    if not rows.is_frame or not background.is_frame:
        cells = np.where(columns[:, None], _array(rows)[numbers][:, None], _array(background))
        cells = cells.reshape(-1, cells.shape[-1])
        return Table(cells, None, *cells.shape)
    n, replaced_by = background.n_rows, np.tile(np.arange(background.n_rows), len(columns))
    return hybrid_frame(rows, background, np.repeat(numbers, n), replaced_by, np.repeat(columns, n, axis=0))


def _array(table: Table) -> np.ndarray:
    return table.numeric() if table.is_frame else np.asarray(table.native)


def rounding(
    function: Callable[..., Any], rows: Table, first: np.ndarray, name: str, *, refuse: bool, most: int | None = None
) -> float:
    """Return a function's relative rounding; report answers that vary by more. ``first`` is its first answer for the rows.

    The function is called again with batches of other sizes. Libraries add up products of matrices of other shapes in another order (BLAS
    has kernels of its own for one row, for up to three, and for many), and equations that were solved before enlarge what that rounds:
    a Gaussian process' probabilities move by 5,000 eps. A function that is random, or that looks at a row's neighbours, is refused
    or warned of.
    """
    n, eps = rows.n_rows, precision(first)
    size = np.abs(np.asarray(first, float)).max(initial=0.0)
    moved = _moved(function, rows, first, name, most)
    if moved <= SUMMATION_EPSILONS * eps * size:
        return eps
    repeated = _difference(first, call(function, rows, name, most=most), np.arange(n))
    if repeated > SUMMATION_EPSILONS * eps * size:
        what = f"The same {n} rows differ by up to {repeated:.3g} between two calls"
        _say(f"{name} is not deterministic", what, "Fix its seed", refuse=refuse)
        return eps
    if moved <= np.sqrt(eps) * size:
        return float(moved / size)
    what = f"The same {n} rows differ by up to {moved:.3g} when they come in batches of other sizes"
    _say(
        f"{name} returns another number for a row when other rows come with it",
        what,
        "Let it look at each row alone, and return numbers of the precision it computes in",
        refuse=refuse,
    )
    return eps


def _moved(function: Callable[..., Any], rows: Table, first: np.ndarray, name: str, most: int | None) -> float:
    """Return the largest difference of answers in batches of other sizes.

    They are small batches, and one as large as coalitions make, in another order.
    """
    n = rows.n_rows
    backwards = np.arange(n)[::-1]
    largest = min(LARGE_BATCH, most or LARGE_BATCH)
    nothing = np.zeros((-(-largest // n), rows.n_columns), bool)  # mixed rows, as coalitions call the function
    batch = hybrid_rows(rows.take(slice(0, 1)), rows.take(backwards), nothing)
    differences = [_difference(first, call(function, batch, name, most=most), np.tile(backwards, len(nothing)))]
    begins = [(size, start) for size in SMALL_BATCHES for start in range(0, min(n, size * CALLS_OF_EACH), size)]
    for size, start in begins if n > 1 else ():
        chosen = np.arange(start, min(start + size, n))
        differences.append(_difference(first, call(function, rows.take(chosen), name, most=most), chosen))
    return max(differences)


def _difference(first: np.ndarray, again: np.ndarray, rows: np.ndarray) -> float:
    if first.shape[1:] != again.shape[1:] or len(rows) != len(again):
        return np.inf
    return float(np.abs(np.asarray(first, float)[rows] - np.asarray(again, float)).max(initial=0.0))


def _say(what: str, seen: str, do: str, *, refuse: bool) -> None:
    text = message(what, seen, f"{do}; its values explain its noise too (deterministic='raise' refuses it)")
    if refuse:
        raise InputError(text)
    warn(text, ExplanationWarning)
