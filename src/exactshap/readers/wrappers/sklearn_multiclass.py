"""Read several models as one: one-vs-rest, one-vs-one and output codes of classifiers, one regressor per target."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Reader, Request, fitted_names, nameless, select_outputs, sklearn_name
from exactshap.readers import read as read_any
from exactshap.readers.additive import AdditiveReader, is_logistic, read_side_by_side, with_response
from exactshap.readers.kernel_machines import KernelReader, merge
from exactshap.readers.wrappers._sum import Member, SumReader, name_of_sum, read_member
from exactshap.readers.wrappers.sklearn_sums import request_of_sum

if TYPE_CHECKING:
    from exactshap.readers.responses import Response


def read(model: Model, request: Request) -> Reader:
    """Read the parts, kernel machines as the outputs of one machine, others separately."""
    if sklearn_name(model) == "OutputCodeClassifier":
        return _codes(model, request)
    if request.asks_response and _has_probabilities(model):
        return with_response(_probabilities)(_read_additive)(model, request)
    return _read_scores(model, request)


def _has_probabilities(model: Model) -> bool:
    """Say whether each part is a linear model with logistic probabilities."""
    if sklearn_name(model) != "OneVsRestClassifier" or model.multilabel_:
        return False
    return all(map(is_logistic, model.estimators_))


def _probabilities(model: Model) -> Response:
    """Return the second class's probability, or those of all classes."""
    from exactshap.readers.responses import probabilities, probability

    names = _names(model)
    return probability(names[0]) if len(names) == 1 else probabilities("one-vs-rest")


def _read_additive(model: Model, request: Request) -> AdditiveReader:
    """Read the scores of linear parts as one additive model."""
    reader = _read_scores(model, request)
    if not isinstance(reader, AdditiveReader):
        from exactshap.readers.responses import no_response

        raise no_response(model, f"Its parts are read as {type(reader).__name__}")
    return reader


def _read_scores(model: Model, request: Request) -> Reader:
    names = _names(model)
    chosen, single = select_outputs(names, request.output, owner=type(model).__name__)
    single = single or len(names) == 1
    inner = replace(request, output="auto")
    if request.background is not None:
        inner = replace(
            inner, background=_bare(model, request.background), feature_names=request.feature_names or request.background.names
        )
    parts = [read_any(model.estimators_[k], inner) for k in chosen]
    for k, part in zip(chosen, parts, strict=True):
        if not part.traits.single_output or not _adds_up_to_output(model.estimators_[k], part):
            raise UnsupportedStructureError(
                f"{type(model).__name__} can be read only where each of its parts has one output, which is exact in the unit that it predicts",
                f"Got {part.traits.model_name} as {part.traits.unit}",
                "Explain model.estimators_[k] one at a time",
            )
    if not all(isinstance(part, KernelReader) for part in parts):
        return _side_by_side(model, request, parts, chosen, single)
    return KernelReader(
        model,
        request,
        merge([part.expansion for part in parts]),  # type: ignore[attr-defined]
        functools.partial(_predict, model, chosen, single),
        feature_names=fitted_names(model) or parts[0].traits.fitted_names,
        output_names=tuple(names[k] for k in chosen),
        unit=parts[0].traits.unit.split(" of class ")[0],
        single_output=single,
    )


def _adds_up_to_output(inner: Model, part: Reader) -> bool:
    """Say whether a part's values sum to its decision or prediction."""
    return hasattr(inner, "decision_function") or (part.traits.unit == "target" and not hasattr(inner, "classes_"))


def _side_by_side(model: Model, request: Request, parts: list[Reader], chosen: list[int], single: bool) -> Reader:
    """Return the reader of parts of any family: output k is part k."""
    names, predict = _names(model), functools.partial(_predict, model, chosen, single)
    facts: dict[str, Any] = {
        "output_names": tuple(names[k] for k in chosen),
        "unit": parts[0].traits.unit.split(" of class ")[0],
        "fitted_names": fitted_names(model) or parts[0].traits.fitted_names,
        "single_output": single,
    }
    linear = read_side_by_side(model, request, parts, predict, model_name=name_of_sum(model, parts), **facts)
    if linear is not None:
        return linear
    members = [Member(part, unit_row[None]) for part, unit_row in zip(parts, np.eye(len(parts)), strict=True)]
    n_columns = parts[0].traits.n_features
    return SumReader(model, request, members, predict, constant=np.zeros(len(parts)), n_columns=n_columns, **facts)


