"""Names of value functions and indices in plain words: one sentence on what each is, and what it is not."""

from __future__ import annotations

__all__ = ["counted", "index_title", "value_function_sentence"]

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

_OF_TRAINING = (  # an additive model knows its training rows' counts in each bin
    "v(S) is the mean prediction over the rows that the model was fitted on, whose counts it keeps (no background was passed), with"
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


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(2000, "feature")
    ('1 row', '2,000 features')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def value_function_sentence(name: str, *, has_background: bool = True) -> str:
    """Say in words what v(S) is, and what it is not.

    Parameters
    ----------
    name : str
        As in ``explanation.value_function``.
    has_background : bool, default=True
        Whether background rows were passed; without, additive models have means over their training rows.

    Examples
    --------
    >>> value_function_sentence("baseline")[:42]
    'v(S) is the prediction for one reference r'
    """
    if name == "interventional" and not has_background:
        return _OF_TRAINING
    return _VALUE_FUNCTIONS.get(name, f"v(S) is the value function named {name!r}; see the documentation.")


def index_title(index: str, order: int = 1) -> str:
    """Return the name of an index as a plot title writes it.

    >>> index_title("shapley"), index_title("k-sii", 2)
    ('Shapley values', 'k-SII values of order 2')
    """
    title = _INDICES.get(index, f"{index} values")
    return title if order == 1 else f"{title} of order {order}"
