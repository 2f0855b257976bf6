r"""Read results of statsmodels as linear predictors: least squares, generalised, mixed, class, count and hazard models.

R-like formulas, here and of lifelines, are sums of terms on few columns, recovered from the model's own predictions:

.. math:: f(x) = \sum_{V \in \mathcal{V}} f_V(x_V) = \sum_{W \in \mathcal{W}} c_W\, f(x_W, a_{\bar W}),
          \qquad c_W = \sum_{V \in \mathcal{W},\, V \supseteq W} (-1)^{|V \setminus W|}

:math:`\mathcal{V}` are the columns of each term, :math:`\mathcal{W}` all subsets of them, a any one row.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputError, UnsupportedStructureError, message
from exactshap.frames import Table, check_columns
from exactshap.readers import Outputs, OwnCall, Request
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._functions import FunctionTerm, SeparateTerms
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts
from exactshap.readers.responses import Response, no_response

_CONSTANT = "Intercept"  # its name in formulas
_LINKS = {"Identity": "target", "Log": "log of the target", "Logit": "log-odds"}
_OWN_SCALE = ("OLS", "WLS", "GLS", "GLSAR", "RLM", "QuantReg", "MixedLM")  # predict is the linear predictor
_OTHERS = ("GLM", "GEE")
_COUNTS = ("Poisson", "NegativeBinomial", "NegativeBinomialP", "GeneralizedPoisson")
_CLASSES = {
    "Logit": "log-odds",
    "Probit": "probit",
    **dict.fromkeys(_COUNTS, "log of the target"),
    "OrderedModel": "latent score: high is a late category",
    "PHReg": "log hazard: high is early",
}
_KNOWN = (*_OWN_SCALE, *_CLASSES, *_OTHERS, "MNLogit")
# Inverse links by their names in `exactshap.expansions.links`; None: the score is the response
_INVERSE = {
    "Identity": None,
    **dict.fromkeys(("Log", *_COUNTS), "exponential"),
    "Logit": "logistic",
    "Probit": "normal",
    "CLogLog": "complementary log-log",
    "LogLog": "log-log",
    "Cauchy": "cauchit",
}
# Kinds that have parameters beyond those of the columns: dispersions, variances, thresholds
_MORE_PARAMETERS = ("NegativeBinomial", "NegativeBinomialP", "GeneralizedPoisson", "MixedLM", "OrderedModel")
# Most columns of an interaction, as all subsets are needed.
MAX_COLUMNS_OF_TERM = 10
# Names of patsy and formulaic for the columns of a category: site[T.south].
_LEVEL = re.compile(r"\[(?:T\.|S\.|D\.)?([^\]]*)\]")


def _response(model: Model) -> Response:
    """Return what ``predict`` answers: the mean of the target, of two classes the probability."""
    fitted, kind = model.model, type(model.model).__name__
    link = "Identity" if kind in _OWN_SCALE else type(fitted.family.link).__name__ if hasattr(fitted, "family") else kind
    if link not in _INVERSE:
        raise no_response(model, f"Got the link {link}; known are {', '.join(_INVERSE)}")
    is_binary = kind in ("Logit", "Probit") or type(getattr(fitted, "family", None)).__name__ == "Binomial"
    names = tuple(str(name) for name in fitted.exog_names if name != _CONSTANT)
    call = FrameCall("predict", names=() if is_of_terms(names) else names) if hasattr(fitted, "formula") else OwnCall("predict")
    return Response(_INVERSE[link], call, "probability" if is_binary else "target")


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    r"""Read a result's linear predictor :math:`x \cdot \beta`, without the offsets of the fit."""
    fitted, kind = model.model, type(model.model).__name__
    columns = _columns(fitted)
    params = np.asarray(model.params, float)
    if params.ndim == 1 and kind in _MORE_PARAMETERS:
        params = params[: len(columns)]
    of_terms = hasattr(fitted, "formula") and is_of_terms(columns)
    if kind not in _KNOWN or params.ndim > 1 + (kind == "MNLogit" and not of_terms) or len(params) != len(columns):
        got = f"Got parameters of shape {np.shape(model.params)}; known: {', '.join(_KNOWN)}"
        function = "model.predict"
        if hasattr(fitted, "smoother"):  # of GLMGam: its predict takes the smooth terms' columns apart
            function = f"lambda rows: model.predict(rows, exog_smooth=rows[{list(fitted.smoother.variable_names)}])"
        do = f"Call it: explain({function}, X, background), exact up to 13 players"
        raise UnsupportedStructureError(f"{kind} can be read only where it has one linear predictor", got, do)
    if of_terms:
        terms = [name for name in columns if name != _CONSTANT]
        # Terms may cancel, as a year and an intercept do; results without data cannot tell
        size = 0.0 if fitted.exog is None else float((np.abs(fitted.exog) @ np.abs(params)).max(initial=0.0))
        training, call, unit = getattr(fitted.data, "frame", None), _frame_call(kind, ()), _unit(model)
        reader = read_formula(model, request, terms, call, unit=unit, training=training, floor=size)
    else:
        reader = _read_columns(model, request, columns, params.reshape(len(columns), -1))
    reader.traits = replace(reader.traits, offset_note=_offset_note(fitted))
    return reader


