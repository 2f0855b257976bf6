"""Read soft votes, bags and several targets of classifiers as weighted sums of probabilities."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import ExactshapError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Reader, Request, fitted_names, joined_outputs, outputs_of, select_outputs
from exactshap.readers.wrappers._columns import readable
from exactshap.readers.wrappers._sum import Member, SumReader, read_member
from exactshap.readers.wrappers.sklearn_sums import n_columns_of, request_of_sum, votes

Columns = tuple[int, ...] | None
Part = tuple[Model, np.ndarray, Columns]  # a classifier, what each of its classes adds to the outputs (n_classes, n_outputs)


def read(model: Model, request: Request) -> Reader:
    r"""Read a weighted sum of the probabilities of the classifiers inside.

    .. math:: p_k(x) = \sum_m w_m\, p_{mk}(x)
    """
    kind = next(cls.__name__ for cls in type(model).__mro__ if cls.__name__ in _PARTS)
    names, parts = _PARTS[kind](model)
    wanted = "auto" if request.asks_response and request.output not in names else request.output
    if isinstance(wanted, str) and wanted == "auto" and len(names) == 2 and kind != "MultiOutputClassifier":
        wanted = 1  # the second of two classes, as for forests
    chosen, single = select_outputs(names, wanted, owner=type(model).__name__)
    request = request_of_sum(model, request)
    constant, members = np.zeros(len(chosen)), []
    for inner, weights, columns in parts:
        member, added = member_of_probabilities(inner, weights[:, chosen], columns, request, model)
        members.append(member)
        constant += added
    return SumReader(
        model,
        request,
        members,
        functools.partial(_predict, model, chosen, single),
        constant=constant,
        output_names=tuple(names[k] for k in chosen),
        unit=f"probability of class {names[chosen[0]]}" if single else "probability",
        fitted_names=fitted_names(model),
        n_columns=n_columns_of(model),
        single_output=single,
    )


def member_of_probabilities(
    inner: Model, weights: np.ndarray, columns: Columns, request: Request, model: Model
) -> tuple[Member, np.ndarray | float]:
    """Read one classifier with exact probabilities; of two classes the second one only."""
    owner = type(model).__name__
    try:
        reader = read_member(inner, replace(request, output="all"), owner, columns)
        if reader.traits.unit.startswith("probability") and reader.traits.n_outputs == len(weights):
            return Member(reader, weights, columns), 0.0
        if len(weights) == 2:
            second = read_member(inner, replace(request, output="probability"), owner, columns)
            return Member(second, weights[1:] - weights[:1], columns), weights[0]
        why = f"Those of {reader.traits.model_name} are exact only as {reader.traits.unit}"
    except ExactshapError as error:
        why = str(error)
    do = "Call it: explain(model.predict_proba, X, background), exact up to 13 players"
    raise UnsupportedStructureError(f"{owner} adds up probabilities", why, do)


def _voting(model: Model) -> tuple[tuple[str, ...], list[Part]]:
    if model.voting != "soft":
        do = "Call one of its models, or fit with voting='soft'"
        raise UnsupportedStructureError("A vote of labels is not a sum of scores", "Got voting='hard'", do)
    classes = np.eye(len(model.classes_))
    parts: list[Part] = [(inner, share * classes, None) for inner, share in zip(model.estimators_, votes(model), strict=True)]
    return tuple(map(str, model.classes_)), parts


def _bagging(model: Model) -> tuple[tuple[str, ...], list[Part]]:
    """Return classifiers of encoded classes, each on its own columns."""
    classes, share = np.eye(len(model.classes_)), 1.0 / len(model.estimators_)
    parts: list[Part] = []
    for inner, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        if not hasattr(inner, "predict_proba"):
            do = "Explain model.estimators_[k], one of its models"
            raise UnsupportedStructureError("A vote of labels is not a sum of scores", f"Got {type(inner).__name__}", do)
        parts.append((inner, share * classes[np.asarray(inner.classes_, int)], tuple(int(c) for c in columns)))
    return tuple(map(str, model.classes_)), parts


def _targets(model: Model) -> tuple[tuple[str, ...], list[Part]]:
    """Return one classifier for each target."""
    names = tuple(f"target {k} = {label}" for k, labels in enumerate(model.classes_) for label in labels)
    every, starts = np.eye(len(names)), np.cumsum([0, *map(len, model.classes_)])
    parts: list[Part] = [(inner, every[starts[k] : starts[k + 1]], None) for k, inner in enumerate(model.estimators_)]
    return names, parts


def _predict(model: Model, chosen: list[int], single: bool, X: Table) -> np.ndarray:
    return outputs_of(chosen, single, joined_outputs(model.predict_proba(readable(model, X))))


_PARTS: dict[str, Callable[[Model], tuple[tuple[str, ...], list[Part]]]] = {
    "VotingClassifier": _voting,
    "BaggingClassifier": _bagging,
    "MultiOutputClassifier": _targets,
}
