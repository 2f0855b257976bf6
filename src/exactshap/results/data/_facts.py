"""Describe an explanation in words: headline, facts, titles and citations."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from exactshap import __version__
from exactshap._runtime.progress import fewer_coalitions
from exactshap._runtime.words import POWERS_FROM
from exactshap.results.data._certificate import without_noise

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

Data = TypeVar("Data", bound="ExplanationData")
_SHOWN = ("values", "set_values", "baseline", "prediction", "std_error", "set_std_error")
# Names of models that were read from a file of boosted trees, which no library predicts in another unit
_FILES = (".json", ".ubj", ".txt", "model file")
# Words of a method, and the paper with its theorem or estimator. Quadrature and folding sum Owen's multilinear extension.
_METHODS = {
    r"quadrature|folded": "owen",
    r"per-term enumeration": "starshap",
    r"regression \(": "polyshap",
    r"means by (kernel ridge regressions|random forests)": "olsen",
    r"Gaussian copula": "aas",
    r"tables|paths|walks": "treeshap",
}
_VALUE_FUNCTION_PAPERS = {"functional": "pkexshapley", "observational": "rkhsshap", "path_dependent": "treeshap"}
_VALUE_FUNCTIONS = {
    "interventional": "v(S) is the mean prediction over the background rows with the features in S taken from the explained row."
    " It breaks the dependence between features on purpose; it is not a conditional expectation.",
    "interventional-independent": "v(S) averages the prediction over independent draws of each feature's background marginal."
    " It differs from the mean over joint background rows when features depend on each other.",
    "baseline": "v(S) is the prediction for one reference row with the features in S taken from the explained row."
    " It compares with that row only; it is not an average over data.",
    "functional": "v(S) is the model with the kernel factors of the features outside S set to 1."
    " It is a definition that needs no background data; its baseline is not the mean prediction E[f(X)].",
    "normalized": "v(S) is the functional game with its baseline taken off and given back in equal shares to the features in S:"
    " v(empty) = 0."
    " It needs no background data; it is not relative to the mean prediction E[f(X)].",
    "path_dependent": "v(S) follows the tree and splits at features outside S in proportion to the training rows in each branch."
    " It uses the model's own cover counts; it is not a conditional expectation of the data.",
    "observational": "v(S) estimates E[f(X) | X_S = x_S] by a conditional mean embedding with a ridge."
    " It is a regularised estimate of the conditional expectation; it can give credit to features that the model does not use.",
    "observational-copula": "v(S) is E[f(X) | X_S = x_S] under a Gaussian copula with the margins of the background rows."
    " It is right as far as the copula is; it can give credit to features that the model does not use.",
    "observational-forest": "v(S) estimates E[f(X) | X_S = x_S] by a random forest that splits on the features in S only."
    " It is an estimate of the conditional expectation; it can give credit to features that the model does not use.",
    "game": "v(S) is the worth of the players in S, as the game itself says.",
}
# Of additive models without a background, which know their training rows' counts in each bin
_OF_TRAINING = (
    "v(S) is the mean prediction over the rows that the model was fitted on (it keeps their counts; no background was passed), with"
    " the features in S taken from the explained row."
    " It breaks the dependence between features on purpose; it is not a conditional expectation."
)
_INDICES = {
    "shapley": "Shapley values",
    "banzhaf": "Banzhaf values",
    "leave-one-out": "leave-one-out values",
    "moebius": "Moebius coefficients",
    "sii": "Shapley interaction index",
    "banzhaf-interaction": "Banzhaf interaction index",
    "fourier": "coefficients of Walsh characters",
    "chaining": "chaining interaction index",
    "stii": "Shapley-Taylor interaction index",
    "fsii": "faithful Shapley interaction index",
    "k-sii": "k-SII values",
    "owen": "Owen values of players in groups",
    "winter": "Winter values of players in nested groups",
    "asymmetric": "asymmetric Shapley values",
}


def headline(explanation: ExplanationData) -> str:
    title = index_title(explanation.index, explanation.order)
    outputs = "" if explanation.n_outputs == 1 else f", {explanation.n_outputs} outputs"
    player = "feature" if explanation.groups is None else "player"
    size = f"{counted(explanation.n_rows, 'row')} x {counted(explanation.n_players, player)}{outputs}"
    return f"{explanation.kind} {title}, {size} ({explanation.unit})"


def facts(explanation: ExplanationData) -> dict[str, str]:
    certificate = explanation.certificate()
    verdict = "passed" if certificate.adds_up else f"FAILED, worst at row {certificate.row}"
    seconds, bound = explanation.seconds, np.asarray(explanation.error_bound)
    compared = certificate.mask_difference is not None
    coalitions = f": {'passed' if certificate.masks_passed else 'FAILED'}" if compared else ""
    approximation = _largest("v(S) is off by up to about", explanation.approximation_error)
    estimated = "an estimate: how far f(x) itself is missed, and the change when half of the landmarks or features are used"
    covariance = _largest("adds up to the model's own variance of f(x) - baseline to within", explanation.covariance_residual)
    found = {
        "model": explanation.model_name or "not named",
        "unit": _unit(explanation.unit, explanation.model_name or ""),
        "value function": f"{explanation.value_function}. {game_sentence(explanation)}",
        "background": _background(explanation),
        "baseline": _range(readable(explanation).baseline),
        "residual": f"at most {certificate.max_residual:.2g} (tolerance {certificate.tolerance:.2g}), "
        f"of {certificate.checks}: {verdict}",
        "coalitions": certificate.masks() + coalitions,
        "error bound": f"{np.max(bound, initial=0.0):.2g}" if np.any(bound > 0) else "",
        "std error": _largest("at most", readable(explanation).std_error),
        "approximation": approximation and f"{approximation} ({estimated})",
        "std": _largest("at most", explanation.std),
        "covariance": covariance,
        "method": explanation.method,
        "evaluations": _evaluations(explanation),
        "seconds": "" if seconds is None else f"{seconds:.3g}",
    }
    return {name: text for name, text in found.items() if text}


def _unit(unit: str, model_name: str) -> str:
    """Return the unit of a score in front of a link, with the way to probabilities or rates; "" for other units."""
    # Models without another prediction
    if "OneVsOneClassifier" in model_name or unit in ("raw log-odds", "log hazard: high is early"):
        return ""
    if unit.startswith(("log-odds", "one-vs-rest log-odds", "score before the softmax", "joint log-likelihood")):
        if model_name.endswith(_FILES):
            return f"{unit}. For probabilities explain the model that its own library loads from the file"
        return f'{unit}. For probabilities pass output="probability" and background rows'
    if unit.startswith(("log of the ", "log1p of the ", "log2 of the ", "log hazard", "log partial hazard")):
        if model_name.endswith(_FILES):
            return f"{unit}. Without the logarithm: explain the model that its own library loads from the file"
        other = " (sums of terms, trees, networks of one layer), else explain(model.predict, X, background)"
        return f'{unit}. Without the logarithm: output="response" and background rows{other if "TransformedTarget" in model_name else ""}'
    return ""


def game_sentence(explanation: ExplanationData) -> str:
    return value_function_sentence(explanation.value_function, has_background=explanation.background_size is not None)


def _evaluations(explanation: ExplanationData) -> str:
    """Return the number of evaluated coalitions, with a hint if they are many."""
    count, fewer = explanation.n_evaluations, fewer_coalitions(explanation.n_players)
    a_row = count / max(explanation.n_rows, 1)
    error = 0.0 if explanation.std_error is None else np.max(explanation.std_error, initial=0.0)
    if a_row > 2 * fewer and error > 0:
        return f"{count:,}: {a_row:,.0f} coalitions a row; budget={fewer} or tol={10 * error:.0g} asks for fewer"
    return f"{count:,}" if count else ""


def _largest(words: str, array: np.ndarray | None) -> str:
    return "" if array is None else f"{words} {np.max(np.abs(array), initial=0.0):.2g}"


def _background(explanation: ExplanationData) -> str:
    if not explanation.background_size:
        return "" if explanation.background_size is None else "each part's own"
    digest = f", SHA-256 {explanation.background_hash[:12]}" if explanation.background_hash else ""
    return f"{explanation.background_size} {'row' if explanation.background_size == 1 else 'rows'}{digest}"


def _range(array: np.ndarray) -> str:
    if array.size == 0:
        return "none"
    columns = array.reshape(len(array), -1)
    low, high = columns.min(axis=0), columns.max(axis=0)
    ends = [(_six(a), _six(b)) for a, b in zip(low, high, strict=True)]
    texts = [a if a == b else f"{a} to {b}" for a, b in ends]  # rows may differ by rounding alone
    return ", ".join(texts[:6]) + (", ..." if len(texts) > 6 else "")


def _six(number: float) -> str:
    """Return a number with six digits, millions in full, as pictures have them."""
    return f"{number:.0f}" if 1e6 <= abs(number) < POWERS_FROM else f"{number:.6g}"


def readable(explanation: Data) -> Data:
    """Return an explanation for people, with 0 for numbers within tolerance.

    Sums stay consistent; the certificate is that of the original.
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


