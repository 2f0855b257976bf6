"""What other libraries call what is here: names that people type first, and the acronyms of shapiq."""

from __future__ import annotations

__all__ = ["SHAPIQ_NAMES", "called_here"]

_RESULT = {
    "base_values": "baseline",
    "expected_value": "baseline",
    "shap_values": "values",
    "error_std": "std_error",
    "display_data": "data",
    "plots": "plot",
    "summary": "beeswarm",
    "dependence": "scatter",
}
_PICTURES = {  # pictures of shap's that are not drawn here, and what shows the same
    "force": "plot.waterfall(i) shows the same numbers as bars with their names",
    "decision": "plot.heatmap() shows the values of all rows, and plot.waterfall(i) the path of one",
}
_EXPLAINER = {
    "shap_values": "explainer(X).values",
    "shap_interaction_values": "explainer(X, index='k-sii', order=2).interactions",
    "expected_value": "explainer(X).baseline",
}
SHAPIQ_NAMES = {  # (index, whether the order is 1) -> shapiq's acronym
    ("shapley", True): "SV",
    ("shapley", False): "SII",
    ("banzhaf", True): "BV",
    ("banzhaf", False): "BII",
    ("banzhaf-interaction", True): "BV",
    ("banzhaf-interaction", False): "BII",
    ("sii", True): "SV",
    ("sii", False): "SII",
    ("k-sii", True): "SV",
    ("k-sii", False): "k-SII",
    ("stii", True): "SV",
    ("stii", False): "STII",
    ("fsii", True): "SV",
    ("fsii", False): "FSII",
    ("chaining", True): "SV",
    ("chaining", False): "CHII",
    ("moebius", False): "Moebius",
}


def called_here(owner: str, name: str) -> str | None:
    """Return a sentence with the name here for an attribute of shap's. None if shap has none of this name.

    >>> called_here("Explanation", "base_values")
    "Explanation has no attribute 'base_values'. It is called 'baseline' here; explanation.to_shap() gives shap's own object."
    >>> called_here("Explainer", "expected_value")
    "Explainer has no attribute 'expected_value'. It is explainer(X).baseline here."
    """
    if owner == "Explainer":
        return f"{owner} has no attribute {name!r}. It is {_EXPLAINER[name]} here." if name in _EXPLAINER else None
    if name in _PICTURES and owner == "plot":
        return f"{owner} has no attribute {name!r}: {_PICTURES[name]}. shap draws its own from explanation.to_shap()."
    if name not in _RESULT:
        return None
    text = f"{owner} has no attribute {name!r}. It is called {_RESULT[name]!r} here"
    return f"{text}; explanation.to_shap() gives shap's own object."
