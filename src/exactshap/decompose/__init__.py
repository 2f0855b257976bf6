"""Split one number about a model or a sample exactly over the features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use

__all__ = [
    "Decomposition",
    "PairwiseSettings",
    "decompose_conditional_hsic",
    "decompose_loss",
]

if TYPE_CHECKING:
    from exactshap.results.decomposition import Decomposition

# Imported on first use, as each needs other libraries; some are offered by the package itself.
_NAMES = {
    "exactshap.results.decomposition": "Decomposition",
    "conditional": "decompose_conditional_hsic",
    "pairwise._estimate": "PairwiseSettings",
    "pairwise._hsic": "decompose_hsic",
    "pairwise._mmd": "decompose_mmd",
    "r2._decompose": "decompose_r2",
    "r2._loss": "decompose_loss",
}
__getattr__ = on_first_use(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(" ".join(_NAMES.values()).split())
