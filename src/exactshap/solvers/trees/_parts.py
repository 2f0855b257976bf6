"""What the engines for trees share: the form of their answer, routing tree by tree, a shelf for what is worth keeping."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.trees import FlatTrees
from exactshap.trees.ensemble._kernels import fill_decisions

__all__ = ["Part", "Shelf", "decisions_of"]


@dataclass(frozen=True, eq=False)
class Part:
    """What an engine answers for some rows and its trees, without the ensemble's constant.

    ``values`` (n_rows, n_sets, n_outputs), ``full`` (n_rows, n_outputs), ``scale`` (n_rows,), ``relative_bound`` on the
    quadrature error, and the method by name.
    """

    values: np.ndarray
    full: np.ndarray
    scale: np.ndarray
    relative_bound: float
    method: str


class Shelf:
    """Keep the latest results of pure functions. It is thread-safe, and empty again after a pickle: nothing depends on it."""

    def __init__(self) -> None:
        self._items: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Shelf], tuple[()]]:
        return Shelf, ()

    def get(self, key: tuple[Any, ...], make: Callable[[], Any], *, keep: int) -> Any:
        """Return the item, made once; at most ``keep`` items whose keys start with the same word stay."""
        with self._lock:
            if key not in self._items:
                same = [old for old in self._items if old[0] == key[0]]  # type: ignore[index]
                for old in same[: len(same) - keep + 1]:
                    del self._items[old]
                self._items[key] = make()
            return self._items[key]


def decisions_of(trees: FlatTrees, columns: np.ndarray, tree: int) -> np.ndarray:
    """Return where rows go at the nodes of one tree: uint8 of shape (n_nodes of the tree, n_rows)."""
    part = slice(trees.tree_start[tree], trees.tree_start[tree + 1])
    nodes = trees.nodes
    nodes = nodes._replace(**{name: getattr(nodes, name)[part] for name in nodes._fields[:8]})
    out = np.zeros((part.stop - part.start, columns.shape[1]), np.uint8)
    fill_decisions(columns, nodes, out)
    return out