def _read_columns(model: Model, request: Request, columns: list[str], params: np.ndarray) -> AdditiveReader:
    """Read parameters (n_columns, n_outputs) of columns; a formula has its constant as one of them."""
    fitted, kind = model.model, type(model.model).__name__
    by_formula = hasattr(fitted, "formula")
    inside = np.array([not (by_formula and name == _CONSTANT) for name in columns])
    names = tuple(name for name, kept in zip(columns, inside, strict=True) if kept)
    outputs = _classes(fitted)[1:] if kind == "MNLogit" else ("output",)
    parts = LinearParts(params[inside], params[~inside].sum(axis=0), outputs, _unit(model))
    of_frames = _frame_call(kind, names)
    own = of_frames if by_formula or kind == "PHReg" else OwnCall("predict", of_frames.settings)
    if kind == "MNLogit":  # the first class is the reference, with zeros
        chosen = Outputs.of(outputs, request.output, owner=kind)
        own = replace(own, finish=replace(chosen, numbers=[k + 1 for k in chosen.numbers]).pick)
    return read_parts(model, request, parts, names if by_formula or hasattr(fitted.data.orig_exog, "columns") else None, own)


def _columns(fitted: Model) -> list[str]:
    """Return the names of the columns, without further parameters of counts and categories."""
    names = [str(name) for name in fitted.exog_names]
    return names[: len(names) - getattr(fitted, "k_extra", 0)] if type(fitted).__name__ in _MORE_PARAMETERS else names


def _frame_call(kind: str, names: tuple[str, ...]) -> FrameCall:
    """Return the call that gives a frame's linear predictor."""
    if kind == "PHReg":
        return HazardCall("predict", names=names)
    words = "linpred" if kind == "OrderedModel" else "linear"
    settings: dict[str, Any] = {} if kind in _OWN_SCALE else {"which": words}
    return FrameCall("predict", settings, names=names)


def _classes(fitted: Model) -> tuple[str, ...]:
    """Return the names of the classes; the others are compared with the first."""
    given = fitted.data.orig_endog
    if np.ndim(given) == 2 and given.shape[1] > 1:  # an indicator of each class
        return tuple(map(str, getattr(given, "columns", range(given.shape[1]))))
    known = given.cat.categories if hasattr(given, "cat") else np.unique(np.asarray(given))
    # formulas make numbers floats, in a frame of one column
    return tuple(str(label).removesuffix(".0") if np.ndim(given) == 2 else str(label) for label in known)


def _unit(model: Model) -> str:
    fitted = model.model
    if hasattr(fitted, "family"):
        link = type(fitted.family.link).__name__
        return _LINKS.get(link, f"{link} link of the target")
    if type(fitted).__name__ == "MNLogit":
        return f"log-odds against class {_classes(fitted)[0]}"
    if type(fitted).__name__ == "QuantReg":
        return f"quantile {model.q:g} of the target"
    return _CLASSES.get(type(fitted).__name__, "target")


def _offset_note(fitted: Model) -> str:
    for name in ("exposure", "offset"):
        given = getattr(fitted, name, None)
        if given is not None and np.any(np.asarray(given, float)):
            do = "Pass the offsets of the explained rows, explain(model, X, offset=...); of an exposure its log"
            what = f"{type(fitted).__name__} was fitted with {name}s of its rows"
            return message(what, "The values leave them out, as predict(X) does", do)
    return ""


@dataclass(frozen=True, eq=False)
class FrameCall(OwnCall):
    """Call a method on a pandas frame with the columns of the fit, or with all columns."""

    names: tuple[str, ...] = ()

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        import pandas as pd

        if not isinstance(rows, pd.DataFrame):
            names = list(self.names or getattr(rows, "column_names", None) or rows.columns)
            columns = {name: np.asarray(rows[name]) for name in names} if hasattr(rows, "columns") else np.asarray(rows)
            rows = pd.DataFrame(columns, columns=names)
        return super().__call__(model, rows)


