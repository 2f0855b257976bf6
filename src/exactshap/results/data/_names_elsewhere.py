"""Map shap's names and shapiq's acronyms to the names of this package."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Call = TypeVar("Call", bound=Callable[..., Any])

_OWN_PICTURE = "shap draws its own from explanation.to_shap()"
SHAPIQ_NAMES = {  # index -> shapiq's acronyms of order 1 and above; "" where it has none
    "shapley": ("SV", "SII"),
    "banzhaf": ("BV", "BII"),
    "banzhaf-interaction": ("BV", "BII"),
    "sii": ("SV", "SII"),
    "k-sii": ("SV", "k-SII"),
    "stii": ("SV", "STII"),
    "fsii": ("SV", "FSII"),
    "chaining": ("SV", "CHII"),
    "moebius": ("", "Moebius"),
}


@functools.cache
def _answers(table: str) -> dict[str, str]:
    import tomllib

    tables = tomllib.loads((Path(__file__).parent / "names_elsewhere.toml").read_text(encoding="utf-8"))
    return {name: answer for names, answer in tables[table].items() for name in names.split()}


def called_here(owner: str, name: str) -> str | None:
    """Return the name here of an attribute of shap's, None if unknown.

    >>> called_here("Explanation", "base_values")
    "Explanation has no attribute 'base_values'. It is called 'baseline' here; explanation.to_shap() gives shap's own object."
    >>> called_here("Explainer", "expected_value")
    "Explainer has no attribute 'expected_value'. It is explainer(X).baseline here."
    """
    start = f"{owner} has no attribute {name!r}"
    if owner == "exactshap":
        return f"module {start}: {answer}." if (answer := _answers("module").get(name)) else None
    if owner == "Explainer":
        return f"{start}. {answer}." if (answer := _answers("explainer").get(name)) else None
    if owner == "plot" and (answer := _answers("pictures").get(name)):
        return f"{start}: {answer}{'' if _OWN_PICTURE in answer else f'; {_OWN_PICTURE}'}."
    if answer := _answers("renamed").get(name):
        return f"{start}. It is called {answer!r} here; explanation.to_shap() gives shap's own object."
    return f"{start}: {answer}." if (answer := _answers("attributes").get(name)) else None


def refuse_name(owner: str, name: str) -> None:
    """Raise an error with the name here of an attribute of shap's."""
    if text := called_here(owner, name):
        raise AttributeError(text, name=name)  # named, so that a traceback adds no guess


def keyword_here(word: str, *, picture: bool = False) -> str | None:
    """Return the equivalent here of a keyword of shap's, None if unknown.

    >>> keyword_here("check_additivity")
    'every explanation is checked by itself; see explanation.certificate()'
    """
    style = _answers("style").get(word) if picture else None
    return style or _answers("keywords").get(word)


def answers_keywords(function: Call, *, picture: bool = False) -> Call:
    """Return a function that answers keywords of shap's with their equivalents."""
    known = frozenset(inspect.signature(function).parameters)
    called = "explainer(X)" if function.__name__ == "__call__" else f"{function.__name__}()"

    @functools.wraps(function)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        for word in keywords.keys() - known:
            if text := keyword_here(word, picture=picture):
                raise TypeError(f"{called} has no keyword {word!r}: {text}.")
        return function(*arguments, **keywords)

    return checked  # type: ignore[return-value]


def picture(function: Call) -> Call:
    """Return a method that draws and answers keywords of shap's pictures."""
    return answers_keywords(function, picture=True)