def _codes(model: Model, request: Request) -> Reader:
    r"""Read the closeness of the parts' scores to each class's code.

    .. math:: -\tfrac12 \lVert f(x) - c_k \rVert^2 + \tfrac12 \lVert f(x) \rVert^2 = f(x) \cdot c_k - \tfrac12 \lVert c_k \rVert^2
    """
    names, codes = tuple(map(str, model.classes_)), np.asarray(model.code_book_, float)
    chosen, single = select_outputs(names, request.output, owner=type(model).__name__)
    if request.background is not None:
        request = replace(request, background=_bare(model, request.background))
    request = request_of_sum(model, request)
    members, constant = [], -0.5 * np.square(codes[chosen]).sum(axis=1)
    for part, code in zip(model.estimators_, codes.T, strict=True):
        if np.ptp(code) == 0.0:  # the same for all classes, so that the part answers a constant
            # Any row will do, as the part answers the same for all.
            constant += float(_answer(nameless(part), np.zeros((1, int(model.n_features_in_))))[0]) * code[chosen]
        else:
            members.append(Member(_part_of_code(part, request, model), code[None, chosen]))
    return SumReader(
        model,
        request,
        members,
        functools.partial(_closeness, model, chosen, single),
        constant=constant,
        output_names=tuple(names[k] for k in chosen),
        unit="closeness to the code of the class",
        fitted_names=fitted_names(model),
        n_columns=int(model.n_features_in_),
        single_output=single,
    )


def _part_of_code(part: Model, request: Request, model: Model) -> Reader:
    """Read one part by its decision function, else by its probability."""
    wanted = "auto" if hasattr(part, "decision_function") else "probability"
    reader = read_member(part, replace(request, output=wanted), type(model).__name__)
    if reader.traits.single_output and (wanted == "probability" or _adds_up_to_output(part, reader)):
        return reader
    do = "Explain model.estimators_[k] one at a time"
    what = f"{type(model).__name__} adds up the outputs of its parts"
    raise UnsupportedStructureError(what, f"Got {reader.traits.model_name} as {reader.traits.unit}", do)


def _closeness(model: Model, chosen: list[int], single: bool, X: Table) -> np.ndarray:
    """Return the closeness of the parts' answers to the model's codes. The model has no call that returns it."""
    rows, codes = _bare(model, X).native, np.asarray(model.code_book_, float)[chosen]
    answers = np.stack([_answer(part, rows) for part in model.estimators_], axis=1)
    values = answers @ codes.T - 0.5 * np.square(codes).sum(axis=1)
    return values[:, 0] if single else values


def _answer(part: Model, rows: TableLike) -> np.ndarray:
    return np.ravel(part.decision_function(rows)) if hasattr(part, "decision_function") else part.predict_proba(rows)[:, 1]


def _names(model: Model) -> tuple[str, ...]:
    if not hasattr(model, "classes_"):
        return tuple(f"target {k}" for k in range(len(model.estimators_)))
    classes = [str(c) for c in model.classes_]
    if sklearn_name(model) == "OneVsOneClassifier":
        return tuple(f"{second} vs {first}" for first, second in itertools.combinations(classes, 2))
    return (classes[1],) if len(model.estimators_) == 1 else tuple(classes)


def _predict(model: Model, chosen: list[int], single: bool, X: Table) -> np.ndarray:
    """Return the model's own outputs: its decision function, or predictions; of pairs of classes, those of its parts."""
    rows = _bare(model, X).native
    if sklearn_name(model) == "OneVsOneClassifier":  # its own decision function counts votes
        values = np.stack([np.ravel(_of_part(model.estimators_[k], rows)) for k in chosen], axis=1)
    else:
        values = np.asarray(_of_part(model, rows), float).reshape(X.n_rows, -1)[:, chosen]
    return values[:, 0] if single else values


def _of_part(part: Model, rows: TableLike) -> Any:
    return (part.decision_function if hasattr(part, "decision_function") else part.predict)(rows)


def _bare(model: Model, X: Table) -> Table:
    """Return the rows as the parts were fitted on them: without names where they know none."""
    if not X.is_frame or hasattr(model.estimators_[0], "feature_names_in_"):
        return X
    return Table(X.numeric(), None, X.n_rows, X.n_columns)