@dataclass(frozen=True, eq=False)
class HazardCall(FrameCall):
    """Call ``PHReg``, which takes rows by keyword and returns an object."""

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        return super().__call__(_Hazards(model), rows)


@dataclass(frozen=True)
class _Hazards:
    model: Model

    def predict(self, rows: TableLike) -> np.ndarray:
        return np.asarray(self.model.predict(exog=rows).predicted_values, float)


# -- formulas ------------------------------------------------------------------------------------------------------------


def is_of_terms(names: Iterable[str]) -> bool:
    """Say whether names of parameters are terms of a formula, not columns."""
    return any(mark in name for name in names for mark in "[(:")


def read_formula(
    model: Model,
    request: Request,
    parameters: Sequence[str],
    call: FrameCall,
    *,
    unit: str,
    training: Any = None,
    floor: float = 0.0,
) -> AdditiveReader:
    """Read a formula's terms as a sum of functions of columns.

    ``model`` predicts from a pandas frame of these columns by ``call``, on the scale where the terms add up, with an absolute rounding of
    ``floor``. The background of the request says which columns there are, and of which types; ``training`` are rows of the fit, for levels
    that the background lacks. ``parameters`` name the terms (``age:site[T.south]``).
    """
    name = type(model).__name__
    if request.background is None or not request.background.is_frame:
        got = "Got none" if request.background is None else "Got an array"
        do = "Pass a frame of the columns that the formula names: explain(model, X, background)"
        raise UnsupportedStructureError(f"The formula of {name} needs reference rows", got, do)
    background = request.background
    given = background.names or ()
    found = {parameter: [j for j, column in enumerate(given) if _names(parameter, column)] for parameter in parameters}
    _require_narrow(found, name, call.method)
    used = sorted({j for columns in found.values() for j in columns})
    names = tuple(given[j] for j in used)
    background = check_columns(background, names, len(names), owner=name, what="background")
    coding = Coding.of(background, parameters, training)
    terms = Anchored(
        model,
        replace(call, names=names),
        coding,
        coding.encode(background, "background")[0],
    )
    weights = subset_weights([tuple(used.index(j) for j in columns) for columns in found.values()])
    form = AdditiveForm(
        blocks=(
            SeparateTerms(tuple(terms.term(columns, weight) for columns, weight in weights.items() if columns and weight)),
        ),
        intercept=weights[()] * terms(np.zeros((1, 0)), (), 1),
        encode=coding.encode,
        own_call=terms.call,
        in_double=False,
        n_columns=len(names),
        fitted_names=names,
        outputs=Outputs.of(("output",), request.output, owner=name),
        unit=unit,
        floor=floor,
    )
    return AdditiveReader(model, request, form)


def _names(parameter: str, column: str) -> bool:
    """Say whether a term's name contains a column's name as a separate word."""
    return re.search(rf"(?<![\w.]){re.escape(column)}(?!\w)", parameter) is not None


def _require_narrow(found: Mapping[str, Sequence[int]], owner: str, method: str) -> None:
    """Refuse interactions of many columns, as all their subsets would be called."""
    wide = next((parameter for parameter, columns in found.items() if len(columns) > MAX_COLUMNS_OF_TERM), None)
    if wide is not None:
        do = f"Call it: explain(model.{method}, X, background)"
        got = f"Got {wide!r} on {len(found[wide])} columns; at most {MAX_COLUMNS_OF_TERM} are read"
        raise UnsupportedStructureError(f"A term of {owner} joins too many columns", got, do)


