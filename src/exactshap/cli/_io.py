"""Read tables and models, write tables, and print, for the command.

In files of the command whatever loads NumPy is imported on first use: help takes a third of the time without it.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from exactshap._runtime.files import atomic_write, check_regular, open_regular
from exactshap._runtime.optional import FRAME_LIBRARIES, INSTALL_FRAMES, first_installed, require
from exactshap._runtime.process_settings import without_collection
from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, MissingDependencyError, ModelFormatError, UnknownNameError, did_you_mean, printable

TABLES = (".csv", ".parquet")
_BOOSTERS = (".json", ".ubj", ".txt")
# Formats that are not read: the error says how to save them otherwise.
_BINARY_BOOSTERS = (".cbm", ".bst", ".model")
_PICKLES = (".pkl", ".pickle", ".joblib")
_ROWS_TRIED = 1000  # of a CSV file, for leading zeros
LINE_READ = 2**16  # characters of a file's first line
# an argument of Python in messages -> the option to type
_TYPED = (
    (r"Got background=None", "--background is missing"),
    (r"background=(X_\w+)?(?=[ .])", "--background FILE"),
    (r"align=True", "--align"),
    (r"value_function=", "--value-function "),
    (r"\bn_jobs=(?=[ ,.]|$)", "--jobs N"),
    (r"n_jobs=", "--jobs "),
    (r"on_bad_rows=\"mark\"", "--on-bad-rows mark"),
    (r"resume=False", "--no-resume"),
    (r"\boutput=\"(\w+)\"", r"--model-output \1"),
    (r"\boutput= out\b", "--model-output out"),
    (r"\boutput=(?=-?\d)", "--model-output "),
    (r"'n_jobs' parameter", "number of --jobs"),
    (r"\bbudget=(?=\d)", "--budget "),
    (r" or tol=\S+(?= asks)", ""),
    (r"`n_stages`|\bn_stages=(?=[ ,.]|$)", "--n-stages"),
    (r"\bn_stages=(?=\d)", "--n-stages "),
    (r"\b(drop|keep|groups)=(?=[ ,.]|$)", r"--\1"),
)
# Room -> its estimators and the data classes that fitted estimators hold
_OWN_TYPES = {
    "exactshap.estimators": (
        "FanovaGaussianProcess",
        "HSICSelector",
        "RKHSWeightingCV",
        "RKHSWeightingClassifier",
        "RKHSWeightingRegressor",
        "ShadowSelector",
        "ShapleyKernelClassifier",
        "ShapleyKernelRidge",
    ),
    "exactshap.estimators.rkhs_weighting._instantiations": (
        "ExponentialSign",
        "PolynomialSign",
        "Relu",
        "Sign",
        "Stump",
        "UniformStump",
    ),
    "exactshap.estimators.rkhs_weighting._problem": ("WeightingTerm",),
    "exactshap.estimators.rkhs_weighting._subsets": ("Full", "GivenSubsets", "UniformSubsets"),
    "exactshap.results.decomposition": ("PairwiseDecomposition",),
    "exactshap.kernels": ("RBF", "Cauchy", "Chi2", "Component", "Constant", "Laplacian", "Linear", "Polynomial", "White"),
    "exactshap.kernels._algebra": ("Product", "Sum"),
}


def as_options(text: str) -> str:
    """Replace arguments of Python in a text by options of the command; ``--output`` is a file there.

    >>> as_options("Got background=None. Pass background=X_reference or align=True.")
    '--background is missing. Pass --background FILE or --align.'
    >>> as_options('For probabilities pass output="probability" and background rows. Name them in drop=, or in keep=.')
    'For probabilities pass --model-output probability and background rows. Name them in --drop, or in --keep.'
    """
    for argument, option in _TYPED:
        text = re.sub(argument, option, text)
    return text


def say(text: str) -> None:
    """Print a text literally. Names of columns may hold escape characters."""
    try:
        print(_encodable(printable(text), sys.stdout.encoding or "utf-8"), flush=True)
    except BrokenPipeError:
        # Such as of ``| head``: what follows is printed to nobody, and files are written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _encodable(text: str, encoding: str) -> str:
    """Return a text that a stream can print: files and pipes of Windows have a code page, which lacks the minus sign.

    >>> _encodable("−4.2 größe", "cp1252"), _encodable("größe", "utf-8")
    ('-4.2 größe', 'größe')
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.replace("\N{MINUS SIGN}", "-").encode(encoding, "backslashreplace").decode(encoding)
    return text


