"""Compare observations and predictions in the unit of the target."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from exactshap._runtime.types import Column
from exactshap.errors import InputError
from exactshap.frames import as_table, warn_of_other_order
from exactshap.results.data._cells import cell_text

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

Data = TypeVar("Data", bound="ExplanationData")

_OF_CLASS = re.compile(r"(log-odds(?: / [0-9.e+-]+)?|probability)(?: of class (.+)| of (.+)| \(> 0: (.+)\))?")
_NUMBERED = re.compile(r"(?:label|target) \d+")  # one of several targets, of 0 and 1
_SOFTMAX = ("score before the softmax", "joint log-likelihood")  # one output for each class
_STATISTICS = ("quantile ", "expectile ", "mean ")  # in the target's unit; other units "of the target" are functions of it
_SCORES = re.compile(r"\b(?:closeness|decision|density|hazard|inverse|latent|log|margin|one-vs|path length|score)|^inv")
_QUANTILE = re.compile(r"(?:quantile|expectile) [0-9.e-]+")  # the name of one of several outputs
_FUNCTION = "output of the function"  # only its author knows the unit


@dataclass(frozen=True, eq=False)
class Observed:
    """Hold target, response and error of each row. Arrays have the shape of the predictions."""

    target: np.ndarray  # what was observed; 1 and 0 for a class and the others, NaN where it is missing
    response: np.ndarray | None  # the prediction in the unit of the target; None where that is the prediction itself
    error: np.ndarray  # ``target`` minus the response
    response_name: str  # "probability", "predicted target" or "prediction"

    def output(self, k: int) -> Observed:
        response = None if self.response is None else self.response[:, k]
        return Observed(self.target[:, k], response, self.error[:, k], self.response_name)

    @property
    def sentence(self) -> str:
        observed = "the observed class (1, else 0)" if self.response_name == "probability" else "what was observed"
        return f"The error is {observed} minus the {self.response_name}."


def response(explanation: ExplanationData) -> tuple[str, np.ndarray] | None:
    """Return the predictions in the unit that people read, with its name; None if they are in it already.

    Probabilities of log-odds and of scores before a softmax, targets of their logarithm.
    """
    from scipy.special import expit, softmax

    unit = explanation.unit
    of_class = _OF_CLASS.fullmatch(unit)
    if of_class is not None and of_class[1] != "probability":
        return "probability", np.asarray(expit(float(of_class[1].partition(" / ")[2] or 1.0) * explanation.prediction))
    if unit in _SOFTMAX and explanation.output_names is not None:
        return "probability", np.asarray(softmax(explanation.prediction, axis=1))
    is_log = re.match("log of the target( of |$)", unit)
    return ("predicted target", np.exp(explanation.prediction)) if is_log else None


def named_target(explanation: Data, target: Column) -> Data:
    """Return an explanation with the name of the target, if it has one, in its unit: ``log-odds of survived = 1``."""
    name, of_class = getattr(target, "name", None), _OF_CLASS.fullmatch(explanation.unit)
    if not (isinstance(name, str) and name and of_class and of_class[2]) or explanation.output_names is not None:
        return explanation
    return replace(explanation, unit=f"{of_class[1]} of {name} = {of_class[2]}")


def observe(explanation: ExplanationData, target: Column) -> Observed:
    """Compare predictions with observations: classes of a classifier, or numbers in the unit of the target."""
    if explanation.data is not None:
        warn_of_other_order(as_table(explanation.data, allow_empty=True), target, "target")
    given = np.asarray(target, object)
    unit, several = explanation.unit, explanation.output_names is not None
    of_class = _OF_CLASS.fullmatch(unit)
    if of_class is None and not (several and unit in _SOFTMAX):
        return _of_numbers(explanation, given)
    if given.shape[:1] != explanation.prediction.shape[:1] or given.shape not in ((len(given),), explanation.prediction.shape):
        raise InputError(
            "`target` needs one class for each row",
            f"Got shape {given.shape} for {explanation.n_rows} rows",
            "Pass the labels of the rows that were explained, as the model was fitted with them",
        )
    name = next((text for text in of_class.groups()[1:] if text), None) if of_class else None
    if name is not None:
        name = name.removeprefix(f"{getattr(target, 'name', None)} = ")
    return _observed(explanation, _indicators(explanation, given, name), "probability")


def _of_numbers(explanation: ExplanationData, given: np.ndarray) -> Observed:
    unit = explanation.unit
    is_function = unit.endswith(" of the target") and not unit.startswith(_STATISTICS)
    if response(explanation) is None and (is_function or _SCORES.search(unit)):
        do = (
            'Explain probabilities or the target itself, with output="probability" or "response", or the function predict_proba'
            " or predict; or leave `target` out"
        )
        raise InputError("`target` is not in the unit of this output", f"The output is the {unit}", do)
    observed = _numbers(given)
    names = explanation.output_names or ()
    if observed is not None and observed.ndim == 1 and names and all(map(_QUANTILE.fullmatch, names)):
        observed = np.repeat(observed[:, None], len(names), axis=1)  # all are of one target
    if observed is None or observed.shape != explanation.prediction.shape:
        got = f"Got shape {given.shape} for predictions of shape {explanation.prediction.shape}"
        raise InputError(
            "`target` needs one number for each prediction, in the unit of the target",
            got if observed is not None else f"Got text for an output in the unit {unit!r}",
        )
    low, high = explanation.prediction.min(initial=np.inf), explanation.prediction.max(initial=-np.inf)
    are_labels = np.isin(observed[~np.isnan(observed)], (0.0, 1.0)).all()
    # A regression on labels leaves [0, 1] by a little
    if unit == _FUNCTION and are_labels and not (low >= -0.5 and high <= 1.5):
        got = f"It holds 0 and 1; the function returns {low:.4g} to {high:.4g}"
        raise InputError("`target` is not in the unit of this output", got, "Explain a function that returns probabilities")
    return _observed(explanation, observed, "prediction")


def _observed(explanation: ExplanationData, observed: np.ndarray, name: str) -> Observed:
    """Compare with the response, or with the prediction itself, which is called ``name``."""
    name, predicted = response(explanation) or (name, None)
    error = observed - (explanation.prediction if predicted is None else predicted)
    return Observed(observed, predicted, error, name)


def _indicators(explanation: ExplanationData, given: np.ndarray, name: str | None) -> np.ndarray:
    """Return 1.0 for an output's class, 0.0 for others, NaN if missing."""
    if explanation.output_names is not None:
        return _of_outputs(explanation, given)
    numbers = _numbers(given)
    if name is None or (numbers is not None and _NUMBERED.fullmatch(name)):
        if numbers is None or not np.all(np.isnan(numbers) | ((numbers >= 0) & (numbers <= 1))):
            raise _other_labels("1 (the class of the output) and 0", given)
        return numbers
    observed = _is_class(given, name)
    others = {cell_text(label) for label in given[observed == 0.0]}
    fractions = numbers is not None and bool(np.any(numbers % 1 > 0))
    alike = (numbers is not None) == (_numbers(np.array([name], object)) is not None)
    if fractions or not (np.any(observed == 1.0) or (alike and len(others) <= 1)):
        raise _other_labels(f"{name!r} and those of the other class", given)
    return observed


