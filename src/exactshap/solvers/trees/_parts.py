"""What the engines for trees share: the form of their answer, routing tree by tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap.trees import FlatTrees
from exactshap.trees.ensemble import fill_decisions

__all__ = ["Part", "decisions_of"]


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


def decisions_of(trees: FlatTrees, columns: np.ndarray, tree: int) -> np.ndarray:
    """Return where rows go at the nodes of one tree: uint8 of shape (n_nodes of the tree, n_rows)."""
    part = slice(trees.tree_start[tree], trees.tree_start[tree + 1])
    nodes = trees.nodes
    nodes = nodes._replace(**{name: getattr(nodes, name)[part] for name in nodes._fields[:8]})
    out = np.zeros((part.stop - part.start, columns.shape[1]), np.uint8)
    fill_decisions(columns, nodes, out)
    return out