@without_collection
def read_table(path: Path, dropped: Sequence[str] = ()) -> Any:
    """Read a CSV or Parquet file with pandas, polars or pyarrow. What CSV loses of columns that are ``dropped`` is not warned of."""
    suffix = _suffix(path)
    if suffix not in TABLES:
        raise InputError(f"Data are read from CSV and Parquet files, not from {path.name}", do="Convert it to .csv")
    check_regular(path)
    try:
        table = _read(path, suffix, dropped)
    except MissingDependencyError:
        raise
    # Each library has its own errors for malformed files, among them OSError without a number.
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if isinstance(error, UnicodeDecodeError):
            from exactshap.frames.stored import not_utf8

            raise not_utf8(path.name, error) from None
        if path.suffix.lower() == ".csv":  # decimal commas make columns of their own
            with path.open(encoding="utf-8", errors="replace") as file:
                _refuse_other_separators(file.readline(LINE_READ).strip(), path)
        raise InputError(f"{path} cannot be read as {suffix[1:].upper()}", f"{type(error).__name__}: {error}") from None
    # A table separated by semicolons or tabs is read without an error, as one column.
    names = list(table.column_names if hasattr(table, "column_names") else table.columns)
    if len(names) == 1:
        _refuse_other_separators(str(names[0]), path)
    return table


def _refuse_other_separators(names: str, path: Path) -> None:
    if "," not in names and (marks := [mark for mark in (";", "\t", "|") if mark in names]):
        got = f"Its one column is named {names[:40]!r}"
        read = f"pandas.read_csv({path.name!r}, sep={marks[0]!r})"
        do = f"Write it with commas: {read}.to_csv('commas.csv', index=False), with decimal=',' where numbers have decimal commas"
        raise InputError(f"{path.name} is not separated by commas", got, do)


def _read(path: Path, suffix: str, dropped: Sequence[str]) -> Any:
    import narwhals.stable.v2 as nw

    library = first_installed(FRAME_LIBRARIES)
    if library is None:
        raise MissingDependencyError("Reading data needs pandas, polars or pyarrow", do=INSTALL_FRAMES)
    reader = nw.read_csv if suffix == ".csv" else nw.read_parquet
    table = reader(str(path), backend=library).to_native()  # type: ignore[arg-type]
    if suffix == ".csv" and library == "pandas":
        _warn_of_losses(table, path, dropped)
    return table


def _warn_of_losses(table: Any, path: Path, dropped: Sequence[str]) -> None:
    """Warn of words such as NA between texts, which pandas reads as missing, and of leading zeros, which numbers lose."""
    from exactshap.errors import ExplanationWarning, message, warn

    pandas = require("pandas", "frames", purpose="Reading CSV")
    used = [j for j, name in enumerate(table.columns) if name not in dropped]
    gaps = [j for j in used if table.dtypes.iloc[j] in ("object", "str") and table.iloc[:, j].isna().any()]
    whole = [j for j in used if table.dtypes.iloc[j].kind == "i"]
    # Read again only if need be, as that takes as long as the first time
    words = pandas.read_csv(path, usecols=gaps, dtype=str, keep_default_na=False) if gaps else table
    held = {table.columns[j]: set(words.iloc[:, k][table.iloc[:, j].isna().to_numpy()]) - {""} for k, j in enumerate(gaps)}
    if named := {name: sorted(cells) for name, cells in held.items() if cells}:
        read = f"pandas.read_csv({path.name!r}, keep_default_na=False, na_values='')"
        do = f"If they are categories, write them as such: {read}.to_parquet('rows.parquet')"
        warn(message(f"Words of {path.name} are read as missing", f"Got {named}", do), ExplanationWarning)
    texts = pandas.read_csv(path, usecols=whole, dtype=str, keep_default_na=False, nrows=_ROWS_TRIED)
    zeros = {table.columns[j]: texts.iloc[:, k][texts.iloc[:, k].str.match(r"-?0\d")] for k, j in enumerate(whole)}
    if lost := {name: cells.iloc[0] for name, cells in zeros.items() if len(cells)}:
        read = f"pandas.read_csv({path.name!r}, dtype={dict.fromkeys(lost, 'str')})"
        do = f"Read them as text: {read}.to_parquet('rows.parquet')"
        warn(message(f"Leading zeros of {path.name} are lost, as in numbers", f"Got {lost}", do), ExplanationWarning)


