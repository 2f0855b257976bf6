"""An explanation in words: the headline and the facts that its repr, its HTML and the report show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from exactshap._runtime.progress import fewer_coalitions
from exactshap.results.data._words import counted, index_title, value_function_sentence

if TYPE_CHECKING:
    from exactshap.results.data._certificate import Certificate
    from exactshap.results.data._explanation_data import ExplanationData
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from exactshap.results.data._residuals import without_noise

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

__all__ = ["facts", "headline", "readable"]


Data = TypeVar("Data", bound="ExplanationData")
_SHOWN = ("values", "set_values", "baseline", "prediction", "std_error", "set_std_error")


def headline(explanation: ExplanationData) -> str:
    """Return one line: what it is, of how many rows and players."""
    title = index_title(explanation.index, explanation.order)
    outputs = "" if explanation.n_outputs == 1 else f", {explanation.n_outputs} outputs"
    player = "feature" if explanation.groups is None else "player"
    size = f"{counted(explanation.n_rows, 'row')} x {counted(explanation.n_players, player)}{outputs}"
    return f"{explanation.kind} {title}, {size} ({explanation.unit})"


def facts(explanation: ExplanationData) -> dict[str, str]:
    """Return short texts by name on how to read the numbers."""
    certificate = explanation.certificate()
    verdict = "passed" if certificate.adds_up else f"FAILED, worst at row {certificate.row}"
    seconds, bound = explanation.seconds, np.asarray(explanation.error_bound)
    found = {
        "model": explanation.model_name or "not named",
        "unit": _unit(explanation.unit),
        "value function": f"{explanation.value_function}. {_sentence(explanation)}",
        "background": _background(explanation),
        "baseline": _range(readable(explanation).baseline),
        "residual": f"at most {certificate.max_residual:.2g} (tolerance {certificate.tolerance:.2g}), "
        f"of {certificate.checks}: {verdict}",
        "coalitions": _coalitions(certificate),
        "error bound": f"{np.max(bound, initial=0.0):.2g}" if np.any(bound > 0) else "",
        "std error": _largest("at most", explanation.std_error),
        "approximation": _approximation(explanation),
        "std": _largest("at most", explanation.std),
        "covariance": _covariance(explanation),
        "method": explanation.method,
        "evaluations": _evaluations(explanation),
        "seconds": "" if seconds is None else f"{seconds:.3g}",
    }
    return {name: text for name, text in found.items() if text}


def _unit(unit: str) -> str:
    """Return the unit of a score in front of a link, and how to get what people read; nothing of other units."""
    if unit.startswith(("log-odds", "one-vs-rest log-odds", "score before the softmax", "joint log-likelihood")):
        return f'{unit}. For probabilities pass output="probability" and background rows'
    if unit.startswith(("log of the ", "log hazard", "log partial hazard")):
        return f'{unit}. Without the logarithm: output="response" and background rows'
    return ""


def _sentence(explanation: ExplanationData) -> str:
    return value_function_sentence(explanation.value_function, has_background=explanation.background_size is not None)


def _evaluations(explanation: ExplanationData) -> str:
    """Return how many coalitions were evaluated, and how to need fewer of many."""
    count, fewer = explanation.n_evaluations, fewer_coalitions(explanation.n_players)
    a_row = count / max(explanation.n_rows, 1)
    error = 0.0 if explanation.std_error is None else np.max(explanation.std_error, initial=0.0)
    if a_row > 2 * fewer and error > 0:
        return f"{count:,}: {a_row:,.0f} coalitions a row; budget={fewer} or tol={10 * error:.0g} asks for fewer"
    return f"{count:,}" if count else ""


def _coalitions(certificate: Certificate) -> str:
    words = certificate.masks()
    compared = certificate.mask_difference is not None
    return f"{words}: {'passed' if certificate.masks_passed else 'FAILED'}" if compared else words


def _largest(words: str, array: np.ndarray | None) -> str:
    return "" if array is None else f"{words} {np.max(array, initial=0.0):.2g}"


def _approximation(explanation: ExplanationData) -> str:
    largest = _largest("v(S) is off by up to about", explanation.approximation_error)
    return (
        largest
        and f"{largest} (an estimate: how far f(x) itself is missed, and the change when half of the landmarks or features are used)"
    )


def _covariance(explanation: ExplanationData) -> str:
    if explanation.covariance_residual is None:
        return ""
    largest = np.max(np.abs(explanation.covariance_residual), initial=0.0)
    return f"adds up to the model's own variance of f(x) - baseline to within {largest:.2g}"


def _background(explanation: ExplanationData) -> str:
    if explanation.background_size is None:
        return ""
    digest = f", SHA-256 {explanation.background_hash[:12]}" if explanation.background_hash else ""
    return f"{explanation.background_size} {'row' if explanation.background_size == 1 else 'rows'}{digest}"


def _range(array: np.ndarray) -> str:
    if array.size == 0:
        return "none"
    columns = array.reshape(len(array), -1)
    low, high = columns.min(axis=0), columns.max(axis=0)
    ends = [(f"{a:.6g}", f"{b:.6g}") for a, b in zip(low, high, strict=True)]
    texts = [a if a == b else f"{a} to {b}" for a, b in ends]  # rows may differ by rounding alone
    return ", ".join(texts[:6]) + (", ..." if len(texts) > 6 else "")


def readable(explanation: Data) -> Data:
    """Return an explanation for tables, texts and pictures, with 0 for numbers within its own tolerance.

    Whether its values add up stays as it was; the certificate is that of the original.
    """
    changes: dict[str, Any] = {}
    for name in _SHOWN:
        numbers = getattr(explanation, name)
        if numbers is not None:
            people = without_noise(numbers, explanation.tolerance.reshape(-1, *[1] * (numbers.ndim - 1)))
            if not np.array_equal(people, numbers, equal_nan=True):
                changes[name] = people
    if not changes:
        return explanation
    if explanation.additive:
        shown = replace(explanation, **changes)
        changes["residual"] = shown.prediction - shown.baseline - shown.values.sum(axis=1)
    return replace(explanation, **changes)