def _of_outputs(explanation: ExplanationData, given: np.ndarray) -> np.ndarray:
    names = explanation.output_names or ()
    if given.ndim == 2:
        numbers = _numbers(given)
        if numbers is None:
            raise _other_labels("numbers between 0 and 1, one for each output", given)
        return numbers
    observed = np.stack([_is_class(given, name) for name in names], axis=1)
    if np.any(observed.sum(axis=1) == 0.0):
        raise _other_labels(", ".join(map(repr, names[:10])), given[observed.sum(axis=1) == 0.0])
    return observed


def _is_class(labels: np.ndarray, name: str) -> np.ndarray:
    name = name.removeprefix("class ")  # a word of the unit, or the first of the label
    number = _numbers(np.array([name], object))
    texts = [cell_text(label) for label in labels]
    numbers = _numbers(labels)
    same = np.array([text in (name, f"class {name}") for text in texts], float)
    if number is not None and numbers is not None:
        same = (numbers == number[0]).astype(float)
    return np.where([text == "" for text in texts], np.nan, same)


def _numbers(cells: np.ndarray) -> np.ndarray | None:
    """Return the cells as numbers, missing ones as NaN; None if some are text."""
    try:
        return np.array([float("nan") if cell_text(cell) == "" else float(cell) for cell in cells.ravel()]).reshape(cells.shape)
    except (TypeError, ValueError):
        return None


def _other_labels(wanted: str, given: np.ndarray) -> InputError:
    got = sorted({cell_text(label) for label in given.ravel() if cell_text(label)})[:10]
    do = "Pass the labels as the model was fitted with them"
    return InputError(f"`target` needs the classes of this output: {wanted}", f"Got {', '.join(got)}", do)