def _suffix(path: Path) -> str:
    """Return the suffix that names the format. Compressed CSV files count as CSV.

    >>> _suffix(Path("a/B.CSV.gz")), _suffix(Path("m.skops"))
    ('.csv', '.skops')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return ".csv" if suffixes[-2:-1] == [".csv"] else (suffixes or [""])[-1]


def column_names(table: TableLike) -> tuple[str, ...]:
    """Return the names of a table's columns."""
    from exactshap.frames import as_table

    return as_table(table).names or ()


def take_columns(table: TableLike, drop: tuple[str, ...], *, what: str) -> Any:
    """Return a table without some columns."""
    from exactshap.frames import as_table

    wide = as_table(table, what=what)
    names = wide.names or ()
    for name in drop:
        if name not in names:
            raise UnknownNameError(f"`{what}` has no column {name!r}", do=did_you_mean(name, names))
    return wide.select([j for j, name in enumerate(names) if name not in drop]).native


def check_target(path: Path | None, suffixes: tuple[str, ...] | None, what: str = "Values") -> None:
    """Refuse an unwritable file before the work is done. Nothing that is written is compressed."""
    if path is None:
        return
    if suffixes is not None and path.suffix.lower() not in suffixes:
        known = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
        raise InputError(f"{what} are written to {known}, not to {path.name}", do="Choose one of these")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder", str(path))


def write_table(frame: TableLike, path: Path) -> None:
    """Write a frame as a whole CSV or Parquet file, or not at all.

    Spreadsheets take a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula. In CSV files such a *text* (a name of
    a column, a cell of a text column) gets an apostrophe in front; numbers stay as they are, and so do Parquet files.
    """
    check_target(path, TABLES)
    with atomic_write(path) as draft:
        if path.suffix.lower() == ".parquet":
            from exactshap.results.data import write_parquet

            write_parquet(frame, draft)
        else:
            _without_formulas(frame).write_csv(draft)


def _without_formulas(frame: TableLike) -> Any:
    """Return a frame of narwhals without texts that a spreadsheet would take for formulas."""
    import narwhals.stable.v2 as nw

    wide = nw.from_native(frame, eager_only=True)
    texts = [name for name in wide.columns if not wide[name].dtype.is_numeric() and wide[name].dtype != nw.Boolean]
    # Texts only: a negative number begins with a minus, and stays a number.
    guarded = {name: [_no_formula(cell) for cell in wide[name].to_list()] for name in texts}
    changed = [
        nw.new_series(name, cells, backend=wide.implementation)
        for name, cells in guarded.items()
        if cells != wide[name].to_list()
    ]
    return wide.with_columns(*changed).rename({name: _no_formula(name) for name in wide.columns})


