"""Global decompositions: one number about a model or a sample (R2, MMD, HSIC), split exactly over the features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "Decomposition": "exactshap.decompose._result",
    "decompose_hsic": "exactshap.decompose._hsic",
    "decompose_mmd": "exactshap.decompose._mmd",
    "decompose_r2": "exactshap.decompose._r2",
}

__all__ = ["Decomposition", "decompose_hsic", "decompose_mmd", "decompose_r2"]

if TYPE_CHECKING:
    from exactshap.decompose._result import Decomposition


def __getattr__(name: str) -> Any:
    """Import public names on first use."""
    import importlib

    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'exactshap.decompose' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