def subset_weights(sets: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    r"""Return the weight of each subset's function in a sum over sets of columns.

    .. math:: c_W = \sum_{V \supseteq W} (-1)^{|V \setminus W|}

    >>> subset_weights([(0,), (0, 1), (2,)])
    {(): -1, (0,): 0, (1,): 0, (2,): 1, (0, 1): 1}
    """
    closure = {subset for columns in sets for size in range(len(columns) + 1) for subset in combinations(columns, size)} | {()}
    ordered = sorted(closure, key=lambda subset: (len(subset), subset))
    return {inner: sum((-1) ** (len(outer) - len(inner)) for outer in ordered if set(inner) <= set(outer)) for inner in ordered}


@dataclass(frozen=True, eq=False)
class Anchored:
    """Predict with all but some columns fixed at one row's cells."""

    model: Model
    call: FrameCall
    coding: Coding
    anchor: np.ndarray

    def __call__(self, values: np.ndarray, columns: tuple[int, ...], weight: int) -> np.ndarray:
        rows = np.repeat(self.anchor[None], len(values), axis=0)
        rows[:, columns] = values
        return weight * np.asarray(self.call(self.model, self.coding.frame(rows)), float)

    def term(self, columns: tuple[int, ...], weight: int) -> FunctionTerm:
        """Return the weighted function of some columns."""
        label = f"The term on {', '.join(self.coding.names[j] for j in columns)}"
        return FunctionTerm(columns, functools.partial(self, columns=columns, weight=weight), label, 1)


@dataclass(frozen=True, eq=False)
class Coding:
    """Write cells as numbers, and numbers as cells of a pandas frame."""

    names: tuple[str, ...]
    # of each column its texts or categories by code; None for numbers
    levels: tuple[tuple[Any, ...] | None, ...]
    dtypes: tuple[Any, ...]  # what a pandas series of each column is cast to

    @staticmethod
    def of(background: Table, parameters: Sequence[str], training: Any) -> Coding:
        """Return the coding of the background's columns; levels also come from the terms' names and the rows of the fit."""
        names = background.names or ()
        is_pandas = type(background.native).__module__.startswith("pandas")
        by_name = dict(zip(names, background.native.dtypes, strict=True)) if is_pandas else {}
        columns = [background.column(j) for j in range(len(names))]
        categories = [getattr(by_name.get(name), "categories", None) for name in names]
        levels: list[tuple[Any, ...] | None] = []
        for name, cells, known in zip(names, columns, categories, strict=True):
            if known is None and cells.dtype.kind not in "fiub":
                named = [_LEVEL.findall(parameter) for parameter in parameters if _names(parameter, name)]
                fitted = list(training[name]) if training is not None and name in training else []
                known = dict.fromkeys((*cells, *fitted, *(level for found in named for level in found)))
            levels.append(None if known is None else tuple(level for level in known if level is not None and level == level))
        dtypes = [
            cells.dtype if known is None else by_name[name]
            for name, cells, known in zip(names, columns, categories, strict=True)
        ]
        return Coding(names, tuple(levels), tuple(dtypes))

    def encode(self, X: Table, what: str) -> np.ndarray:
        """Return rows as numbers (n_rows, n_columns)."""
        columns = [self._column(X, j, what) for j in range(len(self.names))]
        return np.stack(columns, axis=1) if X.n_rows else np.zeros((0, len(self.names)))

    def _column(self, X: Table, j: int, what: str) -> np.ndarray:
        levels, name = self.levels[j], self.names[j]
        if levels is None:
            numbers = X.select([j]).numeric(what=what)[:, 0]
            bad = np.flatnonzero(~np.isfinite(numbers))
            if bad.size:
                got = f"Got {numbers[bad[0]]} at row {bad[0]} of {what}"
                raise InputError(f"Column {name!r} of a formula must be finite", got, row=int(bad[0]))
            return numbers
        codes = {level: code for code, level in enumerate(levels)}
        cells = X.column(j).tolist()
        unknown = next((i for i, cell in enumerate(cells) if cell not in codes), None)
        if unknown is not None:
            got = f"Got {cells[unknown]!r} at row {unknown} of {what}; known: {', '.join(map(repr, levels[:10]))}"
            do = "If the model knows it, include a row with it in the background"
            raise InputError(f"Column {name!r} holds an unknown level", got, do, row=unknown)
        return np.array([codes[cell] for cell in cells], float)

    def frame(self, numbers: np.ndarray) -> Any:
        """Return coded rows as a pandas frame of the user's columns."""
        import pandas as pd

        return pd.DataFrame({name: self._cells(numbers[:, j], j) for j, name in enumerate(self.names)})

    def _cells(self, numbers: np.ndarray, j: int) -> Any:
        import pandas as pd

        levels, dtype = self.levels[j], self.dtypes[j]
        if levels is not None:
            codes = numbers.astype(int)
            if hasattr(dtype, "categories"):
                return pd.Categorical.from_codes(codes, dtype=dtype)
            return np.array(levels, object)[codes]
        is_whole = dtype.kind in "iub" and (numbers == np.rint(numbers)).all()
        return numbers.astype(dtype) if is_whole else numbers