def cited_by_values(value_function: str, method: str) -> list[str]:
    """Return the keys of the papers behind values, the library's own first."""
    found = [key for words, key in _METHODS.items() if re.search(words, method)]
    return [*dict.fromkeys(["exactshap", _VALUE_FUNCTION_PAPERS.get(value_function, "exactshap"), *found])]


def cited_by_decomposition(statistic: str, game: str) -> list[str]:
    """Return the keys of the papers behind a decomposition, the library's own first."""
    if game == "refit":
        return ["exactshap", "lindeman"]
    return ["exactshap", "pkexshapley" if re.search("MMD|HSIC", statistic) else "qshap"]


def bibtex(keys: list[str]) -> str:
    """Return the entries of ``citations.bib`` with these keys, in that order."""
    text = resources.files("exactshap.results.data").joinpath("citations.bib").read_text(encoding="utf-8")
    entries = {re.match(r"@\w+{([^,]+),", entry)[1]: entry for entry in text.strip().split("\n\n")}  # type: ignore[index]
    return "\n\n".join(entries[key] for key in keys).replace("VERSION", __version__) + "\n"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(2000, "feature")
    ('1 row', '2,000 features')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def value_function_sentence(name: str, *, has_background: bool = True) -> str:
    """Say in words what v(S) is, and what it is not. Without a background, additive models have means over their training rows.

    >>> value_function_sentence("baseline")[:42]
    'v(S) is the prediction for one reference r'
    """
    if name == "interventional" and not has_background:
        return _OF_TRAINING
    return _VALUE_FUNCTIONS.get(name, f"v(S) is the value function named {name!r}; see the documentation.")


def game_title(explanation: ExplanationData) -> str:
    """Return the value function and the error bound as a plot title."""
    bound = float(np.max(explanation.error_bound, initial=0.0))
    known = f", error bound {bound:.0e}" if bound > 0.0 else ""
    return f"value function: {explanation.value_function}{known}"


def index_title(index: str, order: int = 1) -> str:
    """Return the name of an index as a plot title.

    >>> index_title("shapley"), index_title("k-sii", 2)
    ('Shapley values', 'k-SII values of order 2')
    """
    title = _INDICES.get(index, f"{index} values")
    return title if order == 1 else f"{title} of order {order}"
