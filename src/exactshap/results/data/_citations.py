"""The literature that a result rests on, as BibTeX."""

from __future__ import annotations

import re
from importlib import resources

__all__ = ["bibtex", "cited_by_decomposition", "cited_by_values"]

# Words of a method, and the paper with its theorem or estimator. Quadrature and folding sum Owen's multilinear extension.
_METHODS = {
    r"quadrature|folded": "owen",
    r"per-term enumeration": "starshap",
    r"PolySHAP": "polyshap",
    r"tables|paths|walks": "treeshap",
}
_VALUE_FUNCTIONS = {"functional": "pkexshapley", "observational": "rkhsshap", "path_dependent": "treeshap"}


def cited_by_values(value_function: str, method: str) -> list[str]:
    """Return the keys of the papers behind values, the library's own first."""
    found = [key for words, key in _METHODS.items() if re.search(words, method)]
    return [*dict.fromkeys(["exactshap", _VALUE_FUNCTIONS.get(value_function, "exactshap"), *found])]


def cited_by_decomposition(statistic: str) -> list[str]:
    """Return the keys of the papers behind a decomposition, the library's own first."""
    return ["exactshap", "pkexshapley" if re.search("MMD|HSIC", statistic) else "qshap"]


def bibtex(keys: list[str]) -> str:
    """Return the entries of ``citations.bib`` with these keys, in that order."""
    from exactshap import __version__

    text = resources.files("exactshap.results.data").joinpath("citations.bib").read_text(encoding="utf-8")
    entries = {re.match(r"@\w+{([^,]+),", entry)[1]: entry for entry in text.strip().split("\n\n")}  # type: ignore[index]
    return "\n\n".join(entries[key] for key in keys).replace("VERSION", __version__) + "\n"
