"""Read the simplest predictors of scikit-learn: constants, and monotone functions of one column."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, Request, joined_outputs, nameless, sklearn_name, target_names
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._functions import FunctionTerm, SeparateTerms
from exactshap.readers.additive._terms import LinearTerms


def read(model: Model, request: Request) -> AdditiveReader:
    """Read a constant, or a function of one column."""
    return _isotonic(model, request) if sklearn_name(model) == "IsotonicRegression" else _constant(model, request)


def _constant(model: Model, request: Request) -> AdditiveReader:
    """Read a dummy, in which all columns are null players."""
    is_classifier = sklearn_name(model) == "DummyClassifier"
    if is_classifier and model.strategy == "stratified":
        do = "Fit it with strategy='prior'"
        raise UnsupportedStructureError("DummyClassifier draws its predictions at random", "Got strategy='stratified'", do)
    row, method = np.zeros((1, int(model.n_features_in_))), "predict_proba" if is_classifier else "predict"
    answer = joined_outputs(getattr(nameless(model), method)(row)).reshape(-1)
    names, unit = _class_names(model) if is_classifier else (target_names(answer.size), "target")
    wanted = "auto" if is_classifier and request.asks_response else request.output
    if is_classifier and isinstance(wanted, str) and wanted == "auto" and len(names) == 2:
        wanted = 1
    outputs = Outputs.of(names, wanted, owner=sklearn_name(model))
    call = outputs.call(method)
    form = AdditiveForm(
        blocks=(LinearTerms(np.zeros((row.shape[1], len(outputs.names)))),),
        intercept=answer[outputs.numbers],
        encode=_nothing,
        predict=functools.partial(call.of_table, model),
        own_call=call,
        n_columns=row.shape[1],
        outputs=outputs,
        unit=f"probability of class {outputs.names[0]}" if is_classifier and outputs.single else unit,
    )
    return AdditiveReader(model, request, form)


def _class_names(model: Model) -> tuple[tuple[str, ...], str]:
    if not isinstance(model.classes_, list):
        return tuple(map(str, model.classes_)), "probability"
    return tuple(f"target {k} = {label}" for k, labels in enumerate(model.classes_) for label in labels), "probability"


def _nothing(X: Table, what: str) -> np.ndarray:
    """Return an empty array, as a constant ignores cells of any type."""
    return np.zeros((X.n_rows, X.n_columns))


def _isotonic(model: Model, request: Request) -> AdditiveReader:
    """Read a function of the only column."""
    term = FunctionTerm((0,), functools.partial(_of_column, model), "IsotonicRegression", 1)
    form = AdditiveForm(
        blocks=(SeparateTerms((term,)),),
        intercept=np.zeros(1),
        predict=functools.partial(_of_table, model),
        n_columns=1,
        outputs=Outputs.of(("target",), request.output, owner="IsotonicRegression"),
        unit="target",
    )
    return AdditiveReader(model, request, form)


def _of_column(model: Model, values: np.ndarray) -> np.ndarray:
    return np.asarray(model.predict(values[:, 0]), float)


def _of_table(model: Model, X: Table) -> np.ndarray:
    """Return the model's own prediction, for a single column without a name."""
    return _of_column(model, X.numeric())
