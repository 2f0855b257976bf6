"""Exact Shapley values wherever a model has structure, honest estimates with error bars where it has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Explainer": "exactshap.explainer",
    "Explanation": "exactshap.results.explanation",
    "HSICSelector": "exactshap.estimators",
    "RKHSWeightingRegressor": "exactshap.estimators",
    "ShapleyKernelRidge": "exactshap.estimators",
    "decompose_hsic": "exactshap.decompose",
    "decompose_mmd": "exactshap.decompose",
    "decompose_r2": "exactshap.decompose",
    "explain": "exactshap.explainer",
    "show_versions": "exactshap.versions",
    "solve": "exactshap.solvers",
}

__all__ = [
    "Explainer",
    "Explanation",
    "HSICSelector",
    "RKHSWeightingRegressor",
    "ShapleyKernelRidge",
    "__version__",
    "decompose_hsic",
    "decompose_mmd",
    "decompose_r2",
    "explain",
    "show_versions",
    "solve",
]

if TYPE_CHECKING:
    from exactshap.explainer import Explainer, explain
    from exactshap.results.explanation import Explanation
    from exactshap.solvers import solve
    from exactshap.versions import show_versions


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that ``import exactshap`` costs next to nothing."""
    import importlib

    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    text = f"module 'exactshap' has no attribute {name!r}"
    if not name.startswith("_") and (
        answer := importlib.import_module("exactshap.results.data").called_here("exactshap", name)
    ):
        raise AttributeError(answer)
    if name.endswith("Explainer"):
        text += ". There is one for all models: exactshap.Explainer(model, background)."
    if name == "load":
        text += ". Explanations are loaded with exactshap.Explanation.load(path), model files with exactshap.trees.load(path)."
    raise AttributeError(text)


def __dir__() -> list[str]:
    return sorted(__all__)