def _no_formula(cell: object) -> Any:
    """Put an apostrophe before a text that a spreadsheet would calculate.

    >>> _no_formula("=1+1"), _no_formula("age"), _no_formula(-1.5)
    ("'=1+1", 'age', -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip()[:1] in tuple("=+-@") else cell


@without_collection
def load_model(path: Path, *, allow_pickle: bool = False, trust: bool = False, n_stages: int | None = None) -> Any:
    """Load a model from a skops, ONNX or booster file; a pickle on request.

    ``allow_pickle`` is for ``.pkl`` and ``.joblib`` files, which run whatever code is in them, ``trust`` for skops files with types that skops
    does not know to be harmless; ``n_stages`` are the boosting rounds to keep, as of :func:`exactshap.trees.load`.
    """
    check_regular(path)
    suffix = _suffix(path)
    if n_stages is not None and suffix not in (*_BOOSTERS, *_BINARY_BOOSTERS):
        raise InputError("--n-stages is for the files of boosters", f"Got {path.name}", f"Known: {', '.join(_BOOSTERS)}")
    if suffix in _PICKLES:
        return _load_pickle(path, allow_pickle)
    if suffix == ".skops":
        return _load_skops(path, trust)
    if suffix == ".onnx":
        from exactshap._graphs import OnnxFile

        return OnnxFile(path)
    if suffix in (*_BOOSTERS, *_BINARY_BOOSTERS):
        from exactshap import trees

        model = trees.load(path, n_stages=n_stages)
        if model.reading:  # which rounds were read, if not all
            say(f"{path.name}: {model.reading}; --n-stages reads another number\n")
        return model
    raise ModelFormatError(
        f"{path.name} is not a model file that can be read",
        f"Got the suffix {suffix!r}",
        f"Pass .skops, .onnx, {', '.join(_BOOSTERS)}, or {', '.join(_PICKLES)} with --allow-pickle",
    )


def _load_pickle(path: Path, allowed: bool) -> Any:
    if not allowed:
        raise InputError(
            f"{path.name} is a pickle, which runs whatever code is in it while it is read",
            "The option --allow-pickle is not set",
            "Save the model with skops.io.dump(model, 'model.skops') instead, or pass --allow-pickle for a file that you made",
        )
    import joblib

    try:
        return joblib.load(path)
    except (ImportError, AttributeError) as error:
        raise ModelFormatError(f"{path.name} needs code that is not installed", f"{error}") from None
    except Exception as error:  # unpickling runs arbitrary code and can raise anything
        raise ModelFormatError(f"{path.name} cannot be unpickled", f"{type(error).__name__}: {error}") from None


def _load_skops(path: Path, trust: bool) -> Any:
    skops = require("skops.io", "cli", purpose="Reading a skops file")
    try:
        with open_regular(path) as file:
            # Read once, so that what is checked is what is loaded, even if the file is replaced.
            content = file.read()
        unknown = list(skops.get_untrusted_types(data=content))
    except Exception as error:  # skops reads a zip of JSON and raises whatever its parsers do
        raise ModelFormatError(f"{path.name} is not a skops file", f"{type(error).__name__}: {error}") from None
    own = _own_types() if unknown else ()
    untrusted = [name for name in unknown if name not in own]
    if untrusted and not trust:
        raise InputError(
            f"{path.name} holds types that skops does not know to be harmless",
            f"Got {', '.join(untrusted)}",
            "Pass --trust if you know where the file comes from",
        )
    try:
        return skops.loads(content, trusted=unknown)
    except Exception as error:  # trusted types with invalid contents
        raise ModelFormatError(f"{path.name} cannot be loaded", f"{type(error).__name__}: {error}") from None


def _own_types() -> frozenset[str]:
    """Return the full names of this package's classes that skops may load without ``--trust``.

    skops calls whatever a trusted name refers to. Names are therefore listed, never matched, and looked up here, not in the
    file; each must be an estimator or a data class that a fitted estimator holds.
    """
    from sklearn.base import BaseEstimator

    classes = [getattr(importlib.import_module(room), name) for room, names in _OWN_TYPES.items() for name in names]
    kept = [cls for cls in classes if isinstance(cls, type) and (issubclass(cls, BaseEstimator) or is_dataclass(cls))]
    return frozenset(f"{cls.__module__}.{cls.__qualname__}" for cls in kept)
