"""Global decompositions: one number about a model or a sample (R2, MMD, HSIC), split exactly over the features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "Decomposition": "exactshap.results.decomposition._decomposition",
    "PairwiseSettings": "exactshap.decompose.pairwise._estimate",
    "decompose_conditional_hsic": "exactshap.decompose.conditional",
    "decompose_hsic": "exactshap.decompose.pairwise._hsic",
    "decompose_loss": "exactshap.decompose.r2._loss",
    "decompose_mmd": "exactshap.decompose.pairwise._mmd",
    "decompose_r2": "exactshap.decompose.r2._decompose",
}

__all__ = [
    "Decomposition",
    "PairwiseSettings",
    "decompose_conditional_hsic",
    "decompose_hsic",
    "decompose_loss",
    "decompose_mmd",
    "decompose_r2",
]

if TYPE_CHECKING:
    from exactshap.results.decomposition import Decomposition


def __getattr__(name: str) -> Any:
    """Import public names on first use."""
    import importlib

    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'exactshap.decompose' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
