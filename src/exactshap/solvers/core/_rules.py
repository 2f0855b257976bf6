"""Quadrature rules of growing size, as the compiled kernels read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["RuleArrays"]


class RuleArrays(NamedTuple):
    """Rules one behind the other; rule r serves spreads up to ``limits[r]`` and has nodes ``offsets[r]`` to ``offsets[r + 1] - 1``."""

    limits: np.ndarray
    offsets: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, rules: Sequence[tuple[np.ndarray, np.ndarray]], limits: Sequence[float]) -> RuleArrays:
        """Put nodes and weights of some rules one behind the other."""
        nodes, weights = (np.concatenate(parts).astype(float) for parts in zip(*rules, strict=True))
        return cls(np.array(limits, float), np.cumsum([0, *(len(rule[0]) for rule in rules)]), nodes, weights)
